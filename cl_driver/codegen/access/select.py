"""Wide lowerings of memory: contiguous vectors where the address is affine in the lane, one access where
it is uniform, gathers and scatters elsewhere. Lanes outside of the instruction's mask touch nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...passes.ir.remarks import ASKED, CONTIGUOUS, SHUFFLED, UNIFORM
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Instruction, Kind, Type, Undef, Value, Variable
from ..llvm.forms import form
from ..llvm.registry import lowers_wide
from ..llvm.types import ir_type, leaf_types, member_offset, size_of
from ..llvm.versioning import emit_versions
from ..ops.memory import access_alignment, hint_of, load_value, offset_pointer, store_operand
from ..ops.memory import access_chain as single_access_chain
from ..ops.memory import load as single_load
from ..ops.memory import store as single_store
from . import packed_vectors
from .addresses import Address, address_of, advance, all_lanes, is_within_variable
from .emitter import AccessEmitter, MaskedStore
from .gather_scatter import (
    addresses_here,
    from_memory,
    gather,
    interleave,
    leaf_offsets,
    memory_type,
    scatter,
    split,
    to_memory,
)
from .load_transpose import find_rows, load_rows
from .lut_permute import look_up
from .masked_access import flush, load_private, store_masked, store_private
from .packed_vectors import load_consecutive, separate

# Memory of the host's, a page of which may not be there before something is stored in it.
_GLOBAL = (StorageClass.CrossWorkgroup, StorageClass.Generic)


@lowers_wide(Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
def access_chain(e: AccessEmitter, i: Instruction) -> None:
    """Access chains with an index or base that varies."""
    base, indices = i.operands[0], list(i.operands[1:])
    if isinstance(base, Variable) and base.builtin is not None:
        e.lane_by_lane(i, single_access_chain)
        return
    type_, spacing = base.type.element, e.spacing(base)
    address = address_of(e, base)
    if i.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
        address = advance(e, address, indices.pop(0), size_of(type_) * spacing)
    constant = 0
    for index in indices:
        if type_.kind is Kind.STRUCT:
            number = e.member_number(type_, index)
            constant += member_offset(type_, number) * spacing
            type_ = type_.members[number]
            continue
        type_ = type_.element
        literal = e.integer(index)
        if literal is not None:
            constant += literal * size_of(type_) * spacing
        else:
            address = advance(e, address, index, size_of(type_) * spacing)
    leaf = all_lanes(e, address)
    if constant:
        leaf = e.emit(f"getelementptr i8, {e.form('ptr')} {leaf}, i64 {constant}")
    e.define_leaves(i, [leaf])


# Loads.


@lowers_wide(Op.Load)
def load(e: AccessEmitter, i: Instruction) -> None:
    """OpLoad: the first of these ways that there is."""
    pointer = i.operands[0]
    volatile = i.memory is not None and i.memory.volatile
    if isinstance(pointer, Variable) and pointer.builtin is not None:
        single_load(e, i)
    elif (component := e.builtin_addresses.get(pointer)) is not None:
        if e.is_varying(i):
            e.define_leaves(i, e.id_leaves(i.type, component.variable, component.index))
        else:
            single_load(e, i)
    elif volatile:
        e.lane_by_lane(i, single_load)
    elif (found := look_up(e, i)) is not None:
        e.note(SHUFFLED, masked=i.mask is not None)
        e.define_leaves(i, [found])
    elif e.spacing(pointer) > 1:
        e.define_leaves(i, [load_piece(e, i, *piece) for piece in _pieces(e, pointer, i.type)])
    elif e.lane_constants is not None and e.lane_constants.here is not None:
        _load_places(e, i, e.lane_constants.load_places(e.lane_constants.here, size_of(i.type)))
    elif i in e.packed:
        _load_packed(e, i, pointer, access_alignment(i.memory, i.type))
    elif i in e.places:
        _load_asked(e, i, pointer, access_alignment(i.memory, i.type), e.places[i])
    else:
        alignment = access_alignment(i.memory, i.type)
        load_from(e, i, pointer, address_of(e, pointer), i.type, size_of(i.type), alignment)


def _load_places(e: AccessEmitter, i: Instruction, loaded: str) -> None:
    """A load from local memory where each lane's place is known. loaded: what is there, of all lanes."""
    e.note(SHUFFLED, masked=i.mask is not None)
    leaves = [loaded]
    if i.type.kind is Kind.VECTOR:
        leaves = split(e, loaded, 8 * size_of(i.type), leaf_types(i.type))
    e.define_leaves(i, leaves)


