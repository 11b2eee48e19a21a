"""Linearises divergent control flow: afterwards every branch is uniform, and masks say which lanes take part.

In each region (the function, a loop's body, a kept uniform branch) loops are single nodes, so the graph is
acyclic. All nodes between a divergent branch and its immediate post-dominator become one straight line, each
under a block mask: the lanes that come to it, which is the or of its edges' masks. Phis become selects. Nodes in
the line whose mask may be empty are jumped over if that pays, or must be: a loop, or a branch that stays one,
would act on values that nobody computed. Divergent loops have become uniform loops before (live_loops.py).

Inside the line a uniform branch whose blocks only it reaches stays a branch. Where paths from elsewhere enter
the line, the branch that they have in common is linearised as well, divergent or not.

A mask is an ordinary bool value; instructions that touch memory, may trap or call carry it as `mask`. Lanes
outside of a mask compute garbage, or nothing.
"""

from __future__ import annotations

from ..spirv.enums import Op
from ..spirv.module import Block, Constant, Function, Instruction, Kind, Undef, Value, Variable
from .dominance import DominatorTree, Loop, LoopNest, dominators
from .ir import PURE, append, predecessors, remove_unreachable_blocks, substitute
from .lcssa import close_loops
from .live_loops import make_live_loop
from .ops import REGION_END, PassOp
from .reducible import make_reducible
from .shape import ShapeInfo, analyse_shapes
from .simplify import simplify
from .ssa import repair

JUMP_COST = 8  # instructions in a block above which an empty mask jumps over it

_EXIT = None  # what lies behind a region

_TRAPS = frozenset((Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod))
_NEVER_MASKED = frozenset((
    Op.Branch, Op.BranchConditional, Op.Switch, Op.Unreachable, Op.Variable, PassOp.RegionExit,
    PassOp.ContextLoad,
))  # fmt: skip



def needs_mask(instruction: Instruction) -> bool:
    """True for what must not happen in lanes that do not take part."""
    op = instruction.op
    if op is Op.ExtInst:
        return instruction.operands[1] >= 171  # vector loads and stores, printf: memory
    if op in PURE:
        return op in _TRAPS
    if op is Op.Load and type(instruction.operands[0]) is Variable:
        return instruction.operands[0].builtin is None
    return op not in _NEVER_MASKED


def linearise(function: Function, types, flat_lanes: bool = False, small_ids: bool = True) -> ShapeInfo:
    """Changes a region function in place; returns the shapes of the result."""

    def analyse() -> ShapeInfo:
        return analyse_shapes(function, flat_lanes, small_ids)

    make_reducible(function, types)
    merge_latches(function)
    close_loops(function, types)
    live: dict[Block, Instruction] = {}  # head of a rewritten loop: its mask
    exit_tests: list[Instruction] = []
    while True:
        shapes = analyse()
        wanted = set(shapes.divergent_loops)
        worker = _Linearizer(function, types, shapes, live)
        if not wanted:
            wanted, several_ends = worker.obstacles()
            if several_ends:
                exit_tests = unify_exits(function, types)
                continue
        if not wanted:
            break
        # Inner loops first; each rewriting makes new blocks, so the nest is computed again.
        loop = next(x for x in reversed(worker.nest.loops) if x.header in wanted)
        head = make_live_loop(function, loop, types, worker.tree.number)
        live[head.block] = head
        remove_unreachable_blocks(function)
    worker.run(exit_tests)
    repair(function, types)
    simplify(function, types)
    shapes = analyse()
    if shapes.divergent_branches:
        raise AssertionError(f"{function.name}: a divergent branch is left")
    return shapes


