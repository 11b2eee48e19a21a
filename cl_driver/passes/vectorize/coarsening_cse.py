"""What several parts compute or load alike, once for all: the row below a part's own is the next part's.

Sums of the same value and constants are compared by what they come to, so that work-item (x, y + 1) loads
from row y - 1 what (x, y) loads from row y - 2 + 1. Then each load is put where all that use it can follow,
not where the first part wants it: with rows of which all parts were begun at once, registers would not do.
"""

from __future__ import annotations

from ...fast_typing import Any
from ...spirv.enums import Decoration, Op, StorageClass
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Operand, Value, Variable
from ..ir.instructions import PURE, STAY, TERMINATORS, is_arithmetic, substitute
from ..ir.ops import PassOp
from ..ir.shapes import ShapeInfo
from ..scalar.simplify import remove_dead_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeGuard

_REPEATABLE = PURE - STAY - {PassOp.FirstItem}
_READ = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant)
CONVERSIONS = frozenset((
    Op.UConvert, Op.SConvert, Op.FConvert, Op.ConvertUToF, Op.ConvertSToF, Op.Bitcast, Op.CopyObject,
))  # fmt: skip
_NO_WRAP = (Decoration.NoSignedWrap, Decoration.NoUnsignedWrap)


def share(function: Function, shapes: ShapeInfo) -> None:
    """Changes a linearised region with parts in place."""
    sharer = _Sharer(shapes)
    blocks = [block for block in function.blocks if sharer.visit(block)]
    if not sharer.replaced:
        return
    substitute(function, sharer.replaced)
    remove_dead_code(function)
    for block in blocks:
        _arrange(block)


# What computes something, by what tells it from other things.
_Known: TypeAlias = dict[tuple[Any, ...], Instruction]


def _is_entry_mask(mask: Value | None) -> TypeGuard[Instruction]:
    return isinstance(mask, Instruction) and mask.op is PassOp.EntryMask


def _inputs(i: Instruction) -> list[Operand]:
    """What must be there before an instruction."""
    return i.operands if i.mask is None else [*i.operands, i.mask]


def reads(i: Instruction) -> bool:
    """Whether an instruction loads from memory that work-items share, but for local memory."""
    return i.op is Op.Load and i.operands[0].type.storage in _READ


class _Sharer:
    def __init__(self, shapes: ShapeInfo) -> None:
        self.part_of = shapes.part_of
        self.private = shapes.private
        self.sums: dict[Value, tuple[Value, int]] = {}  # what an integer is, and a constant more
        self.replaced: dict[Value, Value] = {}

    def visit(self, block: Block) -> bool:
        """Drops what a block has already. Whether there are loads among it."""
        seen: _Known = {}
        loaded: _Known = {}
        kept, shares = [], False
        replaced = self.replaced
        for i in block.instructions:
            if replaced:
                i.operands = [replaced.get(o, o) for o in i.operands]
                if i.mask is not None:
                    i.mask = replaced.get(i.mask, i.mask)
            op = i.op
            if op is Op.Load:
                if not reads(i) or (i.memory is not None and i.memory.volatile):
                    kept.append(i)
                    continue
                key = i.type, i.operands[0], i.memory
                first = loaded.get(key)
                if first is not None and self.covers(first, i):
                    replaced[i] = first
                    shares = True
                    continue
                loaded[key] = i
            elif op in _REPEATABLE or is_arithmetic(i):
                there = self.found(i, seen)
                if there is not None:
                    replaced[i] = there
                    continue
            elif op not in STAY and op not in TERMINATORS:
                loaded = {}
            kept.append(i)
        block.instructions = kept
        return shares

    def found(self, i: Instruction, seen: _Known) -> Value | None:
        """What an instruction would compute, if it is there."""
        if i.op is Op.IAdd and (sum_ := self.sum_of(i)) is not None:
            self.sums[i] = sum_
            if not sum_[1]:
                return sum_[0]
            key: tuple[Any, ...] = (Op.IAdd, i.type, *sum_)
        else:
            key = i.op, i.type, i.mask, *i.operands
        if self.is_own(i):
            key = *key, self.part_of.get(i, 0)
        if i.decorations:
            key = *key, *sorted(repr(d) for d in i.decorations.items() if d[0] not in _NO_WRAP)
        first = seen.setdefault(key, i)
        if first is i:
            return None
        if first.decorations:
            first.decorations = {
                k: v for k, v in first.decorations.items() if k not in _NO_WRAP or k in i.decorations
            }
        return first

    def is_own(self, i: Instruction) -> bool:
        """Whether the same operands mean something else in another part."""
        return i in self.private or any(isinstance(o, Variable) for o in i.operands)

    def sum_of(self, i: Instruction) -> tuple[Value, int] | None:
        if i.type.kind is not Kind.INT:
            return None
        value, number = i.operands
        if type(value) is Constant:
            value, number = number, value
        if type(number) is not Constant or type(value) is Constant:
            return None
        base, more = self.sums.get(value, (value, 0))
        return base, (more + (number.value or 0)) & (1 << i.type.width) - 1

    def covers(self, first: Instruction, i: Instruction) -> bool:
        """Whether a load may stand for another one, under the mask of that if it is that of an earlier part,
        which has all the lanes that a later one has."""
        mine, other = first.mask, i.mask
        if mine is other:
            return True
        if not (_is_entry_mask(mine) and _is_entry_mask(other)):
            return False
        if self.part_of.get(other, 0) < self.part_of.get(mine, 0):
            first.mask = other
        return True


