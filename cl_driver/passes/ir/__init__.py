"""The IR that the passes change: instructions, plans, dominators, SSA form, folding, dumps, checks."""
