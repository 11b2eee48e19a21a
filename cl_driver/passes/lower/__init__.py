"""Instructions that become simpler ones: calls, images, collectives, sub-groups, rounding modes."""
