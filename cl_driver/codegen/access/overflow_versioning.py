"""Indices that are sums of ids and sizes, cut to int on the way: whether none is cut, asked once for many.

`int i = get_global_id(0); ... i += get_global_size(0)` and the like have a stride as long as no sum leaves
the range of int. What is added is never negative, so that the largest sum answers for all, and if it fits,
the addresses are what they would be without the cuts: one addition from one to the next.
"""

from __future__ import annotations

from ...passes.ir.instructions import ADDRESS
from ...records import record
from ...spirv.enums import Op
from ...spirv.module import Constant, Instruction, Kind, Value, Variable
from ..llvm.types import ir_type
from .emitter import AccessEmitter
from .natures import Term

_SAME_ADDRESS = frozenset((Op.Bitcast, Op.CopyObject))
_SUMS = frozenset((Op.IAdd, Op.IMul))
_DEPTH = 100
_MOST = 1000  # additions; their sum does not leave 64 bits


@record(frozen=True)
class IdSum:
    """root + the sum of `added` + constant, times scale. The root has a stride, `added` have none.

    bits: that the sum of `added` and a constant from least to most must fit into at each cut.
    """

    root: Value
    added: tuple[Value, ...] = ()
    constant: int = 0
    scale: int = 1
    bits: int = 64
    least: int = 0
    most: int = 0

    def plus(self, value: Value | int) -> IdSum | None:
        """The sum with one more Value or number added, None if that is not possible."""
        if self.scale != 1 or len(self.added) == _MOST:
            return None
        added, constant = self.added, self.constant
        if isinstance(value, int):
            constant += value
        else:
            added = (*added, value)
        if abs(constant) >> 62:
            return None
        return IdSum(self.root, added, constant, 1, self.bits, self.least, self.most)

    def cut(self, bits: int, scale: int) -> IdSum | None:
        """The sum after its lower bits were extended, and multiplied."""
        if self.scale != 1:
            return None
        least, most = min(self.least, self.constant), max(self.most, self.constant)
        return IdSum(self.root, self.added, self.constant, scale, min(bits, self.bits), least, most)


def _signed(constant: Constant) -> int:
    value, width = constant.value or 0, constant.type.width
    return value - (1 << width) if value >> width - 1 else value


def sum_of(e: AccessEmitter, value: Value, depth: int = 0) -> IdSum | None:
    """An integer of 64 bits as such a sum, or one of less that comes of one of 64 bits."""
    if depth == _DEPTH or not isinstance(value, Instruction) or value.type.kind is not Kind.INT:
        return None
    operands, bits = value.operands, value.type.width
    found = None
    if value.op is Op.IAdd:
        found = _plus(e, value, depth + 1)
    elif value.op is Op.ShiftRightArithmetic and bits == 64 and isinstance(operands[1], Constant):
        found = _shifted_back(e, operands[0], operands[1].value or 0, depth + 1)
    elif value.op is Op.SConvert or (value.op is Op.UConvert and bits < operands[0].type.width):
        found = sum_of(e, operands[0], depth + 1)
        found = found and found.cut(min(bits, operands[0].type.width), 1)
    if found is None and bits == 64 and not e.is_varying(value) and e.stride(value) > 0:
        return IdSum(value)
    return found


def _shifted_back(e: AccessEmitter, value: Value, back: int, depth: int) -> IdSum | None:
    """What is shifted to the left and back again. Of parts (passes/vectorize/coarsening.py), something is
    added between."""
    between = 0
    while isinstance(value, Instruction) and value.op is Op.IAdd and isinstance(value.operands[1], Constant):
        between += _signed(value.operands[1])
        value = value.operands[0]
    if not isinstance(value, Instruction) or not _is_shift(value):
        return None
    there = value.operands[1].value or 0
    if not back <= there < 64 or between % (1 << there):
        return None
    found = sum_of(e, value.operands[0], depth)
    found = found and found.plus(between >> there)
    return found and found.cut(64 - there, 1 << there - back)


def _plus(e: AccessEmitter, value: Instruction, depth: int) -> IdSum | None:
    bits = value.type.width
    for inner, other in (value.operands, value.operands[::-1]):
        if isinstance(other, Constant) or (bits == 64 and _is_count(e, other)):
            found = sum_of(e, inner, depth)
            found = found and found.plus(_signed(other) if isinstance(other, Constant) else other)
            return found and (found if bits == 64 else found.cut(bits, 1))
    return None


def _is_shift(value: Instruction) -> bool:
    return value.op is Op.ShiftLeftLogical and isinstance(value.operands[1], Constant)


