"""The builtin library as the code generator asks for it: functions by link name, read on demand."""

from __future__ import annotations

from ..spirv.module import Function
from ..spirv.reader import read


class BuiltinLibrary:
    """A SPIR-V module of functions with Export linkage; bodies are decoded when they are first used."""

    def __init__(self, data: bytes, types=None):
        """types: a TypeTable to share, or None."""
        self.module = read(data, None, types)
        self._functions = {f.linkage[0]: f for f in self.module.functions if f.linkage is not None}

    def function(self, name: str) -> Function | None:
        """The function of that link name, None if there is none with a body."""
        found = self._functions.get(name)
        return found if found is not None and found.blocks else None

    def names(self) -> list[str]:
        """Every link name."""
        return sorted(self._functions)
