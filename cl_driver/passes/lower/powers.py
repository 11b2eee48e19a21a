"""Powers with a small constant exponent as the products, the quotient or the root that they are.

`pow(x, 2)` is common, and a logarithm and an exponential otherwise. Special values are the same, and results
are nearly exact: where a square is no normal number, neither is the result. An exponent of -2 is left out, as
the square may overflow where its reciprocal is still a number.
"""

from __future__ import annotations

import struct

from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Type, Value
from ...spirv.types import TypeTable
from ..ir.instructions import append

_FORMATS = {16: "e", 32: "f", 64: "d"}
_EXPONENTS = (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0)


def expand_powers(function: Function, types: TypeTable) -> None:
    """Changes a function in place."""
    for block in function.blocks:
        if any(_exponent(i) is not None for i in block.instructions):
            old, block.instructions = block.instructions, []
            for i in old:
                exponent = _exponent(i)
                if exponent is not None:
                    _rewrite(block, i, exponent, types)
                block.instructions.append(i)


def _exponent(i: Instruction) -> float | None:
    """The exponent of an instruction that is expanded."""
    if i.op is not Op.ExtInst or i.operands[1] not in (Std.pow, Std.pown):
        return None
    value = i.operands[3]
    if isinstance(value, Constant) and isinstance(value.value, tuple):
        first, *others = value.value
        value = first if all(other is first for other in others) else None
    if isinstance(value, Constant) and value.value is None:
        return 0.0
    if not isinstance(value, Constant) or type(value.value) is not int:
        return None
    bits, width = value.value, value.type.width
    if value.type.kind is Kind.INT:
        found = float(bits - (1 << width) if bits >> (width - 1) else bits)
    else:
        (found,) = struct.unpack(_FORMATS[width], bits.to_bytes(width // 8, "little"))
    return found if found in _EXPONENTS else None


def _rewrite(block: Block, i: Instruction, exponent: float, types: TypeTable) -> None:
    name, _, x, _ = i.operands

    def add(op: Op, *operands: Value, type_: Type = i.type) -> Instruction:
        made = append(block, op, type_, operands)
        made.line, made.decorations = i.line, i.decorations
        return made

    match exponent:
        case 0.0:
            i.op, i.operands = Op.CopyObject, [_number(1.0, i.type, types)]
        case 1.0:
            i.op, i.operands = Op.CopyObject, [x]
        case -1.0:
            i.op, i.operands = Op.FDiv, [_number(1.0, i.type, types), x]
        case 0.5:  # of -0 and of negative infinity the root is another one
            root = add(Op.FAdd, x, _number(0.0, i.type, types))
            root = append(block, Op.ExtInst, i.type, [name, Std.sqrt, root])
            root.line, root.decorations = i.line, i.decorations
            infinity = float("inf")
            is_other = add(Op.FOrdEqual, x, _number(-infinity, i.type, types), type_=_truth(i.type, types))
            i.op, i.operands = Op.Select, [is_other, _number(infinity, i.type, types), root]
        case 2.0:
            i.op, i.operands = Op.FMul, [x, x]
        case 3.0:
            i.op, i.operands = Op.FMul, [add(Op.FMul, x, x), x]
        case _:
            square = add(Op.FMul, x, x)
            i.op, i.operands = Op.FMul, [square, square]


def _number(value: float, type_: Type, types: TypeTable) -> Constant:
    element = type_.element if type_.kind is Kind.VECTOR else type_
    bits = int.from_bytes(struct.pack(_FORMATS[element.width], value), "little")
    one = types.constant(element, bits)
    return one if element is type_ else types.constant(type_, (one,) * type_.count)


def _truth(type_: Type, types: TypeTable) -> Type:
    return types.vector(types.bool(), type_.count) if type_.kind is Kind.VECTOR else types.bool()