def unify_exits(function: Function, types) -> list[Instruction]:
    """One block with one RegionExit, or with uniform branches to several of them.

    Work-items that go on all go to the same region, so any lane decides; those that have returned do not.
    Returns the AnyLane instructions, which must not count lanes without a work-item.
    """
    ends = [b for b in function.blocks if b.terminator.op in (PassOp.RegionExit, Op.Unreachable)]
    exits = [b for b in ends if b.terminator.op is PassOp.RegionExit]
    # REGION_END is the least, and so the one that needs no lane.
    targets = sorted({b.terminator.operands[0] for b in exits}) or [REGION_END]
    last = Block(function, "exit")
    function.blocks.append(last)
    number = types.int(32)
    chosen = Instruction(Op.Phi, number, (), last, "exit")
    for block in ends:
        terminator = block.instructions.pop()
        value = types.undef(number)
        if terminator.op is PassOp.RegionExit:
            value = types.integer(32, targets.index(terminator.operands[0]))
        chosen.operands += [value, block]
        append(block, Op.Branch, None, [last])
    tests = []
    if len(targets) > 1:
        last.instructions.append(chosen)
    for index, target in enumerate(targets[1:], 1):
        here = append(last, Op.IEqual, types.bool(), [chosen, types.integer(32, index)])
        test = append(last, PassOp.AnyLane, types.bool(), [here])
        leave, other = Block(function, "exit"), Block(function, "exit")
        append(last, Op.BranchConditional, None, [test, leave, other])
        append(leave, PassOp.RegionExit, None, [target])
        function.blocks += [leave, other]
        tests.append(test)
        last = other
    append(last, PassOp.RegionExit, None, targets[:1])
    return tests


def merge_latches(function: Function) -> None:
    """Every loop gets a single back edge."""
    before = predecessors(function)
    nest = LoopNest(function, dominators(function, before), before)
    for loop in nest.loops:
        if len(loop.latches) < 2:
            continue
        header = loop.header
        latch = Block(function, "latch")
        for phi in list(header.phis()):
            pairs = list(zip(phi.operands[::2], phi.operands[1::2], strict=True))
            inner = Instruction(Op.Phi, phi.type, (), latch, phi.name)
            inner.operands = [o for v, b in pairs if b in loop.latches for o in (v, b)]
            phi.operands = [o for v, b in pairs if b not in loop.latches for o in (v, b)] + [inner, latch]
            latch.instructions.append(inner)
        append(latch, Op.Branch, None, [header])
        for block in loop.latches:
            terminator = block.terminator
            terminator.operands = [latch if o is header else o for o in terminator.operands]
        function.blocks.append(latch)


class _Kept:
    """A uniform branch in a line that stays a branch, with the nodes between it and its join."""

    __slots__ = ("branch", "join", "nodes")

    def __init__(self, branch: Block, nodes: set, join: Block):
        self.branch = branch
        self.nodes = nodes
        self.join = join  # the new block where its paths meet


class _Graph:
    """The acyclic graph of one region: nodes are blocks and inner loops."""

    def __init__(self, worker: _Linearizer, nodes: set, loop: Loop | None):
        self.nodes = sorted(nodes, key=worker.number_of)
        self.edges: dict = {}  # node: [(source block, target block, target node or _EXIT)]
        self.before: dict = {node: [] for node in self.nodes}
        for node in self.nodes:
            out = self.edges[node] = []
            if isinstance(node, Loop):
                pairs = [(b, s) for b in worker.ordered(node.blocks) for s in b.successors()
                         if s not in node.blocks]
            else:
                pairs = [(node, s) for s in node.successors()]
            for source, target in pairs:
                into = worker.node_of(target, loop)
                if into not in nodes or (loop is not None and target is loop.header):
                    into = _EXIT
                out.append((source, target, into))
                if into is not _EXIT:
                    self.before[into].append((source, target, node))
        after = {
            node: list(dict.fromkeys(into for _, _, into in self.edges[node])) or [_EXIT]
            for node in self.nodes
        }
        after[_EXIT] = []
        self.after = after
        self.dominators = DominatorTree(
            self.nodes, {n: [source for _, _, source in self.before[n]] for n in self.nodes}
        )
        self.post = DominatorTree([_EXIT, *reversed(self.nodes)], after)

    def line(self, node) -> set:
        """The nodes strictly between a node and its immediate post-dominator."""
        end = self.post.immediate(node)
        result: set = set()
        work = [n for n in self.after[node] if n is not end]
        while work:
            n = work.pop()
            if n not in result and n is not _EXIT:
                result.add(n)
                work.extend(s for s in self.after[n] if s is not end)
        return result

    def common_dominator(self, a, b):
        while not self.dominators.dominates(a, b):
            a = self.dominators.immediate(a)
        return a

    def lines(self, divergent) -> dict:
        """The branches to linearise that lie in no other's line, with their lines."""
        chosen = [n for n in self.nodes if n in divergent]
        lines = {n: self.line(n) for n in chosen}
        work = list(chosen)
        while work:
            branch = work.pop()
            line = lines[branch]
            for node in line:
                for _, _, source in self.before[node]:
                    if source in line or source is branch:
                        continue
                    common = self.common_dominator(branch, source)
                    if common not in lines:
                        lines[common] = self.line(common)
                        work.append(common)
        inside = set().union(*lines.values()) if lines else set()
        return {n: lines[n] for n in self.nodes if n in lines and n not in inside}


