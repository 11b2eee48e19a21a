"""How many work-items per vector a kernel gets, and how many vectors at a time, unless settings say."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...device.target import Target
from ...records import replace
from ...spirv.enums import BuiltIn, Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Function, Instruction, Kind, Type, Variable
from ...spirv.tables import of_class
from ..analysis.strides import Strides
from ..ir.dominance import Loop
from ..ir.instructions import ADDRESS, block_times, int_value, is_constant_int
from ..ir.ops import PassOp
from ..ir.plan import KernelPlan, PlanOptions, Region, recurs
from ..ir.remarks import Remarks
from .operations import LOADS, STORES
from .pressure import divergent_loops
from .row_reuse import share_of_rows
from .streams import lanes_of_streams, stays_packed
from .work import UNKNOWN_TRIPS, WORTH, PlanCosts, RegionCosts, Work, work_of

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
_DIFFERENCES = frozenset((Std.s_abs_diff, Std.u_abs_diff))
_MUCH = 1.5  # what shuffles must add for a kernel to do without lanes that does not mostly read

# The share of values that are vectors in kernels that work on them.
_FEW_VECTORS = 0.2

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

# More vectors are more code, which has to gain something: what one vector, two and four may take longer than
# the best of them, unless rows share what they have in common and there are enough registers; and what eight
# have to gain.
_MORE = {1: 1.05, 2: 1.1, 4: 1.0}
_GAIN_OF_EIGHT = 1.1

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
    more = lanes_of_streams(functions, lanes, target.vector_bits, _PLAIN | _DIFFERENCES)
    if more > lanes > 1 and required_local_size[0] % more == 0:
        say(f"bytes or shorts stream through it: {more} lanes take as many instructions as {lanes}")
        return more
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
    loads = stores = 0.0
    loops = False
    for i, times in (
        (i, times) for f in functions for b, times in block_times(f, UNKNOWN_TRIPS) for i in b.instructions
    ):
        extended = i.operands[1] if i.op is Op.ExtInst else None
        is_load, is_store = i.op is Op.Load or extended in LOADS, i.op is Op.Store or extended in STORES
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
    return loads > 4 * stores and alone < WORTH * together


def works_on_vectors(functions: Iterable[Function]) -> bool:
    """Whether much of what functions calculate are vectors."""
    types = [i.type for f in functions for b in f.blocks for i in b.instructions if i.op not in ADDRESS]
    values = [type_ for type_ in types if type_ is not None and type_.kind is not Kind.VOID]
    return sum(type_.kind is Kind.VECTOR for type_ in values) > _FEW_VECTORS * len(values)


def has_loops(functions: Iterable[Function]) -> bool:
    """Whether functions jump back."""
    return any(times > 1 for function in functions for _, times in block_times(function, UNKNOWN_TRIPS))


def _bits(type_: Type | None) -> int:
    if type_ is None:
        return 0
    if type_.kind is Kind.VECTOR:
        return type_.count * type_.element.width
    return type_.width if type_.kind in (Kind.INT, Kind.FLOAT) else 0


def parts(costs: PlanCosts) -> tuple[PlanOptions, bool]:
    """The options of a plan with as many parts as are estimated to be fastest, and whether the kernel should
    get them only once it has run for a while: without parts it compiles faster (tests/bench/compile.py).

    Only where groups can be made to fit: more rows than a launch has, or longer ones, would be idle lanes.
    """
    plan, options = costs.plan, costs.plan.options

    def say(why: str) -> None:
        if options.remarks is not None:
            options.remarks.choose("parts", why)

    if options.width == 1:
        return options, False
    if not plan.has_free_groups:
        say("work-items can tell how they are divided into groups, which may not fill several vectors")
        return options, False
    region = plan.regions[0]
    of_region = costs.of(region)
    axis = _axis([of_region]) or int(_stores_columns(of_region))
    if not axis and plan.module.images and _row_ids(region):
        axis = int(_share(plan, region, of_region.work, 2) < _SHARED)
    found, gain, why = _best(plan, [of_region], axis)
    say(why)
    if found == 1:
        return options, False
    added = (found - 1) * sum(len(block.instructions) for block in region.function.blocks)
    return replace(options, parts=found, part_axis=axis), added >= _FEW and gain < _LARGE_GAIN


def _best(plan: KernelPlan, regions: list[RegionCosts], axis: int, most: int = 8) -> tuple[int, float, str]:
    """How many vectors are best executed together, how much faster that is than one by one, and why."""
    room = regions[0].operations.model.registers
    pressures = []
    for region in regions:
        if region.pressure is None:
            return 1, 1.0, "the kernel is too large to look at"
        pressures.append(region.pressure)
    works = [_work(region, axis) for region in regions]
    if any(work.walks for work in works):
        return 1, 1.0, "its lanes walk through rows, of which caches hold few at a time"
    loops = [divergent_loops(region.nest) for region in regions]
    is_divergent, pressure = any(loops), max(pressures)
    if is_divergent or loops == [None] or 8 * pressure > _ROOM_OF_EIGHT * room:
        most = min(most, 4)
    waiting = _WAITING[axis] * is_divergent
    cycles = {}
    for count in (count for count in (1, 2, 4, 8) if count <= most):
        shares = [
            _share(plan, region.region, work, count) if axis else 1.0
            for region, work in zip(regions, works, strict=True)
        ]
        parts = zip(works, pressures, shares, strict=True)
        together = sum(work.cycles(count, p, share) for work, p, share in parts)
        cycles[count] = together * (1 + waiting * (count - 1))
    least = min(time for count, time in cycles.items() if count < 8)
    is_shared = axis and not is_divergent
    # What spilled registers cost is known least: many wait for one another where a loop carries them.
    is_exact = is_shared and min(cycles, key=cycles.__getitem__) * pressure <= room
    if pressure > room and not is_shared:
        return 1, 1.0, f"each needs {pressure} vector registers at once, of which there are {room}"
    found = next(
        count for count, more in _MORE.items() if cycles[count] <= least * (1.0 if is_exact else more)
    )
    if cycles.get(8, math.inf) * _GAIN_OF_EIGHT <= cycles[found]:
        found = 8
    times = ", ".join(f"{time:.0f} with {count}" for count, time in cycles.items())
    why = f"each needs {pressure} of {room} vector registers at once; estimated cycles: {times}"
    return found, cycles[1] / cycles[found], why


def _work(costs: RegionCosts, axis: int) -> Work:
    """What vectors do: each for itself what differs in a row or, of several rows, what comes of their ids."""
    return work_of(costs, costs.operations, _of_rows(costs)) if axis else costs.work


def _row_ids(region: Region) -> set[Instruction]:
    return {i for block in region.function.blocks for i in block.instructions if _is_row_id(i)}


def _share(plan: KernelPlan, region: Region, work: Work, count: int) -> float:
    """What is left of the work of so many rows where rows of pixels have reads in common."""
    if not plan.module.images or count == 1:
        return 1.0
    return share_of_rows(region.function, work.weights, _row_ids(region), count)


def tiles(costs: PlanCosts) -> tuple[PlanOptions | None, bool]:
    """The options of code with parts for launches whose groups consist of tiles, or None if that is not worth
    another object: without loops, or along rows between barriers (trees leave rows early, row by row). And
    whether it is so much faster that no launch should do without it."""
    plan, options = costs.plan, costs.plan.options
    if options.width == 1 or options.parts > 1 or options.sub_groups or plan.has_free_groups:
        return None, False
    if plan.has_lane_loops:
        return None, False
    regions = [costs.of(region) for region in plan.regions if not region.once]
    axis = _axis(regions)
    if plan.uses_barrier and not axis:
        return None, False
    if not any(recurs(plan, costs.region) or costs.nest.loops for costs in regions):
        return None, False
    found, gain, why = _best(plan, regions, axis, most=4 if plan.uses_barrier else 8)
    if found > 1 and options.remarks is not None:
        options.remarks.choose("parts of tiles", f"for groups of whole tiles: {why}")
    chosen = replace(options, parts=found, part_axis=axis) if found > 1 else None
    return chosen, not plan.uses_barrier and gain >= _GAIN_OF_TILES


def _axis(regions: list[RegionCosts]) -> int:
    """The dimension along which several vectors are taken: 1 for kernels that ask for their ids in it.

    But where nothing is a loop and comparisons tell rows apart, those of one row share all that comes of
    these; so do stencils that leave their edges out. Nor should rows leave a loop one by one that lanes
    leave together: what it does would need masks, and wait for the row that stays longest.
    """
    axis = 0
    for costs in regions:
        of_rows = _of_rows(costs)
        if not of_rows:
            continue
        axis = 1
        if not costs.nest.loops and any(map(_compares_ints, of_rows)):
            return 0
        if any(_ends_by_rows(loop, of_rows) for loop in costs.nest.loops):
            return 0
    return axis


def _ends_by_rows(loop: Loop, of_rows: set[Instruction]) -> bool:
    """Whether all lanes leave a loop at the same time, which the id of their row decides."""
    for block in loop.blocks:
        terminator = block.terminator
        if terminator.op is not Op.BranchConditional or loop.blocks.issuperset(block.successors()):
            continue
        condition = terminator.operands[0]
        if condition in of_rows and condition.op is not PassOp.AnyLane:
            return True
    return False


def _stores_columns(costs: RegionCosts) -> bool:
    """Whether the work-item of the next row stores right behind or before, and the next of its row elsewhere:
    several rows are one store then (codegen/access/store_merging.py)."""
    of_rows = _of_rows(costs)
    steps = Strides(1, of_rows.__contains__)
    for store in (i for i in of_rows if i.op is Op.Store):
        pointer, value = store.operands[:2]
        size = _bits(value.type) // 8
        near = (size, -size)
        if size and steps.of(pointer) in near and costs.shapes.stride(pointer) not in (0, *near):
            return True
    return False


def _of_rows(costs: RegionCosts) -> set[Instruction]:
    """The ids of dimension 1 of a region, and what depends on them; found out once."""
    if costs.of_rows is None:
        costs.of_rows = _depending(costs.region)
    return costs.of_rows


def _depending(region: Region) -> set[Instruction]:
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
