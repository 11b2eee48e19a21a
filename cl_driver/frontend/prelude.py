"""The text before every program: pragmas, and declarations of the functions that no clang declares by itself.

clang declares all other built-in functions when a program looks for their names (clang.py has the macros that
enable them); those that its back end gets wrong have bodies in corrections.py. Here are only

- cl_intel_bfloat16_conversions,
- what get_image_channel_data_type returns for formats that clang 20 and 21 do not know,
- CLK_NULL_EVENT, which the back end cannot write,
- the functions of cl_khr_work_group_uniform_arithmetic, cl_khr_extended_async_copies and
  cl_khr_async_work_group_copy_fence,
- atomic_init of half, and of the other types, which a declaration of it hides,
- for programs that miss them, the functions of intel_functions.py.

A program may declare things of its own under these names. Where clang then says that a declaration here
stands in their way, the program is compiled without the declarations (clang.py).
"""

from __future__ import annotations

from functools import cache

from ..late_patterns import pattern

TYPE_CHECKING = False  # typing takes long to import, and clang waits
if TYPE_CHECKING:
    from .clang import Language

NAME = "<cl_driver>"  # in clang's messages

_CONFLICT = pattern(rf"(?m)^{NAME}:\d+:\d+: note: previous ")
# A note on a declaration, with its line and the marks below it.
_NOTE = pattern(rf"(?m)^{NAME}:\d+:\d+: (note: .*\n)(?: *\d* \|.*\n)*")

# What atomic_half, and the other types of 64 bits, come from.
_HALF_ATOMICS = {
    "__opencl_c_generic_address_space",
    "__opencl_c_ext_fp16_global_atomic_load_store",
    "cl_khr_int64_base_atomics",
    "cl_khr_int64_extended_atomics",
}

# Data types of images, by the extensions that they are of.
_DATA_TYPES = {
    "cl_ext_image_unorm_int_2_101010": {"UNORM_INT_2_101010_EXT": 0x10E5},
    "cl_ext_image_raw10_raw12": {"UNSIGNED_INT_RAW10_EXT": 0x10E3, "UNSIGNED_INT_RAW12_EXT": 0x10E4},
    # OpenCL C has two names for some, of which clang 22 knows one.
    "cl_ext_image_unsigned_10x6_12x4_14x2": {
        "UNORM_10X6_EXT": 0x10E1,
        "UNORM_INT10X6_EXT": 0x10E1,
        "UNSIGNED_INT10X6_EXT": 0x10E6,
        "UNSIGNED_INT12X4_EXT": 0x10E7,
        "UNSIGNED_INT14X2_EXT": 0x10E8,
        "UNORM_12X4_EXT": 0x10E9,
        "UNORM_INT12X4_EXT": 0x10E9,
        "UNORM_14X2_EXT": 0x10EA,
        "UNORM_INT14X2_EXT": 0x10EA,
    },
}

_SIZES = ("", "2", "3", "4", "8", "16")
_SCANS = ("reduce", "scan_inclusive", "scan_exclusive")
_BITWISE = ("and", "or", "xor")


@cache
def text(
    standard: tuple[int, int], language: Language, with_functions: bool, with_intel: bool = False
) -> bytes:
    """What stands before programs in that version of OpenCL C.

    language: what the device offers; with_functions: declarations as well, not the pragmas alone;
    with_intel: those of intel_functions.py, too.
    """
    has = {*language.extensions, *(language.features if standard >= (2, 0) else ())}
    if language.images:
        has.add("__opencl_c_images")
    lines = [f'# 1 "{NAME}" 3']
    if "cl_khr_fp16" in has:
        # clang takes half only where a pragma enables it, which programs may forget.
        lines.append("#pragma OPENCL EXTENSION cl_khr_fp16 : enable")
    if standard < (1, 2):
        # Static functions, which OpenCL C has from 1.2 on, but most compilers took before.
        lines.append("#pragma OPENCL EXTENSION cl_clang_storage_class_specifiers : enable")
    if with_functions:
        if "cl_intel_bfloat16_conversions" in has:
            lines += _bfloat16_conversions()
        lines += _uniform_arithmetic("cl_khr_fp16" in has, "cl_khr_fp64" in has)
        if "__opencl_c_device_enqueue" in has:
            lines += _null_event()
        lines += _group_copies(has)
        for extension in sorted(has & _DATA_TYPES.keys()):
            for name, value in _DATA_TYPES[extension].items():
                lines += [f"#ifndef CLK_{name}", f"#define CLK_{name} {value:#x}", "#endif"]
        if has >= _HALF_ATOMICS:
            lines += _atomic_init("cl_khr_fp64" in has)
    if with_intel:
        from . import intel_functions

        lines += intel_functions.declarations(has, standard)
    return "\n".join([*lines, ""]).encode()


def is_in_the_way(errors: str) -> bool:
    """Whether clang refused a declaration of the program's because of one here."""
    return _CONFLICT.search(errors) is not None


def clean(errors: str) -> str:
    """Messages as they are on functions that clang declares by itself: without a place."""
    return _NOTE.sub(r"\1", errors)


def _declare(result: str, name: str, *parameters: str, attribute: str = "const") -> str:
    return f"{result} __attribute__((overloadable, {attribute})) {name}({', '.join(parameters)});"


def _bfloat16_conversions() -> list[str]:
    lines = []
    for n in _SIZES:
        lines.append(_declare(f"ushort{n}", f"intel_convert_bfloat16{n}_as_ushort{n}", f"float{n}"))
        lines.append(_declare(f"float{n}", f"intel_convert_as_bfloat16{n}_float{n}", f"ushort{n}"))
    return lines


def _uniform_arithmetic(has_half: bool, has_double: bool) -> list[str]:
    """The types are those of the other work-group functions."""
    floats = ["float", *["double"] * has_double, *["half"] * has_half]
    names = [(t, f"{scan}_mul") for t in floats for scan in _SCANS]
    names += [
        (t, f"{scan}_{op}")
        for t in ("int", "uint", "long", "ulong")
        for scan in _SCANS
        for op in ("mul", *_BITWISE)
    ]
    names += [("int", f"{scan}_logical_{op}") for scan in _SCANS for op in _BITWISE]
    return [_declare(t, f"work_group_{name}", t, attribute="convergent") for t, name in names]


def _null_event() -> list[str]:
    """What clang's header has for it, an integer as an event, becomes a constant without a type."""
    return [
        _declare("clk_event_t", "__cld_null_event", "void"),
        "#undef CLK_NULL_EVENT",
        "#define CLK_NULL_EVENT __cld_null_event()",
    ]


def _group_copies(has: set[str]) -> list[str]:
    lines = []
    if "cl_khr_extended_async_copies" in has:
        parameter = "cl_mem_fence_flags"
        lines.append(_declare("void", "async_work_group_copy_fence", parameter, attribute="convergent"))
        for name, sizes in (("2D2D", 5), ("3D3D", 8)):
            for to, from_ in (("__local", "__global"), ("__global", "__local")):
                places = f"{to} void *", "size_t", f"const {from_} void *", "size_t"
                rest = *("size_t",) * sizes, "event_t"
                name_ = f"async_work_group_copy_{name}"
                lines.append(_declare("event_t", name_, *places, *rest, attribute="convergent"))
    return lines


def _atomic_init(has_double: bool) -> list[str]:
    types = ("half", "float", *["double"] * has_double, "int", "uint", "long", "ulong")
    return [
        f"void __attribute__((overloadable)) atomic_init(volatile __generic atomic_{t} *, {t});"
        for t in types
    ]
