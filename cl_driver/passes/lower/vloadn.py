"""vloadn and vstoren of global and constant memory as the loads and stores of vectors that they are.

All that is known of loads and stores then holds for them. Vectors of three stay: in memory they are not the
type of three components. So does what may be private or local, whose variables are held by the types that
they are accessed as.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.layout import size_of
from ...spirv.module import NO_DECORATIONS, Block, Function, Instruction, Kind, MemoryAccess, Value
from ...spirv.types import TypeTable
from ..ir.instructions import append, int_value, is_constant_int

_STORAGES = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant)


def load_vectors(function: Function, types: TypeTable) -> None:
    """Every vloadn and vstoren in such memory becomes an OpLoad or OpStore, aligned as one element."""
    for block in function.blocks:
        if not any(map(_is_concerned, block.instructions)):
            continue
        old, block.instructions = block.instructions, []
        for instruction in old:
            if _is_concerned(instruction):
                _rewrite(block, instruction, types)
            block.instructions.append(instruction)


def vector_access(instruction: Instruction) -> tuple[Value, Value, Value] | None:
    """(what has the vector's type, offset, pointer) of vloadn and vstoren, None of others.

    The pointer is the one before casts to generic, which clang 22 puts before all of these.
    """
    if instruction.op is not Op.ExtInst or instruction.operands[1] not in (Std.vloadn, Std.vstoren):
        return None
    is_load = instruction.operands[1] == Std.vloadn
    offset, pointer = instruction.operands[2:4] if is_load else instruction.operands[3:5]
    while isinstance(pointer, Instruction) and pointer.op is Op.PtrCastToGeneric:
        pointer = pointer.operands[0]
    return instruction if is_load else instruction.operands[2], offset, pointer


def vector_stays(value: Value, pointer: Value) -> bool:
    """Whether a vloadn or vstoren of such a value is left as it is."""
    has_place = value.type.kind is Kind.VECTOR and value.type.count != 3
    return not has_place or pointer.type.storage not in _STORAGES


def _is_concerned(instruction: Instruction) -> bool:
    found = vector_access(instruction)
    return found is not None and not vector_stays(found[0], found[2])


def _rewrite(block: Block, instruction: Instruction, types: TypeTable) -> None:
    access = vector_access(instruction)
    assert access is not None
    value, offset, pointer = access
    type_ = types.pointer(pointer.type.storage, value.type)
    place = append(block, Op.Bitcast, type_, [pointer])
    if not (is_constant_int(offset) and int_value(offset) == 0):
        if offset.type.width < 64:  # size_t, which has no sign
            offset = append(block, Op.UConvert, types.int(64), [offset])
        place = append(block, Op.PtrAccessChain, type_, [place, offset])
    is_load = value is instruction
    instruction.op = Op.Load if is_load else Op.Store
    instruction.operands = [place] if is_load else [place, value]
    instruction.memory = MemoryAccess(size_of(value.type.element))
    instruction.decorations = NO_DECORATIONS
