"""The extents of a kernel: what its accesses read and write, as numbers that a launch evaluates.

The numbers are those of native_shim/src/cluster/extents.c, which has the same list of codes:

    extents     accesses
    access      argument, READS or WRITES, or COMBINES and 16 * how (COMBINED), bytes (0: those of a
                pixel), the number of assumptions, these, the offset
    assumption  bits, whether the number is signed, a value
    value       codes in reverse Polish notation, up to END

An offset of which nothing is known is ALL. A value is an interval: launches know that of work-groups' ids.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...fast_typing import Any, NamedTuple
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Argument, Block, Function, Instruction, Kind, Value
from ...spirv.module import Variable as ModuleVariable
from ..analysis.roots import SAME_OBJECT, roots
from ..ir.instructions import (
    ATOMICS,
    EXTINST_LOADS,
    EXTINST_PREFETCH,
    EXTINST_PRINTF,
    int_value,
    is_constant_int,
    users,
)
from ..ir.layout import size_of
from ..traffic.polynomial import (
    ITERATION,
    Polynomial,
    Quotient,
    Symbol,
    Variable,
    with_global_ids,
)
from .conditions import Conditions, NotNegative, limit
from .images import Pixels, offset, pixels_of
from .terms import Assumption, Between, Expression, Extreme, Limited, Remainder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

(END, NUMBER, SYMBOL, ADD, MULTIPLY, DIVIDE, REMAINDER, LEAST, GREATEST, EITHER, IDS, ROUNDS, AT_MOST,
 AT_LEAST, ASSUME, ALL) = range(16)  # fmt: skip
READS, WRITES, COMBINES = 1, 2, 4

# Atomics that combine with what is there in any order, and how (extents.c).
COMBINED = {
    Op.AtomicIAdd: 0, Op.AtomicISub: 0, Op.AtomicIIncrement: 0, Op.AtomicIDecrement: 0, Op.AtomicAnd: 1,
    Op.AtomicOr: 2, Op.AtomicXor: 3, Op.AtomicSMin: 4, Op.AtomicSMax: 5, Op.AtomicUMin: 6, Op.AtomicUMax: 7,
}  # fmt: skip

_MOST_NUMBERS = 20_000
_MOST_OF_ONE = 1_500
_DEPTH = 12
_OWN = frozenset((
    StorageClass.Function, StorageClass.Private, StorageClass.Workgroup, StorageClass.Input,
))  # fmt: skip
_HARMLESS = frozenset((EXTINST_PRINTF, EXTINST_PREFETCH))
# What makes addresses of addresses, compares them or takes their number.
_NO_ACCESS = SAME_OBJECT | {
    Op.Phi, Op.Select, Op.PtrEqual, Op.PtrNotEqual, Op.PtrDiff, Op.ConvertPtrToU, Op.LifetimeStart,
    Op.LifetimeStop, Op.GenericPtrMemSemantics, Op.GenericCastToPtrExplicit, Op.INotEqual, Op.IEqual,
}  # fmt: skip


class Refusal(Exception):
    """Why work-groups cannot be told apart by what they read and write."""


class _TooLarge(Exception):
    """More numbers than are worth evaluating."""


def extents(function: Function) -> list[int]:
    """Of a kernel without calls, before it is divided among lanes. Refusal."""
    found = _Extents(function)
    numbers = [n for block in function.blocks for one in found.accesses(block) for n in one]
    if len(numbers) > _MOST_NUMBERS:
        raise Refusal("it has too many accesses")
    return numbers


class _Touched(NamedTuple):
    """Memory that an instruction reads or writes: bytes at an address, 0 where it is not known how many; or a
    number of elements of so many."""

    pointer: Value
    kind: int
    size: int
    elements: Value | None = None


class _Extents:
    def __init__(self, function: Function) -> None:
        self.conditions = Conditions(function)
        self._numbers = {argument: number for number, argument in enumerate(function.arguments)}
        self._users = users(function)
        self._seen: set[tuple[int, ...]] = set()

    def accesses(self, block: Block) -> Iterator[list[int]]:
        """Those of a block to memory that work-groups share."""
        if self.conditions.tree.number.get(block) is None:
            return
        known: list[NotNegative] | None = None
        for i in block.instructions:
            for touched in self._touched(i):
                if touched.pointer.type.storage in _OWN:
                    continue
                known = self._known(block) if known is None else known
                yield from self._new(self._access(touched, block, known))
            for pixels in pixels_of(i):
                known = self._known(block) if known is None else known
                yield from self._new(self._pixels(pixels, block, known))

    def _known(self, block: Block) -> list[NotNegative]:
        return [one._replace(number=with_global_ids(one.number)) for one in self.conditions.of(block)]

    def _new(self, accesses: Iterator[list[int]]) -> Iterator[list[int]]:
        """Those that are not the same as one before."""
        for access in accesses:
            if tuple(access) not in self._seen:
                self._seen.add(tuple(access))
                yield access

    def _touched(self, i: Instruction) -> Iterator[_Touched]:
        """What an instruction does with memory."""
        op = i.op
        if op is Op.Load:
            yield _Touched(i.operands[0], READS, size_of(i.type))
        elif op is Op.Store:
            yield _Touched(i.operands[0], WRITES, size_of(i.operands[1].type))
        elif op in ATOMICS:
            yield from self._atomic(i)
        elif op is Op.CopyMemory or op is Op.CopyMemorySized:
            size = _copied(i)
            yield _Touched(i.operands[0], WRITES, size)
            yield _Touched(i.operands[1], READS, size)
        elif op is Op.GroupAsyncCopy:
            yield from _copies(i)
        elif op is Op.FunctionCall or (op is Op.ExtInst and i.operands[1] not in _HARMLESS):
            kind = READS if op is Op.ExtInst and i.operands[1] in EXTINST_LOADS else WRITES
            for operand in i.operands:
                if _is_pointer(operand):
                    yield _Touched(operand, kind, 0)
        elif op not in _NO_ACCESS and any(_is_pointer(o) and o.type.storage not in _OWN for o in i.operands):
            raise Refusal(f"it has {op.name} of an address")

    def _atomic(self, i: Instruction) -> Iterator[_Touched]:
        pointer = i.operands[0]
        if pointer.type.storage in _OWN:
            return
        number = COMBINED.get(i.op)
        if number is None or self._users.get(i):
            raise Refusal("its work-groups may see one another's atomics")
        yield _Touched(pointer, COMBINES | 16 * number, i.type.width // 8)

    def _access(self, touched: _Touched, block: Block, known: list[NotNegative]) -> Iterator[list[int]]:
        pointer, kind, size, elements = touched
        found = self.conditions.values.place(pointer) if size else None
        if found is not None:
            argument, place = (
                found[0],
                found[1] if elements is None else self.conditions.values.along(found[1], elements, size),
            )
            try:
                if place is not None:
                    yield [argument, kind, size, *self._encoded(place, block, known)]
                    return
            except _TooLarge:
                pass
        sources = roots(pointer)
        if sources is None:
            raise Refusal("it has an address that was a number or came out of memory")
        for source in sources:
            if isinstance(source, Argument) and source.type.storage not in _OWN:
                yield [self._numbers[source], kind, max(size, 1), 0, ALL, END]
            elif isinstance(source, ModuleVariable) and source.type.storage is StorageClass.CrossWorkgroup:
                raise Refusal("it uses a program-scope variable")

    def _pixels(self, pixels: Pixels, block: Block, known: list[NotNegative]) -> Iterator[list[int]]:
        number = self._numbers.get(pixels.image) if isinstance(pixels.image, Argument) else None
        if number is None:
            raise Refusal("it has an image that is no argument")

        def with_known(coordinate: Polynomial) -> Polynomial:
            return limit(with_global_ids(coordinate), known)

        size, where = 1, [0, ALL, END]
        if pixels.coordinates is not None:
            try:
                place = offset(pixels, number, self.conditions.values, with_known)
                size, where = 0, self._encoded(place, block, known)
            except _TooLarge:
                pass
        for kind, is_done in ((READS, pixels.reads), (WRITES, pixels.writes)):
            if is_done:
                yield [number, kind, size, *where]

    def _encoded(self, place: Expression, block: Block, known: list[NotNegative]) -> list[int]:
        coder = _Coder(self.conditions, block)
        out = [len(place.assumes)]
        for assumption in sorted(place.assumes, key=repr):
            number = limit(with_global_ids(assumption.number), known)
            out += [assumption.bits, int(assumption.is_signed), *coder.value(number)]
        out += coder.value(limit(with_global_ids(place.number), known))
        if len(out) > _MOST_OF_ONE:
            raise _TooLarge
        return out


class _Coder:
    """Makes numbers of values where a block uses them."""

    def __init__(self, conditions: Conditions, block: Block) -> None:
        self._conditions = conditions
        self._block = block
        self._left = _MOST_OF_ONE
        self._within: set[int] = set()

    def value(self, number: Polynomial) -> list[int]:
        """Up to END."""
        return [*self._codes(number, 0), END]

    def _codes(self, number: Polynomial, depth: int) -> list[int]:
        self._left -= len(number.terms)
        if self._left < 0 or depth > _DEPTH:
            raise _TooLarge
        out: list[int] = []
        for place, (product, factor) in enumerate(number.terms.items() or [((), 0)]):
            if not -(1 << 63) <= factor < 1 << 63:
                raise _TooLarge
            out += [NUMBER, factor]
            for term in product:
                out += [*self._term(term, depth + 1), MULTIPLY]
            if place:
                out.append(ADD)
        return out

    def _term(self, term: Any, depth: int) -> list[int]:
        match term:
            case Symbol():
                return [SYMBOL, term.kind, term.number]
            case Variable():
                return self._rounds(term.number, depth) if term.kind == ITERATION else [IDS, *term]
            case Quotient() | Remainder():
                code = DIVIDE if isinstance(term, Quotient) else REMAINDER
                return [*self._codes(term.dividend, depth), *self._codes(term.divisor, depth), code]
            case Between():
                return self._folded(term.ends, EITHER, depth)
            case Extreme():
                return self._folded(term.of, GREATEST if term.is_greatest else LEAST, depth)
            case Limited():
                return self._limited(term, depth)
        raise _TooLarge

    def _folded(self, numbers: tuple[Polynomial, ...], code: int, depth: int) -> list[int]:
        out = self._codes(numbers[0], depth)
        for number in numbers[1:]:
            out += [*self._codes(number, depth), code]
        return out

    def _limited(self, term: Limited, depth: int) -> list[int]:
        """The number, then each limit and whether it is one."""
        out = self._codes(term.number, depth)
        for said in term.limits:
            out += [*self._codes(said.other, depth), *self._assumed(said.assumes, depth)]
            out += [AT_MOST if said.is_upper else AT_LEAST, len(said.assumes)]
        return out

    def _rounds(self, number: int, depth: int) -> list[int]:
        """The iterations of a loop. What its condition assumes is so to the iteration in which it fails."""
        found = self._conditions.rounds(number, self._block)
        if found is None:
            raise _TooLarge
        rounds, is_inside = found
        out = [*self._codes(rounds.rest, depth), *self._codes(rounds.step, depth)]
        if number in self._within:
            return [*out, ROUNDS, 0, 0]
        self._within.add(number)
        out += self._assumed(rounds.assumes, depth)
        self._within.discard(number)
        return [*out, ROUNDS, int(is_inside), len(rounds.assumes)]

    def _assumed(self, assumes: frozenset[Assumption], depth: int) -> list[int]:
        out = []
        for assumption in sorted(assumes, key=repr):
            number = with_global_ids(assumption.number)
            out += [*self._codes(number, depth), ASSUME, assumption.bits, int(assumption.is_signed)]
        return out


def _copied(i: Instruction) -> int:
    """Bytes that a copy copies; 0: not known."""
    if i.op is Op.CopyMemory:
        return size_of(i.operands[0].type.element)
    return int_value(i.operands[2]) if is_constant_int(i.operands[2]) else 0


def _copies(i: Instruction) -> Iterator[_Touched]:
    """An asynchronous copy: one side is in local memory, in which elements lie side by side."""
    _, to, source, count, stride, _ = i.operands
    is_plain = is_constant_int(stride) and int_value(stride) == 1
    size = size_of(to.type.element) if is_plain else 0
    yield _Touched(to, WRITES, size, count)
    yield _Touched(source, READS, size, count)


def _is_pointer(value: object) -> TypeGuard[Value]:
    return isinstance(value, Value) and value.type is not None and value.type.kind is Kind.POINTER
