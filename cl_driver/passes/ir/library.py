"""What the passes ask of the builtin library; builtins/ and compiler/ have it."""

from __future__ import annotations

from ...fast_typing import Protocol
from ...spirv.module import Function, Type


class Library(Protocol):
    """Functions with bodies, whose module shares its table of types with the program's (TypeTable(base))."""

    def function(self, name: str) -> Function | None:
        """The function with a link name, if there is one."""

    def instruction(self, number: int, type_: Type) -> Function | None:
        """The function that is an instruction of OpenCL.std with a result of this type, if there is one."""
