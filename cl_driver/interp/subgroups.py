"""Sub-groups in the interpreter: where each work-item is, which of them are active together, and what their
operations give; and the operations on lanes that the passes make of these (passes/ir/ops.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..passes.ir.dominance import Loop, LoopNest, dominators
from ..passes.ir.instructions import predecessors
from ..passes.ir.layout import size_of
from ..passes.ir.ops import BARRIER_BITS, PassOp
from ..passes.ir.subgroup_operations import is_subgroup_operation
from ..spirv.enums import BuiltIn, GroupOperation, Op, Scope
from ..spirv.module import Block, Function, Instruction, Kind
from .collectives import combine_collective
from .memory import Datum

if TYPE_CHECKING:
    from .machine import Item, Machine


# What a work-item waits with for others: its instruction, and the operands' values.
Request: TypeAlias = tuple[Instruction, list[Datum]]
# Of functions: the numbers of blocks, and the loops.
Known: TypeAlias = dict[Function, tuple[dict[Block, int], LoopNest]]
# Built-in variables of one work-item.
Builtins: TypeAlias = dict[BuiltIn, Any]


class Frame:
    """Where a work-item is in one function: comparable with others in the same one, earlier ones first.

    A position is, for each loop around it, the loop's number and iteration, then block and instruction;
    numbers are in reverse postorder.
    """

    def __init__(self, function: Function, known: Known) -> None:
        """known: what was found of functions before."""
        found = known.get(function)
        if found is None:
            before = predecessors(function)
            tree = dominators(function, before)
            found = known[function] = tree.number, LoopNest(function, tree, before)
        self.numbers, self.nest = found
        self.iterations: dict[Loop, int] = {}
        self.block: Block = function.blocks[0]
        self.instruction: Instruction | None = None

    def enter(self, block: Block, previous: Block | None) -> None:
        """Goes to a block, along the edge from another."""
        self.block = block
        loop = self.nest.innermost.get(block)
        if loop is not None and loop.header is block:
            again = previous in loop.blocks
            self.iterations[loop] = self.iterations[loop] + 1 if again else 0

    def position(self) -> list[tuple[int, int]]:
        """Where it is, as the class says."""
        loops = []
        loop = self.nest.innermost.get(self.block)
        while loop is not None:
            loops.append((self.numbers[loop.header], self.iterations[loop]))
            loop = loop.parent
        index = next(k for k, i in enumerate(self.block.instructions) if i is self.instruction)
        return [*reversed(loops), (self.numbers[self.block], index)]


def subgroup_builtins(index: int, items: int, enqueued: int, size: int) -> Builtins:
    """Built-in variables of the work-item with a linear local id. items: of its group; enqueued: of a full
    one; size: of a full sub-group."""
    lane, every = index % size, (1 << size) - 1
    below = (1 << lane) - 1
    masks = {
        BuiltIn.SubgroupEqMask: 1 << lane,
        BuiltIn.SubgroupGeMask: every & ~below,
        BuiltIn.SubgroupGtMask: every & ~(below | 1 << lane),
        BuiltIn.SubgroupLeMask: below | 1 << lane,
        BuiltIn.SubgroupLtMask: below,
    }
    return {
        BuiltIn.SubgroupSize: min(size, items - index + lane),
        BuiltIn.SubgroupMaxSize: size,
        BuiltIn.NumSubgroups: -(-items // size),
        BuiltIn.NumEnqueuedSubgroups: -(-enqueued // size),
        BuiltIn.SubgroupId: index // size,
        BuiltIn.SubgroupLocalInvocationId: lane,
        **{builtin: words(mask) for builtin, mask in masks.items()},
    }


def words(bits: int) -> tuple[int, ...]:
    """Four words of a ballot."""
    return tuple(bits >> 32 * k & 0xFFFFFFFF for k in range(4))


def _bits(ballot: Iterable[int]) -> int:
    return sum(word << 32 * k for k, word in enumerate(ballot))


def active_items(items: Sequence[Item], requests: Sequence[Request | None], size: int) -> list[int]:
    """The work-items of one sub-group that execute their operation together next: those that are at the
    earliest position. Empty if no work-item waits for its sub-group, or some are still to come."""
    for start in range(0, len(items), size):
        if any(r is not None and r[0].op is PassOp.Yield for r in requests[start : start + size]):
            continue
        waiting = [k for k in range(start, min(start + size, len(items))) if _is_subgroups(requests[k])]
        if waiting:
            positions = {k: [frame.position() for frame in items[k].frames] for k in waiting}
            first = min(positions.values())
            return [k for k in waiting if positions[k] == first]
    return []


def items_that_meet(items: Sequence[Item], requests: Sequence[Request | None], size: int) -> list[int]:
    """The work-items of as many sub-groups at a named barrier as it is for. All of these sub-groups'
    work-items are there. Empty if no barrier has so many."""
    met: dict[Datum, list[int]] = {}
    sub_groups: dict[Datum, int] = {}
    for start in range(0, len(items), size):
        here = [k for k in range(start, min(start + size, len(items))) if requests[k] is not None]
        found = {_named_barrier(requests[k]) for k in here}
        if len(found) == 1 and (barrier := found.pop()) is not None:
            met.setdefault(barrier, []).extend(here)
            sub_groups[barrier] = count = sub_groups.get(barrier, 0) + 1
            if count >= barrier >> BARRIER_BITS:
                return met[barrier]
    return []


def _named_barrier(request: Request | None) -> Datum:
    if request is None or request[0].op is not Op.MemoryNamedBarrier:
        return None
    return request[1][1]


def _is_subgroups(request: Request | None) -> bool:
    if request is None:
        return False
    instruction, operands = request
    if instruction.op is Op.ControlBarrier:
        return bool(operands[0] == Scope.Subgroup)
    return is_subgroup_operation(instruction)


def answer_subgroup(
    machine: Machine, instruction: Instruction, asked: list[tuple[Builtins, list[Datum]]]
) -> list[Datum]:
    """What the active work-items get. asked: (built-in variables, operands) of each, lowest lane first."""
    op = instruction.op
    if op is Op.ControlBarrier:
        return [None] * len(asked)
    lanes = [builtins[BuiltIn.SubgroupLocalInvocationId] for builtins, _ in asked]
    most = asked[0][0][BuiltIn.SubgroupMaxSize]
    operands = [o for _, o in asked]
    if op in _BLOCKS:
        return _BLOCKS[op](machine, instruction, lanes, most, operands)
    values = dict(zip(lanes, operands, strict=True))
    if op in _MOVES:
        return [_MOVES[op](values, lane, most, *o[1:]) for lane, o in zip(lanes, operands, strict=True)]
    if op in _INTEL_MOVES:
        return [_INTEL_MOVES[op](values, lane, most, *o) for lane, o in zip(lanes, operands, strict=True)]
    if op in _BALLOTS:
        return [_BALLOTS[op](values, lane, most, *o[1:]) for lane, o in zip(lanes, operands, strict=True)]
    return _combined(instruction, lanes, operands)


def _combined(instruction: Instruction, lanes: list[int], operands: list[list[Datum]]) -> list[Datum]:
    if operands[0][1] != GroupOperation.ClusteredReduce:
        return combine_collective(instruction, operands)
    answers: dict[int, Datum] = {}
    for first in {lane - lane % o[3] for lane, o in zip(lanes, operands, strict=True)}:
        inside = [k for k, lane in enumerate(lanes) if first <= lane < first + operands[k][3]]
        results = combine_collective(instruction, [operands[k] for k in inside])
        answers.update(zip(inside, results, strict=True))
    return [answers[k] for k in range(len(lanes))]


def _at(values: dict[int, list[Datum]], lane: int, operand: int = 1) -> Datum:
    """A lane's value; of a lane that is not active it is undefined, here that of another."""
    return values.get(lane, values[min(values)])[operand]


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


