"""Loops whose first or last iterations have less to do than others, unrolled.

A hash expands its message a few words at a time, and does some rounds with them: a loop that runs three or
four times. Programs that try many messages have a loop around it in which only a word or two changes, so that
most of what the first iteration expands is the same for all of them; and they compare a part of the hash,
whose last rounds nobody needs then. The copies of an unrolled loop are without that.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Operand, Undef, Value, Variable
from ...spirv.types import TypeTable
from ..ir.dominance import Loop, LoopNest, dominators
from ..ir.fold import Folder
from ..ir.instructions import (
    PURE,
    STAY,
    TERMINATORS,
    instruction_count,
    is_arithmetic,
    is_removable,
    predecessors,
    users,
)
from ..scalar.simplify import simplify
from .licm import is_invariant
from .unroll import Known, copy_loop, iterations
from .unroll_branches import acts_on_group

# How often a loop may run, and the instructions that a function may have afterwards.
MOST_ITERATIONS = 8
MOST_INSTRUCTIONS = 6000

# What must be saved, as a share of what the iterations do together.
WORTH = 0.04


def unroll_uneven(function: Function, types: TypeTable) -> bool:
    """Changes a reducible function in place; True if it did."""
    refused: set[Block] = set()
    changed = False
    while (found := _next(function, types, refused)) is not None:
        copy_loop(function, types, *found)
        simplify(function, types)
        changed = True
    return changed


def _next(function: Function, types: TypeTable, refused: set[Block]) -> tuple[Loop, int, Block] | None:
    """A loop that is to be unrolled, how often its header is executed, and the block that leaves it.

    refused: headers of those that were looked at before; they are added to.
    """
    folder = Folder(types)
    before = predecessors(function)
    tree = dominators(function, before)
    room = MOST_INSTRUCTIONS - instruction_count(function)
    for loop in LoopNest(function, tree, before).loops:
        if loop.header in refused or len(loop.latches) != 1 or loop.children:
            continue
        refused.add(loop.header)
        size = sum(len(block.instructions) for block in loop.blocks)
        counted = iterations(loop, folder, tree, before) if size <= room else None
        if counted is None:
            continue
        steps, end = counted
        count = len(steps)
        if 1 < count <= MOST_ITERATIONS and (count - 1) * size <= room and _is_plain(loop, end):
            order = [b for b in tree.order if b in loop.blocks]
            if _Iterations(loop, order, steps, users(function)).saved() >= WORTH:
                return loop, count, end
    return None


def _is_plain(loop: Loop, end: Block) -> bool:
    """Whether nothing but the block at its end leaves a loop, and groups have no part in it."""
    leaves = [b for b in loop.blocks if b is not end and not loop.blocks.issuperset(b.successors())]
    return not leaves and not any(acts_on_group(i) for block in loop.blocks for i in block.instructions)


class _Iterations:
    """What the iterations of a loop do."""

    def __init__(
        self, loop: Loop, order: list[Block], steps: list[Known], used_by: dict[Value, list[Instruction]]
    ) -> None:
        self._loop = loop
        self._used_by = used_by
        (self._latch,) = loop.latches
        self._count = len(steps)
        self._phis = {
            phi: dict(zip(phi.operands[1::2], phi.operands[::2], strict=True)) for phi in loop.header.phis()
        }
        self._body = [i for block in order for i in block.instructions if i not in self._phis]
        # Numbers in all iterations: counters, and what is computed of them alone.
        self._numbers: set[Operand] = {
            phi for phi in self._phis if all(step[phi] is not None for step in steps)
        }
        around = loop.parent
        self._around = {i for block in around.blocks for i in block.instructions} if around else None
        for i in self._body:
            if _is_pure(i) and all(o in self._numbers or _is_constant(o) for o in i.operands):
                self._numbers.add(i)
        self._work = [
            i for i in self._body if i not in self._numbers and i.op not in TERMINATORS and i.op is not Op.Phi
        ]

    def saved(self) -> float:
        """What need not be done, as a share of what all iterations do together."""
        all_work = self._count * _weight(self._work)
        if not all_work:
            return 0.0
        same = self._same()
        needed = self._needed()
        saved = 0
        for k in range(self._count):
            saved += _weight(i for i in self._work if i in same[k] or i not in needed[k])
        return saved / all_work

    def _same(self) -> list[set[Operand]]:
        """By iteration, what is the same each time that the loop is entered from the loop around it."""
        made: list[set[Operand]] = []
        entering = {
            phi
            for phi, edges in self._phis.items()
            for b, v in edges.items()
            if b is not self._latch and self._is_outer(v)
        }
        for _ in range(self._count):
            same: set[Operand] = self._numbers | entering
            for i in self._body:
                if _is_pure(i) and all(o in same or self._is_outer(o) for o in i.operands):
                    same.add(i)
            made.append(same)
            entering = {
                phi
                for phi, edges in self._phis.items()
                if edges[self._latch] in same or self._is_outer(edges[self._latch])
            }
        return made

    def _is_outer(self, value: Operand) -> bool:
        """Whether a value from outside of the loop is the same in each iteration of the one around it."""
        if _is_constant(value):
            return True
        if self._around is None or not isinstance(value, Value):
            return False
        if isinstance(value, Instruction) and value.block in self._loop.blocks:
            return False
        return is_invariant(value, self._around, {})

    def _needed(self) -> list[set[Operand]]:
        """By iteration, what has an effect or is used."""
        blocks = self._loop.blocks
        roots = [i for i in self._body if i.op in TERMINATORS or not is_removable(i)]
        last = [
            i
            for i in (*self._phis, *self._body)
            if any(user.block not in blocks for user in self._used_by.get(i, ()))
        ]
        made: list[set[Operand]] = []
        later: list[Operand] = list(last)
        for _ in range(self._count):
            needed: set[Operand] = set()
            work: list[Operand] = [*roots, *later]
            while work:
                value = work.pop()
                if value in needed or not isinstance(value, Instruction) or value.block not in blocks:
                    continue
                needed.add(value)
                if value not in self._phis:
                    work += value.operands
            later = [self._phis[phi][self._latch] for phi in self._phis if phi in needed]
            made.append(needed)
        return made[::-1]


def _is_pure(i: Instruction) -> bool:
    if i.op is Op.Load:
        return (
            i.operands[0].type.storage is StorageClass.UniformConstant
            and i.memory is not None
            and not i.memory.volatile
        )
    return (i.op in PURE and i.op not in STAY) or is_arithmetic(i)


def _is_constant(value: Operand) -> bool:
    return isinstance(value, (Constant, Undef, Variable)) or not isinstance(value, Value)


def _weight(instructions: Iterable[Instruction]) -> int:
    """How many scalars these compute."""
    return sum(i.type.count if i.type is not None and i.type.kind is Kind.VECTOR else 1 for i in instructions)
