"""One divergent branch, and its influence region in straight order under masks (see linearise.py)."""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Instruction, Kind, Type, Value, Variable
from ..ir.dominance import Loop
from ..ir.instructions import EXTINST_LOADS, EXTINST_WITH_EFFECT, INTEGER_ATOMICS, PURE, append
from ..ir.layout import size_of
from ..ir.ops import PassOp
from ..ir.remarks import MASKED, SKIPPED
from .branch_bodies import JUMP_COST, SCATTER_COST, Body, enter_body, find_body, leave_body
from .merge_values import LEFT_COST, merged
from .region_graph import EXIT, Graph, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from .linearise import _Linearizer

LAST_JUMP_COST = 64  # the same, where an empty mask means that the loop ends anyway

_TRAPS = frozenset((Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod))
_NEVER_MASKED = frozenset((
    Op.Branch, Op.BranchConditional, Op.Switch, Op.Unreachable, Op.Variable, PassOp.RegionExit,
    PassOp.SlotLoad, PassOp.Permute, PassOp.LaneShuffle, PassOp.Parameter, PassOp.Result,
))  # fmt: skip


def needs_mask(instruction: Instruction) -> bool:
    """True for what must not happen in lanes that do not take part."""
    op = instruction.op
    if op is Op.ExtInst:
        return instruction.operands[1] in EXTINST_WITH_EFFECT or instruction.operands[1] in EXTINST_LOADS
    if op in PURE:
        return op in _TRAPS
    if op is Op.Load and type(instruction.operands[0]) is Variable:
        return instruction.operands[0].builtin is None
    return op not in _NEVER_MASKED


class UniformBranch:
    """A uniform branch in an influence region that stays a branch, with the nodes between it and its join."""

    __slots__ = ("branch", "join", "nodes")

    def __init__(self, branch: Block, nodes: set[Node], join: Block) -> None:
        self.branch = branch
        self.nodes = nodes
        self.join = join  # the new block where its paths meet


# What is linearised later: a uniform branch or an inner loop, its mask, and the masks that have a lane there.
Pending: TypeAlias = tuple[UniformBranch | Loop, Value, set[Value] | None]


