"""The ways in which lanes reach memory: what a row of the tables is, and how one of them is taken.

loads.py and stores.py have a table each. A row is a Way: its name, its precondition, what it costs by the
model of the CPU, and the code that it emits. Of the rows whose preconditions hold the cheapest is taken, of
equal ones the first. Each of these would be right. Where only one is, because an access is volatile, say, or
because of where its memory lies, the access demands it: a row is there for one demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...passes.cost import access_costs
from ...passes.cost.access_costs import CostOf, Reach
from ...passes.cost.cpu_models import Cost, CpuModel
from ...records import record, replace
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Instruction, Kind, Type, Value
from ..llvm.errors import CodegenError
from ..llvm.types import leaf_types, size_of
from ..ops.memory import storage_of
from .addresses import Address, address_of
from .emitter import AccessEmitter
from .gather_scatter import leaf_offsets, ways_anywhere
from .natures import ALIKE, NEIGHBOURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

# What an access demands.
ID = "id"  # no memory at all: a built-in variable
VOLATILE = "volatile"  # each lane by itself, in order, for others may look
PIECES = "pieces"  # private memory in pieces (layout/private_layout.py)
IN_REGISTERS = "in registers"  # local memory that registers hold (lockstep/lane_constants.py)
PACKED = "packed"  # a value with all components in one vector (packed_vectors.py)
PLACED = "placed"  # its place was asked for together with others' (block_versioning.py)
FIELD = "field"  # it is made with others, of the same structures (interleaved_access.py)
MERGED = "merged"  # it is made with those of other parts (store_merging.py)
ANY = "any"  # nothing: any way is right


class Access:
    """A load or store of all lanes. Nothing has been emitted for it but its address and its mask.

    place: bytes that a value takes in arrays of its kind; stride: bytes from one lane's place to the next
    lane's, None where nobody knows. index: how far the place is behind the pointer, in units of `place`, if
    there is one. A store has leaves_of, which gives its leaves, and data, what they are in memory; uniform:
    the Value, if it is the same in all lanes; hint: metadata of whole vectors; waits: may_wait() holds;
    stays_packed: there is one leaf, of packed_vectors.py.
    """

    __slots__ = (
        "_metadata", "address", "alignment", "data", "demand", "hint", "i", "index", "is_store", "leaves_of",
        "mask", "place", "pointer", "stays_packed", "stride", "type", "uniform", "waits",
    )  # fmt: skip

    def __init__(
        self, i: Instruction, pointer: Value, type_: Type, demand: str = ANY, place: int = 0,
        alignment: int = 0, index: Value | None = None,
    ) -> None:  # fmt: skip
        self.i, self.pointer, self.type, self.demand = i, pointer, type_, demand
        self.place, self.alignment, self.index = place, alignment, index
        self.address: Address = Address(None, 0, None)
        self.stride: int | None = None
        self.mask: str | None = None
        self.is_store = False
        self.leaves_of: Callable[[], list[str]] = list
        self.uniform: Value | None = None
        self.hint = ""
        self.waits = self.stays_packed = False
        self.data: list[str] | None = None
        self._metadata: str | None = None

    def find(self, e: AccessEmitter, address: Address | None = None) -> Access:
        """Looks up the address, unless it is given, and the mask."""
        self.address = address_of(e, self.pointer) if address is None else address
        self.stride = None if self.address.single is None else self.address.stride
        self.mask = e.mask_of(self.i)
        return self

    def metadata(self, e: AccessEmitter) -> str:
        """What is known of other accesses."""
        if self._metadata is None:
            is_load, memory = not self.is_store and self.mask is None, self.i.memory
            is_volatile = memory is not None and memory.volatile
            self._metadata = "" if is_volatile else e.alias_metadata(self.pointer, is_load=is_load)
        return self._metadata

    @property
    def is_masked(self) -> bool:
        """Whether some lanes may be left out."""
        return self.mask is not None

    @property
    def is_even(self) -> bool:
        """Whether it is of scalars or vectors, which lie in memory as one kind of element."""
        return is_even(self.type)


def is_even(type_: Type) -> bool:
    """Whether values are scalars or vectors, which lie in memory as one kind of element."""
    return type_.kind not in (Kind.ARRAY, Kind.STRUCT)


@record(frozen=True, eq=False)
class Way:
    """A row. match: what the lowering needs to know where the precondition holds, None where it does not;
    nothing is emitted. cost: of that match; costs of rows that are not fixed depend on it. lower: False if a
    question that was worth asking turns out to have one answer, so that there is nothing to emit."""

    name: str
    demand: str
    match: Callable[[AccessEmitter, Access], Any]
    cost: Callable[[Reach, CpuModel, Any], Cost]
    lower: Callable[[AccessEmitter, Access, Any], bool | None]
    is_fixed: bool = True


Priced: TypeAlias = list[tuple[float, Way]]

_MOST_ORDERS = 1024  # that a process remembers, of all programs that it compiles


class Table:
    """Ways to load, or to store."""

    def __init__(self, *ways: Way) -> None:
        self.ways = ways
        self.of: dict[str, list[Way]] = {}
        self._orders: dict[tuple[str, Reach, str], Priced] = {}
        for way in ways:
            self.of.setdefault(way.demand, []).append(way)

    def take(self, e: AccessEmitter, access: Access) -> Way:
        """Emits an access in the cheapest way there is, and tells which. CodegenError if there is none."""
        order, reach = self._order(e, access)
        for way, match in _matches(e, access, order, reach):
            if e.remarks is not None and reach is not None:
                e.remarks.way(way.name, access_costs.price(way.cost(reach, e.cpu, match), e.cpu))
            if way.lower(e, access, match) is not False:
                return way
        raise CodegenError("there is no way for an access")

    def _order(self, e: AccessEmitter, access: Access) -> tuple[Priced, Reach | None]:
        """Rows for an access by their price, which is the same for all accesses that look alike."""
        rows = self.of[access.demand]
        if len(rows) == 1 and e.remarks is None:
            return [(0.0, rows[0])], None
        key = self, access.demand, access.type, access.mask is None, access.stays_packed
        found: tuple[Priced, Reach] | None = e.ways.get(key)
        if found is None:
            reach = reach_of(e, access)
            found = e.ways[key] = self._priced(access.demand, reach, e.cpu), reach
        return found

    def _priced(self, demand: str, reach: Reach, cpu: CpuModel) -> Priced:
        key = demand, reach, cpu.name
        order = self._orders.get(key)
        if order is None:
            if len(self._orders) >= _MOST_ORDERS:
                self._orders.clear()
            priced = [
                (access_costs.price(way.cost(reach, cpu, None), cpu) if way.is_fixed else -1.0, way)
                for way in self.of[demand]
            ]
            order = self._orders[key] = sorted(priced, key=lambda row: row[0])
        return order


def _matches(
    e: AccessEmitter, access: Access, order: Priced, reach: Reach | None
) -> Iterator[tuple[Way, Any]]:
    """Rows that hold, with their matches, the cheapest first. Preconditions of what is more expensive than
    what is taken are not looked at."""
    waiting: list[tuple[float, Way, Any]] = []  # those that are as expensive as their match says
    for price, way in order:
        while waiting and waiting[0][0] <= price:
            yield waiting.pop(0)[1:3]
        match = way.match(e, access)
        if match is None:
            continue
        if way.is_fixed or reach is None:
            yield way, match
        else:
            waiting.append((access_costs.price(way.cost(reach, e.cpu, match), e.cpu), way, match))
            waiting.sort(key=lambda row: row[0])
    for row in waiting:
        yield row[1:3]


def reach_of(e: AccessEmitter, access: Access) -> Reach:
    """What costs depend on."""
    type_ = access.type
    found = access_costs.reach(type_, e.width, e.cpu, None, access.is_store, access.is_masked)
    is_packed = access.stays_packed or access.demand == PACKED
    return replace(found, is_packed=True) if is_packed else found


def fixed(cost: CostOf) -> Callable[[Reach, CpuModel, Any], Cost]:
    """A cost that does not depend on the match."""
    return lambda reach, model, _: cost(reach, model)


# Preconditions of both tables.


def always(_: AccessEmitter, __: Access) -> bool:
    """Of the last row for a demand."""
    return True


def is_uniform(_: AccessEmitter, access: Access) -> bool | None:
    """All lanes reach one place."""
    return access.stride == 0 or None


def is_contiguous(_: AccessEmitter, access: Access) -> bool | None:
    """Values of the lanes follow one another."""
    return (access.stride == access.place and access.is_even) or None


def may_be_alike(e: AccessEmitter, access: Access) -> int | None:
    """It is worth asking whether lanes reach one place: the stride that is asked for."""
    return 0 if _guess(e, access) == ALIKE else None


def may_be_neighbours(e: AccessEmitter, access: Access) -> int | None:
    """It is worth asking whether values of the lanes follow one another."""
    return access.place if _guess(e, access) == NEIGHBOURS else None


def _guess(e: AccessEmitter, access: Access) -> str | None:
    if access.stride is not None or not access.is_even:
        return None
    return None if _is_cut(access) else e.contiguity.guess(_terms(access))


def _is_cut(access: Access) -> bool:
    return access.index is not None and access.index.type.width < 64


def _terms(access: Access) -> list[tuple[Value, int]]:
    terms = [(access.pointer, 1)]
    return terms if access.index is None else [*terms, (access.index, access.place)]


def ask(e: AccessEmitter, access: Access, stride: int) -> tuple[str, str] | None:
    """Emits the question whether lanes are so far apart: an i1 and lane 0's address; None where the answer
    is known to be no."""
    return e.contiguity.ask(_terms(access), stride)


def may_be_either(e: AccessEmitter, access: Access) -> bool:
    """Whether lanes reach one place just as well as that values follow one another."""
    return e.contiguity.guess_either(_terms(access))


def by_instruction(e: AccessEmitter, access: Access) -> bool | None:
    """The CPU has gathers and scatters of what each lane reaches."""
    return access_costs.GATHER in _anywhere(e, access) or None


def by_rows(e: AccessEmitter, access: Access) -> bool | None:
    """Each lane reaches an OpenCL vector as a whole."""
    return access_costs.ROWS in _anywhere(e, access) or None


def by_lane(e: AccessEmitter, access: Access) -> bool | None:
    """Each lane reaches scalars."""
    return access_costs.LANES in _anywhere(e, access) or None


def _anywhere(e: AccessEmitter, access: Access) -> tuple[str, ...]:
    return ways_anywhere(e, access.type, access.is_store, access.is_masked)


def lies_together(e: AccessEmitter, access: Access) -> bool | None:
    """Pieces of private memory that the lanes reach side by side."""
    if e.is_varying(access.pointer):
        return None
    step = e.stride(access.pointer)
    return all(size_of(t) == step for t in leaf_types(access.type)) or None


def pieces(e: AccessEmitter, pointer: Value, type_: Type) -> list[tuple[Type, Address]]:
    """The type and Address of each leaf of what lies in pieces."""
    address = address_of(e, pointer)
    found: list[tuple[Type, Address]] = []
    for t, offset in zip(leaf_types(type_), leaf_offsets(type_), strict=True):
        if not offset:
            at = address
        elif address.single is not None:
            single = e.emit(f"getelementptr i8, ptr {address.single}, i64 {e.scaled(pointer, offset)}")
            at = Address(single, address.stride, None)
        else:
            where = f"getelementptr i8, {e.form('ptr')} {address.leaf}, i64 {e.scaled(pointer, offset)}"
            at = Address(None, 0, e.emit(where))
        found.append((t, at))
    return found


def is_seen(e: AccessEmitter, i: Instruction) -> bool:
    """Whether an access is volatile, and of memory where it may matter that each lane has one of its own.

    Local memory belongs to the thread that runs the group. Kernels say volatile there to have values written
    and read where they stand, and this they are for all lanes at once, too.
    """
    if i.memory is None or not i.memory.volatile:
        return False
    return e.lane_constants is not None or storage_of(i.operands[0]) is not StorageClass.Workgroup


def may_wait(e: AccessEmitter, i: Instruction) -> bool:
    """Whether an instruction is a masked store of neighbours, which may wait (masked_access.py)."""
    if i.op is not Op.Store or i.mask is None or (i.memory is not None and i.memory.volatile):
        return False
    pointer, type_ = i.operands[0], i.operands[1].type
    if e.lane_constants is not None or e.spacing(pointer) > 1 or e.is_varying(pointer):
        return False
    return e.stride(pointer) == size_of(type_) and is_even(type_)
