"""Loop-closed SSA: a value computed in a loop is used behind the loop only through phis at the loop's exits.

The phis are where a divergent loop's results become varying, and where vectorize/linearise.py collects them.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Value
from ...spirv.types import TypeTable
from .dominance import DominatorTree, Loop, LoopNest, dominators
from .instructions import predecessors, substitute
from .ssa_updater import SsaUpdater


def close_loops(function: Function, types: TypeTable) -> None:
    """Adds the phis. A value leaves one loop at a time: inner loops come first, and of those side by side the
    one that is executed first, as what it leaves may become a phi in the next one."""
    before = predecessors(function)
    tree = dominators(function, before)
    nest = LoopNest(function, tree, before)
    if not nest.loops:
        return
    closing = _Closing(before, tree, types)
    for block in function.blocks:
        for instruction in block.instructions:
            closing.add_uses(instruction)
    own, leaving = nest.own_blocks(), nest.leaving()
    for loop in nest.inner_first():
        closing.close(loop, own[loop], leaving[loop])
    substitute(function, closing.replaced)


class _Closing:
    def __init__(
        self, before: dict[Block, list[Block]], tree: DominatorTree[Block], types: TypeTable
    ) -> None:
        self.before = before
        self.tree = tree
        self.types = types
        self.replaced: dict[Value, Value] = {}
        self.uses: dict[Value, list[tuple[Instruction, int]]] = {}  # (user, operand index)

    def add_uses(self, user: Instruction) -> None:
        uses = self.uses
        for i, operand in enumerate(user.operands):
            if type(operand) is Instruction:
                found = uses.get(operand)
                if found is None:
                    uses[operand] = [(user, i)]
                else:
                    found.append((user, i))

    def close(self, loop: Loop, own: list[Block], leaving: list[Block]) -> None:
        """own: the loop's blocks that are in no inner loop: values of inner ones are closed already. leaving:
        the blocks with edges out of the loop."""
        number = self.tree.number.__getitem__
        blocks = loop.blocks
        exits = list(
            dict.fromkeys(t for b in leaving for t in sorted(b.successors(), key=number) if t not in blocks)
        )
        for value in [i for block in own for i in block.instructions]:
            places = self.uses_outside(value, loop)
            if places:
                self.close_value(value, places, loop, exits)

    def uses_outside(self, value: Instruction, loop: Loop) -> list[tuple[Instruction, int]]:
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

    def close_value(
        self, value: Instruction, places: list[tuple[Instruction, int]], loop: Loop, exits: list[Block]
    ) -> None:
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
            phi.operands[::2] = [updater.resolve(o) for o in phi.operands[::2]]
            target.instructions.insert(0, phi)
        for phi in (*phis, *kept):
            self.add_uses(phi)
