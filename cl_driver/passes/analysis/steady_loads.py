"""Volatile loads of local memory that no work-item writes between the same barriers: at one address, all
work-items of the group read the same.

A work-group runs on one thread, so nobody else can write there. Kernels that go round a loop until a count in
local memory says that all is done often declare it volatile.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Function, Instruction, Kind, Value
from ..ir.instructions import ACROSS_LANES, ATOMICS, EXTINST_WITH_EFFECT, PURE, TERMINATORS, is_boundary
from ..ir.ops import PassOp
from .roots import roots

# Memory that is not local memory, by whatever pointer.
_ELSEWHERE = frozenset((
    StorageClass.CrossWorkgroup, StorageClass.Function, StorageClass.Private, StorageClass.UniformConstant,
    StorageClass.Input,
))  # fmt: skip
_HARMLESS = PURE | TERMINATORS | ACROSS_LANES | frozenset((
    Op.Load, Op.Variable, Op.LifetimeStart, Op.LifetimeStop, Op.AssumeTrueKHR, Op.MemoryBarrier,
    PassOp.SlotLoad, PassOp.SlotStore,
))  # fmt: skip
_WRITES = ATOMICS | {Op.Store, Op.CopyMemory, Op.CopyMemorySized}  # to their first operand


def steady_loads(function: Function) -> set[Instruction]:
    """The volatile loads of local memory with no write to local memory in any region that they are in."""
    found: set[Instruction] = set()
    unsteady: set[Instruction] = set()
    starts = [(function.blocks[0], 0)]
    for block in function.blocks:
        starts += [(block, k + 1) for k, i in enumerate(block.instructions) if is_boundary(i)]
    for start in starts:
        loads, is_written = _region(*start)
        found |= loads
        if is_written:
            unsteady |= loads
    return found - unsteady


def is_volatile_local_load(i: Instruction) -> bool:
    """Whether an instruction is a load that steady_loads() may know of."""
    is_volatile = i.op is Op.Load and i.memory is not None and i.memory.volatile
    return is_volatile and i.operands[0].type.storage is StorageClass.Workgroup


def _region(block: Block, first: int) -> tuple[set[Instruction], bool]:
    """The volatile loads of local memory that no barrier is before, and whether that holds of a write."""
    loads: set[Instruction] = set()
    is_written = False
    seen: set[Block] = set()
    work = [(block, first)]
    while work:
        block, first = work.pop()
        for i in block.instructions[first:]:
            if is_boundary(i):
                break
            if is_volatile_local_load(i):
                loads.add(i)
            elif not is_written and i.op not in _HARMLESS:
                is_written = _may_write_local(i)
        else:
            for successor in block.successors():
                if successor not in seen:
                    seen.add(successor)
                    work.append((successor, 0))
    return loads, is_written


def _may_write_local(i: Instruction) -> bool:
    if i.op in _WRITES:
        return not _is_elsewhere(i.operands[0])
    if i.op is Op.ExtInst:
        pointers = [o for o in i.operands if isinstance(o, Value) and o.type.kind is Kind.POINTER]
        return i.operands[1] in EXTINST_WITH_EFFECT and not all(map(_is_elsewhere, pointers))
    return True


def _is_elsewhere(pointer: Value) -> bool:
    if pointer.type.kind is not Kind.POINTER:
        return False
    found = roots(pointer) if pointer.type.storage is StorageClass.Generic else (pointer,)
    return found is not None and all(root.type.storage in _ELSEWHERE for root in found)
