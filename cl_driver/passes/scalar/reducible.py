"""Makes irreducible control flow reducible: every cycle gets one entry.

A cycle that can be entered at several blocks (gotos into loops; some optimisers) gets a dispatch block that
all edges to its entries lead to; a phi there says which entry is meant, a switch goes on to it. Code does not
grow, as it would by splitting nodes. Kernels from structured sources pay one check (dominance.is_reducible).
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction
from ...spirv.types import TypeTable
from ..ir.dominance import dominators, is_reducible
from ..ir.instructions import append, predecessors
from ..ir.ssa_updater import repair


def make_reducible(function: Function, types: TypeTable) -> None:
    """Changes a function in place; does nothing if it is reducible."""
    if is_reducible(function, dominators(function)):
        return
    _split(function, set(function.blocks), types)
    repair(function, types)


def _split(function: Function, blocks: set[Block], types: TypeTable) -> None:
    """Gives every cycle within a set of blocks one entry, then looks for cycles behind that entry."""
    for cycle in _cycles(function, blocks):
        before = predecessors(function)
        entries = [b for b in function.blocks if b in cycle and any(p not in cycle for p in before[b])]
        if len(entries) > 1:
            header = _dispatch(function, cycle, entries, before, types)
        else:
            header = entries[0]
        _split(function, cycle - {header}, types)


def _cycles(function: Function, blocks: set[Block]) -> list[set[Block]]:
    """The strongly connected components of a part of the graph that contain a cycle (Tarjan)."""
    index: dict[Block, int] = {}
    low: dict[Block, int] = {}
    on_stack: set[Block] = set()
    path: list[Block] = []
    result = []
    for root in function.blocks:
        if root not in blocks or root in index:
            continue
        index[root] = low[root] = len(index)
        path.append(root)
        on_stack.add(root)
        work = [(root, iter(root.successors()))]
        while work:
            block, successors = work[-1]
            for successor in successors:
                if successor not in blocks:
                    continue
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    path.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(successor.successors())))
                    break
                if successor in on_stack:
                    low[block] = min(low[block], index[successor])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[block])
                if low[block] == index[block]:
                    component = set()
                    while True:
                        member = path.pop()
                        on_stack.discard(member)
                        component.add(member)
                        if member is block:
                            break
                    if len(component) > 1 or block in block.successors():
                        result.append(component)
    return result


def _dispatch(
    function: Function,
    cycle: set[Block],
    entries: list[Block],
    before: dict[Block, list[Block]],
    types: TypeTable,
) -> Block:
    """Leads all edges to the entries through one new block, which becomes the cycle's header."""
    header = Block(function, "dispatch")
    number = types.int(32)
    selector = Instruction(Op.Phi, number, (), header)
    moved: list[tuple[Instruction, Instruction]] = []  # phi of an entry, its place in the header
    for entry in entries:
        for phi in list(entry.phis()):
            moved.append((phi, Instruction(Op.Phi, phi.type, (), header, phi.name)))
    for position, entry in enumerate(entries):
        for source in before[entry]:
            # One block per edge, so that a block with edges to two entries has a predecessor for each.
            edge = Block(function, entry.name)
            append(edge, Op.Branch, None, [header])
            terminator = source.terminator
            terminator.operands = [edge if o is entry else o for o in terminator.operands]
            selector.operands += [types.integer(32, position), edge]
            for phi, copy in moved:
                value = types.undef(phi.type)
                if phi.block is entry:
                    value = phi.operands[phi.operands.index(source) - 1]
                copy.operands += [value, edge]
            function.blocks.append(edge)
            if source in cycle:
                cycle.add(edge)
    header.instructions = [selector, *(copy for _, copy in moved)]
    for phi, copy in moved:
        # The phi itself stays, with one operand, for its users.
        phi.operands = [copy, header]
    cases = [o for i, e in enumerate(entries[1:], 1) for o in (i, e)]
    append(header, Op.Switch, None, [selector, entries[0], *cases])
    function.blocks.append(header)
    cycle.add(header)
    return header
