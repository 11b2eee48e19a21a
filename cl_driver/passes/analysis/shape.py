"""Shapes: how a value differs between the lanes, which are work-items next to one another.

The lattice of one integer, pointer, float or bool, from best to worst:
    s        an int: lane l has the value of lane 0 plus s·l, in the arithmetic of the type (bytes for
             pointers); 0 is uniform
    VARYING  None: no relation known
A vector has one of the two, or a tuple of these for its components. The fixpoint is optimistic: everything is
unknown until computed, so that loop-carried values keep their shape.

Pointers into private memory: every lane has variables of its own, so 0 means "the same place in each
lane's own variable" (ShapeInfo.private tells); what is loaded through them is varying.

Divergence: a branch whose condition is not uniform splits the lanes. Where paths from its targets join, phis
vary. A loop that some lanes leave before others is divergent: within it a counter is uniform among the lanes
that are still there, behind it what the loop computed varies. This asks for loop-closed SSA (ir/lcssa.py).
"""

from __future__ import annotations

from heapq import heappop, heappush

from ...spirv.enums import BuiltIn, Op
from ...spirv.module import Block, Function, Instruction, Kind, Value
from ..ir.dominance import EXIT, Loop, LoopNest, dominators
from ..ir.instructions import PURE, predecessors, users
from ..ir.plan import KeptCalls, PlanOptions
from ..ir.shapes import UNIFORM, VARYING, ShapeInfo
from .branch_regions import BranchRegions
from .shape_lattice import (
    GROUP_STRIDES,
    ID_STRIDES,
    LINEAR_STRIDES,
    UNKNOWN,
    Found,
    Range,
    Strides,
    aligned_ids,
    group_part_strides,
    part_strides,
)
from .shape_rules import RULES, ValueRules


def analyse_shapes(function: Function, options: PlanOptions) -> ShapeInfo:
    """The shapes of a function in loop-closed SSA form, and where lanes or parts come to differ.

    Lanes and parts are analysed one by one: what a value is between lanes does not depend on parts.
    """
    strides = LINEAR_STRIDES if options.linear_lanes else ID_STRIDES
    analysis = _Analysis(function, strides, options.small_ids)
    analysis.calls = options.calls
    analysis.aligned = aligned_ids(options)
    analysis.width = options.width
    shapes = analysis.run()
    if options.parts > 1:
        analyse_parts(function, options, shapes)
    return shapes


def analyse_parts(function: Function, options: PlanOptions, shapes: ShapeInfo) -> None:
    """Adds to the shapes between lanes what parts change."""
    strides = part_strides(options.width, options.part_axis, options.linear_lanes)
    if options.group:
        strides = group_part_strides(options.width, options.group)
    across = shapes.across = _Analysis(function, strides, options.small_ids).run()
    shapes.assumes_small_ids |= across.assumes_small_ids
    shapes.divergent_branches |= across.divergent_branches
    shapes.divergent_joins |= across.divergent_joins
    shapes.influenced |= across.influenced
    shapes.divergent_loops |= across.divergent_loops


def analyse_group(function: Function) -> ShapeInfo:
    """The same with all work-items of a group as lanes: what is uniform, and where they part."""
    return _Analysis(function, GROUP_STRIDES, False).run()