# rule(operands of each lane, this lane, the maximum sub-group size, operands...)
_MOVES: dict[Op, Callable[..., Datum]] = {
    Op.GroupBroadcast: lambda v, lane, most, value, at: _at(v, at),
    Op.GroupNonUniformBroadcast: lambda v, lane, most, value, at: _at(v, at),
    Op.GroupNonUniformBroadcastFirst: lambda v, lane, most, value: _at(v, min(v)),
    Op.GroupNonUniformShuffle: lambda v, lane, most, value, at: _at(v, at),
    Op.GroupNonUniformShuffleXor: lambda v, lane, most, value, mask: _at(v, lane ^ mask),
    Op.GroupNonUniformShuffleUp: lambda v, lane, most, value, delta: _at(v, lane - delta),
    Op.GroupNonUniformShuffleDown: lambda v, lane, most, value, delta: _at(v, lane + delta),
    Op.GroupNonUniformRotateKHR: lambda v, lane, most, value, delta, size=None: _at(
        v, lane - lane % (size or most) + (lane + _signed(delta)) % (size or most)
    ),
}
_INTEL_MOVES: dict[Op, Callable[..., Datum]] = {
    Op.SubgroupShuffleINTEL: lambda v, lane, most, value, at: _at(v, at, 0),
    Op.SubgroupShuffleXorINTEL: lambda v, lane, most, value, mask: _at(v, lane ^ mask, 0),
    Op.SubgroupShuffleDownINTEL: lambda v, lane, most, a, b, delta: _at(
        v, (lane + delta) % most, int(lane + delta >= most)
    ),
    Op.SubgroupShuffleUpINTEL: lambda v, lane, most, a, b, delta: _at(
        v, (lane - delta) % most, int(lane >= delta)
    ),
}


