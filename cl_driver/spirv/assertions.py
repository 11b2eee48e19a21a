"""A body for __devicelib_assert_fail (cl_intel_devicelib_assert), which assert() of SYCL calls.

The linker gives it to a declaration that nothing else defines, as conversion_functions.py does. What it
consists of is a printf in all but its instruction set, so it runs wherever printf does: by lane, where a lane
is active.
"""

from __future__ import annotations

from .enums import Op, OpenCLStd, StorageClass
from .instruction_sets import ASSERTION
from .module import Argument, Block, Function, Instruction, Kind, Type

NAME = "__devicelib_assert_fail"
# expression, file, line, function; global and local id. None: a generic pointer to chars.
_PARAMETERS = (None, None, 32, None, *(64,) * 6)


def define(function: Function) -> bool:
    """Gives a declaration its body, if its name and type are those of NAME; says whether it did."""
    if not function.linkage or function.linkage[0] != NAME:
        return False
    result, parameters = function.type.element, function.type.members
    if result.kind is not Kind.VOID or len(parameters) != len(_PARAMETERS):
        return False
    if not all(map(_is, parameters, _PARAMETERS)):
        return False
    arguments, block = [Argument(type_, k) for k, type_ in enumerate(parameters)], Block(function)
    expression, file, line, name, *ids = arguments
    operands = [ASSERTION, OpenCLStd.printf, expression, file, line, name, *ids]
    block.instructions = [
        Instruction(Op.ExtInst, line.type, operands, block),  # as printf returns an int
        Instruction(Op.Return, None, [], block),
    ]
    function.arguments, function.blocks, function.linkage = arguments, [block], None
    return True


def _is(type_: Type, width: int | None) -> bool:
    if width is not None:
        return type_.kind is Kind.INT and type_.width == width
    if type_.kind is not Kind.POINTER or type_.storage != StorageClass.Generic:
        return False
    pointee = type_.element
    while pointee is not None and pointee.kind is Kind.ARRAY:  # as DPC++ writes pointers to literals
        pointee = pointee.element
    return pointee is None or (pointee.kind is Kind.INT and pointee.width == 8)
