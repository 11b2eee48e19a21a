"""Sizes, alignments and member offsets of types in memory, in bytes.

OpenCL C 6.3.5: a type is aligned to its size, a 3-component vector is as large as one of 4; structures
are laid out as in C, CPacked ones without padding. Opaque types are pointers in memory.
"""

from __future__ import annotations

from ..spirv.enums import StorageClass
from ..spirv.module import Kind, Type

POINTER_BYTES = 8

_cache: dict[Type, tuple[int, int]] = {}


def size_of(type_: Type) -> int:
    """Bytes from one array element of this type to the next."""
    return (_cache.get(type_) or _layout(type_))[0]


def alignment_of(type_: Type) -> int:
    return (_cache.get(type_) or _layout(type_))[1]


def _layout(type_: Type) -> tuple[int, int]:
    kind = type_.kind
    if kind is Kind.INT or kind is Kind.FLOAT:
        size = alignment = max(1, type_.width // 8)
    elif kind is Kind.BOOL:
        size = alignment = 1
    elif kind is Kind.VECTOR:
        count = 4 if type_.count == 3 else type_.count
        size = alignment = size_of(type_.element) * count
    elif kind is Kind.ARRAY:
        size, alignment = size_of(type_.element) * type_.count, alignment_of(type_.element)
    elif kind is Kind.STRUCT:
        offset, alignment = 0, 1
        for member in type_.members:
            if not type_.packed:
                align = alignment_of(member)
                alignment = max(alignment, align)
                offset = -(-offset // align) * align
            offset += size_of(member)
        size = -(-offset // alignment) * alignment
    elif kind is Kind.VOID or kind is Kind.FUNCTION:
        size = alignment = 1
    else:
        size = alignment = POINTER_BYTES
    _cache[type_] = size, alignment
    return size, alignment


def member_offset(type_: Type, index: int) -> int:
    """Where a member of a structure begins."""
    offset = 0
    for i, member in enumerate(type_.members):
        if not type_.packed:
            align = alignment_of(member)
            offset = -(-offset // align) * align
        if i == index:
            return offset
        offset += size_of(member)
    raise IndexError(index)


def step_into(type_: Type, index: int) -> tuple[Type, int]:
    """The type and the byte offset of a component, element or member of a composite type."""
    if type_.kind is Kind.STRUCT:
        return type_.members[index], member_offset(type_, index)
    return type_.element, size_of(type_.element) * index


def is_private(type_: Type) -> bool:
    return type_.kind is Kind.POINTER and type_.storage is StorageClass.Function
