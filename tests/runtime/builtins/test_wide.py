"""Functions of the builtin library as they are computed for 16 work-items at a time, in single precision:
errors over all floats, every CL_DRIVER_TEST_STRIDE-th one of them (an odd number; 1: all, minutes each).

Reference: numpy in double precision, whose error is below 1e-8 of a unit in the last place of a float.
"""

import os

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from tests.runtime.codegen.ops.test_reciprocals import errors
from tests.runtime.kernel_harness import Program, compile_c

STRIDE = int(os.environ.get("CL_DRIVER_TEST_STRIDE", "10007"))
CHUNK = 1 << 22
LIMITS = [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x477FFFFF, 0x47800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000]

FEATURES = {"fma": frozenset({"fma", "avx2", "f16c"}), "avx512": frozenset(host_cpu().features)}

# Function: the exact result, and the largest error in units of the last place that all floats have.
FUNCTIONS = {
    "exp": (np.exp, 1.1),
    "exp2": (np.exp2, 0.95),
    "exp10": (lambda x: np.power(10.0, x), 1.1),
    "log": (np.log, 1.25),
    "log2": (np.log2, 1.3),
    "log10": (np.log10, 1.25),
    "sin": (np.sin, 2),
    "cos": (np.cos, 2),
}
# As AVX-512 computes them; without, they have ranges (tests/pure/builtins/test_accuracy.py).
NATIVE_FUNCTIONS = {
    "native_exp": (np.exp, 90),
    "native_exp2": (np.exp2, 2),
    "native_exp10": (lambda x: np.power(10.0, x), 90),
    "native_log": (np.log, 4.6),
    "native_log2": (np.log2, 4.6),
    "native_log10": (np.log10, 5.4),
}
# The specification allows 8192.
HALF_FUNCTIONS = {
    "half_exp": (np.exp, 110),
    "half_exp2": (np.exp2, 50),
    "half_exp10": (lambda x: np.power(10.0, x), 120),
    "half_log": (np.log, 130),
    "half_log2": (np.log2, 130),
    "half_log10": (np.log10, 130),
}
SOURCE = """
kernel void f(global float *to, global const float *from) {
    size_t i = get_global_id(0);
    to[i] = %s(from[i]);
}
kernel void both(global float *to, global float *cosines, global const float *from) {
    size_t i = get_global_id(0);
    float x = from[i];
    cosines[i] = cos(x);
    to[i] = sin(x);
}
kernel void uniform(global float *to, float x, float2 y) {
    to[get_global_id(0)] = exp(x) + log(x) + (float)get_local_id(0);
    if (get_global_id(0) == 0)
        vstore2(exp2(y) + log2(y), 48, to);
}
"""

POWERS = """
kernel void f(global float *to, global float *wanted, global const float *x, global const float *y) {
    size_t i = get_global_id(0);
    to[i] = half_powr(x[i], y[i]);
    wanted[i] = powr(x[i], y[i]);
}
"""


def chunks():
    """All the arguments, a few million at a time."""
    yield np.array(LIMITS + [bits | 1 << 31 for bits in LIMITS], np.uint32).view(np.float32)
    for first in range(0, 1 << 32, CHUNK * STRIDE):
        bits = np.arange(first, min(first + CHUNK * STRIDE, 1 << 32), STRIDE, np.uint64)
        yield bits.astype(np.uint32).view(np.float32)


def options(features: str) -> CodegenOptions:
    needed = FEATURES["fma"] if features == "fma" else {"avx512vl"}
    if not needed <= set(host_cpu().features):
        pytest.skip(f"no {features}")
    return CodegenOptions(features=FEATURES[features], vector_bits=512 if features == "avx512" else 256)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors(name, features):
    compare(name, features, *FUNCTIONS[name], features == "avx512" and name not in ("sin", "cos"))


@pytest.mark.parametrize("name", NATIVE_FUNCTIONS)
def test_errors_of_native_functions(name):
    compare(name, "avx512", *NATIVE_FUNCTIONS[name], True)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("name", HALF_FUNCTIONS)
def test_errors_of_half_functions(name, features):
    compare(name, features, *HALF_FUNCTIONS[name], features == "avx512")


