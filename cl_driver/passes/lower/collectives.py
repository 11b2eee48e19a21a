"""Work-group collectives and asynchronous copies as code that runs once per group.

Every work-item stores its operand into a slot; behind the boundary that follows, one function without
work-items loops over the slot and stores the results; behind that each work-item loads its own. Neighbouring
operations that do not need one another's results share a boundary.

The copies of async_work_group_copy are done at once, so the events they give are null and waiting for them
is nothing (OpenCL C 6.15.11: the copy may be complete when the function returns).
"""

from __future__ import annotations

from ...fast_typing import Any
from ...records import field, record
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
from ..ir.instructions import PURE, append, clone_instruction
from ..ir.layout import alignment_of, size_of
from ..ir.ops import PassOp
from ..ir.plan import PlanError, Slot
from .copy_loops import CopyLoop, copy_loops, is_event, is_of_group

_EXT = "OpenCL.std"

# How two values combine: an Op, or an OpenCL.std instruction.
_COMBINE = {
    Op.GroupIAdd: Op.IAdd,
    Op.GroupFAdd: Op.FAdd,
    Op.GroupFMin: OpenCLStd.fmin,
    Op.GroupUMin: OpenCLStd.u_min,
    Op.GroupSMin: OpenCLStd.s_min,
    Op.GroupFMax: OpenCLStd.fmax,
    Op.GroupUMax: OpenCLStd.u_max,
    Op.GroupSMax: OpenCLStd.s_max,
    Op.GroupIMulKHR: Op.IMul,
    Op.GroupFMulKHR: Op.FMul,
    Op.GroupBitwiseAndKHR: Op.BitwiseAnd,
    Op.GroupBitwiseOrKHR: Op.BitwiseOr,
    Op.GroupBitwiseXorKHR: Op.BitwiseXor,
    Op.GroupLogicalAndKHR: Op.LogicalAnd,
    Op.GroupLogicalOrKHR: Op.LogicalOr,
    Op.GroupLogicalXorKHR: Op.LogicalNotEqual,
    Op.GroupAll: Op.LogicalAnd,
    Op.GroupAny: Op.LogicalOr,
}

COMBINING = frozenset(_COMBINE)
COLLECTIVES = COMBINING | {Op.GroupBroadcast, Op.GroupAsyncCopy}


def combination(op: Op, a: Value, b: Value) -> tuple[Op, list[Operand]]:
    """What combines two values: the Op and its operands."""
    how = _COMBINE[op]
    return (how, [a, b]) if isinstance(how, Op) else (Op.ExtInst, [_EXT, how, a, b])


def identity(op: Op, type_: Type, types: TypeTable) -> Constant:
    """The neutral element of a collective, as the specification gives it for exclusive scans."""
    if type_.kind is Kind.BOOL:
        return types.constant(type_, op in (Op.GroupAll, Op.GroupLogicalAndKHR))
    width = type_.width
    if type_.kind is Kind.FLOAT:
        exponent = {16: 0x1F << 10, 32: 0xFF << 23, 64: 0x7FF << 52}[width]
        one = {16: 0xF << 10, 32: 0x7F << 23, 64: 0x3FF << 52}[width]
        bits = {Op.GroupFMin: exponent, Op.GroupFMax: exponent | 1 << (width - 1), Op.GroupFMulKHR: one}
        return types.constant(type_, bits.get(op, 0))
    ones = (1 << width) - 1
    values = {
        Op.GroupUMin: ones,
        Op.GroupSMin: ones >> 1,
        Op.GroupSMax: 1 << (width - 1),
        Op.GroupIMulKHR: 1,
        Op.GroupBitwiseAndKHR: ones,
    }
    return types.constant(type_, values.get(op, 0))


@record(eq=False, slots=True)
class Once:
    """A function under construction that runs once per group; `end` is the block to append to."""

    function: Function
    end: Block
    size: Instruction | None = None  # GroupItems, made on demand
    stored: list[Slot] = field(default_factory=list)


