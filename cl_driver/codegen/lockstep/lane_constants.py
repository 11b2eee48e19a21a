"""Where groups are in lockstep (passes/groups/lockstep.py), what follows from local ids and constants is a
number in each lane. Local memory at such places is loaded and stored as whole vectors, and shuffled. Within a
block what was loaded or stored is remembered, and stored when somebody may look: what a sort or a scan
exchanges between neighbours does not leave the registers.

Vectors are those that an array consists of, from where it begins. They may hold elements that nobody asked
for, which are stored as they are: local memory is one thread's. For a vector that reaches beyond the end
there is room (arguments lie 128 bytes apart, see kernel_launch.c), or it is not used (variables).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...passes.analysis.lane_constants import MOST_SOURCES, ItemConstants
from ...passes.ir.dominance import DominatorTree
from ...passes.ir.fold import signed
from ...passes.ir.instructions import ADDRESS, EXTINST_LOADS, EXTINST_WITH_EFFECT, PURE
from ...passes.ir.ops import PassOp
from ...passes.ir.plan import KernelPlan
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Instruction, Kind, Type, Value, Variable
from ..layout.lanes import LaneEmitter
from ..llvm.emitter import ModuleText
from ..llvm.types import ir_type, size_of
from .local_sroa import ArrayMemory, Elements

MOST_SINGLE = 4  # loads of one element for all lanes in a block that take it from a register
MOST_LOADS = 32  # whose shuffles are planned together
FAR = 2000  # accesses to local memory among which these are looked for
ROOM = 128  # bytes, of which vectors of arguments may be
_SAME_ARRAY = ADDRESS | {Op.CopyObject, Op.Bitcast}
_ACCESSES = (Op.Load, Op.Store)
_TOUCH_MEMORY = EXTINST_WITH_EFFECT | EXTINST_LOADS


class LaneConstants(ItemConstants):
    """The numbers in the lanes of values of one region, each for the part that it belongs to.

    group: the size of all groups; tree: dominators of the region's function.
    """

    def __init__(self, e: LaneEmitter, group: tuple[int, int, int], tree: DominatorTree[Block]) -> None:
        part_of = e.shapes.part_of
        super().__init__(group, e.width, lambda i: part_of.get(i, 0) * e.width)
        self.e = e
        self.here: Places | None = None  # of the load or store that is being lowered
        self._arrays: dict[Value, Elements] = {}
        self._single_loads = 0  # in the block, from local memory
        # Load: the loads and stores that it is one of, and the number.
        self._runs: dict[Instruction, tuple[list[Instruction], int]] = {}
        self._places: dict[Instruction, Places | None] = {}  # of these
        self._private = _private_arrays(e.plan)
        self._memory = ArrayMemory()
        self._tree = tree
        # Array: (block, first, last element) that are accessed there for certain.
        self._certain: dict[Value, list[tuple[Block, int, int]]] = {}

    def text(self, value: Value) -> str | None:
        """All lanes of a value as an LLVM constant, if they are known."""
        lanes = self.of(value) if isinstance(value, Instruction) else None
        if lanes is None:
            return None
        t = ir_type(value.type)
        if lanes.count(lanes[0]) == len(lanes):
            return self.e.form.splat(t, _number(lanes[0], value.type))
        return f"<{', '.join(f'{t} {_number(lane, value.type)}' for lane in lanes)}>"

    def first(self, value: Value) -> str | None:
        """The same of the first lane."""
        lanes = self.of(value)
        return None if lanes is None else _number(lanes[0], value.type)

    def is_never(self, mask: Value | None) -> bool:
        """Whether a mask is known to have no lane."""
        lanes = None if mask is None else self.of(mask)
        return lanes is not None and not any(lanes)

    # Memory

    def begin_block(self, instructions: Sequence[Instruction]) -> None:
        """Notes which accesses to local memory follow which, with no others between them."""
        self._runs, self._places = {}, {}
        run: list[Instruction] = []
        self._single_loads = 0
        reads: dict[Value, int] = {}
        for i in instructions:
            if i.op is Op.Load and i.operands[0].type.storage is StorageClass.Workgroup:
                self._runs[i] = run, len(run)
                run.append(i)
                if not self.e.is_varying(i):
                    self._single_loads += 1
                    root = _root(i.operands[0])
                    reads[root] = reads.get(root, 0) + 1
            elif i.op is Op.Store:
                storage, root = i.operands[0].type.storage, _root(i.operands[0])
                reads[root] = reads.get(root, 0) - MOST_SINGLE
                if storage is StorageClass.Workgroup:
                    run.append(i)
                elif storage is StorageClass.Generic:
                    run = []
            elif i.op is not Op.Load and not _only_reads(i):
                run = []
        self._memory.through = {root for root, count in reads.items() if count > MOST_SINGLE}

    def single(self, i: Instruction) -> str | None:
        """What a load from local memory gives to all lanes, if a register holds it. Where there are more than
        a few such loads, memory is faster: there each is broadcast as it is loaded."""
        if (
            self._single_loads > MOST_SINGLE
            or self.e.is_varying(i)
            or i.type.kind not in (Kind.INT, Kind.FLOAT)
        ):
            return None
        if i.memory is not None and (i.memory.volatile or i.memory.nontemporal):
            return None
        places = self.places(i.operands[0], i.type, None)
        if places is None:
            return None
        array = self._arrays.get(places.base)
        if array is None or array.t != ir_type(i.type) or len(set(places.elements)) > 1:
            return None
        register = array.registers.get(places.elements[0])
        if register is None:
            return None
        return self.e.emit(f"extractelement {self.e.form(array.t)} {register[0]}, i32 {register[1]}")

    def loads_after(self, i: Instruction, places: Places) -> list[list[int]]:
        """The elements of the array that the loads after one are of, each once, as far as they are there
        now and in more than one register."""
        run, number = self._runs.get(i, ([], 0))
        array, written = self._arrays[places.base], set[int]()
        found: dict[tuple[int, ...], None] = {}
        for other in run[number + 1 : number + FAR]:
            if len(found) == MOST_LOADS - 1:
                break
            place = self._place_of(other)
            if place is None:
                if other.op is Op.Store and self._may_change(other, places.base):
                    break
            elif place.base is not places.base:
                continue
            elif other.op is Op.Store:
                written.update(place.wanted())
            elif place.is_certain and place.t == places.t and self.e.is_varying(other):
                wanted = place.wanted()
                if written.isdisjoint(wanted) and array.is_spread(wanted):
                    found[tuple(wanted)] = None
        return [list(wanted) for wanted in found if list(wanted) != places.wanted()]

    def _may_change(self, store: Instruction, base: Value) -> bool:
        """Whether a store at a place that is not known may be one to an array."""
        root = _root(store.operands[0])
        return (root is base or isinstance(root, Instruction)) and not self.is_never(store.mask)

    def _place_of(self, i: Instruction) -> Places | None:
        """places() of a load or a store of the block."""
        if i not in self._places:
            type_ = i.type if i.op is Op.Load else i.operands[1].type
            self._places[i] = self.places(i.operands[0], type_, i.mask)
        return self._places[i]

    def before(self, i: Instruction, is_alone: bool) -> None:
        """To be called before an instruction is lowered. is_alone: by itself."""
        op, self.here = i.op, None
        if op is PassOp.RegionExit:
            self._arrays.clear()  # nobody will look
        elif op is Op.Load or op is Op.Store:
            storage = i.operands[0].type.storage
            if storage is StorageClass.Workgroup and is_alone:
                self.here = self._find_places(i, i.type if op is Op.Load else i.operands[1].type)
            if self.here is None and storage is StorageClass.Workgroup:
                self._flush_one(_root(i.operands[0]), op)
            elif self.here is None and storage is StorageClass.Generic:
                self.flush(op is Op.Store)
        elif not _only_reads(i):
            self.flush(True)

    def _flush_one(self, root: Value, op: Op) -> None:
        """Stores what is not of one array, before it is accessed in memory."""
        self._memory.read.add(root)
        for base in [root] if not isinstance(root, Instruction) else list(self._arrays):
            if base in self._arrays:
                self._arrays[base].flush()
                if op is Op.Store:
                    del self._arrays[base]

    def finish(self) -> None:
        """Takes back the stores to arrays that nobody has read from memory."""
        for base, stores in self._memory.stores.items():
            if base in self._private and base not in self._memory.read:
                for lines in stores:
                    lines.clear()

    def flush(self, forgets: bool) -> None:
        """Stores what is not. forgets: memory may change, or another block begins."""
        for array in self._arrays.values():
            array.flush()
        if forgets:
            self._arrays.clear()

    def array(self, base: Value, t: str, size: int) -> Elements:
        """What is held of an array: of elements of one type at a time."""
        found = self._arrays.get(base)
        if found is not None and found.t != t:
            found.flush()
            found = None
        if found is None:
            found = self._arrays[base] = Elements(self.e, self._memory, base, t, size)
        return found

    def places(self, pointer: Value, type_: Type, mask: Value | None) -> Places | None:
        """Where the lanes access an array in local memory, if that is known."""
        t = place_type(type_)
        found = None if t is None else self.local_places(pointer)
        if t is None or found is None:
            return None
        base, lanes = found
        active = None if mask is None else self.of(mask)
        size = size_of(type_)
        used = [at for k, at in enumerate(lanes) if active is None or active[k]]
        if not used or min(used) < 0 or any(at % size for at in used):
            return None
        return Places(base, t, [at // size for at in lanes], active, mask is None or active is not None)

    def _find_places(self, i: Instruction, type_: Type) -> Places | None:
        """The places of a load or store, if it is to be vectors that are shuffled."""
        e = self.e
        is_load, memory = i.op is Op.Load, i.memory
        if memory is not None and (memory.volatile or memory.nontemporal):
            return None
        if is_load and not e.is_varying(i):
            return None
        places = self.places(i.operands[0], type_, i.mask)
        if places is None:
            return None
        array = self.array(places.base, places.t, size_of(type_))
        if is_load:
            few = array.is_cheap(places.wanted(), lambda: self.loads_after(i, places))
        else:
            vectors = places.vectors()
            few = len(vectors) <= MOST_SOURCES or all(map(array.is_in_registers, vectors))
        if not few:
            return None
        lanes, size = places.lanes(), size_of(type_)
        if not _has_room(e, places, size):
            return None
        if not is_load and len({places.elements[k] for k in lanes}) < len(lanes):
            return None
        if places.is_certain:
            self._certain.setdefault(places.base, []).append((e.current, *_ends(places)))
            return places
        return places if self._is_there(places, size) else None

    def _is_there(self, places: Places, size: int) -> bool:
        """Whether the array has these elements, though perhaps nobody accesses them here."""
        low, high = _ends(places)
        base = places.base
        if isinstance(base, Variable):
            return (high + 1) * size <= size_of(base.type.element)
        seen = self._certain.get(base, ())
        return any(
            a <= low and high <= b and self._tree.dominates(block, self.e.current) for block, a, b in seen
        )

    def load_places(self, places: Places, size: int) -> str:
        """`<W x t>` from local memory; any number in lanes that are not active."""
        return self.array(places.base, places.t, size).load(places.wanted())

    def store_places(self, places: Places, size: int, value: str, mask: str | None) -> None:
        """Stores the lanes' values. mask: where it is not known before which lanes do."""
        array, e = self.array(places.base, places.t, size), self.e
        f = e.form
        if mask is not None:
            old = array.load(places.wanted())
            value = e.emit(f"select {f('i1')} {mask}, {f(places.t)} {value}, {f(places.t)} {old}")
        array.store(places.wanted(), value)


