"""Whether groups whose rows leave lanes idle are better off with lanes that follow the linear local id: more
of them have something to do, but what was next to one another in memory often is no longer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...device.target import Target
from ...spirv.enums import Op
from ..analysis.redundant_items import redundant_dimensions
from ..ir.dominance import LoopNest, dominators
from ..ir.instructions import predecessors
from ..ir.plan import KernelPlan, Region
from .latency import TRIPS, depth_of, work_of
from .pressure import vector_pressure
from .width import registers

# Rows of fewer work-items are executed one by one (native_shim/src/launch/tiers.c).
_SHORTEST_ROW = 4

# What such lanes must gain: it takes more code.
_GAIN = 1.2


def has_idle_lanes(size: Sequence[int], lanes: int) -> bool:
    """Whether rows of groups leave lanes idle that the next rows could fill."""
    return lanes > 1 and size[0] % lanes > 0 and math.prod(size) > size[0]


def linear_lanes_pay(rows: KernelPlan, linear: KernelPlan, target: Target, is_alone: bool = False) -> bool:
    """rows: the plan whose lanes are work-items of one row; linear: the one whose lanes go on in the next.
    is_alone: without, work-items are executed one by one, rows of few are in any case."""
    size, lanes = linear.options.linear_group, linear.options.width
    of_rows, of_linear = _cycles(rows, target), _cycles(linear, target)
    if of_rows is None or of_linear is None:
        return False
    vectors = -(-math.prod(size) // lanes)
    count = math.prod(size[k] for k in (1, 2) if k not in redundant_dimensions(rows))
    if is_alone or size[0] < _SHORTEST_ROW:
        of_rows = _alone(linear if is_alone else rows, target) * size[0] * count
    else:
        of_rows *= -(-size[0] // lanes) * count
    remarks = linear.options.remarks
    if remarks is not None:
        why = f"{of_rows:.0f} row by row, {vectors * of_linear:.0f} with lanes across rows"
        remarks.choose("lanes", f"estimated cycles of a group: {why}")
    return vectors * of_linear * _GAIN < of_rows


def _cycles(plan: KernelPlan, target: Target) -> float | None:
    """Of one vector; None if it is too long to look at."""
    lanes = plan.options.width
    bits, cycles = target.vector_bits // lanes, 0.0
    for region in _regions(plan):
        pressure = vector_pressure(region.function, region.shapes, bits)
        if pressure is None:
            return None
        work = work_of(region.function, region.shapes, bits, lanes)
        work.units += _scattered(region) * lanes
        cycles += work.cycles(1, pressure, registers(target))
    return cycles


def _alone(plan: KernelPlan, target: Target) -> float:
    """Of one work-item by itself."""
    lanes = plan.options.width
    works = [work_of(r.function, r.shapes, target.vector_bits // lanes, lanes) for r in _regions(plan)]
    return sum(work.alone(lanes).cycles(1, 1, registers(target)) for work in works)


def _regions(plan: KernelPlan) -> list[Region]:
    return [region for region in plan.regions if not region.once]


def _scattered(region: Region) -> float:
    """How many stores go to places of each lane's own, those in loops as often as these run."""
    before = predecessors(region.function)
    nest = LoopNest(region.function, dominators(region.function, before), before)
    return sum(
        float(TRIPS ** depth_of(loop))
        for loop, blocks in nest.own_blocks().items()
        for block in blocks
        for i in block.instructions
        if i.op is Op.Store and region.shapes.strides.get(i.operands[0], 0) is None
    )
