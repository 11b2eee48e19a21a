"""Trying local sizes and build options of a kernel (README.md)."""
