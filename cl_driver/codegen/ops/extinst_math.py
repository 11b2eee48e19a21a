"""OpenCL.std, sections 2.1 and 2.2: mathematical and common functions.

What is a few instructions is lowered here; the rest calls the builtin library (library/names.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Instruction, Type, Value
from ..expand import neon_roots, reciprocals
from ..library.names import LIBRARY_INSTRUCTIONS, POINTER_RESULTS, library_name
from ..llvm.emitter import FunctionEmitter
from ..llvm.fast_math import without_estimates
from ..llvm.forms import Form
from ..llvm.registry import componentwise_extended, lowers_extended
from ..llvm.types import alignment_of, component_count, element_type, float_text, ir_type
from .arithmetic import call_scalar, larger_or_smaller
from .conversion import fused_multiply_add_half, kept_wide

_INTRINSICS = {
    Std.ceil: "ceil", Std.fabs: "fabs", Std.floor: "floor", Std.rint: "roundeven", Std.round: "round",
    Std.trunc: "trunc", Std.copysign: "copysign", Std.fmax: "maxnum", Std.fmin: "minnum",
}  # fmt: skip
_TO_INTEGRAL = {"ceil", "floor", "round", "roundeven", "trunc"}


def literal(f: Form, type_: Type, value: float) -> str:
    """A floating-point number in the form and type, rounded to the type."""
    return f.splat(ir_type(type_), float_text(float_bits(value, type_.width), type_.width))


def float_bits(value: float, width: int) -> int:
    """The IEEE 754 pattern of a number rounded to nearest."""
    import struct

    code = {16: "e", 32: "f", 64: "d"}[width]
    return int.from_bytes(struct.pack(f"<{code}", value), "little")


@componentwise_extended(*_INTRINSICS)
def intrinsic(e: FunctionEmitter, f: Form, i: Instruction, *operands: str) -> str:
    """Instructions that LLVM lowers inline."""
    name = _INTRINSICS[i.operands[1]]
    if name in _TO_INTEGRAL and _is_from_half(i.operands[2]):
        operands = (kept_wide(e, f, *operands),)
    return e.intrinsic(name, f, ir_type(element_type(i.type)), *operands, flags=e.flags(i))


def _is_from_half(value: Value) -> bool:
    return (
        isinstance(value, Instruction)
        and value.op is Op.FConvert
        and element_type(value.type).width == 32
        and element_type(value.operands[0].type).width == 16
    )


@componentwise_extended(Std.fma, Std.mad)
def fma(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str, c: str) -> str:
    """fma and mad. Without an fma instruction, fma is exact by the library and mad rounds twice."""
    type_ = element_type(i.type)
    element = ir_type(type_)
    if e.options.has_native_half if type_.width == 16 else e.options.has_fma:
        return e.intrinsic("fma", f, element, a, b, c, flags=e.flags(i))
    if type_.width == 16:
        return fused_multiply_add_half(e, f, a, b, c)
    if i.operands[1] == Std.mad:
        return multiply_add(e, f, element, a, b, c, e.flags(i))
    return by_component(
        e, f, element, [a, b, c], lambda scalars: call_scalar(e, library_name("fma", type_), type_, scalars)
    )


def multiply_add(e: FunctionEmitter, f: Form, element: str, a: str, b: str, c: str, flags: str) -> str:
    """a * b + c in two operations."""
    product = e.emit(f"fmul {flags}{f(element)} {a}, {b}")
    return e.emit(f"fadd {flags}{f(element)} {product}, {c}")


def by_component(
    e: FunctionEmitter, f: Form, element: str, operands: list[str], function: Callable[[list[str]], str]
) -> str:
    """Applies function(scalar operands) -> scalar operand to each component of LLVM vectors."""
    if not f.count:
        return function(operands)
    t = f(element)
    result = "poison"
    for k in range(f.count):
        scalars = [e.emit(f"extractelement {t} {operand}, i32 {k}") for operand in operands]
        result = e.emit(f"insertelement {t} {result}, {element} {function(scalars)}, i32 {k}")
    return result


@componentwise_extended(Std.sqrt, Std.native_sqrt)
def square_root(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """sqrt, native_sqrt."""
    is_native = i.operands[1] == Std.native_sqrt
    if (reciprocals.pays if is_native else reciprocals.pays_for_root)(e, f, i):
        return reciprocals.square_root(e, f, a)
    if reciprocals.pays_f64(e, f, i):
        return reciprocals.square_root_f64(e, f, a)
    flags = e.flags(i) if is_native else without_estimates(e.flags(i))
    return e.intrinsic("sqrt", f, ir_type(element_type(i.type)), a, flags=flags)


@componentwise_extended(Std.half_sqrt)
def half_square_root(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """half_sqrt: 11 bits."""
    if not reciprocals.has_rough(e, f, i):
        return square_root(e, f, i, a)
    return reciprocals.rough_square_root(e, f, a)


@componentwise_extended(Std.native_divide)
def native_divide(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """native_divide: where estimates pay, a times 1/b, which overflows for a subnormal b."""
    if not reciprocals.pays(e, f, i):
        return _divide(e, f, i, a, b)
    return e.emit(f"fmul {e.flags(i)}{f('float')} {a}, {reciprocals.reciprocal(e, f, b)}")


@componentwise_extended(Std.half_divide)
def half_divide(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """half_divide: 11 bits."""
    if not reciprocals.has_rough(e, f, i):
        return _divide(e, f, i, a, b)
    return reciprocals.rough_quotient(e, f, a, b)


def _divide(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    return e.emit(f"fdiv {e.flags(i)}{f(ir_type(element_type(i.type)))} {a}, {b}")


@componentwise_extended(Std.native_recip)
def reciprocal(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """native_recip."""
    if reciprocals.pays(e, f, i):
        return reciprocals.reciprocal(e, f, a)
    type_ = element_type(i.type)
    return e.emit(f"fdiv {e.flags(i)}{f(ir_type(type_))} {literal(f, type_, 1.0)}, {a}")


@componentwise_extended(Std.half_recip)
def half_reciprocal(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """half_recip: 11 bits."""
    if not reciprocals.has_rough(e, f, i):
        return reciprocal(e, f, i, a)
    return reciprocals.rough_reciprocal(e, f, a)


@componentwise_extended(Std.rsqrt, Std.native_rsqrt)
def reciprocal_square_root(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """rsqrt: an estimate, or two correctly rounded steps: within 2 ulp."""
    type_ = element_type(i.type)
    if reciprocals.pays_for_reciprocal_root(e, f, i):
        if type_.width == 64:
            return reciprocals.reciprocal_square_root_f64(e, f, a)
        if e.options.aarch64:
            return neon_roots.reciprocal_square_root(e, f, a)
        return reciprocals.reciprocal_square_root(e, f, a)
    flags = e.flags(i)
    root = e.intrinsic("sqrt", f, ir_type(type_), a, flags=flags)
    return e.emit(f"fdiv {flags}{f(ir_type(type_))} {literal(f, type_, 1.0)}, {root}")


@componentwise_extended(Std.half_rsqrt)
def half_reciprocal_square_root(e: FunctionEmitter, f: Form, i: Instruction, a: str) -> str:
    """half_rsqrt: 11 bits."""
    if not reciprocals.has_rough(e, f, i):
        return reciprocal_square_root(e, f, i, a)
    return reciprocals.rough_reciprocal_root(e, f, a)


@componentwise_extended(Std.fdim)
def positive_difference(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """fdim: x - y, or 0 where x <= y; NaN stays NaN."""
    type_ = element_type(i.type)
    t = f(ir_type(type_))
    difference = e.emit(f"fsub {e.flags(i)}{t} {a}, {b}")
    below = e.emit(f"fcmp ole {t} {a}, {b}")
    return e.emit(f"select {f('i1')} {below}, {t} {literal(f, type_, 0.0)}, {t} {difference}")


@componentwise_extended(Std.maxmag, Std.minmag)
def by_magnitude(e: FunctionEmitter, f: Form, i: Instruction, a: str, b: str) -> str:
    """maxmag, minmag: the operand of larger (smaller) magnitude, fmax (fmin) of equal ones."""
    is_max = i.operands[1] == Std.maxmag
    element = ir_type(element_type(i.type))
    t, bits = f(element), f("i1")
    x = e.intrinsic("fabs", f, element, a)
    y = e.intrinsic("fabs", f, element, b)
    predicates = ("ogt", "olt") if is_max else ("olt", "ogt")
    tie = larger_or_smaller(e, f, element, is_max, a, b)
    first = e.emit(f"fcmp {predicates[0]} {t} {x}, {y}")
    second = e.emit(f"fcmp {predicates[1]} {t} {x}, {y}")
    rest = e.emit(f"select {bits} {second}, {t} {b}, {t} {tie}")
    return e.emit(f"select {bits} {first}, {t} {a}, {t} {rest}")


@componentwise_extended(Std.nan)
def nan(e: FunctionEmitter, f: Form, i: Instruction, code: str) -> str:
    """nan: a quiet NaN with the code as payload."""
    type_ = element_type(i.type)
    fraction, exponent = {16: (10, 0x7E00), 32: (23, 0x7FC00000), 64: (52, 0x7FF8 << 48)}[type_.width]
    bits = f"i{type_.width}"
    payload = e.emit(f"and {f(bits)} {code}, {f.splat(bits, str((1 << fraction - 1) - 1))}")
    pattern = e.emit(f"or {f(bits)} {payload}, {f.splat(bits, str(exponent))}")
    return e.emit(f"bitcast {f(bits)} {pattern} to {f(ir_type(type_))}")


# Library functions.


@lowers_extended(*[number for number, name in LIBRARY_INSTRUCTIONS.items() if name not in POINTER_RESULTS])
def library_function(e: FunctionEmitter, i: Instruction) -> None:
    """One call of the library per component."""
    type_, arguments = i.type, i.operands[2:]
    floating = element_type(arguments[0].type)
    name = library_name(LIBRARY_INSTRUCTIONS[i.operands[1]], floating)
    result = element_type(type_)
    results = []
    vectors = [spread_components(e, argument, component_count(type_)) for argument in arguments]
    for components in zip(*vectors, strict=True):
        typed = [(ir_type(element_type(a.type)), c) for a, c in zip(arguments, components, strict=True)]
        results.append(e.library_call(name, typed, ir_type(result)))
    e.define_components(i, results)


def spread_components(e: FunctionEmitter, value: Value, count: int) -> list[str]:
    """The components of a value; a scalar is repeated (ldexp's exponent, for one)."""
    components = e.components(value)
    return components * count if len(components) == 1 else components


@lowers_extended(*[number for number, name in LIBRARY_INSTRUCTIONS.items() if name in POINTER_RESULTS])
def library_function_with_pointer(e: FunctionEmitter, i: Instruction) -> None:
    """Those of POINTER_RESULTS: a second result goes through a pointer, component by component."""
    arguments, pointer = i.operands[2:-1], i.operands[-1]
    type_ = element_type(i.type)
    base = LIBRARY_INSTRUCTIONS[i.operands[1]]
    stored = pointer.type.element
    memory_type = ir_type(element_type(stored))
    temporary = e.alloca(memory_type, 8)
    results, seconds = [], []
    vectors = [e.components(argument) for argument in arguments]
    for components in zip(*vectors, strict=True):
        typed = [(ir_type(element_type(a.type)), c) for a, c in zip(arguments, components, strict=True)]
        name = library_name(base, type_)
        results.append(e.library_call(name, [*typed, ("ptr", temporary)], ir_type(type_)))
        seconds.append(e.emit(f"load {memory_type}, ptr {temporary}, align 4"))
    e.define_components(i, results)
    store_components(e, pointer, stored, seconds)


def store_components(e: FunctionEmitter, pointer: Value, type_: Type, components: list[str]) -> None:
    """Stores a scalar or vector, given by components, through a pointer Value."""
    operand = components[0] if component_count(type_) == 1 else e.build_vector(type_, components)
    e.emit_void(f"store {ir_type(type_)} {operand}, ptr {e.operand(pointer)}, align {alignment_of(type_)}")


# Common functions.


@componentwise_extended(Std.fclamp)
def clamp(e: FunctionEmitter, f: Form, i: Instruction, x: str, low: str, high: str) -> str:
    """fclamp: fmin(fmax(x, minval), maxval)."""
    element, flags = ir_type(element_type(i.type)), e.flags(i)
    return e.intrinsic(
        "minnum", f, element, e.intrinsic("maxnum", f, element, x, low, flags=flags), high, flags=flags
    )


@componentwise_extended(Std.fmax_common, Std.fmin_common)
def common_extremum(e: FunctionEmitter, f: Form, i: Instruction, x: str, y: str) -> str:
    """max and min of section 6.15.4: plain comparisons, undefined for NaN."""
    t = f(ir_type(element_type(i.type)))
    is_max = i.operands[1] == Std.fmax_common
    second = e.emit(f"fcmp olt {t} {x}, {y}" if is_max else f"fcmp olt {t} {y}, {x}")
    return e.emit(f"select {f('i1')} {second}, {t} {y}, {t} {x}")


@componentwise_extended(Std.degrees, Std.radians)
def angle_unit(e: FunctionEmitter, f: Form, i: Instruction, x: str) -> str:
    """degrees, radians."""
    type_ = element_type(i.type)
    factor = 57.29577951308232 if i.operands[1] == Std.degrees else 0.017453292519943295
    return e.emit(f"fmul {e.flags(i)}{f(ir_type(type_))} {x}, {literal(f, type_, factor)}")


@componentwise_extended(Std.mix)
def mix(e: FunctionEmitter, f: Form, i: Instruction, x: str, y: str, a: str) -> str:
    """mix: x + (y - x) * a."""
    type_ = element_type(i.type)
    element, flags = ir_type(type_), e.flags(i)
    difference = e.emit(f"fsub {flags}{f(element)} {y}, {x}")
    return _multiply_add(e, f, type_, difference, a, x, flags)


def _multiply_add(e: FunctionEmitter, f: Form, type_: Type, a: str, b: str, c: str, flags: str) -> str:
    """a * b + c, fused where the CPU can."""
    element = ir_type(type_)
    if e.options.has_fma:
        return e.intrinsic("fma", f, element, a, b, c, flags=flags)
    return multiply_add(e, f, element, a, b, c, flags)


@componentwise_extended(Std.step)
def step(e: FunctionEmitter, f: Form, i: Instruction, edge: str, x: str) -> str:
    """step: 0 where x < edge, else 1."""
    type_ = element_type(i.type)
    t = f(ir_type(type_))
    below = e.emit(f"fcmp olt {t} {x}, {edge}")
    return e.emit(f"select {f('i1')} {below}, {t} {literal(f, type_, 0.0)}, {t} {literal(f, type_, 1.0)}")


@componentwise_extended(Std.smoothstep)
def smoothstep(e: FunctionEmitter, f: Form, i: Instruction, edge0: str, edge1: str, x: str) -> str:
    """smoothstep: t * t * (3 - 2 * t), t being (x - edge0) / (edge1 - edge0) between 0 and 1."""
    type_ = element_type(i.type)
    element, flags = ir_type(type_), e.flags(i)
    t = f(element)
    numerator = e.emit(f"fsub {flags}{t} {x}, {edge0}")
    denominator = e.emit(f"fsub {flags}{t} {edge1}, {edge0}")
    ratio = e.emit(f"fdiv {flags}{t} {numerator}, {denominator}")
    ratio = e.intrinsic("maxnum", f, element, ratio, literal(f, type_, 0.0), flags=flags)
    ratio = e.intrinsic("minnum", f, element, ratio, literal(f, type_, 1.0), flags=flags)
    factor = _multiply_add(e, f, type_, ratio, literal(f, type_, -2.0), literal(f, type_, 3.0), flags)
    square = e.emit(f"fmul {flags}{t} {ratio}, {ratio}")
    return e.emit(f"fmul {flags}{t} {square}, {factor}")


@componentwise_extended(Std.sign)
def sign(e: FunctionEmitter, f: Form, i: Instruction, x: str) -> str:
    """sign: 1, -1, zeros as they are, 0 for NaN."""
    type_ = element_type(i.type)
    element = ir_type(type_)
    t, bits = f(element), f("i1")
    one = e.intrinsic("copysign", f, element, literal(f, type_, 1.0), x)
    is_zero = e.emit(f"fcmp oeq {t} {x}, {literal(f, type_, 0.0)}")
    is_nan = e.emit(f"fcmp uno {t} {x}, {x}")
    result = e.emit(f"select {bits} {is_zero}, {t} {x}, {t} {one}")
    return e.emit(f"select {bits} {is_nan}, {t} {literal(f, type_, 0.0)}, {t} {result}")
