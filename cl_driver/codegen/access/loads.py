"""Loads of all lanes: the table of ways, and what each row emits. Lanes outside of the instruction's mask
touch nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from ...passes.cost import access_costs
from ...passes.cost.access_costs import Reach
from ...passes.cost.cpu_models import Cost, CpuModel
from ...passes.ir.remarks import ASKED, CONTIGUOUS, SHUFFLED, UNIFORM
from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind, Type, Value, Variable
from ..llvm.registry import lowers_wide
from ..llvm.types import ir_type, leaf_types, size_of
from ..llvm.versioning import emit_versions
from ..ops.memory import access_alignment, load_value
from ..ops.memory import load as single_load
from . import packed_vectors, ways
from .addresses import Address, all_lanes, is_within_variable
from .emitter import AccessEmitter
from .gather_scatter import addresses_here, from_memory, gather, memory_type, split
from .interleaved_access import InterleavedAccess, load_interleaved
from .load_transpose import Rows, find_rows, load_rows
from .lut_permute import LookUp, find_table, look_up
from .masked_access import load_private
from .packed_vectors import load_consecutive, separate
from .ways import Access, Table, Way, fixed


@lowers_wide(Op.Load)
def load(e: AccessEmitter, i: Instruction) -> None:
    """OpLoad."""
    pointer, demand = i.operands[0], _demand(e, i)
    if demand in (ways.ID, ways.VOLATILE):
        LOADS.take(e, Access(i, pointer, i.type, demand))
        return
    access = Access(i, pointer, i.type, demand, size_of(i.type), access_alignment(i.memory, i.type))
    if demand in (ways.ANY, ways.PACKED, ways.PLACED):
        access.find(e)
    LOADS.take(e, access)


def _demand(e: AccessEmitter, i: Instruction) -> str:
    pointer = i.operands[0]
    if isinstance(pointer, Variable) and pointer.builtin is not None:
        return ways.ID
    if pointer in e.builtin_addresses:
        return ways.ID
    if ways.is_seen(e, i):
        return ways.VOLATILE
    if i in e.interleaved and e.mask_of(i) is None:
        return ways.FIELD
    if e.spacing(pointer) > 1:
        return ways.PIECES
    if e.lane_constants is not None and e.lane_constants.here is not None:
        return ways.IN_REGISTERS
    if i in e.packed:
        return ways.PACKED
    return ways.PLACED if i in e.places else ways.ANY


def load_from(
    e: AccessEmitter, i: Instruction, pointer: Value, address: Address, place: int, alignment: int,
    index: Value,
) -> None:  # fmt: skip
    """Defines what vloadn gives. place: bytes that a vector takes, in arrays of its kind.

    pointer, index: the Values that the address was computed from, index in units of `place`.
    """
    LOADS.take(e, Access(i, pointer, i.type, ways.ANY, place, alignment, index).find(e, address))


# Rows for what an access demands.


def _id(e: AccessEmitter, access: Access, _: bool) -> None:
    i, component = access.i, e.builtin_addresses.get(access.pointer)
    if component is not None and e.is_varying(i):
        e.define_leaves(i, e.id_leaves(i.type, component.variable, component.index))
    else:
        single_load(e, i)


def _volatile(e: AccessEmitter, access: Access, _: bool) -> None:
    e.lane_by_lane(access.i, single_load)


def _fields_of(e: AccessEmitter, access: Access) -> InterleavedAccess | None:
    return e.interleaved.get(access.i)


def _fields(e: AccessEmitter, access: Access, group: InterleavedAccess) -> None:
    """All fields are loaded with the first of them."""
    e.note(SHUFFLED, f"{group.stride} bytes from lane to lane")
    if not group.is_done:
        group.is_done = True
        load_interleaved(e, group)


def _cost_of_fields(_: Reach, model: CpuModel, group: InterleavedAccess) -> Cost:
    return group.cost_of_member(model)


def _pieces(e: AccessEmitter, access: Access, _: bool) -> None:
    i = access.i
    e.define_leaves(i, [load_piece(e, i, *piece) for piece in ways.pieces(e, access.pointer, i.type)])


def _in_registers(e: AccessEmitter, access: Access, _: bool) -> None:
    """A load from local memory where each lane's place is known."""
    i, places = access.i, e.lane_constants
    assert places is not None and places.here is not None  # the demand
    loaded = places.load_places(places.here, size_of(i.type))
    e.note(SHUFFLED, masked=i.mask is not None)
    leaves = [loaded]
    if i.type.kind is Kind.VECTOR:
        leaves = split(e, loaded, 8 * size_of(i.type), leaf_types(i.type))
    e.define_leaves(i, leaves)


