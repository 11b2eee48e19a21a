"""Numbers of the type bfloat16 (SPV_KHR_bfloat16): what computes with them does so in float.

"Conversions to or from floating-point values with the BFloat16KHR encoding first convert the source value to
IEEE754 binary32". They are rounded to the nearest even number, as OpConvertFToBF16INTEL rounds.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import FPEncoding, Op
from ...spirv.module import Function, Instruction, Value
from ...spirv.types import TypeTable
from .encoded_floats import FROM_FLOAT, TO_FLOAT, EncodedFloats, lower_encoded


def lower_bfloat16(functions: Iterable[Function], types: TypeTable) -> None:
    """Changes functions. SpirvError for instructions that the type is not for."""
    lower_encoded(_Lowering, functions, types)


class _Lowering(EncodedFloats):
    ENCODINGS = frozenset((FPEncoding.BFloat16KHR,))
    NAME = "bfloat16"

    def extended(self, value: Value) -> Instruction:
        """The number as a float."""
        return self.emit(Op.ConvertBF16ToFINTEL, self.float(value.type), [value])

    def lower(self, i: Instruction) -> None:
        is_result = self.is_encoded(i)
        operands = [self.extended(o) if self.is_encoded(o) else o for o in i.operands]
        wide = self.float(i.type) if is_result else i.type
        if i.op is Op.FConvert:
            (value,) = operands
            if is_result and value.type is not wide:
                value = self.emit(Op.FConvert, wide, [value])
            elif not is_result and value.type is i.type:
                i.op, i.operands = Op.CopyObject, [value]
                return
            if not is_result:
                i.operands = [value]
                return
        elif i.op in FROM_FLOAT and not is_result:
            i.operands = operands
            return
        elif i.op in TO_FLOAT or i.op is Op.Dot:
            value = self.emit(i.op, wide, operands)
        else:
            raise self.refusal(i)
        i.op, i.operands = Op.ConvertFToBF16INTEL, [value]