def _arrange(block: Block) -> None:
    """Puts the loads of a block where all of their users can follow, and these behind them."""
    result, run = [], []
    for i in block.instructions:
        if i.op is Op.Load or (i.op in PURE and i.op not in STAY) or is_arithmetic(i):
            run.append(i)
            continue
        result += _Run(run).arranged()
        result.append(i)
        run = []
    block.instructions = result


class _Run:
    """Instructions without effects. What waits for no load is put where it is wanted first, at the latest."""

    def __init__(self, run: list[Instruction]) -> None:
        self.run = run
        self.missing: dict[Instruction, int] = {}  # loads, and what waits for loads: operands that do, too
        self.followers: dict[Instruction, list[Instruction]] = {}
        self.pending = dict.fromkeys(run)
        for i in run:
            waits_for = {o for o in _inputs(i) if o in self.missing}
            if waits_for or reads(i):
                self.missing[i] = len(waits_for)
                self.followers[i] = []
                for o in waits_for:
                    self.followers[o].append(i)
        self.result: list[Instruction] = []

    def arranged(self) -> list[Instruction]:
        waiting = [i for i in self.missing if reads(i)]
        while waiting:
            ready = [i for i in waiting if not self.missing[i]]
            load = next((i for i in ready if self.lands(i)), ready[0])
            waiting.remove(load)
            self.put(load)
        for i in self.run:
            self.put_operand(i)
        return self.result

    def lands(self, i: Instruction) -> bool:
        """Whether nothing but a value is missing to all that use it, conversions looked through."""
        for user in self.followers[i]:
            if self.missing[user] > 1 or (user.op in CONVERSIONS and not self.lands(user)):
                return False
        return True

    def put(self, i: Instruction) -> None:
        """Puts an instruction for which nothing is missing, and all that follow from it but loads."""
        pending = [i]
        while pending:
            i = pending.pop()
            for operand in _inputs(i):
                self.put_operand(operand)
            self.result.append(i)
            del self.pending[i]
            ready = []
            for user in self.followers[i]:
                self.missing[user] -= 1
                if not self.missing[user] and not reads(user):
                    ready.append(user)
            pending += reversed(ready)

    def put_operand(self, i: Operand) -> None:
        """Puts what waits for no load with its own operands, if it is still to come."""
        if i not in self.pending or i in self.missing:
            return
        stack = [i]
        while stack:
            i = stack[-1]
            before = [o for o in _inputs(i) if o in self.pending]
            if before:
                stack += before
                continue
            stack.pop()
            if i in self.pending:
                self.result.append(i)
                del self.pending[i]
