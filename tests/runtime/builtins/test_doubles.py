"""Functions of doubles for CPUs without AVX-512: the same results at every width, special values among the
arguments, and no quotients where a table or a polynomial does.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from cl_driver.accuracy.device import source
from cl_driver.accuracy.functions import TYPES, arguments
from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from cl_driver.device.target import make_target
from tests.runtime.kernel_harness import Program, compile_c

OPTIONS = CodegenOptions(features=frozenset(make_target(host_cpu(), "x86-64-v3").features))
FUNCTIONS = "sin cos tan asin acos atan erf erfc pow powr pown rootn".split()
FUNCTIONS += "exp exp2 exp10 expm1 sinh cosh tanh tanpi".split()
COUNT = 4096


def _run(name: str, width: int, inputs: list[np.ndarray]) -> np.ndarray:
    out, second = np.zeros(COUNT), np.zeros(COUNT, np.int32)
    program = Program(compile_c(source(name, TYPES["double"])), OPTIONS, width)
    program.run("apply", COUNT, 64, *inputs, *[inputs[0]] * (3 - len(inputs)), out, second)
    return out


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_do_not_depend_on_the_width(name):
    """Branches for the few lanes that need them leave the results of the others as they are."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    inputs = arguments(name, TYPES["double"], 4 * COUNT, rng)
    order = rng.permutation(len(inputs[0]))[:COUNT]
    inputs = [np.ascontiguousarray(array[order]) for array in inputs]
    want = _run(name, 1, inputs).view(np.uint64)
    for width in (2, 4, 8):
        got = _run(name, width, inputs)
        differs = (got.view(np.uint64) != want) & ~(np.isnan(got) & np.isnan(want.view(float)))
        assert not differs.any(), [array[differs][0] for array in inputs]


@pytest.mark.parametrize("name", ["sin", "cos", "erf", "exp", "expm1", "pow", "powr", "pown"])
def test_no_quotients(name):
    """One costs as much as a dozen of other operations."""
    has_two = name.startswith("pow")
    second = ", global const int *b" if name == "pown" else ", global const double *b" if has_two else ""
    call = f"{name}(a[i], b[i])" if has_two else f"{name}(a[i])"
    kernel = (
        f"kernel void k(global double *out, global const double *a{second}) {{"
        f" size_t i = get_global_id(0); out[i] = {call}; }}"
    )
    assert "fdiv" not in Program(compile_c(kernel), OPTIONS, 4).code("k").text
