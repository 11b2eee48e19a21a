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
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Operand, Value
from ..ir.dominance import DominatorTree, Loop, LoopNest, dominators, is_reducible
from ..ir.instructions import ADDRESS, ATOMICS, GROUP_OPERATIONS, PURE, TERMINATORS, predecessors
from ..ir.link_names import PIPE_COMMIT, PIPE_FUNCTIONS, source_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_OWN = frozenset((StorageClass.Function, StorageClass.Private, StorageClass.Input))  # a work-item's
_READS = frozenset((Op.Load, Op.AtomicLoad, Op.AtomicIAdd, Op.AtomicISub, Op.AtomicOr, Op.AtomicXor))
_ATOMIC_LOADS = frozenset(("atomic_load", "atomic_load_explicit"))
_IDLE = PURE | TERMINATORS | {Op.Load, Op.MemoryBarrier, Op.Nop}  # what a loop may do that only looks
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
    return any(_is_given_back(loop, nest, tree) for loop in nest.loops)


def _is_given_back(loop: Loop, nest: LoopNest, tree: DominatorTree[Block], has_calls: bool = False) -> bool:
    """Whether what decides that the loop goes on is written behind it. has_calls: those of atomics that the
    library has are not expanded."""
    asked = _asked(loop)
    if not asked:
        return False
    around = _and_parents(loop)
    for block in tree.order:
        # What is in a loop of its own is another wait, not what ends this one.
        if block in loop.blocks or nest.innermost.get(block) not in around:
            continue
        if not tree.dominates(loop.header, block):
            continue
        if any(_writes(i, asked) or (has_calls and _may_write(i, asked)) for i in block.instructions):
            return True
    return False


def waiting_loops(function: Function) -> list[Loop]:
    """The loops that may go on until others change memory that work-items share.

    The function, calls expanded, must be reducible.
    """
    before = predecessors(function)
    nest = LoopNest(function, dominators(function, before), before)
    return [loop for loop in nest.loops if _asked(loop)]


def only_looks(function: Function) -> bool:
    """Whether a loop does nothing but look at one place in memory until others have changed it, as programs
    have it that wait for other sub-groups and do not ask which there are. False for locks, which the
    work-items of a vector hold one after the other.

    The function is a kernel as the reader made it. What compilers left in private variables, or in functions,
    is not followed: it might be a lock.
    """
    if not any(i.op in _READS and _looks(i) for block in function.blocks for i in block.instructions):
        return False
    before = predecessors(function)
    tree = dominators(function, before)
    if not is_reducible(function, tree):
        return False
    nest = LoopNest(function, tree, before)
    for loop in nest.loops:
        inside = [i for block in loop.blocks for i in block.instructions]
        looking = [i for i in inside if i.op in _READS and _looks(i)]
        is_idle = all(i.op in _IDLE or i in looking for i in inside)
        if is_idle and any(_is_invariant(i.operands[0], loop) for i in looking):
            return bool(_asked(loop)) and not _is_given_back(loop, nest, tree, has_calls=True)
    return False


def may_look(functions: Iterable[Function]) -> bool:
    """Whether anything in functions as the reader made them may look for what others do to memory: without it
    no work-item waits for another one but at barriers and locks."""
    instructions = (i for function in functions for block in function.blocks for i in block.instructions)
    return any((i.op in _READS and _looks(i)) or _is_atomic_call(i) for i in instructions)


def _is_atomic_call(i: Instruction) -> bool:
    """Of the library's atomics."""
    if i.op is not Op.FunctionCall or not i.operands[0].linkage:
        return False
    return source_name(i.operands[0].linkage[0]) in _ATOMIC_LOADS


def _looks(i: Instruction) -> bool:
    """Of _READS: an atomic or volatile read of memory that work-items share, or an atomic that changes
    nothing."""
    if i.op is Op.Load:
        is_read = i.memory is not None and i.memory.volatile
    elif i.op is Op.AtomicLoad:
        is_read = True
    else:
        is_read = isinstance(i.operands[3], Constant) and not i.operands[3].value
    return is_read and i.operands[0].type.storage not in _OWN


def _is_invariant(value: Operand, loop: Loop) -> bool:
    if type(value) is not Instruction or value.block not in loop.blocks:
        return True
    return value.op in ADDRESS | _CASTS and all(_is_invariant(o, loop) for o in value.operands)


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


def _may_write(instruction: Instruction, addresses: set[Any]) -> bool:
    if instruction.op is not Op.FunctionCall:
        return False
    pointers = [o for o in instruction.operands[1:] if o.type.kind is Kind.POINTER]
    return not addresses.isdisjoint(map(address_key, pointers))


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
