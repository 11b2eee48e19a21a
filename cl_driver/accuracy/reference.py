"""Errors of results against the C library's functions of wider types, compiled when they are first asked for.

Those of long double judge float and half. Those of _Float128 judge double, where there are any: glibc has
them, and gcc knows the type; the 64 bits of long double on x86 show errors of doubles to about 0.001 ulp.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .functions import Type

if TYPE_CHECKING:
    from .functions import Array

SOURCE = Path(__file__).with_name("reference.c")
_SHAPES = {
    16: ("_Float16", 11, -14, "uint16_t"),
    32: ("float", 24, -126, "uint32_t"),
    64: ("double", 53, -1022, "uint64_t"),
}  # fmt: skip
_COMPILERS = ("cc", "gcc", "clang-22", "clang-21", "clang-20", "clang")


class NoReference(OSError):
    """There is no C compiler, or it cannot compile the reference."""


def definitions(type_: Type) -> list[str]:
    """The macros that reference.c takes."""
    name, mantissa, lowest, bits = _SHAPES[type_.bits]
    values = {"T": name, "SUFFIX": type_.suffix, "MANTISSA": mantissa, "LOWEST": lowest, "BITS": bits}
    return [f"-D{key}={value}" for key, value in values.items()]


def compile_reference(type_: Type, folder: Path) -> Path:
    """A shared library of reference.c for a type. NoReference says why there is none."""
    found = [path for name in (os.environ.get("CC"), *_COMPILERS) if name and (path := shutil.which(name))]
    if not found:
        raise NoReference("there is no C compiler to make the reference with. Debian: apt install gcc")
    output, said = folder / f"reference_{type_.suffix}.so", ""
    options = ["-O2", "-ffp-contract=off", "-fPIC", "-shared", *definitions(type_)]
    wider = [["-DQUAD"], []] if type_.bits == 64 else [[]]
    for more, compiler in itertools.product(wider, found):
        command = [compiler, *options, *more, str(SOURCE), "-o", str(output), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return output
        said = f"{compiler}: {done.stderr.strip()[:400]}"
    raise NoReference(f"the reference of {type_.name} cannot be compiled: {said}")


class Reference:
    """The functions of one type. mantissa: the bits of that of the wider type."""

    def __init__(self, type_: Type, folder: Path) -> None:
        """folder: for the library. Raises NoReference."""
        self.type = type_
        self._library = ctypes.CDLL(str(compile_reference(type_, folder)))
        self._library.cycles_per_nanosecond.restype = ctypes.c_double
        self.mantissa: int = self._library.reference_mantissa()

    def cycles_per_nanosecond(self) -> float:
        """The clock of the core that this runs on, now."""
        found: float = self._library.cycles_per_nanosecond()
        return found

    def errors(self, name: str, arguments: list[Array], results: Array, second: Array | None = None) -> Array:
        """Of each result, in units of the last place; infinity where a special or the second result is wrong.

        second: what was returned through the function's pointer, if it has one.
        """
        found = np.empty(len(results))
        given = [*arguments, *[None] * (3 - len(arguments)), results, second]
        arrays = [None if a is None else np.ascontiguousarray(a) for a in given]
        pointers = [None if a is None else a.ctypes.data_as(ctypes.c_void_p) for a in arrays]
        function = getattr(self._library, f"errors_{name}_{self.type.suffix}")
        function(*pointers, ctypes.c_long(len(results)), found.ctypes.data_as(ctypes.c_void_p))
        return found
