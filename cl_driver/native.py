"""Where the native shim is, and what its build recorded."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # pathlib takes longer to import than all of this
if TYPE_CHECKING:
    from pathlib import Path

_PACKAGE = os.path.dirname(os.path.realpath(__file__))


def folder() -> str:
    """The folder of libcl_driver.so: the installed package's, or a working tree's build/lib."""
    installed = os.path.join(_PACKAGE, "_native")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_PACKAGE), "build", "lib")


def directory() -> Path:
    """folder() as a path."""
    from pathlib import Path

    return Path(folder())


def library() -> Path:
    """libcl_driver.so, which may not be there."""
    return directory() / "libcl_driver.so"


def configuration() -> dict[str, list[str]]:
    """cl_driver.conf: the values of every key, paths made absolute. OSError if it cannot be read."""
    values: dict[str, list[str]] = {}
    here = folder()
    with open(os.path.join(here, "cl_driver.conf"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        key, found, value = line.partition("=")
        if found:
            if key in ("libpython", "stdlib", "path") and value:
                value = os.path.join(here, value)
            values.setdefault(key, []).append(value)
    return values


_packages: list[str] = []


def packages() -> list[str]:
    """Where the Python packages are that belong to this installation: beside this one, and where the build
    found them."""
    if not _packages:
        try:
            recorded = configuration().get("path", [])
        except OSError:
            recorded = []
        _packages[:] = dict.fromkeys((os.path.dirname(_PACKAGE), *map(os.path.normpath, recorded)))
    return _packages
