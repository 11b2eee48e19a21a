"""What is worth it: how many lanes and vectors a kernel gets, registers, latency."""
