"""What it costs a core that all lanes of a vector load or store, for each way to do that.

The code generator takes the cheapest of the ways that an access allows (codegen/access/ways.py), and the
estimate of a plan adds up the same costs (operations.py): so a property of a CPU is told in one place,
cpu_models.py. What accesses look like is known before there is code: how far lanes are apart, the mask, the
size of an element.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...records import record
from ...spirv.module import Kind, Type
from ..ir.layout import size_of
from .cpu_models import ISSUE, LOAD, SCALAR, SHUFFLE, STORE, VECTOR, Cost, CpuModel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Guesses where no launch is at hand: how often lanes of a mask that has some are not all of them; how often a
# question that is worth asking is answered with yes.
OFTEN_MIXED = 0.25
MOSTLY_TRUE = 0.95
_GUESSED_WRONG = 0.5  # branches of masks that are mixed
_OF_LANE = 1.0  # cycles of a lane of such a mask in a loop over those that take part: half of them
_OF_ADDRESS = 0.75  # shuffles that take a lane's address out of a vector
_MOST_IN_ROW = 8  # bytes of an OpenCL vector that is one number to loads of each lane
_LEAST_GATHERED = 32  # bits of what CPUs gather and scatter
_BLOCK = 16  # bytes within which a shuffle moves any byte anywhere
MOST_FIELDS = 8  # elements from one lane's field to the next lane's: more vectors of fields are not made


@record(frozen=True)
class Reach:
    """An access of all lanes. size: bytes of a work-item; bits: of what a lane loads or stores as one where
    lanes are on their own, and pieces: how many of these; leaves: scalars that a value consists of;
    registers: that those of all lanes fill; is_packed: the code holds them as they are in memory; is_row: an
    OpenCL vector that a lane reaches as a whole; step: bytes from a lane's place to the next lane's, None if
    nobody knows; mixed: how often the mask is neither empty nor full."""

    width: int
    size: int
    bits: int
    pieces: int
    leaves: int
    registers: float
    is_packed: bool
    is_row: bool
    step: int | None
    is_store: bool
    is_masked: bool
    mixed: float = OFTEN_MIXED


CostOf: TypeAlias = Callable[[Reach, CpuModel], Cost]


def reach(
    type_: Type, width: int, model: CpuModel, step: int | None, is_store: bool, is_masked: bool,
    mixed: float = OFTEN_MIXED,
) -> Reach:  # fmt: skip
    """That of values of a type."""
    leaves = leaf_bits(type_)
    count, size = len(leaves), size_of(type_)
    registers = sum(max(1.0, width * bits / model.vector_bits) for bits in leaves)
    bits, is_row = max(leaves, default=8), False
    if type_.kind is Kind.VECTOR and count & (count - 1) == 0:
        is_row = size > _MOST_IN_ROW
        count, bits = (count, bits) if is_row else (1, 8 * size)
    return Reach(
        width, size, bits, count, len(leaves), registers, False, is_row, step, is_store, is_masked, mixed
    )


def leaf_bits(type_: Type) -> list[int]:
    """Bits in memory of each scalar that a type consists of."""
    match type_.kind:
        case Kind.INT | Kind.FLOAT:
            return [type_.width]
        case Kind.BOOL:
            return [8]
        case Kind.VECTOR | Kind.ARRAY:
            return leaf_bits(type_.element) * type_.count
        case Kind.STRUCT:
            return [bits for member in type_.members for bits in leaf_bits(member)]
    return [64]


def price(cost: Cost, model: CpuModel) -> float:
    """By which ways are compared: cycles of the busiest resource. Rounded, for equal ones are told apart by
    their order."""
    slots = cost.slots
    of_vectors = slots[VECTOR] + slots[SHUFFLE]  # accesses compute nothing else
    times = (
        slots[ISSUE] / model.issue, slots[SCALAR] / model.scalar, of_vectors / model.vector,
        slots[SHUFFLE] / model.shuffle, slots[LOAD] / model.load, slots[STORE] / model.store,
    )  # fmt: skip
    return round(max(times), 2)


def _cost(r: Reach, model: CpuModel) -> tuple[Cost, int]:
    return Cost(latency=1 if r.is_store else model.load_latency), STORE if r.is_store else LOAD


def _width_of(r: Reach, model: CpuModel) -> float:
    """Registers that one work-item's value takes, as it is in memory."""
    return max(1.0, r.size * 8 / model.vector_bits)


