"""Kernels: the loop over work-groups, the loops over the work-items of each region, and what they share.

The LLVM function is what kernel_abi.h describes:

    entry    arguments, launch fields, addresses: once per call
    group    once per work-group: its ids, its sizes (smaller at the upper edges), then region 0
    rN       loops over z, y and x around the region's body; its exits store which region is next
    rN.done  on to that region, or to the next group
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...passes.analysis.redundant_items import redundant_dimensions
from ...passes.ir.ops import REGION_END, PassOp
from ...passes.ir.plan import KernelPlan, PrivateVariable, Region, Slot
from ...spirv.enums import BuiltIn, Op, StorageClass
from ...spirv.module import Argument, Block, Instruction, Value, Variable
from ..access.prefetch import Ahead
from ..expand.ternary_logic import ternary_vector
from ..layout import abi
from ..layout.abi_fields import AbiFields, BuiltinCache
from ..layout.arguments import LOCAL, STRUCT, argument_block
from ..layout.program_globals import variable_alignment
from ..layout.scratch import STACK_LIMIT, Scratch
from ..llvm import debug
from ..llvm.alias import AliasScopes
from ..llvm.emitter import BuiltinAddress, Components, ModuleText
from ..llvm.errors import CodegenError
from ..llvm.registry import Builder
from ..llvm.types import Lines, alignment_of, element_type, flat, ir_type, size_of
from ..ops.address_spaces import asks_address_space, in_range
from ..ops.memory import load_value, store_operand
from . import builtin_variables, sub_group_turns
from .debug_item import describe_item


class KernelEmitter(AbiFields):
    """Emits the LLVM function of one kernel."""

    def __init__(self, module: ModuleText, plan: KernelPlan) -> None:
        super().__init__(module, plan)
        self.symbol = f"cld_kernel_{plan.name}"
        self.is_terminable = module.options.terminable
        self.block, self.block_size = argument_block(plan.arguments)
        self.local_variables = {v.variable: v for v in plan.local_variables}
        self.ahead = None if plan.options.group else Ahead()
        self.redundant = redundant_dimensions(plan)
        self._has_printed = ""  # an i8: whether work-items of this group have, where one may do it for all
        self._group_counts: list[str] = []
        self._alive: list[str] = []  # allocas of the region's OpVariables
        self._builtin_blocks: list[Variable] = []  # built-in variables that are in memory in this region
        self._before_items: Lines = []  # lines of the region's first block, before the loops over work-items
        self._uniform_loads: dict[Slot, str] = {}  # values when the group came to the region
        self._exit_label = ""
        self._row_end = ""  # where rows of single work-items end, if they have several
        self._metadata: list[str] = []
        self._exits: set[int] = set()
        asks_class = any(
            asks_address_space(i)
            for region in plan.regions
            for block in region.function.blocks
            for i in block.instructions
        )
        on_stack = plan.private_size <= STACK_LIMIT and not asks_class
        self.scratch = self.make_scratch(plan, on_stack)

    def make_scratch(self, plan: KernelPlan, on_stack: bool) -> Scratch:
        """The layout of scratch memory."""
        return Scratch(plan, on_stack, self.width)

    # Operands.

    def componentwise(self, instruction: Instruction, operands: Sequence[Value], build: Builder) -> None:
        """The builder, but for logic of vectors that has a way of its own."""
        made = ternary_vector(self, instruction)
        if made is None:
            super().componentwise(instruction, operands, build)
        else:
            self.operands[instruction] = made

    def variable_address(self, variable: Variable) -> str:
        """Module-scope variables that a kernel can name."""
        storage = variable.type.storage
        if variable in self.local_variables:
            offset = self.local_variables[variable].offset
            return self.emit_prologue(f"getelementptr inbounds i8, ptr {self.local_memory()}, i64 {offset}")
        if variable in self.module.globals_offsets:
            base, offset = self.launch_field(abi.LAUNCH_GLOBALS, "ptr"), self.module.globals_offsets[variable]
            return self.emit_prologue(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")
        if storage == StorageClass.Input:
            return self._builtin_memory(variable)
        return super().variable_address(variable)

    def materialise(self, value: Value) -> str:
        """Arguments are loaded when they are first used. Addresses of built-in variables are of memory where
        something else than a load asks for them."""
        if isinstance(value, Argument) and value in self.plan.arguments:
            operand = self.operands[value] = self._argument(value)
            return operand
        address = self.builtin_addresses.get(value)
        if address is not None:
            operand = self.operands[value] = self._builtin_pointer(address)
            return operand
        return super().materialise(value)

    def _argument(self, argument: Argument) -> str:
        entry = self.block[self.plan.arguments.index(argument)]
        address = self.emit_prologue(f"getelementptr inbounds i8, ptr %args, i64 {entry.offset}")
        if entry.kind == STRUCT:
            return address
        if entry.kind == LOCAL:
            offset = self.emit_prologue(f"load i64, ptr {address}, align 8, !invariant.load !1")
            return self.emit_prologue(f"getelementptr inbounds i8, ptr {self.local_memory()}, i64 {offset}")
        outer, self.lines = self.lines, self.prologue
        try:
            return load_value(self, address, argument.type, 8 if entry.size == 8 else entry.alignment)
        finally:
            self.lines = outer

    def note_load(self, pointer: Value, address: str, size: int) -> None:
        """A load, if kernels fetch ahead."""
        if self.ahead is not None:
            self.ahead.note(self, pointer, address, size)

    # Built-in variables.

    def define_builtin(self, instruction: Instruction, variable: Variable) -> None:
        """OpLoad of an Input variable."""
        components, _ = builtin_variables.components(self, variable)
        self.operands[instruction] = Components(components) if len(components) > 1 else components[0]

    def define_builtin_component(
        self, instruction: Instruction, variable: Variable, indices: Sequence[Value]
    ) -> None:
        """An access chain into an Input variable."""
        if instruction.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
            indices = indices[1:]
        if not indices:
            self.builtin_addresses[instruction] = BuiltinAddress(variable, None)
            return
        index = self.integer(indices[0])
        if index is not None:
            self.builtin_addresses[instruction] = BuiltinAddress(variable, index)
            return
        address = self.operand(variable)
        element = ir_type(variable.type.element.element)
        self.define(
            instruction,
            self.emit(f"getelementptr inbounds {element}, ptr {address}, {self.typed(indices[0])}"),
        )

    def builtin_element(self, address: BuiltinAddress) -> str | Components:
        """What a load from a component's address gives."""
        components, _ = builtin_variables.components(self, address.variable)
        if address.index is not None:
            return components[address.index]
        return Components(components) if len(components) > 1 else components[0]

    def _builtin_memory(self, variable: Variable) -> str:
        """A built-in variable in memory, for those who want its address. Filled at the region's head."""
        components, t = builtin_variables.components(self, variable)
        block = self.alloca(f"[{len(components)} x {t}]", 16)
        for k, scalar in enumerate(components):
            self.head.append(f"  {block}.{k} = getelementptr inbounds {t}, ptr {block}, i64 {k}")
            self.head.append(f"  store {t} {scalar}, ptr {block}.{k}")
        self._builtin_blocks.append(variable)
        return block

    def _builtin_pointer(self, address: BuiltinAddress) -> str:
        """The address of a built-in variable in memory, or of one component of it."""
        block = self.operand(address.variable)
        if address.index is None:
            return block
        t = ir_type(element_type(address.variable.type.element))
        outer, self.lines = self.lines, self.head
        pointer = self.emit(f"getelementptr inbounds {t}, ptr {block}, i64 {address.index}")
        self.lines = outer
        return pointer

    def _item(self) -> str:
        return builtin_variables.component(self, BuiltIn.LocalInvocationIndex, 0)

    def printf_buffer(self) -> str:
        """What cld_printf gets first."""
        if self._has_printed:
            self.emit_void(f"store i8 1, ptr {self._has_printed}, align 1")
        return super().printf_buffer()

    # Private and context memory.

    def private_memory(self, instruction: Instruction) -> str:
        """Memory of an OpVariable: on the stack, or in scratch if there is much of it."""
        if instruction in self.scratch.lane_private:
            return self.lanes_address(self.scratch.lane_private[instruction])
        if instruction in self.scratch.private:
            return self.private_address(instruction)
        memory = self.alloca(f"[{size_of(instruction.type.element)} x i8]", variable_alignment(instruction))
        self.emit_void(f"call void @llvm.lifetime.start.p0(ptr {memory})")
        self._alive.append(memory)
        return memory

    def private_address(self, variable: Instruction | PrivateVariable) -> str:
        """The address of an OpVariable or PrivateVariable in this work-item's (lane 0's) private memory."""
        offset = self.scratch.private[variable]
        if not self.scratch.private_per_item:
            return self.lanes_address(offset)
        array, item = self.private_array(), self._item()
        block = self.emit(
            f"getelementptr inbounds [{self.scratch.private_stride} x i8], ptr {array}, i64 {item}"
        )
        return self.emit(f"getelementptr inbounds i8, ptr {block}, i64 {offset}")

    def in_private_memory(self, pointer: str) -> str:
        """i1: whether an address is private memory, all of which then lies in scratch."""
        start = self.scratch_address(0)
        items = self.rounded_items()
        size = self.emit(f"mul i64 {items}, {self.scratch.per_item}")
        size = self.emit(f"add i64 {size}, {self.scratch.items_start}")
        return in_range(self, pointer, start, size)

    def context_memory(self, variable: PrivateVariable) -> str:
        """This work-item's memory of a PrivateVariable."""
        return self.private_address(variable)

    def _slot_address(self, slot: Slot, item: Value | None) -> str:
        if slot.uniform:
            return self.scratch_address(self.scratch.uniform[slot])
        index = self._item() if item is None else self.to_width(self.typed(item), "i64")
        return self.emit(
            f"getelementptr inbounds [{size_of(slot.type)} x i8], ptr {self.slot_array(slot)}, i64 {index}"
        )

    def slot_load(self, slot: Slot, item: Value | None) -> str:
        """The value of a slot; item: a Value, or None for this work-item."""
        if slot.uniform and item is None:
            return self._uniform_load(slot)
        metadata = "" if slot.uniform else self.access_group
        address = self._slot_address(slot, item)
        return load_value(self, address, slot.type, alignment_of(slot.type), metadata=metadata)

    def _uniform_load(self, slot: Slot) -> str:
        """The value that a uniform slot had before any work-item came to the region."""
        found = self._uniform_loads.get(slot)
        if found is None:
            outer, self.lines = self.lines, self._before_items
            address = self._slot_address(slot, None)
            found = load_value(self, address, slot.type, alignment_of(slot.type))
            self._uniform_loads[slot] = found
            self.lines = outer
        return found

    def slot_store(self, slot: Slot, item: Value | None, value: Value) -> None:
        """Sets a slot."""
        store_operand(
            self,
            self._slot_address(slot, item),
            slot.type,
            self.operand(value),
            alignment_of(slot.type),
            metadata="" if slot.uniform else self.access_group,
        )

    # Control.

    def emit_return(self, value: Value | None) -> None:
        """CodegenError: kernels end in RegionExit."""
        raise CodegenError("OpReturn in a region")

    def emit_region_exit(self, next_region: int, left: Value | None = None) -> None:
        """The end of a work-item's way through the region. left: see PassOp.RegionExit."""
        if self.ahead is not None:
            self.ahead.finish(self)
        for memory in self._alive:
            self.emit_void(f"call void @llvm.lifetime.end.p0(ptr {memory})")
        if len(self._exits) > 1 and next_region != REGION_END:  # who has returned has no say
            self.emit_void(f"store i32 {next_region}, ptr %next_region, align 4")
        if left is None or not self._row_end:
            self.emit_void(f"br label %{self._exit_label}")
        else:
            test = self.operand(left)
            self.emit_void(f"br i1 {test}, label %{self._exit_label}, label %{self._row_end}")

    def counted_loop(self, count: str, body: Callable[[str], None]) -> None:
        """Emits body(index operand) for each i64 index below count."""
        before, loop, after = self.label, self.new_label("loop"), self.new_label("after")
        start = self.new_label("start")
        nothing = self.emit(f"icmp eq i64 {count}, 0")
        self.emit_void(f"br i1 {nothing}, label %{after}, label %{start}")
        self.begin_block(start)
        self.emit_void(f"br label %{loop}")
        self.begin_block(loop)
        index, following = self.name("i"), self.name("i")
        self.emit_void(f"{index} = phi i64 [ 0, %{start} ], [ {following}, %{loop} ]")
        body(index)
        self.emit_void(f"{following} = add i64 {index}, 1")
        more = self.emit(f"icmp ult i64 {following}, {count}")
        self.emit_void(f"br i1 {more}, label %{loop}, label %{after}")
        self.begin_block(after)
        assert before

    # The whole function.

    def kernel_text(self) -> str:
        """The LLVM function."""
        plan = self.plan
        if any(len(self._exit_targets(region)) > 1 for region in plan.regions):
            self.allocas.append("  %next_region = alloca i32, align 4")
        if debug.locations(plan):
            from ...passes.ir.lines import complete_lines  # not for most kernels

            for function in plan.own_functions():
                complete_lines(function)
            self.debug = debug.DebugEmitter(plan)
        if plan.uses_printf and self.redundant:
            self._has_printed = self.alloca("i8", 1)
        self._group_loop_head()
        for region in plan.regions:
            self._emit_region(region)
        self._group_loop_end()
        subprogram = self.debug.of_kernel() if self.debug else ""
        define, more = f'define void @"{self.symbol}"', ""
        entry: list[str] = []
        if plan.takes_turns:
            entry = sub_group_turns.entry_text(self.symbol, self.width, self.scratch)
            define, more = sub_group_turns.own_function(self.symbol)
        return "\n".join(
            [
                *entry,
                f"{define}(ptr noalias readonly %launch, ptr noalias readonly %args, ptr noalias %thread, "
                f"i64 %first, i64 %last{more}) #0{subprogram} {{",
                "entry:",
                *self.allocas,
                *flat(self.prologue),
                "  %empty = icmp uge i64 %first, %last",
                "  br i1 %empty, label %finished, label %start",
                *flat(self.lines),
                *self.terminated_block("void"),
                "}",
                "!1 = !{}",
                *self._metadata,
                *(self.debug.text() if self.debug else ()),
            ]
        )

    def _group_loop_head(self) -> None:
        count = [self.launch_field(abi.LAUNCH_NUM_GROUPS + 8 * k, "i64") for k in range(2)]
        self.begin_block("start")
        for line in (
            f"%first.x = urem i64 %first, {count[0]}",
            f"%first.rows = udiv i64 %first, {count[0]}",
            f"%first.y = urem i64 %first.rows, {count[1]}",
            f"%first.z = udiv i64 %first.rows, {count[1]}",
            "br label %group",
        ):
            self.emit_void(line)
        self.begin_block("group")
        self.emit_void("%group.index = phi i64 [ %first, %start ], [ %group.index.next, %group.end ]")
        for axis in "xyz":
            self.emit_void(f"%g{axis} = phi i64 [ %first.{axis}, %start ], [ %g{axis}.next, %group.end ]")
        for k, axis in enumerate("xyz"):
            local = self.launch_field(abi.LAUNCH_LOCAL_SIZE + 8 * k, "i64")
            global_ = self.launch_field(abi.LAUNCH_GLOBAL_SIZE + 8 * k, "i64")
            offset = self.launch_field(abi.LAUNCH_GLOBAL_OFFSET + 8 * k, "i64")
            self.emit_void(f"%w{axis} = mul i64 %g{axis}, {local}")
            self.emit_void(f"%o{axis} = add i64 %w{axis}, {offset}")
            self.emit_void(f"%rest{axis} = sub i64 {global_}, %w{axis}")
            self.emit_void(f"%l{axis} = call i64 @llvm.umin.i64(i64 {local}, i64 %rest{axis})")
        self.emit_void("br label %r0")
        self._group_counts = count

    def _group_loop_end(self) -> None:
        count = self._group_counts
        self.begin_block("group.end")
        for line in (
            "%gx.up = add i64 %gx, 1",
            f"%gx.wraps = icmp eq i64 %gx.up, {count[0]}",
            "%gx.next = select i1 %gx.wraps, i64 0, i64 %gx.up",
            "%gx.carry = zext i1 %gx.wraps to i64",
            "%gy.up = add i64 %gy, %gx.carry",
            f"%gy.wraps = icmp eq i64 %gy.up, {count[1]}",
            "%gy.next = select i1 %gy.wraps, i64 0, i64 %gy.up",
            "%gy.carry = zext i1 %gy.wraps to i64",
            "%gz.next = add i64 %gz, %gy.carry",
            "%group.index.next = add i64 %group.index, 1",
            "%group.more = icmp ult i64 %group.index.next, %last",
            "br i1 %group.more, label %group, label %finished",
        ):
            self.emit_void(line)
        self.begin_block("finished")
        self.before_return()
        self.emit_void("ret void")

    def before_return(self) -> None:
        """What there is to do at the end of a call."""

    def _region_exits(self, region: Region) -> list[Block]:
        return [block for block in region.function.blocks if block.terminator.op == PassOp.RegionExit]

    def _exit_targets(self, region: Region) -> set[int]:
        return {block.terminator.operands[0] for block in self._region_exits(region)}

    def _emit_region(self, region: Region) -> None:
        """The loops of one region around its body."""
        r, plan = f"r{region.index}", self.plan
        self.function = region.function
        self._exits = self._exit_targets(region)
        self.builtin_cache, self._alive = BuiltinCache(), []
        self.aliases = AliasScopes(plan, region, self._metadata)
        while self._builtin_blocks:
            del self.operands[self._builtin_blocks.pop()]
        self.begin_block(r)
        if self._has_printed:
            self.emit_void(f"store i8 0, ptr {self._has_printed}, align 1")
        if len(self._exits) > 1:
            self.emit_void(f"store i32 {REGION_END}, ptr %next_region, align 4")
        self._before_items, self._uniform_loads = [], {}
        self.lines.append(self._before_items)
        if region.once:
            self.local_ids, self.row, self.access_group = ["0", "0", "0"], "0", ""
        else:
            first = 2 + 3 * region.index
            self.access_group = f", !llvm.access.group !{first}" if self.width == 1 else ""
            self._metadata += [
                f"!{first} = distinct !{{}}",
                f"!{first + 1} = distinct !{{!{first + 1}, !{first + 2}}}",
                f'!{first + 2} = !{{!"llvm.loop.parallel_accesses", !{first}}}',
            ]
        if plan.takes_turns:
            self._emit_sub_group(region, r)
        elif region.once:
            self._emit_body(region, f"{r}.b", f"{r}.exit")
        else:
            self._emit_items(region, r, f", !llvm.loop !{3 + 3 * region.index}")
        if any(REGION_END != target <= region.index for target in self._exits):
            self.end_if_terminated()
        self._continue_with(sorted(self._exits))

    def _emit_body(self, region: Region, prefix: str, exit_label: str) -> None:
        """The region's function, for the work-items at local_ids; goes on at exit_label."""
        self.head = []
        self.lines.append(self.head)
        self._exit_label = exit_label
        describe_item(self)
        self.emit_blocks(region.function, prefix)
        self.begin_block(exit_label)

    def _emit_sub_group(self, region: Region, r: str) -> None:
        """The region for one sub-group; what runs once per group, the first one does."""
        gate: Lines = []
        self.lines.append(gate)
        if region.once:
            exists = self.emit("icmp eq i64 %index, 0")
        else:
            exists = self._own_items(r)
        self.emit_void(f"br i1 {exists}, label %{r}.own, label %{r}.done")
        self.begin_block(f"{r}.own")
        self._emit_body(region, f"{r}.b", f"{r}.exit")
        self.emit_void(f"br label %{r}.done")
        self.begin_block(f"{r}.done")
        if self._uniform_loads and not region.once:
            gate.append(sub_group_turns.wait_for_loads())

    def _own_items(self, r: str) -> str:
        """Sets the ids of a sub-group's work-item. Gives an i1: whether it has one."""
        exists = self.emit(f"icmp ult i64 %index, {self.group_items()}")
        x = self.emit("urem i64 %index, %lx")
        rows = self.emit("udiv i64 %index, %lx")
        self.local_ids = [x, self.emit(f"urem i64 {rows}, %ly"), self.emit(f"udiv i64 {rows}, %ly")]
        self.row = self.emit(f"sub i64 %index, {x}")
        return exists

    def _emit_items(self, region: Region, r: str, metadata: str) -> None:
        """The loops over the work-items of a group."""
        self._rows_head(r)
        self.emit_void(f"br label %{r}.x")
        self.begin_block(f"{r}.x")
        if self._is_done_once(0):
            self.emit_void(f"%{r}.lx = phi i64 [ 0, %{r}.y ]")
            self._emit_body(region, f"{r}.b", f"{r}.exit")
            self.emit_void(f"br label %{r}.y.end")
            self._rows_end(r)
            return
        self.emit_void(f"%{r}.lx = phi i64 [ 0, %{r}.y ], [ %{r}.lx.next, %{r}.x.end ]")
        self._row_end = f"{r}.y.end"
        self._emit_body(region, f"{r}.b", f"{r}.exit")
        self._row_end = ""
        self.emit_void(f"br label %{r}.x.end")
        self.begin_block(f"{r}.x.end")
        self.emit_void(f"%{r}.lx.next = add nuw nsw i64 %{r}.lx, {self.width}")
        self._loop_end(0, f"{r}.x", f"{r}.y.end", f"{r}.lx", metadata)
        self._rows_end(r)

    def _is_done_once(self, dimension: int) -> bool:
        """Whether one work-item along a dimension does it for all, whatever it does."""
        return dimension in self.redundant and not self._has_printed

    def _loop_end(self, dimension: int, head: str, after: str, index: str, metadata: str = "") -> None:
        """The branch back to head, as long as %index.next has a work-item that is needed."""
        more = f"%{index}.more"
        self.emit_void(f"{more} = icmp ult i64 %{index}.next, %l{'xyz'[dimension]}")
        if dimension in self.redundant:
            printed = self.emit(f"load i8, ptr {self._has_printed}, align 1")
            printed = self.emit(f"icmp ne i8 {printed}, 0")
            more = self.emit(f"and i1 {more}, {printed}")
        self.emit_void(f"br i1 {more}, label %{head}, label %{after}{metadata}")

    def _rows_head(self, r: str) -> None:
        """The heads of the loops over z and y."""
        outer = r
        for dimension, axis in ((2, "z"), (1, "y")):
            self.emit_void(f"br label %{r}.{axis}")
            self.begin_block(f"{r}.{axis}")
            edges = f"[ 0, %{outer} ]"
            if not self._is_done_once(dimension):
                edges += f", [ %{r}.l{axis}.next, %{r}.{axis}.end ]"
            self.emit_void(f"%{r}.l{axis} = phi i64 {edges}")
            outer = f"{r}.{axis}"
        self.emit_void(f"%{r}.plane = mul i64 %{r}.lz, %ly")
        self.emit_void(f"%{r}.rows = add i64 %{r}.plane, %{r}.ly")
        self.emit_void(f"%{r}.row = mul i64 %{r}.rows, %lx")
        self.local_ids = [f"%{r}.l{axis}" for axis in "xyz"]
        self.row = f"%{r}.row"

    def _rows_end(self, r: str) -> None:
        """The ends of the loops over y and z."""
        for dimension, (axis, outer) in enumerate((("y", "z.end"), ("z", "done")), 1):
            self.begin_block(f"{r}.{axis}.end")
            if self._is_done_once(dimension):
                self.emit_void(f"br label %{r}.{outer}")
                continue
            step = self.tile[1] if axis == "y" else 1
            self.emit_void(f"%{r}.l{axis}.next = add nuw nsw i64 %{r}.l{axis}, {step}")
            self._loop_end(dimension, f"{r}.{axis}", f"{r}.{outer}", f"{r}.l{axis}")
        self.begin_block(f"{r}.done")

    def _continue_with(self, targets: list[int]) -> None:
        """From the end of a region to what its work-items asked for."""

        def label(target: int) -> str:
            return "group.end" if target == REGION_END else f"r{target}"

        if not targets:
            self.emit_void("unreachable")
        elif len(targets) == 1:
            if self.plan.takes_turns and targets[0] != REGION_END:
                sub_group_turns.join(self, str(targets[0]))
            self.emit_void(f"br label %{label(targets[0])}")
        else:
            which = self.emit("load i32, ptr %next_region, align 4")
            if self.plan.takes_turns:
                which = sub_group_turns.join(self, which)
            cases = " ".join(f"i32 {target}, label %{label(target)}" for target in targets[1:])
            self.emit_void(f"switch i32 {which}, label %{label(targets[0])} [ {cases} ]")
