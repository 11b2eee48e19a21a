"""Reciprocals and roots of floats from the CPU's estimates: errors, special cases, when they are not taken.

CL_DRIVER_TEST_SAMPLES: how many random arguments besides the special ones. All 2^32 arguments of 1 / x, sqrt
and rsqrt were tried once: the bounds below are what that found.
"""

import os

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from tests.runtime.emulation import IS_ARM
from tests.runtime.kernel_harness import Program, compile_c

pytestmark = pytest.mark.skipif(IS_ARM or "avx512vl" not in host_cpu().features, reason="no AVX-512")

SAMPLES = int(os.environ.get("CL_DRIVER_TEST_SAMPLES", "20000"))
OPTIONS = CodegenOptions(features=frozenset(host_cpu().features), vector_bits=512, slow_division=True)
SPECIAL = np.array(
    [0, 1, 2, 3, 0x1FFFFF, 0x200000, 0x200001, 0x400000, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x0D800000,
     0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x40000000, 0x7E7FFFFF, 0x7E800000, 0x7F000000, 0x7F7FFFFF,
     0x7F800000, 0x7FC00000],
    np.uint32,
)  # fmt: skip
SPECIAL = np.concatenate([SPECIAL, SPECIAL | np.uint32(1 << 31)])

# Expression: the exact result, and the largest error in units of the last place.
CASES = {
    "1.0f / b": (lambda a, b: 1 / b, 0.53),
    "sqrt(a)": (lambda a, b: np.sqrt(a), 0.6),
    "rsqrt(a)": (lambda a, b: 1 / np.sqrt(a), 1.05),
    "native_recip(b)": (lambda a, b: 1 / b, 0.53),
    "native_sqrt(a)": (lambda a, b: np.sqrt(a), 0.6),
    "native_rsqrt(a)": (lambda a, b: 1 / np.sqrt(a), 1.05),
    "half_divide(a, b)": (lambda a, b: a / b, 8192),
    "half_recip(b)": (lambda a, b: 1 / b, 8192),
    "half_sqrt(a)": (lambda a, b: np.sqrt(a), 8192),
    "half_rsqrt(a)": (lambda a, b: 1 / np.sqrt(a), 8192),
}


def arguments() -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special values, random bits, and pairs of about the same size."""
    random = np.random.default_rng(1)
    a, b = random.integers(0, 1 << 32, (2, SAMPLES), np.uint32)
    near = (b & 0x807FFFFF) + (np.clip((a >> 23 & 0xFF) + random.integers(-30, 31, SAMPLES), 0, 254) << 23)
    pairs = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    a, b = np.concatenate([pairs[0], a, a]), np.concatenate([pairs[1], b, near.astype(np.uint32)])
    return a.view(np.float32), b.view(np.float32)


def errors(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """In units of the last place; infinity for a special value that is not the expected one."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    _, exponent = np.frexp(np.where(np.isfinite(exact), exact, 1))
    unit = np.ldexp(1.0, np.maximum(exponent - 24, -149))
    difference = np.abs(found.astype(np.float64) - exact) / unit
    same = (found == rounded) & (np.signbit(found) == np.signbit(rounded))
    same |= np.isnan(found) & np.isnan(rounded)
    plain = np.isfinite(rounded) & np.isfinite(found) & (rounded != 0)
    return np.where(same & ~plain, 0, np.where(plain, difference, np.inf))


def source(expression: str, options: str = "") -> bytes:
    return compile_c(
        "kernel void f(global float *to, global const float *from, global const float *by) {"
        f"size_t i = get_global_id(0); float a = from[i], b = by[i]; to[i] = {expression}; }}",
        f"-cl-std=CL3.0 {options}",
    )


