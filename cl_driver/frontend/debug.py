"""Lines and functions for programs built with -g.

clang's SPIR-V back end drops debug locations. So clang is asked for LLVM IR first; a call that carries a
number is put before each instruction whose location differs from the one before; clang makes SPIR-V of that
without optimising again; and each such call becomes OpLine and DebugScope of OpenCL.DebugInfo.100.
"""

from __future__ import annotations

import re
import struct
from collections import namedtuple
from collections.abc import Callable, Iterator

from . import bool_selects
from .clang import Run
from .debug_variables import KERNEL_BODY, Variables
from .long_composites import mended

MARKER = "__cl_driver_location"
SET = b"OpenCL.DebugInfo.100"

_DECLARATION = f"\ndeclare spir_func void @{MARKER}(i32)\n"
_ATTACHED = re.compile(r", !dbg !(\d+)")
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(DI[A-Za-z]+)\((.*)\)$", re.MULTILINE)
_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\[0-9A-Fa-f]{2})*)"|!(\d+)|(-?\d+))')

_SCOPES = ("DILexicalBlock", "DILexicalBlockFile")


class Place(namedtuple("Place", "file line column function at")):
    """file: number of a DIFile; function: of a DISubprogram; at: Place of the call, or None."""

    __slots__ = ()

    file: int
    line: int
    column: int
    function: int
    at: Place | None


class Metadata:
    """The debug nodes of LLVM IR in text form."""

    def __init__(self, text: str) -> None:
        self._texts: dict[int, tuple[str, str]] = {
            int(n): (kind, fields) for n, kind, fields in _NODE.findall(text)
        }
        self._fields: dict[int, dict[str, int | str]] = {}

    def fields(self, number: int) -> str:
        """All fields of a node, as text."""
        return self._texts.get(number, ("", ""))[1]

    def kind(self, number: int) -> str:
        """The name of a node's class, "" if there is no such node."""
        return self._texts.get(number, ("", ""))[0]

    def text(self, number: int, field: str, otherwise: str = "") -> str:
        """A field of a node that is a string."""
        found = self._of(number).get(field, otherwise)
        return found if isinstance(found, str) else otherwise

    def number(self, number: int, field: str, otherwise: int = 0) -> int:
        """A field of a node that is a number, or the number of the node that a field refers to."""
        found = self._of(number).get(field, otherwise)
        return found if isinstance(found, int) else otherwise

    def _of(self, number: int) -> dict[str, int | str]:
        if number not in self._fields:
            found = _FIELD.findall(self._texts.get(number, ("", ""))[1])
            self._fields[number] = {
                name: int(reference or literal) if reference or literal else _unescaped(string)
                for name, string, reference, literal in found
            }
        return self._fields[number]

    def place(self, number: int) -> Place | None:
        """What a DILocation says. The body that clang splits off a kernel counts as the kernel."""
        if self.kind(number) != "DILocation":
            return None
        file, function = 0, self.number(number, "scope", -1)
        while self.kind(function) in _SCOPES:
            file = file or self.number(function, "file")
            function = self.number(function, "scope", -1)
        if self.kind(function) != "DISubprogram":
            return None
        file = file or self.number(function, "file")
        at = self.place(self.number(number, "inlinedAt", -1))
        if at is not None and self.text(function, "linkageName") == KERNEL_BODY + self.name(at.function):
            function, at = at.function, at.at
        return Place(file, self.number(number, "line"), self.number(number, "column"), function, at)

    def name(self, function: int) -> str:
        """The name of a function in the source; "" if it has none."""
        return self.text(function, "name")


