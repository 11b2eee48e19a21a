"""Decodes constants, undefined values, and the operations on them that happen while reading.

CONSTANT_HANDLERS: see declarations.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat

from ..enums import Decoration, Op, StorageClass
from ..module import Constant, ConstantExpr, Kind, Type, Value
from ..types import is_one_memory
from . import spec_constant_ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from .reader import Reader


def _define(reader: Reader, p: int, value: Value) -> None:
    reader.values[reader.new_id(p, reader.words[p + 2])] = value


def _spec_id(reader: Reader, p: int) -> int | None:
    decoration = reader.decorations.get(reader.words[p + 2], {}).get(Decoration.SpecId)
    return decoration[0] if decoration else None


def _constant(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    type_ = reader.type(p, words[p + 1])
    if type_.kind not in (Kind.INT, Kind.FLOAT):
        raise reader.error(p, f"{type_!r} is not a numeric type")
    if n - 3 != -(-type_.width // 32):
        raise reader.error(p, f"{n - 3} words of literal for {type_!r}")
    value = words[p + 3]
    for k in range(1, n - 3):
        value |= words[p + 3 + k] << 32 * k
    value &= (1 << type_.width) - 1
    spec_id = _spec_id(reader, p) if op == Op.SpecConstant else None
    if spec_id is None:
        _define(reader, p, reader.table.constant(type_, value))
    else:
        _define_spec(reader, p, type_, value, spec_id)


def _constant_bool(reader: Reader, p: int, n: int, op: Op) -> None:
    type_ = reader.type(p, reader.words[p + 1])
    if type_.kind is not Kind.BOOL:
        raise reader.error(p, f"{type_!r} is not the boolean type")
    value = op in (Op.ConstantTrue, Op.SpecConstantTrue)
    spec_id = _spec_id(reader, p) if op in (Op.SpecConstantTrue, Op.SpecConstantFalse) else None
    if spec_id is None:
        _define(reader, p, reader.table.constant(type_, value))
    else:
        _define_spec(reader, p, type_, value, spec_id)


def _define_spec(reader: Reader, p: int, type_: Type, default: bool | int, spec_id: int) -> None:
    given = reader.specialisation.get(spec_id)
    value = default
    if given is not None:
        size = spec_constant_ops.size(type_)
        if len(given) != size:
            raise reader.error(p, f"SpecId {spec_id} takes {size} bytes, not {len(given)}")
        value = int.from_bytes(given, "little")
        if type_.kind is Kind.BOOL:
            value = value != 0
    reader.module.spec_constants.setdefault(spec_id, Constant(type_, default, spec_id))
    _define(reader, p, Constant(type_, value, spec_id))


def _element_types(reader: Reader, p: int, type_: Type) -> tuple[tuple[Type, ...] | None, int]:
    if type_.kind in (Kind.VECTOR, Kind.ARRAY):
        return None, type_.count
    if type_.kind is Kind.STRUCT:
        return type_.members, len(type_.members)
    raise reader.error(p, f"{type_!r} is not a composite type")


def _pointer_as(reader: Reader, pointer: Value, type_: Type) -> Value:
    """The same address as a pointer to something else."""
    if isinstance(pointer, Constant) and not pointer.value:
        return reader.table.null(type_)
    return ConstantExpr(type_, Op.Bitcast, (pointer,))


def _constant_composite(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    type_ = reader.type(p, words[p + 1])
    members, count = _element_types(reader, p, type_)
    ids, values = reader.operands(p, 3, n), reader.values
    try:
        constituents = tuple([values[w] for w in ids])
    except KeyError:
        constituents = tuple(reader.value(p, w) for w in ids)  # says which is none
    if len(constituents) != count:
        raise reader.error(p, f"{len(constituents)} constituents for {type_!r}, which has {count}")
    wanted = members or repeat(type_.element)
    for i, (constituent, its_type) in enumerate(zip(constituents, wanted, strict=False)):
        given = constituent.type
        if given is its_type:
            continue
        is_pointer = given.kind is its_type.kind is Kind.POINTER
        if not is_pointer or not is_one_memory(given.storage, its_type.storage):
            raise reader.error(p, f"constituent {i} has type {given!r}")
        # clang's tables of virtual functions: each pointer is to what it points to.
        constituents = (*constituents[:i], _pointer_as(reader, constituent, its_type), *constituents[i + 1 :])
    _define(reader, p, reader.table.constant(type_, constituents))


def continuation(reader: Reader, p: int, n: int, op: Op) -> None:
    """Its operands were read with those of the instruction that it continues: Reader.operands()."""


def _constant_null(reader: Reader, p: int, n: int, op: Op) -> None:
    _define(reader, p, reader.table.null(reader.data_type(p, reader.words[p + 1])))


def _undef(reader: Reader, p: int, n: int, op: Op) -> None:
    _define(reader, p, reader.table.undef(reader.data_type(p, reader.words[p + 1])))


def _constant_sampler(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    type_ = reader.type(p, words[p + 1])
    if type_.op != Op.TypeSampler:
        raise reader.error(p, f"{type_!r} is not the sampler type")
    addressing = reader.enumerant(p, "SamplerAddressingMode", words[p + 3])
    filter_ = reader.enumerant(p, "SamplerFilterMode", words[p + 5])
    if words[p + 4] > 1:
        raise reader.error(p, "normalised coordinates are 0 or 1")
    _define(reader, p, reader.table.constant(type_, (addressing, words[p + 4], filter_)))


def _constant_pipe_storage(reader: Reader, p: int, n: int, op: Op) -> None:
    """Each is a pipe of its own: they are not interned."""
    words = reader.words
    type_ = reader.type(p, words[p + 1])
    if type_.op != Op.TypePipeStorage:
        raise reader.error(p, f"{type_!r} is not the type of pipe storage")
    size, alignment, packets = words[p + 3 : p + 6]
    if not size or not alignment or size % alignment:
        raise reader.error(p, f"packets of {size} bytes, aligned to {alignment}")
    if not 0 < packets < 1 << 31:
        raise reader.error(p, f"room for {packets} packets")
    _define(reader, p, Constant(type_, (size, alignment, packets)))


def _function_pointer(reader: Reader, p: int, n: int, op: Op) -> None:
    """The function comes later in the module: Reader.finish() puts it in."""
    words = reader.words
    type_ = reader.type(p, words[p + 1])
    if type_.kind is not Kind.POINTER or not is_one_memory(type_.storage, StorageClass.CodeSectionINTEL):
        raise reader.error(p, f"{type_!r} is not a pointer into CodeSectionINTEL")
    value = ConstantExpr(type_, op, ())
    reader.module.function_pointers.append(value)
    reader.addressed.append((p, value, words[p + 3]))
    _define(reader, p, value)


def _spec_constant_op(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    type_ = reader.type(p, words[p + 1])
    if words[p + 3] not in spec_constant_ops.OPS:
        raise reader.error(p, f"opcode {words[p + 3]} is not allowed in OpSpecConstantOp")
    inner = Op(words[p + 3])
    ids, literals = spec_constant_ops.split(inner, words[p + 4 : p + n])
    operands = [reader.value(p, w) for w in ids] + literals
    try:
        value = spec_constant_ops.fold(reader.table, inner, type_, operands)
    except ValueError as why:
        raise reader.error(p, f"{inner.name}: {why}") from None
    _define(reader, p, value)


Handler: TypeAlias = "Callable[[Reader, int, int, Op], None]"
CONSTANT_HANDLERS: dict[int, Handler] = {
    Op.Constant: _constant,
    Op.SpecConstant: _constant,
    Op.ConstantTrue: _constant_bool,
    Op.ConstantFalse: _constant_bool,
    Op.SpecConstantTrue: _constant_bool,
    Op.SpecConstantFalse: _constant_bool,
    Op.ConstantComposite: _constant_composite,
    Op.SpecConstantComposite: _constant_composite,
    Op.ConstantCompositeContinuedINTEL: continuation,
    Op.SpecConstantCompositeContinuedINTEL: continuation,
    Op.ConstantNull: _constant_null,
    Op.Undef: _undef,
    Op.ConstantSampler: _constant_sampler,
    Op.ConstantPipeStorage: _constant_pipe_storage,
    Op.SpecConstantOp: _spec_constant_op,
    Op.ConstantFunctionPointerINTEL: _function_pointer,
}
