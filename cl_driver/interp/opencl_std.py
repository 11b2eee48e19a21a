"""OpenCL.std instructions, by Python's math: exact for integers, within a rounding or two for floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from ..spirv.enums import OpenCLStd
from ..spirv.module import Instruction, Kind, Type
from . import numbers as n
from . import real
from .core import Rule, Scalar, each, scalar_of
from .memory import Datum

if TYPE_CHECKING:
    from .machine import Machine

RULES: dict[int, Rule] = {}  # by the instruction's number

_PI = math.pi


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a function for these instructions of OpenCL.std."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[OpenCLStd[name]] = function
        return function

    return register


_FLOAT_UNARY: dict[str, Scalar] = {
    "acos": math.acos, "acosh": math.acosh, "acospi": lambda x: math.acos(x) / _PI, "asin": math.asin,
    "asinh": math.asinh, "asinpi": lambda x: math.asin(x) / _PI, "atan": math.atan,
    "atanh": lambda x: math.copysign(n.INFINITY, x) if abs(x) == 1 else math.atanh(x),
    "atanpi": lambda x: math.atan(x) / _PI,
    "cbrt": math.cbrt, "ceil": real.whole(math.ceil), "cos": math.cos,
    "cosh": math.cosh, "cospi": real.cospi, "erfc": math.erfc, "erf": math.erf, "exp": real.exp(math.exp),
    "exp2": real.exp(lambda x: math.pow(2.0, x)), "exp10": real.exp(lambda x: math.pow(10.0, x)),
    "expm1": lambda x: -1.0 if x == -n.INFINITY else math.expm1(x), "fabs": abs,
    "floor": real.whole(math.floor),
    "lgamma": real.log_gamma, "log": real.log(math.log), "log2": real.log(math.log2),
    "log10": real.log(math.log10),
    "log1p": lambda x: -n.INFINITY if x == -1 else math.log1p(x), "logb": real.logb, "rint": real.rint,
    "round": real.round, "rsqrt": lambda x: math.copysign(n.INFINITY, x) if x == 0 else 1.0 / math.sqrt(x),
    "sin": math.sin, "sinh": lambda x: math.copysign(n.INFINITY, x) if abs(x) > 711 else math.sinh(x),
    "sinpi": real.sinpi, "sqrt": math.sqrt, "tan": math.tan, "tanh": math.tanh,
    "tanpi": real.tanpi, "tgamma": real.gamma,
    "trunc": real.whole(math.trunc), "degrees": lambda x: x * (180.0 / _PI),
    "radians": lambda x: x * (_PI / 180.0),
    "half_recip": lambda x: n.divide(1.0, x), "native_recip": lambda x: n.divide(1.0, x),
}  # fmt: skip

_FLOAT_MORE: dict[str, Scalar] = {
    "atan2": math.atan2, "atan2pi": lambda y, x: math.atan2(y, x) / _PI,
    "fdim": lambda x, y: x - y if x > y else 0.0, "fmod": n.remainder,
    "powr": real.powr, "remainder": math.remainder, "half_divide": n.divide, "native_divide": n.divide,
    "mad": lambda a, b, c: a * b + c, "mix": lambda x, y, a: x + (y - x) * a,
    "fmax_common": lambda x, y: y if x < y else x, "fmin_common": lambda x, y: y if y < x else x,
}  # fmt: skip


def _smoothstep(low: float, high: float, x: float) -> float:
    t = min(max(n.divide(x - low, high - low), 0.0), 1.0)
    return t * t * (3 - 2 * t)


_FLOAT_MORE["smoothstep"] = _smoothstep

for _name in ("cos", "exp", "exp2", "exp10", "log", "log2", "log10", "rsqrt", "sin", "sqrt", "tan"):
    _FLOAT_UNARY["half_" + _name] = _FLOAT_UNARY["native_" + _name] = _FLOAT_UNARY[_name]
_FLOAT_MORE["half_powr"] = _FLOAT_MORE["native_powr"] = _FLOAT_MORE["powr"]


def _register_float(name: str, function: Scalar) -> None:
    guarded = real.guarded(function)

    @rule(name)
    def run(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
        width = scalar_of(instruction.type).width
        return each(lambda *v: n.to_width(guarded(*v), width), instruction.type, *operands)


for _name, _function in (_FLOAT_UNARY | _FLOAT_MORE).items():
    _register_float(_name, _function)


@rule("copysign")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return each(math.copysign, instruction.type, *operands)


@rule("fma")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width = scalar_of(instruction.type).width
    return each(lambda a, b, c: n.fma(a, b, c, width), instruction.type, *operands)


def _number_first(choose: Scalar) -> Scalar:
    """fmin, fmax: of a NaN and a number, the number."""
    return lambda x, y: y if math.isnan(x) else x if math.isnan(y) else choose(x, y)


@rule("fmax")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return each(_number_first(lambda x, y: y if x < y else x), instruction.type, *operands)


@rule("fmin")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return each(_number_first(lambda x, y: y if y < x else x), instruction.type, *operands)


@rule("maxmag", "minmag")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    larger = instruction.operands[1] is OpenCLStd.maxmag

    def choose(x: float, y: float) -> Datum:
        if abs(x) < abs(y) or abs(x) > abs(y):
            return x if (abs(x) > abs(y)) == larger else y
        return _number_first(max if larger else min)(x, y)

    return each(choose, instruction.type, *operands)


@rule("fclamp")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    def clamp(x: float, low: float, high: float) -> Datum:
        return _number_first(min)(_number_first(max)(x, low), high)

    return each(clamp, instruction.type, *operands)


@rule("step")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return each(lambda edge, x: 0.0 if x < edge else 1.0, instruction.type, *operands)


@rule("sign")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    def sign(x: float) -> float:
        return 0.0 if math.isnan(x) else x if x == 0 else math.copysign(1.0, x)

    return each(sign, instruction.type, *operands)


@rule("hypot")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width = scalar_of(instruction.type).width
    return each(lambda x, y: n.to_width(math.hypot(x, y), width), instruction.type, *operands)


@rule("nan")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return each(lambda bits: n.NAN, instruction.type, *operands)


@rule("nextafter")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width = scalar_of(instruction.type).width

    def following(x: float, y: float) -> float:
        if math.isnan(x) or math.isnan(y):
            return n.NAN
        if x == y:
            return y
        if x == 0:
            return math.copysign(n.float_from_bits(1, width), y)
        bits = n.float_to_bits(x, width)
        return n.float_from_bits(bits + 1 if (x < y) == (x > 0) else bits - 1, width)

    return each(following, instruction.type, *operands)


def _int_operand(value: Datum, type_: Type, i: int) -> int:
    """Component i of an int operand that may be scalar beside a vector."""
    return n.signed(value[i] if isinstance(value, tuple) else value, scalar_of(type_).width)


@rule("pow")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width, guarded = scalar_of(instruction.type).width, real.guarded(real.power)

    def power(x: float, y: float) -> float:
        return 1.0 if y == 0 or x == 1 else n.to_width(guarded(x, y), width)

    return each(power, instruction.type, *operands)


def _with_int(function: Scalar, of_zero: float | None = None) -> Rule:
    """function(x, k); of_zero: what it gives where k is 0, even of NaN."""

    def run(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
        x, k = operands
        type_, k_type = instruction.type, instruction.operands[3].type
        width = scalar_of(type_).width
        finite = real.guarded(function)

        def guarded(x: float, k: int) -> float:
            return of_zero if k == 0 and of_zero is not None else finite(x, k)

        if type_.kind is not Kind.VECTOR:
            return n.to_width(guarded(x, _int_operand(k, k_type, 0)), width)
        return tuple(n.to_width(guarded(v, _int_operand(k, k_type, i)), width) for i, v in enumerate(x))

    return run


def _ldexp(x: float, k: int) -> float:
    try:
        return x if math.isinf(x) else math.ldexp(x, max(-5000, min(k, 5000)))
    except OverflowError:
        return math.copysign(n.INFINITY, x)


RULES[OpenCLStd.ldexp] = _with_int(_ldexp)
RULES[OpenCLStd.pown] = _with_int(lambda x, k: real.power(x, float(k)), of_zero=1.0)
RULES[OpenCLStd.rootn] = _with_int(real.root)


@rule("ilogb")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    def exponent(x: float) -> int:
        if x == 0:
            return -(1 << 31)
        if math.isnan(x) or math.isinf(x):
            return (1 << 31) - 1
        return math.frexp(x)[1] - 1

    return each(lambda x: n.mask(exponent(x), 32), instruction.type, *operands)


# Results through a pointer: the second is stored as the type that the pointer points to.


def _two_results(function: Scalar) -> Rule:
    """function(width, ...) gives both."""

    def run(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
        *values, pointer = operands
        type_ = instruction.type
        pointee = instruction.operands[-1].type.element
        width = scalar_of(type_).width
        if type_.kind is Kind.VECTOR:
            pairs = [function(width, *v) for v in zip(*values, strict=True)]
            first, second = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
        else:
            first, second = function(width, *values)
        machine.memory.store(pointee, pointer, second)
        return first

    return run


def _fract(width: int, x: float) -> tuple[float, float]:
    if math.isnan(x):
        return x, x
    if math.isinf(x) or x == 0:
        return math.copysign(0.0, x), x
    whole = math.copysign(float(math.floor(x)), x) if math.floor(x) == 0 else float(math.floor(x))
    below_one = {16: 1 - 2.0**-11, 32: 1 - 2.0**-24, 64: 1 - 2.0**-53}[width]
    return min(n.to_width(x - whole, width), below_one), whole


def _frexp(width: int, x: float) -> tuple[float, int]:
    fraction, exponent = math.frexp(x)
    return fraction, n.mask(exponent, 32)


def _modf(width: int, x: float) -> tuple[float, float]:
    if math.isinf(x):
        return math.copysign(0.0, x), x
    fraction, whole = math.modf(x)
    return fraction, whole


def _lgamma_r(width: int, x: float) -> tuple[float, int]:
    sign = 0 if x <= 0 and float(x).is_integer() else 1
    if x < 0 and sign and math.floor(x) % 2:
        sign = -1
    return n.to_width(real.guarded(real.log_gamma)(x), width), n.mask(sign, 32)


def _remquo(width: int, x: float, y: float) -> tuple[float, int]:
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return n.NAN, 0
    if math.isinf(y):
        return x, 0
    quotient = round(Fraction(x) / Fraction(y))
    low = abs(quotient) & 0x7F
    return math.remainder(x, y), n.mask(-low if quotient < 0 else low, 32)


def _sincos(width: int, x: float) -> tuple[float, float]:
    if math.isinf(x):
        return n.NAN, n.NAN
    return n.to_width(math.sin(x), width), n.to_width(math.cos(x), width)


_TWO_RESULTS: dict[str, Scalar] = {
    "fract": _fract, "frexp": _frexp, "modf": _modf, "lgamma_r": _lgamma_r, "remquo": _remquo,
    "sincos": _sincos,
}  # fmt: skip
for _name, _function in _TWO_RESULTS.items():
    RULES[OpenCLStd[_name]] = _two_results(_function)


# Geometry


def _length(v: Datum) -> float:
    parts = v if isinstance(v, tuple) else (v,)
    return n.NAN if any(map(math.isnan, parts)) else math.hypot(*parts)


@rule("length", "fast_length")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return n.to_width(_length(operands[0]), instruction.type.width)


@rule("distance", "fast_distance")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    a, b = (v if isinstance(v, tuple) else (v,) for v in operands)
    return n.to_width(_length(tuple(x - y for x, y in zip(a, b, strict=True))), instruction.type.width)


@rule("normalize", "fast_normalize")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width, vector = scalar_of(instruction.type).width, operands[0]
    parts: list[float] = [*vector] if isinstance(vector, tuple) else [vector]
    if any(map(math.isinf, parts)):
        parts = [math.copysign(1.0, x) if math.isinf(x) else 0.0 * x for x in parts]
    exponent = math.frexp(max(map(abs, parts)))[1]
    parts = [math.ldexp(x, -exponent) for x in parts]  # nothing overflows or loses bits
    size = _length(tuple(parts))
    if size == 0:
        return vector
    scaled = tuple(n.to_width(x / size, width) for x in parts)
    return scaled if isinstance(vector, tuple) else scaled[0]


@rule("cross")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    width = instruction.type.element.width
    a, b = operands
    product = [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
    return tuple(n.to_width(x, width) for x in product) + (0.0,) * (len(a) - 3)


# Integers


def _saturated(value: int, width: int, is_signed: bool) -> int:
    low = -(1 << (width - 1)) if is_signed else 0
    high = (1 << (width - 1)) - 1 if is_signed else (1 << width) - 1
    return min(max(value, low), high)


def _clz(a: int, w: int) -> int:
    return w - a.bit_length()


def _ctz(a: int, w: int) -> int:
    return (a & -a).bit_length() - 1 if a else w


def _rotate(a: int, k: int, w: int) -> int:
    k %= w
    return a << k | a >> (w - k)


_SIGNED: dict[str, Scalar] = {
    "s_abs": lambda a, w: abs(a), "s_abs_diff": lambda a, b, w: abs(a - b),
    "s_add_sat": lambda a, b, w: _saturated(a + b, w, True), "s_hadd": lambda a, b, w: (a + b) >> 1,
    "s_rhadd": lambda a, b, w: (a + b + 1) >> 1, "s_clamp": lambda x, a, b, w: min(max(x, a), b),
    "s_mad_hi": lambda a, b, c, w: (a * b >> w) + c,
    "s_mad_sat": lambda a, b, c, w: _saturated(a * b + c, w, True), "s_max": lambda a, b, w: max(a, b),
    "s_min": lambda a, b, w: min(a, b), "s_mul_hi": lambda a, b, w: a * b >> w,
    "s_sub_sat": lambda a, b, w: _saturated(a - b, w, True), "s_mad24": lambda a, b, c, w: a * b + c,
    "s_mul24": lambda a, b, w: a * b,
}  # fmt: skip
_UNSIGNED: dict[str, Scalar] = {
    "u_abs": lambda a, w: a, "u_abs_diff": lambda a, b, w: abs(a - b),
    "u_add_sat": lambda a, b, w: _saturated(a + b, w, False), "u_hadd": lambda a, b, w: (a + b) >> 1,
    "u_rhadd": lambda a, b, w: (a + b + 1) >> 1, "u_clamp": lambda x, a, b, w: min(max(x, a), b),
    "u_mad_hi": lambda a, b, c, w: (a * b >> w) + c,
    "u_mad_sat": lambda a, b, c, w: _saturated(a * b + c, w, False), "u_max": lambda a, b, w: max(a, b),
    "u_min": lambda a, b, w: min(a, b), "u_mul_hi": lambda a, b, w: a * b >> w,
    "u_sub_sat": lambda a, b, w: _saturated(a - b, w, False), "u_mad24": lambda a, b, c, w: a * b + c,
    "u_mul24": lambda a, b, w: a * b, "clz": _clz, "ctz": _ctz, "rotate": _rotate,
    "popcount": lambda a, w: a.bit_count(),
}  # fmt: skip


def _register_integer(name: str, function: Scalar, is_signed: bool) -> None:
    @rule(name)
    def run(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
        width = scalar_of(instruction.type).width

        def one(*values: int) -> int:
            numbers = [n.signed(v, width) for v in values] if is_signed else values
            return n.mask(function(*numbers, width), width)

        return each(one, instruction.type, *operands)


for _name, _function in _SIGNED.items():
    _register_integer(_name, _function, True)
for _name, _function in _UNSIGNED.items():
    _register_integer(_name, _function, False)


@rule("u_upsample", "s_upsample")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    half = scalar_of(instruction.type).width // 2
    return each(lambda high, low: high << half | low, instruction.type, *operands)


@rule("bitselect")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    type_ = scalar_of(instruction.type)

    def choose(a: Datum, b: Datum, c: Datum) -> Datum:
        if type_.kind is not Kind.FLOAT:
            return a & ~c | b & c
        a, b, c = (n.float_to_bits(x, type_.width) for x in (a, b, c))
        return n.float_from_bits(a & ~c | b & c, type_.width)

    return each(choose, instruction.type, *operands)


@rule("select")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    condition_type = instruction.operands[4].type
    a, b, c = operands
    if condition_type.kind is Kind.VECTOR:
        width = condition_type.element.width
        return tuple(y if k >> (width - 1) else x for x, y, k in zip(a, b, c, strict=True))
    return b if c else a


@rule("shuffle", "shuffle2")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    *vectors, choice = operands
    both = tuple(v for vector in vectors for v in vector)
    return tuple(both[k % len(both)] for k in choice)
