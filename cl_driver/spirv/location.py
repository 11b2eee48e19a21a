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


class Location(NamedTuple):
    """A place in the source. at: the place of the call, where this function was inlined into another one."""

    file: str
    line: int
    column: int
    scope: DebugFunction
    at: Location | None

    def inlined(self, call: Location) -> Location:
        """The same place, the outermost function of the chain being inlined at `call`."""
        return self._replace(at=call if self.at is None else self.at.inlined(call))

    def outermost(self) -> Location:
        """The place in the function that all others of the chain were inlined into."""
        place = self
        while place.at is not None:
            place = place.at
        return place
