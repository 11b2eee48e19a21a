"""Fewer stores into slots.

A region loads what it needs from earlier ones at its entry and stores what it has changed where it is left.
Much of that may be for nothing. What was not changed on the way is there already. What was changed on some
ways is stored there: lanes that skip a branch store nothing for it.

Only slots with a value of its own for each work-item are looked at.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Value
from ..ir.instructions import (
    append,
    remove_unreachable_blocks,
    rename_phi_edge,
    replace_successor,
)
from ..ir.ops import PassOp
from ..ir.plan import Slot
from ..scalar.simplify import remove_dead_code


def reduce_slot_stores(function: Function) -> bool:
    """Changes the function of a region in place; True if there was anything to do."""
    loads = [i for i in function.blocks[0].instructions if i.op is PassOp.SlotLoad and _is_own(i.operands[0])]
    if not loads:
        return False
    changed = _store_what_changed(function, {i.operands[0]: i for i in loads})
    if changed:
        remove_unreachable_blocks(function)
        remove_dead_code(function)
    return changed


def _is_own(slot: Slot) -> bool:
    return not slot.uniform and slot.stride is None


def _store_what_changed(function: Function, loaded: dict[Slot, Instruction]) -> bool:
    """Drops stores of what a slot holds already; what a phi merges with that is stored on the other ways to
    it. Returns whether there were any."""
    changed = False
    for block in list(function.blocks):
        if block.terminator.op is not PassOp.RegionExit:
            continue
        kept = []
        for i in block.instructions:
            old = loaded.get(i.operands[0]) if i.op is PassOp.SlotStore else None
            if old is None:
                kept.append(i)
                continue
            slot, value = i.operands
            if value is old:
                changed = True
                continue
            ways = _ways(value, old, block)
            if not ways:
                kept.append(i)
                continue
            changed = True
            for source, new in ways.items():
                edge = _edge(function, source, block)
                edge.instructions.insert(-1, Instruction(PassOp.SlotStore, None, [slot, new], edge))
        block.instructions = kept
    return changed


def _ways(value: Value, old: Instruction, block: Block) -> dict[Block, Value] | None:
    """The predecessors of a block from which a phi of it takes something else than what the slot holds, and
    what that is. None if it takes that from none, or is no such phi."""
    if not isinstance(value, Instruction) or value.op is not Op.Phi or value.block is not block:
        return None
    found = dict(zip(value.operands[1::2], value.operands[::2], strict=True))
    if old not in found.values() or any(source.successors().count(block) != 1 for source in found):
        return None
    return {source: new for source, new in found.items() if new is not old}


def _edge(function: Function, source: Block, block: Block) -> Block:
    """The block that is executed on the way from one block to another, and on no other way."""
    if len(source.successors()) == 1:
        return source
    edge = Block(function, "edge")
    append(edge, Op.Branch, None, [block])
    replace_successor(source, block, edge)
    rename_phi_edge(block, source, edge)
    function.blocks.append(edge)
    return edge
