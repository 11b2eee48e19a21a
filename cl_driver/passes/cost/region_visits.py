"""How often a group comes to the regions of a kernel with barriers, and what slots hold then.

Regions are followed one after the other, with the values that they leave in slots. Where these grow evenly
from round to round, the end of the rounds is searched for, as in trips.py.
"""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind
from ..ir.ops import REGION_END, PassOp
from ..ir.plan import KernelPlan, PlanOptions, Region, Slot
from ..ir.shapes import ShapeInfo
from .launch import Launch, Number, Samples
from .sampled_values import Numbers, Surroundings, differences
from .trips import Flow, follow, graph_of

_VISITS = 200  # regions that are visited one after the other before it is taken to be all
_MOST_ROUNDS = 1 << 16


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
        self.times = self._visits()

    def flow(self, region: Region) -> Flow:
        """How often the blocks of a region are executed in one visit."""
        self.slots = self.left.get(region.index, {})
        return self._flow(region)

    def _visits(self) -> dict[int, float]:
        """How often a group comes to each region: slots are followed from one to the next, and where what is
        in them grows evenly, through as many rounds as there are."""
        regions = self.plan.regions
        visits: dict[int, float] = {0: 1.0}
        if len(regions) == 1:
            return visits
        seen: dict[int, list[dict[Slot, Numbers]]] = {}
        counted: set[int] = set()  # regions of rounds that were counted
        region, path = 0, [0]
        for _ in range(_VISITS):
            seen.setdefault(region, []).append(dict(self.slots))
            before = dict(self.slots)
            following = self._next(region)
            self.left[region] = before
            if following == REGION_END:
                break
            known = seen.get(following, [])
            if len(known) == 3 and following not in counted:
                last = len(path) - 1 - path[::-1].index(following)
                cycle = path[last:]
                rounds = self._rounds(following, cycle, [*known, dict(self.slots)])
                counted.update(cycle)
                for passed in cycle:
                    visits[passed] = visits.get(passed, 0.0) + rounds
            region = following
            path.append(region)
            visits[region] = visits.get(region, 0.0) + 1
        return visits

    def _next(self, region: int) -> int:
        """The region that follows, with what the slots hold then."""
        flow = self._flow(self.plan.regions[region])
        if self.crossing is not None:
            for i in _equalities(flow):
                self.crossing.setdefault(i, differences(i, flow.frame))
        best, most = REGION_END, -1.0
        stored: dict[Slot, tuple[float, Numbers]] = {}
        for block in flow.nest.order:
            mean = flow.mean(block)
            for i in block.instructions:
                if i.op is PassOp.SlotStore and mean >= stored.get(i.operands[0], (-1.0, []))[0]:
                    stored[i.operands[0]] = mean, flow.frame.of(i.operands[1])
            if block.terminator.op is PassOp.RegionExit and mean > most:
                best, most = int(block.terminator.operands[0]), mean
        if self.plan.regions[region].once:
            return best  # what such regions leave is for each work-item, and of data
        self.slots.update((slot, numbers) for slot, (mean, numbers) in stored.items() if mean > 0)
        return best

    def _rounds(self, region: int, cycle: list[int], states: list[dict[Slot, Numbers]]) -> int:
        """How many more rounds through regions there are in which slots go on to grow evenly; these are left
        as they are then. 0 where that is not known."""
        first, second, third, fourth = states[-4:]
        steps: dict[Slot, int] = {}
        for slot, numbers in fourth.items():
            pairs = [
                _even(a, b, c, d)
                for a, b, c, d in zip(
                    *(state.get(slot, numbers) for state in (first, second, third, fourth)), strict=True
                )
            ]
            known = {step for step in pairs if step is not None}
            if len(known) == 1 and None not in pairs:
                steps[slot] = known.pop()
            elif known:
                return 0
        if not any(steps.values()):
            return 0

        def stays(rounds: int) -> bool:
            self.slots = {
                slot: [_moved(n, steps.get(slot, 0) * rounds, slot) for n in numbers]
                for slot, numbers in fourth.items()
            }
            for place, passed in enumerate(cycle):
                wanted = cycle[place + 1] if place + 1 < len(cycle) else region
                if self._next(passed) != wanted:
                    return False
            return True

        self.crossing = {}
        low, high = 0, 1
        if not stays(0):
            high = 0
        while 0 < high < _MOST_ROUNDS and stays(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if stays(middle) else (low, middle)
        self.slots = {
            slot: [_moved(n, steps.get(slot, 0) * low, slot) for n in numbers]
            for slot, numbers in fourth.items()
        }
        self.crossing = None
        return low

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


def _even(a: object, b: object, c: object, d: object) -> int | None:
    if isinstance(a, int) and isinstance(b, int) and isinstance(c, int) and isinstance(d, int):
        return b - a if b - a == c - b == d - c else None
    return None


def _moved(number: Number, step: int, slot: Slot) -> Number:
    if not isinstance(number, int):
        return number
    return (number + step) & ((1 << slot.type.width) - 1)
