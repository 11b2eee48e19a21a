"""Integer dot products (SPV_KHR_integer_dot_product, SPIR-V 1.6)."""

from __future__ import annotations

from collections.abc import Sequence

from ...spirv.enums import Op
from ...spirv.module import Instruction, Kind
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
    source, count = (8, 4) if is_packed else (element_type(type_).width, type_.count)
    exact = 2 * source + (count - 1).bit_length() + 1  # bits that hold any sum of the products, and a sign
    fits = accumulator is None or exact <= width
    if is_packed:
        bits = 32
        total = _sum_of_pairs(e, f, operands, signs) if f.count else _sum_of_bytes(e, f, operands, signs)
    else:
        bits = width if fits else next(n for n in (16, 32, 64, 128, 256) if n > max(exact, width))
        total = _sum_of_products(e, f, operands, signs, source, bits)
    if fits or accumulator is None:
        total = e.resized(f, total, f"i{bits}", f"i{width}", signed)
        if accumulator is None:
            return total
        return e.intrinsic("sadd.sat" if signed else "uadd.sat", f, f"i{width}", total, accumulator)
    added = e.resized(f, accumulator, f"i{width}", f"i{bits}", signed)
    total = e.emit(f"add {f(f'i{bits}')} {total}, {added}")
    total = clamp_integer(e, f, f"i{bits}", total, width, signed)
    return e.resized(f, total, f"i{bits}", f"i{width}", signed)


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


def _sum_of_pairs(e: FunctionEmitter, f: Form, operands: Sequence[list[str]], signs: Sequence[bool]) -> str:
    """Of words: the even bytes and the odd ones as numbers of 16 bits, whose products are added in pairs, for
    which x86 has an instruction."""
    half, whole = form(2 * f.count)("i16"), form(2 * f.count)("i32")
    eight = form(2 * f.count).splat("i16", "8")
    split = []
    for (word,), signed in zip(operands, signs, strict=True):
        shift = "ashr" if signed else "lshr"
        odd = e.emit(f"bitcast {f('i32')} {word} to {half}")
        even = e.emit(f"shl {half} {odd}, {eight}")
        pair = e.emit(f"{shift} {half} {even}, {eight}"), e.emit(f"{shift} {half} {odd}, {eight}")
        split.append([e.emit(f"{'sext' if signed else 'zext'} {half} {x} to {whole}") for x in pair])
    sums = []
    for a, b in zip(*split, strict=True):
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