class LinearisedBranch:
    """One divergent branch, whose influence region is put behind it in straight order."""

    def __init__(
        self,
        worker: _Linearizer,
        graph: Graph,
        branch: Block,
        influence: set[Node],
        mask: Value,
        loop: Loop | None,
        filled: set[Value],
        pending: list[Pending],
    ) -> None:
        self.worker = worker
        self.types = worker.types
        self.graph = graph
        self.branch = branch
        self.influence = influence
        self.loop = loop
        self.filled = filled
        self.pending = pending
        self.end = graph.post.immediate(branch)
        self.current: Block = branch  # where the next node is put
        self.masks: dict[Node, Value] = {branch: mask}
        self.order: dict[Node, int] = {branch: -1}  # place in straight order
        self.edge_masks: dict[tuple[Block, Block], Value] = {}
        self.costs: dict[Value, int] = {}  # how unwelcome some masks are as conditions of selects
        self.made: dict[tuple[Any, ...], Value] = {}  # and, or, not that were already made
        self.uniform_branches: dict[Node, UniformBranch] = {}  # by the branch

    def emit(self) -> None:
        """Puts the influence region behind the branch, and the join behind that."""
        terminator = self.branch.instructions.pop()
        self.leave(self.branch, terminator, self.masks[self.branch])
        self.find_uniform_branches()
        done: set[Node] = set()
        # What a node leads to alone follows it at once: such nodes can be jumped over together.
        nodes = sorted(self.influence, key=self.graph.dominators.place)
        bodies: list[Body] = []  # that have begun, the innermost last
        for place, node in enumerate(nodes):
            if node in done:
                continue
            while bodies and node not in bodies[-1].nodes:
                self.leave_bodies(bodies)
            mask = self.masks[node] = self.block_mask(node)
            if (body := find_body(self, nodes, place, mask)) is not None:
                bodies.append(enter_body(self, body))
            self.order[node] = len(self.order)
            uniform = self.uniform_branches.get(node)
            if isinstance(node, Loop):
                self.place_loop(node, mask)
            elif uniform is not None:
                done |= uniform.nodes
                self.place_uniform_branch(node, uniform, mask)
            else:
                self.place_block(node, mask)
        while bodies:
            self.leave_bodies(bodies)
        assert self.end is not None  # obstacles() has seen to it
        end = self.end.header if isinstance(self.end, Loop) else self.end
        sources = [
            (s, t)
            for s, t, node in self.graph.before[self.end]
            if node is self.branch or node in self.influence
        ]
        self.merge_phis(end, sources, keep=True)
        append(self.current, Op.Branch, None, [end])

    def leave_bodies(self, bodies: list[Body]) -> None:
        """Leaves the innermost body that has begun."""
        body = bodies.pop()
        leave_body(self, body, bodies[-1].nodes if bodies else self.influence | {self.branch})

    # Masks

    def emit_logic(self, op: Op, *operands: Value) -> Value:
        """Appends LogicalAnd, LogicalOr or LogicalNot, unless constants or what was made already will do."""
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
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = append(self.current, op, self.worker.bool, operands)
        return found

    def leave(self, source: Block, terminator: Instruction, mask: Value) -> None:
        """Notes the masks of the edges out of a block whose terminator has been taken away."""
        op, operands = terminator.op, terminator.operands
        if self.worker.remarks is not None and op is not Op.Branch and terminator.line is not None:
            self.worker.remarks.control(terminator, MASKED)
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
            rest = self.edge_masks[source, if_false] = self.emit_logic(Op.LogicalAnd, mask, opposite)
            # A mask that only a negation makes is better not asked for; that of lanes that have left, least.
            self.costs[rest] = max(self.costs.get(rest, 0), LEFT_COST if live is condition else 1)
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
        # As above: it is made of the comparisons with all cases.
        rest = self.edge_masks[source, default]
        self.costs[rest] = max(self.costs.get(rest, 0), min(len(cases) // 2, LEFT_COST - 1))

    def block_mask(self, node: Node) -> Value:
        """The lanes that come to a node of the influence region."""
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
        """Puts a block of the influence region behind what is there; its instructions get the mask."""
        sources = [(s, t) for s, t, _ in self.graph.before[block]]
        self.merge_phis(block, sources)
        terminator = block.instructions.pop()
        self.worker.put_mask(block.instructions, mask)
        if self.pays_to_jump(block) and not self.worker.has_lane(mask, self.filled):
            join = self.jump(block, mask)
            append(block, Op.Branch, None, [join])
            self.current = join
        else:
            for instruction in block.instructions:
                instruction.block = self.current
            self.current.instructions += block.instructions
            self.worker.gone.add(block)
        self.leave(block, terminator, mask)

    def pays_to_jump(self, block: Block) -> bool:
        """Whether a block is worth asking if any lane comes to it."""
        if self.weight(block) > (LAST_JUMP_COST if self.ends_the_loop(block) else JUMP_COST):
            return True
        return any(i.mask is not None and self.acts_once(i) for i in block.instructions)

    def weight(self, block: Block) -> int:
        """Instructions of a block, but for those whose results are known when code is made; stores to places
        that do not follow one another are one for each lane, be these there or not."""
        made = [i for i in block.instructions if not self.worker.is_known(i)]
        return len(made) + SCATTER_COST * sum(map(self.scatters, made))

    def weight_without_lanes(self, block: Block) -> int:
        """The same of a block that is executed though no lane comes to it, loads included."""
        loads = sum(i.op is Op.Load and self.is_scattered(i.operands[0], i.type) for i in block.instructions)
        return self.weight(block) + SCATTER_COST * loads

    def scatters(self, i: Instruction) -> bool:
        """Whether an instruction is such a store."""
        return i.op is Op.Store and self.is_scattered(i.operands[0], i.operands[1].type)

    def is_scattered(self, pointer: Value, type_: Type) -> bool:
        """Whether what lanes access there does not follow one another, nor is shuffled in registers."""
        stride = self.worker.shapes.stride(pointer)
        if stride is not None and (type(stride) is not int or abs(stride) <= size_of(type_)):
            return False
        return not self.worker.is_shuffled(pointer, type_)

    def ends_the_loop(self, block: Block) -> bool:
        """True in a live loop if all lanes that stay in it come through the block."""
        head = self.loop.header if self.loop is not None else None
        if head not in self.worker.live:
            return False
        graph, worker = self.graph, self.worker
        nodes = [worker.node_of(b, self.loop) for b in worker.staying[head]]
        return all(n in graph.edges and graph.dominators.dominates(block, n) for n in nodes)

    def is_light(self, uniform: UniformBranch) -> bool:
        """True for little code that does no harm if no lane takes part, whichever way it goes."""
        blocks = [n for n in uniform.nodes if not isinstance(n, Loop)]
        if len(blocks) < len(uniform.nodes) or sum(len(b.instructions) for b in blocks) > LAST_JUMP_COST:
            return False
        return not any(needs_mask(i) and self.acts_once(i) for b in blocks for i in b.instructions)

    def acts_once(self, instruction: Instruction) -> bool:
        """Memory access at a uniform address, or a call: scalar code that needs a lane to act for."""
        if instruction.op in INTEGER_ATOMICS:  # the code generator's are for any mask
            return False
        if instruction.op is Op.FunctionCall:
            return True
        return any(
            isinstance(o, Value)
            and o.type is not None
            and o.type.kind is Kind.POINTER
            and self.worker.shapes.is_uniform(o)
            for o in instruction.operands
        )

    def jump(self, target: Block, mask: Value) -> Block:
        """Goes to the target if the mask has a lane, else to a new block, which is returned."""
        join = Block(self.worker.function, "join")
        self.worker.add_block(join, self.loop)
        any_lane = append(self.current, PassOp.AnyLane, self.worker.bool, [mask])
        append(self.current, Op.BranchConditional, None, [any_lane, target, join])
        if self.worker.remarks is not None:
            first = next((i for i in target.instructions if i.line is not None), None)
            if first is not None:
                self.worker.remarks.control(first, SKIPPED)
        return join

    def place_loop(self, loop: Loop, mask: Value) -> None:
        """A loop of the influence region: entered from one block, if any lane enters, and left to one."""
        header = loop.header
        outside = [(s, t) for s, t, _ in self.graph.before[loop]]
        self.merge_phis(header, outside, keep=True)
        ((source, target, _),) = self.graph.edges[loop]
        if self.worker.has_lane(mask, self.filled):
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

    def find_uniform_branches(self) -> None:
        """Uniform branches in the influence region whose blocks are reached through them alone."""
        graph, worker = self.graph, self.worker
        for node in sorted(self.influence, key=worker.number_of):
            if (
                isinstance(node, Loop)
                or node in worker.shapes.divergent_branches
                or len(graph.after[node]) < 2
            ):
                continue
            if any(node in uniform.nodes for uniform in self.uniform_branches.values()):
                continue
            between = graph.influence(node)
            end = graph.post.immediate(node)
            if end is EXIT or not between <= self.influence:
                continue
            if all(s is node or s in between for n in between for _, _, s in graph.before[n]):
                self.uniform_branches[node] = UniformBranch(
                    node, between | {node}, Block(worker.function, "join")
                )

    def place_uniform_branch(self, branch: Block, uniform: UniformBranch, mask: Value) -> None:
        """Puts a branch that stays, and a new block where its paths meet; the nodes between are for later."""
        worker, graph = self.worker, self.graph
        self.merge_phis(branch, [(s, t) for s, t, _ in graph.before[branch]])
        end = graph.post.immediate(branch)
        assert end is not None  # find_uniform_branches() has looked
        target = end.header if isinstance(end, Loop) else end
        join = uniform.join
        worker.add_block(join, self.loop)
        leaving = [(s, t) for s, t, node in graph.before[end] if node in uniform.nodes]
        sources = {s for s, _ in leaving}
        for phi in target.phis():
            merged = Instruction(Op.Phi, phi.type, (), join, phi.name)
            rest = []
            for value, source in zip(phi.operands[::2], phi.operands[1::2], strict=True):
                if source in sources:
                    merged.operands += [value, source]
                else:
                    rest += [value, source]
            value, *others = dict.fromkeys(merged.operands[::2])
            if not others:
                phi.operands = [*rest, value, join]
                continue
            phi.operands = [*rest, merged, join]
            for shapes in filter(None, (worker.shapes, worker.shapes.across)):
                shapes.strides[merged] = shapes.stride(phi)
            join.instructions.append(merged)
        for source in sources:
            terminator = source.terminator
            terminator.operands = [join if o is target else o for o in terminator.operands]
        number = worker.tree.number
        number.setdefault(join, len(number))
        after = join
        jumps = not self.worker.has_lane(mask, self.filled)
        jumps = jumps and not (self.ends_the_loop(branch) and self.is_light(uniform))
        if not jumps:
            append(self.current, Op.Branch, None, [branch])
        else:
            after = self.jump(branch, mask)
            append(join, Op.Branch, None, [after])
        if after is join:
            # What follows is put into a block of its own, for the join is part of the inner region.
            after = Block(worker.function, "join")
            worker.add_block(after, self.loop)
            append(join, Op.Branch, None, [after])
        self.current = after
        # The edges that left its nodes are one edge now, from the join.
        graph.before[end] = [(s, t, n) for s, t, n in graph.before[end] if n not in uniform.nodes] + [
            (join, target, branch)
        ]
        self.edge_masks[join, target] = mask
        self.order[join] = self.order[branch]
        uniform.nodes.add(join)
        self.pending.append((uniform, mask, self.filled | {mask} if jumps else self.filled))

    # Phis

    def merge_phis(self, block: Block, sources: list[tuple[Block, Block]], keep: bool = False) -> None:
        """Selects in straight order for what the phis of a block take from these edges.

        keep: the block has other predecessors or is a loop's header; the phis stay, with the current block as
        source.
        """
        for phi in list(block.phis()):
            value, rest = merged(self, phi, sources)
            if keep:
                phi.operands = [*rest, value, self.current]
            else:
                self.worker.replaced[phi] = value
                block.instructions.remove(phi)
