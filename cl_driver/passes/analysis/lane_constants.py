"""Where groups are in lockstep (groups/lockstep.py), what follows from local ids and constants is a number
for each work-item."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...spirv.enums import BuiltIn, Op, StorageClass
from ...spirv.module import Constant, Function, Instruction, Kind, Value, Variable
from ...spirv.types import TypeTable
from ..ir.fold import COMPARE, INTEGER, LOGICAL, signed
from ..ir.instructions import ADDRESS, is_constant_int
from ..ir.layout import walk
from ..ir.ops import PassOp
from .float_ranges import COMPARISONS, FloatRanges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Vectors of an array in local memory: what lanes access in more of them is accessed one by one, which is
# faster than to shuffle so many.
MOST_SOURCES = 4

_EVALUATED = INTEGER.keys() | COMPARE.keys() | LOGICAL.keys() | {Op.Select, Op.LogicalNot}


# One for each work-item: unsigned integers, or bools.
_Numbers: TypeAlias = tuple[int, ...]


def decide_branches(function: Function, types: TypeTable, group: tuple[int, int, int]) -> None:
    """Branches that all work-items take in the same way, which is known, have a constant for a condition."""
    constants = ItemConstants(group)
    for block in function.blocks:
        terminator = block.terminator
        if terminator.op is Op.BranchConditional:
            numbers = constants.of(terminator.operands[0])
            if numbers is not None and all(numbers) == any(numbers):
                terminator.operands[0] = types.constant(types.bool(), any(numbers))


class ItemConstants:
    """The numbers of scalar values for `count` work-items, or all of the group, in the order of their linear
    local ids, from the one that first_item(instruction) says."""

    def __init__(
        self,
        group: tuple[int, int, int],
        count: int = 0,
        first_item: Callable[[Instruction], int] = lambda instruction: 0,
    ) -> None:
        self.group = group
        self.count = count or math.prod(group)
        self.first_item = first_item
        self._found: dict[Instruction, _Numbers | None] = {}
        self._ranges = FloatRanges(self.of, self.count)

    def of(self, value: Value) -> _Numbers | None:
        """The unsigned numbers, or bools, of a scalar; None where they are not known."""
        if isinstance(value, Constant):
            if value.type.kind in (Kind.INT, Kind.BOOL):
                return (value.value or 0,) * self.count
            return None
        if not isinstance(value, Instruction):
            return None
        if value not in self._found:
            self._found[value] = None
            self._found[value] = self._compute(value)
        return self._found[value]

    def local_places(self, pointer: Value) -> tuple[Value, list[int]] | None:
        """An array in local memory, and where in it an address is, in bytes, if that is known."""
        if pointer.type.storage is not StorageClass.Workgroup:
            return None
        offset = 0
        steps: list[tuple[Value, int]] = []
        while isinstance(pointer, Instruction):
            if pointer.op in ADDRESS:
                offset += walk(pointer, steps)
            elif (
                pointer.op not in (Op.CopyObject, Op.Bitcast)
                or pointer.operands[0].type.kind is not Kind.POINTER
            ):
                return None
            pointer = pointer.operands[0]
        places = [offset] * self.count
        for index, size in steps:
            known = self.of(index)
            if known is None:
                return None
            width = index.type.width
            places = [at + signed(number, width) * size for at, number in zip(places, known, strict=True)]
        return pointer, places

    def _compute(self, i: Instruction) -> _Numbers | None:
        op, operands = i.op, i.operands
        if op is PassOp.EntryMask:
            return (True,) * self.count
        if op is PassOp.AnyLane:
            numbers = self.of(operands[0])
            return None if numbers is None else (any(numbers),) * self.count
        if op is Op.Load or op is Op.CompositeExtract:
            return self._local_id(i)
        if i.type is None or i.type.kind not in (Kind.INT, Kind.BOOL):
            return None
        if op in COMPARISONS:
            return self._ranges.compare(op, *operands) if operands[0].type.kind is Kind.FLOAT else None
        if op in _EVALUATED:
            of_operands = []
            for operand in operands:
                numbers = self.of(operand)
                if numbers is None:  # most often the first one says so
                    return None
                of_operands.append(numbers)
            return self._evaluate(op, operands[0].type.width, of_operands)
        if op in (Op.UConvert, Op.SConvert) and not i.decorations:
            numbers, width = self.of(operands[0]), operands[0].type.width
            if numbers is None:
                return None
            mask = (1 << i.type.width) - 1
            return tuple((signed(a, width) if op is Op.SConvert else a) & mask for a in numbers)
        return None

    def _evaluate(self, op: Op, width: int, of_operands: list[_Numbers]) -> _Numbers | None:
        if op is Op.Select:
            return tuple(a if c else b for c, a, b in zip(*of_operands, strict=True))
        if op is Op.LogicalNot:
            return tuple(not a for a in of_operands[0])
        first, *rest = of_operands
        (second,) = rest or [first]
        if op in LOGICAL:
            return tuple(map(LOGICAL[op], first, second))
        if op in COMPARE:
            compare = COMPARE[op]
            return tuple(compare(a, b, width) for a, b in zip(first, second, strict=True))
        compute, mask = INTEGER[op], (1 << width) - 1
        results: list[int] = []
        for a, b in zip(first, second, strict=True):
            result = compute(a, b, width)
            if result is None:
                return None
            results.append(result & mask)
        return tuple(results)

    def _local_id(self, i: Instruction) -> _Numbers | None:
        """Of a load of the linear local id, or one component of the local id."""
        source, k = i.operands[0], 0
        if i.op is Op.CompositeExtract:
            if not isinstance(source, Instruction) or source.op is not Op.Load or len(i.operands) != 2:
                return None
            source, k = source.operands[0], i.operands[1]
        elif isinstance(source, Instruction) and source.op in ADDRESS and len(source.operands) == 2:
            source, index = source.operands
            if not is_constant_int(index):
                return None
            k = index.value or 0
        elif i.type.kind is not Kind.INT:
            return None
        if not isinstance(source, Variable):
            return None
        first = self.first_item(i)
        items = range(first, first + self.count)
        if source.builtin == BuiltIn.LocalInvocationIndex:
            return tuple(items)
        if source.builtin != BuiltIn.LocalInvocationId:
            return None
        nx, ny, _ = self.group
        if k == 0:
            return tuple(item % nx for item in items)
        return tuple(item // nx % ny if k == 1 else item // (nx * ny) for item in items)
