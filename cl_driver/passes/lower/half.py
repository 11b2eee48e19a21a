"""Arithmetic on half by way of float: operands are extended, each result is rounded.

For + - * / and the square root that is the correctly rounded result, also a subnormal one, since float has
2 * 11 + 2 bits (Figueroa, *When is double rounding innocuous?*, 1995); a CPU with arithmetic on half does
these by itself. All other functions are those of float: their errors vanish in the last rounding. fma stays:
the code generator rounds it to odd in between.

What only moves or tests bits stays, and so do conversions, for which codegen has whole instructions.
"""

from __future__ import annotations

import struct

from ...spirv.enums import Decoration, FPRoundingMode, Op, OpenCLStd, StorageClass
from ...spirv.module import (
    NO_DECORATIONS,
    Block,
    Constant,
    Function,
    Instruction,
    Kind,
    MemoryAccess,
    Operand,
    Type,
    Value,
)
from ...spirv.types import TypeTable
from ..ir.instructions import append, clone_instruction
from ..ir.layout import alignment_of

_COMPARISONS = {
    op for op in Op if Op.Ordered <= op <= Op.Unordered or Op.FOrdEqual <= op <= Op.FUnordGreaterThanEqual
}
_BASIC = {Op.FAdd, Op.FSub, Op.FMul, Op.FDiv, Op.VectorTimesScalar, Op.LessOrGreater, *_COMPARISONS}
_BASIC |= {Op.IsNan, Op.IsInf, Op.IsFinite}
_ARITHMETIC = _BASIC | {Op.FRem, Op.FMod, Op.Dot}

_Std = OpenCLStd
# OpenCL.std instructions that codegen/ makes of halves themselves, and those of CPUs with half arithmetic.
_KEPT = {_Std.fabs, _Std.copysign, _Std.nan, _Std.fma, _Std.select, _Std.bitselect}
_KEPT |= {number for number in _Std if _Std.vloadn <= number <= _Std.prefetch}
_NATIVE = {_Std.mad, _Std.sqrt, _Std.ceil, _Std.floor, _Std.rint, _Std.trunc, _Std.fmax, _Std.fmin}

_POINTER_TO_HALF = (_Std.fract, _Std.modf, _Std.sincos)  # whose second result is a half
_BELOW_ONE = 0x3F7FE000  # the largest half below 1, as a float


def promote_halves(function: Function, types: TypeTable, native: bool) -> None:
    """native: the CPU has half arithmetic."""
    _Promotion(function, types, native).run()


