"""Kernels that enqueue kernels, made calls of the data plane (native_shim/src/launch/device_enqueue.h): what
SPIR-V has instructions for, and what clang makes of OpenCL C (spirv/blocks.py).

A block becomes an entry point of its own, whose first argument is the address of what the block captured, of
which the data plane has a copy. Blocks have numbers, which are their places among the module's last entry
points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...spirv.blocks import MARKER, NULL_EVENT, block_name, kernel_of_call
from ...spirv.enums import LinkageType, Op, StorageClass
from ...spirv.errors import SpirvError
from ...spirv.module import (
    Argument,
    Block,
    Constant,
    EntryPoint,
    Function,
    Instruction,
    Kind,
    MemoryAccess,
    Module,
    Type,
    Value,
)
from ...spirv.reflect import called
from ..ir.emission import Emission
from ..ir.instructions import append, substitute
from ..ir.link_names import BLOCK_SIZE, DEVICE_FUNCTIONS, ENQUEUE_KERNEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# enum cld_block_size; CLD_BLOCK_TELLS.
_GROUP_SIZE, _MULTIPLE, _SUB_GROUP_COUNT, _MAX_SUB_GROUP_SIZE, _SIZE_FOR_COUNT, _MOST_SUB_GROUPS = range(6)
_OF_RANGE = (_SUB_GROUP_COUNT, _MAX_SUB_GROUP_SIZE)
_TELLS = 0x80000000

_MOST_LOCAL = 1 << 10  # local arguments of a block


def lower_device_enqueue(module: Module, tells: bool) -> None:
    """Changes a linked and valid module. tells: whether results say why nothing was enqueued."""
    lowering = _Lowering(module, tells)
    hosts = [entry for entry in module.entry_points if not entry.is_block]
    for entry in hosts:
        lowering.run(entry)
    for entry in lowering.blocks:  # of which more come meanwhile
        lowering.run(entry)
    module.entry_points = [*hosts, *lowering.blocks]


def blocks_of(entry: EntryPoint, blocks: Sequence[EntryPoint]) -> list[int]:
    """The numbers of the blocks that a kernel enqueues, and of those that these do. blocks: all there are, in
    order."""
    found: dict[int, None] = {}
    pending = [entry]
    while pending:
        for number in _named_in(called(pending.pop().function)):
            if number not in found:
                found[number] = None
                pending.append(blocks[number])
    return sorted(found)


def enqueues(functions: Sequence[Function]) -> bool:
    """Whether functions call what enqueues, or has to do with events."""
    return any(
        i.op is Op.FunctionCall and _name(i.operands[0]) in DEVICE_FUNCTIONS
        for function in functions
        for block in function.blocks
        for i in block.instructions
    )


def _name(function: Function) -> str:
    return function.linkage[0] if function.linkage else ""


def _named_in(functions: Sequence[Function]) -> list[int]:
    places = {ENQUEUE_KERNEL: 7, BLOCK_SIZE: 2}  # of the block among a call's operands
    return [
        i.operands[places[_name(i.operands[0])]].value & ~_TELLS
        for function in functions
        for block in function.blocks
        for i in block.instructions
        if i.op is Op.FunctionCall and _name(i.operands[0]) in places
    ]


class _Lowering(Emission):
    """Rewrites the functions that kernels reach."""

    def __init__(self, module: Module, tells: bool) -> None:
        super().__init__(module.types)
        self.tells = _TELLS if tells else 0
        self.kernels = {entry.name: entry for entry in module.entry_points if entry.is_block}
        self.blocks: list[EntryPoint] = []
        self.numbers: dict[int, int] = {}  # id of the function that a block invokes
        self.done: set[int] = set()
        self.declarations: dict[tuple[str, Type], Function] = {}
        types = module.types
        self.int, self.long = types.int(32), types.int(64)
        self.nothing = types.null(types.pointer(StorageClass.Function, types.int(8)))
        self.function: Function

    def run(self, entry: EntryPoint) -> None:
        for function in called(entry.function):
            if id(function) not in self.done and function.blocks:
                self.done.add(id(function))
                self.lower(function)

    def lower(self, function: Function) -> None:
        replaced: dict[Value, Value] = {}
        self.function = function
        for block in function.blocks:
            self.block = block
            old, block.instructions = block.instructions, []
            for i in old:
                rule = RULES.get(i.op)
                if i.op is Op.FunctionCall:
                    rule = self.rule_of_call(i)
                if rule is None:
                    block.instructions.append(i)
                    continue
                self.line = i
                result = rule(self, i)
                if result is not None:
                    replaced[i] = result
        substitute(function, replaced)

    def rule_of_call(self, i: Instruction) -> _Rule | None:
        name = _name(i.operands[0])
        if name == MARKER:
            return lambda lower, i: lower.marker(i.type, i.operands[1:])
        if name == NULL_EVENT:
            return lambda lower, i: lower.types.null(i.type)
        found = kernel_of_call(name)
        if found is None:
            return None
        call, kernel = found
        return lambda lower, i: CALLS[call](lower, i, lower.kernels[kernel])

    # Small pieces

    def word(self, value: int) -> Constant:
        return self.types.integer(32, value)

    def call(self, name: str, result: Type, arguments: Sequence[Value]) -> Instruction:
        type_ = self.types.function(result, tuple(a.type for a in arguments))
        callee = self.declarations.get((name, type_))
        if callee is None:
            callee = self.declarations[name, type_] = Function(type_, name)
            callee.linkage = name, LinkageType.Import
        return self.emit(Op.FunctionCall, result, [callee, *arguments])

    def variable(self, type_: Type) -> Instruction:
        """Private memory."""
        first = self.function.blocks[0]
        made = Instruction(
            Op.Variable, self.types.pointer(StorageClass.Function, type_), [StorageClass.Function], first
        )
        # The block that is being lowered has its instructions in the making.
        place = 0
        while place < len(first.instructions) and first.instructions[place].op is Op.Variable:
            place += 1
        first.instructions.insert(place, made)
        return made

    def store(self, pointer: Value, value: Value) -> None:
        made = append(self.block, Op.Store, None, [pointer, value], MemoryAccess())
        made.line = self.line.line

    def in_memory(self, range_: Value) -> Value:
        """The address of an nd-range."""
        if range_.type.kind is Kind.POINTER:
            return range_
        place = self.variable(range_.type)
        self.store(place, range_)
        return place

    def array(self, sizes: Sequence[Value]) -> Value:
        """The address of an array of them, as integers of 64 bits."""
        if not sizes:
            return self.nothing
        place = self.variable(self.types.array(self.long, len(sizes)))
        element = self.types.pointer(StorageClass.Function, self.long)
        for k, size in enumerate(sizes):
            wide = size if size.type is self.long else self.emit(Op.UConvert, self.long, [size])
            self.store(self.emit(Op.InBoundsAccessChain, element, [place, self.word(k)]), wide)
        return place

    # Blocks

    def block_number(self, invoke: Function, entry: EntryPoint | None = None) -> Constant:
        """The number of the block that invokes a function. entry: clang's for it."""
        found = self.numbers.get(id(invoke))
        if found is None:
            found = self.numbers[id(invoke)] = len(self.blocks)
            name = entry.name if entry is not None else block_name(found, invoke.name)
            modes = dict(entry.modes) if entry is not None else {}
            self.blocks.append(EntryPoint(name, self.entry_function(invoke, name), [], modes, True))
        return self.word(found | self.tells)

    def entry_function(self, invoke: Function, name: str) -> Function:
        """A kernel that calls a block's function."""
        types, first = self.types, invoke.type.members[0]
        captured = types.pointer(StorageClass.CrossWorkgroup, first.element)
        parameters = (captured, *invoke.type.members[1:])
        made = Function(types.function(types.void(), parameters), name)
        made.arguments = [Argument(type_, index) for index, type_ in enumerate(parameters)]
        for own, other in zip(made.arguments, invoke.arguments, strict=True):
            own.decorations, own.name = other.decorations, other.name
        body = Block(made, "entry")
        generic = append(body, Op.PtrCastToGeneric, first, [made.arguments[0]])
        append(body, Op.FunctionCall, types.void(), [invoke, generic, *made.arguments[1:]])
        append(body, Op.Return)
        made.blocks = [body]
        return made

    def enqueue(
        self,
        type_: Type,
        common: Sequence[Value],
        events: Sequence[Value],
        block: Sequence[Value],
        count: Value,
        sizes: Value,
    ) -> Instruction:
        """common: queue, flags, nd-range; events: their number, the list, where the new one goes; block: its
        number, what it captured, bytes and alignment of that; sizes: the address of the sizes of so many
        local arguments."""
        queue, flags, range_ = common
        arguments = [queue, flags, self.in_memory(range_), *events, *block, count, sizes]
        return self.call(ENQUEUE_KERNEL, type_, arguments)

    def marker(self, type_: Type, arguments: Sequence[Value]) -> Instruction:
        return self.call("cld_enqueue_marker", type_, [*arguments, self.word(self.tells)])

    def size(
        self, which: int, type_: Type, block: Constant, range_: Value | None, count: Value | None = None
    ) -> Instruction:
        """count: of sub-groups."""
        place = self.nothing if range_ is None else self.in_memory(range_)
        return self.call(BLOCK_SIZE, type_, [self.word(which), block, place, count or self.word(0)])


