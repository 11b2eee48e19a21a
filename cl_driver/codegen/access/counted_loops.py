"""Loops that count up by 1 and have no effects: what all iterations will load is known before the first."""

from __future__ import annotations

from ...passes.ir.dominance import Loop, LoopNest, dominators
from ...passes.ir.instructions import EXTINST_WITH_EFFECT, PURE, is_constant_int, predecessors
from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Value

_WHILE_LESS = {Op.SLessThan: "s", Op.ULessThan: "u"}


class CountedLoop:
    """A loop that counts up by 1. count: phi; start, limit: Values; signedness: "" if it ends at the limit,
    else "s" or "u" if it goes on below it."""

    def __init__(
        self, count: Instruction, start: Value, limit: Value, signedness: str, inside: set[Instruction]
    ) -> None:
        self.count = count
        self.inside = inside  # all its instructions
        self.start = start
        self.limit = limit
        self.signedness = signedness


class CountedLoops:
    """The counted loops without effects of a function."""

    def __init__(self, function: Function) -> None:
        before = predecessors(function)
        tree = dominators(function, before)
        nest = LoopNest(function, tree, before)
        self._nest, self._tree = nest, tree
        self._found: dict[Loop, CountedLoop | None] = {}

    def around(self, block: Block) -> CountedLoop | None:
        """The innermost loop around a block, if it is such a loop and always gets there."""
        loop = self._nest.innermost.get(block)
        if loop is None or len(loop.latches) != 1 or not self._tree.dominates(block, loop.latches[0]):
            return None
        if loop not in self._found:
            self._found[loop] = _counted(loop)
        return self._found[loop]


def _counted(loop: Loop) -> CountedLoop | None:
    latch, inside = loop.latches[0], {i for block in loop.blocks for i in block.instructions}
    if any(_leaves_or_acts(loop, block) for block in loop.blocks):
        return None
    found = _comparison(loop, latch)
    if found is None:
        return None
    following, limit, signedness = found
    if limit in inside or following.op is not Op.IAdd:
        return None
    count, step = following.operands
    if not is_constant_int(step) or step.value != 1 or not isinstance(count, Instruction):
        return None
    if count.op is not Op.Phi or count not in loop.header.instructions or len(count.operands) != 4:
        return None
    edges = dict(zip(count.operands[1::2], count.operands[::2], strict=True))
    may_turn = count.type.width < 64 and signedness != "s"  # become negative on its way
    if may_turn or edges.pop(latch, None) is not following:
        return None
    (start,) = edges.values()
    return CountedLoop(count, start, limit, signedness, inside)


def _leaves_or_acts(loop: Loop, block: Block) -> bool:
    """Whether a block has effects, or leaves the loop though it is not the latch."""
    leaves = block is not loop.latches[0] and any(s not in loop.blocks for s in block.successors())
    return leaves or any(_has_effect(i) for i in block.instructions[:-1])


def _comparison(loop: Loop, latch: Block) -> tuple[Instruction, Value, str] | None:
    """What a latch compares with what to go on, and how: "s", "u", or "" for until they are equal."""
    if latch.terminator.op is not Op.BranchConditional:
        return None
    test, yes, no = latch.terminator.operands[:3]
    if not isinstance(test, Instruction) or (yes is loop.header) == (no is loop.header):
        return None
    if test.op in _WHILE_LESS and yes is loop.header:
        signedness = _WHILE_LESS[test.op]
    elif test.op is (Op.IEqual if no is loop.header else Op.INotEqual):
        signedness = ""
    else:
        return None
    following, limit = test.operands
    return (following, limit, signedness) if isinstance(following, Instruction) else None


def _has_effect(i: Instruction) -> bool:
    if i.op is Op.ExtInst:
        return i.operands[1] in EXTINST_WITH_EFFECT
    volatile = i.memory is not None and i.memory.volatile
    return volatile or (i.op is not Op.Load and i.op is not Op.Phi and i.op not in PURE)