def _root(pointer: Value) -> Value:
    """The variable or argument that an address is computed from, or an instruction that is none."""
    while isinstance(pointer, Instruction) and pointer.op in _SAME_ARRAY:
        pointer = pointer.operands[0]
    return pointer


def _private_arrays(plan: KernelPlan) -> set[Value]:
    """Variables in local memory of which all that accesses them is a load or a store of the one region."""
    if len(plan.regions) > 1:
        return set()
    found: set[Value] = {local.variable for local in plan.local_variables}
    for block in plan.regions[0].function.blocks:
        for i in block.instructions:
            is_plain = i.memory is None or not i.memory.volatile
            hidden = i.operands[1:] if i.op in _SAME_ARRAY or (is_plain and i.op in _ACCESSES) else i.operands
            found.difference_update(_root(o) for o in hidden if isinstance(o, (Instruction, Variable)))
    return found


def _only_reads(i: Instruction) -> bool:
    """Whether an instruction that is no load or store leaves local memory alone."""
    return i.op in PURE or (i.op is Op.ExtInst and i.operands[1] not in _TOUCH_MEMORY)


def _number(number: int, type_: Type) -> str:
    if type_.kind is Kind.BOOL:
        return "true" if number else "false"
    return str(signed(number, type_.width))


def place_type(type_: Type) -> str | None:
    """The LLVM type of what lies at one place: a number, or a small OpenCL vector as an integer."""
    if type_.kind in (Kind.INT, Kind.FLOAT):
        return ir_type(type_)
    is_small = type_.kind is Kind.VECTOR and type_.count in (2, 4, 8) and size_of(type_) <= 8
    return f"i{8 * size_of(type_)}" if is_small and type_.element.kind is not Kind.BOOL else None


