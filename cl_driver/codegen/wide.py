"""Kernels at W work-items per vector.

Each value has a shape (passes/shape.py). A uniform value is single; so is an affine one, of which the value
of lane 0 is held, the others being that plus lane · stride. Both are lowered by the code for width 1. A
varying value is held as *leaves*: one `<W x T>` per scalar that its type consists of (an OpenCL vector has
one per component). Instructions with leaves are lowered, in this order of choice, by

- the wide lowering (wide_memory.py, wide_values.py, ...), if there is one;
- the component-wise builder of width 1, applied to the leaves;
- each lane by itself, with the code for width 1: what has effects only in lanes of its mask.

Lanes outside of a mask compute garbage, which must not be poison where it matters: LLVM's `and` of false and
poison is poison, a division by it undefined behaviour of all lanes. So masked loads give 0 there, and what
goes into masks and divisions is frozen.
"""

from __future__ import annotations

from ..passes.ir import ADDRESS
from ..passes.remarks import LANES, SHUFFLED
from ..spirv.enums import Op, StorageClass
from ..spirv.module import Constant, Instruction, Kind, Undef
from .debug import is_located
from .division import reciprocal
from .emitter import Components, instruction_name
from .errors import CodegenError
from .known_lanes import KnownLanes
from .lanes import form
from .records import find_records, load_record, store_record
from .registry import COMPONENTWISE, EXTENDED, LOWERINGS, WIDE, WIDE_EXTENDED
from .regular import Regularity
from .streams import flush
from .types import constant_text, ir_type, leaf_types

# Effects that a group of lanes has once, not once per lane.
_ONCE_FOR_ALL = frozenset((
    Op.MemoryBarrier, Op.ControlBarrier, Op.Branch, Op.BranchConditional, Op.Switch, Op.Unreachable,
    Op.AssumeTrueKHR, Op.Nop, Op.Variable,
))  # fmt: skip


