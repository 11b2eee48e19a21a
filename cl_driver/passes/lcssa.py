"""Loop-closed SSA: a value computed in a loop is used behind the loop only through phis at the loop's exits.

The phis are where a divergent loop's results become varying, and where linearise.py collects them.
"""

from __future__ import annotations

from ..spirv.enums import Op
from ..spirv.module import Block, Function, Instruction, Value
from .dominance import LoopNest, dominators
from .ir import predecessors, substitute
from .ssa import SsaUpdater


def close_loops(function: Function, types) -> None:
    """Adds the phis. Inner loops first, so that a value leaves one loop at a time."""
    before = predecessors(function)
    tree = dominators(function, before)
    nest = LoopNest(function, tree, before)
    if not nest.loops:
        return
    closing = _Closing(before, tree, types)
    for block in function.blocks:
        for instruction in block.instructions:
            closing.add_uses(instruction)
    for loop in reversed(nest.loops):
        closing.close(loop)
    substitute(function, closing.replaced)


class _Closing:
    def __init__(self, before, tree, types):
        self.before = before
        self.tree = tree
        self.types = types
        self.replaced: dict[Value, Value] = {}
        self.uses: dict[Value, list[tuple[Instruction, int]]] = {}  # (user, operand index)

    def add_uses(self, user: Instruction) -> None:
        for i, operand in enumerate(user.operands):
            if type(operand) is Instruction:
                self.uses.setdefault(operand, []).append((user, i))

    def close(self, loop) -> None:
        exits = list(dict.fromkeys(target for _, target in sorted_exits(loop, self.tree)))
        number = self.tree.number
        for block in sorted(loop.blocks, key=number.__getitem__):
            for value in block.instructions[:]:
                places = self.uses_outside(value, loop)
                if places:
                    self.close_value(value, places, loop, exits)

    def uses_outside(self, value: Instruction, loop) -> list[tuple[Instruction, int]]:
        """Uses outside of the loop. A phi uses at the end of its predecessor."""
        blocks = loop.blocks
        result = []
        for user, i in self.uses.get(value, ()):
            if user.operands[i] is not value:
                continue  # changed since it was noted
            where = user.operands[i + 1] if user.op is Op.Phi else user.block
            if where not in blocks:
                result.append((user, i))
        return result

    def close_value(self, value: Instruction, places, loop, exits: list[Block]) -> None:
        updater = SsaUpdater(value.type, self.before, self.types.undef(value.type), value.name, self.replaced)
        added = [target for target in exits if self.tree.dominates(value.block, target)]
        phis = [Instruction(Op.Phi, value.type, (), target, value.name) for target in added]
        for target, phi in zip(added, phis, strict=True):
            updater.define(target, phi)
            updater.at_start[target] = phi
        for target, phi in zip(added, phis, strict=True):
            for source in self.before[target]:
                inside = source in loop.blocks
                phi.operands += [value if inside else updater.value_at_end(source), source]
        for user, i in places:
            block = user.operands[i + 1] if user.op is Op.Phi else user.block
            user.operands[i] = updater.value_at_end(block)
        removed = updater.finish()
        for user, i in places:
            new = user.operands[i] = updater.resolve(user.operands[i])
            self.uses.setdefault(new, []).append((user, i))
        kept = [phi for phi in updater.phis if phi not in removed]
        for target, phi in zip(added, phis, strict=True):
            target.instructions.insert(0, phi)
        for phi in (*phis, *kept):
            self.add_uses(phi)


def sorted_exits(loop, tree) -> list[tuple[Block, Block]]:
    """The loop's exit edges in a fixed order."""
    return sorted(loop.exits(), key=lambda edge: (tree.number[edge[0]], tree.number[edge[1]]))
