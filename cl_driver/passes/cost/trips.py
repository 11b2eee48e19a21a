"""How often loops run and blocks are executed, for the work-items that stand for a launch.

A loop's phis are followed for some iterations. What then grows by the same step goes on to, and the iteration
in which the loop is left is searched for; what does not (i >>= 1) is followed to its end. A loop that is left
for what its data are has a default. Lanes leave a loop one by one, but a vector stays for its last one.
"""

from __future__ import annotations

import math

from ...records import field, record
from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Kind, Operand, Value
from ..ir.dominance import DominatorTree, Loop, LoopNest, dominators
from ..ir.fold import signed
from ..ir.instructions import predecessors
from ..ir.ops import PassOp
from .sampled_values import Frame, Numbers, Surroundings, differences
from .work import UNKNOWN_TRIPS

_WAITING = 1.8  # how much longer the last lane of a vector stays in such a loop than one does
_CERTAIN = 0.9999  # a probability that is not guessed from data
_FOLLOWED = 40  # iterations of what does not grow by the same step
_MOST = 1 << 24  # iterations up to which the end of a loop is searched for


@record(eq=False)
class LoopTrips:
    """of_lanes: how often each lane goes round; of_vectors: how often each vector does; is_known: whether
    that follows from ids and arguments; next: the frame of the iteration after the one that is looked at."""

    of_lanes: list[float]
    of_vectors: list[float]
    is_known: bool
    next: Frame


@record(eq=False)
class Flow:
    """How often each vector comes to each block, and the probability that the lanes' branches are not guessed
    right; frame: the values; trips: of each loop."""

    frame: Frame
    nest: LoopNest
    tree: DominatorTree[Block]
    trips: dict[Loop, LoopTrips]
    times: dict[Block, list[float]] = field(default_factory=dict)
    doubt: dict[Block, float] = field(default_factory=dict)

    def mean(self, block: Block) -> float:
        """How often a vector comes to a block on average."""
        times = self.times.get(block)
        return self.frame.around.samples.mean(times) if times else 0.0


def graph_of(function: Function) -> tuple[LoopNest, DominatorTree[Block]]:
    """The loops and the dominators of a function."""
    before = predecessors(function)
    tree = dominators(function, before)
    return LoopNest(function, tree, before), tree


def follow(around: Surroundings) -> Flow:
    """Binds all loops, and counts how often blocks are executed."""
    frame = Frame(around, {})
    trips = {loop: _Rounds(around, frame, loop, k).bind() for k, loop in enumerate(around.nest.loops)}
    flow = Flow(frame, around.nest, around.tree, trips)
    _count(flow, around)
    return flow


