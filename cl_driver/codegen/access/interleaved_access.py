"""Fields of structures that lie one after another, one for each lane: whole vectors and shuffles.

A field is a stride away from that of the next lane. Loads of fields from one array, with nothing between them
that might write, are made together where the first of them stands, and stores where the last one stands: as
vectors of all that lies between, of which shuffles pick or mix the fields. Bytes between fields are read too,
as far as they lie between what the lanes own: no page is touched that no lane would touch. Bytes and shorts,
as of pixels, are loaded and stored sixteen bytes at a time, of which one shuffle picks what it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from ...passes.cost import access_costs
from ...passes.cost.access_costs import Reach
from ...passes.cost.cpu_models import Cost, CpuModel
from ...passes.ir.fold import signed
from ...passes.ir.instructions import ADDRESS, EXTINST_WITH_EFFECT, PURE
from ...passes.ir.layout import walk
from ...spirv.enums import Decoration, Op, StorageClass
from ...spirv.module import Constant, Instruction, Kind, Value
from ..llvm.forms import MANGLED, form
from ..llvm.types import ir_type, size_of
from ..ops.memory import access_alignment
from .block_transpose import goes_in_blocks, one_vector, put_together, shuffle, take_apart
from .emitter import AccessEmitter
from .gather_scatter import interleave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# An index of an array, and how it is extended, if it is.
Index: TypeAlias = tuple[Op | None, Value]
# What an access is of: the address that it is computed from, the indices with their factors, bytes of what is
# smaller than a word, mask and part.
ArrayKey: TypeAlias = tuple[Value, tuple[tuple[Index, int], ...], int, Value | None, int]

_BLOCK = 16  # bytes of a register within which any byte may change places


class InterleavedAccess:
    """Loads, or stores, of fields of one array: (instruction, offset in bytes, size in bytes) in order.

    stride: bytes from one lane to the next; width: lanes; is_done: it has been emitted.
    """

    def __init__(self, op: Op, stride: int, width: int) -> None:
        self.op = op
        self.stride = stride
        self.width = width
        self.members: list[tuple[Instruction, int, int]] = []
        self.is_done = False

    @property
    def low(self) -> int:
        """The offset of the first byte that is accessed."""
        return min(offset for _, offset, _ in self.members)

    @property
    def end(self) -> int:
        """The offset behind the last byte that is accessed."""
        return max(offset + size for _, offset, size in self.members)

    @property
    def unit(self) -> int:
        """Bytes of which all sizes and distances are multiples."""
        return gcd(self.stride, *(n for _, offset, size in self.members for n in (offset - self.low, size)))

    def reach(self, model: CpuModel) -> Reach:
        """What the cost of a member depends on: of the first, whose size is mostly that of the others."""
        first, is_store = self.members[0][0], self.op is Op.Store
        type_ = (first.operands[1] if is_store else first).type
        return access_costs.reach(type_, self.width, model, self.stride, is_store, False)

    def cost_of_member(self, model: CpuModel) -> Cost:
        """What one of the members costs, as they share what is loaded or stored."""
        return access_costs.fields(self.reach(model), model, len(self.members))


def find_interleaved(
    e: AccessEmitter, instructions: Sequence[Instruction]
) -> dict[Instruction, InterleavedAccess]:
    """Instruction: the access that it belongs to, for one block."""
    found: dict[Instruction, InterleavedAccess] = {}
    loads: dict[ArrayKey, InterleavedAccess] = {}
    stores: dict[ArrayKey, InterleavedAccess] = {}
    for i in instructions:
        if i.op is not Op.Load and i.op is not Op.Store:
            if i.op not in PURE and not (i.op is Op.ExtInst and i.operands[1] not in EXTINST_WITH_EFFECT):
                loads.clear()
                stores.clear()
            continue
        member = _member(e, i)
        if i.op is Op.Store and member is not None:
            part = e.shapes.part_of.get(i, 0)
            loads.clear()
            # Work-items of other parts store elsewhere.
            stores = {k: r for k, r in stores.items() if k == member[0] or k[-1] != part}
        elif _is_local(i.operands[0]):
            loads, stores = _apart_from_local(loads), _apart_from_local(stores)
        elif i.op is Op.Store:
            loads.clear()
            stores.clear()
        else:
            stores.clear()
        if member is None:
            continue
        key, offset, stride, size = member
        open_accesses = loads if i.op is Op.Load else stores
        access = open_accesses.get(key)
        clashes = _overlaps if i.op is Op.Store else _is_beyond
        if access is None or clashes(access, offset, size):
            access = open_accesses[key] = InterleavedAccess(i.op, stride, e.width)
        access.members.append((i, offset, size))
        found[i] = access
    worth = {access for access in set(found.values()) if _is_worth_it(e, access)}
    return {i: access for i, access in found.items() if access in worth}


def _is_local(pointer: Value) -> bool:
    return pointer.type.storage is StorageClass.Workgroup


def _apart_from_local(accesses: dict[ArrayKey, InterleavedAccess]) -> dict[ArrayKey, InterleavedAccess]:
    """Those that local memory has nothing to do with."""
    return {
        key: access
        for key, access in accesses.items()
        if access.members[0][0].operands[0].type.storage is StorageClass.CrossWorkgroup
    }


def _overlaps(access: InterleavedAccess, offset: int, size: int) -> bool:
    return any(offset < o + n and o < offset + size for _, o, n in access.members)


def _is_beyond(access: InterleavedAccess, offset: int, size: int) -> bool:
    """Whether a load does not lie within one stride with those that are there."""
    return max(access.end, offset + size) - min(access.low, offset) > access.stride


def _member(e: AccessEmitter, i: Instruction) -> tuple[ArrayKey, int, int, int] | None:
    """(Key of the array, offset, stride, size) of an access of one field, or None."""
    pointer = i.operands[0]
    type_ = i.type if i.op is Op.Load else i.operands[1].type
    volatile = i.memory is not None and (i.memory.volatile or i.memory.nontemporal)
    if volatile or not isinstance(pointer, Instruction) or e.is_varying(pointer) or e.spacing(pointer) > 1:
        return None
    if e.lane_constants is not None and _is_local(pointer):
        return None  # see lockstep/lane_constants.py
    stride = e.stride(pointer) if type_.kind in (Kind.INT, Kind.FLOAT) else 0
    size = size_of(type_)
    if size not in (1, 2, 4, 8) or stride <= size or stride % min(size, 4):
        return None
    if access_alignment(i.memory, type_) < min(size, 4) or pointer in e.shapes.private:
        return None
    base: Value = pointer
    offset = 0
    steps: list[tuple[Value, int]] = []
    while isinstance(base, Instruction):
        if base.op in ADDRESS:
            offset += walk(base, steps)
        elif base.op is not Op.CopyObject and (
            base.op is not Op.Bitcast or base.operands[0].type.kind is not Kind.POINTER
        ):
            break
        base = base.operands[0]
    places = []
    for index, each in steps:
        rest, more = _without_low_bits(index)
        places.append((rest, each))
        offset += more * each
    small = size if size < 4 else 0
    return (base, tuple(places), small, i.mask, e.shapes.part_of.get(i, 0)), offset, stride, size


def _without_low_bits(index: Value) -> tuple[Index, int]:
    """(What an index is beside a constant, that constant): of 2 * i | 1, where the rest does not have its
    bits, of sums as wide as addresses, and of sums that do not wrap."""
    conversion: Op | None = None
    number = 0
    while isinstance(index, Instruction) and index.op is Op.IAdd and index.type.width == 64:
        if not isinstance(index.operands[1], Constant):
            break
        number += signed(index.operands[1].value or 0, 64)
        index = index.operands[0]
    if isinstance(index, Instruction) and index.op in (Op.SConvert, Op.UConvert):
        if index.type.width > index.operands[0].type.width:
            conversion, index = index.op, index.operands[0]
            index, number = _without_constant(index, conversion is Op.SConvert, number)
    if (
        isinstance(index, Instruction)
        and index.op is Op.BitwiseOr
        and isinstance(index.operands[1], Constant)
    ):
        rest, low = index.operands[0], index.operands[1].value or 0
        if low < 1 << _zeros(rest):
            index, number = rest, number + low
    return (conversion, index), number


def _without_constant(index: Value, is_signed: bool, number: int) -> tuple[Value, int]:
    """What an index is before it is extended, beside a constant that is added to it and does not wrap; the
    number with that constant."""
    decoration = Decoration.NoSignedWrap if is_signed else Decoration.NoUnsignedWrap
    while isinstance(index, Instruction) and index.op is Op.IAdd and decoration in index.decorations:
        constant = index.operands[1]
        if not isinstance(constant, Constant):
            break
        value, width = constant.value or 0, index.type.width
        number += signed(value, width) if is_signed else value
        index = index.operands[0]
    return index, number


def _zeros(value: Value, depth: int = 0) -> int:
    """Low bits of an integer that are 0, as far as that is easily seen."""
    if isinstance(value, Constant):
        number = value.value or 0
        return (number & -number).bit_length() - 1 if number else value.type.width
    if not isinstance(value, Instruction) or depth > 6:
        return 0
    a, *rest = value.operands
    if value.op is Op.ShiftLeftLogical and isinstance(rest[0], Constant):
        return min(_zeros(a, depth + 1) + (rest[0].value or 0), value.type.width)
    if value.op in (Op.IAdd, Op.ISub, Op.BitwiseOr):
        return min(_zeros(a, depth + 1), _zeros(rest[0], depth + 1))
    if value.op is Op.IMul:
        return min(_zeros(a, depth + 1) + _zeros(rest[0], depth + 1), value.type.width)
    return _zeros(a, depth + 1) if value.op in (Op.SConvert, Op.UConvert) else 0


def _is_worth_it(e: AccessEmitter, access: InterleavedAccess) -> bool:
    """Loads if they fit in a stride, stores only if they fill it, if that costs no more than each alone."""
    unit, stride, model = access.unit, access.stride, e.cpu
    if unit < min(4, access.members[0][2]) or access.end - access.low > stride:
        return False
    if stride // unit > access_costs.MOST_FIELDS:
        return False
    if access.op is Op.Store and sum(size for *_, size in access.members) < stride:
        return False
    together = access_costs.price(access.cost_of_member(model), model)
    return together <= access_costs.price(access_costs.anywhere(access.reach(model), model), model)


def load_interleaved(e: AccessEmitter, access: InterleavedAccess) -> None:
    """Defines all loads of an access, for vectors without a mask."""
    if access.unit < 4:
        _load_small(e, access)
        return
    first, own, _ = access.members[0]
    low, unit, width, f = access.low, access.unit, e.width, e.form
    count, t, used = access.stride // unit, f"i{8 * unit}", (access.end - low) // unit
    address = e.operand(first.operands[0])
    metadata = e.alias_metadata(first.operands[0], is_load=True)
    vectors = []
    for k in range(count):
        at = e.emit(f"getelementptr i8, ptr {address}, i64 {low - own + k * width * unit}")
        there = min(width, (width - 1) * count + used - k * width)
        if there == width:
            vectors.append(e.emit(f"load {f(t)}, ptr {at}, align 4{metadata}"))
        elif there > 0:
            lanes = ", ".join(f"i1 {'true' if lane < there else 'false'}" for lane in range(width))
            vectors.append(
                e.emit(
                    f"call {f(t)} @llvm.masked.load.{f.suffix(MANGLED[t])}.p0(ptr align 4 {at}, "
                    f"{f('i1')} <{lanes}>, {f(t)} zeroinitializer){metadata}"
                )
            )
        else:
            vectors.append("zeroinitializer")
    fields = _deinterleave_fields(e, t, vectors)
    for i, offset, size in access.members:
        start = (offset - low) // unit
        leaf, wanted, whole = fields[start], ir_type(i.type), f"i{8 * size}"
        if size > unit:
            low_half, high_half = _interleave_fields(e, t, fields[start : start + 2])
            both = _shuffle(e, t, low_half, high_half, ", ".join(f"i32 {k}" for k in range(2 * width)))
            leaf = e.emit(f"bitcast <{2 * width} x {t}> {both} to {f(whole)}")
        e.define_leaves(i, [leaf if wanted == whole else e.emit(f"bitcast {f(whole)} {leaf} to {f(wanted)}")])


def _deinterleave_fields(e: AccessEmitter, t: str, vectors: list[str]) -> list[str]:
    """Fields of as many elements as there are vectors, from vectors of them mixed."""
    count, width = len(vectors), e.width
    if count == 1:
        return vectors
    if width == 8 and goes_in_blocks(e, t, count):
        return take_apart(e, t, vectors, count, count)
    if count % 2:
        whole, length = _joined(e, t, vectors)
        every = [", ".join(f"i32 {lane * count + k}" for lane in range(width)) for k in range(count)]
        return [
            e.emit(f"shufflevector {whole} {length}, {whole} poison, <{width} x i32> <{lanes}>")
            for lanes in every
        ]
    halves = []
    for k in range(2):
        lanes = ", ".join(f"i32 {2 * lane + k}" for lane in range(width))
        half = [_shuffle(e, t, a, b, lanes) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
        halves.append(_deinterleave_fields(e, t, half))
    return [field for pair in zip(*halves, strict=True) for field in pair]


def _interleave_fields(e: AccessEmitter, t: str, fields: list[str]) -> list[str]:
    """The inverse."""
    count, width = len(fields), e.width
    if count == 1:
        return fields
    if width == 8 and goes_in_blocks(e, t, count):
        return put_together(e, t, fields, count)
    if count % 2:
        whole, length = interleave(e, t, fields, count), form(width * count)
        return [
            e.emit(
                f"shufflevector {length(t)} {whole}, {length(t)} poison, <{width} x i32> "
                f"<{', '.join(f'i32 {k * width + lane}' for lane in range(width))}>"
            )
            for k in range(count)
        ]
    halves = [_interleave_fields(e, t, fields[k::2]) for k in range(2)]
    vectors = []
    for even, odd in zip(*halves, strict=True):
        for start in (0, width // 2):
            lanes = ", ".join(f"i32 {start + lane // 2 + lane % 2 * width}" for lane in range(width))
            vectors.append(_shuffle(e, t, even, odd, lanes))
    return vectors


def _shuffle(e: AccessEmitter, t: str, a: str, b: str, lanes: str) -> str:
    f = e.form
    return e.emit(f"shufflevector {f(t)} {a}, {f(t)} {b}, <{lanes.count(',') + 1} x i32> <{lanes}>")


def _joined(e: AccessEmitter, t: str, vectors: list[str]) -> tuple[str, str]:
    """The type, and all vectors as one, with poison up to a power of two of them."""
    count = 1 << (len(vectors) - 1).bit_length()
    vectors = vectors + ["poison"] * (count - len(vectors))
    return form(e.width * count)(t), one_vector(e, t, vectors, e.width)


def store_interleaved(e: AccessEmitter, access: InterleavedAccess) -> None:
    """All stores of an access, for vectors without a mask."""
    if access.unit < 4:
        _store_small(e, access)
        return
    (last, own, _), low, unit = access.members[-1], access.low, access.unit
    t, f, fields = f"i{8 * unit}", e.form, []
    for i, _, size in sorted(access.members, key=lambda member: member[1]):
        value, units = i.operands[1], size // unit
        leaf, given, wanted = e.leaf(value), ir_type(value.type), f"<{units * e.width} x {t}>"
        if units > 1 or given != t:
            leaf = e.emit(f"bitcast {f(given)} {leaf} to {wanted}")
        for k in range(units) if units > 1 else ():
            lanes = ", ".join(f"i32 {lane * units + k}" for lane in range(e.width))
            shuffle = f"shufflevector {wanted} {leaf}, {wanted} poison, <{e.width} x i32> <{lanes}>"
            fields.append(e.emit(shuffle))
        if units == 1:
            fields.append(leaf)
    address, metadata = e.operand(last.operands[0]), e.alias_metadata(last.operands[0])
    for k, vector in enumerate(_interleave_fields(e, t, fields)):
        at = e.emit(f"getelementptr i8, ptr {address}, i64 {low - own + k * e.width * unit}")
        place = last.operands[0], f(t), vector, at, access.stride, 4, metadata, unit
        if e.nontemporal is None or not e.nontemporal.store(e, *place):
            e.emit_void(f"store {f(t)} {vector}, ptr {at}, align 4{metadata}")


def _load_small(e: AccessEmitter, access: InterleavedAccess) -> None:
    """Loads of bytes or shorts: blocks of all that lies between, the last one so that it ends where the last
    lane's field ends, and of them the elements of each field."""
    first, own, _ = access.members[0]
    low, unit, width = access.low, access.unit, e.width
    count, t = access.stride // unit, f"i{8 * unit}"
    total = (width - 1) * count + (access.end - low) // unit
    size = min(_BLOCK // unit, 1 << (total.bit_length() - 1))
    starts = list(range(0, total - size + 1, size))
    if starts[-1] + size < total:
        starts.append(total - size)
    address, metadata = e.operand(first.operands[0]), e.alias_metadata(first.operands[0], is_load=True)
    blocks = []
    for start in starts:
        at = e.emit(f"getelementptr i8, ptr {address}, i64 {low - own + start * unit}")
        blocks.append(e.emit(f"load <{size} x {t}>, ptr {at}, align {unit}{metadata}"))
    for i, offset, _ in access.members:
        field = (offset - low) // unit
        places = [lane * count + field for lane in range(width)]
        where = [(k := min(place // size, len(starts) - 1), place - starts[k]) for place in places]
        leaf, wanted = _picked(e, t, blocks, size, where), ir_type(i.type)
        if wanted != t:
            leaf = e.emit(f"bitcast {e.form(t)} {leaf} to {e.form(wanted)}")
        e.define_leaves(i, [leaf])


def _store_small(e: AccessEmitter, access: InterleavedAccess) -> None:
    """Stores of bytes or shorts: blocks that each are picked from the vectors of all fields."""
    (last, own, _), low, unit, width = access.members[-1], access.low, access.unit, e.width
    t, fields = f"i{8 * unit}", []
    for i, _, _ in sorted(access.members, key=lambda member: member[1]):
        leaf, given = e.leaf(i.operands[1]), ir_type(i.operands[1].type)
        fields.append(leaf if given == t else e.emit(f"bitcast {e.form(given)} {leaf} to {e.form(t)}"))
    total, size = width * len(fields), _BLOCK // unit
    address, metadata = e.operand(last.operands[0]), e.alias_metadata(last.operands[0])
    for start in range(0, total, size):
        places = range(start, min(start + size, total))
        where = [(place % len(fields), place // len(fields)) for place in places]
        block = _picked(e, t, fields, width, where)
        at = e.emit(f"getelementptr i8, ptr {address}, i64 {low - own + start * unit}")
        e.emit_void(f"store <{len(where)} x {t}> {block}, ptr {at}, align {unit}{metadata}")


def _picked(e: AccessEmitter, t: str, vectors: list[str], size: int, where: list[tuple[int, int]]) -> str:
    """A vector of these elements, (vector, place in it) each, of vectors of `size`: so many at a time as a
    block holds, from which each vector that has some of them is asked once."""
    block, pieces = _BLOCK * 8 // int(t[1:]), []
    for first in range(0, len(where), block):
        wanted, piece = where[first : first + block], ""
        taken: set[int] = set()
        for number in sorted({vector for vector, _ in wanted}):
            places = [str(place) if vector == number else "poison" for vector, place in wanted]
            lanes = ", ".join(f"i32 {place}" for place in places)
            f, chosen = f"<{size} x {t}>", f"<{len(wanted)} x i32> <{lanes}>"
            own = e.emit(f"shufflevector {f} {vectors[number]}, {f} poison, {chosen}")
            if taken:
                both = [k if vector in taken else len(wanted) + k for k, (vector, _) in enumerate(wanted)]
                own = shuffle(e, t, len(wanted), piece, own, both)
            piece = own
            taken.add(number)
        pieces.append(piece)
    return one_vector(e, t, pieces, block)
