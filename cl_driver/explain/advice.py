"""What bounds a kernel, what to change about it, and what that would gain: what a report says first.

Each cause that the plan shows (causes.py) is taken away, and the model of costs adds the launch up again
(what_if.py). The change that gains most comes first; what gains little is not worth a sentence.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import NamedTuple

from ..codegen.kernel.emit import KernelCode
from ..codegen.llvm.errors import CodegenError
from ..compiler.pipeline import Prepared
from ..passes import pipeline as passes
from ..passes.cost.cpu_models import CpuModel, model_of
from ..passes.cost.estimate import LAUNCH_OVERHEAD, Estimate, estimate
from ..passes.cost.launch import Launch
from ..passes.ir.instructions import instruction_count
from ..passes.ir.plan import KernelPlan
from ..passes.ir.remarks import Remarks
from ..records import replace
from ..spirv.enums import ExecutionMode
from ..spirv.errors import SpirvError
from ..spirv.module import Instruction
from . import wording
from .alternatives import chosen_options, plan_of
from .causes import DIVERGENCE, WAITING, Cause, causes, weighed
from .cost import Spills
from .what_if import estimate_with

WORTH = 1.15  # a gain below is within what estimates are wrong by
_WORTH_OF_GROUPS = 1.5  # the same of local sizes: what starting a group takes is known least
_MOST = 3  # pieces of advice
_MOST_INSTRUCTIONS = 10_000  # of a plan: each cause has it estimated once more
_LARGEST = 1024  # work-items of groups that are tried


class Advice(NamedTuple):
    """bound: what bounds the kernel; change: of the source or the launch; gain: the factor by which it
    would be, an estimate, 1.0 if nothing is to gain; lines: of the source that it is about."""

    bound: str
    change: str
    gain: float
    lines: list[int]


class Analysed(NamedTuple):
    """Code for a launch. advice: the best first; heat: the share of each line of the source in what the code
    keeps busy."""

    advice: list[Advice]
    heat: dict[int, float]


class _Way(NamedTuple):
    """A plan, what was noted of it, and what it costs."""

    plan: KernelPlan
    remarks: Remarks
    now: Estimate


def analyse(
    program: Prepared,
    code: KernelCode,
    launch: Launch,
    is_launch_known: tuple[bool, bool],
    spills: Spills,
    line_of: Callable[[Instruction], int],
) -> Analysed | None:
    """None for kernels that cannot be estimated. is_launch_known: whether somebody said the global size, and
    the local one; line_of: in the file that
    is explained."""
    model = model_of(program.context.target)
    chosen = chosen_options(program, code)
    native = program.context.target.vector_bits // 32
    main = _way(program, code.name, chosen, model, launch)
    if main is None:
        return None
    ways: list[_Way | None] = [main]
    if chosen.parts > 1:  # masks are known of the first part only
        ways.append(_way(program, code.name, replace(chosen, parts=1, part_axis=0), model, launch))
    elif chosen.width == 1 and not chosen.sub_groups:
        ways.append(_way(program, code.name, replace(chosen, width=native), model, launch))
    found: list[Advice] = []
    for way in ways:
        if way is None:
            continue
        for cause in causes(way.now, model, way.remarks, way.plan):
            # Where lanes share nothing, the code that runs is for one work-item: a change must beat that.
            if (cause.kind == WAITING and way is not main) or (
                cause.kind == DIVERGENCE and way is main and len(ways) > 1
            ):
                continue
            then = estimate_with(way.plan, model, launch, cause.change)
            now = main.now if way.plan.options.width != main.plan.options.width else way.now
            gain = _gain(now, then, cause.spared)
            lines = _lines(cause, line_of)
            if gain >= WORTH and lines:
                bound, change = wording.of_cause(cause, lines, way.plan.options.width)
                found.append(Advice(bound, change, gain, lines))
    if spills.gain >= WORTH:
        words = wording.of_spills(model.registers, spills.number, spills.lines)
        found.append(Advice(*words, spills.gain, list(spills.lines)))
    found += _of_launch(program, code, main, model, launch, is_launch_known)
    found = _best(found)
    if not found:
        found = [Advice(*wording.of_nothing(main.now, model), 1.0, [])]
    return Analysed(found, _heat(main.now, model, line_of))


def _way(
    program: Prepared, name: str, options: passes.PlanOptions, model: CpuModel, launch: Launch
) -> _Way | None:
    remarks = Remarks()
    try:
        plan = plan_of(program, name, replace(options, remarks=remarks))
    except (passes.PlanError, CodegenError, SpirvError):
        return None
    size = sum(instruction_count(region.function) for region in plan.regions)
    if plan.options.width != options.width or size > _MOST_INSTRUCTIONS:
        return None
    return _Way(plan, plan.options.remarks or remarks, estimate(plan, model, launch))


def _gain(now: Estimate, then: Estimate, spared: float) -> float:
    """spared: see Cause."""
    fetching = now.fetching - (now.fetching - then.fetching) * spared
    work = math.hypot(then.busy, fetching) / max(math.hypot(then.busy, then.fetching), 1e-9)
    return now.launch / (LAUNCH_OVERHEAD + (then.launch - LAUNCH_OVERHEAD) * work)


def _lines(cause: Cause, line_of: Callable[[Instruction], int]) -> list[int]:
    return sorted({line for line in map(line_of, cause.instructions) if line})


def _best(found: list[Advice]) -> list[Advice]:
    """The best few, no two of which say the same."""
    kept: dict[str, Advice] = {}
    for advice in sorted(found, key=lambda a: -a.gain):
        kept.setdefault(advice.bound, advice)
    return list(kept.values())[:_MOST]


def _heat(found: Estimate, model: CpuModel, line_of: Callable[[Instruction], int]) -> dict[int, float]:
    """Each line's share of the cycles that instructions keep the busiest resource, if each were alone."""
    totals: dict[int, float] = {}
    for entry in weighed(found, model):
        line = line_of(entry.instruction)
        if line:
            totals[line] = totals.get(line, 0.0) + entry.cycles
    whole = sum(totals.values())
    return {line: busy / whole for line, busy in totals.items() if whole}


