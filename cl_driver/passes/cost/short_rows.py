"""Whether groups whose rows leave lanes idle are better off with lanes that follow the linear local id: more
of them have something to do, but what was next to one another in memory often is no longer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...device.target import Target
from ...spirv.enums import Op
from ...spirv.module import Instruction, Value
from ..analysis.redundant_items import redundant_dimensions
from ..ir.dominance import LoopNest, dominators
from ..ir.instructions import predecessors, reads_builtin
from ..ir.ops import PassOp
from ..ir.plan import KernelPlan, Region
from .latency import TRIPS, depth_of, work_of
from .pressure import vector_pressure
from .width import registers

# Rows of fewer work-items are executed one by one (native_shim/src/kernel/variant_choice.c).
_SHORTEST_ROW = 4

# What such lanes must gain: it takes more code.
_GAIN = 1.3

# Operations of an access at places that may well turn out to follow one another along a row
# (codegen/access/runtime_contiguity.py); lanes that go on in the next row are never that.
_ASKED = 3


def has_idle_lanes(size: Sequence[int], lanes: int) -> bool:
    """Whether rows of groups leave lanes idle that the next rows could fill."""
    return lanes > 1 and size[0] % lanes > 0 and math.prod(size) > size[0]


def linear_lanes_pay(rows: KernelPlan, linear: KernelPlan, target: Target) -> bool:
    """rows: the plan whose lanes are work-items of one row, or for one at a time; linear: the one whose lanes
    go on in the next row. Rows of few work-items are executed one by one in any case."""
    size, lanes = linear.options.linear_group, rows.options.width
    of_linear = _cycles(linear, target, linear.options.width)
    of_rows = 0.0 if lanes == 1 else _cycles(rows, target, _ASKED)
    if of_rows is None or of_linear is None:
        return False
    vectors = -(-math.prod(size) // linear.options.width)
    count = math.prod(size[k] for k in (1, 2) if k not in redundant_dimensions(rows))
    if lanes == 1 or size[0] < _SHORTEST_ROW:
        of_rows = _alone(linear if lanes == 1 else rows, target) * size[0] * count
    else:
        of_rows *= -(-size[0] // lanes) * count
    remarks = linear.options.remarks
    if remarks is not None:
        why = f"{of_rows:.0f} row by row, {vectors * of_linear:.0f} with lanes across rows"
        remarks.choose("lanes", f"estimated cycles of a group: {why}")
    return vectors * of_linear * _GAIN < of_rows


def _cycles(plan: KernelPlan, target: Target, of_ids: int) -> float | None:
    """Of one vector; None if it is too long to look at. of_ids: operations of an access at a place that
    varies, but is made of ids and arguments alone."""
    lanes = plan.options.width
    bits, cycles = target.vector_bits // lanes, 0.0
    for region in _regions(plan):
        pressure = vector_pressure(region.function, region.shapes, bits)
        if pressure is None:
            return None
        work = work_of(region.function, region.shapes, bits, lanes)
        work.units += _more_units(region, lanes, of_ids)
        cycles += work.cycles(1, pressure, registers(target))
    return cycles


def _alone(plan: KernelPlan, target: Target) -> float:
    """Of one work-item by itself."""
    lanes = plan.options.width
    works = [work_of(r.function, r.shapes, target.vector_bits // lanes, lanes) for r in _regions(plan)]
    return sum(work.alone(lanes).cycles(1, 1, registers(target)) for work in works)


def _regions(plan: KernelPlan) -> list[Region]:
    return [region for region in plan.regions if not region.once]


def _more_units(region: Region, lanes: int, of_ids: int) -> float:
    """What stores add to the estimated operations, and what loads that are made of ids take away."""
    before = predecessors(region.function)
    nest = LoopNest(region.function, dominators(region.function, before), before)
    found = 0.0
    for loop, blocks in nest.own_blocks().items():
        times = float(TRIPS ** depth_of(loop))
        for i in (i for block in blocks for i in block.instructions if i.op in (Op.Load, Op.Store)):
            if region.shapes.strides.get(i.operands[0], 0) is None:
                units = of_ids if _is_of_ids(i.operands[0]) else lanes
                found += times * (units if i.op is Op.Store else units - lanes)
    return found


def _is_of_ids(pointer: Value) -> bool:
    """Whether an address depends on nothing in memory."""
    seen: set[Value] = set()
    work = [pointer]
    while work:
        value = work.pop()
        if not isinstance(value, Instruction) or value in seen:
            continue
        seen.add(value)
        is_kept = value.op is PassOp.SlotLoad and value.operands[0].stride is None
        if is_kept or value.op is Op.FunctionCall or (value.op is Op.Load and not reads_builtin(value)):
            return False
        work += [o for o in value.operands if isinstance(o, Value)]
    return True
