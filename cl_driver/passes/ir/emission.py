"""What passes on a program's instructions make new ones with."""

from __future__ import annotations

from collections.abc import Sequence

from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Instruction, Kind, Operand, Type, Value
from ...spirv.types import TypeTable


class Emission:
    """Puts instructions at the end of a block, for the one that is being lowered."""

    def __init__(self, types: TypeTable) -> None:
        self.types = types
        self.block: Block
        self.line: Instruction  # what is being lowered

    def emit(self, op: Op, type_: Type, operands: Sequence[Operand]) -> Instruction:
        """A new instruction."""
        made = Instruction(op, type_, operands, self.block)
        made.line, made.offset = self.line.line, self.line.offset
        self.block.instructions.append(made)
        return made

    def like(self, type_: Type, scalar: Type) -> Type:
        """The scalar type, or the vector of it with as many components as another type has."""
        return self.types.vector(scalar, type_.count) if type_.kind is Kind.VECTOR else scalar

    def number(self, type_: Type, bits: int) -> Constant:
        """The constant of a type, or the vector of it."""
        types = self.types
        if type_.kind is Kind.VECTOR:
            return types.constant(type_, (self.number(type_.element, bits),) * type_.count)
        return types.constant(type_, bits & (1 << type_.width) - 1)

    def with_number(self, op: Op, value: Value, bits: int) -> Instruction:
        """An operation on a value and a constant of its type."""
        return self.emit(op, value.type, [value, self.number(value.type, bits)])

    def compare(self, op: Op, value: Value, other: int) -> Instruction:
        """A comparison with a constant."""
        bool_ = self.like(value.type, self.types.bool())
        return self.emit(op, bool_, [value, self.number(value.type, other)])

    def least(self, op: Op, value: Value, bound: int) -> Instruction:
        """The value, or the bound where the value is not before it."""
        is_before = self.compare(op, value, bound)
        return self.emit(Op.Select, value.type, [is_before, value, self.number(value.type, bound)])
