"""Which dimension lanes should follow: by how much addresses grow with its id, as the kernel has them before
anything is planned. Programs that take a row from dimension 0 and a column from dimension 1 have neighbours
in memory along dimension 1. It is a guess: nothing relies on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from ...spirv.enums import BuiltIn, Op, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.layout import size_of
from ...spirv.module import Argument, Constant, Function, Instruction, Kind, Type, Value, Variable
from ...spirv.tables import of_class
from ..ir.instructions import (
    ADDRESS,
    ATOMICS,
    PURE,
    block_times,
    int_value,
    is_arithmetic,
    is_constant_int,
    is_id,
)
from .vloadn import vector_access

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_SHARED = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant, StorageClass.Generic)
_SAME = frozenset((
    Op.UConvert, Op.SConvert, Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric, Op.GenericCastToPtr,
    Op.GenericCastToPtrExplicit,
))  # fmt: skip
_SUMS = frozenset((Op.IAdd, Op.ISub, Op.BitwiseOr, Op.BitwiseXor))
_SHIFTS = frozenset((Op.ShiftLeftLogical, Op.ShiftRightArithmetic, Op.ShiftRightLogical))
_EITHER = frozenset((Std.s_min, Std.s_max, Std.u_min, Std.u_max, Std.s_clamp, Std.u_clamp))
_PRODUCTS = frozenset((Std.s_mul24, Std.u_mul24, Std.s_mad24, Std.u_mad24))
_IMAGES = of_class("Image")

# Of a step that only a launch knows, and of one that does not matter as the cycle that it is of is looked at.
_FAR: Final = math.inf
_OPEN: Final = math.nan
_DEPTH = 40
_VISITS = 20_000

# What an access costs that lanes make at places of their own, where one to all, or to neighbours, costs 1;
# what a branch costs that they may take differently.
_APART = 8.0
_BRANCH = 4.0

# Iterations of a loop.
_TRIPS = 8.0

# Elements in a row of fewer, by a constant, are more likely all that there are along dimension 1.
_SHORTEST_ROW = 64

# How much less accesses must cost along dimension 1.
_GAIN = 2.0


def prefers_dimension_1(function: Function) -> bool:
    """Whether lanes along dimension 1 reach memory at so much less."""
    steps = _Steps(0), _Steps(1)
    costs = [0.0, 0.0]
    has_neighbours = False
    for block, count in block_times(function, _TRIPS):
        for i in block.instructions:
            if i.op in _IMAGES:
                return False
            if i.op is Op.BranchConditional and count > 1:
                for dimension in (0, 1):
                    costs[dimension] += count * _BRANCH * (steps[dimension].of(i.operands[0]) != 0)
            for pointer, size, index, scale in _accesses(i):
                found = [_with_index(s, pointer, index, scale) for s in steps]
                costs[0] += count * _cost(found[0], size, _SHORTEST_ROW)
                costs[1] += count * _cost(found[1], size, 2)
                has_neighbours |= found[1] is not None and 0 < abs(found[1]) <= size
    return has_neighbours and costs[0] >= _GAIN * costs[1]


def _cost(step: float | None, size: int, far: int) -> float:
    return _APART if step is None or abs(step) >= far * size else 1.0


def _accesses(i: Instruction) -> Iterable[tuple[Value, int, Value | None, int]]:
    """(pointer, bytes, index of what lies there or None, bytes that it counts) of loads and stores of memory
    that all work-items share."""
    access = vector_access(i)
    if access is not None:
        value, offset, pointer = access
        count = value.type.count if value.type.kind is Kind.VECTOR else 1
        size = size_of(value.type.element if count > 1 else value.type) * count
        yield pointer, size, offset, size
    elif i.op in (Op.Load, Op.Store) or i.op in ATOMICS:
        pointer = i.operands[0]
        if not isinstance(pointer, Variable) and pointer.type.storage in _SHARED:
            value = i.operands[1] if i.op is Op.Store else i
            yield pointer, size_of(value.type) if value.type is not None else 4, None, 0


def _with_index(steps: _Steps, pointer: Value, index: Value | None, scale: int) -> float | None:
    own = steps.of(pointer)
    return own if index is None else _sum(own, _scaled(steps.of(index), scale))


def _sum(a: float | None, b: float | None, sign: int = 1) -> float | None:
    if a is None or b is None:
        return None
    return _FAR if math.isinf(a) or math.isinf(b) else a + sign * b


def _scaled(step: float | None, by: float) -> float | None:
    return 0 if step == 0 or by == 0 else None if step is None else step * by


class _Steps:
    """By how much values grow with the id of a dimension: 0, a number, _FAR, or None if they do not steadily.

    A choice between values, by a minimum or at a join, grows as the one that grows most."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._found: dict[Value, float | None] = {}
        # Phis that are being looked at, and what is known to wait for one of them.
        self._open: set[Value] = set()
        self._waiting: set[Value] = set()
        self._visits = 0

    def of(self, value: Value) -> float | None:
        found = self._step(value, 0)
        return None if found is _OPEN else found

    def _step(self, value: Value, depth: int) -> float | None:
        if isinstance(value, Argument | Constant | Variable):
            return 0
        if not isinstance(value, Instruction) or depth > _DEPTH or self._visits > _VISITS:
            return None
        if value in self._found:
            return self._found[value]
        if value in self._open or value in self._waiting:
            return _OPEN
        self._visits += 1
        if value.op is Op.Phi:
            self._open.add(value)
        step = self._of(value, lambda operand: self._step(operand, depth + 1))
        if value.op is Op.Phi:
            self._open.discard(value)
            self._waiting.clear()
        if step is _OPEN:
            self._waiting.add(value)
        else:
            self._found[value] = step
        return step

    def _of(self, i: Instruction, step: Callable[[Value], float | None]) -> float | None:
        op, operands = i.op, i.operands
        if op is Op.CompositeExtract and is_id(operands[0]):
            is_item = operands[0].operands[0].builtin is BuiltIn.GlobalInvocationId
            return float(is_item and operands[1] == self.dimension)
        if op in ADDRESS:
            return self._of_address(i, step)
        if op in _SAME:
            return step(operands[0])
        if op is Op.Phi or op is Op.Select:
            return _most(step(o) for o in (operands[::2] if op is Op.Phi else operands[1:]))
        values = [o for o in operands if isinstance(o, Value)]
        if op is Op.ExtInst and operands[1] in _EITHER:
            return _most(step(o) for o in values)
        found = [step(o) for o in values]
        if any(s is _OPEN for s in found):
            return _OPEN
        if op in _SUMS:
            return _sum(found[0], found[1], -1 if op is Op.ISub else 1)
        if op is Op.BitwiseAnd and _is_low_mask(values[1]):
            return found[0]
        if op is Op.SNegate:
            return _scaled(found[0], -1)
        if op is Op.IMul or (op is Op.ExtInst and operands[1] in _PRODUCTS):
            product = _product(values[0], values[1], found)
            return _sum(product, found[2]) if len(found) == 3 else product
        if op in _SHIFTS and found[1] == 0:
            by = 2.0 ** (int_value(values[1]) & 63) if is_constant_int(values[1]) else _FAR
            return _scaled(found[0], by if op is Op.ShiftLeftLogical else 1 / by)
        # What all work-items of a row compute alike, or load from one place.
        alike = op in PURE or is_arithmetic(i) or op is Op.Load
        return 0 if alike and all(s == 0 for s in found) else None

    def _of_address(self, chain: Instruction, step: Callable[[Value], float | None]) -> float | None:
        """Members of structures are constants from where these begin."""
        base, *indices = chain.operands
        type_, total = base.type.element, step(base)
        for number, index in enumerate(indices):
            if not isinstance(type_, Type):
                return None
            if number or chain.op not in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
                if type_.kind is Kind.STRUCT:
                    type_ = type_.members[int_value(index)]
                    continue
                type_ = type_.element
            each = step(index)
            if total is _OPEN or each is _OPEN:
                return _OPEN
            total = _sum(total, _scaled(each, size_of(type_)))
        return total


def _is_low_mask(value: Value) -> bool:
    """Whether it cuts no more than what an int that is not negative has no bits in."""
    bits = int_value(value) if is_constant_int(value) else 0
    return bits >= 0x7FFFFFFF and bits & (bits + 1) == 0


def _product(a: Value, b: Value, steps: list[float | None]) -> float | None:
    if steps[0] == 0 == steps[1]:
        return 0
    if None in steps[:2] or 0 not in steps[:2]:
        return None
    factor, step = (a, steps[1]) if steps[0] == 0 else (b, steps[0])
    return _scaled(step, float(int_value(factor)) if is_constant_int(factor) else _FAR)


def _most(steps: Iterable[float | None]) -> float | None:
    most = _OPEN
    for step in steps:
        if step is None:
            return None
        if step is not _OPEN and (most is _OPEN or abs(step) > abs(most)):
            most = step
    return most
