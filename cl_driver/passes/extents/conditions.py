"""What is known of numbers where a block is executed, by branches that lead there and loops around it."""

from __future__ import annotations

from ...fast_typing import NamedTuple
from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Function, Instruction, Kind, Value
from ..ir.dominance import Loop, LoopNest, dominators
from ..ir.instructions import predecessors
from ..traffic.conditions import OPPOSITE, ORDERED
from ..traffic.polynomial import ITERATION, ONE, ZERO, Polynomial, Product, Symbol, Variable, atom, constant
from .terms import Assumption, Limit, Limited, change_inside
from .values import Values


class NotNegative(NamedTuple):
    """A number that is not negative, if all assumptions are true."""

    number: Polynomial
    assumes: frozenset[Assumption]


class Rounds(NamedTuple):
    """A loop's condition says that it goes on in iterations up to `rest / step`, rounded down, if all
    assumptions are true and step is positive."""

    rest: Polynomial
    step: Polynomial
    assumes: frozenset[Assumption]


class Conditions:
    """Of one function."""

    def __init__(self, function: Function) -> None:
        self._before = predecessors(function)
        self.tree = dominators(function, self._before)
        self.nest = LoopNest(function, self.tree, self._before)
        self._leaving = self.nest.leaving()
        self.values = Values(function, self.nest)
        self._rounds: dict[int, tuple[Rounds, Block | None] | None] = {}

    def of(self, block: Block) -> list[NotNegative]:
        """What is not negative where a block is executed."""
        found: list[NotNegative] = []
        above = self.tree.immediate(block)
        while above is not None:
            terminator = above.terminator
            if terminator.op is Op.BranchConditional:
                condition, yes, no = terminator.operands[:3]
                for target, is_true in ((yes, True), (no, False)):
                    if yes is not no and self._leads(above, target, block):
                        found += self._implied(condition, is_true)
            above = self.tree.immediate(above)
        return found

    def rounds(self, number: int, block: Block) -> tuple[Rounds, bool] | None:
        """Of the loop with that number, and whether a block is behind the condition; None: not known."""
        if number not in self._rounds:
            self._rounds[number] = None
            self._rounds[number] = self._count(self.nest.loops[number])
        found = self._rounds[number]
        if found is None:
            return None
        rounds, inside = found
        return rounds, inside is not None and self.tree.dominates(inside, block)

    def _leads(self, above: Block, target: Block, block: Block) -> bool:
        return self._before[target] == [above] and self.tree.dominates(target, block)

    def _implied(self, condition: Value, is_true: bool) -> list[NotNegative]:
        """What is not negative if a condition has that value."""
        if not isinstance(condition, Instruction):
            return []
        operands = condition.operands
        match condition.op:
            case Op.LogicalNot:
                return self._implied(operands[0], not is_true)
            case Op.LogicalAnd | Op.LogicalOr if (condition.op is Op.LogicalAnd) == is_true:
                return self._implied(operands[0], is_true) + self._implied(operands[1], is_true)
            case Op.Select:
                return self._selected(condition, is_true)
            case Op.IEqual | Op.INotEqual if operands[0].type.kind is Kind.INT:
                return self._equal(condition) if (condition.op is Op.IEqual) == is_true else []
            case op if op in ORDERED:
                return self._ordered(op if is_true else OPPOSITE[op], operands)
        return []

    def _selected(self, select: Instruction, is_true: bool) -> list[NotNegative]:
        """select(a, b, false) is a && b, select(a, true, b) is a || b."""
        first, yes, no = select.operands
        if is_true and isinstance(no, Constant) and not no.value:
            return self._implied(first, True) + self._implied(yes, True)
        if not is_true and isinstance(yes, Constant) and yes.value:
            return self._implied(first, False) + self._implied(no, False)
        return []

    def _equal(self, comparison: Instruction) -> list[NotNegative]:
        a, b = (self.values.of_type(operand, True) for operand in comparison.operands)
        if a is None or b is None:
            return []
        assumes = a.assumes | b.assumes
        one, other = a.number.plus(b.number, -1), b.number.plus(a.number, -1)
        return [NotNegative(one, assumes), NotNegative(other, assumes)]

    def _ordered(self, op: Op, operands: list[Value]) -> list[NotNegative]:
        b_first, less, is_unsigned = ORDERED[op]
        low, high = operands if b_first else reversed(operands)
        if not is_unsigned:
            return self._in_order(low, high, less, True)
        # An unsigned number below another, which is none of the largest, is no negative one that has wrapped.
        a, b = self.values.of(low), self.values.of_type(high, False)
        if a is None or b is None or not any(map(_varies, a.number.terms)):
            return self._in_order(low, high, less, False)
        bits = low.type.width
        assumes = (
            a.assumes | b.assumes | {Assumption(a.number, bits, True), Assumption(b.number, bits - 1, False)}
        )
        difference = b.number.plus(a.number, -1).plus(constant(-less))
        return [NotNegative(difference, assumes), NotNegative(a.number, assumes)]

    def _in_order(self, low: Value, high: Value, less: int, is_signed: bool) -> list[NotNegative]:
        a, b = self.values.of_type(low, is_signed), self.values.of_type(high, is_signed)
        if a is None or b is None:
            return []
        return [NotNegative(b.number.plus(a.number, -1).plus(constant(-less)), a.assumes | b.assumes)]

    def _count(self, loop: Loop) -> tuple[Rounds, Block | None] | None:
        """By a condition that each iteration comes to; and the block behind it, if that is no other's."""
        variable = Variable(ITERATION, self.values.loop_numbers[loop.header])
        for block in self._leaving[loop]:
            terminator = block.terminator
            if terminator.op is not Op.BranchConditional or self.nest.innermost.get(block) is not loop:
                continue
            if not all(self.tree.dominates(block, latch) for latch in loop.latches):
                continue
            stays = terminator.operands[1] in loop.blocks
            inside = terminator.operands[1 if stays else 2]
            for found in self._staying(terminator.operands[0], stays):
                if not found.number.is_linear():
                    continue
                step, rest = ZERO.plus(found.number.factor(variable), -1), found.number.without(variable)
                if step.terms and not any(map(_varies, step.terms)):
                    return Rounds(rest, step, found.assumes), inside if self._before[inside] == [
                        block
                    ] else None
        return None

    def _staying(self, condition: Value, stays: bool) -> list[NotNegative]:
        """What is not negative for as long as a loop goes on."""
        if not isinstance(condition, Instruction) or condition.op not in (Op.IEqual, Op.INotEqual):
            return self._implied(condition, stays)
        if (condition.op is Op.INotEqual) != stays or condition.operands[0].type.kind is not Kind.INT:
            return []
        # It goes towards the other number, if it does not begin behind it, and meets it: else it had no end.
        found = []
        for one in self._equal(condition):
            if _falls(one.number):
                begin = Polynomial((p, f) for p, f in one.number.terms.items() if not _is_iteration(p))
                assumes = one.assumes | {Assumption(begin, 62, False)}
                found.append(NotNegative(one.number.plus(ONE, -1), assumes))
        return found


