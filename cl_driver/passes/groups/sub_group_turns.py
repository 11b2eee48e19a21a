"""Sub-groups that wait for one another (independent forward progress): where they let others go on.

    while (atomic_load(flag) != 1) ;      another sub-group of the group sets the flag

The sub-groups of a group run on one thread, one after the other. In kernels with such loops each has a stack
of its own, and others go on where a loop that may wait jumps back. Whoever waits within a sub-group needs no
such help: its lanes are one vector, and go through loops together.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function
from ..analysis.spin_locks import waiting_loops
from ..ir.instructions import append, rename_phi_edge, replace_successor
from ..ir.ops import PassOp


def let_others_go_on(function: Function) -> bool:
    """Puts a Yield on the back edges of loops that may wait; true if there are any, or named barriers. Calls
    are expanded, and the function is reducible."""
    loops = waiting_loops(function)
    for loop in loops:
        for latch in loop.latches:
            if latch.terminator.op is Op.Branch:
                terminator = latch.instructions.pop()
                append(latch, PassOp.Yield)
                latch.instructions.append(terminator)
                continue
            turn = Block(function, "turn")
            append(turn, PassOp.Yield)
            append(turn, Op.Branch, None, [loop.header])
            replace_successor(latch, loop.header, turn)
            rename_phi_edge(loop.header, latch, turn)
            function.blocks.insert(function.blocks.index(latch) + 1, turn)
    named = any(i.op is Op.MemoryNamedBarrier for block in function.blocks for i in block.instructions)
    return bool(loops) or named
