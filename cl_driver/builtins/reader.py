"""Reads the library's module faster than the reader of all modules: a compiler process does it while its
first program waits. What our own clang wrote is not checked, and constants, variables and functions are made
when they are asked for. Where they are the build writes down: to find it takes as long as the rest."""

from __future__ import annotations

import marshal
from _imp import source_hash  # importlib.util has it, and imports much
from array import array

from ..spirv.enums import Decoration, LinkageType, Op
from ..spirv.module import Function, Value
from ..spirv.reading.body import Body
from ..spirv.reading.declarations import HANDLERS
from ..spirv.reading.reader import HEADER_WORDS, Reader
from ..spirv.types import TypeTable

_CONSTANT, _DECORATE, _FUNCTION, _NAME = map(int, (Op.Constant, Op.Decorate, Op.Function, Op.Name))
_OTHERS = (int(Op.ConstantComposite), int(Op.Variable))  # that are made when they are asked for
_LINKAGE = int(Decoration.LinkageAttributes)
_KEY = 1  # of the hash of a module
_FUNCTION_END = (1 << 16 | Op.FunctionEnd).to_bytes(4, "little")


class _Values(dict[int, Value]):
    """By id; those that nobody has asked for are made by the reader."""

    def __init__(self, reader: LibraryReader) -> None:
        super().__init__()
        self._reader = reader

    def __missing__(self, id_: int) -> Value:
        return self._reader.make(self._reader.places[id_])


class LibraryReader(Reader):
    """The library's module. Its functions are known by their link names."""

    def __init__(self, data: bytes, places: bytes = b"") -> None:
        """places: what written_down() has returned, which may be of another module."""
        self.places: dict[int, int] = {}  # words of what is made when it is asked for
        self.linkage: dict[int, tuple[str, LinkageType]] = {}  # of functions
        self._at_once: list[int] = []  # words of the rest
        self._written_down = places
        self.recalls = False  # whether that is of this module
        super().__init__(data, {}, TypeTable())
        self._linked = {name: id_ for id_, (name, _) in self.linkage.items() if id_ in self.places}

    def function_named(self, name: str) -> Function | None:
        """The function of that link name."""
        id_ = self._linked.get(name)
        found = None if id_ is None else self.values[id_]
        return found if isinstance(found, Function) else None

    def has(self, name: str) -> bool:
        """Whether there is a function of that link name."""
        return name in self._linked

    def take(self, words: array[int]) -> None:
        """Few are ever looked at: a list gives words fastest, but takes long to be made."""
        self.raw, self.words = words, [0] * len(words)
        self._look_at(0, HEADER_WORDS)

    def _look_at(self, start: int, end: int) -> None:
        self.words[start:end] = self.raw[start:end]

    def _handle(self, p: int, n: int, op: int) -> None:
        self._look_at(p, p + n)
        HANDLERS[op](self, p, n, Op(op))

    def declarations(self) -> None:
        """Finds where everything is; types are made at once."""
        self.values = _Values(self)
        self.recalls = self._recall()
        if not self.recalls:
            self._find()
        words = self.raw
        for p in self._at_once:
            self._handle(p, words[p] >> 16, words[p] & 0xFFFF)

    def written_down(self) -> bytes:
        """Where everything is, for readers of the same module to come."""
        linkage = {id_: (name, int(kind)) for id_, (name, kind) in self.linkage.items()}
        found = (source_hash(_KEY, self.bytes), self.places, linkage, self.names, self._at_once)
        return marshal.dumps(found)

    def _recall(self) -> bool:
        try:
            of, places, linkage, names, at_once = marshal.loads(self._written_down)
        except (EOFError, ValueError, TypeError):
            return False
        if of != source_hash(_KEY, self.bytes):
            return False
        self.places, self.names, self._at_once = places, names, at_once
        kinds = {kind: LinkageType(kind) for kind in {kind for _, kind in linkage.values()}}
        self.linkage = {id_: (name, kinds[kind]) for id_, (name, kind) in linkage.items()}
        return True

    def _find(self) -> None:
        words, p, end = self.raw, HEADER_WORDS, len(self.raw)
        places = self.places
        while p < end:
            word = words[p]
            n, op = word >> 16, word & 0xFFFF
            if op == _CONSTANT or op in _OTHERS:
                places[words[p + 2]] = p
            elif op == _FUNCTION:
                places[words[p + 2]] = p
                n = self.end_of_function(p + n) + 1 - p
            elif op == _DECORATE and words[p + 2] == _LINKAGE:
                name, q = self.string(p + 3)
                self.linkage[words[p + 1]] = name, LinkageType(words[q])
            elif op == _NAME:
                self.names[words[p + 1]] = p
            else:
                self._at_once.append(p)
            p += n

    def make(self, p: int) -> Value:
        """What is declared at word p."""
        words = self.raw
        n, op, rid = words[p] >> 16, words[p] & 0xFFFF, words[p + 2]
        if op == _FUNCTION:
            return self._make_function(p, n)
        if op in _OTHERS:
            self._handle(p, n, op)
            return self.values[rid]
        type_ = self.types_by_id[words[p + 1]]
        value = words[p + 3] if n == 4 else words[p + 3] | words[p + 4] << 32
        made = self.values[rid] = self.table.constant(type_, value & (1 << type_.width) - 1)
        return made

    def value(self, p: int, id_: int) -> Value:
        """As Reader.value()."""
        return self.values[id_] if id_ in self.places else super().value(p, id_)

    def _make_function(self, p: int, n: int) -> Function:
        _, rid, control, type_id = self.raw[p + 1 : p + 5]
        start, end = p + n, self.end_of_function(p + n)

        def decode(function: Function) -> None:
            self._look_at(p, end + 1)
            Body(self, function).decode(start, end)

        function = Function(self.types_by_id[type_id], "", control, decode)
        function.offset = p
        function.linkage = linkage = self.linkage.get(rid)
        function.name = linkage[0] if linkage else ""
        self.values[rid] = function
        self.module.functions.append(function)
        return function

    def end_of_function(self, p: int) -> int:
        """The offset of the OpFunctionEnd behind p: a word like it that a function or nothing follows."""
        words, at = self.raw, 4 * p
        while True:
            at = self.bytes.index(_FUNCTION_END, at)
            q = at // 4
            if at % 4 == 0 and (q + 1 == len(words) or words[q + 1] & 0xFFFF == _FUNCTION):
                return q
            at += 1
