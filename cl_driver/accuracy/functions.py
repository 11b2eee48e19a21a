"""Which functions are measured: their bounds of error, how they are computed, and the arguments to try.

Bounds: OpenCL SPIR-V environment specification, section 6.6.1 (full profile), in units of the last place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ..passes.program.errors import FUNCTIONS as ERRORS

if TYPE_CHECKING:
    from typing import TypeAlias

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Type:
    """A floating type: its name in OpenCL C and of the library's functions, and as numpy has it."""

    name: str
    suffix: str
    float: type
    bits: int


TYPES = {
    t.name: t
    for t in (
        Type("float", "f32", np.float32, 32),
        Type("double", "f64", np.float64, 64),
        Type("half", "f16", np.float16, 16),
    )
}


@dataclass(frozen=True)
class Function:
    """A function.

    bounds: for float, double and half; None: the specification has none. limits: what the library's float and
    double functions hold themselves to, as host code (tests/pure). how: for the table.
    """

    name: str
    bounds: tuple[float | None, float | None, float | None]
    limits: tuple[float | None, float | None]
    how: str

    def bound(self, type_: Type) -> float | None:
        """For a type."""
        return self.bounds[list(TYPES).index(type_.name)]


def _bounded(name: str, bounds: tuple[float | None, float | None, float | None], how: str) -> Function:
    """A function whose limits programs may ask for, too."""
    return Function(name, bounds, ERRORS[name], how)


def _exact(name: str, how: str) -> Function:
    return Function(name, (0, 0, 0), (0, 0), how)


