"""How long a vector of work-items takes, and how much of that is waiting which other vectors could fill.

A core starts two vector operations a cycle, but an operation waits for what it needs. What a loop carries
from one iteration to the next comes one after the other; else the core looks some operations ahead, and finds
work in the next iterations. Several vectors at a time fill both gaps, until their registers are spilled, or
until the code of a loop is larger than the cache for instructions. Only the relation of such times to one
another means anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...records import field, record
from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Block, Function, Instruction, Kind, Operand
from ..ir.dominance import Loop, LoopNest, dominators
from ..ir.instructions import ADDRESS, predecessors
from ..ir.ops import PassOp
from ..ir.shapes import ShapeInfo
from .pressure import registers_of

_STARTED = 2  # vector operations a cycle
_AHEAD = 100  # operations that a core looks ahead
_SPILL = 0.1  # cycles of an operation whose result is stored and loaded again
_CODE_BYTES = 8  # of an operation, with what it loads and stores of registers that are spilled
_CODE_CACHE = 32 << 10  # bytes of the innermost cache for instructions: x86 cores have this, others more
_FETCH = 0.3  # cycles of an operation that an iteration fetches from the next cache, about 14 bytes a cycle
_OVERHEAD = 2.0  # cycles of an iteration for counting and branches
_BRANCH = 4.0  # cycles of a branch that asks lanes: predictions of it fail
TRIPS = 8  # of a loop of which nothing is known
_SELDOM = 4  # how much less often a loop comes to blocks that not every iteration comes to

# Cycles until a result is there; those of other instructions are 1, of functions as of _FLOAT.
_FLOAT = 4
_CYCLES = dict.fromkeys((
    Op.FAdd, Op.FSub, Op.FMul, Op.Dot, Op.VectorTimesScalar, Op.ExtInst, Op.ConvertSToF, Op.ConvertUToF,
    Op.ConvertFToS, Op.ConvertFToU, Op.FConvert,
), _FLOAT)  # fmt: skip
_CYCLES |= {Op.IMul: 10, Op.Load: 6, Op.FDiv: 16, Op.FRem: 40, Op.FMod: 40}
_CYCLES |= dict.fromkeys((Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod), 40)
_CYCLES_OF_FUNCTIONS = {Std.sqrt: 20, Std.rsqrt: 20, Std.native_sqrt: 20, Std.native_rsqrt: 20}

# Units that an instruction keeps busy, where more than one.
_UNITS = {Op.IMul: 4, Op.FDiv: 8, Op.UDiv: 12, Op.SDiv: 12, Op.UMod: 14, Op.SRem: 14, Op.SMod: 14}

_NOTHING = frozenset((
    Op.CompositeExtract, Op.CompositeConstruct, Op.CompositeInsert, Op.VectorShuffle, Op.Bitcast,
    Op.CopyObject, Op.Phi, Op.Undef,
)) | ADDRESS  # fmt: skip


_SUMS = frozenset((Op.IAdd, Op.SConvert, Op.UConvert, Op.Bitcast)) | ADDRESS


@record()
class Work:
    """What a region does with one vector of work-items. units: its operations; once: cycles that are the same
    for any number of vectors; loops: (how often, operations if it is innermost, cycles of the longest chain,
    cycles of what is carried along); walks: whether a loop has lanes that walk through rows of their own;
    code: (operations of a loop outside inner ones, operations of an iteration with inner ones), without what
    iterations seldom come to."""

    units: float = 0.0
    once: float = 0.0
    loops: list[tuple[float, float, float, float]] = field(default_factory=list)
    walks: bool = False
    weights: dict[Instruction, float] = field(default_factory=dict)  # operations of each instruction
    code: list[tuple[float, float]] = field(default_factory=list)

    def cycles(self, vectors: int, pressure: int, registers: int, share: float = 1.0) -> float:
        """Of one vector, when so many are executed together, each of which needs `pressure` registers. share:
        of its operations that are left of those that are done once for all vectors (row_reuse.py)."""
        busy = self.units * share / _STARTED + self.once / vectors
        chain = max(
            (
                times * max(carried / vectors, units * longest / (units * vectors + _AHEAD))
                for times, units, longest, carried in self.loops
            ),
            default=0.0,
        )
        spilled = self.units * max(0.0, 1 - registers / max(vectors * pressure, 1))
        return math.hypot(busy, chain) + spilled * _SPILL + self.fetched(vectors) * share * _FETCH

    def fetched(self, vectors: int) -> float:
        """Operations of one vector that come from beyond the cache for instructions: of a loop of twice its
        size all, of a smaller one a share, since nobody knows yet how long the code will be."""
        return sum(
            units * min(1.0, max(0.0, code * vectors * _CODE_BYTES / _CODE_CACHE - 1))
            for units, code in self.code
        )

    def alone(self, lanes: int) -> Work:
        """The work of one work-item without lanes, where all values of one fill registers by themselves."""
        return Work(
            units=self.units / lanes,
            once=self.once,
            loops=[(times, units / lanes, chain, held) for times, units, chain, held in self.loops],
            code=[(units / lanes, code / lanes) for units, code in self.code],
        )


def work_of(function: Function, shapes: ShapeInfo, lane_bits: int, lanes: int) -> Work:
    """Of a linearised region. lane_bits: of a register, for each lane."""
    before = predecessors(function)
    tree = dominators(function, before)
    nest = LoopNest(function, tree, before)
    work = Work()
    weights = {i: _units(i, shapes, lane_bits, lanes) for b in function.blocks for i in b.instructions}
    work.weights = weights
    always: dict[Loop | None, float] = {}  # operations of an iteration that all iterations come to
    for loop, blocks in nest.own_blocks().items():
        times = float(TRIPS ** depth_of(loop))
        units = always[loop] = 0.0
        for block in blocks:
            often = times
            of_block = sum(map(weights.__getitem__, block.instructions))
            if loop is not None and not any(tree.dominates(block, latch) for latch in loop.latches):
                often /= _SELDOM
            else:
                always[loop] += of_block
            units += often * of_block
            ends = block.terminator.operands[:1]
            is_latch = loop is not None and block in loop.latches
            if len(block.successors()) > 1 and ends and _asks_lanes(ends[0]) and not is_latch:
                work.once += _BRANCH * often
            if loop is not None:
                work.walks = work.walks or any(_walks(i, loop, shapes) for i in block.instructions)
        work.units += units
        work.once += _OVERHEAD * times
        if loop is None and nest.loops:
            continue
        longest, carried = _chains([b for b in nest.order if loop is None or b in loop.blocks], loop, weights)
        is_innermost = loop is None or not loop.children
        work.loops.append((times, units / times if is_innermost else 0.0, longest, carried))
    code = dict(always)  # with that of the loops inside; a kernel is a loop over its vectors
    code.setdefault(None, 0.0)
    for loop in reversed(nest.loops):
        if loop.parent is None or any(tree.dominates(loop.header, latch) for latch in loop.parent.latches):
            code[loop.parent] = code.get(loop.parent, 0.0) + code.get(loop, 0.0)
    work.code = [(TRIPS ** depth_of(loop) * units, code[loop]) for loop, units in always.items()]
    return work


def depth_of(loop: Loop | None) -> int:
    """Of how many loops a loop is one, itself included; 0 for none."""
    depth = 0
    while loop is not None:
        depth, loop = depth + 1, loop.parent
    return depth


def _asks_lanes(condition: Operand) -> bool:
    return isinstance(condition, Instruction) and condition.op is PassOp.AnyLane


def _is_varying(shapes: ShapeInfo, value: Operand) -> bool:
    stride = shapes.strides.get(value, 0)
    return stride is None or (type(stride) is tuple and None in stride)


def _units(i: Instruction, shapes: ShapeInfo, lane_bits: int, lanes: int) -> float:
    """Vector operations of an instruction."""
    if i.op in _NOTHING or i.type is None or i.type.kind is Kind.VOID or not _is_varying(shapes, i):
        return 0.0
    if i.op is Op.Load:  # from many places: as many loads
        return float(lanes) if _is_varying(shapes, i.operands[0]) else 0.0
    return float(_UNITS.get(i.op, 1) * max(1, registers_of(i.type, lane_bits)))


def _walks(i: Instruction, loop: Loop, shapes: ShapeInfo) -> bool:
    """Whether a load goes through a row for each lane: its address is one that varies and that the loop does
    not change, plus what is the same in all lanes."""
    if i.op is not Op.Load or not _is_varying(shapes, i.operands[0]):
        return False
    moves, values = False, [i.operands[0]]
    while values:
        value = values.pop()
        if not isinstance(value, Instruction) or value.block not in loop.blocks:
            continue
        if not _is_varying(shapes, value):
            moves = True
        elif value.op in _SUMS:
            values += value.operands
        else:
            return False
    return moves


def _chains(blocks: list[Block], loop: Loop | None, weights: dict[Instruction, float]) -> tuple[float, float]:
    """Cycles of the longest chain of operations through blocks that are executed once, and of what each
    iteration of a loop has to wait for the one before."""
    start = dict.fromkeys(loop.header.phis(), 0.0) if loop is not None else {}

    def latency(i: Instruction) -> float:
        return _cycles(i) if weights[i] or i.op is Op.Load else 0.0

    done = finished(blocks, start, latency)
    longest = max(done.values(), default=0.0)
    if loop is None:
        return longest, 0.0
    for phi in start:
        values = zip(phi.operands[::2], phi.operands[1::2], strict=True)
        start[phi] = max((done.get(v, 0.0) for v, b in values if b in loop.latches), default=0.0)
    return longest, max(finished(blocks, start, latency).values(), default=0.0) - longest


def finished(
    blocks: list[Block], start: dict[Instruction, float], latency: Callable[[Instruction], float]
) -> dict[Instruction, float]:
    """When each value is there. start: the same of phis; latency: cycles from an operand to the result."""
    done = dict(start)
    for block in blocks:
        for i in block.instructions:
            if i in start:
                continue
            at = done.get(i.mask, 0.0) if isinstance(i.mask, Instruction) else 0.0
            for o in i.operands:
                if o in done and done[o] > at:
                    at = done[o]
            done[i] = at + latency(i)
    return done


def _cycles(i: Instruction) -> float:
    if i.op is Op.ExtInst:
        return float(_CYCLES_OF_FUNCTIONS.get(i.operands[1], _FLOAT))
    return float(_CYCLES.get(i.op, 1))
