"""Runs kernels: a module's entry point as it is (before any pass), or a KernelPlan."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

from ..passes.ir.instructions import ACROSS_LANES, is_by_value
from ..passes.ir.layout import size_of
from ..passes.ir.library import Library
from ..passes.ir.ops import BARRIER_BITS, REGION_END, PassBuiltIn, PassOp
from ..passes.ir.plan import KernelPlan, Region, Slot
from ..passes.ir.subgroup_operations import uses_subgroups
from ..spirv.enums import BuiltIn, Op, Scope, StorageClass
from ..spirv.module import Argument, Function, Instruction, Kind, Module, Type
from ..spirv.reflect import called
from . import numbers as n
from .collectives import combine_collective
from .machine import TURN, Item, Machine, _Three, builtin_values, local_index
from .memory import Datum, InterpreterError, zero
from .subgroups import Builtins, across_lanes, active_items, answer_subgroup, items_that_meet
from .traces import check_traces

# Runs a vector of work-items. It yields a named barrier where it waits for others, None where these may go
# on, and returns the regions that it goes on to.
Vector: TypeAlias = Generator[int | None, None, set[int]]


@dataclass(frozen=True)
class Local:
    """A kernel argument in local memory: so many bytes."""

    size: int


@dataclass
class Result:
    """What a run leaves besides the buffers."""

    printed: list[str] = field(default_factory=list)


def run(
    module: Module,
    kernel_name: str,
    args: list[Any],
    global_size: _Three,
    local_size: _Three,
    global_offset: _Three = (0, 0, 0),
    library: Library | None = None,
    sub_group_size: int = 1,
) -> Result:
    """Runs an entry point of a module, instruction by instruction as the reader made it.

    args: for pointers and pipes anything with a writable buffer (numpy arrays), which is changed in place;
    Local(bytes) for local pointers; numbers; tuples for vectors; bytes for structures by value; None is a
    null pointer.
    sub_group_size: work-items per sub-group. Those that stand at one instruction, in the same iterations of
    the loops around it, while all others are further on, are the active ones of a sub-group's operation.
    Sizes are tuples of one to three numbers. Raises InterpreterError for undefined behaviour that it meets.
    """
    entry_point = next(e for e in module.entry_points if e.name == kernel_name)
    machine = Machine(library)
    machine.tracks = uses_subgroups(called(entry_point.function))
    arguments = entry_point.function.arguments
    launch = _Launch(machine, arguments, args, global_size, local_size, global_offset, sub_group_size)
    return launch.run(_DirectGroup(entry_point.function, sub_group_size))


def run_plan(
    plan: KernelPlan,
    args: list[Any],
    global_size: _Three,
    local_size: _Three,
    global_offset: _Three = (0, 0, 0),
    library: Library | None = None,
    check_shapes: bool = False,
) -> Result:
    """Runs a KernelPlan the same way, at its width.

    check_shapes: compares all values of all lanes with the shapes that the plan claims (slow).
    """
    width = plan.options.width
    launch = _Launch(Machine(library), plan.arguments, args, global_size, local_size, global_offset, width)
    return launch.run(_PlanGroup(plan, check_shapes))


class _Launch:
    def __init__(
        self,
        machine: Machine,
        parameters: list[Argument],
        args: list[Any],
        global_size: _Three,
        local_size: _Three,
        global_offset: _Three,
        sub_group_size: int,
    ) -> None:
        self.sub_group_size = sub_group_size
        self.machine = machine
        self.parameters = parameters
        self.args = args
        self.work_dim = len(global_size)
        self.global_size = _three(global_size, 1)
        self.local_size = _three(local_size, 1)
        self.offset = _three(global_offset, 0)
        if len(args) != len(parameters):
            raise InterpreterError(f"{len(args)} arguments for {len(parameters)} parameters")

    def run(self, group_runner: _DirectGroup | _PlanGroup) -> Result:
        groups = [-(-g // s) for g, s in zip(self.global_size, self.local_size, strict=True)]
        values = [self.argument(p, a) for p, a in zip(self.parameters, self.args, strict=True)]
        for z, y, x in product(*(range(g) for g in reversed(groups))):
            self.run_group((x, y, z), groups, values, group_runner)
        return Result(self.machine.printed)

    def run_group(
        self, group: _Three, groups: _Three, values: list[Datum], group_runner: _DirectGroup | _PlanGroup
    ) -> None:
        full = self.local_size
        size = [min(full[i], self.global_size[i] - group[i] * full[i]) for i in range(3)]
        memory = self.machine.memory
        arguments, freed = [], []
        for parameter, value in zip(self.parameters, values, strict=True):
            if isinstance(value, Local):
                value = memory.allocate(value.size, parameter.type.storage)
                freed.append(value)
            arguments.append(value)
        variables = self.machine.variables
        for variable in [v for v in variables if v.type.storage is StorageClass.Workgroup]:
            memory.free(variables.pop(variable))
            self.machine.direct.clear()  # it has the variable's address
        items = []
        for z, y, x in product(*(range(s) for s in reversed(size))):
            builtins = builtin_values(
                group,
                (x, y, z),
                size,
                full,
                self.global_size,
                self.offset,
                groups,
                self.work_dim,
                self.sub_group_size,
            )
            items.append(Item(builtins, local_index((x, y, z), size)))
        group_runner.run(self.machine, items, arguments, size)
        for address in freed:
            memory.free(address)

    def argument(self, parameter: Argument, value: Any) -> Any:
        """An argument as the interpreter's value; Local stays, for each group has its own."""
        type_ = parameter.type
        is_pipe = type_.kind is Kind.OPAQUE and type_.op is Op.TypePipe
        is_memory = is_pipe or type_.kind is Kind.POINTER
        if isinstance(value, Local) or is_by_value(parameter) or not is_memory:
            return self.plain(parameter, type_, value)
        if value is None:
            return 0
        storage = StorageClass.CrossWorkgroup if is_pipe else type_.storage
        return self.machine.memory.adopt(memoryview(value).cast("B"), storage)

    def plain(self, parameter: Argument, type_: Type, value: Any) -> Any:
        if isinstance(value, Local):
            return value
        if is_by_value(parameter):
            data = bytearray(size_of(type_.element))
            given = bytes(value)
            data[: len(given)] = given
            return self.machine.memory.adopt(memoryview(data), StorageClass.Function)
        if type_.kind is Kind.VECTOR:
            return tuple(self.plain(parameter, type_.element, v) for v in value)
        if type_.kind is Kind.FLOAT:
            return n.to_width(float(value), type_.width)
        if type_.kind is Kind.BOOL:
            return bool(value)
        if type_.kind is Kind.STRUCT or type_.kind is Kind.ARRAY:
            return value
        return n.mask(int(value), type_.width if type_.kind is Kind.INT else 64)