class Places:
    """Elements of an array, one for each lane. t: their LLVM type, see place_type(). active: which lanes
    count, or None for all. is_certain: whether these lanes do access them; else it depends on a mask."""

    __slots__ = ("active", "base", "elements", "is_certain", "t")

    def __init__(
        self, base: Value, t: str, elements: list[int], active: tuple[int, ...] | None, is_certain: bool
    ) -> None:
        self.base = base
        self.t = t
        self.elements = elements
        self.active = active
        self.is_certain = is_certain

    def lanes(self) -> list[int]:
        """The numbers of the lanes that count."""
        return [k for k in range(len(self.elements)) if self.active is None or self.active[k]]

    def wanted(self) -> list[int]:
        """The element of each lane, -1 for those that do not count."""
        active = self.active
        return (
            self.elements
            if active is None
            else [a if on else -1 for a, on in zip(self.elements, active, strict=True)]
        )

    def vectors(self) -> list[int]:
        """Which vectors of the array these elements are in."""
        width = len(self.elements)
        return sorted({self.elements[k] // width for k in self.lanes()})


def _has_room(e: LaneEmitter, places: Places, size: int) -> bool:
    """Whether whole vectors of the array are nobody else's."""
    if isinstance(places.base, Variable):
        return (places.vectors()[-1] + 1) * e.width * size <= size_of(places.base.type.element)
    return e.width * size <= ROOM


def _ends(places: Places) -> tuple[int, int]:
    used = [places.elements[k] for k in places.lanes()]
    return min(used), max(used)


class LockstepEmitter(LaneEmitter):
    """An emitter of lanes that may know numbers in them: lane_constants, where groups are in lockstep."""

    def __init__(self, module: ModuleText, plan: KernelPlan, width: int) -> None:
        self.lane_constants: LaneConstants | None = None
        super().__init__(module, plan, width)