class _Promotion:
    def __init__(self, function: Function, types: TypeTable, native: bool) -> None:
        self.function = function
        self.types = types
        self.half = types.float(16)
        self.float = types.float(32)
        self.instructions = _ARITHMETIC - _BASIC if native else _ARITHMETIC
        self.kept = _KEPT | _NATIVE if native else _KEPT
        self.variables: list[Instruction] = []

    def run(self) -> None:
        for block in self.function.blocks:
            if any(map(self.concerns, block.instructions)):
                old, block.instructions = block.instructions, []
                self.extended: dict[Value, Value] = {}  # halves to floats, within the block
                for instruction in old:
                    if self.concerns(instruction):
                        self.promote(instruction)
                    else:
                        block.instructions.append(instruction)
        self.function.blocks[0].instructions[:0] = self.variables

    def concerns(self, instruction: Instruction) -> bool:
        op, operands = instruction.op, instruction.operands
        if op is Op.ExtInst:
            return (
                operands[1] not in self.kept
                and len(operands) > 2
                and isinstance(operands[2], Value)
                and self.is_half(operands[2].type)
            )
        return op in self.instructions and self.is_half(operands[0].type)

    def is_half(self, type_: Type) -> bool:
        return type_ is self.half or (type_.kind is Kind.VECTOR and type_.element is self.half)

    def widened(self, type_: Type) -> Type:
        return self.types.vector(self.float, type_.count) if type_.kind is Kind.VECTOR else self.float

    def promote(self, instruction: Instruction) -> None:
        block = instruction.block
        special = _SPECIAL.get(instruction.operands[1]) if instruction.op is Op.ExtInst else None
        if special is not None:
            special(self, block, instruction)
            return
        operands = [self.extend(block, o) for o in instruction.operands]
        if not self.is_half(instruction.type):
            instruction.operands = operands
            block.instructions.append(instruction)
            return
        wide = clone_instruction(instruction, operands, block)
        wide.type = self.widened(instruction.type)
        second = None
        if instruction.op is Op.ExtInst and instruction.operands[1] in _POINTER_TO_HALF:
            second = wide.operands[-1] = self.variable(wide.type)
        block.instructions.append(wide)
        if second is not None:
            self.store(block, instruction, second)
            if instruction.operands[1] is _Std.fract:
                wide = self.below_one(block, wide)
        # The instruction itself becomes the rounding, so that its users need no change.
        instruction.op, instruction.operands, instruction.decorations = Op.FConvert, [wide], NO_DECORATIONS
        block.instructions.append(instruction)

    def next_after(self, block: Block, instruction: Instruction) -> None:
        """nextafter: a step in float towards y, rounded in the same direction, is one to the next half."""
        x, y = (self.extend(block, o) for o in instruction.operands[2:])
        step = append(block, Op.ExtInst, x.type, [*instruction.operands[:2], x, y])
        ways = []
        for mode in (FPRoundingMode.RTP, FPRoundingMode.RTN):
            ways.append(append(block, Op.FConvert, instruction.type, [step]))
            ways[-1].decorations = {Decoration.FPRoundingMode: (int(mode),)}
        up = append(block, Op.FOrdGreaterThan, self.bools(x.type), [y, x])
        instruction.op, instruction.operands = Op.Select, [up, *ways]
        block.instructions.append(instruction)

    def multiply_add(self, block: Block, instruction: Instruction) -> None:
        """mad: product and sum, each rounded."""
        a, b, c = instruction.operands[2:]
        product = Instruction(Op.FMul, instruction.type, [a, b], block)
        product.decorations = instruction.decorations
        self.promote(product)
        instruction.op, instruction.operands = Op.FAdd, [product, c]
        self.promote(instruction)

    def extremum(self, block: Block, instruction: Instruction) -> None:
        """fmax, fmin, fclamp: of a NaN and a number the number. By selection, since LLVM would narrow
        llvm.maxnum of extended halves and then call fmaxf."""
        number, x, y, *limit = instruction.operands[1:]
        greater = Op.FOrdGreaterThan if number is not _Std.fmin else Op.FOrdLessThan
        instruction.op, instruction.operands = Op.Select, self.number(block, greater, x, y)
        if limit:
            first = append(block, Op.Select, instruction.type, instruction.operands)
            instruction.operands = self.number(block, Op.FOrdLessThan, first, *limit)
        block.instructions.append(instruction)

    def number(self, block: Block, comparison: Op, x: Value, y: Value) -> list[Value]:
        """The operands of OpSelect: x if it compares so with y, or y is NaN, else y."""
        a, b = self.extend(block, x), self.extend(block, y)
        bools = self.bools(a.type)
        chosen = append(block, comparison, bools, [a, b])
        only = append(block, Op.Unordered, bools, [b, b])
        return [append(block, Op.LogicalOr, bools, [chosen, only]), x, y]

    def bools(self, type_: Type) -> Type:
        """The type of a comparison."""
        bools = self.types.bool()
        return self.types.vector(bools, type_.count) if type_.kind is Kind.VECTOR else bools

    def extend(self, block: Block, value: Operand) -> Operand:
        """A half as a float; everything else as it is."""
        if not isinstance(value, Value) or value.type is None or not self.is_half(value.type):
            return value
        found = self.extended.get(value)
        if found is None:
            if isinstance(value, Constant):
                found = self.constant(value)
            else:
                found = append(block, Op.FConvert, self.widened(value.type), [value])
            self.extended[value] = found
        return found

    def constant(self, value: Constant) -> Constant:
        type_ = self.widened(value.type)
        if value.value is None:
            return self.types.null(type_)
        if value.type.kind is Kind.VECTOR:
            components = tuple(
                self.constant(c) if type(c) is Constant else self.types.null(self.float) for c in value.value
            )
            return self.types.constant(type_, components)
        number = struct.unpack("<e", struct.pack("<H", value.value))[0]
        return self.types.constant(type_, struct.unpack("<I", struct.pack("<f", number))[0])

    def variable(self, type_: Type) -> Instruction:
        """Room for a second result."""
        pointer = self.types.pointer(StorageClass.Function, type_)
        variable = Instruction(Op.Variable, pointer, [StorageClass.Function], self.function.blocks[0])
        self.variables.append(variable)
        return variable

    def store(self, block: Block, instruction: Instruction, variable: Instruction) -> None:
        """The second result, rounded, through the program's pointer."""
        second = append(block, Op.Load, variable.type.element, [variable], MemoryAccess())
        second = append(block, Op.FConvert, instruction.type, [second])
        pointer = instruction.operands[-1]
        if pointer.type.element is not second.type:
            wanted = self.types.pointer(pointer.type.storage, second.type)
            pointer = append(block, Op.Bitcast, wanted, [pointer])
        append(block, Op.Store, None, [pointer, second], MemoryAccess(alignment_of(second.type)))

    def below_one(self, block: Block, fraction: Instruction) -> Instruction:
        """fract's float result, which might round to 1 as a half, limited to the largest half below."""
        limit = self.types.constant(self.float, _BELOW_ONE)
        if fraction.type.kind is Kind.VECTOR:
            limit = self.types.constant(fraction.type, (limit,) * fraction.type.count)
        above = append(block, Op.FOrdGreaterThan, self.bools(fraction.type), [fraction, limit])
        return append(block, Op.Select, fraction.type, [above, limit, fraction])


_SPECIAL = dict.fromkeys((_Std.fmax, _Std.fmin, _Std.fclamp), _Promotion.extremum)
_SPECIAL[_Std.mad] = _Promotion.multiply_add
_SPECIAL[_Std.nextafter] = _Promotion.next_after
