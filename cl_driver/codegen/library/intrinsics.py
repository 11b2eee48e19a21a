"""Instructions that the builtin library calls by name (builtins/cl/common.h, scaled_*.cl).

Quotients and roots that need not be correctly rounded are made of the CPU's estimates where its divider is
slow (expand/reciprocals.py). The rest only functions for CPUs with AVX-512 call.
"""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.module import Instruction
from ..expand.reciprocals import avx512, elements, fixup, joined, pays_for
from ..llvm.emitter import FunctionEmitter
from ..llvm.forms import Form, form
from ..llvm.registry import componentwise_extended
from ..llvm.types import element_type, ir_type, is_register
from .names import INSTRUCTION_NAMES, INSTRUCTIONS

LOGARITHMS = 0x03530422  # for vfixupimm: see expand/reciprocals.py
_SIGN_OF_SOURCE, _ONE_TO_TWO = 0, 0
_ONE, _HALF = "1.0", "0.5"
_LARGE = "0x5FF0000000000000"  # 2^512


@componentwise_extended(*sorted(set(INSTRUCTIONS.values())))
def library_instruction(e: FunctionEmitter, f: Form, i: Instruction, *operands: str) -> str:
    """What functions of the library call, on vectors of any length."""
    name = INSTRUCTION_NAMES[i.operands[1] - 0x10000]
    element = ir_type(element_type(i.type))
    if name in ("divide", "root"):
        return _divide(e, f, element, *operands) if name == "divide" else _root(e, f, element, *operands)
    lower = _LOWERINGS[name]
    if f.count >= 4:
        return lower(e, f, element, *operands)
    wide, t = form(4), f(element)
    if f.count:
        every = ", ".join(f"i32 {min(k, f.count - 1)}" for k in range(4))
        given = [
            e.emit(f"shufflevector {t} {o}, {t} poison, <4 x i32> <{every}>") if is_register(o) else o
            for o in operands
        ]
    else:
        given = [e.splat(o, element, wide) for o in operands]
    result, t = lower(e, wide, element, *given), wide(element)
    if not f.count:
        return e.emit(f"extractelement {t} {result}, i32 0")
    every = ", ".join(f"i32 {k}" for k in range(f.count))
    return e.emit(f"shufflevector {t} {result}, {t} poison, <{f.count} x i32> <{every}>")


def _exponent(e: FunctionEmitter, f: Form, element: str, x: str) -> str:
    """floor(log2(|x|)); -infinity of 0, infinity of infinity."""
    return avx512(e, f, "getexp", x, element=element)


def _significand(e: FunctionEmitter, f: Form, element: str, x: str) -> str:
    """x / 2^exponent(x); 1 of its sign of 0 and infinity."""
    return avx512(e, f, "getmant", x, immediate=_SIGN_OF_SOURCE << 2 | _ONE_TO_TWO, element=element)


def _scale(e: FunctionEmitter, f: Form, element: str, x: str, power: str) -> str:
    """x·2^floor(power), rounded once."""
    return avx512(e, f, "scalef", x, power, element=element)


def _log_limit(e: FunctionEmitter, f: Form, element: str, result: str, x: str) -> str:
    """The first operand, or what the logarithm of a special x is."""
    return fixup(e, f, result, x, LOGARITHMS, element)


def _reciprocal14(e: FunctionEmitter, f: Form, element: str, x: str) -> str:
    """1/x to 14 bits."""
    return avx512(e, f, "rcp14", x, element=element)


def _reciprocal_root14(e: FunctionEmitter, f: Form, element: str, x: str) -> str:
    """1/sqrt(x) to 14 bits."""
    return avx512(e, f, "rsqrt14", x, element=element)


def _rest(e: FunctionEmitter, f: Form, element: str, x: str) -> str:
    """x less the nearest integer; 0 of infinity."""
    return avx512(e, f, "reduce", x, immediate=0, element=element)


