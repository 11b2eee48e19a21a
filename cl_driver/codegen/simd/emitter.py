"""Kernels at W work-items per vector.

Each value has a shape (passes/analysis/shape.py). A uniform value is single; so is an affine one, of which
the value of lane 0 is held, the others being that plus lane · stride. Both are lowered by the code for width
1. A varying value is held as *leaves*: one `<W x T>` per scalar that its type consists of (an OpenCL vector
has one per component). Instructions with leaves are lowered, in this order of choice, by

- the wide lowering (access/loads.py, values.py, ...), if there is one;
- the component-wise builder of width 1, applied to the leaves;
- each lane by itself, with the code for width 1: what has effects only in lanes of its mask.

Lanes outside of a mask compute garbage, which must not be poison where it matters: LLVM's `and` of false and
poison is poison, a division by it undefined behaviour of all lanes. So masked loads give 0 there, and what
goes into masks and divisions is frozen.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...passes.ir.plan import KernelPlan
from ...passes.ir.remarks import LANES
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Function, Instruction, Kind, Undef, Value
from ..access import block_versioning, lut_permute, masked_access, packed_vectors
from ..access.interleaved_access import find_interleaved
from ..access.runtime_contiguity import Contiguity
from ..access.store_merging import find_merged_stores
from ..expand.ternary_logic import ternary
from ..footprints import versions
from ..library.shared_code import is_written_out
from ..llvm.emitter import Components, ModuleText, instruction_name
from ..llvm.errors import CodegenError
from ..llvm.registry import COMPONENTWISE, EXTENDED, LOWERINGS, WIDE, WIDE_EXTENDED, Builder, Lowering
from ..llvm.types import Lines, constant_text, ir_type, leaf_types
from .component_runs import emit_run, find_runs
from .lane_loop import has_many_calls, is_call, lines_of, loop_over_lanes, may_be_in_loop
from .memory_updates import emit_update, find_lane_updates
from .operands import WideOperands
from .pipes import call_for_lanes, may_be_for_lanes
from .vector_calls import call_vector_function

# Effects that a group of lanes has once, not once per lane.
_ONCE_FOR_ALL = frozenset((
    Op.MemoryBarrier, Op.ControlBarrier, Op.Branch, Op.BranchConditional, Op.Switch, Op.Unreachable,
    Op.AssumeTrueKHR, Op.Nop, Op.Variable,
))  # fmt: skip


class WideEmitter(WideOperands):
    """What emitters of code at a width above 1 add to those of width 1: see layout/lanes.py.

    Kernels are emitted by what inherits this and KernelEmitter, kernel/wide_kernel.py.
    """

    def __init__(self, module: ModuleText, plan: KernelPlan, width: int) -> None:
        # Phis that have leaves: as FunctionEmitter's, with the name of each.
        self._wide_phis: list[tuple[Lines, int, list[str], Instruction, Block]] = []
        self._many_calls: dict[Function, bool] = {}  # see lane_loop.py
        # Components that are emitted, if not all: see component_runs.py.
        self.component_group: range | None = None
        super().__init__(module, plan, width)

    # Instructions.

    def componentwise(self, instruction: Instruction, operands: Sequence[Value], build: Builder) -> None:
        """The builder on single values, or on each leaf."""
        if not self.has_lanes or self.lane is not None or not self.is_varying(instruction):
            super().componentwise(instruction, operands, build)
            return
        if instruction in self.packed:
            packed_vectors.componentwise(self, instruction, operands, build)
            return
        leaf = ternary(self, self.form, instruction, self.leaves)
        if leaf is None:
            operand_leaves = [self.leaves(o) for o in operands]

            def leaf(k: int) -> str:
                return build(
                    self, self.form, instruction, *[c[k if len(c) > 1 else 0] for c in operand_leaves]
                )

        if self.component_group is None:
            self.leaves_of[instruction] = [leaf(k) for k in range(len(leaf_types(instruction.type)))]
        else:
            for k in self.component_group:
                self.leaves_of[instruction][k] = leaf(k)

    def emit_instructions(self, instructions: Sequence[Instruction]) -> None:
        """Lowers the instructions of a block by their shapes."""
        if not self.has_lanes:
            super().emit_instructions(instructions)
            return
        divided = block_versioning.divide(self, instructions)
        if divided is None:
            footprints = versions.find(self, instructions)
            if footprints is None:
                self.emit_in_order(instructions)
                return
            self.emit_in_order(footprints.before)
            versions.emit(self, footprints)
            self.emit_in_order(footprints.behind)
            return
        before, inside, behind, sums = divided
        self.emit_in_order(before)
        block_versioning.emit(self, inside, sums, lambda i: ask_packed(self, i))
        self.emit_in_order(behind)

    def emit_in_order(self, instructions: Sequence[Instruction]) -> None:
        """Lowers instructions one by one."""
        after_phis: Lines | None = None
        late: Lines
        self.has_waiting_look_ups = self.lane_constants is None
        instructions = lut_permute.brought_together(self, instructions)
        self.interleaved = interleaved = find_interleaved(self, instructions)
        self.merged_stores = find_merged_stores(self, instructions, interleaved)
        runs = find_runs(self, instructions)
        updates = find_lane_updates(self, instructions, runs)
        if self.lane_constants is not None:
            self.lane_constants.begin_block(instructions)
        for i in instructions:
            if self.nontemporal is not None and self.nontemporal.pending and not self.shapes.part_of.get(i):
                self.nontemporal.flush(self)
            if self.waiting and not may_wait(self, i) and masked_access.must_flush(self, i):
                masked_access.flush(self)
            if self.look_ups and lut_permute.must_flush(self, i):
                self._look_up()
            if i.op is Op.Phi:
                self.phi(i)
                continue
            if after_phis is None:
                after_phis = []
                self.lines.append(after_phis)
                for phi in instructions:
                    if phi.op is not Op.Phi:
                        break
                    self.late[phi] = after_phis
            start = len(self.lines)
            self.at_hand = i
            if self.remarks is not None:
                self.remarks.begin(i)
            access = interleaved.get(i)
            if self.lane_constants is not None:
                if self.shapes.part_of:
                    self.select_part(self.shapes.part_of.get(i, 0))
                if i.mask is not None and self.lane_constants.is_never(i.mask):
                    self._leave_out(i)
                    continue
                if i.op is Op.Load and i.operands[0].type.storage is StorageClass.Workgroup:
                    single = self.lane_constants.single(i)
                    if single is not None:
                        self.define(i, single)
                        late = self.late[i] = []
                        self.lines.append(late)
                        continue
                self.lane_constants.before(i, access is None)
                if access is None and self._is_deferred(i):
                    late = self.late[i] = self._deferred[i] = []
                    self.lines.append(late)
                    continue
            run, update = runs.get(i), updates.get(i)
            if update is not None:
                if i is update.store:
                    emit_update(self, update)
            elif run is None:
                self.lower(i)
            elif i is run[-1]:
                emit_run(self, run)
                start = len(self.lines)
                for earlier in run[:-1]:
                    late = self.late[earlier] = []
                    self.lines.append(late)
            if self.remarks is not None:
                self.remarks.end(self.is_varying(i), self.shapes.stride(i))
            if self.debug is not None:
                self.debug.attach(self.lines, start, i)
            if isinstance(self.operands.get(i), str) or i in self.leaves_of:
                late = self.late[i] = []
                self.lines.append(late)
        masked_access.flush(self)
        self._look_up()
        self.has_waiting_look_ups = False

    def _look_up(self) -> None:
        """Does the look-ups that wait."""
        start = len(self.lines)
        for i in lut_permute.flush(self):
            self.mark(start, i)
            late: Lines = []
            self.late[i] = late
            self.lines.append(late)

    def _leave_out(self, i: Instruction) -> None:
        """Defines the result, if there is one, of what happens in no lane."""
        if i.type is None or i.type.kind is Kind.VOID:
            return
        types = leaf_types(i.type)
        if self.is_varying(i):
            self.define_leaves(i, ["zeroinitializer"] * len(types))
        else:
            self.define(i, constant_text(Undef(i.type)))

    def lower(self, i: Instruction) -> None:
        """Lowers one instruction. CodegenError if it has no lowering."""
        if self.shapes.part_of:
            self.select_part(self.shapes.part_of.get(i, 0))
        if self.inside is not None and self.inside.define(self, i):
            return
        op = i.op
        if op is Op.FunctionCall and i.operands[0] in self.plan.vector_functions:
            call_vector_function(self, i)
            return
        if op is Op.FunctionCall and may_be_for_lanes(self, i):
            call_for_lanes(self, i)
            return
        has_result = i.type is not None and i.type.kind is not Kind.VOID
        wide = WIDE_EXTENDED.get(i.operands[1]) if op is Op.ExtInst else WIDE.get(op)
        if wide is not None and (not has_result or self.is_varying(i) or i.mask is not None):
            wide(self, i)
            return
        lowering = EXTENDED.get(i.operands[1]) if op is Op.ExtInst else LOWERINGS.get(op)
        if lowering is None:
            raise CodegenError(f"{instruction_name(i)} is not supported")
        varying = has_result and self.is_varying(i)
        if (
            lowering in COMPONENTWISE
            or (not varying and has_result and i.mask is None)
            or op in _ONCE_FOR_ALL
        ):
            lowering(self, i)
            return
        if not has_result and op not in LANE_EFFECTS and op is not Op.ExtInst:
            lowering(self, i)
            return
        self.lane_by_lane(i, lowering)

    def lane_by_lane(self, i: Instruction, lowering: Lowering) -> None:
        """Lowers an instruction once per lane, where it has a mask only in lanes of the mask."""
        has_result = i.type is not None and i.type.kind is not Kind.VOID
        types = [self.form(ir_type(t)) for t in leaf_types(i.type)] if has_result else []
        scalars = [ir_type(t) for t in leaf_types(i.type)] if has_result else []
        mask = self.mask_of(i)
        if may_be_in_loop(i):
            lines = lines_of(i, self.width, mask is not None)
            if self._has_many_calls() if is_call(i) else not is_written_out(self, lines):
                self._define_lanes(i, loop_over_lanes(self, i, lowering), mask)
                return
            self.written_out += lines
        self.note(LANES, masked=mask is not None)
        leaves = ["zeroinitializer"] * len(types)
        for lane in range(self.width):
            before = list(leaves)
            if mask is not None:
                active = self.emit(f"extractelement {self.form('i1')} {mask}, i32 {lane}")
                skipped_from, body, after = self.label, self.new_label("lane"), self.new_label("next")
                self.emit_void(f"br i1 {active}, label %{body}, label %{after}")
                self.begin_block(body)
            self.lane = lane
            lowering(self, i)
            self.lane = None
            if has_result:
                single = self.operands.pop(i)
                if isinstance(single, Components):
                    single = self.build_vector(i.type, single)
                leaves = [
                    self.emit(f"insertelement {t} {old}, {scalar} {self.element(element)}, i32 {lane}")
                    for t, scalar, old, element in zip(
                        types, scalars, leaves, self.explode(i.type, single), strict=True
                    )
                ]
            else:
                self.operands.pop(i, None)
            if mask is not None:
                done = self.label
                self.emit_void(f"br label %{after}")
                self.begin_block(after)
                leaves = [
                    self.emit(f"phi {t} [ {new}, %{done} ], [ {old}, %{skipped_from} ]")
                    for t, new, old in zip(types, leaves, before, strict=True)
                ]
        self._define_lanes(i, leaves, mask)

    def _has_many_calls(self) -> bool:
        if self.function not in self._many_calls:
            self._many_calls[self.function] = has_many_calls(self.function, self.width)
        return self._many_calls[self.function]

    def _define_lanes(self, i: Instruction, leaves: list[str], mask: str | None) -> None:
        """Defines a result, if there is one, of which each lane was made by itself."""
        if not leaves:
            return
        self.leaves_of[i] = leaves
        if not self.is_varying(i):
            # It is the same in all lanes, from those that took part; lane 0's is not enough.
            found = zip(leaf_types(i.type), leaves, strict=True)
            self.operands[i] = self.assemble(
                i.type, iter([self.first_active(ir_type(t), leaf, mask) for t, leaf in found])
            )

    def first_active(self, t: str, leaf: str, mask: str | None) -> str:
        """The value in the first lane of a mask; in lane 0 if there is none."""
        if mask is None:
            return self.emit(f"extractelement {self.form(t)} {leaf}, i32 0")
        bits = self.emit(f"bitcast {self.form('i1')} {mask} to i{self.width}")
        index = self.emit(f"call i{self.width} @llvm.cttz.i{self.width}(i{self.width} {bits}, i1 false)")
        index = self.emit(f"and i{self.width} {index}, {self.width - 1}")
        return self.emit(f"extractelement {self.form(t)} {leaf}, i{self.width} {index}")

    # Phis.

    def phi(self, instruction: Instruction) -> None:
        """A phi for each leaf, or one of single values."""
        if not self.has_lanes or not self.is_varying(instruction):
            super().phi(instruction)
            return
        is_packed = instruction in self.packed
        names = [self.name("v") for _ in ((instruction,) if is_packed else leaf_types(instruction.type))]
        self.leaves_of[instruction] = names
        self._wide_phis.append((self.lines, len(self.lines), names, instruction, self.current))
        self.lines += [""] * len(names)
        beside: Lines = []
        self.beside_phis[instruction] = beside
        self.lines.append(beside)

    def finish_phis(self) -> None:
        """Fills in the phis."""
        self.contiguity.finish()
        super().finish_phis()
        for lines, position, names, instruction, block in self._wide_phis:
            types = [self.form(ir_type(t)) for t in leaf_types(instruction.type)]
            late = self._late_leaves
            if instruction in self.packed:
                types, late = [packed_vectors.packed_type(self, instruction.type)], self._late_packed
            edges = [
                (late(value), self.exits[before]) for value, before in self.phi_edges(instruction, block)
            ]
            for n, (name, t) in enumerate(zip(names, types, strict=True)):
                incoming = ", ".join(f"[ {leaves[n]}, %{label} ]" for leaves, label in edges)
                lines[position + n] = f"  {name} = phi {t} {incoming}"
        self._wide_phis.clear()

    def _late_packed(self, value: Value) -> list[str]:
        return [packed_vectors.operand_of(self, value, value.type.count)]

    def _late_leaves(self, value: Value) -> list[str]:
        outer, self.lines = self.lines, self.prologue
        leaves = self.leaves(value)
        self.lines = outer
        return leaves

    def phi_operand(self, value: Value, block: Block) -> str:
        """The operand of a single phi; a varying value among them can only be what no lane uses,
        else CodegenError.

        A place that is there for addresses that no lane uses: masked accesses to others, though no lane takes
        part, cost hundreds of cycles each.
        """
        if self.is_varying(value):
            raise CodegenError("a uniform phi of a varying value")
        if isinstance(value, Undef) and value.type.kind is Kind.POINTER and self.has_lanes:
            return self.harmless_memory("dump")
        return super().phi_operand(value, block)

    def forget(self, function: Function) -> None:
        """Makes it possible to emit a function again."""
        for block in function.blocks:
            for i in block.instructions:
                self.operands.pop(i, None)
                self.builtin_addresses.pop(i, None)
                self.leaves_of.pop(i, None)
            self.exits.pop(block, None)
        self.late, self._divisors, self.tiled, self.apart = {}, {}, {}, {}
        self.contiguity = Contiguity(self)


# Instructions without a result that happen in each lane.
LANE_EFFECTS = frozenset((
    Op.AtomicStore, Op.AtomicFlagClear, Op.CopyMemory, Op.CopyMemorySized, Op.FunctionCall, Op.AsmCallINTEL,
))  # fmt: skip

from ..access import stores  # noqa: E402, F401  they register their lowerings
from ..access.loads import ask_packed  # noqa: E402
from ..access.ways import may_wait  # noqa: E402
from ..atomic import lane_combining  # noqa: E402, F401  they register their lowerings
from . import slots, subgroups, values, vector_data  # noqa: E402, F401  they register their lowerings

__all__ = ["WideEmitter", "leaf_types"]
