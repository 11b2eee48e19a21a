"""Reads a SPIR-V binary into a Module.

Everything outside of functions is decoded at once, function bodies when they are first looked at (body.py).
Specialisation constants take their values here, so that array lengths and everything computed from them
follow; see spec_constant_ops.py.
"""

from __future__ import annotations

import struct
import sys
from array import array

from ..enums import Decoration, ExecutionMode, Op
from ..errors import SpirvError
from ..module import (
    NO_DECORATIONS,
    Constant,
    ConstantExpr,
    EntryPoint,
    Function,
    InlineAssembly,
    Kind,
    Module,
    Type,
    Value,
    Variable,
)
from ..tables import CONTINUED, ENUMS, ROWS
from ..types import TypeTable
from .assembly import OF_ASSEMBLY
from .body import Body
from .debug_info import DebugInfo
from .declarations import HANDLERS, LAYOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAGIC = 0x07230203
HEADER_WORDS = 5
NEWEST = (1, 6)
ID_DECORATIONS = {
    Decoration.AlignmentId: Decoration.Alignment,
    Decoration.MaxByteOffsetId: Decoration.MaxByteOffset,
}
ID_MODES = {
    ExecutionMode.LocalSizeId: ExecutionMode.LocalSize,
    ExecutionMode.LocalSizeHintId: ExecutionMode.LocalSizeHint,
    ExecutionMode.SubgroupsPerWorkgroupId: ExecutionMode.SubgroupsPerWorkgroup,
}


def read(
    data: bytes, specialisation: dict[int, bytes] | None = None, types: TypeTable | None = None
) -> Module:
    """Decodes a module of either endianness. specialisation: SpecId to the value's bytes, little-endian.

    types: the table to intern types and constants in, shared by modules that will be linked. Raises
    SpirvError, as may the first use of a function's `blocks` or `arguments`.
    """
    return Reader(data, specialisation or {}, types or TypeTable()).module


