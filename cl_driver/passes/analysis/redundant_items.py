"""Work-items that do the same as their neighbours: where a launch has a dimension that a kernel never asks
for, all work-items along it load the same, compute the same and store the same. One of each group is enough.
If it never asks for groups along it either, one group is: the others would write to the same memory, from
other cores.

All of them print, each as often as the kernel says. In a kernel that may print, one is enough unless it does:
the loops over a group's work-items ask that when the first one is done.
"""

from __future__ import annotations

from ...spirv.enums import BuiltIn, Op, StorageClass
from ...spirv.module import Instruction, Kind, Variable
from ..ir.instructions import ADDRESS, PURE, TERMINATORS, int_value, is_constant_int
from ..ir.link_names import source_name
from ..ir.ops import PassBuiltIn, PassOp
from ..ir.plan import KernelPlan

# What differs between work-items of a group; also between groups, the last of which may be smaller; and what
# is the same in a launch.
_IDS = frozenset((BuiltIn.GlobalInvocationId, BuiltIn.LocalInvocationId))
_IDS_OF_GROUPS = _IDS | {BuiltIn.WorkgroupId, PassBuiltIn.GroupOrigin, BuiltIn.WorkgroupSize}
_OF_LAUNCHES = frozenset((
    BuiltIn.WorkDim, BuiltIn.GlobalSize, BuiltIn.EnqueuedWorkgroupSize, BuiltIn.GlobalOffset,
    BuiltIn.NumWorkgroups,
))  # fmt: skip

# What has the same effect however often it is done. Atomics are not among it, nor is what calls functions, or
# has work-items do something together.
_IDEMPOTENT = PURE | TERMINATORS | frozenset((
    Op.Variable, Op.Load, Op.Store, Op.CopyMemory, Op.CopyMemorySized, Op.ExtInst, Op.MemoryBarrier,
    Op.LifetimeStart, Op.LifetimeStop, Op.AssumeTrueKHR,
    PassOp.SlotLoad, PassOp.SlotStore, PassOp.RegionExit,
))  # fmt: skip
# Those of them of which nothing else has to be asked, unless they look at memory.
_PLAIN = _IDEMPOTENT - {Op.ExtInst, Op.FunctionCall}

_FENCES = frozenset(("mem_fence", "read_mem_fence", "write_mem_fence"))


def redundant_dimensions(plan: KernelPlan) -> frozenset[int]:
    """The dimensions along which all work-items of a group do the same, and print the same."""
    if (
        plan.uses_printf and len(plan.regions) > 1
    ):  # what the next region needs would be the first one's alone
        return frozenset()
    return _not_asked_for(plan, _IDS)


def repeated_dimensions(plan: KernelPlan) -> int:
    """How many of the last dimensions are such that all groups along them do the same, and print nothing."""
    if plan.uses_printf:
        return 0
    same = _not_asked_for(plan, _IDS_OF_GROUPS)
    return next(count for count in range(4) if 2 - count not in same)


def _not_asked_for(plan: KernelPlan, ids: frozenset[int]) -> frozenset[int]:
    """Dimensions of which a kernel reads none of these built-in variables, if doing what it does again
    changes nothing."""
    if plan.options.sub_groups or plan.options.group:
        return frozenset()
    rest = {0, 1, 2}
    for region in plan.regions:
        for i in (i for block in region.function.blocks for i in block.instructions):
            is_plain = i.memory is None and i.op in _PLAIN
            if region.once or not (is_plain or _is_idempotent(i)):
                return frozenset()
            for o in i.operands:
                if type(o) is Variable or (type(o) is Instruction and o.op is Op.Load):
                    break
            else:
                continue  # most have nothing to do with ids
            rest -= _asked_for(i, ids)
            if not rest:
                return frozenset()
            if i.op is Op.Load and isinstance(i.operands[0], Variable):
                continue
            if i.op is Op.CompositeExtract and _is_load_of(i.operands[0], ids):
                rest.discard(i.operands[1])
            elif any(_is_load_of(o, ids) for o in i.operands):
                return frozenset()
    return frozenset(rest)


def _is_of_group(i: Instruction) -> bool:
    """Whether a load or a store is one of memory that nobody outside of the group sees."""
    if i.op not in (Op.Load, Op.Store):
        return False
    type_ = i.operands[0].type
    return type_.kind is Kind.POINTER and type_.storage in (StorageClass.Workgroup, StorageClass.Function)


def _is_idempotent(i: Instruction) -> bool:
    # A volatile load may wait for what others write. A volatile store that others of the group repeat may be
    # made once: whoever looks sees the same.
    is_volatile = i.memory is not None and i.memory.volatile
    if is_volatile and i.op is not Op.Store and not _is_of_group(i):
        return False
    if i.op is Op.FunctionCall:  # of the library, of which code for one work-item keeps some
        callee = i.operands[0]
        return callee.linkage is not None and source_name(callee.linkage[0]) in _FENCES
    return i.op in _IDEMPOTENT


def _asked_for(i: Instruction, ids: frozenset[int]) -> set[int]:
    """Dimensions of which an instruction takes the id from the built-in variable itself, but for loads of it
    as a whole."""
    known = _IDS_OF_GROUPS | _OF_LAUNCHES
    builtins = {o.builtin for o in i.operands if isinstance(o, Variable)} - {None}
    asked = {b for b in builtins if b in ids or b not in known}
    if not asked:
        return set()
    if asked <= ids:
        if i.op is Op.Load:
            return set()
        index = i.operands[-1]
        if i.op in ADDRESS and is_constant_int(index):
            return {int_value(index)}
    return {0, 1, 2}


def _is_load_of(value: object, ids: frozenset[int]) -> bool:
    source = value.operands[0] if isinstance(value, Instruction) and value.op is Op.Load else None
    return isinstance(source, Variable) and source.builtin in ids