def lower_collectives(
    function: Function, types: TypeTable, slots: list[Slot], address_bits: int, influenced: set[Block]
) -> dict[Instruction, Once]:
    """Replaces all collectives; returns {boundary instruction: Once} for the boundaries put in their place.

    A boundary is an OpControlBarrier. New slots are appended to `slots`. influenced: the blocks that some
    work-items of a group may come to without the others.
    """
    lowering = _Lowering(function, types, slots, address_bits)
    for loop in copy_loops(function, influenced):
        lowering.move_loop(loop)
    for block in function.blocks:
        if any(i.op in COLLECTIVES for i in block.instructions):
            lowering.lower(block)
    return lowering.boundaries


class _Lowering:
    def __init__(self, function: Function, types: TypeTable, slots: list[Slot], address_bits: int) -> None:
        self.function = function
        self.types = types
        self.slots = slots
        self.size_type = types.int(address_bits)
        self.boundaries: dict[Instruction, Once] = {}
        self.once: Once | None = None
        self.results: list[tuple[Instruction, Slot]] = []
        self.out: list[Instruction] = []
        self.block: Block | None = None

    def lower(self, block: Block) -> None:
        self.block = block
        self.out = []
        results: set[Value] = set()
        for instruction in block.instructions:
            op = instruction.op
            is_collective = op in COLLECTIVES
            if self.once is not None:
                depends = not results.isdisjoint(o for o in instruction.operands if isinstance(o, Value))
                if depends or not (is_collective or op in PURE or is_of_group(instruction)):
                    self.flush()
                    results.clear()
            if op is Op.GroupAsyncCopy:
                self.copy(instruction)
            elif is_collective:
                results.add(instruction)
                self.collective(instruction)
            else:
                self.out.append(instruction)
        block.instructions = self.out

    def flush(self) -> None:
        """Ends the current run of operations: the boundary, then each work-item's results."""
        scope = self.types.integer(32, Scope.Workgroup)
        boundary = Instruction(Op.ControlBarrier, None, [scope, scope, self.types.integer(32, 0)], self.block)
        assert self.once is not None
        self.boundaries[boundary] = self.once
        self.out.append(boundary)
        for instruction, slot in self.results:
            # The collective itself becomes the load, so that its users need no change.
            instruction.op = PassOp.SlotLoad
            instruction.operands = [slot]
            self.out.append(instruction)
        self.once = None
        self.results = []

    def start(self) -> Once:
        if self.once is None:
            void = self.types.void()
            function = Function(self.types.function(void, ()), self.function.name + ".once")
            function.arguments = self.function.arguments
            block = Block(function, "once")
            function.blocks.append(block)
            self.once = Once(function, block)
        return self.once

    def slot(self, type_: Type, name: str, uniform: bool = False) -> Slot:
        same = 0 if uniform else None
        slot = Slot(len(self.slots), type_, uniform, same, same, name)
        self.slots.append(slot)
        return slot

    def pass_in(self, value: Value, name: str) -> Slot | Value:
        """A slot with each work-item's value; a value that all have anyway is itself."""
        if not isinstance(value, Instruction):
            return value
        slot = self.slot(value.type, name)
        store = Instruction(PassOp.SlotStore, None, [slot, value], self.block)
        self.out.append(store)
        return slot

    def first(self, once: Once, passed: Slot | Value) -> Value:
        """Work-item 0's value of what all work-items have the same."""
        if not isinstance(passed, Slot):
            return passed
        zero = self.types.constant(self.size_type, 0)
        return append(once.end, PassOp.SlotLoadItem, passed.type, [passed, zero])

    def element_pointer(self, once: Once, pointer: Value) -> Value:
        """Clang passes a pointer to a whole array where the array begins; its elements are copied."""
        element = pointer.type.element
        while element.kind is Kind.ARRAY:
            element = element.element
        if element is pointer.type.element:
            return pointer
        return append(once.end, Op.Bitcast, self.types.pointer(pointer.type.storage, element), [pointer])

    def collective(self, instruction: Instruction) -> None:
        once = self.start()
        op = instruction.op
        if op is Op.GroupBroadcast:
            value = self.pass_in(instruction.operands[1], "broadcast")
            item = self.first(once, self.pass_in(instruction.operands[2], "broadcast.id"))
            out = self.slot(instruction.type, "broadcast", uniform=True)
            if isinstance(value, Slot):
                linear = self.linear_id(once, item)
                value = append(once.end, PassOp.SlotLoadItem, instruction.type, [value, linear])
            append(once.end, PassOp.SlotStore, None, [out, value])
            self.results.append((instruction, out))
            return
        if op is Op.GroupAll or op is Op.GroupAny:
            operation, operand = GroupOperation.Reduce, instruction.operands[1]
        else:
            operation, operand = instruction.operands[1:3]
        name = op.name.removesuffix("KHR").removeprefix("Group")
        value = self.pass_in(operand, name)
        out = self.slot(instruction.type, name, uniform=operation is GroupOperation.Reduce)
        self.loop_over_items(once, op, operation, value, out)
        self.results.append((instruction, out))

    def loop_over_items(
        self, once: Once, op: Op, operation: GroupOperation, value: Slot | Value, out: Slot
    ) -> None:
        """header: i, accumulator; body: combine, scans store the result; reductions store at the end."""
        types = self.types
        header, body, after = (Block(once.function, n) for n in ("items", "item", "done"))
        once.function.blocks += [header, body, after]
        count = self.group_items(once)
        before = once.end
        append(before, Op.Branch, None, [header])
        index = append(header, Op.Phi, self.size_type)
        accumulator = append(header, Op.Phi, out.type)
        more = append(header, Op.ULessThan, types.bool(), [index, count])
        append(header, Op.BranchConditional, None, [more, body, after])
        if isinstance(value, Slot):
            value = append(body, PassOp.SlotLoadItem, out.type, [value, index])
        combined = self.combine(body, op, accumulator, value)
        if operation is not GroupOperation.Reduce:
            result = combined if operation is GroupOperation.InclusiveScan else accumulator
            append(body, PassOp.SlotStoreItem, None, [out, index, result])
        following = append(body, Op.IAdd, self.size_type, [index, types.constant(self.size_type, 1)])
        append(body, Op.Branch, None, [header])
        index.operands = [types.constant(self.size_type, 0), before, following, body]
        accumulator.operands = [identity(op, out.type, types), before, combined, body]
        once.end = after
        if operation is GroupOperation.Reduce:
            append(after, PassOp.SlotStore, None, [out, accumulator])

    def combine(self, block: Block, op: Op, a: Value, b: Value) -> Instruction:
        how, operands = combination(op, a, b)
        return append(block, how, a.type, operands)

    def group_items(self, once: Once) -> Instruction:
        """The number of work-items, computed in the entry block."""
        if once.size is None:
            once.size = Instruction(PassOp.GroupItems, self.size_type, (), once.function.blocks[0])
            once.function.blocks[0].instructions.insert(0, once.size)
        return once.size

    def linear_id(self, once: Once, item: Value) -> Value:
        """The linear local id of a local id with one, two or three components."""
        if item.type.kind is not Kind.VECTOR:
            return self.to_size(once, item)
        vector = self.types.vector(self.size_type, 3)
        sizes = Variable(self.types.pointer(StorageClass.Input, vector), name="__spirv_BuiltInWorkgroupSize")
        sizes.builtin = BuiltIn.WorkgroupSize
        size = append(once.end, Op.Load, vector, [sizes])
        result: Value | None = None
        for i in reversed(range(item.type.count)):
            component = append(once.end, Op.CompositeExtract, item.type.element, [item, i])
            id_ = self.to_size(once, component)
            if result is None:
                result = id_
                continue
            extent = append(once.end, Op.CompositeExtract, self.size_type, [size, i])
            scaled = append(once.end, Op.IMul, self.size_type, [result, extent])
            result = append(once.end, Op.IAdd, self.size_type, [scaled, id_])
        assert result is not None  # ids have components
        return result

    def to_size(self, once: Once, value: Value) -> Value:
        if value.type is self.size_type:
            return value
        return append(once.end, Op.UConvert, self.size_type, [value])

    def copy(self, instruction: Instruction) -> None:
        """OpGroupAsyncCopy: the stride is that of the global side, in elements."""
        once = self.start()
        self.emit_copy(once, *(self.first(once, self.pass_in(o, "copy")) for o in instruction.operands[1:5]))
        null = self.types.null(instruction.type)
        instruction.op = Op.CopyObject
        instruction.operands = [null]
        self.out.append(instruction)

    def emit_copy(self, once: Once, target: Value, source: Value, count: Value, stride: Value) -> None:
        """A copy between such values where it runs once."""
        types = self.types
        target, source = self.element_pointer(once, target), self.element_pointer(once, source)
        element = target.type.element
        if size_of(element) != size_of(source.type.element):
            raise PlanError("OpGroupAsyncCopy between elements of different sizes")
        count = self.to_size(once, count)
        if isinstance(stride, Constant) and stride.value == 1:
            one = types.constant(self.size_type, size_of(element))
            size = append(once.end, Op.IMul, self.size_type, [count, one])
            append(once.end, Op.CopyMemorySized, None, [target, source, size], _aligned(element))
        else:
            stride = self.to_size(once, stride)
            header, body, after = (Block(once.function, n) for n in ("elements", "element", "copied"))
            once.function.blocks += [header, body, after]
            before = once.end
            append(before, Op.Branch, None, [header])
            index = append(header, Op.Phi, self.size_type)
            more = append(header, Op.ULessThan, types.bool(), [index, count])
            append(header, Op.BranchConditional, None, [more, body, after])
            strided = append(body, Op.IMul, self.size_type, [index, stride])
            to_local = target.type.storage is StorageClass.Workgroup
            from_, to = (strided, index) if to_local else (index, strided)
            element_from = source.type.element
            place = append(body, Op.InBoundsPtrAccessChain, source.type, [source, from_])
            value = append(body, Op.Load, element_from, [place], _aligned(element_from))
            if element_from is not element:
                value = append(body, Op.Bitcast, element, [value])
            place = append(body, Op.InBoundsPtrAccessChain, target.type, [target, to])
            append(body, Op.Store, None, [place, value], _aligned(element))
            following = append(body, Op.IAdd, self.size_type, [index, types.constant(self.size_type, 1)])
            append(body, Op.Branch, None, [header])
            index.operands = [types.constant(self.size_type, 0), before, following, body]
            once.end = after

    def move_loop(self, loop: CopyLoop) -> None:
        """A boundary takes the loop's place; the loop itself runs once there."""
        self.block, jump = loop.before, loop.before.terminator
        self.out = loop.before.instructions[:-1]
        once = self.start()
        values: dict[Any, Any] = {v: self.first(once, self.pass_in(v, "copies")) for v in loop.outside}
        begin, leave = once.end, Block(once.function, "copied")
        copies = {block: Block(once.function, block.name) for block in loop.blocks}
        append(begin, Op.Branch, None, [copies[loop.blocks[0]]])
        ends, clones = {loop.before: begin}, []
        for block in loop.blocks:
            once.end = copies[block]
            once.function.blocks.append(once.end)
            for i in block.instructions:
                if i.op is Op.GroupAsyncCopy:
                    self.emit_copy(once, *(values[o] if o in values else o for o in i.operands[1:5]))
                if is_event(i):
                    continue
                values[i] = clone = clone_instruction(i, [], once.end)
                once.end.instructions.append(clone)
                clones.append((i, clone))
            ends[block] = once.end
        targets = copies | {loop.behind: leave}
        for i, clone in clones:
            places = ends if i.op is Op.Phi else targets
            clone.operands = [
                places[o] if isinstance(o, Block) else values.get(o, o) if isinstance(o, Instruction) else o
                for o in i.operands
            ]
        once.function.blocks.append(leave)
        once.end = leave
        self.flush()
        loop.before.instructions = [*self.out, jump]
        jump.operands = [loop.behind]
        for phi in loop.behind.phis():
            phi.operands = [loop.before if o is loop.leaving else o for o in phi.operands]
        self.forget(loop)

    def forget(self, loop: CopyLoop) -> None:
        """The blocks of the loop go; its events, which what follows may have, are null."""
        gone = set(loop.blocks)
        events = {i for block in gone for i in block.instructions if is_event(i)}
        self.function.blocks = [block for block in self.function.blocks if block not in gone]
        for block in self.function.blocks:
            for i in block.instructions:
                if not events.isdisjoint(o for o in i.operands if isinstance(o, Instruction)):
                    i.operands = [self.types.null(o.type) if o in events else o for o in i.operands]


def _aligned(type_: Type) -> MemoryAccess:
    return MemoryAccess(alignment_of(type_))
