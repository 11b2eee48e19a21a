"""The argument block of a kernel: where clSetKernelArg puts each argument, and where kernels read it.

Arguments follow one another at their natural alignment. A `local` argument is 8 bytes, the offset of its
memory from the start of the group's local memory; a structure passed by value lies in the block itself.
"""

from __future__ import annotations

from ...records import record
from ...spirv.enums import Decoration, FunctionParameterAttribute, StorageClass
from ...spirv.module import Argument, Kind, Type
from ..llvm.types import alignment_of, size_of

VALUE, GLOBAL, CONSTANT, LOCAL, STRUCT, OPAQUE = range(6)


@record(frozen=True, slots=True)
class BlockEntry:
    """One argument: kind, offset and size in the block; alignment: of the value (LOCAL: of the pointee)."""

    kind: int
    offset: int
    size: int
    alignment: int
    type: Type


def is_by_value(argument: Argument) -> bool:
    """True for a structure passed by value: a Function pointer with the ByVal attribute."""
    type_ = argument.type
    if type_.kind is not Kind.POINTER or type_.storage != StorageClass.Function:
        return False
    attributes = argument.decorations.get(Decoration.FuncParamAttr, ())
    return FunctionParameterAttribute.ByVal in attributes


def argument_block(arguments: list[Argument]) -> tuple[list[BlockEntry], int]:
    """The entries in the order of the arguments, and the size of the block (a multiple of 16)."""
    entries: list[BlockEntry] = []
    offset = 0
    for argument in arguments:
        type_ = argument.type
        if is_by_value(argument):
            kind, size = STRUCT, size_of(type_.element)
            declared = argument.decorations.get(Decoration.Alignment, (1,))[0]
            place = alignment = max(alignment_of(type_.element), declared)
        elif type_.kind is Kind.POINTER:
            kind = {StorageClass.Workgroup: LOCAL, StorageClass.UniformConstant: CONSTANT}.get(
                type_.storage, GLOBAL
            )
            size = place = 8
            alignment = alignment_of(type_.element) if kind == LOCAL and type_.element is not None else 8
        elif type_.kind is Kind.OPAQUE:
            kind, size, alignment, place = OPAQUE, 8, 8, 8
        else:
            kind, size, alignment = VALUE, size_of(type_), alignment_of(type_)
            place = alignment
        offset = -(-offset // place) * place
        entries.append(BlockEntry(kind, offset, size, alignment, type_))
        offset += size
    return entries, -(-offset // 16) * 16
