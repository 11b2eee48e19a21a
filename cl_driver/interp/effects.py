"""Instructions with effects, or that look at their work-item: atomics, copies, what the passes add."""

from __future__ import annotations

import math

from ..passes.ir.layout import size_of
from ..passes.ir.ops import PassOp
from ..spirv.enums import Op
from ..spirv.module import Kind
from . import numbers as n
from .memory import zero

EFFECTS: dict = {}
"""Opcode: f(machine, instruction, operands, item) -> value."""


def _effect(*ops):
    def register(function):
        for op in ops:
            EFFECTS[op] = function
        return function

    return register


@_effect(Op.LifetimeStart, Op.LifetimeStop, Op.MemoryBarrier, Op.Nop, Op.GroupWaitEvents)
def _(machine, instruction, operands, item):
    return None


@_effect(Op.Undef)
def _(machine, instruction, operands, item):
    return zero(instruction.type)


@_effect(Op.CopyMemory)
def _(machine, instruction, operands, item):
    machine.memory.copy(operands[0], operands[1], size_of(instruction.operands[0].type.element))


@_effect(Op.CopyMemorySized)
def _(machine, instruction, operands, item):
    machine.memory.copy(*operands[:3])


# Atomics: pointer, scope, semantics, ...

_ATOMIC = {
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
def _(machine, instruction, operands, item):
    type_ = instruction.type
    old = machine.memory.load(type_, operands[0])
    new = _ATOMIC[instruction.op](old, operands[3], type_.width)
    machine.memory.store(type_, operands[0], n.mask(new, type_.width) if type_.kind is Kind.INT else new)
    return old


def _number(choose):
    """min or max by the rule of fmin and fmax: a NaN gives way to a number."""
    return lambda a, b: b if math.isnan(a) else a if math.isnan(b) else choose(a, b)


_FLOAT_ATOMIC = {
    Op.AtomicFAddEXT: lambda old, value: old + value,
    Op.AtomicFMinEXT: _number(min),
    Op.AtomicFMaxEXT: _number(max),
}


@_effect(*_FLOAT_ATOMIC)
def _(machine, instruction, operands, item):
    type_ = instruction.type
    old = machine.memory.load(type_, operands[0])
    new = n.to_width(_FLOAT_ATOMIC[instruction.op](old, operands[3]), type_.width)
    machine.memory.store(type_, operands[0], new)
    return old


@_effect(Op.AtomicIIncrement, Op.AtomicIDecrement)
def _(machine, instruction, operands, item):
    type_ = instruction.type
    old = machine.memory.load(type_, operands[0])
    step = 1 if instruction.op is Op.AtomicIIncrement else -1
    machine.memory.store(type_, operands[0], n.mask(old + step, type_.width))
    return old


@_effect(Op.AtomicLoad)
def _(machine, instruction, operands, item):
    return machine.memory.load(instruction.type, operands[0])


@_effect(Op.AtomicStore)
def _(machine, instruction, operands, item):
    machine.memory.store(instruction.operands[3].type, operands[0], operands[3])


@_effect(Op.AtomicCompareExchange, Op.AtomicCompareExchangeWeak)
def _(machine, instruction, operands, item):
    pointer, _, _, _, value, comparator = operands
    old = machine.memory.load(instruction.type, pointer)
    if old == comparator:
        machine.memory.store(instruction.type, pointer, value)
    return old


@_effect(Op.AtomicFlagTestAndSet)
def _(machine, instruction, operands, item):
    flag = machine.memory.view(operands[0], 4)
    old = any(flag)
    flag[:] = (1).to_bytes(4, "little")
    return old


@_effect(Op.AtomicFlagClear)
def _(machine, instruction, operands, item):
    machine.memory.view(operands[0], 4)[:] = bytes(4)


# What the passes add


@_effect(PassOp.SlotLoad)
def _(machine, instruction, operands, item):
    return item.context.load(instruction.operands[0], item.linear_id)


@_effect(PassOp.SlotStore)
def _(machine, instruction, operands, item):
    if item.exists:
        item.context.store(instruction.operands[0], item.linear_id, operands[1])


@_effect(PassOp.SlotLoadItem)
def _(machine, instruction, operands, item):
    return item.context.load(instruction.operands[0], operands[1])


@_effect(PassOp.SlotStoreItem)
def _(machine, instruction, operands, item):
    item.context.store(instruction.operands[0], operands[1], operands[2])


@_effect(PassOp.PrivatePointer)
def _(machine, instruction, operands, item):
    return item.private[instruction.operands[0]]


@_effect(PassOp.GroupItems)
def _(machine, instruction, operands, item):
    return item.context.items


@_effect(PassOp.EntryMask)
def _(machine, instruction, operands, item):
    return item.exists
