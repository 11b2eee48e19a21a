"""Whether the iterations of a kernel's inner loops are better made into vectors than its work-items: each
work-item goes through a row or a block of memory of its own, element by element, and iterations do not wait
for one another, or only for sums of integers, which may be added up in any order. With a lane for each
work-item, each access is a gather or a scatter; without, LLVM's loop vectoriser makes whole vectors of them.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.layout import size_of
from ...spirv.module import Block, Instruction, Kind, Value
from ..analysis.sums import Sum, Sums
from ..ir.instructions import ADDRESS, PURE, is_constant_int
from ..ir.shapes import ShapeInfo
from .cpu_models import RESOURCES, cycles
from .operations import CONTIGUOUS, Operations, is_access, size_in_memory
from .work import RegionCosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

_OWN = 0.5  # the share of accesses that must be at places of each work-item's own
_CHECKS = 8  # pairs of arrays that LLVM compares to find out whether they overlap

# What LLVM makes vectors of, or what is as fast without: of functions, those that are an instruction or two.
_FUNCTIONS = frozenset((
    Std.fma, Std.mad, Std.fmax, Std.fmin, Std.fmax_common, Std.fmin_common, Std.fabs, Std.fclamp,
    Std.copysign, Std.sqrt, Std.native_sqrt, Std.floor, Std.ceil, Std.rint, Std.trunc, Std.s_abs, Std.s_max,
    Std.s_min, Std.s_clamp, Std.u_max, Std.u_min, Std.u_clamp,
))  # fmt: skip
# What integers are added up with, in any order.
_REDUCTIONS = frozenset((Op.IAdd, Op.BitwiseAnd, Op.BitwiseOr, Op.BitwiseXor))
_DIVISIONS = frozenset((Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod, Op.FRem, Op.FMod))

# A load or a store, and its address.
_Access: TypeAlias = tuple[Instruction, Sum]
# What a loop counts with, and by how much each grows.
_Counters: TypeAlias = dict[Value, int]


def cycles_with_inner_loops(region: RegionCosts) -> float | None:
    """Cycles of a work-item without lanes, where some loops become vectors; None if none does."""
    nest = region.nest
    single = [loop for loop in nest.loops if loop.blocks == {loop.header}]
    found = [loop for loop in single if _is_of_rows(loop.header, region.sums, region.shapes)]
    if not found:
        return None
    model = region.operations.model
    total = region.cycles_alone
    for loop in found:
        work = region.alone.loops[loop]
        total -= work.cycles(model)
        total += work.times * _in_vectors(loop.header, region.operations)
    return total


def _in_vectors(block: Block, operations: Operations) -> float:
    """Cycles of an iteration, as one of as many as vectors have lanes."""
    width = operations.model.vector_bits // 32
    values = [i for i in block.instructions if i.op not in ADDRESS]
    inside = Operations(operations.model, ShapeInfo(dict.fromkeys(values, None)), width)
    slots = [0.0] * RESOURCES
    for i in values:
        step = size_in_memory(i) if is_access(i) else 0
        cost = inside.usual_access(i, CONTIGUOUS, step) if step else inside.cost(i)
        for resource, count in cost.used:
            slots[resource] += count
    return cycles(slots, operations.model)[0] / width


def _is_of_rows(block: Block, sums: Sums, shapes: ShapeInfo) -> bool:
    """Whether accesses of a loop of one block are to a row of each work-item, it writes to one or adds up
    what it reads, and its iterations may be executed at the same time."""
    found = _counters(block)
    if found is None:
        return False
    counters, adds_up = found
    inside = set(block.instructions)
    accesses: list[_Access] = []
    for i in block.instructions[:-1]:
        if i.op is Op.Load or i.op is Op.Store:
            accesses.append((i, sums.of(i.operands[0])))
        elif i.op is Op.ExtInst:
            if i.operands[1] not in _FUNCTIONS:
                return False
        elif i.op in _DIVISIONS or i.op not in PURE:
            return False
    stores = [(i, at) for i, at in accesses if i.op is Op.Store]
    if not (stores or adds_up) or len({i.mask for i, _ in accesses}) > 1:
        return False
    own = 0
    for i, at in accesses:
        pointer, size = i.operands[0], size_of(i.type or i.operands[1].type)
        moves = _moves(at, counters)
        if i.memory is not None and i.memory.volatile or pointer.type.storage is StorageClass.Function:
            return False
        if any(v in inside for v in at.factors if v not in counters) or moves not in (size, -size, 0):
            return False
        if moves == 0 and i.op is Op.Store:
            return False
        own += moves != 0 and _is_own(shapes, pointer, size)
    if own < _OWN * len(accesses) or not _is_independent(accesses, stores, counters):
        return False
    return True


def _counters(block: Block) -> tuple[_Counters, bool] | None:
    """The integers that a loop counts with, and whether it adds up integers; None if it carries anything else
    along but masks."""
    counters: _Counters = {}
    sums = 0
    for phi in block.phis():
        if phi.type.kind is Kind.BOOL:
            continue
        following = next(v for v, b in zip(phi.operands[::2], phi.operands[1::2], strict=True) if b is block)
        if phi.type.kind is not Kind.INT or not isinstance(following, Instruction):
            return None
        if following.op in (Op.IAdd, Op.ISub) and following.operands[0] is phi:
            by = following.operands[1]
            if is_constant_int(by):
                step = Sums().of(by).constant
                counters[phi] = step if following.op is Op.IAdd else -step
                continue
        if following.op not in _REDUCTIONS or following.operands.count(phi) != 1:
            return None
        if sum(i.operands.count(phi) + i.operands.count(following) for i in block.instructions) != 2:
            return None
        sums += 1
    return (counters, sums > 0) if counters else None


def _moves(at: Sum, counters: _Counters) -> int:
    """Bytes from what an iteration accesses to what the next one does."""
    return sum(at.factors.get(phi, 0) * step for phi, step in counters.items())


def _is_own(shapes: ShapeInfo, pointer: Value, size: int) -> bool:
    stride = shapes.stride(pointer)
    return stride is None or (isinstance(stride, int) and abs(stride) > 2 * size)


def _is_independent(accesses: list[_Access], stores: list[_Access], counters: _Counters) -> bool:
    """Whether no iteration reads, or writes again, what an earlier one wrote, as far as addresses tell."""
    compared = set()
    for store, to in stores:
        moves = _moves(to, counters)
        for other, at in accesses:
            if other is store:
                continue
            if to.factors == at.factors:
                later, rest = divmod(to.constant - at.constant, moves)
                if rest or later > 0 or (later < 0 and other.op is Op.Store):
                    return False
            else:
                compared.add(frozenset((_base(to), _base(at))))
    return len(compared) <= _CHECKS


def _base(at: Sum) -> Value | None:
    return next((value for value in at.factors if value.type.kind is Kind.POINTER), None)
