"""Functions of the builtin library as they are for CPUs with AVX-512, and with a slow divider: errors on
vectors of every length, special values among the arguments. CL_DRIVER_TEST_POINTS: how many for each.
"""

from __future__ import annotations

import os
import zlib

import numpy as np
import pytest

from cl_driver.accuracy.device import source
from cl_driver.accuracy.functions import FUNCTIONS, SECOND, TO_INTEGER, TYPES, arguments
from cl_driver.accuracy.reference import Reference
from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from tests.marks import more
from tests.runtime.kernel_harness import Program, compile_c

FEATURES = frozenset(host_cpu().features)
POINTS = int(os.environ.get("CL_DRIVER_TEST_POINTS", "8000"))
pytestmark = pytest.mark.skipif("avx512vl" not in FEATURES, reason="no AVX-512")

# Those whose code differs there, and what all arguments of a long run stay within.
DOUBLES = {
    "exp": 1.1, "exp2": 0.95, "exp10": 1.1, "log": 0.8, "log2": 0.8, "log10": 0.8, "log1p": 0.95, "pow": 1.1,
    "powr": 1.1, "pown": 1.1, "rootn": 1.1, "rsqrt": 1.5, "cbrt": 0.9, "hypot": 1.3, "erf": 2.0,
    "erfc": 3.5, "tan": 2.5, "tanpi": 2.8, "asin": 1.6, "acos": 1.3, "asinpi": 2.0, "acospi": 1.4,
    "atan": 2.1, "atanpi": 1.6, "atan2": 1.8, "sinh": 0.85, "cosh": 1.6, "tanh": 2.5, "expm1": 1.5,
    "asinh": 1.05, "acosh": 1.05, "atanh": 1.05, "fmod": 0, "remainder": 0, "remquo": 0, "sqrt": 0.5,
    "sinpi": 1.5, "cospi": 1.6, "ldexp": 0,
}  # fmt: skip
FLOATS = {
    "pow": 1.1, "powr": 1.1, "pown": 1.1, "rootn": 1.1, "tanh": 1.6, "exp": 1.1, "log": 1.25, "fmod": 0,
    "remainder": 0, "rsqrt": 1.5, "sinpi": 1.6, "cospi": 1.7, "ldexp": 0,
}  # fmt: skip
FUNCTIONS_OF = [("double", name, limit) for name, limit in DOUBLES.items()]
FUNCTIONS_OF += [("float", name, limit) for name, limit in FLOATS.items()]
WIDTHS = {2: False, 4: False, 8: True, 16: True}  # whether the divider is slow
FEW = ("pow", "log", "tan", "cbrt", "hypot")  # at all widths, the others at 4 and 16
CASES = [
    (pytest.param if width == 16 or name in FEW else more)(width, type_, name, limit)
    for type_, name, limit in FUNCTIONS_OF
    for width in WIDTHS
    if width in (4, 16) or name in FEW
]


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """{type: Reference}"""
    folder = tmp_path_factory.mktemp("references")
    return {name: Reference(TYPES[name], folder) for name in ("float", "double")}


@pytest.mark.parametrize("width, type_name, name, limit", CASES)
def test_errors(references, width, type_name, name, limit):
    type_, judge = TYPES[type_name], references[type_name]
    rng = np.random.default_rng(zlib.crc32(f"{name}{width}".encode()))
    inputs = arguments(name, type_, POINTS, rng)
    count = len(inputs[0]) // 64 * 64
    inputs = [np.ascontiguousarray(array[:count]) for array in inputs]
    out = np.zeros(count, np.int32 if name in TO_INTEGER else type_.float)
    second = np.zeros(count, type_.float if SECOND.get(name) == "T" else np.int32)
    options = CodegenOptions(features=FEATURES, vector_bits=512, slow_division=WIDTHS[width])
    program = Program(compile_c(source(name, type_)), options, width)
    arrays = [*inputs, *[inputs[0]] * (3 - len(inputs))]
    program.run("apply", count, 64, *arrays, out, second)
    errors = judge.errors(name, inputs, out, second)
    at = int(errors.argmax())
    assert limit <= FUNCTIONS[name].bound(type_)
    assert errors[at] <= limit, ([array[at] for array in inputs], out[at])
