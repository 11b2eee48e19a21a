"""What a walk along the paths from a branch may pass over, so that nested branches take linear time."""

from __future__ import annotations

from ...spirv.module import Block, Function
from ..ir.dominance import EXIT, DominatorTree, Loop, LoopNest, post_dominators


class BranchRegions:
    """Branches whose paths all lead to one block behind, through blocks that only the branch leads to."""

    def __init__(self, function: Function, tree: DominatorTree[Block], nest: LoopNest) -> None:
        self.post = post_dominators(function)
        self.behind: dict[Block, Block | None] = {}  # branch: its immediate post-dominator, or EXIT
        self._between: dict[Block, set[Block]] = {}  # without what lies between the inner ones
        self.leaving: dict[Block, list[Loop]] = {}  # the loops that a block has an edge out of
        self.targets: dict[Block, dict[Block, None]] = {}  # by header: where a loop's exits lead
        for loop, blocks in nest.leaving().items():
            out = self.targets[loop.header] = {}
            for block in blocks:
                self.leaving.setdefault(block, []).append(loop)
                out.update(dict.fromkeys(s for s in block.successors() if s not in loop.blocks))
        for block in reversed(tree.order):  # inner ones first
            if len(block.successors()) > 1:
                self._add(block, tree)

    def _add(self, branch: Block, tree: DominatorTree[Block]) -> None:
        behind, end = self.behind, self.post.immediate(branch)
        seen = {branch}
        work: list[Block | None] = [*branch.successors()]
        while work:
            block = work.pop()
            if block is EXIT or block is end or block in seen:
                continue
            if not tree.dominates(branch, block):
                return
            seen.add(block)
            if block in behind:
                work.append(behind[block])
            else:
                work += block.successors()
        seen.discard(branch)
        behind[branch] = end
        self._between[branch] = seen

    def add_blocks(self, branches: list[Block], blocks: set[Block]) -> None:
        """Puts all blocks between these branches and what is behind them into the set, which is the same in
        all calls."""
        work = list(branches)
        while work:
            inner = self._between.pop(work.pop(), set())
            blocks.update(inner)
            work += inner
