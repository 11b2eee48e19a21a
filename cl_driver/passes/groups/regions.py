"""Builds the function of one region from clones of a kernel's blocks (barriers.py decides which, and what is
kept where)."""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Value
from ..ir.instructions import (
    Copies,
    append,
    clone_instruction,
    predecessors,
    remove_unreachable_blocks,
    substitute,
)
from ..ir.ops import REGION_END, PassOp
from ..ir.plan import Region
from ..ir.ssa_updater import SsaUpdater
from ..scalar.simplify import simplify
from .slot_stores import reduce_slot_stores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from .barriers import _Splitter


# A block of a region that ends in a RegionExit, and the entry, in the kernel, of what follows.
_Exit: TypeAlias = tuple[Block, Block]


class RegionMaker:
    """Builds the function of one region from clones of its blocks."""

    def __init__(self, splitter: _Splitter, index: int, entry: Block, blocks: list[Block]) -> None:
        self.splitter = splitter
        self.types = splitter.types
        self.index = index
        self.entry = entry
        self.blocks = blocks
        self.inside = set(blocks)
        source = splitter.function
        self.function = Function(
            source.type, f"{source.name}.{index}" if index else source.name, source.control
        )
        self.function.arguments = source.arguments
        self.values: Copies = {}  # of the kernel: in the region
        self.head: list[Instruction] = []  # loads and recomputed values at the entry
        self.loaded: dict[Instruction, Instruction] = {}

    def make(self) -> Region:
        """The region, whose function is whole but for what runs once per group."""
        splitter = self.splitter
        live_in = splitter.live_in[self.entry]
        values = self.values
        for block in self.blocks:
            values[block] = Block(self.function, block.name)
            values[block].loop_control = block.loop_control
        entry_block = values[self.entry]
        self.variables(entry_block)
        for value in live_in:
            self.bring_in(value, entry_block)
        mixed = [v for v in live_in if v.block in self.inside and v in splitter.slot_of]
        self.clone_blocks(mixed)
        exits = self.end_blocks()
        entry_block.instructions[:0] = self.head
        self.function.blocks = [values[b] for b in self.blocks]
        # The entry of the kernel comes first in its order; of other regions it need not.
        self.function.blocks.remove(entry_block)
        self.function.blocks.insert(0, entry_block)
        updaters = self.repair(mixed, exits)
        self.store_at_exits(exits, updaters)
        for updater in updaters.values():
            updater.finish()
        self.substitute_phis(updaters)
        simplify(self.function, self.types)
        reduce_slot_stores(self.function)
        return Region(self.index, self.function, False, self.find_successors())

    def variables(self, entry_block: Block) -> None:
        """Private variables: context memory, or the region's own if only it uses them."""
        for variable in self.splitter.function.blocks[0].instructions:
            if variable.op is not Op.Variable:
                continue
            private = self.splitter.private_of.get(variable)
            if private is None:
                copy = clone_instruction(variable, variable.operands, entry_block)
            else:
                copy = Instruction(
                    PassOp.PrivatePointer, variable.type, [private], entry_block, variable.name
                )
                copy.line = variable.line
            self.head.append(copy)
            self.values[variable] = copy

    def bring_in(self, value: Instruction, entry_block: Block) -> Value:
        """Makes a value of an earlier region available at the entry."""
        found: Value | None = self.values.get(value)
        if found is not None:
            return found
        slot = self.splitter.slot_of.get(value)
        if slot is not None and value in self.splitter.live_in[self.entry]:
            copy = Instruction(PassOp.SlotLoad, value.type, [slot], entry_block, value.name)
            self.loaded[value] = copy
        else:
            operands = [
                self.bring_in(o, entry_block) if isinstance(o, Instruction) else o for o in value.operands
            ]
            copy = clone_instruction(value, operands, entry_block)
        self.head.append(copy)
        self.values[value] = copy
        return copy

    def clone_blocks(self, mixed: list[Instruction]) -> None:
        """Copies the region's blocks with their operands, but for values that are brought in."""
        values, again = self.values, set(mixed)
        kept = {v for v in values if isinstance(v, Instruction) and (v.op is Op.Variable or v not in again)}
        phis = []
        for block in self.blocks:
            new = values[block]
            for instruction in block.instructions:
                if instruction in kept:
                    continue  # recomputed at the entry, with the same result
                if instruction.op is Op.Phi:
                    copy = clone_instruction(instruction, [], new)
                    phis.append((copy, instruction))
                else:
                    copy = clone_instruction(instruction, instruction.operands, new)
                values[instruction] = copy
                new.instructions.append(copy)
        get = values.get
        for block in self.blocks:
            for copy in values[block].instructions:
                if copy.op is not Op.Phi:
                    copy.operands = [get(o, o) for o in copy.operands]
        for copy, original in phis:
            operands = original.operands
            for i in range(0, len(operands), 2):
                if operands[i + 1] in self.inside and operands[i + 1] not in self.splitter.next_region:
                    copy.operands += [get(operands[i], operands[i]), get(operands[i + 1])]

    def end_blocks(self) -> list[_Exit]:
        """Boundaries and returns become RegionExits. Returns (block, the entry block that follows)."""
        splitter = self.splitter
        exits = []
        for block in self.blocks:
            new = self.values[block]
            following = splitter.next_region.get(block)
            if following is None and new.terminator.op is not Op.Return:
                continue
            if following is None or following == REGION_END:
                following = REGION_END
            else:
                after = splitter.once_next.get(block, following)
                if after != REGION_END:
                    exits.append((new, splitter.entries[after]))
            new.instructions.pop()
            append(new, PassOp.RegionExit, None, [following])
        return exits

    def repair(self, mixed: list[Instruction], exits: list[_Exit]) -> dict[Instruction, SsaUpdater]:
        """Values that come from the context on some paths and are computed on others."""
        if not mixed:
            return {}
        remove_unreachable_blocks(self.function)
        before = predecessors(self.function)
        entry_block = self.function.blocks[0]
        updaters: dict[Instruction, SsaUpdater] = {}
        by_clone: dict[Instruction, SsaUpdater] = {}
        self.replaced: dict[Value, Value] = {}
        for value in mixed:
            clone = self.values[value]
            updater = SsaUpdater(value.type, before, self.types.undef(value.type), value.name, self.replaced)
            updater.at_start[entry_block] = self.loaded[value]
            updater.define(clone.block, clone)
            updaters[value] = updater
            by_clone[clone] = updater
        for block in self.function.blocks:
            for instruction in list(block.instructions):
                operands = instruction.operands
                for i, operand in enumerate(operands):
                    found = by_clone.get(operand) if type(operand) is Instruction else None
                    if found is None:
                        continue
                    if instruction.op is Op.Phi:
                        operands[i] = found.value_at_end(operands[i + 1])
                    elif operand.block is not block:
                        operands[i] = found.value_at_start(block)
        return updaters

    def store_at_exits(self, exits: list[_Exit], updaters: dict[Instruction, SsaUpdater]) -> None:
        """Stores into slots what regions that follow need and what has changed here."""
        splitter = self.splitter
        for block, following in exits:
            stores = []
            for value in splitter.live_in[following]:
                slot = splitter.slot_of.get(value)
                if slot is None or value.block not in self.inside:
                    continue
                updater = updaters.get(value)
                current = self.values[value] if updater is None else updater.value_at_end(block)
                if not isinstance(current, Instruction) or not (
                    current.op is PassOp.SlotLoad and current.operands[0] is slot
                ):
                    stores.append(Instruction(PassOp.SlotStore, None, [slot, current], block))
            block.instructions[-1:-1] = stores

    def substitute_phis(self, updaters: dict[Instruction, SsaUpdater]) -> None:
        """Puts what stands for phis that were removed in their place."""
        if updaters and self.replaced:
            substitute(self.function, self.replaced)

    def find_successors(self) -> tuple[int, ...]:
        """The regions that the region's exits lead to, REGION_END left out."""
        found = {
            b.terminator.operands[0] for b in self.function.blocks if b.terminator.op is PassOp.RegionExit
        }
        found.discard(REGION_END)
        return tuple(sorted(found))
