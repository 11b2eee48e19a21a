"""What is put before a program's text, where clang's SPIR-V back end would make wrong code otherwise.

Conversions: the back end of clang 20 to 22 turns convert_T(x) of an integer to an integer into an instruction
that it chooses by the signedness of T: convert_int(char) extends with zeros, convert_uchar_sat(ushort) treats
its operand as signed. The macros here make them casts, clamps, and those calls that come out right.
convert_double and convert_half, which it leaves as calls, become casts where they round to nearest (the
others get their bodies from spirv/conversion_functions.py).

vloada_half3: it makes the instruction of vload_half3, which steps by 3 halves instead of 4.

async_work_group_copy: a local array that only built-in functions use shrinks to one element.

atomic_fetch_add and others of C11 without an order: they come out relaxed, at the scope of the work-group.

atomic_load_explicit: its order and scope become the instruction's scope and semantics as they are. The macro
asks for the strongest, as that back end does for every atomic_store_explicit.
"""

from __future__ import annotations

from functools import cache
from itertools import product

SIZES = ("", "2", "3", "4", "8", "16")
ROUNDINGS = ("", "_rte", "_rtz", "_rtp", "_rtn")
INTEGERS = {
    "char": (8, True),
    "uchar": (8, False),
    "short": (16, True),
    "ushort": (16, False),
    "int": (32, True),
    "uint": (32, False),
    "long": (64, True),
    "ulong": (64, False),
}

# The class of an expression of any arithmetic type, without evaluating it: the size of what an overloaded
# function would return. 1: floating point; 2: unsigned; 4: signed.
CLASSES = {
    "float": "char",
    "double": "char",
    "half": "char",
    "uchar": "short",
    "ushort": "short",
    "uint": "short",
    "ulong": "short",
    "char": "int",
    "short": "int",
    "int": "int",
    "long": "int",
}

_COMMON = """\
#pragma clang diagnostic ignored "-Wmacro-redefined"
#ifdef __OPENCL_CPP_VERSION__
#define __cld_choose(condition, a, b) ((condition) ? (a) : (b))
#else
#define __cld_choose __builtin_choose_expr
#endif
#define __cld_is_float(x) (sizeof(__cld_class(x)) == 1)
#define __cld_is_unsigned(x) (sizeof(__cld_class(x)) == 2)
"""

# Macros for programs that have the name in their text. The offsets are 0, which the optimiser cannot know.
REPLACED = {
    b"vloada_half3": b"#define vloada_half3(offset, p) (vloada_half4(offset, p).xyz)\n",
    b"async_work_group_copy": b"""\
#define async_work_group_copy(to, from, n, event) \\
async_work_group_copy((to) + (get_work_dim() >> 2), (from) + (get_work_dim() >> 2), n, event)
""",
    b"async_work_group_strided_copy": b"""\
#define async_work_group_strided_copy(to, from, n, stride, event) \\
async_work_group_strided_copy((to) + (get_work_dim() >> 2), (from) + (get_work_dim() >> 2), n, stride, event)
""",
}

# Sequentially consistent at the scope of the device (OpenCL C 3.0, 6.15.12.7). Before 2.0 the names are free.
REPLACED |= {
    name.encode(): f"""\
#if __OPENCL_C_VERSION__ >= 200 || defined(__OPENCL_CPP_VERSION__)
#define {name}(object, operand) {name}_explicit(object, operand, memory_order_seq_cst, memory_scope_device)
#endif
""".encode()
    for name in ("atomic_exchange", *(f"atomic_fetch_{what}" for what in ("add", "sub", "or", "xor", "and")))
}

REPLACED[b"atomic_load_explicit"] = b"""\
#if __OPENCL_C_VERSION__ >= 200 || defined(__OPENCL_CPP_VERSION__)
#define atomic_load_explicit(object, ...) atomic_load(object)
#endif
"""


def needed(texts: list[bytes]) -> bytes:
    """The prelude for a program of these texts: its source and headers."""
    names: set[bytes] = set()
    for text in texts:
        # A name may also be pasted together, or come from a file that is included.
        if b"##" in text or b"include" in text:
            if b"convert_" in text or b"include" in text:
                return b"".join(REPLACED.values()) + _everything()
        elif b"convert_" in text:
            import re  # clang need not wait for it where nothing is converted

            names.update(re.findall(rb"\bconvert_\w+", text))
    replaced = b"".join(
        macro for name, macro in REPLACED.items() if any(name in text or b"include" in text for text in texts)
    )
    if not names:
        return replaced
    macros = _macros()
    used = b"".join(macros[name] for name in sorted(names) if name in macros)
    return replaced + (_declarations() + used if used else b"")


@cache
def _everything() -> bytes:
    return _declarations() + b"".join(_macros().values())


@cache
def _declarations() -> bytes:
    """The classifier."""
    lines = ["#define __cld_declare(T, C) C __attribute__((overloadable)) __cld_class(T);\n"]
    for scalar, result in CLASSES.items():
        declared = [f"__cld_declare({scalar}{size}, {result})\n" for size in SIZES]
        if scalar in ("double", "half"):
            declared = [f"#ifdef cl_khr_fp{64 if scalar == 'double' else 16}\n", *declared, "#endif\n"]
        lines += declared
    lines.append(_COMMON)
    return "".join(lines).encode()


def _cast(value: str, type_: str, size: str) -> str:
    return f"__builtin_convertvector({value}, {type_}{size})" if size else f"(({type_})({value}))"


@cache
def _macros() -> dict[bytes, bytes]:
    """{name: its #define}. A macro's own name in its text stays a call."""
    out = {}
    for type_, (width, signed) in INTEGERS.items():
        for size in SIZES:
            for rounding in ROUNDINGS:
                name = f"convert_{type_}{size}{rounding}"
                plain = _cast("x", type_, size)
                if rounding:
                    plain = f"__cld_choose(__cld_is_float(x), {name}(x), {plain})"
                elif size:
                    # From floating point, too: a conversion to integer without a mode rounds toward zero.
                    plain = _cast("(x)", type_, size)
                out[name.encode()] = f"#define {name}(x) {plain}\n".encode()
                name = f"convert_{type_}{size}_sat{rounding}"
                out[name.encode()] = (
                    f"#define {name}(x) {_saturated(name, type_, size, width, signed)}\n".encode()
                )
    for type_, size, rounding in product(("double", "half"), SIZES, ("", "_rte")):
        name = f"convert_{type_}{size}{rounding}"
        out[name.encode()] = f"#define {name}(x) {_cast('(x)', type_, size)}\n".encode()
    return out


def _saturated(name: str, type_: str, size: str, width: int, signed: bool) -> str:
    """Floating point, and integers of the other signedness, come out right as the call that they are.
    Integers of the same signedness are clamped in 64 bits, which the optimiser narrows again."""
    wide = "long" if signed else "ulong"
    value = _cast("(x)", wide, size)
    if width < 64:
        high = (1 << (width - signed)) - 1
        limit = f"({wide}){high:#x}"
        value = f"clamp({value}, -{limit} - 1, {limit})" if signed else f"min({value}, {limit})"
    same = "!" if signed else ""
    is_same = f"!__cld_is_float(x) && {same}__cld_is_unsigned(x)"
    return f"__cld_choose({is_same}, {_cast(value, type_, size)}, {name}(x))"
