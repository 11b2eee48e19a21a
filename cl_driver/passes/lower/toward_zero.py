"""Execution mode RoundingModeRTZ: arithmetic and conversions of a width round toward zero.

The CPU's own mode stays what it is: library code around a program's instructions counts on it, and LLVM on it
not changing. Arithmetic is done in double, where the builtin library truncates what is not exact, and
truncated once more to the type; conversions get the FPRoundingMode that they lack. What has a limit of error
and no rounding of its own (sin, say) stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from ...spirv.enums import Decoration, FPRoundingMode, Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import NO_DECORATIONS, Block, Function, Instruction, Kind, Operand, Type, Value
from ...spirv.types import TypeTable
from ..ir.instructions import append
from ..ir.library import Library
from ..ir.plan import PlanError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

_CONVERSIONS = (Op.FConvert, Op.ConvertSToF, Op.ConvertUToF)
_RTZ = {Decoration.FPRoundingMode: (int(FPRoundingMode.RTZ),)}
_STORES = {
    Std.vstore_half: Std.vstore_half_r,
    Std.vstore_halfn: Std.vstore_halfn_r,
    Std.vstorea_halfn: Std.vstorea_halfn_r,
}


def round_toward_zero(
    function: Function, types: TypeTable, widths: Container[int], library: Library | None
) -> bool:
    """Changes a function in place. True if it calls library functions now, for the caller to inline."""
    return _Rounding(types, widths, library).run(function)


# What computes one scalar: in a block, of a width in bits, of operands.
_Scalar: TypeAlias = Callable[..., Value]


class _Rounding:
    def __init__(self, types: TypeTable, widths: Container[int], library: Library | None) -> None:
        self.types = types
        self.widths = widths
        self.library = library
        self.double = types.float(64)
        self.calls = False

    def run(self, function: Function) -> bool:
        for block in function.blocks:
            old, block.instructions = block.instructions, []
            for instruction in old:
                self.rewrite(instruction)
                block.instructions.append(instruction)
        return self.calls

    def rewrite(self, i: Instruction) -> None:
        """Puts what an instruction needs before it; the instruction itself becomes the result."""
        if i.op is Op.ExtInst and i.operands[1] in _STORES:
            if 16 in self.widths:
                i.operands = [i.operands[0], _STORES[i.operands[1]], *i.operands[2:], FPRoundingMode.RTZ]
            return
        if i.type is None or not self.is_rounded(i.type):
            return
        if i.op in _CONVERSIONS:
            if Decoration.FPRoundingMode not in i.decorations:
                i.decorations = {**i.decorations, **_RTZ}
            return
        compute = _EXTENDED.get(i.operands[1]) if i.op is Op.ExtInst else _ARITHMETIC.get(i.op)
        if compute is None:
            return
        operands = i.operands[2:] if i.op is Op.ExtInst else i.operands
        if i.op is Op.Dot:
            i.operands = [self.dot(i, *operands)]
        elif i.type.kind is Kind.VECTOR:
            i.operands = [
                self.compute(i, compute, [self.component(i.block, o, k) for o in operands])
                for k in range(i.type.count)
            ]
        else:
            i.operands = [self.compute(i, compute, operands)]
        i.op = Op.CompositeConstruct if i.type.kind is Kind.VECTOR else Op.CopyObject
        i.decorations = NO_DECORATIONS

    def is_rounded(self, type_: Type) -> bool:
        scalar = type_.element if type_.kind is Kind.VECTOR else type_
        return scalar.kind is Kind.FLOAT and scalar.width in self.widths

    def component(self, block: Block, value: Value, k: int) -> Value:
        if value.type.kind is not Kind.VECTOR:
            return value
        return append(block, Op.CompositeExtract, value.type.element, [value, k])

    def compute(self, i: Instruction, compute: _Scalar, operands: list[Value]) -> Value:
        """One scalar, of the type of i's components."""
        scalar = i.type.element if i.type.kind is Kind.VECTOR else i.type
        block = i.block
        if scalar is self.double:
            return compute(self, block, 64, *operands)
        wide = [append(block, Op.FConvert, self.double, [o]) for o in operands]
        result = append(block, Op.FConvert, scalar, [compute(self, block, scalar.width, *wide)])
        result.decorations = _RTZ
        return result

    def dot(self, i: Instruction, a: Value, b: Value) -> Value:
        total = None
        for k in range(a.type.count):
            factors = [self.component(i.block, o, k) for o in (a, b)]
            product = self.compute(i, _Rounding.multiply, factors)
            total = product if total is None else self.compute(i, _Rounding.add, [total, product])
        assert total is not None  # vectors have components
        return total

    def call(self, block: Block, name: str, *operands: Value) -> Instruction:
        callee = self.library.function(f"__cld_rtz_{name}_f64") if self.library is not None else None
        if callee is None:
            raise PlanError("RoundingModeRTZ needs the builtin library")
        self.calls = True
        return append(block, Op.FunctionCall, self.double, [callee, *operands])

    # Operands and results are doubles; width: of what they were and will be. Products of floats are exact,
    # and quotients and square roots of them never so close to a float that rounding them reaches it.

    def add(self, block: Block, width: int, a: Value, b: Value) -> Instruction:
        return self.call(block, "add", a, b)

    def subtract(self, block: Block, width: int, a: Value, b: Value) -> Instruction:
        return self.add(block, width, a, append(block, Op.FNegate, self.double, [b]))

    def multiply(self, block: Block, width: int, a: Value, b: Value) -> Instruction:
        return self.call(block, "mul", a, b) if width == 64 else self.plain(block, Op.FMul, a, b)

    def divide(self, block: Block, width: int, a: Value, b: Value) -> Instruction:
        return self.call(block, "div", a, b) if width == 64 else self.plain(block, Op.FDiv, a, b)

    def modulo(self, block: Block, width: int, a: Value, b: Value) -> Instruction:
        """OpFMod: the exact remainder, and b more where their signs differ."""
        rest = self.plain(block, Op.FRem, a, b)
        zero, bools = self.types.null(self.double), self.types.bool()
        signs = [append(block, Op.FOrdLessThan, bools, [o, zero]) for o in (rest, b)]
        differ = append(block, Op.LogicalNotEqual, bools, signs)
        some = append(block, Op.FOrdNotEqual, bools, [rest, zero])
        both = append(block, Op.LogicalAnd, bools, [differ, some])
        moved = self.add(block, width, rest, b)
        return append(block, Op.Select, self.double, [both, moved, self.plain(block, Op.FMod, a, b)])

    def fused(self, block: Block, width: int, a: Value, b: Value, c: Value) -> Instruction:
        if width == 64:
            return self.call(block, "fma", a, b, c)
        return self.add(block, width, self.plain(block, Op.FMul, a, b), c)

    def root(self, block: Block, width: int, a: Value) -> Instruction:
        if width == 64:
            return self.call(block, "sqrt", a)
        return self.plain(block, Op.ExtInst, "OpenCL.std", Std.sqrt, a)

    def plain(self, block: Block, op: Op, *operands: Operand) -> Instruction:
        """No flag may make it less exact."""
        instruction = append(block, op, self.double, list(operands))
        instruction.decorations = {Decoration.FPFastMathMode: (0,)}
        return instruction


_ARITHMETIC: dict[Op, _Scalar] = {
    Op.FAdd: _Rounding.add,
    Op.FSub: _Rounding.subtract,
    Op.FMul: _Rounding.multiply,
    Op.FDiv: _Rounding.divide,
    Op.FMod: _Rounding.modulo,
    Op.VectorTimesScalar: _Rounding.multiply,
    Op.Dot: _Rounding.multiply,
}
_EXTENDED: dict[Std, _Scalar] = {Std.fma: _Rounding.fused, Std.mad: _Rounding.fused, Std.sqrt: _Rounding.root}
