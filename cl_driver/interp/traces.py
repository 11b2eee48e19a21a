"""What the lanes of a vector have computed, compared with the shapes that the passes claim."""

from __future__ import annotations

from collections.abc import Sequence

from ..passes.ir.shapes import ShapeInfo
from ..spirv.module import Instruction, Kind, Type, Undef
from . import numbers as n
from .machine import Item
from .memory import Datum, InterpreterError


def check_traces(shapes: ShapeInfo, lanes: list[Item]) -> None:
    """Compares what the lanes that exist computed with the strides that the shape analysis claims:
    InterpreterError where they differ.

    An undefined value is 0 in all lanes here, so what may come from one is not checked for its stride.
    """
    maybe_undefined: set[Instruction] = set()
    for row in zip(*[item.trace for item in lanes if item.exists], strict=True):
        instruction = row[0][0]
        if any(other is not instruction for other, _ in row):
            places = [f"{i.op.name} {i.name} in {i.block.name}" for i, _ in row]
            raise InterpreterError(f"lanes part from one another: {places}")
        values = [value for _, value in row]
        part = shapes.part_of.get(instruction, 0)
        if part:
            existing = [item for item in lanes if item.exists]
            values = [v for v, item in zip(values, existing, strict=True) if item.parts[part - 1].exists]
            if not values:
                continue
        stride = shapes.stride(instruction)
        if instruction in shapes.private or values[0] is None:
            continue
        undefined = any(isinstance(o, Undef) or o in maybe_undefined for o in instruction.operands)
        (maybe_undefined.add if undefined else maybe_undefined.discard)(instruction)
        columns: list[Sequence[Datum]] = [values]
        claims = (stride,) if not isinstance(stride, tuple) else stride
        if isinstance(stride, tuple):
            columns = list(zip(*values, strict=True))
        for claimed, column in zip(claims, columns, strict=True):
            if undefined and claimed != 0:
                continue
            if claimed is not None and not _has_stride(column, claimed, instruction.type):
                raise InterpreterError(
                    f"{instruction.op.name} {instruction.name} in {instruction.block.name} has stride "
                    f"{claimed}, values are {column}"
                )


def _has_stride(values: Sequence[Datum], stride: int, type_: Type) -> bool:
    if stride == 0:
        return all(v == values[0] or v != v for v in values)
    if type_.kind is Kind.VECTOR:
        type_ = type_.element
    width = type_.width if type_.kind is Kind.INT else 64
    return all(n.mask(v - values[0] - lane * stride, width) == 0 for lane, v in enumerate(values))
