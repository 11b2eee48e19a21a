"""Type rules of instructions: what the passes and the code generator rely on.

RULES: {Op: rule(instruction)}; a rule raises RuleError with the rule that is broken. Where clang's back end
writes what the specification does not allow, but means one thing only, the rule allows it and says so.
"""

from __future__ import annotations

from collections.abc import Callable

from ..enums import Op, StorageClass
from ..module import Instruction, Kind, Type, Value
from ..types import is_one_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

INT, FLOAT, BOOL, VECTOR, POINTER, ARRAY, STRUCT = (
    Kind.INT,
    Kind.FLOAT,
    Kind.BOOL,
    Kind.VECTOR,
    Kind.POINTER,
    Kind.ARRAY,
    Kind.STRUCT,
)


Rule: TypeAlias = Callable[[Instruction], None]


class RuleError(Exception):
    """The rule that an instruction breaks."""


def need(condition: object, rule: str, *arguments: object) -> None:
    """Raises RuleError unless the condition holds; the rule is a format for the arguments."""
    if not condition:
        raise RuleError(rule.format(*arguments))


def scalar(type_: Type) -> Type:
    """The type of a vector's components, or of a scalar itself."""
    return type_.element if type_.kind is VECTOR else type_


def count(type_: Type) -> int:
    """The components of a vector; 1 of anything else."""
    return type_.count if type_.kind is VECTOR else 1


def types(instruction: Instruction) -> list[Type]:
    """The types of the operands, all of which are values."""
    return [o.type for o in instruction.operands]


def _same(kind: Kind) -> Rule:
    """Result and operands have one type: scalars or vectors of the kind."""

    def rule(i: Instruction) -> None:
        type_ = i.type
        if scalar(type_).kind is not kind:
            raise RuleError(f"the result has type {type_!r}, not one of {kind.value}")
        for operand in i.operands:
            if operand.type is not type_:
                raise RuleError(f"an operand has type {operand.type!r}, the result {type_!r}")

    return rule


def _shift(i: Instruction) -> None:
    a, b = types(i)
    need(scalar(i.type).kind is INT and a is i.type, "the base has type {!r}, the result {!r}", a, i.type)
    need(scalar(b).kind is INT and count(b) == count(a), "shifted by {!r}", b)


def _compare(kind: Kind) -> Rule:
    def rule(i: Instruction) -> None:
        a, b = types(i)
        need(a is b, "operands of types {!r} and {!r}", a, b)
        need(scalar(a).kind is kind, "operands of type {!r}, not of {}", a, kind.value)
        need(scalar(i.type).kind is BOOL and count(i.type) == count(a), "the result has type {!r}", i.type)

    return rule


def _equality(i: Instruction) -> None:
    """OpIEqual and OpINotEqual; clang compares pointers with them after OpPtrEqual's fashion, too."""
    a, b = types(i)
    if a.kind is POINTER and b.kind is POINTER:
        need(i.type.kind is BOOL, "the result has type {!r}", i.type)
        return
    _compare(INT)(i)


def _pointer_compare(i: Instruction) -> None:
    a, b = types(i)
    need(a.kind is POINTER and b.kind is POINTER, "operands of types {!r} and {!r}", a, b)
    need(i.type.kind in (BOOL, INT), "the result has type {!r}", i.type)


def _convert(to: Kind, from_: Kind) -> Rule:
    def rule(i: Instruction) -> None:
        (a,) = types(i)
        need(
            scalar(i.type).kind is to and scalar(a).kind is from_ and count(a) == count(i.type),
            "{!r} to {!r}",
            a,
            i.type,
        )

    return rule


def _of_each(from_: Kind, to: Kind) -> Rule:
    """Of the components of a scalar or vector one by one, each of which may have any width."""

    def rule(i: Instruction) -> None:
        (a,) = types(i)
        need(
            scalar(a).kind is from_ and scalar(i.type).kind is to and count(a) == count(i.type),
            "{!r} of {!r}",
            i.type,
            a,
        )

    return rule


def _any_all(i: Instruction) -> None:
    """Of integers, too: clang writes any(int4) so; the most significant bits count then."""
    (a,) = types(i)
    need(scalar(a).kind in (BOOL, INT) and i.type.kind is BOOL, "{!r} of {!r}", i.type, a)


