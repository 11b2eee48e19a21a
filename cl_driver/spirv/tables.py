"""The grammar in the form that reader, writer, disassembler and validator look things up in."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from . import enums, grammar
from .enums import Op

MANY = 0xFFFF  # the largest number of words of an instruction


class Operand(NamedTuple):
    """One operand of a pattern."""

    kind: str  # as the grammar calls it
    quantifier: str  # "", "?" or "*"


class Row(NamedTuple):
    """What the grammar says of one instruction. Of capabilities and of extensions, one is enough."""

    op: Op
    class_: str
    version: tuple[int, int] | None  # None: only by extension
    capabilities: tuple[int, ...]
    extensions: tuple[str, ...]
    operands: tuple[Operand, ...]
    has_type: bool
    has_result: bool
    min_words: int
    max_words: int


class EnumerantRow(NamedTuple):
    """What the grammar says of an enumerant. The capabilities of a capability are those that it implies."""

    version: tuple[int, int] | None
    capabilities: tuple[int, ...]
    extensions: tuple[str, ...]
    parameters: tuple[Operand, ...]


def _operand(word: str) -> Operand:
    return Operand(word[:-1], word[-1]) if word[-1] in "?*" else Operand(word, "")


def _version(word: str):
    return None if word == "-" else (int(word[0]), int(word[2:]))


def _list(word: str, make=str) -> tuple:
    return () if word == "-" else tuple(map(make, word.split(",")))


# Words that an operand takes at least; enumerants' parameters come on top of it.
_LEAST = {"PairIdRefIdRef": 2, "PairIdRefLiteralInteger": 2, "PairLiteralIntegerIdRef": 2}
_UNBOUNDED = {
    "LiteralString",
    "LiteralContextDependentNumber",
    "Decoration",
    "ExecutionMode",
    "MemoryAccess",
    "ImageOperands",
    "LoopControl",
    "LiteralSpecConstantOpInteger",
    "TensorAddressingOperands",
}


def _row(line: str) -> Row:
    number, class_, version, capabilities, extensions, *words = line.split()
    operands = tuple(map(_operand, words))
    least = most = 1
    for kind, quantifier in operands:
        size = _LEAST.get(kind, 1)
        least += 0 if quantifier else size
        most = MANY if quantifier == "*" or kind in _UNBOUNDED else min(most + size, MANY)
    return Row(
        Op(int(number)),
        class_,
        _version(version),
        _list(capabilities, int),
        _list(extensions),
        operands,
        "IdResultType" in words,
        "IdResult" in words,
        least,
        most,
    )


ROWS: dict[int, Row] = {row.op: row for row in map(_row, grammar.INSTRUCTIONS.splitlines())}
MASK_KINDS = frozenset(grammar.MASK_KINDS.split())
VALUE_KINDS = frozenset(grammar.VALUE_KINDS.split())
ID_KINDS = frozenset({"IdRef", "IdScope", "IdMemorySemantics"})
# OpenCL.std: number to operand kinds; all of them are there, printf's repeated ones left out.
OPENCL_STD: dict[int, tuple[str, ...]] = {
    int(number): tuple(kind for kind in kinds if kind[-1] != "*")
    for number, *kinds in map(str.split, grammar.OPENCL_STD.splitlines())
}
ENUMS = {kind: getattr(enums, kind) for kind in MASK_KINDS | VALUE_KINDS}


@cache
def enumerants() -> dict[str, dict[int, EnumerantRow]]:
    """kind: {value: EnumerantRow}, only of those that take parameters or need something."""
    out: dict[str, dict[int, EnumerantRow]] = {}
    for line in grammar.ENUMERANTS.splitlines():
        kind, value, version, capabilities, extensions, *words = line.split()
        out.setdefault(kind, {})[int(value)] = EnumerantRow(
            _version(version), _list(capabilities, int), _list(extensions), tuple(map(_operand, words))
        )
    return out


def parameters(kind: str, value: int) -> tuple[Operand, ...]:
    """The operands that follow an enumerant, or the bits of a mask from the lowest up."""
    rows = enumerants().get(kind, {})
    if kind in VALUE_KINDS:
        return rows[value].parameters if value in rows else ()
    out: tuple[Operand, ...] = ()
    bit = 1
    while bit <= value:
        if value & bit and bit in rows:
            out += rows[bit].parameters
        bit <<= 1
    return out
