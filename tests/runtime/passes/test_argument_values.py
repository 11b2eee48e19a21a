"""Code for arguments with known values (passes/lower/argument_values.py) does what the interpreter does
without, at several widths."""

import os

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import host_target
from cl_driver.interp.run import run as interpret
from tests.pure.passes.arguments.test_argument_values import SOURCE, scalars
from tests.runtime.kernel_harness import Program, compile_c

# This CPU, or a lesser one for a whole run.
OPTIONS = CodegenOptions(features=frozenset(host_target(os.environ.get("CL_DRIVER_TEST_CPU", "")).features))

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
CASES = [
    ("radius", "i4", scalars(("i4", 2), ("i4", 21))),
    ("types", "i8", scalars(*zip(INTEGERS, (-3, 200, -999, 60000, -5, 7, -1, 9), strict=True))),
    ("types", "i8", scalars(*zip(INTEGERS, (64, 128, 4096, 1024, 31, 1 << 31, 8, 0), strict=True))),
    ("mode", "i4", scalars(("i4", 1), ("i4", 6))),
    ("mode", "i4", scalars(("i4", 3), ("i4", 40))),
]


@pytest.mark.parametrize("width, parts, axis", [(1, 1, 0), (4, 1, 0), (8, 2, 0), (16, 1, 0), (16, 2, 1)])
def test_values(width, parts, axis):
    data = compile_c(SOURCE)
    image = np.arange(21 * 4, dtype=np.int32) * 7919 % 1000
    for name, kind, values in CASES:
        buffers = [image] if name == "radius" else []
        known = tuple((k + 1 + len(buffers), value.tobytes()) for k, value in enumerate(values))
        program = Program(data, OPTIONS, width, parts=parts, part_axis=axis, argument_values=known)
        want, out = np.zeros(21 * 4, kind), np.zeros(21 * 4, kind)
        interpret(program.module, name, [want, *buffers, *values], (21, 4, 1), (7, 2, 1))
        program.run(name, (21, 4), (7, 2), out, *buffers, *values)
        np.testing.assert_array_equal(out, want, f"{name} {values}")
