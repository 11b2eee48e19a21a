"""The layout of a thread's scratch memory: private memory, and what lives across barriers."""

from __future__ import annotations

from collections.abc import Iterator

from ...passes.ir.plan import KernelPlan, PrivateVariable, Slot
from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind, Value
from ..llvm.types import alignment_of, size_of
from . import abi
from .private_layout import PrivateLayout
from .program_globals import variable_alignment

ITEMS_ROUNDING = 64  # slots have room for a multiple of so many work-items
LARGEST_VALUE = 128  # bytes of an OpenCL vector
STACK_LIMIT = 4096  # bytes of private memory per work-item that may lie on the stack
# Bytes of the stack of a sub-group that has its own: for what it calls, and at most for values that registers
# do not hold. Memory that is not used is not there, and below each stack is memory that faults.
SUB_GROUP_STACK, SPILL_LIMIT = 64 << 10, 4 << 20


class Scratch:
    """Where everything is in scratch memory; made before anything is emitted.

    [private variables of the lanes][uniform slots] fixed size
    [slot 0, all items][slot 1, all items]...[private variables of all items] each of items rounded up

    If sub-groups take turns, each has private variables of its lanes, of own_size bytes; these come first of
    what grows with the items. Its stack, of stack_size bytes, is not in scratch memory.

    private: OpVariable or PrivateVariable: its offset in a block of private memory. private_stride: from the
    block of one lane or item to that of the next. Blocks are of items if some private variable lives across
    barriers, else of lanes; of one lane, what does not live across barriers has a place of its own
    (lane_private). interleaved: pointers to variables that have pieces of all lanes together, with the sizes
    of these (private_layout.py); spread: the same of memory that lives across barriers, whose pieces are of
    all items; dump: what lanes that take no part write in place of an interleaved variable. Functions that
    lanes call have their private memory here, too: none is called twice at a time.
    slot_offset, spread_offset, private_offset: bytes per item before the array of a slot that is not uniform,
    of such a variable, or of private memory.
    """

    def __init__(self, plan: KernelPlan, on_stack: bool, width: int) -> None:
        self.private: dict[Instruction | PrivateVariable, int] = {}
        self.lane_private: dict[Instruction, int] = {}  # OpVariable: offset from the start of scratch memory
        self.uniform: dict[Slot, int] = {}  # offsets from the start of scratch memory
        self.slot_offset: dict[Slot, int] = {}
        self.private_offset = 0
        self.spread: dict[Value, int] = {}
        self.spread_size: dict[PrivateVariable, int] = {}  # of pieces
        self.spread_offset: dict[PrivateVariable, int] = {}
        self.layout = PrivateLayout(plan.vector_functions)
        if width > 1:
            self.spread, self.spread_size = self.layout.spread(plan)
        in_blocks = [v for v in plan.private_variables if v not in self.spread_size]
        self.private_per_item = bool(in_blocks)
        self.interleaved: dict[Value, int] = {}
        if width > 1 and not self.private_per_item:
            for region in plan.regions:
                if not region.once:
                    self.interleaved |= self.layout.of_variables(region.function, plan.options.remarks)
            for function in plan.vector_functions:
                self.interleaved |= self.layout.of_variables(function, plan.options.remarks)
        size, largest = 0, 1
        for variable in in_blocks:
            size = self.private[variable] = align(size, variable.alignment)
            size += variable.size
            largest = max(largest, variable.alignment)
        if width > 1:
            for i in _variables(plan):
                if i in self.interleaved:
                    continue
                size = self.private[i] = align(size, variable_alignment(i))
                size += size_of(i.type.element)
                largest = max(largest, variable_alignment(i))
        self.private_stride = align(size, largest)
        offset = 0 if self.private_per_item else width * self.private_stride
        if width == 1 and not on_stack:
            for i in _variables(plan):
                offset = self.lane_private[i] = align(offset, variable_alignment(i))
                offset += size_of(i.type.element)
        for i in _variables(plan):
            if i in self.interleaved:
                offset = self.lane_private[i] = align(offset, abi.MEMORY_ALIGN)
                offset += width * size_of(i.type.element)
        self.dump = 0
        if self.interleaved:
            self.dump = offset = align(offset, abi.MEMORY_ALIGN)
            offset += width * LARGEST_VALUE
        self.own_size = self.stack_size = 0
        if plan.takes_turns:
            # A multiple of the width, so that there is a whole number of bytes for each item.
            self.own_size, offset = align(offset, abi.MEMORY_ALIGN * width), 0
            self.stack_size = SUB_GROUP_STACK + min(width * _size_of_values(plan), SPILL_LIMIT)
            self.stack_size += plan.called_size
        for slot in plan.slots:
            if slot.uniform:
                offset = align(offset, alignment_of(slot.type))
                self.uniform[slot] = offset
                offset += size_of(slot.type)
        self.items_start = align(offset, abi.MEMORY_ALIGN)
        # Largest alignment first: every array then begins at a multiple of its alignment.
        kept: list[tuple[int, int, Slot | PrivateVariable | None]] = [
            (alignment_of(slot.type), size_of(slot.type), slot) for slot in plan.slots if not slot.uniform
        ]
        kept += [(piece, variable.size, variable) for variable, piece in self.spread_size.items()]
        if self.private_per_item:
            kept.append((largest, self.private_stride, None))
        per_item = self.own_size // width
        for alignment, bytes_, slot_ in sorted(kept, key=lambda entry: -entry[0]):
            if slot_ is None:
                self.private_offset = per_item
            elif isinstance(slot_, Slot):
                self.slot_offset[slot_] = per_item
            else:
                self.spread_offset[slot_] = per_item
            per_item += align(bytes_, alignment)
        self.per_item = per_item
        self.fixed = self.items_start + (per_item * (ITEMS_ROUNDING - 1) if per_item else 0)
        # A vector at the end of the last piece may reach beyond it with lanes that have no work-item.
        self.fixed += width * max(self.spread_size.values(), default=0)


def _variables(plan: KernelPlan) -> Iterator[Instruction]:
    for function in (*(region.function for region in plan.regions), *plan.vector_functions):
        for block in function.blocks:
            for i in block.instructions:
                if i.op is Op.Variable:
                    yield i


def _size_of_values(plan: KernelPlan) -> int:
    """Bytes of all values of one work-item, as if all were needed at a time."""
    functions = (*(region.function for region in plan.regions), *plan.vector_functions)
    blocks = (block for function in functions for block in function.blocks)
    values = (i for block in blocks for i in block.instructions if i.type is not None)
    return sum(8 * i.type.count if i.type.kind is Kind.VECTOR else 8 for i in values)


def align(offset: int, alignment: int) -> int:
    """offset rounded up."""
    return -(-offset // alignment) * alignment
