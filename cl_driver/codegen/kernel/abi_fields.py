"""What a kernel is called with: fields of the structures of kernel_abi.h, places in scratch memory."""

from __future__ import annotations

from ..layout import abi
from ..layout.scratch import ITEMS_ROUNDING
from ..llvm.emitter import FunctionEmitter


class KernelFields(FunctionEmitter):
    """Each is loaded or computed once per call, in the function's first block.

    Who inherits sets `scratch`, the layout of scratch memory.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._fields: dict = {}

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

    def printf_buffer(self) -> str:
        """What cld_printf gets first."""
        return self.launch_field(abi.LAUNCH_PRINTF_BUFFER, "ptr")

    def scratch_address(self, offset: int) -> str:
        """A fixed place in scratch memory."""
        key = ("scratch", offset)
        found = self._fields.get(key)
        if found is None:
            scratch = self.thread_field(abi.THREAD_SCRATCH, "ptr")
            found = self.emit_prologue(f"getelementptr inbounds i8, ptr {scratch}, i64 {offset}")
            self._fields[key] = found
        return found

    def rounded_items(self) -> str:
        """Work-items of a full group, rounded up: for how many the context arrays have room."""
        found = self._fields.get("items")
        if found is None:
            items = self.emit_prologue(f"add i64 {self.enqueued_items()}, {ITEMS_ROUNDING - 1}")
            found = self._fields["items"] = self.emit_prologue(f"and i64 {items}, {-ITEMS_ROUNDING}")
        return found

    def enqueued_items(self) -> str:
        """Work-items of a full group, an i64."""
        found = self._fields.get("enqueued items")
        if found is None:
            sizes = [self.launch_field(abi.LAUNCH_LOCAL_SIZE + 8 * k, "i64") for k in range(3)]
            items = self.emit_prologue(f"mul i64 {sizes[0]}, {sizes[1]}")
            found = self.emit_prologue(f"mul i64 {items}, {sizes[2]}")
            self._fields["enqueued items"] = found
        return found

    def slot_array(self, key) -> str:
        """The start of the per-item memory of a Slot or PrivateVariable."""
        found = self._fields.get(key)
        if found is None:
            before = self.scratch.per_item_offset[key]
            start = self.scratch_address(self.scratch.items_start)
            distance = self.emit_prologue(f"mul i64 {self.rounded_items()}, {before}")
            found = self.emit_prologue(f"getelementptr inbounds i8, ptr {start}, i64 {distance}")
            self._fields[key] = found
        return found