@pytest.mark.parametrize("features", FEATURES)
def test_half_powr(features):
    """It is what powr is for special values, all their pairs, and near it for others."""
    rng = np.random.default_rng(5)
    special = np.array([0, 1e-45, 1, 0.3, 2, 7.5, 3e38, np.inf], np.float32)
    special = np.concatenate([special, -special, [np.nan]])
    x, y = (grid.ravel() for grid in np.meshgrid(special, special))
    x = np.concatenate([x, 10 ** rng.uniform(-38, 38, 5000), rng.uniform(0.9, 1.1, 5023)]).astype(np.float32)
    y = np.concatenate([y, rng.uniform(-1, 1, 5000), rng.uniform(-800, 800, 5023)]).astype(np.float32)
    to, wanted = np.zeros_like(x), np.zeros_like(x)
    program = Program(compile_c(POWERS), options(features), 16)
    program.run("f", len(x), 16, to, wanted, x, y)
    assert np.array_equal(np.isnan(to), np.isnan(wanted)) and np.isnan(to).sum() > 100
    numbers = ~np.isnan(to)
    assert np.array_equal(np.isinf(to[numbers]), np.isinf(wanted[numbers]))
    assert np.array_equal(to == 0, wanted == 0)
    with np.errstate(all="ignore"):
        exact = np.power(np.abs(x.astype(np.float64)), y)
        # what powr makes NaN, and -0, is something else for numpy
        assert errors(to, np.where(numbers, exact, np.nan)).max() <= 300


def test_native_powr():
    source = SOURCE.replace("%s(from[i])", "native_powr(from[i], 1.7f)")
    program = Program(compile_c(source), options("avx512"), 16)
    x = np.concatenate([np.linspace(0.01, 100, 1000), [0, np.inf, np.nan, -1]]).astype(np.float32)
    to = np.zeros_like(x)
    program.run("f", len(x), 64, to, x)
    assert np.allclose(to[:1000], x[:1000].astype(np.float64) ** np.float32(1.7), rtol=2e-6, atol=0)
    assert to[1000] == 0 and to[1001] == np.inf and np.isnan(to[1002:]).all()


def compare(name, features, exact, bound, scaled):
    """Fails for errors above the bound, or unless the CPU's instructions for exponents are taken as said."""
    program = Program(compile_c(SOURCE % name), options(features), 16)
    assert scaled == ("getexp" in program.code("f").text or "scalef" in program.code("f").text)
    worst = 0, None
    for x in chunks():
        to = np.zeros_like(x)
        program.run("f", len(x), 64, to, x)
        with np.errstate(all="ignore"):
            found = errors(to, exact(x.astype(np.float64)))
        at = int(np.argmax(found))
        worst = max(worst, (float(found[at]), float(x[at])), key=lambda pair: pair[0])
    print(name, features, worst)
    assert worst[0] <= bound, worst


@pytest.mark.parametrize("features", FEATURES)
def test_sine_and_cosine_of_one_number(features):
    """They are computed together: less by half of pi, for which no more is rounded off than alone."""
    program = Program(compile_c(SOURCE % "sin"), options(features), 16)
    x = np.concatenate([np.linspace(-1000, 1000, 4000), [1e10, -np.inf, np.nan, 0.0, -0.0]])
    x = x.astype(np.float32)
    sines, cosines = np.zeros_like(x), np.zeros_like(x)
    program.run("both", len(x), 64, sines, cosines, x)
    with np.errstate(invalid="ignore"):
        assert errors(sines, np.sin(x.astype(np.float64))).max() <= 1.6
        assert errors(cosines, np.cos(x.astype(np.float64))).max() <= 1.6
    assert np.array_equal(np.signbit(sines[-2:]), [False, True])
    assert program.code("both").text.count("@llvm.fma") < 1.8 * program.code("f").text.count("@llvm.fma")


@pytest.mark.parametrize("width", [2, 4, 8, 16, 32])
def test_numbers_that_all_work_items_share(width):
    program = Program(compile_c(SOURCE % "exp"), options("avx512"), width)
    to, y = np.zeros(128, np.float32), np.array([3.5, 0.0], np.float32)
    program.run("uniform", 96, 32, to, np.float32(2), y.tobytes())
    assert np.allclose(to[1:32], np.exp(2) + np.log(2) + np.arange(1, 32), rtol=1e-6)
    assert np.allclose(to[96], np.exp2(3.5) + np.log2(3.5), rtol=1e-6) and to[97] == -np.inf


@pytest.mark.parametrize("width", [4, 8, 32])
def test_other_widths(width):
    for name in ("exp", "log"):
        program = Program(compile_c(SOURCE % name), options("avx512"), width)
        x = np.linspace(0.01, 20, 1000, dtype=np.float32)
        to = np.zeros_like(x)
        program.run("f", len(x), 64, to, x)
        assert errors(to, FUNCTIONS[name][0](x.astype(np.float64))).max() <= 1.1
