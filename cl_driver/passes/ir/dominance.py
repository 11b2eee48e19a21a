"""Dominators, post-dominators and the loop nest of a control-flow graph.

Immediate dominators by the iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance
Algorithm", 2001), which is fastest for graphs of the size of kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...fast_typing import Generic, TypeVar
from ...records import field, record
from ...spirv.module import Block, Function
from .instructions import predecessors, reverse_postorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_Node = TypeVar("_Node")  # a Block, as a rule


class DominatorTree(Generic[_Node]):
    """Immediate dominators; also of the reversed graph, whose root is the virtual exit None."""

    def __init__(self, order: list[_Node], parents_of: dict[_Node, list[_Node]]) -> None:
        """order: reverse postorder from the root; parents_of: predecessors of each node in this direction."""
        self.order = order
        number = {node: i for i, node in enumerate(order)}
        immediate = [-1] * len(order)  # not known yet
        immediate[0] = 0
        parents = [[number[p] for p in parents_of[node] if p in number] for node in order]
        changed = True
        while changed:
            changed = False
            for i in range(1, len(order)):
                new = -1
                for p in parents[i]:
                    if immediate[p] < 0:  # the start of a jump back
                        changed = True
                        continue
                    if new < 0:
                        new = p
                        continue
                    a, b = p, new
                    while a != b:
                        while a > b:
                            a = immediate[a]
                        while b > a:
                            b = immediate[b]
                    new = a
                if immediate[i] != new:
                    changed = changed or immediate[i] >= 0
                    immediate[i] = new
        self.number = number
        self._immediate = immediate
        # Intervals of a walk over the tree answer `dominates` in constant time. Each node comes behind its
        # immediate dominator in `order`, so the walk need not be made.
        sizes = [1] * len(order)
        for i in range(len(order) - 1, 0, -1):
            sizes[immediate[i]] += sizes[i]
        self._enter = enter = [0] * len(order)
        free = [1] * len(order)  # where the next child begins
        for i in range(1, len(order)):
            parent = immediate[i]
            enter[i] = place = free[parent]
            free[parent] = place + sizes[i]
            free[i] = place + 1
        self._leave = [place + size - 1 for place, size in zip(enter, sizes, strict=True)]

    def place(self, node: _Node) -> int:
        """Where a node is in a walk over the tree. In the order of these places each node comes behind those
        that lead to it, back edges apart, and all that it dominates follows it at once."""
        return self._enter[self.number[node]]

    def immediate(self, node: _Node) -> _Node | None:
        """The immediate dominator; None for the root."""
        i = self.number[node]
        return self.order[self._immediate[i]] if i else None

    def above(self, node: _Node) -> _Node:
        """The immediate dominator of a node other than the root."""
        return self.order[self._immediate[self.number[node]]]

    def dominates(self, a: _Node, b: _Node) -> bool:
        """True if every path from the root to b passes a (a block dominates itself)."""
        i, j = self.number[a], self.number[b]
        return self._enter[i] <= self._enter[j] <= self._leave[i]


def dominators(function: Function, before: dict[Block, list[Block]] | None = None) -> DominatorTree[Block]:
    """The dominator tree of the blocks that can be reached. before: their predecessors, if they are known."""
    return DominatorTree(reverse_postorder(function), before or predecessors(function))


EXIT: Final = None  # the virtual block behind all ends of a function


def post_dominators(function: Function) -> DominatorTree[Block | None]:
    """The dominator tree of the reversed graph, rooted at EXIT.

    Blocks of loops without an end are given an edge to EXIT from one of them, so that every block is in it.
    """
    after: dict[Block | None, list[Block | None]] = {b: [*b.successors()] for b in function.blocks}
    before = predecessors(function)
    ends = [block for block in function.blocks if not after[block]]
    order, seen = _postorder_backwards(ends, before)
    while len(seen) < len(function.blocks):
        stuck = next(b for b in reversed(function.blocks) if b not in seen)
        ends.append(stuck)
        after[stuck] = [*after[stuck], EXIT]
        order, seen = _postorder_backwards(ends, before)
    for block in ends:
        if EXIT not in after[block]:
            after[block] = [*after[block], EXIT]
    after[EXIT] = []
    return DominatorTree([EXIT, *order], after)


def _postorder_backwards(
    ends: list[Block], before: dict[Block, list[Block]]
) -> tuple[list[Block], set[Block]]:
    """Reverse postorder of the reversed graph from all ends, and the set of blocks in it."""
    order: list[Block] = []
    seen: set[Block] = set()
    for end in reversed(ends):
        if end in seen:
            continue
        seen.add(end)
        stack = [(end, iter(before[end]))]
        while stack:
            block, rest = stack[-1]
            for predecessor in rest:
                if predecessor not in seen:
                    seen.add(predecessor)
                    stack.append((predecessor, iter(before[predecessor])))
                    break
            else:
                order.append(block)
                stack.pop()
    order.reverse()
    return order, seen


@record(eq=False, slots=True)
class Loop:
    """A natural loop: the blocks that reach a back edge to the header without passing it."""

    header: Block
    latches: list[Block]
    blocks: set[Block]
    parent: Loop | None = None
    children: list[Loop] = field(default_factory=list)


class LoopNest:
    """All loops of a reducible function, innermost of each block, outer before inner."""

    def __init__(
        self, function: Function, tree: DominatorTree[Block], before: dict[Block, list[Block]]
    ) -> None:
        self.loops: list[Loop] = []
        self.innermost: dict[Block, Loop] = {}
        self.order = tree.order
        headers: dict[Block, list[Block]] = {}
        for block in tree.order:
            for successor in block.successors():
                if tree.dominates(successor, block):
                    headers.setdefault(successor, []).append(block)
        around: dict[Loop, Loop] = {}  # a loop around, not always the next one

        def outermost(loop: Loop) -> Loop:
            passed = []
            while loop in around:
                passed.append(loop)
                loop = around[loop]
            for inner in passed:
                around[inner] = loop
            return loop

        # Inner headers come later in reverse postorder; outer loops take in whole inner ones.
        for header in sorted(headers, key=tree.number.__getitem__, reverse=True):
            loop = Loop(header, headers[header], {header})
            own = [header]
            work = [latch for latch in loop.latches if latch is not header]
            while work:
                block = work.pop()
                if block in loop.blocks:
                    continue
                inner = self.innermost.get(block)
                if inner is None:
                    loop.blocks.add(block)
                    own.append(block)
                    work.extend(before[block])
                else:
                    inner = outermost(inner)
                    loop.blocks |= inner.blocks
                    inner.parent = around[inner] = loop
                    work.extend(before[inner.header])
            self.innermost.update(dict.fromkeys(own, loop))
            self.loops.append(loop)
        self.loops.reverse()
        for loop in self.loops:
            if loop.parent:
                loop.parent.children.append(loop)

    def inner_first(self) -> Iterator[Loop]:
        """All loops, each behind those in it, which come in reverse postorder."""
        pending = [(loop, False) for loop in reversed(self.loops) if loop.parent is None]
        while pending:
            loop, is_done = pending.pop()
            if is_done:
                yield loop
            else:
                pending.append((loop, True))
                pending += ((inner, False) for inner in reversed(loop.children))

    def own_blocks(self) -> dict[Loop | None, list[Block]]:
        """The blocks of each loop that are in no inner one, and those in no loop, in reverse postorder."""
        result: dict[Loop | None, list[Block]] = {loop: [] for loop in (None, *self.loops)}
        for block in self.order:
            result[self.innermost.get(block)].append(block)
        return result

    def leaving(self) -> dict[Loop, list[Block]]:
        """The blocks with edges out of each loop, in reverse postorder."""
        result: dict[Loop, list[Block]] = {loop: [] for loop in self.loops}
        for block in self.order:
            successors = block.successors()
            loop = self.innermost.get(block)
            while loop is not None and not loop.blocks.issuperset(successors):
                result[loop].append(block)
                loop = loop.parent
        return result


def is_reducible(function: Function, tree: DominatorTree[Block]) -> bool:
    """True if every edge back in reverse postorder goes to a block that dominates its source."""
    number = tree.number
    for block in tree.order:
        for successor in block.successors():
            if number[successor] <= number[block] and not tree.dominates(successor, block):
                return False
    return True
