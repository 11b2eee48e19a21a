"""Conditions that keep all of a loop's work from being done are asked before the loop.

    for (i = -r; i <= r; i++)
        if (y >= 0 && y < h && x + i >= 0) sum += in[y * w + x + i];

does nothing but count where y is outside, which each iteration asks again. Such a loop is passed over:

    if (y >= 0 && y < h)
        for (i = -r; i <= r; i++)
            if (x + i >= 0) sum += in[y * w + x + i];

Filters are written like that, most of all for borders. Lanes that all lie outside leave at once, and what is
left in the loop has fewer masks to compute. A loop may be passed over if it counts by a constant step, leads
to one place, and without what the condition guards changes no memory and no value that is used behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Operand, Value
from ...spirv.types import TypeTable
from ..ir.dominance import DominatorTree, Loop, LoopNest, dominators
from ..ir.instructions import (
    PURE,
    TERMINATORS,
    append,
    is_arithmetic,
    is_boundary,
    predecessors,
    replace_successor,
)
from .licm import is_invariant, move_to, preheader

_MOST = 32  # loops of one function
_MOST_LOOKED_AT = 8  # conditions of a loop
_MOST_MOVED = 12  # instructions that a condition takes
_DEPTH = 32  # of conditions, phis and expressions that are looked at

_Leaf = tuple[Instruction, bool]  # a condition, and what it has to be
# What is used behind a loop of its values, and the phis there that it leads to, with what each is if the loop
# is passed over.
_Values = tuple[dict[Instruction, Value], dict[Instruction, Value]]


def hoist_guards(function: Function, types: TypeTable) -> bool:
    """Changes a function in place, before masks are there. True if it did."""
    changed = False
    for _ in range(_MOST):
        before = predecessors(function)
        tree = dominators(function, before)
        loops = LoopNest(function, tree, before).inner_first()
        if not any(_hoist_from(function, types, loop, tree, before) for loop in loops):
            break
        changed = True
    return changed


def _hoist_from(
    function: Function, types: TypeTable, loop: Loop, tree: DominatorTree[Block],
    before: dict[Block, list[Block]],
) -> bool:  # fmt: skip
    """Asks the conditions of a loop before it, if there are any."""
    behind = {s for b in loop.blocks for s in b.successors() if s not in loop.blocks}
    if len(behind) != 1 or len(loop.latches) != 1 or len(loop.blocks) == 1:
        return False
    (after,) = behind
    ends = [b for b in before[after] if b in loop.blocks]
    inside = {i for block in loop.blocks for i in block.instructions}
    if any(is_boundary(i) for i in inside):
        return False
    counted = [end for end in ends if tree.dominates(end, loop.latches[0])]
    hoisted: list[_Leaf] = []
    moved: dict[Instruction, None] = {}
    values: _Values | None = None
    looked_at = 0
    for leaf, targets in _guards(loop, tree, before).items():
        needed = dict(moved)
        if not is_invariant(leaf[0], inside, needed) or len(needed) > _MOST_MOVED:
            continue
        if looked_at == _MOST_LOOKED_AT:
            break
        looked_at += 1
        guarded = {block for block in loop.blocks if any(tree.dominates(t, block) for t in targets)}
        rest = _Rest(loop, inside, guarded)
        if not rest.only_counts(counted):
            continue
        found = rest.values_behind(function, after)
        if found is not None and (values is None or found == values):
            hoisted.append(leaf)
            moved, values = needed, found
    entry = preheader(function, loop) if hoisted else None
    if entry is None or values is None:
        return False
    move_to(entry, loop, list(moved))
    _pass_over(function, types, loop, entry, ends, after, hoisted, values)
    return True


def _guards(
    loop: Loop, tree: DominatorTree[Block], before: dict[Block, list[Block]]
) -> dict[_Leaf, list[Block]]:
    """The blocks that lead to what a loop does only where a condition holds, for each such condition."""
    result: dict[_Leaf, list[Block]] = {}
    for block in tree.order:
        terminator = block.terminator
        if block not in loop.blocks or terminator.op is not Op.BranchConditional:
            continue
        condition, *targets = terminator.operands
        for target, wanted in zip(targets, (True, False), strict=False):
            if target not in loop.blocks or targets[0] is targets[1]:
                continue
            if all(source is block or tree.dominates(target, source) for source in before[target]):
                for leaf in _implied(condition, wanted):
                    result.setdefault(leaf, []).append(target)
    return result


def _implied(condition: Operand, wanted: bool, depth: int = _DEPTH) -> Iterator[_Leaf]:
    """The conditions that hold wherever one is true, or false."""
    if type(condition) is not Instruction or condition.type.kind is not Kind.BOOL:
        return
    op, operands = condition.op, condition.operands
    if depth and op is Op.LogicalNot:
        yield from _implied(operands[0], not wanted, depth - 1)
    elif depth and op is (Op.LogicalAnd if wanted else Op.LogicalOr):
        for operand in operands:
            yield from _implied(operand, wanted, depth - 1)
    elif depth and op is Op.Select and _is_bool(operands[2 if wanted else 1], not wanted):
        yield from _implied(operands[0], wanted, depth - 1)
        yield from _implied(operands[1 if wanted else 2], wanted, depth - 1)
    else:
        yield condition, wanted


def _is_bool(value: Operand, expected: bool) -> bool:
    return type(value) is Constant and bool(value.value) is expected


class _Rest:
    """A loop without the blocks that a condition guards."""

    def __init__(self, loop: Loop, inside: set[Instruction], guarded: set[Block]) -> None:
        self.loop = loop
        self.inside = inside
        self.guarded = guarded
        self.stays: dict[Instruction, Value] = {}  # phis of the header that keep the value they start with
        self.counts: set[Operand] = set()  # phis of the header to which the same is added each time
        self.resolved: dict[Value, Value] = {}
        self.is_count: dict[Value, bool] = {}
        (latch,) = loop.latches
        for phi in loop.header.phis():
            values = dict(zip(phi.operands[1::2], phi.operands[::2], strict=True))
            again = self._resolve(values.pop(latch))
            if again is phi and len(values) == 1:
                (self.stays[phi],) = values.values()
            elif type(again) is Instruction and again.op in (Op.IAdd, Op.ISub):
                if again.operands[0] is phi and type(again.operands[1]) is Constant:
                    self.counts.add(phi)

    def _resolve(self, value: Value, depth: int = _DEPTH) -> Value:
        """What a value is where nothing guarded is executed."""
        if type(value) is not Instruction or value.op is not Op.Phi or value not in self.inside:
            return value
        if value.block is self.loop.header or not depth:
            return value
        known = self.resolved.get(value)
        if known is None:
            self.resolved[value] = value  # to those that it leads to
            ways = zip(value.operands[::2], value.operands[1::2], strict=True)
            found = {self._resolve(v, depth - 1) for v, block in ways if block not in self.guarded}
            found.discard(value)
            known = self.resolved[value] = found.pop() if len(found) == 1 else value
        return known

    def only_counts(self, ends: list[Block]) -> bool:
        """Whether iterations change no memory, and it is a count that ends them, in one of some blocks."""
        for block in self.loop.blocks - self.guarded:
            for i in block.instructions:
                is_load = i.op is Op.Load and (i.memory is None or not i.memory.volatile)
                if not (is_load or i.op in PURE or i.op in TERMINATORS or is_arithmetic(i)):
                    return False
        tests = [end.terminator for end in ends if end not in self.guarded]
        return any(t.op is Op.BranchConditional and self._is_counted(t.operands[0]) for t in tests)

    def _is_counted(self, value: Value, depth: int = _DEPTH) -> bool:
        value = self._resolve(value)
        if type(value) is not Instruction or value not in self.inside:
            return True
        if value in self.counts or value in self.stays:
            return True
        known = self.is_count.get(value)
        if known is None:
            operands = [o for o in value.operands if isinstance(o, Value)]
            known = depth > 0 and value.op in PURE and value.op is not Op.Phi
            known = known and all(self._is_counted(o, depth - 1) for o in operands)
            self.is_count[value] = known
        return known

    def values_behind(self, function: Function, after: Block) -> _Values | None:
        """What values are where nothing guarded is executed; None if that takes the loop."""
        inside, without = self.loop.blocks, self.loop.blocks - self.guarded
        used: dict[Instruction, Value] = {}
        merged: dict[Instruction, Value] = {}
        for i in (i for b in function.blocks if b not in inside for i in b.instructions):
            operands = i.operands
            if i.op is Op.Phi and i.block is after:
                ways = list(zip(operands[::2], operands[1::2], strict=True))
                found = {self._behind(value) for value, block in ways if block in without}
                merged[i] = value = found.pop()
                if found or value in self.inside:
                    return None
                operands = [value for value, block in ways if block not in inside]
            for operand in operands:
                if type(operand) is Instruction and operand in self.inside:
                    used[operand] = value = self._behind(operand)
                    if value in self.inside:
                        return None
        return used, merged

    def _behind(self, value: Value) -> Value:
        """What a value is behind the loop; one of the loop's own if that takes the loop."""
        value = self._resolve(value)
        return self.stays.get(value, value) if type(value) is Instruction else value