class _Rounds:
    """One loop, those around which are bound."""

    def __init__(self, around: Surroundings, frame: Frame, loop: Loop, number: int) -> None:
        self.around, self.frame, self.loop, self.number = around, frame, loop, number
        self.size = around.samples.size
        self.phis = list(loop.header.phis())
        self.starts: dict[Instruction, Value] = {}
        self.nexts: dict[Instruction, list[Value]] = {}
        for phi in self.phis:
            for value, block in zip(phi.operands[::2], phi.operands[1::2], strict=True):
                if block in loop.latches:
                    self.nexts.setdefault(phi, []).append(value)
                else:
                    self.starts[phi] = value
        self.exits = self._exits()
        self.crossing: dict[Instruction, list[int | None]] = {}
        self.states: list[dict[Instruction, Numbers]] = []
        self.steps: dict[Instruction, list[int | float | None]] = {}  # without phis that do not grow evenly
        self.is_even = True  # whether what exits depend on grows evenly

    def _exits(self) -> list[tuple[Block, Operand, bool]]:
        """(block, condition, whether it leaves where that is true) of branches out of the loop."""
        found = []
        for block in self.around.nest.order:
            if self.around.nest.innermost.get(block) is not self.loop:
                continue
            terminator = block.terminator
            if terminator.op is not Op.BranchConditional:
                continue
            leaves = [way not in self.loop.blocks for way in terminator.operands[1:3]]
            if leaves[0] != leaves[1]:
                found.append((block, terminator.operands[0], leaves[0]))
        return found

    def bind(self) -> LoopTrips:
        """Finds how often the loop runs, and binds its phis to an iteration in between."""
        first = {phi: self._start(phi) for phi in self.phis}
        self.states = [first]
        for block, condition, _ in self.exits:
            for i in self._equalities(condition, block):
                self.crossing[i] = differences(i, self._inner(first))
        for _ in range(3):
            self._advance()
        self._find_steps()
        of_lanes, is_known = self._of_lanes()
        samples = self.around.samples
        each = len(samples.lanes)
        live = self._live()
        of_vectors = [max(of_lanes[k : k + each]) for k in range(0, self.size, each)]
        if not is_known and samples.width > 1 and self._is_divergent():
            of_vectors = [trips * _WAITING for trips in of_vectors]
        at = []
        for lane in range(self.size):
            chance = samples.chance[lane // each][0] + 0.618 * self.number
            at.append(float(math.floor(chance % 1 * of_vectors[lane // each])))
        bound = self._state_at(at)
        for phi in self.phis:
            if phi.type.kind is Kind.BOOL and phi in live:
                share = [min(1.0, n / max(v, 1.0)) for n, v in self._shares(of_lanes, of_vectors)]
                stays = [float(t < n) for t, n in zip(at, of_lanes, strict=True)] if is_known else share
                start = first[phi]
                bound[phi] = [
                    (s if isinstance(s, float) else 0.5) * e for s, e in zip(start, stays, strict=True)
                ]
        self.frame.bound.update(bound)
        self.around.exits[self.loop] = self._inner(self._state_at([max(0.0, n - 1) for n in of_lanes]))
        after = self._state_at([t + 1 for t in at])
        after.update({phi: bound[phi] for phi in self.phis if phi.type.kind is Kind.BOOL})
        return LoopTrips(of_lanes, of_vectors, is_known, self._inner(after))

    def _shares(self, of_lanes: list[float], of_vectors: list[float]) -> list[tuple[float, float]]:
        each = len(self.around.samples.lanes)
        return [(trips, of_vectors[lane // each]) for lane, trips in enumerate(of_lanes)]

    def _start(self, phi: Instruction) -> Numbers:
        value = self.starts.get(phi)
        return self.around.nothing if value is None else self.frame.of(value)

    def _live(self) -> set[Instruction]:
        return {phi for phi in self.phis if phi.type.kind is Kind.BOOL and phi in self.nexts}

    def _is_divergent(self) -> bool:
        return any(isinstance(c, Instruction) and c.op is PassOp.AnyLane for _, c, _ in self.exits)

    def _inner(self, state: dict[Instruction, Numbers], crosses: bool = False) -> Frame:
        return Frame(self.around, state, self.frame, self.loop, self.crossing if crosses else None)

    def _equalities(self, condition: Operand, block: Block) -> list[Instruction]:
        """Comparisons for equality that a condition is made of."""
        found, rest, seen = [], [condition], set()
        while rest:
            i = rest.pop()
            if not isinstance(i, Instruction) or i in seen or i.block not in self.loop.blocks:
                continue
            seen.add(i)
            if i.op in (Op.IEqual, Op.INotEqual) and i.type.kind is Kind.BOOL:
                found.append(i)
            elif i.op in (Op.LogicalAnd, Op.LogicalOr, Op.LogicalNot, PassOp.AnyLane):
                rest += i.operands
        return found

    def _advance(self) -> None:
        """The state of the next iteration."""
        state = self.states[-1]
        frame = self._inner(state)
        after = {}
        for phi in self.phis:
            values = self.nexts.get(phi, [])
            if phi.type.kind is Kind.BOOL:
                after[phi] = state[phi]  # of lanes that have not left
            elif phi.type.kind in (Kind.INT, Kind.POINTER, Kind.FLOAT) and len(values) == 1:
                after[phi] = frame.of(values[0])
            else:
                after[phi] = self.around.nothing
        self.states.append(after)

    def _find_steps(self) -> None:
        """By how much each phi grows with each iteration."""
        for phi in self.phis:
            if phi.type.kind is Kind.BOOL:
                continue
            found: list[int | float | None] = []
            for lane in zip(*(state[phi] for state in self.states), strict=True):
                gaps = [_gap(phi, a, b) for a, b in zip(lane, lane[1:], strict=False)]
                if None not in gaps and not gaps[0] == gaps[1] == gaps[2]:
                    break
                found.append(None if None in gaps else gaps[0])
            else:
                self.steps[phi] = found
        uneven = {phi for phi in self.phis if phi not in self.steps and phi.type.kind is not Kind.BOOL}
        seen: set[Operand] = set()
        rest = [condition for _, condition, _ in self.exits]
        while rest:
            value = rest.pop()
            if isinstance(value, Instruction) and value not in seen and value.block in self.loop.blocks:
                seen.add(value)
                rest += value.operands
        self.is_even = uneven.isdisjoint(seen)

    def _state_at(self, iterations: list[float]) -> dict[Instruction, Numbers]:
        """The phis in an iteration of each lane."""
        state: dict[Instruction, Numbers] = {}
        for phi, first in self.states[0].items():
            steps = self.steps.get(phi)
            if phi.type.kind is Kind.BOOL:  # of lanes that are in the loop at all
                state[phi] = [float(p != 0.0) for p in first]
                continue
            if steps is None:
                state[phi] = self._followed_to(phi, iterations)
                continue
            mask = (1 << phi.type.width) - 1 if phi.type.kind is Kind.INT else -1
            numbers: Numbers = []
            for start, step, t in zip(first, steps, iterations, strict=True):
                if step is None or not isinstance(start, int | float):
                    numbers.append(None)
                elif phi.type.kind is Kind.FLOAT:
                    numbers.append(start + step * t)
                else:
                    numbers.append((int(start) + int(step) * int(t)) & mask)
            state[phi] = numbers
        return state

    def _followed_to(self, phi: Instruction, iterations: list[float]) -> Numbers:
        while len(self.states) <= min(max(iterations), _FOLLOWED):
            self._advance()
        last = len(self.states) - 1
        return [self.states[min(int(t), last)][phi][lane] for lane, t in enumerate(iterations)]

    def _of_lanes(self) -> tuple[list[float], bool]:
        """How often each lane goes round, and whether that is known of most."""
        if not self.exits:
            return [UNKNOWN_TRIPS] * self.size, False
        lower, upper = [0.0] * self.size, [math.inf] * self.size
        left, maybe = self._left([0.0] * self.size)
        ends_at_latch = [math.nan] * self.size
        for lane, at in enumerate(left):
            if at is not None:
                upper[lane], ends_at_latch[lane] = 0.0, at
        step = 1.0
        most = float(_MOST if self.is_even else _FOLLOWED)
        while step <= most and math.inf in upper:
            at_step, _ = self._left([step] * self.size)
            for lane, at in enumerate(at_step):
                if upper[lane] == math.inf:
                    if at is None:
                        lower[lane] = step
                    else:
                        upper[lane], ends_at_latch[lane] = step, at
            if step == 2.0 and all(at is None for at in at_step) and all(maybe):
                break
            step = step * 2 if self.is_even else step + 1
        while any(high - low > 1 for low, high in zip(lower, upper, strict=True) if high != math.inf):
            middle = [
                low if high == math.inf else (low + high) // 2 for low, high in zip(lower, upper, strict=True)
            ]
            for lane, at in enumerate(self._left(middle)[0]):
                if upper[lane] - lower[lane] > 1 and upper[lane] != math.inf:
                    if at is None:
                        lower[lane] = middle[lane]
                    else:
                        upper[lane], ends_at_latch[lane] = middle[lane], at
        trips, known = [], 0
        for lane in range(self.size):
            if upper[lane] == math.inf:
                trips.append(UNKNOWN_TRIPS)
                continue
            counted = upper[lane] + ends_at_latch[lane]
            if maybe[lane] and counted > UNKNOWN_TRIPS:
                counted = math.sqrt(counted * UNKNOWN_TRIPS)  # left before its end for what its data are
            else:
                known += 1
            trips.append(counted)
        return trips, 2 * known >= self.size

    def _left(self, iterations: list[float]) -> tuple[list[float | None], list[bool]]:
        """For each lane: 1 if it leaves behind an iteration's body by then, 0 if before it, None if it does
        not; and whether there are exits of which nobody can tell."""
        frame = self._inner(self._state_at(iterations), crosses=True)
        left: list[float | None] = [None] * self.size
        maybe = [False] * self.size
        for block, condition, where_true in self.exits:
            if isinstance(condition, Instruction) and condition.op is PassOp.AnyLane:
                condition = condition.operands[0]
            numbers = frame.of(condition)
            is_last = block in self.loop.latches
            for lane, number in enumerate(numbers):
                p = number if isinstance(number, float) else 0.5
                p = p if where_true else 1 - p
                if p >= _CERTAIN:
                    left[lane] = max(float(is_last), left[lane] or 0.0)
                elif p > 1 - _CERTAIN:
                    maybe[lane] = True
        return left, maybe


def _gap(phi: Instruction, a: object, b: object) -> int | float | None:
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return None
    if phi.type.kind is Kind.INT:
        return signed(int(b - a) & ((1 << phi.type.width) - 1), phi.type.width)
    return b - a


def _count(flow: Flow, around: Surroundings) -> None:
    """How often blocks are executed."""
    samples, nest = around.samples, around.nest
    each = len(samples.lanes)
    vectors = samples.count
    arriving: dict[Block, list[float]] = {}
    inflow: dict[Loop, list[float]] = {}
    headers = {loop.header: loop for loop in nest.loops}
    exits: dict[Loop, int] = {}
    for block in nest.order:
        for way in block.successors():
            left = around.left_between(block, way)
            if left is not None:
                exits[left] = exits.get(left, 0) + 1
    for block in nest.order:
        if block is nest.order[0]:
            live = [max(samples.live[k : k + each]) for k in range(0, samples.size, each)]
            arriving[block] = live
        times = arriving.setdefault(block, [0.0] * vectors)
        if block in headers:
            loop = headers[block]
            inflow[loop] = times
            times = [a * max(n, 0.0) for a, n in zip(times, flow.trips[loop].of_vectors, strict=True)]
        flow.times[block] = times
        ways = block.successors()
        chances = _chances(flow, block, samples.size, each)
        staying = [way for way in ways if around.left_between(block, way) is None]
        for k, way in enumerate(ways):
            left = around.left_between(block, way)
            if left is not None:
                share = 1 / exits[left]
                found = [a * share for a in inflow[left]]
            elif len(staying) < len(ways):
                found = [t / len(staying) for t in times]
            else:
                found = [t * p for t, p in zip(times, chances[k], strict=True)]
            if way in headers and around.tree.dominates(way, block):
                continue  # back to the header
            old = arriving.get(way)
            arriving[way] = found if old is None else [a + b for a, b in zip(old, found, strict=True)]


def _chances(flow: Flow, block: Block, size: int, each: int) -> list[list[float]]:
    """For each way out of a block the probability that a vector takes it."""
    terminator, ways = block.terminator, block.successors()
    if terminator.op is not Op.BranchConditional or len(ways) == 1:
        return [[1 / len(ways)] * (size // each) for _ in ways]
    numbers = flow.frame.of(terminator.operands[0])
    yes = []
    for start in range(0, size, each):
        lanes = [p if isinstance(p, float) else 0.5 for p in numbers[start : start + each]]
        yes.append(sum(lanes) / len(lanes))
    flow.doubt[block] = flow.frame.around.samples.mean([min(p, 1 - p) for p in yes])
    return [yes, [1 - p for p in yes]]
