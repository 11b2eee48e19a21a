"""The rules of the shape analysis: an instruction and its operands' strides to its stride (see shape.py)."""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.enums import BuiltIn, GroupOperation, Op, Scope, StorageClass
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Undef, Value, Variable
from ..ir.dominance import Loop
from ..ir.instructions import ADDRESS, EXTINST_WITH_EFFECT
from ..ir.layout import size_of, step_into
from ..ir.ops import PassBuiltIn, PassOp
from ..ir.plan import KeptCalls, Slot
from ..ir.shapes import UNIFORM, VARYING, ScalarStride, Stride
from .shape_integers import IntegerRules
from .shape_lattice import (
    LARGEST_LANE,
    LOCAL_INPUTS,
    SMALL_ID,
    SMALL_INPUTS,
    SMALL_LOCAL_ID,
    UNKNOWN,
    Found,
    Range,
    Strides,
    Unknown,
)
from .steady_loads import is_volatile_local_load, steady_loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ValueRules(IntegerRules):
    """Methods are rules; the analysis that inherits them holds what was found so far."""

    id_strides: Strides  # of built-in variables; the others are uniform
    of_lanes: bool  # not of parts, nor of all work-items of a group
    small_ids: bool  # as in PlanOptions
    aligned: frozenset[tuple[BuiltIn, int]]  # see aligned_ids()
    width: int  # lanes
    calls: KeptCalls | None  # see PlanOptions
    left_loops: dict[Block, list[Loop]]  # exit block: the divergent loops that end there
    function: Function
    steady: set[Instruction] | None  # see steady_loads(); None if nobody has asked

    def phi(self, instruction: Instruction) -> Found:
        """OpPhi: what all values have in common; varying where lanes come by different ways."""
        block = instruction.block
        values = {v for v in instruction.operands[::2] if not isinstance(v, Undef) and v is not instruction}
        if any(v in self.private for v in values):
            self.private.add(instruction)
            if not all(v in self.private for v in values):
                return VARYING
        if len(values) == 1:
            (value,) = values
            if not self.leaves_divergent_loop(value, block):
                if isinstance(value, Instruction):
                    known = self.ranges.get(value)
                    if known is not None:
                        self.ranges[instruction] = known
                return self.stride_of(value)
            return VARYING
        if block in self.info.divergent_joins or block in self.left_loops:
            return VARYING
        result: Found = UNKNOWN
        for value in values:
            stride = self.stride_of(value)
            if stride is UNKNOWN:
                continue
            if result is not UNKNOWN and stride != result:
                if type(stride) is tuple and type(result) is tuple:
                    result = tuple(a if a == b else VARYING for a, b in zip(stride, result, strict=True))
                    continue
                return VARYING
            result = stride
        return UNIFORM if not values else result

    def leaves_divergent_loop(self, value: Value, block: Block) -> bool:
        """True if the value comes from inside of a divergent loop that ends at the block."""
        if not isinstance(value, Instruction):
            return False
        return any(value.block in loop.blocks for loop in self.left_loops.get(block, ()))

    def same(self, instruction: Instruction) -> Found:
        """Casts that change no bits of an integer or pointer."""
        a = instruction.operands[0]
        if a in self.private:
            if instruction.type.kind is not Kind.POINTER or instruction.type.storage is StorageClass.Generic:
                if instruction.type.kind is Kind.POINTER:
                    self.private.add(instruction)
                return VARYING
            self.private.add(instruction)
        kinds = (Kind.INT, Kind.POINTER)
        if instruction.type.kind in kinds and a.type.kind in kinds:
            if a in self.ranges and instruction.type is a.type:
                self.ranges[instruction] = self.ranges[a]
            if instruction.type.kind is Kind.INT and a.type.kind is Kind.INT:
                return self.stride_of(a)
            narrow = [t.width for t in (instruction.type, a.type) if t.kind is Kind.INT]
            if not narrow or narrow[0] == 64:
                return self.stride_of(a)
        if instruction.type is a.type:
            return self.stride_of(a)
        return self.all_or_nothing(instruction.operands)

    def address(self, instruction: Instruction) -> Found:
        """Access chains: the strides of base and indices add up, in bytes."""
        base, *indices = instruction.operands
        if base in self.private:
            self.private.add(instruction)
        s = self.scalar_stride_of(base)
        if s is VARYING or s is UNKNOWN:
            return s
        type_ = base.type.element
        if type_ is None:
            return self.all_or_nothing(instruction.operands)
        if instruction.op is Op.PtrAccessChain or instruction.op is Op.InBoundsPtrAccessChain:
            step = self.index_stride(indices[0], size_of(type_))
            if step is VARYING or step is UNKNOWN:
                return step
            s += step
            indices = indices[1:]
        for index in indices:
            if type_.kind is Kind.STRUCT:
                type_ = type_.members[index.value or 0]
                continue
            type_, scale = step_into(type_, 1)
            step = self.index_stride(index, scale)
            if step is VARYING or step is UNKNOWN:
                return step
            s += step
        return s

    def index_stride(self, index: Value, scale: int) -> ScalarStride | Unknown:
        """What an index adds to the stride of an address, in bytes."""
        s = self.scalar_stride_of(index)
        if s is VARYING or s is UNKNOWN or s == 0:
            return s
        if index.type.width < 64:
            if not self.range_of(index).exact:
                return VARYING
            self.rely_on(self.range_of(index))
        return s * scale

    def select(self, instruction: Instruction) -> Found:
        """OpSelect: with a uniform condition what both values have in common."""
        condition, a, b = instruction.operands
        c, s, t = (self.stride_of(o) for o in instruction.operands)
        if a in self.private or b in self.private:
            self.private.add(instruction)
            if not (a in self.private and b in self.private):
                return VARYING
        if a is b:
            return s
        if c is not UNKNOWN and c != UNIFORM:
            return VARYING
        if s is VARYING or t is VARYING:
            return VARYING
        if s is UNKNOWN or t is UNKNOWN:
            # As phis: of what goes round a loop and begins undefined, only the other value is ever known.
            return t if s is UNKNOWN else s
        if s == t and s == 0 and instruction.type.kind is Kind.INT:
            x, y = self.range_of(a), self.range_of(b)
            zeros, assumed = min(x.zeros, y.zeros), x.assumed or y.assumed
            self.ranges[instruction] = Range(min(x.low, y.low), max(x.high, y.high), zeros, True, assumed)
        return s if s == t else VARYING

    def compare(self, instruction: Instruction) -> Found:
        """Equal strides compare alike in all lanes where only the difference matters."""
        a, b = instruction.operands
        s = self.stride_of(a)
        if (
            s == self.stride_of(b)
            and type(s) is int
            and s
            and a not in self.private
            and b not in self.private
        ):
            return UNIFORM
        return self.all_or_nothing(instruction.operands)

    def load(self, instruction: Instruction) -> Found:
        """OpLoad: built-in inputs have known strides; equal addresses hold equal values."""
        pointer = instruction.operands[0]
        access = instruction.memory
        source: Value = pointer
        component: int | None = None
        if isinstance(pointer, Instruction) and pointer.op in ADDRESS and len(pointer.operands) == 2:
            index = pointer.operands[1]
            if isinstance(index, Constant):
                source, component = pointer.operands[0], index.value or 0
        if isinstance(source, Variable) and source.type.storage is StorageClass.Input:
            return self.input(instruction, source.builtin, component)  # nobody writes it, volatile or not
        if pointer in self.private:
            return VARYING
        if access is not None and access.volatile and not self.is_steady(instruction):
            return VARYING
        return self.all_or_nothing((pointer,))

    def is_steady(self, load: Instruction) -> bool:
        """Whether all work-items of a group that make a volatile load read the same at one address."""
        if not is_volatile_local_load(load):
            return False
        if self.steady is None:
            self.steady = steady_loads(self.function)
        return load in self.steady

    def input(self, instruction: Instruction, builtin: BuiltIn | None, component: int | None) -> Found:
        """A load of a built-in variable, or of one component of it."""
        stride = UNIFORM if builtin is None else self.id_strides.get(builtin, UNIFORM)
        if component is not None and type(stride) is tuple:
            stride = stride[component]
        if instruction.type.kind is Kind.INT:
            self.small(instruction, builtin, component or 0)
        return stride

    def small(self, instruction: Instruction, builtin: BuiltIn | None, component: int) -> None:
        """Bounds an id. The stride of an id never wraps below 2²⁹."""
        if builtin in (BuiltIn.SubgroupLocalInvocationId, PassBuiltIn.Lane):
            self.ranges[instruction] = Range(0, LARGEST_LANE)
        elif builtin in SMALL_INPUTS and self.small_ids:
            span = self.width if (builtin, component) in self.aligned else 0
            most = SMALL_LOCAL_ID if builtin in LOCAL_INPUTS else SMALL_ID
            self.ranges[instruction] = Range(0, most, assumed=True, span=span)

    def extract(self, instruction: Instruction) -> Found:
        """OpCompositeExtract."""
        value, *indices = instruction.operands
        s = self.stride_of(value)
        if type(s) is tuple and len(indices) == 1:
            s = s[indices[0]]
        if instruction.type.kind is Kind.INT and isinstance(value, Instruction) and value.op is Op.Load:
            source = value.operands[0]
            if isinstance(source, Variable) and source.builtin is not None:
                self.small(instruction, source.builtin, indices[0])
        return s

    def construct(self, instruction: Instruction) -> Found:
        """OpCompositeConstruct: a vector of scalars has their strides."""
        if instruction.type.kind is not Kind.VECTOR or len(instruction.operands) != instruction.type.count:
            return self.all_or_nothing(instruction.operands)
        strides = []
        for operand in instruction.operands:
            stride = self.scalar_stride_of(operand)
            if stride is UNKNOWN:
                return UNKNOWN
            strides.append(stride)
        return tuple(strides)

    def slot_load(self, instruction: Instruction) -> Found:
        """SlotLoad: as the slot was noted when it was stored."""
        slot: Slot = instruction.operands[0]
        return UNIFORM if slot.uniform else slot.stride if self.of_lanes else slot.part_stride

    def collective(self, instruction: Instruction) -> Found:
        """Reductions and broadcasts of work-groups are uniform, scans vary."""
        scope, operation = instruction.operands[:2]
        if not isinstance(scope, Constant) or scope.value != Scope.Workgroup:
            return VARYING
        scans = (GroupOperation.InclusiveScan, GroupOperation.ExclusiveScan)
        return VARYING if operation in scans and instruction.op is not Op.GroupBroadcast else UNIFORM

    def of_lanes_together(self, instruction: Instruction) -> Found:
        """The same in all lanes of a part, and in all parts if the operands are."""
        return UNIFORM if self.of_lanes else self.all_or_nothing(instruction.operands)

    def variable(self, instruction: Instruction) -> Found:
        """OpVariable, PrivatePointer: the same place in each lane's own memory."""
        self.private.add(instruction)
        return UNIFORM

    def ext_inst(self, instruction: Instruction) -> Found:
        """OpExtInst."""
        if instruction.operands[1] in EXTINST_WITH_EFFECT:
            return VARYING
        return self.all_or_nothing(instruction.operands)

    def call(self, instruction: Instruction) -> Found:
        """A function that stays a call; or one of the builtin library, which is uniform if it promises to
        depend on its arguments alone."""
        if self.calls is not None and self.calls.keeps(instruction.operands[0]):
            shapes: list[tuple[Stride, bool]] = []
            for argument in instruction.operands[1:]:
                stride = self.stride_of(argument)
                if stride is UNKNOWN:
                    return UNKNOWN
                shapes.append((stride, argument in self.private))
            return self.calls.result_of(instruction.operands[0], tuple(shapes))
        if instruction.operands[0].control & 0xC and instruction.type.kind is not Kind.POINTER:
            return self.all_or_nothing(instruction.operands[1:])
        return VARYING

    def parameter(self, instruction: Instruction) -> Found:
        """PassOp.Parameter: as calls have it."""
        assert self.calls is not None
        stride, is_private = self.calls.parameters[instruction]
        if is_private:
            self.private.add(instruction)
        return stride


