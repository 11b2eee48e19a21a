"""OpenCL.std, section 2.3: integer functions, and bitselect and select of section 2.7."""

from __future__ import annotations

from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Instruction, Kind, Type
from ..expand import mul64
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import Form
from ..llvm.registry import componentwise_extended, lowers_extended
from ..llvm.types import element_type, integer_bits, ir_type
from .arithmetic import clamp_integer, multiply_high

_INTRINSICS = {
    Std.s_max: "smax", Std.u_max: "umax", Std.s_min: "smin", Std.u_min: "umin", Std.popcount: "ctpop",
    Std.s_add_sat: "sadd.sat", Std.u_add_sat: "uadd.sat", Std.s_sub_sat: "ssub.sat",
    Std.u_sub_sat: "usub.sat",
}  # fmt: skip


def _element(i: Instruction) -> str:
    return ir_type(element_type(i.type))


@componentwise_extended(*_INTRINSICS)
def intrinsic(e: FunctionEmitter, f: Form, i: Instruction, *operands: str) -> str:
    """Instructions that LLVM lowers inline."""
    return e.intrinsic(_INTRINSICS[i.operands[1]], f, _element(i), *operands)


@componentwise_extended(Std.s_abs)
def absolute(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """s_abs: the least integer stays what it is, read as unsigned."""
    return e.intrinsic("abs", f, _element(i), a, extra=", i1 false")


@componentwise_extended(Std.u_abs)
def unsigned_absolute(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """u_abs."""
    return a


@componentwise_extended(Std.s_abs_diff, Std.u_abs_diff)
def absolute_difference(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """|a - b| without overflow, as an unsigned number."""
    element = _element(i)
    s = "s" if i.operands[1] == Std.s_abs_diff else "u"
    high = e.intrinsic(f"{s}max", f, element, a, b)
    low = e.intrinsic(f"{s}min", f, element, a, b)
    return e.emit(f"sub {f(element)} {high}, {low}")


@componentwise_extended(Std.s_hadd, Std.u_hadd, Std.s_rhadd, Std.u_rhadd)
def half_add(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """(a + b) >> 1, and (a + b + 1) >> 1, without overflow: what the operands share plus half of the rest."""
    t = f(_element(i))
    number = i.operands[1]
    rounded = number in (Std.s_rhadd, Std.u_rhadd)
    shift = "ashr" if number in (Std.s_hadd, Std.s_rhadd) else "lshr"
    shared = e.emit(f"{'or' if rounded else 'and'} {t} {a}, {b}")
    rest = e.emit(f"xor {t} {a}, {b}")
    rest = e.emit(f"{shift} {t} {rest}, {f.splat(_element(i), '1')}")
    return e.emit(f"{'sub' if rounded else 'add'} {t} {shared}, {rest}")


@componentwise_extended(Std.s_clamp, Std.u_clamp)
def clamp(e: FunctionEmitter, f: Form, i: Instruction, x: str, low: str, high: str) -> str:
    """min(max(x, low), high)."""
    s = "s" if i.operands[1] == Std.s_clamp else "u"
    element = _element(i)
    return e.intrinsic(f"{s}min", f, element, e.intrinsic(f"{s}max", f, element, x, low), high)


@componentwise_extended(Std.clz, Std.ctz)
def count_zeros(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """clz, ctz: of 0 it is the width."""
    name = "ctlz" if i.operands[1] == Std.clz else "cttz"
    return e.intrinsic(name, f, _element(i), a, extra=", i1 false")


@componentwise_extended(Std.rotate)
def rotate(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """rotate: the amount is modulo the width."""
    return e.intrinsic("fshl", f, _element(i), a, a, b)


@componentwise_extended(Std.s_mul_hi, Std.u_mul_hi)
def multiply_high_half(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """mul_hi."""
    return multiply_high(e, f, _element(i), a, b, i.operands[1] == Std.s_mul_hi)


@componentwise_extended(Std.s_mad_hi, Std.u_mad_hi)
def multiply_high_add(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str, c: str) -> str:
    """mad_hi: mul_hi(a, b) + c."""
    element = _element(i)
    high = multiply_high(e, f, element, a, b, i.operands[1] == Std.s_mad_hi)
    return e.emit(f"add {f(element)} {high}, {c}")


@componentwise_extended(Std.s_mad_sat, Std.u_mad_sat)
def multiply_add_saturated(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str, c: str) -> str:
    """mad_sat: a * b + c in twice the width, clamped."""
    width = element_type(i.type).width
    element, wide = _element(i), f"i{2 * width}"
    signed = i.operands[1] == Std.s_mad_sat
    if mul64.pays(f, element):
        return mul64.multiply_add_saturated(e, f, a, b, c, signed)
    extend = "sext" if signed else "zext"
    x, y, z = (e.emit(f"{extend} {f(element)} {o} to {f(wide)}") for o in (a, b, c))
    product = e.emit(f"mul {f(wide)} {x}, {y}")
    total = e.emit(f"add {f(wide)} {product}, {z}")
    total = clamp_integer(e, f, wide, total, width, signed)
    return e.emit(f"trunc {f(wide)} {total} to {f(element)}")


@componentwise_extended(Std.s_mul24, Std.u_mul24)
def multiply_24(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """mul24: operands beyond 24 bits have an undefined product, here the 32-bit one."""
    return e.emit(f"mul {f(_element(i))} {a}, {b}")


@componentwise_extended(Std.s_mad24, Std.u_mad24)
def multiply_add_24(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str, c: str) -> str:
    """mad24."""
    product = e.emit(f"mul {f(_element(i))} {a}, {b}")
    return e.emit(f"add {f(_element(i))} {product}, {c}")


@componentwise_extended(Std.s_upsample, Std.u_upsample)
def upsample(e: FunctionEmitter, f: Form, i: Instruction, high: str, low: str) -> str:
    """upsample: the two halves of a number of twice the width; the low half is unsigned in both."""
    source, element = ir_type(element_type(i.operands[2].type)), _element(i)
    h = e.emit(f"zext {f(source)} {high} to {f(element)}")
    low = e.emit(f"zext {f(source)} {low} to {f(element)}")
    h = e.emit(f"shl {f(element)} {h}, {f.splat(element, str(integer_bits(source)))}")
    return e.emit(f"or {f(element)} {h}, {low}")


# Section 2.7: relational functions.


def _bits(e: FunctionEmitter, f: Form, type_: Type, operand: str) -> tuple[str, str]:
    """The integer type of a component's bits, and an operand reinterpreted as it."""
    element, bits = ir_type(type_), f"i{type_.width}"
    if type_.kind is Kind.INT:
        return bits, operand
    return bits, e.emit(f"bitcast {f(element)} {operand} to {f(bits)}")


@componentwise_extended(Std.bitselect)
def bitselect(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str, c: str) -> str:
    """bitselect: bits of a where those of c are 0, of b where they are 1."""
    type_ = element_type(i.type)
    bits, x = _bits(e, f, type_, a)
    _, y = _bits(e, f, type_, b)
    _, mask = _bits(e, f, type_, c)
    differ = e.emit(f"xor {f(bits)} {x}, {y}")
    chosen = e.emit(f"and {f(bits)} {differ}, {mask}")
    result = e.emit(f"xor {f(bits)} {x}, {chosen}")
    if type_.kind is Kind.INT:
        return result
    return e.emit(f"bitcast {f(bits)} {result} to {f(ir_type(type_))}")


@lowers_extended(Std.select)
def select(e: FunctionEmitter, i: Instruction) -> None:
    """select: of vectors b where the top bit of c is set, of scalars b where c is not 0."""
    a, b, c = i.operands[2:]
    f, t = e.form_of(i.type), ir_type(i.type)
    predicate, zero = ("slt", "zeroinitializer") if f.count else ("ne", "0")
    condition = e.emit(f"icmp {predicate} {e.typed(c)}, {zero}")
    e.define(i, e.emit(f"select {f('i1')} {condition}, {t} {e.operand(b)}, {t} {e.operand(a)}"))
