"""SSA construction on demand: which of several definitions of one variable reaches a place."""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Type, Value
from ...spirv.types import TypeTable
from .dominance import DominatorTree
from .instructions import predecessors, remove_unreachable_blocks, substitute


class SsaUpdater:
    """One variable with a value at the end of some blocks; asks for it elsewhere make phis where paths join.

    Phis appear only in blocks from which somebody asked (pruned SSA). After all questions `finish`
    removes the ones that merge one value only; `resolve` follows those removals.
    """

    def __init__(
        self,
        type_: Type,
        predecessors: dict[Block, list[Block]],
        undefined: Value,
        name: str = "",
        replaced: dict[Value, Value] | None = None,
    ) -> None:
        """replaced: what stands for values that are gone; updaters whose values mix share one."""
        self.type = type_
        self.predecessors = predecessors
        self.undefined = undefined  # what it is where no definition reaches
        self.name = name
        # What strictly dominates the block has no value.
        self.undefined_above: tuple[DominatorTree[Block], Block] | None = None
        self.at_end: dict[Block, Value] = {}
        self.at_start: dict[Block, Value] = {}
        self.phis: list[Instruction] = []
        self._unfilled: list[Instruction] = []
        self._replaced = {} if replaced is None else replaced

    def define(self, block: Block, value: Value) -> None:
        """The variable has this value at the end of the block."""
        self.at_end[block] = value

    def value_at_end(self, block: Block) -> Value:
        """The variable's value where the block ends."""
        value = self._at_end(block)
        self._fill()
        return self.resolve(value)

    def value_at_start(self, block: Block) -> Value:
        """The variable's value where the block begins, behind its phis."""
        value = self._at_start(block)
        self._fill()
        return self.resolve(value)

    def _at_end(self, block: Block) -> Value:
        value = self.at_end.get(block)
        if value is None:
            if self.undefined_above is not None:
                tree, below = self.undefined_above
                if tree.dominates(block, below):
                    return self.undefined
            value = self._at_start(block)
        return value

    def _at_start(self, block: Block) -> Value:
        passed = []
        while True:
            value = self.at_start.get(block)
            if value is not None:
                break
            predecessors = self.predecessors[block]
            if len(predecessors) == 1:  # every block is reachable, so a chain of these ends
                passed.append(block)
                value = self.at_end.get(predecessors[0])
                if value is None and self.undefined_above is not None:
                    tree, below = self.undefined_above
                    if tree.dominates(predecessors[0], below):
                        value = self.undefined
                if value is not None:
                    break
                block = predecessors[0]
                continue
            if not predecessors:
                value = self.undefined
            else:
                value = Instruction(Op.Phi, self.type, (), block, self.name)
                self.phis.append(value)
                self._unfilled.append(value)
            self.at_start[block] = value
            break
        for earlier in passed:
            self.at_start[earlier] = value
        return value

    def _fill(self) -> None:
        while self._unfilled:
            phi = self._unfilled.pop()
            for predecessor in self.predecessors[phi.block]:
                phi.operands += [self._at_end(predecessor), predecessor]

    def resolve(self, value: Value) -> Value:
        """The value that stands for a phi that was removed."""
        while value in self._replaced:
            value = self._replaced[value]
        return value

    def finish(self) -> dict[Value, Value]:
        """Puts the phis that are needed into their blocks; returns the removed ones with what replaces them.

        The caller substitutes them in what it stored of earlier answers.
        """
        changed = True
        phis = self.phis
        while changed:
            changed = False
            kept = []
            for phi in phis:
                only = None
                for operand in phi.operands[::2]:
                    operand = self.resolve(operand)
                    if operand is phi or operand is only:
                        continue
                    if only is not None:
                        break
                    only = operand
                else:
                    self._replaced[phi] = self.undefined if only is None else only
                    changed = True
                    continue
                kept.append(phi)
            phis = kept
        for phi in phis:
            phi.operands[::2] = [self.resolve(o) for o in phi.operands[::2]]
            phi.block.instructions.insert(0, phi)
        return self._replaced


def repair(function: Function, types: TypeTable) -> None:
    """Makes SSA form valid again after edges were added: uses that their definition no longer dominates get
    phis, with an undefined value on the paths that did not exist before."""
    remove_unreachable_blocks(function)
    before = predecessors(function)
    tree = DominatorTree(function.blocks, before)
    position = {i: k for block in function.blocks for k, i in enumerate(block.instructions)}
    broken: dict[Instruction, list[tuple[Instruction, int]]] = {}
    for block in function.blocks:
        for index, instruction in enumerate(block.instructions):
            is_phi = instruction.op is Op.Phi
            for i, operand in enumerate(instruction.operands):
                if type(operand) is not Instruction:
                    continue
                where = instruction.operands[i + 1] if is_phi else block
                if operand.block is where:
                    if is_phi or position[operand] < index:
                        continue
                elif tree.dominates(operand.block, where):
                    continue
                broken.setdefault(operand, []).append((instruction, i))
            mask = instruction.mask
            if (
                type(mask) is Instruction
                and mask.block is not block
                and not tree.dominates(mask.block, block)
            ):
                raise AssertionError("a mask does not dominate what it masks")
    replaced: dict[Value, Value] = {}
    updaters = []
    for value, uses in broken.items():
        updater = SsaUpdater(value.type, before, types.undef(value.type), value.name, replaced)
        updater.define(value.block, value)
        # The definition dominated its uses once, so nobody wants a value from before it.
        updater.undefined_above = tree, value.block
        for user, i in uses:
            if user.op is Op.Phi:
                user.operands[i] = updater.value_at_end(user.operands[i + 1])
            else:
                user.operands[i] = updater.value_at_start(user.block)
        updaters.append(updater)
    for updater in updaters:
        updater.finish()
    substitute(function, replaced)
