"""Reciprocals and roots of floats from the CPU's estimates: where its divider is slow, and for half_*.

An Intel core takes 20 times as long for 16 quotients of floats as for a multiplication, 23 for their roots
and 42 for the reciprocals of these, while an estimate of 14 bits (AVX-512) and a step of Newton's method take
8, 12 and 9; AMD's dividers are faster. A quotient in general takes 14 so, but the divider works while others
do: only reciprocals pay. OpenCL C allows 2.5 ulp for 1 / x, 3 for sqrt and 2 for rsqrt (section 7.4), unless
-cl-fp32-correctly-rounded-divide-sqrt asks for correctly rounded ones.

The step of a root adds the residual, x - s·s, which fma computes without error: what comes out is within
2^-28 before it is rounded. So errors are below 0.6 ulp, and roots that are floats are exact, as reciprocals
are. Zeros, infinities, NaN and subnormals are as IEEE 754 has them.
"""

from __future__ import annotations

from ..spirv.enums import Decoration
from .lanes import form
from .library_names import INSTRUCTIONS
from .registry import componentwise_extended
from .types import element_type

# Responses of vfixupimmps to a quiet NaN, signalling NaN, zero, 1, -infinity, infinity, negative and positive
# number, from the lowest four bits up: 0 keeps the first operand, 1 takes the second, 2 the second as a quiet
# NaN, 3 is NaN, 4 and 5 are the infinities.
FIRST_IF_NAN = 0x11111100
ROOT_OF_ZERO_AND_INFINITY = 0x00500100
LOGARITHMS = 0x03530422

_SIGN_OF_SOURCE, _ONE_TO_TWO = 0, 0


def pays(e, f, i) -> bool:
    """Whether an instruction, on operands of this form, is to be computed so."""
    options = e.options
    if not options.slow_division or options.exact_division or f.count * 32 < options.vector_bits:
        return False
    # LLVM has estimates of its own for programs that do not ask for special cases.
    return is_float(i) and "arcp" not in (flags := e.flags(i)) and "fast" not in flags and not is_strict(i)


def is_float(i) -> bool:
    return element_type(i.type).width == 32


def is_strict(i) -> bool:
    """The builtin library (builtins/strict.py), and whoever says so, counts on correct rounding."""
    mode = i.decorations.get(Decoration.FPFastMathMode)
    return mode is not None and not int(mode[0] if isinstance(mode, tuple) else mode)


def has_rough(e, f, i) -> bool:
    """Whether the CPU has estimates that do for half_* of vectors of this form."""
    return is_float(i) and "avx512vl" in e.options.features and f.count in (4, 8, 16, 32, 64)


