"""Loads of a footprint: each lane's address once, and what lies side by side in as few loads as possible."""

from __future__ import annotations

from ...passes.ir.instructions import is_constant_int
from ...passes.ir.remarks import ROWS
from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind, Type, Value
from ..access.block_transpose import one_vector, shuffle
from ..access.emitter import AccessEmitter
from ..access.gather_scatter import inserted, joined, split
from ..llvm.types import ir_type, leaf_types, size_of
from ..ops.memory import access_alignment
from .search import Group
from .sums import Term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

_WORD = 4  # bytes of what is moved between lanes
_HALF = 16  # bits
_BLOCK = 4  # words of a register that a shuffle moves among themselves
_ONE = Term(None, None)

# What all lanes have in common of an address, but for the number of bytes.
_Row: TypeAlias = frozenset[tuple[Term, int]]


class _Run:
    """Loads side by side, and the bytes of each behind the first, which is `at` behind the row's address."""

    def __init__(self, row: _Row, at: int) -> None:
        self.row, self.at = row, at
        self.loads: list[tuple[Instruction, int]] = []
        self.end = 0


class GroupLoads:
    """The loads of one group while a version is emitted.

    base: the operand of what places are counted from; places: each lane's, as i64; adjusted: what to add to
    the address of a load besides what it adds itself.
    """

    def __init__(
        self, e: AccessEmitter, group: Group, users: dict[Value, list[Instruction]], base: str,
        places: list[str], adjusted: dict[Term, int],
    ) -> None:  # fmt: skip
        self.e, self.base, self.places = e, base, places
        self.halved = {i for i in group.loads if is_halved(i, users)}
        self.rows: dict[_Row, list[str]] = {}
        self.runs: dict[Instruction, _Run] = {}
        rows: dict[_Row, list[tuple[int, Instruction]]] = {}
        for i, common in group.loads.items():
            total = dict(common)
            for term, number in adjusted.items():
                total[term] = total.get(term, 0) + number
            at = total.pop(_ONE, 0)
            row = frozenset((term, number) for term, number in total.items() if number)
            rows.setdefault(row, []).append((at, i))
        for row, loads in rows.items():
            run: _Run | None = None
            for at, i in sorted(loads, key=lambda load: load[0]):
                is_next = run is not None and at == run.at + run.end and _is_like(run.loads[-1][0], i)
                if run is None or not is_next:
                    run = _Run(row, at)
                run.loads.append((i, at - run.at))
                run.end = at - run.at + size_of(i.type)
                self.runs[i] = run

    def load(self, i: Instruction) -> None:
        """Defines a load and those beside it, unless that has been done with another of them."""
        e = self.e
        run = self.runs[i]
        if i in e.leaves_of:
            return
        e.note(ROWS, "addresses once for several reads")
        places = self._places_of(run)
        alignment = min(access_alignment(load.memory, load.type) for load, _ in run.loads)
        known = {e.alias_metadata(load.operands[0], is_load=True) for load, _ in run.loads}
        metadata = known.pop() if len(known) == 1 else ""
        if not _is_words(i.type):
            e.define_leaves(i, _alone(e, places, i.type, alignment, metadata))
            return
        t = ir_type(leaf_types(i.type)[0])
        if t != "float":
            t = "i16" if all(load in self.halved for load, _ in run.loads) else "i32"
        words = _words(e, places, t, run.end // _WORD, alignment, metadata)
        for load, offset in run.loads:
            own = words[offset // _WORD : (offset + size_of(load.type)) // _WORD]
            e.define_leaves(load, _leaves(e, "i32" if t == "i16" else t, own, load.type))

    def _places_of(self, run: _Run) -> list[str]:
        """Each lane's address of the first of a run."""
        e = self.e
        places = self.rows.get(run.row)
        if places is None:
            base = self.base
            if run.row:
                base = e.emit(f"getelementptr i8, ptr {base}, i64 {common_offset(e, dict(run.row))}")
            places = [e.emit(f"getelementptr i8, ptr {base}, i64 {place}") for place in self.places]
            self.rows[run.row] = places
        if not run.at:
            return places
        return [e.emit(f"getelementptr i8, ptr {place}, i64 {run.at}") for place in places]


def common_offset(e: AccessEmitter, terms: dict[Term, int]) -> str:
    """The sum of multiples of terms that all lanes have in common."""
    total = "0"
    for term, number in sorted(terms.items(), key=lambda item: item[1]):
        product = str(number)
        for value in (term.value, term.factor):
            if value is None:
                continue
            t = ir_type(value.type)
            operand = e.operand(value)
            if t != "i64":
                operand = e.emit(f"sext {t} {operand} to i64")
            product = operand if product == "1" else e.emit(f"mul i64 {operand}, {product}")
        total = product if total == "0" else e.emit(f"add i64 {total}, {product}")
    return total


def is_halved(value: Value, users: dict[Value, list[Instruction]]) -> bool:
    """Whether all that is done with words is to take their halves."""
    for user in users.get(value, ()):
        bits = [o.value for o in user.operands if is_constant_int(o)]
        element = user.type.element if user.type is not None and user.type.kind is Kind.VECTOR else user.type
        if user.op in (Op.CompositeExtract, Op.VectorShuffle):
            if not is_halved(user, users):
                return False
        elif user.op is Op.Bitcast or user.op is Op.UConvert:
            if element.kind not in (Kind.INT, Kind.FLOAT) or element.width != _HALF:
                return False
        elif user.op is Op.ShiftRightLogical:
            if bits != [_HALF]:
                return False
        elif user.op is not Op.BitwiseAnd or bits != [(1 << _HALF) - 1]:
            return False
    return True


def _is_words(type_: Type) -> bool:
    """Whether a value is loaded by words of 32 bits: elements are not larger, and fill them."""
    element = type_.element if type_.kind is Kind.VECTOR else type_
    count = type_.count if type_.kind is Kind.VECTOR else 1
    return element.width <= 8 * _WORD and count * element.width % (8 * _WORD) == 0


def _is_like(a: Instruction, b: Instruction) -> bool:
    """Whether two loads may be made together."""
    return a.type is b.type and _is_words(a.type)


def _leaves(e: AccessEmitter, t: str, words: list[str], type_: Type) -> list[str]:
    """The leaves of a value that consists of these words of all lanes."""
    types = leaf_types(type_)
    in_word = 8 * _WORD // types[0].width
    if in_word == 1:
        own = ir_type(types[0])
        return [w if own == t else e.emit(f"bitcast {e.form(t)} {w} to {e.form(own)}") for w in words]
    pieces = [types[k : k + in_word] for k in range(0, len(types), in_word)]
    of_words = zip(words, pieces, strict=True)
    return [leaf for word, piece in of_words for leaf in split(e, word, 8 * _WORD, piece)]


def _alone(e: AccessEmitter, places: list[str], type_: Type, alignment: int, metadata: str) -> list[str]:
    """The leaves of a value that is not loaded by words: each by itself."""
    types = leaf_types(type_)
    t, size = ir_type(types[0]), size_of(types[0])
    leaves = []
    for k in range(len(types)):
        there = [e.emit(f"getelementptr i8, ptr {at}, i64 {k * size}") if k else at for at in places]
        values = [e.emit(f"load {t}, ptr {at}, align {min(alignment, size)}{metadata}") for at in there]
        is_small = t in ("i8", "i16") and e.width * size >= 2 * _WORD
        leaves.append(joined(e, t, values) if is_small else inserted(e, t, values))
    return leaves


def _words(
    e: AccessEmitter, places: list[str], t: str, count: int, alignment: int, metadata: str
) -> list[str]:
    """So many words from each lane's place on, each of all lanes."""
    words: list[str] = []
    t, row_type = ("i32", "i16") if t == "i16" else (t, t)
    while len(words) < count:
        offset = len(words) * _WORD
        there = [e.emit(f"getelementptr i8, ptr {at}, i64 {offset}") if offset else at for at in places]
        rest = count - len(words)
        if rest >= _BLOCK and row_type == "i16":
            rows = [e.emit(f"load <8 x i16>, ptr {at}, align {alignment}{metadata}") for at in there]
            words += _columns_of_halves(e, rows)
        elif rest >= _BLOCK:
            rows = [e.emit(f"load <4 x {t}>, ptr {at}, align {alignment}{metadata}") for at in there]
            words += _columns(e, t, rows)
        elif rest >= 2:
            pairs = [e.emit(f"load double, ptr {at}, align {alignment}{metadata}") for at in there]
            words += _halves(e, t, pairs)
        else:
            values = [e.emit(f"load {t}, ptr {at}, align {alignment}{metadata}") for at in there]
            words.append(inserted(e, t, values))
    return words


def _columns(e: AccessEmitter, t: str, rows: list[str]) -> list[str]:
    """Four words of each lane as four vectors. Lanes are put side by side so that each shuffle moves words
    within blocks of 128 bits only."""
    a, b, c, d = (one_vector(e, t, rows[k::_BLOCK], _BLOCK) for k in range(_BLOCK))
    columns = []
    for lower in ((0, 1), (2, 3)):
        first, second = (_of_blocks(e, t, x, y, lower, turns=True) for x, y in ((a, b), (c, d)))
        columns += [_of_blocks(e, t, first, second, pair) for pair in ((0, 1), (2, 3))]
    return columns


def _columns_of_halves(e: AccessEmitter, rows: list[str]) -> list[str]:
    """The same of eight numbers of 16 bits for each lane, two of which are a word: the code that uses the
    words takes them apart again, so that LLVM finds the numbers."""
    count = 2 * e.width
    a, b, c, d = (one_vector(e, "i16", rows[k::_BLOCK], 2 * _BLOCK) for k in range(_BLOCK))
    blocks = range(0, count, 2 * _BLOCK)
    words = []
    for lower in (0, _BLOCK):
        turns = [
            k
            for block in blocks
            for n in range(lower, lower + _BLOCK)
            for k in (block + n, count + block + n)
        ]
        pairs = [shuffle(e, "i16", count, x, y, turns) for x, y in ((a, b), (c, d))]
        for first in (0, _BLOCK):
            # Of each block one number of four lanes, then the next number of them.
            both = [
                k + block + first + n for block in blocks for n in (0, 2) for k in (0, 1, count, count + 1)
            ]
            two = shuffle(e, "i16", count, pairs[0], pairs[1], both)
            low, high = (
                shuffle(
                    e, "i16", count, two, "poison", [block + n + k for block in blocks for k in range(_BLOCK)]
                )
                for n in (0, _BLOCK)
            )
            words.append(_word_of_halves(e, low, high))
    return words


def _word_of_halves(e: AccessEmitter, low: str, high: str) -> str:
    f = e.form
    lower, upper = (e.emit(f"zext {f('i16')} {half} to {f('i32')}") for half in (low, high))
    upper = e.emit(f"shl {f('i32')} {upper}, {f.splat('i32', '16')}")
    return e.emit(f"or {f('i32')} {lower}, {upper}")


def _halves(e: AccessEmitter, t: str, pairs: list[str]) -> list[str]:
    """Two words of each lane as two vectors, in the same manner."""
    registers = []
    for first in (0, 2):
        blocks = [
            inserted(e, "double", pairs[lane + first : lane + first + 2])
            for lane in range(0, len(pairs), _BLOCK)
        ]
        whole = one_vector(e, "double", blocks, 2)
        registers.append(e.emit(f"bitcast <{e.width // 2} x double> {whole} to {e.form(t)}"))
    a, b = registers
    return [_of_blocks(e, t, a, b, elements) for elements in ((0, 2), (1, 3))]


def _of_blocks(
    e: AccessEmitter, t: str, a: str, b: str, elements: tuple[int, int], turns: bool = False
) -> str:
    """Of each block of two vectors two elements of the one and two of the other: by turns, or one after the
    other."""
    lanes: list[int] = []
    for block in range(0, e.width, _BLOCK):
        of_a, of_b = [block + k for k in elements], [e.width + block + k for k in elements]
        lanes += [of_a[0], of_b[0], of_a[1], of_b[1]] if turns else of_a + of_b
    return shuffle(e, t, e.width, a, b, lanes)
