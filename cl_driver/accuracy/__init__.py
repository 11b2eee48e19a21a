"""Measures the errors and times of built-in functions, on the device itself: see README.md."""
