"""What the instructions of SPIR-V that compute values mean: {Op: function(machine, instruction, operands)}.

Operands are values already, but for literals. Component-wise operations are given once, for scalars.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ..passes.ir.layout import size_of, step_into
from ..spirv.enums import Decoration, Op, StorageClass
from ..spirv.module import Instruction, Kind, Type
from . import numbers as n
from .memory import Datum, InterpreterError, is_encoded, zero

if TYPE_CHECKING:
    from .machine import Machine

# What an instruction gives for the values of its operands.
Rule: TypeAlias = "Callable[[Machine, Instruction, list[Datum]], Datum]"
# The same of one component: of numbers, and of their width where that matters.
Scalar: TypeAlias = Callable[..., Any]

RULES: dict[Op, Rule] = {}


def rule(*ops: Op) -> Callable[[Rule], Rule]:
    """Registers a function for these instructions."""

    def register(function: Rule) -> Rule:
        for op in ops:
            RULES[op] = function
        return function

    return register


def scalar_of(type_: Type) -> Type:
    """The type of a vector's components, or of a scalar itself."""
    return type_.element if type_.kind is Kind.VECTOR else type_


def each(function: Scalar, type_: Type, *values: Datum) -> Datum:
    """Applies a scalar function to all components."""
    if type_.kind is Kind.VECTOR:
        return tuple(function(*components) for components in zip(*values, strict=True))
    return function(*values)


