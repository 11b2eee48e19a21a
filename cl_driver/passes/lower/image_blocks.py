"""Blocks of images that a sub-group reads or writes together (SPV_INTEL_subgroups): component k of a
work-item's value lies in the k-th row from the coordinate on, as many values to the right as the work-item's
number in its sub-group says. Calls of the builtin library (builtins/cl/image/block.cl), one for each row.
"""

from __future__ import annotations

from ...fast_typing import Protocol
from ...spirv.enums import BuiltIn, Op, StorageClass
from ...spirv.module import Instruction, Kind, Operand, Type, Value, Variable
from ...spirv.types import TypeTable


class Pixels(Protocol):
    """An image of which the library's arguments are known."""

    @property
    def shared(self) -> bool:
        """Whether the kernel may write what it reads."""
        ...

    def pixels(self) -> list[Value]:
        """PIXELS of builtins/cl/image/image.h."""
        ...


class Lowering(Protocol):
    """What images.py rewrites a function with."""

    types: TypeTable

    def image(self, value: Value) -> Pixels:
        """What is known of an image."""
        ...

    def emit(self, op: Op, type_: Type, operands: list[Operand]) -> Instruction:
        """A new instruction."""
        ...

    def call(self, name: str, arguments: list[Value], is_decided: bool) -> Instruction:
        """A call of the library."""
        ...


def read(lowering: Lowering, i: Instruction) -> Value:
    """The value of OpSubgroupImageBlockReadINTEL."""
    element, count = _components(i.type)
    space = "global_" if lowering.image(i.operands[0]).shared else ""
    *start, lane = _arguments(lowering, i)
    rows: list[Value] = [
        lowering.call(
            f"{space}block_read_u{element.width}", [*start, lowering.types.integer(32, k), lane], True
        )
        for k in range(count)
    ]
    return rows[0] if count == 1 else lowering.emit(Op.CompositeConstruct, i.type, [*rows])


def write(lowering: Lowering, i: Instruction) -> None:
    """OpSubgroupImageBlockWriteINTEL."""
    data = i.operands[2]
    element, count = _components(data.type)
    *start, lane = _arguments(lowering, i)
    for k in range(count):
        value = data if count == 1 else lowering.emit(Op.CompositeExtract, element, [data, k])
        arguments = [*start, lowering.types.integer(32, k), lane, value]
        lowering.call(f"block_write_u{element.width}", arguments, True)


def _components(type_: Type) -> tuple[Type, int]:
    return (type_.element, type_.count) if type_.kind is Kind.VECTOR else (type_, 1)


def _arguments(lowering: Lowering, i: Instruction) -> list[Value]:
    """What the library's functions have in common, the number of the row left out."""
    data, row_pitch, _, size, _, _, element = lowering.image(i.operands[0]).pixels()
    return [data, row_pitch, size, element, i.operands[1], _lane(lowering)]


def _lane(lowering: Lowering) -> Value:
    builtin, word = BuiltIn.SubgroupLocalInvocationId, lowering.types.int(32)
    pointer = lowering.types.pointer(StorageClass.Input, word)
    variable = Variable(pointer, name=f"__spirv_BuiltIn{builtin.name}")
    variable.builtin = builtin
    return lowering.emit(Op.Load, word, [variable])
