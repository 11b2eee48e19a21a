"""Wide lowerings of OpenCL.std's vector data loads and stores."""

from __future__ import annotations

from ...passes.ir.remarks import CONTIGUOUS, GATHER, SCATTER, SHUFFLED
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Instruction, Kind, Type
from ..access.addresses import address_of, advance, all_lanes
from ..access.loads import load_contiguous, load_from
from ..access.stores import store_contiguous, store_to
from ..atomic.emitter import AtomicEmitter
from ..llvm.registry import lowers_wide_extended
from ..llvm.types import component_count, element_type, ir_type, size_of
from ..ops.conversion import convert_float
from ..ops.extinst_vector import VSTORE_HALF, half_place, rounding_mode

HALF = Type(Kind.FLOAT, width=16)


@lowers_wide_extended(Std.vloadn)
def vload(e: AtomicEmitter, i: Instruction) -> None:
    """vloadn."""
    offset, pointer = i.operands[2:4]
    size = size_of(element_type(i.type))
    place = size * component_count(i.type)
    address = advance(e, address_of(e, pointer), offset, place, unsigned=True)
    load_from(e, i, pointer, address, place, size, offset)


@lowers_wide_extended(Std.vstoren)
def vstore(e: AtomicEmitter, i: Instruction) -> None:
    """vstoren."""
    data, offset, pointer = i.operands[2:5]
    size = size_of(element_type(data.type))
    place = size * component_count(data.type)
    address = advance(e, address_of(e, pointer), offset, place, unsigned=True)
    store_to(e, i, pointer, address, data, place, size, offset)


@lowers_wide_extended(Std.vload_half, Std.vload_halfn, Std.vloada_halfn)
def vload_half(e: AtomicEmitter, i: Instruction) -> None:
    """vload_half and its kin: halves as 16-bit integers, converted leaf by leaf."""
    offset, pointer = i.operands[2:4]
    count = component_count(i.type)
    place, _ = half_place(i, count)
    address = advance(e, address_of(e, pointer), offset, place, unsigned=True)
    leaf = all_lanes(e, address)
    mask = e.mask_of(i)
    metadata = e.alias_metadata(pointer, is_load=mask is None)
    leaves = []
    if address.single is not None and address.stride == place:
        e.note(CONTIGUOUS if count == 1 else SHUFFLED, masked=mask is not None)
        parts = load_contiguous(e, address.single, HALF, count, place, 2, mask, metadata)
    else:
        e.note(GATHER, masked=mask is not None)
        parts = []
        for k in range(count):
            where = e.emit(f"getelementptr i8, {e.form('ptr')} {leaf}, i64 {2 * k}") if k else leaf
            parts.append(
                e.emit(
                    f"call {e.form('half')} @llvm.masked.gather.{e.form.suffix('f16')}.{e.form.suffix('p0')}"
                    f"({e.form('ptr')} align 2 {where}, {e.form('i1')} {mask or 'splat (i1 true)'}, "
                    f"{e.form('half')} zeroinitializer){metadata}"
                )
            )
    for part in parts:
        leaves.append(convert_float(e, e.form, part, 16, element_type(i.type).width))
    if e.is_varying(i):
        e.define_leaves(i, leaves)
    else:
        e.define(
            i,
            e.assemble(
                i.type, iter([e.first_active(ir_type(element_type(i.type)), x, mask) for x in leaves])
            ),
        )


@lowers_wide_extended(*VSTORE_HALF)
def vstore_half(e: AtomicEmitter, i: Instruction) -> None:
    """vstore_half and its kin."""
    data, offset, pointer = i.operands[2:5]
    count = component_count(data.type)
    place, _ = half_place(i, count)
    address = advance(e, address_of(e, pointer), offset, place, unsigned=True)
    width = element_type(data.type).width
    mode = rounding_mode(e, i)
    leaves = [convert_float(e, e.form, leaf, width, 16, mode) for leaf in e.leaves(data)]
    mask, metadata = e.mask_of(i), e.alias_metadata(pointer)
    if address.single is not None and address.stride == place:
        e.note(CONTIGUOUS if count == 1 else SHUFFLED, masked=mask is not None)
        store_contiguous(e, address.single, HALF, leaves, place, 2, mask, metadata=metadata, pointer=pointer)
        return
    leaf = all_lanes(e, address)
    e.note(SCATTER, masked=mask is not None)
    for k, part in enumerate(leaves):
        where = e.emit(f"getelementptr i8, {e.form('ptr')} {leaf}, i64 {2 * k}") if k else leaf
        e.emit_void(
            f"call void @llvm.masked.scatter.{e.form.suffix('f16')}.{e.form.suffix('p0')}"
            f"({e.form('half')} {part}, {e.form('ptr')} align 2 {where}, "
            f"{e.form('i1')} {mask or 'splat (i1 true)'}){metadata}"
        )


@lowers_wide_extended(Std.prefetch)
def prefetch(e: AtomicEmitter, i: Instruction) -> None:
    """prefetch: a hint that is not worth a gather."""
