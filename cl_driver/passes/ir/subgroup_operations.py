"""Which instructions are operations of sub-groups, and which functions can tell sub-groups apart."""

from __future__ import annotations

from ...spirv.enums import BuiltIn, Op, Scope
from ...spirv.module import Constant, Function, Instruction, Variable
from ...spirv.tables import of_class
from .instructions import ADDRESS
from .link_names import source_name

SHUFFLES_INTEL = (
    Op.SubgroupShuffleINTEL, Op.SubgroupShuffleDownINTEL, Op.SubgroupShuffleUpINTEL,
    Op.SubgroupShuffleXorINTEL,
)  # fmt: skip
_BLOCKS_INTEL = (
    Op.SubgroupBlockReadINTEL, Op.SubgroupBlockWriteINTEL, Op.SubgroupImageBlockReadINTEL,
    Op.SubgroupImageBlockWriteINTEL,
)  # fmt: skip
# The grammar has the rotation, which came with an extension, in another class.
NON_UNIFORM = of_class("Non-Uniform") | {Op.GroupNonUniformRotateKHR}
GROUP_OR_SUBGROUP = frozenset(op for op in Op if 261 <= op <= 271 or 6401 <= op <= 6408)
BUILTINS = frozenset((
    BuiltIn.SubgroupSize, BuiltIn.SubgroupMaxSize, BuiltIn.NumSubgroups, BuiltIn.NumEnqueuedSubgroups,
    BuiltIn.SubgroupId, BuiltIn.SubgroupLocalInvocationId, BuiltIn.SubgroupEqMask, BuiltIn.SubgroupGeMask,
    BuiltIn.SubgroupGtMask, BuiltIn.SubgroupLeMask, BuiltIn.SubgroupLtMask,
))  # fmt: skip
_NAMED_BARRIERS = frozenset((Op.NamedBarrierInitialize, Op.MemoryNamedBarrier))
_BARRIER = "sub_group_barrier"  # which clang leaves to the builtin library


def uses_subgroups(functions: list[Function]) -> bool:
    """Whether a kernel (it and what it calls) can tell how its work-items are divided into sub-groups."""
    return any(_of_subgroup(i) for f in functions for block in f.blocks for i in block.instructions)


def is_subgroup_operation(instruction: Instruction) -> bool:
    """True for instructions that the work-items of one sub-group execute together, barriers left out."""
    op = instruction.op
    if op in NON_UNIFORM or op in SHUFFLES_INTEL or op in _BLOCKS_INTEL:
        return True
    return op in GROUP_OR_SUBGROUP and scope_of(instruction) == Scope.Subgroup


def scope_of(instruction: Instruction) -> int | None:
    """The Scope of a group operation or barrier, if it is a constant that is not null."""
    scope = instruction.operands[0]
    value: int | None = scope.value if isinstance(scope, Constant) else None
    return value


def _of_subgroup(instruction: Instruction) -> bool:
    op = instruction.op
    if op is Op.ControlBarrier:
        return scope_of(instruction) == Scope.Subgroup
    if op is Op.FunctionCall:
        callee: Function = instruction.operands[0]
        return callee.linkage is not None and source_name(callee.linkage[0]) == _BARRIER
    if op is Op.Load or op in ADDRESS or op is Op.CopyObject:
        pointer = instruction.operands[0]
        return type(pointer) is Variable and pointer.builtin in BUILTINS
    return op in _NAMED_BARRIERS or is_subgroup_operation(instruction)
