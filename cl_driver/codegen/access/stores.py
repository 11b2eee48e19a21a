"""Stores of all lanes: the table of ways, and what each row emits. Lanes outside of the instruction's mask
touch nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from ...passes.analysis.private_uses import repeated_byte
from ...passes.cost import access_costs
from ...passes.cost.access_costs import Reach
from ...passes.cost.cpu_models import Cost, CpuModel
from ...passes.ir.remarks import ASKED, CONTIGUOUS, LANES, SHUFFLED, UNIFORM
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Instruction, Kind, Type, Undef, Value
from ..layout.lanes import HARMLESS_BYTES
from ..library.shared_code import is_written_out
from ..llvm.forms import form
from ..llvm.registry import lowers_wide
from ..llvm.types import ir_type, leaf_types, size_of
from ..llvm.versioning import emit_versions
from ..ops.memory import access_alignment, copy_memory_sized, hint_of, store_operand, store_value
from ..ops.memory import store as single_store
from . import ways
from .addresses import Address, address_of, all_lanes, is_within_variable
from .emitter import AccessEmitter, MaskedStore
from .gather_scatter import addresses_here, interleave, memory_type, scatter, to_memory
from .interleaved_access import InterleavedAccess, store_interleaved
from .masked_access import AT_ONCE, BY_VERSIONS, flush, store_masked, store_private, ways_to_store
from .packed_vectors import separate
from .store_merging import MergedStores, store_merged
from .ways import Access, Table, Way, fixed

# Memory of the host's, a page of which may not be there before something is stored in it.
_GLOBAL = (StorageClass.CrossWorkgroup, StorageClass.Generic)

_LINES_OF_VOLATILE = 5  # of LLVM IR for each lane
_MOST_FILLED = 8  # pieces of memory that are filled without a loop


@lowers_wide(Op.Store)
def store(e: AccessEmitter, i: Instruction) -> None:
    """OpStore."""
    pointer, value = i.operands[:2]
    if isinstance(value, Undef):
        return
    demand, alignment = _demand(e, i), access_alignment(i.memory, value.type)
    access = Access(i, pointer, value.type, demand, size_of(value.type), alignment)
    access.is_store, access.hint = True, hint_of(i.memory)
    if demand == ways.ANY:
        access.find(e)
        access.waits = ways.may_wait(e, i)
        access.stays_packed = value in e.packed and access.stride != 0
        _gives(e, access, value)
    STORES.take(e, access)


def _demand(e: AccessEmitter, i: Instruction) -> str:
    if ways.is_seen(e, i):
        return ways.VOLATILE
    if i in e.merged_stores:
        return ways.MERGED
    if i in e.interleaved and e.mask_of(i) is None:
        return ways.FIELD
    if e.spacing(i.operands[0]) > 1:
        return ways.PIECES
    if e.lane_constants is not None and e.lane_constants.here is not None:
        return ways.IN_REGISTERS
    return ways.ANY


def _gives(e: AccessEmitter, access: Access, value: Value) -> None:
    """Says what is stored."""
    access.leaves_of = lambda: e.leaves_of[value] if access.stays_packed else e.leaves(value)
    access.uniform = None if e.is_varying(value) or e.stride_is_mixed(value) else value


def store_to(
    e: AccessEmitter, i: Instruction, pointer: Value, address: Address, value: Value, place: int,
    alignment: int, index: Value,
) -> None:  # fmt: skip
    """Stores what vstoren is given. place: bytes that a vector takes, in arrays of its kind.

    pointer, index: the Values that the address was computed from, index in units of `place`.
    """
    access = Access(i, pointer, value.type, ways.ANY, place, alignment, index)
    access.is_store = True
    access.find(e, address)
    _gives(e, access, value)
    STORES.take(e, access)


# Rows for what an access demands.


def _volatile(e: AccessEmitter, access: Access, _: bool) -> None:
    """Each lane's store by itself; lanes outside of the mask store elsewhere, which takes no branch that can
    be guessed wrong."""
    i, value, mask = access.i, access.i.operands[1], e.mask_of(access.i)
    lines = _LINES_OF_VOLATILE * e.width
    if mask is None or size_of(value.type) > HARMLESS_BYTES or not is_written_out(e, lines):
        e.lane_by_lane(i, single_store)
        return
    e.written_out += lines
    e.note(LANES, masked=True)
    bits, dump = e.emit(f"bitcast {e.form('i1')} {mask} to i{e.width}"), e.harmless_memory("dump")
    for lane in range(e.width):
        bit = e.emit(f"trunc i{e.width} {e.emit(f'lshr i{e.width} {bits}, {lane}')} to i1")
        e.lane = lane
        place = e.emit(f"select i1 {bit}, ptr {e.operand(access.pointer)}, ptr {dump}")
        store_value(e, place, value, access.alignment, volatile=True)
        e.lane = None


def _merged_with(e: AccessEmitter, access: Access) -> MergedStores | None:
    return e.merged_stores.get(access.i)


def _merged(e: AccessEmitter, access: Access, merged: MergedStores) -> None:
    """The stores of all parts, where the last of them stands."""
    if e.shapes.part_of.get(access.i) == e.parts - 1:
        store_merged(e, merged)


def _fields_of(e: AccessEmitter, access: Access) -> InterleavedAccess | None:
    return e.interleaved.get(access.i)


def _fields(e: AccessEmitter, access: Access, group: InterleavedAccess) -> None:
    """All fields are stored with the last of them."""
    e.note(SHUFFLED, f"{group.stride} bytes from lane to lane")
    if access.i is group.members[-1][0]:
        store_interleaved(e, group)


def _cost_of_fields(_: Reach, model: CpuModel, group: InterleavedAccess) -> Cost:
    return group.cost_of_member(model)


def _pieces(e: AccessEmitter, access: Access, _: bool) -> None:
    found = ways.pieces(e, access.pointer, access.type)
    for (type_, address), leaf in zip(found, e.leaves(access.i.operands[1]), strict=True):
        store_piece(e, access.i, type_, address, leaf)


def _in_registers(e: AccessEmitter, access: Access, _: bool) -> None:
    """A store to local memory where each lane's place is known."""
    i, value = access.i, access.i.operands[1]
    assert e.lane_constants is not None and e.lane_constants.here is not None  # the demand
    places = e.lane_constants.here
    mask = None if places.is_certain else e.mask_of(i)
    e.note(SHUFFLED, masked=i.mask is not None)
    leaves = e.leaves(value)
    data = leaves[0]
    if value.type.kind is Kind.VECTOR:
        element = ir_type(value.type.element)
        data = interleave(e, element, leaves, len(leaves))
        data = e.emit(f"bitcast <{e.width * len(leaves)} x {element}> {data} to {e.form(places.t)}")
    e.lane_constants.store_places(places, size_of(value.type), data, mask)


