"""What only streams through a kernel, before there are lanes.

OpenCL vectors that do: codegen/access/packed_vectors.py foreseen. Bytes and shorts: eight of them fill a
small part of a register, and take as many instructions as would fill it, so that more lanes pay.
"""

from __future__ import annotations

from collections.abc import Container

from ...spirv.enums import Op, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.layout import size_of
from ...spirv.module import Function, Instruction, Kind, Type, Value
from ..analysis.strides import Strides
from ..ir.instructions import ADDRESS, PURE, TERMINATORS, block_times, is_id, reads_builtin
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

# Where bytes or shorts stream.
_MOST_LANES = 32
_NARROW, _WIDE = 16, 32  # bits: numbers of more than the first fill registers with a lane for each 32
_REGISTERS = 2  # that a number of all lanes takes at most
_VECTOR_REGISTERS = 4  # and an OpenCL vector
_GLOBAL = (StorageClass.CrossWorkgroup, StorageClass.UniformConstant)


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


def lanes_of_streams(functions: list[Function], native: int, bits: int, plain: Container[int]) -> int:
    """How many lanes fill vectors of so many bits; `native` where that is not sure to pay: where work-items
    are not neighbours in memory, where there are private or local memory, calls of other functions than those
    of `plain`, or numbers of 64 bits, or of more than 16 in loops."""
    if len(functions) > 1:
        return native
    streams = _Streams(functions[0], plain)
    widest = _NARROW if streams.has_loops else _WIDE
    if not streams.are_all or not 0 < streams.narrowest <= _NARROW or streams.widest > widest:
        return native
    lanes = min(bits // streams.narrowest, _MOST_LANES)
    while lanes > native and not streams.fit(lanes, bits):
        lanes //= 2
    return max(lanes, native)


class _Streams:
    """What flows through a function. are_all: whether it does nothing else. narrowest: bits of numbers that
    work-items have in memory. widest: of what they calculate with, addresses apart; largest: of vectors."""

    def __init__(self, function: Function, plain: Container[int]) -> None:
        self.narrowest = self.widest = self.largest = 0
        self._plain = plain
        self._same: set[Value] = set()  # between work-items of a row
        self._steps = Strides(0, lambda value: value not in self._same, loops=True)
        self.has_loops = any(times > 1 for _, times in block_times(function, 2.0))
        self.are_all = all(self._note(i) for block in function.blocks for i in block.instructions)

    def fit(self, lanes: int, bits: int) -> bool:
        """Whether values of so many lanes take few registers."""
        is_few = lanes * self.widest <= _REGISTERS * bits
        return is_few and lanes * self.largest <= _VECTOR_REGISTERS * bits

    def _note(self, i: Instruction) -> bool:
        """Whether an instruction is part of a stream, or of what is the same for all."""
        if i.op is Op.Load or i.op is Op.Store:
            if i.memory is not None and i.memory.volatile:
                return False
            return reads_builtin(i) or self._note_access(i)
        if i.op is Op.ExtInst:
            if i.operands[1] not in self._plain:
                return False
        elif i.op not in PURE and i.op not in TERMINATORS:
            return False
        if i.type is None or i.op in ADDRESS or self._steps.of(i) is not None:
            return True
        values = [o for o in i.operands if isinstance(o, Value)]
        if i.op is not Op.Phi and all(self._steps.of(o) == 0 for o in values):
            self._same.add(i)
        elif not any(map(is_id, values)):
            self._note_number(i.type)
        return True

    def _note_access(self, i: Instruction) -> bool:
        pointer, type_ = i.operands[0], i.operands[1].type if i.op is Op.Store else i.type
        if pointer.type.storage not in _GLOBAL:
            return False
        step = self._steps.of(pointer)
        if i.op is Op.Load and step == 0:
            return True
        if step != size_of(type_) or not self._note_number(type_):
            return False
        width = _element(type_).width
        self.narrowest = min(self.narrowest or width, width)
        return True

    def _note_number(self, type_: Type) -> bool:
        """Whether it is one, or a vector of them."""
        element = _element(type_)
        if element.kind is Kind.BOOL:
            return True
        if element.kind is not Kind.INT and element.kind is not Kind.FLOAT:
            return False
        width = max(element.width, _WIDE) if element.kind is Kind.FLOAT else element.width
        self.widest = max(self.widest, width)
        if type_.kind is Kind.VECTOR:
            self.largest = max(self.largest, type_.count * width)
        return True


def _element(type_: Type) -> Type:
    element: Type = type_.element if type_.kind is Kind.VECTOR else type_
    return element
