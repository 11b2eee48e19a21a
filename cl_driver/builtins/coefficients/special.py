"""Writes ../cl/math/poly_special.h: polynomials of functions that Sollya lacks, by Chebyshev interpolation,
and quotients of polynomials.

1 / gamma(1 + t) is entire, so low degrees suffice, where gamma itself has a pole close by.
What is left of log(1 + f) is that after its first two terms, which need more than a double.
erfc(x) exp(x^2) (x + 3.5) stays between 0.6 and 3.5 on the whole half line; t = (x - 3.5) / (x + 3.5).
tan(x) = x (1 + z p(z)) / q(z), z = x^2: q is that of the quotient that is right in the zeros of a Chebyshev
polynomial, p what fits to q as it is rounded.
erf(x) = x p(z) / (1 + z q(z)) up to where it is 1 in single precision, the largest relative error as small as
repeated least squares with Lawson's weights make it.
"""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Callable
from typing import Any, TypeAlias

import mpmath
import numpy as np

Real: TypeAlias = Any  # mpmath.mpf: the package has no types


def reciprocal_gamma(t: Real) -> Real:
    """(1 / gamma(1 + t) - 1) / t"""
    return (mpmath.rgamma(1 + t) - 1) / t if abs(t) > 1e-20 else mpmath.euler


def scaled_erfc(t: Real) -> Real:
    """erfc(x) exp(x^2) (x + 3.5) with x = 3.5 (1 + t) / (1 - t), t < 1"""
    x = mpmath.mpf("3.5") * (1 + t) / (1 - t)
    return mpmath.erfc(x) * mpmath.exp(x * x) * (x + mpmath.mpf("3.5"))


def log_cubic(f: Real) -> Real:
    """(log(1 + f) - f + f^2 / 2) / f^3"""
    return (mpmath.log1p(f) - f + f * f / 2) / f**3 if abs(f) > 1e-20 else mpmath.mpf(1) / 3


def log2_cubic(f: Real) -> Real:
    """The same of log2."""
    return log_cubic(f) / mpmath.log(2)


TAN_END = (mpmath.pi / 4 + mpmath.mpf(2) ** -20) ** 2  # of z
TAN_ABOVE, TAN_BELOW = 3, 4  # terms of p, and of q after the 1


def tan_ratio(z: Real) -> Real:
    """tan(x) / x, z = x^2"""
    x = mpmath.sqrt(z)
    return mpmath.tan(x) / x if z else mpmath.mpf(1)


def emit_tan() -> list[str]:
    """poly_tan_above and poly_tan_below: p and (q - 1) / z"""
    count = TAN_ABOVE + TAN_BELOW
    zeros = [-mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * count + 2)) for k in range(count + 1)]
    equations, values = mpmath.matrix(count, count), mpmath.matrix(count, 1)
    for row, zero in enumerate(zeros[1:]):  # the first of them is where z is 0
        z = TAN_END * (zero - zeros[0]) / (1 - zeros[0])
        for power in range(TAN_ABOVE):
            equations[row, power] = z**power
        for power in range(TAN_BELOW):
            equations[row, TAN_ABOVE + power] = -tan_ratio(z) * z**power
        values[row] = (tan_ratio(z) - 1) / z
    solution = mpmath.lu_solve(equations, values)
    above, below = list(solution[:TAN_ABOVE]), list(solution[TAN_ABOVE:])
    rounded = [mpmath.mpf(float(c)) for c in below]
    off = [c - exact for c, exact in zip(rounded, below, strict=True)]
    rest = mpmath.chebyfit(
        lambda z: tan_ratio(z) * mpmath.polyval(off[::-1], z), [mpmath.mpf(0), TAN_END], TAN_ABOVE
    )
    above = [c + more for c, more in zip(above, rest[::-1], strict=True)]
    return [
        horner(f"tan_{name}_f64", [float(c).hex() for c in coefficients[::-1]])
        for name, coefficients in (("above", above), ("below", rounded))
    ]


ERF_END = 3.95  # of x: erf is 1 from there on
ERF_ABOVE, ERF_BELOW = 6, 5  # terms of p and q
Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


