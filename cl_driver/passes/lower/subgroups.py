"""Sub-groups: work-items with consecutive linear local ids, as many as the kernel's width, fewer in the last
of a group. Their instructions and built-in variables become arithmetic and the five operations of ir/ops.py
that look at other lanes; at width 1, where a work-item is a sub-group, plain values.

Work-items that are "active" are the lanes of the mask that vectorize/linearise.py gives to Active and Ballot.
"""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.enums import BuiltIn, GroupOperation, Op, OpenCLStd, Scope, StorageClass
from ...spirv.module import (
    Block,
    Constant,
    Function,
    Instruction,
    Kind,
    MemoryAccess,
    Operand,
    Type,
    Value,
    Variable,
)
from ...spirv.types import TypeTable
from ..ir.instructions import ADDRESS
from ..ir.layout import size_of
from ..ir.ops import PassOp
from ..ir.plan import PlanError
from ..ir.subgroup_operations import (
    BUILTINS,
    NON_UNIFORM,
    SHUFFLES_INTEL,
    is_subgroup_operation,
    scope_of,
    uses_subgroups,
)
from .collectives import combination, identity

_EXT = "OpenCL.std"
_ALL_OF_GROUP = (GroupOperation.Reduce, GroupOperation.InclusiveScan, GroupOperation.ExclusiveScan)
_MASKS = {
    BuiltIn.SubgroupEqMask: "eq", BuiltIn.SubgroupGeMask: "ge", BuiltIn.SubgroupGtMask: "gt",
    BuiltIn.SubgroupLeMask: "le", BuiltIn.SubgroupLtMask: "lt",
}  # fmt: skip


def lower_subgroups(function: Function, types: TypeTable, width: int) -> None:
    """Rewrites a function in place. PlanError for scopes that are no sub-group."""
    lowering = _Lowering(types, width)
    if uses_subgroups([function]):
        for block in function.blocks:
            lowering.lower(block)


