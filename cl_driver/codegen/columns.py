"""Stores of several parts to neighbours in memory, as transposes have them: one for each lane, not for each
work-item, as each is of another line of the cache, and lines of one column share a set of it.
"""

from __future__ import annotations

from ..spirv.enums import Op, StorageClass
from ..spirv.module import Kind, Type, Undef
from .memory import access_alignment, hint_of
from .regular import NEIGHBOURS, either
from .types import leaf_types, size_of
from .wide_gather import scatter, to_memory

_MOST_BYTES = 64  # of a lane
_SHARED = (StorageClass.CrossWorkgroup, StorageClass.Workgroup)


def find_columns(e, instructions, records) -> dict:
    """Store: those of all parts, in their order, of which it is one. parts.py puts copies side by side."""
    if e.parts not in (2, 4, 8) or e.known is not None:
        return {}
    found, part_of = {}, e.shapes.part_of
    for k, i in enumerate(instructions):
        if i.op is not Op.Store or part_of.get(i) or i in records or not _is_column(e, i):
            continue
        stores = instructions[k : k + e.parts]
        if [part_of.get(s, 0) if s.op is Op.Store else None for s in stores] == list(range(e.parts)):
            found |= dict.fromkeys(stores, stores)
    return found


def _is_column(e, store) -> bool:
    """Whether the next part stores right behind, and the next lane elsewhere."""
    pointer, value = store.operands[:2]
    type_ = value.type
    element, count = (type_.element, type_.count) if type_.kind is Kind.VECTOR else (type_, 1)
    if element.kind not in (Kind.INT, Kind.FLOAT) or count & (count - 1) or isinstance(value, Undef):
        return False
    if pointer.type.storage not in _SHARED or e.spacing(pointer) > 1 or hint_of(store.memory):
        return False
    if store.memory is not None and store.memory.volatile:
        return False
    size = size_of(type_)
    if e.shapes.across.stride(pointer) != size or size * e.parts > _MOST_BYTES:
        return False
    if e.is_varying(pointer):
        return e.regularity.nature(pointer) != NEIGHBOURS
    return e.stride(pointer) not in (0, size)


def store_column(e, stores, address_of) -> None:
    """Stores what all parts do. address_of: of wide_memory.py."""
    values, masks = [], []
    for part, store in enumerate(stores):
        e.select_part(part)
        value = store.operands[1]
        values.append(
            [to_memory(e, t, leaf) for t, leaf in zip(leaf_types(value.type), e.leaves(value), strict=True)]
        )
        masks.append(e.mask_of(store))
    e.select_part(0)
    pointer, value = stores[0].operands[:2]
    alignment, metadata = access_alignment(stores[0].memory, value.type), e.alias_metadata(pointer)
    types = leaf_types(value.type)
    whole = Type(Kind.VECTOR, element=types[0], count=len(types) * len(stores))

    def together():
        address = address_of(e, pointer)
        stride = address.stride if address.single is not None else None
        leaves = [leaf for own in values for leaf in own]
        scatter(e, address.all_lanes(e), whole, leaves, alignment, masks[0], metadata, stride)

    def each():
        for part, (store, own, mask) in enumerate(zip(stores, values, masks, strict=True)):
            e.select_part(part)
            address = address_of(e, store.operands[0])
            stride = address.stride if address.single is not None else None
            scatter(e, address.all_lanes(e), value.type, own, alignment, mask, metadata, stride)
        e.select_part(0)

    if len(set(masks)) == 1:
        together()
    else:
        either(e, _are_equal(e, masks), [], together, each)


def _are_equal(e, masks: list) -> str:
    """i1: whether masks have the same lanes."""
    number, equal = f"i{e.width}", None
    bits = [e.emit(f"bitcast {e.form('i1')} {mask or 'splat (i1 true)'} to {number}") for mask in masks]
    for other in bits[1:]:
        same = e.emit(f"icmp eq {number} {bits[0]}, {other}")
        equal = same if equal is None else e.emit(f"and i1 {equal}, {same}")
    return equal
