"""Functions of real numbers with the edge cases of IEEE 754 and OpenCL, where Python's math raises."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from . import numbers as n

_Real: TypeAlias = Callable[..., float]


def guarded(function: _Real) -> _Real:
    """Python raises where IEEE gives NaN or infinity."""

    def run(*values: float) -> float:
        if any(math.isnan(v) for v in values if isinstance(v, float)):
            return n.NAN
        try:
            return function(*values)
        except OverflowError:
            return n.INFINITY
        except (ValueError, ZeroDivisionError):
            return n.NAN

    return run


def log(function: _Real) -> _Real:
    """A logarithm that is -∞ of zero and NaN of what is negative."""

    def run(x: float) -> float:
        return -n.INFINITY if x == 0 else n.NAN if x < 0 else function(x)

    return run


def exp(function: _Real) -> _Real:
    """An exponential that is 0 of -∞ and ∞ of ∞."""

    def run(x: float) -> float:
        return 0.0 if x == -n.INFINITY else n.INFINITY if x == n.INFINITY else function(x)

    return run


def power(x: float, y: float) -> float:
    """pow."""
    if y == 0 or x == 1:
        return 1.0
    if x == 0 and y < 0:
        odd = float(y).is_integer() and int(y) & 1
        return math.copysign(n.INFINITY, x) if odd else n.INFINITY
    try:
        return math.pow(x, y)
    except OverflowError:
        return -n.INFINITY if x < 0 and float(y).is_integer() and int(y) & 1 else n.INFINITY


def powr(x: float, y: float) -> float:
    """powr: pow by exp and log, so 0⁰, ∞⁰ and 1^∞ are NaN."""
    if x < 0 or (y == 0 and (x == 0 or math.isinf(x))) or (x == 1 and math.isinf(y)):
        return n.NAN
    return abs(power(x, y))


def root(x: float, k: int) -> float:
    """rootn: the k-th root."""
    if k & 1 and math.copysign(1.0, x) < 0:
        return -root(-x, k)
    if x < 0 or k == 0:
        return n.NAN
    y = power(x, 1.0 / k)
    if abs(k) > 200 or not 0 < y < n.INFINITY or x == n.INFINITY:
        return y
    return float(y * (1 + (Fraction(x) / Fraction(y) ** k - 1) / k))  # 1 / k is not exact


def sinpi(x: float) -> float:
    """sin(πx), exact where the result is."""
    x = math.fmod(x, 2.0)
    if abs(x) > 1:
        x -= math.copysign(2.0, x)
    if abs(x) > 0.5:
        x = math.copysign(1.0, x) - x
    return math.copysign(math.cos(math.pi * (0.5 - abs(x))), x) if abs(x) > 0.25 else math.sin(math.pi * x)


def cospi(x: float) -> float:
    """cos(πx), exact where the result is."""
    return sinpi(0.5 - math.fmod(abs(x), 2.0)) + 0.0


def tanpi(x: float) -> float:
    """tan(πx): of odd numbers it has the other sign, of half ones it is ±∞."""
    sine, cosine = sinpi(x), cospi(x)
    if sine == 0:
        return math.copysign(0.0, x * cosine)
    if cosine == 0:
        return -n.INFINITY if math.floor(x) & 1 else n.INFINITY
    return sine / cosine


def rint(x: float) -> float:
    """To the nearest integer, ties to even; zeros keep their sign."""
    return x if math.isinf(x) else math.copysign(float(builtins.round(Fraction(x))), x)


def round(x: float) -> float:
    """To the nearest integer, ties away from zero."""
    return x if math.isinf(x) else math.copysign(float(math.floor(abs(Fraction(x)) + Fraction(1, 2))), x)


def whole(function: _Real) -> _Real:
    """Rounding by a function that gives ints; infinities stay, zeros keep their sign."""
    return lambda x: x if math.isinf(x) else math.copysign(float(function(x)), x)


def gamma(x: float) -> float:
    """tgamma."""
    if x == 0:
        return math.copysign(n.INFINITY, x)
    try:
        return math.gamma(x)
    except OverflowError:
        return -n.INFINITY if x < 0 and math.floor(x) & 1 else n.INFINITY


def log_gamma(x: float) -> float:
    """lgamma."""
    return n.INFINITY if math.isinf(x) or (x <= 0 and float(x).is_integer()) else math.lgamma(x)


def logb(x: float) -> float:
    """The exponent of a number as a float."""
    if x == 0:
        return -n.INFINITY
    return n.INFINITY if math.isinf(x) else float(math.frexp(x)[1] - 1)
