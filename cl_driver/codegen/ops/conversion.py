"""Conversion instructions (SPIR-V 1.6, section 3.49.11), with every rounding mode and saturation.

From floating point to integers: float_to_integer.py; the other way: integer_to_float.py.

LLVM converts to nearest even (and towards zero to integers) and nothing else; other roundings are made from
that result and an exact comparison, in integer arithmetic on the magnitude.
"""

from __future__ import annotations

from ...spirv.enums import Decoration, FPRoundingMode, Op
from ...spirv.module import Instruction, Kind, Type
from ..llvm.emitter import FunctionEmitter
from ..llvm.errors import CodegenError
from ..llvm.forms import Form
from ..llvm.registry import componentwise, lowers
from ..llvm.types import component_count, element_type, float_text, ir_type, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

RTE, RTZ, RTP, RTN = FPRoundingMode.RTE, FPRoundingMode.RTZ, FPRoundingMode.RTP, FPRoundingMode.RTN

Rounding: TypeAlias = "int | Literal['odd']"  # an FPRoundingMode, or inexact results get an odd last bit

MANTISSA_BITS = {16: 10, 32: 23, 64: 52}
FLOAT_NAMES = {16: "half", 32: "float", 64: "double"}
_ROUNDING_CONTROL: dict[Rounding, int] = {RTN: 1, RTP: 2, RTZ: 3}  # of x86's instructions


def rounding(i: Instruction, default: int) -> int:
    """The FPRoundingMode that an instruction is decorated with, else the default."""
    mode = i.decorations.get(Decoration.FPRoundingMode)
    if mode is None or mode is True:
        return default
    return int(mode[0] if isinstance(mode, tuple) else mode)


def _types(i: Instruction) -> tuple[Type, Type]:
    return element_type(i.operands[0].type), element_type(i.type)


# Integers.


