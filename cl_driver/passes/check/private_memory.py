"""Private variables in the check mode: which may be read before anything was written to them.

Before promotion makes values of them: a variable of which every read comes behind a write is left to it.
Others stay in memory, with a second variable beside them that has a byte for each of their bytes, which is 1
once that was written.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Undef, Value
from ...spirv.types import TypeTable
from ..ir.instructions import ADDRESS, int_value, is_constant_int, predecessors, reverse_postorder, users
from ..ir.layout import size_of
from ..ir.ops import PassOp
from ..scalar.sroa import constant_offset
from .library_calls import is_vector_access, second_result_size
from .sites import LOAD, STORE, Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # Offset and size of some bytes.
    Run: TypeAlias = tuple[int, int]

SHADOW = "(written)"  # the name of second variables

_SAME = (Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric, Op.GenericCastToPtr)
_CHECKS = (PassOp.CheckAccess, PassOp.CheckObject, PassOp.CheckChosen, PassOp.CheckPrivate)
_COPIES = (Op.CopyMemory, Op.CopyMemorySized)
_MARKS = (Op.LifetimeStart, Op.LifetimeStop)
_MOST_BYTES = 256  # of a variable whose reads and writes are put into order
_NO_COMPONENT = 0xFFFFFFFF  # of OpVectorShuffle


class Shadows:
    """The second variables, made when they are first asked for."""

    def __init__(self, function: Function, types: TypeTable) -> None:
        self.function = function
        self.types = types
        self._of: dict[Instruction, Instruction] = {}

    def of(self, variable: Instruction) -> Instruction:
        """That of a variable."""
        found = self._of.get(variable)
        if found is None:
            types, entry = self.types, self.function.blocks[0]
            bytes_ = types.array(types.int(8), size_of(variable.type.element))
            pointer = types.pointer(StorageClass.Function, bytes_)
            found = Instruction(Op.Variable, pointer, [StorageClass.Function], entry, SHADOW)
            clear = Instruction(Op.Store, None, [found, types.null(bytes_)], entry)
            at = sum(1 for i in entry.instructions if i.op is Op.Variable)
            entry.instructions.insert(at, clear)
            entry.instructions.insert(0, found)
            self._of[variable] = found
        return found


def keep_unwritten(function: Function, types: TypeTable) -> None:
    """Puts checks before the accesses to variables that may be read before they were written."""
    used_by = users(function)
    variables = [i for i in function.blocks[0].instructions if i.op is Op.Variable]
    accesses: dict[Instruction, tuple[Instruction, int]] = {}  # to a variable, at an offset
    tracked: dict[Instruction, int] = {}  # the first of its bits
    first = 0
    for variable in variables:
        size = size_of(variable.type.element)
        found = _accesses_at_constants(variable, used_by) if size <= _MOST_BYTES else None
        if found is not None:
            accesses.update({i: (variable, offset) for i, offset in found})
            tracked[variable] = first
            first += size
    suspects = _Order(function, accesses, tracked, first, used_by).suspects()
    if not suspects:
        return
    shadows = Shadows(function, types)
    for block in function.blocks:
        old, block.instructions = block.instructions, []
        for i in old:
            place = accesses.get(i)
            if place is not None and place[0] in suspects:
                _check(block, i, place[0], shadows.of(place[0]), used_by)
            block.instructions.append(i)


def _check(
    block: Block,
    i: Instruction,
    variable: Instruction,
    shadow: Instruction,
    used_by: dict[Value, list[Instruction]],
) -> None:
    for at, site in sites_of(i, used_by):
        if i.op in _COPIES and _origin(i.operands[at]) is not variable:
            continue
        site.storage, site.root, site.name = StorageClass.Function, variable, variable.name
        site.bytes = size_of(variable.type.element)
        pointer = i.operands[at]
        check = Instruction(PassOp.CheckPrivate, pointer.type, [pointer, variable, shadow, site], block)
        check.line = i.line
        block.instructions.append(check)
        i.operands[at] = check


def _origin(pointer: Value) -> Value:
    while isinstance(pointer, Instruction) and (pointer.op in _SAME or pointer.op in ADDRESS):
        pointer = pointer.operands[0]
    return pointer


def sites_of(i: Instruction, used_by: dict[Value, list[Instruction]]) -> list[tuple[int, Site]]:
    """The accesses of a load, store or copy: numbers of the operands that are addresses, and what is done."""
    alignment = i.memory.alignment & -i.memory.alignment if i.memory is not None and i.memory.alignment else 1
    if i.op is Op.Load:
        site = Site(LOAD, i.line, size_of(i.type), alignment)
        site.runs = _wanted(i, used_by)
        return [(0, site)]
    if i.op is Op.Store:
        site = Site(STORE, i.line, size_of(i.operands[1].type), alignment)
        site.runs = _stored(i)
        return [(0, site)]
    size = copied_size(i)
    return [
        (1, Site(LOAD, i.line, size or 0, 1, any_content=True)),
        (0, Site(STORE, i.line, size or 0, 1)),
    ]


def copied_size(i: Instruction) -> int | None:
    """The bytes of a copy, None if the program computes them."""
    if i.op is Op.CopyMemory:
        return size_of(i.operands[0].type.element or i.operands[1].type.element)
    return int_value(i.operands[2]) if is_constant_int(i.operands[2]) else None


def _accesses_at_constants(
    variable: Instruction, used_by: dict[Value, list[Instruction]]
) -> list[tuple[Instruction, int]] | None:
    """The loads, stores and copies of a variable with their offsets; None if there is any other use."""
    found: list[tuple[Instruction, int]] = []
    work: list[tuple[Value, int]] = [(variable, 0)]
    while work:
        pointer, offset = work.pop()
        for i in used_by.get(pointer, ()):
            if i.op in _SAME:
                work.append((i, offset))
            elif i.op in ADDRESS and i.operands[0] is pointer:
                step = constant_offset(i)
                if step is None:
                    return None
                work.append((i, offset + step))
            elif i.op is Op.Load or (i.op is Op.Store and i.operands[1] is not pointer):
                found.append((i, offset))
            elif i.op in _COPIES and copied_size(i) is not None and i.operands[0] is not i.operands[1]:
                found.append((i, offset))
            elif i.op not in _MARKS:
                return None
    return found


class _Order:
    """Which bytes of variables have been written on all ways to a place: a forward problem over bits."""

    def __init__(
        self,
        function: Function,
        accesses: dict[Instruction, tuple[Instruction, int]],
        tracked: dict[Instruction, int],
        count: int,
        used_by: dict[Value, list[Instruction]],
    ) -> None:
        self.function = function
        self.accesses = accesses
        self.tracked = tracked
        self.all = (1 << count) - 1
        self.used_by = used_by

    def bits(self, variable: Instruction, offset: int, runs: tuple[Run, ...]) -> int:
        size, first = size_of(variable.type.element), self.tracked[variable]
        found = 0
        for at, count in runs:
            start, end = max(offset + at, 0), min(offset + at + count, size)
            if end > start:
                found |= ((1 << (end - start)) - 1) << (first + start)
        return found

    def written(self, i: Instruction) -> int:
        """What an instruction writes."""
        place = self.accesses.get(i)
        if place is None or place[0] not in self.tracked:
            return 0
        if i.op is Op.Store:
            return self.bits(*place, _stored(i) or ((0, size_of(i.operands[1].type)),))
        if i.op in _COPIES and _origin(i.operands[0]) is place[0]:
            return self.bits(*place, ((0, copied_size(i) or 0),))
        return 0

    def suspects(self) -> set[Instruction]:
        """The variables of which bytes may be read before they are written."""
        if not self.tracked:
            return set()
        order = reverse_postorder(self.function)
        before = predecessors(self.function)
        at_end = dict.fromkeys(order, self.all)
        gained: dict[Block, int] = {}
        for block in order:
            bits = 0
            for i in block.instructions:
                bits |= self.written(i)
            gained[block] = bits
        changes = True
        while changes:
            changes = False
            for block in order:
                now = self.at_start(block, order[0], before, at_end) | gained[block]
                if now != at_end[block]:
                    at_end[block], changes = now, True
        found = set()
        for block in order:
            bits = self.at_start(block, order[0], before, at_end)
            for i in block.instructions:
                if i.op is Op.Load and i in self.accesses:
                    variable, offset = self.accesses[i]
                    wanted = self.bits(variable, offset, _wanted(i, self.used_by) or ((0, size_of(i.type)),))
                    if wanted & ~bits:
                        found.add(variable)
                bits |= self.written(i)
        return found

    def at_start(
        self, block: Block, entry: Block, before: dict[Block, list[Block]], at_end: dict[Block, int]
    ) -> int:
        if block is entry:
            return 0
        bits = self.all
        for predecessor in before[block]:
            bits &= at_end.get(predecessor, self.all)
        return bits


# Components of vectors.


def _wanted(load: Instruction, used_by: dict[Value, list[Instruction]]) -> tuple[Run, ...]:
    """The bytes of a vector that somebody is after; () for all."""
    if load.type.kind is not Kind.VECTOR:
        return ()
    wanted: set[int] = set()
    for i in used_by.get(load, ()):
        if i.op is Op.CompositeExtract:
            wanted.add(i.operands[1])
        elif i.op is Op.CompositeInsert and _goes_back(i, load, used_by):
            continue
        elif i.op is Op.VectorShuffle:
            if not _goes_back(i, load, used_by):
                wanted |= _selected(i, load)
        else:
            return ()
    return _runs(load.type.element, sorted(wanted)) or ((0, 0),)


def unwanted_end(load: Instruction, used_by: dict[Value, list[Instruction]]) -> float:
    """The part of a vector, at its end, that nobody is after."""
    wanted = _wanted(load, used_by)
    size = size_of(load.type.element) * load.type.count if load.type.kind is Kind.VECTOR else 0
    return (size - sum(wanted[-1])) / size if wanted and size else 0


def _goes_back(i: Instruction, load: Instruction, used_by: dict[Value, list[Instruction]]) -> bool:
    """Whether a vector is loaded to be stored where it was, with other components."""
    after = used_by.get(i, ())
    return bool(after) and all(
        (user.op is Op.Store and user.operands[1] is i and _is_same_place(user.operands[0], load.operands[0]))
        or (user.op in (Op.CompositeInsert, Op.VectorShuffle) and _goes_back(user, load, used_by))
        for user in after
    )


def _is_same_place(a: Value, b: Value) -> bool:
    if isinstance(a, Instruction) and a.op in _CHECKS:
        a = a.operands[0]
    if isinstance(b, Instruction) and b.op in _CHECKS:
        b = b.operands[0]
    if a is b:
        return True
    if not (isinstance(a, Instruction) and isinstance(b, Instruction)) or a.op is not b.op:
        return False
    is_address = a.op in ADDRESS or a.op in _SAME
    return (
        is_address and len(a.operands) == len(b.operands) and all(map(_is_same_place, a.operands, b.operands))
    )


def _selected(shuffle: Instruction, vector: Value) -> set[int]:
    """The components of a vector that a shuffle takes."""
    a, b, *numbers = shuffle.operands
    count = a.type.count
    found = set()
    for number in numbers:
        if number != _NO_COMPONENT:
            if number < count and a is vector:
                found.add(number)
            elif number >= count and b is vector:
                found.add(number - count)
    return found


def _stored(store: Instruction) -> tuple[Run, ...]:
    """The bytes of a vector that a store sets anew; () for all."""
    value = store.operands[1]
    if value.type.kind is not Kind.VECTOR:
        return ()
    kept = _kept(value, store.operands[0])
    if not kept:
        return ()
    return _runs(value.type.element, [k for k in range(value.type.count) if k not in kept]) or ((0, 0),)


def _kept(value: Value, place: Value) -> set[int]:
    """The components that are what was in memory there, or nothing."""
    count = value.type.count
    if isinstance(value, Undef):
        return set(range(count))
    if isinstance(value, Constant):
        constituents = value.value or ()
        return {k for k, constituent in enumerate(constituents) if isinstance(constituent, Undef)}
    if not isinstance(value, Instruction):
        return set()
    if value.op is Op.Load and _is_same_place(value.operands[0], place):
        return set(range(count))
    if value.op is Op.CompositeInsert:
        return _kept(value.operands[1], place) - {value.operands[2]}
    if value.op is Op.VectorShuffle:
        a, b, *numbers = value.operands
        first, second = _kept(a, place), _kept(b, place)
        width = a.type.count
        return {
            k
            for k, number in enumerate(numbers)
            if number == _NO_COMPONENT
            or (number < width and number in first)
            or (number >= width and number - width in second)
        }
    return set()


def _runs(element: object, components: list[int]) -> tuple[Run, ...]:
    """Bytes of components, neighbours as one."""
    size = size_of(element)  # type: ignore[arg-type]
    runs: list[Run] = []
    for k in components:
        if runs and runs[-1][0] + runs[-1][1] == k * size:
            runs[-1] = runs[-1][0], runs[-1][1] + size
        else:
            runs.append((k * size, size))
    return tuple(runs)


def has_known_accesses(variable: Instruction, used_by: dict[Value, list[Instruction]]) -> bool:
    """Whether all that is done with a variable's memory is seen: then its bytes can be followed."""
    seen: set[Value] = {variable}
    work: list[Value] = [variable]
    while work:
        pointer = work.pop()
        for i in used_by.get(pointer, ()):
            if i.op in _SAME or (i.op in ADDRESS and i.operands[0] is pointer):
                if i not in seen:
                    seen.add(i)
                    work.append(i)
            elif i.op is Op.Load or i.op in _MARKS or (i.op is Op.Store and i.operands[1] is not pointer):
                pass
            elif i.op in _COPIES and copied_size(i) is not None:
                pass
            elif not (i.op is Op.ExtInst and (is_vector_access(i) or second_result_size(i))):
                return False
    return True
