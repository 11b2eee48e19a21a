"""Private memory laid out for lanes: element k of all lanes next to one another.

At widths above 1 each lane has a block of private memory of its own, so an access to the same place in each
is a gather. Variables of which nothing but elements of one size is ever accessed, by plain loads and stores
through addresses computed with access chains alone, are kept in pieces of that size instead, of which each is
W of them wide: an offset in the variable counts W times, and the next lane is a piece further.
"""

from __future__ import annotations

import math

from ...passes.ir.instructions import ADDRESS
from ...passes.ir.remarks import Remarks
from ...spirv.enums import Op
from ...spirv.module import Constant, Function, Instruction, Kind, Value, Variable
from ..llvm.types import leaf_types, member_offset, size_of

_DEEPEST = 12  # instructions that an index is followed through


def interleaved_pointers(function: Function, remarks: Remarks | None = None) -> dict[Value, int]:
    """Pointer: bytes of a piece, for variables of a function that can be laid out so and their addresses."""
    variables = [
        i
        for block in function.blocks
        for i in block.instructions
        if i.op is Op.Variable and not any(isinstance(o, (Constant, Variable)) for o in i.operands)
    ]
    if not variables:
        return {}
    used_by: dict[Value, list[Instruction]] = {}
    for block in function.blocks:
        for i in block.instructions:
            for operand in (*i.operands, i.mask):
                if isinstance(operand, Instruction) and operand.type.kind is Kind.POINTER:
                    used_by.setdefault(operand, []).append(i)
    found: dict[Value, int] = {}
    for variable in variables:
        pointers, piece, why = _web(variable, used_by)
        if remarks is not None:
            remarks.fact("private", variable, piece, why)
        if piece:
            found |= dict.fromkeys(pointers, piece)
    return found


def _web(
    variable: Instruction, used_by: dict[Value, list[Instruction]]
) -> tuple[list[Instruction], int, str]:
    """All addresses made of a variable's, the size of all that is accessed through them, else 0, and why."""
    pointers = [variable]
    sizes: set[int] = set()
    steps: set[int] = set()
    for pointer in pointers:
        for user in used_by.get(pointer, ()):
            if user.op in ADDRESS and user.operands[0] is pointer:
                steps |= _steps(user)
            elif user.op is Op.Load or (user.op is Op.Store and user.operands[1] is not pointer):
                type_ = user.type if user.op is Op.Load else user.operands[1].type
                if (user.memory is not None and user.memory.volatile) or type_.kind is Kind.POINTER:
                    return [], 0, "volatile, or of pointers"
                sizes |= {size_of(t) for t in leaf_types(type_)}
                continue
            elif user.op is not Op.CopyObject and (
                user.op is not Op.Bitcast or user.type.kind is not Kind.POINTER
            ):
                return [], 0, "its address goes elsewhere"
            pointers.append(user)
    if len(sizes) != 1:
        return [], 0, "elements of different sizes"
    piece = sizes.pop()
    if any(step % piece for step in steps):
        return [], 0, "places between its elements"
    return pointers, piece, ""


def _steps(chain: Instruction) -> set[int]:
    """Numbers of bytes of which what the indices of an access chain add is a sum of multiples."""
    type_, indices = chain.operands[0].type.element, list(chain.operands[1:])
    steps: set[int] = set()
    if chain.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
        steps.add(_factor(indices.pop(0)) * size_of(type_))
    for index in indices:
        if type_.kind is Kind.STRUCT:
            number = index.value or 0
            steps.add(member_offset(type_, number))
            type_ = type_.members[number]
        else:
            type_ = type_.element
            steps.add(_factor(index) * size_of(type_))
    return steps


def _factor(index: Value, seen: tuple[Value, ...] = ()) -> int:
    """A number that an index is a multiple of, as far as powers of two are concerned: others get lost where
    numbers wrap around. seen: phis and what lies between, which are multiples of it if all else is."""
    if isinstance(index, Constant):
        return index.value or 0
    if index in seen:
        return 0
    if not isinstance(index, Instruction) or len(seen) > _DEEPEST:
        return 1
    operands, seen = index.operands, (*seen, index)
    by = operands[1].value or 0 if len(operands) == 2 and isinstance(operands[1], Constant) else None
    if index.op is Op.ShiftLeftLogical and by is not None:
        return max(_factor(operands[0], seen), 1) << by
    if index.op is Op.IMul and by is not None:
        return by
    if index.op is Op.BitwiseAnd and by:
        return by & -by
    if index.op is Op.ShiftRightArithmetic and by is not None and isinstance(operands[0], Instruction):
        return max(_factor(operands[0], seen) >> by, 1)
    if index.op in (Op.UConvert, Op.SConvert):
        return _factor(operands[0], seen)
    if index.op in (Op.Select, Op.IAdd, Op.ISub):
        return math.gcd(*(_factor(o, seen) for o in operands[-2:]))
    if index.op is Op.Phi:
        return math.gcd(*(_factor(o, seen) for o in operands[::2]))
    return 1