def _integer(op: Op, function: Scalar) -> None:
    """function(a, b, width) of unsigned operands to a number that is masked."""

    @rule(op)
    def run(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
        width = scalar_of(instruction.type).width
        return each(lambda *v: n.mask(function(*v, width), width), instruction.type, *operands)


def _divisor(function: Scalar) -> Scalar:
    def checked(a: int, b: int, width: int) -> int:
        if b == 0:
            raise InterpreterError("integer division by zero")
        result: int = function(a, b, width)
        return result

    return checked


def _signs(function: Scalar) -> Scalar:
    return lambda a, b, w: function(n.signed(a, w), n.signed(b, w))


def _floor_mod(a: int, b: int) -> int:
    return a % b


_INTEGER: dict[Op, Scalar] = {
    Op.IAdd: lambda a, b, w: a + b,
    Op.ISub: lambda a, b, w: a - b,
    Op.IMul: lambda a, b, w: a * b,
    Op.UDiv: _divisor(lambda a, b, w: a // b),
    Op.UMod: _divisor(lambda a, b, w: a % b),
    Op.SDiv: _divisor(_signs(n.truncated_division)),
    Op.SRem: _divisor(_signs(lambda a, b: a - b * n.truncated_division(a, b))),
    Op.SMod: _divisor(_signs(_floor_mod)),
    Op.SNegate: lambda a, w: -a,
    Op.Not: lambda a, w: ~a,
    Op.BitwiseAnd: lambda a, b, w: a & b,
    Op.BitwiseOr: lambda a, b, w: a | b,
    Op.BitwiseXor: lambda a, b, w: a ^ b,
    # A shift by the width or more is undefined; OpenCL C takes the amount modulo the width.
    Op.ShiftLeftLogical: lambda a, b, w: a << (b % w),
    Op.ShiftRightLogical: lambda a, b, w: a >> (b % w),
    Op.ShiftRightArithmetic: lambda a, b, w: n.signed(a, w) >> (b % w),
    Op.BitReverse: lambda a, w: int(f"{a:0{w}b}"[::-1], 2),
}
for _op, _function in _INTEGER.items():
    _integer(_op, _function)


@rule(Op.BitCount)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return each(lambda a: a.bit_count(), instruction.type, *operands)


@rule(Op.BitFieldInsert)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    base, insert, offset, count = operands
    field = ((1 << count) - 1) << offset
    return each(lambda b, i: (b & ~field) | (i << offset & field), instruction.type, base, insert)


@rule(Op.BitFieldSExtract, Op.BitFieldUExtract)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    base, offset, count = operands
    width = scalar_of(instruction.type).width

    def extract(value: int) -> int:
        value = value >> offset & ((1 << count) - 1)
        if instruction.op is Op.BitFieldSExtract and count and value >> (count - 1):
            value -= 1 << count
        return n.mask(value, width)

    return each(extract, instruction.type, base)


@rule(Op.IAddCarry, Op.ISubBorrow, Op.UMulExtended, Op.SMulExtended)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    type_ = instruction.type.members[0]
    width = scalar_of(type_).width

    def both(a: int, b: int) -> tuple[int, int]:
        if instruction.op is Op.IAddCarry:
            return n.mask(a + b, width), (a + b) >> width
        if instruction.op is Op.ISubBorrow:
            return n.mask(a - b, width), int(a < b)
        product = a * b if instruction.op is Op.UMulExtended else n.signed(a, width) * n.signed(b, width)
        return n.mask(product, width), n.mask(product >> width, width)

    pairs = each(both, type_, *operands)
    return tuple(zip(*pairs, strict=True)) if type_.kind is Kind.VECTOR else pairs


def _floating(op: Op, function: Scalar) -> None:
    @rule(op)
    def run(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
        width = scalar_of(instruction.type).width
        return each(lambda *v: n.to_width(function(*v), width), instruction.type, *operands)


def _floor_mod_float(a: float, b: float) -> float:
    result = n.remainder(a, b)
    return result + b if result and (result < 0) != (b < 0) else result


_FLOAT: dict[Op, Scalar] = {
    Op.FAdd: lambda a, b: a + b,
    Op.FSub: lambda a, b: a - b,
    Op.FMul: lambda a, b: a * b,
    Op.FDiv: n.divide,
    Op.FRem: n.remainder,
    Op.FMod: _floor_mod_float,
    Op.FNegate: lambda a: -a,
}
for _op, _function in _FLOAT.items():
    _floating(_op, _function)


@rule(Op.VectorTimesScalar)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    vector, scalar = operands
    width = instruction.type.element.width
    return tuple(n.to_width(v * scalar, width) for v in vector)


@rule(Op.Dot)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width = instruction.type.width
    total = 0.0
    for i, (a, b) in enumerate(zip(*operands, strict=True)):
        product = n.to_width(a * b, width)
        total = product if i == 0 else n.to_width(total + product, width)
    return total


# Dot products of integers: whether the components of either vector have signs.
_DOTS = {
    Op.SDot: (True, True), Op.UDot: (False, False), Op.SUDot: (True, False),
    Op.SDotAccSat: (True, True), Op.UDotAccSat: (False, False), Op.SUDotAccSat: (True, False),
}  # fmt: skip
_SATURATING_DOTS = (Op.SDotAccSat, Op.UDotAccSat, Op.SUDotAccSat)


@rule(*_DOTS)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    signs = _DOTS[instruction.op]
    width = instruction.type.width
    vectors = []
    for value, operand, signed in zip(operands[:2], instruction.operands[:2], signs, strict=True):
        packed = operand.type.kind is not Kind.VECTOR
        parts = [n.mask(value >> 8 * i, 8) for i in range(4)] if packed else value
        source = 8 if packed else operand.type.element.width
        vectors.append([n.signed(part, source) if signed else part for part in parts])
    total = sum(a * b for a, b in zip(*vectors, strict=True))
    if instruction.op in _SATURATING_DOTS:
        total += n.signed(operands[2], width) if signs[0] else operands[2]
        low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signs[0] else (0, (1 << width) - 1)
        total = min(max(total, low), high)
    return n.mask(total, width)


def _compare(op: Op, function: Scalar, is_signed: bool = False) -> None:
    @rule(op)
    def run(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
        if is_signed:
            width = scalar_of(instruction.operands[0].type).width
            return each(
                lambda a, b: function(n.signed(a, width), n.signed(b, width)), instruction.type, *operands
            )
        return each(function, instruction.type, *operands)


def _unordered(function: Scalar) -> Scalar:
    return lambda a, b: math.isnan(a) or math.isnan(b) or function(a, b)


for _name, _function in {
    "Equal": lambda a, b: a == b,
    "NotEqual": lambda a, b: a != b,
    "LessThan": lambda a, b: a < b,
    "LessThanEqual": lambda a, b: a <= b,
    "GreaterThan": lambda a, b: a > b,
    "GreaterThanEqual": lambda a, b: a >= b,
}.items():
    if _name in ("Equal", "NotEqual"):
        _compare(Op["I" + _name], _function)
    else:
        _compare(Op["U" + _name], _function)
        _compare(Op["S" + _name], _function, is_signed=True)
    _ordered = _function if _name != "NotEqual" else lambda a, b: a < b or a > b
    _compare(Op["FOrd" + _name], _ordered)
    _compare(Op["FUnord" + _name], _unordered(_function))

_TESTS: dict[Op, Scalar] = {
    Op.LogicalEqual: lambda a, b: a == b,
    Op.LogicalNotEqual: lambda a, b: a != b,
    Op.LogicalAnd: lambda a, b: a and b,
    Op.LogicalOr: lambda a, b: a or b,
    Op.LogicalNot: lambda a: not a,
    Op.IsNan: math.isnan,
    Op.IsInf: math.isinf,
    Op.IsFinite: math.isfinite,
    Op.SignBitSet: lambda a: math.copysign(1.0, a) < 0,
    Op.LessOrGreater: lambda a, b: a < b or a > b,
    Op.Ordered: lambda a, b: not (math.isnan(a) or math.isnan(b)),
    Op.Unordered: lambda a, b: math.isnan(a) or math.isnan(b),
    Op.PtrEqual: lambda a, b: a == b,
    Op.PtrNotEqual: lambda a, b: a != b,
}
for _op, _function in _TESTS.items():
    _compare(_op, _function)


@rule(Op.IsNormal)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    least = {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}[scalar_of(instruction.operands[0].type).width]
    return each(lambda a: math.isfinite(a) and abs(a) >= least, instruction.type, *operands)


def _truths(instruction: Instruction, value: Datum) -> list[Datum]:
    """clang gives OpAny and OpAll integers too, of which the most significant bits count."""
    type_ = instruction.operands[0].type
    parts = value if type_.kind is Kind.VECTOR else (value,)
    width = scalar_of(type_).width
    return [part >> width - 1 if width else part for part in parts]


@rule(Op.Any)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return any(_truths(instruction, operands[0]))


@rule(Op.All)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return all(_truths(instruction, operands[0]))


@rule(Op.Select)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    condition, a, b = operands
    if isinstance(condition, tuple):
        return tuple(x if c else y for c, x, y in zip(condition, a, b, strict=True))
    return a if condition else b


# Conversions


def _rounding(instruction: Instruction, default: int) -> int:
    mode = instruction.decorations.get(Decoration.FPRoundingMode)
    return default if mode is None else int(mode[0] if isinstance(mode, tuple) else mode)


@rule(Op.ConvertFToS, Op.ConvertFToU)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width = scalar_of(instruction.type).width
    mode = _rounding(instruction, n.RTZ)
    saturate = Decoration.SaturatedConversion in instruction.decorations
    is_signed = instruction.op is Op.ConvertFToS
    return each(lambda v: n.to_integer(v, width, is_signed, mode, saturate), instruction.type, *operands)


@rule(Op.ConvertSToF, Op.ConvertUToF)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width = scalar_of(instruction.type).width
    source = scalar_of(instruction.operands[0].type).width
    mode = _rounding(instruction, n.RTE)
    if instruction.op is Op.ConvertSToF:
        return each(lambda v: n.round_exact(n.signed(v, source), width, mode), instruction.type, *operands)
    return each(lambda v: n.round_exact(v, width, mode), instruction.type, *operands)


@rule(Op.FConvert)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width = scalar_of(instruction.type).width
    mode = _rounding(instruction, n.RTE)
    return each(lambda v: n.round_float(v, width, mode), instruction.type, *operands)


@rule(Op.UConvert, Op.SConvert, Op.SatConvertSToU, Op.SatConvertUToS)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width = scalar_of(instruction.type).width
    source = scalar_of(instruction.operands[0].type).width
    op = instruction.op
    from_signed = op in (Op.SConvert, Op.SatConvertSToU)
    saturate = op in (Op.SatConvertSToU, Op.SatConvertUToS)
    if Decoration.SaturatedConversion in instruction.decorations:
        saturate = True
    to_signed = op in (Op.SConvert, Op.SatConvertUToS)
    low = -(1 << (width - 1)) if to_signed else 0
    high = (1 << (width - 1)) - 1 if to_signed else (1 << width) - 1

    def convert(value: int) -> int:
        if from_signed:
            value = n.signed(value, source)
        if saturate:
            value = min(max(value, low), high)
        return n.mask(value, width)

    return each(convert, instruction.type, *operands)


@rule(Op.ConvertPtrToU, Op.ConvertUToPtr)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    type_ = instruction.type
    return n.mask(operands[0], type_.width) if type_.kind is Kind.INT else operands[0]


@rule(Op.PtrCastToGeneric, Op.GenericCastToPtr, Op.CopyObject, Op.CopyLogical, Op.ExpectKHR)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return operands[0]


@rule(Op.AssumeTrueKHR)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> None:
    if not operands[0]:
        raise InterpreterError("OpAssumeTrueKHR of what is false")


@rule(Op.SizeOf)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return size_of(instruction.operands[0].type.element)


@rule(Op.GenericCastToPtrExplicit)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    storage = machine.memory.storage_of(operands[0]) if operands[0] else None
    return operands[0] if storage == instruction.type.storage else 0


@rule(Op.GenericPtrMemSemantics)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    semantics = {int(StorageClass.Workgroup): 0x100, int(StorageClass.CrossWorkgroup): 0x200}
    return semantics.get(machine.memory.storage_of(operands[0]), 0)


@rule(Op.Bitcast)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    source, target = instruction.operands[0].type, instruction.type
    plain = (Kind.POINTER, Kind.OPAQUE)
    if source.kind in plain and target.kind in plain:
        return operands[0]
    return from_bits(to_bits(operands[0], source), target)


def to_bits(value: Datum, type_: Type) -> int:
    """All bits of a scalar or vector, component 0 lowest; 3-vectors have 3 components."""
    if type_.kind is Kind.VECTOR:
        width = type_.element.width
        return sum(to_bits(v, type_.element) << (i * width) for i, v in enumerate(value))
    is_float = type_.kind is Kind.FLOAT and not is_encoded(type_)
    return n.float_to_bits(value, type_.width) if is_float else value


def from_bits(bits: int, type_: Type) -> Datum:
    """The scalar or vector of a type that bits stand for, as to_bits gives them."""
    if type_.kind is Kind.VECTOR:
        width = type_.element.width
        return tuple(from_bits(n.mask(bits >> (i * width), width), type_.element) for i in range(type_.count))
    is_float = type_.kind is Kind.FLOAT and not is_encoded(type_)
    return n.float_from_bits(bits, type_.width) if is_float else bits


# Composites


@rule(Op.CompositeConstruct)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    if instruction.type.kind is not Kind.VECTOR:
        return tuple(operands)
    return tuple(c for o in operands for c in (o if isinstance(o, tuple) else (o,)))


@rule(Op.CompositeExtract)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    value, *indices = operands
    for index in indices:
        value = value[index]
    return value


@rule(Op.CompositeInsert)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    inserted, base, *indices = operands

    def insert(value: Datum, indices: list[int]) -> Datum:
        if not indices:
            return inserted
        first, *rest = indices
        return tuple(insert(v, rest) if i == first else v for i, v in enumerate(value))

    return insert(base, indices)


@rule(Op.VectorExtractDynamic)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    vector, index = operands
    return vector[index % len(vector)]


@rule(Op.VectorInsertDynamic)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    vector, component, index = operands
    return tuple(component if i == index else v for i, v in enumerate(vector))


@rule(Op.VectorShuffle)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    a, b, *choice = operands
    both = a + b
    return tuple(zero(instruction.type.element) if i == 0xFFFFFFFF else both[i] for i in choice)


# Addresses


@rule(Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    base = instruction.operands[0]
    address = operands[0]
    indices = list(zip(instruction.operands[1:], operands[1:], strict=True))
    type_ = base.type.element
    if instruction.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
        index, value = indices.pop(0)
        address += n.signed(value, index.type.width) * size_of(type_)
    for index, value in indices:
        type_, step = step_into(type_, n.signed(value, index.type.width))
        address += step
    return n.mask(address, 64)


@rule(Op.PtrDiff)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    a, b = operands
    return n.mask((a - b) // size_of(instruction.operands[0].type.element), instruction.type.width)
