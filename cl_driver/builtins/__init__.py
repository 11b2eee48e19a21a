"""The builtin library: OpenCL C sources, and where the SPIR-V module made of them lies. See README.md."""

from __future__ import annotations

import pathlib

_PACKAGE = pathlib.Path(__file__).parent.parent

# Where the build leaves the module: inside the package, or in the build folder of the working tree.
_PLACES = (_PACKAGE / "_native" / "builtins.spv", _PACKAGE.parent / "build" / "lib" / "builtins.spv")


def library_path() -> pathlib.Path:
    """The compiled library. Raises FileNotFoundError when the package was not built."""
    for path in _PLACES:
        if path.is_file():
            return path
    raise FileNotFoundError(f"the builtin library is not built: neither {_PLACES[0]} nor {_PLACES[1]} exists")


def load() -> bytes:
    """The library's SPIR-V module."""
    return library_path().read_bytes()