class _Lowering:
    """Appends to `out` what replaces the instructions of one block."""

    def __init__(self, types: TypeTable, width: int) -> None:
        self.types = types
        self.width = width
        self.int = types.int(32)
        self.bits_type = types.int(64 if width > 32 else 32)  # holds a bit for each lane
        self.inputs: dict[BuiltIn, Variable] = {}
        self.addresses: dict[Instruction, Variable] = {}  # access chains into the variables of masks
        self.block: Block | None = None
        self.out: list[Instruction] = []

    def lower(self, block: Block) -> None:
        self.block, self.out = block, []
        for i in block.instructions:
            value = self.replacement(i)
            if value is None:
                self.out.append(i)
            elif value is not i:
                # The instruction itself stays as a copy, so that its users need no change.
                i.op, i.operands, i.memory = Op.CopyObject, [value], None
                self.out.append(i)
        block.instructions = self.out

    def replacement(self, i: Instruction) -> Value | None:
        """The value of an instruction; itself if it has none and goes; None if it stays."""
        op, operands = i.op, i.operands
        if op is Op.Load:
            return self.load(i)
        if op in SHUFFLES_INTEL:
            return self.intel_shuffle(op, *operands)
        if op is Op.SubgroupBlockReadINTEL:
            return self.block_read(i.type, *operands)
        if op is Op.SubgroupBlockWriteINTEL:
            self.block_write(*operands)
            return i
        if op in NON_UNIFORM and scope_of(i) != Scope.Subgroup:
            raise PlanError(f"Op{op.name} with another scope than Subgroup")
        if not is_subgroup_operation(i):
            return None
        rule = _RULES.get(op)
        if rule is not None:
            value: Value | None = rule(self, i.type, *operands[1:])
            return value
        operation, value, *cluster = operands[1:]
        return self.arithmetic(_WORK_GROUP_OP.get(op, op), operation, value, *cluster)

    # Small pieces

    def emit(self, op: Op, type_: Type | None, *operands: Operand) -> Instruction:
        instruction = Instruction(op, type_, list(operands), self.block)
        self.out.append(instruction)
        return instruction

    def number(self, value: int) -> Constant:
        return self.types.integer(32, value)

    def input(self, builtin: BuiltIn) -> Value:
        """The value of a built-in variable of 32 bits."""
        if builtin is BuiltIn.SubgroupMaxSize:
            return self.number(self.width)
        if self.width == 1 and builtin is BuiltIn.SubgroupSize:
            return self.number(1)
        if self.width == 1 and builtin is BuiltIn.SubgroupLocalInvocationId:
            return self.number(0)
        variable = self.inputs.get(builtin)
        if variable is None:
            pointer = self.types.pointer(StorageClass.Input, self.int)
            variable = self.inputs[builtin] = Variable(pointer, name=f"__spirv_BuiltIn{builtin.name}")
            variable.builtin = builtin
        return self.emit(Op.Load, self.int, variable)

    def lane(self) -> Value:
        return self.input(BuiltIn.SubgroupLocalInvocationId)

    def to_int(self, value: Value, type_: Type | None = None) -> Value:
        """An integer in another width, by default 32; extended with zeros."""
        type_ = type_ or self.int
        return value if value.type is type_ else self.emit(Op.UConvert, type_, value)

    def ballot(self, predicate: Value) -> Value:
        """A bit for every active lane where the predicate is true."""
        type_ = self.bits_type
        if self.width == 1:
            one, zero = self.types.constant(type_, 1), self.types.constant(type_, 0)
            return self.emit(Op.Select, type_, predicate, one, zero)
        return self.emit(PassOp.Ballot, type_, predicate)

    def active_bits(self) -> Value:
        return self.ballot(self.types.constant(self.types.bool(), True))

    def read(self, value: Value, lane: Value) -> Value:
        """The value of one lane, the same in all."""
        if lane.type.kind is not Kind.INT:
            raise PlanError("a sub-group's lane has a number with one component")
        return value if self.width == 1 else self.emit(PassOp.ReadLane, value.type, value, self.to_int(lane))

    def permute(self, value: Value, lane: Value) -> Value:
        """The value of the lane that each lane asks for."""
        return value if self.width == 1 else self.emit(PassOp.Permute, value.type, value, self.to_int(lane))

    def extended(self, number: OpenCLStd, value: Value) -> Instruction:
        return self.emit(Op.ExtInst, value.type, _EXT, number, value)

    # Built-in variables

    def load(self, i: Instruction) -> Value | None:
        pointer, index = i.operands[0], None
        if isinstance(pointer, Instruction) and pointer.op in ADDRESS:
            skipped = 2 if pointer.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain) else 1
            index = pointer.operands[skipped] if len(pointer.operands) > skipped else None
            pointer = pointer.operands[0]
        if type(pointer) is not Variable or pointer.builtin not in BUILTINS:
            return None
        if pointer.builtin in _MASKS:
            mask = self.mask(_MASKS[pointer.builtin])
            if index is None or i.type is mask.type:
                return mask
            if isinstance(index, Constant):
                return self.emit(Op.CompositeExtract, i.type, mask, index.value or 0)
            return self.emit(Op.VectorExtractDynamic, i.type, mask, index)
        return self.to_int(self.input(BuiltIn(pointer.builtin)), i.type)

    def mask(self, which: str) -> Value:
        """get_sub_group_..._mask: the bits of lanes below the maximum sub-group size."""
        types, type_ = self.types, self.bits_type
        lane = self.to_int(self.lane(), type_)
        one = types.constant(type_, 1)
        this = self.emit(Op.ShiftLeftLogical, type_, one, lane)
        below = self.emit(Op.ISub, type_, this, one)
        if which == "eq":
            return self.vector_of(this)
        if which in ("le", "gt"):
            below = self.emit(Op.BitwiseOr, type_, below, this)
        if which in ("ge", "gt"):
            every = types.constant(type_, (1 << self.width) - 1)
            below = self.emit(Op.BitwiseXor, type_, below, every)
        return self.vector_of(below)

    # Ballots

    def vector_of(self, bits: Value) -> Value:
        """Four words of bits from those of the lanes."""
        words = [self.to_int(bits)] + [self.number(0)] * 3
        if bits.type.width == 64:
            high = self.emit(Op.ShiftRightLogical, bits.type, bits, self.types.constant(bits.type, 32))
            words[1] = self.to_int(high)
        return self.emit(Op.CompositeConstruct, self.types.vector(self.int, 4), *words)

    def lane_bits(self, vector: Value) -> Value:
        """The bits of the lanes of a full sub-group, from four words."""
        type_ = self.bits_type
        bits = self.emit(Op.CompositeExtract, self.int, vector, 0)
        if type_.width == 64:
            high = self.to_int(self.emit(Op.CompositeExtract, self.int, vector, 1), type_)
            high = self.emit(Op.ShiftLeftLogical, type_, high, self.types.constant(type_, 32))
            bits = self.emit(Op.BitwiseOr, type_, self.to_int(bits, type_), high)
        return self.emit(Op.BitwiseAnd, type_, bits, self.types.constant(type_, (1 << self.width) - 1))

    def bit(self, vector: Value, index: Value) -> Value:
        """bool: one bit of four words."""
        index = self.to_int(index)
        word = self.emit(Op.ShiftRightLogical, self.int, index, self.number(5))
        word = self.emit(Op.BitwiseAnd, self.int, word, self.number(3))
        word = self.emit(Op.VectorExtractDynamic, self.int, vector, word)
        shift = self.emit(Op.BitwiseAnd, self.int, index, self.number(31))
        word = self.emit(Op.ShiftRightLogical, self.int, word, shift)
        word = self.emit(Op.BitwiseAnd, self.int, word, self.number(1))
        return self.emit(Op.INotEqual, self.types.bool(), word, self.number(0))

    def bit_count(self, result: Type, operation: GroupOperation, vector: Value) -> Value:
        bits, type_ = self.lane_bits(vector), self.bits_type
        if operation not in _ALL_OF_GROUP:
            raise PlanError(f"OpGroupNonUniformBallotBitCount with {operation!r}")
        if operation is not GroupOperation.Reduce:
            which = "le" if operation is GroupOperation.InclusiveScan else "lt"
            bits = self.emit(Op.BitwiseAnd, type_, bits, self.lane_bits(self.mask(which)))
        return self.to_int(self.emit(Op.BitCount, type_, bits), result)

    def find(self, result: Type, vector: Value, last: bool) -> Value:
        bits, type_ = self.lane_bits(vector), self.bits_type
        if not last:
            return self.to_int(self.extended(OpenCLStd.ctz, bits), result)
        top = self.types.constant(type_, type_.width - 1)
        return self.to_int(self.emit(Op.ISub, type_, top, self.extended(OpenCLStd.clz, bits)), result)

    # Votes

    def any(self, predicate: Value) -> Value:
        zero = self.types.constant(self.bits_type, 0)
        return self.emit(Op.INotEqual, self.types.bool(), self.ballot(predicate), zero)

    def all(self, predicate: Value) -> Value:
        bool_ = self.types.bool()
        missing = self.any(self.emit(Op.LogicalNot, bool_, predicate))
        return self.emit(Op.LogicalNot, bool_, missing)

    def first(self) -> Value:
        """The lowest active lane."""
        return self.to_int(self.extended(OpenCLStd.ctz, self.active_bits()))

    def all_equal(self, value: Value) -> Value:
        type_, bool_ = value.type, self.types.bool()
        other = self.read(value, self.first())
        is_vector = type_.kind is Kind.VECTOR
        kind = (type_.element if is_vector else type_).kind
        op = {Kind.FLOAT: Op.FOrdEqual, Kind.BOOL: Op.LogicalEqual}.get(kind, Op.IEqual)
        result = self.types.vector(bool_, type_.count) if is_vector else bool_
        same = self.emit(op, result, value, other)
        return self.all(self.emit(Op.All, bool_, same) if is_vector else same)

    # Reductions and scans

    def arithmetic(
        self, op: Op, operation: GroupOperation, value: Value, cluster: Value | None = None
    ) -> Value:
        neutral = self.neutral(op, value.type)
        if operation not in (_ALL_OF_GROUP if cluster is None else (GroupOperation.ClusteredReduce,)):
            raise PlanError(f"{op.name} with {operation!r}")
        if self.width == 1:
            return neutral if operation is GroupOperation.ExclusiveScan else value
        active = self.emit(PassOp.Active, self.types.bool())
        value = self.emit(Op.Select, value.type, active, value, neutral)
        if operation in (GroupOperation.Reduce, GroupOperation.ClusteredReduce):
            size = self.width
            if cluster is not None:
                size = min(size, _power_of_two(cluster))
            distance = 1
            while distance < size:
                other = self.exchange(value, neutral, [k ^ distance for k in range(self.width)])
                value = self.combine(op, value, other)
                distance *= 2
            return self.read(value, self.number(0)) if size == self.width else value
        distance = 1
        while distance < self.width:
            value = self.combine(op, self.behind(value, neutral, distance), value)
            distance *= 2
        return self.behind(value, neutral, 1) if operation is GroupOperation.ExclusiveScan else value

    def neutral(self, op: Op, type_: Type) -> Constant:
        if type_.kind is Kind.VECTOR:
            return self.types.constant(type_, (self.neutral(op, type_.element),) * type_.count)
        return identity(op, type_, self.types)

    def combine(self, op: Op, a: Value, b: Value) -> Value:
        how, operands = combination(op, a, b)
        return self.emit(how, a.type, *operands)

    def exchange(self, a: Value, b: Value, lanes: list[int]) -> Value:
        """Each lane's value from a lane of a, or of b for numbers from the width on."""
        return self.emit(PassOp.LaneShuffle, a.type, a, b, *lanes)

    def behind(self, value: Value, neutral: Value, distance: int) -> Value:
        """The value of the lane so far before."""
        lanes = [k - distance if k >= distance else self.width for k in range(self.width)]
        return self.exchange(value, neutral, lanes)

    # Shuffles

    def relative(self, value: Value, op: Op, delta: Value) -> Value:
        """The value of a lane whose number is that of this one, combined with another."""
        return self.permute(value, self.emit(op, self.int, self.lane(), self.to_int(delta)))

    def rotate(self, value: Value, delta: Value, cluster: Value | None = None) -> Value:
        size = self.width if cluster is None else _power_of_two(cluster)
        lane, inside = self.lane(), self.number(size - 1)
        moved = self.emit(Op.IAdd, self.int, lane, self.to_int(delta))
        moved = self.emit(Op.BitwiseAnd, self.int, moved, inside)
        start = self.emit(Op.BitwiseAnd, self.int, lane, self.number(~(size - 1)))
        return self.permute(value, self.emit(Op.BitwiseOr, self.int, start, moved))

    def intel_shuffle(self, op: Op, value: Value, *rest: Value) -> Value:
        """SPV_INTEL_subgroups: up and down move through two values, one behind the other."""
        if op is Op.SubgroupShuffleINTEL:
            return self.permute(value, *rest)
        if op is Op.SubgroupShuffleXorINTEL:
            return self.relative(value, Op.BitwiseXor, *rest)
        other, delta = rest
        lane, size = self.lane(), self.number(self.width)
        if op is Op.SubgroupShuffleUpINTEL:
            delta = self.emit(Op.ISub, self.int, size, self.to_int(delta))
        index = self.emit(Op.IAdd, self.int, lane, self.to_int(delta))
        inside = self.emit(Op.ULessThan, self.types.bool(), index, size)
        index = self.emit(Op.BitwiseAnd, self.int, index, self.number(self.width - 1))
        a, b = self.permute(value, index), self.permute(other, index)
        if value.type.kind is Kind.VECTOR:
            inside = self.emit(
                Op.CompositeConstruct,
                self.types.vector(inside.type, value.type.count),
                *[inside] * value.type.count,
            )
        return self.emit(Op.Select, value.type, inside, a, b)

    # Blocks of memory: component k of lane l lies at element k * width + l.

    def places(self, pointer: Value, type_: Type) -> list[Value]:
        is_vector = type_.kind is Kind.VECTOR
        element, count = (type_.element, type_.count) if is_vector else (type_, 1)
        if pointer.type.element is not element:
            wanted = self.types.pointer(pointer.type.storage, element)
            pointer = self.emit(Op.Bitcast, wanted, pointer)
        lane = self.emit(Op.UConvert, self.types.int(64), self.lane()) if self.width > 1 else None
        places: list[Value] = []
        for k in range(count):
            index: Value = self.types.integer(64, k * self.width)
            if lane is not None:
                index = self.emit(Op.IAdd, lane.type, lane, index) if k else lane
            places.append(self.emit(Op.InBoundsPtrAccessChain, pointer.type, pointer, index))
        return places

    def block_read(self, type_: Type, pointer: Value) -> Value:
        components = []
        for place in self.places(pointer, type_):
            component = self.emit(Op.Load, place.type.element, place)
            component.memory = MemoryAccess(size_of(component.type))
            components.append(component)
        return components[0] if len(components) == 1 else self.emit(Op.CompositeConstruct, type_, *components)

    def block_write(self, pointer: Value, data: Value) -> None:
        for k, place in enumerate(self.places(pointer, data.type)):
            element = place.type.element
            component = data if data.type is element else self.emit(Op.CompositeExtract, element, data, k)
            self.emit(Op.Store, None, place, component).memory = MemoryAccess(size_of(element))