def _in_memory(r: Reach, model: CpuModel) -> float:
    """Registers that the values of all lanes take, as they are in memory."""
    return max(1.0, r.width * r.size * 8 / model.vector_bits)


def _shuffles(r: Reach, model: CpuModel) -> float:
    """To take the components of all lanes apart, or to put them together: by halves, or one by one."""
    if r.leaves == 1:
        return 0.0
    return min(r.registers * math.ceil(math.log2(r.leaves)), r.leaves * _in_memory(r, model))


def _apart(r: Reach, model: CpuModel) -> float:
    """Shuffles where each lane is on its own: its components are one number or row, and what is held as one
    vector of all lanes is told apart before."""
    of_rows = _shuffles(r, model) if r.is_row or r.pieces < r.leaves else 0.0
    return of_rows + (_shuffles(r, model) if r.is_packed else 0.0)


def nothing(_: Reach, __: CpuModel) -> Cost:
    """What reads no memory: ids, which are there already."""
    return Cost()


def uniform(r: Reach, model: CpuModel) -> Cost:
    """One place for all lanes."""
    cost, resource = _cost(r, model)
    return cost.add(resource, _width_of(r, model))


def in_registers(r: Reach, model: CpuModel) -> Cost:
    """Of local memory that registers hold, at places that are known when code is made."""
    cost = Cost()
    if not r.is_store:
        cost.add(SHUFFLE, r.registers).latency = model.shuffle_latency
    return cost


def pieces(r: Reach, model: CpuModel) -> Cost:
    """Of private memory where each element of all lanes lies together."""
    cost, resource = _cost(r, model)
    return cost.add(resource, r.registers).add(VECTOR, (r.is_masked and r.is_store) * r.registers)


def contiguous(r: Reach, model: CpuModel) -> Cost:
    """Of values that follow one another; an OpenCL vector's components are taken apart or mixed."""
    if r.is_masked and r.is_store and not model.has_masks:
        versions = versions_by_mask(r, model)
        if model.vector_bits < 256 or r.bits < 32:  # no CPU has masked stores for these
            return versions
        return min((masked_store(r, model), versions), key=lambda cost: price(cost, model))
    cost = _whole_vectors(r, model)
    if r.is_masked and not model.has_masks:
        cost.add(VECTOR, r.registers)
    return cost


def contiguous_and_unmasked(r: Reach, model: CpuModel) -> Cost:
    """The same of a row that is for all lanes only."""
    return _whole_vectors(r, model)


def _whole_vectors(r: Reach, model: CpuModel) -> Cost:
    cost, resource = _cost(r, model)
    shuffles = 0.0 if r.is_packed else _shuffles(r, model) or (1.0 if r.bits < 32 else 0.0)
    cost.add(resource, _in_memory(r, model)).add(SHUFFLE, shuffles)
    cost.latency += model.shuffle_latency if shuffles else 0
    return cost


def masked_store(r: Reach, model: CpuModel) -> Cost:
    """One masked store for all masks, which takes AMD's cores long without registers for masks; that of an
    empty mask goes to a place that is there."""
    cost = _whole_vectors(r, model).add(VECTOR, 1).add(SCALAR, 2)
    cost.slots[STORE] += (model.masked_store_cycles - 1) * model.store * _in_memory(r, model)
    return cost


