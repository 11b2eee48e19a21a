"""Accesses that turn out to be contiguous when they are executed, though nobody could know before.

Of an index such as (int)(y * n + x) it is not known that it does not wrap between two lanes, of l & m not
what bits m has. A gather takes many times as long as a contiguous load and the question whether it is one: so
that is asked, and either is done.
"""

from __future__ import annotations

from ..passes.ir import ADDRESS
from ..spirv.enums import Op
from ..spirv.module import Instruction, Kind
from .lanes import form
from .types import ir_type, size_of

# What may make consecutive integers of consecutive ones.
_KEEPING = frozenset((
    Op.SConvert, Op.UConvert, Op.IAdd, Op.ISub, Op.BitwiseAnd, Op.BitwiseOr, Op.BitwiseXor, Op.Select,
    Op.UMod, Op.SRem, Op.SMod, Op.ShiftRightArithmetic, Op.ShiftRightLogical, Op.CopyObject,
))  # fmt: skip
_CONVERSIONS = {Op.SConvert: "sext", Op.UConvert: "zext"}
_DEPTH = 6


class Indexed:
    """An address that varies between lanes: base, a single operand, plus place times each lane's index."""

    def __init__(self, e, base: str, index, place: int):
        self.base = base
        self.place = place
        self.type = ir_type(index.type)
        self.extension = ""  # how the index becomes an i64, "" if that is done with the address
        self.index = index
        if index.op in _CONVERSIONS and index.type.width == 64:
            self.extension = _CONVERSIONS[index.op]
            self.index = index.operands[0]
            self.type = ir_type(self.index.type)
        self.e = e

    def address(self, index: str, f) -> str:
        """The address for an index, in a form."""
        t = self.type
        if self.extension:
            index = self.e.emit(f"{self.extension} {f(t)} {index} to {f('i64')}")
            t = "i64"
        return self.e.emit(f"getelementptr [{self.place} x i8], ptr {self.base}, {f(t)} {index}")

    def all_lanes(self) -> str:
        """The address in all lanes. LLVM makes a good gather of it only if it is computed in the same block,
        which the freeze sees to."""
        f = self.e.form
        return self.address(self.e.emit(f"freeze {f(self.type)} {self.e.leaf(self.index)}"), f)

    def question(self) -> tuple[str, str]:
        """Whether the addresses of the lanes follow one another, and that of lane 0.

        What a lane outside of the mask has for an index may be poison.
        """
        e, t = self.e, self.type
        single = form(0)
        if not e.is_varying(self.index):  # affine but for overflow
            lowest = e.emit(f"freeze {t} {e.operand(self.index)}")
            is_signed = self.extension == "sext"
            most = (1 << self.index.type.width - is_signed) - e.width
            is_near = e.emit(f"icmp {'sle' if is_signed else 'ule'} {t} {lowest}, {most}")
            return is_near, self.address(lowest, single)
        f = e.form
        frozen = e.emit(f"freeze {f(t)} {e.leaf(self.index)}")
        lowest = e.emit(f"extractelement {f(t)} {frozen}, i32 0")
        # Compared as they are, and without overflow between lanes when they are extended.
        differs = e.emit(f"icmp ne {f(t)} {frozen}, {e._lanes(t, lowest, 1)}")
        bits = e.emit(f"bitcast {f('i1')} {differs} to i{e.width}")
        is_near = e.emit(f"icmp eq i{e.width} {bits}, 0")
        if self.index.type.width < 64:
            is_signed = self.extension != "zext"
            most = (1 << self.index.type.width - is_signed) - e.width
            fits = e.emit(f"icmp {'sle' if is_signed else 'ule'} {t} {lowest}, {most}")
            is_near = e.emit(f"and i1 {is_near}, {fits}")
        return is_near, self.address(lowest, single)


def contiguous_index(e, pointer, place: int):
    """The access chain, its base and the last index, of an address that varies but is worth the question; or
    None. place: bytes from one lane to the next if it is contiguous."""
    while isinstance(pointer, Instruction) and pointer.op in (Op.Bitcast, Op.CopyObject):
        pointer = pointer.operands[0]
    if not isinstance(pointer, Instruction) or pointer.op not in ADDRESS:
        return None
    index = pointer.operands[-1]
    others = pointer.operands[:-1]
    if not e.is_varying(index) or any(e.is_varying(o) or e.stride_is_mixed(o) for o in others):
        return None
    if size_of(pointer.type.element) != place or not _keeps_order(e, index, _DEPTH):
        return None
    if index.op in _CONVERSIONS and not e.is_varying(index.operands[0]) and e.stride(index.operands[0]) != 1:
        return None  # affine but for overflow, and apart
    return pointer


def _keeps_order(e, value, depth: int) -> bool:
    """Whether a varying integer is made of affine ones by what may leave them consecutive."""
    if not isinstance(value, Instruction) or value.type.kind is not Kind.INT or not depth:
        return False
    if value.op not in _KEEPING or value.type.width < 32:
        return False
    operands = value.operands[1:] if value.op is Op.Select else value.operands
    if value.op is Op.Select and e.is_varying(value.operands[0]):
        return False
    return all(not e.is_varying(o) or _keeps_order(e, o, depth - 1) for o in operands)


def either_way(e, indexed: Indexed, near, far, type_texts=()) -> list[str]:
    """Emits near(address of lane 0) for lanes that follow one another in memory, else far(their addresses).

    Both return as many operands as there are type_texts; so does this.
    """
    is_near, first = indexed.question()
    labels = near_label, far_label, after = e.new_label("near"), e.new_label("far"), e.new_label("after")
    e.emit_void(f"br i1 {is_near}, label %{near_label}, label %{far_label}")
    results, ends = [], []
    for label, emit in zip(labels, (lambda: near(first), lambda: far(indexed.all_lanes())), strict=False):
        e.begin_block(label)
        results.append(emit())
        ends.append(e.label)
        e.emit_void(f"br label %{after}")
    e.begin_block(after)
    return [
        e.emit(f"phi {t} [ {a}, %{ends[0]} ], [ {b}, %{ends[1]} ]")
        for t, a, b in zip(type_texts, *(r or [] for r in results), strict=True)
    ]