def _three(size: Iterable[int], fill: int) -> tuple[int, ...]:
    numbers = tuple(int(s) for s in size)
    return numbers + (fill,) * (3 - len(numbers))


class _DirectGroup:
    """Work-items as coroutines that meet at barriers and collectives."""

    def __init__(self, function: Function, sub_group_size: int) -> None:
        self.function = function
        self.sub_group_size = sub_group_size

    def run(self, machine: Machine, items: list[Item], arguments: list[Datum], size: _Three) -> None:
        machine.takes_turns = True
        waiting = [machine.call(self.function, self.own(machine, arguments), item) for item in items]
        answers: list[Datum] = [None] * len(items)
        requests: list[Any] = [None] * len(items)
        moving = list(range(len(items)))
        while True:
            for k in moving:
                try:
                    requests[k] = waiting[k].send(answers[k])
                except StopIteration:
                    requests[k] = None
            going = [k for k, r in enumerate(requests) if r is not None]
            if not going:
                return
            moving = active_items(items, requests, self.sub_group_size)
            if moving:
                instruction = requests[moving[0]][0]
                asked = [(items[k].builtins, requests[k][1]) for k in moving]
                for k, answer in zip(moving, answer_subgroup(machine, instruction, asked), strict=True):
                    answers[k] = answer
            # Who takes turns asks for nothing.
            moving += [k for k in going if requests[k] is TURN]
            if not moving:
                moving = items_that_meet(items, requests, self.sub_group_size)
            if moving:
                continue
            moving = going
            if len({requests[k][0] for k in going}) != 1:
                raise InterpreterError("the work-items of a group wait at different barriers")
            instruction = requests[going[0]][0]
            if instruction.op is Op.MemoryNamedBarrier:
                raise InterpreterError("too few sub-groups come to a named barrier")
            if len(going) < len(items) and instruction.op is not Op.ControlBarrier:
                raise InterpreterError(f"{instruction.op.name} is not met by all work-items")
            # Work-items that have returned are as good as waiting, which the specification does not demand.
            operands = [requests[k][1] for k in going]
            for k, answer in zip(going, _answer(machine, instruction, operands, size), strict=True):
                answers[k] = answer

    def own(self, machine: Machine, arguments: list[Datum]) -> list[Datum]:
        """By-value structures are each work-item's own."""
        result = []
        for parameter, value in zip(self.function.arguments, arguments, strict=True):
            if is_by_value(parameter):
                pointee = parameter.type.element
                address = machine.memory.allocate(size_of(pointee), StorageClass.Function)
                machine.memory.copy(address, value, size_of(pointee))
                value = address
            result.append(value)
        return result


