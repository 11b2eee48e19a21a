"""Private arrays that stay in memory: copies of bytes become loads and stores of elements, and arrays of
constants become constant memory, which all work-items share.

A copy of bytes keeps the array of each lane in a block of its own. Loads and stores of elements alone let
those of all lanes lie together (codegen/layout/private_layout.py) or become values (loops/unroll_arrays.py).
clang makes constants of `const int c[9] = {...}`, but not of arrays that it clears before it stores what is
not 0, nor of those that other compilers initialise at the variable.
"""

from __future__ import annotations

from ...records import field, record
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Constant, Function, Instruction, Kind, Type, Undef, Value, Variable
from ...spirv.types import TypeTable
from ..ir.instructions import ADDRESS, int_value, is_constant_int, users
from ..ir.layout import size_of, step_into
from .copies import Copy, expand_copy, is_clear, one_number
from .simplify import simplify
from .sroa import MAX_PIECES, constant_offset

_SAME_ADDRESS = (Op.Bitcast, Op.CopyObject)
_MARKS = (Op.LifetimeStart, Op.LifetimeStop)
_LARGEST_TABLE = 4096  # bytes

UsedBy = dict[Value, list[Instruction]]


@record(slots=True)
class _Uses:
    """What is done with an array. offsets: bytes from its start, None where they are not constant."""

    offsets: dict[Instruction, int | None]  # pointers to it
    loads: list[Instruction] = field(default_factory=list)
    stores: list[Instruction] = field(default_factory=list)
    copies: list[Instruction] = field(default_factory=list)  # and stores of zeros to more than one element
    marks: list[Instruction] = field(default_factory=list)


def improve_arrays(function: Function, types: TypeTable) -> None:
    """Changes a function in place."""
    has_changed = False
    for variable in _arrays(function):
        used_by = users(function)
        uses, size = _uses(variable, used_by), size_of(_scalar(variable))
        if uses is None or not uses.copies or not all(_fits(copy, size) for copy in uses.copies):
            continue
        for copy in uses.copies:
            bytes_ = _copied(copy)
            pieces = dict.fromkeys(range(0, bytes_, size), _scalar(variable))
            expand_copy(Copy(copy, 0, bytes_, True), pieces, types, used_by)
        has_changed = True
    if has_changed:
        simplify(function, types)  # loads of constants among them
    for variable in _arrays(function):
        uses = _uses(variable, users(function))
        image = _image(variable, uses) if uses is not None and not uses.copies else None
        if uses is not None and image is not None:
            _share(function, types, variable, uses, image)


def _arrays(function: Function) -> list[Instruction]:
    """Variables that are arrays of numbers, or classes around such."""
    variables = [i for i in function.blocks[0].instructions if i.op is Op.Variable]
    kinds = (Kind.ARRAY, Kind.STRUCT)
    return [i for i in variables if i.type.element.kind in kinds and one_number(i.type.element) is not None]


def _scalar(variable: Instruction) -> Type:
    found = one_number(variable.type.element)
    assert found is not None  # _arrays() found it so
    return found


def _uses(variable: Instruction, used_by: UsedBy) -> _Uses | None:
    """None if a pointer to the variable goes where it cannot be followed, or something is volatile."""
    uses = _Uses({variable: 0})
    pointers = [variable]
    for pointer in pointers:
        offset = uses.offsets[pointer]
        for user in dict.fromkeys(used_by.get(pointer, ())):
            if user.memory is not None and user.memory.volatile:
                return None
            if user.op in _MARKS:
                uses.marks.append(user)
            elif user.op is Op.Load:
                uses.loads.append(user)
            elif user.op is Op.Store and user.operands[1] is not pointer:
                (uses.copies if is_clear(user) else uses.stores).append(user)
            elif user.op in (Op.CopyMemory, Op.CopyMemorySized):
                uses.copies.append(user)
            elif user.op in ADDRESS and user.operands[0] is pointer:
                step = constant_offset(user)
                uses.offsets[user] = None if step is None or offset is None else offset + step
                pointers.append(user)
            elif user.op in _SAME_ADDRESS and user.type.kind is Kind.POINTER:
                uses.offsets[user] = offset
                pointers.append(user)
            else:
                return None
    uses.copies = list(dict.fromkeys(uses.copies))
    return uses


