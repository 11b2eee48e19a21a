"""Private variables of programs that are built with -g and not optimised, and where clang keeps each.

clang says in its LLVM IR which alloca a variable is. Its SPIR-V back end makes a variable of each, in their
order, and drops what was said of them: DebugDeclare is put behind them again.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .debug import Writer

_FUNCTION = re.compile(r'^define .*? @"?([\w.$]+)"?\(')
_ALLOCA = re.compile(r"^  (%[\w.$-]+) = alloca ")
_DECLARED = re.compile(r"^ +#dbg_declare\(ptr (%[\w.$-]+), !(\d+), .*, !\d+\)$")
_TUPLE = re.compile(r"^!(\d+) = !\{([^}]*)\}$", re.MULTILINE)
_WORD = re.compile(r"\b(tag|encoding): (DW_\w+)")
_NUMBER = re.compile(r"!(\d+)")

KERNEL_BODY = "__clang_ocl_kern_imp_"  # clang's second function for the kernel whose name follows
BASIC, POINTER, ARRAY, VECTOR, COMPOSITE, MEMBER, VARIABLE, DECLARE, EXPRESSION = (
    2, 3, 5, 6, 10, 11, 26, 28, 31,
)  # fmt: skip
_ENCODINGS = {
    "DW_ATE_boolean": 2, "DW_ATE_float": 3, "DW_ATE_signed": 4, "DW_ATE_signed_char": 5, "DW_ATE_unsigned": 6,
    "DW_ATE_unsigned_char": 7,
}  # fmt: skip
_TRANSPARENT = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type")
_ADDRESS = 1
_MOST_COMPONENTS = 4  # of vectors; longer ones are arrays to readers of SPIR-V
_STRUCTURE, _FUNCTION_STORAGE = 1, 7
_DEEPEST = 40  # types within one another


def declared(text: str) -> dict[str, tuple[int, dict[int, int]]]:
    """For each function of LLVM IR: how many allocas it has, and the DILocalVariables of some, by number."""
    found: dict[str, tuple[int, dict[int, int]]] = {}
    name = ""
    places: dict[str, int] = {}
    variables: dict[int, int] = {}
    for line in text.split("\n"):
        if start := _FUNCTION.match(line):
            name, places, variables = start[1], {}, {}
        elif line == "}" and name:
            if variables:
                found[name] = len(places), variables
            name = ""
        elif alloca := _ALLOCA.match(line):
            places[alloca[1]] = len(places)
        elif (declares := _DECLARED.match(line)) and declares[1] in places:
            variables[places[declares[1]]] = int(declares[2])
    return found


class Variables:
    """Describes the variables of one module."""

    def __init__(self, writer: Writer, text: str) -> None:
        self.writer, self.metadata = writer, writer.metadata
        found = declared(text)
        # A kernel that clang has split has its parameters in both functions, which are one to debuggers.
        self.declared = {name: own for name, own in found.items() if KERNEL_BODY + name not in found}
        self._tuples = {int(n): list(map(int, _NUMBER.findall(inside))) for n, inside in _TUPLE.findall(text)}
        self._types: dict[int, int] = {}  # ids by DIType, 0 where there is none
        self._basic: set[int] = set()  # those of basic types, which alone may be pointed to

    def declarations(self, function: str, variables: list[int]) -> list[int]:
        """The words that describe the variables of a function, given their ids in their order."""
        count, known = self.declared.get(function, (0, {}))
        if count != len(variables):
            return []
        writer, out = self.writer, []
        for place, number in known.items():
            type_ = self._type(self.metadata.number(number, "type", -1), 0)
            if type_:
                expression = writer.node(EXPRESSION)
                described = writer.node(VARIABLE, *self._variable(number, type_))
                out += writer.extended(writer.id(), DECLARE, described, variables[place], expression)
        return out

    def _variable(self, number: int, type_: int) -> list[int]:
        writer, metadata = self.writer, self.metadata
        scope = metadata.number(number, "scope", -1)
        while metadata.kind(scope) in ("DILexicalBlock", "DILexicalBlockFile"):
            scope = metadata.number(scope, "scope", -1)
        file, line = metadata.number(number, "file"), metadata.number(number, "line")
        argument = metadata.number(number, "arg")
        name = writer.string(metadata.text(number, "name"))
        own = [name, type_, writer.source(file), line, 0, writer.function(scope), 0]
        return [*own, argument] if argument else own

    def _type(self, number: int, depth: int) -> int:
        """The id of a type, 0 if it is of a kind that is not described."""
        if number not in self._types:
            self._types[number] = 0  # while it is looked at: a structure may point to itself
            if depth < _DEEPEST:
                self._types[number] = self._described(number, depth + 1)
        return self._types[number]

    def _described(self, number: int, depth: int) -> int:
        writer, metadata = self.writer, self.metadata
        kind, words = metadata.kind(number), dict(_WORD.findall(metadata.fields(number)))
        tag = words.get("tag", "")
        size = metadata.number(number, "size")
        if kind == "DIBasicType" and words.get("encoding") in _ENCODINGS:
            name = writer.string(metadata.text(number, "name"))
            made = writer.node(BASIC, name, writer.constant(size), _ENCODINGS[words["encoding"]])
            self._basic.add(made)
            return made
        base = self._type(metadata.number(number, "baseType", -1), depth)
        if tag in _TRANSPARENT:
            return base
        if tag == "DW_TAG_pointer_type":
            if base in self._basic:
                return writer.node(POINTER, base, _FUNCTION_STORAGE, 0)
            return writer.node(BASIC, writer.string("pointer"), writer.constant(size), _ADDRESS)
        elements = self._tuples.get(metadata.number(number, "elements", -1), [])
        if tag == "DW_TAG_array_type" and base:
            counts = [metadata.number(element, "count") for element in elements]
            if not counts or min(counts) <= 0:
                return 0
            if "DIFlagVector" in metadata.fields(number) and counts[0] <= _MOST_COMPONENTS:
                return writer.node(VECTOR, base, counts[0])
            return writer.node(ARRAY, base, *map(writer.constant, counts))
        if tag == "DW_TAG_structure_type":
            return self._structure(number, elements, size, depth)
        return 0

    def _structure(self, number: int, elements: list[int], size: int, depth: int) -> int:
        """A structure, whose members name it and are named by it."""
        writer, metadata = self.writer, self.metadata
        source = writer.source(metadata.number(number, "file"))
        line, name = metadata.number(number, "line"), writer.string(metadata.text(number, "name"))
        made = writer.id()
        described: list[tuple[int, tuple[int, ...]]] = []
        for element in elements:
            type_ = self._type(metadata.number(element, "baseType", -1), depth)
            if type_:
                place = map(writer.constant, (metadata.number(element, f) for f in ("offset", "size")))
                member = writer.string(metadata.text(element, "name"))
                described.append((writer.id(), (member, type_, source, line, 0, made, *place, 0)))
        unit = writer.unit(metadata.number(number, "file"))
        fields = (name, _STRUCTURE, source, line, 0, unit, name, writer.constant(size), 0)
        writer.nodes += writer.extended(made, COMPOSITE, *fields, *(member for member, _ in described))
        for member, own in described:
            writer.nodes += writer.extended(member, MEMBER, *own)
        return made
