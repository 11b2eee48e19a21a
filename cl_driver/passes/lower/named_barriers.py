"""Named barriers (OpNamedBarrierInitialize): as many sub-groups of a group wait at one as it is made for.

A barrier is a number: of the instruction that makes it, and of the sub-groups. So nothing of it is in memory,
and where it is made again it is the same one, as cl_khr_subgroup_named_barrier allows. The data plane counts
who has come (native_shim/src/loader/sub_groups.c).
"""

from __future__ import annotations

from ...device.limits import MAX_NAMED_BARRIERS
from ...spirv.enums import Op
from ...spirv.module import Function
from ...spirv.types import TypeTable
from ..ir.instructions import append
from ..ir.ops import BARRIER_BITS
from ..ir.plan import PlanError


def has_named_barriers(function: Function) -> bool:
    """Whether a function makes named barriers, or waits at some."""
    barriers = (Op.NamedBarrierInitialize, Op.MemoryNamedBarrier)
    return any(i.op in barriers for block in function.blocks for i in block.instructions)


def lower_named_barriers(function: Function, types: TypeTable) -> None:
    """Changes a function in place, calls expanded. PlanError for too many barriers."""
    if not has_named_barriers(function):
        return
    word, count = types.int(32), 0
    shift = types.integer(32, BARRIER_BITS)
    for block in function.blocks:
        old, block.instructions = block.instructions, []
        for i in old:
            if i.op is Op.NamedBarrierInitialize:
                sub_groups = append(block, Op.ShiftLeftLogical, word, [i.operands[0], shift])
                number = append(block, Op.BitwiseOr, word, [sub_groups, types.integer(32, count)])
                i.op, i.operands = Op.ConvertUToPtr, [number]
                count += 1
            elif i.op is Op.MemoryNamedBarrier:
                barrier = append(block, Op.ConvertPtrToU, word, i.operands[:1])
                i.operands = [barrier, *i.operands[1:]]
            block.instructions.append(i)
    if count > MAX_NAMED_BARRIERS:
        raise PlanError(f"{count} named barriers, more than {MAX_NAMED_BARRIERS}")
