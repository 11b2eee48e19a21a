"""Conversion of integers to floating point (SPIR-V 1.6, section 3.49.11), with every rounding mode."""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Instruction
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import Form
from ..llvm.registry import componentwise
from ..llvm.types import element_type
from .conversion import FLOAT_NAMES, MANTISSA_BITS, RTE, RTP, RTZ, Rounding, rounding, truncate_to_half

# What is likely to have more than 32 bits that count. Of others (ids, what is computed of them) LLVM makes
# conversions of 32 bits, which the code here would keep it from.
_WIDE_SOURCES = frozenset({Op.Load, Op.BitwiseXor})


@componentwise(Op.ConvertSToF, Op.ConvertUToF)
def integer_to_float(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpConvertSToF, OpConvertUToF."""
    source, result = element_type(i.operands[0].type), element_type(i.type)
    signed = i.op == Op.ConvertSToF
    mode = rounding(i, RTE)
    # No rounding happens where the integer fits the mantissa.
    is_exact = source.width - signed <= MANTISSA_BITS[max(result.width, 32)] + 1
    if result.width == 16:
        # To float rounded to odd, so that the second rounding is that of the exact value.
        wide = _integer_to_float(e, f, a, source.width, 32, signed, RTE if is_exact else "odd")
        return truncate_to_half(e, f, wide, mode)
    if is_exact:
        mode = RTE
    if mode == RTE and source.width == 64 and f.count >= 4 and not _converts_i64(e):
        value = i.operands[0]
        if isinstance(value, Instruction) and value.op in _WIDE_SOURCES:
            return _of_i64(e, f, a, result.width, signed)
    return _integer_to_float(e, f, a, source.width, result.width, signed, mode)


def _converts_i64(e: FunctionEmitter) -> bool:
    """Whether the CPU converts vectors of 64-bit integers."""
    return e.options.aarch64 or "avx512dq" in e.options.features


def _of_i64(e: FunctionEmitter, f: Form, a: str, result: int, signed: bool) -> str:
    """Vectors of 64-bit integers to nearest even, where LLVM would take them element by element.

    To float by way of double: where the integer has more bits than a double, the last that count are rounded
    to odd first, so that the rounding to float is that of the exact value.
    """
    t, double = f("i64"), f("double")

    def c(value: int) -> str:
        return f.splat("i64", str(value))

    if result == 32:
        digits = MANTISSA_BITS[64] + 1
        below = (1 << 64 - digits) - 1
        sticky = e.emit(f"add {t} {e.emit(f'and {t} {a}, {c(below)}')}, {c(below)}")
        odd = e.emit(f"and {t} {e.emit(f'or {t} {sticky}, {a}')}, {c(~below)}")
        offset = e.emit(f"add {t} {a}, {c(1 << digits)}") if signed else a
        excess = e.emit(f"lshr {t} {offset}, {c(digits + signed)}")
        fits = e.emit(f"icmp eq {t} {excess}, zeroinitializer")
        a = e.emit(f"select {f('i1')} {fits}, {t} {a}, {t} {odd}")
    if signed:
        # Each half becomes the mantissa of a double whose exponent gives it its place: the upper one, made
        # positive, in 2^84, the lower one in 2^52. Only the last addition rounds.
        upper = e.emit(f"lshr {t} {e.emit(f'xor {t} {a}, {c(-1 << 63)}')}, {c(32)}")
        upper = e.emit(f"or {t} {upper}, {c(1023 + 84 << 52)}")
        lower = e.emit(f"and {t} {a}, {c((1 << 32) - 1)}")
        lower = e.emit(f"or {t} {lower}, {c(1023 + 52 << 52)}")
        upper, lower = (e.emit(f"bitcast {t} {half} to {double}") for half in (upper, lower))
        added = f.splat("double", f"{float((1 << 84) + (1 << 63) + (1 << 52)):.1f}")
        value = e.emit(f"fadd {double} {e.emit(f'fsub {double} {upper}, {added}')}, {lower}")
    else:
        value = e.emit(f"uitofp {t} {a} to {double}")
    return value if result == 64 else e.emit(f"fptrunc {double} {value} to {f('float')}")


def _integer_to_float(
    e: FunctionEmitter, f: Form, a: str, source: int, result: int, signed: bool, mode: Rounding
) -> str:
    """mode: an FPRoundingMode or "odd": inexact results get an odd last bit."""
    element, to = f"i{source}", FLOAT_NAMES[result]
    t = f(element)
    if mode == RTE:
        return e.emit(f"{'s' if signed else 'u'}itofp {t} {a} to {f(to)}")
    if source < 32:
        a = e.emit(f"{'sext' if signed else 'zext'} {t} {a} to {f('i32')}")
        element, t, source = "i32", f("i32"), 32
    bits = f"i{result}"
    magnitude, negative = a, None
    if signed:
        negative = e.emit(f"icmp slt {t} {a}, {'zeroinitializer' if f.count else 0}")
        magnitude = e.intrinsic("abs", f, element, a, extra=", i1 false")
    # The magnitude cut to the bits that fit is exact in the result.
    digits = MANTISSA_BITS[result] + 1
    zeros = e.intrinsic("ctlz", f, element, magnitude, extra=", i1 false")
    excess = e.emit(f"sub {t} {f.splat(element, str(source - digits))}, {zeros}") if source > digits else None
    if excess is None:
        exact = e.emit(f"uitofp {t} {magnitude} to {f(to)}")
        inexact = None
    else:
        excess = e.intrinsic("smax", f, element, excess, "zeroinitializer" if f.count else "0")
        ones = e.emit(f"shl {t} {f.splat(element, '-1')}, {excess}")
        cut = e.emit(f"and {t} {magnitude}, {ones}")
        exact = e.emit(f"uitofp {t} {cut} to {f(to)}")
        inexact = e.emit(f"icmp ne {t} {cut}, {magnitude}")
    value = e.emit(f"bitcast {f(to)} {exact} to {f(bits)}")
    if inexact is not None:
        away = _away(e, f, mode, negative)
        if away is not None:
            step = e.emit(f"and {f('i1')} {inexact}, {away}") if away != "all" else inexact
            step = e.emit(f"zext {f('i1')} {step} to {f(bits)}")
            value = e.emit(f"{'or' if mode == 'odd' else 'add'} {f(bits)} {value}, {step}")
    if negative is not None:
        sign = e.emit(f"zext {f('i1')} {negative} to {f(bits)}")
        sign = e.emit(f"shl {f(bits)} {sign}, {f.splat(bits, str(result - 1))}")
        value = e.emit(f"or {f(bits)} {value}, {sign}")
    return e.emit(f"bitcast {f(bits)} {value} to {f(to)}")


def _away(e: FunctionEmitter, f: Form, mode: Rounding, negative: str | None) -> str | None:
    """Which inexact magnitudes grow by one step: an i1 operand, "all", or None for none."""
    if mode == RTZ:
        return None
    if mode == "odd":
        return "all"
    if mode == RTP:
        if negative is None:
            return "all"
        return e.emit(f"xor {f('i1')} {negative}, {f.splat('i1', 'true')}")
    return negative
