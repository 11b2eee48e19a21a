"""The acyclic graph of one region for linearise.py: nodes are blocks and inner loops."""

from __future__ import annotations

from ...spirv.module import Value
from ..ir.dominance import DominatorTree, Loop

EXIT = None  # what lies behind a region


class Graph:
    """The acyclic graph of one region: nodes are blocks and inner loops."""

    def __init__(self, worker, nodes: set, loop: Loop | None) -> None:
        self.nodes = sorted(nodes, key=worker.number_of)
        self.edges: dict = {}  # node: [(source block, target block, target node or EXIT)]
        self.before: dict = {node: [] for node in self.nodes}
        for node in self.nodes:
            out = self.edges[node] = []
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
        after = {
            node: list(dict.fromkeys(into for _, _, into in self.edges[node])) or [EXIT]
            for node in self.nodes
        }
        after[EXIT] = []
        self.after = after
        self.dominators = DominatorTree(
            self.nodes, {n: [source for _, _, source in self.before[n]] for n in self.nodes}
        )
        self.post = DominatorTree([EXIT, *reversed(self.nodes)], after)

    def influence(self, node) -> set:
        """The influence region: the nodes strictly between a node and its immediate post-dominator."""
        end = self.post.immediate(node)
        result: set = set()
        work = [n for n in self.after[node] if n is not end]
        while work:
            n = work.pop()
            if n not in result and n is not EXIT:
                result.add(n)
                work.extend(s for s in self.after[n] if s is not end)
        return result

    def common_dominator(self, a: Value, b: Value):
        while not self.dominators.dominates(a, b):
            a = self.dominators.immediate(a)
        return a

    def influences(self, divergent) -> dict:
        """The branches to linearise that lie in no other's influence region, with these regions.

        Where paths from elsewhere enter a region, what they and the branch have in common is linearised, too.
        They are nested or apart, and lie behind their branches, so the first branches have the outermost.
        """
        found: dict = {}
        inside: set = set()
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

    def entered_from(self, branch, influence: set):
        """What dominates the branch and all nodes with edges into its influence region."""
        common = branch
        for node in influence:
            for _, _, source in self.before[node]:
                if source not in influence and source is not branch:
                    common = self.common_dominator(common, source)
        return common
