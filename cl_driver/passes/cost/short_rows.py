"""Whether groups whose rows leave lanes idle are better off with lanes that follow the linear local id: more
of them have something to do, but what was next to one another in memory often is no longer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...device.target import Target
from ..analysis.redundant_items import redundant_dimensions
from ..ir.plan import KernelPlan
from .cpu_models import model_of
from .work import RegionCosts

# Rows of fewer work-items are executed one by one (native_shim/src/kernel/variant_choice.c).
_SHORTEST_ROW = 4

# What such lanes must gain: it takes more code.
_GAIN = 1.3

_FEWEST_LANES = 4  # of groups in lockstep: native_shim/src/kernel/variant_choice.c has the same


def has_idle_lanes(size: Sequence[int], lanes: int) -> bool:
    """Whether rows of groups leave lanes idle that the next rows could fill."""
    return lanes > 1 and size[0] % lanes > 0 and math.prod(size) > size[0]


def lanes_that_rows_fill(row: int, lanes: int) -> int:
    """As many lanes as rows of groups in lockstep fill vectors of, down to a quarter of what suits the
    kernel; 1 if they do not."""
    fewest = max(lanes // 4, _FEWEST_LANES)
    while lanes > fewest and row % lanes:
        lanes //= 2
    return 1 if row % lanes else lanes


def linear_lanes_pay(rows: KernelPlan, linear: KernelPlan, target: Target) -> bool:
    """rows: the plan whose lanes are work-items of one row, or for one at a time; linear: the one whose lanes
    go on in the next row. Rows of few work-items are executed one by one in any case."""
    size, lanes = linear.options.linear_group, rows.options.width
    # Places along a row may well turn out to follow one another (codegen/access/runtime_contiguity.py); where
    # lanes go on in the next row they never do.
    costs_of_rows = _costs(rows, target, follows_ids=True)
    costs_of_linear = _costs(linear, target, follows_ids=False)
    of_linear = _cycles(costs_of_linear)
    of_rows = 0.0 if lanes == 1 else _cycles(costs_of_rows)
    if of_rows is None or of_linear is None:
        return False
    vectors = -(-math.prod(size) // linear.options.width)
    count = math.prod(size[k] for k in (1, 2) if k not in redundant_dimensions(rows))
    if lanes == 1 or size[0] < _SHORTEST_ROW:
        of_rows = _alone(costs_of_linear if lanes == 1 else costs_of_rows) * size[0] * count
    else:
        of_rows *= -(-size[0] // lanes) * count
    remarks = linear.options.remarks
    if remarks is not None:
        why = f"{of_rows:.0f} row by row, {vectors * of_linear:.0f} with lanes across rows"
        remarks.choose("lanes", f"estimated cycles of a group: {why}")
    return vectors * of_linear * _GAIN < of_rows


def _costs(plan: KernelPlan, target: Target, follows_ids: bool) -> list[RegionCosts]:
    model, lanes = model_of(target), plan.options.width
    return [RegionCosts(region, model, lanes, follows_ids) for region in plan.regions if not region.once]


def _cycles(regions: list[RegionCosts]) -> float | None:
    """Of one vector; None if it is too long to look at."""
    total = 0.0
    for region in regions:
        if region.pressure is None:
            return None
        total += region.work.cycles(1, region.pressure)
    return total


def _alone(regions: list[RegionCosts]) -> float:
    """Of one work-item by itself."""
    return sum(region.alone.cycles(1, 1) for region in regions)
