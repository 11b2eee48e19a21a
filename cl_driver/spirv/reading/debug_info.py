"""Where instructions come from: OpLine, and the debug-info instruction sets.

OpLine gives file, line and column; DebugScope the function, and the chain of calls that were inlined. What
is malformed is left out too: debug information never makes a module invalid.
"""

from __future__ import annotations

from ..enums import Op
from ..instruction_sets import is_non_semantic
from ..location import DebugFunction, Location
from ..module import Constant, Function, Instruction
from .debug_variables import DECLARE, DebugVariables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .body import Body
    from .reader import Reader

FUNCTION, LEXICAL_BLOCK, LEXICAL_BLOCK_DISCRIMINATOR, SCOPE, NO_SCOPE, INLINED_AT = range(20, 26)
SOURCE, FUNCTION_DEFINITION, LINE, NO_LINE = 35, 101, 103, 104

_DEEPEST = 200  # lexical blocks in one another, inlined calls in one another


class DebugInfo:
    """The debug instructions of one module, by their ids. Looked at when a body has a DebugScope."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.places: dict[int, int] = {}  # id: word offset
        self.variables = DebugVariables(self)
        self._functions: dict[int, DebugFunction | None] = {}
        self._own: dict[int, DebugFunction] = {}  # by id() of the Function

    def operands(self, id_: int, least: int) -> tuple[int, list[int]]:
        """Number and operand words of a debug instruction; (-1, []) for anything else."""
        p = self.places.get(id_)
        if p is None:
            return -1, []
        words = self.reader.words
        operands = words[p + 5 : p + (words[p] >> 16)]
        return (words[p + 4], operands) if len(operands) >= least else (-1, [])

    def literal(self, id_of_set: int, word: int) -> int:
        """A literal operand: the word itself, or the value of the constant that it names."""
        if not is_non_semantic(self.reader.sets[id_of_set]):
            return word
        constant = self.reader.values.get(word)
        value = constant.value if isinstance(constant, Constant) else 0
        return value if isinstance(value, int) else 0

    def literal_at(self, id_: int, word: int) -> int:
        """The same of an operand of the debug instruction with an id."""
        return self.literal(self.reader.words[self.places[id_] + 3], word)

    def _file(self, source: int) -> str:
        number, operands = self.operands(source, 1)
        return self.reader.strings.get(operands[0] if number == SOURCE else source, "")

    def function(self, scope: int) -> DebugFunction | None:
        """The function that a scope is in."""
        for _ in range(_DEEPEST):
            number, operands = self.operands(scope, 3)
            if number == FUNCTION and len(operands) >= 9:
                if scope not in self._functions:
                    self._functions[scope] = self._make(scope, operands)
                return self._functions[scope]
            if number == LEXICAL_BLOCK and len(operands) >= 4:
                scope = operands[3]
            elif number == LEXICAL_BLOCK_DISCRIMINATOR:
                scope = operands[2]
            else:
                break
        return None

    def _make(self, scope: int, operands: list[int]) -> DebugFunction:
        strings = self.reader.strings
        line = self.literal(self.reader.words[self.places[scope] + 3], operands[3])
        return DebugFunction(
            strings.get(operands[0], ""), strings.get(operands[6], ""), self._file(operands[2]), line
        )

    def call(self, inlined_at: int, depth: int = 0) -> Location | None:
        """The Location of a DebugInlinedAt."""
        number, operands = self.operands(inlined_at, 2)
        scope = self.function(operands[1]) if number == INLINED_AT else None
        if scope is None or depth > _DEEPEST:
            return None
        line = self.literal(self.reader.words[self.places[inlined_at] + 3], operands[0])
        at = self.call(operands[2], depth + 1) if len(operands) > 2 else None
        return Location(scope.file, line, 0, scope, at)

    def own(self, function: Function, file: str, line: int) -> DebugFunction:
        """What stands for a function that has OpLine only; file and line: the first that it has."""
        found = self._own.get(id(function))
        if found is None:
            name = function.name
            found = self._own[id(function)] = DebugFunction(name, name, file, line)
        return found


class Position:
    """Where the body at hand is while it is decoded: what instructions get as their `line`."""

    __slots__ = ("at", "body", "scope", "source")

    def __init__(self, body: Body) -> None:
        self.body = body
        self.source: tuple[str, int, int] | None = None
        self.scope: DebugFunction | None = None
        self.at: Location | None = None

    def start_block(self) -> None:
        """Neither lines nor scopes outlive a block."""
        self.source = self.scope = self.at = self.body.line = None

    def _update(self) -> None:
        body = self.body
        if self.source is None:
            body.line = None
            return
        scope = self.scope or body.reader.debug.own(body.function, self.source[0], self.source[1])
        body.line = Location(*self.source, scope, self.at)

    def set_line(self, file: str, line: int, column: int) -> None:
        """OpLine."""
        self.source = (file, line, column)
        self._update()

    def no_line(self) -> None:
        """OpNoLine."""
        self.source = None
        self._update()

    def instruction(self, p: int, n: int) -> None:
        """A debug instruction in the body."""
        body = self.body
        words, debug = body.words, body.reader.debug
        number, operands = words[p + 4], words[p + 5 : p + n]
        if number == SCOPE and operands:
            self.scope = debug.function(operands[0])
            self.at = debug.call(operands[1]) if len(operands) > 1 and self.scope else None
        elif number == NO_SCOPE:
            self.scope = self.at = None
        elif number == LINE and len(operands) >= 4:
            line, column = (debug.literal(words[p + 3], operands[k]) for k in (1, 3))
            self.source = (debug._file(operands[0]), line, column)
        elif number == NO_LINE:
            self.source = None
        elif number == DECLARE and len(operands) >= 3:
            variable = body.values.get(operands[1])
            place = debug.variables.place(operands[0])
            if isinstance(variable, Instruction) and variable.op is Op.Variable and place is not None:
                variable.line = place
            return
        else:
            return
        self._update()