class _Linearizer:
    def __init__(self, function: Function, types, shapes: ShapeInfo, live: dict[Block, Instruction]):
        self.function = function
        self.types = types
        self.bool = types.bool()
        self.true = types.constant(self.bool, True)
        self.false = types.constant(self.bool, False)
        self.shapes = shapes
        self.done = set(live)
        # Where all lanes leave together, `live` is no mask but a uniform condition like any other.
        self.live = {head: phi for head, phi in live.items() if not shapes.is_uniform(phi)}
        before = predecessors(function)
        self.tree = dominators(function, before)
        self.nest = LoopNest(function, self.tree, before)
        self.innermost = dict(self.nest.innermost)
        self.replaced: dict[Value, Value] = {}

    # The graph

    def number_of(self, node) -> int:
        return self.tree.number[node.header if isinstance(node, Loop) else node]

    def ordered(self, blocks):
        number = self.tree.number
        return sorted((b for b in blocks if b in number), key=number.__getitem__)

    def node_of(self, block: Block, loop: Loop | None):
        """The block, or the outermost loop around it, within a region."""
        inner = self.innermost.get(block)
        node = block
        while inner is not loop:
            if inner is None:
                return _EXIT
            node = inner
            inner = inner.parent
        return node

    def region_nodes(self, loop: Loop | None) -> set:
        blocks = self.function.blocks if loop is None else loop.blocks
        return {self.node_of(b, loop) for b in blocks}

    def obstacles(self) -> tuple[set[Block], bool]:
        """What keeps lines from being straight: loops with several exits in a line, or whose exits end one
        (their headers; they are to be made live loops), and lines that end at several ends of the function."""
        wanted = set()
        several_ends = False
        for loop in [None, *self.nest.loops]:
            nodes = self.region_nodes(loop)
            if not any(b in self.shapes.divergent_branches for b in nodes):
                continue
            graph = _Graph(self, nodes, loop)
            for branch, line in graph.lines(self.shapes.divergent_branches).items():
                for node in (branch, *line):
                    if isinstance(node, Loop) and len(graph.edges[node]) != 1:
                        wanted.add(node.header)
                if graph.post.immediate(branch) is _EXIT:
                    if loop is None:
                        several_ends = True
                    else:
                        wanted.add(loop.header)
        return wanted - self.done, several_ends

    # Regions

    def run(self, exit_tests: list[Instruction]) -> None:
        entry = self.function.blocks[0]
        mask = Instruction(PassOp.EntryMask, self.bool, (), entry)
        self.region(self.region_nodes(None), mask, None, {mask})
        entry.instructions.insert(0, mask)
        for test in exit_tests:
            exists = Instruction(Op.LogicalAnd, self.bool, [mask, test.operands[0]], test.block)
            test.block.instructions.insert(test.block.instructions.index(test), exists)
            test.operands = [exists]
        if self.replaced:
            substitute(self.function, self.replaced)

    def region(self, nodes: set, mask: Value, loop: Loop | None, filled: set[Value]) -> None:
        """Linearises one region. mask: the lanes that are in it; filled: masks that have a lane."""
        divergent = self.shapes.divergent_branches
        lines: dict = {}
        if any(n in divergent for n in nodes):
            graph = _Graph(self, nodes, loop)
            lines = graph.lines(divergent)
        in_lines: set = set()
        pending: list = []  # inner regions, with their masks
        for branch, line in lines.items():
            in_lines |= line
            _Line(self, graph, branch, line, mask, loop, filled, pending).emit()
        for node in nodes:
            if node in in_lines:
                continue
            if isinstance(node, Loop):
                pending.append((node, mask, None))
            else:
                self.put_mask(node.instructions, mask)
        for node, inner_mask, inner_filled in pending:
            known = filled if inner_filled is None else inner_filled
            if isinstance(node, _Kept):
                self.region(node.nodes, inner_mask, loop, known)
            else:
                self.loop_body(node, inner_mask, known)

    def loop_body(self, loop: Loop, mask: Value, filled: set[Value]) -> None:
        live = self.live.get(loop.header)
        filled = filled | {mask}
        if live is not None:
            # Lanes outside of the region are never live, so `live` alone is the mask of the body.
            live.operands = [mask if o is self.true else o for o in live.operands]
            filled = filled | {live}
        self.region(self.region_nodes(loop), mask, loop, filled)

    def put_mask(self, instructions: list[Instruction], mask: Value) -> None:
        for instruction in instructions:
            if instruction.mask is None and needs_mask(instruction):
                instruction.mask = mask

    def add_block(self, block: Block, loop: Loop | None) -> None:
        self.function.blocks.append(block)
        if loop is not None:
            self.innermost[block] = loop
        while loop is not None:
            loop.blocks.add(block)
            loop = loop.parent


