"""Private memory laid out for lanes: element k of all lanes next to one another.

At widths above 1 each lane has a block of private memory of its own, so an access to the same place in each
is a gather. Variables of which nothing but elements of one size is ever accessed, by plain loads and stores
through addresses computed with access chains alone, are kept in pieces of that size instead, of which each is
W of them wide: an offset in the variable counts W times, and the next lane is a piece further.

Memory that lives across barriers has room for all work-items of the group. There a piece is as many wide as
these are, since vectors of a row may begin anywhere among them.
"""

from __future__ import annotations

import math

from ...passes.ir.instructions import ADDRESS, is_constant_int
from ...passes.ir.ops import PassOp
from ...passes.ir.plan import KernelPlan, PrivateVariable
from ...passes.ir.remarks import Remarks
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Constant, Function, Instruction, Kind, Undef, Value, Variable
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
    used_by = _users_of_pointers(function)
    found: dict[Value, int] = {}
    for variable in variables:
        pointers, piece, why = _web(variable, used_by)
        if remarks is not None:
            remarks.fact("private", variable, piece, why)
        if piece:
            found |= dict.fromkeys(pointers, piece)
    return found


def _users_of_pointers(function: Function) -> dict[Value, list[Instruction]]:
    used_by: dict[Value, list[Instruction]] = {}
    for block in function.blocks:
        for i in block.instructions:
            for operand in (*i.operands, i.mask):
                if isinstance(operand, Instruction) and operand.type.kind is Kind.POINTER:
                    used_by.setdefault(operand, []).append(i)
    return used_by


def spread_pointers(plan: KernelPlan) -> tuple[dict[Value, int], dict[PrivateVariable, int]]:
    """The same for private memory that lives across barriers: pointers, and variables, with pieces' sizes."""
    pointers: dict[Value, int] = {}
    pieces: dict[PrivateVariable, set[int]] = {}
    webs: dict[PrivateVariable, list[Instruction]] = {}
    for region in plan.regions:
        instructions = [i for block in region.function.blocks for i in block.instructions]
        roots = [i for i in instructions if i.op is PassOp.PrivatePointer]
        if not roots:
            continue
        used_by = _users_of_pointers(region.function)
        for root in roots:
            (variable,) = root.operands
            found, piece, _ = _web(root, used_by)
            strides = region.shapes.strides if region.shapes is not None else {}
            if region.once or any(strides.get(pointer, 0) not in (0, None) for pointer in found):
                piece = 0
            pieces.setdefault(variable, set()).add(piece)
            webs.setdefault(variable, []).extend(found)
    spread = {v: min(sizes) for v, sizes in pieces.items() if len(sizes) == 1 and min(sizes)}
    for variable, piece in spread.items():
        pointers |= dict.fromkeys(webs[variable], piece)
    return pointers, spread


def _web(
    variable: Instruction, used_by: dict[Value, list[Instruction]]
) -> tuple[list[Instruction], int, str]:
    """All addresses made of a variable's, the size of all that is accessed through them, else 0, and why."""
    pointers = [variable]
    sizes: set[int] = set()
    steps: set[int] = set()
    lengths: set[int] = set()
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
            elif user.op is Op.CopyMemorySized and may_be_filled(user, pointer):
                lengths.add(user.operands[2].value)
                continue
            elif user.op is Op.Phi:
                if not all(o is pointer or isinstance(o, Undef) for o in user.operands[::2]):
                    return [], 0, "its address goes elsewhere"
            elif user.op not in (Op.CopyObject, Op.PtrCastToGeneric) and (
                user.op is not Op.Bitcast or user.type.kind is not Kind.POINTER
            ):
                return [], 0, "its address goes elsewhere"
            pointers.append(user)
    if len(sizes) != 1:
        return [], 0, "elements of different sizes"
    piece = sizes.pop()
    if any(step % piece for step in steps | lengths):
        return [], 0, "places between its elements"
    return pointers, piece, ""


def may_be_filled(copy: Instruction, pointer: Value) -> bool:
    """Whether a copy fills so many bytes at a pointer with one that is repeated, as LLVM makes it of
    llvm.memset."""
    target, source, size = copy.operands[:3]
    volatile = copy.memory is not None and copy.memory.volatile
    return target is pointer and is_constant_int(size) and repeated_byte(source) is not None and not volatile


def repeated_byte(source: Value) -> int | None:
    """The byte that all of a constant variable consists of: LLVM's SPIR-V back end makes copies from those of
    llvm.memset."""
    while isinstance(source, Instruction) and source.op == Op.Bitcast:
        source = source.operands[0]
    if not isinstance(source, Variable) or source.type.storage != StorageClass.UniformConstant:
        return None
    value = source.initializer
    if not isinstance(value, Constant):
        return None
    if value.value is None:
        return 0
    array = value.type
    if array.kind is not Kind.ARRAY or (array.element.kind, array.element.width) != (Kind.INT, 8):
        return None
    first = value.value[0]
    is_repeated = isinstance(first, Constant) and all(element is first for element in value.value)
    return (first.value or 0) if is_repeated else None


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
