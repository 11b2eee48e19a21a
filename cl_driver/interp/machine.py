"""Executes functions of the IR: one generator per work-item, which yields where it needs the others."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol, TypeAlias

from ..passes.ir.instructions import ACROSS_LANES, is_by_value
from ..passes.ir.layout import size_of
from ..passes.ir.library import Library
from ..passes.ir.ops import PassBuiltIn, PassOp
from ..passes.ir.plan import PrivateVariable, Slot
from ..passes.ir.shapes import ShapeInfo
from ..passes.ir.subgroup_operations import is_subgroup_operation
from ..spirv.enums import BuiltIn, Op, Scope, StorageClass
from ..spirv.module import (
    Argument,
    Block,
    Constant,
    ConstantExpr,
    Function,
    Instruction,
    Kind,
    Operand,
    Undef,
    Value,
    Variable,
)  # fmt: skip
from . import core, extensions, opencl_memory  # noqa: F401  extensions registers its rules
from . import numbers as n
from .core import from_bits
from .effects import EFFECTS
from .memory import Datum, InterpreterError, Memory, zero
from .subgroups import Builtins, Frame, Known, Request, subgroup_builtins

COLLECTIVE = frozenset(
    op for op in Op if (259 <= op <= 271 or 6401 <= op <= 6408) and op is not Op.GroupWaitEvents
)

# What lanes are asked together.
_ASKS_LANES = frozenset((PassOp.AnyLane, PassOp.AnyLaneOfPart, PassOp.FirstItem))

# Functions that only order memory: everything here happens in order.
NO_OPS = frozenset(("_Z9mem_fencej", "_Z14read_mem_fencej", "_Z15write_mem_fencej", "cld_yield"))


_TURN = 200  # blocks after which others run

# The request of a work-item that waits for nobody it knows of: it may wait for what others write to memory.
TURN: Request = Instruction(PassOp.Yield), []

# What an instruction gave, or an argument is.
Values: TypeAlias = dict[Value, Datum]
# Executes instructions up to where others are needed; is sent what they give, and returns a value.
Execution: TypeAlias = Generator[Request, Any, Datum]
# How an instruction is executed that needs nobody else: its rule, and its operands, each as (whether it is a
# value of this call, that value or what the operand always is). None: by `step`.
_Direct: TypeAlias = tuple[core.Rule, list[tuple[bool, Any]]] | None
# Sizes or positions of the three dimensions.
_Three: TypeAlias = Sequence[int]


class GroupContext(Protocol):
    """The slots of one group (run.py)."""

    items: int

    def load(self, slot: Slot, item: int) -> Datum:
        """What a slot holds for the work-item with that linear local id."""

    def store(self, slot: Slot, item: int, value: Datum) -> None:
        """Sets it."""


@dataclass(eq=False)
class Item:
    """One work-item (or the one that runs a region once per group): what its built-in variables hold."""

    builtins: Builtins = field(default_factory=dict)
    linear_id: int = 0
    exists: bool = True  # False: a lane of a tail, which runs masked off
    context: GroupContext | None = None  # for regions of a plan
    private: dict[PrivateVariable, int] = field(default_factory=dict)  # addresses
    parts: list[Item] = field(default_factory=list)  # the Items of the same lane in parts 1 and up
    trace: list[tuple[Instruction, Datum]] | None = (
        None  # (instruction, value) of all that was computed, if somebody wants to compare
    )
    frames: list[Frame] = field(default_factory=list)  # of the functions that it is in, if Machine.tracks


class Machine:
    """Memory, module variables and printed text of one run."""

    def __init__(self, library: Library | None = None) -> None:
        self.memory = Memory()
        self.printed: list[str] = []
        self.variables: dict[Variable, int] = {}  # addresses
        self.library = library
        self.shapes: ShapeInfo | None = None  # of the region that runs in lanes
        self.tracks = False  # whether sub-groups have to know where their work-items are
        self.nests: Known = {}  # what Frame knows of functions
        self.steps = 0
        self.clock = 0  # how often OpReadClockKHR was executed
        self.max_steps = 50_000_000
        self.direct: dict[Instruction, _Direct] = {}  # those that were executed
        self.named_barriers: dict[Instruction, int] = {}  # their numbers, by what makes them
        self.takes_turns = False  # whether others run where a work-item has gone on for long

    # Operands

    def constant(self, value: Constant) -> Datum:
        """The value of a constant; null is zero."""
        type_ = value.type
        if value.value is None:
            return zero(type_)
        if type_.kind is Kind.FLOAT:
            return from_bits(value.value, type_)
        if isinstance(value.value, tuple):
            return tuple(self.evaluate(part, {}, None) for part in value.value)
        return value.value

    def evaluate(self, operand: Operand, values: Values, item: Item | None) -> Datum:
        """The value of an operand; literals are themselves. InterpreterError for what is none."""
        if isinstance(operand, (Instruction, Argument)):
            return values[operand]
        if not isinstance(operand, Value):
            return operand
        if isinstance(operand, Constant):
            return self.constant(operand)
        if isinstance(operand, Variable):
            if operand.builtin is not None:
                return ("input", operand)
            return self.address_of(operand)
        if isinstance(operand, Undef):
            return zero(operand.type)
        if isinstance(operand, ConstantExpr):
            found = core.RULES.get(operand.op)
            if found is None:
                raise InterpreterError(f"constant expression {operand.op}")
            instruction = Instruction(operand.op, operand.type, operand.operands)
            return found(self, instruction, [self.evaluate(o, values, item) for o in operand.operands])
        if isinstance(operand, Function):
            return operand
        raise InterpreterError(f"operand {operand!r}")

    def address_of(self, variable: Variable) -> int:
        """Where a module variable is; it is placed when it is first asked for."""
        address = self.variables.get(variable)
        if address is None:
            address = self.place(variable)
        return address

    def place(self, variable: Variable) -> int:
        """Gives a module variable memory and its initial value."""
        type_ = variable.type.element
        address = self.memory.allocate(size_of(type_), variable.type.storage)
        self.variables[variable] = address
        if variable.initializer is not None:
            self.memory.store(type_, address, self.evaluate(variable.initializer, {}, None))
        return address

    # Execution

    def call(self, function: Function, arguments: list[Datum], item: Item) -> Execution:
        """A generator that runs a function; its return value is the function's, or a RegionExit's target.
        InterpreterError for endless loops and OpUnreachable."""
        values: Values = dict(zip(function.arguments, arguments, strict=True))
        block: Block = function.blocks[0]
        previous: Block | None = None
        allocated: list[int] = []
        frame = Frame(function, self.nests) if self.tracks else None
        visited = 0  # blocks
        known, trace = self.direct, item.trace
        if frame is not None:
            item.frames.append(frame)
        while True:
            if frame is not None:
                frame.enter(block, previous)
            phis = list(block.phis())
            if phis:
                incoming = [p.operands[2 * p.operands[1::2].index(previous)] for p in phis]
                new = [self.evaluate(o, values, item) for o in incoming]
                values.update(zip(phis, new, strict=True))
                if trace is not None:
                    trace += zip(phis, new, strict=True)
            self.steps += len(block.instructions)
            if self.steps > self.max_steps:
                raise InterpreterError("too many steps: an endless loop?")
            visited += 1
            if self.takes_turns and visited % _TURN == 0:
                yield TURN
            following: Block | None = None
            for instruction in block.instructions[len(phis) :]:
                if frame is not None:
                    frame.instruction = instruction
                direct = known[instruction] if instruction in known else self.prepare(instruction)
                if direct is not None:
                    rule, sources = direct
                    value = rule(self, instruction, [values[o] if own else o for own, o in sources])
                    values[instruction] = value
                    if trace is not None:
                        trace.append((instruction, value))
                    continue
                op = instruction.op
                if op is Op.Branch:
                    following = instruction.operands[0]
                elif op is Op.BranchConditional:
                    condition = self.evaluate(instruction.operands[0], values, item)
                    following = instruction.operands[1 if condition else 2]
                elif op is Op.Switch:
                    following = self.switch(instruction, self.evaluate(instruction.operands[0], values, item))
                elif op is Op.Return or op is Op.ReturnValue:
                    if frame is not None:
                        item.frames.pop()
                    for address in allocated:
                        self.memory.free(address)
                    return (
                        self.evaluate(instruction.operands[0], values, item) if instruction.operands else None
                    )
                elif op is PassOp.RegionExit:
                    for address in allocated:
                        self.memory.free(address)
                    return instruction.operands[0]
                elif op is Op.Unreachable:
                    raise InterpreterError("OpUnreachable was reached")
                elif op is Op.Variable:
                    address = self.memory.allocate(size_of(instruction.type.element), StorageClass.Function)
                    allocated.append(address)
                    values[instruction] = address
                    if len(instruction.operands) > 1:
                        initial = self.evaluate(instruction.operands[1], values, item)
                        self.memory.store(instruction.type.element, address, initial)
                else:
                    value = values[instruction] = yield from self.step(instruction, values, item)
                    if trace is not None:
                        trace.append((instruction, value))
            assert following is not None  # blocks end in terminators
            previous, block = block, following

    def switch(self, instruction: Instruction, selector: int) -> Block:
        """Where an OpSwitch goes for a selector."""
        default: Block
        target: Block
        _, default, *cases = instruction.operands
        for literal, target in zip(cases[::2], cases[1::2], strict=True):
            if n.mask(literal, instruction.operands[0].type.width) == selector:
                return target
        return default

    def prepare(self, instruction: Instruction) -> _Direct:
        """How an instruction is executed, as long as variables are where they are: most of an interpreter's
        time would go into finding that out again."""
        op, operands = instruction.op, instruction.operands
        rule = core.RULES.get(op)
        if op in _ADDRESS_OPS or op is Op.Load or op is Op.Store:
            if operands[0].type.storage is StorageClass.Input:  # a built-in variable, which an Item has
                rule = None
            elif op is Op.Load:
                rule = _load
            elif op is Op.Store:
                rule = _store
        found: _Direct = None
        if rule is not None and instruction.mask is None and op not in ACROSS_LANES:
            own = [isinstance(operand, (Instruction, Argument)) for operand in operands]
            always = (
                o if is_own else self.evaluate(o, {}, None) for is_own, o in zip(own, operands, strict=True)
            )
            found = rule, list(zip(own, always, strict=True))
        self.direct[instruction] = found
        return found

    def step(self, instruction: Instruction, values: Values, item: Item) -> Execution:
        """One instruction that is not a terminator. Yields at what concerns the whole group."""
        if item.parts and self.shapes is not None and instruction in self.shapes.part_of:
            item = item.parts[self.shapes.part_of[instruction] - 1]
        if instruction.op is PassOp.Yield:
            return (yield TURN)
        if instruction.op in ACROSS_LANES or instruction.op is Op.MemoryNamedBarrier:
            operands = [self.evaluate(o, values, item) for o in instruction.operands]
            active = instruction.mask is None or self.evaluate(instruction.mask, values, item)
            return (yield instruction, [active, *operands])
        if instruction.mask is not None:
            return (yield from self.masked_step(instruction, values, item))
        return (yield from self.plain_step(instruction, values, item))

    def masked_step(self, instruction: Instruction, values: Values, item: Item) -> Execution:
        """An instruction under a mask. The result of a uniform one is that of any lane that executes it."""
        type_ = instruction.type
        result = None
        active = self.evaluate(instruction.mask, values, item)
        if active:
            result = yield from self.plain_step(instruction, values, item)
        if type_ is None or type_.kind is Kind.VOID:
            return None
        if self.shapes is not None and self.shapes.is_uniform(instruction):
            return (yield instruction, [result if active else None])
        return result if active else zero(type_)

    def plain_step(self, instruction: Instruction, values: Values, item: Item) -> Execution:
        """An instruction that is executed, by the tables of rules. InterpreterError if it is in none."""
        op = instruction.op
        operands = [self.evaluate(o, values, item) for o in instruction.operands]
        rule = core.RULES.get(op)
        if rule is not None:
            if op in _ADDRESS_OPS and isinstance(operands[0], tuple):
                return ("input", operands[0][1], *operands[1:])  # a component of a built-in variable
            return rule(self, instruction, operands)
        if op is Op.Load:
            return self.load(instruction, operands[0], item)
        if op is Op.Store:
            return _store(self, instruction, operands)
        if op is Op.ExtInst:
            return opencl_memory.run_instruction(self, instruction, operands[2:])
        if op is Op.FunctionCall:
            return (yield from self.call_function(instruction, operands, item))
        if op is Op.ControlBarrier:
            return None if operands[0] == Scope.Invocation else (yield instruction, operands)
        if op in COLLECTIVE or is_subgroup_operation(instruction):
            return (yield instruction, operands)
        if op in _ASKS_LANES:
            return (yield instruction, operands)
        found = EFFECTS.get(op)
        if found is None:
            raise InterpreterError(f"{op.name} is not known to the interpreter")
        return found(self, instruction, operands, item)

    def load(self, instruction: Instruction, pointer: Datum, item: Item) -> Datum:
        """A load of memory, or of a built-in variable, whose pointer is ("input", variable, indices...)."""
        if isinstance(pointer, tuple):
            _, variable, *indices = pointer
            value = item.builtins[variable.builtin]
            type_ = instruction.type
            if type_.kind is Kind.VECTOR:
                return tuple(n.mask(v, type_.element.width) for v in value)
            return n.mask(value[indices[0]] if indices else value, type_.width)
        return self.memory.load(instruction.type, pointer)

    def call_function(self, instruction: Instruction, operands: list[Datum], item: Item) -> Execution:
        """OpFunctionCall; a declaration stands for the library's function, InterpreterError if it has
        none."""
        callee = operands[0]
        if not callee.blocks:
            name = callee.linkage[0] if callee.linkage else callee.name
            if name in NO_OPS:
                return None
            callee = self.library.function(name) if self.library else None
            if callee is None or not callee.blocks:
                raise InterpreterError(f"call of {name}, which has no body")
        arguments, copies = operands[1:], []
        for k, parameter in enumerate(callee.arguments):
            if is_by_value(parameter):
                size = size_of(parameter.type.element)
                copy = self.memory.allocate(size, StorageClass.Function)
                self.memory.copy(copy, arguments[k], size)
                arguments[k] = copy
                copies.append(copy)
        trace, item.trace = item.trace, None  # lanes go ways of their own there
        result = yield from self.call(callee, arguments, item)
        item.trace = trace
        for copy in copies:
            self.memory.free(copy)
        return result


def _load(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return machine.memory.load(instruction.type, operands[0])


def _store(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return machine.memory.store(instruction.operands[1].type, operands[0], operands[1])


_ADDRESS_OPS = (Op.AccessChain, Op.InBoundsAccessChain)


def local_index(position: Sequence[int], size: Sequence[int]) -> int:
    """The linear id of a position, dimension 0 running fastest."""
    return position[0] + size[0] * (position[1] + size[1] * position[2])


def builtin_values(
    group: _Three,
    local: _Three,
    size: _Three,
    full_size: _Three,
    global_size: _Three,
    offset: _Three,
    groups: _Three,
    work_dim: int,
    sub_group_size: int,
) -> Builtins:
    """What each built-in variable holds for one work-item."""
    position = [offset[i] + group[i] * full_size[i] + local[i] for i in range(3)]
    relative = [position[i] - offset[i] for i in range(3)]
    index = local_index(local, size)
    return {
        BuiltIn.GlobalInvocationId: position,
        BuiltIn.LocalInvocationId: local,
        BuiltIn.WorkgroupId: group,
        BuiltIn.WorkgroupSize: size,
        BuiltIn.EnqueuedWorkgroupSize: full_size,
        BuiltIn.GlobalSize: global_size,
        BuiltIn.NumWorkgroups: groups,
        BuiltIn.GlobalOffset: offset,
        PassBuiltIn.GroupOrigin: [a - b for a, b in zip(position, local, strict=True)],
        BuiltIn.WorkDim: work_dim,
        BuiltIn.LocalInvocationIndex: index,
        BuiltIn.GlobalLinearId: local_index(relative, global_size),
        **subgroup_builtins(index, prod(size), prod(full_size), sub_group_size),
    }