# Work-group collectives, which give every work-item the same unless they scan.
_COLLECTIVES = [op for op in Op if 263 <= op <= 271 or 6401 <= op <= 6408]

RULES: dict[Op, Callable[[Any, Instruction], Found]] = {
    Op.Phi: ValueRules.phi,
    Op.IAdd: ValueRules.add,
    Op.ISub: ValueRules.subtract,
    Op.IMul: ValueRules.multiply,
    Op.SNegate: ValueRules.negate,
    Op.ShiftLeftLogical: ValueRules.shift_left,
    Op.ShiftRightArithmetic: ValueRules.shift_right_arithmetic,
    Op.ShiftRightLogical: ValueRules.shift_right_logical,
    Op.BitwiseOr: ValueRules.bitwise_or,
    Op.BitwiseXor: ValueRules.complement,
    Op.Not: ValueRules.complement,
    Op.BitwiseAnd: ValueRules.bitwise_and,
    Op.UDiv: ValueRules.divide,
    Op.SDiv: ValueRules.divide,
    Op.UMod: ValueRules.remainder,
    Op.SMod: ValueRules.remainder,
    Op.SRem: ValueRules.remainder,
    Op.UConvert: ValueRules.convert,
    Op.SConvert: ValueRules.convert,
    Op.Bitcast: ValueRules.same,
    Op.CopyObject: ValueRules.same,
    Op.ConvertPtrToU: ValueRules.same,
    Op.ConvertUToPtr: ValueRules.same,
    Op.PtrCastToGeneric: ValueRules.same,
    Op.GenericCastToPtr: ValueRules.same,
    Op.AccessChain: ValueRules.address,
    Op.InBoundsAccessChain: ValueRules.address,
    Op.PtrAccessChain: ValueRules.address,
    Op.InBoundsPtrAccessChain: ValueRules.address,
    Op.Select: ValueRules.select,
    Op.IEqual: ValueRules.compare,
    Op.INotEqual: ValueRules.compare,
    Op.PtrEqual: ValueRules.compare,
    Op.PtrNotEqual: ValueRules.compare,
    Op.Load: ValueRules.load,
    Op.CompositeExtract: ValueRules.extract,
    Op.CompositeConstruct: ValueRules.construct,
    Op.Variable: ValueRules.variable,
    Op.ExtInst: ValueRules.ext_inst,
    Op.FunctionCall: ValueRules.call,
    PassOp.Parameter: ValueRules.parameter,
    PassOp.SlotLoad: ValueRules.slot_load,
    PassOp.PrivatePointer: ValueRules.variable,
    PassOp.GroupItems: lambda self, instruction: UNIFORM,
    PassOp.AnyLane: lambda self, instruction: UNIFORM,
    PassOp.AnyLaneOfPart: ValueRules.of_lanes_together,
    PassOp.FirstItem: lambda self, instruction: UNIFORM,
    PassOp.Ballot: ValueRules.of_lanes_together,
    PassOp.ReadLane: ValueRules.of_lanes_together,
    PassOp.EntryMask: lambda self, instruction: VARYING,
}
RULES |= dict.fromkeys(_COLLECTIVES, ValueRules.collective)
RULES |= dict.fromkeys((Op.GroupAll, Op.GroupAny), ValueRules.collective)
RULES[Op.GroupAsyncCopy] = lambda self, instruction: UNIFORM
