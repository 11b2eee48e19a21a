"""Memory as segments of bytes in one made-up address space, and typed values in it.

A pointer is an int: the segment's number above bit 40, the offset below. Segments come per storage class in
ranges of numbers, so that a generic pointer knows what it points to. Every access is checked.

Values: BOOL bool; INT int, unsigned; FLOAT float, exactly representable in the type; VECTOR, ARRAY,
STRUCT tuple; POINTER int; OPAQUE an int too. FLOAT of an encoding of its own, as bfloat16, int.
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

from ..passes.ir.layout import member_offset, size_of
from ..spirv.enums import StorageClass
from ..spirv.module import Kind, Type

OFFSET_BITS = 40
OFFSET_MASK = (1 << OFFSET_BITS) - 1
CLASS_SHIFT = 18  # of a segment's number

_FLOAT_FORMAT = {16: "<e", 32: "<f", 64: "<d"}


# A value, in the form that is described above.
Datum: TypeAlias = Any


class InterpreterError(Exception):
    """The program did something undefined, or something that the interpreter does not know."""


def is_encoded(type_: Type) -> bool:
    """Whether values of a floating-point type are their bits, as an int: bfloat16."""
    return type_.kind is Kind.FLOAT and bool(type_.operands)


class Memory:
    """All segments of one run."""

    def __init__(self) -> None:
        self.segments: dict[int, memoryview] = {}
        self._next: dict[int, int] = {}

    def allocate(self, size: int, storage: StorageClass) -> int:
        """A new zero segment; returns its address."""
        return self.adopt(memoryview(bytearray(size)), storage)

    def adopt(self, data: memoryview, storage: StorageClass) -> int:
        """Makes somebody's bytes a segment, which stores then change."""
        serial = self._next.get(storage, 1)
        self._next[storage] = serial + 1
        number = (storage + 1) << CLASS_SHIFT | serial
        self.segments[number] = data
        return number << OFFSET_BITS

    def free(self, address: int) -> None:
        """Ends a segment: what is accessed through its address from now on is an error."""
        del self.segments[address >> OFFSET_BITS]

    def storage_of(self, address: int) -> int:
        """The storage class of what a pointer points to, as a number."""
        return (address >> OFFSET_BITS >> CLASS_SHIFT) - 1

    def view(self, address: int, size: int) -> memoryview:
        """The bytes at an address, or InterpreterError if not all of them exist."""
        segment = self.segments.get(address >> OFFSET_BITS)
        offset = address & OFFSET_MASK
        if segment is None or offset + size > len(segment):
            raise InterpreterError(f"access of {size} bytes at {address:#x}, outside of all memory")
        return segment[offset : offset + size]

    def load(self, type_: Type, address: int) -> Datum:
        """The value of a type at an address."""
        kind = type_.kind
        if kind is Kind.INT or is_encoded(type_):
            return int.from_bytes(self.view(address, type_.width // 8), "little")
        if kind is Kind.FLOAT:
            return struct.unpack(_FLOAT_FORMAT[type_.width], self.view(address, type_.width // 8))[0]
        if kind is Kind.BOOL:
            return self.view(address, 1)[0] != 0
        if kind is Kind.POINTER or kind is Kind.OPAQUE:
            return int.from_bytes(self.view(address, 8), "little")
        return tuple(self.load(t, address + offset) for t, offset in constituents(type_))

    def store(self, type_: Type, address: int, value: Datum) -> None:
        """Puts a value of a type to an address."""
        kind = type_.kind
        if kind is Kind.INT or is_encoded(type_):
            size = type_.width // 8
            self.view(address, size)[:] = value.to_bytes(size, "little")
        elif kind is Kind.FLOAT:
            self.view(address, type_.width // 8)[:] = struct.pack(_FLOAT_FORMAT[type_.width], value)
        elif kind is Kind.BOOL:
            self.view(address, 1)[0] = int(value)
        elif kind is Kind.POINTER or kind is Kind.OPAQUE:
            self.view(address, 8)[:] = (value or 0).to_bytes(8, "little")
        else:
            for (t, offset), part in zip(constituents(type_), value, strict=True):
                self.store(t, address + offset, part)

    def copy(self, target: int, source: int, size: int) -> None:
        """Copies bytes; they may overlap."""
        if size:
            self.view(target, size)[:] = bytes(self.view(source, size))

    def string(self, address: int) -> bytes:
        """A zero-terminated string."""
        result = bytearray()
        while byte := self.view(address + len(result), 1)[0]:
            result.append(byte)
        return bytes(result)


def constituents(type_: Type) -> list[tuple[Type, int]]:
    """(type, offset) of the constituents of a composite type: components, elements or members."""
    if type_.kind is Kind.STRUCT:
        return [(member, member_offset(type_, i)) for i, member in enumerate(type_.members)]
    step = size_of(type_.element)
    return [(type_.element, i * step) for i in range(type_.count)]


def zero(type_: Type) -> Datum:
    """OpConstantNull as a value."""
    kind = type_.kind
    if kind is Kind.BOOL:
        return False
    if kind is Kind.FLOAT and not is_encoded(type_):
        return 0.0
    if kind in (Kind.VECTOR, Kind.ARRAY):
        return (zero(type_.element),) * type_.count
    if kind is Kind.STRUCT:
        return tuple(zero(member) for member in type_.members)
    return 0