def _counted(operation: Datum, lane: int, size: int) -> int:
    """The bits that BallotBitCount looks at."""
    return {0: (1 << size) - 1, 1: (2 << lane) - 1, 2: (1 << lane) - 1}[int(operation)]


def _inside(ballot: Iterable[int], size: int) -> int:
    return _bits(ballot) & ((1 << size) - 1)


# rule(operands of each lane, this lane, the maximum sub-group size, operands...)
_BALLOTS: dict[Op, Callable[..., Datum]] = {
    Op.GroupAll: lambda v, lane, size, p: all(o[1] for o in v.values()),
    Op.GroupAny: lambda v, lane, size, p: any(o[1] for o in v.values()),
    Op.GroupNonUniformAll: lambda v, lane, size, p: all(o[1] for o in v.values()),
    Op.GroupNonUniformAny: lambda v, lane, size, p: any(o[1] for o in v.values()),
    Op.GroupNonUniformAllEqual: lambda v, lane, size, p: len({o[1] for o in v.values()}) == 1,
    Op.GroupNonUniformElect: lambda v, lane, size: lane == min(v),
    Op.GroupNonUniformBallot: lambda v, lane, size, p: words(sum(1 << k for k, o in v.items() if o[1])),
    Op.GroupNonUniformInverseBallot: lambda v, lane, size, b: bool(_bits(b) >> lane & 1),
    Op.GroupNonUniformBallotBitExtract: lambda v, lane, size, b, at: bool(_bits(b) >> at & 1),
    Op.GroupNonUniformBallotBitCount: lambda v, lane, size, operation, b: (
        _bits(b) & _counted(operation, lane, size)
    ).bit_count(),
    Op.GroupNonUniformBallotFindLSB: lambda v, lane, size, b: (
        (_inside(b, size) & -_inside(b, size)).bit_length() - 1
    ),
    Op.GroupNonUniformBallotFindMSB: lambda v, lane, size, b: _inside(b, size).bit_length() - 1,
}


def _block_read(
    machine: Machine, instruction: Instruction, lanes: list[int], most: int, operands: list[list[Datum]]
) -> list[Datum]:
    type_ = instruction.type
    element = type_.element if type_.kind is Kind.VECTOR else type_
    answers = []
    for lane, (pointer,) in zip(lanes, operands, strict=True):
        places = [pointer + (k * most + lane) * size_of(element) for k in range(type_.count or 1)]
        parts = tuple(machine.memory.load(element, place) for place in places)
        answers.append(parts if type_.kind is Kind.VECTOR else parts[0])
    return answers


def _block_write(
    machine: Machine, instruction: Instruction, lanes: list[int], most: int, operands: list[list[Datum]]
) -> list[Datum]:
    type_ = instruction.operands[1].type
    element = type_.element if type_.kind is Kind.VECTOR else type_
    for lane, (pointer, value) in zip(lanes, operands, strict=True):
        for k, part in enumerate(value if type_.kind is Kind.VECTOR else (value,)):
            machine.memory.store(element, pointer + (k * most + lane) * size_of(element), part)
    return [None] * len(lanes)


_BLOCKS = {Op.SubgroupBlockReadINTEL: _block_read, Op.SubgroupBlockWriteINTEL: _block_write}


def across_lanes(instruction: Instruction, requests: list[list[Datum]]) -> list[Datum]:
    """What all lanes of a vector get. requests: of each lane whether it is active, then its operands."""
    op, count = instruction.op, len(requests)
    if op is PassOp.Active:
        return [active for (active,) in requests]
    if op is PassOp.Ballot:
        return [sum(1 << k for k, (active, p) in enumerate(requests) if active and p)] * count
    if op is PassOp.ReadLane:
        active = [at for is_active, _, at in requests if is_active] or [0]
        return [requests[active[0] % count][1]] * count
    if op is PassOp.Permute:
        return [requests[at % count][1] for _, _, at in requests]
    values = [a for _, a, *_ in requests] + [b for _, _, b, *_ in requests]
    return [values[k] for k in requests[0][3:]]
