"""Arguments of which the value is known, and those of which it is worth knowing.

Such code is made for launches of hot kernels (native_shim/src/kernel/argument_specialisation.c).
Floating-point arguments and structures stay arguments: nothing folds because of them, and measured
(tests/bench) nothing gains.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Argument, Constant, Function, Instruction, Kind, Operand, Type, Value
from ...spirv.types import TypeTable
from ..ir.fold import COMPARE
from ..ir.instructions import ADDRESS, substitute

_WORD = 64  # bits of an argument that the data plane compares as one

# What is known if all operands are, and is cheap: alone no reason to know them.
_CARRIED = frozenset((
    Op.IAdd, Op.ISub, Op.UConvert, Op.SConvert, Op.Bitcast, Op.CompositeExtract, Op.SNegate, Op.CopyObject,
    Op.BitwiseAnd, Op.BitwiseOr, Op.VectorShuffle, Op.CompositeConstruct,
))  # fmt: skip

# What is cheaper, or an address with a known stride, if one operand is known.
_CHEAPER = frozenset((
    Op.IMul, Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod, Op.ShiftLeftLogical, Op.ShiftRightLogical,
    Op.ShiftRightArithmetic,
))  # fmt: skip


def specialise_arguments(function: Function, types: TypeTable, values: tuple[tuple[int, bytes], ...]) -> None:
    """Arguments become constants. values: the number of each, and the bytes that clSetKernelArg was given.
    Those of images and samplers are for images.py."""
    given = ((function.arguments[k], data) for k, data in values)
    constants = {a: _constant(types, a.type, data) for a, data in given if a.type.kind is not Kind.OPAQUE}
    substitute(function, constants)


def _constant(types: TypeTable, type_: Type, data: bytes) -> Constant:
    if type_.kind is not Kind.VECTOR:
        return types.constant(type_, int.from_bytes(data, "little"))
    size = type_.element.width // 8
    pieces = (data[k * size : (k + 1) * size] for k in range(type_.count))
    return types.constant(type_, tuple(_constant(types, type_.element, piece) for piece in pieces))


def find_specialisable(function: Function) -> list[int]:
    """The numbers of arguments whose values make better code: what counts loops, is multiplied or divided by,
    shifts, decides branches. `if (id < n)` needs no other code for each n."""
    found: dict[Value, int] = {a: 1 << a.index for a in function.arguments if _fits_word(a)}
    if not found:
        return []
    useful = 0
    for block in function.blocks:
        for i in block.instructions:
            bits_of = [found.get(o, 0) for o in i.operands if isinstance(o, Value)]
            if not any(bits_of):
                continue
            sources = 0
            for bits in bits_of:
                sources |= bits
            if i.op in _CHEAPER or i.op in ADDRESS or i.op is Op.Switch:
                useful |= sources
            elif i.op in COMPARE and all(o in found or _counts(o) for o in i.operands):
                useful |= sources
            if i.op in _CARRIED | _CHEAPER and all(o in found or _is_constant(o) for o in i.operands):
                found[i] = sources
    return [a.index for a in function.arguments if useful >> a.index & 1]


def _fits_word(argument: Argument) -> bool:
    type_, count = argument.type, 1
    if type_.kind is Kind.VECTOR:
        type_, count = type_.element, type_.count + (type_.count == 3)
    return type_.kind is Kind.INT and type_.width * count <= _WORD


def _is_constant(operand: Operand) -> bool:
    return type(operand) is Constant or not isinstance(operand, Value)


def _counts(value: Value) -> bool:
    """Whether a value that something is compared with may be a loop's counter, or is a constant."""
    if not isinstance(value, Instruction):
        return type(value) is Constant
    if value.op in (Op.IAdd, Op.ISub):
        return any(isinstance(o, Instruction) and o.op is Op.Phi for o in value.operands)
    return value.op is Op.Phi