def _is_iteration(product: Product) -> bool:
    return any(isinstance(term, Variable) and term.kind == ITERATION for term in product)


def _falls(number: Polynomial) -> bool:
    """Whether each iteration takes something from it."""
    factors = (
        number.factor(v).number for v in number.variables() if v.kind == ITERATION and number.is_linear()
    )
    return any(factor is not None and factor < 0 for factor in factors)


def limit(number: Polynomial, conditions: list[NotNegative]) -> Polynomial:
    """A number with what conditions say of pieces of it."""
    limits: dict[Polynomial, list[Limit]] = {}
    for condition in conditions:
        varying = Polynomial((p, f) for p, f in condition.number.terms.items() if _varies(p))
        if not varying.terms:
            continue
        rest = condition.number.plus(varying, -1)
        # varying + rest >= 0
        first = next(iter(sorted(varying.terms.items(), key=repr)))[1]
        if first > 0:
            limits.setdefault(varying, []).append(Limit(False, ZERO.plus(rest, -1), condition.assumes))
        else:
            limits.setdefault(ZERO.plus(varying, -1), []).append(Limit(True, rest, condition.assumes))
    for piece, said in sorted(limits.items(), key=lambda item: -len(item[0].terms)):
        number = _put(number, piece, atom(Limited(piece, tuple(said))))
    return number


def _varies(product: Product) -> bool:
    return any(not isinstance(term, Symbol) for term in product)


def _put(number: Polynomial, piece: Polynomial, named: Polynomial) -> Polynomial:
    """A number with each multiple of a piece of it replaced."""

    def inside(one: Polynomial) -> Polynomial:
        return _put(one, piece, named)

    number = change_inside(number, inside)
    leading, unit = max(piece.terms.items(), key=lambda item: (len(item[0]), repr(item[0])))
    for product, factor in [*number.terms.items()]:
        if factor % unit or number.terms.get(product) != factor:
            continue
        around = _without(product, leading)
        if around is None:
            continue
        times = Polynomial([(around, factor // unit)])
        whole = piece.times(times)
        if all(number.terms.get(p) == f for p, f in whole.terms.items()):
            number = number.plus(whole, -1).plus(named.times(times))
    return number


def _without(product: Product, taken: Product) -> Product | None:
    """The rest of a product, which has all of these terms."""
    rest = [*product]
    for term in taken:
        if term not in rest:
            return None
        rest.remove(term)
    return tuple(rest)
