"""Keeps fast-math flags away from the library's code when it is inlined into a program's."""

from __future__ import annotations

from ..spirv.enums import Decoration, Op
from ..spirv.module import Function

_NONE = {Decoration.FPFastMathMode: (0,)}  # FPFastMathMode None


def forbid_fast_math(function: Function) -> None:
    """Decorates all instructions of a function, and of what it calls: no flags, whatever the build options.

    Its algorithms depend on exact roundings, (x + c) - c among them, and on comparisons that see NaN.
    """
    for block in function.blocks:
        for instruction in block.instructions:
            decorations = instruction.decorations
            if Decoration.FPFastMathMode in decorations:
                continue
            instruction.decorations = {**decorations, **_NONE} if decorations else _NONE
            if instruction.op is Op.FunctionCall:
                forbid_fast_math(instruction.operands[0])
