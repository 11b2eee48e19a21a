"""Where the native shim is, and what its build recorded."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def directory() -> Path:
    """The folder of libcl_driver.so: the installed package's, or a working tree's build/lib."""
    installed = PACKAGE / "_native"
    return installed if installed.is_dir() else PACKAGE.parent / "build" / "lib"


def library() -> Path:
    """libcl_driver.so, which may not be there."""
    return directory() / "libcl_driver.so"


def configuration() -> dict[str, list[str]]:
    """cl_driver.conf: the values of every key, paths made absolute. OSError if it cannot be read."""
    values: dict[str, list[str]] = {}
    for line in (directory() / "cl_driver.conf").read_text().splitlines():
        key, found, value = line.partition("=")
        if found:
            if key in ("libpython", "stdlib", "path") and value:
                value = os.path.join(directory(), value)
            values.setdefault(key, []).append(value)
    return values
