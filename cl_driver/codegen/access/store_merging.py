"""Stores of several parts to neighbours in memory, as transposes have them: one for each lane, not for each
work-item, as each is of another line of the cache, and lines of one column share a set of it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from ...passes.analysis.strides import Strides
from ...records import record
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Instruction, Kind, Type, Undef
from ..llvm.types import leaf_types, size_of
from ..llvm.versioning import emit_versions
from ..ops.memory import access_alignment, hint_of
from .addresses import Address, address_of
from .emitter import AccessEmitter
from .gather_scatter import scatter, to_memory
from .natures import NEIGHBOURS

_MOST_BYTES = 64  # of a lane
_SHARED = (StorageClass.CrossWorkgroup, StorageClass.Workgroup)


@record(frozen=True)
class MergedStores:
    """Stores of all parts, each with its part, in the order of their addresses."""

    stores: list[tuple[int, Instruction]]
    is_certain: bool  # else there is something to ask: none of the addresses wraps around


def find_merged_stores(
    e: AccessEmitter, instructions: Sequence[Instruction], interleaved: Container[Instruction]
) -> dict[Instruction, MergedStores]:
    """Store: the merged stores that it is one of. passes/vectorize/coarsening.py puts copies side by side."""
    if e.parts not in (2, 4, 8) or e.lane_constants is not None:
        return {}
    found: dict[Instruction, MergedStores] = {}
    part_of = e.shapes.part_of
    steps = Strides(1, e.shapes.is_part_dependent) if e.tile[1] > 1 else None
    for k, i in enumerate(instructions):
        if i.op is not Op.Store or part_of.get(i) or i in interleaved:
            continue
        stores = instructions[k : k + e.parts]
        if [part_of.get(s, 0) if s.op is Op.Store else None for s in stores] != list(range(e.parts)):
            continue
        step, is_certain = _step(e, i, steps)
        if step:
            numbered = list(enumerate(stores))[:: 1 if step > 0 else -1]
            found |= dict.fromkeys(stores, MergedStores(numbered, is_certain))
    return found


def _step(e: AccessEmitter, store: Instruction, steps: Strides | None) -> tuple[int, bool]:
    """The way from one part's place to the next one's, 0 unless these are neighbours and places of lanes are
    not; and whether that is certain."""
    pointer, value = store.operands[:2]
    type_ = value.type
    element, count = (type_.element, type_.count) if type_.kind is Kind.VECTOR else (type_, 1)
    if element.kind not in (Kind.INT, Kind.FLOAT) or count & (count - 1) or isinstance(value, Undef):
        return 0, False
    if pointer.type.storage not in _SHARED or e.spacing(pointer) > 1 or hint_of(store.memory):
        return 0, False
    if store.memory is not None and store.memory.volatile:
        return 0, False
    size = size_of(type_)
    near = (size, -size)
    if size * e.parts > _MOST_BYTES:
        return 0, False
    if e.is_varying(pointer):
        if e.contiguity.nature(pointer) == NEIGHBOURS:
            return 0, False
    elif e.stride(pointer) in (0, *near):
        return 0, False
    across = e.shapes.across.stride(pointer) if e.shapes.across is not None else None
    if isinstance(across, int) and across in near:
        return across, True
    step = steps.of(pointer) if steps is not None else None
    return (step if step is not None and step in near else 0), False


def store_merged(e: AccessEmitter, merged_stores: MergedStores) -> None:
    """Stores what all parts do."""
    values: list[list[str]] = []
    masks: list[str | None] = []
    addresses: list[Address] = []
    for part, store in merged_stores.stores:
        e.select_part(part)
        pointer, value = store.operands[:2]
        types = leaf_types(value.type)
        values.append([to_memory(e, t, leaf) for t, leaf in zip(types, e.leaves(value), strict=True)])
        masks.append(e.mask_of(store))
        addresses.append(address_of(e, pointer))
        addresses[-1].all_lanes(e)  # both ways may need them
    e.select_part(0)
    first = merged_stores.stores[0][1]
    pointer, value = first.operands[:2]
    alignment, metadata = access_alignment(first.memory, value.type), e.alias_metadata(pointer)
    whole = Type(Kind.VECTOR, element=types[0], count=len(types) * len(values))

    def put(number: int, type_: Type, leaves: list[str]) -> None:
        where = addresses[number]
        stride = where.stride if where.single is not None else None
        scatter(e, where.all_lanes(e), type_, leaves, alignment, masks[number], metadata, stride)

    def merged() -> None:
        put(0, whole, [leaf for own in values for leaf in own])

    def each() -> None:
        for number, own in enumerate(values):
            put(number, value.type, own)

    differing = _masks_differ(e, masks)
    if not merged_stores.is_certain:
        differing += _apart(e, [where.all_lanes(e) for where in addresses], size_of(value.type))
    if not differing:
        merged()
        return
    emit_versions(e, e.any_lane(e.frozen(e.form, "i1", _any_of(e, differing))), [], each, merged)


def _masks_differ(e: AccessEmitter, masks: list[str | None]) -> list[str]:
    """For each mask but the first, if they are not the same value: the lanes that only one of the two has."""
    if len(set(masks)) == 1:
        return []
    first, *others = (mask or "splat (i1 true)" for mask in masks)
    return [e.emit(f"xor {e.form('i1')} {first}, {other}") for other in others]


def _apart(e: AccessEmitter, addresses: list[str], size: int) -> list[str]:
    """For each address but the first, the lanes where it is not as many times so many bytes behind that."""
    f, found = e.form, []
    for number, address in enumerate(addresses[1:], 1):
        expected = e.emit(f"getelementptr i8, {f('ptr')} {addresses[0]}, i64 {number * size}")
        found.append(e.emit(f"icmp ne {f('ptr')} {address}, {expected}"))
    return found


def _any_of(e: AccessEmitter, masks: list[str]) -> str:
    total, *others = masks
    for other in others:
        total = e.emit(f"or {e.form('i1')} {total}, {other}")
    return total
