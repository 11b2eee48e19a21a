"""Loops that count through private arrays of known size, unrolled: each element is a value then
(scalar/sroa.py).

That is done where it takes the whole array out of memory: everything that is done to it is a load or store at
a place that follows from the counters of loops of which is known how often they run. What the loops load
besides may be the same in each iteration of the loops around, as no compiler could see before: licm.py.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Operand, Type, Value
from ...spirv.types import TypeTable
from ..ir.dominance import DominatorTree, Loop, LoopNest, dominators
from ..ir.fold import Folder
from ..ir.instructions import ADDRESS, GROUP_OPERATIONS, predecessors, users
from ..ir.layout import size_of
from ..scalar.copies import one_number
from ..scalar.simplify import simplify
from ..scalar.sroa import MAX_PIECES, promote
from .licm import hoist_loads
from .unroll import Known, copy_loop, evaluate, iterations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Instructions that the loops may have when they are unrolled, addresses of arrays and what counts not among
# them, before any is folded.
MOST_INSTRUCTIONS = 1500

_SAME_ADDRESS = (Op.Bitcast, Op.CopyObject)
_MARKS = (Op.LifetimeStart, Op.LifetimeStop)


def unroll_arrays(function: Function, types: TypeTable) -> None:
    """Changes a reducible function in place."""
    has_changed = False
    while (counted := _next(function, types)) is not None:
        copy_loop(function, types, *counted)
        simplify(function, types)
        has_changed = True
    if has_changed:
        promote(function, types)
        simplify(function, types)
        hoist_loads(function, types)


def has_unrollable_arrays(function: Function, types: TypeTable) -> bool:
    """Whether there is anything to be unrolled."""
    return _next(function, types) is not None


# A loop, how often its header is executed, and the block that leaves it.
_Found: TypeAlias = tuple[Loop, int, Block]


def _next(function: Function, types: TypeTable) -> _Found | None:
    """What _Search.outermost() finds."""
    arrays = _arrays(function)
    if not arrays:
        return None
    before = predecessors(function)
    tree = dominators(function, before)
    nest = LoopNest(function, tree, before)
    return _Search(nest, Folder(types), tree, before).outermost(arrays)


def _arrays(function: Function) -> list[list[Value]]:
    """Of each array that could become values but for indices that are not constant: these indices."""
    variables = [i for i in function.blocks[0].instructions if i.op is Op.Variable]
    if not variables:
        return []
    used_by = users(function)
    found = [_indices(variable, used_by) for variable in variables if _fits(variable)]
    return [indices for indices in found if indices]


def _fits(variable: Instruction) -> bool:
    """Whether it is an array, or a class around arrays, of numbers or vectors."""
    type_ = variable.type.element
    if type_.kind is Kind.ARRAY:
        while type_.kind is Kind.ARRAY:
            type_ = type_.element
        if type_.kind in (Kind.INT, Kind.FLOAT, Kind.VECTOR):
            return True
    return type_.kind is Kind.STRUCT and one_number(type_) is not None


def _indices(variable: Instruction, used_by: dict[Value, list[Instruction]]) -> list[Value]:
    """The indices into a variable that are not constant; none if it has to stay in memory."""
    found: list[Value] = []
    accessed: set[Type] = set()
    work = [variable]
    for pointer in work:
        for user in used_by.get(pointer, ()):
            if user.op in _MARKS:
                continue
            if user.op is Op.Load or (user.op is Op.Store and user.operands[1] is not pointer):
                if user.memory is not None and user.memory.volatile:
                    return []
                accessed.add(user.type if user.op is Op.Load else user.operands[1].type)
                continue
            if user.op in ADDRESS:
                found += [index for index in user.operands[1:] if not isinstance(index, Constant)]
            elif user.op not in _SAME_ADDRESS or user.type.kind is not Kind.POINTER:
                return []
            work.append(user)
    return found if _fit_together(accessed, size_of(variable.type.element)) else []


def _fit_together(accessed: set[Type], size: int) -> bool:
    """Whether so many bytes can be cut into pieces of which all that is loaded or stored consists."""
    sizes = {size_of(type_) for type_ in accessed}
    numbers = {one_number(type_) for type_ in accessed}
    if None in numbers or len({size_of(number) for number in numbers if number}) != 1:
        return False
    if len(sizes) > 1:
        sizes = {size_of(number) for number in numbers if number}
    return 1 < size // sizes.pop() <= MAX_PIECES


class _Search:
    """The loops of a function that are to be unrolled."""

    def __init__(
        self, nest: LoopNest, folder: Folder, tree: DominatorTree[Block], before: dict[Block, list[Block]]
    ) -> None:
        self.nest = nest
        self.folder = folder
        self.tree = tree
        self.before = before
        self.headers = {loop.header: loop for loop in nest.loops}
        self.kept: dict[Block, int] = {}

    def outermost(self, arrays: list[list[Value]]) -> _Found | None:
        """The first loop, the outermost of those that an array's indices count in; None if there is none."""
        for indices in arrays:
            wanted: set[Loop] = set()
            if not all(self._counters(index, wanted, set()) for index in indices):
                continue
            self._add_bounds(wanted)
            tops = [loop for loop in self.nest.loops if loop in wanted and not self._is_inside(loop, wanted)]
            if any(_has_effect_on_group(loop) for loop in tops):
                continue
            room = MOST_INSTRUCTIONS
            for loop in tops:
                room -= self._size(loop, wanted, {}, loop.blocks, room)
                if room < 0:
                    break
            else:
                if tops:
                    loop = tops[0]
                    counted = iterations(loop, self.folder, self.tree, self.before)
                    assert counted is not None  # _size() found it so
                    return loop, len(counted[0]), counted[1]
        return None

    def _counters(self, value: Operand, wanted: set[Loop], seen: set[Instruction]) -> bool:
        """Adds the loops whose counters a value follows from. False if it depends on anything else."""
        if isinstance(value, Constant):
            return True
        if not isinstance(value, Instruction) or value in seen:
            return isinstance(value, Instruction)
        seen.add(value)
        if value.op is Op.Phi:
            loop = self.headers.get(value.block)
            if loop is None:
                return False
            wanted.add(loop)
        elif value.op not in self.folder.by_op:
            return False
        operands = value.operands[::2] if value.op is Op.Phi else value.operands
        return all(self._counters(operand, wanted, seen) for operand in operands)

    def _add_bounds(self, wanted: set[Loop]) -> None:
        """Adds loops whose counters say how often the wanted ones run, as that of rows does in a triangle."""
        pending = list(wanted)
        while pending:
            loop = pending.pop()
            for block in loop.blocks:
                terminator = block.terminator
                if terminator.op is not Op.BranchConditional or loop.blocks.issuperset(block.successors()):
                    continue
                found: set[Loop] = set()
                if self._counters(terminator.operands[0], found, set()):
                    pending += [other for other in found - wanted if self._is_around(other, loop)]
                    wanted.update(other for other in found if self._is_around(other, loop))

    @staticmethod
    def _is_around(outer: Loop, loop: Loop) -> bool:
        return loop.blocks < outer.blocks

    @staticmethod
    def _is_inside(loop: Loop, wanted: set[Loop]) -> bool:
        around = loop.parent
        while around is not None and around not in wanted:
            around = around.parent
        return around is not None

    def _size(self, loop: Loop, wanted: set[Loop], known: Known, blocks: set[Block] | None, room: int) -> int:
        """Instructions of a loop once it and the wanted ones in it are unrolled; more than there is room for
        if that cannot be done.

        known: what the phis of wanted loops around it are; blocks: of the outermost of these.
        """
        counted = iterations(loop, self.folder, self.tree, self.before, known, blocks)
        if counted is None:
            return room + 1
        steps, end = counted
        if any(b is not end and not loop.blocks.issuperset(b.successors()) for b in loop.blocks):
            return room + 1  # each copy would leave under masks of its own
        inner = self._wanted_inside(loop, wanted)
        within = {block for child in inner for block in child.blocks}
        total = 0
        for step in steps:
            values = {**known, **step}
            reached = self._reached(loop, values, blocks or loop.blocks)
            total += sum(self._kept(block) for block in reached - within)
            for child in inner:
                if total > room:
                    return total
                if child.header in reached:
                    total += self._size(child, wanted, values, blocks, room - total)
        return total

    def _kept(self, block: Block) -> int:
        """Instructions of a block that need not go when it is unrolled."""
        found = self.kept.get(block)
        if found is None:
            found = self.kept[block] = sum(not _goes(i) for i in block.instructions)
        return found

    def _reached(self, loop: Loop, known: Known, blocks: set[Block]) -> set[Block]:
        """Blocks of a loop that may be executed when its header's phis are these numbers."""
        reached, pending, values = {loop.header}, [loop.header], dict(known)
        while pending:
            block = pending.pop()
            terminator, targets = block.terminator, block.successors()
            if terminator.op is Op.BranchConditional:
                condition = evaluate(terminator.operands[0], blocks, values, self.folder)
                if condition is not None:
                    targets = [terminator.operands[1 if condition.value else 2]]
            for target in targets:
                if target in loop.blocks and target not in reached:
                    reached.add(target)
                    pending.append(target)
        return reached

    def _wanted_inside(self, loop: Loop, wanted: set[Loop]) -> list[Loop]:
        """The next wanted loops in a loop."""
        found = []
        for child in loop.children:
            found += [child] if child in wanted else self._wanted_inside(child, wanted)
        return found


def _goes(i: Instruction) -> bool:
    """Whether an instruction is there for loops and for arrays in memory alone."""
    if i.op in (Op.Phi, Op.Branch):
        return True
    is_address = i.op in ADDRESS or i.op in _SAME_ADDRESS
    return is_address and i.type.kind is Kind.POINTER and i.type.storage is StorageClass.Function


def _has_effect_on_group(loop: Loop) -> bool:
    """Whether there are barriers or operations of groups in a loop."""
    return any(
        i.op in GROUP_OPERATIONS or i.op is Op.ControlBarrier
        for block in loop.blocks
        for i in block.instructions
    )
