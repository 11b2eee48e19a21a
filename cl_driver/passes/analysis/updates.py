"""Values in memory that are read, changed and written back to where they were: a histogram's bins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...records import record
from ...spirv.enums import Op, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Function, Instruction, Kind, Operand, Type, Value
from ..ir.instructions import EXTINST_WITH_EFFECT, PURE
from .roots import Root, roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # Instructions that a value is an operand or the mask of.
    Users: TypeAlias = dict[Operand, list[Instruction]]

_MOST_OPERATIONS = 3
_OPERATIONS = frozenset((
    Op.IAdd, Op.ISub, Op.FAdd, Op.FSub, Op.FMul, Op.BitwiseAnd, Op.BitwiseOr, Op.BitwiseXor, Op.Not,
    Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.ShiftRightArithmetic,
))  # fmt: skip
_EXTENDED = frozenset((
    Std.fma, Std.mad, Std.fmax, Std.fmin, Std.fmax_common, Std.fmin_common, Std.s_max, Std.s_min, Std.u_max,
    Std.u_min,
))  # fmt: skip
_NUMBERS = (Kind.INT, Kind.FLOAT)


@record(frozen=True, eq=False)
class Update:
    """operations: what is computed of the loaded value, one of the other; nothing else uses any of them."""

    load: Instruction
    operations: list[Instruction]
    store: Instruction

    @property
    def instructions(self) -> list[Instruction]:
        """All of them, in order."""
        return [self.load, *self.operations, self.store]

    def taken(self, is_apart: Callable[[Value], bool]) -> int:
        """Operands that are not what it changes, of which lanes have values of their own."""
        return sum(is_apart(o) for operation in self.operations for o in self.others(operation))

    def others(self, operation: Instruction) -> list[Value]:
        """The operands of an operation that are not what it changes."""
        changed = {self.load, *self.operations}
        return [o for o in arguments_of(operation) if o not in changed]


def arguments_of(operation: Instruction) -> list[Value]:
    """The operands that an operation computes with."""
    return list(operation.operands[2:] if operation.op is Op.ExtInst else operation.operands)


def find_updates(instructions: Sequence[Instruction], function: Function) -> list[Update]:
    """The updates among instructions of one block, whose loads may as well be made where their stores are."""
    pairs = _pairs(instructions)
    if not pairs:
        return []
    users, here = _users(function), set(instructions)
    found = []
    for load, store in pairs:
        operations = _operations(load, store, users)
        if operations and here.issuperset(operations):
            found.append(Update(load, operations, store))
    return found


def _pairs(instructions: Sequence[Instruction]) -> list[tuple[Instruction, Instruction]]:
    """Loads and stores of a pointer under one mask, with no write between them to what is loaded."""
    stored = {i.operands[0] for i in instructions if i.op is Op.Store}
    loads: dict[Value, Instruction] = {}
    found = []
    for i in instructions:
        if i.op is Op.Load:
            if i.operands[0] in stored and _is_plain(i, i.type):
                loads[i.operands[0]] = i
        elif i.op is Op.Store:
            pointer, value = i.operands[:2]
            load = loads.pop(pointer, None)
            if load is not None and load.mask is i.mask and _is_plain(i, value.type):
                found.append((load, i))
            if loads:
                written = roots(pointer)
                loads = {p: load for p, load in loads.items() if _are_apart(p, pointer, written)}
        elif loads and i.op not in PURE and not _has_no_effect(i):
            loads.clear()
    return found


def _has_no_effect(i: Instruction) -> bool:
    return i.op is Op.ExtInst and i.operands[1] not in EXTINST_WITH_EFFECT


def _is_plain(i: Instruction, type_: Type) -> bool:
    if i.memory is not None and i.memory.volatile:
        return False
    return type_.kind in _NUMBERS or (type_.kind is Kind.VECTOR and type_.element.kind in _NUMBERS)


def _are_apart(one: Value, other: Value, of_other: frozenset[Root] | None) -> bool:
    """Whether what two pointers point to is certainly in different variables, of which at least one is the
    work-item's own."""
    if StorageClass.Function not in (one.type.storage, other.type.storage):
        return False
    of_one = roots(one)
    if of_one is None or of_other is None:
        return False
    own = [all(isinstance(r, Instruction) for r in found) for found in (of_one, of_other)]
    return any(own) and not of_one & of_other


def _users(function: Function) -> Users:
    users: Users = {}
    for block in function.blocks:
        for i in block.instructions:
            for operand in dict.fromkeys((*i.operands, i.mask)):
                if isinstance(operand, Instruction):
                    users.setdefault(operand, []).append(i)
    return users


def _operations(load: Instruction, store: Instruction, users: Users) -> list[Instruction]:
    """The operations from what is loaded to what is stored; none if there is anything else."""
    found: list[Instruction] = []
    value = load
    while len(found) <= _MOST_OPERATIONS:
        own = users.get(value, [])
        if len(own) != 1:
            break
        (user,) = own
        if user is store:
            return found
        is_known = user.op in _OPERATIONS or (user.op is Op.ExtInst and user.operands[1] in _EXTENDED)
        if not is_known or user.mask is not None or user.type is not load.type:
            break
        found.append(user)
        value = user
    return []
