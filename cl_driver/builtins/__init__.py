"""The builtin library: OpenCL C sources, and where the SPIR-V module made of them lies. See README.md."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.dirname(__file__))

# Where the build leaves the module: inside the package, or in the build folder of the working tree.
_PLACES = (
    os.path.join(_PACKAGE, "_native", "builtins.spv"),
    os.path.join(os.path.dirname(_PACKAGE), "build", "lib", "builtins.spv"),
)


# The ending of the file with places in the module, which is beside it.
PLACES = ".places"


def library_path() -> str:
    """The compiled library. Raises FileNotFoundError when the package was not built."""
    for path in _PLACES:
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"the builtin library is not built: neither {_PLACES[0]} nor {_PLACES[1]} exists")


def load() -> bytes:
    """The library's SPIR-V module."""
    with open(library_path(), "rb") as file:
        return file.read()


def load_places() -> bytes:
    """Where things are in the module (reader.py); b"" if nobody has written it down."""
    try:
        with open(os.path.splitext(library_path())[0] + PLACES, "rb") as file:
            return file.read()
    except OSError:
        return b""
