"""Fewer loads from slots and stores into them.

A region loads what it needs from earlier ones at its entry and stores what it has changed where it is left.
Much of that may be for nothing. What was not changed on the way is there already. What was changed on some
ways is stored there: lanes that skip a branch store nothing for it. And where more is loaded than there are
registers for, each value is loaded where it is used: else it is loaded, spilled and loaded again, also by
vectors none of whose lanes comes to the use.

Only slots with a value of its own for each work-item are looked at.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Kind, Type, Value
from ..ir.dominance import DominatorTree, LoopNest, dominators
from ..ir.instructions import (
    append,
    phi_count,
    predecessors,
    remove_unreachable_blocks,
    rename_phi_edge,
    replace_successor,
    users,
)
from ..ir.ops import PassOp
from ..ir.plan import Slot
from ..scalar.simplify import remove_dead_code

# Numbers of a work-item that are loaded at the entry and kept in registers: more than these no CPU has.
_REGISTERS = 32


def reduce_slot_traffic(function: Function) -> bool:
    """Changes the function of a region in place; True if there was anything to do."""
    loads = [i for i in function.blocks[0].instructions if i.op is PassOp.SlotLoad and _is_own(i.operands[0])]
    if not loads:
        return False
    changed, stored = _store_what_changed(function, {i.operands[0]: i for i in loads})
    if changed:
        remove_unreachable_blocks(function)
        remove_dead_code(function)
        loads = [i for i in loads if i in set(function.blocks[0].instructions)]
    if sum(_numbers(i.type) for i in loads) > _REGISTERS:
        changed |= _load_late(function, loads, stored)
    return changed


def _is_own(slot: Slot) -> bool:
    return not slot.uniform and slot.stride is None


def _store_what_changed(
    function: Function, loaded: dict[Slot, Instruction]
) -> tuple[bool, dict[Slot, set[Block]]]:
    """Drops stores of what a slot holds already; what a phi merges with that is stored on the other ways to
    it. Returns whether there were any, and for each slot the blocks that are executed behind such stores."""
    changed = False
    stored: dict[Slot, set[Block]] = {}
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
            stored.setdefault(slot, set()).add(block)
            for source, new in ways.items():
                edge = _edge(function, source, block)
                edge.instructions.insert(-1, Instruction(PassOp.SlotStore, None, [slot, new], edge))
                stored[slot].add(edge)
        block.instructions = kept
    return changed, stored


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


def _load_late(function: Function, loads: list[Instruction], stored: dict[Slot, set[Block]]) -> bool:
    """Loads right before the first use. In loops, too, if these keep more than registers hold."""
    _split_edges(function, set(loads))
    before = predecessors(function)
    tree = dominators(function, before)
    nest = LoopNest(function, tree, before)
    used_by = users(function)
    entry = function.blocks[0]
    places: dict[Instruction, Block] = {}
    for i in loads:
        used_in = [
            block
            for user in set(used_by.get(i, ()))
            for block in (_taken_from(user, i) if user.op is Op.Phi else (user.block,))
        ]
        if used_in:
            place = _common(tree, used_in)
            if place is not entry and place not in stored.get(i.operands[0], ()):
                places[i] = place
    kept: dict[object, int] = {}  # numbers that are used in a loop
    for i, place in places.items():
        loop = nest.innermost.get(place)
        kept[loop] = kept.get(loop, 0) + _numbers(i.type)
    for i, place in places.items():
        while (loop := nest.innermost.get(place)) is not None and kept.get(loop, 0) <= _REGISTERS:
            place = tree.above(loop.header)
        entry.instructions.remove(i)
        i.block = place
        at = next(
            (n for n, user in enumerate(place.instructions) if user.op is not Op.Phi and i in user.operands),
            len(place.instructions) - 1,
        )
        place.instructions.insert(max(at, phi_count(place)), i)
    return bool(places)


def _split_edges(function: Function, loads: set[Instruction]) -> None:
    """Loads that a phi takes, as that of a loop, have a block of their own on the way to it."""
    for block in list(function.blocks):
        for phi in block.phis():
            for value, source in zip(phi.operands[::2], phi.operands[1::2], strict=True):
                if value in loads and source.successors().count(block) == 1:
                    _edge(function, source, block)
    remove_unreachable_blocks(function)  # the order of blocks


def _taken_from(phi: Instruction, value: Instruction) -> list[Block]:
    """The blocks from which a phi takes a value."""
    pairs = zip(phi.operands[::2], phi.operands[1::2], strict=True)
    return [block for operand, block in pairs if operand is value]


def _common(tree: DominatorTree[Block], blocks: list[Block]) -> Block:
    """The last block that is executed before all of these, or one of them."""
    found = blocks[0]
    for block in blocks[1:]:
        while not tree.dominates(found, block):
            found = tree.above(found)
    return found


def _numbers(type_: Type) -> int:
    """Of how many numbers a value consists."""
    match type_.kind:
        case Kind.VECTOR | Kind.ARRAY:
            return int(type_.count) * _numbers(type_.element)
        case Kind.STRUCT:
            return sum(map(_numbers, type_.members))
    return 1