@componentwise(Op.UConvert, Op.SConvert)
def integer_convert(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpUConvert, OpSConvert; with SaturatedConversion clamped to the result's range."""
    source, result = _types(i)
    if source.width == result.width:
        return a
    signed = i.op == Op.SConvert
    if Decoration.SaturatedConversion in i.decorations:
        return saturate(e, f, a, source.width, result.width, signed, signed)
    if source.width > result.width:
        return e.emit(f"trunc {f(ir_type(source))} {a} to {f(ir_type(result))}")
    return e.emit(f"{'sext' if signed else 'zext'} {f(ir_type(source))} {a} to {f(ir_type(result))}")


@componentwise(Op.SatConvertSToU, Op.SatConvertUToS)
def saturating_sign_change(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpSatConvertSToU, OpSatConvertUToS."""
    source, result = _types(i)
    from_signed = i.op == Op.SatConvertSToU
    return saturate(e, f, a, source.width, result.width, from_signed, not from_signed)


def saturate(
    e: FunctionEmitter, f: Form, a: str, source: int, result: int, from_signed: bool, to_signed: bool
) -> str:
    """Integers of `source` bits limited to the range of `result` bits, and converted to them."""
    element, t = f"i{source}", f(f"i{source}")
    low = -1 << result - 1 if to_signed else 0
    high = (1 << result - 1) - 1 if to_signed else (1 << result) - 1
    source_low = -1 << source - 1 if from_signed else 0
    source_high = (1 << source - 1) - 1 if from_signed else (1 << source) - 1
    if from_signed and low > source_low:
        a = e.intrinsic("smax", f, element, a, f.splat(element, str(low)))
    if high < source_high:
        a = e.intrinsic("smin" if from_signed else "umin", f, element, a, f.splat(element, str(high)))
    if source == result:
        return a
    if source > result:
        return e.emit(f"trunc {t} {a} to {f(f'i{result}')}")
    return e.emit(f"{'sext' if from_signed else 'zext'} {t} {a} to {f(f'i{result}')}")


# Floating point to floating point.


@componentwise(Op.FConvert)
def float_convert(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpFConvert."""
    source, result = _types(i)
    return convert_float(e, f, a, source.width, result.width, rounding(i, RTE))


def convert_float(e: FunctionEmitter, f: Form, a: str, source: int, result: int, mode: Rounding = RTE) -> str:
    """A floating-point number in another width."""
    if source == result:
        return a
    if source == 16:
        a = extend_half(e, f, a)
        return a if result == 32 else e.emit(f"fpext {f('float')} {a} to {f('double')}")
    if source < result:
        return e.emit(f"fpext {f(FLOAT_NAMES[source])} {a} to {f(FLOAT_NAMES[result])}")
    if result == 32:
        return _double_to_float(e, f, a, mode)
    if source == 64:
        a = _double_to_float(e, f, a, "odd")
    return truncate_to_half(e, f, a, mode)


def _double_to_float(e: FunctionEmitter, f: Form, a: str, mode: Rounding) -> str:
    """mode: an FPRoundingMode or "odd"."""
    nearest = e.emit(f"fptrunc {f('double')} {a} to {f('float')}")
    if mode == RTE:
        return nearest
    back = e.emit(f"fpext {f('float')} {nearest} to {f('double')}")
    return _redirect(e, f, a, back, nearest, "double", "float", mode)


def _redirect(
    e: FunctionEmitter, f: Form, a: str, back: str, nearest: str, source: str, result: str, mode: Rounding
) -> str:
    """Changes a number rounded to nearest into one rounded by another mode.

    back is `nearest` again in the source type. Magnitudes are stepped in their bit patterns: one below
    infinity is the largest finite number, one above zero the smallest.
    """
    width = {"half": 16, "float": 32, "double": 64}[result]
    bits = f"i{width}"
    i1, s = f("i1"), f(source)
    pattern = e.emit(f"bitcast {f(result)} {nearest} to {f(bits)}")
    magnitude = e.intrinsic("fabs", f, source, a)
    back_magnitude = e.intrinsic("fabs", f, source, back)
    above = e.emit(f"fcmp ogt {s} {back_magnitude}, {magnitude}")
    below = e.emit(f"fcmp olt {s} {back_magnitude}, {magnitude}")
    # First cut towards zero, then step away where the mode asks for it and the number is inexact.
    down = e.emit(f"sext {i1} {above} to {f(bits)}")
    cut = e.emit(f"add {f(bits)} {pattern}, {down}")
    if mode != RTZ:
        inexact = e.emit(f"or {i1} {above}, {below}")
        if mode == "odd":
            step = inexact
        else:
            zero = "zeroinitializer" if f.count else "0"
            negative = e.emit(f"icmp slt {f(bits)} {pattern}, {zero}")
            if mode == RTP:
                negative = e.emit(f"xor {i1} {negative}, {f.splat('i1', 'true')}")
            step = e.emit(f"and {i1} {inexact}, {negative}")
        step = e.emit(f"zext {i1} {step} to {f(bits)}")
        cut = e.emit(f"{'or' if mode == 'odd' else 'add'} {f(bits)} {cut}, {step}")
    return e.emit(f"bitcast {f(bits)} {cut} to {f(result)}")


def kept_wide(e: FunctionEmitter, f: Form, a: str) -> str:
    """A float that was a half, for what rounds it to an integral value.

    LLVM would round the half instead, which it does element by element: the fence keeps it from that.
    """
    return e.emit(f"call {f('float')} @llvm.arithmetic.fence.{f.suffix('f32')}({f('float')} {a})")


def extend_half(e: FunctionEmitter, f: Form, a: str) -> str:
    """half to float, exact."""
    if e.options.has_half_conversion:
        return e.emit(f"fpext {f('half')} {a} to {f('float')}")
    i32 = f("i32")
    bits = e.emit(f"bitcast {f('half')} {a} to {f('i16')}")
    wide = e.emit(f"zext {f('i16')} {bits} to {i32}")
    sign = e.emit(f"and {i32} {wide}, {f.splat('i32', '32768')}")
    sign = e.emit(f"shl {i32} {sign}, {f.splat('i32', '16')}")
    magnitude = e.emit(f"and {i32} {wide}, {f.splat('i32', '32767')}")
    shifted = e.emit(f"shl {i32} {magnitude}, {f.splat('i32', '13')}")
    # Finite numbers: the exponent is 112 too small, which a multiplication mends for subnormal ones too.
    number = e.emit(f"bitcast {i32} {shifted} to {f('float')}")
    scale = f.splat("float", float_text((127 + 112) << 23, 32))
    scaled = e.emit(f"fmul {f('float')} {number}, {scale}")
    scaled = e.emit(f"bitcast {f('float')} {scaled} to {i32}")
    special = e.emit(f"or {i32} {shifted}, {f.splat('i32', str(0xFF << 23))}")
    is_special = e.emit(f"icmp uge {i32} {magnitude}, {f.splat('i32', str(0x7C00))}")
    result = e.emit(f"select {f('i1')} {is_special}, {i32} {special}, {i32} {scaled}")
    result = e.emit(f"or {i32} {result}, {sign}")
    return e.emit(f"bitcast {i32} {result} to {f('float')}")


def truncate_to_half(e: FunctionEmitter, f: Form, a: str, mode: Rounding = RTE) -> str:
    """float to half."""
    if mode in _ROUNDING_CONTROL and e.options.has_directed_half and f.count & f.count - 1 == 0:
        return _directed_half(e, f, a, _ROUNDING_CONTROL[mode])
    if e.options.has_half_conversion:
        nearest = e.emit(f"fptrunc {f('float')} {a} to {f('half')}")
    else:
        nearest = _float_to_half_bits(e, f, a)
    if mode == RTE:
        return nearest
    back = extend_half(e, f, nearest)
    return _redirect(e, f, a, back, nearest, "float", "half", mode)


def _directed_half(e: FunctionEmitter, f: Form, a: str, control: int) -> str:
    """float to half by the instruction of F16C, which has the rounding mode in it."""
    size = 16 if f.count >= 16 and e.options.has_wide_half else 8 if f.count >= 8 else 4
    if not f.count:
        a = e.emit(f"insertelement <4 x float> poison, float {a}, i32 0")
    pieces = []
    for first in range(0, max(f.count, 1), size):
        piece = a
        if f.count not in (0, size):
            piece = _elements(e, "float", f.count, a, range(first, min(first + size, f.count)), size)
        if size == 16:
            operands = f"<16 x float> {piece}, i32 {control}, <16 x i16> zeroinitializer, i16 -1"
            pieces.append(e.emit(f"call <16 x i16> @llvm.x86.avx512.mask.vcvtps2ph.512({operands})"))
        else:
            operands = f"<{size} x float> {piece}, i32 {control}"
            pieces.append(e.emit(f"call <8 x i16> @llvm.x86.vcvtps2ph.{32 * size}({operands})"))
    if not f.count:
        bits = e.emit(f"extractelement <8 x i16> {pieces[0]}, i32 0")
        return e.emit(f"bitcast i16 {bits} to half")
    count = max(size, 8)
    while len(pieces) > 1:
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        pieces = [_elements(e, "i16", count, x, range(2 * count), 2 * count, y) for x, y in pairs]
        count *= 2
    bits = pieces[0]
    if count != f.count:
        bits = _elements(e, "i16", count, bits, range(f.count), f.count)
    return e.emit(f"bitcast {f('i16')} {bits} to {f('half')}")


def _elements(
    e: FunctionEmitter, element: str, count: int, a: str, which: range, size: int, b: str = "poison"
) -> str:
    """So many elements, beginning with these, of one or two vectors."""
    places = [f"i32 {k}" for k in which] + ["i32 poison"] * (size - len(which))
    t = f"<{count} x {element}>"
    return e.emit(f"shufflevector {t} {a}, {t} {b}, <{size} x i32> <{', '.join(places)}>")


def _float_to_half_bits(e: FunctionEmitter, f: Form, a: str) -> str:
    """float to half to nearest even, without instructions for it.

    Normal numbers: add half a unit less one, plus the last bit, and shift. Subnormal ones: adding 0.5 aligns
    the wanted bits at the end of the mantissa, rounded by the addition.
    """
    i32, i1 = f("i32"), f("i1")

    def c(value: int) -> str:
        return f.splat("i32", str(value))

    bits = e.emit(f"bitcast {f('float')} {a} to {i32}")
    sign = e.emit(f"lshr {i32} {bits}, {c(16)}")
    sign = e.emit(f"and {i32} {sign}, {c(0x8000)}")
    magnitude = e.emit(f"and {i32} {bits}, {c(0x7FFFFFFF)}")
    last = e.emit(f"lshr {i32} {magnitude}, {c(13)}")
    last = e.emit(f"and {i32} {last}, {c(1)}")
    normal = e.emit(f"add {i32} {magnitude}, {c(((15 - 127) << 23) + 0xFFF & 0xFFFFFFFF)}")
    normal = e.emit(f"add {i32} {normal}, {last}")
    normal = e.emit(f"lshr {i32} {normal}, {c(13)}")
    number = e.emit(f"bitcast {i32} {magnitude} to {f('float')}")
    half = f.splat("float", float_text(126 << 23, 32))
    small = e.emit(f"fadd {f('float')} {number}, {half}")
    small = e.emit(f"bitcast {f('float')} {small} to {i32}")
    small = e.emit(f"sub {i32} {small}, {c(126 << 23)}")
    is_small = e.emit(f"icmp ult {i32} {magnitude}, {c(113 << 23)}")
    result = e.emit(f"select {i1} {is_small}, {i32} {small}, {i32} {normal}")
    is_large = e.emit(f"icmp uge {i32} {magnitude}, {c((127 + 16) << 23)}")
    result = e.emit(f"select {i1} {is_large}, {i32} {c(0x7C00)}, {i32} {result}")
    is_nan = e.emit(f"icmp ugt {i32} {magnitude}, {c(0xFF << 23)}")
    payload = e.emit(f"lshr {i32} {magnitude}, {c(13)}")
    payload = e.emit(f"and {i32} {payload}, {c(0x3FF)}")
    payload = e.emit(f"or {i32} {payload}, {c(0x7E00)}")
    result = e.emit(f"select {i1} {is_nan}, {i32} {payload}, {i32} {result}")
    result = e.emit(f"or {i32} {result}, {sign}")
    result = e.emit(f"trunc {i32} {result} to {f('i16')}")
    return e.emit(f"bitcast {f('i16')} {result} to {f('half')}")


def fused_multiply_add_half(e: FunctionEmitter, f: Form, a: str, b: str, c: str) -> str:
    """fma of halves, rounded once.

    The product is exact in float. The sum is rounded to odd there by what the addition lost (Knuth's TwoSum),
    so that the rounding to half is that of the exact value (Boldo and Melquiond, 2008).
    """
    t, bits, i1 = f("float"), f("i32"), f("i1")
    a, b, c = (extend_half(e, f, x) for x in (a, b, c))
    product = e.emit(f"fmul {t} {a}, {b}")
    total = e.emit(f"fadd {t} {product}, {c}")
    added = e.emit(f"fsub {t} {total}, {product}")
    kept = e.emit(f"fsub {t} {total}, {added}")
    lost = e.emit(f"fsub {t} {product}, {kept}")
    lost_of_c = e.emit(f"fsub {t} {c}, {added}")
    lost = e.emit(f"fadd {t} {lost}, {lost_of_c}")
    zero = f.splat("float", float_text(0, 32))
    inexact = e.emit(f"fcmp one {t} {lost}, {zero}")
    # The magnitude shrinks where the loss has the other sign; an odd pattern is right already.
    pattern = e.emit(f"bitcast {t} {total} to {bits}")
    lost_pattern = e.emit(f"bitcast {t} {lost} to {bits}")
    signs = e.emit(f"xor {bits} {pattern}, {lost_pattern}")
    shrink = e.emit(f"ashr {bits} {signs}, {f.splat('i32', '31')}")
    cut = e.emit(f"add {bits} {pattern}, {shrink}")
    odd = e.emit(f"or {bits} {cut}, {f.splat('i32', '1')}")
    pattern = e.emit(f"select {i1} {inexact}, {bits} {odd}, {bits} {pattern}")
    return truncate_to_half(e, f, e.emit(f"bitcast {bits} {pattern} to {t}"))


@componentwise(Op.QuantizeToF16)
def quantize(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpQuantizeToF16: to half and back, with subnormal halves flushed to zero of the same sign."""
    half = truncate_to_half(e, f, a)
    back = extend_half(e, f, half)
    magnitude = e.intrinsic("fabs", f, "float", back)
    tiny = e.emit(f"fcmp olt {f('float')} {magnitude}, {f.splat('float', float_text(113 << 23, 32))}")
    zero = e.intrinsic("copysign", f, "float", f.splat("float", float_text(0, 32)), a)
    return e.emit(f"select {f('i1')} {tiny}, {f('float')} {zero}, {f('float')} {back}")


# Bits and pointers.


@lowers(Op.Bitcast)
def bitcast(e: FunctionEmitter, i: Instruction) -> None:
    """OpBitcast: reinterprets the bits; pointers stay what they are. CodegenError for types of different
    sizes."""
    value = i.operands[0]
    source, result = ir_type(value.type), ir_type(i.type)
    if source == result:
        e.define(i, e.operand(value))
        return
    source_kind, result_kind = element_type(value.type).kind, element_type(i.type).kind
    if source_kind is Kind.POINTER and result_kind is not Kind.POINTER:
        integer = e.emit(f"ptrtoint {e.typed(value)} to i64")
        e.define(i, integer if result == "i64" else e.emit(f"bitcast i64 {integer} to {result}"))
    elif result_kind is Kind.POINTER and source_kind is not Kind.POINTER:
        integer = e.operand(value) if source == "i64" else e.emit(f"bitcast {e.typed(value)} to i64")
        e.define(i, e.emit(f"inttoptr i64 {integer} to ptr"))
    elif component_count(value.type) * size_of(element_type(value.type)) != component_count(i.type) * size_of(
        element_type(i.type)
    ):
        raise CodegenError("OpBitcast between types of different sizes")
    else:
        e.define(i, e.emit(f"bitcast {e.typed(value)} to {result}"))


@componentwise(Op.ConvertPtrToU)
def pointer_to_integer(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpConvertPtrToU."""
    return e.emit(f"ptrtoint {f('ptr')} {a} to {f(ir_type(element_type(i.type)))}")


@componentwise(Op.ConvertUToPtr)
def integer_to_pointer(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """OpConvertUToPtr."""
    return e.emit(f"inttoptr {f(ir_type(element_type(i.operands[0].type)))} {a} to {f('ptr')}")
