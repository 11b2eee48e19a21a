"""Operands of kernels at W work-items per vector: which of them are single, what their lanes are, masks."""

from __future__ import annotations

from collections.abc import Iterator

from ...passes.ir.instructions import ADDRESS
from ...passes.ir.plan import KernelPlan
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Constant, Instruction, Kind, Type, Undef, Value
from ..access.packed_vectors import components_of
from ..atomic.emitter import AtomicEmitter
from ..expand.float_division import reciprocal
from ..layout.lanes import HARMLESS_BYTES
from ..llvm.emitter import Components, ModuleText, describe, instruction_name
from ..llvm.errors import CodegenError
from ..llvm.forms import Form
from ..llvm.types import Lines, constant_text, ir_type, is_register, leaf_types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class WideOperands(AtomicEmitter):
    """The part of WideEmitter (emitter.py) that knows of values, and of nothing that is done with them."""

    def __init__(self, module: ModuleText, plan: KernelPlan, width: int) -> None:
        self._harmless: dict[str, str] = {}
        self._no_poison: set[str] = set()  # operands of which that is known
        # (uniform value, whether signed): operands for expand/float_division.py.
        self._divisors: dict[tuple[Value, bool], tuple[str, str]] = {}
        self._used: set[Any] | None = None  # operands of the region's instructions
        self._deferred: dict[Instruction, Lines] = {}  # where each is lowered if its result is asked for
        super().__init__(module, plan, width)

    def lower(self, i: Instruction) -> None:
        """Lowers one instruction."""
        raise NotImplementedError

    # Shapes.

    def is_varying(self, value: Value) -> bool:
        """True for values held as leaves."""
        if not isinstance(value, Instruction) or not self.has_lanes:
            return False
        stride = self.shapes.strides.get(value, 0)
        return stride is None or (type(stride) is tuple and None in stride)

    def stride(self, value: Value) -> int:
        """From one lane to the next, of a scalar that is not varying; in bytes for pointers. CodegenError
        where that is not one number."""
        if not isinstance(value, Instruction) or not self.has_lanes:
            return 0
        stride = self.shapes.strides.get(value, 0)
        if type(stride) is not int:
            raise CodegenError(f"{instruction_name(value)} has no one stride")
        if value in self.shapes.private and value.type.kind is Kind.POINTER:
            stride += self.private_stride
        return stride

    def stride_is_mixed(self, value: Value) -> bool:
        """True for single values that are not the same in all lanes."""
        if not isinstance(value, Instruction):
            return False
        return self.shapes.strides.get(value, 0) != 0 or value in self.shapes.private

    def harmless_memory(self, name: str) -> str:
        """HARMLESS_BYTES of the stack for lanes outside of a mask: "spare" holds zeros, "dump" is written to,
        "counter" is written to and read."""
        found = self._harmless.get(name)
        if found is None:
            found = self._harmless[name] = self.alloca(f"[{HARMLESS_BYTES} x i8]", 64)
            if name != "dump":
                self.prologue.append(
                    f"  store [{HARMLESS_BYTES} x i8] zeroinitializer, ptr {found}, align 64"
                )
        return found

    def is_used(self, value: Value) -> bool:
        """True if any instruction of the region has the value for an operand or a mask."""
        if self._used is None:
            instructions = [i for block in self.function.blocks for i in block.instructions]
            self._used = {o for i in instructions for o in (*i.operands, i.mask)}
        return value in self._used

    def is_same_in_lanes(self, value: Value) -> bool:
        """True for scalars that are known to be the same in all lanes."""
        if not self.has_lanes or value.type.kind is Kind.VECTOR:
            return False
        return not self.is_varying(value) and not self.stride_is_mixed(value)

    def uniform_divisor(self, value: Value, signed: bool) -> tuple[str, str]:
        """All lanes of an integer, 1 in place of 0, and of its reciprocal (expand/float_division.py)."""
        key = value, signed
        if key not in self._divisors:
            single, t = super().operand(value), ir_type(value.type)
            outer, self.lines = self.lines, self.late.get(value, self.prologue)
            single = self.emit(f"freeze {t} {single}")
            is_zero = self.emit(f"icmp eq {t} {single}, 0")
            single = self.emit(f"select i1 {is_zero}, {t} 1, {t} {single}")
            factor = reciprocal(self, t, single, signed)
            self._divisors[key] = self.splat(single, t, self.form), self.splat(factor, "double", self.form)
            self.lines = outer
        return self._divisors[key]

    # Operands.

    def operand(self, value: Value) -> str:
        """The value in lane 0, or in the lane that is lowered by itself."""
        if not self.has_lanes:
            return super().operand(value)
        if self.is_varying(value):
            scalars = [
                self.emit(f"extractelement {self.form(ir_type(t))} {leaf}, i32 {self.lane or 0}")
                for t, leaf in zip(leaf_types(value.type), self.leaves(value), strict=True)
            ]
            return self.assemble(value.type, iter(scalars))
        single = super().operand(value)
        if self.lane and isinstance(value, Instruction):
            return self._in_lane(value, single)
        return single

    def components(self, value: Value) -> list[str]:
        """The components in lane 0, or in the lane that is lowered by itself."""
        if not self.has_lanes or not (self.lane or self.is_varying(value)):
            return super().components(value)
        operand = self.operand(value)
        if value.type.kind is not Kind.VECTOR:
            return [operand]
        return self.explode(value.type, operand)

    def _in_lane(self, value: Value, single: str) -> str:
        """A uniform or affine value in self.lane, from that in lane 0."""
        stride = self.shapes.strides.get(value, 0)
        if isinstance(stride, tuple):
            scalars = self.explode(value.type, single)
            t = ir_type(value.type.element)
            moved = [
                self.emit(f"add {t} {scalar}, {self._to_lane(s, t)}") if s else scalar
                for scalar, s in zip(scalars, stride, strict=True)
            ]
            return self.assemble(value.type, iter(moved))
        stride = self.stride(value)
        if not stride:
            return single
        if value.type.kind is Kind.POINTER:
            return self.emit(f"getelementptr i8, ptr {single}, i64 {self._to_lane(stride, 'i64')}")
        t = ir_type(value.type)
        return self.emit(f"add {t} {single}, {self._to_lane(stride, t)}")

    def _to_lane(self, stride: int, t: str) -> str:
        """How far self.lane is from lane 0."""
        if not isinstance(self.lane, str):
            return str(stride * (self.lane or 0))
        lane = self.to_width(f"i32 {self.lane}", t)
        return self.emit(f"mul {t} {lane}, {stride}")

    def assemble(self, type_: Type, scalars: Iterator[str]) -> str:
        """A single value of a type from an iterator over its leaves in order."""
        if type_.kind is Kind.VECTOR:
            return self.build_vector(type_, [next(scalars) for _ in range(type_.count)])
        if type_.kind in (Kind.ARRAY, Kind.STRUCT):
            members = type_.members if type_.kind is Kind.STRUCT else [type_.element] * type_.count
            result = "poison"
            for k, member in enumerate(members):
                scalar = self.assemble(member, scalars)
                result = self.emit(f"insertvalue {ir_type(type_)} {result}, {ir_type(member)} {scalar}, {k}")
            return result
        return next(scalars)

    def explode(self, type_: Type, operand: str) -> list[str]:
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

    # Where groups are in lockstep, numbers that are known and addresses in local memory are seldom used.

    def _is_deferred(self, i: Instruction) -> bool:
        """Whether an instruction is lowered when its result is asked for, if ever."""
        if self.lane_constants is not None and self.lane_constants.of(i) is not None:
            return True
        is_address = i.op in ADDRESS or i.op in (Op.Bitcast, Op.CopyObject)
        if not is_address or i.type.kind is not Kind.POINTER or i.type.storage is not StorageClass.Workgroup:
            return False
        return self.debug is None and self.remarks is None

    def _lower_deferred(self, i: Instruction) -> None:
        """Lowers an address where it stands."""
        part, outer, self.lines = self.part, self.lines, self._deferred.pop(i)
        self.lower(i)
        self.select_part(part)
        self.lines = outer

    def materialise(self, value: Value) -> str:
        """The operand of a value that is not defined yet."""
        if self.lane_constants is not None and isinstance(value, Instruction):
            text = self.lane_constants.first(value)
            if text is not None:
                self.operands[value] = text
                return text
            if value in self._deferred:
                self._lower_deferred(value)
                return self.operand(value)
        return super().materialise(value)

    # Leaves.

    def leaves(self, value: Value) -> list[str]:
        """The `<W x T>` operands of a value; made of a single one where that is defined. CodegenError
        where nothing is."""
        if value in self.packed:
            return components_of(self, value)
        found = self.leaves_of.get(value)
        if found is not None:
            return found
        if isinstance(value, Undef):
            found = ["zeroinitializer"] * len(leaf_types(value.type))
        elif isinstance(value, Constant):
            found = self._constant_leaves(value)
        elif self.lane_constants is not None and (text := self.lane_constants.text(value)) is not None:
            found = [text]
        elif isinstance(value, Instruction) and value in self._deferred:
            self._lower_deferred(value)
            return self.leaves(value)
        elif self.is_varying(value):
            raise CodegenError(f"{describe(value)} is used where it is not defined")
        else:
            found = self._spread_leaves(value)
        self.leaves_of[value] = found
        return found

    def leaf(self, value: Value) -> str:
        """The only leaf of a scalar."""
        return self.leaves(value)[0]

    def _constant_leaves(self, constant: Constant) -> list[str]:
        if constant.type.kind in (Kind.VECTOR, Kind.ARRAY, Kind.STRUCT):
            if constant.value is None:
                return ["zeroinitializer"] * len(leaf_types(constant.type))
            return [leaf for constituent in constant.value for leaf in self.leaves(constituent)]
        text = constant_text(constant, self.module.constant_address)
        return [self.form.splat(ir_type(constant.type), text)]

    def _spread_leaves(self, value: Value) -> list[str]:
        outer = self.lines
        single = self.operands.get(value)
        if isinstance(single, Components):
            self.lines = self.head
            scalars = list(single)
        else:
            single = super().operand(value)
            self.lines = self.late.get(value, self.prologue)
            scalars = self.explode(value.type, single)
        known = self.shapes.strides.get(value, 0)
        if isinstance(known, tuple):
            strides = [stride or 0 for stride in known]  # no component varies
        else:
            strides = [self.stride(value)] * len(scalars)
        found = [
            self.lanes_from(ir_type(t), scalar, stride)
            for t, scalar, stride in zip(leaf_types(value.type), scalars, strides, strict=True)
        ]
        self.lines = outer
        return found

    def lanes_from(self, t: str, first: str, stride: int) -> str:
        """All lanes of a scalar from that of lane 0."""
        if t == "ptr" and stride:
            offsets = ", ".join(f"i64 {k * stride}" for k in range(self.width))
            return self.emit(f"getelementptr i8, ptr {first}, <{self.width} x i64> <{offsets}>")
        splat = self.splat(first, t, self.form)
        if not stride:
            return splat
        steps = ", ".join(f"{t} {k * stride}" for k in range(self.width))
        return self.emit(f"add {self.form(t)} {splat}, <{steps}>")

    def frozen(self, f: Form, element: str, operand: str) -> str:
        """An operand that is no poison in any lane."""
        if not self.has_lanes or not is_register(operand) or operand in self._no_poison:
            return operand
        result = self.emit(f"freeze {f(element)} {operand}")
        self._no_poison.add(result)
        return result

    def note_frozen(self, result: str, *operands: str) -> None:
        """See FunctionEmitter. LLVM finds it out, too, but in chains of masks in more than linear time."""
        if self._no_poison.issuperset(operands):
            self._no_poison.add(result)

    # Masks.

    def mask_of(self, instruction: Instruction) -> str | None:
        """The `<W x i1>` of the lanes in which an instruction takes effect; None: in all."""
        if instruction.mask is not None:
            mask = self.leaf(instruction.mask)
            return None if mask == "splat (i1 true)" else mask
        return None

    def any_lane(self, mask: str) -> str:
        """i1: whether any lane of a mask is set. Of a mask that is a number it is one, too: a jump over what
        is always done would have LLVM move code behind it, loads in reverse order, before it sees that."""
        if not is_register(mask):
            return "true" if "i1 true" in mask else "false"
        bits = self.emit(f"bitcast {self.form('i1')} {mask} to i{self.width}")
        return self.emit(f"icmp ne i{self.width} {bits}, 0")