def _power_of_two(cluster: Value) -> int:
    size: int | None = cluster.value if isinstance(cluster, Constant) else None
    if not size or size & size - 1:
        raise PlanError("ClusterSize must be a constant power of two")
    return size


# The group instruction of the same kind, which collectives.py knows.
_WORK_GROUP_OP = {
    Op.GroupNonUniformIAdd: Op.GroupIAdd,
    Op.GroupNonUniformFAdd: Op.GroupFAdd,
    Op.GroupNonUniformIMul: Op.GroupIMulKHR,
    Op.GroupNonUniformFMul: Op.GroupFMulKHR,
    Op.GroupNonUniformSMin: Op.GroupSMin,
    Op.GroupNonUniformUMin: Op.GroupUMin,
    Op.GroupNonUniformFMin: Op.GroupFMin,
    Op.GroupNonUniformSMax: Op.GroupSMax,
    Op.GroupNonUniformUMax: Op.GroupUMax,
    Op.GroupNonUniformFMax: Op.GroupFMax,
    Op.GroupNonUniformBitwiseAnd: Op.GroupBitwiseAndKHR,
    Op.GroupNonUniformBitwiseOr: Op.GroupBitwiseOrKHR,
    Op.GroupNonUniformBitwiseXor: Op.GroupBitwiseXorKHR,
    Op.GroupNonUniformLogicalAnd: Op.GroupLogicalAndKHR,
    Op.GroupNonUniformLogicalOr: Op.GroupLogicalOrKHR,
    Op.GroupNonUniformLogicalXor: Op.GroupLogicalXorKHR,
}

