"""OpenCL.std, section 2.4: geometric functions.

Lengths are formed so that nothing overflows or vanishes on the way: float (and half) vectors in double,
double vectors scaled by a power of two near their largest component.
"""

from __future__ import annotations

from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Instruction, Type
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import SCALAR, Form
from ..llvm.registry import lowers_extended
from ..llvm.types import element_type, float_text, ir_type
from .arithmetic import sum_of_components
from .conversion import convert_float


@lowers_extended(Std.cross)
def cross(e: FunctionEmitter, i: Instruction) -> None:
    """cross of 3- or 4-component vectors; a fourth component becomes 0."""
    a, b = i.operands[2:]
    type_ = element_type(i.type)
    t = ir_type(type_)
    flags = e.flags(i)
    x, y = e.components(a), e.components(b)

    def minor(j: int, k: int) -> str:
        first = e.emit(f"fmul {flags}{t} {x[j]}, {y[k]}")
        second = e.emit(f"fmul {flags}{t} {x[k]}, {y[j]}")
        return e.emit(f"fsub {flags}{t} {first}, {second}")

    components = [minor(1, 2), minor(2, 0), minor(0, 1)]
    if i.type.count == 4:
        components.append(float_text(0, type_.width))
    e.define_components(i, components)


@lowers_extended(Std.distance, Std.fast_distance)
def distance(e: FunctionEmitter, i: Instruction) -> None:
    """distance, fast_distance: the length of the difference, which is formed in the wide type."""
    a, b = i.operands[2:]
    type_ = element_type(a.type)
    f = e.form_of(a.type)
    wide, x = _widen(e, f, type_, e.operand(a))
    _, y = _widen(e, f, type_, e.operand(b))
    difference = e.emit(f"fsub {f(wide)} {x}, {y}")
    e.define(i, _narrow(e, type_, _length(e, f, type_, difference)))


@lowers_extended(Std.length, Std.fast_length)
def length(e: FunctionEmitter, i: Instruction) -> None:
    """length, fast_length."""
    a = i.operands[2]
    type_ = element_type(a.type)
    f = e.form_of(a.type)
    _, x = _widen(e, f, type_, e.operand(a))
    e.define(i, _narrow(e, type_, _length(e, f, type_, x)))


@lowers_extended(Std.normalize, Std.fast_normalize)
def normalize(e: FunctionEmitter, i: Instruction) -> None:
    """normalize, fast_normalize: the zero vector stays; of infinite components the signs are normalised.

    OpenCL C 3.0, section 7.5.1: infinite components count as 1 with their sign, finite ones beside them as 0.
    """
    a = i.operands[2]
    type_ = element_type(a.type)
    f = e.form_of(a.type)
    wide, x = _widen(e, f, type_, e.operand(a))
    x = _finite_direction(e, f, wide, x)
    if type_.width == 64:
        x, _ = _scale(e, f, x)
    square = _dot(e, f, wide, x, x)
    root = e.intrinsic("sqrt", SCALAR, wide, square)
    is_zero = e.emit(f"fcmp oeq {wide} {root}, {_zero(wide)}")
    root = e.emit(f"select i1 {is_zero}, {wide} {_one(wide)}, {wide} {root}")
    divisor = e.splat(root, wide, f) if f.count else root
    result = e.emit(f"fdiv {f(wide)} {x}, {divisor}")
    e.define(i, convert_float(e, f, result, 64, type_.width) if type_.width < 64 else result)


def _zero(wide: str) -> str:
    return float_text(0, 64 if wide == "double" else 32)


def _one(wide: str) -> str:
    return "1.0" if wide in ("double", "float") else float_text(0x3C00, 16)


def _widen(e: FunctionEmitter, f: Form, type_: Type, operand: str) -> tuple[str, str]:
    """The type in which to compute, and the operand in it."""
    if type_.width == 64:
        return "double", operand
    return "double", convert_float(e, f, operand, type_.width, 64)


def _narrow(e: FunctionEmitter, type_: Type, operand: str) -> str:
    return operand if type_.width == 64 else convert_float(e, SCALAR, operand, 64, type_.width)


def _dot(e: FunctionEmitter, f: Form, wide: str, a: str, b: str) -> str:
    product = e.emit(f"fmul {f(wide)} {a}, {b}")
    return sum_of_components(e, f, wide, product) if f.count else product


