"""Lowerings of instructions: a module for each chapter of the SPIR-V and OpenCL.std specifications."""