def ask_packed(e: AccessEmitter, i: Instruction) -> tuple[str, str, int] | None:
    """What there is to ask of a load for packed_vectors.py."""
    if e.shapes.part_of:
        e.select_part(e.shapes.part_of.get(i, 0))
    return _ask(e, i.operands[0], None, (size_of(i.type),), i.type)


def _load_packed(e: AccessEmitter, i: Instruction, pointer: Value, alignment: int) -> None:
    address, mask = address_of(e, pointer), e.mask_of(i)
    asked = ask_packed(e, i) if address.single is None and i not in e.places else None
    e.note(CONTIGUOUS if address.single is not None else ASKED, masked=mask is not None)
    first = address.single or (asked[1] if asked is not None else e.places.get(i))
    if mask is None and first is not None:
        e.note_load(pointer, first, size_of(i.type) * e.width)
    packed_vectors.load(
        e, i, address, asked, alignment, mask, e.alias_metadata(pointer, is_load=mask is None)
    )


def _load_asked(e: AccessEmitter, i: Instruction, pointer: Value, alignment: int, place: str | None) -> None:
    """A load in one of the halves of block_versioning.py: from where the neighbours are, or from anywhere."""
    mask, types, size = e.mask_of(i), leaf_types(i.type), size_of(i.type)
    metadata = e.alias_metadata(pointer, is_load=mask is None)
    if place is None:
        addresses = addresses_here(e, pointer, address_of(e, pointer).all_lanes(e), None)
        e.define_leaves(i, gather(e, addresses, i.type, alignment, mask, metadata))
        return
    e.note(ASKED, masked=mask is not None)
    if mask is None:
        e.note_load(pointer, place, size * e.width)
    leaves = load_contiguous(e, place, types[0], len(types), size, alignment, mask, metadata)
    e.define_leaves(i, leaves)


def load_from(
    e: AccessEmitter,
    i: Instruction,
    pointer: Value,
    address: Address,
    type_: Type,
    place: int,
    alignment: int,
    index: Value | None = None,
) -> None:
    """Defines a result loaded from memory. place: bytes that a vector takes, in arrays of its kind.

    pointer, index: the Values that the address was computed from, index in units of `place`.
    """
    mask = e.mask_of(i)
    metadata = e.alias_metadata(pointer, is_load=mask is None)
    types = leaf_types(type_)
    masked = mask is not None
    if address.single is not None and address.stride == 0:
        e.note(UNIFORM, masked=masked)
        single = load_single(e, address.single, type_, alignment, mask, metadata)
        if e.is_varying(i):
            e.define_leaves(
                i,
                [
                    e.splat(scalar, ir_type(t), e.form)
                    for t, scalar in zip(types, e.explode(type_, single), strict=True)
                ],
            )
        else:
            e.define(i, single)
        return
    element = types[0]
    if address.single is not None and address.stride == place and _may_be_contiguous(type_):
        e.note(CONTIGUOUS if len(types) == 1 else SHUFFLED, masked=masked)
        leaves = load_contiguous(e, address.single, element, len(types), place, alignment, mask, metadata)
        e.define_leaves(i, leaves)
        if not masked:
            e.note_load(pointer, address.single, place * e.width)
        return
    asked = _ask(e, pointer, index, (place, 0), type_)
    if asked is None:
        affine = (address.single, address.stride) if address.single is not None else None
        addresses = all_lanes(e, address)

        def anywhere() -> list[str]:
            return gather(e, addresses, type_, alignment, mask, metadata, affine)

        rows = find_rows(e, i) if i.op is Op.Load else None
        if rows is None:
            e.define_leaves(i, anywhere())
        else:
            e.note(SHUFFLED, masked=masked)
            leaf = load_rows(e, i, rows, alignment, affine, lambda: anywhere()[0], metadata, mask)
            e.define_leaves(i, [leaf])
        return
    condition, first, stride = asked
    e.note(ASKED, masked=masked)
    if stride and not masked:
        e.note_load(pointer, first, place * e.width)

    def contiguous() -> list[str]:
        if stride:
            return load_contiguous(e, first, element, len(types), place, alignment, mask, metadata)
        scalars = e.explode(type_, load_single(e, first, type_, alignment, mask, metadata))
        return [e.splat(scalar, ir_type(t), e.form) for t, scalar in zip(types, scalars, strict=True)]

    addresses = all_lanes(e, address)
    e.define_leaves(
        i,
        emit_versions(
            e, condition, [e.form(ir_type(t)) for t in types], contiguous,
            lambda: gather(e, addresses_here(e, pointer, addresses, index), type_, alignment, mask, metadata),
        ),
    )  # fmt: skip