def _answer(
    machine: Machine, instruction: Instruction, operands: list[list[Datum]], size: _Three
) -> list[Datum]:
    """What each work-item gets from a barrier or collective."""
    op = instruction.op
    if op is Op.ControlBarrier:
        return [None] * len(operands)
    if op is Op.GroupBroadcast:
        where = operands[0][2]
        position = _three(where if isinstance(where, tuple) else (where,), 0)
        return [operands[local_index(position, size)][1]] * len(operands)
    if op is Op.GroupAsyncCopy:
        _, target, source, count, stride, _ = operands[0]
        element = instruction.operands[1].type.element
        while element.kind is Kind.ARRAY:  # clang passes a pointer to the whole array; its elements are meant
            element = element.element
        step = size_of(element)
        to_local = instruction.operands[1].type.storage is StorageClass.Workgroup
        for i in range(count):
            far, near = i * stride * step, i * step
            machine.memory.copy(
                *((target + near, source + far) if to_local else (target + far, source + near)), step
            )
        return [0] * len(operands)
    return combine_collective(instruction, operands)


class Context:
    """The slots of one group."""

    def __init__(self, items: int, returned: Slot | None = None) -> None:
        self.items = items
        self.returned = returned  # the slot that says which work-items have returned, or None
        self.values: dict[tuple[Slot, int], Datum] = {}
        self.before: dict[
            tuple[Slot, int], Datum
        ] = {}  # the uniform slots as they were when the group came to its region

    def begin_region(self) -> None:
        """From now on uniform slots are read as they are now."""
        self.before = {key: value for key, value in self.values.items() if key[0].uniform}

    def load(self, slot: Slot, item: int) -> Datum:
        """What a slot holds; zero if the work-item has returned. InterpreterError if it was never set."""
        try:
            return self.before[slot, 0] if slot.uniform else self.values[slot, item]
        except KeyError:
            if self.returned is not None and self.values.get((self.returned, item)):
                return zero(slot.type)
            raise InterpreterError(f"slot {slot.index} {slot.name} is read before it is set") from None

    def store(self, slot: Slot, item: int, value: Datum) -> None:
        """Sets a slot; a uniform one for the whole group."""
        self.values[slot, 0 if slot.uniform else item] = value


class _AbsentContext:
    """What a lane without a work-item sees of the context: the first lane's values as they were."""

    def __init__(self, context: Context, first: int) -> None:
        self.items = context.items
        self.values = {slot: v for (slot, item), v in context.values.items() if item == first}
        self.values.update({slot: v for (slot, _), v in context.before.items()})

    def load(self, slot: Slot, item: int) -> Datum:
        return self.values.get(slot, zero(slot.type))

    def store(self, slot: Slot, item: int, value: Datum) -> None:
        raise AssertionError("a lane without a work-item stores nothing")


