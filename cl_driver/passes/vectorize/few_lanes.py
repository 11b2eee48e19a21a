"""Loops that few lanes come to: these go through them one by one.

    if (c) { loop }      bits = Ballot c
                     =>  if (BitCount bits > few) { if (c) { loop } }
                         else while (bits) { lane = the first one of bits; bits -= lane
                                             loop, with the values of that lane
                                             if (this is the lane) take what the loop has found }

Where lanes access memory at places of their own, a vector does so lane by lane whether the lanes take part or
not. How many do is known when the code runs: what is beside a border, or has something to look for, or is
still in a loop around this one. In the turn of a lane all is scalar, and done for all parts at once.

Only loops that write nothing, so that no mask is needed in them: what a lane computes for others is dropped.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.layout import size_of
from ...spirv.module import Block, Function, Instruction, Kind, Operand, Value
from ...spirv.types import TypeTable
from ..analysis.shape import analyse_shapes
from ..ir.dominance import LoopNest, dominators
from ..ir.instructions import (
    PURE,
    Copies,
    append,
    clone_instruction,
    is_arithmetic,
    predecessors,
    reads_builtin,
    rename_phi_edge,
)
from ..ir.lcssa import close_loops
from ..ir.ops import PassOp
from ..ir.plan import PlanOptions
from ..ir.shapes import ShapeInfo
from .lane_loops import Branch, OneLane, branch_at

_MOST = 200  # instructions of a branch that are copied
_LEAST = 2  # lanes, or it is not worth a test
_NEAR = 4  # so many elements from lane to lane are loaded by vectors and shuffles

_FREE = frozenset((Op.Phi, Op.SConvert, Op.UConvert, Op.Bitcast, Op.CopyObject, Op.AccessChain,
                   Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain, Op.Branch,
                   Op.BranchConditional))  # fmt: skip
_VALUES = frozenset((Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.VECTOR, Kind.POINTER))
_READ = frozenset((StorageClass.CrossWorkgroup, StorageClass.UniformConstant, StorageClass.Generic))


def send_few_lanes(function: Function, types: TypeTable, options: PlanOptions) -> list[Block]:
    """Changes a region function that is not linearised yet. The headers of the loops over lanes. A function
    without any stays as it is, but for its form, which may become that of closed loops."""
    found, shapes = _worth(function, types, options)
    return [_Rewrite(function, types, shapes, branch, few).run() for branch, few in found]


def _worth(
    function: Function, types: TypeTable, options: PlanOptions
) -> tuple[list[tuple[Branch, int]], ShapeInfo]:
    """Branches, and up to how many lanes are few for each of them."""
    shapes = ShapeInfo()
    if options.group or options.linear_lanes or options.sub_groups:
        return [], shapes
    before = predecessors(function)
    nest = LoopNest(function, dominators(function, before), before)
    branches = [
        branch
        for block in function.blocks
        if block.terminator.op is Op.BranchConditional
        and (branch := branch_at(block, before)) is not None
        and any(loop.blocks <= branch.blocks for loop in nest.loops)
        and _may_go_alone(branch)
    ]
    if not branches:
        return [], shapes
    close_loops(function, types)
    before = predecessors(function)
    shapes = analyse_shapes(function, options)
    found: list[tuple[Branch, int]] = []
    for branch in branches:
        looped = {b for loop in nest.loops if loop.blocks <= branch.blocks for b in loop.blocks}
        if branch.head in shapes.divergent_branches and _is_same_for_all_parts(branch, shapes):
            few = _few([i for b in looped for i in b.instructions], shapes, options.width)
            if few >= _LEAST and not any(branch.blocks & other.blocks for other, _ in found):
                found.append((branch, min(few, options.width - 1)))
    return found, shapes


def _may_go_alone(branch: Branch) -> bool:
    """Whether nothing is left of the branch but values at its end."""
    inside = [i for block in branch.blocks for i in block.instructions]
    return (
        len(inside) <= _MOST
        and all(map(_leaves_nothing, inside))
        and all(phi.type.kind in _VALUES for phi in branch.join.phis())
    )


def _leaves_nothing(i: Instruction) -> bool:
    if i.op is Op.Load:
        is_plain = i.memory is None or not i.memory.volatile
        return is_plain and i.operands[0].type.storage in _READ and not reads_builtin(i)
    return i.op in PURE or i.op in (Op.Branch, Op.BranchConditional) or is_arithmetic(i)


def _is_same_for_all_parts(branch: Branch, shapes: ShapeInfo) -> bool:
    """Whether parts take the same ways, and have no lane's own memory in it."""
    for block in (branch.head, *branch.blocks):
        terminator = block.terminator
        if terminator.op is Op.BranchConditional and shapes.is_part_dependent(terminator.operands[0]):
            return False
    return not any(i in shapes.private for block in branch.blocks for i in block.instructions)


