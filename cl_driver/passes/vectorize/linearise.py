"""Linearises divergent control flow: afterwards every branch is uniform, and masks say which lanes take part.

In each region (the function, a loop's body, a uniform branch that stays) loops are single nodes, so the graph
is acyclic. All nodes between a divergent branch and its immediate post-dominator, its influence region,
follow one another in straight order, each under a block mask: the lanes that come to it, which is the or of
its edges' masks. Phis become selects. Nodes whose mask may be empty are jumped over if that pays, or must be:
a loop, or a branch that stays one, would act on values that nobody computed. Divergent loops have become
uniform loops before (divergent_loops.py).

Inside an influence region a uniform branch whose blocks only it reaches stays a branch. Where paths from
elsewhere enter the region, the branch that they have in common is linearised as well, divergent or not.

A mask is an ordinary bool value; instructions that touch memory, may trap or call carry it as `mask`. Lanes
outside of a mask compute garbage, or nothing.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Type, Value
from ...spirv.types import TypeTable
from ..analysis.lane_constants import MOST_SOURCES, ItemConstants
from ..analysis.shape import analyse_shapes
from ..ir.dominance import Loop, LoopNest, dominators
from ..ir.instructions import ADDRESS, append, predecessors, remove_unreachable_blocks, substitute
from ..ir.layout import size_of
from ..ir.lcssa import close_loops
from ..ir.ops import REGION_END, PassOp
from ..ir.plan import PlanOptions
from ..ir.remarks import LIVE
from ..ir.shapes import ShapeInfo
from ..ir.ssa_updater import repair
from ..scalar.reducible import make_reducible
from ..scalar.simplify import remove_dead_code, simplify
from .divergent_loops import linearise_loops
from .jump_threading import split_tests, thread_exits
from .linearise_branch import LinearisedBranch, Pending, UniformBranch, needs_mask
from .narrow_comparisons import narrow_comparisons
from .region_graph import EXIT, Graph, Node
from .sink_selects import sink_selects
from .unchanged import Unchanged


def linearise(function: Function, types: TypeTable, options: PlanOptions) -> ShapeInfo:
    """Changes a region function in place; returns the shapes of the result."""
    make_reducible(function, types)
    merge_latches(function)
    open_endless_loops(function, types)
    close_loops(function, types)
    live: dict[Block, Instruction] = {}  # head of a rewritten loop: its mask
    exit_tests: list[Instruction] = []
    while True:
        shapes = analyse_shapes(function, options)
        wanted = set(shapes.divergent_loops)
        worker = _Linearizer(function, types, shapes, live, options)
        if not wanted:
            wanted, several_ends = worker.obstacles()
            if several_ends:
                exit_tests = unify_exits(function, types)
                continue
        if not wanted:
            break
        loops = [loop for loop in reversed(worker.nest.loops) if loop.header in wanted]
        if options.remarks is not None:
            for loop in loops:
                for block in worker.leaving[loop]:
                    options.remarks.control(block.terminator, LIVE)
        number, leaving = worker.tree.number, worker.leaving
        for phi in linearise_loops(function, loops, types, number, leaving, shapes):
            live[phi.block] = phi
        remove_unreachable_blocks(function)
    worker.run(exit_tests)
    repair(function, types)
    simplify(function, types)
    while thread_exits(function, types):
        simplify(function, types)
    if sink_selects(function):
        simplify(function, types)
    shapes = analyse_shapes(function, options)
    if narrow_comparisons(function, types, shapes):
        remove_dead_code(function)
        shapes = analyse_shapes(function, options)
    if split_tests(function, types, shapes):
        simplify(function, types)
        shapes = analyse_shapes(function, options)
    if shapes.divergent_branches:
        raise AssertionError(f"{function.name}: a divergent branch is left")
    return shapes


def unify_exits(function: Function, types: TypeTable) -> list[Instruction]:
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
        value: Value = types.undef(number)
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


def open_endless_loops(function: Function, types: TypeTable) -> None:
    """Every loop gets an exit, if need be one that is never taken, so that influence regions have an end."""
    while True:
        before = predecessors(function)
        work = [b for b in function.blocks if not b.successors()]
        ending = set(work)
        while work:
            for block in before[work.pop()]:
                if block not in ending:
                    ending.add(block)
                    work.append(block)
        if len(ending) == len(function.blocks):
            return
        nest = LoopNest(function, dominators(function, before), before)
        loop = next(loop for loop in nest.loops if loop.header not in ending)
        header, latch = loop.header, loop.latches[0]
        again, end = Block(function, "again"), Block(function, "endless")
        latch.terminator.operands = [again if o is header else o for o in latch.terminator.operands]
        append(again, Op.BranchConditional, None, [types.constant(types.bool(), False), end, header])
        append(end, Op.Unreachable)
        for phi in header.phis():
            phi.operands = [again if o is latch else o for o in phi.operands]
        function.blocks += [again, end]


def is_stay(value: Value, source: Block) -> bool:
    """Whether an operand of a phi `live` is the loop's own `stay`, from its latch."""
    return type(value) is Instruction and value.op is Op.Phi and value.block is source


