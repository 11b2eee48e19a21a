"""Unrolls loops of which it is known how often they run. Where the size of groups is (groups/lockstep.py),
the steps of trees and scans have their distances as constants then, and so are their masks."""

from __future__ import annotations

from collections.abc import Iterator

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Operand, Value
from ...spirv.types import TypeTable
from ..ir.dominance import DominatorTree, Loop, LoopNest, dominators
from ..ir.fold import Folder
from ..ir.instructions import (
    Copies,
    append,
    clone_instruction,
    instruction_count,
    predecessors,
    remove_unreachable_blocks,
)
from ..ir.lcssa import close_loops
from ..scalar.simplify import simplify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

MOST_ITERATIONS = 64


def unroll(
    function: Function, types: TypeTable, budget: int, local_budget: int, most: int = MOST_ITERATIONS
) -> None:
    """Changes a reducible function in place. budget: instructions that it may have afterwards; local_budget:
    the same where what is unrolled accesses local memory; most: how often a loop may run.

    Outer loops first: what they count decides how often inner ones run.
    """
    folder = Folder(types)
    refused: set[Block] = set()
    while True:
        before = predecessors(function)
        tree = dominators(function, before)
        size = instruction_count(function)
        for loop in LoopNest(function, tree, before).loops:
            if loop.header in refused:
                continue
            refused.add(loop.header)
            counted = iterations(loop, folder, tree, before)
            if counted is None:
                continue
            count, end = len(counted[0]), counted[1]
            if count > most:
                continue
            added = (count - 1) * sum(len(block.instructions) for block in loop.blocks)
            if size + added <= (local_budget if _is_local(loop) else budget):
                copy_loop(function, types, loop, count, end)
                simplify(function, types)
                break
        else:
            return


def _is_local(loop: Loop) -> bool:
    return any(
        o.type.storage is StorageClass.Workgroup
        for block in loop.blocks
        for i in block.instructions
        if i.op in (Op.Load, Op.Store)
        for o in i.operands[:1]
    )


# Values of one iteration: constants, or None where they are none.
Known: TypeAlias = dict[Value, Constant | None]


def iterations(
    loop: Loop,
    folder: Folder,
    tree: DominatorTree[Block],
    before: dict[Block, list[Block]],
    known: Known | None = None,
    blocks: set[Block] | None = None,
) -> tuple[list[Known], Block] | None:
    """What the phis of a loop's header are each time that it is executed, as far as they are constants, and
    the block that leaves the loop in the end. None if it is not known how often that is, or too often.

    known: what phis of loops around it are, for a loop within `blocks`.
    """
    ends = [b for b in loop.blocks if not loop.blocks.issuperset(b.successors())]
    if len(loop.latches) != 1:
        return None
    (latch,) = loop.latches
    ends = [b for b in ends if tree.dominates(b, latch) and b.terminator.op is Op.BranchConditional]
    entries = [b for b in before[loop.header] if b is not latch]
    if len(ends) != 1 or len(entries) != 1:
        return None
    (end,) = ends
    blocks, around = blocks or loop.blocks, dict(known or ())
    phis = {}
    for phi in loop.header.phis():
        phis[phi] = dict(zip(phi.operands[1::2], phi.operands[::2], strict=True))
    step: Known = {phi: evaluate(edges[entries[0]], blocks, around, folder) for phi, edges in phis.items()}
    steps: list[Known] = []
    while len(steps) < MOST_ITERATIONS:
        steps.append(step)
        values = {**(known or {}), **step}
        condition = evaluate(end.terminator.operands[0], blocks, values, folder)
        if condition is None:
            return None
        if end.terminator.operands[1 if condition.value else 2] not in loop.blocks:
            return steps, end
        step = {phi: evaluate(edges[latch], blocks, values, folder) for phi, edges in phis.items()}
    return None


def _constant(value: object) -> Constant | None:
    return value if type(value) is Constant and value.type.kind in (Kind.INT, Kind.BOOL) else None


def evaluate(value: Operand, blocks: set[Block], values: Known, folder: Folder) -> Constant | None:
    """A value in one iteration, if it follows from what phis are in it. blocks: of the loops concerned."""
    if not isinstance(value, Instruction):
        return _constant(value)
    if value in values:
        return values[value]
    values[value] = None
    if value.op is Op.Phi or value.block not in blocks or value.op not in folder.by_op:
        return None
    operands = []
    for operand in value.operands:
        if isinstance(operand, Value):
            operand = evaluate(operand, blocks, values, folder)
            if operand is None:
                return None
        operands.append(operand)
    found = folder.fold(clone_instruction(value, operands, value.block))
    known = values[value] = _constant(found)
    return known


def copy_loop(function: Function, types: TypeTable, loop: Loop, count: int, end: Block) -> None:
    """Puts `count` copies of a loop one behind the other in its place."""
    close_loops(function, types)
    (latch,) = loop.latches
    blocks = [b for b in function.blocks if b in loop.blocks]
    outside = [b for b in function.blocks if b not in loop.blocks]
    leaving = {b: [s for s in b.successors() if s not in loop.blocks] for b in blocks}
    targets = dict.fromkeys(s for successors in leaving.values() for s in successors)
    maps: list[Copies] = []
    copies: list[Block] = []
    for k in range(count):
        values: Copies = {b: Block(function, b.name) for b in blocks}
        if k:
            previous = maps[-1]
            for phi in loop.header.phis():
                values[phi] = _from(phi, latch, previous)
        else:
            for phi in loop.header.phis():
                (values[phi],) = (v for v, b in _edges(phi) if b is not latch)
        maps.append(values)
        for block in blocks:
            copies.append(values[block])
            for i in block.instructions:
                if i in values:
                    continue
                values[i] = clone_instruction(i, i.operands, values[block])
                values[block].instructions.append(values[i])
        for block in blocks:
            for i in values[block].instructions:
                i.operands = [values.get(o, o) for o in i.operands]
        _end_iteration(loop, end, values, k == count - 1)
    for before, after in zip(maps, maps[1:], strict=False):
        _retarget(before[latch], before[loop.header], after[loop.header])
    for target in targets:
        for phi in target.phis():
            operands = []
            for value, block in _edges(phi):
                if block not in loop.blocks:
                    operands += [value, block]
                    continue
                for values in maps:
                    if target in values[block].successors():
                        operands += [values.get(value, value), values[block]]
            phi.operands = operands
    for block in outside:
        _retarget(block, loop.header, maps[0][loop.header])
    function.blocks = outside + copies
    remove_unreachable_blocks(function)


def _edges(phi: Instruction) -> Iterator[tuple[Value, Block]]:
    return zip(phi.operands[::2], phi.operands[1::2], strict=True)


def _from(phi: Instruction, block: Block, values: Copies) -> Value:
    """What a phi gets from a block, in the copy that has these values."""
    (value,) = (v for v, b in _edges(phi) if b is block)
    new: Value = values.get(value, value)
    return new


def _end_iteration(loop: Loop, end: Block, values: Copies, is_last: bool) -> None:
    """The test of the loop's end in one copy, whose outcome is known."""
    copy = values[end]
    stays = [s for s in end.successors() if s in loop.blocks]
    leaves = [s for s in end.successors() if s not in loop.blocks]
    (target,) = leaves if is_last else stays
    copy.instructions.pop()
    append(copy, Op.Branch, None, [values.get(target, target)])


def _retarget(block: Block, old: Block, new: Block) -> None:
    terminator = block.terminator
    terminator.operands = [new if o is old else o for o in terminator.operands]
