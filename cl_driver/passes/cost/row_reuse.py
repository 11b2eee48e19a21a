"""How much of what several rows of work-items do is done once for all (vectorize/coarsening_cse.py),
estimated before there are
parts: values are numbered for each row, those that come to the same get the same number."""

from __future__ import annotations

from ...fast_typing import Any
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Constant, Function, Instruction, Kind
from ..ir.instructions import PURE, STAY, is_arithmetic
from ..ir.ops import PassOp
from ..vectorize.coarsening_cse import CONVERSIONS, reads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Integers: the number of a value, and a constant more than that.
_Sums: TypeAlias = dict[Instruction, tuple[Any, int]]


def share_of_rows(
    function: Function, weights: dict[Instruction, float], row_ids: set[Instruction], count: int
) -> float:
    """The weight of what `count` rows do together, as a share of what they do one by one.

    weights: of instructions that have one; row_ids: ids of work-items that are one more in each row.
    """
    numbers: dict[tuple[Any, ...], int] = {}
    total = distinct = 0.0
    for row in range(count):
        mine: dict[Instruction, int] = {}
        sums: _Sums = {}
        for block in function.blocks:
            for i in block.instructions:
                key = _key(i, row, mine, sums, row_ids)
                before = len(numbers)
                mine[i] = numbers.setdefault(key, before)
                weight = weights.get(i, 0.0)
                total += weight
                if len(numbers) > before:
                    distinct += weight
    return distinct / total if total else 1.0


def _key(
    i: Instruction, row: int, mine: dict[Instruction, int], sums: _Sums, row_ids: set[Instruction]
) -> tuple[Any, ...]:
    if i in row_ids:
        sums[i] = "row", row
    elif i.op is Op.IAdd and i.type.kind is Kind.INT:
        a, b = i.operands if type(i.operands[1]) is Constant else i.operands[::-1]
        if type(b) is Constant:
            base, more = sums.get(a, (mine.get(a, a), 0))
            sums[i] = base, (more + (b.value or 0)) & (1 << i.type.width) - 1
    elif i.op in CONVERSIONS and i.operands[0] in sums and i.type.kind is Kind.INT:
        base, more = sums[i.operands[0]]
        sums[i] = (i.op, i.type, base), more & (1 << i.type.width) - 1
    if i in sums:
        return "sum", i.type, *sums[i]
    if i.op is PassOp.EntryMask or (i.op is Op.Load and i.operands[0].type.storage is StorageClass.Input):
        return (i,)  # ids of other dimensions
    if i.op is Op.Phi:  # counters are the same for all rows, but what is summed up is not
        return (i,) if i.type.kind is Kind.INT else (i, row)
    if reads(i) or (i.op in PURE and i.op not in STAY) or is_arithmetic(i):
        return i.op, i.type, *(mine.get(o, o) for o in i.operands)
    return i, row
