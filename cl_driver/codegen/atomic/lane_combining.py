"""Atomics of several lanes on one address: one operation on memory stands for those of all lanes.

The lanes take their turns in the order of their numbers, as if no other thread came between. A lane's old
value is then what was in memory, combined with the values of the lanes before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...passes.ir.remarks import LANES, REDUCED
from ...spirv.enums import Op
from ...spirv.module import Constant, Instruction
from ..access.addresses import address_of, all_lanes
from ..access.gather_scatter import Places
from ..library.shared_code import is_written_out
from ..llvm.emitter import FunctionEmitter
from ..llvm.registry import Lowering, lowers_wide
from ..llvm.types import ir_type
from ..llvm.versioning import emit_versions
from ..ops.atomics import READ_MODIFY_WRITE, is_plain, ordering, update, update_plainly
from ..ops.atomics import read_modify_write as one_by_one
from .atomic_reduction import ATOMICRMW, COMBINED, combine, reduce
from .combining_table import add_by_table
from .emitter import AtomicEmitter
from .lane_indices import Place, place_by_index

_LINES_OF_TURN = 6  # of LLVM IR for each lane

_NEUTRAL_ZERO = (Op.AtomicIAdd, Op.AtomicISub, Op.AtomicOr, Op.AtomicXor)
_SUBTRACTS = (Op.AtomicISub, Op.AtomicIDecrement)


@lowers_wide(*COMBINED)
def read_modify_write(e: AtomicEmitter, i: Instruction) -> None:
    """Where the address is one: a reduction, one atomic, and a scan if the old values are used."""
    pointer = i.operands[0]
    if e.is_varying(pointer) or e.stride(pointer):
        each_by_itself(e, i)
        return
    name, neutral = COMBINED[i.op]
    t, f = ir_type(i.type), e.form
    identity = f.splat(t, str(neutral(i.type.width)))
    mask = e.mask_of(i)
    e.note(REDUCED, masked=mask is not None)
    gathers = e.reductions.allow(e, i)
    total = _sum_of_steps(e, i, t) if name == "add" and mask is None and not gathers else None
    values = ""
    if total is None or e.is_used(i):
        values = e.leaf(i.operands[3]) if len(i.operands) > 3 else f.splat(t, "1")
        if i.op in _SUBTRACTS:
            values = e.emit(f"sub {f(t)} zeroinitializer, {values}")
    if mask is not None:
        values = e.emit(f"select {f('i1')} {mask}, {f(t)} {values}, {f(t)} {identity}")
    if gathers:
        e.reductions.gather(e, i, values)
        return
    if total is None:
        total = reduce(e, name, t, values)
    address = e.operand(pointer)
    before, after = e.label, None
    if mask is not None:
        body, after = e.new_label("atomic"), e.new_label("done")
        e.emit_void(f"br i1 {e.any_lane(mask)}, label %{body}, label %{after}")
        e.begin_block(body)
    old = update(e, ATOMICRMW.get(name, name), i, address, total)
    if after is not None:
        done = e.label
        e.emit_void(f"br label %{after}")
        e.begin_block(after)
        old = e.emit(f"phi {t} [ {old}, %{done} ], [ 0, %{before} ]")
    leaf = e.splat(old, t, f)
    if e.is_used(i):
        leaf = combine(e, name, t, leaf, _exclusive_scan(e, name, t, values, identity))
    e.define_leaves(i, [leaf])


@lowers_wide(*(op for op in READ_MODIFY_WRITE if op not in COMBINED))
def each_by_itself(e: AtomicEmitter, i: Instruction) -> None:
    """Where lanes have addresses of their own, and what cannot be combined."""
    pointer = i.operands[0]
    if is_plain(pointer) and e.is_varying(pointer):
        _turns(e, i)()
    elif e.histogram.has(i):
        _privatised(e, i)
    else:
        e.lane_by_lane(i, _lowering_of_lane(e, i))


def _privatised(e: AtomicEmitter, i: Instruction) -> None:
    """Additions to the thread's copy of a buffer, to a table of recent sums, or to memory, as the data plane
    has decided (privatised_histogram.py)."""
    turns, mask, lowering = _turns(e, i), e.mask_of(i), _lowering_of_lane(e, i)
    addresses = all_lanes(e, address_of(e, i.operands[0]))
    value, values = _values_in_lanes(e, i)

    def without_copy() -> None:
        emit_versions(
            e, e.histogram.is_combined(e), [],
            lambda: add_by_table(e, i, addresses, mask, value, values),
            lambda: e.lane_by_lane(i, lowering),
        )  # fmt: skip

    emit_versions(e, e.histogram.is_there(e), [], turns, without_copy)


def _lowering_of_lane(e: AtomicEmitter, i: Instruction) -> Lowering:
    """What is done in each lane."""
    may_do_nothing = i.op in _NEUTRAL_ZERO and not isinstance(i.operands[3], Constant) and not e.is_used(i)
    is_relaxed = ordering(e, i.operands[2]) == "monotonic"
    return _unless_zero if may_do_nothing and is_relaxed and not is_plain(i.operands[0]) else one_by_one


def _unless_zero(e: FunctionEmitter, i: Instruction) -> None:
    """Where nobody asks for the old value, and nothing else waits for the operation, one that changes nothing
    is left out: an atomic operation takes much longer than a branch. Most elements of a histogram of a few
    pixels are zeros, which each group adds to those of the whole image."""
    t, value = ir_type(i.type), e.operand(i.operands[3])
    changes = e.emit(f"icmp ne {t} {value}, 0")
    body, after = e.new_label("changes"), e.new_label("done")
    e.emit_void(f"br i1 {changes}, label %{body}, label %{after}")
    e.begin_block(body)
    update(e, READ_MODIFY_WRITE[i.op], i, e.operand(i.operands[0]), value)
    e.emit_void(f"br label %{after}")
    e.begin_block(after)
    e.define(i, "0")


def _turns(e: AtomicEmitter, i: Instruction) -> Callable[[], None]:
    """What emits the lanes' turns on memory of the group's thread, or on a copy for the thread.

    What it needs of vectors is emitted at once, as the turns may stand on one of two ways.
    """
    place, mask = place_by_index(e, i.operands[0]), e.mask_of(i)
    value, values = _values_in_lanes(e, i)
    if place is not None and is_written_out(e, _LINES_OF_TURN * e.width):
        return lambda: _in_turn_by_index(e, i, place, mask, value, values)
    addresses = all_lanes(e, address_of(e, i.operands[0]))
    return lambda: _in_turn(e, i, addresses, mask, value, values)


def _values_in_lanes(e: AtomicEmitter, i: Instruction) -> tuple[str, str | None]:
    """The value where it is one, or the vector of values."""
    if len(i.operands) < 4:
        return "1", None
    if e.is_same_in_lanes(i.operands[3]):
        return e.operand(i.operands[3]), None
    return "", e.leaf(i.operands[3])


def _in_turn(
    e: AtomicEmitter, i: Instruction, addresses: str, mask: str | None, value: str, values: str | None
) -> None:
    """Each lane's addition and the like, without a branch.

    Addresses are extracted from vectors, not read from the stack: stores whose address is known late
    make loads wait. A Zen 4 is slow where an address comes straight from a vector register, so indices are
    used where possible (python -m tests.bench.throughput --filter histogram).
    """
    t = ir_type(i.type)
    e.note(LANES, masked=mask is not None)
    given = (e.form(t), values) if values is not None else (t, value)

    def build(places: Iterator[str], operands: list[str], _: str) -> list[str]:
        one, several = ("", operands[0]) if values is not None else (operands[0], None)
        return _updates(e, i, places, one, several)

    places = Places(e, addresses, mask, None, "counter")
    results = [e.form(t)] * e.is_used(i)
    key = i.op, given[0], e.is_used(i)
    old = places.each(e, key, _LINES_OF_TURN * e.width, [given], results, "", build)
    e.define_leaves(i, old or ["zeroinitializer"])


def _in_turn_by_index(
    e: AtomicEmitter, i: Instruction, place: Place, mask: str | None, value: str, values: str | None
) -> None:
    """The same in lanes whose addresses differ by small numbers: several of them are extracted at once."""
    e.note(LANES, masked=mask is not None)
    e.written_out += _LINES_OF_TURN * e.width * (1 + (mask is not None))
    if mask is None:
        e.define_leaves(i, _updates(e, i, place.addresses(e), value, values) or ["zeroinitializer"])
        return
    bits = e.emit(f"bitcast {e.form('i1')} {mask} to i{e.width}")
    every = e.emit(f"icmp eq i{e.width} {bits}, -1")

    def wanted() -> Iterator[str]:
        other = e.harmless_memory("counter")
        for lane, address in enumerate(place.addresses(e)):
            bit = e.emit(f"and i{e.width} {bits}, {1 << lane}")
            bit = e.emit(f"icmp ne i{e.width} {bit}, 0")
            yield e.emit(f"select i1 {bit}, ptr {address}, ptr {other}")

    old = emit_versions(
        e, every, [e.form(ir_type(i.type))] * e.is_used(i),
        lambda: _updates(e, i, place.addresses(e), value, values),
        lambda: _updates(e, i, wanted(), value, values),
    )  # fmt: skip
    e.define_leaves(i, old or ["zeroinitializer"])


def _updates(
    e: AtomicEmitter, i: Instruction, addresses: Iterable[str], value: str, values: str | None
) -> list[str]:
    """Updates what is at the lanes' addresses, which are emitted one by one. The old values, if used."""
    f, t, is_used = e.form, ir_type(i.type), e.is_used(i)
    leaf = "zeroinitializer"
    for lane, address in enumerate(addresses):
        if values is not None:
            value = e.emit(f"extractelement {f(t)} {values}, i32 {lane}")
        old = update_plainly(e, READ_MODIFY_WRITE[i.op], i, address, value)
        if is_used:
            leaf = e.emit(f"insertelement {f(t)} {leaf}, {t} {old}, i32 {lane}")
    return [leaf] if is_used else []


