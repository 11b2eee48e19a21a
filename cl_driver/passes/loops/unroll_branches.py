"""Loops whose counter decides which way their branches go, unrolled: each iteration is one straight piece.

Rounds of a hash that are written as a loop over a switch are of that shape: the counter chooses the function,
the word of the message, the table's number. Loops that are known to run a few times only are included where
anything is decided, others stay loops: what is gained is no more than what the processor does beside.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Function, Instruction
from ...spirv.types import TypeTable
from ..ir.dominance import Loop, LoopNest, dominators
from ..ir.fold import Folder
from ..ir.instructions import GROUP_OPERATIONS, TERMINATORS, instruction_count, predecessors
from ..scalar.simplify import simplify
from .unroll import Known, copy_loop, evaluate, iterations

# Instructions that all iterations of a loop execute, and those of all its copies before any is folded.
MOST_EXECUTED = 1000
MOST_COPIED = 4000


def unroll_branches(function: Function, types: TypeTable) -> None:
    """Changes a reducible function in place."""
    refused: set[Block] = set()
    while (found := _next(function, types, refused)) is not None:
        copy_loop(function, types, *found)
        simplify(function, types)


def has_unrollable_branches(function: Function, types: TypeTable) -> bool:
    """Whether there is anything to be unrolled."""
    return _next(function, types, set()) is not None


def _next(function: Function, types: TypeTable, refused: set[Block]) -> tuple[Loop, int, Block] | None:
    """A loop that is to be unrolled, how often its header is executed, and the block that leaves it.

    refused: headers of those that were looked at before; they are added to.
    """
    folder = Folder(types)
    before = predecessors(function)
    tree = dominators(function, before)
    room = MOST_COPIED - instruction_count(function)
    for loop in LoopNest(function, tree, before).loops:
        if loop.header in refused or len(loop.latches) != 1 or loop.children:
            continue
        refused.add(loop.header)
        counted = iterations(loop, folder, tree, before)
        order = [b for b in tree.order if b in loop.blocks]
        if counted is not None and _pays(loop, order, *counted, folder, room):
            return loop, len(counted[0]), counted[1]
    return None


def _pays(loop: Loop, order: list[Block], steps: list[Known], end: Block, folder: Folder, room: int) -> bool:
    if len(steps) * sum(len(block.instructions) for block in loop.blocks) > room:
        return False
    leaves = [b for b in loop.blocks if b is not end and not loop.blocks.issuperset(b.successors())]
    if leaves or any(acts_on_group(i) for block in loop.blocks for i in block.instructions):
        return False
    executed = decided = 0
    for step in steps:
        values = dict(step)
        entered: dict[Block, list[Block]] = {loop.header: []}
        for block in order:
            if block not in entered:
                continue
            if len(entered[block]) == 1:
                (before,) = entered[block]
                for phi in block.phis():
                    value = phi.operands[phi.operands.index(before) - 1]
                    values[phi] = evaluate(value, loop.blocks, values, folder)
            executed += sum(
                i.op not in TERMINATORS
                and i.op is not Op.Phi
                and evaluate(i, loop.blocks, values, folder) is None
                for i in block.instructions
            )
            successors = _successors(loop, block, end, values, folder)
            decided += len(successors) < len(set(block.successors()))
            for successor in successors:
                if successor is not loop.header and successor in loop.blocks:
                    entered.setdefault(successor, []).append(block)
        if executed > MOST_EXECUTED:
            return False
    return decided >= len(steps)


def acts_on_group(i: Instruction) -> bool:
    """Whether work-items of a group do an instruction together."""
    return i.op in GROUP_OPERATIONS or i.op is Op.ControlBarrier


def _successors(loop: Loop, block: Block, end: Block, values: Known, folder: Folder) -> list[Block]:
    """Where a block goes in one iteration."""
    terminator = block.terminator
    if block is end or terminator.op not in (Op.BranchConditional, Op.Switch):
        return list(dict.fromkeys(block.successors()))
    chosen = evaluate(terminator.operands[0], loop.blocks, values, folder)
    if not isinstance(chosen, Constant):
        return list(dict.fromkeys(block.successors()))
    if terminator.op is Op.BranchConditional:
        return [terminator.operands[1 if chosen.value else 2]]
    for number, target in zip(terminator.operands[2::2], terminator.operands[3::2], strict=True):
        if number == (chosen.value or 0):
            return [target]
    return [terminator.operands[1]]
