"""Loads that are the same in each iteration of a loop are made before it. In long functions, so is what is
computed of what is the same: LLVM does not get the time for that."""

from __future__ import annotations

from collections.abc import Container

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Function, Instruction, Kind, Operand, Type
from ...spirv.types import TypeTable
from ..ir.dominance import DominatorTree, Loop, LoopNest, dominators
from ..ir.instructions import (
    PURE,
    STAY,
    TERMINATORS,
    append,
    is_arithmetic,
    predecessors,
    reads_builtin,
    rename_phi_edge,
    replace_successor,
)

MOST_LOADS = 48  # of one loop: what registers do not hold is kept on the stack

_READ = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant)


def hoist_loads(function: Function, types: TypeTable) -> None:
    """Moves loads from global and constant memory out of loops that write nothing but private variables."""
    before = predecessors(function)
    tree = dominators(function, before)
    for loop in reversed(LoopNest(function, tree, before).loops):
        if not all(_is_harmless(i) for block in loop.blocks for i in block.instructions):
            continue
        ends = [b for b in loop.blocks if not loop.blocks.issuperset(b.successors())]
        always = {b for b in loop.blocks if _is_always(b, loop, ends, tree)}
        moved = _movable(loop, [b for b in tree.order if b in always])
        if moved:
            _move(function, loop, moved)


def _is_harmless(i: Instruction) -> bool:
    """Whether an instruction changes no memory that work-items share, nor orders what they see of it."""
    if i.op is Op.Store:
        return i.operands[0].type.storage is StorageClass.Function
    return i.op in PURE or i.op is Op.Load or i.op in TERMINATORS or is_arithmetic(i)


def _movable(loop: Loop, always: list[Block]) -> list[Instruction]:
    """Loads and their addresses, in order. always: the blocks that each entry of the loop executes."""
    inside = {i for block in loop.blocks for i in block.instructions}
    moved: dict[Instruction, None] = {}
    count = 0
    for block in always:
        for i in block.instructions:
            is_free = i.memory is None or not i.memory.volatile
            if count == MOST_LOADS or i.op is not Op.Load or not is_free:
                continue
            needed: dict[Instruction, None] = {}
            if i.operands[0].type.storage in _READ and is_invariant(i.operands[0], inside, needed, moved):
                moved |= needed
                moved[i] = None
                count += 1
    return list(moved)


def is_invariant(
    value: Operand,
    inside: Container[Operand],
    needed: dict[Instruction, None],
    moved: Container[Operand] = (),
) -> bool:
    """Adds the instructions inside of a loop that a value takes to `needed`, operands first, but those of
    `moved`. False if it changes in the loop."""
    if value not in inside or value in moved or value in needed:
        return True
    if value.op in STAY or not (value.op in PURE or reads_builtin(value)):
        return False
    for operand in value.operands:
        if isinstance(operand, Instruction) and not is_invariant(operand, inside, needed, moved):
            return False
    needed[value] = None
    return True


def hoist_arithmetic(function: Function) -> bool:
    """Moves arithmetic out of loops, the inner ones first; True if any moved."""
    before = predecessors(function)
    tree = dominators(function, before)
    changed = False
    for loop in reversed(LoopNest(function, tree, before).loops):
        inside: set[Operand] = {i for block in loop.blocks for i in block.instructions}
        ends = [b for b in loop.blocks if not loop.blocks.issuperset(b.successors())]
        always = (b for b in tree.order if b in loop.blocks and _is_always(b, loop, ends, tree))
        moved: list[Instruction] = []
        for block in always:
            for i in block.instructions:
                if _is_number(i) and not any(o in inside for o in i.operands):
                    moved.append(i)
                    inside.discard(i)
        if moved:
            _move(function, loop, moved)
            changed = True
    return changed


def _is_always(block: Block, loop: Loop, ends: list[Block], tree: DominatorTree[Block]) -> bool:
    """Whether each entry of a loop executes a block."""
    return all(tree.dominates(block, other) for other in (*ends, *loop.latches))


def _is_number(i: Instruction) -> bool:
    """Whether an instruction computes numbers, and nothing but that. Addresses and conditions are left where
    they are used: CPUs have them as a part of other instructions."""
    if i.type is None or _element(i.type).kind not in (Kind.INT, Kind.FLOAT):
        return False
    return (i.op in PURE and i.op not in STAY) or is_arithmetic(i)


def _element(type_: Type) -> Type:
    return type_.element if type_.kind is Kind.VECTOR else type_


def _move(function: Function, loop: Loop, moved: list[Instruction]) -> None:
    """Puts instructions into the block before a loop."""
    entry = preheader(function, loop)
    if entry is None:
        return
    move_to(entry, loop, moved)


def move_to(entry: Block, loop: Loop, moved: list[Instruction]) -> None:
    """Puts instructions of a loop at the end of the block before it."""
    gone = set(moved)
    for block in loop.blocks:
        block.instructions = [i for i in block.instructions if i not in gone]
    for i in moved:
        i.block = entry
    entry.instructions[-1:-1] = moved


def preheader(function: Function, loop: Loop) -> Block | None:
    """The block before a loop that leads nowhere else, which is made where there is none; None where several
    lead into it."""
    header = loop.header
    entries = [b for b in predecessors(function)[header] if b not in loop.blocks]
    if len(entries) != 1:
        return None
    (entry,) = entries
    return entry if entry.terminator.op is Op.Branch else split_edge(function, entry, header, "before")


def split_edge(function: Function, source: Block, target: Block, name: str) -> Block:
    """A new block on the way from one block to another."""
    block = Block(function, name)
    append(block, Op.Branch, None, [target])
    replace_successor(source, target, block)
    rename_phi_edge(target, source, block)
    function.blocks.insert(function.blocks.index(target), block)
    return block