# Rows for vectors that stay packed.


def _packed(e: AccessEmitter, access: Access, place: str) -> str:
    return packed_vectors.load_neighbours(
        e, access.i, place, access.alignment, access.mask, access.metadata(e)
    )


def _packed_contiguous(e: AccessEmitter, access: Access, _: bool) -> None:
    assert access.address.single is not None
    e.note(CONTIGUOUS, masked=access.is_masked)
    _note_load(e, access, access.address.single)
    e.define_leaves(access.i, [_packed(e, access, access.address.single)])


def _place(e: AccessEmitter, access: Access) -> str | None:
    """All lanes are neighbours at this place, as was asked for all of a block's loads."""
    return e.places.get(access.i)


def _packed_placed(e: AccessEmitter, access: Access, place: str) -> None:
    e.note(ASKED, masked=access.is_masked)
    _note_load(e, access, place)
    e.define_leaves(access.i, [_packed(e, access, place)])


def _may_be_packed_neighbours(e: AccessEmitter, access: Access) -> int | None:
    return None if access.i in e.places else ways.may_be_neighbours(e, access)


def _packed_asked(e: AccessEmitter, access: Access, _: int) -> bool:
    i = access.i
    asked = ask_packed(e, i)
    if asked is None:
        return False
    condition, first, _ = asked
    e.note(ASKED, masked=access.is_masked)
    _note_load(e, access, first)
    metadata, addresses = access.metadata(e), all_lanes(e, access.address)
    there = access.alignment, access.mask, metadata
    loaded = emit_versions(
        e, condition, [packed_vectors.packed_type(e, i.type)],
        lambda: [packed_vectors.load_neighbours(e, i, first, *there)],
        lambda: [packed_vectors.load_anywhere(
            e, i, addresses_here(e, access.pointer, addresses, None), *there)],
    )  # fmt: skip
    e.define_leaves(i, loaded)
    return True


def _packed_anywhere(e: AccessEmitter, access: Access, _: bool) -> None:
    e.note(ASKED, masked=access.is_masked)
    metadata, addresses = access.metadata(e), all_lanes(e, access.address)
    if access.i in e.places:
        addresses = addresses_here(e, access.pointer, addresses, None)
    loaded = packed_vectors.load_anywhere(e, access.i, addresses, access.alignment, access.mask, metadata)
    e.define_leaves(access.i, [loaded])


def ask_packed(e: AccessEmitter, i: Instruction) -> tuple[str, str, int] | None:
    """What there is to ask of a load for packed_vectors.py and block_versioning.py: an i1, lane 0's address
    and the stride."""
    if e.shapes.part_of:
        e.select_part(e.shapes.part_of.get(i, 0))
    size = size_of(i.type)
    found = ways.ask(e, Access(i, i.operands[0], i.type, ways.PACKED, size), size)
    return None if found is None else (*found, size)


# Rows for loads in one of the halves of block_versioning.py.


def _placed(e: AccessEmitter, access: Access, place: str) -> None:
    metadata = access.metadata(e)
    e.note(ASKED, masked=access.is_masked)
    _note_load(e, access, place)
    e.define_leaves(access.i, _contiguous_leaves(e, access, place, metadata))


def _placed_anywhere(e: AccessEmitter, access: Access, _: bool) -> None:
    metadata = access.metadata(e)
    addresses = addresses_here(e, access.pointer, all_lanes(e, access.address), None)
    e.define_leaves(access.i, gather(e, addresses, access.type, access.alignment, access.mask, metadata))


