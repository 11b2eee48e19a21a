"""Which buffers a kernel only reads, by the arguments that they come as.

Told only of arguments whose address goes nowhere but to reads: what is stored, becomes an integer or is given
to a function that is not known may be written through.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Argument, Function, Instruction, Kind, Value
from ..ir.instructions import EXTINST_LOADS, EXTINST_PREFETCH, EXTINST_PRINTF
from .roots import SAME_OBJECT

_SHARED = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant)
_SAME_ADDRESS = SAME_OBJECT | {Op.Phi, Op.Select}
_READS = frozenset((
    Op.Load, Op.AtomicLoad, Op.LifetimeStart, Op.LifetimeStop, Op.PtrEqual, Op.PtrNotEqual, Op.PtrDiff,
    Op.SubgroupBlockReadINTEL,
))  # fmt: skip
# Those that read one address and write to another: the operand that is written to.
_COPIES = {Op.CopyMemory: 0, Op.CopyMemorySized: 0, Op.GroupAsyncCopy: 1}
_READING_FUNCTIONS = EXTINST_LOADS | {EXTINST_PRINTF, EXTINST_PREFETCH}


def read_arguments(function: Function) -> frozenset[int]:
    """The numbers of the arguments that point to what a kernel certainly does not write."""
    known: dict[Argument, bool] = {}
    return frozenset(
        number
        for number, argument in enumerate(function.arguments)
        if argument.type is not None
        and argument.type.kind is Kind.POINTER
        and argument.type.storage in _SHARED
        and _is_only_read(function, argument, known)
    )


def _is_only_read(function: Function, argument: Argument, known: dict[Argument, bool]) -> bool:
    """known: of other arguments, of this function and others; those that are being looked at are False, for a
    function that calls itself."""
    if argument in known:
        return known[argument]
    known[argument] = False
    derived: set[Value] = {argument}
    has_changed = True
    while has_changed:  # again where a loop carries an address
        has_changed = False
        for i in (i for block in function.blocks for i in block.instructions):
            if i in derived or derived.isdisjoint(o for o in i.operands if isinstance(o, Value)):
                continue
            if i.op in _SAME_ADDRESS:
                derived.add(i)
                has_changed = True
            elif not _only_reads(i, derived, known):
                return False
    known[argument] = True
    return True


def _only_reads(i: Instruction, derived: set[Value], known: dict[Argument, bool]) -> bool:
    """Whether an instruction that has some of these addresses as operands reads what is there, at most."""
    if i.op in _READS:
        return True
    if i.op in _COPIES:
        return i.operands[_COPIES[i.op]] not in derived
    if i.op is Op.ExtInst:
        return i.operands[1] in _READING_FUNCTIONS
    if i.op is not Op.FunctionCall or (i.type is not None and i.type.kind is Kind.POINTER):
        return False
    callee: Function = i.operands[0]
    return bool(callee.blocks) and all(
        _is_only_read(callee, argument, known)
        for argument, operand in zip(callee.arguments, i.operands[1:], strict=True)
        if operand in derived
    )
