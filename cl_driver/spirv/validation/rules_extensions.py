"""Type rules of instructions of extensions. EXTENSION_RULES: as RULES of rules.py."""

from __future__ import annotations

from ..enums import Op, StorageClass
from ..module import Constant, Instruction, Kind
from .rules import FLOAT, INT, VECTOR, Rule, count, need, pointer, scalar, types
from .rules_access import same_but_pointees


def _read_clock(i: Instruction) -> None:
    type_ = i.type
    width = 64 if type_.kind is INT else 32
    need(
        scalar(type_).kind is INT
        and scalar(type_).width == width
        and (type_.kind is INT or (type_.kind is VECTOR and type_.count == 2)),
        "a clock of type {!r}",
        type_,
    )
    scope = i.operands[0]
    need(scope.type is not None and scope.type.kind is INT and scope.type.width == 32, "not a scope")
    # cl_khr_kernel_clock: "Scope must be Device, Workgroup or Subgroup".
    if isinstance(scope, Constant):
        need(scope.value in (1, 2, 3), "scope {}", scope.value)


def _bfloat16(i: Instruction) -> None:
    (a,) = types(i)
    to_float = i.op == Op.ConvertBF16ToFINTEL
    float_, integer = (i.type, a) if to_float else (a, i.type)
    need(
        scalar(float_).kind is FLOAT
        and scalar(float_).width == 32
        and scalar(integer).kind is INT
        and scalar(integer).width == 16
        and count(float_) == count(integer),
        "{!r} of {!r}",
        i.type,
        a,
    )


def _intel_shuffle(i: Instruction) -> None:
    """SPV_INTEL_subgroups: one value, or two to move through, and a number."""
    *values, number = types(i)
    need(all(value is i.type for value in values), "{!r} of {!r}", i.type, values[0])
    need(scalar(i.type).kind in (INT, FLOAT), "a shuffle of {!r}", i.type)
    need(number.kind is INT and number.width == 32, "a lane number or distance of type {!r}", number)


def _intel_block(i: Instruction) -> None:
    """The pointee is the component of what is read or written."""
    pointee = pointer(i.operands[0]).element
    data = i.type if i.op is Op.SubgroupBlockReadINTEL else i.operands[1].type
    element = scalar(data)
    need(element.kind is INT and pointee in (None, element), "{!r} behind {!r}", data, pointee)


def _function_pointer_call(i: Instruction) -> None:
    need(i.operands, "no function")
    pointee = pointer(i.operands[0], "the function").element
    need(pointee is not None and pointee.kind is Kind.FUNCTION, "a call of what {!r} points to", pointee)
    arguments = i.operands[1:]
    need(i.type is pointee.element, "a result of type {!r}, the function's is {!r}", i.type, pointee.element)
    need(
        len(arguments) == len(pointee.members),
        "{} arguments, the function has {} parameters",
        len(arguments),
        len(pointee.members),
    )
    for argument, parameter in zip(arguments, pointee.members, strict=True):
        need(
            same_but_pointees(argument.type, parameter),
            "an argument of type {!r} for a parameter of {!r}",
            argument.type,
            parameter,
        )


def _variable_array(i: Instruction) -> None:
    (length,) = types(i)
    need(
        i.type.kind is Kind.POINTER
        and i.type.storage is StorageClass.Function
        and i.type.element is not None,
        "an array of type {!r}",
        i.type,
    )
    need(i.type.element.kind not in (Kind.VOID, Kind.FUNCTION), "elements of type {!r}", i.type.element)
    need(length is not None and length.kind is INT, "a length of type {!r}", length)


def _saved_memory(i: Instruction) -> None:
    type_ = i.type if i.op is Op.SaveMemoryINTEL else pointer(i.operands[0])
    need(
        type_.kind is Kind.POINTER and type_.storage is StorageClass.Function,
        "{!r} is not a pointer into Function memory",
        type_,
    )


EXTENSION_RULES: dict[Op, Rule] = {
    Op.SubgroupShuffleINTEL: _intel_shuffle,
    Op.SubgroupShuffleDownINTEL: _intel_shuffle,
    Op.SubgroupShuffleUpINTEL: _intel_shuffle,
    Op.SubgroupShuffleXorINTEL: _intel_shuffle,
    Op.SubgroupBlockReadINTEL: _intel_block,
    Op.SubgroupBlockWriteINTEL: _intel_block,
    Op.VariableLengthArrayINTEL: _variable_array,
    Op.SaveMemoryINTEL: _saved_memory,
    Op.RestoreMemoryINTEL: _saved_memory,
    Op.FunctionPointerCallINTEL: _function_pointer_call,
    Op.ReadClockKHR: _read_clock,
    Op.ConvertFToBF16INTEL: _bfloat16,
    Op.ConvertBF16ToFINTEL: _bfloat16,
}
