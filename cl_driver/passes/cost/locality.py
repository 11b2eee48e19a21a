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
    that come to it."""

    base: object
    kind: str
    bytes: float
    is_store: bool
    span: float
    lines: float
    times: float
    loops: list[tuple[Loop, float, float | None]]
    steps: tuple[float | None, float | None]
    share: float = 1.0
    levels: list[tuple[float, float]] = field(default_factory=list)  # (lines, span) outside each level

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for accesses that run through the same memory."""
        loops = tuple((loop.header, step) for loop, _, step in self.loops)
        return self.base, loops, self.steps, self.is_store


def traffic(accesses: Iterable[Access], model: CpuModel, launch: Launch, options: PlanOptions) -> list[float]:
    """Lines that a launch brings into each cache of the model, the innermost first, when it runs again and
    again. A line that is written counts twice."""
    merged: dict[tuple[object, ...], Access] = {}
    for access in accesses:
        known = merged.get(access.key)
        if known is None or (known.lines, known.share) < (access.lines, access.share):
            merged[access.key] = access
    found = list(merged.values())
    columns = options.width * (options.parts if options.part_axis == 0 else 1)
    rows = options.parts if options.part_axis == 1 else 1
    across, down = max(1.0, launch.local_size[0] / columns), max(1.0, launch.local_size[1] / rows)
    groups = launch.groups
    for access in found:
        _grow(access, _outer(access, across, down, groups))
    count = 5  # levels outside of loops
    totals: dict[Loop, float] = {}  # bytes that an iteration of each loop touches
    outside = [0.0] * count  # the same of one iteration of each level outside of loops
    everything = 0.0
    for access in found:
        for k, (loop, _, _) in enumerate(access.loops):
            totals[loop] = totals.get(loop, 0.0) + LINE * access.levels[k][0]
        for k in range(count):
            outside[k] += LINE * access.share * access.levels[len(access.loops) + k][0]
        everything += LINE * access.share * access.levels[-1][0]
    lines = []
    for size in model.caches:
        total = 0.0
        if everything > size:  # or all is there from the last time
            for access in found:
                levels = [(n, totals[loop]) for loop, n, _ in access.loops]
                counts = [n for n, _ in _outer(access, across, down, groups)]
                levels += zip(counts, outside, strict=True)
                total += _fetched(access, levels, size) * (2 if access.is_store else 1) * access.share
        lines.append(total)
    return lines


def _outer(
    access: Access, across: float, down: float, groups: tuple[int, int, int]
) -> Sequence[tuple[float, float | None]]:
    """(how many, by how many bytes the access moves on) of vectors, rows, groups."""
    x, y = access.steps
    over = None if x is None else x * across
    below = None if y is None else y * down
    return (
        (across, x),
        (down, y),
        (float(groups[0]), over),
        (float(groups[1]), below),
        (float(groups[2]), None),
    )


def _grow(access: Access, outer: Sequence[tuple[float, float | None]]) -> None:
    """Fills levels: what the access touches in one iteration of each level, and in all of the launch."""
    lines, span = access.lines, access.span
    access.levels.append((lines, span))
    for count, step in [(n, step) for _, n, step in access.loops] + list(outer):
        if step is None:  # nobody knows: most programs stay near where they were
            step = access.bytes
        if step != 0 and count > 1:
            if abs(step) <= max(span, LINE):
                grown = span + abs(step) * (count - 1)
                lines = max(lines, lines * grown / max(span, LINE))
                span = grown
            else:
                lines, span = lines * count, span + abs(step) * (count - 1)
        access.levels.append((lines, span))


def _fetched(access: Access, levels: list[tuple[float, float]], size: int) -> float:
    """Lines that come into a cache for one access in the whole launch. levels: (iterations, bytes that one of
    them touches)."""
    lines = access.lines
    for k, (count, of_iteration) in enumerate(levels):
        lines = access.levels[k + 1][0] if of_iteration <= size else lines * max(count, 1.0)
    return lines
