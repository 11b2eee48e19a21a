"""The control plane: one module per chapter of the OpenCL API specification. See README.md."""
