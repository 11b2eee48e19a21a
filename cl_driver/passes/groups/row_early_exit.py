"""Where the rest of a row of work-items has nothing to do: `if (lid < count)` around all that a region does.

The steps of a tree in local memory are such regions. When a vector comes to the end of one and no lane was
below the count, the vectors behind it in the row would do nothing either: the row may be left.
"""

from __future__ import annotations

from ...spirv.enums import BuiltIn, Op, StorageClass
from ...spirv.module import Block, Function, Instruction, Value, Variable
from ...spirv.types import TypeTable
from ..ir.dominance import DominatorTree, dominators
from ..ir.instructions import PURE, TERMINATORS, int_value, is_constant_int, is_removable
from ..ir.ops import PassBuiltIn, PassOp
from ..ir.plan import Slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeGuard

LESS = frozenset((Op.SLessThan, Op.SLessThanEqual, Op.ULessThan, Op.ULessThanEqual))
GREATER = frozenset((Op.SGreaterThan, Op.SGreaterThanEqual, Op.UGreaterThan, Op.UGreaterThanEqual))
OPPOSITE = dict.fromkeys(LESS, Op.SGreaterThanEqual) | dict.fromkeys(GREATER, Op.SLessThanEqual)
OPPOSITE[Op.INotEqual] = Op.IEqual
_OF_GROUP = frozenset((
    BuiltIn.WorkgroupId, BuiltIn.WorkgroupSize, BuiltIn.EnqueuedWorkgroupSize, BuiltIn.NumWorkgroups,
    BuiltIn.GlobalSize, BuiltIn.GlobalOffset, PassBuiltIn.GroupOrigin, BuiltIn.WorkDim,
))  # fmt: skip
DEPTH = 8  # of expressions that are looked at


def mark_row_ends(function: Function, types: TypeTable) -> None:
    """Gives RegionExits of a linearised region a second operand: whether anything may be left to do for the
    vectors that follow in the row. What there is to do is masked, or behind a jump over empty masks."""
    reached = _without_lanes(function)
    tree = None
    for end in reached:
        if end.terminator.op is not PassOp.RegionExit:
            continue
        tree = tree or dominators(function)
        masks = _masks_before(end, reached, tree)
        if not masks:
            continue
        left = None
        for mask in masks:
            test = Instruction(PassOp.AnyLane, types.bool(), [mask], end)
            end.instructions.insert(-1, test)
            if left is not None:
                test = Instruction(Op.LogicalOr, types.bool(), [left, test], end)
                end.instructions.insert(-1, test)
            left = test
        end.terminator.operands.append(left)


def _without_lanes(function: Function) -> dict[Block, list[Block]]:
    """The blocks that a vector comes to if it fails all tests, with their predecessors among these; none if
    other vectors might go other ways."""
    entry = function.blocks[0]
    reached: dict[Block, list[Block]] = {entry: []}
    work = [entry]
    while work:
        block = work.pop()
        terminator = block.terminator
        successors = block.successors()
        if _row_test(block):
            successors = terminator.operands[2:3]
        elif len(successors) > 1 and not is_of_group(terminator.operands[0]):
            return {}
        for successor in successors:
            if successor not in reached:
                reached[successor] = []
                work.append(successor)
            reached[successor].append(block)
    return reached


def _masks_before(
    end: Block, reached: dict[Block, list[Block]], tree: DominatorTree[Block]
) -> list[Instruction]:
    """The masks of all that is done before a block is left, itself included: none if something is done under
    no mask of the first work-items, or under one that is not known at the end."""
    seen = {end}
    work = [end]
    masks: dict[Instruction, None] = {}
    while work:
        block = work.pop()
        if block is not end and _row_test(block):
            masks[block.terminator.operands[0].operands[0]] = None
        for i in block.instructions:
            if _acts(i):
                if i.mask is None or not _is_prefix(i.mask) or i.mask.op is PassOp.EntryMask:
                    return []
                masks[i.mask] = None
        for before in reached[block]:
            if before not in seen:
                seen.add(before)
                work.append(before)
    return list(masks) if all(tree.dominates(mask.block, end) for mask in masks) else []


