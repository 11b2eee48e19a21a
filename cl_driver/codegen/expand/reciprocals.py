"""Reciprocals and roots of floats from the CPU's estimates: where its divider is slow, and for half_*.

An Intel core divides vectors of 512 bits many times slower than it multiplies them. An estimate of 14 bits
(AVX-512) and a step of Newton's method are faster for reciprocals, roots and reciprocals of roots, but not
for quotients in general, as the divider works while other units do. AMD's dividers are faster: on Zen 4 only
the reciprocals of roots pay (python -m tests.bench.builtins --filter rsqrt). OpenCL C allows 2.5 ulp for
1 / x, 3 for sqrt and 2 for rsqrt (section 7.4), unless -cl-fp32-correctly-rounded-divide-sqrt asks for
correctly rounded quotients and roots.

The step of a root adds the residual, x - s·s, which fma computes without error: what comes out is within
2^-28 before it is rounded. So errors are below 0.6 ulp, and roots that are floats are exact, as reciprocals
are. Zeros, infinities, NaN and subnormals are as IEEE 754 has them.

Roots of doubles must be correctly rounded. The divider takes 18 cycles for 8, two steps and the residual 11,
and it can divide meanwhile. What is known then is the root with an error of 2^-49 units of the last place, so
how it is rounded is certain unless it is that close to the middle of two doubles: such numbers, and those
whose residual may be inexact, are left to the divider.
"""

from __future__ import annotations

import struct

from ...spirv.enums import Decoration
from ...spirv.module import Instruction
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import Form, form
from ..llvm.types import element_type, is_register

# Responses of vfixupimmps to a quiet NaN, signalling NaN, zero, 1, -infinity, infinity, negative and positive
# number, from the lowest four bits up: 0 keeps the first operand, 1 takes the second, 2 the second as a quiet
# NaN, 3 is NaN, 4 and 5 are the infinities.
FIRST_IF_NAN = 0x11111100
SECOND_IF_NAN = 0x00000022
ROOT_OF_ZERO_AND_INFINITY = 0x00500100

_HALF_TO_ONE = 2  # of vgetmantps, with the sign of the source


def pays(e: FunctionEmitter, f: Form, i: Instruction) -> bool:
    """Whether an instruction, on operands of this form, is to be computed so."""
    # For programs that do not ask for special cases there are shorter ways.
    return pays_for_root(e, f, i) and not {"arcp", "fast"} & {*e.flags(i).split()}


def pays_for_quotient(e: FunctionEmitter, f: Form, i: Instruction) -> bool:
    """The same for a / b of finite numbers, by programs that may have it as a times 1 / b."""
    flags = {*e.flags(i).split()}
    return pays_for_root(e, f, i) and ("fast" in flags or {"arcp", "nnan", "ninf"} <= flags)


def pays_for_root(e: FunctionEmitter, f: Form, i: Instruction) -> bool:
    """The same for roots, under any flags: LLVM's estimates miss roots that are floats, and programs cut
    these to integers."""
    options = e.options
    if not options.slow_division or options.exact_division or f.count * 32 < options.vector_bits:
        return False
    return not options.aarch64 and is_float(i) and not is_strict(i)


def pays_f64(e: FunctionEmitter, f: Form, i: Instruction) -> bool:
    """The same for roots of doubles."""
    options = e.options
    if not options.slow_division or f.count * 64 < options.vector_bits or f.count % 8 or options.aarch64:
        return False
    return element_type(i.type).width == 64 and "afn" not in (flags := e.flags(i)) and "fast" not in flags


def pays_for_reciprocal_root(e: FunctionEmitter, f: Form, i: Instruction) -> bool:
    """The same for 1 / sqrt(x), on any x86 with estimates: none divides and takes roots as fast."""
    options, width = e.options, element_type(i.type).width
    if width == 16 or f.count & f.count - 1:
        return False
    if options.aarch64:  # LLVM takes no estimates there, under any flags
        return options.slow_division and width == 32 and f.count * width >= options.vector_bits
    if f.count * width < max(options.vector_bits, 512) or "avx512vl" not in options.features:
        return False
    return not {"arcp", "afn", "fast"} & {*e.flags(i).split()}


