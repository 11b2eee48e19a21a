"""Whole kernels: the loops over groups and work-items, ids, the entry emit.emit."""
