"""Loops that do nothing but asynchronous copies run once per group, as a whole.

    for (y = 0; y < h; y++) event = async_work_group_copy(...);

All work-items of a group come to the same copies with the same arguments (OpenCL C 6.15.11), so the first
one's values will do. That only holds for copies that are made: loops that only some work-items come to may be
there if they never copy, and stay as they are. In others every copy would end a region, and all work-items
would take part in every step of the loop.
"""

from __future__ import annotations

from ...records import record
from ...spirv.enums import BuiltIn, Op
from ...spirv.module import Block, Function, Instruction, Value, Variable
from ..ir.dominance import DominatorTree, Loop, LoopNest, dominators, is_reducible
from ..ir.instructions import PURE, STAY, predecessors
from ..loops.licm import preheader

_ALLOWED = frozenset(op for op in PURE - STAY if isinstance(op, Op)) | {
    Op.Phi, Op.GroupAsyncCopy, Op.Branch, Op.BranchConditional,
}  # fmt: skip

# What all work-items of a group read the same.
_OF_GROUPS = frozenset((
    BuiltIn.WorkgroupId, BuiltIn.WorkgroupSize, BuiltIn.EnqueuedWorkgroupSize, BuiltIn.NumWorkgroups,
    BuiltIn.GlobalSize, BuiltIn.GlobalOffset, BuiltIn.WorkDim,
))  # fmt: skip


@record(eq=False, slots=True)
class CopyLoop:
    """Such a loop: `blocks` in reverse postorder, the block before it, the one in it that leaves it, and the
    one behind it. `outside`: the values that it takes from elsewhere."""

    blocks: list[Block]
    before: Block
    leaving: Block
    behind: Block
    outside: list[Value]


def copy_loops(function: Function, influenced: set[Block]) -> list[CopyLoop]:
    """The outermost of these loops; each is given a block before it that leads nowhere else. influenced: the
    blocks that some work-items of a group may come to without the others."""
    if not any(i.op is Op.GroupAsyncCopy for block in function.blocks for i in block.instructions):
        return []
    before = predecessors(function)
    tree = dominators(function, before)
    if not is_reducible(function, tree):
        return []
    users = _users(tree.order)
    loops: list[Loop] = []
    taken: set[Block] = set()
    for loop in LoopNest(function, tree, before).loops:  # outer ones first
        is_free = loop.header not in taken and loop.blocks.isdisjoint(influenced)
        if is_free and _only_copies(loop, users):
            loops.append(loop)
            taken |= loop.blocks
    entries = [preheader(function, loop) for loop in loops]
    made = [
        _copy_loop(loop, tree, entry) for loop, entry in zip(loops, entries, strict=True) if entry is not None
    ]
    return [loop for loop in made if loop is not None]


def _users(blocks: list[Block]) -> dict[Instruction, set[Block]]:
    """The blocks that use each instruction."""
    users: dict[Instruction, set[Block]] = {}
    for block in blocks:
        for i in block.instructions:
            for operand in i.operands:
                if isinstance(operand, Instruction):
                    users.setdefault(operand, set()).add(block)
    return users


def _only_copies(loop: Loop, users: dict[Instruction, set[Block]]) -> bool:
    """Whether a loop copies, and does and gives nothing else; what has an event of it gets null."""
    inside = [i for block in loop.blocks for i in block.instructions]
    return (
        any(i.op is Op.GroupAsyncCopy for i in inside)
        and all(i.op in _ALLOWED or is_of_group(i) for i in inside)
        and all(is_event(i) or users.get(i, loop.blocks) <= loop.blocks for i in inside)
    )


def _copy_loop(loop: Loop, tree: DominatorTree[Block], entry: Block) -> CopyLoop | None:
    blocks = [block for block in tree.order if block in loop.blocks]
    exits = [(block, s) for block in blocks for s in block.successors() if s not in loop.blocks]
    if len(exits) != 1:
        return None
    inside = {i for block in blocks for i in block.instructions}
    operands = dict.fromkeys(o for block in blocks for i in block.instructions for o in _used(i))
    outside: list[Value] = [o for o in operands if isinstance(o, Instruction) and o not in inside]
    if any(map(is_event, outside)):
        return None
    return CopyLoop(blocks, entry, *exits[0], outside)


def is_of_group(instruction: Instruction) -> bool:
    """Whether it reads a built-in variable that has one value in a group."""
    if instruction.op is not Op.Load:
        return False
    variable = instruction.operands[0]
    return isinstance(variable, Variable) and variable.builtin in _OF_GROUPS


def _used(instruction: Instruction) -> list[Value]:
    """The values that what is left of the instruction uses: events say nothing."""
    if is_event(instruction):
        return list(instruction.operands[1:5]) if instruction.op is Op.GroupAsyncCopy else []
    return [o for o in instruction.operands if isinstance(o, Value)]


def is_event(value: Value) -> bool:
    """Whether a value is an event. All are null: nothing is waited for."""
    return value.type is not None and value.type.op is Op.TypeEvent