# Rows for all others.


def _table(e: AccessEmitter, access: Access, table: LookUp) -> None:
    e.note(SHUFFLED, "a table in registers", access.i.mask is not None)
    look_up(e, access.i, table)


def _cost_of_table(reach: Reach, model: CpuModel, table: LookUp) -> Cost:
    return access_costs.looked_up(reach, model, table.shuffles, table.vectors)


def _uniform(e: AccessEmitter, access: Access, _: bool) -> None:
    i, address, metadata = access.i, access.address.single, access.metadata(e)
    assert address is not None
    e.note(UNIFORM, masked=access.is_masked)
    single = load_single(e, address, access.type, access.alignment, access.mask, metadata)
    if e.is_varying(i):
        e.define_leaves(i, _splat(e, access.type, single))
    else:
        e.define(i, single)


def _splat(e: AccessEmitter, type_: Type, single: str) -> list[str]:
    scalars = zip(leaf_types(type_), e.explode(type_, single), strict=True)
    return [e.splat(scalar, ir_type(t), e.form) for t, scalar in scalars]


def _contiguous(e: AccessEmitter, access: Access, _: bool) -> None:
    address, metadata = access.address.single, access.metadata(e)
    assert address is not None
    e.note(CONTIGUOUS if len(leaf_types(access.type)) == 1 else SHUFFLED, masked=access.is_masked)
    e.define_leaves(access.i, _contiguous_leaves(e, access, address, metadata))
    _note_load(e, access, address)


def _contiguous_leaves(e: AccessEmitter, access: Access, address: str, metadata: str) -> list[str]:
    types = leaf_types(access.type)
    there = access.place, access.alignment, access.mask, metadata
    return load_contiguous(e, address, types[0], len(types), *there)


def _note_load(e: AccessEmitter, access: Access, address: str) -> None:
    if not access.is_masked:
        e.note_load(access.pointer, address, access.place * e.width)


def _asked(e: AccessEmitter, access: Access, stride: int) -> bool:
    metadata = access.metadata(e)
    found = ways.ask(e, access, stride)
    if found is None:
        return False
    condition, first = found
    type_, there = access.type, (access.alignment, access.mask, metadata)
    e.note(ASKED, masked=access.is_masked)
    if stride:
        _note_load(e, access, first)

    def together(stride: int, first: str) -> list[str]:
        if stride:
            return _contiguous_leaves(e, access, first, metadata)
        return _splat(e, type_, load_single(e, first, type_, *there))

    addresses, types = all_lanes(e, access.address), [e.form(ir_type(t)) for t in leaf_types(type_)]
    other = 0 if stride else access.place

    def apart() -> list[str]:
        return gather(e, addresses_here(e, access.pointer, addresses, access.index), type_, *there)

    def otherwise() -> list[str]:
        found = ways.ask(e, access, other) if ways.may_be_either(e, access) else None
        if found is None:
            return apart()
        return emit_versions(e, found[0], types, lambda: together(other, found[1]), apart)

    loaded = emit_versions(e, condition, types, lambda: together(stride, first), otherwise)
    e.define_leaves(access.i, loaded)
    return True


def _walks_rows(e: AccessEmitter, access: Access) -> Rows | None:
    """Each lane goes on by one element with each iteration of a loop, in a row of its own."""
    if access.i.op is not Op.Load or access.stride == 0 or ways.is_contiguous(e, access):
        return None
    return find_rows(e, access.i)


def _transposed(e: AccessEmitter, access: Access, rows: Rows) -> None:
    anywhere = _anywhere(e, access)
    e.note(SHUFFLED, "rows, transposed", access.is_masked)
    found = load_rows(
        e, access.i, rows, access.alignment, _affine(access), lambda: anywhere("")[0], access.metadata(e),
        access.mask,
    )  # fmt: skip
    e.define_leaves(access.i, [found])