class Reader:
    """The state of one reading, which lazily decoded functions keep."""

    def __init__(self, data: bytes, specialisation: dict[int, bytes], table: TypeTable) -> None:
        self.table = table
        self.specialisation = specialisation
        self.words: list[int] = []
        self.bytes = b""
        self.bound = 0
        self.types_by_id: dict[int, Type] = {}
        self.values: dict[int, Value] = {}
        self.names: dict[int, int] = {}  # id: offset of its OpName
        self.strings: dict[int, str] = {}
        self.sets: dict[int, str] = {}
        self.decorations: dict[int, dict[Decoration, Any]] = {}
        self.debug = DebugInfo(self)
        self.groups: set[int] = set()
        self.assembly_targets: dict[int, str] = {}
        self.entry_points: list[tuple[int, int, str, list[int]]] = []
        self.modes: list[tuple[int, int, ExecutionMode, tuple[int, ...], bool]] = []
        self.forward: dict[int, Type] = {}  # pointers declared ahead
        self.addressed: list[tuple[int, ConstantExpr, int]] = []  # pointers to functions, with their ids
        self.local_ids: set[int] = set()  # those that the bodies decoded so far define
        self.module = Module(types=table, readers=[self], memory_model=None)
        self.header(data)
        self.declarations()
        self.finish()

    # What other parts use, too.

    def error(self, p: int, rule: str) -> SpirvError:
        """The SpirvError of the instruction at word p."""
        op = self.words[p] & 0xFFFF if p < len(self.words) else -1
        name = f"Op{Op(op).name}" if p >= HEADER_WORDS and op in Op else "module"
        return SpirvError(p, name, rule)

    def string(self, q: int, end: int | None = None) -> tuple[str, int]:
        """The literal string at word q, and the word after it. end: where its instruction ends."""
        stop = self.bytes.find(b"\0", 4 * q, None if end is None else 4 * end)
        if stop < 0:
            raise self.error(q, "a string without an end")
        return self.bytes[4 * q : stop].decode("utf-8", "replace"), stop // 4 + 1

    def complete_string(self, p: int, q: int, end: int) -> str:
        """The literal string that is the rest of the instruction at p."""
        text, after = self.string(q, end)
        if after != end:
            raise self.error(p, "words behind the string")
        return text

    def string_of(self, p: int, id_: int) -> str:
        """The text of an OpString. SpirvError if the id is none."""
        text = self.strings.get(id_)
        if text is None:
            raise self.error(p, f"id {id_} is not an OpString")
        return text

    def type(self, p: int, id_: int) -> Type:
        """The type with an id. SpirvError if it is none, or none yet."""
        type_ = self.types_by_id.get(id_)
        if type_ is None:
            raise self.error(p, f"id {id_} is not a type, or not one yet")
        return type_

    def data_type(self, p: int, id_: int) -> Type:
        """A type that objects in memory can have."""
        type_ = self.type(p, id_)
        if type_.kind in (Kind.VOID, Kind.FUNCTION):
            raise self.error(p, f"{type_!r} is not a type of objects")
        return type_

    def enumerant(self, p: int, kind: str, value: int) -> Any:
        """The member of an enumeration of the grammar."""
        try:
            found = ENUMS[kind](value)
        except ValueError:
            raise self.error(p, f"{value} is no {kind}") from None
        self.module.uses.setdefault((kind, found), p)
        return found

    def value(self, p: int, id_: int) -> Value:
        """The constant, variable or function with an id. SpirvError if it is none, or none yet."""
        value = self.values.get(id_)
        if value is None:
            raise self.error(p, f"id {id_} is not a constant, variable or function, or not one yet")
        return value

    def new_id(self, p: int, id_: int) -> int:
        """The id, which must be below the bound and not have been defined. SpirvError else."""
        if not 0 < id_ < self.bound:
            raise self.error(p, f"result id {id_} is not below the bound {self.bound}")
        if (
            id_ in self.types_by_id
            or id_ in self.values
            or id_ in self.strings
            or id_ in self.sets
            or id_ in self.groups
            or id_ in self.assembly_targets
        ):
            raise self.error(p, f"result id {id_} is defined twice")
        return id_

    def integer(self, p: int, id_: int) -> int:
        """The value of an integer constant."""
        value = self.value(p, id_)
        if not isinstance(value, Constant) or value.type.kind is not Kind.INT:
            raise self.error(p, f"id {id_} is not an integer constant")
        return value.value or 0

    def operands(self, p: int, first: int, n: int) -> list[int]:
        """The words of an instruction from the one numbered `first`, and of those that continue it."""
        words, end = self.words, len(self.words)
        found, op, p = words[p + first : p + n], words[p] & 0xFFFF, p + n
        while p < end and CONTINUED.get(words[p] & 0xFFFF) == op:
            n = words[p] >> 16
            if n == 0 or p + n > end:
                break  # declarations() says what is wrong when it comes here
            found += words[p + 1 : p + n]
            p += n
        return found

    # The stages of reading.

    def header(self, data: bytes) -> None:
        """Checks the header and takes the words, of either endianness (SPIR-V 2.3)."""

        def refuse(word: int, rule: str) -> SpirvError:
            return SpirvError(word, "header", rule)

        if len(data) < 4 * HEADER_WORDS or len(data) % 4:
            raise refuse(0, f"{len(data)} bytes are not a whole number of words with a header")
        (magic,) = struct.unpack_from("<I", data)
        words = array("I", bytes(data))
        if words.itemsize != 4:
            raise AssertionError("unsigned int is not 32 bits wide")
        swapped = magic != MAGIC
        if swapped and struct.unpack_from(">I", data)[0] != MAGIC:
            raise refuse(0, f"the magic number is {magic:#010x}, not {MAGIC:#010x}")
        if swapped == (sys.byteorder == "little"):
            words.byteswap()
        self.take(words)
        if sys.byteorder != "little":
            words.byteswap()
        self.bytes = words.tobytes()  # little-endian, as strings want it
        version = self.words[1]
        self.module.version = (version >> 16 & 0xFF, version >> 8 & 0xFF)
        if version & 0xFF0000FF or not (1, 0) <= self.module.version <= NEWEST:
            raise refuse(1, f"version word {version:#010x} is not one of 1.0 to 1.6")
        self.bound = self.words[3]
        if self.bound == 0:
            raise refuse(3, "the bound is 0")
        if self.words[4]:
            raise refuse(4, f"schema {self.words[4]} is not 0")

    def take(self, words: array[int]) -> None:
        """The words, as they are looked at: a list gives them fastest."""
        self.words = words.tolist()

    def declarations(self) -> None:
        """Decodes everything outside of functions and checks the sections' order (SPIR-V 2.4)."""
        words, end, p = self.words, len(self.words), HEADER_WORDS
        handlers, rows, layout, section = HANDLERS, ROWS, LAYOUT, 0
        uses, before = self.module.uses, None
        while p < end:
            n = words[p] >> 16
            op = words[p] & 0xFFFF
            try:
                row = rows[op]
            except KeyError:
                raise self.error(p, f"unknown opcode {op}") from None
            if n == 0 or p + n > end:
                raise self.error(p, f"{n} words reach past the end of the module")
            # clang 22 repeats the type behind a null event, once for each use but one.
            clang_null = op == Op.ConstantNull and n > 3 and set(words[p + 3 : p + n]) == {words[p + 1]}
            if not (row.min_words <= n <= row.max_words or clang_null):
                raise self.error(p, f"{n} words, where {row.min_words} to {row.max_words} are right")
            place = layout.get(op, section)
            if place < section and self.module.misplaced is None:
                self.module.misplaced = self.error(p, "comes too late in the logical layout of a module")
            section = place
            if op == 54:
                p = self.function(p, n)
                continue
            if op in CONTINUED and before not in (CONTINUED[op], op):
                raise self.error(p, f"does not follow an Op{CONTINUED[op].name} that it could continue")
            if row.capabilities and ("Instruction", op) not in uses:
                uses["Instruction", row.op] = p
            handler = handlers.get(op)
            if handler is None:
                raise self.error(p, "not allowed outside of functions, or not for kernels")
            handler(self, p, n, row.op)
            before = op
            p += n

    def function(self, p: int, n: int) -> int:
        """OpFunction; notes where the body is. Returns the offset after OpFunctionEnd."""
        words, end = self.words, len(self.words)
        result, rid, control, type_id = words[p + 1 : p + 5]
        type_ = self.type(p, type_id)
        if type_.kind is not Kind.FUNCTION or type_.element is not self.types_by_id.get(result):
            raise self.error(p, "the function's type does not fit its result type")
        self.new_id(p, rid)
        start = q = p + n
        while True:
            if q >= end:
                raise self.error(p, "no OpFunctionEnd")
            word = words[q]
            if word < 0x10000:
                raise self.error(q, "an instruction of 0 words")
            if word & 0xFFFF == 56:
                break
            if word & 0xFFFF == 54:
                raise self.error(q, "a function within a function")
            q += word >> 16
        function = Function(type_, "", control, lambda f: Body(self, f).decode(start, q))
        function.offset = p
        self.values[rid] = function
        self.describe(function, rid)
        self.module.functions.append(function)
        return q + 1

    def describe(self, value: Function | Variable, rid: int) -> None:
        """Gives a function or variable its name, linkage and decorations."""
        if rid in self.names:
            value.name = self.string(self.names[rid] + 2)[0]
        decorations = self.decorations.get(rid)
        if decorations:
            linkage = decorations.pop(Decoration.LinkageAttributes, None)
            value.decorations = decorations or NO_DECORATIONS
            if linkage:
                value.linkage = linkage
                value.name = linkage[0]
            if isinstance(value, Variable) and Decoration.BuiltIn in decorations:
                value.builtin = decorations[Decoration.BuiltIn]

    def finish(self) -> None:
        """Puts together what refers to ids ahead: entry points, their modes, decorations by id."""
        module = self.module
        if module.memory_model is None:
            raise self.error(len(self.words), "no OpMemoryModel")
        if self.forward:
            raise self.error(
                len(self.words), f"pointer type {min(self.forward)} is declared ahead but never defined"
            )
        by_function: dict[int, list[EntryPoint]] = {}
        for p, id_, name, interface in self.entry_points:
            function = self.value(p, id_)
            if not isinstance(function, Function):
                raise self.error(p, f"id {id_} is not a function")
            entry = EntryPoint(name, function, [self.value(p, w) for w in interface])
            if not function.name:
                function.name = name
            module.entry_points.append(entry)
            by_function.setdefault(id_, []).append(entry)
        for p, id_, mode, literals, by_id in self.modes:
            if id_ not in by_function:
                raise self.error(p, f"id {id_} is not the function of an entry point")
            if mode == ExecutionMode.FPFastMathDefault:
                # (width, mask) pairs instead of ids
                literals = (self.type(p, literals[0]).width, self.integer(p, literals[1]))
            elif by_id:
                literals = tuple(self.integer(p, w) for w in literals)
                mode = ID_MODES.get(mode, mode)
            for entry in by_function[id_]:
                entry.modes[mode] = (
                    entry.modes.get(mode, ()) + literals if mode in REPEATED_MODES else literals
                )
        for p, pointer, id_ in self.addressed:
            function = self.value(p, id_)
            if not isinstance(function, Function):
                raise self.error(p, f"id {id_} is not a function")
            # clang deduces what pointers point to anew for each use: pointees may differ, and be lost.
            pointee = pointer.type.element
            if pointee.kind is Kind.FUNCTION and len(pointee.members) != len(function.type.members):
                raise self.error(p, f"{pointer.type!r} is not a pointer to the function's type")
            pointer.operands = (function,)
        for id_, decorations in self.decorations.items():
            if Decoration.SpecId in decorations and id_ not in self.groups:
                if getattr(self.values.get(id_), "spec_id", None) is None:
                    raise self.error(
                        len(self.words), f"SpecId decorates id {id_}, which is no specialisation constant"
                    )
            if Decoration.HostAccessINTEL in decorations and id_ not in self.groups:
                if not isinstance(self.values.get(id_), Variable):
                    raise self.error(
                        len(self.words),
                        f"HostAccessINTEL decorates id {id_}, which is no variable of the module",
                    )
            if not OF_ASSEMBLY.isdisjoint(decorations) and id_ not in self.groups:
                known = self.types_by_id.get(id_) or self.values.get(id_)  # or it is in a body
                if known is not None and not isinstance(known, InlineAssembly):
                    raise self.error(
                        len(self.words), f"a decoration of inline assembly for id {id_}, which is none"
                    )
            for given, plain in ID_DECORATIONS.items():
                if given in decorations:
                    decorations[plain] = (self.integer(0, decorations.pop(given)[0]),)


# Modes that may be given once per width: their literals are strung together.
REPEATED_MODES = frozenset(
    {
        ExecutionMode.DenormPreserve,
        ExecutionMode.DenormFlushToZero,
        ExecutionMode.SignedZeroInfNanPreserve,
        ExecutionMode.RoundingModeRTE,
        ExecutionMode.RoundingModeRTZ,
        ExecutionMode.FPFastMathDefault,
    }
)
