"""Conversion of floating point to integers (SPIR-V 1.6, section 3.49.11).

LLVM's saturating intrinsics become one scalar conversion per element on x86 (LLVM 22), so vectors are limited
here, before the conversion where the result's limits are floating-point numbers, or after it.
"""

from __future__ import annotations

from ...spirv.enums import Decoration, FPRoundingMode, Op
from ...spirv.module import Instruction
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import MANGLED, Form
from ..llvm.registry import componentwise
from ..llvm.types import element_type, ir_type
from .conversion import MANTISSA_BITS, extend_half, kept_wide, rounding

_ROUND_TO_INTEGRAL: dict[int, str] = {
    FPRoundingMode.RTE: "roundeven", FPRoundingMode.RTP: "ceil", FPRoundingMode.RTN: "floor",
}  # fmt: skip


@componentwise(Op.ConvertFToU, Op.ConvertFToS)
def float_to_integer(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpConvertFToU, OpConvertFToS: towards zero by default; NaN becomes 0 where it saturates.

    What is out of range without saturation has an undefined result, but one that is a value: freeze.
    """
    source, result = element_type(i.operands[0].type), element_type(i.type)
    signed = i.op == Op.ConvertFToS
    element, from_half = ir_type(source), source.width == 16
    mode = _ROUND_TO_INTEGRAL.get(rounding(i, FPRoundingMode.RTZ))
    if from_half:
        element = "float"
        a = extend_half(e, f, a)
        if mode:
            a = kept_wide(e, f, a)
    if mode:
        a = e.intrinsic(mode, f, element, a)
    if Decoration.SaturatedConversion in i.decorations:
        if not f.count or e.options.aarch64:
            return _by_intrinsic(e, f, a, element, result.width, signed)
        return _limited(e, f, a, element, result.width, signed, from_half)
    return _converted(e, f, a, element, result.width, signed, from_half)


def _converted(
    e: FunctionEmitter, f: Form, a: str, element: str, width: int, signed: bool, from_half: bool
) -> str:
    """Towards zero.

    By way of 32 bits for shorter integers, where what is out of range wraps, as it does on other CPU
    drivers; and for halves, whose numbers fit: not every CPU has conversions of vectors to 64 bits.
    """
    to = f(f"i{width}")
    if width < 32 or (width == 64 and from_half):
        wide = e.emit(f"fptosi {f(element)} {a} to {f('i32')}")
        wide = e.emit(f"freeze {f('i32')} {wide}")
        return e.emit(f"{'trunc' if width < 32 else 'sext'} {f('i32')} {wide} to {to}")
    converted = e.emit(f"fpto{'s' if signed else 'u'}i {f(element)} {a} to {to}")
    return e.emit(f"freeze {to} {converted}")


def _by_intrinsic(e: FunctionEmitter, f: Form, a: str, element: str, width: int, signed: bool) -> str:
    to = f"i{width}"
    name = f"llvm.fpto{'s' if signed else 'u'}i.sat.{f.suffix(to)}.{f.suffix(MANGLED[element])}"
    return e.emit(f"call {f(to)} @{name}({f(element)} {a})")


def _limited(
    e: FunctionEmitter, f: Form, a: str, element: str, width: int, signed: bool, from_half: bool
) -> str:
    """Towards zero, limited to the result's range, vectors.

    Each comparison and selection of numbers has the order of x86's maximum and minimum, which are one
    instruction: the second operand is the result where one is NaN.
    """
    t, to, i1 = f(element), f(f"i{width}"), f("i1")
    digits = MANTISSA_BITS[64 if element == "double" else 32] + 1
    magnitude_bits = width - signed
    low, high = (-1 << magnitude_bits if signed else 0), (1 << magnitude_bits) - 1

    def number(value: int) -> str:
        return f.splat(element, f"{float(value):.1f}")

    def integer(value: int) -> str:
        return f.splat(f"i{width}", str(value))

    def chosen(condition: str, operands: str, value: int, result: str) -> str:
        found = e.emit(f"fcmp {condition} {t} {operands}")
        return e.emit(f"select {i1} {found}, {to} {integer(value)}, {to} {result}")

    bounded = a
    if not (signed and from_half and width == 64):
        above = e.emit(f"fcmp ogt {t} {a}, {number(low)}")
        bounded = e.emit(f"select {i1} {above}, {t} {a}, {t} {number(low)}")
    if magnitude_bits <= digits:
        below = e.emit(f"fcmp olt {t} {bounded}, {number(high)}")
        bounded = e.emit(f"select {i1} {below}, {t} {bounded}, {t} {number(high)}")
    result = _converted(e, f, bounded, element, width, signed, from_half)
    if magnitude_bits > digits:
        result = chosen("oge", f"{a}, {number(high + 1)}", high, result)
    if bounded is a:
        result = chosen("ole", f"{a}, {number(low)}", low, result)
    return chosen("uno", f"{a}, {a}", 0, result) if signed else result
