"""Passes on loops: unrolling, versioning, invariant code, narrower integers."""
