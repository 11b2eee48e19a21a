"""Profiles: CL_DRIVER_PROFILE."""
