"""Atomic additions in a table of the thread's own, which holds what recent addresses are still to get.

An entry is an address and a sum; where an address has its entry follows from its low bits. An addition to an
address that is there is a plain one to its sum. Another address takes the entry over, once the sum is added
to memory. What is left comes to memory when the thread has done its share of the launch
(native_shim/src/launch/privatised_histogram.c). So a few places that much is added to cost no cache line that
goes from core to core, however large the buffer is in which they lie.
"""

from __future__ import annotations

from ...spirv.module import Instruction
from ..layout import abi
from ..library.shared_code import is_written_out, shared
from ..llvm.types import ir_type
from ..llvm.versioning import SLOW
from ..ops.atomics import READ_MODIFY_WRITE
from .emitter import AtomicEmitter

_LINES = 17  # of LLVM IR for each lane
_ENTRY = 16  # bytes: address, sum


def add_by_table(
    e: AtomicEmitter, i: Instruction, addresses: str, mask: str | None, value: str, values: str | None
) -> None:
    """The additions of all lanes: straight code while addresses are in the table, from the first lane on
    whose is not a loop. Lanes outside of the mask add to spare entries, of no address."""
    table, word = e.thread_field(abi.THREAD_COUNTS, "ptr"), f"i{e.width}"
    lines = _LINES * e.width
    bits = e.emit(f"bitcast {e.form('i1')} {mask} to {word}") if mask is not None else "-1"
    if not is_written_out(e, lines):
        _add_in_loop(e, i, table, bits, addresses, value, values)
        return
    e.written_out += lines
    slow, after = e.new_label(SLOW), e.new_label("combined")
    places = addresses
    if mask is not None:
        pointers = e.form("ptr")
        places = e.emit(f"select {e.form('i1')} {mask}, {pointers} {addresses}, {pointers} zeroinitializer")
    left: list[str] = []
    t = ir_type(i.type)
    for lane in range(e.width):
        address = e.emit(f"extractelement {e.form('ptr')} {places}, i32 {lane}")
        entry = _entry(e, t, table, address, None if mask is None else (bits, lane))
        following = e.new_label("lane")
        left.append(f"[ {-1 << lane}, %{e.label} ]")
        e.emit_void(f"br i1 {_is_there(e, entry, address)}, label %{following}, label %{slow}")
        e.begin_block(following)
        own = e.emit(f"extractelement {e.form(t)} {values}, i32 {lane}") if values is not None else value
        _add(e, i, entry, own)
    e.emit_void(f"br label %{after}")
    e.begin_block(slow)
    lanes = e.emit(f"phi {word} {', '.join(left)}")
    if mask is not None:
        lanes = e.emit(f"and {word} {lanes}, {bits}")
    _add_in_loop(e, i, table, lanes, addresses, value, values)
    e.emit_void(f"br label %{after}")
    e.begin_block(after)


def _entry(e: AtomicEmitter, t: str, table: str, address: str, of: tuple[str, int] | None = None) -> str:
    """Where an address has its entry. of: (bits of a mask, lane): a spare one where the lane is not in it."""
    number = e.emit(f"ptrtoint ptr {address} to i64")
    scaled = e.emit(f"shl i64 {number}, {1 if t == 'i64' else 2}")
    offset = e.emit(f"and i64 {scaled}, {_ENTRY * (abi.COMBINING_ENTRIES - 1)}")
    if of is not None:
        bits, lane = of
        bit = e.emit(f"and i{e.width} {bits}, {1 << lane}")
        is_out = e.emit(f"icmp eq i{e.width} {bit}, 0")
        spare = _ENTRY * (abi.COMBINING_ENTRIES + lane % abi.SPARE_ENTRIES)
        offset = e.emit(f"select i1 {is_out}, i64 {spare}, i64 {offset}, !unpredictable !1")
    return e.emit(f"getelementptr i8, ptr {table}, i64 {offset}")


def _is_there(e: AtomicEmitter, entry: str, address: str) -> str:
    holder = e.emit(f"load ptr, ptr {entry}, align 8")
    return e.emit(f"icmp eq ptr {holder}, {address}")