def _pass_over(
    function: Function, types: TypeTable, loop: Loop, entry: Block, ends: list[Block], after: Block,
    leaves: list[_Leaf], values: _Values,
) -> None:  # fmt: skip
    """Enters a loop only where conditions are as wanted, which it then knows."""
    behind = Block(function, "behind")
    known: dict[Operand, Value] = {}
    condition: Value | None = None
    for leaf, wanted in leaves:
        known[leaf] = types.constant(leaf.type, wanted)
        each: Value = leaf
        if not wanted:
            each = Instruction(Op.LogicalNot, leaf.type, [leaf], entry)
            entry.instructions.insert(-1, each)
        if condition is not None:
            each = Instruction(Op.LogicalAnd, leaf.type, [condition, each], entry)
            entry.instructions.insert(-1, each)
        condition = each
    entry.terminator.op = Op.BranchConditional
    entry.terminator.operands = [condition, loop.header, behind]
    used, phis = values
    merged: dict[Operand, Value] = {}
    for value, otherwise in used.items():
        operands = [o for end in ends for o in (value, end)]
        merged[value] = append(behind, Op.Phi, value.type, [*operands, otherwise, entry])
    for phi, otherwise in phis.items():
        ways = list(zip(phi.operands[::2], phi.operands[1::2], strict=True))
        operands = [o for value, end in ways if end in ends for o in (value, end)]
        one = append(behind, Op.Phi, phi.type, [*operands, otherwise, entry])
        phi.operands = [o for value, block in ways if block not in ends for o in (value, block)]
        phi.operands += [one, behind]
    append(behind, Op.Branch, None, [after])
    for end in ends:
        replace_successor(end, after, behind)
    function.blocks.insert(function.blocks.index(after), behind)
    for block in function.blocks:
        replaced = known if block in loop.blocks else merged
        if block is not behind:
            for i in block.instructions:
                if not replaced.keys().isdisjoint(i.operands):
                    i.operands = [replaced.get(o, o) for o in i.operands]
