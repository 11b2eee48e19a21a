"""The grammar in the form that reader, writer, disassembler and validator look things up in."""

from __future__ import annotations

from functools import cache

from ..fast_typing import NamedTuple
from . import enums, grammar
from .enumerant import Enumerant
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


def _version(word: str) -> tuple[int, int] | None:
    return None if word == "-" else (int(word[0]), int(word[2:]))


def _names(word: str) -> tuple[str, ...]:
    return () if word == "-" else tuple(word.split(","))


def _numbers(word: str) -> tuple[int, ...]:
    return tuple(map(int, _names(word)))


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
        _numbers(capabilities),
        _names(extensions),
        operands,
        "IdResultType" in words,
        "IdResult" in words,
        least,
        most,
    )


class _Rows(dict[int, Row]):
    """{opcode: Row}, each made when it is first looked up: a module uses few of the 876."""

    def __init__(self) -> None:
        super().__init__()
        lines = grammar.INSTRUCTIONS.splitlines()
        self.lines = {int(line[: line.index(" ")]): line for line in lines}

    def __missing__(self, op: int) -> Row:
        row = self[op] = _row(self.lines[op])
        return row

    def __contains__(self, op: object) -> bool:
        return op in self.lines

    def get(self, op: int) -> Row | None:  # type: ignore[override]  # no other default is asked for
        return self[op] if op in self.lines else None


ROWS = _Rows()


@cache
def _classes() -> dict[str, list[int]]:
    """{class: its instructions}."""
    out: dict[str, list[int]] = {}
    for op, line in ROWS.lines.items():
        out.setdefault(line.split(" ", 2)[1], []).append(op)
    return out


@cache
def of_class(*names: str) -> frozenset[Op]:
    """The instructions of the grammar's classes: "Atomic", "Group", "Annotation", ..."""
    return frozenset(Op(op) for name in names for op in _classes()[name])


MASK_KINDS = frozenset(grammar.MASK_KINDS.split())
VALUE_KINDS = frozenset(grammar.VALUE_KINDS.split())
ID_KINDS = frozenset({"IdRef", "IdScope", "IdMemorySemantics"})
# OpenCL.std: number to operand kinds; all of them are there, printf's repeated ones left out.
OPENCL_STD: dict[int, tuple[str, ...]] = {
    int(number): tuple(kind for kind in kinds if kind[-1] != "*")
    for number, *kinds in map(str.split, grammar.OPENCL_STD.splitlines())
}


class _Enums(dict[str, type[Enumerant]]):
    """{kind of operand: its enumeration}."""

    def __missing__(self, kind: str) -> type[Enumerant]:
        if kind not in MASK_KINDS and kind not in VALUE_KINDS:
            raise KeyError(kind)
        found: type[Enumerant] = getattr(enums, kind)
        self[kind] = found
        return found


ENUMS = _Enums()


@cache
def _enumerant_lines() -> dict[str, str]:
    """{"kind value": the rest of the line}."""
    out = {}
    for line in grammar.ENUMERANTS.splitlines():
        kind, value, rest = line.split(" ", 2)
        out[f"{kind} {value}"] = rest
    return out


@cache
def enumerant(kind: str, value: int) -> EnumerantRow:
    """What the grammar says of an enumerant."""
    line = _enumerant_lines().get(f"{kind} {int(value)}")
    if line is None:
        return EnumerantRow((1, 0), (), (), ())
    version, capabilities, extensions, *words = line.split()
    return EnumerantRow(
        _version(version), _numbers(capabilities), _names(extensions), tuple(map(_operand, words))
    )


def parameters(kind: str, value: int) -> tuple[Operand, ...]:
    """The operands that follow an enumerant, or the bits of a mask from the lowest up."""
    value = int(value)
    if kind in VALUE_KINDS:
        return enumerant(kind, value).parameters
    out: tuple[Operand, ...] = ()
    bit = 1
    while bit <= value:
        if value & bit:
            out += enumerant(kind, bit).parameters
        bit <<= 1
    return out


# What continues an instruction of more than 65,535 words (SPV_INTEL_long_composites), and the first of those.
# Nothing stands between them.
CONTINUED: dict[int, Op] = {
    Op.TypeStructContinuedINTEL: Op.TypeStruct,
    Op.ConstantCompositeContinuedINTEL: Op.ConstantComposite,
    Op.SpecConstantCompositeContinuedINTEL: Op.SpecConstantComposite,
    Op.CompositeConstructContinuedINTEL: Op.CompositeConstruct,
}