def _ask(
    e: AccessEmitter, pointer: Value, index: Value | None, strides: Sequence[int], type_: Type
) -> tuple[str, str, int] | None:
    """What there is to ask of a varying address when the kernel runs: an i1, lane 0's address, the stride."""
    if not _may_be_contiguous(type_) or (index is not None and index.type.width < 64):
        return None
    terms = [(pointer, 1)] if index is None else [(pointer, 1), (index, strides[0])]
    for stride in strides:
        found = e.contiguity.ask(terms, stride)
        if found is not None:
            return (*found, stride)
    return None


def _may_be_contiguous(type_: Type) -> bool:
    """Scalars and vectors, which lie in memory as one kind of element."""
    return type_.kind not in (Kind.ARRAY, Kind.STRUCT)


def load_single(
    e: AccessEmitter, address: str, type_: Type, alignment: int, mask: str | None, metadata: str = ""
) -> str:
    """One value for all lanes. If no lane takes part, what is loaded is a place that is always there."""
    if mask is not None:
        size = max(size_of(type_), 1)
        spare = e.alloca(f"[{size} x i8]", max(alignment, 1))
        e.prologue.append(f"  store [{size} x i8] zeroinitializer, ptr {spare}, align 1")
        address = e.emit(f"select i1 {e.any_lane(mask)}, ptr {address}, ptr {spare}")
    return load_value(e, address, type_, alignment, metadata=metadata)


def load_contiguous(
    e: AccessEmitter,
    address: str,
    element: Type,
    count: int,
    place: int,
    alignment: int,
    mask: str | None,
    metadata: str = "",
) -> list[str]:
    """The leaves of W values that follow one another in memory, each of `count` elements."""
    stride = place // size_of(element)
    data = load_consecutive(e, address, element, stride, alignment, mask, metadata)
    return [from_memory(e, element, part) for part in separate(e, element, data, stride, count)]


# Private memory in pieces (layout/private_layout.py).


def _pieces(e: AccessEmitter, pointer: Value, type_: Type) -> list[tuple[Type, Address]]:
    """The type and Address of each leaf of what lies in pieces."""
    address, spacing = address_of(e, pointer), e.spacing(pointer)
    pieces: list[tuple[Type, Address]] = []
    for t, offset in zip(leaf_types(type_), leaf_offsets(type_), strict=True):
        if address.single is not None:
            at = Address(offset_pointer(e, address.single, offset * spacing, ""), address.stride, None)
        else:
            where = f"getelementptr i8, {e.form('ptr')} {address.leaf}, i64 {offset * spacing}"
            at = Address(None, 0, e.emit(where) if offset else address.leaf)
        pieces.append((t, at))
    return pieces


def load_piece(e: AccessEmitter, i: Instruction, type_: Type, address: Address) -> str:
    """One leaf of each lane."""
    size, mask = size_of(type_), e.mask_of(i)
    if address.single is not None and address.stride == size:
        e.note(CONTIGUOUS, masked=mask is not None)
        t = memory_type(type_)
        if mask is None:
            data = e.emit(f"load {e.form(t)}, ptr {address.single}, align {size}")
        else:
            is_there = is_within_variable(e, i.operands[0], size_of(i.type))
            data = load_private(e, t, address.single, size, mask, is_there)
        return from_memory(e, type_, data)
    return gather(e, all_lanes(e, address), type_, size, mask)[0]


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


# Stores.


