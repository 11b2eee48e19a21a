"""Bounds of floating-point numbers that follow from local ids and constants, for each work-item.

Code may calculate them in several ways (divisions as products with a reciprocal, products and divisions in
another order), which differ in their last bits. So numbers are intervals, wider than any rounding, and only
operations are followed that keep relative errors small. Comparisons are decided where intervals do not meet:
whether arguments of a sine are so large that it takes a slow way, for all work-items of a group.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Constant, Instruction, Kind, Value
from ..ir.fold import signed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Range: TypeAlias = tuple[float, float]
_Ranges: TypeAlias = tuple[Range, ...]

# By bits of the type: how its bits are unpacked, the relative width of a rounding with much to spare, the
# least number that is not flushed to zero, and the largest that is looked at.
_TYPES = {32: ("<f", 2.0**-16, 2.0**-126, 2.0**100), 64: ("<d", 2.0**-44, 2.0**-1022, 2.0**900)}

# Each with what it is of two ranges of which the first is below the second, and of the reverse.
COMPARISONS: dict[Op, tuple[bool, bool]] = {
    Op.FOrdLessThan: (True, False), Op.FUnordLessThan: (True, False),
    Op.FOrdLessThanEqual: (True, False), Op.FUnordLessThanEqual: (True, False),
    Op.FOrdGreaterThan: (False, True), Op.FUnordGreaterThan: (False, True),
    Op.FOrdGreaterThanEqual: (False, True), Op.FUnordGreaterThanEqual: (False, True),
    Op.FOrdEqual: (False, False), Op.FUnordEqual: (False, False),
    Op.FOrdNotEqual: (True, True), Op.FUnordNotEqual: (True, True),
}  # fmt: skip


class FloatRanges:
    """numbers(value): what an integer is for each of `count` work-items, or None."""

    def __init__(self, numbers: Callable[[Value], tuple[int, ...] | None], count: int) -> None:
        self._numbers = numbers
        self._count = count
        self._found: dict[Instruction, _Ranges | None] = {}

    def compare(self, op: Op, a: Value, b: Value) -> tuple[bool, ...] | None:
        """A comparison for each work-item; None where it is not known for all."""
        first, second = self.of(a), self.of(b)
        if first is None or second is None:
            return None
        below, above = COMPARISONS[op]
        results = []
        for (a_low, a_high), (b_low, b_high) in zip(first, second, strict=True):
            if a_low <= b_high and b_low <= a_high:
                return None
            results.append(below if a_high < b_low else above)
        return tuple(results)

    def of(self, value: Value) -> _Ranges | None:
        """The ranges of a scalar; None where they are not known."""
        if value.type.kind is not Kind.FLOAT or value.type.width not in _TYPES:
            return None
        if isinstance(value, Constant):
            code, _, _, most = _TYPES[value.type.width]
            (number,) = struct.unpack(code, (value.value or 0).to_bytes(value.type.width // 8, "little"))
            return ((number, number),) * self._count if abs(number) < most else None
        if not isinstance(value, Instruction):
            return None
        if value not in self._found:
            self._found[value] = None
            self._found[value] = self._compute(value)
        return self._found[value]

    def _compute(self, i: Instruction) -> _Ranges | None:
        op, operands = i.op, i.operands
        if op is Op.ConvertSToF or op is Op.ConvertUToF:
            numbers, width = self._numbers(operands[0]), operands[0].type.width
            if numbers is None or operands[0].type.kind is not Kind.INT:
                return None
            exact = [signed(n, width) if op is Op.ConvertSToF else n for n in numbers]
            return _rounded([(float(n), float(n)) for n in exact], i.type.width)
        if op is Op.FNegate or (op is Op.ExtInst and operands[1] == Std.fabs):
            ranges = self.of(operands[-1])
            if ranges is None:
                return None
            negated = tuple((-high, -low) for low, high in ranges)
            if op is Op.FNegate:
                return negated
            return tuple((max(low, -high, 0.0), max(high, -low)) for low, high in ranges)
        if op is not Op.FMul and op is not Op.FDiv:
            return None
        first, second = self.of(operands[0]), self.of(operands[1])
        if first is None or second is None:
            return None
        if op is Op.FDiv:
            least = _TYPES[i.type.width][2]
            if any(low <= least and high >= -least for low, high in second):
                return None
            second = tuple((1 / high, 1 / low) for low, high in second)
        products = []
        for (a, b), (c, d) in zip(first, second, strict=True):
            corners = a * c, a * d, b * c, b * d
            products.append((min(corners), max(corners)))
        return _rounded(products, i.type.width)


def _rounded(ranges: list[Range], width: int) -> _Ranges | None:
    """Ranges with room for a rounding; None for numbers that are large."""
    _, relative, least, most = _TYPES[width]
    found = []
    for low, high in ranges:
        if not (-most < low and high < most):
            return None
        found.append((low - abs(low) * relative - least, high + abs(high) * relative + least))
    return tuple(found)
