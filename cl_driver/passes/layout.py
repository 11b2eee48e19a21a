"""Where the parts of types are in memory; sizes and alignments are spirv/layout.py's."""

from __future__ import annotations

from ..spirv.enums import StorageClass
from ..spirv.layout import alignment_of, member_offset, size_of
from ..spirv.module import Kind, Type

__all__ = ["alignment_of", "is_private", "member_offset", "size_of", "step_into"]


def step_into(type_: Type, index: int) -> tuple[Type, int]:
    """The type and the byte offset of a component, element or member of a composite type."""
    if type_.kind is Kind.STRUCT:
        return type_.members[index], member_offset(type_, index)
    return type_.element, size_of(type_.element) * index


def is_private(type_: Type) -> bool:
    return type_.kind is Kind.POINTER and type_.storage is StorageClass.Function
