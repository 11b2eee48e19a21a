"""When blocks are executed, as inequalities."""

from __future__ import annotations

from ...fast_typing import NamedTuple
from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Value
from ..ir.dominance import Loop, LoopNest, dominators, post_dominators
from ..ir.instructions import predecessors
from .polynomial import ONE, ZERO, Polynomial, constant, quotient
from .values import Values

# Comparisons of a and b as b - a - n >= 0 or a - b - n >= 0: whether b comes first, n, whether unsigned.
ORDERED = {
    Op.SLessThan: (True, 1, False), Op.SLessThanEqual: (True, 0, False),
    Op.SGreaterThan: (False, 1, False), Op.SGreaterThanEqual: (False, 0, False),
    Op.ULessThan: (True, 1, True), Op.ULessThanEqual: (True, 0, True),
    Op.UGreaterThan: (False, 1, True), Op.UGreaterThanEqual: (False, 0, True),
}  # fmt: skip
OPPOSITE = {
    Op.SLessThan: Op.SGreaterThanEqual, Op.SGreaterThanEqual: Op.SLessThan,
    Op.SGreaterThan: Op.SLessThanEqual, Op.SLessThanEqual: Op.SGreaterThan,
    Op.ULessThan: Op.UGreaterThanEqual, Op.UGreaterThanEqual: Op.ULessThan,
    Op.UGreaterThan: Op.ULessThanEqual, Op.ULessThanEqual: Op.UGreaterThan,
}  # fmt: skip


class Rounds(NamedTuple):
    """How often a loop's header, and its other blocks, are executed each time that control comes to it."""

    of_header: Polynomial
    of_body: Polynomial


