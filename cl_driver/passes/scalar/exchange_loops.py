"""Updates by compare and exchange become atomics of what they calculate, if there is one.

    do { old = *p; } while (atomic_cmpxchg(p, old, old + x) != old);    =>    old = atomic_add(p, x)

So do OpenCL C programs add floats, for which the language has no atomic. Where nothing comes between the load
and the exchange, which work-items of one thread may always say, the exchange succeeds. With lanes, those that
meet at one place would have to try again one after the other, all of them each time.

What was loaded may serve for nothing else before the exchange: a lane's turn comes later, and what it then
finds is another value.
"""

from __future__ import annotations

from ...records import record
from ...spirv.enums import Op, OpenCLStd
from ...spirv.module import Block, Function, Instruction, Kind, Operand, Type, Value
from ...spirv.types import TypeTable
from ..analysis.spin_locks import address_key
from ..ir.dominance import DominatorTree, dominators
from ..ir.instructions import PURE, is_arithmetic, predecessors, replace_instructions, users

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

_EXCHANGES = (Op.AtomicCompareExchange, Op.AtomicCompareExchangeWeak)

_FLOATS = {Op.FAdd: Op.AtomicFAddEXT}
_INTEGERS = {
    Op.IAdd: Op.AtomicIAdd, Op.ISub: Op.AtomicISub, Op.BitwiseAnd: Op.AtomicAnd, Op.BitwiseOr: Op.AtomicOr,
    Op.BitwiseXor: Op.AtomicXor,
}  # fmt: skip
_FUNCTIONS = {
    OpenCLStd.s_min: Op.AtomicSMin, OpenCLStd.s_max: Op.AtomicSMax, OpenCLStd.u_min: Op.AtomicUMin,
    OpenCLStd.u_max: Op.AtomicUMax, OpenCLStd.fmin: Op.AtomicFMinEXT, OpenCLStd.fmax: Op.AtomicFMaxEXT,
}  # fmt: skip
_ORDERED = frozenset((Op.ISub,))  # what is loaded must be the first operand

_LOADS = (Op.Load, Op.AtomicLoad)


@record(slots=True)
class _Update:
    """An exchange; `old`: what was loaded, or the phi of that and of what the exchange gave the last time;
    `new`: what is calculated of it, and of operand number `other`; `same`: the bits of `old` and `new`, and
    what they were made of."""

    exchange: Instruction
    load: Instruction
    old: Instruction
    new: Instruction
    atomic: Op
    other: int
    same: dict[Instruction, None]


Users: TypeAlias = dict[Value, list[Instruction]]


def replace_exchanges(function: Function, types: TypeTable) -> bool:
    """Changes a function in place. True if there were any: conditions are then constants."""
    exchanges = [i for block in function.blocks for i in block.instructions if i.op in _EXCHANGES]
    if not exchanges:
        return False
    used_by, before = users(function), predecessors(function)
    possible = (_find(exchange, used_by) for exchange in exchanges)
    updates = [update for update in possible if update is not None and _is_uninterrupted(update, before)]
    if not updates:
        return False
    tree = dominators(function)
    # Whether one update may be replaced does not depend on others: nothing of another comes between its load
    # and its exchange.
    updates = [update for update in updates if _is_used_later_only(update, used_by, tree)]
    replaced: dict[Value, Value] = {}
    for update in updates:
        replaced |= _replace(types, update, used_by, tree)
    return replace_instructions(function, replaced)


def _stripped(value: Operand) -> Operand:
    """What the bits of a value are those of."""
    while type(value) is Instruction and value.op in (Op.Bitcast, Op.CopyObject):
        value = value.operands[0]
    return value


def _find(exchange: Instruction, used_by: Users) -> _Update | None:
    """The update that an exchange may be the end of."""
    old, new = _stripped(exchange.operands[5]), _stripped(exchange.operands[4])
    if type(old) is not Instruction or type(new) is not Instruction:
        return None
    load: Operand = old
    if old.op is Op.Phi:
        load = _first_of_loop(old, exchange)
    if type(load) is not Instruction or load.op not in _LOADS or load.type.width != exchange.type.width:
        return None
    if address_key(load.operands[0]) != address_key(exchange.operands[0]):
        return None
    first, atomic = 0, None
    if new.op is Op.ExtInst:
        first, atomic = 2, _FUNCTIONS.get(new.operands[1])
    elif new.type.kind is Kind.FLOAT:
        atomic = _FLOATS.get(new.op)
    elif new.type.kind is Kind.INT:
        atomic = _INTEGERS.get(new.op)
    if atomic is None:
        return None
    a, b = new.operands[first:]
    is_first, is_second = _stripped(a) is old, _stripped(b) is old
    if is_first == is_second or (is_second and new.op in _ORDERED):
        return None
    same = _same_bits((load, old, new), used_by)
    return _Update(exchange, load, old, new, atomic, first + is_first, same)


def _first_of_loop(old: Instruction, exchange: Instruction) -> Operand:
    """What a phi is at first, in a loop of one block that goes on for as long as the exchange fails."""
    block = exchange.block
    if old.block is not block or len(old.operands) != 4:
        return None
    (a, before_a), (b, before_b) = zip(old.operands[::2], old.operands[1::2], strict=True)
    if before_a is block:
        a, b, before_b = b, a, before_a
    if before_b is not block or _stripped(b) is not exchange:
        return None
    end = block.terminator
    if end.op is not Op.BranchConditional:
        return None
    condition, is_true = end.operands[0], True
    while type(condition) is Instruction and condition.op is Op.LogicalNot:
        condition, is_true = condition.operands[0], not is_true
    if type(condition) is not Instruction or not _is_comparison(condition, exchange, old):
        return None
    on_success = end.operands[1 if is_true == (condition.op is Op.IEqual) else 2]
    return None if on_success is block else _stripped(a)


