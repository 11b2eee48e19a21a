"""What was decided for a kernel, noted where it is decided, for `cl-driver explain` (explain/report.py).

A Remarks is handed along in PlanOptions; everywhere else None stands in its place, and nothing is noted.
"""

from __future__ import annotations

from collections import Counter

from ...fast_typing import NamedTuple
from ...spirv.enums import Op
from ...spirv.location import Location
from ...spirv.module import Instruction, Kind, Value, Variable
from .instructions import ATOMICS, EXTINST_LOADS, EXTINST_PREFETCH, EXTINST_PRINTF, EXTINST_WITH_EFFECT
from .shapes import Stride

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# How something is done for the lanes of a vector, from best to worst.
UNIFORM = "uniform"  # once for all lanes
AFFINE = "affine"  # once: lane 0's value, of which those of the others are known
VECTOR = "vector"  # arithmetic on whole vectors
CONTIGUOUS = "contiguous"  # one vector of memory
SHUFFLED = "shuffled"  # vectors of memory, of which shuffles pick or mix what each lane has
ASKED = "asked"  # contiguous or uniform where the kernel finds that it is, when it runs
REDUCED = "reduced"  # an atomic: one operation for all lanes
GATHER = "gather"
SCATTER = "scatter"
ROWS = "rows"  # one vector for each lane
LANES = "lanes"  # lane by lane, as scalar code
MASKED = "masked"  # a branch: both ways are gone under masks
LIVE = "live"  # a loop: it goes on as long as any lane does
SKIPPED = "skipped"  # code that is jumped over where no lane takes part
BARRIER = "barrier"  # where a region ends
DROPPED = "dropped"  # a barrier with nothing to do

LOAD, STORE, ATOMIC, CALL, ARITHMETIC, CONTROL = "load", "store", "atomic", "call", "arithmetic", "control"


class Note(NamedTuple):
    """How an instruction at a place is done."""

    location: Location | None
    what: str  # LOAD ... CONTROL
    how: str  # UNIFORM ... DROPPED
    why: str  # a sentence's part, or ""
    masked: bool  # whether lanes outside of a mask take no part
    way: str = ""  # to reach memory, the row of codegen/access that was taken
    cycles: float = 0.0  # that it keeps the busiest resource of a core


_VSTORES = 172  # what has an effect from here on writes what it is given; before, it computes
_ARITHMETIC = frozenset([op for op in Op if 126 <= op <= 205 or 109 <= op <= 115 or 4450 <= op <= 4455])


def what_is(instruction: Instruction) -> str | None:
    """What an instruction is to a reader of the source: one of LOAD ... ARITHMETIC, or None."""
    op = instruction.op
    if op is Op.ExtInst:
        number = instruction.operands[1]
        if number in EXTINST_LOADS:
            return LOAD
        if number in (EXTINST_PRINTF, EXTINST_PREFETCH):
            return CALL if number == EXTINST_PRINTF else None
        return STORE if number in EXTINST_WITH_EFFECT and number >= _VSTORES else ARITHMETIC
    if op is Op.Load or op is Op.Store:
        pointer = instruction.operands[0]
        if type(pointer) is Variable and pointer.builtin is not None:
            return None
        return LOAD if op is Op.Load else STORE
    if op in ATOMICS:
        return ATOMIC
    if op is Op.FunctionCall:
        return CALL
    if op is Op.BranchConditional or op is Op.Switch:
        return None if instruction.line is None else CONTROL  # those without a place are ours
    return ARITHMETIC if op in _ARITHMETIC else None


def _why_by_lane(instruction: Instruction) -> str:
    """Why there is nothing but scalar code for each lane of an instruction."""
    op = instruction.op
    if instruction.memory is not None and instruction.memory.volatile:
        return "volatile"
    if op in ATOMICS:
        return "addresses differ, or there is no sum of such"
    if op is Op.FunctionCall:
        function = instruction.operands[0]
        return f"of {function.linkage[0] if function.linkage else function.name}"
    if op is Op.ExtInst:
        return "printf" if instruction.operands[1] == EXTINST_PRINTF else "there is no vector code for it"
    return f"there is no vector code for Op{op.name}"


class Remarks:
    """choices: {what was chosen: why}; notes: how often each Note was made; facts: {topic: sentences}; masks:
    the lanes that have a use for what an instruction computes."""

    def __init__(self, choices: dict[str, str] | None = None) -> None:
        self.choices = dict(choices or {})
        self.notes: Counter[Note] = Counter()
        self.facts: dict[str, list[tuple[Any, ...]]] = {}
        self.masks: dict[Instruction, Value] = {}
        self._own: list[Note] = []
        self._way = "", 0.0
        self._instruction: Instruction | None = None

    def again(self) -> Remarks:
        """For another attempt, with what was chosen so far."""
        return Remarks(self.choices)

    def choose(self, topic: str, why: str) -> None:
        """Says why a width, or a number of parts, is what it is."""
        self.choices[topic] = why

    def fact(self, topic: str, *values: Any) -> None:
        """Something about the whole kernel."""
        self.facts.setdefault(topic, []).append(values)

    def under(self, instructions: list[Instruction], mask: Value) -> None:
        """Instructions of a block, which all lanes execute, are there for those of a mask."""
        for i in instructions:
            self.masks.setdefault(i, mask)

    def control(self, instruction: Instruction, how: str, why: str = "") -> None:
        """What became of a branch or loop."""
        self.notes[Note(instruction.line, CONTROL, how, why, False)] += 1

    # One instruction at a time, as it is lowered.

    def begin(self, instruction: Instruction) -> None:
        """Lowering of an instruction begins: note() is about it."""
        self._instruction = instruction
        self._own = []
        self._way = "", 0.0

    def way(self, name: str, cycles: float) -> None:
        """The way in which the access at hand is done, and what it costs by the model of the CPU."""
        self._way = name, cycles

    def note(self, how: str, why: str = "", masked: bool = False) -> None:
        """How the instruction at hand is done; the first word counts, what follows is done in some cases."""
        i = self._instruction
        assert i is not None  # begin() was called
        what = what_is(i)
        if what is not None:
            if how == LANES and not why:
                why = _why_by_lane(i)
            self._own.append(Note(i.line, what, how, why, masked))

    def end(self, is_varying: bool, stride: Stride) -> None:
        """The instruction is lowered. What nothing was said of is as its shape is."""
        i = self._instruction
        assert i is not None
        what = what_is(i)
        if self._own:
            first = self._own[0]
            if first.how == ASKED:
                others = dict.fromkeys(note.how for note in self._own[1:])
                first = first._replace(why=", ".join(others))
            name, cycles = self._way
            self.notes[first._replace(way=name, cycles=cycles)] += 1
        elif what is CONTROL:
            self.control(i, UNIFORM)
        elif what is not None and i.type is not None and i.type.kind is not Kind.VOID:
            how = VECTOR if is_varying else UNIFORM if stride == 0 else AFFINE
            self.notes[Note(i.line, what, how, "", i.mask is not None and what is not ARITHMETIC)] += 1
