"""Whether a kernel is better off with one work-item at a time than with a lane for each."""

from __future__ import annotations

import math

from ...spirv.enums import Op, StorageClass
from ...spirv.layout import size_of
from ...spirv.module import Instruction, Kind, Type, Variable
from ..analysis.guarded_work import guarded_by_data
from ..analysis.redundant_items import redundant_dimensions
from ..ir.instructions import ADDRESS, ATOMICS, EXTINST_LOADS, EXTINST_WITH_EFFECT, PURE, TERMINATORS
from ..ir.ops import PassOp
from .access_costs import has_instruction, leaf_bits
from .inner_loops import cycles_with_inner_loops
from .operations import STRIDED, size_of_value
from .pressure import mostly_gathers
from .work import WORTH, PlanCosts, RegionCosts, asks_lanes

# Bytes of private memory of all lanes, with which no cache is left.
_MOST_PRIVATE = 8 << 20

_GATHERS = "its loops, which lanes leave one by one, do little but access memory at places of each lane's own"

# Of the cycles of loops that lanes leave one by one, what is won without lanes: they wait for one another.
_WAITED = 0.5

# The share of a kernel's work that is on vectors that fill registers, or to access records, where they count.
_MOSTLY = 0.9

# Cycles of an access at a place of its own with lanes, where the CPU gathers and scatters and where it does
# not, and without lanes; of any other operation with lanes, that is its share of a vector's, and without.
# LLVM makes less of addresses and of records without lanes than work.py knows.
_GATHERED, _BY_LANE, _ALONE = 1.25, 1.6, 0.8
_VECTOR, _SCALAR = 0.5, 0.33

# What is jumped over where no lane comes to it, from which on it may be most of a kernel; and how much longer
# all of the work of a work-item takes without lanes, so that some of it may take less.
_MANY_QUESTIONS, _NEAR = 4, 6.0
# How much longer it may take where lanes go through rows, which caches may slow down so much; and where they
# access places of their own: estimates of what addresses cost that are in vectors are not better than that.
_NEAR_ROWS, _NEAR_PLACES = 3.0, 2.0

_FREE = ADDRESS | TERMINATORS | frozenset((
    Op.Phi, Op.Select, Op.SConvert, Op.UConvert, Op.Bitcast, Op.CopyObject, Op.CompositeExtract,
    Op.CompositeInsert, Op.CompositeConstruct, PassOp.EntryMask, PassOp.AnyLane,
))  # fmt: skip
_MOVES = ADDRESS | {Op.Load, Op.Store}  # which calculate nothing
_LEADS_ON = ADDRESS | {Op.Bitcast, Op.CopyObject}
_BYTE_TABLE, _WORD_TABLE = 128, 64  # bytes of constant arrays that registers hold
_GLOBAL = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant, StorageClass.Generic)
_NUMBERS = frozenset((Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.POINTER, Kind.VECTOR))


def prefers_one(costs: PlanCosts) -> bool:
    """Whether a plan with lanes is to be given up for one with one work-item at a time."""
    plan = costs.plan
    if plan.options.width == 1:
        return False
    why = _why(costs)
    if why is not None and plan.options.remarks is not None:
        plan.options.remarks.choose("width", why)
    return why is not None


def depends_on_data(costs: PlanCosts) -> bool:
    """Whether a kernel whose work-items have lanes may be better off without, by what they do: much of its
    work is jumped over where no lane needs it, or done for nothing but what is, so that few lanes may make
    all of them do it. Or lanes go through rows of their own at the same time: of rows a power of two apart,
    caches have room for few. Or loops access places of their own, and are not estimated to gain much."""
    region = costs.of_lanes
    if region is None or costs.plan.uses_barrier or costs.plan.vector_functions:
        return False
    gain = region.cycles_alone / region.cycles_with_lanes
    if gain < _NEAR_ROWS if region.work.walks else gain < _NEAR_PLACES and _loops_over_places(region):
        return True
    if gain >= _NEAR:
        return False
    questions = sum(i.op is PassOp.AnyLane for b in region.function.blocks for i in b.instructions)
    if questions >= _MANY_QUESTIONS:
        return True
    share = _share_of_guarded(region)
    return share > 0 and gain * (1 - share) < 1


def _share_of_guarded(region: RegionCosts) -> float:
    """Of the work, what only lanes need that the data let through: without lanes, none may be left of it. Not
    what is in loops that lanes leave one by one, for most lanes enter these."""
    guarded = guarded_by_data(region.function, region.tree, region.before)
    for loop, leaving in region.nest.leaving().items():
        if any(asks_lanes(block.terminator.operands[0]) for block in leaving):
            guarded.difference_update(i for block in loop.blocks for i in block.instructions)
    if not guarded:
        return 0.0
    weights = region.work.weights
    return sum(weight for i, weight in weights.items() if i in guarded) / sum(weights.values())


