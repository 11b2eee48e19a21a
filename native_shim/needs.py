"""What a build needs of the system: a line for each thing that is not there, with what gets it."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator

# What a C file must be able to include, and the Debian package that has it.
_HEADERS = (
    ("stdio.h", "the headers of the C library", "libc6-dev"),
    ("CL/cl_icd.h", "OpenCL's headers", "opencl-c-headers"),
)


def _includes(compiler: list[str], header: str) -> bool:
    command = [*compiler, *shlex.split(os.environ.get("CFLAGS", "")), "-E", "-x", "c", "-"]
    text = f"#include <{header}>\n"
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False).returncode == 0


def missing() -> Iterator[str]:
    """The lines."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]):
        named = os.environ.get("CC")
        yield f"needs {named}, which CC names" if named else "needs gcc: apt install gcc"
    else:
        for header, what, package in _HEADERS:
            if not _includes(compiler, header):
                yield f"needs {what} ({header}): apt install {package}"
    if not shutil.which("nm"):
        yield "needs nm: apt install binutils"
    try:
        importlib.import_module("cffi")
    except ImportError:
        yield "needs cffi: pip install cffi"
    from cl_driver.frontend import find_clang

    try:
        find_clang.find(os.environ.get("CL_DRIVER_CLANG", ""))
    except find_clang.ClangError:
        yield f"needs clang {find_clang.OLDEST} or newer: apt install clang-22"