def _affine(access: Access) -> tuple[str, int] | None:
    single = access.address.single
    return None if single is None else (single, access.address.stride)


def _anywhere(e: AccessEmitter, access: Access) -> Callable[[str], list[str]]:
    """What loads at each lane's address, in the way that is given, or that costs least."""
    metadata, addresses, affine = access.metadata(e), all_lanes(e, access.address), _affine(access)
    there = addresses, access.type, access.alignment, access.mask, metadata, affine
    return lambda how: gather(e, *there, how)


def _of_lanes(how: str) -> Callable[[AccessEmitter, Access, bool], None]:
    def lower(e: AccessEmitter, access: Access, _: bool) -> None:
        e.define_leaves(access.i, _anywhere(e, access)(how))

    return lower


def _asked_cost(is_uniform: bool) -> Callable[[Reach, CpuModel, object], Cost]:
    return lambda reach, model, _: access_costs.asked(reach, model, is_uniform)


LOADS = Table(
    Way("built-in", ways.ID, ways.always, fixed(access_costs.nothing), _id),
    Way("volatile", ways.VOLATILE, ways.always, fixed(access_costs.lanes), _volatile),
    Way("fields", ways.FIELD, _fields_of, _cost_of_fields, _fields, False),
    Way("pieces", ways.PIECES, ways.lies_together, fixed(access_costs.pieces), _pieces),
    Way("pieces, anywhere", ways.PIECES, ways.always, fixed(access_costs.lanes), _pieces),
    Way("in registers", ways.IN_REGISTERS, ways.always, fixed(access_costs.in_registers), _in_registers),
    Way("packed", ways.PACKED, ways.is_contiguous, fixed(access_costs.contiguous), _packed_contiguous),
    Way("packed, placed", ways.PACKED, _place, fixed(access_costs.contiguous), _packed_placed),
    Way("packed, asked", ways.PACKED, _may_be_packed_neighbours, _asked_cost(False), _packed_asked),
    Way("packed, anywhere", ways.PACKED, ways.always, fixed(access_costs.anywhere), _packed_anywhere),
    Way("placed", ways.PLACED, _place, fixed(access_costs.contiguous), _placed),
    Way("placed, anywhere", ways.PLACED, ways.always, fixed(access_costs.anywhere), _placed_anywhere),
    Way("table", ways.ANY, find_table, _cost_of_table, _table, False),
    Way("uniform", ways.ANY, ways.is_uniform, fixed(access_costs.uniform), _uniform),
    Way("contiguous", ways.ANY, ways.is_contiguous, fixed(access_costs.contiguous), _contiguous),
    Way("asked whether alike", ways.ANY, ways.may_be_alike, _asked_cost(True), _asked),
    Way("asked whether neighbours", ways.ANY, ways.may_be_neighbours, _asked_cost(False), _asked),
    Way("transposed rows", ways.ANY, _walks_rows, fixed(access_costs.transposed), _transposed),
    Way("gather", ways.ANY, ways.by_instruction, fixed(access_costs.gather), _of_lanes(access_costs.GATHER)),
    Way("rows", ways.ANY, ways.by_rows, fixed(access_costs.rows), _of_lanes(access_costs.ROWS)),
    Way("lanes", ways.ANY, ways.by_lane, fixed(access_costs.lanes), _of_lanes(access_costs.LANES)),
)


# What others emit, too.


def load_single(
    e: AccessEmitter, address: str, type_: Type, alignment: int, mask: str | None, metadata: str = ""
) -> str:
    """One value for all lanes. If no lane takes part, what is loaded is a place that is always there."""
    some = "true" if mask is None else e.any_lane(mask)
    if some != "true":
        size = max(size_of(type_), 1)
        spare = e.alloca(f"[{size} x i8]", max(alignment, 1))
        e.prologue.append(f"  store [{size} x i8] zeroinitializer, ptr {spare}, align 1")
        address = e.emit(f"select i1 {some}, ptr {address}, ptr {spare}")
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
    return [from_memory(e, element, leaf) for leaf in separate(e, element, data, stride, count)]


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
