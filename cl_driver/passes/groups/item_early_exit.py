"""Where work-items are executed one at a time: a row is left at the first that an `if (id < count)` around
the whole kernel keeps from working.

Launches are rounded up to whole groups, or are made for the most that there may be to do, so whole groups
may find nothing. Vectors skip them in a few steps, and LLVM does not bound the loop over work-items, since it
cannot know that what follows the branch does nothing.
"""

from __future__ import annotations

from ...spirv.enums import BuiltIn, Op
from ...spirv.module import Block, Constant, Function, Instruction, Operand, Value, Variable
from ...spirv.types import TypeTable
from ..ir.instructions import (
    append,
    int_value,
    is_constant_int,
    is_removable,
    remove_phi_edge,
    remove_unreachable_blocks,
    replace_successor,
)
from ..ir.ops import PassOp
from .row_early_exit import DEPTH, GREATER, LESS, OPPOSITE, is_of_group

_MOST_ITEMS = 1 << 16  # no row has more (device/limits.py)
_IDS = (BuiltIn.GlobalInvocationId, BuiltIn.LocalInvocationId)
_HARMLESS = frozenset((Op.Variable, PassOp.SlotLoad, PassOp.PrivatePointer))


def end_rows(function: Function, types: TypeTable) -> None:
    """Gives ways past all work of a region RegionExits of their own, whose second operand is whether
    work-items that follow in the row may have something to do."""
    late = _after_work(function)
    work: list[Block] = [function.blocks[0]]
    seen: set[Block] = set()
    while work:
        fork = _fork(work.pop())
        if fork is None or fork in seen or fork in late or fork.terminator.op is not Op.BranchConditional:
            continue
        seen.add(fork)
        condition, *ways = fork.terminator.operands
        if _is_of_row(condition):
            work += ways
        if ways[0] is ways[1]:
            continue
        for idle, negated in zip(ways, (True, False), strict=True):
            counters: dict[Instruction, None] = {}
            end = _fork(idle)
            if end is not None and end.terminator.op is PassOp.RegionExit:
                if len(end.terminator.operands) == 1 and _fails_on(condition, negated, counters):
                    _leave_row(fork, idle, end.terminator.operands[0], counters, types)
    if seen:
        remove_unreachable_blocks(function)


def _after_work(function: Function) -> set[Block]:
    """Blocks that do something, and those to which a way leads from these: what an earlier branch has led
    past some work may come to a later one, where others of the row come that have done it."""
    found = {block for block in function.blocks if not _is_idle(block)}
    pending = list(found)
    while pending:
        for block in pending.pop().successors():
            if block not in found:
                found.add(block)
                pending.append(block)
    return found


def _is_idle(block: Block) -> bool:
    return all(is_removable(i) or i.op in _HARMLESS for i in block.instructions[:-1])


def _leave_row(
    fork: Block, idle: Block, target: Operand, counters: dict[Instruction, None], types: TypeTable
) -> None:
    """Leads one way of a branch to the end of the row, unless a counter may wrap in the rest of it."""
    leave = Block(fork.function, "row_end")
    append(leave, PassOp.RegionExit, None, [target, _wraps(leave, counters, types)])
    replace_successor(fork, idle, leave)
    remove_phi_edge(idle, fork)
    assert fork.function is not None
    fork.function.blocks.append(leave)


def _fork(block: Block) -> Block | None:
    """The first block from one on that does not simply lead to the next; None if anything is done before."""
    seen = set()
    while block not in seen:
        seen.add(block)
        if not _is_idle(block):
            return None
        if block.terminator.op is not Op.Branch:
            return block
        block = block.terminator.operands[0]
    return None


