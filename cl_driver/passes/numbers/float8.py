"""Numbers of 8 bits (SPV_EXT_float8) with 4 bits of exponent and 3 of mantissa, or with 5 and 2: conversions,
by way of float.

Every such number is a float. What is converted to them is rounded once, to the nearest even number: integers
become floats without rounding, since those beyond 2^17 are as much out of range as 2^17, and doubles are cut
to the bits of a float, of which the last is set if anything is lost.

"Out-of-range values and infinity are converted to largest representable finite value with a matching sign if
the conversion is decorated with SaturatedToLargestFloat8NormalConversionEXT, otherwise they are converted to
NaN if the destination type uses the Float8E4M3EXT FP encoding or infinity with a matching sign".
"""

from __future__ import annotations

from collections.abc import Iterable

from ...records import record
from ...spirv.enums import Decoration, FPEncoding, Op
from ...spirv.module import NO_DECORATIONS, Function, Instruction, Kind, Type, Value
from ...spirv.types import TypeTable
from .encoded_floats import FROM_FLOAT, TO_FLOAT, EncodedFloats, lower_encoded

_MOST_EXACT = 17  # bits of integers that are converted as they are; larger ones are out of range
_MAGNITUDE, _INFINITY, _NAN = 0x7FFFFFFF, 0x7F800000, 0x7FC00000  # of floats
_EXPONENT, _BIAS = 23, 127  # of floats: where it begins, and what stands for 2^0
_LOST, _BIAS_64 = 29, 1023  # of doubles: bits of the mantissa that a float has not
_HALF_EXPONENT = 10  # where that of a half begins


@record()
class _Format:
    """mantissa: its bits; bias: the exponent that stands for 2^0; largest: the bits of the largest finite
    number; beyond: those of what out-of-range values become; nan: those of a NaN."""

    mantissa: int
    bias: int
    largest: int
    beyond: int
    nan: int


_FORMATS = {
    FPEncoding.Float8E4M3EXT: _Format(3, 7, 0x7E, 0x7F, 0x7F),
    FPEncoding.Float8E5M2EXT: _Format(2, 15, 0x7B, 0x7C, 0x7E),
}


def lower_float8(functions: Iterable[Function], types: TypeTable) -> None:
    """Changes functions. SpirvError for instructions that the types are not for."""
    lower_encoded(_Lowering, functions, types)


