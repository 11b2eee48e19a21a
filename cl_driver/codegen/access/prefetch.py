"""Prefetches for kernels that read much and do little else: what comes next where they read.

A core has few lines of memory on their way to it at once, and waits for the oldest; the CPU finds streams by
itself, but it starts anew with each page. Who reads many places per work-item, far from one another, comes to
new pages all the time. Each place is where a stream goes on: the next work-items read what follows. That is
so if neither these nor others of the group read there, which is asked when it runs: between the first and the
second place, and on the average between all, there is room for what the whole group reads of one. Whether a
CPU is faster with or without, launches find out (native_shim/src/launch/kernel_run.c).

How far ahead depends on the CPU (CodegenOptions.far_ahead). Intel's are faster if what follows at once is
fetched into the first cache. A Zen 4 does that better alone, but where places follow one another with no room
between, the next group reads behind the last of them: what it reads, fetched into the second cache, makes a
Zen 4 up to twice as fast.
"""

from __future__ import annotations

from ...passes.analysis.roots import Root, roots
from ...passes.ir.instructions import ADDRESS, PURE
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Argument, Function, Kind, Value
from ..layout import abi
from ..layout.abi_fields import AbiFields

_LEAST = 8  # loads of a work-item, through one argument, from which on it is worth it
_SMALLEST = 16  # bytes of such a load: what is less may become a vector of several work-items
_LINE = 64
_DISTANCE = 640  # bytes; on Intel's, from 512 to 768 is the same, and the next group's places are too far
_FAR_DISTANCE = 1024  # where places do not follow one another
_INTO_L1, _INTO_L2 = 3, 2  # llvm.prefetch's locality
_NO_WORK = ADDRESS | {
    Op.CompositeExtract, Op.CompositeConstruct, Op.CompositeInsert, Op.VectorShuffle, Op.Bitcast,
}  # fmt: skip


class Ahead:
    """What one vector of work-items, or several together, has read: its loads wait for the region's end."""

    def __init__(self) -> None:
        self.is_used = False
        self._suits: dict[Function, bool] = {}  # function: whether it is such a kernel
        self._loads: dict[
            Root, list[tuple[str, int]]
        ] = {}  # argument: (address, bytes of all lanes) of its loads so far

    def note(self, e: AbiFields, pointer: Value, address: str, size: int) -> None:
        """A load of `size` bytes at an address that is the same wherever the region is left."""
        if size < _SMALLEST:
            return
        if e.function not in self._suits:
            self._suits[e.function] = _suits(e.function)
        found = roots(pointer) if self._suits[e.function] else None
        if found and len(found) == 1 and _is_buffer(root := next(iter(found))):
            self._loads.setdefault(root, []).append((address, size))

    def finish(self, e: AbiFields) -> None:
        """At the end of the region."""
        waiting, self._loads = self._loads, {}
        for loads in waiting.values():
            if len(loads) >= _LEAST * e.parts:
                self.is_used = True
                _prefetch(e, loads)


def _is_buffer(root: Value) -> bool:
    return isinstance(root, Argument) and root.type.storage == StorageClass.CrossWorkgroup


def _suits(function: Function) -> bool:
    """Whether a function is straight-line code with as many loads as there is arithmetic."""
    if len(function.blocks) > 1:
        return False
    loads = work = 0
    for i in function.blocks[0].instructions:
        loads += i.op is Op.Load
        is_number = i.type is not None and i.type.kind in (Kind.FLOAT, Kind.VECTOR)
        work += is_number and i.op in PURE and i.op not in _NO_WORK
    return work <= 2 * loads


def _prefetch(e: AbiFields, loads: list[tuple[str, int]]) -> None:
    """Prefetches what follows the places of loads, which are in the order of the program."""
    places = len(loads) // e.parts
    room = e.emit_prologue(f"mul i64 {e.enqueued_items()}, {loads[0][1] // e.width}")
    per_item = sum(size for _, size in loads) // (e.width * e.parts)
    limit = e.emit_prologue(f"zext i16 {e.launch_field(abi.LAUNCH_AHEAD_KIB, 'i16')} to i64")
    much = e.has_much(per_item, e.emit_prologue(f"shl i64 {limit}, 10"))
    first, second, last = (
        e.emit(f"ptrtoint ptr {loads[k][0]} to i64") for k in (0, e.parts, len(loads) - e.parts)
    )
    least = e.emit_prologue(f"mul i64 {room}, {places - 1}")
    for place, distance in ((second, room), (last, least)):
        apart = e.emit(f"call i64 @llvm.abs.i64(i64 {e.emit(f'sub i64 {place}, {first}')}, i1 false)")
        much = e.emit(f"and i1 {much}, {e.emit(f'icmp uge i64 {apart}, {distance}')}")
    distance, locality = str(_DISTANCE), _INTO_L1
    if e.options.far_ahead:
        is_whole = e.emit(f"icmp eq i64 {e.emit(f'sub i64 {last}, {first}')}, {least}")
        region = e.emit_prologue(f"mul i64 {room}, {places}")
        distance, locality = e.emit(f"select i1 {is_whole}, i64 {region}, i64 {_FAR_DISTANCE}"), _INTO_L2
    body, after = e.new_label("ahead"), e.new_label("fetched")
    e.emit_void(f"br i1 {much}, label %{body}, label %{after}")
    e.begin_block(body)
    for address, size in loads:
        ahead = e.emit(f"getelementptr i8, ptr {address}, i64 {distance}")
        for line in range(0, size, _LINE):
            at = e.emit(f"getelementptr i8, ptr {ahead}, i64 {line}") if line else ahead
            e.emit_void(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 {locality}, i32 1)")
    e.emit_void(f"br label %{after}")
    e.begin_block(after)
