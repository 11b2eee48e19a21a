"""Vectors away from the edges of what ids count: code of their own, in which nothing depends on edges.

    start = i + n / 2 < size ? 0 : i + n / 2 + 1 - size;  for (k = start; k < end; k++) ...
    left = i == 0 ? at : at - 1;

A convolution that leaves out what lies beyond its input, or a stencil that stays at its border, chooses where
to begin, to end or to read by a comparison of an id, or by a minimum or a maximum. Most vectors have no lane
near an edge. With a lane for each work-item, the choice makes loops diverge that otherwise all lanes are in
from the first iteration to the last, and addresses vary that follow one another.

Whether all lanes choose the usual way is asked first. If so, they run a copy of the kernel in which the
choices are made; this is done before lanes are looked at, so that everything which follows (shapes, masks,
parts) finds simpler code. Comparisons that masks are made of are decided when that is done, by another pass.

Which way is usual is a guess. If it is wrong, it has cost a test for each vector.
"""

from __future__ import annotations

from ...fast_typing import NamedTuple
from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Block, Function, Instruction, Kind, Operand, Value
from ...spirv.types import TypeTable
from ..analysis.shape import analyse_shapes
from ..ir.dominance import LoopNest, dominators
from ..ir.fold import signed_value
from ..ir.instructions import (
    ATOMICS,
    GROUP_OPERATIONS,
    PURE,
    Copies,
    append,
    clone_instruction,
    instruction_count,
    is_arithmetic,
    is_constant_int,
    predecessors,
    reads_builtin,
    users,
)
from ..ir.lcssa import close_loops
from ..ir.ops import PassOp
from ..ir.plan import PlanOptions
from ..ir.shapes import ShapeInfo
from ..scalar.simplify import simplify

_MOST = 400  # instructions that are copied
_DEPTH = 12  # of expressions that are looked at
_SMALL = 64  # constants below are lower bounds: ids are mostly above
_ROUNDS = 8  # of a loop, in the comparison of both versions

_LESS = frozenset((Op.SLessThan, Op.SLessThanEqual, Op.ULessThan, Op.ULessThanEqual))
_COMPARISONS = _LESS | {
    Op.SGreaterThan, Op.SGreaterThanEqual, Op.UGreaterThan, Op.UGreaterThanEqual, Op.IEqual, Op.INotEqual,
}  # fmt: skip
_EXTREMES = {
    Std.s_max: Op.SGreaterThanEqual, Std.u_max: Op.UGreaterThanEqual,
    Std.s_min: Op.SLessThanEqual, Std.u_min: Op.ULessThanEqual,
}  # fmt: skip
_STAY = frozenset((Op.Phi, Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod))
_CASTS = frozenset((Op.SConvert, Op.UConvert, Op.Bitcast))


class _Choice(NamedTuple):
    """What chooses between two numbers: a select, or a minimum or maximum. op, a, b: the comparison."""

    instruction: Instruction
    op: Op
    a: Value
    b: Value
    if_true: Value
    if_false: Value

    @property
    def is_select(self) -> bool:
        """Whether the comparison is an instruction of its own."""
        return self.instruction.op is Op.Select


def version_edges(function: Function, types: TypeTable, options: PlanOptions) -> Block | None:
    """Changes a function that has no lanes yet in place. The block that begins what is left for vectors at an
    edge; None if that is not worth it."""
    found = _worth(function, types, options)
    if found is None:
        return None
    guesses, copy = found
    entry = Block(function, "entry")
    test = _Test(entry, types)
    for choice, guess in guesses:
        test.add(choice, guess)
    assert test.result is not None  # there are guesses
    away = append(entry, Op.LogicalNot, types.bool(), [test.result])
    any_lane = append(entry, PassOp.AnyLane, types.bool(), [away])
    edges = function.blocks[0]
    edges.name = "edges"
    copy.blocks[0].name = "inner"
    append(entry, Op.BranchConditional, None, [any_lane, edges, copy.blocks[0]])
    for block in copy.blocks:
        block.function = function
    function.blocks = [entry, *copy.blocks, *function.blocks]
    return edges


def has_edges(function: Function, types: TypeTable, options: PlanOptions) -> bool:
    """Whether there is anything to do. The function stays as it is, but for its form, which becomes that of
    closed loops."""
    return _worth(function, types, options) is not None


def _worth(
    function: Function, types: TypeTable, options: PlanOptions
) -> tuple[list[tuple[_Choice, bool]], Function] | None:
    """How choices are mostly made, and a copy of the function in which they are."""
    if options.group or options.linear_lanes or options.sub_groups or instruction_count(function) > _MOST:
        return None
    if predecessors(function)[function.blocks[0]] or not _choices(function):
        return None
    instructions = [i for block in function.blocks for i in block.instructions]
    if any(i.op is Op.Variable or i.op in ATOMICS or i.op in GROUP_OPERATIONS for i in instructions):
        return None
    close_loops(function, types)
    shapes = analyse_shapes(function, options)
    guesses = _guesses(function, shapes)
    if not guesses:
        return None
    copy = _copy(function, types, guesses)
    close_loops(copy, types)
    if 2 * _cost(copy, analyse_shapes(copy, options)) >= _cost(function, shapes):
        return None
    return guesses, copy


def _choices(function: Function) -> list[_Choice]:
    """Those between numbers that are made in the first block."""
    found = []
    for i in function.blocks[0].instructions:
        if i.type is None or i.type.kind not in (Kind.INT, Kind.POINTER):
            continue
        if i.op is Op.Select and isinstance(c := i.operands[0], Instruction) and c.op in _COMPARISONS:
            found.append(_Choice(i, c.op, *c.operands, *i.operands[1:]))
        elif i.op is Op.ExtInst and i.operands[1] in _EXTREMES:
            a, b = i.operands[2:]
            found.append(_Choice(i, _EXTREMES[i.operands[1]], a, b, a, b))
    return found


