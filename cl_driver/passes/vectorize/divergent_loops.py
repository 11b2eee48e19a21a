"""Rewrites a loop that lanes leave one by one into a loop that runs while any lane is live.

    before                      after
    header: ...                 head: live = phi(true, stay); branch live ? header : latch
    ... exit edges to X, Y      header: ... exit edges and back edges go to latch
    ... back edges              latch: stay = phi(true from back edges, false from exits and head)
                                       branch any lane stays ? head : after
                                after: branch to X, or switch to the exit that each lane took

What was a divergent loop is now a uniform loop with divergent, acyclic control flow in its body, which
linearise.py knows how to treat. Values that leave through an exit are collected by phis in head and latch: a
lane that has left keeps what it left with; what one has there that goes on does not matter. The function
must be in loop-closed form (ir/lcssa.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Kind, Operand, Undef, Value
from ...spirv.types import TypeTable
from ..ir.dominance import Loop
from ..ir.instructions import (
    PURE,
    STAY,
    append,
    clone_instruction,
    is_arithmetic,
    predecessors,
    remove_phi_edge,
)
from ..ir.ops import PassOp
from ..ir.shapes import ShapeInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeGuard

MOST_PASSED = 8  # phis that are looked through
MOST_SUNK = 8  # instructions that are executed behind a loop instead of collecting a value in it

# What a loop carries round and some iterations leave as it is: a phi of the header, what it becomes in an
# iteration, and the latch's phi.
_Carried: TypeAlias = tuple[Instruction, Value, Instruction]


def linearise_loops(
    function: Function,
    loops: list[Loop],
    types: TypeTable,
    number: dict[Block, int],
    leaving: dict[Loop, list[Block]],
    shapes: ShapeInfo,
) -> list[Instruction]:
    """Rewrites loops, inner ones listed first; returns their phis `live`.

    number: reverse postorder numbers, for a fixed order; new blocks get numbers, too. leaving: the blocks
    that have edges out of each loop; may have others afterwards.
    """
    before = predecessors(function)
    return [_Rewrite(function, loop, types, number, before, leaving, shapes).run() for loop in loops]


class _Rewrite:
    def __init__(
        self,
        function: Function,
        loop: Loop,
        types: TypeTable,
        number: dict[Block, int],
        before: dict[Block, list[Block]],
        leaving: dict[Loop, list[Block]],
        shapes: ShapeInfo,
    ) -> None:
        self.function = function
        self.shapes = shapes
        self.before = before  # predecessors, kept up to date
        self.number = number
        self.loop = loop
        self.types = types
        self.leaving = leaving
        self.head = Block(function, "live")
        self.head.loop_control = loop.header.loop_control
        loop.header.loop_control = None
        self.latch = Block(function, "latch")
        self.after = Block(function, "left")
        self.edges: list[Block] = []  # one block per back or exit edge; all lead to the latch
        self.made: dict[Block, None] = {}
        self.carried: dict[Instruction, Instruction] = {}  # what leaves by any edge: the latch's phi
        self.frozen: list[_Carried] = []

    def run(self) -> Instruction:
        types, head, latch, header = self.types, self.head, self.latch, self.loop.header
        outside = [p for p in self.before[header] if p not in self.loop.blocks]
        bool_ = types.bool()
        true, false = types.constant(bool_, True), types.constant(bool_, False)

        number, blocks = self.number.__getitem__, self.loop.blocks
        latches = sorted((b for b in self.before[header] if b in blocks), key=number)
        back = {self.split(b, header): b for b in latches}
        exits = [
            (b, t, self.split(b, t))
            for b in sorted(self.leaving[self.loop], key=number)
            for t in b.successors()
            if t not in blocks and t not in self.made
        ]
        live = append(head, Op.Phi, bool_, [o for p in outside for o in (true, p)])
        stay = append(latch, Op.Phi, bool_)
        stay.operands = [o for e in self.edges for o in (true if e in back else false, e)] + [false, head]
        live.operands += [stay, latch]

        self.carry_header_phis(outside, back)
        leaving: dict[Block, list[tuple[Block, Block]]] = {}
        for source, target, edge in exits:
            leaving.setdefault(target, []).append((source, edge))
        targets = list(leaving)
        for target in targets:
            self.carry_exit_values(target, leaving[target], outside)
        chosen = self.choose_target(targets, exits, outside)
        for block in outside:
            terminator = block.terminator
            terminator.operands = [head if o is header else o for o in terminator.operands]
        append(head, Op.BranchConditional, None, [live, header, latch])
        any_lane = append(latch, PassOp.AnyLane, bool_, [stay])
        append(latch, Op.BranchConditional, None, [any_lane, head, self.after])
        if not targets:
            append(self.after, Op.Unreachable)
        elif len(targets) == 1:
            append(self.after, Op.Branch, None, targets)
        else:
            cases = [o for k, t in enumerate(targets[1:], 1) for o in (k, t)]
            append(self.after, Op.Switch, None, [chosen, targets[0], *cases])
        self.before[head] = [*outside, latch]
        self.before[header] = [head]
        self.before[latch] = [*self.edges, head]
        self.before[self.after] = [latch]
        for target in targets:
            self.before[target].append(self.after)
        self.add_blocks(targets)
        return live

    def add_blocks(self, targets: list[Block]) -> None:
        """Puts the new blocks into the function and into the loops around."""
        inside = [self.head, self.latch, *self.made]
        self.function.blocks += [*inside, self.after]
        for block in (*inside, self.after):
            self.number[block] = len(self.number)
        self.loop.blocks.update(inside)
        outer = self.loop.parent
        while outer is not None:
            outer.blocks.update(inside)
            outer.blocks.add(self.after)
            if not outer.blocks.issuperset(targets):
                self.leaving[outer].append(self.after)
            outer = outer.parent

    def split(self, source: Block, target: Block) -> Block:
        """A block on an edge, leading to the latch. The phis of the target still name the source."""
        edge = Block(self.function, "edge")
        append(edge, Op.Branch, None, [self.latch])
        terminator = source.terminator
        terminator.operands = [edge if o is target else o for o in terminator.operands]
        self.before[edge] = [source]
        self.before[target] = [p for p in self.before[target] if p is not source]
        self.edges.append(edge)
        self.made[edge] = None
        return edge

    def carry_header_phis(self, outside: list[Block], back: dict[Block, Block]) -> None:
        """Phis move to the head; on their way round they are phis of the latch."""
        header, undef = self.loop.header, self.types.undef
        for phi in list(header.phis()):
            values = dict(zip(phi.operands[1::2], phi.operands[::2], strict=True))
            around = Instruction(Op.Phi, phi.type, (), self.latch, phi.name)
            for edge in self.edges:
                source = back.get(edge)
                around.operands += [undef(phi.type) if source is None else values[source], edge]
            around.operands += [undef(phi.type), self.head]
            if self.shapes.stride(phi) is None and phi.type.kind is not Kind.BOOL and len(back) == 1:
                (update,) = (values[source] for source in back.values())
                if self.passes_on(update, phi):
                    self.frozen.append((phi, update, around))
            self.latch.instructions.insert(0, around)
            header.instructions.remove(phi)
            phi.block = self.head
            phi.operands = [o for p in outside for o in (values[p], p)] + [around, self.latch]
            self.head.instructions.insert(0, phi)

    def carry_exit_values(
        self, target: Block, leaving: list[tuple[Block, Block]], outside: list[Block]
    ) -> None:
        """What the target's phis take from the loop is collected until all lanes have left."""
        edge_of = dict(leaving)
        of_edges: dict[Instruction, list[Value]] = {}  # phi of the target: what it takes by each edge
        for phi in target.phis():
            by_source = dict(zip(phi.operands[1::2], phi.operands[::2], strict=True))
            of_edges[phi] = [by_source[s] for s in edge_of]
            rest = [o for s, v in by_source.items() if s not in edge_of for o in (v, s)]
            phi.operands = [*rest, None, self.after]
        single = {values[0]: phi for phi, values in of_edges.items() if len(set(values)) == 1}
        sunk = self.sinkable(single)
        of: dict[Value, Any] = {}  # a value of the loop: the same behind it
        for phi, values in of_edges.items():
            if values[0] not in sunk or values[0] not in single:
                of[phi] = self.carry(phi, edge_of.values(), values, outside)
                of.setdefault(values[0] if len(set(values)) == 1 else phi, of[phi])
        for value in sunk:
            operands = [of.get(o, o) for o in value.operands]
            of[value] = clone_instruction(value, operands, self.after)
            self.after.instructions.append(of[value])
        for phi, values in of_edges.items():
            phi.operands[-2] = of[phi] if phi in of else of[values[0]]
        for source in edge_of:
            remove_phi_edge(target, source)

    def carry(
        self, phi: Instruction, edges: Collection[Block], values: list[Value], outside: list[Block]
    ) -> Value:
        """Phis of head and latch for what leaves by some edges; the value behind the loop."""
        value: Operand = values[0]  # an instruction, if the loop computes it
        if len(set(values)) == 1:
            if not self.is_inside(value):
                return values[0]
            known = self.carried.get(value)
            if known is not None:
                for edge in edges:
                    known.operands[known.operands.index(edge) - 1] = value
                return known
        in_place = self.carry_in_place(edges, values)
        if in_place is not None:
            return in_place
        undef = self.types.undef(phi.type)
        kept = Instruction(Op.Phi, phi.type, (), self.head, phi.name)
        around = Instruction(Op.Phi, phi.type, (), self.latch, phi.name)
        kept.operands = [o for p in outside for o in (undef, p)] + [around, self.latch]
        from_edge = dict(zip(edges, values, strict=True))
        for edge in self.edges:
            around.operands += [from_edge.get(edge, undef), edge]
        around.operands += [kept, self.head]
        self.head.instructions.insert(0, kept)
        self.latch.instructions.insert(0, around)
        if len(set(values)) == 1:
            self.carried[value] = around
        return around

    def passes_on(self, value: Value, phi: Instruction, depth: int = MOST_PASSED) -> bool:
        """Whether a phi of the header is what becomes of it in an iteration, on some way through the loop."""
        if type(value) is not Instruction or value.op is not Op.Phi or value.block not in self.loop.blocks:
            return False
        if value is phi or not depth or value.block is self.loop.header:
            return value is phi
        return any(self.passes_on(v, phi, depth - 1) for v in value.operands[::2])

    def carry_in_place(self, edges: Collection[Block], values: list[Value]) -> Instruction | None:
        """The latch's phi of what the loop carries round anyway, if this is what leaves it: lanes that have
        left take it along. Only of what some iterations leave as it is, so that what it becomes is chosen
        in each iteration anyway."""
        for phi, update, around in self.frozen:
            if all(value is phi or value is update for value in values):
                places = [around.operands.index(edge) - 1 for edge in edges]
                taken = zip((around.operands[p] for p in places), values, strict=True)
                if all(old is value or isinstance(old, Undef) for old, value in taken):
                    for p, value in zip(places, values, strict=True):
                        around.operands[p] = value
                    around.operands[around.operands.index(self.head) - 1] = phi
                    return around
        return None

    def is_inside(self, value: Operand) -> TypeGuard[Instruction]:
        """Whether the loop computes a value, the phis included that have moved to the head."""
        return type(value) is Instruction and (value.block is self.head or value.block in self.loop.blocks)

    def sinkable(self, leaving: Iterable[Value]) -> list[Instruction]:
        """Values that can be computed behind the loop from others that leave it, operands first.

        Each that is collected costs something in every iteration, one that is computed when all have left
        nothing.
        """
        kept, trees = set(leaving), {}
        for value in sorted(filter(self.is_inside, leaving), key=self.place, reverse=True):
            tree: dict[Instruction, None] = {}
            if self.is_tree(value, kept - {value}, tree):
                trees[value] = tree
                kept.discard(value)
        return sorted({i for tree in trees.values() for i in tree}, key=self.place)

    def place(self, value: Instruction) -> tuple[int, int]:
        return self.number.get(value.block, -1), value.block.instructions.index(value)

    def is_tree(self, value: Operand, leaves: set[Value], tree: dict[Instruction, None]) -> bool:
        """Whether a value is a small expression of values that leave the loop, or were there before."""
        if not self.is_inside(value) or value in leaves or value in tree:
            return True
        if value.op not in PURE and not is_arithmetic(value) or value.op in STAY or len(tree) == MOST_SUNK:
            return False
        tree[value] = None
        return all(self.is_tree(o, leaves, tree) for o in value.operands)

    def choose_target(
        self, targets: list[Block], exits: list[tuple[Block, Block, Block]], outside: list[Block]
    ) -> Instruction | None:
        """The number of the exit target that each lane left for, if there are several."""
        if len(targets) < 2:
            return None
        number = self.types.int(32)
        kept = Instruction(Op.Phi, number, (), self.head, "exit")
        around = Instruction(Op.Phi, number, (), self.latch, "exit")
        undef = self.types.undef(number)
        kept.operands = [o for p in outside for o in (undef, p)] + [around, self.latch]
        chosen = {e: self.types.integer(32, targets.index(t)) for _, t, e in exits}
        for edge in self.edges:
            around.operands += [chosen.get(edge, undef), edge]
        around.operands += [kept, self.head]
        self.head.instructions.insert(0, kept)
        self.latch.instructions.insert(0, around)
        return around
