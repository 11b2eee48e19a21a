"""Whether the iterations of a kernel's inner loops are better made into vectors than its work-items: each
work-item goes through a row or a block of memory of its own, element by element, and iterations do not wait
for one another. With a lane for each work-item, each access is a gather or a scatter; without, LLVM's loop
vectoriser makes whole vectors of them.
"""

from __future__ import annotations

from typing import TypeAlias

from ...spirv.enums import Op, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.layout import size_of
from ...spirv.module import Block, Function, Instruction, Kind, Value
from ..analysis.sums import Sum, Sums
from ..ir.dominance import LoopNest, dominators
from ..ir.instructions import PURE, is_constant_int, predecessors
from ..ir.plan import KernelPlan
from ..ir.shapes import ShapeInfo
from .latency import TRIPS, depth_of

# Cycles of one work-item: an access to its own place, as one of many in a gather or a scatter; an operation
# of scalar code; a value that an iteration of scalar code waits for. A vector operation is half a cycle.
_PLACE = 1.25
_SCALAR = 0.33
_CARRIED = 2.5
_VECTOR = 0.5

_WORTH = 1.2
_OWN = 0.5  # the share of accesses that must be at places of each work-item's own
_CHECKS = 8  # pairs of arrays that LLVM compares to find out whether they overlap

# What LLVM makes vectors of, or what is as fast without: of functions, those that are an instruction or two.
_FUNCTIONS = frozenset((
    Std.fma, Std.mad, Std.fmax, Std.fmin, Std.fmax_common, Std.fmin_common, Std.fabs, Std.fclamp,
    Std.copysign, Std.sqrt, Std.native_sqrt, Std.floor, Std.ceil, Std.rint, Std.trunc, Std.s_abs, Std.s_max,
    Std.s_min, Std.s_clamp, Std.u_max, Std.u_min, Std.u_clamp,
))  # fmt: skip
_DIVISIONS = frozenset((Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod, Op.FRem, Op.FMod))

# A load or a store, and its address.
_Access: TypeAlias = tuple[Instruction, Sum]


def prefers_inner_loops(plan: KernelPlan) -> bool:
    """Whether a plan with lanes is to be given up for one with one work-item at a time."""
    options = plan.options
    region = plan.region_of_lanes
    if region is None:
        return False
    with_lanes, without = _cycles(region.function, region.shapes, options.width)
    if without * _WORTH > with_lanes:
        return False
    if options.remarks is not None:
        why = "goes through memory of its own, one element after the other, so that its loops become vectors"
        cycles = f"{with_lanes:.0f} with lanes, {without:.0f} without"
        options.remarks.choose("width", f"each work-item {why}; estimated cycles: {cycles}")
    return True


def _cycles(function: Function, shapes: ShapeInfo, lanes: int) -> tuple[float, float]:
    """Estimates for one work-item: with lanes, and without."""
    before = predecessors(function)
    nest = LoopNest(function, dominators(function, before), before)
    sums, with_lanes, without = Sums(), 0.0, 0.0
    for block in function.blocks:
        innermost = nest.innermost.get(block)
        times = float(TRIPS ** depth_of(innermost))
        operations = sum(i.op is not Op.Phi for i in block.instructions)
        in_vectors = times * operations * _VECTOR / lanes
        with_lanes += in_vectors
        is_single = innermost is not None and innermost.blocks == {block}
        places = _places(block, sums, shapes) if is_single else 0
        if places:
            with_lanes += times * places * _PLACE
            without += in_vectors
        else:
            carries = is_single and _counter(block) is None
            without += times * max(operations * _SCALAR, carries * _CARRIED)
    return with_lanes, without


def _places(block: Block, sums: Sums, shapes: ShapeInfo) -> int:
    """How many accesses of a loop of one block are to a row of each work-item, if it writes to one and its
    iterations may be executed at the same time; else 0."""
    counter = _counter(block)
    if counter is None:
        return 0
    phi, step = counter
    inside = set(block.instructions)
    accesses: list[_Access] = []
    for i in block.instructions[:-1]:
        if i.op is Op.Load or i.op is Op.Store:
            accesses.append((i, sums.of(i.operands[0])))
        elif i.op is Op.ExtInst:
            if i.operands[1] not in _FUNCTIONS:
                return 0
        elif i.op in _DIVISIONS or i.op not in PURE:
            return 0
    stores = [(i, at) for i, at in accesses if i.op is Op.Store]
    if not stores or len({i.mask for i, _ in accesses}) > 1:
        return 0
    own = 0
    for i, at in accesses:
        pointer, size = i.operands[0], size_of(i.type or i.operands[1].type)
        moves = at.factors.get(phi, 0) * step
        if i.memory is not None and i.memory.volatile or pointer.type.storage is StorageClass.Function:
            return 0
        if any(v in inside for v in at.factors if v is not phi) or moves not in (size, -size, 0):
            return 0
        if moves == 0 and i.op is Op.Store:
            return 0
        own += moves != 0 and _is_own(shapes, pointer, size)
    if own < _OWN * len(accesses) or not _is_independent(accesses, stores, phi, step):
        return 0
    return own


def _counter(block: Block) -> tuple[Instruction, int] | None:
    """The only value but masks that a loop carries along, an integer, and by how much it grows."""
    phis = [phi for phi in block.phis() if phi.type.kind is not Kind.BOOL]
    if len(phis) != 1 or phis[0].type.kind is not Kind.INT:
        return None
    (phi,) = phis
    following = next(v for v, b in zip(phi.operands[::2], phi.operands[1::2], strict=True) if b is block)
    if not isinstance(following, Instruction) or following.op not in (Op.IAdd, Op.ISub):
        return None
    a, b = following.operands
    if a is not phi or not is_constant_int(b):
        return None
    step = Sums().of(b).constant
    return phi, step if following.op is Op.IAdd else -step


def _is_own(shapes: ShapeInfo, pointer: Value, size: int) -> bool:
    stride = shapes.stride(pointer)
    return stride is None or (isinstance(stride, int) and abs(stride) > 2 * size)


def _is_independent(accesses: list[_Access], stores: list[_Access], phi: Instruction, step: int) -> bool:
    """Whether no iteration reads, or writes again, what an earlier one wrote, as far as addresses tell."""
    compared = set()
    for store, to in stores:
        moves = to.factors[phi] * step
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
