"""Pipes as what they are made of: rings in memory (builtins/cl/pipe.cl), functions of the builtin library
that reserve and commit entries, and plain copies of packets.

A pipe is the address of its ring. A reservation is an integer of 64 bits, in the upper half of which is the
number of its entries, in the lower one the first of them; 0 and all ones are none. What a work-group or a
sub-group does together its first work-item does for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...spirv.enums import BuiltIn, LinkageType, MemorySemantics, Op, Scope, StorageClass
from ...spirv.module import (
    Block,
    Constant,
    Function,
    Instruction,
    Kind,
    MemoryAccess,
    Module,
    Type,
    Value,
    Variable,
)
from ...spirv.types import TypeTable
from ..ir.emission import Emission
from ..ir.instructions import append, rename_phi_edge, substitute
from ..ir.layout import size_of
from ..ir.link_names import PIPE_COMMIT, PIPE_PACKETS, PIPE_RESERVE
from .pipe_storage import DATA, MAX_PACKETS, PipeStorages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

READ, WRITE = 0, 1  # the sides of a ring

_CASTS = frozenset((Op.Bitcast, Op.PtrCastToGeneric, Op.CopyObject))
_VECTORS = {16: (32, 4), 32: (32, 8), 64: (32, 16), 128: (64, 16)}  # bytes: bits of a component, components
_MOST_ALIGNED = 128  # the ring's packets begin at a multiple
_FENCE = (
    MemorySemantics.AcquireRelease
    | MemorySemantics.SubgroupMemory
    | MemorySemantics.WorkgroupMemory
    | MemorySemantics.CrossWorkgroupMemory
)


def lower_pipes(module: Module, functions: Iterable[Function]) -> None:
    """Changes functions, and the module's variables. SpirvError for pipe storage that is too large."""
    storages = PipeStorages(module)
    for function in functions:
        _Lowering(module.types, storages).run(function)


