"""Sizes, alignments and member offsets of types in memory, in bytes.

OpenCL C 6.3.5: a type is aligned to its size, a 3-component vector is as large as one of 4; structures are
laid out as in C, CPacked ones without padding. Opaque types are pointers in memory. Integers without bounds:
sizes that no memory has come out as they are.
"""

from __future__ import annotations

from .module import Kind, Type

POINTER_BYTES = 8


def word_width(width: int) -> int:
    """Bits of the words that an integer of this width takes: one of at most 64, or several of 64."""
    return 64 if width > 32 else 32 if width > 16 else 16 if width > 8 else 8


def is_of_any_width(type_: Type) -> bool:
    """Whether a type is of integers that are no words (SPV_INTEL_arbitrary_precision_integers)."""
    return type_.kind is Kind.INT and type_.width not in (8, 16, 32, 64)


def size_of(type_: Type) -> int:
    """Bytes from one array element of this type to the next."""
    return (type_.layout or _layout(type_))[0]


def alignment_of(type_: Type) -> int:
    """Bytes that an address of this type is a multiple of."""
    return (type_.layout or _layout(type_))[1]


def _layout(type_: Type) -> tuple[int, int]:
    kind = type_.kind
    if kind is Kind.INT:
        alignment = word_width(type_.width) // 8
        size = -(-type_.width // (8 * alignment)) * alignment
    elif kind is Kind.FLOAT:
        size = alignment = type_.width // 8
    elif kind is Kind.BOOL:
        size = alignment = 1
    elif kind is Kind.VECTOR:
        # The next power of two: 4 for 3, and for the odd lengths that LLVM's back end makes of shuffles.
        size = alignment = size_of(type_.element) << (type_.count - 1).bit_length()
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
    type_.layout = size, alignment
    return type_.layout


def member_offsets(type_: Type) -> list[int]:
    """Where the members of a structure begin."""
    offset, out = 0, []
    for member in type_.members:
        if not type_.packed:
            align = alignment_of(member)
            offset = -(-offset // align) * align
        out.append(offset)
        offset += size_of(member)
    return out


def member_offset(type_: Type, index: int) -> int:
    """Where a member of a structure begins."""
    return member_offsets(type_)[index]