def versions_by_mask(r: Reach, model: CpuModel) -> Cost:
    """A branch for each of full, empty and mixed masks; only mixed ones take masked stores, or go lane by
    lane."""
    cost = _whole_vectors(r, model).add(VECTOR, 1).add(SCALAR, 2)
    has_instruction = r.size in (4, 8) and model.vector_bits >= 256
    alone = (model.masked_store_cycles - 1) * _in_memory(r, model) if has_instruction else _OF_LANE * r.width
    cost.slots[STORE] += r.mixed * alone * model.store
    cost.slots[ISSUE] += r.mixed * _GUESSED_WRONG * model.mispredicted * model.issue
    return cost


def may_be_fields(r: Reach) -> bool:
    """Whether an access may be of fields that lie between whole vectors: numbers of 8 bits or more."""
    is_number = r.leaves == 1 and r.bits in (8, 16, 32, 64)
    if not is_number or r.is_masked or r.step is None or r.step % min(4, r.size):
        return False
    return r.size < r.step <= MOST_FIELDS * r.size


def fields(r: Reach, model: CpuModel, together: int = 1) -> Cost:
    """One of so many fields of structures, a structure for each lane, that are accessed together: all that
    lies between is loaded, and halved as often as it takes to tell the fields apart."""
    assert r.step is not None
    cost, resource = _cost(r, model)
    if r.bits < 32:
        blocks = math.ceil(r.width * r.step / _BLOCK)
        cost.latency += model.shuffle_latency
        return cost.add(resource, blocks / together).add(SHUFFLE, blocks).add(VECTOR, blocks - 1)
    count = max(2.0, r.step / r.size)
    share = min(1.0, together / count)
    shuffles = share * count * math.log2(count) + (1 - share) * (count - 1)
    cost.add(resource, r.registers * count / together).add(SHUFFLE, r.registers * shuffles / together)
    cost.latency += model.shuffle_latency * math.log2(count)
    return cost


def gather(r: Reach, model: CpuModel) -> Cost:
    """The CPU's instruction for a place of each lane's own, which does one lane after another, too."""
    cost, resource = _cost(r, model)
    lanes = r.width * r.pieces
    each = model.scatter_cycles if r.is_store else model.gather_cycles
    cost.add(resource, lanes)
    cost.slots[ISSUE] += lanes * (model.gather_operations - 1)
    cost.slots[resource] += max(0.0, each * (model.store if r.is_store else model.load) - 1) * lanes
    cost.add(SHUFFLE, _apart(r, model))
    cost.latency += 12
    return cost


def rows(r: Reach, model: CpuModel) -> Cost:
    """An OpenCL vector for each lane, and shuffles."""
    cost, resource = _cost(r, model)
    cost.add(resource, r.width * _width_of(r, model)).add(SHUFFLE, _apart(r, model))
    cost.add(SHUFFLE, _OF_ADDRESS * r.width).add(SCALAR, (1 + r.is_masked) * r.width)
    cost.latency += 2 * model.shuffle_latency
    return cost


def lanes(r: Reach, model: CpuModel) -> Cost:
    """Scalar code for each lane: its address is taken out of a vector, unless it is known how far lanes are
    apart, what it loads is put into one."""
    cost, resource = _cost(r, model)
    count, of_address = r.width * r.pieces, r.step is None or _may_gather(r, model)
    cost.add(resource, count).add(SHUFFLE, (1.5 if of_address else 1.0) * count)
    cost.add(SCALAR, (of_address + r.is_masked) * count)
    cost.add(SHUFFLE, _apart(r, model))
    cost.latency += 12
    return cost


def _may_gather(r: Reach, model: CpuModel) -> bool:
    """Whether this is compared with gathers, or scatters, for which no step counts."""
    return has_instruction(model, r.is_store) and r.bits >= _LEAST_GATHERED


def has_instruction(model: CpuModel, is_store: bool) -> bool:
    """Whether there are gathers that are worth taking, or scatters, which take registers for masks."""
    return model.has_masks or (model.has_gathers and not is_store)


GATHER, ROWS, LANES = "gather", "rows", "lanes"  # names of ways at any place


