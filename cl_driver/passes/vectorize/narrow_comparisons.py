"""Comparisons of lanes' integers of 64 bits with 32 bits, where what differs between lanes has no more.

    sext(x) + u < c         c - u - 1 is at least the least x, and x <= min(c - u - 1, the greatest x)

x has 32 bits and is the lane's own; u and c are the same in all lanes, so that what is left of 64 bits is
computed once, for all lanes and parts. Counters of loops are such u: clang makes them, and all that is added
to them, as wide as addresses are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...spirv.enums import Decoration, Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Block, Constant, Function, Instruction, Value
from ...spirv.types import TypeTable
from ..ir.fold import signed_value
from ..ir.instructions import SWAPPED, append
from ..ir.shapes import UNIFORM, VARYING, ShapeInfo

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1

# Whether a comparison with n is `at most`, else its opposite, and of what beside n.
_ORDERS = {
    Op.SLessThanEqual: (True, 0), Op.SLessThan: (True, -1), Op.SGreaterThan: (False, 0),
    Op.SGreaterThanEqual: (False, -1),
}  # fmt: skip
_EQUALITY = frozenset((Op.IEqual, Op.INotEqual))

# Sums that are no further from 0 than _FAR do not wrap. A loop that counts by no more than _SLOW would take a
# year to count to _COUNTED.
_FAR, _COUNTED, _SLOW, _DEPTH = 2.0**62, 2.0**60, 8, 4


def narrow_comparisons(function: Function, types: TypeTable, shapes: ShapeInfo) -> bool:
    """Changes a linearised function in place. True if it did: there are values without shapes then."""
    narrower = _Narrower(types, shapes)
    changed = False
    for block in function.blocks:
        if any(map(narrower.is_concerned, block.instructions)):
            old, block.instructions = block.instructions, []
            for i in old:
                changed |= narrower.is_concerned(i) and narrower.narrow(i, block)
                block.instructions.append(i)
    return changed


class _Narrower:
    def __init__(self, types: TypeTable, shapes: ShapeInfo) -> None:
        self.types = types
        self.shapes = shapes
        self.narrow_type, self.wide = types.int(32), types.int(64)

    def is_concerned(self, i: Instruction) -> bool:
        """Whether an instruction compares lanes' integers of 64 bits."""
        if i.op not in _ORDERS and i.op not in _EQUALITY:
            return False
        return i.operands[0].type is self.wide and self.shapes.stride(i) is VARYING

    def narrow(self, i: Instruction, block: Block) -> bool:
        """Makes a comparison one of 32 bits together with a condition that is the same in all lanes. What
        these need goes to the end of the block."""
        a, b = i.operands
        op = i.op
        if self.shapes.stride(b) != UNIFORM:
            a, b, op = b, a, SWAPPED[op]
        if self.shapes.stride(b) != UNIFORM:
            return False
        added: list[tuple[Op, Value]] = []
        narrow = self.summand(a, added)
        if narrow is None or not added:
            return False
        if op in _ORDERS and self.bound_of([b, *(value for _, value in added)]) > _FAR:
            return False
        made = len(block.instructions)
        is_at_most, more = _ORDERS.get(op, (True, 0))
        limit = self.sum(block, b, more)
        for sum_, value in added:
            inverse = Op.ISub if sum_ is Op.IAdd else Op.IAdd
            limit = append(block, inverse, self.wide, [limit, value])
        if op in _EQUALITY:
            number = append(block, Op.UConvert, self.narrow_type, [limit])
            again = append(block, Op.SConvert, self.wide, [number])
            known = append(block, op, i.type, [limit, again])
            joined = Op.LogicalAnd if op is Op.IEqual else Op.LogicalOr
        else:
            most = self.types.integer(64, _MOST)
            bounded = append(block, Op.ExtInst, self.wide, ["OpenCL.std", Std.s_min, limit, most])
            number = append(block, Op.UConvert, self.narrow_type, [bounded])
            test = Op.SGreaterThanEqual if is_at_most else Op.SLessThan
            known = append(block, test, i.type, [limit, self.types.integer(64, _LEAST)])
            op = Op.SLessThanEqual if is_at_most else Op.SGreaterThan
            joined = Op.LogicalAnd if is_at_most else Op.LogicalOr
        compared = append(block, op, i.type, [narrow, number])
        for helper in block.instructions[made:]:
            helper.line = i.line
        i.op, i.operands = joined, [known, compared]
        return True

    def sum(self, block: Block, value: Value, number: int) -> Value:
        """A value and a number, at the end of a block if it is an instruction."""
        if isinstance(value, Constant):
            return self.types.integer(64, signed_value(value) + number)
        if not number:
            return value
        return append(block, Op.IAdd, self.wide, [value, self.types.integer(64, number)])

    def summand(self, value: Value, added: list[tuple[Op, Value]]) -> Value | None:
        """The x of sext(x) + u + ...; added: what is the same in all lanes. Not an id, which is compared once
        for all lanes where guards have versions."""
        while isinstance(value, Instruction) and len(added) < _DEPTH:
            if value.op is Op.SConvert:
                x = value.operands[0]
                return x if x.type is self.narrow_type and self.shapes.stride(value) is VARYING else None
            if value.op not in (Op.IAdd, Op.ISub) or Decoration.NoSignedWrap not in value.decorations:
                return None
            a, b = value.operands
            if value.op is Op.IAdd and self.shapes.stride(a) == UNIFORM:
                a, b = b, a
            if self.shapes.stride(b) != UNIFORM or self.shapes.stride(a) == UNIFORM:
                return None
            added.append((value.op, b))
            value = a
        return None

    def bound(self, value: Value, depth: int = 0) -> float:
        """How far an integer of 64 bits may be from 0, as far as that is known."""
        if isinstance(value, Constant):
            return float(abs(signed_value(value)))
        if not isinstance(value, Instruction) or depth == _DEPTH:
            return math.inf
        if value.op in (Op.SConvert, Op.UConvert):
            return math.ldexp(1, value.operands[0].type.width)
        if value.op in (Op.IAdd, Op.ISub):
            return self.bound_of(value.operands, depth + 1)
        if value.op is Op.Phi:
            return _COUNTED + self.bound_of(
                [o for o in value.operands[::2] if not _counts(o, value)], depth + 1
            )
        return math.inf

    def bound_of(self, values: Iterable[Value], depth: int = 0) -> float:
        """The same of sums of values."""
        return sum(self.bound(value, depth) for value in values)


def _counts(value: Value, phi: Instruction) -> bool:
    """Whether a value is a phi and a small number."""
    if not isinstance(value, Instruction) or value.op is not Op.IAdd or value.operands[0] is not phi:
        return False
    step = value.operands[1]
    return isinstance(step, Constant) and abs(signed_value(step)) <= _SLOW
