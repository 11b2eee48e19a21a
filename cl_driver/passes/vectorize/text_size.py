"""How much LLVM IR a plan is, before it is made: what is too much is not worth finding out."""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Function, Instruction, Kind

# Bytes of a line of LLVM IR, with what masks and addresses add: about 70 in hashcat's kernels.
_LINE = 60


def text_size(function: Function) -> int:
    """About how many bytes of LLVM IR a function of one work-item is as code for several: a line for
    each component, since lanes take the place of what vectors were."""
    return _LINE * sum(_lines(i) for block in function.blocks for i in block.instructions)


def _lines(instruction: Instruction) -> int:
    value = instruction.operands[1] if instruction.op is Op.Store else instruction
    type_ = value.type
    return type_.count if type_ is not None and type_.kind is Kind.VECTOR else 1
