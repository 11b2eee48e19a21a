"""The builtin library: OpenCL C sources, and where the SPIR-V module made of them lies. See README.md."""

from __future__ import annotations

import os

from ..jit import packed

_STEM = "builtins"
_PACKAGE = os.path.dirname(os.path.dirname(__file__))

# Where the build leaves the module: inside the package, or in the build folder of the working tree.
_PLACES = (
    os.path.join(_PACKAGE, "_native", f"{_STEM}.spv"),
    os.path.join(os.path.dirname(_PACKAGE), "build", "lib", f"{_STEM}.spv"),
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
    """The library's SPIR-V module. FileNotFoundError when the package was not built."""
    return _read(".spv")


def load_places() -> bytes:
    """Where things are in the module (reader.py); b"" if nobody has written it down."""
    try:
        return _read(PLACES)
    except OSError:
        return b""


def _read(ending: str) -> bytes:
    """One of the library's two files. A wheel has them with its modules."""
    found = packed.read(f"_native/{_STEM}{ending}")
    if found is not None:
        return found
    with open(os.path.splitext(library_path())[0] + ending, "rb") as file:
        return file.read()
