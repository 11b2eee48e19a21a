"""OpenCL C to SPIR-V: options.py reads option strings, clang.py runs the compiler."""