def _acts(i: Instruction) -> bool:
    """Whether it matters that all vectors execute an instruction."""
    if i.op is PassOp.SlotStore and i.operands[0].uniform:
        return False
    return i.op not in TERMINATORS and not is_removable(i)


def _row_test(block: Block) -> bool:
    """Whether a block asks if any lane is left of those at the beginning of the row."""
    terminator = block.terminator
    if terminator.op is not Op.BranchConditional:
        return False
    test = terminator.operands[0]
    return isinstance(test, Instruction) and test.op is PassOp.AnyLane and _is_prefix(test.operands[0])


def _is_prefix(mask: Value, depth: int = DEPTH) -> TypeGuard[Instruction]:
    """Whether a mask is true for the first work-items of a row and for no others."""
    if not isinstance(mask, Instruction) or not depth:
        return False
    op, operands = mask.op, mask.operands
    if op is PassOp.EntryMask:
        return True
    if op is Op.LogicalAnd or op is Op.LogicalOr:
        return all(_is_prefix(o, depth - 1) or is_of_group(o) for o in operands)
    if op is Op.LogicalNot and isinstance(operands[0], Instruction):
        opposite = OPPOSITE.get(operands[0].op)
        if opposite is None:
            return False
        op, operands = opposite, operands[0].operands
    if op in GREATER:
        operands = operands[::-1]
    elif op is Op.IEqual:
        return any(
            _is_position(a) and is_constant_int(b) and not int_value(b) for a, b in (operands, operands[::-1])
        )
    elif op not in LESS:
        return False
    return _is_position(operands[0]) and is_of_group(operands[1])


def _is_position(value: Value, depth: int = DEPTH) -> bool:
    """Whether an integer is a local id that rises along a row, or that plus a small number (of a part)."""
    if not isinstance(value, Instruction) or value.type.width < 32 or not depth:
        return False
    op, operands = value.op, value.operands
    if op is Op.Load:
        return isinstance(operands[0], Variable) and operands[0].builtin == BuiltIn.LocalInvocationIndex
    if op is Op.CompositeExtract:
        load = operands[0]
        variable = load.operands[0] if isinstance(load, Instruction) and load.op is Op.Load else None
        is_id = isinstance(variable, Variable) and variable.builtin == BuiltIn.LocalInvocationId
        return is_id and operands[1] == 0
    if op is Op.UConvert or op is Op.SConvert:
        return _is_position(operands[0], depth - 1)
    if op is Op.ShiftRightArithmetic:  # of int to long, as clang writes it
        inner, by = operands
        if not (
            isinstance(inner, Instruction) and inner.op is Op.ShiftLeftLogical and by is inner.operands[1]
        ):
            return False
        return is_constant_int(by) and int_value(by) == 32 and _is_position(inner.operands[0], depth - 1)
    if op is Op.BitwiseAnd:  # of size_t to uint
        number = operands[1]
        return (
            is_constant_int(number)
            and int_value(number) == 0xFFFFFFFF
            and _is_position(operands[0], depth - 1)
        )
    if op is Op.IAdd:
        number = operands[1]
        return (
            is_constant_int(number) and int_value(number) < 1 << 16 and _is_position(operands[0], depth - 1)
        )
    return False


def is_of_group(
    value: Value, depth: int = DEPTH, is_known: Callable[[Instruction], bool] | None = None
) -> bool:
    """Whether a value is the same for all work-items of a group, whatever they have done in the region.
    is_known: tells what else counts as the same."""
    if not isinstance(value, Instruction) or (is_known is not None and is_known(value)):
        return True
    if not depth or value.op is Op.Phi:
        return False
    if value.op is PassOp.SlotLoad:
        slot: Slot = value.operands[0]
        return slot.uniform
    if value.op is Op.Load:
        variable = value.operands[0]
        return (
            isinstance(variable, Variable)
            and variable.type.storage is StorageClass.Input
            and variable.builtin in _OF_GROUP
        )
    if value.op not in PURE or value.op in (PassOp.AnyLane, PassOp.EntryMask, PassOp.PrivatePointer):
        return False
    return all(is_of_group(o, depth - 1, is_known) for o in value.operands if isinstance(o, Value))
