"""Where groups are held whole (passes/lockstep.py), what follows from local ids and constants is a number in
each lane. Local memory at such places is loaded and stored as whole vectors, and shuffled. Within a block
what was loaded or stored is remembered, and stored when somebody may look: what a sort or a scan exchanges
between neighbours does not leave the registers.

Vectors are those that an array consists of, from where it begins. They may hold elements that nobody asked
for, which are stored as they are: local memory is one thread's. For a vector that reaches beyond the end
there is room (arguments lie 128 bytes apart, see kernel_launch.c), or it is not used (variables).
"""

from __future__ import annotations

from ..passes.fold import COMPARE, INTEGER, LOGICAL, signed
from ..passes.ir import ADDRESS, EXTINST_LOADS, EXTINST_WITH_EFFECT, PURE, is_constant_int
from ..passes.ops import PassOp
from ..spirv.enums import BuiltIn, Op, StorageClass
from ..spirv.module import Constant, Instruction, Kind, Variable
from .records import walk
from .types import ir_type, size_of

MOST_VECTORS = 4  # more of them are slower than a gather
ROOM = 128  # bytes, of which vectors of arguments may be
_TOUCH_MEMORY = EXTINST_WITH_EFFECT | EXTINST_LOADS


class KnownLanes:
    """The numbers in the lanes of values of one region."""

    def __init__(self, e, group: tuple[int, int, int]):
        self.e = e
        self.group = group
        self.found: dict = {}
        self.here: Places | None = None  # of the load or store that is being lowered
        self._held: dict = {}  # (array, type, number of a vector): what it holds, and whether that is stored

    def of(self, value) -> tuple | None:
        """The unsigned numbers, or bools, of a scalar; None where they are not known."""
        if isinstance(value, Constant):
            if value.type.kind in (Kind.INT, Kind.BOOL):
                return (value.value or 0,) * self.e.width
            return None
        if not isinstance(value, Instruction):
            return None
        if value not in self.found:
            self.found[value] = None
            self.found[value] = self._compute(value)
        return self.found[value]

    def _compute(self, i: Instruction) -> tuple | None:
        op, operands = i.op, i.operands
        if op is PassOp.EntryMask:
            return (True,) * self.e.width
        if op is Op.Load or op is Op.CompositeExtract:
            return self._local_id(i)
        if i.type is None or i.type.kind not in (Kind.INT, Kind.BOOL):
            return None
        if op in INTEGER or op in COMPARE or op in LOGICAL or op is Op.Select or op is Op.LogicalNot:
            columns = [self.of(o) for o in operands]
            if None in columns:
                return None
            lanes = zip(*columns, strict=True)
            if op is Op.Select:
                return tuple(a if c else b for c, a, b in lanes)
            if op is Op.LogicalNot:
                return tuple(not a for (a,) in lanes)
            if op in LOGICAL:
                return tuple(LOGICAL[op](a, b) for a, b in lanes)
            width = operands[0].type.width
            if op in COMPARE:
                return tuple(COMPARE[op](a, b, width) for a, b in lanes)
            results = [INTEGER[op](a, b, width) for a, b in lanes]
            return None if None in results else tuple(r & ((1 << width) - 1) for r in results)
        if op in (Op.UConvert, Op.SConvert) and not i.decorations:
            lanes, width = self.of(operands[0]), operands[0].type.width
            if lanes is None:
                return None
            mask = (1 << i.type.width) - 1
            return tuple((signed(a, width) if op is Op.SConvert else a) & mask for a in lanes)
        return None

    def _local_id(self, i: Instruction) -> tuple | None:
        """Of a load of the linear local id, or one component of the local id."""
        source, k = i.operands[0], 0
        if i.op is Op.CompositeExtract:
            if not isinstance(source, Instruction) or source.op is not Op.Load or len(i.operands) != 2:
                return None
            source, k = source.operands[0], i.operands[1]
        elif isinstance(source, Instruction) and source.op in ADDRESS and len(source.operands) == 2:
            source, index = source.operands
            if not is_constant_int(index):
                return None
            k = index.value or 0
        elif i.type.kind is not Kind.INT:
            return None
        if not isinstance(source, Variable):
            return None
        width, part = self.e.width, self.e.shapes.part_of.get(i, 0)
        first = part * width
        if source.builtin == BuiltIn.LocalInvocationIndex:
            return tuple(range(first, first + width))
        if source.builtin != BuiltIn.LocalInvocationId:
            return None
        row, x = divmod(first, self.group[0])
        z, y = divmod(row, self.group[1])
        return tuple(range(x, x + width)) if k == 0 else ((y, z)[k - 1],) * width

    # Memory

    def before(self, i: Instruction, is_alone: bool) -> None:
        """To be called before an instruction is lowered. is_alone: by itself."""
        op, self.here = i.op, None
        if op is Op.Load or op is Op.Store:
            storage = i.operands[0].type.storage
            if storage is StorageClass.Workgroup and is_alone:
                self.here = find_places(self.e, i, i.type if op is Op.Load else i.operands[1].type)
            if self.here is None and storage in (StorageClass.Workgroup, StorageClass.Generic):
                self.flush(op is Op.Store)
        elif op not in PURE and not (
            op is Op.ExtInst and i.operands[1] not in EXTINST_WITH_EFFECT | EXTINST_LOADS
        ):
            self.flush(True)

    def flush(self, forgets: bool) -> None:
        """Stores what is not. forgets: memory may change, or another block begins."""
        e = self.e
        for (base, t, vector), (value, is_stored, size) in self._held.items():
            if not is_stored:
                address = _address(e, base, vector, size)
                e.emit_void(f"store {e.form(t)} {value}, ptr {address}, align {size}")
        if forgets:
            self._held.clear()
        else:
            self._held = {key: (value, True, size) for key, (value, _, size) in self._held.items()}

    def load(self, base, t: str, vector: int, size: int) -> str:
        """A vector of an array."""
        held = self._held.get((base, t, vector))
        if held is not None:
            return held[0]
        self._apart(base, t)
        address = _address(self.e, base, vector, size)
        value = self.e.emit(f"load {self.e.form(t)}, ptr {address}, align {size}")
        self._held[base, t, vector] = value, True, size
        return value

    def store(self, base, t: str, vector: int, size: int, value: str) -> None:
        self._apart(base, t)
        self._held[base, t, vector] = value, False, size

    def _apart(self, base, t: str) -> None:
        """Nothing is held of an array as elements of another type."""
        if any(key[0] is base and key[1] != t for key in self._held):
            self.flush(True)

    def places(self, pointer, type_, mask) -> Places | None:
        """Where the lanes access an array in local memory, if that is known."""
        if pointer.type.storage is not StorageClass.Workgroup or place_type(type_) is None:
            return None
        base, offset, steps = pointer, 0, []
        while isinstance(base, Instruction):
            if base.op in ADDRESS:
                offset += walk(base, steps)
            elif base.op not in (Op.CopyObject, Op.Bitcast) or base.operands[0].type.kind is not Kind.POINTER:
                return None
            base = base.operands[0]
        lanes = [offset] * self.e.width
        for index, size in steps:
            known = self.of(index)
            if known is None:
                return None
            width = index.type.width
            lanes = [at + signed(number, width) * size for at, number in zip(lanes, known, strict=True)]
        active = None if mask is None else self.of(mask)
        size = size_of(type_)
        used = [at for k, at in enumerate(lanes) if active is None or active[k]]
        if not used or min(used) < 0 or any(at % size for at in used):
            return None
        return Places(base, [at // size for at in lanes], active, mask is None or active is not None)


def place_type(type_) -> str | None:
    """The LLVM type of what lies at one place: a number, or a small OpenCL vector as an integer."""
    if type_.kind in (Kind.INT, Kind.FLOAT):
        return ir_type(type_)
    is_small = type_.kind is Kind.VECTOR and type_.count in (2, 4, 8) and size_of(type_) <= 8
    return f"i{8 * size_of(type_)}" if is_small and type_.element.kind is not Kind.BOOL else None


class Places:
    """Elements of an array, one for each lane. active: which lanes count, or None for all. is_certain:
    whether these lanes do access them; else it depends on a mask."""

    __slots__ = ("active", "base", "elements", "is_certain")

    def __init__(self, base, elements: list[int], active, is_certain: bool):
        self.base = base
        self.elements = elements
        self.active = active
        self.is_certain = is_certain

    def lanes(self) -> list[int]:
        return [k for k in range(len(self.elements)) if self.active is None or self.active[k]]

    def vectors(self) -> list[int]:
        """Which vectors of the array these elements are in."""
        width = len(self.elements)
        return sorted({self.elements[k] // width for k in self.lanes()})


def find_places(e, i, type_) -> Places | None:
    """The places of a load or store, if it is to be vectors that are shuffled."""
    is_load, memory = i.op is Op.Load, i.memory
    if memory is not None and (memory.volatile or memory.nontemporal):
        return None
    spread = e.is_varying(i.operands[0]) or e.stride(i.operands[0]) != 0
    if not spread or (is_load and not e.is_varying(i)):
        return None
    places = e.known.places(i.operands[0], type_, i.mask)
    if places is None or len(places.vectors()) > MOST_VECTORS:
        return None
    lanes, size = places.lanes(), size_of(type_)
    if not _has_room(e, places, size):
        return None
    if not is_load and len({places.elements[k] for k in lanes}) < len(lanes):
        return None
    if places.is_certain:
        e.certain.setdefault(places.base, []).append((e.current, *_ends(places)))
        return places
    return places if _is_there(e, places, size) else None


def _has_room(e, places: Places, size: int) -> bool:
    """Whether whole vectors of the array are nobody else's."""
    if isinstance(places.base, Variable):
        return (places.vectors()[-1] + 1) * e.width * size <= size_of(places.base.type.element)
    return e.width * size <= ROOM


def _ends(places: Places) -> tuple[int, int]:
    used = [places.elements[k] for k in places.lanes()]
    return min(used), max(used)


def _is_there(e, places: Places, size: int) -> bool:
    """Whether the array has these elements, though perhaps nobody accesses them here."""
    low, high = _ends(places)
    base = places.base
    if isinstance(base, Variable):
        return (high + 1) * size <= size_of(base.type.element)
    seen = e.certain.get(base, ())
    return any(a <= low and high <= b and e.tree.dominates(block, e.current) for block, a, b in seen)


def load_places(e, places: Places, t: str, size: int) -> str:
    """`<W x t>` from local memory; any number in lanes that are not active."""
    width = e.width
    vectors = places.vectors()
    loaded = [e.known.load(places.base, t, v, size) for v in vectors]
    where = [
        vectors.index(at // width) * width + at % width if places.active is None or places.active[k] else k
        for k, at in enumerate(places.elements)
    ]
    result = None
    for k in range(0, len(loaded), 2):
        a, b = loaded[k], loaded[k + 1] if k + 1 < len(loaded) else "poison"
        here = [w - k * width if k * width <= w < (k + 2) * width else -1 for w in where]  # k is even
        if result is None and len(loaded) == 1 and here == list(range(width)):
            return a
        part = _shuffled(e, t, a, b, here)
        if result is None:
            result = part
        else:
            lanes = [width + lane if h >= 0 else lane for lane, h in enumerate(here)]
            result = _shuffled(e, t, result, part, lanes)
    return result


def store_places(e, places: Places, t: str, size: int, value: str, mask: str | None) -> None:
    """Stores the lanes' values. mask: where it is not known before which lanes do."""
    width, f = e.width, e.form
    lane_of = {places.elements[k]: k for k in places.lanes()}
    if mask is not None:
        old = load_places(e, places, t, size)
        value = e.emit(f"select {f('i1')} {mask}, {f(t)} {value}, {f(t)} {old}")
    for v in places.vectors():
        here = [lane_of.get(v * width + k, -1) for k in range(width)]
        if -1 in here:
            there = e.known.load(places.base, t, v, size)
            new = _shuffled(
                e, t, value, there, [lane if lane >= 0 else width + k for k, lane in enumerate(here)]
            )
        else:
            new = value if here == list(range(width)) else _shuffled(e, t, value, "poison", here)
        e.known.store(places.base, t, v, size, new)


def _address(e, base, vector: int, size: int) -> str:
    start = e.operand(base)
    return (
        e.emit(f"getelementptr inbounds i8, ptr {start}, i64 {vector * e.width * size}") if vector else start
    )


def _shuffled(e, t: str, a: str, b: str, lanes: list[int]) -> str:
    f = e.form
    text = ", ".join("i32 poison" if lane < 0 else f"i32 {lane}" for lane in lanes)
    return e.emit(f"shufflevector {f(t)} {a}, {f(t)} {b}, <{len(lanes)} x i32> <{text}>")
