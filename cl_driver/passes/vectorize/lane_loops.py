"""Branches that few lanes take, or that work on memory of each lane's own: the lanes go there one by one.

    if (c) { loop }      bits = Ballot c
                     =>  while (bits) { lane = the first one of bits; bits -= lane
                                        if (this is the lane) { loop, with the values of that lane } }

What differs between lanes is read from the one whose turn it is, so that all in the loop is scalar: as the
lanes' addresses are far from one another, the vector code would access memory lane by lane, too, and for all
lanes whether they take part or not. The steps of a tree whose nodes are arrays are such branches.

Only where a kernel must keep its lanes, because its work-items meet at barriers: others do without lanes.
"""

from __future__ import annotations

from ...records import record
from ...spirv.enums import Op, OpenCLStd, StorageClass
from ...spirv.layout import size_of
from ...spirv.module import Block, Function, Instruction, Kind, Operand, Type, Value, Variable
from ...spirv.types import TypeTable
from ..analysis.shape import analyse_shapes
from ..ir.dominance import LoopNest, dominators
from ..ir.instructions import (
    ACROSS_LANES,
    append,
    is_boundary,
    predecessors,
    reads_builtin,
    rename_phi_edge,
)
from ..ir.lcssa import close_loops
from ..ir.ops import PassBuiltIn, PassOp
from ..ir.plan import KernelPlan, PlanOptions
from ..ir.remarks import LANES
from ..ir.shapes import ShapeInfo

# Accesses of an iteration at places far from one another that make it worth it, and what is near: so many
# elements from lane to lane are loaded by vectors and shuffles.
_LEAST = 2
_NEAR = 4

_FREE = frozenset((Op.Phi, Op.SConvert, Op.UConvert, Op.Bitcast, Op.CopyObject, Op.AccessChain,
                   Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain))  # fmt: skip
_STAY = ACROSS_LANES | {PassOp.SlotStore, PassOp.PrivatePointer, PassOp.RegionExit, Op.Variable}


@record(slots=True)
class Branch:
    """Blocks that only the branch at the end of `head` comes to, first `entry`; behind them is `join`."""

    head: Block
    entry: Block
    join: Block
    blocks: set[Block]
    is_negated: bool


def may_send_lanes_alone(plan: KernelPlan) -> bool:
    """Whether a kernel must keep its lanes, and they are one vector at a time."""
    return plan.uses_barrier and plan.options.parts == 1 and not plan.options.sub_groups


def send_lanes_alone(function: Function, types: TypeTable, options: PlanOptions) -> bool:
    """Changes a region function that is not linearised yet. True if there were such branches."""
    before = predecessors(function)
    nest = LoopNest(function, dominators(function, before), before)
    if not nest.loops:
        return False
    close_loops(function, types)
    shapes = analyse_shapes(function, options)
    found, taken = [], set[Block]()
    for block in [b for b in function.blocks if b in shapes.divergent_branches]:
        branch = branch_at(block, before) if block.terminator.op is Op.BranchConditional else None
        if branch is None or before[branch.entry] != [block] or taken & branch.blocks:
            continue
        inner = [loop for loop in nest.loops if not loop.children and loop.blocks <= branch.blocks]
        if inner and all(is_scattered(loop.blocks, shapes) for loop in inner):
            if _may_go_alone(function, branch, shapes):
                found.append(branch)
                taken |= branch.blocks
    for branch in found:
        if options.remarks is not None:
            options.remarks.control(branch.head.terminator, LANES)
        _Rewrite(function, types, shapes, branch).run()
    return bool(found)


def branch_at(head: Block, before: dict[Block, list[Block]]) -> Branch | None:
    """The blocks of an `if` without an `else`."""
    targets = head.terminator.operands[1:3]
    for entry, join in (targets, targets[::-1]):
        if entry is join or before[join] == [head]:
            continue
        blocks, work = {entry}, [entry]
        while work:
            for successor in work.pop().successors():
                if successor is not join and successor not in blocks:
                    blocks.add(successor)
                    work.append(successor)
        ends = [b for b in blocks if not b.successors()]
        only = all(
            b in blocks or (b is head and inside is entry) for inside in blocks for b in before[inside]
        )
        if only and not ends and head not in blocks:
            return Branch(head, entry, join, blocks, entry is not targets[0])
    return None


def is_scattered(blocks: set[Block], shapes: ShapeInfo) -> bool:
    """Whether a loop does little but access memory at places that are far apart from lane to lane."""
    accesses = work = 0
    for i in (i for block in blocks for i in block.instructions):
        if i.op in (Op.Load, Op.Store):
            element = i.type if i.op is Op.Load else i.operands[1].type
            stride = shapes.strides.get(i.operands[0], 0)
            is_far = stride is None or (type(stride) is int and abs(stride) > _NEAR * size_of(element))
            accesses += is_far
            work += not is_far
        elif i.type is not None and i.type.kind is not Kind.BOOL and i.op not in _FREE:
            work += shapes.strides.get(i, 0) is None
    return accesses >= _LEAST and work <= accesses


