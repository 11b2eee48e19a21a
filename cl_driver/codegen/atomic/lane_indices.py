"""Addresses of lanes that are one base and a small index each: where scalar code takes lanes one by one.

A lane's address costs two or three operations to extract from a vector of addresses. Indices of 8, 16 or 32
bits are extracted several at once, as words of 64 bits, and shifted and masked apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...passes.ir.instructions import ADDRESS, int_value, is_constant_int
from ...records import record
from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind, Value
from ..access.emitter import AccessEmitter
from ..access.gather_scatter import words_of_lanes
from ..access.natures import Term
from ..llvm.types import ir_type

_WORD = 64


@record()
class Place:
    """base + scale · index + terms, of which only the index differs between lanes. bits: of the index that
    matter; signed: how it is extended to an address's bits."""

    terms: list[Term]  # (value or None, bytes), the pointer first
    index: Value
    scale: int
    bits: int
    signed: bool

    def addresses(self, e: AccessEmitter) -> Iterator[str]:
        """The lanes' addresses, each emitted when it is asked for."""
        (pointer, _), *rest = self.terms
        assert pointer is not None  # it is the first
        base = e.operand(pointer)
        for value, scale in rest:
            number = str(1) if value is None else e.operand(value)
            t = "i64" if value is None else ir_type(value.type)
            base = e.emit(f"getelementptr [{scale} x i8], ptr {base}, {t} {number}")
        for index in self._indices(e):
            yield e.emit(f"getelementptr [{self.scale} x i8], ptr {base}, i64 {index}")

    def _indices(self, e: AccessEmitter) -> Iterator[str]:
        f, t = e.form, ir_type(self.index.type)
        narrow = f"i{self.bits}"
        lanes = e.leaf(self.index)
        if narrow != t:
            lanes = e.emit(f"trunc {f(t)} {lanes} to {f(narrow)}")
        size = min(_WORD, self.bits * e.width)
        each = size // self.bits
        for word in words_of_lanes(e, lanes, self.bits, size):
            if size < _WORD:
                word = e.emit(f"zext i{size} {word} to i64")
            for lane in range(each):
                yield self._part(e, word, lane * self.bits, lane + 1 == each and size == _WORD)

    def _part(self, e: AccessEmitter, word: str, at: int, is_last: bool) -> str:
        """Some bits of a word as an index. Not by truncation, of which LLVM makes extractions one by one."""
        if self.signed:
            if not is_last:
                word = e.emit(f"shl i64 {word}, {_WORD - self.bits - at}")
            return e.emit(f"ashr i64 {word}, {_WORD - self.bits}")
        if at:
            word = e.emit(f"lshr i64 {word}, {at}")
        return word if is_last else e.emit(f"and i64 {word}, {(1 << self.bits) - 1}")


def place_by_index(e: AccessEmitter, pointer: Value) -> Place | None:
    """How lanes differ in a varying address, if that is an index of 32 bits or less."""
    if pointer in e.shapes.private or not isinstance(pointer, Instruction):
        return None
    terms = e.contiguity.address_terms(pointer) if pointer.op in ADDRESS else None
    if not terms:
        return None
    varying = [(v, s) for v, s in terms if v is not None and (e.is_varying(v) or e.stride(v))]
    if len(varying) != 1 or varying[0][0] is pointer or varying[0][0].type.kind is not Kind.INT:
        return None
    ((index, scale),) = varying
    if not e.is_varying(index):
        return None
    index, signed = _unextended(index)
    bits = _bits_of(index)
    if bits < index.type.width:
        signed = False
    bits = next((n for n in (8, 16, 32) if n >= bits), 0)
    if not bits or bits > index.type.width or bits * e.width < 16:
        return None
    return Place([term for term in terms if term != varying[0]], index, scale, bits, signed)


def _unextended(index: Value) -> tuple[Value, bool]:
    """What an index is extended from, and whether as a signed number."""
    signed = True
    while isinstance(index, Instruction) and index.op in (Op.UConvert, Op.SConvert):
        inner = index.operands[0]
        if inner.type.width >= index.type.width:
            break
        if index.op is Op.UConvert:
            signed = False
        elif not signed:
            break
        index = inner
    return index, signed


def _bits_of(value: Value) -> int:
    """How many bits a number has at most, as an unsigned one."""
    width = value.type.width
    constants = [int_value(o) for o in getattr(value, "operands", ()) if is_constant_int(o)]
    if isinstance(value, Instruction) and constants and value.type.kind is Kind.INT:
        if value.op is Op.BitwiseAnd:
            return min(width, constants[0].bit_length())
        if value.op is Op.ShiftRightLogical and is_constant_int(value.operands[1]):
            return width - constants[-1] % width
    return width
