"""Numbers that CPUs do not have, as those that they have: integers of any width, short floats."""
