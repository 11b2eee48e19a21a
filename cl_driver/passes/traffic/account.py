"""The account of a kernel: what its blocks read, write and calculate, as numbers that a launch evaluates.

The numbers are those of native_shim/src/profile/traffic.c, which has the same list of codes:

    account     whether operations are known, whether bytes are known, the number of entries, entries
    entry       guards, variables, operations, the number of accesses, accesses
    guards      their number; each MUST or UNLESS, and a value: if it is negative the entry counts nothing, or
                if it is not 0 nothing is known
    variables   their number; each a number of lower bounds, these, a number of upper bounds, these
    access      argument, whether it writes, bytes, the offset, a factor for each variable
    value       codes in reverse Polish notation, up to END
"""

from __future__ import annotations

from collections.abc import Iterator

from ...spirv.enums import Op, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Block, Function, Instruction, Kind, Type, Value
from ..ir.instructions import ATOMICS, EXTINST_PRINTF
from .conditions import Conditions
from .polynomial import (
    GLOBAL_ID,
    GLOBAL_SIZE,
    GROUP_ID,
    GROUPS,
    LOCAL_ID,
    LOCAL_SIZE,
    OFFSET,
    ONE,
    ZERO,
    Atom,
    Polynomial,
    Quotient,
    Symbol,
    Variable,
    atom,
    with_global_ids,
)

END, NUMBER, SYMBOL, ADD, MULTIPLY, DIVIDE = range(6)
MUST, UNLESS = range(2)

_MOST_NUMBERS = 4000
_GLOBAL = frozenset((StorageClass.CrossWorkgroup,))
_OWN = frozenset((
    StorageClass.Function, StorageClass.Private, StorageClass.Workgroup, StorageClass.Input,
    StorageClass.UniformConstant,
))  # fmt: skip
_ONE_EACH = frozenset((Op.FAdd, Op.FSub, Op.FMul, Op.FDiv, Op.FRem, Op.FMod, Op.VectorTimesScalar))
_TWO_EACH = frozenset((Std.fma, Std.mad))
_NO_OPERATION = frozenset((Std.fabs, Std.copysign))
_TOUCHES_OTHERWISE = frozenset((
    Op.FunctionCall, Op.CopyMemory, Op.CopyMemorySized, Op.GroupAsyncCopy, Op.ImageRead, Op.ImageWrite,
    Op.ImageSampleExplicitLod, Op.EnqueueKernel, Op.ReadPipe, Op.WritePipe,
))  # fmt: skip


class _Unknown(Exception):
    """What is asked for cannot be told."""


def account(function: Function) -> list[int]:
    """Of a kernel without calls, before it is divided among lanes; [] if nothing is known."""
    try:
        numbers = _Account(function).numbers()
    except _Unknown:
        return []
    return numbers if len(numbers) <= _MOST_NUMBERS else []