def _unescaped(text: str) -> str:
    raw = re.sub(r"\\([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)
    return raw.encode("latin-1", "replace").decode("utf-8", "replace") if raw != text else text


def mark(text: str) -> tuple[str, list[int]]:
    """LLVM IR with calls of MARKER, and the DILocations that their arguments number."""
    out: list[str] = []
    numbers: dict[int, int] = {}
    current = None
    inside = False
    switch = -1  # where the switch that is being read begins
    for line in text.split("\n"):
        if not inside:
            inside = line.startswith("define ")
        elif line == "}":
            inside = False
        if not line.startswith("  ") or line.startswith("    "):
            if line[:1] not in (" ", ""):
                current = None  # a label, or the function's ends
            out.append(line)
            continue
        if inside and line.endswith("["):
            switch = len(out)
        attached = _ATTACHED.search(line)
        before, switch = (switch, -1) if line.startswith("  ]") else (len(out), switch)
        if inside and attached and " = phi " not in line and " = alloca " not in line and before >= 0:
            number = int(attached[1])
            if number != current:
                argument = numbers.setdefault(number, len(numbers))
                out.insert(before, f"  call spir_func void @{MARKER}(i32 {argument})")
                current = number
        out.append(line)
    return "\n".join(out) + _DECLARATION, list(numbers)


# SPIR-V words.

NAME, STRING, OP_LINE, EXT_INST_IMPORT, EXT_INST, MEMORY_MODEL, ENTRY_POINT = 5, 7, 8, 11, 12, 14, 15
TYPE_VOID, TYPE_INT, VARIABLE, CONSTANT, CONSTANT_NULL, DECORATE, LABEL = 19, 21, 59, 43, 46, 71, 248
FUNCTION, FUNCTION_END, FUNCTION_CALL = 54, 56, 57
EXTENSIONS = (17, 10, 11)  # OpCapability, OpExtension, OpExtInstImport
BEFORE_STRINGS = (*EXTENSIONS, MEMORY_MODEL, ENTRY_POINT, 16, 331)  # OpExecutionMode, OpExecutionModeId
LINKAGE_ATTRIBUTES = 41
DEBUG_SOURCE, COMPILATION_UNIT, TYPE_FUNCTION, DEBUG_FUNCTION, SCOPE, INLINED_AT = 35, 1, 8, 20, 23, 25
DEBUG_NONE, IS_DEFINITION, OPENCL_C = 0, 1 << 3, 3


def _words(text: bytes) -> list[int]:
    """A literal string."""
    padded = text + b"\0" * (4 - len(text) % 4)
    return list(struct.unpack(f"<{len(padded) // 4}I", padded))


def _text(words: list[int]) -> str:
    """The literal string that words begin with."""
    return struct.pack(f"<{len(words)}I", *words).partition(b"\0")[0].decode("utf-8", "replace")


class Writer:
    """Replaces the markers of one module, and describes its variables."""

    def __init__(self, spirv: bytes, text: str, numbers: list[int], files: dict[str, str]) -> None:
        self.words: list[int] = list(struct.unpack(f"<{len(spirv) // 4}I", spirv))
        self.metadata = Metadata(text)
        self.numbers = numbers
        self.files = files
        self.bound: int = self.words[3]
        self.strings: list[int] = []
        self.nodes: list[int] = []
        self._strings: dict[str, int] = {}  # ids, as those of nodes
        self._nodes: dict[tuple[int, ...], int] = {}
        self._constants: dict[int, int] = {}
        self.set_id = self.void = self.int = 0
        self.made: list[int] = []  # constants
        self.variables = Variables(self, text)
        self.functions: dict[str, int] = {}

    def id(self) -> int:
        """A new one."""
        self.bound += 1
        return self.bound - 1

    def instructions(self) -> Iterator[tuple[int, int, int]]:
        """(position, number of words, opcode) of each."""
        words, p = self.words, 5
        while p < len(words):
            n, opcode = words[p] >> 16, words[p] & 0xFFFF
            yield p, n, opcode
            p += n

    def string(self, text: str) -> int:
        """The id of an OpString."""
        if text not in self._strings:
            number = self._strings[text] = self.id()
            words = _words(text.encode("utf-8", "replace"))
            self.strings += [len(words) + 2 << 16 | STRING, number, *words]
        return self._strings[text]

    def node(self, *operands: int) -> int:
        """A debug instruction outside of functions."""
        if operands not in self._nodes:
            number = self._nodes[operands] = self.id()
            self.nodes += self.extended(number, *operands)
        return self._nodes[operands]

    def constant(self, value: int) -> int:
        """An integer of 32 bits."""
        if value not in self._constants:
            number = self._constants[value] = self.id()
            self.made += [4 << 16 | CONSTANT, self.int, number, value]
        return self._constants[value]

    def extended(self, number: int, *operands: int) -> list[int]:
        """The words of a debug instruction."""
        return [len(operands) + 4 << 16 | EXT_INST, self.void, number, self.set_id, *operands]

    def file_name(self, file: int) -> str:
        """What a DIFile is called."""
        name = self.metadata.text(file, "filename")
        folder = self.metadata.text(file, "directory")
        return self.files.get(name) or (name if name.startswith(("/", "<")) else f"{folder}/{name}")

    def source(self, file: int) -> int:
        """The id of a file's DebugSource."""
        return self.node(DEBUG_SOURCE, self.string(self.file_name(file)))

    def unit(self, file: int) -> int:
        """The compilation unit of a file."""
        return self.node(COMPILATION_UNIT, 0x10000, 4, self.source(file), OPENCL_C)

    def function(self, number: int) -> int:
        """The id of a DISubprogram's DebugFunction."""
        metadata = self.metadata
        name, line = metadata.name(number), metadata.number(number, "line")
        file = metadata.number(number, "file")
        source, unit = self.source(file), self.unit(file)
        defined = self.functions.get(metadata.text(number, "linkageName", name)) or self.node(DEBUG_NONE)
        type_ = self.node(TYPE_FUNCTION, 0, self.void)
        linkage = self.string(metadata.text(number, "linkageName"))
        scope_line = metadata.number(number, "scopeLine", line)
        return self.node(
            DEBUG_FUNCTION, self.string(name), type_, source, line, 0, unit, linkage, IS_DEFINITION,
            scope_line, defined,
        )  # fmt: skip

    def call(self, place: Place) -> int:
        """The id of what says where a function is inlined."""
        outer = () if place.at is None else (self.call(place.at),)
        return self.node(INLINED_AT, place.line, self.function(place.function), *outer)

    def marker(self, number: int, before: Place | None) -> tuple[list[int], Place | None]:
        """What stands for a marker, and the Place from here on."""
        place = self.metadata.place(number)
        if place is None:
            return [], before
        out = []
        if before is None or (before.function, before.at) != (place.function, place.at):
            inlined = () if place.at is None else (self.call(place.at),)
            out += self.extended(self.id(), SCOPE, self.function(place.function), *inlined)
        return [
            *out,
            4 << 16 | OP_LINE,
            self.string(self.file_name(place.file)),
            place.line,
            place.column,
        ], place

    def run(self) -> bytes:
        """The module."""
        words = self.words
        marker, self.set_id = 0, self.id()
        constants: dict[int, int] = {}
        names: dict[int, str] = {}
        for p, n, opcode in self.instructions():
            if opcode == DECORATE and words[p + 2] == LINKAGE_ATTRIBUTES:
                name = _text(words[p + 3 : p + n])
                self.functions[name] = words[p + 1]
                if name == MARKER:
                    marker = words[p + 1]
            elif opcode == TYPE_VOID:
                self.void = words[p + 1]
            elif opcode == NAME:
                names[words[p + 1]] = _text(words[p + 2 : p + n])
            elif opcode == TYPE_INT and words[p + 2] == 32:
                self.int = words[p + 1]
            elif opcode == CONSTANT:
                constants[words[p + 2]] = words[p + 3]
            elif opcode == CONSTANT_NULL:
                constants[words[p + 2]] = 0
            elif opcode == ENTRY_POINT:
                name = _text(words[p + 3 : p + n])
                self.functions[name] = words[p + 2]
        head: list[int] = []
        types: list[int] = []
        bodies: list[int] = []
        out = head
        place: Place | None = None
        strings_at = imports_at = -1
        skipping = False
        function = ""  # at hand
        own: list[int] = []  # its variables, until they are described
        for p, n, opcode in self.instructions():
            if imports_at < 0 and opcode not in EXTENSIONS:
                imports_at = len(head)
            if strings_at < 0 and opcode not in BEFORE_STRINGS:
                strings_at = len(head)
                out = types
            if opcode == FUNCTION:
                function, own = names.get(words[p + 2], ""), []
                out, skipping = bodies, words[p + 2] == marker
            if opcode == LABEL:
                place = None
            if opcode == VARIABLE and out is bodies:
                own.append(words[p + 2])
            elif own and opcode != OP_LINE:
                out += self.variables.declarations(function, own)
                own = []
            if skipping:
                skipping = opcode != FUNCTION_END
            elif opcode in (NAME, DECORATE) and words[p + 1] == marker:
                pass
            elif opcode == FUNCTION_CALL and words[p + 3] == marker:
                more, place = self.marker(self.numbers[constants[words[p + 4]]], place)
                bodies += more
            else:
                out += words[p : p + n]
        set_name = _words(SET)
        head[imports_at:imports_at] = [len(set_name) + 2 << 16 | EXT_INST_IMPORT, self.set_id, *set_name]
        result = [*words[:3], self.bound, words[4], *head, *self.strings, *types, *self.made]
        result += [*self.nodes, *bodies]
        return struct.pack(f"<{len(result)}I", *result)


def embed(spirv: bytes, text: str, numbers: list[int], files: dict[str, str]) -> bytes:
    """The module that clang made of mark()'s text, with debug instructions in place of the calls.

    text, numbers: what mark() got and gave; files: names to give to source files instead of their own.
    """
    return Writer(spirv, text, numbers, files).run()


def compile(
    clang: Callable[[list[str], bytes], Run],
    arguments: list[str],
    source: bytes,
    again: list[str],
    files: dict[str, str],
    library: list[str],
) -> Run | None:
    """What clang gave for a program, with debug instructions in the module; None where that failed, and the
    program is to be compiled without them.

    clang(arguments, text) runs it. arguments: for the program; again: for LLVM IR that is
    optimised already; files: see embed(); library: for what is linked into the program.
    """
    first = clang([*arguments, *library, "-g", "-S", "-emit-llvm", "-o", "-", "-"], source)
    if first.status != 0:
        return None
    text, numbers = mark(first.output.decode("utf-8", "surrogateescape"))
    again = [*again, "-Xclang", "-disable-llvm-passes", "-c", "-o", "-", "-"]
    second = clang(again, text.encode("utf-8", "surrogateescape"))
    if second.status != 0:
        return None
    return first._replace(output=embed(bool_selects.mended(mended(second.output)), text, numbers, files))
