"""Workers of a Dask cluster as devices of the platform (README.md)."""
