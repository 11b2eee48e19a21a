"""Kernels whose lanes are to follow dimension 1: what they call dimensions 0 and 1 is exchanged in the code,
and in launches (native_shim/src/launch/ndrange.c). No work-item can tell, as long as it asks for nothing but
global ids, sizes and offsets, of one dimension at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import BuiltIn, ExecutionMode, Op, StorageClass
from ...spirv.module import EntryPoint, Function, Instruction, Kind, Module, Variable
from ..ir.instructions import GROUP_OPERATIONS, is_id
from .inline import inline

_BY_DIMENSION = frozenset((BuiltIn.GlobalInvocationId, BuiltIn.GlobalSize, BuiltIn.GlobalOffset))
_TOGETHER = GROUP_OPERATIONS | {Op.ControlBarrier, Op.MemoryNamedBarrier}


def may_exchange_ids(point: EntryPoint, functions: Iterable[Function]) -> bool:
    """Whether dimensions 0 and 1 of a kernel can be exchanged. functions: the kernel, and what it calls: what
    is not in the module may be anything."""
    if point.modes.keys() & {ExecutionMode.LocalSize, ExecutionMode.LocalSizeHint}:
        return False
    types = [argument.type for argument in point.function.arguments]
    if any(type_.kind is Kind.POINTER and type_.storage is StorageClass.Workgroup for type_ in types):
        return False
    asked: set[int] = set()
    for function in functions:
        if not function.blocks:
            return False
        for i in (i for block in function.blocks for i in block.instructions):
            if i.op in _TOGETHER or not _is_plain(i, function is point.function):
                return False
            if i.op is Op.CompositeExtract and is_id(i.operands[0]):
                asked.add(i.operands[1])
    return {0, 1} <= asked


def _is_plain(i: Instruction, is_own: bool) -> bool:
    """Whether an instruction takes nothing of built-in and local variables but ids and sizes, one by one."""
    for o in i.operands:
        if isinstance(o, Variable):
            if o.type.storage is StorageClass.Workgroup:
                return False
            if o.builtin not in (None, BuiltIn.WorkDim):
                if not (is_own and i.op is Op.Load and o.builtin in _BY_DIMENSION):
                    return False
        elif is_id(o) and o.type.kind is Kind.VECTOR and i.op is not Op.CompositeExtract:
            return False
    return True


def with_exchanged_ids(module: Module, point: EntryPoint, functions: Iterable[Function]) -> EntryPoint:
    """The kernel with dimensions 0 and 1 exchanged: a function of its own, which calls the same others."""
    kept = {callee: callee for callee in functions if callee is not point.function}
    function = inline(module, point.function, kept)
    for i in (i for block in function.blocks for i in block.instructions):
        if i.op is Op.CompositeExtract and is_id(i.operands[0]) and i.operands[1] < 2:
            i.operands = [i.operands[0], 1 - i.operands[1]]
    return EntryPoint(point.name, function, point.interface, point.modes)
