"""Which reads of a block are a footprint, and what of the block there are two versions of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...passes.ir.fold import signed_value
from ...passes.ir.instructions import (
    EXTINST_WITH_EFFECT,
    PURE,
    STAY,
    is_arithmetic,
    is_constant_int,
)
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Instruction, Kind, Value
from ..access.emitter import AccessEmitter
from ..llvm.types import leaf_types
from .sums import Bound, Clamped, Sum, Term, address_sum, bound_of, constant_added

_MOST_APART = 64  # what is added to a coordinate, from the least to the most
_MOST_COPIED = 1500  # instructions of which there are two versions
_STORAGE = frozenset((StorageClass.CrossWorkgroup, StorageClass.UniformConstant))
_LESS = {
    Op.SLessThan: (-1, True), Op.SLessThanEqual: (0, True), Op.ULessThan: (-1, True),
    Op.ULessThanEqual: (0, True), Op.SGreaterThan: (0, False), Op.SGreaterThanEqual: (-1, False),
    Op.UGreaterThan: (0, False), Op.UGreaterThanEqual: (-1, False),
}  # fmt: skip
_NOT_NEGATIVE = {Op.SGreaterThanEqual: True, Op.SLessThan: False}


class Coordinate:
    """What is added to a coordinate, from the least to the most, and how far it is below its bounds at least:
    by the value that a bound is made of, the least of `number - added`."""

    def __init__(self, added: int) -> None:
        self.least = self.most = added
        self.room: dict[Value | None, int] = {}

    def add(self, added: int, bounds: Sequence[Bound]) -> None:
        """One more use of it."""
        self.least, self.most = min(self.least, added), max(self.most, added)
        for of, number in bounds:
            self.room[of] = min(self.room.get(of, number - added), number - added)


class Group:
    """Loads that differ in what all lanes have in common."""

    def __init__(self, base: Value, varying: dict[Term, int]) -> None:
        self.base, self.varying = base, varying
        self.loads: dict[Instruction, dict[Term, int]] = {}  # and what is added


class Footprints:
    """What a block has of them. inside: what there are two versions of, in order; before, behind: the rest of
    the block. decided: comparisons that have one answer if no clamp changes anything, and the answer; clamps:
    what does nothing then, and the value that it leaves as it is."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.coordinates: dict[Value, Coordinate] = {}
        self.decided: dict[Instruction, bool] = {}
        self.clamps: dict[Instruction, Value] = {}
        # Comparisons that are false where no coordinate that is added to is below a size, by the coordinate,
        # and these sizes; what is false in lanes of which one coordinate or another is like that.
        self.tests: dict[Instruction, Value] = {}
        self.sizes: dict[Value, Value] = {}
        self.missed: list[Instruction] = []
        self.masks: list[Value] = []
        self.before: list[Instruction] = []
        self.inside: list[Instruction] = []
        self.behind: list[Instruction] = []
        self.outputs: list[Instruction] = []
        self.users: dict[Value, list[Instruction]] = {}  # of all values of the region


def find(e: AccessEmitter, instructions: Sequence[Instruction]) -> Footprints | None:
    """The footprints of a block, None if it has none."""
    if e.lane_constants is not None or e.lane is not None or e.width < 4:
        return None
    sums: dict[Instruction, Sum] = {}
    for i in instructions:
        if i.op is Op.Load and _may_be_read(e, i):
            found = address_sum(e, i.operands[0])
            if found is not None and found.base is not None and found.clamped:
                sums[i] = found
    while len(sums) > 1:
        footprints = _grouped(sums)
        if footprints is None:
            return None
        _decide(footprints, instructions)
        wrong = _divide(e, footprints, instructions)
        if not wrong:
            return footprints
        for i in wrong:
            sums.pop(i)
    return None


def _may_be_read(e: AccessEmitter, i: Instruction) -> bool:
    """Whether a load is at places of each lane's own, and of numbers or OpenCL vectors of them."""
    pointer, type_ = i.operands[0], i.type
    element = type_.element if type_.kind is Kind.VECTOR else type_
    if element.kind not in (Kind.INT, Kind.FLOAT) or (i.memory is not None and i.memory.volatile):
        return False
    if not e.is_varying(pointer) or not e.is_varying(i) or pointer.type.storage not in _STORAGE:
        return False
    return i not in e.packed and e.contiguity.guess([(pointer, 1)]) is None


def _grouped(sums: dict[Instruction, Sum]) -> Footprints | None:
    groups: dict[object, Group] = {}
    for i, found in sums.items():
        assert found.base is not None  # find() has seen to it
        key = found.base, frozenset(found.varying.items())
        group = groups.setdefault(key, Group(found.base, found.varying))
        group.loads[i] = found.common
    footprints = Footprints()
    footprints.groups = [group for group in groups.values() if len(group.loads) > 1]
    chains = [c for group in footprints.groups for i in group.loads for c in sums[i].clamped]
    for chain in chains:
        coordinate = footprints.coordinates.setdefault(chain.coordinate, Coordinate(chain.added))
        coordinate.add(chain.added, chain.bounds)
        _note_clamps(footprints, chain)
    if not footprints.groups:
        return None
    if any(c.most - c.least > _MOST_APART for c in footprints.coordinates.values()):
        return None
    masks = [i.mask for group in footprints.groups for i in group.loads if i.mask is not None]
    footprints.masks = list(dict.fromkeys(masks))
    return footprints


def _note_clamps(footprints: Footprints, chain: Clamped) -> None:
    for clamp in chain.clamps:
        inner = clamp.operands[2:]
        footprints.clamps[clamp] = next(o for o in inner if _is_kept(o, chain))


