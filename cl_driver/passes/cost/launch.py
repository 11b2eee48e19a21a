"""A launch as the estimate sees it: its sizes, the values of its arguments, and some of its work-items.

What a kernel does often depends on its ids and arguments alone: how often loops run, which work-items a
condition leaves out, where they access memory. That is computed for a few vectors of the launch, which stand
for all of it. They come in threes: one from anywhere, the next one of its row, and the same one of the next
row, so that they tell by how much addresses grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ...records import field, record
from ...spirv.enums import BuiltIn
from ..ir.ops import PassBuiltIn
from ..ir.plan import PlanOptions

# A scalar of a work-item, unsigned if an integer; a probability if a bool; a tuple of a vector; or unknown.
Number: TypeAlias = "int | float | tuple[Number, ...] | None"

# Vectors that are looked at, three times as many in all, and lanes of each.
_PLACES = 16
_LANES = 4

# Where the k-th place is: fractions that fill a cube evenly for any number of places (Roberts' sequence). Of
# a dimension its cube, or square, is taken, and places count accordingly: conditions such as id < n leave the
# first ones, and where only a few work-items have something to do, these are not to be missed.
_STEPS = (0.8191725134, 0.6710436067, 0.5497004779)
_POWERS = 3, 2, 1


@record(frozen=True)
class Launch:
    """values: of arguments by their numbers, as far as they are known; images: (width, height, depth, bytes
    of a pixel) of those that are images; cores: threads that share the work."""

    global_size: tuple[int, int, int] = (1024, 1024, 1)
    local_size: tuple[int, int, int] = (64, 1, 1)
    values: Mapping[int, Number] = field(default_factory=dict)
    images: Mapping[int, tuple[int, int, int, int]] = field(default_factory=dict)
    cores: int = 1

    @property
    def items(self) -> int:
        """Work-items in all."""
        return self.global_size[0] * self.global_size[1] * self.global_size[2]

    @property
    def group_items(self) -> int:
        """Work-items of a group."""
        return self.local_size[0] * self.local_size[1] * self.local_size[2]

    @property
    def groups(self) -> tuple[int, int, int]:
        """Groups in each dimension."""
        x, y, z = (
            -(-total // max(size, 1)) for total, size in zip(self.global_size, self.local_size, strict=True)
        )
        return x, y, z


class Samples:
    """The work-items that stand for a launch.

    width: lanes of a vector; lanes: those that are looked at; count: vectors; ids: for each lane of each
    vector the global ids, local ids and group ids; live: whether there is such a work-item.
    """

    def __init__(self, launch: Launch, options: PlanOptions) -> None:
        self.launch, self.width = launch, options.width
        self._linear = options.linear_lanes
        width = options.width
        self.lanes = sorted({0, 1, width // 2, width - 1}) if width > 1 else [0]
        assert len(self.lanes) <= _LANES
        self.ids: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = []
        self.live: list[float] = []
        self.chance: list[tuple[float, float]] = []  # for each vector, to choose an iteration, or a way
        columns = options.parts if options.part_axis == 0 else 1
        rows = options.parts if options.part_axis == 1 else 1
        local = (launch.group_items, 1, 1) if self._linear else launch.local_size
        steps = local if options.group else (width * columns, rows, 1)
        counts = [max(1, -(-size // step)) for size, step in zip(local, steps, strict=True)]
        weights: list[float] = []
        for place, (at, weight) in enumerate(self._places(counts)):
            chance = (0.5 + 0.7548776662 * place) % 1, (0.25 + 0.5698402910 * place) % 1
            for more in ((0, 0, 0), (1, 0, 0), (0, 1, 0)):
                self.chance.append(chance)
                weights.append(weight)
                pairs = [divmod(a + m, count) for a, m, count in zip(at, more, counts, strict=True)]
                group = tuple(pair[0] for pair in pairs)
                x, y, z = (pair[1] * step for pair, step in zip(pairs, steps, strict=True))
                for lane in self.lanes:
                    self._add(group, x + lane, y, z)
        self.count = len(self.chance)
        self.size = len(self.ids)
        each = len(self.lanes)
        alive = [weights[k // each] * max(self.live[k : k + each]) for k in range(0, self.size, each)]
        self.weights = [weight / (sum(alive) or 1.0) for weight in alive]  # of vectors

    def mean(self, values: Sequence[float]) -> float:
        """Of the vectors that there are."""
        return sum(value * weight for value, weight in zip(values, self.weights, strict=True))

    def _places(self, counts: list[int]) -> Iterator[tuple[list[int], float]]:
        """Vectors, rows and planes, counted through the launch, not the last ones, so that others follow; and
        how much each place counts."""
        totals = [count * groups for count, groups in zip(counts, self.launch.groups, strict=True)]
        powers = _POWERS if totals[1] == 1 else (2, 2, 1)
        longest = totals.index(max(totals))  # of which the places are spread evenly
        for place in range(_PLACES):
            found, weight = [], 1.0
            for k, (step, power, total) in enumerate(zip(_STEPS, powers, totals, strict=True)):
                u = (0.5 + place) / _PLACES if k == longest else (0.5 + step * (place + 1)) % 1
                found.append(min(int(u**power * total), max(0, total - 2)))
                weight *= power * u ** (power - 1) if total > 1 else 1.0
            yield found, weight

    def _add(self, group: tuple[int, ...], x: int, y: int, z: int) -> None:
        """One lane: x, y, z are its place in the group, or beyond the group's end."""
        sizes = self.launch.local_size
        if self._linear:
            x, y, z = x % sizes[0], x // sizes[0] % sizes[1], x // (sizes[0] * sizes[1])
        local = x, y, z
        ids = tuple(g * size + i for g, size, i in zip(group, sizes, local, strict=True))
        inside = all(i < size for i, size in zip(local, sizes, strict=True))
        exists = all(i < size for i, size in zip(ids, self.launch.global_size, strict=True))
        self.ids.append((ids, local, group))
        self.live.append(float(inside and exists))

    def of_builtin(self, builtin: BuiltIn, shift: tuple[int, int] = (0, 0)) -> list[Number]:
        """A built-in variable of all lanes. shift: added to the ids of the first dimensions (parts)."""
        launch = self.launch
        sizes: dict[BuiltIn, Number] = {
            BuiltIn.GlobalSize: launch.global_size,
            BuiltIn.WorkgroupSize: launch.local_size,
            BuiltIn.EnqueuedWorkgroupSize: launch.local_size,
            BuiltIn.NumWorkgroups: launch.groups,
            BuiltIn.GlobalOffset: (0, 0, 0),
            BuiltIn.WorkDim: 1 + max((k for k, size in enumerate(launch.global_size) if size > 1), default=0),
            BuiltIn.SubgroupSize: self.width,
            BuiltIn.SubgroupMaxSize: self.width,
            BuiltIn.NumSubgroups: -(-launch.group_items // self.width),
            BuiltIn.NumEnqueuedSubgroups: -(-launch.group_items // self.width),
        }
        if builtin in sizes:
            return [sizes[builtin]] * self.size
        return [self._of_item(builtin, *ids, shift) for ids in self.ids]

    def _of_item(
        self,
        builtin: BuiltIn,
        ids: tuple[int, ...],
        local: tuple[int, ...],
        group: tuple[int, ...],
        shift: tuple[int, int],
    ) -> Number:
        x, y = shift
        if builtin is BuiltIn.GlobalInvocationId:
            return ids[0] + x, ids[1] + y, ids[2]
        if builtin is BuiltIn.LocalInvocationId:
            return local[0] + x, local[1] + y, local[2]
        if builtin is BuiltIn.WorkgroupId:
            return group
        sizes, total = self.launch.local_size, self.launch.global_size
        linear = local[0] + x + sizes[0] * (local[1] + y + sizes[1] * local[2])
        match builtin:
            case BuiltIn.LocalInvocationIndex:
                return linear
            case BuiltIn.GlobalLinearId:
                return ids[0] + x + total[0] * (ids[1] + y + total[1] * ids[2])
            case BuiltIn.SubgroupId:
                return linear // self.width
            case BuiltIn.SubgroupLocalInvocationId | PassBuiltIn.Lane:
                return linear % self.width
            case PassBuiltIn.GroupOrigin:
                return tuple(a * b for a, b in zip(group, sizes, strict=True))
        return None
