"""How long a vector of work-items takes, and how much of that is waiting which other vectors could fill.

The busiest resource of a core counts, or a chain of instructions that is longer: what a loop carries from one
iteration to the next comes one after the other; else the core looks some micro-operations ahead, and finds
work in the next iterations. Several vectors at a time fill both gaps and share what they do alike, until
their registers are spilled, or until the code of a loop is larger than the cache for instructions.
`LoopWork` is what both estimates add up: this one, which decides and knows no launch, and that of
region_work.py. Only the relation of the times that this one finds to one another means anything.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container

from ...device.target import Target
from ...records import field, record, replace
from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Value
from ..analysis.sums import Sums
from ..ir.dominance import Loop, LoopNest, dominators
from ..ir.instructions import ADDRESS, ATOMICS, int_value, is_constant_int, predecessors, reads_builtin
from ..ir.ops import PassOp
from ..ir.plan import KernelPlan, Region
from ..ir.shapes import ShapeInfo
from .cpu_models import (
    ISSUE,
    LOAD,
    RESOURCES,
    STORE,
    Cost,
    CpuModel,
    cycles,
    model_of,
    on_vectors,
)
from .operations import (
    SCATTERED,
    UNIFORM,
    Operations,
    is_access,
    is_local,
    place_of,
    size_in_memory,
)
from .pressure import vector_pressure

UNKNOWN_TRIPS = 8.0  # of a loop of which nothing is known
ITERATION = 1.0  # micro-operations to count an iteration
VECTOR_OVERHEAD = 3.0  # cycles of a vector: ids, the loop over vectors
_MISSED = 0.25  # the share of branches that ask lanes which are not predicted
_SELDOM = 4  # how much less often a loop comes to blocks that not every iteration comes to
_MOST_TRIPS = 1 << 20

# What a kernel must gain without lanes to do without: estimates are not better than that.
WORTH = 1.2

# Of the micro-operations on registers that are not there, how many more load, and store.
_RELOADED, _SPILLED = 0.5, 0.25

_SUMS = frozenset((Op.IAdd, Op.SConvert, Op.UConvert, Op.Bitcast)) | ADDRESS
_ORDERS = frozenset((
    Op.ULessThan, Op.SLessThan, Op.UGreaterThan, Op.SGreaterThan, Op.ULessThanEqual, Op.SLessThanEqual,
    Op.UGreaterThanEqual, Op.SGreaterThanEqual, Op.IEqual, Op.INotEqual,
))  # fmt: skip
_MEMORY = ATOMICS | {Op.Load, Op.Store, Op.ExtInst, PassOp.SlotLoad, PassOp.SlotStore}
_OF_EACH = frozenset((PassOp.AnyLane, PassOp.AnyLaneOfPart, Op.Store, PassOp.SlotStore))  # of each vector


@record(eq=False)
class LoopWork:
    """Of a loop without those inside of it, or of what is in none.

    times: its iterations in all; trips: those of one entry; own, shared: slots of each resource that all
    iterations take, of one vector, and of what is done once for all vectors that are executed together;
    longest, carried: cycles of an iteration's longest chain, and what it waits for the iteration before.
    """

    times: float
    trips: float = 1.0
    own: list[float] = field(default_factory=lambda: [0.0] * RESOURCES)
    shared: list[float] = field(default_factory=lambda: [0.0] * RESOURCES)
    longest: float = 0.0
    carried: float = 0.0

    def cycles(self, model: CpuModel, vectors: int = 1, share: float = 1.0, missing: float = 0.0) -> float:
        """Of one vector, when so many are executed together. share: of its own micro-operations that are left
        of those that are done once for all vectors (row_reuse.py); missing: of registers."""
        total = [a * share + b / vectors for a, b in zip(self.own, self.shared, strict=True)]
        spill(total, missing)
        busy, _ = cycles(total, model)
        if self.times <= 0:
            return busy
        each = total[ISSUE] / self.times
        # The last iterations overlap with the first ones of the next vectors.
        carried = self.carried * min(1.0, self.trips * each * vectors / model.window)
        seen = each * vectors + model.window
        return math.hypot(busy, self.times * max(carried / vectors, self.longest * each / seen))


def spill(slots: list[float], missing: float) -> None:
    """Adds stores and reloads of registers, a share of which is missing."""
    if missing > 0:
        operations = missing * on_vectors(slots)
        slots[LOAD] += _RELOADED * operations
        slots[STORE] += _SPILLED * operations
        slots[ISSUE] += (_RELOADED + _SPILLED) * operations


def missing_registers(pressure: float, model: CpuModel) -> float:
    """The share of registers that are needed at once and are not there."""
    return max(0.0, 1 - model.registers / max(pressure, 1.0))


@record(eq=False)
class Work:
    """What a region does with one vector of work-items. once: cycles that are the same for any number of
    vectors; walks: whether a loop has lanes that walk through rows of their own; weights: micro-operations of
    instructions, in code; code: (micro-operations of a loop outside inner ones, of an iteration with
    inner ones, the same of what is shared), without what iterations seldom come to."""

    model: CpuModel
    once: float = 0.0
    loops: dict[Loop | None, LoopWork] = field(default_factory=dict)
    walks: bool = False
    weights: dict[Instruction, float] = field(default_factory=dict)
    code: list[tuple[float, float, float]] = field(default_factory=list)

    def cycles(self, vectors: int, pressure: float, share: float = 1.0) -> float:
        """Of one vector, when so many are executed together, each of which needs `pressure` registers. share:
        see LoopWork."""
        missing = missing_registers(vectors * pressure, self.model)
        busy = sum(loop.cycles(self.model, vectors, share, missing) for loop in self.loops.values())
        return busy + self.once / vectors + self.fetched(vectors) * share * self.model.fetch_cycles

    def fetched(self, vectors: int) -> float:
        """Micro-operations of one vector that come from beyond the cache for instructions: of a loop of twice
        its size all, of a smaller one a share, since nobody knows yet how long the code will be."""
        model = self.model
        return sum(
            units * min(1.0, max(0.0, (own * vectors + shared) * model.code_bytes / model.code_cache - 1))
            for units, own, shared in self.code
        )


class RegionCosts:
    """What decisions ask of a region, each found out once: loops, registers, work. follows_ids: whether
    places that are made of ids and arguments alone are taken to follow one another, whatever they are made of
    these with."""

    def __init__(
        self,
        region: Region,
        model: CpuModel,
        width: int,
        follows_ids: bool = False,
        calls: CallCosts | None = None,
    ) -> None:
        self.follows_ids = follows_ids
        self.region, self.function, self.shapes = region, region.function, region.shapes
        self.operations = Operations(model, region.shapes, width, calls.cycles if calls else None)
        self.operations.note_updates(self.function)
        self.sums = Sums()
        self.of_rows: set[Instruction] | None = None  # what depends on ids of dimension 1 (width.py)
        self.before = predecessors(self.function)
        self.tree = dominators(self.function, self.before)
        self.nest = LoopNest(self.function, self.tree, self.before)
        self._edges = region.edges if region.edges in self.before else None

    @functools.cached_property
    def known(self) -> dict[Loop, float | None]:
        """How often each loop runs when it is entered, as far as that is known before a launch."""
        return {loop: known_trips(loop) for loop in self.nest.loops}

    def times(self, loop: Loop | None) -> float:
        """How often a loop's iterations run for a vector."""
        times = 1.0
        while loop is not None:
            # Where few lanes are, seldom any is.
            times *= 1 / _SELDOM if loop.header in self.region.few else self.known[loop] or UNKNOWN_TRIPS
            if self.is_seldom(loop.header, loop.parent):
                times /= _SELDOM
            loop = loop.parent
        return times

    def is_seldom(self, block: Block, loop: Loop | None) -> bool:
        """Whether iterations of a loop may do without a block, or most vectors."""
        if loop is None:
            return self._edges is not None and self.tree.dominates(self._edges, block)
        return not any(self.tree.dominates(block, latch) for latch in loop.latches)

    def step(self, access: Instruction, within_bounds: bool = False) -> int | None:
        """By how many bytes lanes are apart, if no sum wraps: codegen/access/runtime_contiguity.py asks when
        the code runs. within_bounds: and if what is clamped, as coordinates of pixels are, is within its
        bounds, as in most vectors."""
        pointer, index, _ = place_of(access)
        if index is not None:
            return None
        step = self.sums.step(pointer, self.shapes, within_bounds)
        if step is None and self.follows_ids and _is_of_ids(pointer):
            return size_in_memory(access)
        return step

    @functools.cached_property
    def pressure(self) -> int | None:
        """Registers that a vector needs at once; None for functions that are too large to look at."""
        return vector_pressure(self.function, self.operations, self.nest, self.tree)

    @functools.cached_property
    def work(self) -> Work:
        """What a vector does, alone or with others of its row."""
        strides = self.shapes.strides
        differ = {i for b in self.function.blocks for i in b.instructions if strides.get(i, 0) != 0}
        return work_of(self, self.operations, differ)

    @functools.cached_property
    def alone(self) -> Work:
        """What one work-item does without lanes, where all values of one fill registers by themselves."""
        return work_of(self, Operations(self.operations.model, ShapeInfo(), 1), None)

    @functools.cached_property
    def cycles_with_lanes(self) -> float:
        """Of a work-item that has a lane."""
        pressure = self.pressure
        if pressure is None:  # too long to look at: more than there are
            pressure = self.operations.width * self.operations.model.registers
        return self.work.cycles(1, pressure) / self.operations.width

    @functools.cached_property
    def cycles_alone(self) -> float:
        """Of a work-item without lanes."""
        return self.alone.cycles(1, self.pressure_alone)

    @property
    def cycles_of_own_vectors(self) -> float:
        """Of a work-item without lanes whose vectors fill registers: its chains take as long as those of all
        lanes together, but it has only a share of their micro-operations, registers and code, and its
        branches go the way that is not predicted as much less often."""
        lanes, work = self.operations.width, self.work
        loops = {
            loop: replace(each, own=[a / lanes for a in each.own], shared=[a / lanes for a in each.shared])
            for loop, each in work.loops.items()
        }
        code = [(units / lanes, own / lanes, shared / lanes) for units, own, shared in work.code]
        one = replace(work, once=work.once / lanes, loops=loops, code=code)
        return one.cycles(1, self.pressure_alone)

    @property
    def pressure_alone(self) -> int:
        """About how many registers one work-item needs."""
        return -(-(self.pressure or 0) // self.operations.width)


class CallCosts:
    """What the functions that a kernel goes on calling take."""

    def __init__(self, plan: KernelPlan, model: CpuModel) -> None:
        self._plan, self._model = plan, model
        self._found: dict[Function, float] = {}

    def cycles(self, function: Function) -> float:
        """Of one call for a vector of work-items; 0 for functions of the library."""
        version, width = self._plan.vector_functions.get(function), self._plan.options.width
        if not function.blocks or (version is None and width > 1):
            return 0.0
        if function not in self._found:
            region = Region(0, function, shapes=version.shapes if version is not None else ShapeInfo())
            costs = RegionCosts(region, self._model, width, calls=self)
            self._found[function] = costs.work.cycles(1, 0.0)
        return self._found[function]


class PlanCosts:
    """The same of a plan."""

    def __init__(self, plan: KernelPlan, target: Target) -> None:
        self.plan, self.target, self.model = plan, target, model_of(target)
        self._regions: dict[int, RegionCosts] = {}

    def of(self, region: Region) -> RegionCosts:
        """Of a region that does not run once for a group."""
        found = self._regions.get(region.index)
        if found is None:
            width, calls = self.plan.options.width, CallCosts(self.plan, self.model)
            found = self._regions[region.index] = RegionCosts(region, self.model, width, calls=calls)
        return found

    @property
    def of_lanes(self) -> RegionCosts | None:
        """Of the region of a kernel that has lanes, but could do without."""
        region = self.plan.region_of_lanes
        return self.of(region) if region is not None else None


def work_of(costs: RegionCosts, operations: Operations, own: Container[Instruction] | None) -> Work:
    """Of a linearised region. own: values that vectors which are executed together have each for itself; None
    if nothing is shared."""
    nest, model = costs.nest, operations.model
    work = Work(model)
    always: dict[Loop | None, tuple[float, float]] = {}  # of an iteration, what all iterations come to
    for loop, blocks in nest.own_blocks().items():
        times = costs.times(loop)
        # That a loop of which nothing is known ends is known late: nothing hides its last iterations.
        trips = 1.0 if loop is None else costs.known[loop] or math.inf
        found, of_own, of_shared = LoopWork(times, trips), 0.0, 0.0
        latencies: dict[Instruction, float] = {}
        for block in blocks:
            is_seldom = costs.is_seldom(block, loop)
            often = times / _SELDOM if is_seldom else times
            for i in block.instructions:
                cost = operations.cost(i) if i.op not in _MEMORY else _cost(i, costs, operations)
                latencies[i] = cost.latency
                if not cost.used:
                    continue
                is_own = own is None or i.op in _OF_EACH or i in own
                slots = found.own if is_own else found.shared
                for resource, count in cost.used:
                    slots[resource] += count * often
                weight = work.weights[i] = cost.code if is_own else 0.0
                if not is_seldom:
                    of_own += weight
                    of_shared += cost.code - weight
            ends = block.terminator.operands[:1]
            is_latch = loop is not None and block in loop.latches
            if len(block.successors()) > 1 and ends and asks_lanes(ends[0]) and not is_latch:
                work.once += _MISSED * model.mispredicted * often
            if loop is not None:
                loads = (i for i in block.instructions if i.op is Op.Load)
                work.walks = work.walks or any(_walks(i, loop, costs.shapes) for i in loads)
        always[loop] = of_own, of_shared
        if loop is None:
            work.once += VECTOR_OVERHEAD if operations.width > 1 else ITERATION
        else:
            found.shared[ISSUE] += ITERATION * times
        found.longest, found.carried = chains(blocks, loop, latencies.__getitem__)
        work.loops[loop] = found
    _add_code(work, costs, always)
    return work


def _add_code(work: Work, costs: RegionCosts, always: dict[Loop | None, tuple[float, float]]) -> None:
    """Notes how long the code of loops is, with that of the loops inside; a kernel is a loop over its
    vectors."""
    code = dict(always)
    for loop in reversed(costs.nest.loops):
        if not costs.is_seldom(loop.header, loop.parent):
            around, inside = code[loop.parent], code[loop]
            code[loop.parent] = around[0] + inside[0], around[1] + inside[1]
    work.code = [(costs.times(loop) * own, *code[loop]) for loop, (own, _) in always.items()]


def known_trips(loop: Loop) -> float | None:
    """How often a loop runs that counts from one constant to another, and is left in no other way."""
    if sum(not loop.blocks.issuperset(block.successors()) for block in loop.blocks) != 1:
        return None
    for block in (*loop.latches, loop.header):
        terminator = block.terminator
        if terminator.op is not Op.BranchConditional or loop.blocks.issuperset(terminator.operands[1:3]):
            continue
        condition = terminator.operands[0]
        if not isinstance(condition, Instruction) or condition.op not in _ORDERS:
            return None
        counted, end = condition.operands
        if is_constant_int(counted):
            counted, end = end, counted
        if not isinstance(counted, Instruction) or not is_constant_int(end):
            return None
        steps = _steps(counted, loop)
        if steps is None:
            return None
        start, step = steps
        width = end.type.width
        distance = (int_value(end) - start) * (1 if step > 0 else -1) & (1 << width) - 1
        # Where an iteration ends with the counter that it began with, one more follows the last that goes on.
        trips = math.ceil(distance / abs(step)) + (counted.op is Op.Phi and block in loop.latches)
        return float(min(max(trips, 1), _MOST_TRIPS))
    return None


def _steps(value: Instruction, loop: Loop) -> tuple[int, int] | None:
    """Where a loop's counter, or what it is in the next iteration, begins, and its step."""
    if value.op is Op.IAdd and isinstance(value.operands[0], Instruction):
        value = value.operands[0]
    if value.op is not Op.Phi or value.block is not loop.header:
        return None
    start, step = None, None
    for operand, block in zip(value.operands[::2], value.operands[1::2], strict=True):
        if block not in loop.latches:
            start = int_value(operand) if is_constant_int(operand) else None
        elif isinstance(operand, Instruction) and operand.op is Op.IAdd and operand.operands[0] is value:
            more = operand.operands[1]
            step = int_value(more) if is_constant_int(more) else None
    if start is None or not step:
        return None
    bits = value.type.width
    return start, step - (step >> bits - 1 << bits)


def asks_lanes(condition: object) -> bool:
    """Whether a jump asks whether any lane of a mask is left."""
    return isinstance(condition, Instruction) and condition.op is PassOp.AnyLane


def _cost(i: Instruction, costs: RegionCosts, operations: Operations) -> Cost:
    """Of an access to memory, as far as its shape tells how lanes reach it, or of a function."""
    if i.op in ATOMICS:
        kind = SCATTERED if operations.is_varying(i.operands[0]) else UNIFORM
        return operations.atomic(i, is_local(i.operands[0]), kind).finish()
    if is_access(i):
        return operations.usual_access(i, *operations.how_reached(i, costs.step))
    if i.op is PassOp.SlotLoad or i.op is PassOp.SlotStore:
        return operations.slot(i).finish()
    return operations.cost(i)


def _is_of_ids(pointer: Value) -> bool:
    """Whether an address depends on nothing in memory."""
    seen: set[Value] = set()
    rest = [pointer]
    while rest:
        value = rest.pop()
        if not isinstance(value, Instruction) or value in seen:
            continue
        seen.add(value)
        is_kept = value.op is PassOp.SlotLoad and value.operands[0].stride is None
        if is_kept or value.op is Op.FunctionCall or (value.op is Op.Load and not reads_builtin(value)):
            return False
        rest += [o for o in value.operands if isinstance(o, Value)]
    return True


def _walks(i: Instruction, loop: Loop, shapes: ShapeInfo) -> bool:
    """Whether a load goes through a row for each lane: its address is one that varies and that the loop does
    not change, plus what is the same in all lanes."""
    if not _is_varying(shapes, i.operands[0]):
        return False
    moves, values = False, [i.operands[0]]
    while values:
        value = values.pop()
        if not isinstance(value, Instruction) or value.block not in loop.blocks:
            continue
        if not _is_varying(shapes, value):
            moves = True
        elif value.op in _SUMS:
            values += value.operands
        else:
            return False
    return moves


def _is_varying(shapes: ShapeInfo, value: object) -> bool:
    stride = shapes.strides.get(value, 0)  # type: ignore[call-overload]
    return stride is None or (type(stride) is tuple and None in stride)


def chains(
    blocks: list[Block], loop: Loop | None, latency: Callable[[Instruction], float]
) -> tuple[float, float]:
    """Cycles of the longest chain of instructions through a loop's own blocks, and of what each iteration
    waits for the one before, where the loop is an innermost one."""
    start = dict.fromkeys(loop.header.phis(), 0.0) if loop is not None else {}
    done = finished(blocks, start, latency)
    longest = max(done.values(), default=0.0)
    if loop is None or loop.children:
        return longest, 0.0
    for phi in start:
        values = zip(phi.operands[::2], phi.operands[1::2], strict=True)
        start[phi] = max((done.get(v, 0.0) for v, b in values if b in loop.latches), default=0.0)
    return longest, max(finished(blocks, start, latency).values(), default=0.0) - longest


def finished(
    blocks: list[Block], start: dict[Instruction, float], latency: Callable[[Instruction], float]
) -> dict[Instruction, float]:
    """When each value is there. start: the same of phis; latency: cycles from an operand to the result."""
    done = dict(start)
    for block in blocks:
        for i in block.instructions:
            if i in start:
                continue
            at = done.get(i.mask, 0.0) if isinstance(i.mask, Instruction) else 0.0
            for o in i.operands:
                if o in done and done[o] > at:
                    at = done[o]
            done[i] = at + latency(i)
    return done