def _is_kept(value: Value, chain: Clamped) -> bool:
    """Whether an operand of a clamp is what is kept, and no bound."""
    return value in chain.clamps or constant_added(value)[0] is chain.coordinate


def _decide(footprints: Footprints, instructions: Sequence[Instruction]) -> None:
    """Notes comparisons of coordinates of which nothing is asked beyond what is asked anyway."""
    for i in instructions:
        if i.op not in _LESS or i.operands[0].type.kind is not Kind.INT:
            continue
        value, added = constant_added(i.operands[0])
        coordinate = footprints.coordinates.get(value)
        if coordinate is None or not coordinate.least <= added <= coordinate.most:
            continue
        bound = i.operands[1]
        if i.op in _NOT_NEGATIVE and is_constant_int(bound) and signed_value(bound) == 0:
            footprints.decided[i] = _NOT_NEGATIVE[i.op]
            continue
        of, number = bound_of(bound)
        offset, answer = _LESS[i.op]
        room = coordinate.room.get(of)
        # What bounds are made of is not less than what is subtracted of it.
        if room is None or not (of is None or room + coordinate.least <= number <= 0):
            continue
        if room <= number + offset - added:
            footprints.decided[i] = answer
            if i.op is Op.ULessThan and of is not None and footprints.sizes.setdefault(value, of) is of:
                footprints.tests[i] = value


def _divide(
    e: AccessEmitter, footprints: Footprints, instructions: Sequence[Instruction]
) -> set[Instruction]:
    """Divides a block. Loads that cannot be among the footprints, if there are any."""
    loads = {i for group in footprints.groups for i in group.loads}
    seeds = loads | footprints.decided.keys() | footprints.clamps.keys()
    end = next((k for k, i in enumerate(instructions) if not _may_move(i)), len(instructions))
    inside: dict[Instruction, None] = {}
    behind = set(instructions[end:])
    for i in instructions[:end]:
        operands = {o for o in (*i.operands, i.mask) if isinstance(o, Instruction)}
        of_inside = not operands.isdisjoint(inside)
        if not operands.isdisjoint(behind):
            behind.add(i)
        elif i in seeds or (of_inside and _is_copied(e, i)):
            inside[i] = None
        elif of_inside:
            behind.add(i)
    wrong = {i for i in loads if i not in inside}
    for group in footprints.groups:
        for i, common in group.loads.items():
            needed = {group.base, i.mask}
            for term in (*group.varying, *common):
                needed |= {term.value, term.factor}
            for coordinate in footprints.coordinates.values():
                needed.update(coordinate.room)
            if not needed.isdisjoint(inside.keys() | behind):
                wrong.add(i)
    if wrong:
        return wrong
    footprints.users = _users(e)
    _cut(footprints, list(inside), loads)
    if len(footprints.inside) > _MOST_COPIED:
        return loads
    chosen = set(footprints.inside)
    outside = behind | (inside.keys() - chosen)
    _find_missed(footprints)
    footprints.before = [i for i in instructions if i not in chosen and i not in outside]
    footprints.behind = [i for i in instructions if i in outside]
    return set()


def _find_missed(footprints: Footprints) -> None:
    """Notes what is false of lanes that read nothing within the sizes: a test of each coordinate is in it."""
    tested: dict[Value, set[Value]] = {i: {value} for i, value in footprints.tests.items()}
    wanted = set(footprints.tests.values())
    for i in footprints.inside:
        if i.op is Op.LogicalAnd:
            tested[i] = tested.get(i.operands[0], set()) | tested.get(i.operands[1], set())
        if wanted and tested.get(i) == wanted:
            footprints.missed.append(i)


def _cut(
    footprints: Footprints,
    candidates: list[Instruction],
    loads: set[Instruction],
) -> None:
    """Chooses where the versions end: behind the last load, where the fewest vectors are in use."""
    used_by = footprints.users
    last = max(k for k, i in enumerate(candidates) if i in loads)
    uses = Counter({i: len(used_by.get(i, ())) for i in candidates})
    alive: dict[Instruction, int] = {}
    total, best, least = 0, last, -1
    for k, i in enumerate(candidates):
        for o in (*i.operands, i.mask):
            if isinstance(o, Instruction) and o in alive:
                uses[o] -= 1
                if not uses[o]:
                    total -= alive.pop(o)
        if uses[i]:
            alive[i] = len(leaf_types(i.type))
            total += alive[i]
        if k >= last and (least < 0 or total < least):
            best, least = k, total
    footprints.inside = candidates[: best + 1]
    chosen = set(footprints.inside)
    footprints.outputs = [i for i in footprints.inside if any(u not in chosen for u in used_by.get(i, ()))]


def _users(e: AccessEmitter) -> dict[Value, list[Instruction]]:
    """The instructions of the region that have a value for an operand, or for their mask."""
    found: dict[Value, list[Instruction]] = {}
    for block in e.function.blocks:
        for i in block.instructions:
            for o in (*i.operands, i.mask):
                if isinstance(o, Instruction):
                    found.setdefault(o, []).append(i)
    return found


def _is_copied(e: AccessEmitter, i: Instruction) -> bool:
    """Whether it may be computed in each of the versions."""
    return (i.op in PURE and i.op not in STAY or is_arithmetic(i)) and e.is_varying(i) and i.mask is None


def _may_move(i: Instruction) -> bool:
    if i.op is Op.ExtInst:
        return i.operands[1] not in EXTINST_WITH_EFFECT
    return i.op in PURE or i.op is Op.Load
