"""Operands of kernels at W work-items per vector: which of them are single, what their lanes are, masks."""

from __future__ import annotations

from ...passes.ir.instructions import ADDRESS
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Constant, Instruction, Kind, Undef
from ..access.packed_vectors import components_of
from ..expand.float_division import reciprocal
from ..llvm.emitter import Components, instruction_name
from ..llvm.errors import CodegenError
from ..llvm.types import constant_text, ir_type, leaf_types


class WideOperands:
    """The part of WideEmitter (emitter.py) that knows of values, and of nothing that is done with them."""

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
        """All lanes of an integer, 1 in place of 0, and of its reciprocal (expand/float_division.py)."""
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
        if self.lane_constants.of(i) is not None:
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

    def leaves(self, value) -> list[str]:
        """The `<W x T>` operands of a value; made of a single one where that is defined."""
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
        if self.shapes is None or operand[0] != "%" or operand in self.no_poison:
            return operand
        result = self.emit(f"freeze {f(element)} {operand}")
        self.no_poison.add(result)
        return result

    def note_frozen(self, result: str, *operands: str) -> None:
        """See Emitter. LLVM finds it out, too, but in a chain of masks in more than proportional time."""
        if self.no_poison.issuperset(operands):
            self.no_poison.add(result)

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