def _why(costs: PlanCosts) -> str | None:
    plan = costs.plan
    if not plan.options.sub_groups:
        private = plan.private_size * plan.options.width
        if private > _MOST_PRIVATE:
            return f"private memory of all lanes would take {private} bytes"
        if 0 in redundant_dimensions(plan):
            return "all work-items of a row do the same, so that one of them is enough"
    if plan.uses_barrier and _mostly_gathers_between_barriers(costs):
        return _GATHERS
    region = costs.of_lanes
    if region is None:
        return None
    if mostly_gathers(region.nest, region.shapes):
        return _GATHERS
    if plan.vector_functions:  # which nobody has looked into without lanes
        return None
    return _why_estimated(region)


def _mostly_gathers_between_barriers(costs: PlanCosts) -> bool:
    """Whether all loops between barriers are better off without lanes, and win more than the rest loses."""
    plan = costs.plan
    if plan.options.sub_groups or plan.has_lane_loops:
        return False
    regions = [costs.of(region) for region in plan.regions if not region.once]
    loops = [region for region in regions if region.nest.loops]
    if not loops or not all(mostly_gathers(region.nest, region.shapes) for region in loops):
        return False
    lost = sum(region.cycles_alone - region.cycles_with_lanes for region in regions if region not in loops)
    return lost < _WAITED * sum(map(_cycles_of_gathers, loops))


def _cycles_of_gathers(region: RegionCosts) -> float:
    """Of a work-item with a lane, where most of the work is to access places of its own. Atomics there are
    done lane by lane, each behind a branch: lanes make nothing faster of these."""
    blocks = {block for loop in region.nest.loops for block in loop.blocks}
    atomics = (i for block in blocks for i in block.instructions if i.op in ATOMICS)
    if any(region.shapes.stride(i.operands[0]) is None for i in atomics):
        return max(region.cycles_with_lanes, region.cycles_alone)
    return region.cycles_with_lanes


def _why_estimated(region: RegionCosts) -> str | None:
    """Why the estimate is in favour of one work-item at a time, in kernels of which it can be trusted."""
    worth = WORTH
    if _has_long_code(region):
        worth = 1.0  # lanes have nothing to gain but chains that wait, and much code to lose by
        why = "its vectors fill registers, and code with lanes is too long"
        with_lanes, alone = region.cycles_with_lanes, region.cycles_of_own_vectors
    elif places := _cycles_of_places(region):
        why = "it mostly accesses memory at places of each lane's own"
        with_lanes, alone = places[0], places[1] * (1 - _share_of_joined(region))
    elif _copies_records(region):
        why = "lanes take turns to access what lies in records of each work-item"
        with_lanes, alone = region.cycles_with_lanes, region.cycles_alone * (1 - _share_of_joined(region))
    elif rows := cycles_with_inner_loops(region):
        why = "each work-item goes through memory of its own, one element after the other, so that its loops "
        why += "become vectors"
        with_lanes, alone = region.cycles_with_lanes, rows
    else:
        return None
    if alone * worth > with_lanes:
        return None
    return f"{why}; estimated cycles of a work-item: {with_lanes:.3g} with lanes, {alone:.3g} without"


def _has_long_code(region: RegionCosts) -> bool:
    """Whether the vectors that a kernel calculates with fill the registers, and code with a lane for each
    work-item, where each of them takes as many registers as there are lanes, does not stay in its cache."""
    bits = region.operations.model.vector_bits
    types = {i.type for b in region.function.blocks for i in b.instructions}
    filling = {type_ for type_ in types if _fills(type_, bits)}
    if not filling or not region.work.fetched(1):
        return False
    weights = {i: weight for i, weight in region.work.weights.items() if i.op not in _MOVES}
    full = sum(weight for i, weight in weights.items() if i.type in filling)
    return full >= _MOSTLY * sum(weights.values())


def _fills(type_: Type | None, bits: int) -> bool:
    return type_ is not None and type_.kind is Kind.VECTOR and 8 * size_of_value(type_) >= bits


def _cycles_of_places(region: RegionCosts) -> tuple[float, float] | None:
    """Cycles of a work-item with a lane and without, in a kernel with accesses at places in global memory
    that have nothing to do with one another. None if there are none, or what cannot be compared with them:
    loops, for what lanes do side by side there, one work-item may have to wait for, and what is not known to
    be as fast without lanes.
    """
    if region.nest.loops:
        return None
    words = less = others = of_lanes = looked_up = 0
    for i in (i for block in region.function.blocks for i in block.instructions):
        type_ = i.operands[1].type if i.op is Op.Store else i.type
        if i.op in _FREE or type_ is None:
            continue
        leaves = len(leaf_bits(type_)) if type_.kind is Kind.VECTOR else 1
        if i.op in (Op.Load, Op.Store):
            if _is_own(i, type_, region):
                if operations := table_operations(i, region.operations.model.vector_bits):
                    looked_up += 1
                    of_lanes += operations
                    continue
                words += type_.width >= 32
                less += type_.width < 32
            elif region.shapes.stride(i.operands[0]) != 0:
                others += 1
                of_lanes += leaves if leaves == 1 else 2 * leaves  # with shuffles
        elif type_.kind not in _NUMBERS or not (i.op in PURE or _is_plain(i)):
            return None
        elif region.shapes.stride(i) != 0:
            others += 1
            of_lanes += leaves
    if not words + less:
        return None
    gathers = has_instruction(region.operations.model, False)
    with_lanes = words * (_GATHERED if gathers else _BY_LANE) + less * _BY_LANE
    with_lanes += of_lanes * _VECTOR / region.operations.width
    return with_lanes, (words + less + looked_up) * _ALONE + others * _SCALAR


