"""Wide lowerings of slots: an array for each leaf, lane-contiguous."""

from __future__ import annotations

from ...passes.ir.ops import PassOp
from ...spirv.module import Instruction
from ..access.gather_scatter import from_memory, memory_type, to_memory
from ..access.masked_access import store_private
from ..access.stores import store_contiguous, store_single
from ..atomic.emitter import AtomicEmitter
from ..llvm.registry import lowers_wide
from ..llvm.types import alignment_of, ir_type, leaf_types, size_of


@lowers_wide(PassOp.SlotLoad)
def slot_load(e: AtomicEmitter, i: Instruction) -> None:
    """The value of a slot for each lane."""
    slot = i.operands[0]
    if slot.uniform or not e.is_varying(i):
        single = e.slot_load(slot, None)
        if not e.is_varying(i):
            e.define(i, single)
            return
        e.define_leaves(
            i,
            [
                e.splat(scalar, ir_type(t), e.form)
                for t, scalar in zip(leaf_types(i.type), e.explode(i.type, single), strict=True)
            ],
        )
        return
    leaves = []
    for k, t in enumerate(leaf_types(slot.type)):
        value = e.emit(
            f"load {e.form(memory_type(t))}, ptr {e.slot_leaf_address(slot, k, None)}, align {size_of(t)}"
        )
        leaves.append(from_memory(e, t, value))
    e.define_leaves(i, leaves)


@lowers_wide(PassOp.SlotStore)
def slot_store(e: AtomicEmitter, i: Instruction) -> None:
    """Sets a slot for the lanes of the mask."""
    slot, value = i.operands
    mask = e.mask_of(i)
    if slot.uniform:
        address = e.scratch_address(e.scratch.uniform[slot])
        uniform = None if e.is_varying(value) or e.stride_is_mixed(value) else value
        store_single(e, address, slot.type, lambda: e.leaves(value), alignment_of(slot.type), mask, uniform)
        return
    for k, (t, leaf) in enumerate(zip(leaf_types(slot.type), e.leaves(value), strict=True)):
        data = to_memory(e, t, leaf)
        address = e.slot_leaf_address(slot, k, None)
        if mask is None:
            store_contiguous(e, address, t, [data], size_of(t), size_of(t), mask)
        else:
            # Of rows that do not exist there is no memory.
            store_private(e, memory_type(t), data, address, size_of(t), mask, is_certain=False)