class _Lowering(Emission):
    """Rewrites one function."""

    def __init__(self, types: TypeTable, storages: PipeStorages) -> None:
        super().__init__(types)
        self.storages = storages
        self.int, self.long = types.int(32), types.int(64)
        self.byte_pointer = types.pointer(StorageClass.CrossWorkgroup, types.int(8))
        self.declarations: dict[str, Function] = {}

    def run(self, function: Function) -> None:
        replaced: dict[Value, Value] = {}
        for block in list(function.blocks):
            self.block = block
            old, block.instructions = block.instructions, []
            for i in old:
                i.operands = [self.storages.found(o) for o in i.operands]
                rule = RULES.get(i.op)
                if rule is None:
                    i.block = self.block
                    self.block.instructions.append(i)
                    continue
                self.line = i
                result = rule(self, i)
                if result is not None:
                    replaced[i] = result
            if self.block is not block:
                for successor in self.block.successors():
                    rename_phi_edge(successor, block, self.block)
        substitute(function, replaced)

    # Small pieces

    def word(self, value: int) -> Constant:
        return self.types.integer(32, value)

    def wide(self, value: Value) -> Value:
        """An integer as one of 64 bits."""
        return value if value.type is self.long else self.emit(Op.UConvert, self.long, [value])

    def logical(self, op: Op, *operands: Value) -> Value:
        """A comparison, or an operation on bools."""
        return self.emit(op, self.types.bool(), operands)

    def call(self, name: str, result: Type, arguments: Sequence[Value]) -> Instruction:
        """A call of the library. It stays one: lanes are reserved for together (codegen/simd/pipes.py)."""
        callee = self.declarations.get(name)
        if callee is None:
            type_ = self.types.function(result, tuple(a.type for a in arguments))
            callee = self.declarations[name] = Function(type_, name)
            callee.linkage = name, LinkageType.Import
        return self.emit(Op.FunctionCall, result, [callee, *arguments])

    def ring(self, pipe: Value) -> Value:
        """The address of a pipe's memory."""
        return self.emit(Op.Bitcast, self.byte_pointer, [pipe])

    def field(self, pipe: Value, offset: int, type_: Type) -> Value:
        """One of the fields that never change."""
        pointer = self.types.pointer(StorageClass.UniformConstant, self.types.int(8))
        place = self.emit(Op.Bitcast, pointer, [pipe])
        place = self.emit(Op.InBoundsPtrAccessChain, pointer, [place, self.types.integer(64, offset)])
        place = self.emit(Op.Bitcast, self.types.pointer(StorageClass.UniformConstant, type_), [place])
        made = self.emit(Op.Load, type_, [place])
        made.memory = MemoryAccess(type_.width // 8)
        return made

    def builtin(self, builtin: BuiltIn, type_: Type) -> Value:
        variable = Variable(self.types.pointer(StorageClass.Input, type_), name=builtin.name)
        variable.builtin = builtin
        made = self.emit(Op.Load, type_, [variable])
        made.memory = MemoryAccess()
        return made

    # Reservations

    def reserve(self, pipe: Value, count: Value, size: Value, side: int) -> Value:
        return self.call(PIPE_RESERVE, self.long, [self.ring(pipe), count, size, self.word(side)])

    def commit(self, pipe: Value, reserved: Value) -> None:
        self.call(PIPE_COMMIT, self.types.void(), [self.ring(pipe), reserved])

    def bits(self, id_: Value) -> Value:
        """A value of type reserve_id_t as an integer."""
        return self.emit(Op.ConvertPtrToU, self.long, [id_])

    def is_valid(self, reserved: Value) -> Value:
        return self.logical(Op.SGreaterThan, reserved, self.types.integer(64, 0))

    def is_first(self, scope: Constant) -> Value:
        """Whether this is the first work-item of its group or sub-group."""
        if scope.value == Scope.Workgroup:
            index = self.builtin(BuiltIn.LocalInvocationIndex, self.long)
        else:
            index = self.builtin(BuiltIn.SubgroupLocalInvocationId, self.int)
        return self.logical(Op.IEqual, index, self.types.constant(index.type, 0))

    # Packets

    def packet(self, pipe: Value, entry: Value, size: Value) -> Value:
        """The address of the packet of an entry."""
        offset = self.emit(Op.IMul, self.long, [entry, self.wide(size)])
        offset = self.emit(Op.IAdd, self.long, [self.field(pipe, DATA, self.long), offset])
        return self.emit(Op.InBoundsPtrAccessChain, self.byte_pointer, [self.ring(pipe), offset])

    def copy(self, packet: Value, pointer: Value, size: Value, alignment: Value, side: int) -> None:
        """To or from where the program has it."""
        bytes_ = size.value if isinstance(size, Constant) else 0
        given = alignment.value if isinstance(alignment, Constant) else 1
        access = MemoryAccess(min(given or 1, bytes_ & -bytes_ or 1, _MOST_ALIGNED))
        pointer, type_ = self.of_type(pointer, bytes_)
        if type_ is None:
            ends = [pointer, packet] if side == READ else [packet, pointer]
            append(self.block, Op.CopyMemorySized, None, [*ends, size], access).line = self.line.line
            return
        ends = [
            self.emit(Op.Bitcast, self.types.pointer(p.type.storage, type_), [p]) for p in (packet, pointer)
        ]
        source, target = ends if side == READ else ends[::-1]
        value = self.emit(Op.Load, type_, [source])
        store = append(self.block, Op.Store, None, [target, value], access)
        value.memory, store.line = access, self.line.line

    def of_type(self, pointer: Value, size: int) -> tuple[Value, Type | None]:
        """Where a pointer comes from, and the type of number or vector that a packet of so many bytes is
        copied as; None for the pieces of a structure in private memory, which its passes know, and for what
        is no such type."""
        source = pointer
        while True:
            element = source.type.element if source.type.kind is Kind.POINTER else None
            if element is not None and size_of(element) == size:
                if element.kind in (Kind.INT, Kind.FLOAT):
                    return source, element
                if element.kind is Kind.VECTOR and element.element.kind in (Kind.INT, Kind.FLOAT):
                    return source, element
            if not isinstance(source, Instruction) or source.op not in _CASTS:
                break
            source = source.operands[0]
        if isinstance(source, Instruction) and source.op is Op.Variable:
            return source, None
        if size in (1, 2, 4, 8):
            return source, self.types.int(8 * size)
        if size in _VECTORS:
            bits, count = _VECTORS[size]
            return source, self.types.vector(self.types.int(bits), count)
        return source, None

    def guarded(self, condition: Value, body: Callable[[], None], type_: Type) -> Value:
        """Does something where a condition holds. 0 there, -1 elsewhere: what read_pipe returns."""
        begin = self.block
        function = begin.function
        assert function is not None
        inside, after = Block(function, "packet"), Block(function, begin.name)
        branch = append(begin, Op.BranchConditional, None, [condition, inside, after])
        self.block = inside
        body()
        jump = append(inside, Op.Branch, None, [after])
        branch.line = jump.line = self.line.line
        place = function.blocks.index(begin) + 1
        function.blocks[place:place] = [inside, after]
        self.block = after
        done, failed = self.types.constant(type_, 0), self.number(type_, -1)
        return self.emit(Op.Select, type_, [condition, done, failed])


def _transfer(side: int) -> _Rule:
    """OpReadPipe, OpWritePipe: a reservation of one packet."""

    def rule(lower: _Lowering, i: Instruction) -> Value:
        pipe, pointer, size, alignment = i.operands
        reserved = lower.reserve(pipe, lower.word(1), size, side)

        def body() -> None:
            entry = lower.with_number(Op.BitwiseAnd, reserved, 0xFFFFFFFF)
            lower.copy(lower.packet(pipe, entry, size), pointer, size, alignment, side)
            lower.commit(pipe, reserved)

        return lower.guarded(lower.is_valid(reserved), body, i.type)

    return rule


def _reserved_transfer(side: int) -> _Rule:
    """OpReservedReadPipe, OpReservedWritePipe: the packet of an index in a reservation."""

    def rule(lower: _Lowering, i: Instruction) -> Value:
        pipe, id_, index, pointer, size, alignment = i.operands
        reserved, index = lower.bits(id_), lower.wide(index)
        count = lower.with_number(Op.ShiftRightLogical, reserved, 32)
        entry = lower.with_number(Op.BitwiseAnd, reserved, 0xFFFFFFFF)
        entry = lower.emit(Op.IAdd, lower.long, [entry, index])
        packets = lower.wide(lower.field(pipe, MAX_PACKETS, lower.int))
        wrapped = lower.emit(Op.ISub, lower.long, [entry, packets])
        is_before = lower.logical(Op.ULessThan, entry, packets)
        entry = lower.emit(Op.Select, lower.long, [is_before, entry, wrapped])
        checks = [
            lower.is_valid(reserved),
            lower.logical(Op.ULessThan, index, count),
            lower.logical(Op.ULessThan, entry, packets),  # of another pipe it may not be
        ]
        condition = lower.logical(Op.LogicalAnd, lower.logical(Op.LogicalAnd, *checks[:2]), checks[2])

        def body() -> None:
            lower.copy(lower.packet(pipe, entry, size), pointer, size, alignment, side)

        return lower.guarded(condition, body, i.type)

    return rule


def _reserve(side: int) -> _Rule:
    def rule(lower: _Lowering, i: Instruction) -> Value:
        pipe, count, size, _ = i.operands
        return lower.emit(Op.ConvertUToPtr, i.type, [lower.reserve(pipe, count, size, side)])

    return rule


def _group_reserve(side: int) -> _Rule:
    """All get the reservation that the first asks for; the others ask for nothing."""

    def rule(lower: _Lowering, i: Instruction) -> Value:
        scope, pipe, count, size, _ = i.operands
        count = lower.emit(Op.Select, count.type, [lower.is_first(scope), count, lower.word(0)])
        reserved = lower.reserve(pipe, count, size, side)
        first = lower.types.integer(64 if scope.value == Scope.Workgroup else 32, 0)
        reserved = lower.emit(Op.GroupBroadcast, lower.long, [scope, reserved, first])
        return lower.emit(Op.ConvertUToPtr, i.type, [reserved])

    return rule


def _commit(lower: _Lowering, i: Instruction) -> None:
    pipe, id_, _, _ = i.operands
    lower.commit(pipe, lower.bits(id_))


def _group_commit(lower: _Lowering, i: Instruction) -> None:
    """The first commits, once all have read or written."""
    scope, pipe, id_, _, _ = i.operands
    barrier = append(lower.block, Op.ControlBarrier, None, [scope, scope, lower.word(_FENCE)])
    barrier.line = i.line
    none = lower.types.integer(64, 0)
    lower.commit(pipe, lower.emit(Op.Select, lower.long, [lower.is_first(scope), lower.bits(id_), none]))


def _is_valid(lower: _Lowering, i: Instruction) -> Value:
    return lower.is_valid(lower.bits(i.operands[0]))


def _packets(lower: _Lowering, i: Instruction) -> Value:
    return lower.call(PIPE_PACKETS, lower.int, [lower.ring(i.operands[0])])


def _max_packets(lower: _Lowering, i: Instruction) -> Value:
    return lower.field(i.operands[0], MAX_PACKETS, lower.int)


def _from_storage(lower: _Lowering, i: Instruction) -> Value:
    return lower.emit(Op.Bitcast, i.type, [i.operands[0]])


_Rule: TypeAlias = "Callable[[_Lowering, Instruction], Value | None]"

RULES: dict[Op, _Rule] = {
    Op.ReadPipe: _transfer(READ),
    Op.WritePipe: _transfer(WRITE),
    Op.ReservedReadPipe: _reserved_transfer(READ),
    Op.ReservedWritePipe: _reserved_transfer(WRITE),
    Op.ReserveReadPipePackets: _reserve(READ),
    Op.ReserveWritePipePackets: _reserve(WRITE),
    Op.CommitReadPipe: _commit,
    Op.CommitWritePipe: _commit,
    Op.IsValidReserveId: _is_valid,
    Op.GetNumPipePackets: _packets,
    Op.GetMaxPipePackets: _max_packets,
    Op.GroupReserveReadPipePackets: _group_reserve(READ),
    Op.GroupReserveWritePipePackets: _group_reserve(WRITE),
    Op.GroupCommitReadPipe: _group_commit,
    Op.GroupCommitWritePipe: _group_commit,
    Op.CreatePipeFromPipeStorage: _from_storage,
}