def _few(instructions: list[Instruction], shapes: ShapeInfo, width: int) -> int:
    """How many lanes take no longer one by one than as a vector."""
    vector = alone = 0
    for i in instructions:
        if i.op in _FREE or (i.type is not None and i.type.kind is Kind.BOOL):
            continue
        alone += 1
        vector += width if i.op is Op.Load and _is_far(i, shapes) else 1
    return vector // alone if alone else 0


def _is_far(load: Instruction, shapes: ShapeInfo) -> bool:
    stride = shapes.strides.get(load.operands[0], 0)
    return stride is None or (type(stride) is int and abs(stride) > _NEAR * size_of(load.type))


class _Rewrite:
    def __init__(
        self, function: Function, types: TypeTable, shapes: ShapeInfo, branch: Branch, few: int
    ) -> None:
        self.function, self.types, self.shapes, self.branch, self.few = function, types, shapes, branch, few
        self.copies: Copies = {}  # of blocks and instructions

    def run(self) -> Block:
        """The header of the loop over lanes."""
        branch, types = self.branch, self.types
        head, entry, join = branch.head, branch.entry, branch.join
        many, test, turn, latch = (Block(self.function, n) for n in ("many", "lanes", "turn", "next"))
        inside = [b for b in self.function.blocks if b in branch.blocks]

        condition, wide = head.instructions.pop().operands[0], types.int(64)
        if branch.is_negated:
            condition = append(head, Op.LogicalNot, condition.type, [condition])
        ballot = append(head, PassOp.Ballot, wide, [condition])
        count = append(head, Op.BitCount, wide, [ballot])
        is_few = append(head, Op.ULessThanEqual, types.bool(), [count, types.integer(64, self.few)])
        append(head, Op.BranchConditional, None, [is_few, test, many])
        append(many, Op.BranchConditional, None, [condition, entry, join])
        rename_phi_edge(entry, head, many)
        rename_phi_edge(join, head, many)

        bits = append(test, Op.Phi, wide)
        taken = [append(test, Op.Phi, phi.type) for phi in join.phis()]
        some = append(test, Op.INotEqual, types.bool(), [bits, types.integer(64, 0)])
        append(test, Op.BranchConditional, None, [some, turn, join])

        one = OneLane(types, self.shapes, branch, turn, bits)
        blocks = self.copy(inside, one, {join: latch, many: turn})

        bits.operands = [ballot, head, one.left, latch]
        ends = [append(latch, Op.Phi, phi.type) for phi in join.phis()]
        mine = one.is_in(latch)
        for phi, value, end in zip(list(join.phis()), taken, ends, strict=True):
            ways = list(zip(phi.operands[::2], phi.operands[1::2], strict=True))
            ours = [(self.copy_of(v, one), self.copies[b]) for v, b in ways if b in branch.blocks]
            end.operands = [o for way in ours for o in way]
            usual = next(v for v, b in ways if b is many)
            following = append(latch, Op.Select, phi.type, [mine, end, value])
            value.operands = [usual, head, following, latch]
            phi.operands += [value, test]
        append(latch, Op.Branch, None, [test])
        append(turn, Op.Branch, None, [self.copies[entry]])  # behind what the phis of the join ask for, too
        self.function.blocks += [many, test, turn, *blocks, latch]
        return test

    def copy(self, inside: list[Block], one: OneLane, others: dict[Block, Block]) -> list[Block]:
        """The blocks again, for a lane. others: what stands for blocks outside of them."""
        self.copies |= others
        for block in inside:
            self.copies[block] = Block(self.function, block.name)
            for i in block.instructions:
                self.copies[i] = clone_instruction(i, i.operands, self.copies[block])
        for block in inside:
            made = self.copies[block]
            made.instructions = [self.copies[i] for i in block.instructions]
            for i in made.instructions:
                i.operands = [self.copy_of(o, one) for o in i.operands]
        return [self.copies[block] for block in inside]

    def copy_of(self, operand: Operand, one: OneLane) -> Operand:
        if isinstance(operand, (Value, Block)) and operand in self.copies:
            found: Operand = self.copies[operand]
            return found
        return one.value(operand)