# Rows for all others.


def _leaves(e: AccessEmitter, access: Access) -> list[str]:
    """What is stored, as it is in memory."""
    if access.data is None:
        types, leaves = leaf_types(access.type), access.leaves_of()
        if len(leaves) == len(types):
            leaves = [to_memory(e, t, leaf) for t, leaf in zip(types, leaves, strict=True)]
        access.data = leaves
    return access.data


def _apart(e: AccessEmitter, access: Access) -> list[str]:
    """The same, though it be packed."""
    leaves, types = _leaves(e, access), leaf_types(access.type)
    is_packed = len(leaves) < len(types)
    return separate(e, types[0], leaves[0], len(types), len(types)) if is_packed else leaves


def _uniform(e: AccessEmitter, access: Access, _: bool) -> None:
    metadata, address = access.metadata(e), access.address.single
    assert address is not None
    e.note(UNIFORM, masked=access.is_masked)
    data = access.leaves_of, access.alignment, access.mask, access.uniform, metadata
    store_single(e, address, access.type, *data)


def _to_neighbours(e: AccessEmitter, access: Access) -> bool:
    return ways.is_contiguous(e, access) is not None


def _goes_past_caches(e: AccessEmitter, access: Access) -> bool | None:
    """Neighbours, all of them and without gaps, where nobody reads what is written once."""
    if access.is_masked or access.hint or not _to_neighbours(e, access) or e.nontemporal is None:
        return None
    types = leaf_types(access.type)
    has_gaps = len(types) * size_of(types[0]) < access.place
    return (not has_gaps and e.nontemporal.suits(e, access.pointer, access.place)) or None


def _has_no_mask(e: AccessEmitter, access: Access) -> bool | None:
    return (not access.is_masked and _to_neighbours(e, access)) or None


def _may_go(how: str) -> Callable[[AccessEmitter, Access], bool | None]:
    """Neighbours under a mask that may be stored in this way."""

    def match(e: AccessEmitter, access: Access) -> bool | None:
        if access.mask is None or not _to_neighbours(e, access):
            return None
        size, count = size_of(leaf_types(access.type)[0]), len(leaf_types(access.type))
        is_whole = count * size == access.place
        return how in ways_to_store(e.options, size, access.place, is_whole, access.mask) or None

    return match