class _Lowering(EncodedFloats):
    ENCODINGS = frozenset(_FORMATS)
    NAME = "float8"

    def lower(self, i: Instruction) -> None:
        is_result = self.is_encoded(i)
        saturates = Decoration.SaturatedToLargestFloat8NormalConversionEXT in i.decorations
        if i.op in FROM_FLOAT and not is_result:
            i.operands = [self.extended(i.operands[0])]
            return
        if i.op not in TO_FLOAT and i.op is not Op.FConvert:
            raise self.refusal(i)
        (value,) = i.operands
        if i.op is Op.FConvert and self.is_encoded(value):
            value = self.extended(value)
            if not is_result:
                i.op, i.operands = (Op.CopyObject if value.type is i.type else Op.FConvert), [value]
                return
        bits = self.integer_bits(i, value) if i.op in TO_FLOAT else self.float_bits(value)
        i.op, i.operands = Op.Bitcast, [self.encoded(bits, _format(i.type), saturates)]
        i.decorations = NO_DECORATIONS

    # To float.

    def extended(self, value: Value) -> Value:
        """The number as a float, by way of half: one with 5 bits of exponent is the upper half of a half."""
        type_ = value.type
        form = _format(type_)
        byte, word = self.like(type_, self.types.int(8)), self.like(type_, self.types.int(16))
        half, float_ = self.like(type_, self.types.float(16)), self.float(type_)
        bits = self.emit(Op.Bitcast, byte, [value])
        shift = self.number(word, _HALF_EXPONENT - form.mantissa)
        if form.bias == 15:
            wide = self.emit(Op.UConvert, word, [bits])
            wide = self.emit(Op.ShiftLeftLogical, word, [wide, shift])
            wide = self.emit(Op.Bitcast, half, [wide])
            return self.emit(Op.FConvert, float_, [wide])
        # The exponent has a bit less, which is between it and the sign, and another bias.
        wide = self.emit(Op.SConvert, word, [bits])
        wide = self.emit(Op.ShiftLeftLogical, word, [wide, shift])
        wide = self.emit(Op.BitwiseAnd, word, [wide, self.number(word, ~(1 << 14))])
        wide = self.emit(Op.Bitcast, half, [wide])
        wide = self.emit(Op.FConvert, float_, [wide])
        scale = self.number(float_, (_BIAS + 15 - form.bias) << _EXPONENT)
        wide = self.emit(Op.FMul, float_, [wide, scale])
        magnitude = self.emit(Op.BitwiseAnd, byte, [bits, self.number(byte, 0x7F)])
        is_nan = self.compare(Op.IEqual, magnitude, form.nan)
        return self.emit(Op.Select, float_, [is_nan, self.number(float_, _NAN), wide])

    # From other numbers: the bits of a float that is rounded as they are.

    def integer_bits(self, i: Instruction, value: Value) -> Value:
        type_ = value.type
        scalar = type_.element if type_.kind is Kind.VECTOR else type_
        is_signed = i.op is Op.ConvertSToF
        if scalar.width > _MOST_EXACT:
            bound = 1 << _MOST_EXACT
            value = self.least(Op.SLessThan if is_signed else Op.ULessThan, value, bound)
            if is_signed:
                value = self.least(Op.SGreaterThan, value, -bound)
        made = self.emit(i.op, self.float(type_), [value])
        return self.emit(Op.Bitcast, self.like(type_, self.types.int(32)), [made])

    def float_bits(self, value: Value) -> Value:
        type_ = value.type
        scalar = type_.element if type_.kind is Kind.VECTOR else type_
        if scalar.width == 64:
            return self.double_bits(value)
        if scalar is not self.types.float(32):
            value = self.emit(Op.FConvert, self.float(type_), [value])
        return self.emit(Op.Bitcast, self.like(type_, self.types.int(32)), [value])

    def double_bits(self, value: Value) -> Value:
        long, word = (self.like(value.type, self.types.int(width)) for width in (64, 32))
        bits = self.emit(Op.Bitcast, long, [value])
        magnitude = self.emit(Op.BitwiseAnd, long, [bits, self.number(long, (1 << 63) - 1)])
        upper = self.shifted(magnitude, _LOST)
        lost = self.emit(Op.BitwiseAnd, long, [magnitude, self.number(long, (1 << _LOST) - 1)])
        is_exact = self.compare(Op.IEqual, lost, 0)
        last = self.emit(Op.Select, long, [is_exact, self.number(long, 0), self.number(long, 1)])
        upper = self.emit(Op.BitwiseOr, long, [upper, last])
        rebias = (_BIAS_64 - _BIAS) << _EXPONENT
        made: Value = self.emit(Op.ISub, long, [upper, self.number(long, rebias)])
        made = self.least(Op.ULessThan, made, _INFINITY)
        is_small = self.compare(Op.ULessThan, upper, rebias + (1 << _EXPONENT))
        made = self.emit(Op.Select, long, [is_small, self.number(long, 0), made])
        is_nan = self.compare(Op.UGreaterThan, magnitude, 0x7FF << 52)
        made = self.emit(Op.Select, long, [is_nan, self.number(long, _NAN), made])
        sign = self.emit(Op.BitwiseAnd, long, [self.shifted(bits, 32), self.number(long, 1 << 31)])
        made = self.emit(Op.BitwiseOr, long, [made, sign])
        return self.emit(Op.UConvert, word, [made])

    def encoded(self, bits: Value, form: _Format, saturates: bool) -> Value:
        """The 8 bits of the nearest number."""
        word = bits.type
        float_ = self.float(word)
        cut = _EXPONENT - form.mantissa
        first_normal = _BIAS - form.bias + 1  # exponent
        sign = self.emit(Op.BitwiseAnd, word, [self.shifted(bits, 24), self.number(word, 0x80)])
        magnitude = self.emit(Op.BitwiseAnd, word, [bits, self.number(word, _MAGNITUDE)])
        # A carry out of the mantissa is right: it goes to the exponent.
        odd = self.emit(Op.BitwiseAnd, word, [self.shifted(magnitude, cut), self.number(word, 1)])
        normal: Value = self.emit(Op.IAdd, word, [magnitude, self.number(word, (1 << (cut - 1)) - 1)])
        normal = self.shifted(self.emit(Op.IAdd, word, [normal, odd]), cut)
        bias = self.number(word, (_BIAS - form.bias) << form.mantissa)
        normal = self.emit(Op.ISub, word, [normal, bias])
        # Added to this, the last bit of a float is worth as much as that of a subnormal number.
        large = (first_normal + cut) << _EXPONENT
        small = self.emit(Op.Bitcast, float_, [magnitude])
        small = self.emit(Op.FAdd, float_, [small, self.number(float_, large)])
        small = self.emit(Op.Bitcast, word, [small])
        small = self.emit(Op.ISub, word, [small, self.number(word, large)])
        is_small = self.compare(Op.ULessThan, magnitude, first_normal << _EXPONENT)
        made: Value = self.emit(Op.Select, word, [is_small, small, normal])
        end = form.largest if saturates else form.beyond
        made = self.least(Op.ULessThan, made, end)
        if end != form.nan:
            is_nan = self.compare(Op.UGreaterThan, magnitude, _INFINITY)
            made = self.emit(Op.Select, word, [is_nan, self.number(word, form.nan), made])
        made = self.emit(Op.BitwiseOr, word, [made, sign])
        return self.emit(Op.UConvert, self.like(word, self.types.int(8)), [made])

    def shifted(self, value: Value, count: int) -> Value:
        return self.with_number(Op.ShiftRightLogical, value, count)


def _format(type_: Type) -> _Format:
    scalar = type_.element if type_.kind is Kind.VECTOR else type_
    return _FORMATS[scalar.operands[0]]