def _lookup(e: FunctionEmitter, f: Form, element: str, index: str, *table: str) -> str:
    """The entry, of 16 doubles or 32 floats, whose number is in the low bits of the index."""
    width = 32 if element == "float" else 64
    if f.count * width > 512:
        half, halves = form(f.count // 2), []
        for first in (0, half.count):
            numbers = elements(e, f, half, index, first, element)
            halves.append(_lookup(e, half, element, numbers, *table))
        low, high = halves
        return joined(e, half, low, high, element)
    entries, t, integers = [_scalar(entry) for entry in table], f(element), f(f"i{width}")
    numbers = e.emit(f"bitcast {t} {index} to {integers}")
    # As many entries at a time as two vectors hold: of an index that repeats its elements, to fill a longer
    # vector, LLVM 22 makes something else.
    step = 2 * f.count
    found = [
        _permuted(e, f, element, numbers, entries[at : at + step]) for at in range(0, len(entries), step)
    ]
    while len(found) > 1:
        bit = e.emit(f"and {integers} {numbers}, {f.splat(f'i{width}', str(step))}")
        is_low = e.emit(f"icmp eq {integers} {bit}, zeroinitializer")
        found = [
            e.emit(f"select {f('i1')} {is_low}, {t} {low}, {t} {high}")
            for low, high in zip(found[::2], found[1::2], strict=True)
        ]
        step *= 2
    return found[0]


def _scalar(operand: str) -> str:
    """The typed literal of a constant in all elements."""
    return operand.removeprefix("splat (").removesuffix(")")


def _permuted(e: FunctionEmitter, f: Form, element: str, numbers: str, entries: list[str]) -> str:
    """Of entries, twice as many as elements, those that the low bits of the numbers tell."""
    t, letter, width = f(element), *(("s", 32) if element == "float" else ("d", 64))
    low, high = (f"{t} <{', '.join(half)}>" for half in (entries[: f.count], entries[f.count :]))
    name = f"@llvm.x86.avx512.vpermi2var.p{letter}.{width * f.count}"
    return e.emit(f"call {t} {name}({low}, {f(f'i{width}')} {numbers}, {high})")


_LOWERINGS: dict[str, Callable[..., str]] = {
    "exponent": _exponent, "significand": _significand, "scale": _scale, "log_limit": _log_limit,
    "reciprocal14": _reciprocal14, "reciprocal_root14": _reciprocal_root14, "lookup": _lookup, "rest": _rest,
}  # fmt: skip


def _divide(e: FunctionEmitter, f: Form, element: str, a: str, b: str) -> str:
    """a / b, an ulp off at most, for results and b that are neither near overflow nor subnormal, b not 0."""
    t = f(element)
    if not pays_for(e, f, element):
        return e.emit(f"fdiv {t} {a}, {b}")

    def fma(x: str, y: str, z: str) -> str:
        return e.intrinsic("fma", f, element, x, y, z)

    minus, y = e.emit(f"fneg {t} {b}"), _reciprocal14(e, f, element, b)
    for _ in range(1 if element == "float" else 2):
        y = fma(fma(minus, y, f.splat(element, _ONE)), y, y)
    if a == f.splat(element, _ONE):
        return y
    quotient = e.emit(f"fmul {t} {a}, {y}")
    return fma(fma(minus, quotient, a), y, quotient)


def _root(e: FunctionEmitter, f: Form, element: str, x: str) -> str:
    """sqrt(x), an ulp off at most, for x that is 0 or neither near overflow nor subnormal."""
    if not pays_for(e, f, element):
        return e.intrinsic("sqrt", f, element, x)
    t = f(element)

    def fma(a: str, b: str, c: str) -> str:
        return e.intrinsic("fma", f, element, a, b, c)

    estimate = _reciprocal_root14(e, f, element, x)
    if element == "double":  # infinite for 0, whose root is 0 by any finite estimate
        finite = f.splat(element, _LARGE)
        above = e.emit(f"fcmp ogt {t} {estimate}, {finite}")
        estimate = e.emit(f"select {f('i1')} {above}, {t} {finite}, {t} {estimate}")
    root = e.emit(f"fmul {t} {x}, {estimate}")
    half = e.emit(f"fmul {t} {estimate}, {f.splat(element, _HALF)}")
    if element == "double":
        rest = fma(e.emit(f"fneg {t} {root}"), half, f.splat(element, _HALF))
        root, half = fma(root, rest, root), fma(half, rest, half)
    return fma(fma(e.emit(f"fneg {t} {root}"), root, x), half, root)
