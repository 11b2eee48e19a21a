"""Reciprocals of roots from NEON's estimates: errors, special cases, when they are not taken.

The code is looked at everywhere, and executed on AArch64, native or emulated (CL_DRIVER_TEST_CPU=aarch64).
"""

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from tests.runtime.codegen.ops.test_reciprocals import errors, run, source
from tests.runtime.emulation import IS_ARM, TARGET
from tests.runtime.kernel_harness import Program

OPTIONS = CodegenOptions(
    features=frozenset(TARGET.features), vector_bits=128, aarch64=True, slow_division=True
)
ESTIMATE = "@llvm.aarch64.neon.frsqrte"


@pytest.mark.parametrize("expression", ["rsqrt(a)", "native_rsqrt(a)", "half_rsqrt(a)"])
@pytest.mark.parametrize("width", [4, 8, 16])
def test_errors(expression, width):
    program = Program(source(expression), OPTIONS, width)
    text = program.code("f").text
    assert text.count(f"call <4 x float> {ESTIMATE}") % (width // 4) == 0 and ESTIMATE in text
    assert "fdiv" not in text and "llvm.sqrt" not in text
    if not IS_ARM:
        pytest.skip("no AArch64 to execute it")
    to, a, _ = run(program)
    with np.errstate(all="ignore"):
        found = errors(to, 1 / np.sqrt(a.astype(np.float64)))
    worst = int(np.argmax(found))
    assert found[worst] < 1, (found[worst], a[worst], to[worst])


@pytest.mark.parametrize("expression, width", [("rsqrt(a)", 1), ("(float)rsqrt((double)a)", 4)])
def test_not_taken(expression, width):
    """One float does not fill a register, and NEON's estimates of doubles would take three steps."""
    assert ESTIMATE not in Program(source(expression), OPTIONS, width).code("f").text


def test_not_taken_where_the_divider_is_fast():
    options = CodegenOptions(features=OPTIONS.features, vector_bits=128, aarch64=True)
    assert ESTIMATE not in Program(source("rsqrt(a)"), options, 4).code("f").text


def test_no_other_estimates():
    """What AVX-512 has for reciprocals, quotients and roots."""
    for expression in ("1.0f / b", "sqrt(a)", "native_sqrt(a)", "half_recip(b)", "half_divide(a, b)"):
        text = Program(source(expression), OPTIONS, 4).code("f").text
        assert "x86" not in text and ("fdiv" in text or "llvm.sqrt" in text)


def test_taken_under_fast_math():
    """LLVM's own code for AArch64 divides, whatever a program allows."""
    options = CodegenOptions(
        features=OPTIONS.features, vector_bits=128, aarch64=True, slow_division=True, fast_relaxed_math=True
    )
    assert ESTIMATE in Program(source("rsqrt(a)", "-cl-fast-relaxed-math"), options, 4).code("f").text