def _dot(i: Instruction) -> None:
    a, b = types(i)
    need(
        a is b and a.kind is VECTOR and a.element.kind is FLOAT and i.type is a.element,
        "{!r} of {!r} and {!r}",
        i.type,
        a,
        b,
    )


def _vector_times_scalar(i: Instruction) -> None:
    a, b = types(i)
    need(
        a is i.type and a.kind is VECTOR and a.element.kind is FLOAT and b is a.element,
        "{!r} of {!r} and {!r}",
        i.type,
        a,
        b,
    )


def _select(i: Instruction) -> None:
    condition, a, b = types(i)
    need(a is i.type and b is i.type, "objects of types {!r} and {!r}, the result has {!r}", a, b, i.type)
    need(
        scalar(condition).kind is BOOL and count(condition) in (1, count(i.type)),
        "a condition of type {!r} for {!r}",
        condition,
        i.type,
    )


def bits(type_: Type) -> int | None:
    """Bits of a numeric or pointer type."""
    kind = type_.kind
    if kind is VECTOR:
        inner = bits(type_.element)
        return inner * type_.count if inner else None
    if kind is INT or kind is FLOAT:
        return type_.width
    return 64 if kind is POINTER else None


def _bitcast(i: Instruction) -> None:
    (a,) = types(i)
    if a.kind is POINTER and i.type.kind is POINTER:
        need(is_one_memory(a.storage, i.type.storage), "{!r} to {!r}", a, i.type)
        return
    need(bits(a) is not None and bits(a) == bits(i.type), "{!r} to {!r}", a, i.type)


def pointer(operand: Value, what: str = "the pointer") -> Type:
    """The type of an operand that must be a pointer."""
    type_ = operand.type
    need(type_ is not None and type_.kind is POINTER, "{} has type {!r}", what, type_)
    return type_


def _copy(i: Instruction) -> None:
    need(i.operands[0].type is i.type, "{!r} of {!r}", i.type, i.operands[0].type)


def _copy_logical(i: Instruction) -> None:
    need(i.type.kind in (Kind.ARRAY, Kind.STRUCT), "its result is an array or structure")
    need(_match(i.type, i.operands[0].type), "the types do not match logically")


def _match(a: Type, b: Type) -> bool:
    """Arrays of one length and structures of one number of members match if what they hold does."""
    if a is b or a.kind is not b.kind:
        return a is b
    if a.kind is Kind.ARRAY:
        return a.count == b.count and _match(a.element, b.element)
    if a.kind is not Kind.STRUCT or len(a.members) != len(b.members):
        return False
    return all(map(_match, a.members, b.members))


# SPV_INTEL_function_pointers forbids it of the last one, but clang has functions' addresses in tables so.
_OF_GENERIC = (
    StorageClass.Function, StorageClass.Workgroup, StorageClass.CrossWorkgroup, StorageClass.CodeSectionINTEL,
)  # fmt: skip


def _to_generic(i: Instruction) -> None:
    source = pointer(i.operands[0])
    need(
        i.type.kind is POINTER and i.type.storage is StorageClass.Generic and source.storage in _OF_GENERIC,
        "{!r} to {!r}",
        source,
        i.type,
    )


def _from_generic(i: Instruction) -> None:
    source = pointer(i.operands[0])
    need(i.type.kind is POINTER and source.storage is StorageClass.Generic, "{!r} to {!r}", source, i.type)


def _pointer_to_int(i: Instruction) -> None:
    need(pointer(i.operands[0]) and i.type.kind is INT, "to {!r}", i.type)


def _int_to_pointer(i: Instruction) -> None:
    need(
        i.operands[0].type.kind is INT and i.type.kind is POINTER, "{!r} to {!r}", i.operands[0].type, i.type
    )


def _with_carry(i: Instruction) -> None:
    a, b = types(i)
    need(
        a is b and scalar(a).kind is INT and i.type.kind is STRUCT and i.type.members == (a, a),
        "{!r} of {!r} and {!r}",
        i.type,
        a,
        b,
    )


