"""Where the native shim is, and what its build recorded."""

from __future__ import annotations

import os
import sys

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


_found: list[str] = []


def use_python(path: str) -> None:
    """Takes what C read in the cl_driver.conf beside its library, or found for an installed package, which
    records none (native_shim/src/python/installation.c)."""
    _found[:] = [path]


def python() -> str:
    """A program with llvmlite that the driver's processes run. That which this process contains may be the
    host program's, or where somebody's PATH led to: it serves only a process that trusts its environment, or
    one that such a program runs, which has nothing else."""
    from . import trust  # module_archive.py needs only the folders

    try:
        [path] = _found or configuration().get("python", [""])
    except OSError:
        path = ""
    if trust.may_run(path) or (path and not trust.is_trusted()):
        return path
    return sys.executable


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