class _Account:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.conditions = Conditions(function)
        self.knows_bytes = self.knows_operations = True

    def numbers(self) -> list[int]:
        """The account. _Unknown: of nothing."""
        entries: list[list[int]] = []
        for block in self.function.blocks:
            if self.conditions.tree.number.get(block) is None:
                continue
            operations = sum(map(_operations, block.instructions))
            accesses = list(self._accesses(block))
            if not (operations or accesses):
                continue
            try:
                entries.append(_Entry(self.conditions, block).numbers(operations, accesses))
            except _Unknown:
                self.knows_operations &= not operations
                self.knows_bytes &= not accesses
        if not (self.knows_bytes or self.knows_operations) or not entries:
            raise _Unknown
        flat = [number for entry in entries for number in entry]
        return [int(self.knows_operations), int(self.knows_bytes), len(entries), *flat]

    def _accesses(self, block: Block) -> Iterator[tuple[int, bool, int, Polynomial]]:
        """(argument, whether it writes, bytes, offset) of accesses to global memory."""
        for i in block.instructions:
            if i.op in _TOUCHES_OTHERWISE or (i.op is Op.ExtInst and _has_pointer(i)):
                self.knows_bytes = False
                self.knows_operations &= i.op is not Op.FunctionCall
            elif i.op is Op.Load or i.op is Op.Store:
                type_ = i.type if i.op is Op.Load else i.operands[1].type
                yield from self._access(i.operands[0], type_, i.op is Op.Store)
            elif i.op in ATOMICS:
                type_ = i.operands[0].type.element
                reads = i.op not in (Op.AtomicStore, Op.AtomicFlagClear)
                if isinstance(type_, Type) and reads:
                    yield from self._access(i.operands[0], type_, False)
                if isinstance(type_, Type) and i.op is not Op.AtomicLoad:
                    yield from self._access(i.operands[0], type_, True)

    def _access(
        self, pointer: Value, type_: Type, writes: bool
    ) -> Iterator[tuple[int, bool, int, Polynomial]]:
        storage, size = pointer.type.storage, _size(type_)
        if storage in _OWN:
            return
        place = self.conditions.values.place(pointer) if storage in _GLOBAL and size else None
        if place is None:
            self.knows_bytes = False
        else:
            yield place[0], writes, size, place[1]


class _Entry:
    """Of one block: for which work-items, in which iterations it is executed."""

    def __init__(self, conditions: Conditions, block: Block) -> None:
        self.guards: list[tuple[int, Polynomial]] = []
        self.bounds: dict[Variable, tuple[list[Polynomial], list[Polynomial]]] = {}
        found = conditions.of(block)
        if found is None:
            raise _Unknown
        self._inequalities = list(map(with_global_ids, found))
        self._loops: dict[Variable, Polynomial] = {}
        for loop in conditions.loops_around(block):
            rounds = conditions.rounds(loop)
            if rounds is None or rounds.of_body.variables():
                raise _Unknown
            number = conditions.values.iteration(loop)
            self._loops[number] = rounds.of_header if block is loop.header else rounds.of_body

    def numbers(self, operations: int, accesses: list[tuple[int, bool, int, Polynomial]]) -> list[int]:
        """The entry. _Unknown."""
        offsets = [with_global_ids(access[3]) for access in accesses]
        used = {v for p in (*self._inequalities, *offsets) for v in p.variables()}
        by_groups = {v.number for v in used if v.kind in (LOCAL_ID, GROUP_ID)}
        for dimension in range(3):
            self._begin_dimension(dimension, dimension in by_groups)
        for number, rounds in self._loops.items():
            self.bounds[number] = ([ZERO], [rounds.plus(ONE, -1)])
        for p in self._inequalities:
            self._bound(_with_groups(p, by_groups))
        offsets = [_with_groups(offset, by_groups) for offset in offsets]
        out = [len(self.guards)]
        for kind, value in self.guards:
            out += [kind, *_encoded(value)]
        out.append(len(self.bounds))
        for bounds in self.bounds.values():
            for side in bounds:
                out.append(len(side))
                for value in side:
                    out += _encoded(value)
        out += [operations, len(accesses)]
        for (argument, writes, size, _), offset in zip(accesses, offsets, strict=True):
            out += [argument, int(writes), size, *self._factors(offset)]
        return out

    def _begin_dimension(self, dimension: int, by_groups: bool) -> None:
        """All work-items. Where groups differ, so must all of them be whole."""
        size, local = atom(Symbol(GLOBAL_SIZE, dimension)), atom(Symbol(LOCAL_SIZE, dimension))
        if not by_groups:
            offset = atom(Symbol(OFFSET, dimension))
            self.bounds[Variable(GLOBAL_ID, dimension)] = ([offset], [offset.plus(size).plus(ONE, -1)])
            return
        groups = atom(Symbol(GROUPS, dimension))
        self.guards.append((UNLESS, groups.times(local).plus(size, -1)))
        self.bounds[Variable(LOCAL_ID, dimension)] = ([ZERO], [local.plus(ONE, -1)])
        self.bounds[Variable(GROUP_ID, dimension)] = ([ZERO], [groups.plus(ONE, -1)])

    def _bound(self, p: Polynomial) -> None:
        """p >= 0."""
        variables = p.variables()
        if not variables:
            self.guards.append((MUST, p))
            return
        if len(variables) > 1 or not p.is_linear() or variables[0] not in self.bounds:
            raise _Unknown
        (variable,) = variables
        factor, rest = p.factor(variable).number, p.without(variable)
        lower, upper = self.bounds[variable]
        if factor == 1:
            lower.append(ZERO.plus(rest, -1))
        elif factor == -1:
            upper.append(rest)
        else:
            raise _Unknown

    def _factors(self, offset: Polynomial) -> list[int]:
        """The offset as a value without variables, and what each of these is multiplied by."""
        if not offset.is_linear() or not set(offset.variables()) <= set(self.bounds):
            raise _Unknown
        rest, factors = offset, []
        for variable in self.bounds:
            factors += _encoded(offset.factor(variable))
            rest = rest.without(variable)
        return [*_encoded(rest), *factors]


