"""Integer arithmetic in the shape analysis: strides and ranges of sums, products, shifts, extensions."""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import Decoration, Op
from ...spirv.module import Constant, Function, Instruction, Kind, Operand, Type, Value
from ..ir.instructions import ADDRESS, is_complement, users
from ..ir.layout import walk
from ..ir.shapes import UNIFORM, VARYING, ScalarStride, ShapeInfo, Stride
from .shape_lattice import UNKNOWN, Found, Range, Unknown

_NEAR = 1 << 16  # the largest stride, in elements, of indices of which nobody knows that they do not wrap
_STEPS, _STEP = 4, 1 << 27  # from an index to what is accessed: steps, with casts, and bytes of each
_IN_BOUNDS = (Op.InBoundsAccessChain, Op.InBoundsPtrAccessChain)


def _is_short_step(chain: Instruction) -> bool:
    """Whether an address is a constant beside another one, and _STEPS of them stay below 2^30 bytes."""
    found: list[tuple[Value, int]] = []
    return abs(walk(chain, found)) <= _STEP and not found


class IntegerRules:
    """Methods are rules: an instruction to its stride, with its range noted.

    The analysis that inherits them holds what was found so far.
    """

    info: ShapeInfo
    strides: dict[Value, Stride]  # the info's
    private: set[Value]  # the info's
    ranges: dict[Value, Range]
    function: Function
    used_by: dict[Value, list[Instruction]] | None  # once somebody has asked for it

    def stride_of(self, value: Value) -> Found:
        """The stride found so far; what is no instruction is uniform."""
        if isinstance(value, Instruction):
            return self.strides.get(value, UNKNOWN)
        return UNIFORM

    def scalar_stride_of(self, value: Value) -> ScalarStride | Unknown:
        """As stride_of, for a value that has no components."""
        if isinstance(value, Instruction):
            return self.strides.get(value, UNKNOWN)  # type: ignore[return-value]  # it has one stride
        return UNIFORM

    def range_of(self, value: Value) -> Range:
        """What is known of an integer: what a rule noted, or its type's bounds; of constants all."""
        known = self.ranges.get(value)
        if known is not None:
            return known
        width = value.type.width
        if isinstance(value, Constant):
            number = value.value or 0
            if number >> (width - 1):
                number -= 1 << width
            zeros = (number & -number).bit_length() - 1 if number else width
            return Range(number, number, zeros)
        exact = self.stride_of(value) in (UNIFORM, UNKNOWN)
        return Range(-(1 << (width - 1)), (1 << (width - 1)) - 1, 0, exact)

    def all_or_nothing(self, operands: Iterable[Operand]) -> Found:
        """Uniform if all operands are."""
        result: Found = UNIFORM
        for operand in operands:
            if isinstance(operand, Instruction):
                stride = self.strides.get(operand, UNKNOWN)
                if stride is UNKNOWN:
                    result = UNKNOWN if result == UNIFORM else result
                elif stride != UNIFORM or operand in self.private:
                    return VARYING
        return result

    def add(self, instruction: Instruction) -> Found:
        """OpIAdd."""
        a, b = instruction.operands
        return self.sum(instruction, a, b, 1)

    def subtract(self, instruction: Instruction) -> Found:
        """OpISub."""
        a, b = instruction.operands
        return self.sum(instruction, a, b, -1)

    def sum(self, instruction: Instruction, a: Value, b: Value, sign: int) -> Found:
        """a + sign·b, sign being 1 or -1: the strides add up, wrapped to the type."""
        if instruction.type.kind is not Kind.INT:
            return self.component_sum(a, b, sign)
        s, t = self.scalar_stride_of(a), self.scalar_stride_of(b)
        if s is VARYING or t is VARYING:
            return VARYING
        if s is UNKNOWN or t is UNKNOWN:
            return UNKNOWN
        x, y = self.range_of(a), self.range_of(b)
        low, high = (x.low + y.low, x.high + y.high) if sign > 0 else (x.low - y.high, x.high - y.low)
        stride = self.wrap(s + sign * t, instruction.type)
        self.bound(instruction, low, high, min(x.zeros, y.zeros), x.exact and y.exact, stride, x, y)
        if t == 0 and x.span and x.span <= 1 << y.zeros:
            self.keep_span(instruction, x.span)
        elif s == 0 and sign > 0 and y.span and y.span <= 1 << x.zeros:
            self.keep_span(instruction, y.span)
        return stride

    def keep_span(self, instruction: Instruction, span: int) -> None:
        """Adds the span to what was noted of a result."""
        known = self.ranges[instruction]
        if 0 < span < 1 << (instruction.type.width - 1):
            self.ranges[instruction] = Range(
                known.low, known.high, known.zeros, known.exact, known.assumed, span
            )

    def component_sum(self, a: Value, b: Value, sign: int) -> Found:
        """The same of vectors, component by component."""
        s, t = self.stride_of(a), self.stride_of(b)
        if s is UNKNOWN or t is UNKNOWN:
            return UNKNOWN
        if s is VARYING or t is VARYING:
            return VARYING
        count, element = a.type.count, a.type.element
        of_a = s if isinstance(s, tuple) else (s,) * count
        of_b = t if isinstance(t, tuple) else (t,) * count
        return tuple(
            VARYING if x is VARYING or y is VARYING else self.wrap(x + sign * y, element)
            for x, y in zip(of_a, of_b, strict=True)
        )

    def wrap(self, stride: int, type_: Type) -> int:
        """The stride as a signed number of the type."""
        stride &= (1 << type_.width) - 1
        return stride - (1 << type_.width) if stride >> (type_.width - 1) else stride

    def bound(
        self,
        instruction: Instruction,
        low: int,
        high: int,
        zeros: int,
        exact: bool,
        stride: int,
        *sources: Range,
    ) -> None:
        """Notes the range of a result, computed from others as if numbers were unlimited."""
        width = instruction.type.width
        least, most = -(1 << (width - 1)), (1 << (width - 1)) - 1
        if low < least or high > most:
            if Decoration.NoSignedWrap in instruction.decorations:
                low, high = max(low, least), min(high, most)
            else:
                low, high, exact = least, most, False
        assumed = any(r.assumed for r in sources)
        self.ranges[instruction] = Range(low, high, min(zeros, width), exact or stride == 0, assumed)

    def rely_on(self, known: Range) -> None:
        """Says that a stride holds because of a range."""
        if known.assumed:
            self.info.assumes_small_ids = True

    def multiply(self, instruction: Instruction) -> Found:
        """OpIMul: affine times a constant is affine."""
        a, b = instruction.operands
        if instruction.type.kind is not Kind.INT:
            return self.all_or_nothing(instruction.operands)
        s, t = self.scalar_stride_of(a), self.scalar_stride_of(b)
        if s is VARYING or t is VARYING:
            return VARYING
        if s is UNKNOWN or t is UNKNOWN:
            return UNKNOWN
        if s == 0 and t == 0:
            stride = 0
        elif t == 0 and isinstance(b, Constant):
            stride = self.wrap(s * self.range_of(b).low, instruction.type)
        elif s == 0 and isinstance(a, Constant):
            stride = self.wrap(t * self.range_of(a).low, instruction.type)
        else:
            return VARYING
        x, y = self.range_of(a), self.range_of(b)
        products = [x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high]
        self.bound(
            instruction, min(products), max(products), x.zeros + y.zeros, x.exact and y.exact, stride, x, y
        )
        for known, factor in ((x, y), (y, x)):
            if known.span and factor.low == factor.high > 0 and not factor.low & (factor.low - 1):
                self.keep_span(instruction, known.span * factor.low)
        return stride

    def complement(self, instruction: Instruction) -> Found:
        """~a is -1 - a: clang's way to write h - 1 - y begins with it."""
        a = instruction.operands[0]
        if not is_complement(instruction):
            return self.all_or_nothing(instruction.operands)
        s = self.scalar_stride_of(a)
        if s is VARYING or s is UNKNOWN:
            return s
        x, stride = self.range_of(a), self.wrap(-s, instruction.type)
        self.bound(instruction, -1 - x.high, -1 - x.low, 0, x.exact, stride, x)
        return stride

    def shift_left(self, instruction: Instruction) -> Found:
        """OpShiftLeftLogical by a constant multiplies the stride."""
        a, b = instruction.operands
        amount = self.constant_amount(instruction)
        if amount is None:
            return self.all_or_nothing(instruction.operands)
        s = self.scalar_stride_of(a)
        if s is VARYING or s is UNKNOWN:
            return s
        x = self.range_of(a)
        stride = self.wrap(s << amount, instruction.type)
        self.bound(instruction, x.low << amount, x.high << amount, x.zeros + amount, x.exact, stride, x)
        self.keep_span(instruction, x.span << amount)
        return stride

    def shift_right_arithmetic(self, instruction: Instruction) -> Found:
        """OpShiftRightArithmetic by a constant divides the stride if no bits that differ fall out."""
        amount = self.constant_amount(instruction)
        if amount is None:
            return self.all_or_nothing(instruction.operands)
        a = instruction.operands[0]
        s = self.scalar_stride_of(a)
        if s is VARYING or s is UNKNOWN:
            return s
        x = self.range_of(a)
        exact = x.exact and x.zeros >= amount
        if s and x.span and x.span <= 1 << amount:  # in all lanes the same bits are left
            self.ranges[instruction] = Range(x.low >> amount, x.high >> amount, 0, True, x.assumed)
            return UNIFORM
        if s and not exact:
            return VARYING
        if s:
            self.rely_on(x)
        stride = s >> amount
        self.bound(instruction, x.low >> amount, x.high >> amount, max(0, x.zeros - amount), True, stride, x)
        return stride

    def shift_right_logical(self, instruction: Instruction) -> Found:
        """OpShiftRightLogical: as the arithmetic one where the number is not negative."""
        amount = self.constant_amount(instruction)
        if amount is None or self.range_of(instruction.operands[0]).low < 0:
            return self.all_or_nothing(instruction.operands)
        return self.shift_right_arithmetic(instruction)

    def divide(self, instruction: Instruction) -> Found:
        """UDiv, SDiv: by a power of two that all bits that differ are below, the same in all lanes."""
        known = self.below_power(instruction)
        if known is None:
            return self.all_or_nothing(instruction.operands)
        most = known.high if known.low >= 0 else (1 << (instruction.type.width - 1)) - 1
        self.ranges[instruction] = Range(0, most, 0, True, known.assumed)
        return UNIFORM

    def remainder(self, instruction: Instruction) -> Found:
        """UMod, SMod, SRem: by such a power of two, which leaves the bits that differ."""
        known = self.below_power(instruction)
        if known is None:
            return self.all_or_nothing(instruction.operands)
        most = (instruction.operands[1].value or 0) - 1
        self.ranges[instruction] = Range(0, most, 0, True, known.assumed, known.span)
        return self.scalar_stride_of(instruction.operands[0])

    def below_power(self, instruction: Instruction) -> Range | None:
        """What is known of an integer of known span that is divided by a power of two not below that."""
        a, b = instruction.operands
        if instruction.type.kind is not Kind.INT or not isinstance(b, Constant):
            return None
        number, known = b.value or 0, self.ranges.get(a)
        if known is None or not known.span or type(self.strides.get(a)) is not int:
            return None
        if number & (number - 1) or not known.span <= number < 1 << (instruction.type.width - 1):
            return None
        if instruction.op not in (Op.UDiv, Op.UMod):
            if known.low < 0:
                return None
            self.rely_on(known)
        return known

    def constant_amount(self, instruction: Instruction) -> int | None:
        """By how much an integer is shifted, if that is a constant below its width."""
        if instruction.type.kind is not Kind.INT:
            return None
        b = instruction.operands[1]
        if not isinstance(b, Constant):
            return None
        amount = b.value or 0
        return amount if amount < instruction.type.width else None

    def bitwise_or(self, instruction: Instruction) -> Found:
        """Like a sum where the bits of a constant lie below the other operand's lowest."""
        a, b = instruction.operands
        if instruction.type.kind is Kind.INT and isinstance(b, Constant):
            x, y = self.range_of(a), self.range_of(b)
            if y.low >= 0 and y.low < (1 << x.zeros):
                stride = self.scalar_stride_of(a)
                if type(stride) is int:  # nothing is carried
                    assumed, zeros = x.assumed, min(x.zeros, y.zeros)
                    low, high = x.low + y.low, x.high + y.low
                    high = min(high, (1 << (instruction.type.width - 1)) - 1)
                    self.ranges[instruction] = Range(low, high, zeros, x.exact or stride == 0, assumed)
                return stride
        return self.all_or_nothing(instruction.operands)

    def bitwise_and(self, instruction: Instruction) -> Found:
        """OpBitwiseAnd: a mask bounds the result, and keeps the stride of what it changes nothing of."""
        if instruction.type.kind is Kind.INT:
            masked = self.mask_span(instruction)
            if masked is not UNKNOWN:
                return masked
            for operand in instruction.operands:
                if isinstance(operand, Constant) and self.range_of(operand).low >= 0:
                    x = self.range_of(operand)
                    if (kept := self.kept_by_mask(instruction, operand, x.high)) is not None:
                        return kept
                    self.ranges[instruction] = Range(0, x.high, x.zeros, False)
        stride = self.all_or_nothing(instruction.operands)
        if stride == UNIFORM and instruction in self.ranges:
            known = self.ranges[instruction]
            self.ranges[instruction] = Range(known.low, known.high, known.zeros, True)
        return stride

    def mask_span(self, instruction: Instruction) -> ScalarStride | Unknown:
        """The stride of what a mask takes all bits or none of that differ; UNKNOWN for others."""
        a, b = instruction.operands
        known, stride = self.ranges.get(a), self.strides.get(a)
        if not isinstance(b, Constant) or known is None or not known.span or type(stride) is not int:
            return UNKNOWN
        number, below = b.value or 0, known.span - 1
        is_negative = number >> (instruction.type.width - 1)
        takes_none, takes_all = not number & below, (number | (1 << known.zeros) - 1) & below == below
        if not (takes_none or takes_all) or (is_negative and known.low < 0):
            return UNKNOWN
        if is_negative:
            self.rely_on(known)
        high, assumed = number, False
        if known.low >= 0 and (is_negative or known.high < number):
            high, assumed = known.high, known.assumed
        zeros = (number & -number).bit_length() - 1 if number else instruction.type.width
        span = 0 if takes_none else known.span
        self.ranges[instruction] = Range(0, high, zeros, True, assumed, span)
        return stride if span else UNIFORM

    def kept_by_mask(self, instruction: Instruction, constant: Constant, mask: int) -> ScalarStride:
        """The stride of what has no bits outside of a mask: `(uint)` of a size_t becomes an `and`."""
        a, b = instruction.operands
        other = b if a is constant else a
        s, x = self.scalar_stride_of(other), self.range_of(other)
        if s is VARYING or s is UNKNOWN or mask & (mask + 1):
            return None
        if not (x.exact and 0 <= x.low <= x.high <= mask):
            return None
        self.rely_on(x)
        self.ranges[instruction] = x
        return s

    def convert(self, instruction: Instruction) -> Found:
        """UConvert, SConvert: truncation keeps strides, extension only if nothing wraps."""
        a = instruction.operands[0]
        if instruction.type.kind is not Kind.INT or Decoration.SaturatedConversion in instruction.decorations:
            return self.all_or_nothing(instruction.operands)
        s = self.scalar_stride_of(a)
        if s is VARYING or s is UNKNOWN:
            return s
        x = self.range_of(a)
        if instruction.type.width < a.type.width:
            stride = self.wrap(s, instruction.type)
            self.bound(instruction, x.low, x.high, x.zeros, x.exact, stride, x)
            self.keep_span(instruction, x.span)
            return stride
        signed = instruction.op is Op.SConvert
        exact = x.exact and (signed or x.low >= 0)
        if s and not exact and not (signed and 0 < s <= _NEAR and self.is_only_index(instruction)):
            return VARYING
        if s and exact:
            self.rely_on(x)
        low, high = x.low, x.high
        if not signed and low < 0:
            low, high = 0, (1 << a.type.width) - 1
        self.bound(instruction, low, high, x.zeros, True, s, x)
        self.keep_span(instruction, x.span)
        return s

    def is_only_index(self, instruction: Instruction) -> bool:
        """Whether an int becomes an index of 64 bits that is nothing but an index of in-bounds addresses, or
        of a place that serves accesses a constant beside it: for `a[i - 1]`, clang may make a place which it
        does not call in bounds, and a step from there.

        An int that wraps around on its way from one lane to the next would be 2^32 elements away from it, in
        the same object, and negative: 2^31 elements before what the pointer points to. Lanes that are not
        there, or do not come to the access, may compute what they like.
        """
        if instruction.type.width != 64 or instruction.operands[0].type.width != 32:
            return False
        if self.used_by is None:
            self.used_by = users(self.function)
        return all(
            user.operands[0] is not instruction
            and (user.op in _IN_BOUNDS or (user.op in ADDRESS and self.is_for_accesses(user)))
            for user in self.used_by.get(instruction, ())
        )

    def is_for_accesses(self, pointer: Instruction, steps: int = _STEPS) -> bool:
        """Whether a pointer serves loads and stores alone, there or a constant below 2^30 bytes beside."""
        assert self.used_by is not None  # is_only_index() has asked for it
        for user in self.used_by.get(pointer, ()):
            if user.op is Op.Load or (user.op is Op.Store and user.operands[1] is not pointer):
                continue
            is_cast = user.op is Op.Bitcast and user.type.kind is Kind.POINTER
            if not steps or not (is_cast or (user.op in ADDRESS and _is_short_step(user))):
                return False
            if not self.is_for_accesses(user, steps - 1):
                return False
        return True

    def negate(self, instruction: Instruction) -> Found:
        """OpSNegate."""
        s = self.scalar_stride_of(instruction.operands[0])
        if s is VARYING or s is UNKNOWN or instruction.type.kind is not Kind.INT:
            return s if s is UNKNOWN else self.all_or_nothing(instruction.operands)
        x = self.range_of(instruction.operands[0])
        stride = self.wrap(-s, instruction.type)
        self.bound(instruction, -x.high, -x.low, x.zeros, x.exact, stride, x)
        return stride
