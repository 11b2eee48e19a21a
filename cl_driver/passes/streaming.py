"""Whether OpenCL vectors only stream through a kernel: codegen/flat_vectors.py foreseen, before there are
lanes."""

from __future__ import annotations

from ..spirv.enums import BuiltIn, Op
from ..spirv.enums import OpenCLStd as Std
from ..spirv.layout import size_of
from ..spirv.module import Argument, Constant, Function, Instruction, Kind, Type, Value, Variable
from .ir import ADDRESS, int_value, is_constant_int
from .vector_memory import vector_access, vector_stays

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
_SAME = frozenset((Op.UConvert, Op.SConvert, Op.Bitcast, Op.CopyObject))
_SHIFTS = frozenset((Op.ShiftLeftLogical, Op.ShiftRightArithmetic))
_IDS = (BuiltIn.GlobalInvocationId, BuiltIn.LocalInvocationId)
_DEPTH = 60


def streams(function: Function) -> bool:
    """Whether neighbours load neighbouring vectors, many for each vector that is taken apart in the end."""
    loads, apart, steps = 0, set(), {}
    for i in (i for b in function.blocks for i in b.instructions):
        if i.op in _REARRANGE or (i.op is Op.ExtInst and i.operands[1] in _HALVES):
            return False
        if i.op in _BY_SCALARS and any(_step(o, steps) != 0 for o in i.operands[-2:]):
            return False
        whole = i.operands[0] if i.op is Op.CompositeExtract else None
        if whole is not None and whole.type.kind is Kind.VECTOR and not _is_id(whole):
            apart.add(whole)
        if i.op is Op.Load and i.type.kind is Kind.VECTOR and not _is_id(i):
            loads += 1
            if _step(i.operands[0], steps) != size_of(i.type):
                return False
        access = vector_access(i)
        if access is not None:
            loads += access[0] is i
            if _vector_step(*access, steps) != size_of(access[0].type):
                return False
    return loads > 0 and LEAST_LOADS * len(apart) <= loads


def _is_id(value) -> bool:
    """Whether a value is one of the built-in variables."""
    is_load = isinstance(value, Instruction) and value.op is Op.Load
    source = value.operands[0] if is_load else None
    return isinstance(source, Variable) and source.builtin is not None


def _step(value, steps: dict, depth: int = 0) -> int | None:
    """By how much an integer or, in bytes, an address grows with the id of dimension 0, as far as its bits
    hold it; None if that is not known. steps: what is known so far."""
    if isinstance(value, Argument | Constant):
        return 0
    if not isinstance(value, Instruction) or depth == _DEPTH:
        return None
    if value not in steps:
        steps[value] = _step_of(value, steps, depth)
    return steps[value]


def _vector_step(value: Value, offset: Value, pointer: Value, steps: dict) -> int | None:
    """By how much the address of a vloadn or vstoren grows."""
    if vector_stays(value, pointer):
        return None
    of_pointer, of_offset = _step(pointer, steps), _step(offset, steps)
    if of_pointer is None or of_offset is None:
        return None
    return of_pointer + of_offset * size_of(value.type)


def _step_of(value: Instruction, steps: dict, depth: int) -> int | None:
    operands = value.operands
    if value.op is Op.CompositeExtract and _is_id(operands[0]):
        return int(operands[1] == 0 and operands[0].operands[0].builtin in _IDS)
    if value.op in ADDRESS:
        return _address_step(value, steps, depth + 1)
    if value.op in _SAME:
        return _step(operands[0], steps, depth + 1)
    if value.op not in _SHIFTS and value.op not in (Op.IAdd, Op.ISub, Op.IMul):
        return None
    a, b = (_step(o, steps, depth + 1) for o in operands)
    if a is None or b is None:
        return None
    if value.op is Op.IAdd:
        return a + b
    if value.op is Op.ISub:
        return a - b
    if not a and not b:
        return 0
    factor = next((int_value(o) for o in operands if is_constant_int(o)), None)
    if factor is None or (value.op in _SHIFTS and not is_constant_int(operands[1])):
        return None
    if value.op is Op.IMul:
        return (a or b) * factor
    if factor >= value.type.width:
        return None
    if value.op is Op.ShiftLeftLogical:
        return a << factor
    return a >> factor if a % (1 << factor) == 0 else None


def _address_step(chain: Instruction, steps: dict, depth: int) -> int | None:
    """Of pointers and arrays: nothing that streams has structures."""
    base, *indices = chain.operands
    type_, total = base.type.element, _step(base, steps, depth)
    if not isinstance(type_, Type):
        return None
    for number, index in enumerate(indices):
        if number or chain.op not in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
            if type_.kind is not Kind.ARRAY:
                return None
            type_ = type_.element
        step = _step(index, steps, depth)
        if total is None or step is None:
            return None
        total += step * size_of(type_)
    return total