def _with_groups(p: Polynomial, dimensions: set[int]) -> Polynomial:
    """The reverse, in dimensions whose groups matter."""
    for dimension in dimensions:
        ids = Variable(GLOBAL_ID, dimension)
        factor = p.factor(ids)
        if not factor.terms:
            continue
        inside = atom(Variable(GROUP_ID, dimension)).times(atom(Symbol(LOCAL_SIZE, dimension)))
        inside = inside.plus(atom(Variable(LOCAL_ID, dimension))).plus(atom(Symbol(OFFSET, dimension)))
        p = p.without(ids).plus(factor.times(inside))
    return p


def _encoded(p: Polynomial) -> list[int]:
    """A value, up to END."""
    return [*_codes(p), END]


def _codes(p: Polynomial) -> list[int]:
    out: list[int] = []
    for number, (product, factor) in enumerate(p.terms.items() or [((), 0)]):
        out += [NUMBER, factor]
        for one in product:
            out += [*_codes_of_atom(one), MULTIPLY]
        if number:
            out.append(ADD)
    return out


def _codes_of_atom(one: Atom) -> list[int]:
    if isinstance(one, Symbol):
        return [SYMBOL, one.kind, one.number]
    if isinstance(one, Quotient):
        return [*_codes(one.dividend), *_codes(one.divisor), DIVIDE]
    raise _Unknown


def _size(type_: Type) -> int:
    """Bytes of a number, a pointer or a vector of such; 0 of others. Three components have no fourth."""
    if type_.kind is Kind.VECTOR:
        return type_.count * _size(type_.element)
    if type_.kind is Kind.POINTER:
        return 8
    return type_.width // 8 if type_.kind in (Kind.INT, Kind.FLOAT) else 0


def _has_pointer(i: Instruction) -> bool:
    """Whether a function of the library is given memory."""
    if i.operands[1] == EXTINST_PRINTF:
        return False
    return any(
        isinstance(o, Value) and o.type is not None and o.type.kind is Kind.POINTER for o in i.operands
    )


def _operations(i: Instruction) -> int:
    """On floating-point numbers: a function of the library counts as one for each component, fma as two."""
    type_ = i.type
    if type_ is None:
        return 0
    components = type_.count if type_.kind is Kind.VECTOR else 1
    element = type_.element if type_.kind is Kind.VECTOR else type_
    if element.kind is not Kind.FLOAT:
        return 0
    if i.op is Op.Dot:
        return 2 * int(i.operands[0].type.count) - 1
    if i.op in _ONE_EACH:
        return components
    if i.op is Op.ExtInst and i.operands[1] not in _NO_OPERATION:
        return components * (2 if i.operands[1] in _TWO_EACH else 1)
    return 0