def _sum_of_steps(e: AtomicEmitter, i: Instruction, t: str) -> str | None:
    """The sum over all lanes where each adds the same, or a constant more than the lane before it."""
    sign = -1 if i.op in _SUBTRACTS else 1
    if len(i.operands) < 4:
        return str(sign * e.width)
    value = i.operands[3]
    if e.is_varying(value):
        return None
    steps = sign * e.stride(value) * e.width * (e.width - 1) // 2
    total = e.emit(f"mul {t} {e.operand(value)}, {sign * e.width}")
    return e.emit(f"add {t} {total}, {steps}") if steps else total


def _exclusive_scan(e: AtomicEmitter, name: str, t: str, values: str, identity: str) -> str:
    """In each lane the combination of the values of the lanes before it."""
    result, distance = _moved_up(e, t, values, identity, 1), 1
    while distance < e.width:
        result = combine(e, name, t, result, _moved_up(e, t, result, identity, distance))
        distance *= 2
    return result


def _moved_up(e: AtomicEmitter, t: str, values: str, identity: str, distance: int) -> str:
    """The value of the lane so many places before; the identity where there is none."""
    lanes = ", ".join(f"i32 {lane - distance if lane >= distance else e.width}" for lane in range(e.width))
    return e.emit(f"shufflevector {e.form(t)} {values}, {e.form(t)} {identity}, <{e.width} x i32> <{lanes}>")
