"""Integer dot products (SPV_KHR_integer_dot_product, SPIR-V 1.6)."""

from __future__ import annotations

from collections.abc import Sequence

from ...passes.ir.instructions import int_value, is_constant_int
from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind, Value
from ..layout.lanes import LaneEmitter
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import SCALAR, Form, form
from ..llvm.registry import lowers, lowers_wide
from ..llvm.types import element_type
from .arithmetic import clamp_integer

_DOTS = {  # whether the components of the first and the second operand have a sign, with an accumulator
    Op.SDot: (True, True, False), Op.UDot: (False, False, False), Op.SUDot: (True, False, False),
    Op.SDotAccSat: (True, True, True), Op.UDotAccSat: (False, False, True),
    Op.SUDotAccSat: (True, False, True),
}  # fmt: skip
_WIDTHS = (16, 32, 64, 128, 256)
_MOST_TERMS = 64  # of a sum that is looked at
# By bits of a register: the instruction that adds up products of 16 bits in pairs, and the feature it is of.
_PAIRS = {
    128: ("sse4.1", "sse2.pmadd.wd"), 256: ("avx2", "avx2.pmadd.wd"), 512: ("avx512bw", "avx512.pmaddw.d.512")
}  # fmt: skip


@lowers(*_DOTS)
def integer_dot(e: FunctionEmitter, i: Instruction) -> None:
    """Of vectors of integers, or of 4 x 8 bits packed in 32, with a saturating accumulator.

    The sum wraps to the result's width, which is exact for AccSat: there the full sum is formed first.
    """
    accumulator = e.operand(i.operands[2]) if _DOTS[i.op][2] else None
    e.define(i, _result(e, SCALAR, i, [e.components(o) for o in i.operands[:2]], accumulator))


@lowers_wide(*_DOTS)
def wide_integer_dot(e: LaneEmitter, i: Instruction) -> None:
    """The same in each lane."""
    accumulator = e.leaf(i.operands[2]) if _DOTS[i.op][2] else None
    e.define_leaves(i, [_result(e, e.form, i, [e.leaves(o) for o in i.operands[:2]], accumulator)])


def _result(
    e: FunctionEmitter, f: Form, i: Instruction, operands: Sequence[list[str]], accumulator: str | None
) -> str:
    """operands: for each of the two its components, or the word that has four of them."""
    *signs, _ = _DOTS[i.op]
    signed, type_, width = signs[0], i.operands[0].type, i.type.width
    is_packed = type_.kind is not Kind.VECTOR
    source, count = _source(i)
    exact = 2 * source + (count - 1).bit_length() + 1  # bits that hold any sum of the products, and a sign
    fits = accumulator is None or exact <= width
    bits = 32 if is_packed else width if fits else next(n for n in _WIDTHS if n > max(exact, width))
    start = None  # what need not be added with saturation
    if fits and accumulator is not None and bits == width and _is_bounded(i):
        accumulator, start = None, accumulator
    if is_packed:
        total = _sum_of_words(e, f, i, operands, signs, start)
    else:
        total = _sum_of_products(e, f, operands, signs, source, bits)
        if start is not None:
            total = e.emit(f"add {f(f'i{bits}')} {total}, {start}")
    if fits or accumulator is None:
        total = e.resized(f, total, f"i{bits}", f"i{width}", signed)
        if accumulator is None:
            return total
        return e.intrinsic("sadd.sat" if signed else "uadd.sat", f, f"i{width}", total, accumulator)
    added = e.resized(f, accumulator, f"i{width}", f"i{bits}", signed)
    total = e.emit(f"add {f(f'i{bits}')} {total}, {added}")
    total = clamp_integer(e, f, f"i{bits}", total, width, signed)
    return e.resized(f, total, f"i{bits}", f"i{width}", signed)


def _source(i: Instruction) -> tuple[int, int]:
    """Bits of a component, and how many there are."""
    type_ = i.operands[0].type
    return (element_type(type_).width, type_.count) if type_.kind is Kind.VECTOR else (8, 4)


def _is_bounded(i: Instruction) -> bool:
    """Whether the sum of a dot product and its accumulator is a number of the result's type: where few dot
    products are added up, beginning with a constant."""
    signed = _DOTS[i.op][0]
    limit = _limit(i, signed, _MOST_TERMS)
    return limit is not None and limit < 1 << (i.type.width - signed)


def _limit(value: Value, signed: bool, most: int) -> int | None:
    """What the amount of a value does not exceed, if it is known."""
    if is_constant_int(value):
        number = int_value(value)
        return abs(number - (number >> value.type.width - 1 << value.type.width)) if signed else number
    if not most or not isinstance(value, Instruction) or value.op not in _DOTS:
        return None
    if _DOTS[value.op][0] != signed:
        return None
    first, second, adds = _DOTS[value.op]
    source, count = _source(value)
    own = count << (2 * source - first - second)
    before = _limit(value.operands[2], signed, most - 1) if adds else 0
    return None if before is None else before + own