class _Analysis(ValueRules):
    def __init__(self, function: Function, id_strides: Strides, small_ids: bool) -> None:
        self.function = function
        self.small_ids = small_ids
        self.id_strides = id_strides
        self.of_lanes = id_strides is ID_STRIDES or id_strides is LINEAR_STRIDES
        self.aligned: frozenset[tuple[BuiltIn, int]] = frozenset()
        self.width = 1
        self.calls: KeptCalls | None = None
        self.steady: set[Instruction] | None = None
        self.info = ShapeInfo()
        self.strides = self.info.strides
        self.private = self.info.private
        self.ranges: dict[Value, Range] = {}
        self.used_by: dict[Value, list[Instruction]] | None = None
        self.before = predecessors(function)
        self.tree = dominators(function, self.before)
        self.nest = LoopNest(function, self.tree, self.before)
        self.branch_regions: BranchRegions | None = None
        self.left_loops: dict[Block, list[Loop]] = {}  # exit block: the divergent loops that end there
        self.marked: list[Block] = []  # blocks whose phis mean less than was thought before

    def run(self) -> ShapeInfo:
        """One sweep in reverse postorder, then again what depends on loop-carried values that changed."""
        for block in self.tree.order:
            for instruction in block.instructions:
                if instruction.type is not None:
                    self.update(instruction)
            self.update_branch(block)
        if not self.nest.loops:
            return self.info
        used_by = self.used_by = self.used_by or users(self.function)
        work = [phi for loop in self.nest.loops for phi in loop.header.phis()]
        work += [phi for block in self.marked for phi in block.phis()]
        while work:
            instruction = work.pop()
            if not self.update(instruction):
                continue
            for user in used_by.get(instruction, ()):
                if user.type is None:
                    self.marked.clear()
                    self.update_branch(user.block)
                    work += [phi for block in self.marked for phi in block.phis()]
                else:
                    work.append(user)
        return self.info

    def update(self, instruction: Instruction) -> bool:
        """Applies the instruction's rule; True if what is known of its value has changed."""
        type_ = instruction.type
        if type_ is None or type_.kind is Kind.VOID:
            return False
        was_private = instruction in self.private
        old_range = self.ranges.pop(instruction, None)
        rule = RULES.get(instruction.op)
        if rule is not None:
            new: Found = rule(self, instruction)
        elif instruction.op in PURE:
            new = self.all_or_nothing(instruction.operands)
        else:
            new = VARYING
        if type(new) is tuple and new.count(0) == len(new):
            new = UNIFORM
        old = self.strides.get(instruction, UNKNOWN)
        if new is UNKNOWN:
            return False
        ranged = self.ranges.get(instruction) != old_range
        if old is not UNKNOWN and old != new:
            # Down the lattice only, so that the fixpoint ends.
            if type(old) is tuple and type(new) is tuple:
                new = tuple(a if a == b else VARYING for a, b in zip(old, new, strict=True))
            else:
                new = VARYING
        self.strides[instruction] = new
        return ranged or old is UNKNOWN or old != new or was_private != (instruction in self.private)

    # Control flow

    def update_branch(self, block: Block) -> None:
        """Notes the branch at the end of a block as divergent, if it has become so."""
        if block in self.info.divergent_branches:
            return
        terminator = block.terminator
        if terminator.op is not Op.BranchConditional and terminator.op is not Op.Switch:
            return
        stride = self.stride_of(terminator.operands[0])
        if stride is UNKNOWN or stride == UNIFORM or len(block.successors()) < 2:
            return
        self.info.divergent_branches.add(block)
        self.spread(block)

    def spread(self, branch: Block) -> None:
        """Marks the joins of the paths from a divergent branch, and the loops that it makes divergent."""
        if self.branch_regions is None:
            self.branch_regions = BranchRegions(self.function, self.tree, self.nest)
        branch_regions = self.branch_regions
        end = branch_regions.post.immediate(branch)
        labels: dict[Block, Block] = {}
        work: list[int] = []  # a heap of numbers in reverse postorder
        for successor in branch.successors():
            self.arrive(successor, successor, labels, work)
        order = self.tree.order
        passed = []  # branches that were passed over, with what is between
        while work:
            block = order[heappop(work)]
            if block is end:
                continue
            if block in branch_regions.behind and not self.tree.dominates(block, branch):
                passed.append(block)
                behind = branch_regions.behind[block]
                if behind is not EXIT:
                    self.arrive(behind, labels[block], labels, work)
                continue
            for successor in block.successors():
                self.arrive(successor, labels[block], labels, work)
        inside = set(labels)
        inside.discard(end)
        self.info.influenced |= inside
        branch_regions.add_blocks(passed, self.info.influenced)
        inside.add(branch)
        # Loops around the branch are not left by what is passed over: their way back leads through its end.
        left = {loop.header for block in inside for loop in branch_regions.leaving.get(block, ())}
        loop = self.nest.innermost.get(branch)
        while loop is not None:
            if loop.header in left and loop.header not in self.info.divergent_loops:
                self.info.divergent_loops.add(loop.header)
                for target in branch_regions.targets[loop.header]:
                    self.marked.append(target)
                    self.left_loops.setdefault(target, []).append(loop)
            loop = loop.parent

    def arrive(self, block: Block, label: Block, labels: dict[Block, Block], work: list[int]) -> None:
        """A path with a label comes to a block; with two labels the block is a join, and a label."""
        old = labels.get(block)
        if old is None:
            labels[block] = label
            heappush(work, self.tree.number[block])
            return
        if old is label or (old is block and block in self.info.divergent_joins):
            return
        # Where one path begins, another may end: that makes a join, too.
        self.info.divergent_joins.add(block)
        self.marked.append(block)
        if old is not block:
            labels[block] = block
            heappush(work, self.tree.number[block])