class WideEmitter:
    """What emitters of code at a width above 1 add to those of width 1.

    shapes: ShapeInfo of the function at hand, None where there are no lanes. leaves_of: leaves of varying
    values and of others where needed. private_stride: bytes between the private memory of two lanes.
    """

    private_stride = 0

    def __init__(self, width: int, *arguments):
        self.width = width
        self.form = form(width)
        self.leaves_of: dict = {}
        self.shapes = None
        self.lane: int | None = None  # lane that is lowered by itself
        self._late: dict = {}  # value: where what is made of it can be put
        self._beside_phis: dict = {}  # varying phi: where other phis of its block can be put
        self._harmless: dict = {}
        self.tables: dict = {}  # tables.py, streams.py: what is in the prologue
        self.streams = self.totals = self.counts = None  # streams.py, totals.py, own_counts.py
        self._divisors: dict = {}  # (uniform value, whether signed): operands for division.py
        self._used: set | None = None  # operands of the region's instructions
        self.function = None  # that of the region
        self.counted_loops = None  # row_tiles.py
        self.regularity = Regularity(self)
        self.known: KnownLanes | None = None  # where groups are held whole: numbers in lanes
        self._deferred: dict = {}  # instruction: where it is lowered if its result is asked for
        self.certain: dict = {}  # array: (block, first, last element) that are accessed there for certain
        self.tree = None  # dominators of the region, with `known`
        super().__init__(*arguments)

    # Shapes.

    def is_varying(self, value) -> bool:
        """True for values held as leaves."""
        if not isinstance(value, Instruction) or self.shapes is None:
            return False
        stride = self.shapes.strides.get(value, 0)
        return stride is None or (type(stride) is tuple and None in stride)

    def stride(self, value) -> int:
        """From one lane to the next, of a scalar that is not varying; in bytes for pointers."""
        if not isinstance(value, Instruction) or self.shapes is None:
            return 0
        stride = self.shapes.strides.get(value, 0)
        if value in self.shapes.private and value.type.kind is Kind.POINTER:
            stride += self.private_stride
        return stride

    def stride_is_mixed(self, value) -> bool:
        """True for single values that are not the same in all lanes."""
        if not isinstance(value, Instruction):
            return False
        return self.shapes.strides.get(value, 0) != 0 or value in self.shapes.private

    def harmless_memory(self, name: str) -> str:
        """128 bytes of the stack for lanes outside of a mask: "spare" holds zeros, "dump" is written to,
        "counter" is written to and read."""
        found = self._harmless.get(name)
        if found is None:
            found = self._harmless[name] = self.alloca("[128 x i8]", 64)
            if name != "dump":
                self.prologue.append(f"  store [128 x i8] zeroinitializer, ptr {found}, align 64")
        return found

    def is_used(self, value) -> bool:
        """True if any instruction of the region has the value for an operand or a mask."""
        if self._used is None:
            instructions = [i for block in self.function.blocks for i in block.instructions]
            self._used = {o for i in instructions for o in (*i.operands, i.mask)}
        return value in self._used

    def is_same_in_lanes(self, value) -> bool:
        """True for scalars that are known to be the same in all lanes."""
        if self.shapes is None or value.type.kind is Kind.VECTOR:
            return False
        return not self.is_varying(value) and not self.stride_is_mixed(value)

    def uniform_divisor(self, value, signed: bool) -> tuple[str, str]:
        """All lanes of an integer, 1 in place of 0, and of its reciprocal (division.py)."""
        key = value, signed
        if key not in self._divisors:
            single, t = super().operand(value), ir_type(value.type)
            outer, self.lines = self.lines, self._late.get(value, self.prologue)
            single = self.emit(f"freeze {t} {single}")
            is_zero = self.emit(f"icmp eq {t} {single}, 0")
            single = self.emit(f"select i1 {is_zero}, {t} 1, {t} {single}")
            factor = reciprocal(self, t, single, signed)
            self._divisors[key] = self.splat(single, t, self.form), self.splat(factor, "double", self.form)
            self.lines = outer
        return self._divisors[key]

    # Operands.

    def operand(self, value) -> str:
        """The value in lane 0, or in the lane that is lowered by itself."""
        if self.shapes is None:
            return super().operand(value)
        if self.is_varying(value):
            parts = [
                self.emit(f"extractelement {self.form(ir_type(t))} {leaf}, i32 {self.lane or 0}")
                for t, leaf in zip(leaf_types(value.type), self.leaves(value), strict=True)
            ]
            return self.assemble(value.type, iter(parts))
        single = super().operand(value)
        if self.lane and isinstance(value, Instruction):
            return self._in_lane(value, single)
        return single

    def components(self, value) -> list[str]:
        """The components in lane 0, or in the lane that is lowered by itself."""
        if self.shapes is None or not (self.lane or self.is_varying(value)):
            return super().components(value)
        operand = self.operand(value)
        if value.type.kind is not Kind.VECTOR:
            return [operand]
        return self.explode(value.type, operand)

    def _in_lane(self, value, single: str) -> str:
        """A uniform or affine value in self.lane, from that in lane 0."""
        stride = self.shapes.strides.get(value, 0)
        if type(stride) is tuple:
            parts = self.explode(value.type, single)
            t = ir_type(value.type.element)
            moved = [
                self.emit(f"add {t} {part}, {s * self.lane}") if s else part
                for part, s in zip(parts, stride, strict=True)
            ]
            return self.assemble(value.type, iter(moved))
        stride = self.stride(value)
        if not stride:
            return single
        if value.type.kind is Kind.POINTER:
            return self.emit(f"getelementptr i8, ptr {single}, i64 {stride * self.lane}")
        return self.emit(f"add {ir_type(value.type)} {single}, {stride * self.lane}")

    def assemble(self, type_, parts) -> str:
        """A single value of a type from an iterator over its leaves in order."""
        if type_.kind is Kind.VECTOR:
            return self.build_vector(type_, [next(parts) for _ in range(type_.count)])
        if type_.kind in (Kind.ARRAY, Kind.STRUCT):
            members = type_.members if type_.kind is Kind.STRUCT else [type_.element] * type_.count
            result = "poison"
            for k, member in enumerate(members):
                part = self.assemble(member, parts)
                result = self.emit(f"insertvalue {ir_type(type_)} {result}, {ir_type(member)} {part}, {k}")
            return result
        return next(parts)

    def explode(self, type_, operand: str) -> list[str]:
        """The leaves, scalars, of a single value."""
        text = ir_type(type_)
        if type_.kind is Kind.VECTOR:
            return [self.emit(f"extractelement {text} {operand}, i32 {k}") for k in range(type_.count)]
        if type_.kind in (Kind.ARRAY, Kind.STRUCT):
            members = type_.members if type_.kind is Kind.STRUCT else [type_.element] * type_.count
            return [
                leaf
                for k, member in enumerate(members)
                for leaf in self.explode(member, self.emit(f"extractvalue {text} {operand}, {k}"))
            ]
        return [operand]

    # Where groups are held whole, numbers that are known and addresses in local memory are seldom used.

    def _is_deferred(self, i) -> bool:
        """Whether an instruction is lowered when its result is asked for, if ever."""
        if self.known.of(i) is not None:
            return True
        is_address = i.op in ADDRESS or i.op in (Op.Bitcast, Op.CopyObject)
        if not is_address or i.type.kind is not Kind.POINTER or i.type.storage is not StorageClass.Workgroup:
            return False
        return self.debug is None and self.remarks is None

    def _lower_deferred(self, i) -> None:
        """Lowers an address where it stands."""
        part, outer, self.lines = self._part, self.lines, self._deferred.pop(i)
        self.lower(i)
        self.select_part(part)
        self.lines = outer

    def materialise(self, value) -> str:
        """The operand of a value that is not defined yet."""
        if self.known is not None and isinstance(value, Instruction):
            text = self.known.first(value)
            if text is not None:
                self.operands[value] = text
                return text
            if value in self._deferred:
                self._lower_deferred(value)
                return self.operand(value)
        return super().materialise(value)

    # Leaves.

    def leaves(self, value) -> list[str]:
        """The `<W x T>` operands of a value; made of a single one where that is defined."""
        found = self.leaves_of.get(value)
        if found is not None:
            return found
        if isinstance(value, Undef):
            found = ["zeroinitializer"] * len(leaf_types(value.type))
        elif isinstance(value, Constant):
            found = self._constant_leaves(value)
        elif self.known is not None and (text := self.known.text(value)) is not None:
            found = [text]
        elif value in self._deferred:
            self._lower_deferred(value)
            return self.leaves(value)
        elif self.is_varying(value):
            raise CodegenError(f"{instruction_name(value)} is used where it is not defined")
        else:
            found = self._spread_leaves(value)
        self.leaves_of[value] = found
        return found

    def leaf(self, value) -> str:
        """The only leaf of a scalar."""
        return self.leaves(value)[0]

    def _constant_leaves(self, constant) -> list[str]:
        if constant.type.kind in (Kind.VECTOR, Kind.ARRAY, Kind.STRUCT):
            if constant.value is None:
                return ["zeroinitializer"] * len(leaf_types(constant.type))
            return [leaf for part in constant.value for leaf in self.leaves(part)]
        text = constant_text(constant, self.module.constant_address)
        return [self.form.splat(ir_type(constant.type), text)]

    def _spread_leaves(self, value) -> list[str]:
        outer = self.lines
        single = self.operands.get(value)
        if isinstance(single, Components):
            self.lines = self.head
            parts = list(single)
        else:
            single = super().operand(value)
            self.lines = self._late.get(value, self.prologue)
            parts = self.explode(value.type, single)
        strides = self.shapes.strides.get(value, 0)
        if type(strides) is not tuple:
            strides = [self.stride(value)] * len(parts)
        found = [
            self._lanes(ir_type(t), part, stride)
            for t, part, stride in zip(leaf_types(value.type), parts, strides, strict=True)
        ]
        self.lines = outer
        return found

    def _lanes(self, t: str, first: str, stride: int) -> str:
        """All lanes of a scalar from that of lane 0."""
        if t == "ptr" and stride:
            offsets = ", ".join(f"i64 {k * stride}" for k in range(self.width))
            return self.emit(f"getelementptr i8, ptr {first}, <{self.width} x i64> <{offsets}>")
        splat = self.splat(first, t, self.form)
        if not stride:
            return splat
        steps = ", ".join(f"{t} {k * stride}" for k in range(self.width))
        return self.emit(f"add {self.form(t)} {splat}, <{steps}>")

    def define_leaves(self, value, leaves: list[str]) -> None:
        """Binds a varying value."""
        self.leaves_of[value] = leaves

    def frozen(self, f, element: str, operand: str) -> str:
        """An operand that is no poison in any lane."""
        if self.shapes is None or operand[0] != "%":
            return operand
        return self.emit(f"freeze {f(element)} {operand}")

    # Masks.

    def mask_of(self, instruction) -> str | None:
        """The `<W x i1>` of the lanes in which an instruction takes effect; None: in all."""
        if instruction.mask is not None:
            mask = self.leaf(instruction.mask)
            return None if mask == "splat (i1 true)" else mask
        return None

    def any_lane(self, mask: str) -> str:
        """i1: whether any lane of a mask is set."""
        bits = self.emit(f"bitcast {self.form('i1')} {mask} to i{self.width}")
        return self.emit(f"icmp ne i{self.width} {bits}, 0")

    # Instructions.

    def componentwise(self, instruction, operands, build) -> None:
        """The builder on single values, or on each leaf."""
        if self.shapes is None or self.lane is not None or not self.is_varying(instruction):
            super().componentwise(instruction, operands, build)
            return
        count = len(leaf_types(instruction.type))
        columns = [self.leaves(o) for o in operands]
        self.leaves_of[instruction] = [
            build(self, self.form, instruction, *[c[k if len(c) > 1 else 0] for c in columns])
            for k in range(count)
        ]

    def emit_instructions(self, instructions) -> None:
        """Lowers the instructions of a block by their shapes."""
        if self.shapes is None:
            super().emit_instructions(instructions)
            return
        after_phis = None
        records, done = find_records(self, instructions), set()
        if self.known is not None:
            self.known.begin_block(instructions)
        for i in instructions:
            if self.streams is not None and self.streams.pending and not self.shapes.part_of.get(i):
                flush(self)
            if i.op is Op.Phi:
                self.phi(i)
                continue
            if after_phis is None:
                after_phis = []
                self.lines.append(after_phis)
                for phi in instructions:
                    if phi.op is not Op.Phi:
                        break
                    self._late[phi] = after_phis
            start = len(self.lines)
            if self.remarks is not None:
                self.remarks.begin(i)
            record = records.get(i)
            if self.known is not None:
                if self.shapes.part_of:
                    self.select_part(self.shapes.part_of.get(i, 0))
                if i.mask is not None and self.known.is_never(i.mask):
                    self._leave_out(i)
                    continue
                if i.op is Op.Load and i.operands[0].type.storage is StorageClass.Workgroup:
                    single = self.known.single(i)
                    if single is not None:
                        self.define(i, single)
                        late = self._late[i] = []
                        self.lines.append(late)
                        continue
                self.known.before(i, record is None)
                if record is None and self._is_deferred(i):
                    late = self._late[i] = self._deferred[i] = []
                    self.lines.append(late)
                    continue
            if record is None or self.mask_of(i) is not None:
                self.lower(i)
            else:
                self.note(SHUFFLED, f"{record.stride} bytes from lane to lane")
                self.lower_record(i, record, done)
            if self.remarks is not None:
                self.remarks.end(self.is_varying(i), self.shapes.stride(i))
            if self.debug is not None and is_located(i):
                self.debug.attach(self.lines, start, i.line)
            if isinstance(self.operands.get(i), str) or i in self.leaves_of:
                late = self._late[i] = []
                self.lines.append(late)

    def _leave_out(self, i) -> None:
        """Defines the result, if there is one, of what happens in no lane."""
        if i.type is None or i.type.kind is Kind.VOID:
            return
        types = leaf_types(i.type)
        if self.is_varying(i):
            self.define_leaves(i, ["zeroinitializer"] * len(types))
        else:
            self.define(i, constant_text(Undef(i.type)))

    def lower_record(self, i, record, done: set) -> None:
        """Fields of structures are loaded with the first of them and stored with the last."""
        if i.op is Op.Load and record not in done:
            load_record(self, record)
            done.add(record)
        elif i.op is Op.Store and i is record.members[-1][0]:
            store_record(self, record)

    def select_part(self, part: int) -> None:
        """What follows is lowered for this part of the work-items."""

    def lower(self, i) -> None:
        """Lowers one instruction."""
        if self.shapes.part_of:
            self.select_part(self.shapes.part_of.get(i, 0))
        op = i.op
        has_result = i.type is not None and i.type.kind is not Kind.VOID
        wide = WIDE_EXTENDED.get(i.operands[1]) if op is Op.ExtInst else WIDE.get(op)
        if wide is not None and (not has_result or self.is_varying(i) or i.mask is not None):
            wide(self, i)
            return
        lowering = EXTENDED.get(i.operands[1]) if op is Op.ExtInst else LOWERINGS.get(op)
        if lowering is None:
            if op is Op.ExtInst and i.operands[0].startswith("NonSemantic."):
                return
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

    def lane_by_lane(self, i, lowering) -> None:
        """Lowers an instruction once per lane, where it has a mask only in lanes of the mask."""
        has_result = i.type is not None and i.type.kind is not Kind.VOID
        types = [self.form(ir_type(t)) for t in leaf_types(i.type)] if has_result else []
        scalars = [ir_type(t) for t in leaf_types(i.type)] if has_result else []
        mask = self.mask_of(i)
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
                    self.emit(f"insertelement {t} {old}, {scalar} {part}, i32 {lane}")
                    for t, scalar, old, part in zip(
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
        if not has_result:
            return
        if self.is_varying(i):
            self.leaves_of[i] = leaves
        else:
            # A result that is the same in all lanes, from those that took part; lane 0's is not enough.
            self.leaves_of[i] = leaves
            self.operands[i] = self.assemble(
                i.type,
                iter(self._first_active(t, leaf, mask) for t, leaf in zip(scalars, leaves, strict=True)),
            )

    def _first_active(self, t: str, leaf: str, mask: str | None) -> str:
        if mask is None:
            return self.emit(f"extractelement {self.form(t)} {leaf}, i32 0")
        bits = self.emit(f"bitcast {self.form('i1')} {mask} to i{self.width}")
        index = self.emit(f"call i{self.width} @llvm.cttz.i{self.width}(i{self.width} {bits}, i1 false)")
        index = self.emit(f"and i{self.width} {index}, {self.width - 1}")
        return self.emit(f"extractelement {self.form(t)} {leaf}, i{self.width} {index}")

    # Phis.

    def phi(self, instruction) -> None:
        """A phi for each leaf, or one of single values."""
        if self.shapes is None or not self.is_varying(instruction):
            super().phi(instruction)
            return
        names = [self.name("v") for _ in leaf_types(instruction.type)]
        self.leaves_of[instruction] = names
        self._phis.append((self.lines, len(self.lines), names, instruction, self.current))
        self.lines += [""] * len(names)
        beside = self._beside_phis[instruction] = []
        self.lines.append(beside)

    def finish_phis(self) -> None:
        """Fills in the phis."""
        narrow = [entry for entry in self._phis if isinstance(entry[2], str)]
        wide = [entry for entry in self._phis if not isinstance(entry[2], str)]
        self._phis = narrow
        super().finish_phis()
        for lines, position, names, instruction, block in wide:
            edges = [
                (self._late_leaves(value), self.exits[before])
                for value, before in self.phi_edges(instruction, block)
            ]
            for n, (name, t) in enumerate(zip(names, leaf_types(instruction.type), strict=True)):
                incoming = ", ".join(f"[ {leaves[n]}, %{label} ]" for leaves, label in edges)
                lines[position + n] = f"  {name} = phi {self.form(ir_type(t))} {incoming}"

    def _late_leaves(self, value) -> list[str]:
        outer, self.lines = self.lines, self.prologue
        leaves = self.leaves(value)
        self.lines = outer
        return leaves

    def phi_operand(self, value, block) -> str:
        """The operand of a single phi; a varying value among them can only be what no lane uses."""
        if self.is_varying(value):
            raise CodegenError("a uniform phi of a varying value")
        return super().phi_operand(value, block)

    def forget(self, function) -> None:
        """Makes it possible to emit a function again."""
        for block in function.blocks:
            for i in block.instructions:
                self.operands.pop(i, None)
                self.leaves_of.pop(i, None)
            self.exits.pop(block, None)
        self._late, self._divisors = {}, {}
        self.regularity = Regularity(self)


# Instructions without a result that happen in each lane.
LANE_EFFECTS = frozenset((
    Op.AtomicStore, Op.AtomicFlagClear, Op.CopyMemory, Op.CopyMemorySized, Op.FunctionCall,
))  # fmt: skip

from . import (  # noqa: E402, F401  they register their lowerings
    subgroups,
    wide_atomics,
    wide_memory,
    wide_values,
    wide_vector_memory,
)

__all__ = ["WideEmitter", "leaf_types"]