def avx512(e, f, name: str, *operands: str, immediate: int | None = None, kept: bool = True) -> str:
    """An instruction of AVX-512 on vectors of floats, as many as it takes.

    operands: <n x float>, or <n x i32> of a table (what starts with "splat (i32"). immediate: after the
    operands. kept: the intrinsic has an operand for lanes outside of its mask.
    """
    if f.count > 16:
        half = form(f.count // 2)
        parts = []
        for first in (0, half.count):
            slices = [_slice(e, f, half, o, first) for o in operands]
            parts.append(avx512(e, half, name, *slices, immediate=immediate, kept=kept))
        every = ", ".join(f"i32 {k}" for k in range(f.count))
        t = half("float")
        return e.emit(f"shufflevector {t} {parts[0]}, {t} {parts[1]}, <{f.count} x i32> <{every}>")
    t, bits = f("float"), f.count * 32
    arguments = [f"{f('i32') if o.startswith('splat (i32') else t} {o}" for o in operands]
    if immediate is not None:
        arguments.append(f"i32 {immediate}")
    if kept:
        arguments.append(f"{t} zeroinitializer")
    arguments.append("i16 -1" if f.count == 16 else "i8 -1")
    is_estimate = name.endswith("14")
    if bits == 512 and not is_estimate:
        arguments.append("i32 4")  # rounds as usual
    prefix = "" if is_estimate else "mask."
    return e.emit(f"call {t} @llvm.x86.avx512.{prefix}{name}.ps.{bits}({', '.join(arguments)})")


def _slice(e, f, half, operand: str, first: int) -> str:
    if operand[0] != "%":
        return operand
    picked = ", ".join(f"i32 {k}" for k in range(first, first + half.count))
    t = f("float")
    return e.emit(f"shufflevector {t} {operand}, {t} poison, <{half.count} x i32> <{picked}>")


def fixup(e, f, first: str, second: str, table: int) -> str:
    """The first or second operand, or a constant, by what the second is."""
    return avx512(e, f, "fixupimm", first, second, f"splat (i32 {table})", immediate=0, kept=False)


def exponent(e, f, x: str) -> str:
    """floor(log2(|x|)); -infinity of 0, infinity of infinity."""
    return avx512(e, f, "getexp", x)


def significand(e, f, x: str) -> str:
    """x / 2^exponent(x); 1 of its sign of 0 and infinity."""
    return avx512(e, f, "getmant", x, immediate=_SIGN_OF_SOURCE << 2 | _ONE_TO_TWO)


def scale(e, f, x: str, power: str) -> str:
    """x·2^floor(power), rounded once."""
    return avx512(e, f, "scalef", x, power)


def rough_reciprocal(e, f, x: str) -> str:
    """1/x to 14 bits."""
    return avx512(e, f, "rcp14", x)


def rough_reciprocal_root(e, f, x: str) -> str:
    """1/sqrt(x) to 14 bits."""
    return avx512(e, f, "rsqrt14", x)


def rough_square_root(e, f, x: str) -> str:
    """sqrt(x) to 13 bits."""
    result = _times(e, f, x, rough_reciprocal_root(e, f, x))
    return fixup(e, f, result, x, ROOT_OF_ZERO_AND_INFINITY)


def _fma(e, f, a: str, b: str, c: str) -> str:
    return e.intrinsic("fma", f, "float", a, b, c)


def _minus(e, f, a: str) -> str:
    return e.emit(f"fneg {f('float')} {a}")


def _times(e, f, a: str, b: str) -> str:
    return e.emit(f"fmul {f('float')} {a}, {b}")


@componentwise_extended(*INSTRUCTIONS.values())
def library_instruction(e, f, i, *operands):
    """What functions of the library call, on vectors of any length."""
    if f.count >= 4:
        return _BY_NUMBER[i.operands[1]](e, f, *operands)
    wide, t = form(4), f("float")
    if f.count:
        every = ", ".join(f"i32 {min(k, f.count - 1)}" for k in range(4))
        operands = [
            e.emit(f"shufflevector {t} {o}, {t} poison, <4 x i32> <{every}>") if o[0] == "%" else o
            for o in operands
        ]
    else:
        operands = [e.splat(o, "float", wide) for o in operands]
    result = _BY_NUMBER[i.operands[1]](e, wide, *operands)
    if not f.count:
        return e.emit(f"extractelement {wide('float')} {result}, i32 0")
    every = ", ".join(f"i32 {k}" for k in range(f.count))
    t = wide("float")
    return e.emit(f"shufflevector {t} {result}, {t} poison, <{f.count} x i32> <{every}>")


def log_limit(e, f, result: str, x: str) -> str:
    """The first operand, or what the logarithm of a special x is."""
    return fixup(e, f, result, x, LOGARITHMS)


_BY_NUMBER = dict(zip(INSTRUCTIONS.values(), (exponent, significand, scale, log_limit), strict=True))


def reciprocal(e, f, x: str) -> str:
    """1 / x."""
    estimate = rough_reciprocal(e, f, x)
    residual = _fma(e, f, _minus(e, f, x), estimate, f.splat("float", "1.0"))
    return fixup(e, f, estimate, _fma(e, f, residual, estimate, estimate), FIRST_IF_NAN)


def square_root(e, f, x: str) -> str:
    """sqrt(x). Small numbers are scaled up: their residuals would be no floats."""
    t, bits = f("float"), f("i1")
    is_small = e.emit(f"fcmp olt {t} {x}, {f.splat('float', '0x39B0000000000000')}")  # 2^-100
    scaled = e.emit(f"select {bits} {is_small}, {t} {_times(e, f, x, _power(f, 64))}, {t} {x}")
    estimate = rough_reciprocal_root(e, f, scaled)
    root = _times(e, f, scaled, estimate)
    residual = _fma(e, f, _minus(e, f, root), root, scaled)
    result = _fma(e, f, residual, _times(e, f, estimate, f.splat("float", "0.5")), root)
    result = e.emit(f"select {bits} {is_small}, {t} {_times(e, f, result, _power(f, -32))}, {t} {result}")
    return fixup(e, f, result, x, ROOT_OF_ZERO_AND_INFINITY)


def _power(f, exponent_: int) -> str:
    return f.splat("float", f"0x{(exponent_ + 1023) << 52:016X}")


def reciprocal_square_root(e, f, x: str) -> str:
    """1 / sqrt(x), with an error of up to 1.3 ulp."""
    estimate = rough_reciprocal_root(e, f, x)
    root = _times(e, f, x, estimate)
    residual = _fma(e, f, _minus(e, f, root), estimate, f.splat("float", "1.0"))
    result = _fma(e, f, residual, _times(e, f, estimate, f.splat("float", "0.5")), estimate)
    return fixup(e, f, estimate, result, FIRST_IF_NAN)