def emit_erf() -> list[str]:
    """poly_erf_above_f32 and poly_erf_below_f32: p and q"""
    x = ERF_END * np.sin(np.linspace(1e-3, np.pi / 2, 500))
    ratio = np.array([float(mpmath.erf(v)) for v in x]) / x
    z, scaled = x * x, (x / ERF_END) ** 2
    above = np.vander(scaled, ERF_ABOVE, increasing=True)
    below = np.vander(scaled, ERF_BELOW + 1, increasing=True)[:, 1:]
    quotient = np.ones_like(z)
    for _ in range(20):
        solution = _minimax(np.hstack([above, -below * ratio[:, None]]), ratio, ratio * quotient)
        quotient = 1 + below @ solution[ERF_ABOVE:]
    rounded = _as_floats(solution[ERF_ABOVE:] / ERF_END ** (2.0 * np.arange(1, ERF_BELOW + 1)))
    wanted = ratio * (1 + z * np.polyval(rounded[::-1], z))
    fitted = _minimax(above, wanted, wanted)
    return [
        horner(f"erf_{name}_f32", [float(c).hex() + "f" for c in coefficients[::-1]], "float")
        for name, coefficients in (
            ("above", _as_floats(fitted / ERF_END ** (2.0 * np.arange(ERF_ABOVE)))),
            ("below", rounded),
        )
    ]


def _as_floats(values: Floats) -> Floats:
    return values.astype(np.float32).astype(np.float64)


def _minimax(columns: Floats, wanted: Floats, scale: Floats, rounds: int = 200) -> Floats:
    """Factors of columns that make the largest error, measured in `scale`, small (Lawson 1961)."""
    weights, least, best = np.ones(len(wanted)), np.inf, np.zeros(columns.shape[1])
    for _ in range(rounds):
        by = np.sqrt(weights) / scale
        found = np.linalg.lstsq(columns * by[:, None], wanted * by, rcond=None)[0]
        errors = abs((columns @ found - wanted) / scale)
        if errors.max() < least:
            least, best = errors.max(), found
        weights = weights * errors
        weights /= weights.sum()
    return best


def horner(name: str, literals: list[str], type_: str = "double") -> str:
    """One OpenCL C function in Horner form, of the coefficients from the highest on."""
    lines = [f"HELPER {type_} poly_{name}({type_} t)", "{", *_chain("p", "t", literals, type_)]
    return "\n".join([*lines, "    return p;", "}", ""])


def halves(name: str, literals: list[str], type_: str = "double") -> str:
    """The same as two chains of half the length: the caller has t^2, too."""
    low, high = ("even", "odd") if len(literals) % 2 else ("odd", "even")
    lines = [f"HELPER {type_} poly_{name}({type_} t, {type_} square)", "{"]
    lines += _chain(low, "square", literals[::2], type_) + _chain(high, "square", literals[1::2], type_)
    return "\n".join([*lines, "    return FMA(odd, t, even);", "}", ""])


def _chain(name: str, step: str, literals: list[str], type_: str) -> list[str]:
    first, *others = literals
    return [f"    {type_} {name} = {first};"] + [f"    {name} = FMA({name}, {step}, {c});" for c in others]


def emit(
    name: str,
    function: Callable[[Real], Real],
    first: str,
    last: str,
    terms: int,
    type_: str = "double",
    form: Callable[[str, list[str], str], str] = horner,
) -> str:
    """One OpenCL C function, with `terms` coefficients, for arguments of an interval."""

    def literal(value: Real) -> str:
        if type_ == "double":
            return float(value).hex()
        (rounded,) = struct.unpack("f", struct.pack("f", float(value)))
        return float(rounded).hex() + "f"

    interval = [mpmath.mpf(first), mpmath.mpf(last)]
    coefficients, error = mpmath.chebyfit(function, interval, terms, error=True)
    comment = f"/* log2 of the absolute error: {float(mpmath.log(error, 2)):.2f} */\n"
    return comment + form(name, [literal(c) for c in coefficients], type_)


if __name__ == "__main__":
    mpmath.mp.prec = 200
    parts = [
        "/* Generated by coefficients/special.py: do not edit. */\n",
        emit("rgamma_mid", reciprocal_gamma, "-0.5", "0.5", 11),
        emit("rgamma_f64", reciprocal_gamma, "-0.5", "0.5", 15),
        *emit_tan(),
        emit("erfcx_f64", scaled_erfc, "-1", "0.775", 21, form=halves),
        emit("log_cubic_f64", log_cubic, "-0.0316", "0.0316", 9, form=halves),
        emit("log2_cubic_f32", log2_cubic, "-0.0159", "0.0159", 3, "float"),
        *emit_erf(),
    ]
    (pathlib.Path(__file__).parent.parent / "cl" / "math" / "poly_special.h").write_text("\n".join(parts))