class _Linearizer:
    def __init__(
        self,
        function: Function,
        types: TypeTable,
        shapes: ShapeInfo,
        live: dict[Block, Instruction],
        options: PlanOptions,
    ) -> None:
        """live: {head of a rewritten loop: its mask}."""
        self.function = function
        self.remarks = options.remarks
        self.width = options.width
        self.item_constants: ItemConstants | None = None
        if options.group:
            x, y, z = options.group
            self.item_constants = ItemConstants((x, y, z))
        self.types = types
        self.bool = types.bool()
        self.true = types.constant(self.bool, True)
        self.false = types.constant(self.bool, False)
        self.shapes = shapes
        self.done = set(live)
        # Where all lanes leave together, `live` is no mask but a uniform condition like any other.
        self.live = {head: phi for head, phi in live.items() if not shapes.is_common(phi)}
        # Blocks from which lanes go on to the next iteration: where `stay` is true.
        self.staying: dict[Block, list[Block]] = {}
        self.stays: set[Instruction] = set()
        for head, phi in self.live.items():
            pairs = zip(phi.operands[::2], phi.operands[1::2], strict=True)
            (stay,) = (v for v, b in pairs if is_stay(v, b))
            self.stays.add(stay)
            pairs = zip(stay.operands[::2], stay.operands[1::2], strict=True)
            self.staying[head] = [b for v, b in pairs if v is self.true]
        before = predecessors(function)
        self.tree = dominators(function, before)
        self.nest = LoopNest(function, self.tree, before)
        self.innermost = dict(self.nest.innermost)
        self.own = self.nest.own_blocks()
        self.leaving = self.nest.leaving()
        self.replaced: dict[Value, Value] = {}
        self.unchanged = Unchanged(self.replaced, self.live)
        self.gone: set[Block] = set()  # blocks whose instructions are elsewhere now

    # The graph

    def number_of(self, node: Node) -> int:
        return self.tree.number[node.header if isinstance(node, Loop) else node]

    def node_of(self, block: Block, loop: Loop | None) -> Node | None:
        """The block, or the outermost loop around it, within a region."""
        inner = self.innermost.get(block)
        node: Node = block
        while inner is not loop:
            if inner is None:
                return EXIT
            node = inner
            inner = inner.parent
        return node

    def region_nodes(self, loop: Loop | None) -> set[Node]:
        inner = [n for n in self.nest.loops if n.parent is None] if loop is None else loop.children
        return {*self.own[loop], *inner}

    def obstacles(self) -> tuple[set[Block], bool]:
        """What keeps a branch from being linearised: loops with several exits in its influence region, or
        whose exits end it (their headers; they are to be linearised first), and regions that end at
        several ends of the function."""
        wanted = set()
        several_ends = False
        for loop in [None, *self.nest.loops]:
            nodes = self.region_nodes(loop)
            if not any(b in self.shapes.divergent_branches for b in nodes):
                continue
            graph = Graph(self, nodes, loop)
            for branch, influence in graph.influences(self.shapes.divergent_branches).items():
                for node in (branch, *influence):
                    if isinstance(node, Loop) and len(graph.edges[node]) != 1:
                        wanted.add(node.header)
                if graph.post.immediate(branch) is EXIT:
                    if loop is None:
                        several_ends = True
                    else:
                        wanted.add(loop.header)
        return wanted - self.done, several_ends

    # Masks

    def has_lane(self, mask: Value, filled: set[Value]) -> bool:
        """Whether a mask has a lane for certain. filled: those that do."""
        return mask in filled or (self.item_constants is not None and any(self.item_constants.of(mask) or ()))

    def is_known(self, i: Instruction) -> bool:
        """Whether an instruction gives numbers, or places in local memory, that are known: no code."""
        constants = self.item_constants
        if constants is None:
            return False
        return constants.of(i) is not None or (i.op in ADDRESS and constants.local_places(i) is not None)

    def is_shuffled(self, pointer: Value, type_: Type) -> bool:
        """Whether an access to local memory is one to registers (codegen/lockstep/): the places of all lanes
        are known, and those of each vector of lanes are in few vectors of the array."""
        found = None if self.item_constants is None else self.item_constants.local_places(pointer)
        if found is None:
            return False
        places = found[1]
        width, size = self.width, size_of(type_) * self.width
        vectors = [places[k : k + width] for k in range(0, len(places), width)]
        return all(len({at // size for at in vector}) <= MOST_SOURCES for vector in vectors)

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
        self.function.blocks = [b for b in self.function.blocks if b not in self.gone]
        if self.replaced:
            substitute(self.function, self.replaced)

    def region(self, nodes: set[Node], mask: Value, loop: Loop | None, filled: set[Value]) -> None:
        """Linearises one region. mask: the lanes that are in it; filled: masks that have a lane."""
        divergent = self.shapes.divergent_branches
        influences: dict[Node, set[Node]] = {}
        if any(n in divergent for n in nodes):
            graph = Graph(self, nodes, loop)
            influences = graph.influences(divergent)
        influenced: set[Node] = set()
        pending: list[Pending] = []
        for branch, influence in influences.items():
            influenced |= influence
            assert isinstance(branch, Block)  # obstacles() left loops one exit
            LinearisedBranch(self, graph, branch, influence, mask, loop, filled, pending).emit()
        for node in sorted(nodes, key=self.number_of):
            if node in influenced:
                continue
            if isinstance(node, Loop):
                pending.append((node, mask, None))
            else:
                self.put_mask(node.instructions, mask)
        for inner, inner_mask, inner_filled in pending:
            inner_filled = filled if inner_filled is None else inner_filled
            if isinstance(inner, UniformBranch):
                self.region(inner.nodes, inner_mask, loop, inner_filled)
            else:
                self.loop_body(inner, inner_mask, inner_filled)

    def loop_body(self, loop: Loop, mask: Value, filled: set[Value]) -> None:
        live = self.live.get(loop.header)
        filled = filled | {mask}
        if live is not None:
            # Lanes outside of the region are never live, so `live` alone is the mask of the body. What comes
            # from outside is not always a constant: a loop before that was left for this one carries it.
            pairs = zip(live.operands[::2], live.operands[1::2], strict=True)
            live.operands = [o for v, b in pairs for o in (v if is_stay(v, b) else mask, b)]
            filled = filled | {live}
        self.region(self.region_nodes(loop), mask, loop, filled)

    def put_mask(self, instructions: list[Instruction], mask: Value) -> None:
        if self.remarks is not None:
            self.remarks.under(instructions, mask)
        for instruction in instructions:
            if instruction.mask is None and needs_mask(instruction):
                instruction.mask = mask

    def add_block(self, block: Block, loop: Loop | None) -> None:
        self.function.blocks.append(block)
        self.own[loop].append(block)
        if loop is not None:
            self.innermost[block] = loop
        while loop is not None:
            loop.blocks.add(block)
            loop = loop.parent