def run(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = arguments()
    to = np.zeros_like(a)
    program.run("f", len(a), 64, to, a, b)
    return to, a, b


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("expression", CASES)
def test_errors(expression, width):
    exact, bound = CASES[expression]
    program = Program(source(expression), OPTIONS, width)
    assert "14.ps.512" in program.code("f").text
    to, a, b = run(program)
    with np.errstate(all="ignore"):
        wanted = exact(a.astype(np.float64), b.astype(np.float64))
        found = errors(to, wanted)
    if bound == 8192:  # such an error may decide what overflows
        found[np.abs(np.abs(wanted) / 2.0**128 - 1) < 2**-11] = 0
    worst = int(np.argmax(found))
    assert found[worst] <= bound, (found[worst], a[worst], b[worst], to[worst])


def test_reciprocal_roots_where_the_divider_is_fast():
    """Of estimates on any CPU with AVX-512, also where quotients and roots must be correctly rounded."""
    options = CodegenOptions(features=OPTIONS.features, vector_bits=512, exact_division=True)
    for expression in ("rsqrt(a)", "native_rsqrt(a)"):
        exact, bound = CASES[expression]
        program = Program(source(expression), options, 16)
        assert "rsqrt14.ps.512" in program.code("f").text
        to, a, b = run(program)
        with np.errstate(all="ignore"):
            assert errors(to, exact(a.astype(np.float64), b)).max() <= bound
    narrow = Program(source("rsqrt(a)"), options, 8).code("f").text
    assert "rsqrt14" not in narrow and "fdiv" in narrow


def test_native_divide():
    """By way of 1/b: where b and it are normal numbers."""
    program = Program(source("native_divide(a, b)"), OPTIONS, 16)
    to, a, b = run(program)
    with np.errstate(all="ignore"):
        wanted = a.astype(np.float64) / b.astype(np.float64)
        found = errors(to, wanted)
    plain = (np.abs(b) >= 2.0**-126) & (np.abs(b) <= 2.0**126) | np.isinf(b) | np.isnan(b) | (b == 0)
    plain &= ~(np.abs(np.abs(wanted) / 2.0**128 - 1) < 2**-22)
    assert found[plain].max() <= 1.6
    assert "fdiv" not in program.code("f").text


def test_what_a_float_can_hold_is_exact():
    random = np.random.default_rng(2)
    roots, powers = random.integers(1, 4096, 4096).astype(np.float32), np.ldexp(1.0, np.arange(-126, 127))
    powers = powers.astype(np.float32)
    for expression, exact, x in (("sqrt(a)", roots, roots * roots), ("1.0f / a", 1 / powers, powers)):
        to = np.zeros_like(x)
        Program(source(expression), OPTIONS, 16).run("f", len(x), 64, to, x, x)
        assert (to == exact).all()


@pytest.mark.parametrize("width", [4, 8])
def test_half_functions_of_narrow_vectors(width):
    program = Program(source("half_recip(b)"), OPTIONS, width)
    assert f"rcp14.ps.{width * 32}" in program.code("f").text
    to, _, b = run(program)
    with np.errstate(all="ignore"):
        assert errors(to, 1 / b.astype(np.float64)).max() <= 8192


@pytest.mark.parametrize("options", [
    CodegenOptions(features=OPTIONS.features, vector_bits=512),
    CodegenOptions(features=OPTIONS.features, vector_bits=512, slow_division=True, exact_division=True),
])  # fmt: skip
def test_correct_rounding(options):
    """Where the divider is fast, or -cl-fp32-correctly-rounded-divide-sqrt asks for it."""
    for expression in ("1.0f / b", "sqrt(a)"):
        program = Program(source(expression), options, 16)
        assert "14.ps" not in program.code("f").text
        to, a, b = run(program)
        with np.errstate(all="ignore"):
            expected = 1 / b if "/" in expression else np.sqrt(a)
        assert ((to == expected) | np.isnan(to) & np.isnan(expected)).all()


def doubles() -> np.ndarray:
    """Special ones, random bits, squares, and those whose roots are close to the middle of two doubles."""
    random = np.random.default_rng(3)
    bits = random.integers(0, 1 << 64, SAMPLES, np.uint64)
    plain = (
        (bits & np.uint64((1 << 52) - 1)) + (np.uint64(1023) << np.uint64(52)) + (bits >> np.uint64(63) << 52)
    )
    special = np.array([0, 1, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000, 1 << 52], np.uint64)
    special = np.concatenate([special, special | np.uint64(1 << 63)])
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    around = np.concatenate([powers, np.nextafter(powers, 0), np.nextafter(powers, np.inf)])
    squares = random.integers(1, 1 << 26, 4096).astype(np.float64) ** 2
    every = [
        np.array([x for offset in range(-511, 512, 8) for x in hardest(offset)]),
        special.view(np.float64),
        bits.view(np.float64),
        plain.view(np.float64),
        around,
        squares,
    ]
    return np.concatenate(every)


def hardest(offset: int) -> list[float]:
    """Doubles whose roots come closest to the middle of two doubles: they differ by offset (1 modulo 8) from
    squares of odd numbers of 54 bits, in units of the lowest bit of the square.

    Up to 4095 either way, the root of none comes out wrong where square_root_f64 takes all of its estimates
    for certain: that it asks is for CPUs with other estimates.
    """
    found = []
    for shift in (54, 55):
        root = 1  # of offset modulo 8, then of one more bit at a time
        for bit in range(3, shift):
            if (root * root - offset) >> bit & 1:
                root += 1 << bit - 1
        modulus = 1 << shift
        for other in (root, root + modulus // 2, -root, -root + modulus // 2):
            for middle in range(other % modulus, 1 << 54, modulus):
                square = middle * middle - offset
                if middle >> 53 and square.bit_length() == 53 + shift:
                    found.append(float(square >> shift))
    return found


def double_root(where: str = "") -> bytes:
    return compile_c(
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\nkernel void f(global double *to, "
        f"global const double *from) {{ size_t i = get_global_id(0); {where} to[i] = sqrt(from[i]); }}"
    )


@pytest.mark.parametrize("width", [8, 16])
def test_roots_of_doubles_are_correctly_rounded(width):
    x = doubles()
    program = Program(double_root(), OPTIONS, width)
    text = program.code("f").text
    assert "rsqrt14.pd.512" in text and "llvm.sqrt.v" in text
    assert "rsqrt14.pd" not in Program(double_root(), CodegenOptions(OPTIONS.features), width).code("f").text
    with np.errstate(all="ignore"):
        want = np.sqrt(x)
    for data in (x, np.repeat(x[-6000:], 8)):  # also where a vector has nothing but such a number
        to = np.zeros_like(data)
        program.run("f", len(data), 64, to, data)
        exact = want if data is x else np.repeat(want[-6000:], 8)
        same = (to == exact) & (np.signbit(to) == np.signbit(exact)) | np.isnan(to) & np.isnan(exact)
        assert same.all(), data[~same][:4]


def test_roots_of_some_doubles():
    """In lanes of a mask, and after it."""
    x = doubles()[:4000]
    program = Program(double_root("if (from[i] > 1.5)"), OPTIONS, 16)
    to = np.full_like(x, -1)
    program.run("f", len(x), 64, to, x)
    with np.errstate(all="ignore"):
        assert np.array_equal(to, np.where(x > 1.5, np.sqrt(x), -1))
