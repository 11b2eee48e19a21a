"""Addresses that are computed as integers: the pointer that they are computed from.

An integer that is one pointer's address, moved by numbers, is an address in the memory of that pointer,
whatever it comes to: a step too far is out of its bounds, not by chance inside of those of another. What is
made of several pointers, such as of their difference, may lead anywhere. So may a sum with what is loaded,
which may be such a difference.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import ConstantExpr, Instruction, Kind, Value
from ..analysis.roots import SAME_OBJECT

_COMPUTED = (Instruction, ConstantExpr)
_SAME_NUMBER = frozenset((Op.UConvert, Op.SConvert, Op.Bitcast, Op.CopyObject))
_MOVES = frozenset((Op.IAdd, Op.BitwiseAnd, Op.BitwiseOr))  # by a number, or to the start of a block
_ADDRESS_BITS = 64
_SEARCHED = 64  # integers that are looked at


def origin(pointer: Value) -> Value:
    """The pointer that an address is computed from by way of integers; the same one if it is not, or if that
    is not known."""
    made = base(pointer)
    if not (isinstance(made, _COMPUTED) and made.op is Op.ConvertUToPtr):
        return pointer
    try:
        found = _pointer_in(made.operands[0], {})
    except _SeveralPointersError:
        return pointer
    return pointer if found is None else found


class _SeveralPointersError(Exception):
    """An integer may be made of several pointers, or of one in a way that says nothing of where it is."""


def base(pointer: Value) -> Value:
    """What a pointer is computed from by steps inside of one object."""
    while isinstance(pointer, _COMPUTED) and pointer.op in SAME_OBJECT:
        pointer = pointer.operands[0]
    return pointer


def _pointer_in(number: Value, found: dict[Value, Value | None]) -> Value | None:
    """The pointer in an integer; None: there is none, as far as can be seen. found: what is known already, of
    phis that lead back to themselves nothing."""
    if not isinstance(number, _COMPUTED) or number.type is None or number.type.kind is not Kind.INT:
        return None
    if number not in found:
        if len(found) > _SEARCHED:
            raise _SeveralPointersError
        found[number] = None
        found[number] = _pointer_in_result(number, found)
    return found[number]


def _pointer_in_result(number: Instruction | ConstantExpr, found: dict[Value, Value | None]) -> Value | None:
    op, operands = number.op, number.operands
    if op is Op.Load or number.type.width < _ADDRESS_BITS:  # which a pointer does not fit into
        return None
    if op is Op.ConvertPtrToU:
        return base(origin(operands[0]))
    is_choice = op is Op.Phi or op is Op.Select
    sources = operands[::2] if op is Op.Phi else operands[1:] if op is Op.Select else operands
    pointers = [p for n in sources if isinstance(n, Value) and (p := _pointer_in(n, found)) is not None]
    if not pointers:
        return None
    is_difference = op is Op.ISub and _pointer_in(operands[0], found) is not None
    is_address = is_choice or is_difference or op in _MOVES or op in _SAME_NUMBER
    has_loaded = any(isinstance(n, Instruction) and n.op is Op.Load for n in sources)
    if has_loaded or not is_address or len(set(pointers) if is_choice else pointers) > 1:
        raise _SeveralPointersError
    return pointers[0]
