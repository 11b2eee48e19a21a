"""Vectors of 64-bit integers: upper halves of products, and quotients by constants made of them.

x86 and aarch64 multiply vectors of 32 bits to 64 and no wider, so LLVM takes these element by element.
"""

from __future__ import annotations

from ...fast_typing import NamedTuple
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import Form

BITS = 64
_MASK = (1 << 32) - 1


def pays(f: Form, element: str) -> bool:
    """Whether vectors of this form and type are for the functions here."""
    return element == "i64" and f.count >= 4


def multiply_high(e: FunctionEmitter, f: Form, a: str, b: str, signed: bool) -> str:
    """The upper 64 bits of the products of two vectors of i64: the sum of four products of halves."""
    t = f("i64")

    def half(value: str, upper: bool) -> str:
        return e.emit(f"lshr {t} {value}, {c(32)}" if upper else f"and {t} {value}, {c(_MASK)}")

    def c(value: int) -> str:
        return f.splat("i64", str(value))

    def add(x: str, y: str) -> str:
        return e.emit(f"add {t} {x}, {y}")

    low_a, high_a, low_b, high_b = half(a, False), half(a, True), half(b, False), half(b, True)
    low, first, second, high = (
        e.emit(f"mul {t} {x}, {y}")
        for x, y in ((low_a, low_b), (high_a, low_b), (low_a, high_b), (high_a, high_b))
    )
    first = add(first, half(low, True))
    second = add(second, half(first, False))
    result = add(add(high, half(first, True)), half(second, True))
    if signed:
        for x, y in ((a, b), (b, a)):
            sign = e.emit(f"ashr {t} {x}, {c(BITS - 1)}")
            result = e.emit(f"sub {t} {result}, {e.emit(f'and {t} {sign}, {y}')}")
    return result


def multiply_add_saturated(e: FunctionEmitter, f: Form, a: str, b: str, c: str, signed: bool) -> str:
    """a * b + c limited to the range of i64."""
    t, i1 = f("i64"), f("i1")
    low, high = e.emit(f"mul {t} {a}, {b}"), multiply_high(e, f, a, b, signed)
    total = e.emit(f"add {t} {low}, {c}")
    carry = e.emit(f"zext {i1} {e.emit(f'icmp ult {t} {total}, {low}')} to {t}")
    high = e.emit(f"add {t} {high}, {carry}")
    limit, expected = f.splat("i64", "-1"), "zeroinitializer"
    if signed:
        high = e.emit(f"add {t} {high}, {_shifted(e, f, 'ashr', c, BITS - 1)}")
        sign = _shifted(e, f, "ashr", high, BITS - 1)
        limit = e.emit(f"xor {t} {sign}, {f.splat('i64', str((1 << BITS - 1) - 1))}")
        expected = _shifted(e, f, "ashr", total, BITS - 1)
    overflows = e.emit(f"icmp ne {t} {high}, {expected}")
    return e.emit(f"select {i1} {overflows}, {t} {limit}, {t} {total}")


class Factor(NamedTuple):
    """n / d is n·multiplier, taken `shift` bits beyond the upper 64, after n lost `before` bits.

    Granlund and Montgomery, *Division by invariant integers using multiplication*, 1994.
    """

    multiplier: int  # 65 bits where `before` is 0 and no shorter one is exact
    shift: int
    before: int


def unsigned_factor(d: int) -> Factor:
    """For 0 <= n < 2⁶⁴ and d > 1, no power of two."""
    found = _least_factor(d, BITS)
    zeros = (d & -d).bit_length() - 1
    if found.multiplier >> BITS and zeros:
        return _least_factor(d >> zeros, BITS - zeros)._replace(before=zeros)
    return found


def signed_factor(d: int) -> Factor:
    """For |n| <= 2⁶³ and d > 1, no power of two: 64 bits at most."""
    return _least_factor(d, BITS - 1)


def _least_factor(d: int, bits: int) -> Factor:
    """m = ⌈2⁶⁴⁺ˢ/d⌉ is exact for numbers of so many bits if m·d - 2⁶⁴⁺ˢ <= 2⁶⁴⁺ˢ⁻ᵇⁱᵗˢ: the least such s."""
    for shift in range(d.bit_length() + 1):
        multiplier = -(-(1 << BITS + shift) // d)
        if multiplier * d - (1 << BITS + shift) <= 1 << BITS + shift - bits:
            return Factor(multiplier, shift, 0)
    raise AssertionError(d)


def divide_by_constant(e: FunctionEmitter, f: Form, a: str, divisor: int, signed: bool) -> str:
    """a / divisor truncated, of vectors of i64. The divisor is no power of two, nor minus one."""
    if signed:
        return _divide_signed(e, f, a, abs(divisor), divisor < 0)
    t = f("i64")
    multiplier, shift, before = unsigned_factor(divisor)
    if before:
        a = _shifted(e, f, "lshr", a, before)
    high = multiply_high(e, f, a, _constant(f, multiplier), False)
    if multiplier >> BITS:  # n more, which may have 65 bits with the product: half of each
        rest = e.emit(f"sub {t} {a}, {high}")
        high = e.emit(f"add {t} {high}, {_shifted(e, f, 'lshr', rest, 1)}")
        shift -= 1
    return _shifted(e, f, "lshr", high, shift)


def _divide_signed(e: FunctionEmitter, f: Form, a: str, d: int, is_negative: bool) -> str:
    t = f("i64")
    multiplier, shift, _ = signed_factor(d)
    high = multiply_high(e, f, a, _constant(f, multiplier), True)
    if multiplier >> BITS - 1:  # it was read as a negative number
        high = e.emit(f"add {t} {high}, {a}")
    # Rounded down so far: one more where n is negative.
    quotient = _shifted(e, f, "ashr", high, shift)
    sign = _shifted(e, f, "ashr", a, BITS - 1)
    first, second = (sign, quotient) if is_negative else (quotient, sign)
    return e.emit(f"sub {t} {first}, {second}")


def _shifted(e: FunctionEmitter, f: Form, op: str, a: str, bits: int) -> str:
    return e.emit(f"{op} {f('i64')} {a}, {f.splat('i64', str(bits))}") if bits else a


def _constant(f: Form, value: int) -> str:
    """The low 64 bits, as LLVM writes signed numbers."""
    value &= (1 << BITS) - 1
    return f.splat("i64", str(value - (1 << BITS) if value >> BITS - 1 else value))