def _fails_on(condition: Value, negated: bool, counters: dict[Instruction, None], depth: int = DEPTH) -> bool:
    """Whether a condition (or its opposite) that is false for a work-item is false for all that follow in the
    row, as long as none of the counters that are collected wraps."""
    if _is_of_row(condition):
        return True
    if not isinstance(condition, Instruction) or not depth:
        return False
    op, operands = condition.op, condition.operands
    if op is Op.LogicalNot:
        return _fails_on(operands[0], not negated, counters, depth - 1)
    if op is Op.LogicalAnd or op is Op.LogicalOr:
        return all(_fails_on(o, negated, counters, depth - 1) for o in operands)
    if op is Op.Select and (
        _is_bool(operands[1], True) or _is_bool(operands[2], False)
    ):  # as clang has || and &&
        return all(_fails_on(o, negated, counters, depth - 1) for o in operands)
    if negated:
        op = OPPOSITE.get(op, op)
    if op in GREATER:
        operands = operands[::-1]
    elif op not in LESS:
        return False
    counter, bound = operands
    if _bits(counter) <= _MOST_ITEMS.bit_length() or not _is_of_row(bound):
        return False
    counters[counter] = None
    return True


def _is_bool(value: Value, which: bool) -> bool:
    return isinstance(value, Constant) and value.value is which


def _bits(value: Value, depth: int = DEPTH) -> int:
    """How many low bits of an integer count the work-items of a row, if those above are 0 or copies of the
    highest of them; else 0."""
    if not isinstance(value, Instruction) or not depth:
        return 0
    op, operands, width = value.op, value.operands, getattr(value.type, "width", 0)
    if op is Op.CompositeExtract:
        return width if _component(value) == 0 else 0
    if op is Op.UConvert or op is Op.SConvert:
        return min(_bits(operands[0], depth - 1), width)
    if (
        op is Op.ShiftRightArithmetic or op is Op.ShiftRightLogical
    ):  # of int or uint to long, as clang writes it
        inner, by = operands
        is_pair = (
            isinstance(inner, Instruction) and inner.op is Op.ShiftLeftLogical and inner.operands[1] is by
        )
        if not is_pair or not is_constant_int(by) or not 0 < int_value(by) < width:
            return 0
        return min(_bits(inner.operands[0], depth - 1), width - int_value(by))
    if op is Op.BitwiseAnd:  # of size_t to uint
        number = operands[1]
        if (
            not is_constant_int(number)
            or not int_value(number)
            or int_value(number) & (int_value(number) + 1)
        ):
            return 0
        return min(_bits(operands[0], depth - 1), int_value(number).bit_length())
    if op is Op.IAdd:
        for a, b in (operands, operands[::-1]):
            if _bits(a, depth - 1) == width and _is_of_row(b):
                return width
    return 0


def _component(value: Instruction) -> int | None:
    """Which component of an id a value is."""
    load = value.operands[0]
    if len(value.operands) != 2 or not isinstance(load, Instruction) or load.op is not Op.Load:
        return None
    variable = load.operands[0]
    return value.operands[1] if isinstance(variable, Variable) and variable.builtin in _IDS else None


def _is_of_row(value: Value) -> bool:
    """Whether a value is the same for all work-items of a row, whatever they have done in the region."""
    return is_of_group(value, is_known=_is_place_of_row)


def _is_place_of_row(i: Instruction) -> bool:
    """Whether it is an id along dimension 1 or 2."""
    return i.op is Op.CompositeExtract and _component(i) in (1, 2)


def _wraps(block: Block, counters: dict[Instruction, None], types: TypeTable) -> Value:
    """Whether a counter may wrap in the rest of the row, signed or unsigned: its highest bit changes then."""
    result: Value = types.constant(types.bool(), False)
    for counter in counters:
        type_ = counter.type
        later = append(block, Op.IAdd, type_, [counter, types.integer(type_.width, _MOST_ITEMS)])
        changed = append(block, Op.BitwiseXor, type_, [later, counter])
        highest = types.integer(type_.width, 1 << (_bits(counter) - 1))
        changed = append(block, Op.BitwiseAnd, type_, [changed, highest])
        test = append(block, Op.INotEqual, types.bool(), [changed, types.integer(type_.width, 0)])
        result = append(block, Op.LogicalOr, types.bool(), [result, test])
    return result
