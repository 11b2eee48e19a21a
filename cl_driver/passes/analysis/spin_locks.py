"""Finds kernels whose work-items wait for locks that others of their vector may hold.

    while (atomic_exchange(lock, 1)) ;      the lane that gets it leaves the loop...
    (what the lock protects)
    atomic_store(lock, 0);                  ...but comes here with all others only, which never leave

So is an entry of a pipe one that waits to be reserved, and is given back by the commit.

OpenCL promises no progress to such work-items, but where one is executed after the other they get what they
wait for, and programs rely on that. Sources that take and give back the lock in one iteration come to the
same: clang moves what follows on success out of the loop.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Constant, Function, Instruction, Operand, Value
from ..ir.dominance import Loop, LoopNest, dominators
from ..ir.instructions import ADDRESS, ATOMICS, GROUP_OPERATIONS, predecessors
from ..ir.link_names import PIPE_COMMIT, PIPE_FUNCTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OWN = frozenset((StorageClass.Function, StorageClass.Private, StorageClass.Input))  # a work-item's
_CASTS = frozenset((Op.Bitcast, Op.CopyObject, Op.GenericCastToPtr, Op.PtrCastToGeneric))


def waits_for_locks(function: Function) -> bool:
    """Whether a loop goes on until memory says so that is written behind it: there a lock is given back.

    The function, calls expanded, must be reducible.
    """
    if not any(i.op in ATOMICS or _pipe_function(i) for block in function.blocks for i in block.instructions):
        return False
    before = predecessors(function)
    tree = dominators(function, before)
    nest = LoopNest(function, tree, before)
    for loop in nest.loops:
        asked = _asked(loop)
        if not asked:
            continue
        around = _and_parents(loop)
        for block in tree.order:
            # What is in a loop of its own is another wait, not what ends this one.
            if block in loop.blocks or nest.innermost.get(block) not in around:
                continue
            if tree.dominates(loop.header, block) and any(_writes(i, asked) for i in block.instructions):
                return True
    return False


def waiting_loops(function: Function) -> list[Loop]:
    """The loops that may go on until others change memory that work-items share.

    The function, calls expanded, must be reducible.
    """
    before = predecessors(function)
    nest = LoopNest(function, dominators(function, before), before)
    return [loop for loop in nest.loops if _asked(loop)]


def _and_parents(loop: Loop) -> set[Loop | None]:
    found: set[Loop | None] = {None}
    parent = loop.parent
    while parent is not None:
        found.add(parent)
        parent = parent.parent
    return found


def _asked(loop: Loop) -> set[Any]:
    """The addresses of what decides whether a loop goes on, of atomics and volatile loads in it."""
    found: set[Any] = set()  # of what address_key gives
    seen: set[Instruction] = set()
    pending: list[Value] = []
    for block in loop.blocks:
        if any(s not in loop.blocks for s in block.successors()):
            pending += block.terminator.operands[:1]
    while pending:
        value = pending.pop()
        if type(value) is not Instruction or value in seen or value.block not in loop.blocks:
            continue
        seen.add(value)
        if value.op in ATOMICS or (value.op is Op.Load and value.memory and value.memory.volatile):
            if value.operands[0].type.storage not in _OWN:
                found.add(address_key(value.operands[0]))
        elif _pipe_function(value):
            found.add(address_key(value.operands[1]))
        elif value.op in GROUP_OPERATIONS:
            continue  # all of a group go the same way
        elif value.op is Op.Phi:
            # Which way the values came was decided by branches.
            for source in value.operands[1::2]:
                pending += source.terminator.operands[:1]
            pending += value.operands[::2]
        else:
            pending += [o for o in value.operands if isinstance(o, Value)]
    return found


def _writes(instruction: Instruction, addresses: set[Any]) -> bool:
    op = instruction.op
    if _pipe_function(instruction) == PIPE_COMMIT:
        return address_key(instruction.operands[1]) in addresses
    if op is Op.AtomicLoad or not (op in ATOMICS or op is Op.Store):
        return False
    return address_key(instruction.operands[0]) in addresses


def _pipe_function(instruction: Instruction) -> str:
    """The name of the library's function for pipes that an instruction calls, or ""."""
    linkage = instruction.operands[0].linkage if instruction.op is Op.FunctionCall else None
    return linkage[0] if linkage is not None and linkage[0] in PIPE_FUNCTIONS else ""


def address_key(pointer: Operand) -> Any:
    """The same for pointers that are computed alike."""
    while type(pointer) is Instruction and pointer.op in _CASTS:
        pointer = pointer.operands[0]
    if type(pointer) is Instruction and pointer.op in ADDRESS:
        base, *indices = (address_key(o) for o in pointer.operands)
        return (base, *indices) if any(i != 0 for i in indices) else base
    if isinstance(pointer, Constant) and isinstance(pointer.value, int):
        return pointer.value
    return pointer