def _bit_field(i: Instruction) -> None:
    for value in i.operands[:-2]:
        need(value.type is i.type, "{!r} of {!r}", i.type, value.type)
    need(scalar(i.type).kind is INT, "{!r}", i.type)
    for value in i.operands[-2:]:
        need(value.type.kind is INT, "offset or count of type {!r}", value.type)


def _expect(i: Instruction) -> None:
    need(all(o.type is i.type for o in i.operands), "{!r} of {}", i.type, types(i))


RULES: dict[Op, Rule] = {
    **dict.fromkeys(
        (
            Op.IAdd,
            Op.ISub,
            Op.IMul,
            Op.UDiv,
            Op.SDiv,
            Op.UMod,
            Op.SRem,
            Op.SMod,
            Op.BitwiseAnd,
            Op.BitwiseOr,
            Op.BitwiseXor,
            Op.Not,
            Op.SNegate,
            Op.BitReverse,
        ),
        _same(INT),
    ),
    **dict.fromkeys((Op.FAdd, Op.FSub, Op.FMul, Op.FDiv, Op.FRem, Op.FMod, Op.FNegate), _same(FLOAT)),
    **dict.fromkeys(
        (Op.LogicalAnd, Op.LogicalOr, Op.LogicalEqual, Op.LogicalNotEqual, Op.LogicalNot), _same(BOOL)
    ),
    **dict.fromkeys((Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.ShiftRightArithmetic), _shift),
    **dict.fromkeys((Op.IEqual, Op.INotEqual), _equality),
    **dict.fromkeys(
        (
            Op.UGreaterThan,
            Op.SGreaterThan,
            Op.UGreaterThanEqual,
            Op.SGreaterThanEqual,
            Op.ULessThan,
            Op.SLessThan,
            Op.ULessThanEqual,
            Op.SLessThanEqual,
        ),
        _equality,
    ),
    **dict.fromkeys(
        (
            Op.FOrdEqual,
            Op.FUnordEqual,
            Op.FOrdNotEqual,
            Op.FUnordNotEqual,
            Op.FOrdLessThan,
            Op.FUnordLessThan,
            Op.FOrdGreaterThan,
            Op.FUnordGreaterThan,
            Op.FOrdLessThanEqual,
            Op.FUnordLessThanEqual,
            Op.FOrdGreaterThanEqual,
            Op.FUnordGreaterThanEqual,
            Op.LessOrGreater,
            Op.Ordered,
            Op.Unordered,
        ),
        _compare(FLOAT),
    ),
    **dict.fromkeys((Op.PtrEqual, Op.PtrNotEqual, Op.PtrDiff), _pointer_compare),
    **dict.fromkeys((Op.UConvert, Op.SConvert, Op.SatConvertSToU, Op.SatConvertUToS), _convert(INT, INT)),
    Op.FConvert: _convert(FLOAT, FLOAT),
    Op.QuantizeToF16: _convert(FLOAT, FLOAT),
    **dict.fromkeys((Op.ConvertFToS, Op.ConvertFToU), _convert(INT, FLOAT)),
    **dict.fromkeys((Op.ConvertSToF, Op.ConvertUToF), _convert(FLOAT, INT)),
    **dict.fromkeys((Op.IsNan, Op.IsInf, Op.IsFinite, Op.IsNormal, Op.SignBitSet), _of_each(FLOAT, BOOL)),
    Op.Any: _any_all,
    Op.All: _any_all,
    Op.Dot: _dot,
    Op.VectorTimesScalar: _vector_times_scalar,
    Op.Select: _select,
    Op.Bitcast: _bitcast,
    Op.FreezeKHR: _copy,
    Op.ExpectKHR: _expect,
    Op.CopyObject: _copy,
    Op.CopyLogical: _copy_logical,
    Op.PtrCastToGeneric: _to_generic,
    Op.GenericCastToPtr: _from_generic,
    Op.GenericCastToPtrExplicit: _from_generic,
    Op.ConvertPtrToU: _pointer_to_int,
    Op.ConvertUToPtr: _int_to_pointer,
    Op.BitCount: _of_each(INT, INT),
    **dict.fromkeys((Op.IAddCarry, Op.ISubBorrow, Op.UMulExtended, Op.SMulExtended), _with_carry),
    **dict.fromkeys((Op.BitFieldInsert, Op.BitFieldSExtract, Op.BitFieldUExtract), _bit_field),
}
