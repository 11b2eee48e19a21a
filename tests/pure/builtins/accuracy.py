"""The builtin library compiled for this machine, as host code, and the errors of what its functions compute.

What they do on the device `cl-driver accuracy` measures (cl_driver/accuracy).
"""

from __future__ import annotations

import ctypes
import pathlib
import subprocess

import numpy as np

from cl_driver.accuracy import reference
from cl_driver.accuracy.functions import SECOND, TO_INTEGER, TYPES, arguments
from cl_driver.builtins.build import SOURCES, find_clang

HOST = pathlib.Path(__file__).with_name("builtins_host.c")
TYPE = {32: TYPES["float"], 64: TYPES["double"]}


def compile_library(folder: pathlib.Path, bits: int) -> ctypes.CDLL:
    """The library's sources as host code, with functions that call them for arrays."""
    clang = find_clang()
    library, host = folder / "library.o", folder / f"host{bits}.so"
    options = ["-O2", "-march=native", "-fPIC"]
    opencl = ["-x", "cl", "-cl-std=CL3.0", "-Xclang", "-cl-ext=+all", "-c", str(SOURCES / "library.cl")]
    subprocess.run([clang, *options, *opencl, "-o", str(library)], check=True)
    strict = ["-ffp-contract=off", "-Wall", "-Wextra", "-Werror", f"-I{reference.SOURCE.parent}"]
    files = ["-shared", str(HOST), str(library), "-o", str(host), "-lm"]
    defines = reference.definitions(TYPE[bits])
    subprocess.run([clang, *options, *strict, *defines, *files], check=True)
    return ctypes.CDLL(str(host))


def results(library: ctypes.CDLL, name: str, bits: int, inputs: list[np.ndarray]):
    """(results, second results) of the host code."""
    float_, count = TYPE[bits].float, len(inputs[0])
    out = np.zeros(count, np.int32 if name in TO_INTEGER else float_)
    second = np.zeros(count, float_ if SECOND.get(name) == "T" else np.int32)
    arrays = [np.ascontiguousarray(array) for array in inputs]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays] + [None] * (3 - len(arrays))
    pointers += [array.ctypes.data_as(ctypes.c_void_p) for array in (out, second)]
    getattr(library, f"results_{name}_f{bits}")(*pointers, ctypes.c_long(count))
    return out, second


def measure(
    library: ctypes.CDLL, judge: reference.Reference, name: str, points: int, rng: np.random.Generator
):
    """(largest error in ulp, the arguments that gave it)"""
    inputs = arguments(name, judge.type, points, rng)
    errors = judge.errors(name, inputs, *results(library, name, judge.type.bits, inputs))
    at = int(errors.argmax())
    return errors[at], [array[at] for array in inputs]
