"""Where things are in memory: the kernel ABI, argument block, scratch memory, private arrays."""
