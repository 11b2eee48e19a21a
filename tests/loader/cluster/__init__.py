"""Devices that are workers of a Dask cluster."""