_Rule: TypeAlias = "Callable[[_Lowering, Instruction], Value | None]"
_CallRule: TypeAlias = "Callable[[_Lowering, Instruction, EntryPoint], Value]"


def _enqueue_call(has_events: bool, has_local: bool) -> _CallRule:
    def rule(lower: _Lowering, i: Instruction, entry: EntryPoint) -> Value:
        _, *rest = i.operands
        common, rest = rest[:3], rest[3:]
        events = [lower.word(0), lower.nothing, lower.nothing]
        if has_events:
            events, rest = rest[:3], rest[3:]
        captured, *sizes, size, alignment = rest
        count, places = sizes if has_local else (lower.word(0), lower.nothing)
        block = [lower.block_number(entry.function, entry), captured, size, alignment]
        return lower.enqueue(i.type, common, events, block, count, places)

    return rule


def _size_call(which: int) -> _CallRule:
    def rule(lower: _Lowering, i: Instruction, entry: EntryPoint) -> Value:
        range_ = i.operands[1] if which in _OF_RANGE else None
        return lower.size(which, i.type, lower.block_number(entry.function, entry), range_)

    return rule


CALLS: dict[str, _CallRule] = {
    "enqueue_kernel_basic": _enqueue_call(False, False),
    "enqueue_kernel_basic_events": _enqueue_call(True, False),
    "enqueue_kernel_varargs": _enqueue_call(False, True),
    "enqueue_kernel_events_varargs": _enqueue_call(True, True),
    "get_kernel_work_group_size_impl": _size_call(_GROUP_SIZE),
    "get_kernel_preferred_work_group_size_multiple_impl": _size_call(_MULTIPLE),
    "get_kernel_sub_group_count_for_ndrange_impl": _size_call(_SUB_GROUP_COUNT),
    "get_kernel_max_sub_group_size_for_ndrange_impl": _size_call(_MAX_SUB_GROUP_SIZE),
}