def _sum_of_products(
    e: FunctionEmitter, f: Form, operands: Sequence[list[str]], signs: Sequence[bool], source: int, width: int
) -> str:
    """operands: the components of both, of `source` bits."""
    t, total = f(f"i{width}"), ""
    for pair in zip(*operands, strict=True):
        a, b = (
            e.resized(f, x, f"i{source}", f"i{width}", signed) for x, signed in zip(pair, signs, strict=True)
        )
        product = e.emit(f"mul {t} {a}, {b}")
        total = product if not total else e.emit(f"add {t} {total}, {product}")
    return total


def _sum_of_bytes(e: FunctionEmitter, f: Form, operands: Sequence[list[str]], signs: Sequence[bool]) -> str:
    """Of words."""
    t = f("i32")
    bytes_: tuple[list[str], list[str]] = [], []
    for found, (word,), signed in zip(bytes_, operands, signs, strict=True):
        for k in range(4):
            shifted = e.emit(f"shl {t} {word}, {f.splat('i32', str(24 - 8 * k))}")
            found.append(e.emit(f"{'ashr' if signed else 'lshr'} {t} {shifted}, {f.splat('i32', '24')}"))
    return _sum_of_products(e, f, bytes_, signs, 32, 32)


def _sum_of_words(
    e: FunctionEmitter, f: Form, i: Instruction, operands: Sequence[list[str]], signs: Sequence[bool],
    start: str | None,
) -> str:  # fmt: skip
    """Of words, and what it begins with."""
    if signs[0] and _has_byte_products(e, f):
        return _sum_by_byte_products(e, f, i, [word for (word,) in operands], signs[1], start)
    total = _sum_of_pairs(e, f, operands, signs) if f.count else _sum_of_bytes(e, f, operands, signs)
    return total if start is None else e.emit(f"add {f('i32')} {total}, {start}")


def _has_byte_products(e: FunctionEmitter, f: Form) -> bool:
    """Whether an instruction adds up products of bytes with and without a sign (VNNI)."""
    features, bits = e.options.features, 32 * f.count
    if bits > e.options.vector_bits or bits not in _PAIRS:
        return False
    if "avx512vnni" in features:
        return bits == 512 or "avx512vl" in features
    return bits < 512 and "avxvnni" in features


def _sum_by_byte_products(
    e: FunctionEmitter, f: Form, i: Instruction, words: list[str], both_signed: bool, start: str | None
) -> str:
    """The first operand has a sign. If the second has one, too, 128 is added to its bytes, and so 128 times
    the bytes of the other are subtracted, of which it is best if it is the same in many dot products."""
    a, b = words
    t, zero = f("i32"), f.splat("i32", "0")
    name = f"@llvm.x86.avx512.vpdpbusd.{32 * f.count}"
    e.module.declare(f"declare {t} {name}({t}, {t}, {t})")

    def products(total: str, unsigned: str, signed: str) -> str:
        return e.emit(f"call {t} {name}({t} {total}, {t} {unsigned}, {t} {signed})")

    if not both_signed:
        return products(start or zero, b, a)
    first, second = (getattr(o, "block", None) for o in i.operands[:2])
    if first is i.block and second is not i.block:
        a, b = b, a
    middle = f.splat("i32", str(-0x7F7F7F80))  # 0x80 in each byte
    total = products(start or zero, e.emit(f"xor {t} {b}, {middle}"), a)
    return e.emit(f"sub {t} {total}, {products(zero, middle, a)}")


def _sum_of_pairs(e: FunctionEmitter, f: Form, operands: Sequence[list[str]], signs: Sequence[bool]) -> str:
    """Of words: the even bytes and the odd ones as numbers of 16 bits, whose products are added in pairs, for
    which x86 has an instruction. LLVM sees that products of bytes fit 16 bits, and takes others."""
    half, whole = form(2 * f.count)("i16"), form(2 * f.count)("i32")
    eight = form(2 * f.count).splat("i16", "8")
    split = []
    for (word,), signed in zip(operands, signs, strict=True):
        shift = "ashr" if signed else "lshr"
        odd = e.emit(f"bitcast {f('i32')} {word} to {half}")
        even = e.emit(f"shl {half} {odd}, {eight}")
        pair = e.emit(f"{shift} {half} {even}, {eight}"), e.emit(f"{shift} {half} {odd}, {eight}")
        split.append(pair)
    bits = 32 * f.count
    if bits in _PAIRS and bits <= e.options.vector_bits and _PAIRS[bits][0] in e.options.features:
        name, t = _PAIRS[bits][1], f("i32")
        even, odd = (
            e.emit(f"call {t} @llvm.x86.{name}({half} {a}, {half} {b})") for a, b in zip(*split, strict=True)
        )
        return e.emit(f"add {t} {even}, {odd}")
    sums = []
    for pair in zip(*split, strict=True):
        a, b = (
            e.emit(f"{'sext' if signed else 'zext'} {half} {x} to {whole}")
            for x, signed in zip(pair, signs, strict=True)
        )
        product = e.emit(f"mul {whole} {a}, {b}")
        sides = [
            e.emit(
                f"shufflevector {whole} {product}, {whole} poison, "
                f"<{f.count} x i32> <{', '.join(f'i32 {k}' for k in range(side, 2 * f.count, 2))}>"
            )
            for side in (0, 1)
        ]
        sums.append(e.emit(f"add {f('i32')} {sides[0]}, {sides[1]}"))
    return e.emit(f"add {f('i32')} {sums[0]}, {sums[1]}")
