"""Reads the library's module faster than the reader of all modules: a compiler process does it while its
first program waits. What our own clang wrote is not checked."""

from __future__ import annotations

from ..spirv.enums import Decoration, LinkageType, Op
from ..spirv.module import Function, Module
from ..spirv.reading.body import Body
from ..spirv.reading.declarations import HANDLERS
from ..spirv.reading.reader import HEADER_WORDS, Reader
from ..spirv.types import TypeTable

_CONSTANT, _DECORATE, _FUNCTION, _NAME = map(int, (Op.Constant, Op.Decorate, Op.Function, Op.Name))
_LINKAGE = int(Decoration.LinkageAttributes)
_FUNCTION_END = (1 << 16 | Op.FunctionEnd).to_bytes(4, "little")


def read(data: bytes) -> Module:
    """The library's module."""
    return _LibraryReader(data, {}, TypeTable()).module


class _LibraryReader(Reader):
    def declarations(self) -> None:
        words, p, end = self.words, HEADER_WORDS, len(self.words)
        self.linkage: dict[int, tuple[str, LinkageType]] = {}  # of functions
        types, values, constant = self.types_by_id, self.values, self.table.constant
        while p < end:
            word = words[p]
            n, op = word >> 16, word & 0xFFFF
            if op == _CONSTANT:
                type_ = types[words[p + 1]]
                value = words[p + 3] if n == 4 else words[p + 3] | words[p + 4] << 32
                values[words[p + 2]] = constant(type_, value & (1 << type_.width) - 1)
            elif op == _FUNCTION:
                n = self.function(p, n) - p
            elif op == _DECORATE and words[p + 2] == _LINKAGE:
                name, q = self.string(p + 3)
                self.linkage[words[p + 1]] = name, LinkageType(words[q])
            elif op == _NAME:
                self.names[words[p + 1]] = p
            else:
                HANDLERS[op](self, p, n, Op(op))
            p += n

    def function(self, p: int, n: int) -> int:
        _, rid, control, type_id = self.words[p + 1 : p + 5]
        start, end = p + n, self.end_of_function(p + n)
        function = Function(
            self.types_by_id[type_id], "", control, lambda f: Body(self, f).decode(start, end)
        )
        function.offset = p
        function.linkage = linkage = self.linkage.get(rid)
        function.name = linkage[0] if linkage else ""
        self.values[rid] = function
        self.module.functions.append(function)
        return end + 1

    def end_of_function(self, p: int) -> int:
        """The offset of the OpFunctionEnd behind p: a word like it that a function or nothing follows."""
        words, at = self.words, 4 * p
        while True:
            at = self.bytes.index(_FUNCTION_END, at)
            q = at // 4
            if at % 4 == 0 and (q + 1 == len(words) or words[q + 1] & 0xFFFF == _FUNCTION):
                return q
            at += 1
