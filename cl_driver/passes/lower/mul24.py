"""mul24 and mad24 as the multiplication and the addition that they are, of which strides and ranges are
known: many programs compute their addresses with them. Operands beyond 24 bits may have any product.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import NO_DECORATIONS, Block, Function, Instruction
from ..ir.instructions import append

_PRODUCTS = (Std.s_mul24, Std.u_mul24)
_SUMS = (Std.s_mad24, Std.u_mad24)


def multiply_plainly(function: Function) -> None:
    """Changes a function in place."""
    for block in function.blocks:
        if any(map(_is_concerned, block.instructions)):
            old, block.instructions = block.instructions, []
            for instruction in old:
                if _is_concerned(instruction):
                    _rewrite(block, instruction)
                block.instructions.append(instruction)


def _is_concerned(instruction: Instruction) -> bool:
    return instruction.op is Op.ExtInst and instruction.operands[1] in _PRODUCTS + _SUMS


def _rewrite(block: Block, instruction: Instruction) -> None:
    _, number, *operands = instruction.operands
    if number in _SUMS:
        product = append(block, Op.IMul, instruction.type, operands[:2])
        product.line = instruction.line
        operands = [product, operands[2]]
    instruction.op = Op.IAdd if number in _SUMS else Op.IMul
    instruction.operands = operands
    instruction.decorations = NO_DECORATIONS
