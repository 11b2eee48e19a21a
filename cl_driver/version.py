"""The driver's version, in one place: pyproject.toml, the version strings and the compile-cache key."""

VERSION = "0.1.0"
