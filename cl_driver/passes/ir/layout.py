"""Where the parts of types are in memory; sizes and alignments are spirv/layout.py's."""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.layout import alignment_of, member_offset, size_of
from ...spirv.module import Constant, Instruction, Kind, Type, Value

__all__ = ["alignment_of", "is_private", "member_offset", "size_of", "step_into", "walk"]


def step_into(type_: Type, index: int) -> tuple[Type, int]:
    """The type and the byte offset of a component, element or member of a composite type."""
    if type_.kind is Kind.STRUCT:
        return type_.members[index], member_offset(type_, index)
    return type_.element, size_of(type_.element) * index


def is_private(type_: Type) -> bool:
    """Whether a type is a pointer into private memory."""
    return type_.kind is Kind.POINTER and type_.storage is StorageClass.Function


_CHAINS = (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)


def walk(chain: Instruction, steps: list[tuple[Value, int]]) -> int:
    """The constant part of what an access chain adds; the rest is appended as (index, bytes)."""
    type_, indices, offset = chain.operands[0].type.element, list(chain.operands[1:]), 0
    sizes = []
    if chain.op in _CHAINS:
        sizes.append((indices.pop(0), size_of(type_)))
    for index in indices:
        if type_.kind is Kind.STRUCT:
            number = index.value or 0
            offset += member_offset(type_, number)
            type_ = type_.members[number]
        else:
            type_ = type_.element
            sizes.append((index, size_of(type_)))
    for index, size in sizes:
        if isinstance(index, Constant):
            value, width = index.value or 0, index.type.width
            offset += (value - (1 << width if value >> width - 1 else 0)) * size
        else:
            steps.append((index, size))
    return offset
