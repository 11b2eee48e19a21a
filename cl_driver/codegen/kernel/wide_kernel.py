"""Kernels at W work-items per vector: loops over rows of work-items or over the group, ids, slots."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...passes.ir.dominance import dominators
from ...passes.ir.plan import KernelPlan, PrivateVariable, Region, Slot, VectorFunction
from ...spirv.module import Argument, Instruction, Type, Value, Variable
from ..access.packed_vectors import find_packed
from ..layout.abi_fields import BuiltinCache
from ..layout.scratch import ITEMS_ROUNDING
from ..library.functions import UNSAFE_IN_NAMES
from ..llvm.emitter import BuiltinAddress, ModuleText, describe, instruction_name
from ..llvm.errors import CodegenError
from ..llvm.types import alignment_of, leaf_types, size_of
from ..lockstep.lane_constants import LaneConstants
from ..ops.memory import load_value, store_operand
from ..simd.emitter import WideEmitter
from .kernel_emitter import KernelEmitter
from .linear_lanes import LINEAR_IDS, id_components, reciprocals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# A version of a function, the piece of each argument (layout/lanes.py), and whether it is for a mask.
VectorForm: TypeAlias = tuple[VectorFunction, tuple[int, ...], bool]

# Bodies of at most so many instructions are emitted twice: for full vectors, and under a mask for the rest.
TAIL_LIMIT = 1500


def _possible(plan: KernelPlan, vectors: str) -> str:
    """What of `vectors` (kernel.emit()) is possible: the rest comes in a call of its own only if no work-item
    can tell the groups, since full vectors and the rest of all groups are then executed one after the other.
    """
    options = plan.options
    if options.linear_group:
        return "full" if math.prod(options.linear_group) % options.width == 0 else "full and rest"
    bodies = [region.function.blocks for region in plan.regions if not region.once]
    is_large = any(sum(len(b.instructions) for b in blocks) > TAIL_LIMIT for blocks in bodies)
    comes_apart = plan.has_free_groups and len(plan.regions) == len(bodies) == 1
    may_be_whole = not (options.linear_lanes or options.group or options.sub_groups or is_large)
    return vectors if may_be_whole and (comes_apart or vectors != "rest") else "full and rest"


class VectorSymbols:
    """The functions that a kernel's lanes call, in one of their forms: version, pieces, whether masked."""

    def __init__(self) -> None:
        self._symbols: dict[VectorForm, str] = {}
        self.pending: list[tuple[VectorForm, str]] = []

    def symbol(self, form: VectorForm) -> str:
        """The symbol of a form, which will be emitted."""
        if form not in self._symbols:
            name = form[0].name.translate(UNSAFE_IN_NAMES)
            self._symbols[form] = symbol = f'@"{name}.lanes.{len(self._symbols)}"'
            self.pending.append((form, symbol))
        return self._symbols[form]


