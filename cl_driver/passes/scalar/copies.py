"""Copies of bytes, and stores of zeros to whole aggregates, as loads and stores of numbers or vectors."""

from __future__ import annotations

from ...records import record
from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Instruction, Kind, MemoryAccess, Type, Value
from ...spirv.types import TypeTable
from ..ir.instructions import append
from ..ir.layout import size_of


@record(slots=True)
class Copy:
    """Bytes of a variable that an instruction reads or writes."""

    instruction: Instruction
    offset: int
    size: int
    is_write: bool


def is_clear(store: Instruction) -> bool:
    """Whether it stores an aggregate of zeros, which is as good as a copy of such."""
    value = store.operands[1]
    return (
        store.op is Op.Store
        and isinstance(value, Constant)
        and value.value is None
        and value.type.kind in (Kind.ARRAY, Kind.STRUCT)
    )


def is_number(type_: Type) -> bool:
    """Whether it is an integer or a float type."""
    return type_.kind is Kind.INT or type_.kind is Kind.FLOAT


def one_number(type_: Type) -> Type | None:
    """The type of number that all of an aggregate consists of, without gaps, or that a vector does; None if
    there is none."""
    while True:
        if type_.kind is Kind.ARRAY or type_.kind is Kind.VECTOR:
            type_ = type_.element
        elif type_.kind is Kind.STRUCT and len(type_.members) == 1:
            type_ = type_.members[0]
        elif type_.kind is Kind.STRUCT and type_.members:
            found = {one_number(member) for member in type_.members}
            if len(found) != 1 or sum(map(size_of, type_.members)) != size_of(type_):
                return None
            return found.pop()
        else:
            return type_ if is_number(type_) else None


def expand_copy(
    copy: Copy, pieces: dict[int, Type], types: TypeTable, used_by: dict[Value, list[Instruction]]
) -> None:
    """Replaces one copy by a load and a store per piece, a store of zeros by stores. pieces: by offset in the
    variable."""
    instruction = copy.instruction
    block = instruction.block
    target, source = instruction.operands[:2]
    memory = instruction.memory or MemoryAccess()
    scratch = Block(block.function)
    loads: list[tuple[Value, int, Type, MemoryAccess]] = []
    for offset, type_ in sorted(pieces.items()):
        step = offset - copy.offset
        access = MemoryAccess(_alignment_at(memory.alignment or 1, step), memory.volatile, memory.nontemporal)
        if instruction.op is Op.Store:
            zero = types.constant(type_, 0 if is_number(type_) else None)
            loads.append((zero, step, type_, access))
            continue
        address = _address(scratch, source, step, type_, types)
        loads.append((append(scratch, Op.Load, type_, [address], access), step, type_, access))
    for value, step, type_, access in loads:
        address = _address(scratch, target, step, type_, types)
        append(scratch, Op.Store, None, [address, value], access)
    for new in scratch.instructions:
        new.block = block
        new.line = instruction.line
        for operand in new.operands:
            if isinstance(operand, Value):
                used_by.setdefault(operand, []).append(new)
    at = block.instructions.index(instruction)
    block.instructions[at : at + 1] = scratch.instructions
    for pointer in (target, source):
        used_by[pointer] = [u for u in used_by.get(pointer, ()) if u is not instruction]


def _alignment_at(alignment: int, offset: int) -> int:
    return min(alignment, offset & -offset) if offset else alignment


def _address(block: Block, pointer: Value, offset: int, type_: Type, types: TypeTable) -> Value:
    """pointer + offset bytes as a pointer to the type, by instructions appended to the block."""
    storage = pointer.type.storage
    if offset:
        byte_pointer = types.pointer(storage, types.int(8))
        if pointer.type is not byte_pointer:
            pointer = append(block, Op.Bitcast, byte_pointer, [pointer])
        index = types.integer(64, offset)
        pointer = append(block, Op.InBoundsPtrAccessChain, byte_pointer, [pointer, index])
    wanted = types.pointer(storage, type_)
    return pointer if pointer.type is wanted else append(block, Op.Bitcast, wanted, [pointer])
