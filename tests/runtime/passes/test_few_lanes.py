"""Loops that few lanes go through one by one (passes/vectorize/few_lanes.py) do what the interpreter does."""

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import host_target
from cl_driver.interp.run import run as interpret
from tests.marks import few
from tests.pure.passes.loops.test_few_lanes import APART, HEAD, SENT, TAIL
from tests.runtime.kernel_harness import Program, compile_c


@pytest.mark.parametrize("cpu", few(["", "x86-64-v3", "x86-64-v2"], 1))
@pytest.mark.parametrize("name", [*SENT, *APART])
def test_branches(name, cpu):
    data = compile_c(HEAD + (SENT | APART)[name] + TAIL)
    options = CodegenOptions(features=frozenset(host_target(cpu).features))
    random, size, local = np.random.default_rng(3), (34, 6, 1), (17, 3, 1)
    floats = random.integers(0, 99, 64).astype(np.float32)  # whose sums are exact, in any way of rounding
    for most in (1, 8):  # so that few lanes have anything to do, or many
        given = random.integers(0, 16, 400).astype(np.int32)
        given[random.integers(0, 10, 400) >= most] = 0
        want = np.zeros(size[0] * size[1], np.int32)
        interpret(Program(data).module, "k", [want, given, 8, floats], size, local)
        for width, parts, axis in ((4, 1, 0), (8, 4, 1), (16, 2, 0), (16, 3, 1)):
            out = np.zeros_like(want)
            program = Program(data, options, width, parts=parts, part_axis=axis, few_lanes=True)
            program.run("k", size, local, out, given.copy(), np.int32(8), floats)
            np.testing.assert_array_equal(out, want)


def test_what_other_lanes_would_read():
    """Only what lanes that have something to do are told to is read: all else is out of reach."""
    body = "if (a < 40) for (int j = 0; j < n; j++) s += in[70 + (a << 22) + j * b];"
    given = np.full(300, 100, np.int32)
    given[[5, 13, 25]] = 0
    given[70] = 6
    program = Program(compile_c(HEAD + body + TAIL), width=8, few_lanes=True)
    assert "ctpop" in program.code("k").text
    out = np.zeros(64, np.int32)
    program.run("k", (64, 1, 1), (64, 1, 1), out, given, np.int32(1), np.zeros(64, np.float32))
    np.testing.assert_array_equal(np.flatnonzero(out == 6), [5, 13, 25])
    assert np.count_nonzero(out) == 3