# Copies.


def _copied(copy: Instruction) -> int:
    """Bytes; 0 if that is not known."""
    if copy.op is Op.Store:
        return size_of(copy.operands[1].type)
    if copy.op is Op.CopyMemory:
        return size_of(copy.operands[0].type.element)
    return int_value(copy.operands[2]) if is_constant_int(copy.operands[2]) else 0


def _fits(copy: Instruction, size: int) -> bool:
    """Whether a copy is one of few elements of so many bytes."""
    copied = _copied(copy)
    return 0 < copied <= size * MAX_PIECES and copied % size == 0 and copy.operands[0] is not copy.operands[1]


# Constant arrays.


def _image(variable: Instruction, uses: _Uses) -> bytearray | None:
    """The bytes of an array that is filled with constants before it is read; None if it is not."""
    if not uses.loads or size_of(variable.type.element) > _LARGEST_TABLE:
        return None
    image = bytearray(size_of(variable.type.element))
    initializer = next((o for o in variable.operands if isinstance(o, Constant)), None)
    if initializer is not None and not write_constant(image, 0, initializer):
        return None
    entry = variable.block
    if any(store.block is not entry for store in uses.stores):
        return None
    place = {i: k for k, i in enumerate(entry.instructions)}
    last = max((place[store] for store in uses.stores), default=-1)
    if any(load.block is entry and place[load] < last for load in uses.loads):
        return None
    for store in sorted(uses.stores, key=lambda store: place[store]):
        offset = uses.offsets[store.operands[0]]
        if offset is None or offset < 0:
            return None
        if not write_constant(image, offset, store.operands[1]):
            return None
    return image


def write_constant(image: bytearray, offset: int, value: Value) -> bool:
    """Puts a constant where it is in memory. False if it is none, has pointers, or is not in the image."""
    type_ = value.type
    if not isinstance(value, Constant) or offset + size_of(type_) > len(image):
        return isinstance(value, Undef)
    if type_.kind in (Kind.INT, Kind.FLOAT):
        image[offset : offset + size_of(type_)] = int(value.value or 0).to_bytes(size_of(type_), "little")
        return True
    if type_.kind not in (Kind.VECTOR, Kind.ARRAY, Kind.STRUCT):
        return False
    if value.value is None:
        image[offset : offset + size_of(type_)] = bytes(size_of(type_))
        return True
    return all(
        write_constant(image, offset + step_into(type_, k)[1], element)
        for k, element in enumerate(value.value)
    )


def read_constant(types: TypeTable, type_: Type, image: bytearray, offset: int = 0) -> Constant:
    """The constant of a type of numbers and arrays that lies there."""
    if type_.kind is Kind.ARRAY:
        elements = [
            read_constant(types, type_.element, image, offset + step_into(type_, k)[1])
            for k in range(type_.count)
        ]
        return types.constant(type_, tuple(elements))
    bits = int.from_bytes(image[offset : offset + size_of(type_)], "little")
    return types.constant(type_, bits)


def _share(
    function: Function, types: TypeTable, variable: Instruction, uses: _Uses, image: bytearray
) -> None:
    """Puts constant memory in the place of an array."""
    storage = StorageClass.UniformConstant
    array = variable.type.element
    shared = Variable(types.pointer(storage, array), read_constant(types, array, image), variable.name)
    gone = {variable, *uses.stores, *uses.marks}
    for pointer in uses.offsets:
        if pointer is not variable:
            pointer.type = types.pointer(storage, pointer.type.element)
            pointer.operands = [shared if o is variable else o for o in pointer.operands]
    for load in uses.loads:
        load.operands = [shared if o is variable else o for o in load.operands]
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if i not in gone]
