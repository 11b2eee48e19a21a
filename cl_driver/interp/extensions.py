"""What the instructions of extensions mean; see core.py."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from ..passes.ir.ops import PassOp
from ..spirv.enums import Op
from ..spirv.module import Instruction, Kind
from . import numbers as n
from .core import each, rule, scalar_of
from .memory import Datum

if TYPE_CHECKING:
    from .machine import Machine

_BFLOAT_BITS = 8  # of the significand, the hidden one among them


def _to_bfloat16(value: float) -> int:
    """The bits of the nearest bfloat16, ties to even."""
    bits = n.float_to_bits(value, 32)
    if math.isnan(value):
        return bits >> 16 | 0x40
    if math.isinf(value) or value == 0:
        return bits >> 16
    exponent = max(math.frexp(value)[1], -125)
    unit = Fraction(2) ** (exponent - _BFLOAT_BITS)
    rounded = float(round(Fraction(value) / unit) * unit)
    if abs(rounded) >= 2.0**128:
        rounded = math.inf
    return n.float_to_bits(math.copysign(rounded, value), 32) >> 16


@rule(Op.ConvertFToBF16INTEL)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return each(_to_bfloat16, instruction.type, *operands)


@rule(Op.ConvertBF16ToFINTEL)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return each(lambda bits: n.float_from_bits(bits << 16, 32), instruction.type, *operands)


_LEAST_NORMAL = {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}


@rule(PassOp.FlushDenormals)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    least = _LEAST_NORMAL[scalar_of(instruction.type).width]
    return each(lambda v: math.copysign(0.0, v) if abs(v) < least else v, instruction.type, *operands)


@rule(Op.ReadClockKHR)
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    machine.clock += 1
    return machine.clock if instruction.type.kind is Kind.INT else (machine.clock, 0)
