"""Stores past the caches: of whole vectors, each place once, to buffers that the kernel does not read.

A store into the cache reads the line first, which is a third of a copy's traffic. But who reads the output
next finds it in the cache if it is not too large, so only a launch can tell: it says from how many bytes of
output it is worth it (cld_launch.stream_bytes).
"""

from __future__ import annotations

from ...fast_typing import NamedTuple
from ...passes.analysis.roots import Root, roots
from ...passes.ir.dominance import Loop, LoopNest, dominators
from ...passes.ir.instructions import EXTINST_LOADS, EXTINST_WITH_EFFECT, PURE, predecessors
from ...passes.ir.ops import PassOp
from ...passes.ir.plan import KernelPlan
from ...spirv.enums import Op, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Argument, Block, Function, Instruction, Value
from ..layout.lanes import LaneEmitter

_SMALLEST, _LARGEST = 16, 512  # bytes of a vector
_STORES = frozenset((Std.vstoren, Std.vstore_half, Std.vstore_halfn, Std.vstorea_halfn))
_HARMLESS = PURE | {Op.Branch, Op.BranchConditional, Op.Switch, Op.Variable, Op.Nop, PassOp.RegionExit}


class Waiting(NamedTuple):
    """A store that waits for those of the other parts: the vector with its type, and the pointer."""

    what: str
    address: str
    place: int  # bytes of each lane
    size: int  # of the vector
    alignment: int
    metadata: str
    made_of: Instruction | None


class NontemporalStores:
    """What of a kernel's output may be stored past the caches."""

    def __init__(self, plan: KernelPlan) -> None:
        self.is_used = False
        self.pending: list[Waiting] = []
        self._loops: dict[Function, dict[Block, Loop]] = {}  # the innermost around blocks in loops
        # Arguments that are read; None if anybody may see the order of stores.
        self._read: set[Root] | None = set()
        for region in plan.regions:
            for block in region.function.blocks:
                for i in block.instructions:
                    self._note(i)

    def _note(self, i: Instruction) -> None:
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

    def allows(self, e: LaneEmitter, pointer: Value) -> bool:
        """Whether full vectors through a pointer are written once, and not read."""
        found = None if self._read is None else roots(pointer)
        if self._read is None or not found or found & self._read or not all(map(_is_buffer, found)):
            return False
        function = e.function
        if function not in self._loops:
            before = predecessors(function)
            self._loops[function] = LoopNest(function, dominators(function, before), before).innermost
        return e.current not in self._loops[function]

    def suits(self, e: LaneEmitter, pointer: Value, place: int) -> bool:
        """Whether a store of whole vectors, of so many bytes of each lane, may go past the caches."""
        size = place * e.width
        return size & (size - 1) == 0 and _SMALLEST <= size <= _LARGEST and self.allows(e, pointer)

    def store(
        self, e: LaneEmitter, pointer: Value, vector: str, data: str, address: str, place: int,
        alignment: int, metadata: str, lane: int | None = None,
    ) -> bool:  # fmt: skip
        """Stores a vector past the caches if the launch has much output. False: it was not stored.

        place: bytes of each lane; lane: those in this vector, if there are several for all. It is stored when
        flush() is called: all parts ask once, or LLVM would move the work of each behind the question of the
        one before.
        """
        if not self.suits(e, pointer, place):
            return False
        self.is_used = True
        size = (lane or place) * e.width
        self.pending.append(
            Waiting(f"{vector} {data}, ptr {address}", address, place, size, alignment, metadata, e.at_hand)
        )
        return True

    def flush(self, e: LaneEmitter) -> None:
        """Emits the stores that wait, all of vectors of one size."""
        waiting, self.pending = self.pending, []
        place, size, bits = waiting[0].place, waiting[0].size, "0"
        for store in waiting:
            one = e.emit(f"ptrtoint ptr {store.address} to i64")
            bits = e.emit(f"or i64 {bits}, {one}") if bits != "0" else one
        line = min(64, size)
        over = e.emit(f"and i64 {bits}, {line - 1}")
        aligned = e.emit(f"icmp eq i64 {over}, 0")
        past = e.emit(f"and i1 {aligned}, {e.has_much(place)}")
        labels = [e.new_label(name) for name in ("past", "into", "stored")]
        e.emit_void(f"br i1 {past}, label %{labels[0]}, label %{labels[1]}")
        for label, is_past in zip(labels, (True, False), strict=False):
            e.begin_block(label)
            for store in waiting:
                how = f"{line}, !nontemporal !0" if is_past else f"{store.alignment}"
                start = len(e.lines)
                e.emit_void(f"store {store.what}, align {how}{store.metadata}")
                e.mark(start, store.made_of)
            e.emit_void(f"br label %{labels[2]}")
        e.begin_block(labels[2])


def _is_buffer(root: Value) -> bool:
    return isinstance(root, Argument) and root.type.storage == StorageClass.CrossWorkgroup
