"""The acyclic graph of one region for linearise.py: nodes are blocks and inner loops."""

from __future__ import annotations

from ...spirv.module import Block
from ..ir.dominance import DominatorTree, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from .linearise import _Linearizer

EXIT: Final = None  # what lies behind a region

Node: TypeAlias = Block | Loop


class Graph:
    """The acyclic graph of one region: nodes are blocks and inner loops."""

    def __init__(self, worker: _Linearizer, nodes: set[Node], loop: Loop | None) -> None:
        self.nodes = sorted(nodes, key=worker.number_of)
        self.edges: dict[Node, list[tuple[Block, Block, Node | None]]] = {}  # with the target's node, or EXIT
        # With the source's node.
        self.before: dict[Node | None, list[tuple[Block, Block, Node]]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            out: list[tuple[Block, Block, Node | None]] = []
            self.edges[node] = out
            if isinstance(node, Loop):
                pairs = [(b, s) for b in worker.leaving[node] for s in b.successors() if s not in node.blocks]
            else:
                pairs = [(node, s) for s in node.successors()]
            for source, target in pairs:
                into = worker.node_of(target, loop)
                if into not in nodes or (loop is not None and target is loop.header):
                    into = EXIT
                out.append((source, target, into))
                if into is not EXIT:
                    self.before[into].append((source, target, node))
        after: dict[Node | None, list[Node | None]] = {
            node: list(dict.fromkeys(into for _, _, into in self.edges[node])) or [EXIT]
            for node in self.nodes
        }
        after[EXIT] = []
        self.after = after
        self.dominators = DominatorTree(
            self.nodes, {n: [source for _, _, source in self.before[n]] for n in self.nodes}
        )
        self.post = DominatorTree([EXIT, *reversed(self.nodes)], after)

    def influence(self, node: Node) -> set[Node]:
        """The influence region: the nodes strictly between a node and its immediate post-dominator."""
        end = self.post.immediate(node)
        result: set[Node] = set()
        work = [n for n in self.after[node] if n is not end]
        while work:
            n = work.pop()
            if n not in result and n is not EXIT:
                result.add(n)
                work.extend(s for s in self.after[n] if s is not end)
        return result

    def common_dominator(self, a: Node, b: Node) -> Node:
        """The last node that dominates both."""
        while not self.dominators.dominates(a, b):
            a = self.dominators.above(a)
        return a

    def influences(self, divergent: set[Block]) -> dict[Node, set[Node]]:
        """The branches to linearise that lie in no other's influence region, with these regions.

        Where paths from elsewhere enter a region, what they and the branch have in common is linearised, too.
        They are nested or apart, and lie behind their branches, so the first branches have the outermost.
        """
        found: dict[Node, set[Node]] = {}
        inside: set[Node] = set()
        for branch in self.nodes:
            if branch not in divergent or branch in inside:
                continue
            influence = self.influence(branch)
            while (common := self.entered_from(branch, influence)) is not branch:
                branch, influence = common, self.influence(common)
            found = {n: other for n, other in found.items() if n not in influence} if found else found
            found[branch] = influence
            inside |= influence
        return found

    def entered_from(self, branch: Node, influence: set[Node]) -> Node:
        """What dominates the branch and all nodes with edges into its influence region."""
        common: Node = branch
        for node in influence:
            for _, _, source in self.before[node]:
                if source not in influence and source is not branch:
                    common = self.common_dominator(common, source)
        return common