class WideKernelEmitter(WideEmitter, KernelEmitter):
    """Emits a kernel at a width above 1.

    A body takes `parts` vectors of work-items at a time: the next ones of a row, or those of the next rows.
    local_ids, row and builtin_cache are those of the part whose instructions are being lowered.
    """

    def __init__(
        self, module: ModuleText, plan: KernelPlan, width: int, vectors: str = "full and rest"
    ) -> None:
        super().__init__(module, plan, width)
        self.private_stride = self.scratch.private_stride
        self.pieces = self.scratch.interleaved  # by the pointer
        self.functions = VectorSymbols()
        self._leaf_arrays: dict[tuple[Slot, int], str] = {}  # start of a slot's leaves, but the first
        self._scaled: dict[int, str] = {}  # see scaled()
        self._rounds = ""
        self._spread_arrays: dict[PrivateVariable, str] = {}
        self._row_size = ""  # work-items that lanes are taken from: of a row, or of the group
        self.vectors = _possible(plan, vectors)  # see kernel.emit()
        self._tail = False  # whether there may be fewer work-items than lanes
        self._linear = plan.options.linear_lanes
        rows = self.parts if plan.options.part_axis == 1 and not self._linear else 1
        self.tile = width * self.parts // rows, rows
        if self.group:
            self.tile = self.group[0], self.group[1]
            self.group_sizes = [str(size) for size in self.group]
        elif plan.options.linear_group:
            self.group_sizes = [str(size) for size in plan.options.linear_group]
        self._row_ends = False  # whether the region's rows may be left early: see row_early_exit.py
        self._exit_edges: list[tuple[str, str]] = []  # of a body: whether anything may be left, and the label
        # Of each part: local_ids, row and builtin_cache.
        self._ids_of_part: dict[int, tuple[list[str], str, BuiltinCache]] = {}
        self._reciprocals: list[str] = []  # linear_lanes.py

    def select_part(self, part: int) -> None:
        """What follows is lowered for this part of the work-items."""
        if part == self.part:
            return
        if part not in self._ids_of_part:
            (x, y, z), row, _ = self._ids_of_part[0]
            outer, self.lines = self.lines, self.head
            if self.group:
                rows, along = divmod(part * self.width, self.group[0])
                z, y = map(str, divmod(rows, self.group[1]))
                x, row = str(along), str(rows * self.group[0])
            elif self.tile[1] > 1:
                distance = self.emit(f"mul i64 %lx, {part}")
                y, row = self.emit(f"add i64 {y}, {part}"), self.emit(f"add i64 {row}, {distance}")
            else:
                x = self.emit(f"add i64 {x}, {part * self.width}")
            self.lines = outer
            self._ids_of_part[part] = [x, y, z], row, BuiltinCache()
        self.local_ids, self.row, self.builtin_cache = self._ids_of_part[part]
        self.part = part

    def spacing(self, pointer: Value) -> int:
        """Bytes in memory that a byte of the type that a pointer points to stands for
        (layout/private_layout.py). Of memory that is spread over all work-items of a group: of lanes."""
        return self.width if pointer in self.pieces or pointer in self.scratch.spread else 1

    def is_spread(self, pointer: Value) -> bool:
        """Whether it is such memory: what a byte stands for is known when the kernel runs."""
        return pointer in self.scratch.spread

    def scaled(self, pointer: Value, offset: int) -> str:
        """How far an offset in bytes is in memory, as an i64."""
        if pointer not in self.scratch.spread or not offset:
            return super().scaled(pointer, offset)
        found = self._scaled.get(offset)
        if found is None:
            # As a multiple of what LLVM knows not to be 0, pieces do not meet.
            if not self._rounds:
                rounds = self.emit_prologue(f"udiv exact i64 {self.rounded_items()}, {ITEMS_ROUNDING}")
                self._rounds = self.emit_prologue(f"call i64 @llvm.umax.i64(i64 {rounds}, i64 1)")
            distance = f"mul nsw i64 {self._rounds}, {offset * ITEMS_ROUNDING}"
            found = self._scaled[offset] = self.emit_prologue(distance)
        return found

    def context_memory(self, variable: PrivateVariable) -> str:
        """Lane 0's memory of a PrivateVariable."""
        before = self.scratch.spread_offset.get(variable)
        if before is None:
            return super().context_memory(variable)
        array = self._spread_arrays.get(variable)
        if array is None:
            array = self._spread_arrays[variable] = self._item_array(before)
        piece = self.scratch.spread_size[variable]
        return self.emit(f"getelementptr inbounds [{piece} x i8], ptr {array}, i64 {self._item()}")

    def piece(self, pointer: Value) -> int:
        """Bytes of a piece of private memory of which those of all lanes lie together, 0 for other memory."""
        return self.pieces.get(pointer) or self.scratch.spread.get(pointer, 0)

    def vector_symbol(self, version: VectorFunction, pieces: tuple[int, ...], is_masked: bool) -> str:
        """The symbol of a function for all lanes, or for those of a mask."""
        return self.functions.symbol((version, pieces, is_masked))

    def stride(self, value: Value) -> int:
        """From one lane to the next, of a scalar that is not varying; in bytes for pointers. CodegenError
        where that is not one number."""
        piece = self.piece(value)
        if not piece or not self.has_lanes:
            return super().stride(value)
        stride = self.shapes.strides.get(value, 0)
        if type(stride) is not int:
            raise CodegenError(f"{describe(value)} has no one stride")
        return stride * self.width + piece

    def _argument(self, argument: Argument) -> str:
        given = super()._argument(argument)
        return self.histogram.pointer(self, given) if argument is self.histogram.argument else given

    def _builtin_memory(self, variable: Variable) -> str:
        if self.parts > 1:
            raise CodegenError(f"{variable.name} in memory")
        return super()._builtin_memory(variable)

    def _builtin_pointer(self, address: BuiltinAddress) -> str:
        # What is in memory is lane 0's.
        raise CodegenError(f"the address of {address.variable.name}")

    def before_return(self) -> None:
        """Atomic reductions; stores past the caches are seen by all before what comes after the kernel."""
        self.reductions.finish(self)
        if self.nontemporal is not None and self.nontemporal.is_used:
            self.emit_void("call void @llvm.x86.sse.sfence()")

    def entry_mask(self) -> str:
        """`<W x i1>`: the lanes that hold a work-item."""
        if not self._tail:
            return self.form.splat("i1", "true")
        found = self.builtin_cache.entry_mask
        if not found:
            outer, self.lines = self.lines, self.head
            count = self.emit(f"sub i64 {self._row_size}, {self.local_ids[0]}")
            if self.tile[1] > 1 and self.part:
                exists = self.emit(f"icmp ult i64 {self.local_ids[1]}, %ly")
                count = self.emit(f"select i1 {exists}, i64 {count}, i64 0")
            indices = ", ".join(f"i64 {k}" for k in range(self.width))
            limit = self.splat(count, "i64", self.form)
            found = self.emit(f"icmp slt {self.form('i64')} <{indices}>, {limit}")
            self.lines = outer
            self.builtin_cache.entry_mask = found
        return found

    def _emit_region(self, region: Region) -> None:
        self.has_lanes = not region.once and region.shapes is not None
        if region.shapes is not None:
            self.shapes = region.shapes
        self._used, self.counted_loops = None, None
        self.packed = find_packed(self, region.function) if self.has_lanes else frozenset()
        self._row_ends = any(len(b.terminator.operands) > 1 for b in self._region_exits(region))
        super()._emit_region(region)
        self.has_lanes = False

    def _emit_body(self, region: Region, prefix: str, exit_label: str) -> None:
        self._ids_of_part = {0: (self.local_ids, self.row, self.builtin_cache)}
        self.part = 0
        self._exit_edges = []
        super()._emit_body(region, prefix, exit_label)
        self.select_part(0)

    def emit_region_exit(self, next_region: int, left: Value | None = None) -> None:
        """The end of a vector's way through the region."""
        super().emit_region_exit(next_region)
        self._exit_edges.append(("true" if left is None else self.operand(left), self.label))

    def _emit_items(self, region: Region, r: str, metadata: str) -> None:
        """Each row of work-items, or the group as one: full vectors, then what is left under a mask.

        A large body is emitted once, always under the mask; so is one for rows that fill no vector. Groups in
        lockstep need no loop.
        """
        if self.group:
            self.local_ids, self.row, self._tail = ["0", "0", "0"], "0", False
            x, y, z = self.group
            self.lane_constants = LaneConstants(self, (x, y, z), dominators(region.function))
            self._emit_body(region, f"{r}.b", f"{r}.exit")
            self.lane_constants.finish()
            return
        before, end = (f"{r}.group", f"{r}.done") if self._linear else (f"{r}.y", f"{r}.y.end")
        if self._linear:
            self._group_head(r)
        else:
            self._rows_head(r)
            self._row_size = "%lx"
        is_large = sum(len(block.instructions) for block in region.function.blocks) > TAIL_LIMIT
        self.in_rest = self.vectors == "short"
        self._tail = self.in_rest or (is_large and self.vectors != "full")
        if self._tail:
            self.emit_void(f"br label %{r}.x")
            full, rest = self._row_size, end
        else:
            full, rest = self._full_vectors(r), end if self.vectors == "full" else f"{r}.rest"
            if self.vectors == "rest":
                self.emit_void(f"br label %{rest}")
                self._emit_rest(region, r, full, end)
                self._rows_end(r)
                return
            self.emit_void(f"%{r}.any = icmp ne i64 {full}, 0")
            self.emit_void(f"br i1 %{r}.any, label %{r}.x, label %{rest}")
        self.begin_block(f"{r}.x")
        latch = f"{r}.next" if self._row_ends else f"{r}.exit"
        self.emit_void(f"%{r}.lx = phi i64 [ 0, %{before} ], [ %{r}.lx.next, %{latch} ]")
        self._emit_body(region, f"{r}.b", f"{r}.exit")
        if self._row_ends:
            edges = ", ".join(f"[ {left}, %{label} ]" for left, label in self._exit_edges)
            self.emit_void(f"%{r}.work = phi i1 {edges}")
            self.emit_void(f"br i1 %{r}.work, label %{latch}, label %{end}")
            self.begin_block(latch)
        self.emit_void(f"%{r}.lx.next = add nuw nsw i64 %{r}.lx, {self.tile[0]}")
        self.emit_void(f"%{r}.lx.more = icmp ult i64 %{r}.lx.next, {full}")
        self.emit_void(f"br i1 %{r}.lx.more, label %{r}.x, label %{rest}")
        if rest != end:
            self._emit_rest(region, r, full, end)
        if self._linear:
            self.begin_block(end)
        else:
            self._rows_end(r)

    def _own_items(self, r: str) -> str:
        """Sets the ids of a sub-group's first work-item. Gives an i1: whether it has any."""
        self._group_head(r)
        self._tail = True
        self.emit_void(f"%{r}.lx = mul i64 %index, {self.width}")
        return self.emit(f"icmp ult i64 %{r}.lx, {self._row_size}")

    def _full_vectors(self, r: str) -> str:
        """Work-items of the row for which all lanes of all parts have one: a multiple of the step."""
        step = self.tile[0]
        if step & (step - 1):
            self.emit_void(f"%{r}.over = urem i64 {self._row_size}, {step}")
            self.emit_void(f"%{r}.whole = sub i64 {self._row_size}, %{r}.over")
        else:
            self.emit_void(f"%{r}.whole = and i64 {self._row_size}, {-step}")
        if self.tile[1] == 1:
            return f"%{r}.whole"
        self.emit_void(f"%{r}.rows.left = sub i64 %ly, %{r}.ly")
        self.emit_void(f"%{r}.rows.full = icmp uge i64 %{r}.rows.left, {self.tile[1]}")
        self.emit_void(f"%{r}.full = select i1 %{r}.rows.full, i64 %{r}.whole, i64 0")
        return f"%{r}.full"

    def _emit_rest(self, region: Region, r: str, full: str, end: str) -> None:
        """The last vectors, where some lanes have no work-item."""
        self.begin_block(f"{r}.rest")
        self.emit_void(f"%{r}.left = icmp ult i64 {full}, {self._row_size}")
        self.emit_void(f"br i1 %{r}.left, label %{r}.tail, label %{end}")
        self.begin_block(f"{r}.tail")
        x = full
        if self.tile[1] > 1:  # if rows are missing, there may be several
            x = f"%{r}.tx"
            self.emit_void(f"{x} = phi i64 [ {full}, %{r}.rest ], [ {x}.next, %{r}.tail.exit ]")
        self.local_ids = [x, *self.local_ids[1:]]
        self.builtin_cache = BuiltinCache()
        self.forget(region.function)
        self._tail, self.in_rest = True, self.tile[1] == 1
        remarks, self.remarks = self.remarks, None  # all has been said of the full vectors
        self._emit_body(region, f"{r}.t", f"{r}.tail.exit")
        self.remarks, self.in_rest = remarks, False
        if self.tile[1] > 1:
            self.emit_void(f"{x}.next = add nuw nsw i64 {x}, {self.tile[0]}")
            self.emit_void(f"{x}.more = icmp ult i64 {x}.next, {self._row_size}")
            self.emit_void(f"br i1 {x}.more, label %{r}.tail, label %{end}")
        else:
            self.emit_void(f"br label %{end}")

    def _group_head(self, r: str) -> None:
        """Before the loop over the linear local id."""
        self.emit_void(f"br label %{r}.group")
        self.begin_block(f"{r}.group")
        if self.plan.options.linear_group:
            self._row_size = str(math.prod(self.plan.options.linear_group))
        else:
            self._row_size = self.group_items()
            self._reciprocals = reciprocals(self)
        self.local_ids, self.row = [f"%{r}.lx", "0", "0"], "0"

    # Ids where lanes follow the linear local id.

    def define_builtin(self, instruction: Instruction, variable: Variable) -> None:
        """OpLoad of an Input variable."""
        if self.is_varying(instruction):
            self.define_leaves(instruction, self.id_leaves(instruction.type, variable, None))
        else:
            super().define_builtin(instruction, variable)

    def define_builtin_component(
        self, instruction: Instruction, variable: Variable, indices: Sequence[Value]
    ) -> None:
        """An access chain into an Input variable. CodegenError if it varies and the index is no constant."""
        super().define_builtin_component(instruction, variable, indices)
        is_dynamic = instruction not in self.builtin_addresses
        if self._linear and variable.builtin in LINEAR_IDS and is_dynamic:
            raise CodegenError(f"{instruction_name(instruction)} of {variable.name} with a dynamic index")

    def id_leaves(self, type_: Type, variable: Variable, index: int | None) -> list[str]:
        """The leaves of an id, or of one component, in the width of its type. CodegenError for other
        variables."""
        builtin = variable.builtin
        if builtin is None or builtin not in LINEAR_IDS:
            raise CodegenError(f"{variable.name} varies between lanes")
        outer, self.lines = self.lines, self.head
        found = self.builtin_cache.leaves.get(builtin)
        if found is None:
            found = self.builtin_cache.leaves[builtin] = id_components(self, builtin, self._reciprocals)
        if index is not None:
            found = found[index : index + 1]
        width = leaf_types(type_)[0].width
        if width < 64:
            found = [
                self.emit(f"trunc {self.form('i64')} {ids} to {self.form(f'i{width}')}") for ids in found
            ]
        self.lines = outer
        return found

    # Slots: one array per leaf.

    def slot_leaf_address(self, slot: Slot, leaf: int, item: Value | None) -> str:
        """Where leaf number `leaf` of a slot is, for lane 0 or a work-item given by its linear local id."""
        array, types = self.slot_array(slot), leaf_types(slot.type)
        before = sum(size_of(t) for t in types[:leaf])
        if before:
            key = (slot, leaf)
            found = self._leaf_arrays.get(key)
            if found is None:
                distance = self.emit_prologue(f"mul i64 {self.rounded_items()}, {before}")
                found = self.emit_prologue(f"getelementptr inbounds i8, ptr {array}, i64 {distance}")
                self._leaf_arrays[key] = found
            array = found
        index = self._item() if item is None else self.to_width(self.typed(item), "i64")
        return self.emit(f"getelementptr inbounds [{size_of(types[leaf])} x i8], ptr {array}, i64 {index}")

    def slot_load(self, slot: Slot, item: Value | None) -> str:
        """The value of a slot for lane 0 or for one work-item."""
        if slot.uniform:
            return super().slot_load(slot, item)
        scalars = [
            load_value(self, self.slot_leaf_address(slot, k, item), t, alignment_of(t))
            for k, t in enumerate(leaf_types(slot.type))
        ]
        return self.assemble(slot.type, iter(scalars))

    def slot_store(self, slot: Slot, item: Value | None, value: Value) -> None:
        """Sets a slot for one work-item."""
        if slot.uniform:
            super().slot_store(slot, item, value)
            return
        scalars = self.explode(slot.type, self.operand(value))
        for k, (t, scalar) in enumerate(zip(leaf_types(slot.type), scalars, strict=True)):
            store_operand(self, self.slot_leaf_address(slot, k, item), t, scalar, alignment_of(t))
