"""SPIR-V binaries as text, for people: one line per instruction, its word offset first.

Takes anything whose words can be walked; what the grammar does not know is shown as numbers.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator
from typing import TypeAlias

from ..enums import Op, OpenCLStd
from ..errors import SpirvError
from ..tables import ENUMS, ID_KINDS, MASK_KINDS, ROWS, VALUE_KINDS, Operand, parameters

Words: TypeAlias = "array[int]"  # 32 bits each

MAGIC = 0x07230203
PAIRS = {
    "PairIdRefIdRef": ("IdRef", "IdRef"),
    "PairIdRefLiteralInteger": ("IdRef", "LiteralInteger"),
    "PairLiteralIntegerIdRef": ("LiteralInteger", "IdRef"),
}


def words_of(data: bytes) -> Words:
    """The words of a module of either endianness. SpirvError if it is not one."""
    if len(data) < 20 or len(data) % 4:
        raise SpirvError(0, "header", f"{len(data)} bytes are not a whole number of words with a header")
    words = array("I", bytes(data))
    (magic,) = struct.unpack_from("<I", data)
    if magic != MAGIC and struct.unpack_from(">I", data)[0] != MAGIC:
        raise SpirvError(0, "header", f"the magic number is {magic:#010x}, not {MAGIC:#010x}")
    if (magic != MAGIC) == (sys.byteorder == "little"):
        words.byteswap()
    return words


def instructions(words: Words) -> Iterator[tuple[int, int, int]]:
    """(word offset, opcode, number of words) of each instruction. SpirvError where one is cut short."""
    p = 5
    while p < len(words):
        n = words[p] >> 16
        if n == 0 or p + n > len(words):
            raise SpirvError(p, "module", f"an instruction of {n} words")
        yield p, words[p] & 0xFFFF, n
        p += n


def _string(words: Words, p: int, end: int) -> tuple[str, int]:
    out = b""
    while p < end:
        part = words[p].to_bytes(4, "little")
        p += 1
        out += part
        if 0 in part:
            break
    return out.split(b"\0", 1)[0].decode("utf-8", "replace"), p


class _Text:
    """What the lines before a line tell about its ids."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.names: dict[int, str] = {}
        self.widths: dict[int, int] = {}  # of types
        self.types: dict[int, int] = {}  # id: its type's id
        self.sets: dict[int, str] = {}

    def id(self, number: int) -> str:
        name = self.names.get(number)
        return f"%{name}" if name else f"%{number}"

    def line(self, p: int, op: int, n: int) -> str:
        row = ROWS.get(op)
        words, end = self.words, p + n
        if row is None:
            return f"Op{op} " + " ".join(map(str, words[p + 1 : end]))
        self.note(p, op, n)
        result, shown = "", [f"Op{row.op.name}"]
        q, type_ = p + 1, 0
        pending = list(row.operands)
        while pending and q < end:
            kind, quantifier = pending.pop(0)
            if quantifier == "*":
                pending.insert(0, Operand(kind, "*"))
            if kind in PAIRS:
                pending[:0] = [Operand(part, "") for part in PAIRS[kind]]
                continue
            word = words[q]
            if kind == "IdResult":
                result = f"{self.id(word)} = "
                self.types[word] = type_
            elif kind == "IdResultType":
                type_ = word
                shown.append(self.id(word))
            elif kind in ID_KINDS:
                shown.append(self.id(word))
            elif kind == "LiteralString":
                text, q = _string(words, q, end)
                q -= 1
                shown.append('"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"')
            elif kind == "LiteralContextDependentNumber":
                size = 2 if self.widths.get(type_) == 64 and q + 1 < end else 1
                shown.append(str(word if size == 1 else word | words[q + 1] << 32))
                q += size - 1
            elif (
                kind == "LiteralExtInstInteger"
                and self.sets.get(words[q - 1]) == "OpenCL.std"
                and word in OpenCLStd
            ):
                shown.append(OpenCLStd(word).name)
            elif kind == "LiteralSpecConstantOpInteger" and word in ROWS:
                shown.append(ROWS[word].op.name)
                pending = [o for o in ROWS[word].operands if o.kind not in ("IdResultType", "IdResult")]
            elif kind in VALUE_KINDS:
                shown.append(ENUMS[kind](word).name if word in ENUMS[kind] else str(word))
                pending[:0] = parameters(kind, word)
            elif kind in MASK_KINDS:
                shown.append(_mask(kind, word))
                pending[:0] = parameters(kind, word)
            else:
                shown.append(str(word))
            q += 1
        shown += map(str, words[q:end])
        return result + " ".join(shown)

    def note(self, p: int, op: int, n: int) -> None:
        words = self.words
        if op == Op.Name and n > 2:
            name = _string(words, p + 2, p + n)[0]
            if name.isprintable() and name and " " not in name:
                self.names[words[p + 1]] = f"{name}.{words[p + 1]}"
        elif op in (Op.TypeInt, Op.TypeFloat) and n > 2:
            self.widths[words[p + 1]] = words[p + 2]
        elif op == Op.ExtInstImport and n > 2:
            self.sets[words[p + 1]] = _string(words, p + 2, p + n)[0]


def _mask(kind: str, value: int) -> str:
    if value == 0:
        return "None"
    names = [e.name for e in ENUMS[kind] if e and not e & (e - 1) and value & e]
    rest = value & ~sum(ENUMS[kind][name] for name in names)
    return "|".join(names + ([hex(rest)] if rest else []))


def disassemble(data: bytes) -> str:
    """The text of a module; what is malformed ends it with a line that says so."""
    words = words_of(data)
    text = _Text(words)
    version = words[1]
    out = [f"; SPIR-V {version >> 16 & 255}.{version >> 8 & 255}, generator {words[2]:#x}, bound {words[3]}"]
    try:
        for p, op, n in instructions(words):
            out.append(f"{p:6}  {text.line(p, op, n)}")
            if op == Op.FunctionEnd:
                out.append("")
    except SpirvError as error:
        out.append(f"; {error}")
    return "\n".join(out) + "\n"
