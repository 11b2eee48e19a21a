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
    for loop in reversed(nest.loops):
        _close(function, loop, before, tree, types)


def _close(function: Function, loop, before, tree, types) -> None:
    exits = list(dict.fromkeys(target for _, target in sorted_exits(loop, tree)))
    replaced: dict[Value, Value] = {}
    for value, places in _uses_outside(function, loop).items():
        updater = SsaUpdater(value.type, before, types.undef(value.type), value.name, replaced)
        added = [target for target in exits if tree.dominates(value.block, target)]
        phis = [Instruction(Op.Phi, value.type, (), target, value.name) for target in added]
        for target, phi in zip(added, phis, strict=True):
            updater.define(target, phi)
            updater.at_start[target] = phi
        for target, phi in zip(added, phis, strict=True):
            for source in before[target]:
                inside = source in loop.blocks
                phi.operands += [value if inside else updater.value_at_end(source), source]
        for user, index in places:
            block = user.operands[index + 1] if user.op is Op.Phi else user.block
            user.operands[index] = updater.value_at_end(block)
        updater.finish()
        for target, phi in zip(added, phis, strict=True):
            target.instructions.insert(0, phi)
    substitute(function, replaced)


def sorted_exits(loop, tree) -> list[tuple[Block, Block]]:
    """The loop's exit edges in a fixed order."""
    return sorted(loop.exits(), key=lambda edge: (tree.number[edge[0]], tree.number[edge[1]]))


def _uses_outside(function: Function, loop) -> dict[Instruction, list[tuple[Instruction, int]]]:
    """Values of the loop: (user, operand index) outside of it. A phi uses at the end of its predecessor."""
    result: dict[Instruction, list[tuple[Instruction, int]]] = {}
    blocks = loop.blocks
    for block in function.blocks:
        for instruction in block.instructions:
            operands = instruction.operands
            is_phi = instruction.op is Op.Phi
            if block in blocks and not is_phi:
                continue
            for i, operand in enumerate(operands):
                if type(operand) is Instruction and operand.block in blocks:
                    where = operands[i + 1] if is_phi else block
                    if where not in blocks:
                        result.setdefault(operand, []).append((instruction, i))
    return result