def _is_comparison(i: Instruction, exchange: Instruction, old: Value) -> bool:
    """Whether an instruction asks whether the exchange succeeded."""
    if i.op not in (Op.IEqual, Op.INotEqual):
        return False
    a, b = map(_stripped, i.operands)
    return (a is exchange and b is old) or (a is old and b is exchange)


def _same_bits(values: tuple[Instruction, ...], used_by: Users) -> dict[Instruction, None]:
    """Values, and what has their bits."""
    found, work = dict.fromkeys(values), list(values)
    while work:
        for user in used_by.get(work.pop(), ()):
            if user.op in (Op.Bitcast, Op.CopyObject) and user not in found:
                found[user] = None
                work.append(user)
    return found


def _is_uninterrupted(update: _Update, before: dict[Block, list[Block]]) -> bool:
    """Whether the work-item does nothing to memory between the load and the exchange."""
    block, load = update.exchange.block, update.load
    between = block.instructions[: block.instructions.index(update.exchange)]
    while load not in between:
        if not all(map(_is_harmless, between)):
            return False
        coming = [b for b in before[block] if b is not block or update.old.op is not Op.Phi]
        if len(coming) != 1 or coming[0] is update.exchange.block:
            return False
        block = coming[0]
        between = block.instructions[:-1]
    return all(map(_is_harmless, between[between.index(load) + 1 :]))


def _is_harmless(i: Instruction) -> bool:
    return i.op in PURE or i.op is Op.Load or is_arithmetic(i)


def _is_used_later_only(update: _Update, used_by: Users, tree: DominatorTree[Block]) -> bool:
    """Whether what was loaded serves for nothing but the update before the exchange has happened."""
    for value in update.same:
        for user in used_by.get(value, ()):
            if user in update.same or user is update.exchange or user is update.old:
                continue
            if not _is_later(user, value, update.exchange, tree):
                return False
    return True


def _is_later(user: Instruction, value: Value, exchange: Instruction, tree: DominatorTree[Block]) -> bool:
    """Whether an instruction uses a value when the exchange has happened."""
    block = exchange.block
    if user.op is Op.Phi:
        ways = zip(user.operands[::2], user.operands[1::2], strict=True)
        return all(tree.dominates(block, b) for v, b in ways if v is value)
    if user.block is block:
        return block.instructions.index(user) > block.instructions.index(exchange)
    return tree.dominates(block, user.block)


def _replace(
    types: TypeTable, update: _Update, used_by: Users, tree: DominatorTree[Block]
) -> dict[Value, Value]:
    """Puts an atomic into a function. What the exchange, and who asks whether it succeeded, is to be replaced
    by. Keeps `used_by` up to date."""
    exchange, old, new, load = update.exchange, update.old, update.new, update.load
    block, pointer = exchange.block, load.operands[0]
    made: list[Instruction] = []

    def add(op: Op, type_: Type, operands: list[Operand]) -> Instruction:
        i = Instruction(op, type_, operands, block)
        i.line, i.offset = exchange.line, exchange.offset
        made.append(i)
        return i

    if new.type is not load.type:
        pointer = add(Op.Bitcast, types.pointer(pointer.type.storage, new.type), [pointer])
    atomic = add(update.atomic, new.type, [pointer, *exchange.operands[1:3], new.operands[update.other]])
    now: dict[tuple[Value | None, Type], Value] = {(None, new.type): atomic}  # by what was there before

    def found(type_: Type) -> Value:
        """What the atomic found."""
        if (None, type_) not in now:
            now[None, type_] = add(Op.Bitcast, type_, [atomic])
        return now[None, type_]

    def again(value: Instruction) -> Value:
        """A value of the update, from what the atomic found."""
        if value is old or value is load:
            return found(value.type)
        if (value, value.type) not in now:
            operands = [again(o) if o in update.same else o for o in value.operands]
            copy = now[value, value.type] = add(value.op, value.type, operands)
            copy.decorations = value.decorations
        return now[value, value.type]

    given = found(exchange.type)
    replaced: dict[Value, Value] = {exchange: given}
    for user in used_by.get(exchange, ()):
        if _is_comparison(user, exchange, old):
            replaced[user] = types.constant(user.type, int(user.op is Op.IEqual))
    for value in update.same:
        for user in list(used_by.get(value, ())):
            if user in update.same or user in replaced or user is exchange or user is old:
                continue
            is_phi = user.op is Op.Phi
            for k, operand in enumerate(user.operands):
                if operand is value and not (is_phi and not tree.dominates(block, user.operands[k + 1])):
                    user.operands[k] = again(value)
                    used_by.setdefault(user.operands[k], []).append(user)
    for i in made:
        for operand in i.operands:
            if isinstance(operand, Value):
                used_by.setdefault(operand, []).append(i)
    at = block.instructions.index(exchange)
    block.instructions[at:at] = made  # replace_instructions() takes it out
    return replaced
