"""Arithmetic on integers of several words, the lowest first, as instructions on words.

One word may have any width, several have 64 bits each. Operands of a function have equal numbers of words;
what is above the width of an integer is the caller's business (integers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...spirv.enums import Op, OpenCLStd
from ...spirv.layout import word_width
from ...spirv.module import Argument, Block, Function, Instruction, Operand, Type, Value
from ...spirv.types import TypeTable
from ..ir.instructions import append

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Emit: TypeAlias = Callable[[Op, Type | None, Sequence[Operand]], Instruction]

_SIGNED = {Op.SDiv, Op.SRem, Op.SMod}
# Of lower words, where the highest are equal, only a strict comparison without sign counts.
_STRICT = {
    Op.ULessThan: (Op.ULessThan, False), Op.ULessThanEqual: (Op.UGreaterThan, True),
    Op.UGreaterThan: (Op.UGreaterThan, False), Op.UGreaterThanEqual: (Op.ULessThan, True),
    Op.SLessThan: (Op.SLessThan, False), Op.SLessThanEqual: (Op.SGreaterThan, True),
    Op.SGreaterThan: (Op.SGreaterThan, False), Op.SGreaterThanEqual: (Op.SLessThan, True),
}  # fmt: skip
_WITHOUT_SIGN = {Op.SLessThan: Op.ULessThan, Op.SGreaterThan: Op.UGreaterThan}


class Words:
    """Emits instructions. divisions: functions that divide, by numbers of words, shared by a program."""

    def __init__(self, types: TypeTable, emit: Emit, divisions: dict[int, Function]) -> None:
        self.types = types
        self.emit = emit
        self.divisions = divisions
        self.bool = types.bool()

    def number(self, like: Value, number: int) -> Value:
        """A constant of a word's type."""
        return self.types.integer(like.type.width, number)

    def op(self, op: Op, a: Value, *others: Value) -> Instruction:
        """An operation whose result is a word as its first operand."""
        return self.emit(op, a.type, [a, *others])

    def bit(self, condition: Value, like: Value) -> Value:
        """1 or 0."""
        return self.emit(Op.Select, like.type, [condition, self.number(like, 1), self.number(like, 0)])

    # Widths.

    def masked(self, words: list[Value], width: int) -> list[Value]:
        """Without bits above the width."""
        *low, top = words
        left = width - len(low) * top.type.width
        if left == top.type.width:
            return words
        return [*low, self.op(Op.BitwiseAnd, top, self.number(top, (1 << left) - 1))]

    def with_sign(self, words: list[Value], width: int) -> list[Value]:
        """The sign in all bits above the width, of words without anything there."""
        *low, top = words
        above = len(words) * top.type.width - width
        if not above:
            return words
        distance = self.number(top, above)
        return [*low, self.op(Op.ShiftRightArithmetic, self.op(Op.ShiftLeftLogical, top, distance), distance)]

    def resized(self, words: list[Value], width: int, to: int, signed: bool) -> list[Value]:
        """The words of an integer of another width; bits above it may be set."""
        if signed and to > width:
            words = self.with_sign(words, width)
        word = self.types.int(word_width(to))
        if words[0].type is not word:
            if len(words) > 1:
                words = words[:1]  # to one word, a narrower one
            convert = Op.SConvert if signed else Op.UConvert
            words = [self.emit(convert, word, words)]
        count = -(-to // word.width)
        if count <= len(words):
            return words[:count]
        fill: Value = self.number(words[0], 0)
        if signed:
            fill = self.op(Op.ShiftRightArithmetic, words[-1], self.number(words[-1], 63))
        return [*words, *[fill] * (count - len(words))]

    # Sums, differences, products.

    def inverted(self, words: list[Value]) -> list[Value]:
        """All bits inverted."""
        return [self.op(Op.Not, word) for word in words]

    def negated(self, words: list[Value]) -> list[Value]:
        """0 minus these."""
        return self.difference([self.number(word, 0) for word in words], words)

    def sum(self, a: list[Value], b: list[Value]) -> list[Value]:
        """a + b."""
        out: list[Value] = []
        carry: Value | None = None
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            total = self.op(Op.IAdd, x, y)
            over: list[Value] = []
            is_last = k == len(a) - 1
            if not is_last:
                over.append(self.emit(Op.ULessThan, self.bool, [total, x]))
            if carry is not None:
                before, total = total, self.op(Op.IAdd, total, self.bit(carry, x))
                if not is_last:
                    over.append(self.emit(Op.ULessThan, self.bool, [total, before]))
            out.append(total)
            carry = self._either(over)
        return out

    def difference(self, a: list[Value], b: list[Value]) -> list[Value]:
        """a - b."""
        return self.with_borrow(a, b)[0]

    def with_borrow(self, a: list[Value], b: list[Value]) -> tuple[list[Value], Value]:
        """a - b, and whether a < b, both without sign."""
        out: list[Value] = []
        borrow: Value | None = None
        for x, y in zip(a, b, strict=True):
            over: list[Value] = [self.emit(Op.ULessThan, self.bool, [x, y])]
            rest = self.op(Op.ISub, x, y)
            if borrow is not None:
                one = self.bit(borrow, x)
                over.append(self.emit(Op.ULessThan, self.bool, [rest, one]))
                rest = self.op(Op.ISub, rest, one)
            out.append(rest)
            borrow = self._either(over)
        assert borrow is not None
        return out, borrow

    def _either(self, conditions: list[Value]) -> Value | None:
        if len(conditions) < 2:
            return conditions[0] if conditions else None
        return self.emit(Op.LogicalOr, self.bool, conditions)

    def product(self, a: list[Value], b: list[Value]) -> list[Value]:
        """The lowest words of a * b."""
        count = len(a)
        if count == 1:
            return [self.op(Op.IMul, a[0], b[0])]
        out: list[Value] = [self.number(a[0], 0)] * count
        for k, x in enumerate(a):
            # x times b, at word k: low halves, and high halves a word further.
            low: list[Value] = [self.op(Op.IMul, x, y) for y in b[: count - k]]
            high: list[Value] = [
                self.emit(Op.ExtInst, x.type, ["OpenCL.std", OpenCLStd.u_mul_hi, x, y])
                for y in b[: count - k - 1]
            ]
            row = self.sum(low, [self.number(x, 0), *high]) if high else low
            out = [*out[:k], *self.sum(out[k:], row)]
        return out

    # Comparisons.

    def compare(self, op: Op, a: list[Value], b: list[Value]) -> Value:
        """A comparison by one of SPIR-V's instructions."""
        if len(a) == 1:
            return self.emit(op, self.bool, [a[0], b[0]])
        if op in (Op.IEqual, Op.INotEqual):
            different: Value = self.number(a[0], 0)
            for x, y in zip(a, b, strict=True):
                different = self.op(Op.BitwiseOr, self.op(Op.BitwiseXor, x, y), different)
            return self.emit(op, self.bool, [different, self.number(a[0], 0)])
        strict, is_inverted = _STRICT[op]
        found: Value | None = None
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            one = strict if k == len(a) - 1 else _WITHOUT_SIGN.get(strict, strict)
            here = self.emit(one, self.bool, [x, y])
            if found is None:
                found = here
                continue
            equal = self.emit(Op.IEqual, self.bool, [x, y])
            below = self.emit(Op.LogicalAnd, self.bool, [equal, found])
            found = self.emit(Op.LogicalOr, self.bool, [here, below])
        assert found is not None
        return self.emit(Op.LogicalNot, self.bool, [found]) if is_inverted else found

    # Shifts.

    def shifted(self, op: Op, words: list[Value], amounts: list[Value]) -> list[Value]:
        """By the lowest word of an amount, which is below the number of bits."""
        amount = amounts[0]
        if len(words) == 1:
            if amount.type is not words[0].type:
                amount = self.emit(Op.UConvert, words[0].type, [amount])
            return [self.op(op, words[0], amount)]
        if amount.type.width != 64:
            amount = self.emit(Op.UConvert, self.types.int(64), [amount])
        fill: Value = self.number(amount, 0)
        if op is Op.ShiftRightArithmetic:
            fill = self.op(Op.ShiftRightArithmetic, words[-1], self.number(amount, 63))
        left = op is Op.ShiftLeftLogical
        # As words from the end that bits move away from: each moves towards higher places of the list.
        row = list(words) if left else words[::-1]
        distance = 1
        while distance < len(row):
            asked = self.op(Op.BitwiseAnd, amount, self.number(amount, 64 * distance))
            moves = self.emit(Op.INotEqual, self.bool, [asked, self.number(amount, 0)])
            moved = [fill] * distance + row[: len(row) - distance]
            row = [
                self.emit(Op.Select, kept.type, [moves, other, kept])
                for kept, other in zip(row, moved, strict=True)
            ]
            distance *= 2
        bits = self.op(Op.BitwiseAnd, amount, self.number(amount, 63))
        # From the word before: 64 - bits, in two steps, as bits may be 0.
        rest = self.op(Op.ISub, self.number(amount, 63), bits)
        one = self.number(amount, 1)
        away, back = Op.ShiftLeftLogical, Op.ShiftRightLogical
        if not left:
            away, back = back, away
        out: list[Value] = []
        for k, word in enumerate(row):
            before = row[k - 1] if k else fill
            given = self.op(back, self.op(back, before, one), rest)
            out.append(self.op(Op.BitwiseOr, self.op(away, word, bits), given))
        return out if left else out[::-1]

    # Quotients and remainders.

    def divided(self, op: Op, a: list[Value], b: list[Value]) -> list[Value]:
        """A quotient or remainder; with sign, operands have it in all their bits."""
        if len(a) == 1:
            return [self.op(op, a[0], b[0])]
        if op not in _SIGNED:
            return self.quotient(a, b, op is Op.UMod)
        quotient = self.quotient(self.magnitude(a), self.magnitude(b), op is not Op.SDiv)
        top_a, top_b = a[-1], b[-1]
        sign = self.op(Op.BitwiseXor, top_a, top_b) if op is Op.SDiv else top_a
        result = self._negated_if(self._is_negative(sign), quotient)
        if op is not Op.SMod:
            return result
        # Where the signs of remainder and divisor differ, and there is a remainder, the divisor is added.
        zero = [self.number(word, 0) for word in result]
        differs = self._is_negative(self.op(Op.BitwiseXor, top_a, top_b))
        is_some = self.compare(Op.INotEqual, result, zero)
        adds = self.emit(Op.LogicalAnd, self.bool, [differs, is_some])
        added: list[Value] = [
            self.emit(Op.Select, word.type, [adds, word, self.number(word, 0)]) for word in b
        ]
        return self.sum(result, added)

    def _is_negative(self, top: Value) -> Value:
        return self.emit(Op.SLessThan, self.bool, [top, self.number(top, 0)])

    def _negated_if(self, condition: Value, words: list[Value]) -> list[Value]:
        pairs = zip(self.negated(words), words, strict=True)
        return [self.emit(Op.Select, x.type, [condition, x, y]) for x, y in pairs]

    def magnitude(self, words: list[Value]) -> list[Value]:
        """Of words with a sign."""
        return self._negated_if(self._is_negative(words[-1]), words)

    def quotient(self, a: list[Value], b: list[Value], remainder: bool) -> list[Value]:
        """By a function, as it is long."""
        count = len(a)
        function = self.divisions.get(count)
        if function is None:
            function = self.divisions[count] = _division(self.types, count)
        both = self.emit(Op.FunctionCall, function.type.element, [function, *a, *b])
        first = count if remainder else 0
        return [self.emit(Op.CompositeExtract, a[0].type, [both, first + k]) for k in range(count)]

    # Bits.

    def bit_count(self, words: list[Value]) -> Value:
        """How many bits are set, in 32 bits."""
        word = self.types.int(32)
        total: Value | None = None
        for one in words:
            count: Value = self.op(Op.BitCount, one)
            if one.type is not word:
                count = self.emit(Op.UConvert, word, [count])
            total = count if total is None else self.op(Op.IAdd, total, count)
        assert total is not None
        return total

    def leading_zeros(self, words: list[Value], width: int) -> Value:
        """Zeros above the highest bit that is set, in 32 bits; words have nothing above the width."""
        above = len(words) * words[0].type.width - width
        zeros = self._zeros(words[::-1], OpenCLStd.clz)
        return self.op(Op.ISub, zeros, self.number(zeros, above))

    def trailing_zeros(self, words: list[Value], width: int) -> Value:
        """Zeros below the lowest bit that is set, the width where none is."""
        zeros = self._zeros(words, OpenCLStd.ctz)
        most = self.number(zeros, width)
        return self.emit(Op.ExtInst, zeros.type, ["OpenCL.std", OpenCLStd.u_min, zeros, most])

    def _zeros(self, words: list[Value], number: OpenCLStd) -> Value:
        """Of words in the order in which they are looked at."""
        to, total = self.types.int(32), None
        for k, one in reversed(list(enumerate(words))):
            count: Value = self.emit(Op.ExtInst, one.type, ["OpenCL.std", number, one])
            if one.type is not to:
                count = self.emit(Op.UConvert, to, [count])
            count = self.op(Op.IAdd, count, self.number(count, k * one.type.width)) if k else count
            if total is not None:
                is_zero = self.emit(Op.IEqual, self.bool, [one, self.number(one, 0)])
                count = self.emit(Op.Select, to, [is_zero, total, count])
            total = count
        assert total is not None
        return total

    # Floating-point numbers.

    def to_float(self, words: list[Value], width: int, type_: Type, signed: bool) -> Value:
        """The nearest number of a floating-point type."""
        if len(words) == 1:
            if signed:
                words = self.with_sign(words, width)
            return self.emit(Op.ConvertSToF if signed else Op.ConvertUToF, type_, words)
        negative = None
        if signed:
            words = self.with_sign(words, width)
            negative = self._is_negative(words[-1])
            words = self.magnitude(words)
        # The highest 64 bits, of which the lowest says that there are more: they are rounded but once.
        zeros = self.leading_zeros(words, 64 * len(words))
        low, *_ = self.resized([zeros], 32, 64, False)
        *rest, top = self.shifted(Op.ShiftLeftLogical, words, [low])
        more: Value = rest[0]
        for word in rest[1:]:
            more = self.op(Op.BitwiseOr, more, word)
        is_more = self.emit(Op.INotEqual, self.bool, [more, self.number(more, 0)])
        mantissa = self.op(Op.BitwiseOr, top, self.bit(is_more, top))
        # In double with half, whose range is less than that of 64 bits; half is then rounded from odd.
        wide = self.types.float(64) if type_.width == 16 else type_
        if type_.width == 16:
            kept = self.op(Op.BitwiseAnd, mantissa, self.number(mantissa, -1 << 24))
            lost = self.emit(Op.INotEqual, self.bool, [kept, mantissa])
            mantissa = self.op(Op.BitwiseOr, kept, self.emit(Op.Select, top.type, [
                lost, self.number(top, 1 << 24), self.number(top, 0)]))  # fmt: skip
        number: Value = self.emit(Op.ConvertUToF, wide, [mantissa])
        exponent = self.op(Op.ISub, self.number(zeros, 64 * (len(words) - 1)), zeros)
        number = self.emit(Op.ExtInst, wide, ["OpenCL.std", OpenCLStd.ldexp, number, exponent])
        if wide is not type_:
            number = self.emit(Op.FConvert, type_, [number])
        if negative is not None:
            minus = self.emit(Op.FNegate, type_, [number])
            number = self.emit(Op.Select, type_, [negative, minus, number])
        return number

    def of_float(self, value: Value, width: int, signed: bool) -> list[Value]:
        """The integer part of a number that the integer has room for."""
        word = self.types.int(word_width(width))
        if width <= 64:
            return [self.emit(Op.ConvertFToS if signed else Op.ConvertFToU, word, [value])]
        double = self.types.float(64)
        if value.type is not double:
            value = self.emit(Op.FConvert, double, [value])
        bits = self.emit(Op.Bitcast, word, [value])
        field = self.op(Op.BitwiseAnd, self.op(Op.ShiftRightLogical, bits, self.number(bits, 52)),
                        self.number(bits, 0x7FF))  # fmt: skip
        low = self.op(Op.BitwiseAnd, bits, self.number(bits, (1 << 52) - 1))
        mantissa = self.op(Op.BitwiseOr, low, self.number(bits, 1 << 52))
        start = self.number(bits, 1023 + 52)
        is_large = self.emit(Op.UGreaterThan, self.bool, [field, start])
        up = self.emit(Op.Select, word, [is_large, self.op(Op.ISub, field, start), self.number(bits, 0)])
        down = self.emit(Op.Select, word, [is_large, self.number(bits, 0), self.op(Op.ISub, start, field)])
        # Numbers below 1 are shifted out; by no more than there are bits.
        down = self.emit(Op.ExtInst, word, ["OpenCL.std", OpenCLStd.u_min, down, self.number(bits, 63)])
        whole = self.op(Op.ShiftRightLogical, mantissa, down)
        count = -(-width // 64)
        words = [whole, *[self.number(bits, 0)] * (count - 1)]
        words = self.shifted(Op.ShiftLeftLogical, words, [up])
        return self._negated_if(self._is_negative(bits), words) if signed else words


def _division(types: TypeTable, count: int) -> Function:
    """A function of a dividend and a divisor of so many words that returns quotient and remainder.

    Bit by bit: the dividend moves up into the remainder, the quotient into the dividend."""
    word = types.int(64)
    result = types.array(word, 2 * count)
    function = Function(types.function(result, (word,) * 2 * count), f"divide{64 * count}")
    function.arguments = [Argument(word, k) for k in range(2 * count)]
    dividend, divisor = function.arguments[:count], function.arguments[count:]
    entry, loop, done = Block(function, "entry"), Block(function, "loop"), Block(function, "done")
    function.blocks = [entry, loop, done]
    append(entry, Op.Branch, None, [loop])

    def emit(op: Op, type_: Type | None, operands: Sequence[Operand]) -> Instruction:
        return append(loop, op, type_, operands)

    words = Words(types, emit, {})
    zero, one = types.integer(64, 0), types.integer(64, 1)
    turn = emit(Op.Phi, word, [])
    quotient: list[Value] = [emit(Op.Phi, word, []) for _ in range(count)]
    remainder: list[Value] = [emit(Op.Phi, word, []) for _ in range(count)]
    both = [*quotient, *remainder]
    top = words.op(Op.ShiftRightLogical, both[-1], types.integer(64, 63))
    moved: list[Value] = []
    for k, one_word in enumerate(both):
        up: Value = words.op(Op.ShiftLeftLogical, one_word, one)
        if k:
            up = words.op(
                Op.BitwiseOr, up, words.op(Op.ShiftRightLogical, both[k - 1], types.integer(64, 63))
            )
        moved.append(up)
    rest, is_less = words.with_borrow(moved[count:], list(divisor))
    is_over = emit(Op.INotEqual, words.bool, [top, zero])
    is_enough = emit(Op.LogicalNot, words.bool, [is_less])
    goes = emit(Op.LogicalOr, words.bool, [is_over, is_enough])
    next_quotient = [words.op(Op.BitwiseOr, moved[0], words.bit(goes, moved[0])), *moved[1:count]]
    next_remainder = [emit(Op.Select, word, [goes, a, b]) for a, b in zip(rest, moved[count:], strict=True)]
    next_turn = words.op(Op.IAdd, turn, one)
    again = emit(Op.ULessThan, words.bool, [next_turn, types.integer(64, 64 * count)])
    emit(Op.BranchConditional, None, [again, loop, done])
    starts = [zero, *dividend, *[zero] * count]
    for phi, start, value in zip(
        (turn, *both), starts, (next_turn, *next_quotient, *next_remainder), strict=True
    ):
        phi.operands = [start, entry, value, loop]  # type: ignore[attr-defined]  # all are phis
    made = append(done, Op.CompositeConstruct, result, [*next_quotient, *next_remainder])
    append(done, Op.ReturnValue, None, [made])
    return function
