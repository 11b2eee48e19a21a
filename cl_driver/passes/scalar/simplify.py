"""Folding, removal of dead code, and clean-up of the control-flow graph, until nothing changes.

One pass because each enables the others: a folded condition makes a block unreachable, which makes a phi
trivial, which folds a condition.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Function, Instruction, Value
from ...spirv.types import TypeTable
from ..ir.fold import Folder
from ..ir.instructions import (
    is_removable,
    predecessors,
    remove_phi_edge,
    remove_unreachable_blocks,
    substitute,
)
from .sink import sink_stores, sink_values
from .vector_tests import ask_vectors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def simplify(function: Function, types: TypeTable) -> None:
    """Simplifies a function in place. Blocks end up in reverse postorder."""
    folder = Folder(types)
    steps: list[Callable[[], bool]] = [
        lambda: fold_instructions(function, folder),
        lambda: ask_vectors(function, types),
        lambda: sink_values(function),
        lambda: sink_stores(function),
        lambda: drop_impossible_defaults(function),
        lambda: fold_branches(function),
        lambda: merge_blocks(function),
    ]
    remove_unreachable_blocks(function)  # later, who makes such blocks does
    step = idle = 0
    while idle < len(steps):  # until each has found nothing since the last change
        idle = 0 if steps[step]() else idle + 1
        step = (step + 1) % len(steps)
    remove_dead_code(function)


def fold_instructions(function: Function, folder: Folder) -> bool:
    """Replaces what folds. In reverse postorder one sweep suffices but for phis of loops."""
    replaced: dict[Value, Value] = {}
    laws, stay = folder.by_op, replaced.keys().isdisjoint
    for block in function.blocks:
        dropped = False
        for instruction in block.instructions:
            if replaced and not stay(instruction.operands):
                instruction.operands = [replaced.get(o, o) for o in instruction.operands]
            law = laws.get(instruction.op)
            if law is None:
                continue
            value = law(instruction)
            if value is not None and value is not instruction:
                while value in replaced:
                    value = replaced[value]
                if value is instruction:
                    continue
                replaced[instruction] = value
                dropped = True
        if dropped:
            block.instructions = [i for i in block.instructions if i not in replaced]
    if replaced:
        substitute(function, replaced)
    return bool(replaced)


def drop_impossible_defaults(function: Function) -> bool:
    """Switches have no default of which OpUnreachable is all there is, as LLVM makes it where a switch has a
    case for every number: the target of most cases takes its place.

    To code with masks such a default is one more way out, with which a loop around the switch would be one
    that lanes leave one by one.
    """
    changed = False
    for block in function.blocks:
        terminator = block.terminator
        if terminator.op is not Op.Switch:
            continue
        selector, default, *cases = terminator.operands
        if default.instructions[0].op is not Op.Unreachable or all(t is default for t in cases[1::2]):
            continue
        targets = [t for t in cases[1::2] if t is not default]
        default = max(reversed(targets), key=targets.count)  # which leaves the fewest comparisons
        pairs = zip(cases[::2], cases[1::2], strict=True)
        kept = [o for n, t in pairs if t is not default for o in (n, t)]
        terminator.operands = [selector, default, *kept]
        changed = True
    if changed:
        remove_unreachable_blocks(function)
    return changed


def fold_branches(function: Function) -> bool:
    """Conditional branches and switches with one possible target become branches."""
    changed = False
    for block in function.blocks:
        terminator = block.terminator
        op = terminator.op
        if op is Op.BranchConditional:
            condition, if_true, if_false = terminator.operands[:3]
            if if_true is if_false:
                target = if_true
            elif type(condition) is Constant:
                target = if_true if condition.value else if_false
            else:
                continue
        elif op is Op.Switch:
            selector, target, *cases = terminator.operands
            if type(selector) is Constant:
                value, mask = selector.value or 0, (1 << selector.type.width) - 1
                for i in range(0, len(cases), 2):
                    if cases[i] & mask == value:
                        target = cases[i + 1]
                        break
            elif any(case is not target for case in cases[1::2]):
                continue
        else:
            continue
        for successor in block.successors():
            if successor is not target:
                remove_phi_edge(successor, block)
        branch = Instruction(Op.Branch, None, [target], block)
        branch.line = terminator.line
        block.instructions[-1] = branch
        changed = True
    if changed:
        remove_unreachable_blocks(function)
    return changed


def merge_blocks(function: Function) -> bool:
    """Joins a block with its only successor where that has no other predecessor, and skips empty blocks."""
    before = predecessors(function)
    gone: set[Block] = set()
    renamed: dict[Block, Block] = {}
    replaced: dict[Value, Value] = {}
    entry = function.blocks[0]
    for block in function.blocks:
        if block in gone:
            continue
        while True:
            terminator = block.instructions[-1]
            if terminator.op is not Op.Branch:
                break
            successor = terminator.operands[0]
            if successor is block or successor is entry or len(before[successor]) != 1:
                break
            instructions = block.instructions
            instructions.pop()
            for instruction in successor.instructions:
                if instruction.op is Op.Phi:
                    replaced[instruction] = instruction.operands[0]
                    continue
                instruction.block = block
                instructions.append(instruction)
            gone.add(successor)
            renamed[successor] = block
    changed = bool(gone)
    if changed:
        function.blocks = [b for b in function.blocks if b not in gone]

        def final(block: Block) -> Block:
            while block in renamed:
                block = renamed[block]
            return block

        for block in function.blocks:
            for phi in block.phis():
                phi.operands = [final(o) if o in gone else o for o in phi.operands]
        substitute(function, replaced)
    return skip_empty_blocks(function) or changed


def skip_empty_blocks(function: Function) -> bool:
    """Predecessors of a block that only branches on go to its target at once, if the phis there allow it."""
    changed = False
    before = predecessors(function)
    entry = function.blocks[0]
    for block in function.blocks:
        terminator = block.instructions[0]
        if terminator.op is not Op.Branch or block is entry:
            continue
        target = terminator.operands[0]
        if target is block:
            continue
        sources = before[block]
        target_sources = before[target]
        has_phis = target.instructions[0].op is Op.Phi
        if has_phis and not set(sources).isdisjoint(target_sources):
            continue
        if has_phis and len(sources) > 1 and len(target_sources) > 1:
            continue  # would give each phi more operands and save no jump
        if block in target_sources and target in sources:
            continue  # a loop of two blocks keeps its latch
        for phi in target.phis():
            operands = []
            for i in range(0, len(phi.operands), 2):
                value, source = phi.operands[i : i + 2]
                if source is block:
                    operands += [o for s in sources for o in (value, s)]
                else:
                    operands += [value, source]
            phi.operands = operands
        for source in sources:
            last = source.instructions[-1]
            last.operands = [target if o is block else o for o in last.operands]
        new_sources = [s for s in target_sources if s is not block]
        before[target] = new_sources + [s for s in sources if s not in new_sources]
        before[block] = []
        changed = True
    if changed:
        remove_unreachable_blocks(function)
    return changed


def remove_dead_code(function: Function) -> bool:
    """Drops instructions whose results do not matter, cycles of phis included."""
    alive: set[Value] = set()
    work: list[Instruction] = []
    for block in function.blocks:
        for instruction in block.instructions:
            if not is_removable(instruction):
                work.append(instruction)
    alive.update(work)
    while work:
        instruction = work.pop()
        mask = instruction.mask
        if mask is not None and type(mask) is Instruction and mask not in alive:
            alive.add(mask)
            work.append(mask)
        for operand in instruction.operands:
            if type(operand) is Instruction and operand not in alive:
                alive.add(operand)
                work.append(operand)
    changed = False
    for block in function.blocks:
        kept = [i for i in block.instructions if i in alive]
        if len(kept) != len(block.instructions):
            block.instructions = kept
            changed = True
    return changed