def pays_for(e: FunctionEmitter, f: Form, element: str) -> bool:
    """Whether they pay, as such vectors, for quotients and roots that need not be correctly rounded."""
    bits = f.count * (32 if element == "float" else 64)
    return e.options.slow_division and bits >= e.options.vector_bits and "avx512vl" in e.options.features


def is_float(i: Instruction) -> bool:
    """Whether an instruction computes floats."""
    return element_type(i.type).width == 32


def is_strict(i: Instruction) -> bool:
    """The builtin library (builtins/strict.py), and whoever says so, counts on correct rounding."""
    mode = i.decorations.get(Decoration.FPFastMathMode)
    return mode is not None and not int(mode[0] if isinstance(mode, tuple) else mode)


def has_rough(e: FunctionEmitter, f: Form, i: Instruction) -> bool:
    """Whether the CPU has estimates that do for half_* of vectors of this form."""
    return is_float(i) and "avx512vl" in e.options.features and f.count in (4, 8, 16, 32, 64)


# Approximations to 14 bits.
_ESTIMATES = frozenset(("rcp14", "rsqrt14"))


def avx512(
    e: FunctionEmitter,
    f: Form,
    name: str,
    *operands: str,
    table: str | None = None,
    immediate: int | None = None,
    kept: bool = True,
    element: str = "float",
) -> str:
    """An instruction of AVX-512 on vectors of floats or doubles, as many as it takes.

    operands: <n x element>. table: <n x integer>, a constant, after the operands. immediate: after these.
    kept: the intrinsic has an operand for lanes outside of its mask.
    """
    width, letter = (32, "s") if element == "float" else (64, "d")
    if f.count * width > 512:
        half = form(f.count // 2)
        halves = []
        for first in (0, half.count):
            slices = [elements(e, f, half, o, first, element) for o in operands]
            found = avx512(
                e, half, name, *slices, table=table, immediate=immediate, kept=kept, element=element
            )
            halves.append(found)
        low, high = halves
        return joined(e, half, low, high, element)
    t, bits = f(element), f.count * width
    arguments = [f"{t} {operand}" for operand in operands]
    if table is not None:
        arguments.append(f"{f(f'i{width}')} {table}")
    if immediate is not None:
        arguments.append(f"i32 {immediate}")
    if kept:
        arguments.append(f"{t} zeroinitializer")
    arguments.append("i16 -1" if f.count == 16 else "i8 -1")
    is_estimate = name in _ESTIMATES
    if bits == 512 and not is_estimate:
        arguments.append("i32 4")  # rounds as usual
    prefix = "" if is_estimate else "mask."
    return e.emit(f"call {t} @llvm.x86.avx512.{prefix}{name}.p{letter}.{bits}({', '.join(arguments)})")


def elements(e: FunctionEmitter, f: Form, half: Form, operand: str, first: int, element: str) -> str:
    """As many of a vector's elements as a shorter form has; a constant as it is."""
    if not is_register(operand):
        return operand
    picked = ", ".join(f"i32 {k}" for k in range(first, first + half.count))
    t = f(element)
    return e.emit(f"shufflevector {t} {operand}, {t} poison, <{half.count} x i32> <{picked}>")


def joined(e: FunctionEmitter, half: Form, low: str, high: str, element: str) -> str:
    """Two vectors of a form as one."""
    every, t = ", ".join(f"i32 {k}" for k in range(2 * half.count)), half(element)
    return e.emit(f"shufflevector {t} {low}, {t} {high}, <{2 * half.count} x i32> <{every}>")


def fixup(e: FunctionEmitter, f: Form, first: str, second: str, table: int, element: str = "float") -> str:
    """The first or second operand, or a constant, by what the second is."""
    tables = f"splat ({'i32' if element == 'float' else 'i64'} {table})"
    return avx512(e, f, "fixupimm", first, second, table=tables, immediate=0, kept=False, element=element)


def rough_reciprocal(e: FunctionEmitter, f: Form, x: str) -> str:
    """1/x to 14 bits."""
    return avx512(e, f, "rcp14", x)


def rough_quotient(e: FunctionEmitter, f: Form, a: str, b: str) -> str:
    """a/b to 14 bits: a is divided by b's power of two, then by a number from 1/2 to 1, lest anything
    overflow or lose bits on the way. The instructions make of zeros and infinities what they must be; but
    scaled by an infinity a NaN would be a number."""
    divisor = avx512(e, f, "getmant", b, immediate=_HALF_TO_ONE)
    power = e.emit(f"fsub {f('float')} {f.splat('float', '-1.0')}, {avx512(e, f, 'getexp', b)}")
    result = _times(e, f, avx512(e, f, "scalef", a, power), rough_reciprocal(e, f, divisor))
    return fixup(e, f, result, a, SECOND_IF_NAN)


def rough_reciprocal_root(e: FunctionEmitter, f: Form, x: str) -> str:
    """1/sqrt(x) to 14 bits."""
    return avx512(e, f, "rsqrt14", x)


def rough_square_root(e: FunctionEmitter, f: Form, x: str) -> str:
    """sqrt(x) to 13 bits."""
    result = _times(e, f, x, rough_reciprocal_root(e, f, x))
    return fixup(e, f, result, x, ROOT_OF_ZERO_AND_INFINITY)


def _fma(e: FunctionEmitter, f: Form, a: str, b: str, c: str) -> str:
    return e.intrinsic("fma", f, "float", a, b, c)


def _minus(e: FunctionEmitter, f: Form, a: str) -> str:
    return e.emit(f"fneg {f('float')} {a}")


def _times(e: FunctionEmitter, f: Form, a: str, b: str) -> str:
    return e.emit(f"fmul {f('float')} {a}, {b}")


def reciprocal(e: FunctionEmitter, f: Form, x: str) -> str:
    """1 / x."""
    estimate = rough_reciprocal(e, f, x)
    residual = _fma(e, f, _minus(e, f, x), estimate, f.splat("float", "1.0"))
    return fixup(e, f, estimate, _fma(e, f, residual, estimate, estimate), FIRST_IF_NAN)


def quotient(e: FunctionEmitter, f: Form, a: str, b: str) -> str:
    """a / b of finite numbers whose reciprocals are no subnormals; exact where it is a float."""
    estimate = rough_reciprocal(e, f, b)
    rough = _times(e, f, a, estimate)
    residual = _fma(e, f, _minus(e, f, b), rough, a)
    return _fma(e, f, residual, estimate, rough)


def square_root(e: FunctionEmitter, f: Form, x: str) -> str:
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


def _power(f: Form, exponent_: int) -> str:
    return f.splat("float", f"0x{(exponent_ + 1023) << 52:016X}")


def reciprocal_square_root(e: FunctionEmitter, f: Form, x: str) -> str:
    """1 / sqrt(x), with an error of up to 1.3 ulp."""
    estimate = rough_reciprocal_root(e, f, x)
    root = _times(e, f, x, estimate)
    residual = _fma(e, f, _minus(e, f, root), estimate, f.splat("float", "1.0"))
    result = _fma(e, f, residual, _times(e, f, estimate, f.splat("float", "0.5")), estimate)
    return fixup(e, f, estimate, result, FIRST_IF_NAN)


_LEAST, _MOST = 2.0**-900, 2.0**1000  # doubles whose root is computed so; also 0
# Of the power of two below a root: how far from it may be what was rounded off.
_CERTAIN = 2.0**-53 * (1 - 2.0**-40)


def square_root_f64(e: FunctionEmitter, f: Form, x: str) -> str:
    """sqrt(x) of doubles, correctly rounded."""
    t, bits, integers = f("double"), f("i1"), f("i64")

    def constant(value: float) -> str:
        return f.splat("double", f"0x{_bits(value):016X}")

    def fma(a: str, b: str, c: str) -> str:
        return e.intrinsic("fma", f, "double", a, b, c)

    def op(name: str, a: str, b: str) -> str:
        return e.emit(f"{name} {t} {a}, {b}")

    estimate = reciprocal_root_f64(e, f, x)
    root, half = op("fmul", x, estimate), op("fmul", estimate, constant(0.5))
    for _ in range(2):
        rest = fma(e.emit(f"fneg {t} {root}"), half, constant(0.5))
        root, half = fma(root, rest, root), fma(half, rest, half)
    step = op("fmul", fma(e.emit(f"fneg {t} {root}"), root, x), half)
    result = op("fadd", root, step)
    rounded_off = op("fadd", op("fsub", root, result), step)
    # Of the next smaller double, as the doubles below a power of two are closer to one another.
    below = e.emit(f"add {integers} {e.emit(f'bitcast {t} {result} to {integers}')}, {f.splat('i64', '-1')}")
    power = e.emit(f"and {integers} {below}, {f.splat('i64', str(0x7FF << 52))}")
    limit = op("fmul", e.emit(f"bitcast {integers} {power} to {t}"), constant(_CERTAIN))
    is_certain = e.emit(f"fcmp olt {t} {e.intrinsic('fabs', f, 'double', rounded_off)}, {limit}")
    least, most = _bits(_LEAST), _bits(_MOST)
    above = e.emit(f"sub {integers} {e.emit(f'bitcast {t} {x} to {integers}')}, {f.splat('i64', str(least))}")
    is_usual = e.emit(f"icmp ult {integers} {above}, {f.splat('i64', str(most - least))}")
    is_done = e.emit(f"and {bits} {is_usual}, {is_certain}")
    result = e.emit(f"select {bits} {is_done}, {t} {result}, {t} {x}")
    is_zero = e.emit(f"fcmp oeq {t} {x}, {f.splat('double', '0.0')}")
    is_done = e.emit(f"freeze {bits} {e.emit(f'or {bits} {is_done}, {is_zero}')}")
    all_done = e.emit(f"icmp eq i{f.count} {e.emit(f'bitcast {bits} {is_done} to i{f.count}')}, -1")
    before, exact, after = e.label, e.new_label("exact"), e.new_label("rounded")
    e.emit_void(f"br i1 {all_done}, label %{after}, label %{exact}")
    e.begin_block(exact)
    other = e.intrinsic("sqrt", f, "double", x)
    e.emit_void(f"br label %{after}")
    e.begin_block(after)
    return e.emit(f"phi {t} [ {result}, %{before} ], [ {other}, %{exact} ]")


def _bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little", signed=True)


def reciprocal_root_f64(e: FunctionEmitter, f: Form, x: str) -> str:
    """1/sqrt(x) of doubles to 14 bits."""
    return avx512(e, f, "rsqrt14", x, element="double")


# sqrt(1 / (1 - e)) = 1 + e / 2 + 3/8 e^2 + 5/16 e^3 + 35/128 e^4 ..., |e| < 2^-13 as an estimate leaves it:
# the factor of e^2 takes in what it can of the last term, and 2^-56 remains.
_SQUARE, _CUBE = 0.375 + 35 / 128 * (8**0.5 - 2) * 2.0**-26, 0.3125


def reciprocal_square_root_f64(e: FunctionEmitter, f: Form, x: str) -> str:
    """1 / sqrt(x) of doubles, with an error of up to 1.1 ulp: one step of the fourth order."""
    y = reciprocal_root_f64(e, f, x)

    def fma(a: str, b: str, c: str) -> str:
        return e.intrinsic("fma", f, "double", a, b, c)

    def constant(value: float) -> str:
        return f.splat("double", f"0x{_bits(value):016X}")

    t = f("double")
    root = e.emit(f"fmul {t} {x}, {y}")
    rest = fma(e.emit(f"fneg {t} {root}"), y, constant(1.0))
    factor = fma(fma(rest, constant(_CUBE), constant(_SQUARE)), rest, constant(0.5))
    result = fma(e.emit(f"fmul {t} {y}, {rest}"), factor, y)
    return fixup(e, f, y, result, FIRST_IF_NAN, "double")
