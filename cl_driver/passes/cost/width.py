"""How many work-items per vector a kernel gets, and how many vectors at a time, unless settings say."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...device.target import Target
from ...records import replace
from ...spirv.enums import BuiltIn, Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Block, Function, Instruction, Kind, Type, Variable
from ...spirv.tables import of_class
from ..analysis.redundant_items import redundant_dimensions
from ..analysis.strides import Strides
from ..ir.instructions import ADDRESS, int_value, is_constant_int
from ..ir.plan import KernelPlan, PlanOptions, Region, recurs
from ..ir.remarks import Remarks
from .latency import Work, work_of
from .packed_profit import stays_packed
from .pressure import divergent_loops, mostly_gathers, vector_pressure
from .row_reuse import share_of_rows

# Bytes of private memory of all lanes, with which no cache is left.
_MOST_PRIVATE = 8 << 20

# The narrowest vectors of work-items.
_FEWEST_LANES = 4

# Vectors of a group that are executed together where code is made for its size.
MOST_GROUP_PARTS = 32

# What is slow, or made for lanes, in code for one work-item: see _reads_registers.
_NOT_ALONE = frozenset((Op.ControlBarrier, Op.FunctionCall, *of_class("Group", "Non-Uniform")))
_PLAIN = frozenset((
    Std.fma, Std.mad, Std.fmax, Std.fmin, Std.fmax_common, Std.fmin_common, Std.fabs, Std.fclamp,
    Std.copysign, Std.sqrt, Std.native_sqrt, Std.native_recip, Std.native_divide, Std.half_sqrt,
    Std.half_recip, Std.half_divide, Std.floor, Std.ceil, Std.rint, Std.trunc, Std.mix, Std.step, Std.select,
    Std.bitselect,
    Std.s_abs, Std.s_max, Std.s_min, Std.s_clamp, Std.u_max, Std.u_min, Std.u_clamp, Std.s_mad24, Std.u_mad24,
    Std.s_mul24, Std.u_mul24, Std.s_add_sat, Std.u_add_sat, Std.s_sub_sat, Std.u_sub_sat, Std.s_hadd,
    Std.u_hadd, Std.s_rhadd, Std.u_rhadd, Std.rotate, Std.clz, Std.ctz, Std.popcount,
))  # fmt: skip
_LOADS = frozenset((Std.vloadn, Std.vload_half, Std.vload_halfn, Std.vloada_halfn))
_STORES = frozenset((
    Std.vstoren, Std.vstore_half, Std.vstore_half_r, Std.vstore_halfn, Std.vstore_halfn_r, Std.vstorea_halfn,
    Std.vstorea_halfn_r,
))  # fmt: skip
_WORTH = 1.2
_MUCH = 1.5  # what shuffles must add for a kernel to do without lanes that does not mostly read
_ITERATIONS = 8
_MOSTLY = 0.9  # the share of a kernel's work that is on such vectors where lanes are left to them

# What all work-items of a launch see alike; and where they take turns, or meet.
_SIZES = frozenset(
    (BuiltIn.WorkDim, BuiltIn.GlobalSize, BuiltIn.WorkgroupSize, BuiltIn.EnqueuedWorkgroupSize,
     BuiltIn.GlobalOffset, BuiltIn.NumWorkgroups)
)  # fmt: skip
_TURNS = of_class("Atomic", "Barrier", "Group", "Non-Uniform", "Pipe")

_IDS = (BuiltIn.GlobalInvocationId, BuiltIn.LocalInvocationId)

# Registers that one value of all lanes may take: with more, code grows and spills.
_VALUE_REGISTERS = 16

# Up to eight vectors are executed together as long as they leave this share of the registers, else four.
_ROOM_OF_EIGHT = 0.75

# How much longer all take when one more vector waits for the last lane to leave a loop: neighbours in a row
# part more often than those in the next rows.
_WAITING = (0.08, 0.03)

# More vectors are more code to compile: what they have to gain, unless they share what rows have in common.
_GAIN, _GAIN_OF_EIGHT = 1.05, 1.1

# Instructions that parts may add to a kernel that has them from the start: these compile quickly.
_FEW = 40

# What parts must gain for a kernel to have them from the start nevertheless.
_LARGE_GAIN = 3.0

# What may be left of the work of two rows of pixels for rows to be taken together, not vectors of a row.
_SHARED = 0.9

# What code for groups of whole tiles must gain for the first launch to wait for it.
_GAIN_OF_TILES = 1.2


def choose(
    functions: list[Function],
    required_local_size: tuple[int, ...],
    target: Target,
    remarks: Remarks | None = None,
) -> int:
    """functions: the kernel and what it calls."""

    def say(why: str) -> None:
        if remarks is not None:
            remarks.choose("width", why)

    if target.width:
        say("a setting asks for it")
        return target.width
    if not any(map(_tells_apart, functions)):
        say("nothing in it tells work-items apart: it is for one")
        return 1
    lanes = target.vector_bits // 32
    if 0 < required_local_size[0] < lanes:
        say(f"the kernel requires rows of {required_local_size[0]} work-items, less than {lanes} lanes")
        lanes = _lanes_of_row(required_local_size[0])
    else:
        say(f"vectors of {target.vector_bits} bits hold {lanes} values of 32")
    widest = max((_bits(i.type) for f in functions for b in f.blocks for i in b.instructions), default=0)
    while lanes > 1 and lanes * widest > _VALUE_REGISTERS * target.vector_bits:
        lanes //= 2
        say(f"its values of {widest} bits in all lanes take {_VALUE_REGISTERS} registers at most")
    least = target.vector_bits // 2
    if least <= widest < target.vector_bits and all(stays_packed(f) for f in functions):
        say(f"vectors of {widest} bits stream through it, two and more to a register")
        return lanes
    if lanes > 1 and widest >= least and _reads_registers(functions, target.vector_bits):
        say(f"it works on vectors of {least} bits or more as they are in memory")
        return 1
    return lanes


def _lanes_of_row(items: int) -> int:
    """For rows that are shorter than a vector: narrower ones that leave no lane idle."""
    lanes = items & -items
    return lanes if lanes >= _FEWEST_LANES else 1


def _tells_apart(function: Function) -> bool:
    """Whether work-items can do different things: by ids, in turn (atomics, pipes), or with each other.

    What is not in the module (functions of the library) may be any of these.
    """
    if not function.blocks:
        return True
    for i in (i for block in function.blocks for i in block.instructions):
        read = {o.builtin for o in i.operands if isinstance(o, Variable)} - {None}
        if i.op in _TURNS or not read <= _SIZES:
            return True
    return False


def _reads_registers(functions: list[Function], bits: int) -> bool:
    """Whether a kernel reads or writes vectors that fill registers, or half of them, and to transpose them
    costs more than lanes save: addresses are plain then.

    Transposed, a register holds one component of all lanes. What mostly reads is better off without lanes as
    soon as they save nothing; with them large output may go past the caches (codegen/access/nontemporal.py),
    and iterations that wait for one another are as many at a time as there are lanes.
    """
    alone = together = 0.0  # operations of a work-item
    loads = stores = 0
    loops = False
    for i, times in ((i, times) for f in functions for b, times in _times(f) for i in b.instructions):
        extended = i.operands[1] if i.op is Op.ExtInst else None
        is_load, is_store = i.op is Op.Load or extended in _LOADS, i.op is Op.Store or extended in _STORES
        if i.op in _NOT_ALONE or (extended is not None and not (is_load or is_store or extended in _PLAIN)):
            return False
        loops |= times > 1
        type_ = i.operands[1 if i.op is Op.Store else 2].type if is_store else i.type
        size = _bits(type_)
        if not size or i.op is Op.Phi:
            continue
        is_id = i.op is Op.Load and isinstance(i.operands[0], Variable) and i.operands[0].builtin is not None
        if is_id or (type_.kind is Kind.INT and type_.width == 64):  # an id, or made into an address
            continue
        registers, shuffles = size / bits, 0.0
        if (is_load or is_store) and type_.kind is Kind.VECTOR:
            shuffles = registers * math.log2(type_.count)
            loads += times * (is_load and 2 * size >= bits)
            stores += times * is_store
        alone += times * max(registers, 0.5 if type_.kind is Kind.INT else 1)
        together += times * (registers + shuffles)
    if alone * _MUCH < together and not loops:
        return True
    return loads > 4 * stores and alone < _WORTH * together


def has_loops(functions: Iterable[Function]) -> bool:
    """Whether functions jump back."""
    return any(times > 1 for function in functions for _, times in _times(function))


def _times(function: Function) -> Iterable[tuple[Block, int]]:
    """Each block and how often it may be executed: what is between the ends of a jump back is a loop."""
    times = dict.fromkeys(function.blocks, 1)
    places = {block: place for place, block in enumerate(function.blocks)}
    for place, block in enumerate(function.blocks):
        for start in (places[b] for b in block.successors() if places[b] <= place):
            for inside in function.blocks[start : place + 1]:
                times[inside] *= _ITERATIONS
    return times.items()


def _bits(type_: Type | None) -> int:
    if type_ is None:
        return 0
    if type_.kind is Kind.VECTOR:
        return type_.count * type_.element.width
    return type_.width if type_.kind in (Kind.INT, Kind.FLOAT) else 0


def prefers_one(plan: KernelPlan) -> bool:
    """Whether a kernel is better off with one work-item at a time than with a lane for each."""
    if plan.options.width > 1 and not plan.options.sub_groups:
        private = plan.private_size * plan.options.width
        if private > _MOST_PRIVATE:
            if plan.options.remarks is not None:
                plan.options.remarks.choose(
                    "width", f"private memory of all lanes would take {private} bytes"
                )
            return True
        if 0 in redundant_dimensions(plan):
            if plan.options.remarks is not None:
                why = "all work-items of a row do the same, so that one of them is enough"
                plan.options.remarks.choose("width", why)
            return True
    region = plan.region_of_lanes
    if region is None or not mostly_gathers(region.function, region.shapes):
        return False
    if plan.options.remarks is not None:
        why = "do little but access memory at places of each lane's own"
        plan.options.remarks.choose("width", f"its loops, which lanes leave one by one, {why}")
    return True


def prefers_own_vectors(plan: KernelPlan, target: Target) -> bool:
    """Whether the vectors that a kernel calculates with fill the registers, and code with a lane for each
    work-item, where each of them takes as many registers as there are lanes, is too long to be fast."""
    options = plan.options
    region = plan.region_of_lanes
    if region is None:
        return False
    instructions = [i for block in region.function.blocks for i in block.instructions]
    if not any(_bits(i.type) >= target.vector_bits for i in instructions):
        return False
    work = work_of(region.function, region.shapes, target.vector_bits // options.width, options.width)
    full = sum(work.weights[i] for i in instructions if _bits(i.type) >= target.vector_bits)
    if not work.fetched(1) or full < _MOSTLY * sum(work.weights.values()):
        return False
    lanes, room = options.width, registers(target)
    pressure = vector_pressure(region.function, region.shapes, target.vector_bits // lanes) or 0
    together = work.cycles(1, pressure, room)
    alone = lanes * work.alone(lanes).cycles(1, -(-pressure // lanes), room)
    if alone * _WORTH > together:
        return False
    if options.remarks is not None:
        why = f"{together:.0f} with {lanes} lanes, whose code is too long, {alone:.0f} without"
        options.remarks.choose("width", f"its vectors fill registers; estimated cycles: {why}")
    return True


def parts(plan: KernelPlan, target: Target) -> tuple[PlanOptions, bool]:
    """The options of a plan with as many parts as are estimated to be fastest, and whether the kernel should
    get them only once it has run for a while: without parts it compiles faster (tests/bench/compile.py).

    Only where groups can be made to fit: more rows than a launch has, or longer ones, would be idle lanes.
    """
    options = plan.options

    def say(why: str) -> None:
        if options.remarks is not None:
            options.remarks.choose("parts", why)

    if options.width == 1:
        return options, False
    if not plan.has_free_groups:
        say("work-items can tell how they are divided into groups, which may not fill several vectors")
        return options, False
    region = plan.regions[0]
    axis = _axis([region]) or int(_stores_columns(region))
    if not axis and plan.module.images and _row_ids(region):
        bits = target.vector_bits // options.width
        work = work_of(region.function, region.shapes, bits, options.width)
        axis = int(_share(plan, region, work, 2) < _SHARED)
    found, gain, why = _best(plan, [region], axis, target)
    say(why)
    if found == 1:
        return options, False
    added = (found - 1) * sum(len(block.instructions) for block in region.function.blocks)
    return replace(options, parts=found, part_axis=axis), added >= _FEW and gain < _LARGE_GAIN


def _best(
    plan: KernelPlan, regions: list[Region], axis: int, target: Target, most: int = 8
) -> tuple[int, float, str]:
    """How many vectors are best executed together, how much faster that is than one by one, and why."""
    lanes, lane_bits, room = plan.options.width, target.vector_bits // plan.options.width, registers(target)
    pressures = []
    for region in regions:
        of_region = vector_pressure(region.function, region.shapes, lane_bits)
        if of_region is None:
            return 1, 1.0, "the kernel is too large to look at"
        pressures.append(of_region)
    works = [work_of(region.function, region.shapes, lane_bits, lanes) for region in regions]
    if any(work.walks for work in works):
        return 1, 1.0, "its lanes walk through rows, of which caches hold few at a time"
    loops = [divergent_loops(region.function) for region in regions]
    is_divergent, pressure = any(loops), max(pressures)
    if is_divergent or loops == [None] or 8 * pressure > _ROOM_OF_EIGHT * room:
        most = min(most, 4)
    waiting = _WAITING[axis] * is_divergent
    cycles = {}
    for count in (count for count in (1, 2, 4, 8) if count <= most):
        shares = [
            _share(plan, region, work, count) if axis else 1.0
            for region, work in zip(regions, works, strict=True)
        ]
        parts = zip(works, pressures, shares, strict=True)
        together = sum(work.cycles(count, p, room, share) for work, p, share in parts)
        cycles[count] = together * (1 + waiting * (count - 1))
    gain = 1.0 if axis and not is_divergent else _GAIN
    limit = min(time for count, time in cycles.items() if count < 8) * gain
    found = next(count for count, time in cycles.items() if time <= limit)
    if cycles.get(8, math.inf) * _GAIN_OF_EIGHT <= cycles[found]:
        found = 8
    times = ", ".join(f"{time:.0f} with {count}" for count, time in cycles.items())
    why = f"each needs {pressure} of {room} vector registers at once; estimated cycles: {times}"
    return found, cycles[1] / cycles[found], why


def _row_ids(region: Region) -> set[Instruction]:
    return {i for block in region.function.blocks for i in block.instructions if _is_row_id(i)}


def _share(plan: KernelPlan, region: Region, work: Work, count: int) -> float:
    """What is left of the work of so many rows where rows of pixels have reads in common."""
    if not plan.module.images or count == 1:
        return 1.0
    return share_of_rows(region.function, work.weights, _row_ids(region), count)


def tiles(plan: KernelPlan, target: Target) -> tuple[PlanOptions | None, bool]:
    """The options of code with parts for launches whose groups consist of tiles, or None if that is not worth
    another object: without loops, or along rows between barriers (trees leave rows early, row by row). And
    whether it is so much faster that no launch should do without it."""
    options = plan.options
    if options.width == 1 or options.parts > 1 or options.sub_groups or plan.has_free_groups:
        return None, False
    if plan.has_lane_loops:
        return None, False
    regions = [region for region in plan.regions if not region.once]
    axis = _axis(regions)
    if plan.uses_barrier and not axis:
        return None, False
    if not any(recurs(plan, region) or divergent_loops(region.function) is not None for region in regions):
        return None, False
    found, gain, why = _best(plan, regions, axis, target, most=4 if plan.uses_barrier else 8)
    if found > 1 and options.remarks is not None:
        options.remarks.choose("parts of tiles", f"for groups of whole tiles: {why}")
    chosen = replace(options, parts=found, part_axis=axis) if found > 1 else None
    return chosen, not plan.uses_barrier and gain >= _GAIN_OF_TILES


def registers(target: Target) -> int:
    """Vector registers of a core."""
    return 32 if target.vector_bits == 512 or target.architecture == "aarch64" else 16


def _axis(regions: list[Region]) -> int:
    """The dimension along which several vectors are taken: 1 for kernels that ask for their ids in it.

    But where nothing is a loop and comparisons tell rows apart, those of one row share all that comes of
    these; so do stencils that leave their edges out.
    """
    axis = 0
    for region in regions:
        of_rows = _of_rows(region)
        if not of_rows:
            continue
        axis = 1
        if divergent_loops(region.function) is None and any(map(_compares_ints, of_rows)):
            return 0
    return axis


def _stores_columns(region: Region) -> bool:
    """Whether the work-item of the next row stores right behind or before, and the next of its row elsewhere:
    several rows are one store then (codegen/access/store_merging.py)."""
    of_rows = _of_rows(region)
    steps = Strides(1, of_rows.__contains__)
    for store in (i for i in of_rows if i.op is Op.Store):
        pointer, value = store.operands[:2]
        size = _bits(value.type) // 8
        near = (size, -size)
        if size and steps.of(pointer) in near and region.shapes.stride(pointer) not in (0, *near):
            return True
    return False


def _of_rows(region: Region) -> set[Instruction]:
    """The ids of dimension 1 of a region, and what depends on them."""
    found, before = _row_ids(region), 0
    while len(found) > before:
        before = len(found)
        for i in (i for block in region.function.blocks for i in block.instructions):
            if not found.isdisjoint(o for o in i.operands if isinstance(o, Instruction)):
                found.add(i)
    return found


def _compares_ints(i: Instruction) -> bool:
    return i.type is not None and i.type.kind is Kind.BOOL and i.operands[0].type.kind is Kind.INT


def _is_row_id(i: Instruction) -> bool:
    """Whether an instruction gives an id of dimension 1, or its address."""
    source = i.operands[0] if i.operands else None
    if i.op is Op.CompositeExtract and i.operands[1:] == [1] and isinstance(source, Instruction):
        source = source.operands[0] if source.op is Op.Load else None
    elif i.op not in ADDRESS or not is_constant_int(i.operands[-1]) or int_value(i.operands[-1]) != 1:
        return False
    return isinstance(source, Variable) and source.builtin in _IDS
