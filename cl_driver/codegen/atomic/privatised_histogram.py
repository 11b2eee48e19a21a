"""Atomic additions to a buffer that a kernel does nothing else with: each thread has a copy of it to itself.

Histograms and the like: which element a work-item adds to is not known before, so threads fight over cache
lines, and an atomic operation costs some 20 cycles where nobody fights. Where the data plane gives a thread a
copy (cld_thread.counts, all zeros at first), the additions are plain ones to the copy, and the thread adds it
to the buffer once it has done its share of the launch; so says native_shim/src/launch/privatised_histogram.c,
which also knows whether that pays and whether another argument lies in the same memory. Where the buffer is
too large for copies, the thread gathers sums in a table (combining_table.py).

Nobody can tell when a relaxed atomic without a result comes to memory but by another access to the same
memory, or by an operation that puts it in order before something else; of these the kernel must have none.
Sums of integers only: floating-point numbers round differently in another order.
"""

from __future__ import annotations

from ...passes.ir.instructions import ADDRESS
from ...passes.ir.plan import KernelPlan
from ...spirv.enums import Op, Scope, StorageClass
from ...spirv.module import Argument, Constant, Instruction, Kind, Value
from ..layout import abi
from ..layout.abi_fields import AbiFields

_ADDS = (Op.AtomicIAdd, Op.AtomicISub, Op.AtomicIIncrement, Op.AtomicIDecrement)
_SAME_ADDRESS = (Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric, Op.GenericCastToPtr)


class PrivatisedHistogram:
    """The argument of a kernel that threads have copies of, or None; size: bytes of its elements."""

    def __init__(self, plan: KernelPlan) -> None:
        self.argument: Argument | None = None
        self.size = 0
        self._atomics: set[Instruction] = set()
        self._is_there = self._is_combined = ""
        blocks = [block for region in plan.regions for block in region.function.blocks]
        if plan.orders_memory or not any(i.op in _ADDS for block in blocks for i in block.instructions):
            return
        candidates = [
            a
            for a in plan.arguments
            if a.type.kind is Kind.POINTER and a.type.storage == StorageClass.CrossWorkgroup
        ]
        used_by: dict[Value, list[Instruction]] = {}
        for block in blocks:
            for i in block.instructions:
                for value in dict.fromkeys(o for o in (*i.operands, i.mask) if isinstance(o, Value)):
                    used_by.setdefault(value, []).append(i)
        for argument in candidates:
            atomics = _additions(argument, used_by)
            sizes = {i.type.width // 8 for i in atomics}
            if len(sizes) == 1 and sizes <= {4, 8} and any(_goes_anywhere(plan, i) for i in atomics):
                self.argument, self._atomics = argument, set(atomics)
                (self.size,) = sizes
                return

    def has(self, i: Instruction) -> bool:
        """Whether an atomic adds to the argument."""
        return i in self._atomics

    def pointer(self, e: AbiFields, given: str) -> str:
        """What the argument is: the thread's copy, if it has one."""
        own = e.thread_field(abi.THREAD_COUNTS, "ptr")
        return e.emit_prologue(f"select i1 {self.is_there(e)}, ptr {own}, ptr {given}")

    def is_there(self, e: AbiFields) -> str:
        """i1, once per call: whether the thread has a copy."""
        if not self._is_there:
            self._is_there = self._is_argument(e, abi.THREAD_COUNTED)
        return self._is_there

    def is_combined(self, e: AbiFields) -> str:
        """i1, once per call: whether the thread has a table of sums that are still to be added."""
        if not self._is_combined:
            self._is_combined = self._is_argument(e, abi.THREAD_COMBINED)
        return self._is_combined

    def _is_argument(self, e: AbiFields, field: int) -> str:
        assert self.argument is not None  # or nobody asks
        number = e.plan.arguments.index(self.argument) + 1
        return e.emit_prologue(f"icmp eq i64 {e.thread_field(field, 'i64')}, {number}")


def _additions(argument: Argument, used_by: dict[Value, list[Instruction]]) -> list[Instruction]:
    """The atomic additions that are all that is done with a pointer; none if there is anything else."""
    found: list[Instruction] = []
    pointers: list[Value] = [argument]
    for pointer in pointers:
        for user in used_by.get(pointer, ()):
            is_address = user.op in ADDRESS or (user.op in _SAME_ADDRESS and user.type.kind is Kind.POINTER)
            if is_address and user.operands[0] is pointer and pointer not in user.operands[1:]:
                pointers.append(user)
                continue
            if user.op not in _ADDS or user in used_by or user.type.kind is not Kind.INT:
                return []
            scope = user.operands[1]
            if not isinstance(scope, Constant) or (scope.value or 0) == Scope.CrossDevice:
                return []  # the host and other devices may look at it meanwhile
            found.append(user)
    return found


def _goes_anywhere(plan: KernelPlan, i: Instruction) -> bool:
    """Whether lanes add to places of their own; what all add to is gathered in registers
    (atomic_reduction.py)."""
    region = next(r for r in plan.regions if i.block in r.function.blocks)
    return not region.once and region.shapes.strides.get(i.operands[0], 0) != 0
