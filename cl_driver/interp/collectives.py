"""Collectives of a work-group or sub-group, from the operands of all their work-items."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..spirv.enums import Op
from ..spirv.module import Instruction, Kind, Type
from . import numbers as n
from .core import scalar_of
from .memory import Datum

# What an instruction of the group or sub-group combines with.
_OPERATIONS: dict[str, tuple[Op, Op]] = {
    "IAdd": (Op.GroupIAdd, Op.GroupNonUniformIAdd),
    "FAdd": (Op.GroupFAdd, Op.GroupNonUniformFAdd),
    "IMul": (Op.GroupIMulKHR, Op.GroupNonUniformIMul),
    "FMul": (Op.GroupFMulKHR, Op.GroupNonUniformFMul),
    "SMin": (Op.GroupSMin, Op.GroupNonUniformSMin),
    "UMin": (Op.GroupUMin, Op.GroupNonUniformUMin),
    "FMin": (Op.GroupFMin, Op.GroupNonUniformFMin),
    "SMax": (Op.GroupSMax, Op.GroupNonUniformSMax),
    "UMax": (Op.GroupUMax, Op.GroupNonUniformUMax),
    "FMax": (Op.GroupFMax, Op.GroupNonUniformFMax),
    "BitwiseAnd": (Op.GroupBitwiseAndKHR, Op.GroupNonUniformBitwiseAnd),
    "BitwiseOr": (Op.GroupBitwiseOrKHR, Op.GroupNonUniformBitwiseOr),
    "BitwiseXor": (Op.GroupBitwiseXorKHR, Op.GroupNonUniformBitwiseXor),
    "LogicalAnd": (Op.GroupLogicalAndKHR, Op.GroupNonUniformLogicalAnd),
    "LogicalOr": (Op.GroupLogicalOrKHR, Op.GroupNonUniformLogicalOr),
    "LogicalXor": (Op.GroupLogicalXorKHR, Op.GroupNonUniformLogicalXor),
}
_OPERATION = {op: name for name, ops in _OPERATIONS.items() for op in ops}


def combine_collective(instruction: Instruction, all_operands: list[list[Datum]]) -> list[Datum]:
    """The results of a work-group collective for every work-item, in order of linear ids."""
    op = instruction.op
    if op is Op.GroupAll:
        return [all(o[1] for o in all_operands)] * len(all_operands)
    if op is Op.GroupAny:
        return [any(o[1] for o in all_operands)] * len(all_operands)
    operation = int(all_operands[0][1])
    name = _OPERATION[op]
    type_ = scalar_of(instruction.type)
    combine = _COMBINE[name]

    def both(a: Datum, b: Datum) -> Datum:
        if type_.kind is Kind.FLOAT:
            return n.to_width(combine(a, b), type_.width)
        if type_.kind is Kind.BOOL:
            return combine(a, b)
        if name in ("SMin", "SMax"):
            a, b = n.signed(a, type_.width), n.signed(b, type_.width)
        return n.mask(combine(a, b), type_.width)

    values = [o[2] for o in all_operands]
    running = _identity(name, type_)
    results = []
    for value in values:
        before = running
        running = both(running, value)
        results.append(before if operation == 2 else running)
    return results if operation in (1, 2) else [running] * len(values)


def _identity(name: str, type_: Type) -> Datum:
    """What an exclusive scan begins with (SPIR-V 1.6, OpGroupIAdd and those that follow it).

    Written without the table of passes/: what is wrong there must show.
    """
    if type_.kind is Kind.BOOL:
        return name == "LogicalAnd"
    if type_.kind is Kind.FLOAT:
        return {"FAdd": 0.0, "FMul": 1.0, "FMin": math.inf, "FMax": -math.inf}[name]
    most = (1 << type_.width) - 1  # integers are held without a sign
    lowest = most // 2 + 1
    return {
        "IAdd": 0, "IMul": 1, "UMin": most, "UMax": 0, "SMin": lowest - 1, "SMax": lowest,
        "BitwiseAnd": most, "BitwiseOr": 0, "BitwiseXor": 0,
    }[name]  # fmt: skip


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "IAdd": lambda a, b: a + b, "FAdd": lambda a, b: a + b, "FMin": min, "UMin": min, "SMin": min,
    "FMax": max, "UMax": max, "SMax": max, "IMul": lambda a, b: a * b, "FMul": lambda a, b: a * b,
    "BitwiseAnd": lambda a, b: a & b, "BitwiseOr": lambda a, b: a | b, "BitwiseXor": lambda a, b: a ^ b,
    "LogicalAnd": lambda a, b: a and b, "LogicalOr": lambda a, b: a or b, "LogicalXor": lambda a, b: a != b,
}  # fmt: skip
