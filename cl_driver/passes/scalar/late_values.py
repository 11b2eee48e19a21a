"""In long blocks, what is computed long before its first use is computed shortly before it.

A core looks for work in a window of a hundred operations or so. Programs that prepare many values, and then
take one after the other in a long chain of operations, leave it first with nothing but the preparations and
then with nothing but the chain. Side by side, one fills the gaps of the other. LLVM does not move what it
finds that far: its scheduler looks at registers.

An expression moves as a whole, and only if no more registers are taken meanwhile: what it is computed of
lives longer then, what it is lives shorter.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Block, Function, Instruction, Kind, Type, Value
from ..ir.instructions import users
from ..ir.shapes import ShapeInfo

# Instructions of a block below which a core sees most of it at once.
LEAST = 200

# How many instructions at least a value moves, which is about half of what a core sees.
FAR = 48

# How many are left between it and its first use: a chain that waits for it should not wait for all of it.
AHEAD = 36

LARGEST = 100  # instructions of an expression

# Operations of few cycles. What takes longer is well begun early.
_QUICK = frozenset((
    Op.IAdd, Op.ISub, Op.SNegate, Op.Not, Op.BitwiseAnd, Op.BitwiseOr, Op.BitwiseXor, Op.ShiftLeftLogical,
    Op.ShiftRightLogical, Op.ShiftRightArithmetic, Op.IMul, Op.Bitcast, Op.UConvert, Op.SConvert, Op.FAdd,
    Op.FSub, Op.FMul, Op.FNegate, Op.Select,
))  # fmt: skip
_QUICK_EXTINST = frozenset((Std.rotate, Std.bitselect, Std.fma, Std.mad))
_NUMBERS = (Kind.INT, Kind.FLOAT)


def compute_late(function: Function, shapes: ShapeInfo, width: int) -> bool:
    """Changes a function in place; True if something moved. width: lanes of what is not the same in all."""
    long = [block for block in function.blocks if len(block.instructions) >= LEAST]
    if not long:
        return False
    used_by = users(function)
    moved = [_Order(block, used_by, shapes, width).change() for block in long]
    return any(moved)


class _Order:
    """The order of a block's instructions. Each has a place, the number of an instruction that stays: it goes
    right before that one."""

    def __init__(
        self, block: Block, used_by: dict[Value, list[Instruction]], shapes: ShapeInfo, width: int
    ) -> None:
        self._block = block
        self._used_by = used_by
        self._strides = shapes.strides
        self._width = width
        self._place = {i: number for number, i in enumerate(block.instructions)}

    def change(self) -> bool:
        instructions = self._block.instructions
        number = dict(self._place)
        moved: set[Instruction] = set()
        for i in reversed(instructions):
            if i in moved or not self._may_move(i):
                continue
            place = min((self._place[user] for user in self._uses_here(i)), default=0) - AHEAD
            if place - number[i] < FAR:
                continue
            tree = self._tree(i)
            if self._ending(tree, place) > self._size(i):
                continue
            for member in tree:
                self._place[member] = place
            moved |= tree
        if moved:
            # Those that moved to one place keep their order, and are before the one that was there.
            instructions.sort(key=lambda i: (self._place[i], i not in moved, number[i]))
        return bool(moved)

    def _may_move(self, i: Instruction) -> bool:
        if i.type is None or i.mask is not None or _element(i.type).kind not in _NUMBERS:
            return False
        return i.op in _QUICK or (i.op is Op.ExtInst and i.operands[1] in _QUICK_EXTINST)

    def _uses_here(self, value: Value) -> list[Instruction]:
        """Uses by other instructions of the block than its phis, which use values at the block's end."""
        return [u for u in self._used_by.get(value, ()) if u.block is self._block and u.op is not Op.Phi]

    def _tree(self, root: Instruction) -> set[Instruction]:
        """The root, and what nobody but these needs."""
        tree = {root}
        work = [root]
        while work and len(tree) < LARGEST:
            for operand in work.pop().operands:
                if type(operand) is not Instruction or operand.block is not self._block:
                    continue
                if (
                    operand not in tree
                    and self._may_move(operand)
                    and tree.issuperset(self._used_by[operand])
                ):
                    tree.add(operand)
                    work.append(operand)
        return tree

    def _ending(self, tree: set[Instruction], place: int) -> int:
        """Bits of the operands of a tree that nobody else would need at a place, or behind it."""
        ending = 0
        for value in {o for member in tree for o in member.operands if isinstance(o, Instruction)}:
            others = [user for user in self._used_by[value] if user not in tree]
            is_kept = any(
                user.block is not self._block or user.op is Op.Phi or self._place[user] >= place
                for user in others
            )
            if value not in tree and not is_kept:
                ending += self._size(value)
        return ending

    def _size(self, value: Value) -> int:
        stride = self._strides.get(value, 0)
        lanes = self._width if stride is None or type(stride) is tuple else 1
        type_ = value.type
        count = type_.count if type_.kind is Kind.VECTOR else 1
        return lanes * count * getattr(_element(type_), "width", 64)


def _element(type_: Type) -> Type:
    return type_.element if type_.kind is Kind.VECTOR else type_