def _copies_records(region: RegionCosts) -> bool:
    """Whether a kernel without loops does little but access elements of records, a record for each lane,
    that no vectors are made of."""
    if region.nest.loops:
        return False
    operations, by_lane, total = region.operations, 0.0, 0.0
    for i, weight in region.work.weights.items():
        total += weight
        if i.op is Op.Load or i.op is Op.Store:
            kind, step = operations.how_reached(i, region.step)
            if kind == STRIDED and operations.is_lane_by_lane(i, kind, step):
                by_lane += weight
        elif i.op not in _FREE and not (i.op in PURE or _is_plain(i)):
            return False
    return by_lane >= _MOSTLY * total


def _share_of_joined(region: RegionCosts) -> float:
    """Of the work of a work-item without lanes, the accesses that are joined to others: of elements side by
    side that are copied to where they are side by side, too (../scalar/join_copies.py)."""
    runs: dict[tuple[object, ...], dict[int, list[Instruction]]] = {}
    for block in region.function.blocks:
        for store in block.instructions:
            load = store.operands[1] if store.op is Op.Store else None
            if not isinstance(load, Instruction) or load.op is not Op.Load or load.block is not block:
                continue
            source, target = region.sums.of(load.operands[0]), region.sums.of(store.operands[0])
            distance = target.constant - source.constant
            ends = frozenset(source.factors.items()), frozenset(target.factors.items())
            runs.setdefault((block, load.type, distance, *ends), {})[target.constant] = [load, store]
    weights = region.alone.weights
    joined = 0.0
    for copies in runs.values():
        room = 0  # of the register that an element goes to, which is left for the next ones
        for place in sorted(copies):
            load, store = copies[place]
            size = size_of_value(load.type)
            if place - size in copies and room >= size:
                joined += weights.get(load, 0.0) + weights.get(store, 0.0)
            else:
                room = region.operations.model.vector_bits // 8
            room -= size
    return joined / sum(weights.values())


def _loops_over_places(region: RegionCosts) -> bool:
    """Whether lanes access, in loops, places in global memory that have nothing to do with one another."""
    blocks = {block for loop in region.nest.loops for block in loop.blocks}
    accesses = (i for block in blocks for i in block.instructions if i.op is Op.Load or i.op is Op.Store)
    return any(_is_own(i, i.type or i.operands[1].type, region) for i in accesses)


def _is_plain(i: Instruction) -> bool:
    """Whether an instruction is a function that became no other ones, and has no effect."""
    return i.op is Op.ExtInst and i.operands[1] not in EXTINST_WITH_EFFECT | EXTINST_LOADS


def table_operations(i: Instruction, vector_bits: int) -> int:
    """Operations on vectors for a load from a small constant array, which lies in registers; 0 if it is none.

    See ../../codegen/access/lut_permute.py. Permutes of bytes are everywhere, of words in AVX2 and AVX-512.
    """
    base, type_ = i.operands[0], i.type
    while isinstance(base, Instruction) and base.op in _LEADS_ON:
        base = base.operands[0]
    if i.op is not Op.Load or type(base) is not Variable or base.initializer is None:
        return 0
    array = base.type.element
    if base.type.storage != StorageClass.UniformConstant or array.kind is not Kind.ARRAY:
        return 0
    if array.element.kind not in (Kind.INT, Kind.FLOAT) or array.element.width != type_.width:
        return 0
    size = size_of(array)
    if type_.width == 8 and size <= _BYTE_TABLE:
        return 3 * math.ceil(size / 16) - 2
    return 3 if type_.width == 32 and size <= _WORD_TABLE and vector_bits >= 256 else 0


def _is_own(i: Instruction, type_: Type, region: RegionCosts) -> bool:
    """Whether lanes access places that have nothing to do with one another, or are apart by what only a run
    tells. Steps that are known are vectors that are shuffled: records, columns. Pixels at clamped coordinates
    are neighbours, but at edges: code with lanes asks that."""
    pointer = i.operands[0]
    if type_.kind not in (Kind.INT, Kind.FLOAT) or pointer.type.storage not in _GLOBAL:
        return False
    if region.shapes.stride(pointer) is not None:
        return False
    step = region.step(i, within_bounds=True)
    return step is None or abs(step) > size_of_value(type_)
