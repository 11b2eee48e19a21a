"""How many vector registers a linearised region needs at once, and how many vectors may be executed together.

A value that varies between lanes takes registers from where it is computed to its last use, and what takes
several instructions needs more of them meanwhile; masks, addresses and what is the same in all lanes are
elsewhere. The innermost loops count, where there are any.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Kind, Type
from ..ir.dominance import DominatorTree, Loop, LoopNest
from ..ir.instructions import ADDRESS, ATOMICS
from ..ir.ops import PassOp
from ..ir.shapes import ShapeInfo
from .operations import Operations

LARGEST = 3_000  # instructions of a region beyond which nobody looks
_IN_STEPS = frozenset((
    Op.IMul, Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod, Op.FRem, Op.FMod, Op.ConvertSToF, Op.ConvertUToF,
    Op.ConvertFToS, Op.ConvertFToU, Op.FConvert,
))  # fmt: skip
RARELY = 2  # how much less a register counts in a loop's blocks that not every iteration comes to


def registers_of(type_: Type, lane_bits: int) -> int:
    """Vector registers that a varying value takes; lane_bits: of a register, for each lane."""
    match type_.kind:
        case Kind.VECTOR | Kind.ARRAY:
            return type_.count * registers_of(type_.element, lane_bits)
        case Kind.STRUCT:
            return sum(registers_of(member, lane_bits) for member in type_.members)
        case Kind.INT | Kind.FLOAT:
            return -(-max(type_.width, lane_bits) // lane_bits)
        case Kind.POINTER:
            return -(-64 // lane_bits)
    return 0


def vector_pressure(
    function: Function, operations: Operations, nest: LoopNest, tree: DominatorTree[Block]
) -> int | None:
    """Registers that are needed at once; None for functions that are too large to look at."""
    if sum(len(block.instructions) for block in function.blocks) > LARGEST:
        return None
    strides = operations.shapes.strides
    lane_bits = max(1, operations.model.vector_bits // operations.width)
    sizes: dict[Instruction, int] = {}
    temporaries: dict[Instruction, int] = {}
    for block in function.blocks:
        for i in block.instructions:
            stride = strides.get(i, 0)
            if i.type is not None and (stride is None or (type(stride) is tuple and None in stride)):
                sizes[i] = registers_of(i.type, lane_bits)
                more = operations.cost(i).temporaries if i.op in _IN_STEPS else 0
                if more:
                    temporaries[i] = more
    live_out = _live_out(function, sizes)
    innermost = {block: loop for loop in nest.loops if not loop.children for block in loop.blocks}
    most = 0
    for block in innermost or function.blocks:
        peak = _peak(block, live_out[block], sizes, temporaries)
        # What stands behind a jump over an empty mask, say what a function of the library does with numbers
        # that are very large, is executed less often than the loop that it is in.
        if innermost and not any(tree.dominates(block, latch) for latch in innermost[block].latches):
            peak = -(-peak // RARELY)
        most = max(most, peak)
    return most


# Accesses at places of each lane's own, in each iteration of a loop, from which on lanes gain nothing where
# there is no more work than that. A gather of 16 lanes takes as long as 16 loads, and rows differ in length.
LEAST_GATHERS = 3

_FREE = ADDRESS | {Op.Phi, Op.Select, Op.SConvert, Op.UConvert, Op.Bitcast, Op.CopyObject}


def divergent_loops(nest: LoopNest) -> int | None:
    """How many loops of a linearised function go on while any lane does; None if it has no loops at all."""
    if not nest.loops:
        return None
    conditions = [latch.terminator.operands[0] for loop in nest.loops for latch in loop.latches]
    return sum(isinstance(c, Instruction) and c.op is PassOp.AnyLane for c in conditions)


def mostly_gathers(nest: LoopNest, shapes: ShapeInfo) -> bool:
    """Whether all that a linearised function does in its inner loops is done while any lane goes on, and most
    of it is to access memory at places of each lane's own: rows of sparse matrices, lists of neighbours."""
    inner = [loop for loop in nest.loops if not loop.children]
    return bool(inner) and all(_gathers(loop, shapes) for loop in inner)


def _gathers(loop: Loop, shapes: ShapeInfo) -> bool:
    accesses = work = 0
    for latch in loop.latches:
        condition = latch.terminator.operands[0]
        if not isinstance(condition, Instruction) or condition.op is not PassOp.AnyLane:
            return False
    for block in loop.blocks:
        for i in block.instructions:
            if i.op is Op.Load or i.op is Op.Store or i.op in ATOMICS:
                goes_anywhere = shapes.strides.get(i.operands[0], 0) is None
                accesses += goes_anywhere
                work += not goes_anywhere
            elif i.op in _FREE or i.type is None or i.type.kind is Kind.BOOL:
                continue
            elif shapes.strides.get(i, 0) != 0:
                work += 1
    return accesses >= LEAST_GATHERS and work <= accesses


def _live_out(function: Function, sizes: dict[Instruction, int]) -> dict[Block, set[Instruction]]:
    """Values that are wanted behind each block."""
    live_in: dict[Block, set[Instruction]] = {block: set() for block in function.blocks}
    live_out: dict[Block, set[Instruction]] = {block: set() for block in function.blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(function.blocks):
            wanted: set[Instruction] = set()
            for successor in block.successors():
                wanted |= live_in[successor]
                for phi in successor.phis():
                    wanted.discard(phi)
                    wanted |= {
                        v
                        for v, b in zip(phi.operands[::2], phi.operands[1::2], strict=True)
                        if b is block and v in sizes
                    }
            live_out[block] = wanted
            now = set(wanted)
            for i in reversed(block.instructions):
                now.discard(i)
                if i.op is not Op.Phi:
                    now |= {o for o in i.operands if isinstance(o, Instruction) and o in sizes}
            if now != live_in[block]:
                live_in[block] = now
                changed = True
    return live_out


def _peak(
    block: Block,
    live_out: set[Instruction],
    sizes: dict[Instruction, int],
    temporaries: dict[Instruction, int],
) -> int:
    live = set(live_out)
    total = peak = sum(sizes[v] for v in live)
    for i in reversed(block.instructions):
        if i in live:
            live.discard(i)
            total -= sizes[i]
        if i.op is Op.Phi:
            continue
        for operand in i.operands:
            if isinstance(operand, Instruction) and operand in sizes and operand not in live:
                live.add(operand)
                total += sizes[operand]
        peak = max(peak, total + temporaries.get(i, 0))
    return peak
