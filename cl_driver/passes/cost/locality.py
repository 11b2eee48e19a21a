"""From which cache the lines come that a kernel's accesses touch.

Each access is followed outwards: through the loops around it, the vectors of a row and the rows of a group,
and the groups. Where an access moves on by little, what it touches grows with the distance, else with the
count. What one iteration of a level touches in all fits into a cache or does not: then the next iteration
finds nothing of it there, and all is fetched again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...records import field, record
from ..ir.dominance import Loop
from ..ir.plan import PlanOptions
from .cpu_models import CpuModel
from .launch import Launch

LINE = 64


@record(eq=False)
class Access:
    """One access, or several that touch the same. base: what it points into; bytes: of a work-item; span:
    bytes from the first to the last lane, lines: that these are in; times: how often a vector does it; loops:
    those around it, inner ones first, with how often each runs and by how many bytes the access moves on,
    None if nobody knows; steps: the same from vector to vector, and from row to row; share: of the iterations
    that come to it; visits: how often all of that is done."""

    base: object
    kind: str
    bytes: float
    is_store: bool
    span: float
    lines: float
    times: float
    loops: list[tuple[Loop, float, float | None]]
    steps: tuple[float | None, float | None]
    offset: int | None = None  # where it is for the first of the vectors that are looked at
    share: float = 1.0
    visits: float = 1.0
    levels: list[float] = field(default_factory=list)  # lines outside each level

    def key(self, options: PlanOptions) -> tuple[object, ...]:
        """Equal for accesses that run through the same memory: those that differ by less than a vector, or by
        whole rows. Several parts have places of their own in what a row or a column of tiles takes."""
        loops = tuple((loop.header, moved) for loop, _, moved in self.loops)
        place, step = 0, self.steps[1]
        if self.offset is not None and options.group:
            place = round(self.offset / max(self.span, LINE))
        elif self.offset is not None and options.parts > 1 and options.part_axis == 1 and step:
            place = round(self.offset % abs(step) / (abs(step) / options.parts)) % options.parts
        return self.base, loops, self.steps, self.is_store, place

    def widen(self, parts: int) -> None:
        """Takes in the other parts of a row, if these lie side by side."""
        step = abs(self.steps[0] or 0.0)
        if self.span < step <= 1.5 * parts * self.span:
            pieces = self.lines / max(1.0, self.span / LINE)
            self.span = step
            self.lines = pieces * max(1.0, step / LINE)


def traffic(accesses: Iterable[Access], model: CpuModel, launch: Launch, options: PlanOptions) -> list[float]:
    """Lines that a launch brings into each cache of the model, the innermost first, when it runs again and
    again. A line that is written counts twice."""
    merged: dict[tuple[object, ...], Access] = {}
    for access in accesses:
        known = merged.get(access.key(options))
        if known is None or (known.lines, known.share) < (access.lines, access.share):
            merged[access.key(options)] = access
    found = list(merged.values())
    if options.parts > 1 and options.part_axis == 0 and not options.group:
        for access in found:
            access.widen(options.parts)
    columns = options.width * (options.parts if options.part_axis == 0 else 1)
    rows = options.parts if options.part_axis == 1 else 1
    across, down = max(1.0, launch.local_size[0] / columns), max(1.0, launch.local_size[1] / rows)
    if options.group:
        across = down = 1.0
    groups = launch.groups
    for access in found:
        _grow(access, _outer(access, across, down, groups))
    count = 5  # levels outside of loops
    totals: dict[Loop, float] = {}  # bytes that an iteration of each loop touches
    outside = [0.0] * count  # the same of one iteration of each level outside of loops
    everything: dict[object, float] = {}  # bytes of each thing that is accessed
    for access in found:
        for k, (loop, _, _) in enumerate(access.loops):
            totals[loop] = totals.get(loop, 0.0) + LINE * access.levels[k]
        for k in range(count):
            outside[k] += LINE * access.levels[len(access.loops) + k]
        everything[access.base] = max(everything.get(access.base, 0.0), LINE * access.levels[-1])
    lines = []
    for number, size in enumerate(model.caches):
        total = 0.0
        # Or all is there from the last time: what a core does is much the same in each launch.
        if sum(everything.values()) > size * (launch.cores if number < 2 else 1):
            for access in found:
                levels = [(n, totals[loop]) for loop, n, _ in access.loops]
                counts = [n for n, _ in _outer(access, across, down, groups)]
                levels += zip(counts, outside, strict=True)
                total += _fetched(access, levels, size) * (2 if access.is_store else 1) * access.visits
        lines.append(total)
    return lines


def _outer(
    access: Access, across: float, down: float, groups: tuple[int, int, int]
) -> list[tuple[float, float | None]]:
    """(how many, by how many bytes the access moves on) of vectors, rows, groups. Where only some work-items
    come to an access, these are most often the first ones: id < n."""
    x, y = access.steps
    over = None if x is None else x * across
    below = None if y is None else y * down
    levels: list[tuple[float, float | None]] = [(across, x), (down, y), (float(groups[0]), over)]
    levels += [(float(groups[1]), below), (float(groups[2]), None)]
    rest, found = access.share, []
    for count, step in reversed(levels):
        factor = max(1 / count, rest)
        rest /= factor
        found.append((count * factor, step))
    found[-1] = found[-1][0] * rest, found[-1][1]
    return found[::-1]


def _grow(access: Access, outer: Sequence[tuple[float, float | None]]) -> None:
    """Fills levels: lines that the access touches in one iteration of each level, and in all of the
    launch."""
    access.levels.append(access.lines)
    steps: list[tuple[float, float]] = []
    span = access.span
    for count, step in [(n, step) for _, n, step in access.loops] + list(outer):
        if step is None:  # nobody knows: most programs stay near where they were
            step = span
        span += abs(step) * max(0.0, count - 1)
        if step != 0 and count > 1:
            steps.append((abs(step), count))
        # Small steps first: where they fill what lies between larger ones, it is one piece.
        piece, pieces = access.span, access.lines / max(1.0, access.span / LINE)
        if pieces < 1:  # lanes are further apart than lines
            piece, pieces = access.bytes, access.lines
        for length, count_ in sorted(steps):
            if length <= max(piece, LINE):
                piece += length * (count_ - 1)
            else:
                pieces *= count_
        access.levels.append(pieces * max(1.0, piece / LINE))


def _fetched(access: Access, levels: list[tuple[float, float]], size: int) -> float:
    """Lines that come into a cache for one access in the whole launch. levels: (iterations, bytes that one of
    them touches)."""
    lines = access.lines
    for k, (count, of_iteration) in enumerate(levels):
        lines = access.levels[k + 1] if of_iteration <= size else lines * count
    return lines
