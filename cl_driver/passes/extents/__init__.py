"""Which bytes the work-groups of a kernel read and write, as launches evaluate it."""
