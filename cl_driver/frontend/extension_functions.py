"""Declarations of functions of extensions that clang does not declare by itself: those of
cl_intel_bfloat16_conversions, atomic_init of half, and for OpenCL C before 3.0 those of
cl_khr_extended_bit_ops and cl_khr_integer_dot_product, which are for every version. The SPIR-V back end knows
the functions by their names, whoever declared them.
"""

from __future__ import annotations

from functools import cache

SIZES = ("", "2", "3", "4", "8", "16")
SIGNED = {"char": "uchar", "short": "ushort", "int": "uint", "long": "ulong"}

BIT_NAMES = (b"bit_reverse", b"bitfield_insert", b"bitfield_extract_")
# A dot() alone is the one of floating point; who dots integers names the extension, or one of these.
DOT_NAMES = (b"dot_acc_sat", b"dot_4x8packed", b"cl_khr_integer_dot_product", b"_integer_dot_product_input_")


def needed(texts: list[bytes], standard: tuple[int, int]) -> bytes:
    """What to put before a program of these texts, in a version of OpenCL C."""
    out = b""
    if any(b"intel_convert_" in text for text in texts):
        out += _bfloat16_functions()
    if standard >= (2, 0) and all(any(n in t for t in texts) for n in (b"atomic_init", b"atomic_half")):
        out += _atomic_init()
    if standard >= (3, 0):
        return out
    if any(name in text for text in texts for name in BIT_NAMES):
        out += _bit_functions()
    if any(name in text for text in texts for name in DOT_NAMES):
        out += _dot_functions()
    return out


def _declare(result: str, name: str, *parameters: str) -> str:
    return f"{result} __attribute__((overloadable, const)) {name}({', '.join(parameters)});\n"


@cache
def _bfloat16_functions() -> bytes:
    """cl_intel_bfloat16_conversions."""
    lines = []
    for n in SIZES:
        lines.append(_declare(f"ushort{n}", f"intel_convert_bfloat16{n}_as_ushort{n}", f"float{n}"))
        lines.append(_declare(f"float{n}", f"intel_convert_as_bfloat16{n}_float{n}", f"ushort{n}"))
    return "".join(lines).encode()


@cache
def _atomic_init() -> bytes:
    """atomic_init of a half, which clang lacks, and of the other types, which a declaration of it hides."""
    return b"".join(
        b"void __attribute__((overloadable)) atomic_init(volatile __generic atomic_%s *, %s);\n" % (t, t)
        for t in (b"half", b"float", b"double", b"int", b"uint", b"long", b"ulong")
    )


@cache
def _bit_functions() -> bytes:
    """cl_khr_extended_bit_ops: gentype is every integer scalar and vector."""
    lines = []
    for signed, unsigned in SIGNED.items():
        for size in SIZES:
            i, u = signed + size, unsigned + size
            for t in (i, u):
                lines += [
                    _declare(t, "bitfield_insert", t, t, "uint", "uint"),
                    _declare(i, "bitfield_extract_signed", t, "uint", "uint"),
                    _declare(u, "bitfield_extract_unsigned", t, "uint", "uint"),
                    _declare(t, "bit_reverse", t),
                ]
    return "".join(lines).encode()


@cache
def _dot_functions() -> bytes:
    """cl_khr_integer_dot_product; and dot() of floating point, which a declaration of any dot() hides."""
    lines = []
    for a, b, result in (
        ("uchar4", "uchar4", "uint"),
        ("char4", "char4", "int"),
        ("uchar4", "char4", "int"),
        ("char4", "uchar4", "int"),
    ):
        lines.append(_declare(result, "dot", a, b))
        lines.append(_declare(result, "dot_acc_sat", a, b, result))
    for kinds, result in (("uu", "uint"), ("ss", "int"), ("us", "int"), ("su", "int")):
        lines.append(_declare(result, f"dot_4x8packed_{kinds}_{result}", "uint", "uint"))
        lines.append(_declare(result, f"dot_acc_sat_4x8packed_{kinds}_{result}", "uint", "uint", result))
    lines += [_declare("float", "dot", f"float{size}", f"float{size}") for size in SIZES[:4]]
    lines.append("#ifdef cl_khr_fp64\n")
    lines += [_declare("double", "dot", f"double{size}", f"double{size}") for size in SIZES[:4]]
    lines.append("#endif\n")
    return "".join(lines).encode()
