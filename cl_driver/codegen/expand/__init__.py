"""Arithmetic that no CPU has for vectors, expanded into what it has."""
