"""Execution mode DenormFlushToZero: subnormal numbers of a width count as zeros of the same sign.

Operands and results of every instruction that computes with numbers of that width go through FlushDenormals.
Instructions that only move numbers leave them as they are: what reads them flushes them. Atomics are neither
conversions, arithmetic nor comparisons: these alone are meant, as VK_KHR_shader_float_controls says.
"""

from __future__ import annotations

from collections.abc import Container

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Kind, Type, Value
from ..ir.instructions import append, substitute
from ..ir.ops import PassOp

# Conversions, arithmetic, comparisons.
_COMPUTES = frozenset(
    op for op in Op if 109 <= op <= 116 or 126 <= op <= 148 or 159 <= op <= 163 or 180 <= op <= 191
)
_LAST_OF_MATH = 110  # OpenCL.std: mathematical, common and geometric functions come first


def flush_denormals(function: Function, widths: Container[int]) -> None:
    """Changes a function in place."""
    computing = [i for block in function.blocks for i in block.instructions if _computes(i)]
    flushed = {
        i: Instruction(PassOp.FlushDenormals, i.type, [i], i.block)
        for i in computing
        if _is_of(i.type, widths)
    }
    substitute(function, flushed)
    done = set(computing)
    for block in function.blocks:
        if not done.isdisjoint(block.instructions):
            _rewrite(block, done, flushed, widths)


def _rewrite(
    block: Block, computing: set[Instruction], flushed: dict[Instruction, Instruction], widths: Container[int]
) -> None:
    old, block.instructions = block.instructions, []
    for instruction in old:
        if instruction in computing:
            instruction.operands = [
                append(block, PassOp.FlushDenormals, operand.type, [operand])
                if isinstance(operand, Value) and _is_of(operand.type, widths) and not _is_flushed(operand)
                else operand
                for operand in instruction.operands
            ]
        block.instructions.append(instruction)
        if instruction in flushed:
            block.instructions.append(flushed[instruction])


def _computes(instruction: Instruction) -> bool:
    if instruction.op is Op.ExtInst:
        number: int = instruction.operands[1]
        return number <= _LAST_OF_MATH
    return instruction.op in _COMPUTES


def _is_of(type_: Type | None, widths: Container[int]) -> bool:
    if type_ is None:
        return False
    scalar = type_.element if type_.kind is Kind.VECTOR else type_
    return scalar.kind is Kind.FLOAT and scalar.width in widths


def _is_flushed(value: Value) -> bool:
    return isinstance(value, Instruction) and value.op is PassOp.FlushDenormals