class Conditions:
    """Of one function. A block is executed by work-items, and in iterations, for which all that of() says is
    not negative."""

    def __init__(self, function: Function) -> None:
        self._before = predecessors(function)
        self.tree = dominators(function, self._before)
        self.nest = LoopNest(function, self.tree, self._before)
        self._after = post_dominators(function)
        self._entry = function.blocks[0]
        self.values = Values(function, self.nest)
        self._leaving = self.nest.leaving()
        self._rounds: dict[Loop, Rounds | None] = {}

    def loops_around(self, block: Block) -> list[Loop]:
        """The innermost first."""
        found, loop = [], self.nest.innermost.get(block)
        while loop is not None:
            found.append(loop)
            loop = loop.parent
        return found

    def rounds(self, loop: Loop) -> Rounds | None:
        """None where that is not known before the loop begins."""
        if loop not in self._rounds:
            self._rounds[loop] = self._count(loop)
        return self._rounds[loop]

    def of(self, block: Block) -> list[Polynomial] | None:
        """What is not negative when a block is executed, and whenever all of it is not, the block is: but for
        how often loops around it go round. None: not known."""
        around = set(self.loops_around(block))
        chain = [block]
        while chain[-1] is not self._entry:
            above = self.tree.immediate(chain[-1])
            if above is None:
                return None
            chain.append(above)
        found: list[Polynomial] = []
        since = self._entry
        for above in reversed(chain[1:]):
            way = self._way(above, block)
            if way is None:
                continue
            if not self._after.dominates(above, since):
                return None
            target, is_true = way
            if not self._decides_a_loop(above, around):
                more = self._implied(above.terminator.operands[0], is_true)
                if more is None:
                    return None
                found += more
            since = target
        return found if self._after.dominates(block, since) else None

    def _way(self, above: Block, block: Block) -> tuple[Block, bool] | None:
        """The way that a branch must go for a block to be executed, if that is one of two."""
        terminator = above.terminator
        if terminator.op is not Op.BranchConditional:
            return None
        _, yes, no = terminator.operands[:3]
        if yes is no:
            return None
        for target, is_true in ((yes, True), (no, False)):
            if self._before[target] == [above] and self.tree.dominates(target, block):
                return target, is_true
        return None

    def _decides_a_loop(self, above: Block, around: set[Loop]) -> bool:
        """Whether a branch asks only whether a loop is to go on."""
        loop = self.nest.innermost.get(above)
        while loop is not None:
            if above in self._leaving[loop]:
                return loop not in around or self.rounds(loop) is not None
            loop = loop.parent
        return False

    def _implied(self, condition: Value, is_true: bool) -> list[Polynomial] | None:
        """What is not negative if, and only if, a condition has that value."""
        if not isinstance(condition, Instruction):
            return self._of_constant(condition, is_true)
        operands = condition.operands
        match condition.op:
            case Op.LogicalNot:
                return self._implied(operands[0], not is_true)
            case Op.LogicalAnd | Op.LogicalOr:
                return self._both(operands, is_true) if (condition.op is Op.LogicalAnd) == is_true else None
            case Op.Select:
                return self._selected(condition, is_true)
            case Op.IEqual | Op.INotEqual if operands[0].type.kind is Kind.INT:
                return self._equal(operands) if (condition.op is Op.IEqual) == is_true else None
            case op if op in ORDERED:
                return self._ordered(op if is_true else OPPOSITE[op], operands)
        return None

    def _of_constant(self, condition: Value, is_true: bool) -> list[Polynomial] | None:
        if not isinstance(condition, Constant):
            return None
        return [] if bool(condition.value) == is_true else [constant(-1)]

    def _both(self, operands: list[Value], is_true: bool) -> list[Polynomial] | None:
        found = [self._implied(operand, is_true) for operand in operands]
        known = [term for term in found if term is not None]
        return sum(known, []) if len(known) == len(found) else None

    def _selected(self, select: Instruction, is_true: bool) -> list[Polynomial] | None:
        """select(a, b, false) is a && b, select(a, true, b) is a || b."""
        first, yes, no = select.operands
        if isinstance(no, Constant) and not no.value:
            return self._both([first, yes], True) if is_true else None
        if isinstance(yes, Constant) and yes.value:
            return None if is_true else self._both([first, no], False)
        return None

    def _equal(self, operands: list[Value]) -> list[Polynomial] | None:
        a, b = map(self.values.of, operands)
        return None if a is None or b is None else [a.plus(b, -1), b.plus(a, -1)]

    def _ordered(self, op: Op, operands: list[Value]) -> list[Polynomial] | None:
        """An unsigned number below another is no negative one that has wrapped."""
        a, b = map(self.values.of, operands)
        if a is None or b is None:
            return None
        b_first, less, is_unsigned = ORDERED[op]
        low, high = (a, b) if b_first else (b, a)
        found = [high.plus(low, -1).plus(constant(-less))]
        if is_unsigned and low.variables():
            found.append(low)
        return found

    def _count(self, loop: Loop) -> Rounds | None:
        """Of a loop with one exit, at its header or its only latch, whose condition is linear in the number
        of the iteration."""
        leaving = self._leaving[loop]
        if len(leaving) != 1 or len(loop.latches) != 1:
            return None
        (block,) = leaving
        terminator = block.terminator
        if terminator.op is not Op.BranchConditional or block not in (loop.header, loop.latches[0]):
            return None
        stays = terminator.operands[1] in loop.blocks
        through = self._iterations(loop, terminator.operands[0], stays)
        if through is None:
            return None
        # So many times the condition holds.
        if block is loop.latches[0]:
            return Rounds(through.plus(ONE), through.plus(ONE))
        return Rounds(through.plus(ONE), through)

    def _iterations(self, loop: Loop, condition: Value, stays: bool) -> Polynomial | None:
        """In how many iterations, from the first on, a loop's condition has the value with which it stays."""
        number = self.values.iteration(loop)
        if isinstance(condition, Instruction) and condition.op in (Op.IEqual, Op.INotEqual):
            if (condition.op is Op.INotEqual) != stays:
                return None
            equal = self._equal(condition.operands)
            found = None if equal is None else equal[0]
            # a - b = 0 in iteration -rest / step, which is a whole number: else the loop had no end.
            if found is None or not found.is_linear() or found.variables() != [number]:
                return None
            step, rest = found.factor(number), found.without(number)
            return quotient(ZERO.plus(rest, -1), step)
        found_all = self._implied(condition, stays)
        if found_all is None:
            return None
        counts = [c for c in found_all if number in c.variables()]
        # Others say that an unsigned number has not wrapped.
        if len(counts) != 1 and not (len(counts) == 2 and counts[1].without(number).number == 0):
            return None
        rest, step = counts[0].without(number), counts[0].factor(number)
        if not counts[0].is_linear() or rest.variables() or step.variables():
            return None
        # rest + step * t >= 0, step < 0: for t up to rest / -step.
        up_to = quotient(rest, ZERO.plus(step, -1))
        return None if up_to is None else up_to.plus(ONE)
