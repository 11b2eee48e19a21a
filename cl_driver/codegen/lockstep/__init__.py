"""Groups that are held whole in vectors: numbers known for each lane, local memory in registers."""