def at_any_place(r: Reach, model: CpuModel) -> list[tuple[str, CostOf]]:
    """The ways where nothing is known of the lanes' places."""
    if r.is_row:
        return [(ROWS, rows)]
    found: list[tuple[str, CostOf]] = [(LANES, lanes)]
    if _may_gather(r, model):
        found.insert(0, (GATHER, gather))
    return found


def cheapest(ways: list[tuple[str, CostOf]], r: Reach, model: CpuModel) -> tuple[str, CostOf]:
    """The way that costs least, the first of equal ones."""
    return min(ways, key=lambda way: price(way[1](r, model), model)) if len(ways) > 1 else ways[0]


def anywhere(r: Reach, model: CpuModel) -> Cost:
    """The cheapest way where nothing is known of the lanes' places."""
    return cheapest(at_any_place(r, model), r, model)[1](r, model)


def updated(
    type_: Type, width: int, model: CpuModel, is_private: bool, is_masked: bool, taken: int
) -> Cost | None:
    """Of what lanes load, change and store at places of their own, in scalar code for each lane: its address
    is taken out of a vector, and so many other operands, integers by way of registers for scalars. None where
    a load and a store of all lanes cost as little.

    Gathers and scatters leave lanes alone that take no part. Scalar code writes elsewhere for these, which
    takes cores with AVX-512 long, but where that is beside a private variable.
    """
    if model.has_masks and not is_private:
        return None
    load, store = (reach(type_, width, model, None, is_store, is_masked) for is_store in (False, True))
    count, element = width * load.leaves, type_.element if type_.kind is Kind.VECTOR else type_
    taken *= 1 if element.kind is Kind.FLOAT else 2
    cost = Cost(latency=12).add(LOAD, count).add(STORE, count).add(SHUFFLE, (_OF_ADDRESS + taken) * count)
    if 2 * 8 * load.size <= load.leaves * model.vector_bits:
        for resource in (LOAD, STORE, SHUFFLE):
            cost.slots[resource] *= model.narrow
    cost.add(SCALAR, (1 + is_masked) * count)
    apart = anywhere(load, model)
    apart.slots = [a + b for a, b in zip(apart.slots, anywhere(store, model).slots, strict=True)]
    if not (
        is_masked or model.has_masks or load.is_row
    ):  # addresses are the same, and LLVM takes them out once
        apart.slots[SHUFFLE] -= _OF_ADDRESS * width
    return cost if price(cost, model) < price(apart, model) else None


def asked(r: Reach, model: CpuModel, is_uniform: bool) -> Cost:
    """A question when the kernel runs, and two versions: the good one where lanes turn out to be neighbours,
    or alike, as they mostly do."""
    good = (uniform(r, model).add(SHUFFLE, 1)) if is_uniform else contiguous(r, model)
    bad = anywhere(r, model)
    pairs = zip(good.slots, bad.slots, strict=True)
    cost = Cost([MOSTLY_TRUE * a + (1 - MOSTLY_TRUE) * b for a, b in pairs], good.latency + 2)
    return cost.add(VECTOR, 1).add(SCALAR, 2)


def transposed(r: Reach, model: CpuModel) -> Cost:
    """One of as many iterations as there are lanes, in each of which every lane goes on by an element: a
    vector of what each lane is going to load, transposed into a tile on the stack."""
    cost, _ = _cost(r, model)
    cost.add(LOAD, 2 * r.registers).add(STORE, r.registers).add(SCALAR, 4).add(VECTOR, r.is_masked)
    in_register = max(1, model.vector_bits // r.bits)  # beyond that registers change places, which is free
    return cost.add(SHUFFLE, math.log2(min(r.width, in_register)) * r.registers)


def looked_up(r: Reach, model: CpuModel, shuffles: float, vectors: float) -> Cost:
    """A table in registers: so many permutes, and other operations on vectors."""
    cost = Cost(latency=2 * model.shuffle_latency)
    return cost.add(SHUFFLE, shuffles).add(VECTOR, vectors + r.registers)
