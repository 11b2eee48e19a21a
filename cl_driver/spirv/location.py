"""Places in the source of a program, which instructions and slots are marked with."""

from __future__ import annotations

from ..fast_typing import NamedTuple


class DebugFunction:
    """A function of the source. linkage: its symbol's name, "" where it has none; line: where it begins."""

    __slots__ = ("file", "line", "linkage", "name")

    def __init__(self, name: str, linkage: str, file: str, line: int) -> None:
        self.name = name
        self.linkage = linkage
        self.file = file
        self.line = line


class DebugType:
    """A type of the source, for debuggers. kind: "basic", "pointer", "array", "vector" or "struct"; size: in
    bits; encoding: a basic type's, as DWARF numbers them; base: what a pointer points to, or elements are;
    counts: of elements, one for each dimension; members: (name, type, bits before it) of a structure."""

    __slots__ = ("base", "counts", "encoding", "kind", "members", "name", "size")

    def __init__(self, kind: str, name: str = "", size: int = 0, encoding: int = 0) -> None:
        self.kind = kind
        self.name = name
        self.size = size
        self.encoding = encoding
        self.base: DebugType | None = None
        self.counts: list[int] = []
        self.members: list[tuple[str, DebugType, int]] = []


class DebugVariable:
    """A variable of the source. argument: its number among the function's parameters from 1 on, or 0."""

    __slots__ = ("argument", "name", "type")

    def __init__(self, name: str, type_: DebugType, argument: int) -> None:
        self.name = name
        self.type = type_
        self.argument = argument


class Location(NamedTuple):
    """A place in the source. at: the place of the call, where this function was inlined into another one;
    variable: what a private variable is there, if this is the place of one."""

    file: str
    line: int
    column: int
    scope: DebugFunction
    at: Location | None
    variable: DebugVariable | None = None

    def inlined(self, call: Location) -> Location:
        """The same place, the outermost function of the chain being inlined at `call`."""
        return self._replace(at=call if self.at is None else self.at.inlined(call))

    def outermost(self) -> Location:
        """The place in the function that all others of the chain were inlined into."""
        place = self
        while place.at is not None:
            place = place.at
        return place
