"""Passes on one work-item's code: simplification, variables to values, common expressions."""
