"""Arithmetic, logical, bit and comparison instructions (SPIR-V 1.6, sections 3.49.13 to 3.49.15)."""

from __future__ import annotations

from ...fast_typing import NamedTuple
from ...spirv.enums import Decoration, Op
from ...spirv.module import Constant, Instruction, Kind, Type, Value
from ..expand import mul64, reciprocals
from ..expand.float_division import divide
from ..expand.product_chains import joins_chains
from ..layout.lanes import LaneEmitter
from ..library.names import library_name
from ..llvm.emitter import FunctionEmitter
from ..llvm.fast_math import in_order
from ..llvm.forms import MANGLED, Form
from ..llvm.registry import componentwise, lowers, lowers_wide
from ..llvm.types import element_type, float_text, integer_bits, ir_type


def _element(value: Value) -> str:
    """The LLVM type of one component of a value."""
    return ir_type(element_type(value.type))


# Integer arithmetic. Overflow wraps unless a decoration says that it does not happen.

_INTEGER = {Op.IAdd: "add", Op.ISub: "sub", Op.IMul: "mul"}


@componentwise(*_INTEGER)
def integer_arithmetic(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """OpIAdd, OpISub, OpIMul."""
    if i.op is not Op.ISub:
        a, b = e.as_loaded(a, b)
    return e.emit(f"{_INTEGER[i.op]}{_no_wrap(i)} {f(_element(i))} {a}, {b}")


def _no_wrap(i: Instruction) -> str:
    """LLVM's flags of what an instruction's decorations promise, each after a space."""
    decorations, flags = i.decorations, ""
    if decorations:
        if Decoration.NoUnsignedWrap in decorations:
            flags = " nuw"
        if Decoration.NoSignedWrap in decorations:
            flags += " nsw"
    return flags


@componentwise(Op.SNegate)
def negate(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpSNegate."""
    return e.emit(f"sub{_no_wrap(i)} {f(_element(i))} {'zeroinitializer' if f.count else 0}, {a}")


class _Division(NamedTuple):
    opcode: str  # LLVM's
    is_signed: bool
    is_remainder: bool


_SREM = _Division("srem", is_signed=True, is_remainder=True)
_DIVISIONS = {
    Op.UDiv: _Division("udiv", is_signed=False, is_remainder=False),
    Op.SDiv: _Division("sdiv", is_signed=True, is_remainder=False),
    Op.UMod: _Division("urem", is_signed=False, is_remainder=True),
    Op.SRem: _SREM,
    Op.SMod: _SREM,
}


@componentwise(*_DIVISIONS)
def integer_division(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """OpUDiv, OpSDiv, OpUMod, OpSRem, OpSMod.

    A division that the CPU would trap on (by zero, or of the least integer by -1) has an undefined result in
    OpenCL C but must not raise a signal: the divisor is replaced by 1.
    """
    opcode, signed, is_remainder = _DIVISIONS[i.op]
    element = _element(i)
    t = f(element)
    a, b = e.frozen(f, element, a), e.frozen(f, element, b)
    is_long_vector = element == "i64" and i.type.kind is Kind.VECTOR
    constant = _constant_divisor(i.operands[1], signed) if mul64.pays(f, element) else None
    if constant is not None:
        divisor = b
        result = mul64.divide_by_constant(e, f, a, constant, signed)
        if is_remainder:
            result = _remainder(e, t, a, result, divisor)
    elif f.count < 4 or isinstance(i.operands[1], Constant) or is_long_vector:
        divisor = _guarded_divisor(e, f, i, a, b, signed)
        result = e.emit(f"{opcode} {t} {a}, {divisor}")
    else:
        factor = None
        if e.is_same_in_lanes(i.operands[1]):
            divisor, factor = e.uniform_divisor(i.operands[1], signed)
        else:
            divisor = _guarded_divisor(e, f, i, a, b, signed)
        result = divide(e, f, element, a, divisor, signed, factor)
        if is_remainder:
            result = _remainder(e, t, a, result, divisor)
    if i.op != Op.SMod:
        return result
    # The sign of the result is to be that of the divisor.
    zero = "zeroinitializer" if f.count else "0"
    signs = e.emit(f"xor {t} {result}, {divisor}")
    differ = e.emit(f"icmp slt {t} {signs}, {zero}")
    inexact = e.emit(f"icmp ne {t} {result}, {zero}")
    adjust = e.emit(f"and {f('i1')} {differ}, {inexact}")
    sum_ = e.emit(f"add {t} {result}, {divisor}")
    return e.emit(f"select {f('i1')} {adjust}, {t} {sum_}, {t} {result}")


def _remainder(e: FunctionEmitter, t: str, a: str, quotient: str, divisor: str) -> str:
    product = e.emit(f"mul {t} {quotient}, {divisor}")
    return e.emit(f"sub {t} {a}, {product}")


def _constant_divisor(value: Value, signed: bool) -> int | None:
    """What all components divide by, if it is one constant and LLVM has nothing better than a product."""
    if not isinstance(value, Constant) or value.value is None:
        return None
    components = value.value if value.type.kind is Kind.VECTOR else (value,)
    numbers = {c.value if isinstance(c, Constant) else None for c in components}
    divisor = numbers.pop()
    if numbers or not divisor:
        return None
    width = element_type(value.type).width
    if signed and divisor >> width - 1:
        divisor -= 1 << width
    return divisor if abs(divisor).bit_count() > 1 else None


def _guarded_divisor(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str, signed: bool) -> str:
    """The divisor, with 1 in its place where the division would trap."""
    width = element_type(i.type).width
    divisor = i.operands[1]
    if isinstance(divisor, Constant) and divisor.value is not None:
        components = divisor.value if divisor.type.kind is Kind.VECTOR else (divisor,)
        minus_one = (1 << width) - 1
        if all(
            isinstance(c, Constant) and c.value and not (signed and c.value == minus_one) for c in components
        ):
            return b
    element = _element(i)
    t, bits = f(element), f("i1")
    traps = e.emit(f"icmp eq {t} {b}, {'zeroinitializer' if f.count else 0}")
    if signed:
        least = e.emit(f"icmp eq {t} {a}, {f.splat(element, str(-1 << width - 1))}")
        minus = e.emit(f"icmp eq {t} {b}, {f.splat(element, '-1')}")
        overflow = e.emit(f"and {bits} {least}, {minus}")
        traps = e.emit(f"or {bits} {traps}, {overflow}")
    return e.emit(f"select {bits} {traps}, {t} {f.splat(element, '1')}, {t} {b}")


# Floating-point arithmetic.

_ONE = float_text(0x3F800000, 32)
_FLOAT = {Op.FAdd: "fadd", Op.FSub: "fsub", Op.FMul: "fmul", Op.FDiv: "fdiv"}


@componentwise(*_FLOAT)
def float_arithmetic(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """OpFAdd, OpFSub, OpFMul, OpFDiv."""
    if i.op is Op.FDiv and a == f.splat("float", _ONE) and reciprocals.pays(e, f, i):
        return reciprocals.reciprocal(e, f, b)
    if i.op is Op.FDiv and reciprocals.pays_for_quotient(e, f, i):
        return reciprocals.quotient(e, f, a, b)
    if i.op in (Op.FAdd, Op.FMul):
        a, b = e.as_loaded(a, b)
    flags = in_order(e.flags(i)) if joins_chains(i) else e.flags(i)
    return e.emit(f"{_FLOAT[i.op]} {flags}{f(_element(i))} {a}, {b}")


@componentwise(Op.VectorTimesScalar)
def vector_times_scalar(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """OpVectorTimesScalar."""
    return e.emit(f"fmul {e.flags(i)}{f(_element(i))} {a}, {b}")


@componentwise(Op.FNegate)
def float_negate(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpFNegate: flips the sign, of NaN too."""
    return e.emit(f"fneg {e.flags(i)}{f(_element(i))} {a}")


@lowers(Op.FRem, Op.FMod)
def float_remainder(e: FunctionEmitter, i: Instruction) -> None:
    """OpFRem (sign of the dividend) and OpFMod (sign of the divisor), by the library's fmod."""
    type_ = element_type(i.type)
    element = ir_type(type_)
    results = []
    for a, b in zip(e.components(i.operands[0]), e.components(i.operands[1]), strict=True):
        result = call_scalar(e, library_name("fmod", type_), type_, [a, b])
        if i.op == Op.FMod:
            zero = float_text(0, type_.width)
            nonzero = e.emit(f"fcmp one {element} {result}, {zero}")
            negative = e.emit(f"fcmp olt {element} {result}, {zero}")
            divisor_negative = e.emit(f"fcmp olt {element} {b}, {zero}")
            differ = e.emit(f"xor i1 {negative}, {divisor_negative}")
            adjust = e.emit(f"and i1 {nonzero}, {differ}")
            sum_ = e.emit(f"fadd {element} {result}, {b}")
            result = e.emit(f"select i1 {adjust}, {element} {sum_}, {element} {result}")
        results.append(result)
    e.define_components(i, results)


def call_scalar(e: FunctionEmitter, name: str, type_: Type, operands: list[str]) -> str:
    """Calls a library function of floating scalars."""
    element = ir_type(type_)
    return e.library_call(name, [(element, operand) for operand in operands], element)


def larger_or_smaller(e: FunctionEmitter, f: Form, element: str, is_max: bool, a: str, b: str) -> str:
    """fmax or fmin without LLVM's, which it narrows to half where both come from one, and calls fmaxf."""
    t, bits = f(element), f("i1")
    chosen = e.emit(f"fcmp {'ogt' if is_max else 'olt'} {t} {a}, {b}")
    only = e.emit(f"fcmp uno {t} {b}, {b}")
    chosen = e.emit(f"or {bits} {chosen}, {only}")
    return e.emit(f"select {bits} {chosen}, {t} {a}, {t} {b}")


@lowers(Op.Dot)
def dot(e: FunctionEmitter, i: Instruction) -> None:
    """OpDot of floating vectors: products summed from the first to the last component."""
    element = _element(i)
    flags = e.flags(i)
    a, b = i.operands[:2]
    f = e.form_of(a.type)
    product = e.emit(f"fmul {flags}{f(element)} {e.operand(a)}, {e.operand(b)}")
    e.define(i, sum_of_components(e, f, element, product, flags))


def sum_of_components(e: FunctionEmitter, f: Form, element: str, vector: str, flags: str = "") -> str:
    """The components of one LLVM vector added up in order."""
    components = [e.emit(f"extractelement {f(element)} {vector}, i32 {k}") for k in range(f.count)]
    total = components[0]
    for component in components[1:]:
        total = e.emit(f"fadd {flags}{element} {total}, {component}")
    return total


@lowers(Op.IAddCarry, Op.ISubBorrow)
def add_carry(e: FunctionEmitter, i: Instruction) -> None:
    """OpIAddCarry, OpISubBorrow: a structure of the wrapped result and the carry, 0 or 1."""
    a, b = i.operands
    result, carry = _add_carry(e, e.form_of(a.type), i, e.operand(a), e.operand(b))
    e.define(i, make_pair(e, i.type, result, carry))


@lowers(Op.UMulExtended, Op.SMulExtended)
def multiply_extended(e: FunctionEmitter, i: Instruction) -> None:
    """OpUMulExtended, OpSMulExtended: a structure of the low and the high half of the product."""
    a, b = i.operands
    low, high = _multiply_extended(e, e.form_of(a.type), i, e.operand(a), e.operand(b))
    e.define(i, make_pair(e, i.type, low, high))


@lowers_wide(Op.IAddCarry, Op.ISubBorrow, Op.UMulExtended, Op.SMulExtended)
def wide_pair(e: LaneEmitter, i: Instruction) -> None:
    """The leaves of the first member, then those of the second."""
    build = _add_carry if i.op in (Op.IAddCarry, Op.ISubBorrow) else _multiply_extended
    pairs = [build(e, e.form, i, a, b) for a, b in zip(*map(e.leaves, i.operands), strict=True)]
    e.define_leaves(i, [first for first, _ in pairs] + [second for _, second in pairs])


def _add_carry(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> tuple[str, str]:
    element = _element(i.operands[0])
    t, bits = f(element), f("i1")
    opcode = "uadd" if i.op == Op.IAddCarry else "usub"
    name = f"@llvm.{opcode}.with.overflow.{f.suffix(MANGLED[element])}"
    pair = e.emit(f"call {{ {t}, {bits} }} {name}({t} {a}, {t} {b})")
    result = e.emit(f"extractvalue {{ {t}, {bits} }} {pair}, 0")
    carry = e.emit(f"extractvalue {{ {t}, {bits} }} {pair}, 1")
    return result, e.emit(f"zext {bits} {carry} to {t}")


def _multiply_extended(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> tuple[str, str]:
    element = _element(i.operands[0])
    low = e.emit(f"mul {f(element)} {a}, {b}")
    return low, multiply_high(e, f, element, a, b, signed=i.op == Op.SMulExtended)


def make_pair(e: FunctionEmitter, type_: Type, first: str, second: str) -> str:
    """A structure value of two members."""
    text = ir_type(type_)
    member = ir_type(type_.members[0])
    partial = e.emit(f"insertvalue {text} poison, {member} {first}, 0")
    return e.emit(f"insertvalue {text} {partial}, {member} {second}, 1")


def multiply_high(e: FunctionEmitter, f: Form, element: str, a: str, b: str, signed: bool) -> str:
    """The upper half of the double-width product."""
    if mul64.pays(f, element):
        return mul64.multiply_high(e, f, a, b, signed)
    width = integer_bits(element)
    wide = f"i{2 * width}"
    extend = "sext" if signed else "zext"
    x = e.emit(f"{extend} {f(element)} {a} to {f(wide)}")
    y = e.emit(f"{extend} {f(element)} {b} to {f(wide)}")
    product = e.emit(f"mul {f(wide)} {x}, {y}")
    high = e.emit(f"lshr {f(wide)} {product}, {f.splat(wide, str(width))}")
    return e.emit(f"trunc {f(wide)} {high} to {f(element)}")


# Bits.

_SHIFTS = {Op.ShiftLeftLogical: "shl", Op.ShiftRightLogical: "lshr", Op.ShiftRightArithmetic: "ashr"}


@componentwise(*_SHIFTS)
def shift(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """Shifts. OpenCL C takes the amount modulo the width (6.3.10); LLVM's result is poison beyond it."""
    element, amount = _element(i), i.operands[1]
    width = element_type(i.type).width
    b = e.resized(f, b, _element(amount), element)
    literal = e.integer(amount)
    if literal is None or literal >= width:
        b = e.emit(f"and {f(element)} {b}, {f.splat(element, str(width - 1))}")
    wrap = _no_wrap(i) if i.op is Op.ShiftLeftLogical else ""
    return e.emit(f"{_SHIFTS[i.op]}{wrap} {f(element)} {a}, {b}")


_BITWISE = {
    Op.BitwiseOr: "or", Op.BitwiseXor: "xor", Op.BitwiseAnd: "and", Op.LogicalOr: "or", Op.LogicalAnd: "and",
    Op.LogicalNotEqual: "xor",
}  # fmt: skip


@componentwise(*_BITWISE)
def bitwise(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """Bitwise and logical binary operations. A mask of all lanes vanishes, so that accesses are plain."""
    if i.op == Op.LogicalAnd and "splat (i1 true)" in (a, b):
        return b if a == "splat (i1 true)" else a
    if i.op == Op.LogicalAnd:
        a, b = e.frozen(f, "i1", a), e.frozen(f, "i1", b)
    result = e.emit(f"{_BITWISE[i.op]} {f(_element(i))} {a}, {b}")
    e.note_frozen(result, a, b)
    return result


@componentwise(Op.Not, Op.LogicalNot)
def bitwise_not(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpNot, OpLogicalNot."""
    element = _element(i)
    return e.emit(f"xor {f(element)} {a}, {f.splat(element, 'true' if element == 'i1' else '-1')}")


@componentwise(Op.LogicalEqual)
def logical_equal(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """OpLogicalEqual."""
    return e.emit(f"icmp eq {f('i1')} {a}, {b}")


@componentwise(Op.BitFieldInsert)
def bit_field_insert(
    e: FunctionEmitter, f: Form, i: Instruction, base: str, insert: str, offset: str, count: str
) -> str:
    """OpBitFieldInsert: base with `count` bits from `offset` on replaced by the low bits of insert."""
    element = _element(i)
    t = f(element)
    offset, mask = _bit_field(e, f, i, offset, count)
    mask = e.emit(f"shl {t} {mask}, {offset}")
    shifted = e.emit(f"shl {t} {insert}, {offset}")
    inserted = e.emit(f"and {t} {shifted}, {mask}")
    outside = e.emit(f"xor {t} {mask}, {f.splat(element, '-1')}")
    kept = e.emit(f"and {t} {base}, {outside}")
    return e.emit(f"or {t} {kept}, {inserted}")


@componentwise(Op.BitFieldUExtract, Op.BitFieldSExtract)
def bit_field_extract(e: FunctionEmitter, f: Form, i: Instruction, base: str, offset: str, count: str) -> str:
    """OpBitFieldUExtract, OpBitFieldSExtract."""
    element = _element(i)
    t = f(element)
    offset, mask = _bit_field(e, f, i, offset, count)
    shifted = e.emit(f"lshr {t} {base}, {offset}")
    field = e.emit(f"and {t} {shifted}, {mask}")
    if i.op == Op.BitFieldUExtract:
        return field
    # Sign extension by (field xor sign) - sign, sign being the field's top bit; nothing for 0 bits.
    above = e.emit(f"lshr {t} {mask}, {f.splat(element, '1')}")
    sign = e.emit(f"xor {t} {mask}, {above}")
    flipped = e.emit(f"xor {t} {field}, {sign}")
    return e.emit(f"sub {t} {flipped}, {sign}")


def _bit_field(e: FunctionEmitter, f: Form, i: Instruction, offset: str, count: str) -> tuple[str, str]:
    """The offset in the type of the base, and a mask of `count` low bits."""
    element = _element(i)
    t, width = f(element), element_type(i.type).width
    offset, count = (
        e.resized(f, operand, _element(value), element)
        for value, operand in zip(i.operands[-2:], (offset, count), strict=True)
    )
    # An offset equal to the width is legal with a count of 0: keep the shift defined.
    offset = e.emit(f"and {t} {offset}, {f.splat(element, str(width - 1))}")
    all_bits = e.emit(f"icmp uge {t} {count}, {f.splat(element, str(width))}")
    count = e.emit(f"and {t} {count}, {f.splat(element, str(width - 1))}")
    above = e.emit(f"shl {t} {f.splat(element, '-1')}, {count}")
    mask = e.emit(f"xor {t} {above}, {f.splat(element, '-1')}")
    return offset, e.emit(f"select {f('i1')} {all_bits}, {t} {f.splat(element, '-1')}, {t} {mask}")


@componentwise(Op.BitReverse)
def bit_reverse(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpBitReverse."""
    return e.intrinsic("bitreverse", f, _element(i), a)


@componentwise(Op.BitCount)
def bit_count(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpBitCount: the result may have another width than the operand."""
    source, element = _element(i.operands[0]), _element(i)
    return e.resized(f, e.intrinsic("ctpop", f, source, a), source, element)


# Comparisons.

_INTEGER_COMPARISONS = {
    Op.IEqual: "eq", Op.INotEqual: "ne", Op.UGreaterThan: "ugt", Op.SGreaterThan: "sgt",
    Op.UGreaterThanEqual: "uge", Op.SGreaterThanEqual: "sge", Op.ULessThan: "ult", Op.SLessThan: "slt",
    Op.ULessThanEqual: "ule", Op.SLessThanEqual: "sle", Op.PtrEqual: "eq", Op.PtrNotEqual: "ne",
}  # fmt: skip


@componentwise(*_INTEGER_COMPARISONS)
def integer_comparison(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """Comparisons of integers, and of pointers.

    clang-22 also compares the bits of floats so, after an atomic compare-exchange of them.
    """
    type_ = element_type(i.operands[0].type)
    if type_.kind is Kind.FLOAT:
        bits = f(f"i{type_.width}")
        a, b = (e.emit(f"bitcast {f(ir_type(type_))} {o} to {bits}") for o in (a, b))
        return e.emit(f"icmp {_INTEGER_COMPARISONS[i.op]} {bits} {a}, {b}")
    return e.emit(f"icmp {_INTEGER_COMPARISONS[i.op]} {f(_element(i.operands[0]))} {a}, {b}")


_FLOAT_COMPARISONS = {
    Op.FOrdEqual: "oeq", Op.FUnordEqual: "ueq", Op.FOrdNotEqual: "one", Op.FUnordNotEqual: "une",
    Op.FOrdLessThan: "olt", Op.FUnordLessThan: "ult", Op.FOrdGreaterThan: "ogt", Op.FUnordGreaterThan: "ugt",
    Op.FOrdLessThanEqual: "ole", Op.FUnordLessThanEqual: "ule", Op.FOrdGreaterThanEqual: "oge",
    Op.FUnordGreaterThanEqual: "uge", Op.Ordered: "ord", Op.Unordered: "uno", Op.LessOrGreater: "one",
}  # fmt: skip


@componentwise(*_FLOAT_COMPARISONS)
def float_comparison(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """Comparisons of floating-point numbers, ordered and unordered."""
    return e.emit(f"fcmp {e.flags(i)}{_FLOAT_COMPARISONS[i.op]} {f(_element(i.operands[0]))} {a}, {b}")


# llvm.is.fpclass masks.
_FLOAT_CLASSES = {Op.IsNan: 0x003, Op.IsInf: 0x204, Op.IsFinite: 0x1F8, Op.IsNormal: 0x108}


@componentwise(*_FLOAT_CLASSES)
def float_class(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpIsNan, OpIsInf, OpIsFinite, OpIsNormal."""
    element = _element(i.operands[0])
    if element == "half" and i.op == Op.IsNormal:
        return _is_normal_half(e, f, a)
    return e.emit(
        f"call {f('i1')} @llvm.is.fpclass.{f.suffix(MANGLED[element])}"
        f"({f(element)} {a}, i32 {_FLOAT_CLASSES[i.op]})"
    )


def _is_normal_half(e: FunctionEmitter, f: Form, a: str) -> str:
    """By the bits: LLVM may make a comparison of llvm.is.fpclass, which not all CPUs have for half."""
    t = f("i16")
    bits = e.emit(f"bitcast {f('half')} {a} to {t}")
    magnitude = e.emit(f"and {t} {bits}, {f.splat('i16', '32767')}")
    above = e.emit(f"sub {t} {magnitude}, {f.splat('i16', '1024')}")  # subnormal numbers wrap
    return e.emit(f"icmp ult {t} {above}, {f.splat('i16', str(0x7C00 - 0x400))}")


@componentwise(Op.SignBitSet)
def sign_bit_set(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpSignBitSet."""
    type_ = element_type(i.operands[0].type)
    bits = e.emit(f"bitcast {f(ir_type(type_))} {a} to {f(f'i{type_.width}')}")
    return e.emit(f"icmp slt {f(f'i{type_.width}')} {bits}, {'zeroinitializer' if f.count else 0}")


@lowers(Op.Any, Op.All)
def any_all(e: FunctionEmitter, i: Instruction) -> None:
    """OpAny, OpAll. A component that is undefined makes no poison of what others decide: passes make them of
    conditions that were asked one after the other."""
    vector = i.operands[0]
    f = e.form_of(vector.type)
    opcode = "or" if i.op == Op.Any else "and"
    frozen = e.emit(f"freeze {e.typed(vector)}")
    e.define(i, e.emit(f"call i1 @llvm.vector.reduce.{opcode}.{f.suffix('i1')}({f('i1')} {frozen})"))


@lowers(Op.Select)
def select(e: FunctionEmitter, i: Instruction) -> None:
    """OpSelect: the condition is a scalar, or a vector of as many components as the objects."""
    condition, true, false = i.operands
    e.define(i, e.emit(f"select {e.typed(condition)}, {e.typed(true)}, {e.typed(false)}"))


def clamp_integer(e: FunctionEmitter, f: Form, wide: str, operand: str, width: int, signed: bool) -> str:
    """A wide signed number (or unsigned, if not signed) limited to what `width` bits hold."""
    if signed:
        operand = e.intrinsic("smin", f, wide, operand, f.splat(wide, str((1 << width - 1) - 1)))
        return e.intrinsic("smax", f, wide, operand, f.splat(wide, str(-1 << width - 1)))
    return e.intrinsic("umin", f, wide, operand, f.splat(wide, str((1 << width) - 1)))
