"""Leaves a linearised loop where it is known that no lane goes on.

    latch: m = phi(a from A, false from B); any lane of m ? head : after

becomes a latch that only A leads to and a copy of it on the way from B to `after`: a uniform test of a
counter, or a jump over an empty mask, is then the loop's exit itself. What was merged in the latch for B's
sake alone (masks, values that matter to no lane that stays) is gone from the loop.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Function, Instruction, Value
from ...spirv.types import TypeTable
from ..ir.dominance import Loop, LoopNest, dominators
from ..ir.instructions import append, clone_instruction, predecessors, remove_phi_edge, replace_successor
from ..ir.ops import PassOp
from ..ir.shapes import ShapeInfo
from ..ir.ssa_updater import SsaUpdater

LARGEST = 64  # instructions of a latch that is copied


def thread_exits(function: Function, types: TypeTable) -> bool:
    """All steps that are known in each loop; True if anything changed. The function must be simplified
    afterwards, and there may be more steps then."""
    before = predecessors(function)
    changed = False
    # Steps change neither headers nor latches, nor where these go on.
    for loop in LoopNest(function, dominators(function, before), before).loops:
        while (way := _way_out(loop, before)) is not None:
            _leave(function, types, loop.latches[0], *way)
            before = predecessors(function)
            changed = True
    return changed


def _way_out(loop: Loop, before: dict[Block, list[Block]]) -> tuple[Block, Block] | None:
    """A block before a loop's latch from which no lane goes on, and where it is to go."""
    latch = loop.latches[0]
    if len(loop.latches) > 1 or len(latch.instructions) > LARGEST or latch is loop.header:
        return None
    terminator = latch.terminator
    if terminator.op is not Op.BranchConditional or terminator.operands[1] is not loop.header:
        return None
    test, _, after = terminator.operands[:3]
    if type(test) is not Instruction or test.op is not PassOp.AnyLane or after in loop.blocks:
        return None
    if len(before[latch]) < 2:
        return None
    source = next((b for b in before[latch] if _is_false(test.operands[0], latch, b)), None)
    return None if source is None else (source, after)


def _is_false(mask: Value, latch: Block, source: Block) -> bool:
    """Whether a mask is false in all lanes if the latch is reached from this block."""
    if type(mask) is Constant:
        return not mask.value
    if type(mask) is not Instruction or mask.block is not latch:
        return False
    if mask.op is Op.Phi:
        value = mask.operands[mask.operands.index(source) - 1]
        return type(value) is Constant and not value.value
    if mask.op is Op.LogicalAnd:
        return any(_is_false(o, latch, source) for o in mask.operands)
    return mask.op is Op.LogicalOr and all(_is_false(o, latch, source) for o in mask.operands)


def _leave(function: Function, types: TypeTable, latch: Block, source: Block, after: Block) -> None:
    """Gives a block that leads to the latch a copy of it that leads to what is behind the loop."""
    copy = Block(function, "leave")
    of: dict[Value, Value] = {}
    for i in latch.instructions[:-1]:
        if i.op is Op.Phi:
            of[i] = i.operands[i.operands.index(source) - 1]
            continue
        clone = clone_instruction(i, [of.get(o, o) for o in i.operands], copy)
        clone.mask = None if i.mask is None else of.get(i.mask, i.mask)
        of[i] = clone
        copy.instructions.append(clone)
    append(copy, Op.Branch, None, [after])
    replace_successor(source, latch, copy)
    remove_phi_edge(latch, source)
    for phi in after.phis():
        value = phi.operands[phi.operands.index(latch) - 1]
        phi.operands += [of.get(value, value), copy]
    function.blocks.append(copy)
    _merge_uses(function, types, latch, copy, of)


def _merge_uses(
    function: Function, types: TypeTable, latch: Block, copy: Block, of: dict[Value, Value]
) -> None:
    """Uses behind the loop of what the latch computes get phis of both of its forms."""
    inside = set(latch.instructions)
    uses: dict[Instruction, list[tuple[Instruction, int | None]]] = {}
    for block in function.blocks:
        if block is latch or block is copy:
            continue
        for user in block.instructions:
            for k, operand in enumerate(user.operands):
                if operand in inside and not (user.op is Op.Phi and user.operands[k + 1] in (latch, copy)):
                    uses.setdefault(operand, []).append((user, k))
            if user.mask in inside:
                uses.setdefault(user.mask, []).append((user, None))
    if not uses:
        return
    before = predecessors(function)
    replaced: dict[Value, Value] = {}
    updaters = []
    for value, places in uses.items():
        updater = SsaUpdater(value.type, before, types.undef(value.type), value.name, replaced)
        updater.define(latch, value)
        updater.define(copy, of[value])
        updaters.append((updater, places))
        for user, at in places:
            if at is None:
                user.mask = updater.value_at_start(user.block)
            elif user.op is Op.Phi:
                user.operands[at] = updater.value_at_end(user.operands[at + 1])
            else:
                user.operands[at] = updater.value_at_start(user.block)
    for updater, _ in updaters:
        updater.finish()
    for updater, places in updaters:
        for user, at in places:
            if at is None:
                assert user.mask is not None
                user.mask = updater.resolve(user.mask)
            else:
                user.operands[at] = updater.resolve(user.operands[at])


def split_tests(function: Function, types: TypeTable, shapes: ShapeInfo) -> bool:
    """Tests by themselves what all lanes have in common of the condition to go on in a live loop.

    `n < limit && ...` with a counter: the counter need not become part of a mask. True if anything changed.
    """
    before = predecessors(function)
    changed = False
    for loop in LoopNest(function, dominators(function, before), before).loops:
        latch = loop.latches[0]
        terminator = latch.terminator
        if len(loop.latches) > 1 or terminator.op is not Op.BranchConditional:
            continue
        test, head, after = terminator.operands[:3]
        if head is not loop.header or type(test) is not Instruction or test.op is not PassOp.AnyLane:
            continue
        leaves: list[Value] = []
        _conjuncts(test.operands[0], leaves)
        common = [v for v in leaves if shapes.is_common(v)]
        if not common or len(common) == len(leaves):
            continue
        last = Block(function, "latch")
        latch.instructions.pop()
        mask = _all_of(last, types, [v for v in leaves if v not in common])
        append(latch, Op.BranchConditional, None, [_all_of(latch, types, common), last, after])
        append(
            last,
            Op.BranchConditional,
            None,
            [append(last, PassOp.AnyLane, types.bool(), [mask]), head, after],
        )
        for phi in head.phis():
            at = phi.operands.index(latch)
            stays = phi.operands[at - 1] is test.operands[0]
            phi.operands[at - 1 : at + 1] = [mask if stays else phi.operands[at - 1], last]
        for phi in after.phis():
            phi.operands += [phi.operands[phi.operands.index(latch) - 1], last]
        function.blocks.append(last)
        changed = True
    return changed


def _conjuncts(mask: Value, leaves: list[Value]) -> None:
    """What must all be true for a mask to be true; clang writes `a && b` as a select."""
    if type(mask) is Instruction and len(leaves) < LARGEST:
        false = mask.operands[2] if mask.op is Op.Select else None
        if mask.op is Op.LogicalAnd or (type(false) is Constant and not false.value):
            for operand in mask.operands[:2]:
                _conjuncts(operand, leaves)
            return
    leaves.append(mask)


def _all_of(block: Block, types: TypeTable, values: list[Value]) -> Value:
    result = values[0]
    for value in values[1:]:
        result = append(block, Op.LogicalAnd, types.bool(), [result, value])
    return result
