"""Loops that all work-items are in for most of the time: `for (i = id; i < n; i += step)`.

Where the number that is compared rises with the id, one comparison tells whether all work-items that are
executed together go on: that of the last. As long as they do, a copy of the loop runs, whose branch is
uniform and which so needs no masks. The loop itself has what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..spirv.enums import Op
from ..spirv.module import Block, Function, Instruction, Kind, Value
from .dominance import LoopNest, dominators
from .ir import PURE, append, clone_instruction, is_removable, predecessors, rename_phi_edge
from .lcssa import close_loops
from .ops import PassOp
from .plan import PlanOptions
from .shape import ShapeInfo, analyse_shapes
from .simplify import simplify

# Pure, but not to be executed where they were not.
_STAY = frozenset((Op.Phi, Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod))

_LESS = frozenset((Op.SLessThan, Op.SLessThanEqual, Op.ULessThan, Op.ULessThanEqual))
_OPPOSITE = {
    Op.SGreaterThan: Op.SLessThanEqual, Op.SGreaterThanEqual: Op.SLessThan,
    Op.UGreaterThan: Op.ULessThanEqual, Op.UGreaterThanEqual: Op.ULessThan,
}  # fmt: skip
_OPPOSITE |= {b: a for a, b in _OPPOSITE.items()}
_SWAPPED = {
    Op.SGreaterThan: Op.SLessThan, Op.SGreaterThanEqual: Op.SLessThanEqual, Op.UGreaterThan: Op.ULessThan,
    Op.UGreaterThanEqual: Op.ULessThanEqual,
}  # fmt: skip
_SIGNED = frozenset((Op.SLessThan, Op.SLessThanEqual))


@dataclass(slots=True)
class _Test:
    """Work-items go on where number is less than (or equal to, as the operation says) limit; from the first
    to the last of those that are executed together the number rises by `rise`."""

    op: Op
    number: Value
    limit: Value
    rise: int


def split_loops(function: Function, types, options: PlanOptions, budget: int) -> None:
    """Changes a function in place. budget: instructions that it may have afterwards."""
    close_loops(function, types)
    shapes = analyse_shapes(function, options)
    before = predecessors(function)
    nest = LoopNest(function, dominators(function, before), before)
    size = sum(len(block.instructions) for block in function.blocks)
    for loop in nest.loops:
        if loop.header not in shapes.divergent_loops or loop.children or len(loop.latches) != 1:
            continue
        size += sum(len(block.instructions) for block in loop.blocks)
        if size > budget:
            break
        _Split(function, types, options, shapes, nest, loop, before).run()
    simplify(function, types)


class _Split:
    def __init__(self, function: Function, types, options: PlanOptions, shapes: ShapeInfo, *graph):
        self.function = function
        self.nest, self.loop, self.before = graph
        self.types = types
        self.options = options
        self.shapes = shapes
        self.header = self.loop.header
        (self.latch,) = self.loop.latches
        self.entries = [b for b in self.before[self.header] if b is not self.latch]

    def run(self) -> None:
        loop, header, latch = self.loop, self.header, self.latch
        ends = [b for b in loop.blocks if not loop.blocks.issuperset(b.successors())]
        if len(ends) != 1 or len(self.entries) != 1:
            return
        (end,), (entry,) = ends, self.entries
        asks = self.asking(entry) if end is latch else entry
        if asks in self.shapes.influenced or self.nest.innermost.get(asks) is not loop.parent:
            return
        test = self.test(end, *(s for s in end.successors() if s in loop.blocks))
        if test is None:
            return
        if end is latch:
            guard = None
            if asks.terminator.op is not Op.Branch:
                guard = self.test(asks, header if asks is entry else entry)
                if guard is None:
                    return
            self.split_at_latch(test, entry, asks, guard)
        elif end is header and all(is_removable(i) for i in header.instructions[:-1]):
            self.split_at_header(test, entry)

    def asking(self, entry: Block) -> Block:
        """The block that decides whether the loop is entered: the one before the loop, or one before that."""
        before = self.before[entry]
        if len(before) != 1 or entry.terminator.op is not Op.Branch:
            return entry
        (asks,) = before
        if asks.terminator.op is not Op.BranchConditional:
            return entry
        harmless = all(i.op in PURE and i.op not in _STAY for i in entry.instructions[:-1])
        return asks if harmless else entry

    def test(self, block: Block, stay: Block) -> _Test | None:
        """The condition at the end of a block for going on at `stay`, if it has the right form."""
        terminator = block.terminator
        if terminator.op is not Op.BranchConditional:
            return None
        condition, if_true, if_false = terminator.operands[:3]
        if not isinstance(condition, Instruction) or if_true is if_false:
            return None
        op = condition.op if if_true is stay else _OPPOSITE.get(condition.op)
        a, b = condition.operands if len(condition.operands) == 2 else (None, None)
        if op in _SWAPPED:
            op, a, b = _SWAPPED[op], b, a
        if op not in _LESS or a.type.kind is not Kind.INT or not self.shapes.is_common(b):
            return None
        steps = self.shapes.stride(a), self.shapes.across.stride(a) if self.shapes.across else 0
        if not all(type(step) is int and step >= 0 for step in steps) or not any(steps):
            return None
        rise = steps[0] * (self.options.width - 1) + steps[1] * (self.options.parts - 1)
        return _Test(op, a, b, rise) if rise < 1 << (a.type.width - 2) else None

    def all_pass(self, block: Block, test: _Test, values: dict) -> Instruction:
        """Appends the test of all work-items at once; values: of the copy that it is made in."""
        bool_, number = self.types.bool(), values.get(test.number, test.number)
        first = append(block, PassOp.FirstItem, number.type, [number])
        last = append(block, Op.IAdd, number.type, [first, self.types.integer(number.type.width, test.rise)])
        below = append(block, test.op, bool_, [last, values.get(test.limit, test.limit)])
        rises = Op.SLessThanEqual if test.op in _SIGNED else Op.ULessThanEqual
        no_wrap = append(block, rises, bool_, [first, last])
        return append(block, Op.LogicalAnd, bool_, [below, no_wrap])

    def copy(self) -> dict:
        """Copies the loop's blocks; phis of the header have the operands of their latch yet to come."""
        values: dict = {b: Block(self.function, b.name) for b in self.loop.blocks}
        blocks = [b for b in self.function.blocks if b in self.loop.blocks]
        for block in blocks:
            for i in block.instructions:
                values[i] = clone_instruction(i, i.operands, values[block])
                values[block].instructions.append(values[i])
        for block in blocks:
            for i in values[block].instructions:
                i.operands = [values.get(o, o) for o in i.operands]
        self.function.blocks += [values[block] for block in blocks]
        return values

    def split_at_latch(self, test: _Test, entry: Block, asks: Block, guard: _Test | None) -> None:
        """A loop that asks behind its body. Where not all go on, or in, those that do meet at a join."""
        header, latch = self.header, self.latch
        (outside,) = (s for s in latch.successors() if s is not header)
        if guard is not None and outside not in asks.successors():
            return
        if asks is not entry:
            for i in entry.instructions[:-1]:
                i.block = asks
            asks.instructions[-1:-1] = entry.instructions[:-1]
            entry.instructions = entry.instructions[-1:]
        values = self.copy()
        rest, join = Block(self.function, "rest"), Block(self.function, "join")
        values[latch].instructions.pop()
        go_on = self.all_pass(values[latch], test, values)
        append(values[latch], Op.BranchConditional, None, [go_on, values[header], rest])
        stays = [self.condition(latch, header, rest, values), rest]
        append(rest, Op.Branch, None, [join])
        first = header if asks is entry else entry  # where the guard leads to
        if guard is not None:
            some = Block(self.function, "some")
            stays += [self.condition(asks, first, some, {}), some]
            append(some, Op.Branch, None, [join])
            asks.instructions.pop()
            go_in = self.all_pass(asks, guard, {})
            append(asks, Op.BranchConditional, None, [go_in, values[header], some])
            rename_phi_edge(values[header], entry, asks)
            self.function.blocks.append(some)
        else:
            entry.terminator.operands = [values[header]]
        joined: list[Instruction] = []
        for target, source in ((header, entry), (outside, asks)):
            for phi in target.phis():
                edges = list(_edges(phi))
                value = next(v for v, b in edges if b is latch)
                operands = [values.get(value, value), rest]
                if guard is not None:
                    operands += [next(v for v, b in edges if b is source), some]
                joined.append(Instruction(Op.Phi, phi.type, operands, join, phi.name))
                kept = [o for v, b in edges if b is not source for o in (v, b)]
                phi.operands = [*kept, joined[-1], join]
        chosen = Instruction(Op.Phi, self.types.bool(), stays, join)
        join.instructions = [*joined, chosen]
        append(join, Op.BranchConditional, None, [chosen, header, outside])
        self.function.blocks += [rest, join]

    def condition(self, block: Block, stay: Block, where: Block, values: dict) -> Value:
        """Appends the condition at the end of a block for going on, as it is in a copy."""
        condition, if_true = block.terminator.operands[:2]
        copy = clone_instruction(condition, [values.get(o, o) for o in condition.operands], where)
        where.instructions.append(copy)
        return copy if if_true is stay else append(where, Op.LogicalNot, copy.type, [copy])

    def split_at_header(self, test: _Test, entry: Block) -> None:
        """A loop that asks before its body."""
        values = self.copy()
        header = self.header
        rest = Block(self.function, "rest")
        append(rest, Op.Branch, None, [header])
        condition, *targets = header.terminator.operands[:3]
        (stay,) = (t for t in targets if t in self.loop.blocks)
        values[header].instructions.pop()
        go_on = self.all_pass(values[header], test, values)
        append(values[header], Op.BranchConditional, None, [go_on, values[stay], rest])
        for phi in header.phis():
            phi.operands = [
                o for v, b in _edges(phi) for o in ((values[phi], rest) if b is entry else (v, b))
            ]
        entry.terminator.operands = [values[header] if o is header else o for o in entry.terminator.operands]
        self.function.blocks.append(rest)


def _edges(phi: Instruction):
    return zip(phi.operands[::2], phi.operands[1::2], strict=True)
