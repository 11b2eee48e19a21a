"""What a kernel is called with: fields of the structures of kernel_abi.h, places in scratch memory."""

from __future__ import annotations

from ...passes.ir.plan import KernelPlan, Slot
from ...spirv.enums import BuiltIn
from ...spirv.module import Function
from ..llvm.emitter import FunctionEmitter, ModuleText
from ..llvm.fast_math import FastMath
from . import abi
from .scratch import ITEMS_ROUNDING, Scratch


class BuiltinCache:
    """What was computed of built-in variables, for the work-items at hand."""

    __slots__ = ("components", "entry_mask", "leaves")

    def __init__(self) -> None:
        # By the variable, the number of the component and its bits: 0 for as many as it is computed in.
        self.components: dict[tuple[BuiltIn, int, int], str] = {}
        self.leaves: dict[BuiltIn, list[str]] = {}  # of ids that vary between lanes
        self.entry_mask = ""  # at widths above 1: the lanes that hold a work-item


class AbiFields(FunctionEmitter):
    """Each is loaded or computed once per call, in the function's first block.

    Operands that are valid in all of a group: group_ids, group_sizes (work-items of this group) and
    group_origins (global ids of its first work-item). In a region's loops: local_ids, row and builtin_cache.

    Whoever inherits sets `scratch`, the layout of scratch memory, and `function`, the region's at hand.
    """

    scratch: Scratch
    function: Function

    def __init__(self, module: ModuleText, plan: KernelPlan) -> None:
        super().__init__(module, FastMath.of_kernel(module.options, plan.entry_point, plan.module))
        self.plan = plan
        self.remarks = plan.options.remarks
        self.parts = plan.options.parts
        self.tile = 1, 1  # work-items of a row, and rows, that a body takes at a time
        self.group = plan.options.group  # the size of groups that are taken whole, or ()
        self.group_ids = ["%gx", "%gy", "%gz"]
        self.group_sizes = ["%lx", "%ly", "%lz"]
        self.group_origins = ["%ox", "%oy", "%oz"]
        self.local_ids: list[str] = []
        self.row = ""  # linear local id of the first work-item of the row at hand
        self.builtin_cache = BuiltinCache()
        self._fields: dict[tuple[str, int], str] = {}  # by their structure and offset
        self._places: dict[int, str] = {}  # fixed ones in scratch memory, by their offset
        self._slot_arrays: dict[Slot, str] = {}
        self._private_array = ""
        self._own_memory = ""  # of a sub-group: where its stack begins
        self._rounded_items = ""
        self._enqueued_items = ""
        self._much: dict[tuple[int, str], str] = {}  # see has_much()

    def item_index(self) -> str:
        """The linear local id of this work-item, an i64."""
        return self.emit(f"add i64 {self.row}, {self.local_ids[0]}")

    def group_items(self) -> str:
        """Work-items of this group, an i64."""
        items = self.emit(f"mul i64 {self.group_sizes[0]}, {self.group_sizes[1]}")
        return self.emit(f"mul i64 {items}, {self.group_sizes[2]}")

    def launch_field(self, offset: int, type_: str) -> str:
        """A field of struct cld_launch, loaded once per call."""
        return self._field("%launch", offset, type_)

    def thread_field(self, offset: int, type_: str) -> str:
        """A field of struct cld_thread, loaded once per call."""
        return self._field("%thread", offset, type_)

    def _field(self, base: str, offset: int, type_: str) -> str:
        key = (base, offset)
        found = self._fields.get(key)
        if found is None:
            address = self.emit_prologue(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")
            alignment = 4 if type_ == "i32" else 8
            found = self.emit_prologue(f"load {type_}, ptr {address}, align {alignment}, !invariant.load !1")
            self._fields[key] = found
        return found

    def local_memory(self) -> str:
        """The group's local memory."""
        return self.thread_field(abi.THREAD_LOCAL_MEMORY, "ptr")

    def local_memory_size(self) -> str:
        """Its size, an i64."""
        return self.thread_field(abi.THREAD_LOCAL_MEMORY_SIZE, "i64")

    def printf_buffer(self) -> str:
        """What cld_printf gets first."""
        return self.launch_field(abi.LAUNCH_PRINTF_BUFFER, "ptr")

    def scratch_address(self, offset: int) -> str:
        """A fixed place in scratch memory."""
        found = self._places.get(offset)
        if found is None:
            scratch = self.thread_field(abi.THREAD_SCRATCH, "ptr")
            found = self.emit_prologue(f"getelementptr inbounds i8, ptr {scratch}, i64 {offset}")
            self._places[offset] = found
        return found

    def lanes_address(self, offset: int) -> str:
        """A fixed place in the private memory of the lanes at hand."""
        if not self.plan.takes_turns:
            return self.scratch_address(offset)
        if not self._own_memory:
            first = self.scratch_address(self.scratch.items_start)
            before = self.emit_prologue(f"mul i64 %index, {self.scratch.own_size}")
            self._own_memory = self.emit_prologue(f"getelementptr inbounds i8, ptr {first}, i64 {before}")
        return self.emit_prologue(f"getelementptr inbounds i8, ptr {self._own_memory}, i64 {offset}")

    def rounded_items(self) -> str:
        """Work-items of a full group, rounded up: for how many the context arrays have room."""
        if not self._rounded_items:
            items = self.emit_prologue(f"add i64 {self.enqueued_items()}, {ITEMS_ROUNDING - 1}")
            self._rounded_items = self.emit_prologue(f"and i64 {items}, {-ITEMS_ROUNDING}")
        return self._rounded_items

    def enqueued_items(self) -> str:
        """Work-items of a full group, an i64."""
        if not self._enqueued_items:
            sizes = [self.launch_field(abi.LAUNCH_LOCAL_SIZE + 8 * k, "i64") for k in range(3)]
            items = self.emit_prologue(f"mul i64 {sizes[0]}, {sizes[1]}")
            self._enqueued_items = self.emit_prologue(f"mul i64 {items}, {sizes[2]}")
        return self._enqueued_items

    def slot_array(self, slot: Slot) -> str:
        """The start of the memory of a Slot of all work-items."""
        found = self._slot_arrays.get(slot)
        if found is None:
            found = self._slot_arrays[slot] = self._item_array(self.scratch.slot_offset[slot])
        return found

    def private_array(self) -> str:
        """The start of the private memory of all work-items, where it lives across barriers."""
        if not self._private_array:
            self._private_array = self._item_array(self.scratch.private_offset)
        return self._private_array

    def _item_array(self, before: int) -> str:
        """The start of an array over work-items; before: bytes for each of them that lie before it."""
        start = self.scratch_address(self.scratch.items_start)
        distance = self.emit_prologue(f"mul i64 {self.rounded_items()}, {before}")
        return self.emit_prologue(f"getelementptr inbounds i8, ptr {start}, i64 {distance}")

    def has_much(self, place: int, limit: str = "") -> str:
        """i1, once per call: whether all work-items together have that much, so many bytes each.

        limit: i64, of the launch; that of stores past the caches (access/nontemporal.py), if none. 0: never.
        """
        key = place, limit
        found = self._much.get(key)
        if found is None:
            outer, self.lines = self.lines, self.prologue
            sizes = [self.launch_field(abi.LAUNCH_GLOBAL_SIZE + 8 * k, "i64") for k in range(3)]
            items = self.emit(f"mul i64 {sizes[0]}, {sizes[1]}")
            items = self.emit(f"mul i64 {items}, {sizes[2]}")
            output = self.emit(f"mul i64 {items}, {place}")
            stream_bytes = "" if limit else self.launch_field(abi.LAUNCH_STREAM_BYTES, "i32")
            least = limit or self.emit(f"zext i32 {stream_bytes} to i64")
            below = self.emit(f"sub i64 {least}, 1")  # of 0, more than any output
            found = self._much[key] = self.emit(f"icmp ult i64 {below}, {output}")
            self.lines = outer
        return found