def _length(e: FunctionEmitter, f: Form, type_: Type, x: str) -> str:
    """The length of a vector of doubles."""
    if type_.width < 64:
        return e.intrinsic("sqrt", SCALAR, "double", _dot(e, f, "double", x, x))
    scaled, exponent = _scale(e, f, x)
    root = e.intrinsic("sqrt", SCALAR, "double", _dot(e, f, "double", scaled, scaled))
    # Undo the scaling in two steps, since 2^exponent itself may not be a number.
    half = e.emit(f"ashr i64 {exponent}, 1")
    rest = e.emit(f"sub i64 {exponent}, {half}")
    result = e.emit(f"fmul double {root}, {_power_of_two(e, half)}")
    result = e.emit(f"fmul double {result}, {_power_of_two(e, rest)}")
    # An infinite component makes the length infinite even beside a NaN (hypot's rule).
    magnitude = e.intrinsic("fabs", f, "double", x)
    infinity = float_text(0x7FF << 52, 64)
    infinite = e.emit(f"fcmp oeq {f('double')} {magnitude}, {f.splat('double', infinity)}")
    if f.count:
        infinite = e.emit(f"call i1 @llvm.vector.reduce.or.{f.suffix('i1')}({f('i1')} {infinite})")
    return e.emit(f"select i1 {infinite}, double {infinity}, double {result}")


def _scale(e: FunctionEmitter, f: Form, x: str) -> tuple[str, str]:
    """x * 2^-exponent, its largest component between 1 and 2 or all components zero, and the exponent."""
    magnitude = e.intrinsic("fabs", f, "double", x)
    bits = e.emit(f"bitcast {f('double')} {magnitude} to {f('i64')}")
    if f.count:
        bits = e.emit(f"call i64 @llvm.vector.reduce.umax.{f.suffix('i64')}({f('i64')} {bits})")
    exponent = e.emit(f"lshr i64 {bits}, 52")
    # A subnormal vector is scaled as if by the least normal exponent, then once more by 2^52.
    exponent = e.emit(f"sub i64 {exponent}, 1023")
    exponent = e.intrinsic("smin", SCALAR, "i64", exponent, "1023")
    is_tiny = e.emit(f"icmp slt i64 {exponent}, -1022")
    exponent = e.emit(f"select i1 {is_tiny}, i64 -1074, i64 {exponent}")
    negated = e.emit(f"sub i64 0, {exponent}")
    half = e.emit(f"ashr i64 {negated}, 1")
    rest = e.emit(f"sub i64 {negated}, {half}")
    for power in (half, rest):
        factor = _power_of_two(e, power)
        factor = e.splat(factor, "double", f) if f.count else factor
        x = e.emit(f"fmul {f('double')} {x}, {factor}")
    return x, exponent


def _power_of_two(e: FunctionEmitter, exponent: str) -> str:
    """2^exponent, the exponent being that of a normal number."""
    biased = e.emit(f"add i64 {exponent}, 1023")
    bits = e.emit(f"shl i64 {biased}, 52")
    return e.emit(f"bitcast i64 {bits} to double")


def _finite_direction(e: FunctionEmitter, f: Form, wide: str, x: str) -> str:
    """x, or if a component is infinite, 1 with its sign for each of these and 0 for the others."""
    magnitude = e.intrinsic("fabs", f, wide, x)
    infinity = float_text(0x7FF << 52, 64)
    infinite = e.emit(f"fcmp oeq {f(wide)} {magnitude}, {f.splat(wide, infinity)}")
    any_ = infinite
    if f.count:
        any_ = e.emit(f"call i1 @llvm.vector.reduce.or.{f.suffix('i1')}({f('i1')} {infinite})")
    number = e.emit(
        f"select {f('i1')} {infinite}, {f(wide)} {f.splat(wide, '1.0')}, {f(wide)} {f.splat(wide, '0.0')}"
    )
    is_nan = e.emit(f"fcmp uno {f(wide)} {x}, {f.splat(wide, '0.0')}")
    signed = e.intrinsic("copysign", f, wide, number, x)
    signed = e.emit(f"select {f('i1')} {is_nan}, {f(wide)} {x}, {f(wide)} {signed}")
    return e.emit(f"select i1 {any_}, {f(wide)} {signed}, {f(wide)} {x}")