def _enqueue(lower: _Lowering, i: Instruction) -> Value:
    common, events = i.operands[:3], i.operands[3:6]
    invoke, captured, size, alignment, *sizes = i.operands[6:]
    if len(sizes) > _MOST_LOCAL:
        raise SpirvError(i.offset, "OpEnqueueKernel", f"{len(sizes)} local arguments")
    block = [lower.block_number(invoke), captured, size, alignment]
    return lower.enqueue(i.type, common, events, block, lower.word(len(sizes)), lower.array(sizes))


def _marker(lower: _Lowering, i: Instruction) -> Value:
    return lower.marker(i.type, i.operands)


def _size(which: int) -> _Rule:
    def rule(lower: _Lowering, i: Instruction) -> Value:
        invoke = next(o for o in i.operands if isinstance(o, Function))
        range_ = i.operands[0] if which in _OF_RANGE else None
        count = i.operands[0] if which == _SIZE_FOR_COUNT else None
        return lower.size(which, i.type, lower.block_number(invoke), range_, count)

    return rule


def _build_range(lower: _Lowering, i: Instruction) -> Value:
    """Sizes of one dimension are integers, those of more arrays."""
    size, group, offset = i.operands
    dimensions = size.type.count if size.type.kind is Kind.ARRAY else 1

    def three(value: Value, otherwise: int, type_: Type) -> Value:
        if value.type.kind is Kind.ARRAY:
            given: list[Value] = [
                lower.emit(Op.CompositeExtract, value.type.element, [value, k]) for k in range(dimensions)
            ]
        else:
            given = [value]
        rest = [lower.types.constant(type_.element, otherwise)] * (3 - len(given))
        return lower.emit(Op.CompositeConstruct, type_, [*given, *rest])

    _, *arrays = i.type.members
    made = [three(v, o, t) for v, o, t in zip((offset, size, group), (0, 1, 0), arrays, strict=True)]
    return lower.emit(Op.CompositeConstruct, i.type, [lower.word(dimensions), *made])


def _default_queue(lower: _Lowering, i: Instruction) -> Value:
    return lower.call("cld_default_queue", i.type, [])


def _create_event(lower: _Lowering, i: Instruction) -> Value:
    return lower.call("cld_create_user_event", i.type, [])


def _event_call(name: str) -> _Rule:
    def rule(lower: _Lowering, i: Instruction) -> None:
        lower.call(name, lower.types.void(), i.operands)

    return rule


def _is_valid(lower: _Lowering, i: Instruction) -> Value:
    found = lower.call("cld_is_valid_event", lower.int, i.operands)
    return lower.emit(Op.INotEqual, i.type, [found, lower.word(0)])


RULES: dict[Op, _Rule] = {
    Op.EnqueueKernel: _enqueue,
    Op.EnqueueMarker: _marker,
    Op.GetKernelNDrangeSubGroupCount: _size(_SUB_GROUP_COUNT),
    Op.GetKernelNDrangeMaxSubGroupSize: _size(_MAX_SUB_GROUP_SIZE),
    Op.GetKernelWorkGroupSize: _size(_GROUP_SIZE),
    Op.GetKernelPreferredWorkGroupSizeMultiple: _size(_MULTIPLE),
    Op.GetKernelLocalSizeForSubgroupCount: _size(_SIZE_FOR_COUNT),
    Op.GetKernelMaxNumSubgroups: _size(_MOST_SUB_GROUPS),
    Op.BuildNDRange: _build_range,
    Op.GetDefaultQueue: _default_queue,
    Op.CreateUserEvent: _create_event,
    Op.IsValidEvent: _is_valid,
    Op.RetainEvent: _event_call("cld_retain_event"),
    Op.ReleaseEvent: _event_call("cld_release_event"),
    Op.SetUserEventStatus: _event_call("cld_set_user_event_status"),
    Op.CaptureEventProfilingInfo: _event_call("cld_capture_event_profiling_info"),
}
