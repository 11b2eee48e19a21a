"""How often a group comes to the regions of a kernel with barriers, and what slots hold then.

Regions are followed one after the other, with the values that they leave in slots. Where these grow evenly
from round to round, the end of the rounds is searched for, as in trips.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind
from ..ir.ops import REGION_END, PassOp
from ..ir.plan import KernelPlan, PlanOptions, Region, Slot
from ..ir.shapes import ShapeInfo
from .launch import Launch, Number, Samples
from .sampled_values import Numbers, Surroundings, any_lane, differences
from .trips import Flow, follow, graph_of
from .work import UNKNOWN_TRIPS

_VISITS = 200  # regions that are visited one after the other before it is taken to be all
_MOST_ROUNDS = 1 << 16
_SURE = 0.95  # the share of exits to one region from which on that is taken to be known
_SELDOM = 0.01  # the share of work-items up to which nobody is taken to go on
_EVALUATED = 400  # regions that are looked at, after which loops of them are taken to end
_FOLLOWED = 24  # rounds of a loop in which nothing grows evenly, where no end is found


class Visits:
    """Follows the regions of a plan. times: how often a group comes to each; in them, flow() is that of a
    region with what its slots held when it was come to last."""

    def __init__(self, plan: KernelPlan, launch: Launch) -> None:
        self.plan, self.options = plan, plan.options
        self.samples = Samples(launch, plan.options)
        self.single = Samples(launch, PlanOptions())
        self.slots: dict[Slot, Numbers] = {}
        self.left: dict[int, dict[Slot, Numbers]] = {0: {}}  # what slots hold when regions are come to
        self.crossing: dict[Instruction, list[int | None]] | None = None  # see Surroundings
        self.loops: dict[int, set[int]] = {}  # of regions, by their headers
        self.evaluated = 0
        self.in_doubt = False  # whether it is not known which region follows
        self.times = self._visits()

    def flow(self, region: Region) -> Flow:
        """How often the blocks of a region are executed in one visit."""
        self.slots = self.left.get(region.index, {})
        return self._flow(region)

    def _visits(self) -> dict[int, float]:
        """How often a group comes to each region."""
        if len(self.plan.regions) == 1:
            return {0: 1.0}
        self.loops = _loops(self.plan.regions)
        return self._walk(0, None)[0]

    def _walk(self, region: int, loop: int | None) -> tuple[dict[int, float], int]:
        """Follows regions up to the end, or out of a loop, or back to its header. How often each was visited,
        and where it ended."""
        inside = self.loops[loop] if loop is not None else None
        visits: dict[int, float] = {}
        is_first = True
        for _ in range(_VISITS):
            if region == REGION_END or (inside is not None and region not in inside):
                break
            if region == loop and not is_first:
                break
            if region in self.loops and region != loop:
                found, region = self._repeat(region)
                _add(visits, found, 1.0)
            else:
                self.left[region] = dict(self.slots)
                _add(visits, {region: 1.0}, 1.0)
                region = self._next(region)
            is_first = False
        return visits, region

    def _repeat(self, header: int) -> tuple[dict[int, float], int]:
        """All rounds of a loop of regions: how often each is visited, and which one follows."""
        states = [dict(self.slots)]
        visits: dict[int, float] = {}
        region, most = header, _FOLLOWED
        self.in_doubt = False
        while region == header and len(states) <= most and self.evaluated < _EVALUATED:
            found, region = self._walk(header, header)
            _add(visits, found, 1.0)
            states.append(dict(self.slots))
            most = int(UNKNOWN_TRIPS) if self.in_doubt else most
            steps = _steps(states, self.samples) if len(states) == 4 and region == header else None
            if steps:
                rounds = self._rounds(header, states[-1], steps)
                self.slots = _after(states[-1], steps, rounds // 2)
                middle = self._walk(header, header)[0]
                _add(visits, middle, float(rounds))
                self.slots = _after(states[-1], steps, rounds)
                found, region = self._walk(header, header)
                _add(visits, found, 1.0)
                break
        if region == header:  # nobody knows when it ends
            region = next((k for k in self._exits(header)), REGION_END)
        return visits, region

    def _exits(self, header: int) -> list[int]:
        """Regions that a loop of regions may be left for."""
        inside = self.loops[header]
        ways = (k for region in inside for k in self.plan.regions[region].successors)
        return sorted({k for k in ways if k not in inside})

    def _rounds(self, header: int, state: dict[Slot, Numbers], steps: dict[Slot, int]) -> int:
        """How many more whole rounds there are in which slots go on to grow evenly."""
        outer, self.crossing = self.crossing, {}

        def stays(rounds: int) -> bool:
            self.slots = _after(state, steps, rounds)
            return self.evaluated < _EVALUATED and self._walk(header, header)[1] == header

        low, high = 0, 1
        if not stays(0):
            high = 0
        while 0 < high < _MOST_ROUNDS and stays(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if stays(middle) else (low, middle)
        self.crossing = outer
        return low

    def _next(self, region: int) -> int:
        """The region that follows, with what the slots hold then."""
        self.evaluated += 1
        flow = self._flow(self.plan.regions[region])
        if self.crossing is not None:
            for i in _equalities(flow):
                self.crossing.setdefault(i, differences(i, flow.frame))
        best, most, total = REGION_END, _SELDOM, 0.0
        slots = dict(self.slots)
        for block in flow.nest.order:
            for i in block.instructions:
                if i.op is PassOp.SlotStore:
                    self._store(flow, i, slots)
            following = (
                block.terminator.operands[0] if block.terminator.op is PassOp.RegionExit else REGION_END
            )
            if block.terminator.op is PassOp.RegionExit:
                total += flow.mean(block)
            # Work-items that have returned do not decide.
            if following != REGION_END and flow.mean(block) > most:
                best, most = int(following), flow.mean(block)
        self.in_doubt |= most < _SURE * total and best != REGION_END
        if not self.plan.regions[region].once:  # what those leave is for each work-item, and of data
            self.slots = slots
        return best

    def _store(self, flow: Flow, i: Instruction, slots: dict[Slot, Numbers]) -> None:
        """Notes what a slot holds afterwards, in the lanes that are in the mask."""
        slot, numbers = i.operands[0], flow.frame.of(i.operands[1])
        samples = flow.frame.around.samples
        times, each = flow.times[i.block], len(samples.lanes)
        old = slots.get(slot)
        mask: Numbers = [1.0] * samples.size if i.mask is None else flow.frame.of(i.mask)
        if slot.uniform:
            mask = any_lane(samples, mask)
        out: Numbers = []
        for lane, (new, inside) in enumerate(zip(numbers, mask, strict=True)):
            p = min(1.0, times[lane // each]) * (inside if isinstance(inside, float) else 0.5)
            before = new if old is None else old[lane]
            if isinstance(new, float) and isinstance(before, float):
                out.append(p * new + (1 - p) * before)
            else:
                out.append(new if p > 0.5 else before)
        slots[slot] = out

    def _flow(self, region: Region) -> Flow:
        nest, tree = graph_of(region.function)
        shapes = region.shapes
        samples = self.single if region.once else self.samples
        slots = {} if region.once else self.slots
        shift_of = self._shift_of(shapes)
        return follow(Surroundings(samples, nest, tree, shapes, slots, shift_of, self.crossing))

    def _shift_of(self, shapes: ShapeInfo) -> Callable[[Instruction], tuple[int, int]]:
        """By how much ids of a part are above those of the first."""
        options = self.options

        def shift(i: Instruction) -> tuple[int, int]:
            part = shapes.part_of.get(i, 0)
            if not part:
                return 0, 0
            if options.group:
                across = max(1, options.group[0] // options.width)
                return part % across * options.width, part // across
            return (part * options.width, 0) if options.part_axis == 0 else (0, part)

        return shift


def _equalities(flow: Flow) -> list[Instruction]:
    """Comparisons for equality of integers outside of loops."""
    blocks = (block for block in flow.nest.order if block not in flow.nest.innermost)
    found = (i for block in blocks for i in block.instructions if i.op in (Op.IEqual, Op.INotEqual))
    return [i for i in found if i.type.kind is Kind.BOOL and i.operands[0].type.kind is Kind.INT]


def _loops(regions: list[Region]) -> dict[int, set[int]]:
    """The regions of each loop of them by its header: the first of those that come back to one another."""
    found: dict[int, set[int]] = {}
    after = {region.index: [k for k in region.successors if k != REGION_END] for region in regions}
    for header in after:
        reached = _reached(after, header, after.keys())
        body = {k for k in reached if header in _reached(after, k, after.keys())}
        outer = [other for other, inside in found.items() if header in inside]
        # Inside of a loop those that come back without its header.
        for other in outer:
            allowed = found[other] - {other}
            reached = _reached(after, header, allowed)
            body = {k for k in reached if header in _reached(after, k, allowed)}
        if header in body:
            found[header] = body
    return found


def _reached(after: dict[int, list[int]], start: int, allowed: Collection[int]) -> set[int]:
    """Regions that one leads to, by way of those that are allowed."""
    seen: set[int] = set()
    rest = list(after[start])
    while rest:
        k = rest.pop()
        if k in allowed and k not in seen:
            seen.add(k)
            rest += after[k]
    return seen


def _add(visits: dict[int, float], more: dict[int, float], times: float) -> None:
    for region, count in more.items():
        visits[region] = visits.get(region, 0.0) + times * count


def _steps(states: list[dict[Slot, Numbers]], samples: Samples) -> dict[Slot, int] | None:
    """By how much each slot grows in a round; None if some do not grow evenly, or none grows."""
    lanes = [lane for lane, live in enumerate(samples.live) if live]
    steps: dict[Slot, int] = {}
    for slot, numbers in states[-1].items():
        rows = [[state.get(slot, numbers)[lane] for lane in lanes] for state in states[-4:]]
        found = {_even(*lane) for lane in zip(*rows, strict=True)}
        known = found - {None}
        if found == known and len(known) == 1:
            steps[slot] = next(step for step in known if step is not None)
        elif known:
            return None
    return steps if any(steps.values()) else None


def _after(state: dict[Slot, Numbers], steps: dict[Slot, int], rounds: int) -> dict[Slot, Numbers]:
    """What slots hold after so many rounds."""
    return {
        slot: [_moved(n, steps.get(slot, 0) * rounds, slot) for n in numbers]
        for slot, numbers in state.items()
    }


def _even(a: Number, b: Number, c: Number, d: Number) -> int | None:
    if isinstance(a, int) and isinstance(b, int) and isinstance(c, int) and isinstance(d, int):
        return b - a if b - a == c - b == d - c else None
    return None


def _moved(number: Number, step: int, slot: Slot) -> Number:
    if not isinstance(number, int):
        return number
    return (number + step) & ((1 << slot.type.width) - 1)