_ALL = (
    _bounded("acos", (4, 4, 2), "asin polynomial; sqrt((1 - x) / 2) above 1/2"),
    _bounded("acosh", (4, 4, 2), "sqrt(2 u) p(u) below 2, log (float); log1p in pairs (double)"),
    _bounded("acospi", (5, 5, 2), "as acos, scaled polynomial"),
    _bounded("asin", (4, 4, 2), "polynomial; pi/2 - 2 asin(sqrt((1 - x) / 2)) above 1/2"),
    _bounded("asinh", (4, 4, 2), "polynomial up to 1/2; log(x + sqrt(x^2 + 1)) in pairs"),
    _bounded("asinpi", (5, 5, 2), "as asin, scaled polynomial"),
    _bounded("atan", (5, 5, 2), "polynomial; of x, 1/x, (x - 1) / (x + 1) (double)"),
    _bounded("atanh", (5, 5, 2), "polynomial; log((1 + x) / (1 - x)) / 2; in pairs (double)"),
    _bounded("atanpi", (5, 5, 2), "as atan, scaled polynomial"),
    _bounded("atan2", (6, 6, 2), "atan of the smaller over the larger argument"),
    _bounded("atan2pi", (6, 6, 2), "as atan2, scaled polynomial"),
    _bounded("cbrt", (2, 2, 2), "third of the exponent, third-order steps, a residual"),
    _bounded("cos", (4, 4, 2), "Cody-Waite, Payne-Hanek for large arguments; polynomials"),
    _bounded("cosh", (4, 4, 2), "exp / 2 + 1 / (2 exp); cosh, sinh of k log(2) + r (double)"),
    _bounded("cospi", (4, 4, 2), "exact reduction; (1 - 4 r^2) p(r^2)"),
    _bounded("erf", (16, 16, 4), "x p(x^2) / q(x^2) (float), 128 or 16 pieces (double)"),
    _bounded("erfc", (16, 16, 4), "exp(-x^2) p((x - c) / (x + c)), or 16 pieces (double)"),
    _bounded("exp", (3, 3, 2), "Cody-Waite, polynomial, scaling by the exponent"),
    _bounded("exp2", (3, 3, 2), "as exp"),
    _bounded("exp10", (3, 3, 2), "as exp"),
    _bounded("expm1", (3, 3, 2), "2^k p + (2^k - 1)"),
    _bounded("log", (3, 3, 2), "m - 1 (float); f / (2 + f), or r m - 1 and a table (double)"),
    _bounded("log2", (3, 3, 2), "as log, 1/log(2) in two parts"),
    _bounded("log10", (3, 3, 2), "as log, 1/log(10) in two parts"),
    _bounded("log1p", (2, 2, 2), "as log; f = 2^-k x + (2^-k - 1) by fma"),
    _exact("logb", "bits"),
    _bounded("rsqrt", (2, 2, 1), "of an estimate (AVX-512, NEON), else 1 / sqrt(x)"),
    _bounded("sin", (4, 4, 2), "as cos"),
    _bounded("sincos", (4, 4, 2), "as cos"),
    _bounded("sinh", (4, 4, 2), "polynomial below 1; exp / 2 - 1 / (2 exp); as cosh (double)"),
    _bounded("sinpi", (4, 4, 2), "exact reduction, one polynomial up to 1/2"),
    _bounded("tan", (5, 5, 2.5), "as cos; polynomial, -1 / tan (float), quotient (double)"),
    _bounded("tanh", (5, 5, 2), "polynomial or 1 - 2 / (exp(2 x) + 1); expm1(2 x) (double)"),
    _bounded("tanpi", (6, 6, 2), "exact reduction, as tan"),
    Function("lgamma", (None, None, None), (None, None), "product and 1/gamma(1 + t); Stirling; reflection"),
    Function("lgamma_r", (None, None, None), (None, None), "as lgamma"),
    _bounded("tgamma", (16, 16, 4), "1/gamma(1 + t); Stirling in pairs; reflection (double)"),
    _bounded("pow", (16, 16, 4), "exp2(y log2 x) in double; exp(y log x) in pairs (double)"),
    _bounded("pown", (16, 16, 4), "as pow"),
    _bounded("powr", (16, 16, 4), "as pow"),
    _bounded("rootn", (16, 16, 4), "as pow, exponent 1/n in two parts"),
    _bounded("hypot", (4, 4, 2), "root of the sum of squares"),
    Function("fdim", (0.5, 0.5, 0.5), (0, 0), "x - y or 0"),
    _exact("fma", "round to odd (float), 128-bit integers (double): for CPUs without the instruction"),
    _exact("fmod", "exact steps by fma, each of 21 (float) or 50 bits of the quotient"),
    _exact("fract", "x - floor(x)"),
    _exact("frexp", "bits"),
    _exact("ilogb", "bits"),
    _exact("ldexp", "a product with a power of two; an instruction of AVX-512"),
    _exact("maxmag", "comparisons"),
    _exact("minmag", "comparisons"),
    _exact("modf", "trunc"),
    _exact("nextafter", "bits"),
    _exact("remainder", "as fmod, the quotient to the nearest integer"),
    _exact("remquo", "as remainder"),
    Function("sqrt", (3, 0.5, 1.5), (None, None), "the CPU's, or of an estimate where its divider is slow"),
    Function("divide", (2.5, 0.5, 1), (None, None), "x / y: the CPU's"),
    *(_exact(name, "an instruction") for name in ("floor", "ceil", "trunc", "rint", "round")),
)  # fmt: skip
FUNCTIONS = {function.name: function for function in _ALL}
_INSTRUCTIONS = ("sqrt", "divide", "floor", "ceil", "trunc", "rint", "round")
LIBRARY = [name for name in FUNCTIONS if name not in _INSTRUCTIONS]  # functions of the builtin library

BINARY = {
    "atan2",
    "atan2pi",
    "divide",
    "fdim",
    "fma",
    "fmod",
    "hypot",
    "maxmag",
    "minmag",
    "nextafter",
    "pow",
}
BINARY |= {"powr", "remainder", "remquo"}
WITH_INTEGER = {"ldexp", "pown", "rootn"}
TO_INTEGER = {"ilogb"}
# What a function returns through a pointer: "int", or "T" for its own type.
SECOND = {"frexp": "int", "lgamma_r": "int", "remquo": "int", "sincos": "T", "fract": "T", "modf": "T"}

# Where functions are timed, if not from -20 to 20: no slow paths.
_POSITIVE = ("pow", "powr", "rootn", "rsqrt", "sqrt", "log", "log2", "log10", "log1p", "lgamma", "tgamma")
RANGES = {
    **dict.fromkeys(("acos", "acospi", "asin", "asinpi", "atanh"), (-1, 1)),
    **dict.fromkeys(_POSITIVE, (0.01, 20)),
    "acosh": (1, 50),
}


