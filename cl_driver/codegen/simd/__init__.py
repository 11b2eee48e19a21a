"""Functions at W work-items per vector: operands, masks, lowerings of what varies between lanes."""
