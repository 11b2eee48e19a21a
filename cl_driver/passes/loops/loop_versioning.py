"""Loops that all work-items are in for most of the time: `for (i = id; i < n; i += step)`.

Where the number that is compared rises with the id, one comparison tells whether all work-items that are
executed together go on: that of the last. As long as they do, a copy of the loop runs, whose branch is
uniform and which so needs no masks. The loop itself has what is left.

clang keeps an int that a size_t is added to in 64 bits, which it cuts and extends in each iteration. Numbers
for which the copy goes on fit an int, so there nothing is cut, and the number stays affine.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...records import record
from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Kind, Value
from ...spirv.types import TypeTable
from ..analysis.shape import analyse_shapes
from ..ir.dominance import Loop, LoopNest, dominators
from ..ir.instructions import (
    NEGATED,
    PURE,
    SWAPPED,
    Copies,
    append,
    clone_instruction,
    int_value,
    is_constant_int,
    is_removable,
    predecessors,
    rename_phi_edge,
)
from ..ir.lcssa import close_loops
from ..ir.ops import PassOp
from ..ir.plan import PlanOptions
from ..ir.shapes import ShapeInfo
from ..scalar.simplify import simplify

# Pure, but not to be executed where they were not.
_STAY = frozenset((Op.Phi, Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod))

_LESS = frozenset((Op.SLessThan, Op.SLessThanEqual, Op.ULessThan, Op.ULessThanEqual))
_SIGNED = frozenset((Op.SLessThan, Op.SLessThanEqual))


@record(slots=True)
class _Test:
    """Work-items go on where number is less than (or equal to, as the operation says) limit; from the first
    to the last of those that are executed together the number rises by `rise`."""

    op: Op
    number: Value
    limit: Value
    rise: int
    least: int | None = None  # that the number must have; None: any, but it may wrap around


@record(slots=True)
class _Counter:
    """A phi of 64 bits of which each iteration uses the lowest 32, as a signed number: `extended`."""

    phi: Instruction
    extended: Instruction
    start: Value


def split_loops(function: Function, types: TypeTable, options: PlanOptions, budget: int) -> None:
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
    def __init__(
        self,
        function: Function,
        types: TypeTable,
        options: PlanOptions,
        shapes: ShapeInfo,
        nest: LoopNest,
        loop: Loop,
        before: dict[Block, list[Block]],
    ) -> None:
        self.function = function
        self.nest, self.loop, self.before = nest, loop, before
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
        stay = next(s for s in end.successors() if s in loop.blocks)
        test = self.test(end, stay)
        counter: _Counter | None = None
        if test is None and end is latch:
            extended = self.extended_test(end, stay, entry)
            if extended is not None:
                test, counter = extended
        if test is None:
            return
        if end is latch:
            guard = None
            if asks.terminator.op is not Op.Branch:
                guard = self.test(asks, header if asks is entry else entry)
                if guard is None:
                    return
            if counter is None or (guard is not None and _is_cut(guard.number, counter.start)):
                self.split_at_latch(test, entry, asks, guard, counter)
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

    def comparison(self, block: Block, stay: Block) -> tuple[Op, Value, Value] | None:
        """The condition at the end of a block for going on at `stay` as (operation, number, limit), if it has
        the right form."""
        terminator = block.terminator
        if terminator.op is not Op.BranchConditional:
            return None
        condition, if_true, if_false = terminator.operands[:3]
        if not isinstance(condition, Instruction) or if_true is if_false:
            return None
        op = condition.op if if_true is stay else NEGATED.get(condition.op)
        if op is None or len(condition.operands) != 2:
            return None
        a: Value
        b: Value
        a, b = condition.operands
        if op in SWAPPED and op not in _LESS:
            op, a, b = SWAPPED[op], b, a
        if op not in _LESS or a.type.kind is not Kind.INT or not self.shapes.is_common(b):
            return None
        return op, a, b

    def rise(self, number: Value) -> int | None:
        """By how much a number rises from the first to the last work-item."""
        step = self.shapes.stride(number)
        part_step = 0 if self.shapes.across is None else self.shapes.across.stride(number)
        if not isinstance(step, int) or not isinstance(part_step, int):
            return None
        if step < 0 or part_step < 0 or not (step or part_step):
            return None
        rise = step * (self.options.width - 1) + part_step * (self.options.parts - 1)
        return rise if rise < 1 << (number.type.width - 2) else None

    def test(self, block: Block, stay: Block) -> _Test | None:
        """The test at the end of a block for going on at `stay`."""
        found = self.comparison(block, stay)
        if found is None:
            return None
        rise = self.rise(found[1])
        return _Test(*found, rise) if rise is not None else None

    def extended_test(self, latch: Block, stay: Block, entry: Block) -> tuple[_Test, _Counter] | None:
        """The test at the latch, of a counter that is cut to 32 bits and extended, in its 64 bits."""
        found = self.comparison(latch, stay)
        if found is None:
            return None
        op, cut, limit = found
        if op not in _SIGNED or not isinstance(cut, Instruction) or cut.op is not Op.UConvert:
            return None
        number: Value = cut.operands[0]
        if not isinstance(number, Instruction) or number.op is not Op.IAdd:
            return None
        if cut.type.width != 32 or number.type.width != 64 or self.is_inside(limit):
            return None
        for extended, step in (number.operands, number.operands[::-1]):
            phi = _extended_from(extended)
            if phi is None or phi.op is not Op.Phi or phi.block is not self.header:
                continue
            start, value = (next((v for v, b in _edges(phi) if b is e), None) for e in (entry, latch))
            is_alone = all(phi not in i.operands or i is extended.operands[0]
                           for b in self.function.blocks for i in b.instructions)  # fmt: skip
            if value is not number or not is_alone or not isinstance(start, Instruction):
                continue
            rise = self.rise(start)
            if rise is not None and self.shapes.is_common(step):
                return _Test(op, number, limit, rise, -1 << 31), _Counter(phi, extended, start)
        return None

    def is_inside(self, value: Value) -> bool:
        return isinstance(value, Instruction) and value.block in self.loop.blocks

    def extend(self, counter: _Counter, test: _Test, values: Copies, block: Block, entry: Block) -> None:
        """Makes the copy of a counter's phi what it is extended to; appends to the block before both loops
        what it starts with, and the limit."""
        terminator = block.instructions.pop()
        phi, bits = values[counter.phi], self.types.integer(64, 32)
        shifted = append(block, Op.ShiftLeftLogical, phi.type, [counter.start, bits])
        start = append(block, Op.ShiftRightArithmetic, phi.type, [shifted, bits])
        test.limit = append(block, Op.SConvert, phi.type, [test.limit])
        block.instructions.append(terminator)
        phi.operands = [o for v, b in _edges(phi) for o in ((start, b) if b is entry else (v, b))]
        old = values[counter.extended]
        for inside in self.loop.blocks:
            for i in values[inside].instructions:
                i.operands = [phi if o is old else o for o in i.operands]
        values[counter.extended] = phi

    def all_pass(self, block: Block, test: _Test, values: Copies) -> Instruction:
        """Appends the test of all work-items at once; values: of the copy that it is made in."""
        bool_, number = self.types.bool(), values.get(test.number, test.number)
        first = append(block, PassOp.FirstItem, number.type, [number])
        last = append(block, Op.IAdd, number.type, [first, self.types.integer(number.type.width, test.rise)])
        below = append(block, test.op, bool_, [last, values.get(test.limit, test.limit)])
        rises = Op.SLessThanEqual if test.op in _SIGNED else Op.ULessThanEqual
        least: tuple[Value, Value] = first, last
        if test.least is not None:
            least = self.types.integer(number.type.width, test.least), first
        no_wrap = append(block, rises, bool_, [*least])
        return append(block, Op.LogicalAnd, bool_, [below, no_wrap])

    def copy(self) -> Copies:
        """Copies the loop's blocks; phis of the header have the operands of their latch yet to come."""
        values: Copies = {b: Block(self.function, b.name) for b in self.loop.blocks}
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

    def split_at_latch(
        self, test: _Test, entry: Block, asks: Block, guard: _Test | None, counter: _Counter | None
    ) -> None:
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
        if counter is not None:
            self.extend(counter, test, values, asks, entry)
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

    def condition(self, block: Block, stay: Block, where: Block, values: Copies) -> Value:
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


def _extended_from(value: Value) -> Instruction | None:
    """Of what a value is the lowest 32 bits, as a signed number of 64."""
    shifts = (Op.ShiftRightArithmetic, Op.ShiftLeftLogical)
    for op in shifts:
        if not isinstance(value, Instruction) or value.op is not op or value.type.width != 64:
            return None
        value, amount = value.operands
        if not is_constant_int(amount) or int_value(amount) != 32:
            return None
    return value if isinstance(value, Instruction) else None


def _is_cut(value: Value, of: Value) -> bool:
    return isinstance(value, Instruction) and value.op is Op.UConvert and value.operands[0] is of


def _edges(phi: Instruction) -> Iterator[tuple[Value, Block]]:
    return zip(phi.operands[::2], phi.operands[1::2], strict=True)
