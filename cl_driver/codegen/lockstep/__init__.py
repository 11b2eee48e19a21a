"""Groups in lockstep: numbers known for each lane, local memory in registers."""