# Instructions without Execution scope to their values: rule(lowering, result type, operands...).
_RULES: dict[Op, Callable[..., Value | None]] = {
    Op.GroupAll: lambda s, t, p: s.all(p),
    Op.GroupAny: lambda s, t, p: s.any(p),
    Op.GroupNonUniformAll: lambda s, t, p: s.all(p),
    Op.GroupNonUniformAny: lambda s, t, p: s.any(p),
    Op.GroupNonUniformAllEqual: lambda s, t, v: s.all_equal(v),
    Op.GroupNonUniformElect: lambda s, t: s.emit(Op.IEqual, t, s.first(), s.lane()),
    Op.GroupBroadcast: lambda s, t, v, lane: s.read(v, lane),
    Op.GroupNonUniformBroadcast: lambda s, t, v, lane: s.read(v, lane),
    Op.GroupNonUniformBroadcastFirst: lambda s, t, v: s.read(v, s.first()),
    Op.GroupNonUniformBallot: lambda s, t, p: s.vector_of(s.ballot(p)),
    Op.GroupNonUniformInverseBallot: lambda s, t, v: s.bit(v, s.lane()),
    Op.GroupNonUniformBallotBitExtract: lambda s, t, v, index: s.bit(v, index),
    Op.GroupNonUniformBallotBitCount: _Lowering.bit_count,
    Op.GroupNonUniformBallotFindLSB: lambda s, t, v: s.find(t, v, False),
    Op.GroupNonUniformBallotFindMSB: lambda s, t, v: s.find(t, v, True),
    Op.GroupNonUniformShuffle: lambda s, t, v, lane: s.permute(v, lane),
    Op.GroupNonUniformShuffleXor: lambda s, t, v, mask: s.relative(v, Op.BitwiseXor, mask),
    Op.GroupNonUniformShuffleUp: lambda s, t, v, delta: s.relative(v, Op.ISub, delta),
    Op.GroupNonUniformShuffleDown: lambda s, t, v, delta: s.relative(v, Op.IAdd, delta),
    Op.GroupNonUniformRotateKHR: lambda s, t, v, delta, *cluster: s.rotate(v, delta, *cluster),
}