def _may_go_alone(function: Function, branch: Branch, shapes: ShapeInfo) -> bool:
    """Whether nothing is left of the branch but what it does to memory that others see, too."""
    inside = {i for block in branch.blocks for i in block.instructions}
    for i in inside:
        differs = reads_builtin(i) and shapes.strides.get(i, 0) != 0
        if i.op in _STAY or is_boundary(i) or differs or i in shapes.private:
            return False
        if i.op is PassOp.SlotLoad or (i.memory is not None and i.memory.volatile):
            return False
        if any(o in shapes.private for o in i.operands if isinstance(o, Instruction)):
            return False
    for block in function.blocks:
        if block not in branch.blocks:
            if any(o in inside for i in block.instructions for o in i.operands if isinstance(o, Instruction)):
                return False
    for phi in branch.join.phis():
        ways = zip(phi.operands[::2], phi.operands[1::2], strict=True)
        if len({v for v, b in ways if b in branch.blocks or b is branch.head}) > 1:
            return False
    return True


class _Rewrite:
    def __init__(self, function: Function, types: TypeTable, shapes: ShapeInfo, branch: Branch) -> None:
        self.function, self.types, self.shapes, self.branch = function, types, shapes, branch
        self.wide = types.int(64)  # a bit for each lane

    def run(self) -> None:
        branch = self.branch
        head, entry, join = branch.head, branch.entry, branch.join
        condition = head.terminator.operands[0]
        test, turn, alone, latch = (Block(self.function, n) for n in ("lanes", "turn", "alone", "next"))
        head.instructions.pop()
        if branch.is_negated:
            condition = append(head, Op.LogicalNot, condition.type, [condition])
        ballot = append(head, PassOp.Ballot, self.wide, [condition])
        append(head, Op.Branch, None, [test])

        bits = append(test, Op.Phi, self.wide)
        some = append(test, Op.INotEqual, self.types.bool(), [bits, self.types.integer(64, 0)])
        append(test, Op.BranchConditional, None, [some, turn, join])

        one = OneLane(self.types, self.shapes, branch, turn, bits)
        left = one.left
        for block in (b for b in self.function.blocks if b in branch.blocks):
            for i in block.instructions:
                i.operands = [one.value(o) for o in i.operands]
        mine = one.is_in(turn)
        append(turn, Op.BranchConditional, None, [mine, alone, latch])

        append(alone, Op.Branch, None, [entry])
        rename_phi_edge(entry, head, alone)
        append(latch, Op.Branch, None, [test])
        bits.operands = [ballot, head, left, latch]
        self.join_edges(join, test)
        for block in branch.blocks:
            block.terminator.operands = [latch if o is join else o for o in block.terminator.operands]
        self.function.blocks += [test, turn, alone, latch]

    def join_edges(self, join: Block, test: Block) -> None:
        """The join is come to by one edge instead of those of the branch."""
        branch = self.branch
        for phi in join.phis():
            ways = list(zip(phi.operands[::2], phi.operands[1::2], strict=True))
            value = next(v for v, b in ways if b is branch.head)
            others = [(v, b) for v, b in ways if b is not branch.head and b not in branch.blocks]
            phi.operands = [o for way in (*others, (value, test)) for o in way]


class OneLane:
    """The first lane of some whose bits are given, the bits of the others (left), and, in the block where its
    turn begins, what values from outside of a branch are in it."""

    def __init__(self, types: TypeTable, shapes: ShapeInfo, branch: Branch, turn: Block, bits: Value) -> None:
        self.types, self.shapes, self.branch, self.turn = types, shapes, branch, turn
        self.int, wide = types.int(32), types.int(64)
        count = append(turn, Op.ExtInst, wide, ["OpenCL.std", OpenCLStd.ctz, bits])
        self.lane = append(turn, Op.UConvert, self.int, [count])
        less = append(turn, Op.ISub, wide, [bits, types.integer(64, 1)])
        self.left = append(turn, Op.BitwiseAnd, wide, [bits, less])
        self.read: dict[Value, Value] = {}  # what differs between lanes: the value in the lane

    def is_in(self, block: Block) -> Instruction:
        """Whether a lane is the one."""
        variable = Variable(self.types.pointer(StorageClass.Input, self.int), name="__spirv_BuiltInLane")
        variable.builtin = PassBuiltIn.Lane
        own = append(block, Op.Load, self.int, [variable])
        return append(block, Op.IEqual, self.types.bool(), [own, self.lane])

    def value(self, value: Operand) -> Operand:
        """An operand in the lane."""
        if not isinstance(value, Instruction) or value.block in self.branch.blocks:
            return value
        stride = self.shapes.strides.get(value, 0)
        if stride == 0:
            return value
        if value not in self.read:
            self.read[value] = self._read(value, value.type, stride)
        return self.read[value]

    def _read(self, value: Instruction, type_: Type, stride: object) -> Value:
        lane, turn = self.lane, self.turn
        if type(stride) is not int or type_.kind is not Kind.INT:
            return append(turn, PassOp.ReadLane, type_, [value, lane])
        first = append(turn, PassOp.ReadLane, type_, [value, self.types.integer(32, 0)])
        number = lane if type_ is self.int else append(turn, Op.UConvert, type_, [lane])
        factor = self.types.integer(type_.width, stride & (1 << type_.width) - 1)
        return append(turn, Op.IAdd, type_, [first, append(turn, Op.IMul, type_, [number, factor])])
