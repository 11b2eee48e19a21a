"""Arithmetic of SPIR-V's number types on Python numbers: exact where the specification is.

Operations on 32 and 16 bit floats are computed in double and rounded once more, which is exact for
+ - * / and the square root; fma goes through fractions.
"""

from __future__ import annotations

import math
import struct
from ctypes import c_float
from fractions import Fraction

INFINITY = math.inf
NAN = math.nan

# Rounding modes: FPRoundingMode's numbers.
RTE, RTZ, RTP, RTN = 0, 1, 2, 3

_PRECISION = {16: (11, -24, 15), 32: (24, -149, 127), 64: (53, -1074, 1023)}  # bits, least exponent, greatest
_INT_FORMAT = {16: "<H", 32: "<I", 64: "<Q"}
_FLOAT_FORMAT = {16: "<e", 32: "<f", 64: "<d"}


def signed(value: int, width: int) -> int:
    """The number that the bits of an integer stand for in two's complement."""
    return value - (1 << width) if value >> (width - 1) else value


def mask(value: int, width: int) -> int:
    """The lower bits of an integer."""
    return value & ((1 << width) - 1)


def to_width(value: float, width: int) -> float:
    """Rounds a double to nearest even in a type."""
    if width == 64:
        return value
    if width == 32:
        return c_float(value).value
    try:
        half: float
        (half,) = struct.unpack("<e", struct.pack("<e", value))
        return half
    except OverflowError:
        return math.copysign(INFINITY, value)


def float_from_bits(bits: int, width: int) -> float:
    """The float of a width (16, 32, 64) that bits stand for, as a double."""
    if width == 16 and bits & 0x7FFF > 0x7C00:  # struct would drop the NaN's payload
        return float_from_bits(bits >> 15 << 63 | 0x7FF << 52 | (bits & 0x3FF) << 42, 64)
    value: float
    (value,) = struct.unpack(_FLOAT_FORMAT[width], struct.pack(_INT_FORMAT[width], bits))
    return value


def float_to_bits(value: float, width: int) -> int:
    """The bits of a float that is exact in its width; the payload of a NaN stays."""
    if width == 16 and math.isnan(value):
        bits = float_to_bits(value, 64)
        return bits >> 63 << 15 | 0x7C00 | (bits >> 42 & 0x3FF or 0x200)
    found: int
    (found,) = struct.unpack(_INT_FORMAT[width], struct.pack(_FLOAT_FORMAT[width], value))
    return found


def round_exact(value: Fraction | int, width: int, mode: int = RTE) -> float:
    """The float of a type for an exact number."""
    if value == 0:
        return 0.0
    bits, least, greatest = _PRECISION[width]
    magnitude = abs(Fraction(value))
    negative = value < 0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    quantum = max(exponent - bits + 1, least)
    scaled = magnitude / Fraction(2) ** quantum
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if mode == RTE:
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)
    elif mode == RTZ:
        up = False
    else:
        up = rest > 0 and (mode == RTP) != negative
    whole += bool(up)
    result = Fraction(whole) * Fraction(2) ** quantum
    limit = (Fraction(2) - Fraction(1, 1 << (bits - 1))) * Fraction(2) ** greatest
    if result > limit:
        toward_zero = mode == RTZ or (mode == RTP and negative) or (mode == RTN and not negative)
        number = float(limit) if toward_zero else INFINITY
    else:
        number = float(result)
    return -number if negative else number


def round_float(value: float, width: int, mode: int = RTE) -> float:
    """A double in another type, by a rounding mode."""
    if mode == RTE or math.isinf(value) or math.isnan(value) or value == 0:
        return to_width(value, width)
    return round_exact(Fraction(value), width, mode)


def to_integer(value: float, width: int, is_signed: bool, mode: int, saturate: bool) -> int:
    """OpConvertFToS and OpConvertFToU; the result is unsigned as all integers here."""
    low = -(1 << (width - 1)) if is_signed else 0
    high = (1 << (width - 1)) - 1 if is_signed else (1 << width) - 1
    if math.isnan(value):
        return 0
    if math.isinf(value):
        whole = high if value > 0 else low
    elif mode == RTE:
        whole = round(Fraction(value))
    elif mode == RTP:
        whole = math.ceil(value)
    elif mode == RTN:
        whole = math.floor(value)
    else:
        whole = math.trunc(value)
    if saturate:
        whole = min(max(whole, low), high)
    return mask(whole, width)


def fma(a: float, b: float, c: float, width: int) -> float:
    """a·b + c, rounded once."""
    if any(math.isnan(x) or math.isinf(x) for x in (a, b, c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return to_width(a * b + c, width)
    return round_exact(exact, width)


def divide(a: float, b: float) -> float:
    """IEEE division, where Python raises."""
    if b == 0:
        if a == 0 or math.isnan(a):
            return NAN
        return math.copysign(INFINITY, a) * math.copysign(1.0, b)
    return a / b


def remainder(a: float, b: float) -> float:
    """OpFRem: the sign of a."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return NAN
    return math.fmod(a, b)


def truncated_division(a: int, b: int) -> int:
    """The quotient, rounded toward zero. b is not 0."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
