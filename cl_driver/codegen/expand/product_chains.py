"""Chains of products that are added up, and where two of them meet.

Where sums may be reassociated, LLVM makes one chain of a sum of two: each product is added to the sum so far
by an fma, and one operation is saved. But the operations of a chain wait for one another. A kernel that adds
up products in several variables, and the variables in the end, has chains that a core works on side by side.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Instruction, Kind, Value

_LONG = 4  # operations of a chain from which on another one should not wait for it
_SUMS = frozenset((Op.FAdd, Op.FSub))
_PRODUCTS = frozenset((Op.FMul, Op.VectorTimesScalar))
_FUSED = frozenset((Std.fma, Std.mad))


def joins_chains(i: Instruction) -> bool:
    """Whether an instruction adds up the results of two long chains."""
    return i.op in _SUMS and all(_length(operand, _LONG) >= _LONG for operand in i.operands)


def _length(value: Value, most: int) -> int:
    """Operations of the longest chain that ends in a value, as far as it matters."""
    if not most or type(value) is not Instruction:
        return 0
    if value.op in _SUMS:
        return 1 + max(_length(operand, most - 1) for operand in value.operands)
    if value.op is Op.ExtInst:
        return 1 + _length(value.operands[4], most - 1) if value.operands[1] in _FUSED else 0
    if value.op is Op.CompositeExtract:
        return _length(value.operands[0], most)
    if value.op is Op.Dot:
        type_ = value.operands[0].type
        return int(type_.count) if type_.kind is Kind.VECTOR else 1
    return int(value.op in _PRODUCTS)
