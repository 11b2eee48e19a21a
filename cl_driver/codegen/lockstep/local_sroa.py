"""Arrays in local memory whose elements' places are known when the code is made (lane_constants.py).

Of each element it is remembered in which lane of which vector its value is. A load of such elements is a
shuffle of the vectors that they are in, a store only notes where they are now. Memory is written when
somebody else may look. So what a sort or a scan exchanges does not leave the registers, and is shuffled once
for each load, however the array lies in memory.
"""

from __future__ import annotations

from collections.abc import Callable

from ...passes.analysis.lane_constants import MOST_SOURCES
from ...records import field, record
from ...spirv.module import Value
from ..layout.lanes import LaneEmitter
from ..llvm.types import Lines
from .shuffle_network import Lane, Network, Vector


@record()
class ArrayMemory:
    """What memory has to do with the arrays of a region."""

    read: set[Value] = field(default_factory=set)  # those that are read from it
    stores: dict[Value, list[Lines]] = field(default_factory=dict)  # the lines that store to each
    # Those that a block reads so often that what is stored is best there at once.
    through: set[Value] = field(default_factory=set)


class Elements:
    """One array as elements of one LLVM type. unstored: those that memory does not have yet."""

    def __init__(self, e: LaneEmitter, memory: ArrayMemory, base: Value, t: str, size: int) -> None:
        self.e = e
        self.memory = memory
        self.base = base
        self.t = t
        self.size = size
        self.registers: dict[int, tuple[str, int]] = {}  # element: vector, lane
        self.unstored: set[int] = set()
        self._shuffled: dict[tuple[tuple[str, int] | None, ...], str] = {}

    def is_cheap(self, elements: list[int], others: Callable[[], list[list[int]]]) -> bool:
        """Whether a load is worth shuffles. others(): the elements of loads that are made after it,
        of what is there now; they are brought together at once where that is better."""
        registers, width = self.registers, self.e.width
        sources = {registers[at][0] if at in registers else at // width for at in elements if at >= 0}
        if len(sources) <= 2:
            return True
        loads = [elements, *others()]
        if len(loads) > 1:
            network = Network(width)
            vectors = network.solve([self._wanted(load) for load in loads])
            if len(network.steps) <= MOST_SOURCES * len(loads):
                self._emit_shuffles(loads, network, vectors)
                return True
        return len(sources) <= MOST_SOURCES

    def is_spread(self, elements: list[int]) -> bool:
        """Whether elements are not all in one register."""
        registers, width = self.registers, self.e.width
        return len({registers[at][0] if at in registers else at // width for at in elements if at >= 0}) > 1

    def _wanted(self, elements: list[int]) -> list[Lane]:
        """Where elements are; for those that are in memory only, which vector would have to be read."""
        registers, width = self.registers, self.e.width
        return [
            None if at < 0 else registers[at] if at in registers else (at // width, at % width)
            for at in elements
        ]

    def _emit_shuffles(self, loads: list[list[int]], network: Network, vectors: list[Vector]) -> None:
        """Emits the shuffles, so that each load finds its elements in one vector."""
        read: dict[int, str] = {}
        made: list[str] = []

        def name_of(vector: Vector) -> str:
            if isinstance(vector, tuple):
                return made[vector[1]]
            if isinstance(vector, int):
                return read.get(vector) or read.setdefault(vector, self._read(vector))
            return vector

        for lanes in network.steps:
            made.append(self._compose([at and (name_of(at[0]), at[1]) for at in lanes]))
        for elements, vector in zip(loads, vectors, strict=True):
            name = name_of(vector)
            self.registers |= {at: (name, lane) for lane, at in enumerate(elements) if at >= 0}

    def is_in_registers(self, vector: int) -> bool:
        """Whether anything of a vector of the array is."""
        width = self.e.width
        return any(at in self.registers for at in range(vector * width, (vector + 1) * width))

    def load(self, elements: list[int]) -> str:
        """`<W x t>` of these elements; any number where -1 stands for one."""
        registers, width = self.registers, self.e.width
        for at in elements:
            if at >= 0 and at not in registers:
                self._read(at // width)
        wanted = [registers[at] if at >= 0 else None for at in elements]
        count = len({place[0] for place in wanted if place is not None})
        value = self._compose(wanted)
        if count > 2:
            for lane, at in enumerate(elements):
                if at >= 0:
                    registers[at] = value, lane
        return value

    def store(self, elements: list[int], value: str) -> None:
        """Stores lanes of a vector; -1 for those that are not stored."""
        for lane, at in enumerate(elements):
            if at >= 0:
                self.registers[at] = value, lane
                self.unstored.add(at)
        if self.base in self.memory.through and len(self.unstored) == len(elements):
            self.flush()

    def flush(self) -> None:
        """Brings memory up to date."""
        e, width, read = self.e, self.e.width, self.memory.read
        was_read = self.base in read
        for vector in sorted({at // width for at in self.unstored}):
            value = self.load(list(range(vector * width, (vector + 1) * width)))
            address = self._address(vector)
            lines: Lines = [f"  store {e.form(self.t)} {value}, ptr {address}, align {self.size}"]
            e.lines.append(lines)
            self.memory.stores.setdefault(self.base, []).append(lines)
        if not was_read:  # but to store it again
            read.discard(self.base)
        self.unstored.clear()

    def _read(self, vector: int) -> str:
        e, width = self.e, self.e.width
        self.memory.read.add(self.base)
        value = e.emit(f"load {e.form(self.t)}, ptr {self._address(vector)}, align {self.size}")
        for lane in range(width):
            self.registers.setdefault(vector * width + lane, (value, lane))
        return value

    def _address(self, vector: int) -> str:
        e, start = self.e, self.e.operand(self.base)
        offset = vector * e.width * self.size
        return e.emit(f"getelementptr inbounds i8, ptr {start}, i64 {offset}") if vector else start

    def _compose(self, wanted: list[tuple[str, int] | None]) -> str:
        """One vector of lanes of others, two of which are shuffled at a time."""
        key = tuple(wanted)
        found = self._shuffled.get(key)
        if found is not None:
            return found
        width, result = self.e.width, ""
        names = list(dict.fromkeys(place[0] for place in wanted if place is not None))
        for k in range(0, len(names), 2):
            start = {name: n * width for n, name in enumerate(names[k : k + 2])}
            lanes = [-1 if p is None or p[0] not in start else start[p[0]] + p[1] for p in wanted]
            gathered = self._shuffle(names[k], names[k + 1] if k + 1 < len(names) else "poison", lanes)
            if result:
                lanes = [width + lane if w >= 0 else lane for lane, w in enumerate(lanes)]
                gathered = self._shuffle(result, gathered, lanes)
            result = gathered
        self._shuffled[key] = result
        return result

    def _shuffle(self, a: str, b: str, lanes: list[int]) -> str:
        if all(at < 0 or at == lane for lane, at in enumerate(lanes)):
            return a
        e = self.e
        vector, text = e.form(self.t), ", ".join("i32 poison" if at < 0 else f"i32 {at}" for at in lanes)
        return e.emit(f"shufflevector {vector} {a}, {vector} {b}, <{len(lanes)} x i32> <{text}>")
