"""Long basic blocks whose order LLVM's scheduler may change only a little.

Code that goes through more vectors than a CPU has registers, one after the other, loads and stores each of
them once: all that is done to one is done while it is in a register. LLVM's scheduler, which has the whole
block to choose from, may take the first step of all vectors, then the next step of all: a step that ends the
life of a vector as it begins that of another costs it nothing. Each step then loads and stores them all.

It does not move instructions past a label. So labels, which nothing refers to, cut the block for it and for
nobody else: instruction selection still makes operands of loads, and there is no instruction at a label.

That is done only to blocks of several steps whose order is good: what they compute on the way fits into half
of the registers, so that only what they are given and what they leave is stored and loaded again.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from ...device.target import Target
from ...late_patterns import pattern
from .register_order import LEAST, RESULT, Registers
from .text import LABEL, NAME, blocks, rewrite

# How many times the registers must be taken by what a block is given and what it leaves, how many operations
# on vectors there must be for each of these, and the share of the registers that anything else may take.
TIMES = 2
STEPS = 2
SHARE = 0.5

# Instructions between labels: enough to hide latencies among.
APART = 32

_LABEL = "  call void @llvm.codeview.annotation(metadata !{})"
_DECLARATION = "declare void @llvm.codeview.annotation(metadata)"

_OPERAND = pattern(NAME)
_MOVES = frozenset((
    "load", "insertelement", "extractelement", "shufflevector", "extractvalue", "bitcast", "freeze", "select",
))  # fmt: skip
_SPLAT = pattern(
    rf"  {NAME} = shufflevector <\d+ x \w+> ({NAME}), .*, <\d+ x i32> "
    r"(?:zeroinitializer|splat \(.*\)|<i32 (\d+)(?:, i32 \2)*>)$"
)


def keep(text: str, target: Target) -> str | None:
    """A module, as LLVM prints it, with labels in such blocks; None if it has none."""
    registers = Registers(target)
    made = rewrite(text, lambda lines: _labelled(lines, registers))
    return None if made is None else f"{made}\n{_DECLARATION}\n"


def _labelled(lines: list[str], registers: Registers) -> list[str] | None:
    """The lines of a function with labels, None if it needs none."""
    of_lines = blocks(lines)
    if all(end - start < LEAST for start, end in of_lines):
        return None
    sizes: dict[str, int] = {}  # of its vectors, but for arguments
    for line in lines:
        if " x " in line and (result := RESULT.match(line)):
            sizes[result[1]] = registers.of(result[2], line)
    occurrences = Counter(_OPERAND.findall("\n".join(lines)))
    made: list[str] = []
    for start, end in of_lines:
        block = lines[start:end]
        if end - start >= LEAST and LABEL.match(block[0]):
            found = _Block(block, sizes, occurrences, registers)
            block = found.cut() if found.is_good() else block
        made += block
    return made if len(made) > len(lines) else None


class _Block:
    """A basic block, and where its values live."""

    def __init__(
        self, lines: list[str], sizes: dict[str, int], occurrences: dict[str, int], registers: Registers
    ) -> None:
        self._lines = lines
        self._sizes = sizes
        self._registers = registers
        body = [line for line in lines if " = phi " not in line]
        seen = Counter(_OPERAND.findall("\n".join(body)))
        made = {line[2 : line.index(" = ")] for line in body if line[:3] == "  %" and " = " in line}
        vectors = [name for name in seen if sizes.get(name)]
        self._inner = [name for name in vectors if name in made and occurrences[name] == seen[name]]
        self._outer = set(vectors).difference(self._inner)
        self._places: list[int] = []  # before which there may be a label
        self._made: dict[str, int] = {}  # in which line
        self._last: dict[str, int] = {}  # the line of the last use
        self._loaded: set[str] = set()  # may be operands in memory
        self._folded: set[str] = set()  # are, and are repeated in all lanes
        self._shuffles: set[str] = set()  # where lanes come from: constants, which take registers
        self._loads_after_stores = False
        self._steps = 0

    def is_good(self) -> bool:
        """Whether what the block is given and what it leaves takes the registers TIMES over and goes through
        STEPS, and anything else takes no more than a SHARE of them. Loads after stores stay where they are
        without labels."""
        sizes, count = self._sizes, self._registers.count
        if sum(sizes[name] for name in self._outer) < TIMES * count:
            return False
        self._look()
        if self._loads_after_stores or self._steps < STEPS * len(self._outer):
            return False
        inner = {name: sizes[name] for name in self._inner if name not in self._folded}
        return len(self._shuffles) + max(self._in_use(inner)) <= SHARE * count

    def _look(self) -> None:
        """Goes through the lines, which takes much longer than to count what they name."""
        has_stored = False
        for number, line in enumerate(self._lines):
            result = RESULT.match(line)
            if result and result[2] in ("phi", "alloca"):
                continue
            if line[:2] == "  " and line[2:3] not in (" ", "]"):
                self._places.append(number)
            self._last.update(dict.fromkeys(_OPERAND.findall(line), number))
            has_stored |= line.startswith("  store ")
            if not result:
                continue
            self._made[result[1]] = number
            self._steps += result[2] not in _MOVES and self._sizes.get(result[1], 0) > 0
            if result[2] == "load":
                self._loaded.add(result[1])
                self._loads_after_stores |= has_stored
            elif result[2] == "shufflevector":
                splat = _SPLAT.match(line)
                if not splat:
                    self._shuffles.add(line[line.rindex("<") :])
                elif splat[1] in self._loaded and self._registers.has_masks:
                    self._folded |= {result[1], splat[1]}

    def _in_use(self, values: dict[str, int]) -> list[int]:
        """How much of these, which have sizes, there is after each line."""
        change: Counter[int] = Counter()
        for name, size in values.items():
            change[self._made[name]] += size
            change[self._last[name]] -= size
        return list(accumulate(change[number] for number in range(len(self._lines))))

    def cut(self) -> list[str]:
        """The lines with labels, between loads and their uses only where there is no better place."""
        waiting = self._in_use(dict.fromkeys(self._loaded | self._folded, 1))
        made: list[str] = []
        begun = since = 0
        for place in self._places:
            since += 1
            if since > 2 * APART or (since > APART and not waiting[place - 1]):
                made += [*self._lines[begun:place], _LABEL]
                begun, since = place, 1
        return [*made, *self._lines[begun:]]
