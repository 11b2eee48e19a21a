"""Types and private variables as OpenCL.DebugInfo.100 describes them, for debuggers.

What is malformed, or of a kind that nobody shows, is left out: a variable is then not described.
"""

from __future__ import annotations

from ..location import DebugType, DebugVariable, Location

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .debug_info import DebugInfo

BASIC, POINTER, QUALIFIER, ARRAY, VECTOR, TYPEDEF, COMPOSITE, MEMBER, VARIABLE, DECLARE = (
    2, 3, 4, 5, 6, 7, 10, 11, 26, 28,
)  # fmt: skip

# Encodings of basic types, as those of DWARF: address, boolean, float, signed, signed char, unsigned...
ENCODINGS = {1: 1, 2: 2, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8}
_DEEPEST = 40  # types within one another


class DebugVariables:
    """The variables of one module."""

    def __init__(self, debug: DebugInfo) -> None:
        self.debug = debug
        self._types: dict[int, DebugType | None] = {}

    def place(self, id_: int) -> Location | None:
        """The place of a variable: what DebugDeclare names first."""
        number, operands = self.debug.operands(id_, 7)
        scope = self.debug.function(operands[5]) if number == VARIABLE else None
        type_ = self._type(operands[1], 0) if scope is not None else None
        if scope is None or type_ is None:
            return None
        strings, literal = self.debug.reader.strings, self.debug.literal_at
        argument = literal(id_, operands[7]) if len(operands) > 7 else 0
        variable = DebugVariable(strings.get(operands[0], ""), type_, argument)
        line, column = literal(id_, operands[3]), literal(id_, operands[4])
        return Location(scope.file, line, column, scope, None, variable)

    def _number(self, id_: int) -> int:
        """The value of a constant."""
        value = getattr(self.debug.reader.values.get(id_), "value", 0)
        return value if isinstance(value, int) else 0

    def _type(self, id_: int, depth: int) -> DebugType | None:
        if id_ not in self._types:
            self._types[id_] = None  # while it is read: a structure may point to itself
            if depth < _DEEPEST:
                self._types[id_] = self._read(id_, depth + 1)
        return self._types[id_]

    def _read(self, id_: int, depth: int) -> DebugType | None:
        number, operands = self.debug.operands(id_, 2)
        literal = self.debug.literal_at
        name = self.debug.reader.strings.get(operands[0], "") if operands else ""
        if number == BASIC and len(operands) >= 3:
            encoding = ENCODINGS.get(literal(id_, operands[2]), 0)
            return DebugType("basic", name, self._number(operands[1]), encoding) if encoding else None
        if number == POINTER:
            made = DebugType("pointer", size=64)
            made.base = self._type(operands[0], depth)
            return made
        if number == QUALIFIER:
            return self._type(operands[0], depth)
        if number == TYPEDEF:
            return self._type(operands[1], depth)
        if number == ARRAY or number == VECTOR:
            base = self._type(operands[0], depth)
            counts = (
                [literal(id_, operands[1])] if number == VECTOR else list(map(self._number, operands[1:]))
            )
            if base is None or not all(counts):
                return None
            made = DebugType("vector" if number == VECTOR else "array")
            made.base, made.counts, made.size = base, counts, base.size
            for count in counts:
                made.size *= count if count != 3 or number == ARRAY else 4
            return made
        if number == COMPOSITE and len(operands) >= 9 and literal(id_, operands[1]) == 1:
            made = DebugType("struct", name, self._number(operands[7]))
            for member in operands[9:]:
                kind, parts = self.debug.operands(member, 9)
                type_ = self._type(parts[1], depth) if kind == MEMBER else None
                if type_ is not None:
                    text = self.debug.reader.strings.get(parts[0], "")
                    made.members.append((text, type_, self._number(parts[6])))
            return made
        return None
