"""Numbers of the type bfloat16 (SPV_KHR_bfloat16): what computes with them does so in float.

"Conversions to or from floating-point values with the BFloat16KHR encoding first convert the source value to
IEEE754 binary32". They are rounded to the nearest even number, as OpConvertFToBF16INTEL rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...spirv.enums import Decoration, FPRoundingMode, Op
from ...spirv.errors import SpirvError
from ...spirv.module import Block, Function, Instruction, Kind, Operand, Type, Value
from ...spirv.types import TypeTable

_MOVES = frozenset((
    Op.Load, Op.Store, Op.Phi, Op.Select, Op.CopyObject, Op.CompositeExtract, Op.CompositeInsert,
    Op.CompositeConstruct, Op.VectorShuffle, Op.VectorExtractDynamic, Op.VectorInsertDynamic, Op.FunctionCall,
    Op.ReturnValue, Op.Undef, Op.Bitcast, Op.Variable,
))  # fmt: skip
_TO_FLOAT = frozenset((Op.ConvertSToF, Op.ConvertUToF))
_FROM_FLOAT = frozenset((Op.ConvertFToS, Op.ConvertFToU))


def lower_bfloat16(functions: Iterable[Function], types: TypeTable) -> None:
    """Changes functions. SpirvError for instructions that the type is not for."""
    for function in functions:
        for block in function.blocks:
            _Lowering(block, types).run()


class _Lowering:
    """The instructions of one block."""

    def __init__(self, block: Block, types: TypeTable) -> None:
        self.block = block
        self.float = types.float(32)
        self.types = types

    def run(self) -> None:
        old, self.block.instructions = self.block.instructions, []
        for i in old:
            if i.op not in _MOVES and any(map(_is_bfloat16, (i, *i.operands))):
                self.lower(i)
            self.block.instructions.append(i)

    def emit(self, i: Instruction, op: Op, type_: Type, operands: Sequence[Operand]) -> Instruction:
        """A new instruction before `i`."""
        made = Instruction(op, type_, operands, self.block)
        made.line, made.offset = i.line, i.offset
        self.block.instructions.append(made)
        return made

    def wide(self, type_: Type) -> Type:
        return self.types.vector(self.float, type_.count) if type_.kind is Kind.VECTOR else self.float

    def extended(self, i: Instruction, value: Value) -> Value:
        """The number as a float."""
        return self.emit(i, Op.ConvertBF16ToFINTEL, self.wide(value.type), [value])

    def lower(self, i: Instruction) -> None:
        mode = i.decorations.get(Decoration.FPRoundingMode)
        if mode is not None and mode[0] != FPRoundingMode.RTE:
            raise SpirvError(i.offset, f"Op{i.op.name}", "a rounding mode for bfloat16 other than RTE")
        is_result = _is_bfloat16(i)
        operands = [self.extended(i, o) if _is_bfloat16(o) else o for o in i.operands]
        wide = self.wide(i.type) if is_result else i.type
        if i.op is Op.FConvert:
            (value,) = operands
            if is_result and value.type is not wide:
                value = self.emit(i, Op.FConvert, wide, [value])
            elif not is_result and value.type is i.type:
                i.op, i.operands = Op.CopyObject, [value]
                return
            if not is_result:
                i.operands = [value]
                return
        elif i.op in _FROM_FLOAT and not is_result:
            i.operands = operands
            return
        elif i.op in _TO_FLOAT or i.op is Op.Dot:
            value = self.emit(i, i.op, wide, operands)
        else:
            raise SpirvError(i.offset, f"Op{i.op.name}", "not an instruction for numbers of type bfloat16")
        i.op, i.operands = Op.ConvertFToBF16INTEL, [value]


def _is_bfloat16(value: Operand) -> bool:
    """Whether something is such a number, or a vector of them."""
    type_ = value.type if isinstance(value, Value) else None
    if type_ is not None and type_.kind is Kind.VECTOR:
        type_ = type_.element
    return type_ is not None and type_.kind is Kind.FLOAT and bool(type_.operands)
