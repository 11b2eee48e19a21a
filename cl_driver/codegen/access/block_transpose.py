"""Structures of four numbers of 32 bits, or of a multiple, one for each lane: taken apart into vectors of one
member each, and put together.

With vectors of 256 bits, and without AVX-512, an instruction moves either whole blocks of 128 bits, or
elements within such blocks. So blocks are moved first; then, within them, elements change places four by
four. Each shuffle here is one instruction. Left to itself, LLVM takes more than twice as many, and long to
find them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..llvm.forms import form
from .emitter import AccessEmitter

_BLOCK = 4  # elements of 32 bits
_REGISTER = 8

# Of two registers: their lower, and their upper, elements by turns, of each block; and pairs of elements.
_LOW, _HIGH = (0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)
_LOW_PAIRS, _HIGH_PAIRS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)


def goes_in_blocks(e: AccessEmitter, t: str, stride: int) -> bool:
    """Whether `stride` numbers of a type for each lane are whole blocks of 128 bits, on a CPU as above."""
    features = e.options.features
    is_meant = "avx" in features and "avx512f" not in features
    return is_meant and t in ("i32", "float") and stride in (4, 8, 16) and e.width in (8, 16)


def take_apart(e: AccessEmitter, t: str, registers: Sequence[str], stride: int, count: int) -> list[str]:
    """The first `count` members of each lane's `stride` ones, each as a vector of all lanes. registers: of
    eight elements, as they follow one another in memory."""
    halves = []
    for start in range(0, len(registers), stride):  # what eight lanes have
        of_lanes = registers[start : start + stride]
        fields: list[str] = []
        for place in range(0, count, _BLOCK):
            rows = [
                _blocks(e, t, of_lanes, *(lane * stride + place for lane in (first, first + _BLOCK)))
                for first in range(_BLOCK)
            ]
            fields += _transposed(e, t, rows, min(_BLOCK, count - place))
        halves.append(fields)
    return [one_vector(e, t, pieces) for pieces in zip(*halves, strict=True)]


def put_together(e: AccessEmitter, t: str, fields: Sequence[str], stride: int) -> list[str]:
    """The inverse; members that are not given are poison."""
    fields = [*fields, *["poison"] * (stride - len(fields))]
    registers = []
    for number in range(e.width // _REGISTER):
        own = (
            fields if e.width == _REGISTER else [_register(e, t, e.width, field, number) for field in fields]
        )
        rows = [_transposed(e, t, own[place : place + _BLOCK], _BLOCK) for place in range(0, stride, _BLOCK)]
        for first in range(0, _REGISTER * stride, _REGISTER):
            places = []
            for element in (first, first + _BLOCK):
                lane, place = divmod(element, stride)
                places.append((rows[place // _BLOCK][lane % _BLOCK], lane // _BLOCK))
            registers.append(_two_blocks(e, t, *places))
    return registers


def take_rows_apart(e: AccessEmitter, t: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """The same as take_apart() of blocks that each lane has loaded: for each block of a structure, those of
    all lanes."""
    pieces = []
    for start in range(0, e.width, _REGISTER):
        fields: list[str] = []
        for blocks in rows:
            own = blocks[start : start + _REGISTER]
            pairs = zip(own[:_BLOCK], own[_BLOCK:], strict=True)
            both = [shuffle(e, t, _BLOCK, a, b, range(_REGISTER)) for a, b in pairs]
            fields += _transposed(e, t, both, _BLOCK)
        pieces.append(fields)
    return [one_vector(e, t, halves) for halves in zip(*pieces, strict=True)]


def registers_of(e: AccessEmitter, t: str, data: str, length: int) -> list[str]:
    """A vector of so many elements as registers."""
    return [_register(e, t, length, data, number) for number in range(length // _REGISTER)]


def one_vector(e: AccessEmitter, t: str, vectors: Sequence[str], length: int = _REGISTER) -> str:
    """Vectors of `length` elements, a power of two of them, as one."""
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [shuffle(e, t, length, a, b, range(2 * length)) for a, b in pairs]
        length *= 2
    return vectors[0]


def _transposed(e: AccessEmitter, t: str, rows: Sequence[str], count: int) -> list[str]:
    """Of four rows the first `count` columns, in each block by itself."""
    a, b, c, d = rows
    columns = []
    for halves in (_LOW, _HIGH)[: (count + 1) // 2]:
        first, second = (shuffle(e, t, _REGISTER, x, y, halves) for x, y in ((a, b), (c, d)))
        columns += [shuffle(e, t, _REGISTER, first, second, pairs) for pairs in (_LOW_PAIRS, _HIGH_PAIRS)]
    return columns[:count]


def _blocks(e: AccessEmitter, t: str, registers: Sequence[str], low: int, high: int) -> str:
    """The blocks that begin with these elements of registers that follow one another."""
    (a, i), (b, j) = (divmod(element, _REGISTER) for element in (low, high))
    return _two_blocks(e, t, (registers[a], i // _BLOCK), (registers[b], j // _BLOCK))


def _two_blocks(e: AccessEmitter, t: str, low: tuple[str, int], high: tuple[str, int]) -> str:
    """Two blocks, each the lower (0) or the upper one of a register, as one register."""
    (a, i), (b, j) = low, high
    lanes = [*range(_BLOCK * i, _BLOCK * i + _BLOCK), *range(_BLOCK * j, _BLOCK * j + _BLOCK)]
    return shuffle(e, t, _REGISTER, a, b, lanes[:_BLOCK] + [_REGISTER + k for k in lanes[_BLOCK:]])


def _register(e: AccessEmitter, t: str, length: int, data: str, number: int) -> str:
    return shuffle(e, t, length, data, "poison", range(_REGISTER * number, _REGISTER * number + _REGISTER))


def shuffle(e: AccessEmitter, t: str, length: int, a: str, b: str, elements: Sequence[int]) -> str:
    """These elements of two vectors of `length`."""
    f, lanes = form(length), ", ".join(f"i32 {k}" for k in elements)
    return e.emit(f"shufflevector {f(t)} {a}, {f(t)} {b}, <{len(elements)} x i32> <{lanes}>")
