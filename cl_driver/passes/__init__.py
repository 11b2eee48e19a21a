"""SSA passes on SPIR-V functions: from a kernel of a module to a KernelPlan (see README.md)."""
