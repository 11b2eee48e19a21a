"""Prefetches for kernels that read much and do little else: what the next group will read, into the cache.

A core has few lines of memory on their way to it at once, and waits for the oldest; the CPU finds streams by
itself, but only within a page. Who reads many places per work-item, far from one another, comes to new pages
all the time. Where the next group reads is known from where the last two have, so this needs no look at how
addresses are computed: all that a group reads through one argument moves on by as much as its first load has.
If that is less than what lies between its loads, groups share what they read, and nothing is fetched.
"""

from __future__ import annotations

from ..passes.ir import ADDRESS, PURE
from ..spirv.enums import Op, StorageClass
from ..spirv.module import Argument, Kind
from .alias import roots
from .streams import has_much

_LEAST = 8  # loads of a work-item, through one argument, from which on it is worth it
_SMALLEST = 16  # bytes of such a load: what is less may become a vector of several work-items
_MOST = 1 << 22  # bytes from group to group
_LINE = 64
_INTO_L2 = 2  # llvm.prefetch's locality
_NO_WORK = ADDRESS | {
    Op.CompositeExtract, Op.CompositeConstruct, Op.CompositeInsert, Op.VectorShuffle, Op.Bitcast,
}  # fmt: skip


class Ahead:
    """What one vector of work-items, or several together, has read: its loads wait for the region's end."""

    def __init__(self):
        self._suits: dict = {}  # function: whether it is such a kernel
        self._loads: dict = {}  # argument: (address, bytes of all lanes) of its loads so far

    def note(self, e, pointer, address: str, size: int) -> None:
        """A load of `size` bytes at an address that is the same wherever the region is left."""
        if size < _SMALLEST:
            return
        if e.function not in self._suits:
            self._suits[e.function] = _suits(e.function)
        found = roots(pointer) if self._suits[e.function] else None
        if found and len(found) == 1 and _is_buffer(root := next(iter(found))):
            self._loads.setdefault(root, []).append((address, size))

    def finish(self, e) -> None:
        """At the end of the region."""
        waiting, self._loads = self._loads, {}
        for loads in waiting.values():
            if len(loads) >= _LEAST * e.parts:
                _prefetch(e, loads)


def _is_buffer(root) -> bool:
    return isinstance(root, Argument) and root.type.storage == StorageClass.CrossWorkgroup


def _suits(function) -> bool:
    """Whether a function is straight-line code with as many loads as there is arithmetic."""
    if len(function.blocks) > 1:
        return False
    loads = work = 0
    for i in function.blocks[0].instructions:
        loads += i.op is Op.Load
        is_number = i.type is not None and i.type.kind in (Kind.FLOAT, Kind.VECTOR)
        work += is_number and i.op in PURE and i.op not in _NO_WORK
    return work <= 2 * loads


def _prefetch(e, loads: list[tuple[str, int]]) -> None:
    """Prefetches what the next group reads where this one has loaded."""
    state = {name: e.alloca(t, 8) for name, t in (("group", "i64"), ("last", "i64"), ("step", "i64"))}
    for name, value in (("group", "-1"), ("last", "0"), ("step", "0")):
        e.prologue.append(f"  store i64 {value}, ptr {state[name]}, align 8")
    (first, _), (last, size) = loads[0], loads[-1]
    here, there = (e.emit(f"ptrtoint ptr {address} to i64") for address in (first, last))
    old = {name: e.emit(f"load i64, ptr {address}, align 8") for name, address in state.items()}
    is_new = e.emit(f"icmp ne i64 {old['group']}, %group.index")
    step = e.emit(f"sub i64 {here}, {old['last']}")
    length, span = _magnitude(e, step), _magnitude(e, e.emit(f"sub i64 {there}, {here}"))
    span = e.emit(f"add i64 {span}, {size}")
    is_far = e.emit(f"icmp uge i64 {length}, {span}")
    is_far = e.emit(f"and i1 {is_far}, {e.emit(f'icmp ult i64 {length}, {_MOST}')}")
    step = e.emit(f"select i1 {is_far}, i64 {step}, i64 0")
    step = e.emit(f"select i1 {is_new}, i64 {step}, i64 {old['step']}")
    here = e.emit(f"select i1 {is_new}, i64 {here}, i64 {old['last']}")
    for name, value in (("group", "%group.index"), ("last", here), ("step", step)):
        e.emit_void(f"store i64 {value}, ptr {state[name]}, align 8")
    read = sum(size for _, size in loads) // (e.width * e.parts)
    pays = e.emit(f"and i1 {e.emit(f'icmp ne i64 {step}, 0')}, {has_much(e, read)}")
    body, after = e.new_label("ahead"), e.new_label("fetched")
    e.emit_void(f"br i1 {pays}, label %{body}, label %{after}")
    e.begin_block(body)
    for address, size in loads:
        base = e.emit(f"getelementptr i8, ptr {address}, i64 {step}")
        for line in range(0, size, _LINE):
            at = e.emit(f"getelementptr i8, ptr {base}, i64 {line}") if line else base
            e.emit_void(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 {_INTO_L2}, i32 1)")
    e.emit_void(f"br label %{after}")
    e.begin_block(after)


def _magnitude(e, value: str) -> str:
    return e.emit(f"call i64 @llvm.abs.i64(i64 {value}, i1 false)")
