"""Whether work-items may see one another's memory in order, but for what work-group barriers do."""

from __future__ import annotations

from ...spirv.enums import MemorySemantics, Op
from ...spirv.module import Constant, Function, Instruction
from ..ir.instructions import ATOMICS, is_boundary
from ..ir.link_names import PIPE_FUNCTIONS, PIPE_OF_LANES, source_name

_ORDERING = (
    MemorySemantics.Acquire
    | MemorySemantics.Release
    | MemorySemantics.AcquireRelease
    | MemorySemantics.SequentiallyConsistent
)
# Functions of the builtin library that do it (builtins/cl/atomics.cl, pipe.cl), by their names in OpenCL C.
ORDERING_FUNCTIONS = frozenset((
    "mem_fence", "read_mem_fence", "write_mem_fence", "sub_group_barrier",
    "atomic_fetch_min", "atomic_fetch_max", "atomic_fetch_min_explicit", "atomic_fetch_max_explicit",
    *PIPE_FUNCTIONS, *PIPE_OF_LANES.values(),
))  # fmt: skip


def orders_memory(function: Function) -> bool:
    """True if a function, calls expanded, has barriers of sub-groups, fences or atomics that order others."""
    return any(_orders(i) for block in function.blocks for i in block.instructions)


def _orders(instruction: Instruction) -> bool:
    op = instruction.op
    if op in ATOMICS:
        semantics = instruction.operands[2]
        return not isinstance(semantics, Constant) or bool((semantics.value or 0) & _ORDERING)
    if op is Op.FunctionCall:
        callee: Function = instruction.operands[0]
        return callee.linkage is not None and source_name(callee.linkage[0]) in ORDERING_FUNCTIONS
    if op is Op.AsmCallINTEL:
        return bool(instruction.operands[0].has_effects)
    if op is Op.MemoryBarrier or op is Op.MemoryNamedBarrier:
        return True
    return op is Op.ControlBarrier and not is_boundary(instruction)
