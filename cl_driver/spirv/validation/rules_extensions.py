"""Type rules of instructions of extensions. EXTENSION_RULES: as RULES of rules.py."""

from __future__ import annotations

from ..enums import Op, StorageClass
from ..module import Constant, InlineAssembly, Instruction, Kind, Operand, Type
from .rules import FLOAT, INT, VECTOR, Rule, count, need, pointer, scalar, types
from .rules_access import same_but_pointees, walk


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
    _call(i, pointee)


def _assembly_call(i: Instruction) -> None:
    assembly = i.operands[0]
    need(isinstance(assembly, InlineAssembly), "a call of what is no OpAsmINTEL")
    _call(i, assembly.type)


def _call(i: Instruction, function: Type) -> None:
    """Of a function with this type: operand 0."""
    arguments = i.operands[1:]
    need(
        i.type is function.element, "a result of type {!r}, the function's is {!r}", i.type, function.element
    )
    need(
        len(arguments) == len(function.members),
        "{} arguments, the function has {} parameters",
        len(arguments),
        len(function.members),
    )
    for argument, parameter in zip(arguments, function.members, strict=True):
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


def _untyped(i: Instruction) -> Type:
    """The type of an instruction whose result is an untyped pointer."""
    need(i.type.kind is Kind.POINTER and i.type.element is None, "a result of type {!r}", i.type)
    return i.type


def _type_operand(i: Instruction, operand: Operand) -> Type:
    need(isinstance(operand, Type), "no type where one is needed")
    need(operand.kind not in (Kind.VOID, Kind.FUNCTION), "memory of type {!r}", operand)
    type_: Type = operand
    return type_


def _untyped_chain(i: Instruction) -> None:
    base_type, base, *indices = i.operands
    type_ = _type_operand(i, base_type)
    need(pointer(base, "the base").storage is _untyped(i).storage, "{!r} of {!r}", i.type, base.type)
    if i.op in (Op.UntypedPtrAccessChainKHR, Op.UntypedInBoundsPtrAccessChainKHR):
        first = indices.pop(0).type
        need(first is not None and first.kind is INT, "element of type {!r}", first)
    walk(type_, indices)


def _untyped_variable(i: Instruction) -> None:
    storage, *rest = i.operands
    need(_untyped(i).storage is StorageClass.Function, "a variable of type {!r} in a function", i.type)
    need(storage == StorageClass.Function, "storage class {!r} in a function", storage)
    need(rest, "no type of data")
    type_ = _type_operand(i, rest[0])
    need(len(rest) < 2 or rest[1].type is type_, "an initializer of another type")


def _untyped_array(i: Instruction) -> None:
    type_, length = i.operands
    _type_operand(i, type_)
    need(_untyped(i).storage is StorageClass.Function, "an array of type {!r}", i.type)
    need(length.type is not None and length.type.kind is INT, "a length of type {!r}", length.type)


def _untyped_prefetch(i: Instruction) -> None:
    pointer(i.operands[0])


def _untyped_copy(i: Instruction) -> None:
    need(len(i.operands) >= 7, "too few operands")
    for operand in i.operands[1:3]:
        need(pointer(operand).element is None, "a copy by {!r}", operand.type)
    need(isinstance(i.operands[3], Constant), "a size of elements that is not constant")


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
    **dict.fromkeys(
        (
            Op.UntypedAccessChainKHR,
            Op.UntypedInBoundsAccessChainKHR,
            Op.UntypedPtrAccessChainKHR,
            Op.UntypedInBoundsPtrAccessChainKHR,
        ),
        _untyped_chain,
    ),
    Op.UntypedVariableKHR: _untyped_variable,
    Op.UntypedVariableLengthArrayINTEL: _untyped_array,
    Op.UntypedPrefetchKHR: _untyped_prefetch,
    Op.UntypedGroupAsyncCopyKHR: _untyped_copy,
    Op.FunctionPointerCallINTEL: _function_pointer_call,
    Op.AsmCallINTEL: _assembly_call,
    Op.ReadClockKHR: _read_clock,
    Op.ConvertFToBF16INTEL: _bfloat16,
    Op.ConvertBF16ToFINTEL: _bfloat16,
}