def _guesses(function: Function, shapes: ShapeInfo) -> list[tuple[_Choice, bool]]:
    """How choices are mostly made that differ between lanes."""
    guesses: list[tuple[_Choice, bool]] = []
    decided: set[Instruction] = set()
    used_by, entry = users(function), function.blocks[0]
    headers = {loop.header for loop in LoopNest(function, dominators(function), predecessors(function)).loops}
    for choice in _choices(function):
        what = choice.instruction.operands[0] if choice.is_select else choice.instruction
        strides = [shapes.stride(value) for value in (choice.a, choice.b)]
        if what in decided or shapes.stride(what) is not None or 0 not in strides or None in strides:
            continue
        if not (_is_early(choice.a, entry) and _is_early(choice.b, entry)):
            continue
        guess = _bound(choice, shapes, headers, used_by)
        guesses.append((choice, _usual(choice, shapes) if guess is None else guess))
        decided.add(what)
    return guesses


def _bound(
    choice: _Choice, shapes: ShapeInfo, headers: set[Block], used_by: dict[Value, list[Instruction]]
) -> bool | None:
    """How the choice is made of a number that loops begin or end with, to be the same for all lanes."""
    same = shapes.is_uniform(choice.if_true)
    if same == shapes.is_uniform(choice.if_false):
        return None
    values: list[Value] = [choice.instruction]
    while values:
        for user in used_by.get(values.pop(), ()):
            if (user.op is Op.Phi and user.block in headers) or user.op in _COMPARISONS:
                return same
            if user.op in _CASTS:
                values.append(user)
    return None


def _usual(choice: _Choice, shapes: ShapeInfo) -> bool:
    """How a choice is mostly made by comparing what rises from lane to lane with what is the same for all."""
    op, rises = choice.op, not shapes.is_uniform(choice.a)
    if not choice.is_select:
        return rises
    if op is Op.IEqual or op is Op.INotEqual:
        return op is Op.INotEqual
    bound = choice.b if rises else choice.a
    is_low = is_constant_int(bound) and signed_value(bound) < _SMALL
    return ((op in _LESS) == rises) != is_low


def _is_early(value: Value, entry: Block, depth: int = _DEPTH) -> bool:
    """Whether a value is computed from ids and arguments in the first block, and may be anywhere."""
    if type(value) is not Instruction:
        return True
    is_first = depth > 0 and value.block is entry
    if value.op in _STAY:
        is_first &= is_constant_int(value.operands[1]) and signed_value(value.operands[1]) > 0
    if not is_first or not (value.op in PURE or is_arithmetic(value) or reads_builtin(value)):
        return False
    return all(_is_early(o, entry, depth - 1) for o in value.operands if isinstance(o, Value))


def _copy(function: Function, types: TypeTable, guesses: list[tuple[_Choice, bool]]) -> Function:
    """A copy with the choices made, and what follows from that."""
    copy = Function(function.type, function.name, function.control)
    copy.arguments = function.arguments
    values: Copies = {block: Block(copy, block.name) for block in function.blocks}
    for choice, guess in guesses:
        if choice.is_select:
            values[choice.instruction.operands[0]] = types.constant(types.bool(), guess)
        else:
            values[choice.instruction] = choice.if_true if guess else choice.if_false
    for block in function.blocks:
        values[block].loop_control = block.loop_control
        for i in block.instructions:
            if i not in values:
                values[i] = clone_instruction(i, i.operands, values[block])
                values[block].instructions.append(values[i])

    def final(operand: Operand) -> Operand:
        while isinstance(operand, Value | Block) and operand in values:
            operand = values[operand]
        return operand

    copy.blocks = [values[block] for block in function.blocks]
    for block in copy.blocks:
        for i in block.instructions:
            i.operands = [final(o) for o in i.operands]
    simplify(copy, types)
    return copy


def _cost(function: Function, shapes: ShapeInfo) -> int:
    """What lanes that do different things cost: loops that they leave one by one, and accesses at places of
    each one's own, with iterations of loops counted as if they were a few."""
    nest = LoopNest(function, dominators(function), predecessors(function))
    total = 0
    for block in function.blocks:
        depth, loop = 0, nest.innermost.get(block)
        while loop is not None:
            depth, loop = depth + 1, loop.parent
        diverges = int(block in shapes.divergent_loops)
        for i in block.instructions:
            if i.op is Op.Load or i.op is Op.Store:
                diverges += shapes.stride(i.operands[0]) is None
        total += diverges * _ROUNDS**depth
    return total


class _Test:
    """The test whether a lane goes another way than is usual, made anew in a block of its own."""

    def __init__(self, block: Block, types: TypeTable) -> None:
        self.block, self.types = block, types
        self.made: dict[Instruction, Instruction] = {}
        self.result: Value | None = None

    def add(self, choice: _Choice, guess: bool) -> None:
        """That lanes choose so."""
        bool_ = self.types.bool()
        value: Value = append(self.block, choice.op, bool_, [self.again(choice.a), self.again(choice.b)])
        if not guess:
            value = append(self.block, Op.LogicalNot, bool_, [value])
        if self.result is not None:
            value = append(self.block, Op.LogicalAnd, bool_, [self.result, value])
        self.result = value

    def again(self, value: Operand) -> Operand:
        """The value, made anew."""
        if type(value) is not Instruction:
            return value
        if value not in self.made:
            operands = [self.again(o) for o in value.operands]
            self.made[value] = clone_instruction(value, operands, self.block)
            self.block.instructions.append(self.made[value])
        return self.made[value]
