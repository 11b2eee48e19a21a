"""Debug metadata of private variables: what each is called, its type, and the memory that it is in.

Of kernels without optimisation, which keep variables in memory. Others have none to describe.
"""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.location import DebugType, DebugVariable

_ENCODINGS = {
    1: "DW_ATE_address", 2: "DW_ATE_boolean", 4: "DW_ATE_float", 5: "DW_ATE_signed", 6: "DW_ATE_signed_char",
    7: "DW_ATE_unsigned", 8: "DW_ATE_unsigned_char",
}  # fmt: skip


class VariableMetadata:
    """Numbers metadata of variables and types. node: puts a node into the module; quoted: a string of it."""

    def __init__(self, node: Callable[[str], int], quoted: Callable[[str], str]) -> None:
        self._node, self._quoted = node, quoted
        self._types: dict[DebugType, int] = {}

    def variable(self, variable: DebugVariable, scope: int, file: int, line: int) -> int:
        """The number of a DILocalVariable."""
        argument = f"arg: {variable.argument}, " if variable.argument else ""
        return self._node(
            f"!DILocalVariable(name: {self._quoted(variable.name)}, {argument}scope: !{scope}, "
            f"file: !{file}, line: {line}, type: !{self._type(variable.type)})"
        )

    def _type(self, type_: DebugType) -> int:
        if type_ not in self._types:
            self._types[type_] = self._described(type_)
        return self._types[type_]

    def _described(self, type_: DebugType) -> int:
        name = f"name: {self._quoted(type_.name)}, " if type_.name else ""
        if type_.kind == "basic":
            encoding = _ENCODINGS[type_.encoding]
            return self._node(f"!DIBasicType({name}size: {type_.size}, encoding: {encoding})")
        base = f"baseType: !{self._type(type_.base)}, " if type_.base is not None else "baseType: null, "
        if type_.kind == "pointer":
            return self._node(f"!DIDerivedType(tag: DW_TAG_pointer_type, {base}size: {type_.size})")
        if type_.kind == "struct":
            members = [self._node(self._member(*member)) for member in type_.members]
            more = f"{name}size: {type_.size}, elements: !{self._tuple(members)}"
            return self._node(f"!DICompositeType(tag: DW_TAG_structure_type, {more})")
        ranges = [self._node(f"!DISubrange(count: {count})") for count in type_.counts]
        flags = "flags: DIFlagVector, " if type_.kind == "vector" else ""
        more = f"{base}size: {type_.size}, {flags}elements: !{self._tuple(ranges)}"
        return self._node(f"!DICompositeType(tag: DW_TAG_array_type, {more})")

    def _tuple(self, numbers: list[int]) -> int:
        return self._node(f"!{{{', '.join(f'!{number}' for number in numbers)}}}")

    def _member(self, name: str, type_: DebugType, offset: int) -> str:
        return (
            f"!DIDerivedType(tag: DW_TAG_member, name: {self._quoted(name)}, baseType: !{self._type(type_)}, "
            f"size: {type_.size}, offset: {offset})"
        )
