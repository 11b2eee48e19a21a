"""Operations on half that must be correctly rounded, for all 65,536 arguments, on CPUs with arithmetic on
half, with conversions, with neither.

The references are computed in double: exact for sums and products of two halves; for quotients and square
roots rounded once more, which cannot go wrong, as 53 bits are more than twice 11 and two.
"""

import functools

import numpy as np
import pytest

from tests.runtime.kernel_harness import Program, compile_c
from tests.runtime.passes.test_half import options

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
GROUP = 256
DIVISORS = (3.0, 0.1, -7.0, 1.5, 65504.0, 2.0**-24, 2.0**-14, 0.0, np.inf)
# Name: OpenCL C, reference in double.
UNARY = {
    "sqrt": ("sqrt(x)", np.sqrt),
    "ceil": ("ceil(x)", np.ceil),
    "floor": ("floor(x)", np.floor),
    "trunc": ("trunc(x)", np.trunc),
    "rint": ("rint(x)", np.rint),
    "round": ("round(x)", lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
    "reciprocal": ("(half)1 / x", lambda x: 1 / x),
    "square": ("x * x", lambda x: x * x),
    "twice and a bit": ("x + (half)0.1f", lambda x: x + np.float64(np.float16(0.1))),
    **{
        f"/ {d}": (
            f"x / as_half((ushort){np.float16(d).view(np.uint16)})",
            lambda x, d=d: x / np.float64(np.float16(d)),
        )
        for d in DIVISORS
    },
}
MODES = ("rte", "rtz", "rtp", "rtn")
SOURCE = f"""
kernel void unary(global const half *in, global half *out, global float *single, global double *twofold) {{
    size_t i = get_global_id(0);
    half x = in[i];
    single[i] = x;
    twofold[i] = x;
    {"".join(f"out[i + {k << 16}] = {text};" for k, (text, _) in enumerate(UNARY.values()))}
}}
#define NARROW(T) kernel void narrow_##T(global const T *in, global half *out, ulong n) {{ \\
    size_t i = get_global_id(0); \\
    {"".join(f"out[i + {k} * n] = convert_half_{mode}(in[i]);" for k, mode in enumerate(MODES))} }}
NARROW(float)
NARROW(double)
kernel void fused(global const half *a, global const half *b, global const half *c, global half *out) {{
    size_t i = get_global_id(0);
    out[i] = fma(a[i], b[i], c[i]);
}}
"""


@functools.cache
def spirv() -> bytes:
    return compile_c(SOURCE)


@pytest.fixture(scope="module", params=[("native", 1), ("conversions", 16), ("neither", 1)], ids=str)
def program(request):
    cpu, width = request.param
    return Program(spirv(), options(cpu), width=width)


def assert_same(got: np.ndarray, want: np.ndarray, x: np.ndarray, what: str) -> None:
    """The same bits, whatever NaN it is where there is one."""
    bits = f"u{got.itemsize}"
    wrong = (got.view(bits) != want.view(bits)) & ~(np.isnan(got) & np.isnan(want))
    assert not wrong.any(), f"{what}: {wrong.sum()} wrong: " + ", ".join(
        f"{a!r}: {g!r}, not {w!r}" for a, g, w in zip(x[wrong][:5], got[wrong], want[wrong], strict=False)
    )


@np.errstate(all="ignore")
def test_every_argument(program):
    out = np.zeros((len(UNARY), len(HALVES)), np.float16)
    single, twofold = np.zeros(len(HALVES), np.float32), np.zeros(len(HALVES))
    program.run("unary", len(HALVES), GROUP, HALVES, out, single, twofold)
    assert_same(single, HALVES.astype(np.float32), HALVES, "to float")
    assert_same(twofold, HALVES.astype(np.float64), HALVES, "to double")
    for got, (name, (_, reference)) in zip(out, UNARY.items(), strict=True):
        assert_same(got, reference(HALVES.astype(np.float64)).astype(np.float16), HALVES, name)


def rounded(x: np.ndarray, mode: str) -> np.ndarray:
    """x as half: numpy's conversion is to nearest even, and once; other modes may want the neighbour."""
    near = x.astype(np.float16)
    if mode == "rte":
        return near
    exact = near.astype(x.dtype)
    down, up = exact > x, exact < x  # which way leads to the number on the other side of x
    if mode == "rtz":
        down, up = down & (x > 0), up & (x < 0)
    else:
        down, up = down & (mode == "rtn"), up & (mode == "rtp")
    near = np.where(down, np.nextafter(near, np.float16(-np.inf)), near)
    near = np.where(up, np.nextafter(near, np.float16(np.inf)), near)
    return np.where((near == 0) & ~np.isnan(x), np.copysign(near, x).astype(np.float16), near)


@np.errstate(all="ignore")
@pytest.mark.parametrize("name, dtype", [("float", np.float32), ("double", np.float64)])
def test_conversions_at_every_boundary(program, name, dtype):
    """Every half, the middle between every two, and the closest numbers on either side of these."""
    x = HALVES.astype(dtype)
    following = np.nextafter(np.abs(HALVES), np.float16(np.inf)).astype(dtype)
    following = np.where(np.isinf(following), dtype(65536), following)  # where the next half would be
    middle = np.copysign((np.abs(x) + following) / 2, x)
    points = [np.nextafter(p, dtype(to)) for p in (x, middle) for to in (-np.inf, np.inf)]
    x = np.concatenate([x, middle, *points])
    out = np.zeros((len(MODES), len(x)), np.float16)
    program.run(f"narrow_{name}", len(x), GROUP, x, out, np.uint64(len(x)))
    for got, mode in zip(out, MODES, strict=True):
        assert_same(got, rounded(x, mode), x, mode)


def check_fused(program, a, b, c) -> None:
    """fma(a, b, c), by way of double. The product is exact. So is the sum, unless c is 2^30 times the product
    or more, and then it is as far from the middle of two halves as c is, whatever is lost."""
    a, b, c = (np.ascontiguousarray(v, np.float16) for v in (a, b, c))
    out = np.zeros(len(c), np.float16)
    program.run("fused", len(c), GROUP, a, b, c, out)
    assert_same(out, (a.astype(np.float64) * b + c).astype(np.float16), c, "fma")


@np.errstate(all="ignore")
def test_fma_close_to_the_middle(program):
    """For every half c: a b is half of its last place, or this and up to 2^-17 of it more or less."""
    ulp = np.nextafter(np.abs(HALVES), np.float16(np.inf)).astype(np.float64) - np.abs(HALVES)
    _, exponent = np.frexp(np.where(np.isfinite(ulp), ulp, 1))
    rng = np.random.default_rng(1)
    j = rng.integers(0, 4, len(HALVES)) / 1024
    # (1 + j)(1 - j) = 1 - j^2, and (1 + j) 1 = 1 + j, times half of the last place as two powers of two.
    a = np.ldexp(1 + j, exponent // 2 - 1) * rng.choice([-1, 1], len(HALVES))
    for b in (1 - j, np.ones(len(HALVES))):
        check_fused(program, a, np.ldexp(b, exponent - exponent // 2 - 1), HALVES)


@np.errstate(all="ignore")
def test_fma_of_products_in_the_middle(program):
    """a b has one bit more than a half, and c, the smallest number there is, decides."""
    rng = np.random.default_rng(2)
    a, b = (rng.integers(23, 32, 1 << 15) * 2 + 1 for _ in range(2))
    c = rng.choice([-1, 0, 1], len(a)) * 2.0**-24
    check_fused(program, np.ldexp(a.astype(float), rng.integers(-10, 4, len(a))), b, c)


@np.errstate(all="ignore")
def test_fma_of_anything(program):
    check_fused(program, *(np.random.default_rng(seed).permutation(HALVES) for seed in (1, 2, 3)))