def _contiguous(how: str = "", is_past: bool = False) -> Callable[[AccessEmitter, Access, bool], None]:
    def lower(e: AccessEmitter, access: Access, _: bool) -> None:
        metadata, leaves, address = access.metadata(e), _leaves(e, access), access.address.single
        types, pointer = leaf_types(access.type), access.pointer
        assert address is not None
        why = "in versions by what the mask is" if how == BY_VERSIONS else ""
        e.note(CONTIGUOUS if len(types) == 1 else SHUFFLED, why, access.is_masked)
        store_contiguous(
            e, address, types[0], leaves, access.place, access.alignment, access.mask, access.hint, metadata,
            pointer if is_past else None, access.waits, pointer.type.storage in _GLOBAL, how,
        )  # fmt: skip

    return lower


def _asked(e: AccessEmitter, access: Access, stride: int) -> bool:
    metadata, leaves, pointer = access.metadata(e), _leaves(e, access), access.pointer
    found = ways.ask(e, access, stride)
    if found is None:
        return False
    condition, first = found
    type_, there = access.type, (access.alignment, access.mask)
    addresses = all_lanes(e, access.address)
    e.note(ASKED, masked=access.is_masked)
    emit_versions(
        e, condition, [],
        lambda: store_contiguous(
            e, first, leaf_types(type_)[0], leaves, access.place, *there, access.hint, metadata,
            is_global=pointer.type.storage in _GLOBAL,
        ),
        lambda: scatter(
            e, addresses_here(e, pointer, addresses, access.index), type_, _apart(e, access), *there, metadata
        ),
    )  # fmt: skip
    return True


def _of_lanes(how: str) -> Callable[[AccessEmitter, Access, bool], None]:
    def lower(e: AccessEmitter, access: Access, _: bool) -> None:
        metadata = access.metadata(e)
        _leaves(e, access)
        addresses = all_lanes(e, access.address)
        there = access.alignment, access.mask, metadata, access.stride
        scatter(e, addresses, access.type, _apart(e, access), *there, how)

    return lower


def _cost_of_asked(reach: Reach, model: CpuModel, _: object) -> Cost:
    return access_costs.asked(reach, model, False)


_PLAIN, _ONCE, _VERSIONS = (
    fixed(access_costs.contiguous_and_unmasked), fixed(access_costs.masked_store),
    fixed(access_costs.versions_by_mask),
)  # fmt: skip

STORES = Table(
    Way("volatile", ways.VOLATILE, ways.always, fixed(access_costs.lanes), _volatile),
    Way("merged", ways.MERGED, _merged_with, fixed(access_costs.rows), _merged),
    Way("fields", ways.FIELD, _fields_of, _cost_of_fields, _fields, False),
    Way("pieces", ways.PIECES, ways.lies_together, fixed(access_costs.pieces), _pieces),
    Way("pieces, anywhere", ways.PIECES, ways.always, fixed(access_costs.lanes), _pieces),
    Way("in registers", ways.IN_REGISTERS, ways.always, fixed(access_costs.in_registers), _in_registers),
    Way("uniform", ways.ANY, ways.is_uniform, fixed(access_costs.uniform), _uniform),
    Way("past the caches", ways.ANY, _goes_past_caches, _PLAIN, _contiguous(is_past=True)),
    Way("contiguous", ways.ANY, _has_no_mask, _PLAIN, _contiguous()),
    Way("masked store", ways.ANY, _may_go(AT_ONCE), _ONCE, _contiguous(AT_ONCE)),
    Way("versions by mask", ways.ANY, _may_go(BY_VERSIONS), _VERSIONS, _contiguous(BY_VERSIONS)),
    Way("asked whether neighbours", ways.ANY, ways.may_be_neighbours, _cost_of_asked, _asked),
    Way("scatter", ways.ANY, ways.by_instruction, fixed(access_costs.gather), _of_lanes(access_costs.GATHER)),
    Way("rows", ways.ANY, ways.by_rows, fixed(access_costs.rows), _of_lanes(access_costs.ROWS)),
    Way("lanes", ways.ANY, ways.by_lane, fixed(access_costs.lanes), _of_lanes(access_costs.LANES)),
)


# What others emit, too.


