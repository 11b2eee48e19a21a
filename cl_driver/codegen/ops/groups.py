"""Operations of a region that runs once per group (passes/ir/ops.py), and asynchronous copies (SPIR-V 1.6,
section 3.49.21).

Work-group collectives are written out by the passes as loops over the work-items' slots.
"""

from __future__ import annotations

from ...passes.ir.ops import PassOp
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Instruction
from ..llvm.emitter import FunctionEmitter
from ..llvm.registry import lowers
from ..llvm.types import ir_type, size_of


@lowers(PassOp.SlotLoad)
def slot_load(e: FunctionEmitter, i: Instruction) -> None:
    """The value of a slot for this work-item."""
    e.define(i, e.slot_load(i.operands[0], None))


@lowers(PassOp.SlotStore)
def slot_store(e: FunctionEmitter, i: Instruction) -> None:
    """Sets a slot for this work-item."""
    e.slot_store(i.operands[0], None, i.operands[1])


@lowers(PassOp.SlotLoadItem)
def context_load_item(e: FunctionEmitter, i: Instruction) -> None:
    """The value of a slot for a work-item given by its linear local id."""
    e.define(i, e.slot_load(i.operands[0], i.operands[1]))


@lowers(PassOp.SlotStoreItem)
def context_store_item(e: FunctionEmitter, i: Instruction) -> None:
    """Sets a slot for a work-item given by its linear local id."""
    e.slot_store(i.operands[0], i.operands[1], i.operands[2])


@lowers(PassOp.GroupItems)
def group_items(e: FunctionEmitter, i: Instruction) -> None:
    """How many work-items this group has."""
    e.define(i, e.to_width(f"i64 {e.group_items()}", ir_type(i.type)))


@lowers(Op.GroupAsyncCopy)
def group_async_copy(e: FunctionEmitter, i: Instruction) -> None:
    """OpGroupAsyncCopy in a region that runs once: copied at once, so the event is nothing to wait for.

    stride: elements from one to the next on the global side; 1 or 0 is contiguous.
    """
    _, target, source, count, stride, _ = i.operands
    type_ = target.type.element
    size = size_of(type_)
    e.define(i, "null")
    items = e.to_width(e.typed(count), "i64")
    if e.integer(stride) in (0, 1):
        bytes_ = e.emit(f"mul i64 {items}, {size}")
        e.emit_void(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {e.operand(target)}, ptr {e.operand(source)}, "
            f"i64 {bytes_}, i1 false)"
        )
        return
    step = e.to_width(e.typed(stride), "i64")
    t = ir_type(type_)
    to_global = target.type.storage == StorageClass.CrossWorkgroup

    def copy_one(index: str) -> None:
        far = e.emit(f"mul i64 {index}, {step}")
        source_index, target_index = (index, far) if to_global else (far, index)
        a = e.emit(f"getelementptr [{size} x i8], ptr {e.operand(source)}, i64 {source_index}")
        b = e.emit(f"getelementptr [{size} x i8], ptr {e.operand(target)}, i64 {target_index}")
        value = e.emit(f"load {t}, ptr {a}, align {size & -size}")
        e.emit_void(f"store {t} {value}, ptr {b}, align {size & -size}")

    e.counted_loop(items, copy_one)


@lowers(Op.GroupWaitEvents)
def group_wait_events(e: FunctionEmitter, i: Instruction) -> None:
    """OpGroupWaitEvents: copies are done when they are started; the barrier is the region's end."""