def special_values(type_: Type) -> Array:
    """Zeros, denormals, integers, halves, powers of two and their neighbours, infinities, NaN; both signs."""
    info, float_ = np.finfo(type_.float), type_.float
    normal = info.smallest_normal
    values = [0, info.smallest_subnormal, normal, np.nextafter(normal, float_(0)), info.max, np.inf, np.nan]
    values += [0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 16, 31, 63.5, 64, 100, 127, 128, 129, 171]
    values += [1e5, 2**20, 2**22 + 0.5, 2**23 - 1, 2**23, 2**23 + 1, 2**24 - 1, 2**24, 2**31, 2**32, 2**52]
    values += [2**53 - 1, 2.0**53, 2.0**100, np.pi, np.pi / 2]
    values += [np.nextafter(float_(v), float_(to)) for v in (0.5, 1) for to in (0, 2)]
    with np.errstate(over="ignore"):
        array: Array = np.unique(np.array(values, dtype=float_))
    return np.concatenate([array, -array])


def _joined(parts: list[Array], dtype: DTypeLike) -> Array:
    with np.errstate(all="ignore"):
        return np.concatenate([part.astype(dtype) for part in parts])


def arguments(name: str, type_: Type, points: int, rng: np.random.Generator) -> list[Array]:
    """One array for each parameter: specials (all pairs), random bit patterns, values from the ranges where
    functions do something. Functions of one half get all of them."""
    float_ = type_.float
    special = special_values(type_)

    def patterns(n: int) -> Array:
        return rng.integers(0, 2**type_.bits, n, np.uint64).astype(f"u{type_.bits // 8}").view(float_)

    n = points // 4
    if name in BINARY:
        x, y = (grid.ravel() for grid in np.meshgrid(special, special))
        xs = [x, patterns(n), rng.uniform(-20, 20, n), 1 + rng.uniform(-0.1, 0.1, n)]
        ys = [y, patterns(n), rng.uniform(-20, 20, n), rng.uniform(-1000, 1000, n)]
        xs += [10 ** rng.uniform(-30, 30, n), rng.integers(-100, 100, n)]
        ys += [rng.uniform(-10, 10, n), rng.integers(-100, 100, n)]
        x, y = _joined(xs, float_), _joined(ys, float_)
        return _with_addends(x, y, type_) if name == "fma" else [x, y]
    if name in WITH_INTEGER:
        small = [0, 1, 2, 3, 4, 5, 7, 31, 32, 33, 100, 126, 127, 128, 149, 150, 151, 1000, 1023, 1074, 1075]
        counts = np.array([*small, 2100, 2**31 - 1])
        x, y = (grid.ravel() for grid in np.meshgrid(special, np.concatenate([counts, -counts, [-(2**31)]])))
        xs = [x, patterns(n), rng.uniform(-20, 20, n), 1 + rng.uniform(-0.1, 0.1, n), patterns(n)]
        ys = [y, *(rng.integers(-limit, limit, n) for limit in (2**31, 100, 10000, 20))]
        return [_joined(xs, float_), _joined(ys, np.int32)]
    if type_.bits == 16:
        return [np.arange(1 << 16, dtype=np.uint16).view(float_)]
    xs = [special, *(rng.uniform(-limit, limit, n) for limit in (2, 100, 1000))]
    xs += [1 + rng.uniform(-0.01, 0.01, n), np.rint(rng.uniform(-4e6, 4e6, n // 4)) * 0.5]
    if type_.bits == 32:  # evenly over all bit patterns
        step = max(1, 2**32 // (2 * points))
        xs.append((np.arange(0, 2**32, step) + rng.integers(0, step)).astype(np.uint32).view(float_))
    else:
        xs.append(patterns(2 * points))
    return [_joined(xs, float_)]


def _with_addends(x: Array, y: Array, type_: Type) -> list[Array]:
    """Arguments of fma: addends are made of the others, so that cancellation and halfway cases are common."""
    with np.errstate(all="ignore"):
        near = -(x * y)
        toward_zero = np.nextafter(near, type_.float(0))
        addends = [near, near / 2, toward_zero, x[::-1], np.repeat(y, 2)[: len(y)], 0 * near, -near, x]
    kinds = len(addends)
    return [np.tile(x, kinds), np.tile(y, kinds), np.concatenate(addends).astype(type_.float)]


def typical(name: str, type_: Type, count: int, rng: np.random.Generator) -> list[Array]:
    """Arguments to time a function with."""
    x: Array = rng.uniform(*RANGES.get(name, (-20, 20)), count).astype(type_.float)
    if name in WITH_INTEGER:
        return [x, rng.integers(2, 9, count).astype(np.int32)]
    y: Array = rng.uniform(0.5, 5, count).astype(type_.float)
    return [x, y, x] if name == "fma" else [x, y] if name in BINARY else [x]