def _add(e: AtomicEmitter, i: Instruction, entry: str, value: str) -> None:
    t = ir_type(i.type)
    place = e.emit(f"getelementptr i8, ptr {entry}, i64 8")
    old = e.emit(f"load {t}, ptr {place}, align 8")
    new = e.emit(f"{READ_MODIFY_WRITE[i.op]} {t} {old}, {value}")
    e.emit_void(f"store {t} {new}, ptr {place}, align 8")


def _add_in_loop(
    e: AtomicEmitter, i: Instruction, table: str, lanes: str, addresses: str, value: str, values: str | None
) -> None:
    """The additions of some lanes, addresses of which may have no entry yet."""
    t = ir_type(i.type)
    given = (e.form(t), values) if values is not None else (t, value)
    parameters = [("ptr", table), (f"i{e.width}", lanes), (e.form("ptr"), addresses), given]
    shared(e, ("combine", i.op, t), parameters, [], lambda names: _loop(e, i, values is not None, *names))


def _loop(
    e: AtomicEmitter, i: Instruction, in_lanes: bool, table: str, lanes: str, addresses: str, value: str
) -> list[str]:
    t, word = ir_type(i.type), f"i{max(e.width, 32)}"
    places = e.alloca(e.form("ptr"), 64)
    e.emit_void(f"store {e.form('ptr')} {addresses}, ptr {places}, align 64")
    vector = value
    if in_lanes:
        value = e.alloca(e.form(t), 64)
        e.emit_void(f"store {e.form(t)} {vector}, ptr {value}, align 64")
    if e.width < 32:
        lanes = e.emit(f"zext i{e.width} {lanes} to {word}")
    before = e.label
    body, evict, full, fresh, there, after = (
        e.new_label(name) for name in ("lane", "evict", "full", "fresh", "there", "lanes.end")
    )
    some = e.emit(f"icmp ne {word} {lanes}, 0")
    e.emit_void(f"br i1 {some}, label %{body}, label %{after}")
    e.begin_block(body)
    left, rest = e.name("left"), e.name("rest")
    e.emit_void(f"{left} = phi {word} [ {lanes}, %{before} ], [ {rest}, %{there} ]")
    lane = e.emit(f"call {word} @llvm.cttz.{word}({word} {left}, i1 true)")
    address = e.emit(f"load ptr, ptr {e.emit(f'getelementptr ptr, ptr {places}, {word} {lane}')}, align 8")
    if in_lanes:
        value = e.emit(f"load {t}, ptr {e.emit(f'getelementptr {t}, ptr {value}, {word} {lane}')}")
    entry = _entry(e, t, table, address)
    e.emit_void(f"br i1 {_is_there(e, entry, address)}, label %{there}, label %{evict}")
    e.begin_block(evict)
    holder = e.emit(f"load ptr, ptr {entry}, align 8")
    e.emit_void(f"br i1 {e.emit(f'icmp eq ptr {holder}, null')}, label %{fresh}, label %{full}")
    e.begin_block(full)
    place = e.emit(f"getelementptr i8, ptr {entry}, i64 8")
    e.emit(f"atomicrmw add ptr {holder}, {t} {e.emit(f'load {t}, ptr {place}, align 8')} monotonic")
    counter = e.emit(
        f"getelementptr i8, ptr {table}, i64 {_ENTRY * (abi.COMBINING_ENTRIES + abi.SPARE_ENTRIES)}"
    )
    evictions = e.emit(f"load i64, ptr {counter}, align 8")
    e.emit_void(f"store i64 {e.emit(f'add i64 {evictions}, 1')}, ptr {counter}, align 8")
    e.emit_void(f"br label %{fresh}")
    e.begin_block(fresh)
    e.emit_void(f"store ptr {address}, ptr {entry}, align 8")
    place = e.emit(f"getelementptr i8, ptr {entry}, i64 8")
    e.emit_void(f"store {t} 0, ptr {place}, align 8")
    e.emit_void(f"br label %{there}")
    e.begin_block(there)
    _add(e, i, entry, value)
    fewer = e.emit(f"sub {word} {left}, 1")
    e.emit_void(f"{rest} = and {word} {left}, {fewer}")
    e.emit_void(f"br i1 {e.emit(f'icmp ne {word} {rest}, 0')}, label %{body}, label %{after}")
    e.begin_block(after)
    return []