@lowers_wide(Op.Store)
def store(e: AccessEmitter, i: Instruction) -> None:
    """OpStore."""
    pointer, value = i.operands[:2]
    if isinstance(value, Undef):
        return
    if i.memory is not None and i.memory.volatile:
        e.lane_by_lane(i, single_store)
        return
    alignment = access_alignment(i.memory, value.type)
    if e.spacing(pointer) > 1:
        pieces = _pieces(e, pointer, value.type)
        for (type_, address), leaf in zip(pieces, e.leaves(value), strict=True):
            store_piece(e, i, type_, address, leaf)
        return
    if e.lane_constants is not None and e.lane_constants.here is not None:
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
        return
    address = address_of(e, pointer)
    stays_packed = value in e.packed and not (address.single is not None and address.stride == 0)
    store_to(
        e,
        pointer,
        address,
        value.type,
        lambda: e.leaves_of[value] if stays_packed else e.leaves(value),
        size_of(value.type),
        alignment,
        e.mask_of(i),
        None if e.is_varying(value) or e.stride_is_mixed(value) else value,
        hint_of(i.memory),
        waits=may_wait(e, i),
    )


def may_wait(e: AccessEmitter, i: Instruction) -> bool:
    """Whether an instruction is a masked store of neighbours, which may wait (masked_access.py)."""
    if i.op is not Op.Store or i.mask is None or (i.memory is not None and i.memory.volatile):
        return False
    pointer, type_ = i.operands[0], i.operands[1].type
    if e.lane_constants is not None or e.spacing(pointer) > 1 or e.is_varying(pointer):
        return False
    return e.stride(pointer) == size_of(type_) and _may_be_contiguous(type_)


def store_to(
    e: AccessEmitter, pointer: Value, address: Address, type_: Type, leaves_of: Callable[[], list[str]],
    place: int, alignment: int, mask: str | None,
    uniform: Value | None = None, hint: str = "", index: Value | None = None, waits: bool = False,
) -> None:  # fmt: skip
    """Stores leaves. uniform: the Value, if it is the same in all lanes. hint: metadata of whole vectors.
    waits: may_wait() holds.

    pointer, index: the Values that the address was computed from, index in units of `place`.
    """
    types, metadata = leaf_types(type_), e.alias_metadata(pointer)
    masked, is_global = mask is not None, pointer.type.storage in _GLOBAL
    if address.single is not None and address.stride == 0:
        e.note(UNIFORM, masked=masked)
        store_single(e, address.single, type_, leaves_of, alignment, mask, uniform, metadata)
        return
    leaves = leaves_of()
    is_packed = len(leaves) < len(types)
    if not is_packed:
        leaves = [to_memory(e, t, leaf) for t, leaf in zip(types, leaves, strict=True)]
    if address.single is not None and address.stride == place and _may_be_contiguous(type_):
        e.note(CONTIGUOUS if len(types) == 1 else SHUFFLED, masked=masked)
        store_contiguous(
            e, address.single, types[0], leaves, place, alignment, mask, hint, metadata, pointer, waits,
            is_global,
        )  # fmt: skip
        return
    asked = _ask(e, pointer, index, (place,), type_)
    addresses = all_lanes(e, address)

    def single_leaves() -> list[str]:
        return separate(e, types[0], leaves[0], len(types), len(types)) if is_packed else leaves

    if asked is None:
        stride = address.stride if address.single is not None else None
        scatter(e, addresses, type_, single_leaves(), alignment, mask, metadata, stride)
        return
    condition, first, _ = asked
    e.note(ASKED, masked=masked)
    emit_versions(
        e, condition, [],
        lambda: store_contiguous(
            e, first, types[0], leaves, place, alignment, mask, hint, metadata, is_global=is_global
        ),
        lambda: scatter(
            e, addresses_here(e, pointer, addresses, index), type_, single_leaves(), alignment, mask, metadata
        ),
    )  # fmt: skip


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
    if mask is not None:
        body, after = e.new_label("store"), e.new_label("stored")
        if uniform is None:
            leaves = leaves_of()
        e.emit_void(f"br i1 {e.any_lane(mask)}, label %{body}, label %{after}")
        e.begin_block(body)
    elif uniform is None:
        leaves = leaves_of()
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
    is_global: bool = False,
) -> None:  # fmt: skip
    """Stores W values that follow one another in memory, each of len(leaves) elements; or one leaf with
    all of them (packed_vectors.py).

    pointer: the Value that the address was computed from, if they may be stored past the caches. waits: as of
    store_masked(). is_global: as of MaskedStore.
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
    store = MaskedStore(t, size_of(element), data, address, stride, count, alignment, metadata, is_global)
    store_masked(e, store, mask or "splat (i1 true)", waits)