def store_single(
    e: AccessEmitter,
    address: str,
    type_: Type,
    leaves_of: Callable[[], list[str]],
    alignment: int,
    mask: str | None,
    uniform: Value | None,
    metadata: str = "",
) -> None:
    """All lanes store to one place: what the first of them stores stays, if there is any."""
    after = None
    leaves: list[str] = []
    if uniform is None:
        leaves = leaves_of()
    some = "true" if mask is None else e.any_lane(mask)
    if some != "true":
        body, after = e.new_label("store"), e.new_label("stored")
        e.emit_void(f"br i1 {some}, label %{body}, label %{after}")
        e.begin_block(body)
    if uniform is not None:
        single = e.operand(uniform)
    else:
        single = e.assemble(
            type_,
            iter(
                [
                    e.first_active(ir_type(t), leaf, mask)
                    for t, leaf in zip(leaf_types(type_), leaves, strict=True)
                ]
            ),
        )
    store_operand(e, address, type_, single, alignment, metadata=metadata)
    if after is not None:
        e.emit_void(f"br label %{after}")
        e.begin_block(after)


def store_contiguous(
    e: AccessEmitter, address: str, element: Type, leaves: list[str], place: int, alignment: int,
    mask: str | None, hint: str = "", metadata: str = "", pointer: Value | None = None, waits: bool = False,
    is_global: bool = False, how: str = "",
) -> None:  # fmt: skip
    """Stores W values that follow one another in memory, each of len(leaves) elements; or one leaf with
    all of them (packed_vectors.py).

    pointer: the Value that the address was computed from, if they may be stored past the caches. waits, how:
    as of store_masked(). is_global: as of MaskedStore.
    """
    t, count = memory_type(element), len(leaves)
    stride = place // size_of(element)
    whole = form(e.width * stride)
    if count == 1:
        data, count = leaves[0], stride
    else:
        data = interleave(e, t, leaves, stride)
    if mask is None and count == stride:
        flush(e)
        if (
            pointer is not None
            and not hint
            and e.nontemporal is not None
            and e.nontemporal.store(e, pointer, whole(t), data, address, place, alignment, metadata)
        ):
            return
        e.emit_void(f"store {whole(t)} {data}, ptr {address}, align {alignment}{hint}{metadata}")
        return
    store = MaskedStore(
        t, size_of(element), data, address, stride, count, alignment, metadata, is_global, e.at_hand
    )
    store_masked(e, store, mask or "splat (i1 true)", waits, how)


@lowers_wide(Op.CopyMemorySized)
def copy(e: AccessEmitter, i: Instruction) -> None:
    """OpCopyMemorySized: to memory in pieces of what is one byte over and over."""
    target, source, size = i.operands[:3]
    if e.spacing(target) == 1:
        e.lane_by_lane(i, copy_memory_sized)
        return
    byte, address = repeated_byte(source), address_of(e, target)
    length = e.integer(size)
    assert byte is not None and length is not None  # private_uses.py has looked
    piece, mask = e.piece(target), e.mask_of(i)
    step, t = e.scaled(target, piece), f"i{8 * piece}"
    type_, data = Type(Kind.INT, width=8 * piece), e.form.splat(t, str(int.from_bytes(bytes([byte]) * piece)))
    e.note(CONTIGUOUS if address.single is not None else LANES, masked=mask is not None)

    def fill(index: str) -> None:
        offset = e.emit(f"mul i64 {index}, {step}")
        if address.single is None:
            at = e.emit(f"getelementptr i8, {e.form('ptr')} {address.leaf}, i64 {offset}")
            scatter(e, at, type_, [data], piece, mask)
            return
        at = e.emit(f"getelementptr i8, ptr {address.single}, i64 {offset}")
        if mask is None:
            e.emit_void(f"store {e.form(t)} {data}, ptr {at}, align {piece}")
        else:
            store_private(e, t, data, at, piece, mask, is_within_variable(e, target, length))

    if length // piece <= _MOST_FILLED:
        for k in range(length // piece):
            fill(str(k))
    else:
        e.counted_loop(str(length // piece), fill)


def store_piece(e: AccessEmitter, i: Instruction, type_: Type, address: Address, leaf: str) -> None:
    """Stores one leaf of each lane."""
    size, mask, leaf = size_of(type_), e.mask_of(i), to_memory(e, type_, leaf)
    if address.single is not None and address.stride == size:
        e.note(CONTIGUOUS, masked=mask is not None)
        t = memory_type(type_)
        if mask is None:
            e.emit_void(f"store {e.form(t)} {leaf}, ptr {address.single}, align {size}")
        else:
            is_there = is_within_variable(e, i.operands[0], size_of(i.operands[1].type))
            store_private(e, t, leaf, address.single, size, mask, is_there)
    else:
        scatter(e, all_lanes(e, address), type_, [leaf], size, mask)
