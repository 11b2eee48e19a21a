"""Whether work-items may see one another's memory in order, but for what work-group barriers do."""

from __future__ import annotations

from ...spirv.enums import MemorySemantics, Op
from ...spirv.module import Constant, Function, Instruction
from ..ir.instructions import is_boundary

_ORDERING = (
    MemorySemantics.Acquire
    | MemorySemantics.Release
    | MemorySemantics.AcquireRelease
    | MemorySemantics.SequentiallyConsistent
)
_ATOMICS = frozenset(op for op in Op if op.name.startswith("Atomic"))
_IN_NAMES = ("barrier", "fence", "fetch")  # of functions of the builtin library that do it


def orders_memory(function: Function) -> bool:
    """True if a function, calls expanded, has barriers of sub-groups, fences or atomics that order others."""
    return any(_orders(i) for block in function.blocks for i in block.instructions)


def _orders(instruction: Instruction) -> bool:
    op = instruction.op
    if op in _ATOMICS:
        semantics = instruction.operands[2]
        return not isinstance(semantics, Constant) or bool((semantics.value or 0) & _ORDERING)
    if op is Op.FunctionCall:
        callee = instruction.operands[0]
        name = callee.linkage[0] if callee.linkage else ""
        return any(part in name for part in _IN_NAMES)
    return op is Op.MemoryBarrier or op is Op.ControlBarrier and not is_boundary(instruction)
