"""Stores past the caches: of whole vectors, each place once, to buffers that the kernel does not read.

A store into the cache reads the line first, which is a third of a copy's traffic. But who reads the output
next finds it in the cache if it is not too large, so only a launch can tell: it says from how many bytes of
output it is worth it (cld_launch.stream_bytes).
"""

from __future__ import annotations

from ...passes.ir.dominance import LoopNest, dominators
from ...passes.ir.instructions import EXTINST_LOADS, EXTINST_WITH_EFFECT, PURE, predecessors
from ...passes.ir.ops import PassOp
from ...spirv.enums import Op, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Argument
from ..layout import abi
from ..llvm.alias import roots

_SMALLEST, _LARGEST = 16, 512  # bytes of a vector
_STORES = frozenset((Std.vstoren, Std.vstore_half, Std.vstore_halfn, Std.vstorea_halfn))
_HARMLESS = PURE | {Op.Branch, Op.BranchConditional, Op.Switch, Op.Variable, Op.Nop, PassOp.RegionExit}


class NontemporalStores:
    """What of a kernel's output may be stored past the caches."""

    def __init__(self, plan):
        self.is_used = False
        self.pending: list[tuple] = []  # stores that wait for those of the other parts
        self._loops: dict = {}  # function: blocks in loops
        self._read: set | None = set()  # arguments that are read; None if anybody may see the order of stores
        for region in plan.regions:
            for block in region.function.blocks:
                for i in block.instructions:
                    self._note(i)

    def _note(self, i) -> None:
        if self._read is None or i.op is Op.Store or i.op in _HARMLESS:
            return
        is_load = i.op is Op.Load
        if i.op is Op.ExtInst:
            is_load = i.operands[1] in EXTINST_LOADS
            if not is_load and (i.operands[1] not in EXTINST_WITH_EFFECT or i.operands[1] in _STORES):
                return
        if not is_load:
            self._read = None
            return
        found = roots(i.operands[3] if i.op is Op.ExtInst else i.operands[0])
        self._read = None if found is None else self._read | found

    def allows(self, e, pointer) -> bool:
        """Whether full vectors through a pointer are written once, and not read."""
        found = roots(pointer) if self._read is not None else None
        if not found or found & self._read or not all(_is_buffer(root) for root in found):
            return False
        function = e.function
        if function not in self._loops:
            before = predecessors(function)
            self._loops[function] = LoopNest(function, dominators(function, before), before).innermost
        return e.current not in self._loops[function]


def _is_buffer(root) -> bool:
    return isinstance(root, Argument) and root.type.storage == StorageClass.CrossWorkgroup


def store(
    e, pointer, vector: str, data: str, address: str, place: int, alignment: int, metadata: str,
    lane: int | None = None,
) -> bool:  # fmt: skip
    """Stores a vector past the caches if the launch has much output. False: it was not stored.

    place: bytes of each lane; lane: those in this vector, if there are several for all. It is stored when
    flush() is called: all parts ask once, or LLVM would move the work of each behind the question of the one
    before.
    """
    size = place * e.width
    fits = size & (size - 1) == 0 and _SMALLEST <= size <= _LARGEST
    if e.nontemporal is None or not fits or not e.nontemporal.allows(e, pointer):
        return False
    e.nontemporal.is_used = True
    size = (lane or place) * e.width
    e.nontemporal.pending.append(
        (f"{vector} {data}, ptr {address}", address, place, size, alignment, metadata)
    )
    return True


def flush(e) -> None:
    """Emits the stores that wait, all of vectors of one size."""
    waiting, e.nontemporal.pending = e.nontemporal.pending, []
    (_, _, place, size, *_), bits = waiting[0], "0"
    for _, address, *_ in waiting:
        one = e.emit(f"ptrtoint ptr {address} to i64")
        bits = e.emit(f"or i64 {bits}, {one}") if bits != "0" else one
    line = min(64, size)
    over = e.emit(f"and i64 {bits}, {line - 1}")
    aligned = e.emit(f"icmp eq i64 {over}, 0")
    past = e.emit(f"and i1 {aligned}, {has_much(e, place)}")
    labels = [e.new_label(name) for name in ("past", "into", "stored")]
    e.emit_void(f"br i1 {past}, label %{labels[0]}, label %{labels[1]}")
    for label, is_past in zip(labels, (True, False), strict=False):
        e.begin_block(label)
        for what, *_, alignment, metadata in waiting:
            how = f"{line}, !nontemporal !0" if is_past else f"{alignment}"
            e.emit_void(f"store {what}, align {how}{metadata}")
        e.emit_void(f"br label %{labels[2]}")
    e.begin_block(labels[2])


def has_much(e, place: int, limit: str = "") -> str:
    """i1, once per call: whether all work-items together have that much, so many bytes each: 0 is for never.

    limit: i64, of the launch; that of stores past the caches, if none.
    """
    key = "much", place, limit
    if key not in e.tables:
        outer, e.lines = e.lines, e.prologue
        sizes = [e.launch_field(abi.LAUNCH_GLOBAL_SIZE + 8 * k, "i64") for k in range(3)]
        items = e.emit(f"mul i64 {sizes[0]}, {sizes[1]}")
        items = e.emit(f"mul i64 {items}, {sizes[2]}")
        output = e.emit(f"mul i64 {items}, {place}")
        stream_bytes = "" if limit else e.launch_field(abi.LAUNCH_STREAM_BYTES, "i32")
        least = limit or e.emit(f"zext i32 {stream_bytes} to i64")
        below = e.emit(f"sub i64 {least}, 1")  # of 0, more than any output
        e.tables[key] = e.emit(f"icmp ult i64 {below}, {output}")
        e.lines = outer
    return e.tables[key]
