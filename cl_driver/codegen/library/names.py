"""Which OpenCL.std instructions become calls of the builtin library, and what the called functions are
named.

The library (cl_driver/builtins/) defines one scalar function per name and type:

    __cld_<instruction>_<type>        type: f32 f64, the floating type that the instruction is about

with the parameters of the OpenCL C function, all scalar. OpenCL vectors are lowered component by component.
Results through a pointer go to Function storage: `float __cld_fract_f32(float x, __private float *ip)`; the
generator stores them through the program's own pointer, whatever its storage class.

    float __cld_sin_f32(float x)                            double __cld_pow_f64(double x, double y)
    float __cld_ldexp_f32(float x, int k)                   float __cld_pown_f32(float x, int n)
    int   __cld_ilogb_f32(float x)                          float __cld_rootn_f32(float x, int n)
    float __cld_frexp_f32(float x, __private int *exp)
    float __cld_lgamma_r_f32(float x, __private int *sign)
    float __cld_remquo_f32(float x, float y, __private int *quo)
    float __cld_sincos_f32(float x, __private float *cosval)    (returns the sine)
    float __cld_fmod_f32(float x, float y)                  OpFRem and OpFMod call it as well
    float __cld_fma_f32(float a, float b, float c)          only where the CPU has no fma instruction

There are none for half, which goes through float (../../passes/lower/half.py). native_NAME and half_NAME have
functions of their own, unless a few instructions do; half_sin, half_cos and half_tan call native ones. What
clang leaves as calls of mangled names (Import linkage) is looked up in the library under just that mangled
name.
"""

from __future__ import annotations

from ...spirv.module import Kind, Type

PREFIX = "__cld_"

# OpenCL.std instruction number: the NAME of the library function.
LIBRARY_INSTRUCTIONS: dict[int, str] = {
    0: "acos", 1: "acosh", 2: "acospi", 3: "asin", 4: "asinh", 5: "asinpi", 6: "atan", 7: "atan2", 8: "atanh",
    9: "atanpi", 10: "atan2pi", 11: "cbrt", 14: "cos", 15: "cosh", 16: "cospi", 17: "erfc", 18: "erf",
    19: "exp", 20: "exp2", 21: "exp10", 22: "expm1", 29: "fmod", 30: "fract", 31: "frexp", 32: "hypot",
    33: "ilogb", 34: "ldexp", 35: "lgamma", 36: "lgamma_r", 37: "log", 38: "log2", 39: "log10", 40: "log1p",
    41: "logb", 45: "modf", 47: "nextafter", 48: "pow", 49: "pown", 50: "powr", 51: "remainder", 52: "remquo",
    54: "rootn",
    57: "sin", 58: "sincos", 59: "sinh", 60: "sinpi", 62: "tan", 63: "tanh", 64: "tanpi", 65: "tgamma",
    67: "native_cos", 69: "half_exp", 70: "half_exp2", 71: "half_exp10", 72: "half_log",
    73: "half_log2", 74: "half_log10", 75: "half_powr", 78: "native_sin", 80: "native_tan",
    81: "native_cos", 83: "native_exp", 84: "native_exp2", 85: "native_exp10", 86: "native_log",
    87: "native_log2", 88: "native_log10", 89: "native_powr", 92: "native_sin", 94: "native_tan",
}  # fmt: skip

# Functions that the library calls and nothing defines: intrinsics.py. In plans they are
# instructions of OpenCL.std whose numbers the specification does not use. __cld_op_NAME is for float,
# __cld_op_NAME_f64 for double.
INSTRUCTION_NAMES = (
    "exponent significand scale log_limit divide root reciprocal14 reciprocal_root14 lookup rest".split()
)
INSTRUCTIONS = {
    f"{PREFIX}op_{name}{suffix}": 0x10000 + number
    for number, name in enumerate(INSTRUCTION_NAMES)
    for suffix in ("", "_f64")
}

_HALF = "half_"  # there are none of double

# What the names of functions end in that call them, in the place of others.
SCALED = "_scaled"

# Geometric instructions on float and vectors of it, at widths above 1: __cld_<instruction>_f32x<components>
# takes the instruction's own operands.
GEOMETRIC_INSTRUCTIONS: dict[int, str] = {
    105: "distance", 106: "length", 107: "normalize", 108: "distance", 109: "length", 110: "normalize",
}  # fmt: skip

# Library functions whose last parameter is a pointer: NAME: what it points to ("int", or "float" for the type
# of the instruction).
POINTER_RESULTS = {
    "fract": "float", "frexp": "int", "lgamma_r": "int", "modf": "float", "remquo": "int", "sincos": "float",
}  # fmt: skip


def library_name(name: str, type_: Type) -> str:
    """The library function of instruction NAME for a FLOAT type, or a VECTOR of one."""
    element = type_.element if type_.kind is Kind.VECTOR else type_
    if element.width == 64:
        name = name.removeprefix(_HALF)
    return f"{PREFIX}{name}_f{element.width}"


def geometric_name(name: str, type_: Type) -> str:
    """The library function of a geometric instruction on operands of a type."""
    count = type_.count if type_.kind is Kind.VECTOR else 1
    return f"{library_name(name, type_)}x{count}"


def all_library_names() -> list[str]:
    """Every name that the generator may ask for; a test checks that the library defines each."""
    names = {*LIBRARY_INSTRUCTIONS.values(), "fma"}
    geometric = {f"{PREFIX}{name}_f32x{n}" for name in GEOMETRIC_INSTRUCTIONS.values() for n in (1, 2, 3, 4)}
    of_double = {f"{PREFIX}{name}_f64" for name in names if not name.startswith(_HALF)}
    return sorted({f"{PREFIX}{name}_f32" for name in names} | of_double | geometric)
