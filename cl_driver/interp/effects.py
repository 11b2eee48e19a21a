"""Instructions with effects, or that look at their work-item: atomics, copies, what the passes add."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ..passes.ir.layout import size_of
from ..passes.ir.ops import BARRIER_BITS, PassOp
from ..spirv.enums import Op, StorageClass
from ..spirv.module import Instruction, Kind
from . import numbers as n
from .core import Scalar
from .memory import Datum, zero

if TYPE_CHECKING:
    from .machine import GroupContext, Item, Machine

# As core.Rule, of what looks at the work-item, too.
Effect: TypeAlias = "Callable[[Machine, Instruction, list[Datum], Item], Datum]"

EFFECTS: dict[Op, Effect] = {}


def _effect(*ops: Op) -> Callable[[Effect], Effect]:
    def register(function: Effect) -> Effect:
        for op in ops:
            EFFECTS[op] = function
        return function

    return register


@_effect(
    Op.LifetimeStart, Op.LifetimeStop, Op.MemoryBarrier, Op.Nop, Op.GroupWaitEvents,
    Op.ControlBarrierArriveINTEL,
)  # fmt: skip
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    return None


@_effect(Op.VariableLengthArrayINTEL)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    size = operands[0] * size_of(instruction.type.element)
    return machine.memory.allocate(size, StorageClass.Function)


@_effect(Op.SaveMemoryINTEL, Op.RestoreMemoryINTEL)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    return 0  # memory is not scarce here


@_effect(Op.NamedBarrierInitialize)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    number = machine.named_barriers.setdefault(instruction, len(machine.named_barriers))
    return operands[0] << BARRIER_BITS | number


@_effect(Op.Undef)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    return zero(instruction.type)


@_effect(Op.CopyMemory)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> None:
    machine.memory.copy(operands[0], operands[1], size_of(instruction.operands[0].type.element))


@_effect(Op.CopyMemorySized)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> None:
    machine.memory.copy(*operands[:3])


# Atomics: pointer, scope, semantics, ...

_ATOMIC: dict[Op, Scalar] = {
    Op.AtomicExchange: lambda old, value, w: value,
    Op.AtomicIAdd: lambda old, value, w: old + value,
    Op.AtomicISub: lambda old, value, w: old - value,
    Op.AtomicSMin: lambda old, value, w: min(n.signed(old, w), n.signed(value, w)),
    Op.AtomicUMin: lambda old, value, w: min(old, value),
    Op.AtomicSMax: lambda old, value, w: max(n.signed(old, w), n.signed(value, w)),
    Op.AtomicUMax: lambda old, value, w: max(old, value),
    Op.AtomicAnd: lambda old, value, w: old & value,
    Op.AtomicOr: lambda old, value, w: old | value,
    Op.AtomicXor: lambda old, value, w: old ^ value,
}


@_effect(*_ATOMIC)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    type_ = instruction.type
    old = machine.memory.load(type_, operands[0])
    new = _ATOMIC[instruction.op](old, operands[3], type_.width)
    machine.memory.store(type_, operands[0], n.mask(new, type_.width) if type_.kind is Kind.INT else new)
    return old


def _number(choose: Scalar) -> Scalar:
    """min or max by the rule of fmin and fmax: a NaN gives way to a number."""
    return lambda a, b: b if math.isnan(a) else a if math.isnan(b) else choose(a, b)


_FLOAT_ATOMIC: dict[Op, Scalar] = {
    Op.AtomicFAddEXT: lambda old, value: old + value,
    Op.AtomicFMinEXT: _number(min),
    Op.AtomicFMaxEXT: _number(max),
}


@_effect(*_FLOAT_ATOMIC)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    type_ = instruction.type
    old = machine.memory.load(type_, operands[0])
    new = n.to_width(_FLOAT_ATOMIC[instruction.op](old, operands[3]), type_.width)
    machine.memory.store(type_, operands[0], new)
    return old


@_effect(Op.AtomicIIncrement, Op.AtomicIDecrement)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    type_ = instruction.type
    old = machine.memory.load(type_, operands[0])
    step = 1 if instruction.op is Op.AtomicIIncrement else -1
    machine.memory.store(type_, operands[0], n.mask(old + step, type_.width))
    return old


@_effect(Op.AtomicLoad)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    return machine.memory.load(instruction.type, operands[0])


@_effect(Op.AtomicStore)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> None:
    machine.memory.store(instruction.operands[3].type, operands[0], operands[3])


@_effect(Op.AtomicCompareExchange, Op.AtomicCompareExchangeWeak)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    pointer, _, _, _, value, comparator = operands
    old = machine.memory.load(instruction.type, pointer)
    if old == comparator:
        machine.memory.store(instruction.type, pointer, value)
    return old


@_effect(Op.AtomicFlagTestAndSet)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    flag = machine.memory.view(operands[0], 4)
    old = any(flag)
    flag[:] = (1).to_bytes(4, "little")
    return old


@_effect(Op.AtomicFlagClear)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> None:
    machine.memory.view(operands[0], 4)[:] = bytes(4)


# What the passes add


def _context(item: Item) -> GroupContext:
    assert item.context is not None  # regions of plans have one
    return item.context


@_effect(PassOp.SlotLoad)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    return _context(item).load(instruction.operands[0], item.linear_id)


@_effect(PassOp.SlotStore)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> None:
    if item.exists:
        _context(item).store(instruction.operands[0], item.linear_id, operands[1])


@_effect(PassOp.SlotLoadItem)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    return _context(item).load(instruction.operands[0], operands[1])


@_effect(PassOp.SlotStoreItem)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> None:
    _context(item).store(instruction.operands[0], operands[1], operands[2])


@_effect(PassOp.PrivatePointer)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    return item.private[instruction.operands[0]]


@_effect(PassOp.GroupItems)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    return _context(item).items


@_effect(PassOp.EntryMask)
def _(machine: Machine, instruction: Instruction, operands: list[Datum], item: Item) -> Datum:
    return item.exists
