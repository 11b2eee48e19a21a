"""Vectors away from all edges: code of their own, without the masks that only edges need.

`if (x == 0 || y == 0 || x == n - 1 || y == n - 1) ... else ...`, or `if (x < n) ...`: of most vectors all
work-items go the same way. Whether they do is asked before anything else, of the first item and the last, in
scalars; then comes a copy of the code in which the comparisons are decided. The code as it was is for the
others, so a guess at what is common can only be of no use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...spirv.enums import BuiltIn, Op
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Operand, Value, Variable
from ...spirv.types import TypeTable
from ..ir.fold import Folder, signed_value
from ..ir.instructions import (  # fmt: skip
    NEGATED,
    PURE,
    SWAPPED,
    Copies,
    append,
    clone_instruction,
    instruction_count,
    is_constant_int,
    is_removable,
    predecessors,
    remove_unreachable_blocks,
    rename_phi_edge,
)
from ..ir.ops import PassOp
from ..ir.plan import PlanOptions
from ..ir.shapes import ShapeInfo
from ..scalar.simplify import fold_branches, remove_dead_code
from .linearise_branch import needs_mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 600  # instructions that are copied
_SMALL = 64  # constants below are lower bounds: ids are mostly above
_DEPTH = 16  # of expressions that are looked at

_LESS = frozenset((Op.SLessThan, Op.SLessThanEqual, Op.ULessThan, Op.ULessThanEqual))
_GREATER = frozenset((Op.SGreaterThan, Op.SGreaterThanEqual, Op.UGreaterThan, Op.UGreaterThanEqual))
_EQUAL = frozenset((Op.IEqual, Op.INotEqual))
_SIGNED = frozenset((Op.SLessThan, Op.SLessThanEqual, Op.SGreaterThan, Op.SGreaterThanEqual))
_LOGIC = frozenset(
    (Op.LogicalAnd, Op.LogicalOr, Op.LogicalNot, Op.Select, Op.LogicalEqual, Op.LogicalNotEqual)
)
_IDS = (BuiltIn.GlobalInvocationId, BuiltIn.LocalInvocationId, BuiltIn.WorkgroupId)


def version_guards(function: Function, types: TypeTable, shapes: ShapeInfo, options: PlanOptions) -> bool:
    """Changes a linearised region in place, whose parts have been copied. True if it was worth it."""
    if options.group or options.linear_lanes or options.sub_groups or instruction_count(function) > _MOST:
        return False
    if any(len(b.terminator.operands) > 1 for b in function.blocks if b.terminator.op is PassOp.RegionExit):
        return False
    entry = function.blocks[0]
    if predecessors(function)[entry]:
        return False
    bounds = _Bounds(shapes, options.width, entry)
    guesses = {leaf: bounds.add(leaf) for leaf in _leaves(function)}
    decided: dict[Value, Constant] = {
        leaf: types.constant(types.bool(), guess) for leaf, guess in guesses.items() if guess is not None
    }
    if not decided:
        return False
    copy = _Copy(function, types, shapes, decided, bounds.needed)
    if 2 * _masked(copy.blocks) > _masked(function.blocks):
        return False
    copy.put(bounds.test)
    return True


def _masked(blocks: list[Block]) -> int:
    """Instructions under masks, but for that of the tail."""
    return sum(
        i.mask is not None and not (type(i.mask) is Instruction and i.mask.op is PassOp.EntryMask)
        for block in blocks
        for i in block.instructions
    )


def _leaves(function: Function) -> dict[Instruction, None]:
    """The comparisons of integers that masks are made of, in the order of the program."""
    work = [i.mask for block in function.blocks for i in block.instructions if type(i.mask) is Instruction]
    seen = set(work)
    while work:
        mask = work.pop()
        if mask.op in _LOGIC:
            for o in mask.operands:
                if type(o) is Instruction and o not in seen and o.type.kind is Kind.BOOL:
                    seen.add(o)
                    work.append(o)
    return {
        i: None
        for block in function.blocks
        for i in block.instructions
        if i in seen and i.op in SWAPPED and i.operands[0].type.kind is Kind.INT
    }


class _Bounds:
    """Comparisons of what rises from lane to lane with what is the same for all: how they mostly go, and the
    test that they all do."""

    def __init__(self, shapes: ShapeInfo, width: int, entry: Block) -> None:
        self.shapes = shapes
        self.width = width
        self.entry = entry
        self.early: dict[Value, bool] = {}  # whether a value can be had before all else
        self.needed: set[Instruction] = set()  # what the test is computed from
        self.ranges: dict[
            tuple[Op, Value, Value], tuple[int, int]
        ] = {}  # what is compared, and how: the least and the most added

    def add(self, leaf: Instruction) -> bool | None:
        """How a comparison mostly goes; None if that cannot be known."""
        op, (a, b) = leaf.op, leaf.operands
        if not self.is_common(b) or (self.is_common(a) and _is_of_id(b)):
            op, a, b = SWAPPED[op], b, a
        if not self.is_common(b):
            return None
        value, added = _sum(a)
        step = self.shapes.stride(a)
        if type(step) is not int or step < 0 or not self.is_early(value) or not (step or _is_of_id(value)):
            return None
        if op in _EQUAL:
            guess, relation = op is Op.INotEqual, Op.INotEqual
        else:
            is_low = is_constant_int(b) and signed_value(b) < _SMALL
            guess = is_low == (op in _GREATER)
            relation = op if guess else NEGATED[op]
        key = relation, value, b
        low, high = self.ranges.get(key, (added, added))
        self.ranges[key] = min(low, added), max(high, added + (self.width - 1) * step)
        self.need(value)
        self.need(b)
        return guess

    def need(self, value: Value) -> None:
        if type(value) is Instruction and value not in self.needed:
            self.needed.add(value)
            for operand in value.operands:
                self.need(operand)

    def is_early(self, value: Value, depth: int = _DEPTH) -> bool:
        """Whether a value is computed from ids and arguments in the first block."""
        if type(value) is not Instruction:
            return True
        if value not in self.early:
            variable = value.operands[0] if value.op is Op.Load else None
            is_input = isinstance(variable, Variable) and variable.builtin is not None
            is_first = value.block is self.entry and value.mask is None and value.op is not PassOp.EntryMask
            self.early[value] = bool(depth and is_first and (is_input or value.op in PURE)) and all(
                self.is_early(o, depth - 1) for o in value.operands
            )
        return self.early[value]

    def is_common(self, value: Value) -> bool:
        """Whether a value is the same for all, and known in the first block."""
        shapes = self.shapes
        return (
            self.is_early(value)
            and shapes.is_common(value)
            and not (isinstance(value, Instruction) and shapes.part_of.get(value))
        )

    def test(self, block: Block, types: TypeTable) -> Value:
        """Appends the test to a block."""
        result: Value | None = None
        for (relation, value, bound), (low, high) in self.ranges.items():
            for one in self.conditions(block, types, relation, value, bound, low, high):
                result = one if result is None else append(block, Op.LogicalAnd, types.bool(), [result, one])
        assert result is not None  # something is compared
        return result

    def conditions(
        self, block: Block, types: TypeTable, relation: Op, value: Value, bound: Value, low: int, high: int
    ) -> Iterator[Value]:
        type_ = value.type
        first = append(block, PassOp.FirstItem, type_, [value])
        if low:
            first = append(
                block, Op.IAdd, type_, [first, types.integer(type_.width, low % (1 << type_.width))]
            )
        count = types.integer(type_.width, high - low)
        if relation is Op.INotEqual:
            distance = append(block, Op.ISub, type_, [bound, first])
            yield append(block, Op.UGreaterThan, types.bool(), [distance, count])
            return
        last = first
        if high > low:  # and no number between wraps around
            last = append(block, Op.IAdd, type_, [first, count])
            order = Op.SGreaterThanEqual if relation in _SIGNED else Op.UGreaterThanEqual
            yield append(block, order, types.bool(), [last, first])
        yield append(block, relation, types.bool(), [first if relation in _GREATER else last, bound])


def _sum(value: Value) -> tuple[Value, int]:
    """A value as another one and a constant."""
    added = 0
    while type(value) is Instruction and value.op is Op.IAdd and is_constant_int(value.operands[1]):
        added += signed_value(value.operands[1])
        value = value.operands[0]
    return value, added


def _is_of_id(value: Value, depth: int = _DEPTH) -> bool:
    """Whether a value is computed from an id."""
    if isinstance(value, Variable):
        return value.builtin in _IDS
    if type(value) is not Instruction or not depth:
        return False
    return any(_is_of_id(o, depth - 1) for o in value.operands if isinstance(o, Value))


class _Copy:
    """A copy of a function with some values decided, but for what is needed to know whether they are."""

    def __init__(
        self,
        function: Function,
        types: TypeTable,
        shapes: ShapeInfo,
        decided: dict[Value, Constant],
        needed: set[Instruction],
    ) -> None:
        self.function = function
        self.types = types
        self.shapes = shapes
        self.needed = needed
        self.of: Copies = dict(decided)
        self.blocks = [Block(function, "inner") for _ in function.blocks]
        self.of |= dict(zip(function.blocks, self.blocks, strict=True))
        self.clones: dict[Instruction, Instruction] = {}
        for block, copy in zip(function.blocks, self.blocks, strict=True):
            self.fill(block, copy)
        self.simplify()

    def fill(self, block: Block, copy: Block) -> None:
        for i in block.instructions:
            if i not in self.of and i not in self.needed:
                clone = self.of[i] = clone_instruction(i, i.operands, copy)
                self.clones[clone] = i
                copy.instructions.append(clone)

    def simplify(self) -> None:
        """What follows from what was decided; nothing is made anew, so that all shapes stay known."""
        folder = Folder(self.types)
        changed = True
        while changed:
            changed = False
            for block in self.blocks:
                kept = []
                for i in block.instructions:
                    i.operands = [self.now(o) for o in i.operands]
                    i.mask = self.now(i.mask)
                    value = self.value(i, folder)
                    if value is i:
                        kept.append(i)
                    else:
                        changed = True
                        if value is not None:
                            self.of[i] = value
                block.instructions = kept

    def now(self, value: Operand) -> Any:
        while isinstance(value, Value | Block) and value in self.of:
            value = self.of[value]
        return value

    def value(self, i: Instruction, folder: Folder) -> Value | None:
        """What an instruction is: itself, another value, or nothing."""
        if type(i.mask) is Constant:
            if i.mask.value:
                i.mask = None
            elif needs_mask(i) or not is_removable(i):
                has_value = i.type is not None and i.type.kind is not Kind.VOID
                return self.types.undef(i.type) if has_value else None
        if i.op in (PassOp.AnyLane, PassOp.AnyLaneOfPart):
            mask = i.operands[0]
            is_whole = (
                type(mask) is Instruction
                and mask.op is PassOp.EntryMask
                and not self.shapes.part_of.get(mask)
            )
            if is_whole:  # the first work-item exists
                return self.types.constant(self.types.bool(), True)
            return mask if type(mask) is Constant else i
        if i.op is Op.Phi or i.op not in folder.by_op or i.op is Op.Load:
            return i
        if i.op in (Op.LogicalAnd, Op.LogicalOr) and i.operands[0] is i.operands[1]:
            both: Value = i.operands[0]
            return both
        found = folder.fold(i)
        return i if found is None or found.type is not i.type else found

    def put(self, test: Callable[[Block, TypeTable], Value]) -> None:
        """Puts the copy beside what it is a copy of, and the test before both."""
        function, shapes = self.function, self.shapes
        entry = function.blocks[0]
        rest = Block(function, "edges")
        rest.instructions = [i for i in entry.instructions if i not in self.needed]
        for i in rest.instructions:
            i.block = rest
        entry.instructions = [i for i in entry.instructions if i in self.needed]
        for successor in rest.successors():
            rename_phi_edge(successor, entry, rest)
        for clone, original in self.clones.items():
            for known in (shapes, shapes.across):
                if known is None:
                    continue
                if original in known.strides:
                    known.strides[clone] = known.strides[original]
                if original in known.private:
                    known.private.add(clone)
            if original in shapes.part_of:
                shapes.part_of[clone] = shapes.part_of[original]
        append(entry, Op.BranchConditional, None, [test(entry, self.types), self.blocks[0], rest])
        function.blocks = [entry, *self.blocks, rest, *function.blocks[1:]]
        fold_branches(function)
        remove_unreachable_blocks(function)
        remove_dead_code(function)
