"""What one execution of a region's code takes of a core.

What a loop does not change counts before it. The busiest resource counts, or a chain of instructions that is
longer, as far as a core does not look beyond it; guesses of branches that fail and registers that are stored
and loaded again come on top.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Instruction, Value
from ..ir.dominance import Loop
from ..ir.fold import signed
from ..ir.instructions import ATOMICS, PURE, is_arithmetic
from ..ir.ops import PassOp
from ..ir.plan import Region
from .cpu_models import ISSUE, LOAD, NAMES, STORE, Cost, cycles
from .launch import Samples
from .locality import LINE, Access
from .operations import (
    PRIVATE,
    SCATTERED,
    UNIFORM,
    Operations,
    is_access,
    is_local,
    is_write,
    place_of,
    size_in_memory,
)
from .pressure import vector_pressure
from .sampled_values import Frame, Numbers, any_lane, base_of
from .trips import Flow
from .work import ITERATION, LoopWork, chains, missing_registers, spill


class RegionWork:
    """What one execution of a region's code takes. cycles: where caches hit; arithmetic, memory: what the
    busiest resource of each kind needs; slots: of all resources; bytes: of a work-item of each part, by kind
    of access; times: how often each instruction is executed; followed: what accesses
    touch."""

    def __init__(self, flow: Flow, operations: Operations, region: Region, in_lockstep: bool) -> None:
        self.flow, self.operations, self.region, self.in_lockstep = flow, operations, region, in_lockstep
        self.model, self.samples = operations.model, flow.frame.around.samples
        self.cycles = self.arithmetic = self.memory = 0.0
        self.slots = [0.0] * len(NAMES)
        self.bytes: dict[str, float] = {}
        self.accesses: list[Access] = []
        self.followed: dict[Instruction, Access] = {}
        self.costs: dict[Instruction, Cost] = {}
        self.homes: dict[Instruction, Loop | None] = {}
        self.times: dict[Instruction, float] = {}

    def run(self) -> None:
        """Adds up all instructions."""
        flow, model = self.flow, self.model
        of_loops: dict[Loop | None, list[float]] = {}
        for block in flow.nest.order:
            own = flow.nest.innermost.get(block)
            for i in block.instructions:
                home = self.homes[i] = self._home(i, own)
                cost = self.costs[i] = self._cost(i, block)
                times = flow.mean(block) if home is own else self._entries(block, own, home)
                self.times[i] = times
                total = of_loops.setdefault(home, [0.0] * len(NAMES))
                for k, slots in enumerate(cost.slots):
                    if slots:
                        total[k] += slots * times
        for each in flow.nest.loops:
            total = of_loops.setdefault(each, [0.0] * len(NAMES))
            total[ISSUE] += ITERATION * flow.mean(each.header)
        missing = self._missing_registers()
        blocks = flow.nest.own_blocks()
        for loop, total in of_loops.items():
            spill(total, missing)
            memory = max(total[LOAD] / model.load, total[STORE] / model.store)
            arithmetic = cycles([0.0 if k in (LOAD, STORE) else n for k, n in enumerate(total)], model)[0]
            times = flow.mean(loop.header) if loop is not None else 1.0
            entries = self._entries(loop.header, loop, loop.parent) if loop is not None else 1.0
            longest, carried = chains(blocks[loop], loop, lambda i: self.costs[i].latency)
            rounds = max(1.0, times / max(entries, 1e-9))
            self.cycles += LoopWork(times, rounds, total, longest=longest, carried=carried).cycles(model)
            self.arithmetic += arithmetic
            self.memory += memory
            self.slots = [a + b for a, b in zip(self.slots, total, strict=True)]
        for block, doubt in flow.doubt.items():
            self.cycles += doubt * flow.mean(block) * model.mispredicted
        for each, trips in flow.trips.items():
            entries = flow.mean(each.header) / max(1.0, self._mean(trips.of_vectors))
            if not trips.is_known or max(trips.of_vectors) != min(trips.of_vectors):
                self.cycles += entries * model.mispredicted * 0.5

    def _home(self, i: Instruction, loop: Loop | None) -> Loop | None:
        """The loop that an instruction stays in when LLVM has moved it out of those that do not change it."""
        if i.op is Op.Phi or not (i.op in PURE or is_arithmetic(i)) or i.op is PassOp.AnyLane:
            return loop
        homes = [self.homes.get(o) for o in i.operands if isinstance(o, Instruction) and o in self.homes]
        while loop is not None and not any(_is_in(home, loop) for home in homes):
            loop = loop.parent
        return loop

    def _entries(self, block: Block, own: Loop | None, home: Loop | None) -> float:
        """How often a vector comes to the outermost of the loops that an instruction has left."""
        times = self.flow.mean(block)
        while own is not None and own is not home:
            times /= max(1.0, self._mean(self.flow.trips[own].of_vectors))
            own = own.parent
        return times

    def share_outside(self, i: Instruction, value: Value) -> float:
        """Which share of an instruction's executions is left if it comes behind the loops that a value does
        not change in."""
        home = self.homes.get(value) if isinstance(value, Instruction) else None
        own = self.flow.nest.innermost.get(i.block)
        return self._entries(i.block, own, home) / max(self.flow.mean(i.block), 1e-9)

    def _cost(self, i: Instruction, block: Block) -> Cost:
        if i.op in ATOMICS:
            pointer = i.operands[0]
            kind = UNIFORM if not self.operations.is_varying(pointer) else SCATTERED
            return self.operations.atomic(i, is_local(pointer), kind)
        if is_access(i):
            return self._access(i, block)
        if i.op is PassOp.SlotLoad or i.op is PassOp.SlotStore:
            return Cost() if self.in_lockstep else self.operations.slot(i)
        return self.operations.cost(i)

    def _access(self, i: Instruction, block: Block) -> Cost:
        pointer, size = place_of(i)[0], size_in_memory(i)
        kind, stride = self.operations.how_reached(i, self.sampled_stride)
        times = self.flow.mean(block)
        of_items = size / self.operations.width if kind == UNIFORM else size
        self.bytes[kind] = self.bytes.get(kind, 0.0) + of_items * times
        if kind != PRIVATE and not is_local(pointer):
            self.followed[i] = self._followed(i, block, kind, size, stride)
            self.accesses.append(self.followed[i])
        offsets = _offsets(self.flow.frame, i)
        is_known = block not in self.flow.nest.innermost and None not in offsets
        if self.in_lockstep and is_local(pointer) and is_known:
            cost = self.operations.in_registers(i)
        else:
            cost = self.operations.access(i, kind, stride, self._mixed(i))
        if self.in_lockstep and i.mask is not None:  # parts without work-items that take part are left out
            taken = any_lane(self.samples, self.flow.frame.of(i.mask))
            share = sum(p for p in taken if isinstance(p, float)) / max(1, len(taken))
            cost.slots = [n * share for n in cost.slots]
        return cost

    def _mixed(self, i: Instruction) -> float:
        """How often a vector is partly in the mask of an instruction."""
        if i.mask is None:
            return 0.0
        inside = self.flow.frame.of(i.mask)
        outside: Numbers = [1 - p if isinstance(p, float) else 0.5 for p in inside]
        pairs = zip(any_lane(self.samples, inside), any_lane(self.samples, outside), strict=True)
        both = [a * b if isinstance(a, float) and isinstance(b, float) else 0.0 for a, b in pairs]
        return self._mean(both[:: len(self.samples.lanes)])

    def sampled_stride(self, i: Instruction) -> int | None:
        """What the stride of most vectors is, where it is known only when they run."""
        samples, numbers = self.samples, _offsets(self.flow.frame, i)
        found: dict[int | None, int] = {}
        each, width = len(samples.lanes), samples.width
        for start in range(0, samples.size, each):
            a, b, last = numbers[start], numbers[start + 1], numbers[start + each - 1]
            step = None
            if isinstance(a, int) and isinstance(b, int) and isinstance(last, int):
                step = b - a if last - a == (b - a) * (width - 1) else None
            found[step] = found.get(step, 0) + 1
        return max(found, key=lambda step: found[step])

    def _followed(self, i: Instruction, block: Block, kind: str, size: int, stride: int | None) -> Access:
        """An access with what it touches, and by how much it moves on in loops, rows and columns."""
        flow, samples, width = self.flow, self.samples, self.operations.width
        numbers = _offsets(flow.frame, i)
        step = abs(stride) if stride is not None else size
        lanes = width if width > 1 else 1
        span = float(size if kind == UNIFORM else step * (lanes - 1) + size)
        lines = max(1.0, span / LINE) if step <= LINE else float(lanes)
        loops: list[tuple[Loop, float, float | None]] = []
        loop, share = flow.nest.innermost.get(block), 1.0
        if loop is not None:
            share = min(1.0, flow.mean(block) / max(flow.mean(loop.header), 1e-9))
        while loop is not None:
            trips = flow.trips[loop]
            moved = _offsets(trips.next, i)
            count = self._mean(trips.of_vectors)
            loops.append((loop, count, _typical(numbers, moved, 0, 1, samples)))
            entered = flow.mean(loop.header) / max(1.0, count)
            around = flow.mean(loop.parent.header) if loop.parent is not None else 1.0
            share *= min(1.0, entered / max(around, 1e-9))
            loop = loop.parent
        if not loops:
            share = min(1.0, flow.mean(block))
        across = _typical(numbers, numbers, 1, 3, samples)
        down = _typical(numbers, numbers, 2, 3, samples)
        return Access(
            base_of(place_of(i)[0]),
            kind,
            float(size),
            is_write(i),
            span,
            lines,
            flow.mean(block),
            loops,
            (across, down),
            next((n for n in numbers if isinstance(n, int)), None),
            share,
        )

    def _mean(self, values: list[float]) -> float:
        return self.samples.mean(values)

    def _missing_registers(self) -> float:
        """The share of registers that are needed and not there, where that is looked at."""
        function = self.region.function
        if self.operations.width == 1:
            return 0.0
        pressure = vector_pressure(function, self.operations, self.flow.nest, self.flow.tree)
        return missing_registers(pressure, self.model) if pressure is not None else 0.0


def _offsets(frame: Frame, i: Instruction) -> Numbers:
    """Where an access is, from what its pointer points into."""
    pointer, index, step = place_of(i)
    if index is None:
        return frame.of(pointer)
    width = index.type.width
    pairs = zip(frame.of(pointer), frame.of(index), strict=True)
    return [
        a + signed(b, width) * step if isinstance(a, int) and isinstance(b, int) else None for a, b in pairs
    ]


def _is_in(home: Loop | None, loop: Loop) -> bool:
    """Whether a loop is another one or inside of it."""
    while home is not None:
        if home is loop:
            return True
        home = home.parent
    return False


def _typical(before: Numbers, after: Numbers, shift: int, stride: int, samples: Samples) -> float | None:
    """The median step from numbers of vectors to those of others, each `stride`-th, `shift` further on."""
    each = len(samples.lanes)
    steps: list[float] = []
    for vector in range(0, samples.count, stride):
        a, b = before[vector * each], after[(vector + shift) * each]
        if isinstance(a, int) and isinstance(b, int):
            steps.append(float(b - a))
    if 2 * len(steps) < samples.count // stride:
        return None
    return sorted(steps)[len(steps) // 2]
