"""Whether OpenCL vectors only stream through a kernel: codegen/access/packed_vectors.py foreseen, before
there are lanes."""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.layout import size_of
from ...spirv.module import Function, Kind, Value
from ..analysis.strides import Strides
from ..ir.instructions import is_id
from ..lower.vloadn import vector_access, vector_stays

LEAST_LOADS = 4  # for each value that components are taken of in the end: one is taken apart, not each load
_REARRANGE = frozenset((
    Op.VectorShuffle, Op.CompositeInsert, Op.VectorExtractDynamic, Op.VectorInsertDynamic,
))  # fmt: skip
_BY_SCALARS = frozenset(
    (Op.BitFieldInsert, Op.BitFieldSExtract, Op.BitFieldUExtract)
)  # the last two operands
_HALVES = frozenset((
    Std.vload_halfn, Std.vloada_halfn, Std.vstore_halfn, Std.vstore_halfn_r, Std.vstorea_halfn,
    Std.vstorea_halfn_r,
))  # fmt: skip


def stays_packed(function: Function) -> bool:
    """Whether neighbours load neighbouring vectors, many for each vector that is taken apart in the end."""
    loads, apart, steps = 0, set(), Strides(0, loops=True)
    for i in (i for b in function.blocks for i in b.instructions):
        if i.op in _REARRANGE or (i.op is Op.ExtInst and i.operands[1] in _HALVES):
            return False
        if i.op in _BY_SCALARS and any(steps.of(o) != 0 for o in i.operands[-2:]):
            return False
        whole = i.operands[0] if i.op is Op.CompositeExtract else None
        if whole is not None and whole.type.kind is Kind.VECTOR and not is_id(whole):
            apart.add(whole)
        if i.op is Op.Load and i.type.kind is Kind.VECTOR and not is_id(i):
            loads += 1
            if steps.of(i.operands[0]) != size_of(i.type):
                return False
        access = vector_access(i)
        if access is not None:
            loads += access[0] is i
            if _vector_step(*access, steps) != size_of(access[0].type):
                return False
    return loads > 0 and LEAST_LOADS * len(apart) <= loads


def _vector_step(value: Value, offset: Value, pointer: Value, steps: Strides) -> int | None:
    """By how much the address of a vloadn or vstoren grows."""
    if vector_stays(value, pointer):
        return None
    of_pointer, of_offset = steps.of(pointer), steps.of(offset)
    if of_pointer is None or of_offset is None:
        return None
    return of_pointer + of_offset * size_of(value.type)
