"""Which compiler this is: part of every cache key, so that no entry outlives the code that made it."""

from __future__ import annotations

import os

from cl_driver.jit.cache import digest
from cl_driver.version import VERSION

# Everything between a program's source and its object code. Their files are looked at, not read.
_FOLDERS = ("builtins", "codegen", "frontend", "jit", "passes", "spirv")
_found: list[str] = []


def compiler() -> str:
    """The driver's version, and names, sizes and times of the compiler's own files."""
    if not _found:
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        lines = [VERSION]
        for folder in (os.path.join(package, name) for name in _FOLDERS):
            lines += _files(folder)
        lines += _file(os.path.join(package, "pipeline.py"))
        for folder in (
            os.path.join(package, "_native"),
            os.path.join(os.path.dirname(package), "build", "lib"),
        ):
            lines += _file(os.path.join(folder, "builtins.spv"))  # builtins.library_path(), without pathlib
        _found.append(digest("\n".join(lines).encode("utf-8", "surrogateescape")))
    return _found[0]


def _files(folder: str) -> list[str]:
    lines = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        lines += _files(entry.path)
                else:
                    lines += _file(entry.path)
    except OSError:
        pass  # a folder that is not there is the same for every process of this installation
    return lines


def _file(path: str) -> list[str]:
    try:
        status = os.stat(path)
    except OSError:
        return []
    return [f"{path} {status.st_size} {status.st_mtime_ns}"]
