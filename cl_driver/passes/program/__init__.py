"""Passes on whole programs, before kernels are looked at: what extensions of SPIR-V add, as plain SPIR-V."""