def _is_count(e: AccessEmitter, value: Value, depth: int = 0) -> bool:
    """Whether a value is the same in all lanes and made of ids and sizes: hardly negative, if it may be."""
    if isinstance(value, Constant):
        return _signed(value) >= 0
    if not isinstance(value, Instruction) or depth == _DEPTH or e.is_varying(value) or e.stride(value):
        return False
    seen = e.contiguity.counts
    if value not in seen:
        seen[value] = _is_made_of_counts(e, value, depth)
    return seen[value]


def _is_made_of_counts(e: AccessEmitter, value: Instruction, depth: int) -> bool:
    if value.op is Op.CompositeExtract:
        value = value.operands[0]
        if not isinstance(value, Instruction):
            return False
    if value.op is Op.Load:
        return isinstance(value.operands[0], Variable) and value.operands[0].builtin is not None
    if value.op in _SUMS:
        return all(_is_count(e, o, depth + 1) for o in value.operands)
    return _is_shift(value) and _is_count(e, value.operands[0], depth + 1)


def address_sum(e: AccessEmitter, pointer: Value, size: int) -> tuple[list[Term], IdSum, int] | None:
    """An address as terms that all lanes have in common, as of natures.py, and a sum times a scale: one that
    makes elements of `size` bytes neighbours."""
    while isinstance(pointer, Instruction) and pointer.op in _SAME_ADDRESS:
        pointer = pointer.operands[0]
    if not isinstance(pointer, Instruction) or pointer.op not in ADDRESS:
        return None
    terms = e.contiguity.address_terms(pointer)
    if not terms:
        return None
    varying = [(v, scale) for v, scale in terms if v is not None and e.is_varying(v)]
    common = [(v, scale) for v, scale in terms if v is None or not e.is_varying(v)]
    if len(varying) != 1 or any(v is not None and e.stride_is_mixed(v) for v, _ in common):
        return None
    index, scale = varying[0]
    if index.type.kind is Kind.POINTER:
        inner = address_sum(e, index, size)
        return inner and ([*inner[0], *common], *inner[1:])
    found = sum_of(e, index)
    if found is None or e.stride(found.root) * found.scale * scale != size:
        return None
    return common, found, found.scale * scale


def ask(e: AccessEmitter, sums: list[IdSum]) -> tuple[str, str] | None:
    """An i1, that no cut changes any of the sums in any lane, and their root in lane 0; None if they are not
    sums of one root."""
    root = sums[0].root
    if any(s.root is not root for s in sums):
        return None
    limit = (1 << min(s.bits for s in sums) - 1) - 1
    least, most = min(s.least for s in sums), max(s.most for s in sums)
    counts: dict[Value, int] = {}
    for s in sums:
        for value in set(s.added):
            counts[value] = max(counts.get(value, 0), s.added.count(value))
    room = limit - (most - least) - e.stride(root) * (e.width - 1)
    if room < 0 or limit >> 32:
        return None
    fits, total = "true", "0"
    for value, times in counts.items():
        operand = e.emit(f"freeze i64 {e.operand(value)}")
        fits = e.emit(f"and i1 {fits}, {e.emit(f'icmp ule i64 {operand}, {limit}')}")
        total = e.emit(f"add i64 {total}, {e.emit(f'mul i64 {operand}, {times}')}")
    fits = e.emit(f"and i1 {fits}, {e.emit(f'icmp ule i64 {total}, {room}')}")
    end = e.emit(f"select i1 {fits}, i64 {e.emit(f'sub i64 {room + 1}, {total}')}, i64 0")
    first = e.emit(f"freeze i64 {e.operand(root)}")
    return e.emit(f"icmp ult i64 {e.emit(f'add i64 {first}, {least}')}, {end}"), first


class Places:
    """Lane 0's addresses where no cut changes anything, each from the one before."""

    def __init__(self, first: str) -> None:
        self._sums: dict[tuple[Value, ...], str] = {(): first}

    def address(self, e: AccessEmitter, common: list[Term], found: IdSum, scale: int) -> str:
        """The address of lane 0."""
        base, *steps = common
        assert base[0] is not None  # the pointer comes first
        place = e.operand(base[0])
        for value, step in steps:
            index = f"i64 {step}" if value is None else f"{ir_type(value.type)} {e.operand(value)}"
            step = 1 if value is None else step
            place = e.emit(f"getelementptr [{step} x i8], ptr {place}, {index}")
        for count, value in enumerate(found.added):
            if found.added[: count + 1] not in self._sums:
                last = self._sums[found.added[:count]]
                self._sums[found.added[: count + 1]] = e.emit(f"add i64 {last}, {e.operand(value)}")
        place = e.emit(f"getelementptr [{scale} x i8], ptr {place}, i64 {self._sums[found.added]}")
        if not found.constant:
            return place
        return e.emit(f"getelementptr [{scale} x i8], ptr {place}, i64 {found.constant}")
