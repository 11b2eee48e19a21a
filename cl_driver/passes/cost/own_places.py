"""Whether accesses at places of each work-item's own are most of what a kernel does: fields of structures
that an index in memory chooses, say. With lanes, each takes an address out of one vector and puts an element
into another; without, it is a load or a store.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.layout import size_of
from ...spirv.module import Function, Instruction, Kind, Type, Value
from ..analysis.sums import Sums
from ..ir.instructions import ADDRESS, EXTINST_LOADS, EXTINST_WITH_EFFECT, PURE, TERMINATORS
from ..ir.ops import PassOp
from ..ir.plan import KernelPlan
from ..ir.shapes import ShapeInfo

# Cycles of one work-item: an access at its own place with lanes, where the CPU gathers and where it does not,
# and without lanes; any other operation with lanes, that is its share of a vector's, and without.
_GATHERED, _BY_LANE, _ALONE = 1.25, 1.6, 0.8
_VECTOR, _SCALAR = 0.5, 0.33
_WORTH = 1.2  # what lanes must cost more

_FREE = ADDRESS | TERMINATORS | frozenset((
    Op.Phi, Op.Select, Op.SConvert, Op.UConvert, Op.Bitcast, Op.CopyObject, Op.CompositeExtract,
    PassOp.EntryMask, PassOp.AnyLane,
))  # fmt: skip
_GLOBAL = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant, StorageClass.Generic)
_NUMBERS = frozenset((Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.POINTER))


def prefers_own_places(plan: KernelPlan, gathers: bool) -> bool:
    """Whether a plan with lanes is to be given up for one with one work-item at a time. gathers: whether the
    CPU has instructions for accesses of 32 bits and more at places of each lane's own."""
    options = plan.options
    region = plan.region_of_lanes
    found = _accesses(region.function, region.shapes) if region is not None else None
    if found is None:
        return False
    words, less, others = found
    with_lanes = words * (_GATHERED if gathers else _BY_LANE) + less * _BY_LANE
    with_lanes += others * _VECTOR / options.width
    alone = (words + less) * _ALONE + others * _SCALAR
    if not words + less or alone * _WORTH > with_lanes:
        return False
    if options.remarks is not None:
        why = f"estimated cycles of a work-item: {with_lanes:.0f} with lanes, {alone:.0f} without"
        options.remarks.choose("width", f"it mostly accesses memory at places of each lane's own; {why}")
    return True


def _accesses(function: Function, shapes: ShapeInfo) -> tuple[int, int, int] | None:
    """Accesses at own places of 32 bits and more, of less, and other operations that differ between lanes.

    None if there is something that is none of these, or a loop: what lanes do side by side there, one
    work-item may have to wait for.
    """
    sums, seen = Sums(), set()
    words = less = others = 0
    for block in function.blocks:
        seen.add(block)
        if any(successor in seen for successor in block.successors()):
            return None
        for i in block.instructions:
            type_ = i.operands[1].type if i.op is Op.Store else i.type
            if i.op in _FREE or type_ is None:
                continue
            if i.op in (Op.Load, Op.Store):
                if _is_own(i.operands[0], type_, sums, shapes):
                    words += type_.width >= 32
                    less += type_.width < 32
                elif shapes.stride(i.operands[0]) != 0:
                    others += 1
            elif type_.kind not in _NUMBERS or not (i.op in PURE or _is_plain(i)):
                return None
            elif shapes.stride(i) != 0:
                others += 1
    return words, less, others


def _is_plain(i: Instruction) -> bool:
    """Whether an instruction is a function that became no other ones, and has no effect."""
    return i.op is Op.ExtInst and i.operands[1] not in EXTINST_WITH_EFFECT | EXTINST_LOADS


def _is_own(pointer: Value, type_: Type, sums: Sums, shapes: ShapeInfo) -> bool:
    """Whether lanes access places in global memory that have nothing to do with one another, or are apart by
    what only a run tells. Steps that are known are vectors that are shuffled: records, columns."""
    if type_.kind not in (Kind.INT, Kind.FLOAT) or pointer.type.storage not in _GLOBAL:
        return False
    if shapes.stride(pointer) is not None:
        return False
    total = 0
    for value, factor in sums.of(pointer).factors.items():
        stride = shapes.stride(value)
        if not isinstance(stride, int):
            return True
        total += stride * factor
    return abs(total) > size_of(type_)