class _PlanGroup:
    """Regions one after the other; each runs its work-items in vectors of the plan's width."""

    def __init__(self, plan: KernelPlan, check_shapes: bool) -> None:
        self.plan = plan
        self.check_shapes = check_shapes

    def run(self, machine: Machine, items: list[Item], arguments: list[Datum], size: _Three) -> None:
        context = Context(len(items), self.plan.returned)
        for item in items:
            item.context = context
            for variable in self.plan.private_variables:
                address = machine.memory.allocate(variable.size, StorageClass.Function)
                item.private[variable] = address
        index = 0
        while index != REGION_END:
            region = self.plan.regions[index]
            context.begin_region()
            if region.once:
                once = Item(items[0].builtins, 0, True, context)
                (index,) = self.in_turns([self.lanes(machine, region, [once], arguments)])
                continue
            vectors = [self.lanes(machine, region, v, arguments) for v in self.vectors(items, size)]
            exits = self.in_turns(vectors)
            exits.discard(REGION_END)  # work-items that have returned have no say
            if len(exits) > 1:
                raise InterpreterError(f"work-items leave region {index} to different regions {exits}")
            index = exits.pop() if exits else REGION_END
        for item in items:
            for address in item.private.values():
                machine.memory.free(address)

    def vectors(self, items: list[Item], size: _Three) -> Iterator[list[Item]]:
        """The lanes of part 0, with those of the other parts: neighbours along dimension 0 or the linear
        local id, and parts along part_axis. Tails are filled up."""
        options = self.plan.options
        width, parts = options.width, options.parts
        row = len(items) if options.linear_lanes else size[0]
        along_x = options.part_axis == 0 or options.linear_lanes
        rows, step = (1, width * parts) if along_x else (parts, width)
        for plane in range(0, len(items), len(items) if options.linear_lanes else size[0] * size[1]):
            plane_end = len(items) if options.linear_lanes else plane + size[0] * size[1]
            for start in range(plane, plane_end, row * rows):
                for x in range(0, row, step):
                    vectors = [
                        self.vector(items, start + x, row - x, plane_end, p * width, 0)
                        if along_x
                        else self.vector(items, start + x, row - x, plane_end, 0, p * row)
                        for p in range(parts)
                    ]
                    for lane, others in zip(vectors[0], zip(*vectors[1:], strict=True), strict=False):
                        lane.parts = list(others)
                    yield vectors[0]

    def vector(self, items: list[Item], origin: int, left: int, end: int, x: int, rows: int) -> list[Item]:
        """The lanes of a part x work-items, or items in whole rows, behind the origin; left: in its row."""
        first = items[origin]
        found = [
            items[origin + rows + x + lane]
            if x + lane < left and origin + rows < end
            else self.absent(first, x + lane, rows)
            for lane in range(self.plan.options.width)
        ]
        for lane, item in enumerate(found):
            item.builtins[PassBuiltIn.Lane] = lane
        return found

    def absent(self, first: Item, x: int, rows: int) -> Item:
        """A lane behind the end: it has an id as if it existed, and somebody else's memory."""
        assert isinstance(first.context, Context)
        context = _AbsentContext(first.context, first.linear_id)
        builtins = dict(first.builtins)
        for builtin in (BuiltIn.GlobalInvocationId, BuiltIn.LocalInvocationId):
            i, j, k = builtins[builtin]
            builtins[builtin] = (i + x, j + (rows > 0 and self.part_rows(rows, builtins)), k)
        for builtin in (BuiltIn.LocalInvocationIndex, BuiltIn.GlobalLinearId):
            builtins[builtin] += x + rows
        return Item(builtins, first.linear_id, False, context, dict(first.private))

    def part_rows(self, items: int, builtins: Builtins) -> int:
        """Rows that so many work-items are."""
        row: int = builtins[BuiltIn.WorkgroupSize][0]
        return items // max(1, row)

    def in_turns(self, vectors: list[Vector]) -> set[int]:
        """Runs vectors to their ends, one after the other where they need not wait for one another. Gives
        where they exit to."""
        exits: set[int] = set()
        met: dict[int, list[Vector]] = {}  # at named barriers
        while vectors:
            going: list[Vector] = []
            for vector in vectors:
                try:
                    barrier = next(vector)
                except StopIteration as stop:
                    exits |= stop.value
                    continue
                there = going if barrier is None else met.setdefault(barrier, [])
                there.append(vector)
                if barrier is not None and len(there) >= barrier >> BARRIER_BITS:
                    going += met.pop(barrier)
            vectors = going
        if met:
            raise InterpreterError("too few sub-groups come to a named barrier")
        return exits

    def lanes(self, machine: Machine, region: Region, vector: list[Item], arguments: list[Datum]) -> Vector:
        """Runs one vector in lockstep where the lanes ask about one another, up to where others may go on;
        returns where they exit to."""
        machine.shapes = region.shapes if self.plan.options.width > 1 and not region.once else None
        if self.check_shapes:
            for item in vector:
                item.trace = []
        generators = [machine.call(region.function, arguments, item) for item in vector]
        answers: list[Datum] = [None] * len(vector)
        while True:
            requests, exits = [], []
            for generator, answer in zip(generators, answers, strict=True):
                try:
                    requests.append(generator.send(answer))
                except StopIteration as stop:
                    exits.append(stop.value)
            if not requests:
                if self.check_shapes:
                    check_traces(region.shapes, vector)
                return {e for e, item in zip(exits, vector, strict=True) if item.exists}
            if exits or len({r[0] for r in requests}) != 1:
                raise InterpreterError("the lanes of a vector are not in lockstep")
            op = requests[0][0].op
            if op is PassOp.Yield:
                yield None
                answers = [None] * len(vector)
            elif op is Op.MemoryNamedBarrier:
                yield from {barrier for _, (active, barrier, *_) in requests if active}
                answers = [None] * len(vector)
            elif op in ACROSS_LANES:
                answers = across_lanes(requests[0][0], [r[1] for r in requests])
            else:
                answers = [self.answer(requests[0][0], [r[1][0] for r in requests])] * len(vector)

    def answer(self, instruction: Instruction, values: list[Datum]) -> Datum:
        """What all lanes get: whether a mask has a lane, or the result of the lanes that acted."""
        if instruction.op is PassOp.AnyLane or instruction.op is PassOp.AnyLaneOfPart:
            return any(values)
        if instruction.op is PassOp.FirstItem:
            return values[0]
        if instruction.op is Op.ControlBarrier and values[0] == Scope.Subgroup:
            return None  # they have met
        if instruction.mask is None:
            raise InterpreterError(f"{instruction.op.name} inside of a region")
        results = [v for v in values if v is not None]
        if len(set(results)) > 1:
            raise InterpreterError(f"{instruction.op.name} is not uniform: {results}")
        return results[0] if results else zero(instruction.type)
