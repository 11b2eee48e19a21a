"""What a kernel costs under a plan: cycles of a vector of work-items and what they go to, and a launch's
time.

Nothing here is computed in an ordinary build: cl-driver explain and the zoo ask. A plan is taken as it is, so
with its width, parts, masks and regions. How often blocks run follows from ids, sizes and arguments
(trips.py), what instructions keep busy from a table of the CPU (operations.py), where lines come from, from
strides (locality.py). A core overlaps what it can: the busiest resource counts, or a chain that is longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from ...records import field, record, replace
from ...spirv.module import Function
from ..analysis.redundant_items import redundant_dimensions, repeated_dimensions
from ..ir.plan import KernelPlan, Region
from ..ir.shapes import ShapeInfo
from .cpu_models import NAMES, CpuModel, cycles
from .launch import Launch
from .locality import Access, traffic
from .operations import Operations
from .region_visits import Visits
from .region_work import RegionWork
from .work import VECTOR_OVERHEAD, CallCosts

OperationsOf: TypeAlias = Callable[
    [CpuModel, ShapeInfo, int, "Callable[[Function], float] | None"], Operations
]

# Microseconds of a launch with nothing to do: a queue, threads that wake; cycles of a group.
LAUNCH_OVERHEAD = 1.5
_GROUP_OVERHEAD = 60.0
_GROUPS_OF_CORE = 4  # that a launch makes for a core where it may choose


@record(eq=False)
class Estimate:
    """Of one execution of the code for `items` work-items. cycles: in all, where caches hit; arithmetic,
    memory, latency: what those are spent on, waiting being what nothing else fills; limit: the busiest
    resource; bytes: of a work-item by kind of access; lines: that a launch brings into each cache; launch:
    its time in microseconds, with bandwidth; busy, fetching: cycles that its cores compute, and that lines
    take to come; works: what each region does, and how often."""

    items: int
    cycles: float = 0.0
    arithmetic: float = 0.0
    memory: float = 0.0
    latency: float = 0.0
    limit: str = ""
    bytes: dict[str, float] = field(default_factory=dict)
    lines: list[float] = field(default_factory=list)
    launch: float = 0.0
    busy: float = 0.0
    fetching: float = 0.0
    works: list[tuple[RegionWork, float]] = field(default_factory=list)

    @property
    def per_item(self) -> float:
        """Cycles of a work-item."""
        return self.cycles / self.items


def estimate(
    plan: KernelPlan, model: CpuModel, launch: Launch, operations: OperationsOf = Operations
) -> Estimate:
    """What a plan costs on a CPU, and a launch of it. operations: what instructions cost, for whoever asks
    what a kernel would cost if some of them cost something else."""
    return _Estimator(plan, model, launch, operations).run()


class _Estimator:
    def __init__(self, plan: KernelPlan, model: CpuModel, launch: Launch, operations: OperationsOf) -> None:
        self.operations = operations
        self.plan, self.model, self.options = plan, model, plan.options
        # The groups that run.
        count = 3 - repeated_dimensions(plan)
        self.launch = replace(launch, global_size=launch.global_size[:count] + launch.local_size[count:])
        self.visits = Visits(plan, launch)
        self.calls = CallCosts(plan, model)
        self.result = Estimate(plan.options.width * plan.options.parts)
        self.once = 0.0  # cycles of what runs once for a group
        self.accesses: list[Access] = []
        self.resources = [0.0] * len(NAMES)

    def run(self) -> Estimate:
        """The estimate."""
        for region, times in self.visits.times.items():
            self._region(self.plan.regions[region], times)
        result, model, launch = self.result, self.model, self.launch
        result.limit = NAMES[cycles(self.resources, model)[1]]
        if result.latency > max(result.arithmetic, result.memory):
            result.limit = "instructions that wait for one another"
        result.lines = traffic(self.accesses, model, launch, self.options)
        redundant = redundant_dimensions(self.plan)
        vectors = self._vectors(redundant)
        if self.plan.has_free_groups:  # they are as large as suits the launch
            groups = math.prod(n for dimension, n in enumerate(launch.groups) if dimension not in redundant)
            groups = min(groups, _GROUPS_OF_CORE * launch.cores)
        else:
            groups = math.prod(launch.groups)
        overhead = vectors * VECTOR_OVERHEAD + groups * (_GROUP_OVERHEAD + self.once)
        busy = vectors * result.cycles + overhead
        fetching = sum(n * each for n, each in zip(result.lines, model.line_cycles, strict=True))
        result.busy, result.fetching = busy, fetching
        spread = min(launch.cores, groups)
        result.launch = LAUNCH_OVERHEAD + math.hypot(busy, fetching) / (model.clock * 1000 * max(spread, 1))
        return result

    def _vectors(self, redundant: frozenset[int]) -> float:
        """Executions of the code in a launch."""
        options, launch = self.options, self.launch
        if self.plan.has_free_groups:
            sizes = enumerate(launch.global_size)
            count = math.prod(size for dimension, size in sizes if dimension not in redundant)
            return max(1.0, count / self.result.items)
        if options.group or options.linear_lanes:
            each = math.ceil(launch.group_items / self.result.items)
        else:
            columns = options.width * (options.parts if options.part_axis == 0 else 1)
            rows = options.parts if options.part_axis == 1 else 1
            each = 1
            for dimension, step in enumerate((columns, rows, 1)):
                each *= 1 if dimension in redundant else math.ceil(launch.local_size[dimension] / step)
        return float(each * math.prod(launch.groups))

    def _region(self, region: Region, visits: float) -> None:
        width = 1 if region.once else self.options.width
        operations = self.operations(self.model, region.shapes, width, self.calls.cycles)
        operations.note_updates(region.function)
        work = RegionWork(self.visits.flow(region), operations, region, bool(self.options.group))
        work.run()
        self.result.works.append((work, visits))
        if region.once:
            self.once += visits * work.cycles
            return
        result = self.result
        result.cycles += visits * work.cycles
        result.arithmetic += visits * work.arithmetic
        result.memory += visits * work.memory
        result.latency += visits * max(0.0, work.cycles - max(work.arithmetic, work.memory))
        for kind, count in work.bytes.items():
            result.bytes[kind] = result.bytes.get(kind, 0.0) + visits * count / self.options.parts
        for access in work.accesses:
            access.visits = visits
        self.accesses += work.accesses
        self.resources = [a + visits * b for a, b in zip(self.resources, work.slots, strict=True)]