class _Line:
    """One divergent branch and what becomes a straight line behind it."""

    def __init__(self, worker, graph: _Graph, branch: Block, line: set, mask: Value, loop, filled, pending):
        self.worker = worker
        self.types = worker.types
        self.graph = graph
        self.branch = branch
        self.line = line
        self.loop = loop
        self.filled = filled
        self.pending = pending
        self.end = graph.post.immediate(branch)
        self.current: Block = branch  # where the line goes on
        self.masks: dict = {branch: mask}
        self.edge_masks: dict[tuple[Block, Block], Value] = {}
        self.known: dict = {}  # and, or, not that were already made
        self.kept: dict = {}  # branch block: _Kept

    def emit(self) -> None:
        worker = self.worker
        terminator = self.branch.instructions.pop()
        self.leave(self.branch, terminator, self.masks[self.branch])
        self.find_kept()
        done: set = set()
        for node in sorted(self.line, key=worker.number_of):
            if node in done:
                continue
            mask = self.masks[node] = self.block_mask(node)
            kept = self.kept.get(node)
            if isinstance(node, Loop):
                self.place_loop(node, mask)
            elif kept is not None:
                done |= kept.nodes
                self.place_kept(node, kept, mask)
            else:
                self.place_block(node, mask)
        end = self.end.header if isinstance(self.end, Loop) else self.end
        sources = [(s, t) for s, t, node in self.graph.before[self.end]
                   if node is self.branch or node in self.line]
        self.merge_phis(end, sources, keep=True)
        append(self.current, Op.Branch, None, [end])

    # Masks

    def emit_logic(self, op, *operands: Value) -> Value:
        true, false = self.worker.true, self.worker.false
        a, b = operands[0], operands[-1]
        if op is Op.LogicalNot:
            if isinstance(a, Constant):
                return false if a.value else true
        else:
            absorbing, neutral = (false, true) if op is Op.LogicalAnd else (true, false)
            if a is absorbing or b is absorbing:
                return absorbing
            if a is neutral:
                return b
            if b is neutral or a is b:
                return a
        key = op, *operands
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = append(self.current, op, self.worker.bool, operands)
        return found

    def leave(self, source: Block, terminator: Instruction, mask: Value) -> None:
        """Notes the masks of the edges out of a block whose terminator has been taken away."""
        op, operands = terminator.op, terminator.operands
        if op is Op.Branch:
            self.edge_masks[source, operands[0]] = mask
            return
        if op is Op.BranchConditional:
            condition, if_true, if_false = operands[:3]
            if if_true is if_false:
                self.edge_masks[source, if_true] = mask
                return
            live = self.worker.live.get(source)
            if live is condition:
                # Every live lane is in the region: no need to and the two.
                self.edge_masks[source, if_true] = live
            else:
                self.edge_masks[source, if_true] = self.emit_logic(Op.LogicalAnd, mask, condition)
            opposite = self.emit_logic(Op.LogicalNot, condition)
            self.edge_masks[source, if_false] = self.emit_logic(Op.LogicalAnd, mask, opposite)
            return
        selector, default, *cases = operands
        conditions: dict[Block, Value] = {}
        anywhere: Value = self.worker.false
        for literal, target in zip(cases[::2], cases[1::2], strict=True):
            number = self.types.integer(selector.type.width, literal)
            hit = append(self.current, Op.IEqual, self.worker.bool, [selector, number])
            anywhere = self.emit_logic(Op.LogicalOr, anywhere, hit)
            conditions[target] = self.emit_logic(Op.LogicalOr, conditions.get(target, self.worker.false), hit)
        rest = self.emit_logic(Op.LogicalNot, anywhere)
        conditions[default] = self.emit_logic(Op.LogicalOr, conditions.get(default, self.worker.false), rest)
        for target, condition in conditions.items():
            self.edge_masks[source, target] = self.emit_logic(Op.LogicalAnd, mask, condition)

    def block_mask(self, node) -> Value:
        """The lanes that come to a node of the line."""
        graph = self.graph
        dominator = graph.dominators.immediate(node)
        if dominator is not self.branch and dominator in self.masks and graph.post.dominates(node, dominator):
            return self.masks[dominator]
        mask: Value = self.worker.false
        for source, target, _ in graph.before[node]:
            mask = self.emit_logic(Op.LogicalOr, mask, self.edge_masks[source, target])
        return mask

    # Nodes

    def place_block(self, block: Block, mask: Value) -> None:
        sources = [(s, t) for s, t, _ in self.graph.before[block]]
        self.merge_phis(block, sources)
        terminator = block.instructions.pop()
        self.worker.put_mask(block.instructions, mask)
        if mask not in self.filled and self.pays_to_jump(block):
            join = self.jump(block, mask)
            append(block, Op.Branch, None, [join])
            self.current = join
        else:
            for instruction in block.instructions:
                instruction.block = self.current
            self.current.instructions += block.instructions
            self.worker.function.blocks.remove(block)
        self.leave(block, terminator, mask)

    def pays_to_jump(self, block: Block) -> bool:
        if len(block.instructions) > JUMP_COST:
            return True
        return any(i.mask is not None and self.acts_once(i) for i in block.instructions)

    def acts_once(self, instruction: Instruction) -> bool:
        """Memory access at a uniform address, or a call: scalar code that needs a lane to act for."""
        if instruction.op is Op.FunctionCall:
            return True
        return any(
            isinstance(o, Value) and o.type is not None and o.type.kind is Kind.POINTER
            and self.worker.shapes.is_uniform(o) for o in instruction.operands
        )

    def jump(self, target: Block, mask: Value) -> Block:
        """Goes to the target if the mask has a lane, else to a new block, which is returned."""
        join = Block(self.worker.function, "join")
        self.worker.add_block(join, self.loop)
        any_lane = append(self.current, PassOp.AnyLane, self.worker.bool, [mask])
        append(self.current, Op.BranchConditional, None, [any_lane, target, join])
        return join

    def place_loop(self, loop: Loop, mask: Value) -> None:
        """A loop of the line: entered from one block, if any lane enters, and left to one."""
        header = loop.header
        outside = [(s, t) for s, t, _ in self.graph.before[loop]]
        self.merge_phis(header, outside, keep=True)
        ((source, target, _),) = self.graph.edges[loop]
        if mask in self.filled:
            join = Block(self.worker.function, "join")
            self.worker.add_block(join, self.loop)
            append(self.current, Op.Branch, None, [header])
        else:
            join = self.jump(header, mask)
        terminator = source.terminator
        terminator.operands = [join if o is target else o for o in terminator.operands]
        self.current = join
        self.edge_masks[source, target] = mask
        self.pending.append((loop, mask, self.filled | {mask}))

    def find_kept(self) -> None:
        """Uniform branches in the line whose blocks are reached through them alone."""
        graph, worker = self.graph, self.worker
        for node in sorted(self.line, key=worker.number_of):
            if isinstance(node, Loop) or node in worker.shapes.divergent_branches or len(graph.after[node]) < 2:
                continue
            if any(node in kept.nodes for kept in self.kept.values()):
                continue
            between = graph.line(node)
            end = graph.post.immediate(node)
            if end is _EXIT or not between <= self.line:
                continue
            if all(s is node or s in between for n in between for _, _, s in graph.before[n]):
                self.kept[node] = _Kept(node, between | {node}, Block(worker.function, "join"))

    def place_kept(self, branch: Block, kept: _Kept, mask: Value) -> None:
        worker, graph = self.worker, self.graph
        self.merge_phis(branch, [(s, t) for s, t, _ in graph.before[branch]])
        end = graph.post.immediate(branch)
        target = end.header if isinstance(end, Loop) else end
        join = kept.join
        worker.add_block(join, self.loop)
        leaving = [(s, t) for s, t, node in graph.before[end] if node in kept.nodes]
        sources = {s for s, _ in leaving}
        for phi in target.phis():
            merged = Instruction(Op.Phi, phi.type, (), join, phi.name)
            rest = []
            for value, source in zip(phi.operands[::2], phi.operands[1::2], strict=True):
                if source in sources:
                    merged.operands += [value, source]
                else:
                    rest += [value, source]
            phi.operands = [*rest, merged, join]
            worker.shapes.strides[merged] = worker.shapes.stride(phi)
            join.instructions.append(merged)
        for source in sources:
            terminator = source.terminator
            terminator.operands = [join if o is target else o for o in terminator.operands]
        number = worker.tree.number
        number.setdefault(join, len(number))
        after = join
        if mask in self.filled:
            append(self.current, Op.Branch, None, [branch])
        else:
            after = self.jump(branch, mask)
            append(join, Op.Branch, None, [after])
        if after is join:
            # The line goes on in a block of its own, for the join is part of the inner region.
            after = Block(worker.function, "join")
            worker.add_block(after, self.loop)
            append(join, Op.Branch, None, [after])
        self.current = after
        # The edges that left the kept nodes are one edge now, from the join.
        graph.before[end] = [
            (s, t, n) for s, t, n in graph.before[end] if n not in kept.nodes
        ] + [(join, target, branch)]
        self.edge_masks[join, target] = mask
        kept.nodes.add(join)
        self.pending.append((kept, mask, self.filled | {mask}))

    # Phis

    def merge_phis(self, block: Block, sources: list[tuple[Block, Block]], keep: bool = False) -> None:
        """Selects in the line for what the phis of a block take from these edges.

        keep: the block has other predecessors or is a loop's header; the phis stay, with the line as source.
        """
        names = {s for s, _ in sources}
        for phi in list(block.phis()):
            choices, rest = [], []
            for value, source in zip(phi.operands[::2], phi.operands[1::2], strict=True):
                if source in names:
                    choices.append((value, self.edge_masks[source, block]))
                else:
                    rest += [value, source]
            distinct = {v for v, _ in choices if not isinstance(v, Undef)}
            if len(distinct) > 1 and self.worker.shapes.stride(phi) is not None:
                # All lanes come by one edge, and the value keeps its shape if any lane says which.
                choices = [(v, self.any_of(m)) for v, m in choices]
            value = self.select(phi.type, choices)
            if keep:
                phi.operands = [*rest, value, self.current]
            else:
                self.worker.replaced[phi] = value
                block.instructions.remove(phi)

    def any_of(self, mask: Value) -> Value:
        key = PassOp.AnyLane, mask
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = append(self.current, PassOp.AnyLane, self.worker.bool, [mask])
        return found

    def select(self, type_, choices: list[tuple[Value, Value]]) -> Value:
        """The value of the edge that each lane came by."""
        masks_of: dict[Value, list[Value]] = {}
        for value, mask in choices:
            if not isinstance(value, Undef):
                masks_of.setdefault(value, []).append(mask)
        if not masks_of:
            return self.types.undef(type_)
        if len(masks_of) == 1:
            return next(iter(masks_of))
        if type_.kind is Kind.BOOL:
            # False in lanes that do not take part, which `stay` of a live loop relies on.
            result: Value = self.worker.false
            for value, masks in masks_of.items():
                for mask in masks:
                    result = self.emit_logic(Op.LogicalOr, result, self.emit_logic(Op.LogicalAnd, mask, value))
            return result
        base = max(masks_of, key=lambda v: len(masks_of[v]))
        result = base
        for value, masks in masks_of.items():
            if value is base:
                continue
            mask = masks[0]
            for other in masks[1:]:
                mask = self.emit_logic(Op.LogicalOr, mask, other)
            result = append(self.current, Op.Select, type_, [mask, value, result])
        return result