# The launch


def _of_launch(
    program: Prepared,
    code: KernelCode,
    main: _Way,
    model: CpuModel,
    launch: Launch,
    is_known: tuple[bool, bool],
) -> list[Advice]:
    """What is wrong with its sizes, where these are known."""
    if not is_known[0]:
        return []
    found = []
    cores = len(os.sched_getaffinity(0))
    items = math.prod(launch.global_size)
    overhead = LAUNCH_OVERHEAD / main.now.launch
    if overhead > 1 - 1 / WORTH:
        gain = 1 / max(1 - overhead, 0.05)
        found.append(Advice(*wording.of_small_launch(items, overhead), gain, []))
    elif cores > 1 and math.prod(launch.groups) < cores and not main.plan.has_free_groups:
        groups = math.prod(launch.groups)
        found.append(Advice(*wording.of_few_groups(groups, cores), cores / groups, []))
    width = main.plan.options.width
    if not main.plan.has_free_groups:
        if is_known[1]:
            found += _other_sizes(program, code, main, model, launch)
    elif width > 1:
        row = launch.global_size[0]
        full = row / (math.ceil(row / width) * width)
        if full <= 1 / WORTH:
            found.append(Advice(*wording.of_tail(row, width), 1 / full, []))
    return found


def _other_sizes(
    program: Prepared, code: KernelCode, main: _Way, model: CpuModel, launch: Launch
) -> list[Advice]:
    """A local size with which the same launch takes less time."""
    options = main.plan.options
    if ExecutionMode.LocalSize in main.plan.entry_point.modes:
        return []
    now = main.now.launch
    if launch.local_size[0] % options.width:  # code for one work-item is there for such groups
        alone = _way(program, code.name, replace(options, width=1, parts=1, part_axis=0), model, launch)
        now = min(now, alone.now.launch) if alone is not None else now
    sizes = local_sizes(launch.global_size, options.width)
    times = {size: estimate(main.plan, model, replace(launch, local_size=size)).launch for size in sizes}
    if not times:
        return []
    best = min(times, key=lambda size: times[size])
    gain = now / times[best]
    if gain < _WORTH_OF_GROUPS:
        return []
    return [Advice(*wording.of_local_size(launch.local_size, best, options.width), gain, [])]


def local_sizes(global_size: tuple[int, int, int], width: int) -> list[tuple[int, int, int]]:
    """Sizes that divide a launch into groups of whole vectors, at most 1024 work-items each."""
    x, y, _ = global_size
    return [
        (columns, rows, 1)
        for columns in (width << k for k in range(8))
        for rows in (1, 2, 4, 8, 16)
        if columns * rows <= _LARGEST and x % columns == 0 and y % rows == 0
    ]
