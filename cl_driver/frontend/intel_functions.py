"""Declarations of functions of Intel's extensions: cl_intel_subgroups and its kin, and split barriers; and of
those that Intel's compilers have for named barriers (passes/program/named_barrier_functions.py).

No clang declares them. They are many, and few programs call any: a program gets them once clang has said that
it misses one. clang's back end makes SPV_INTEL_subgroups and SPV_INTEL_split_barrier of calls of these names.
The reductions and scans of 8 and 16 bits are those of cl_khr_subgroup_extended_types under other names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MISSED = re.compile(
    r"error: .*'(intel_(sub_group|work_group_barrier)_\w+|named_barrier_init|work_group_named_barrier)'"
)
_ATTRIBUTES = "__attribute__((overloadable, convergent))"

# The extension: types with their vectors, for shuffles.
_SHUFFLED = {
    "cl_intel_subgroups": (("float", "int", "uint"), ("", "2", "3", "4", "8", "16")),
    "cl_intel_subgroups_char": (("char", "uchar"), ("", "2", "4", "8", "16")),
    "cl_intel_subgroups_short": (("short", "ushort"), ("", "2", "4", "8", "16")),
}
# The extension: suffix of the functions, type, numbers of components, for blocks.
_BLOCKS = {
    "cl_intel_subgroups": (("", "uint", ("", "2", "4", "8")), ("_ui", "uint", ("", "2", "4", "8"))),
    "cl_intel_subgroups_char": (("_uc", "uchar", ("", "2", "4", "8", "16")),),
    "cl_intel_subgroups_short": (("_us", "ushort", ("", "2", "4", "8", "16")),),
    "cl_intel_subgroups_long": (("_ul", "ulong", ("", "2", "4", "8")),),
}
_NARROW = {"cl_intel_subgroups_char": ("char", "uchar"), "cl_intel_subgroups_short": ("short", "ushort")}
_REDUCTIONS = tuple(
    f"{what}_{how}"
    for what in ("reduce", "scan_exclusive", "scan_inclusive")
    for how in ("add", "min", "max")
)


def are_missed(errors: str) -> bool:
    """Whether clang says that the program calls one of these functions, which is not declared."""
    return _MISSED.search(errors) is not None


def declarations(has: set[str], standard: tuple[int, int]) -> list[str]:
    """Lines of OpenCL C. has: extensions, and the features of the program's version of OpenCL C."""
    lines: list[str] = []
    if "cl_intel_split_work_group_barrier" in has:
        for what in ("arrive", "wait"):
            start = f"void {_ATTRIBUTES} intel_work_group_barrier_{what}"
            lines.append(f"{start}(cl_mem_fence_flags);")
            if standard >= (2, 0):
                lines.append(f"{start}(cl_mem_fence_flags, memory_scope);")
    if "cl_khr_subgroup_named_barrier" in has:
        lines.append("struct __namedBarrier;")
        lines.append(f"__local struct __namedBarrier * {_ATTRIBUTES} named_barrier_init(int);")
        wait = f"void {_ATTRIBUTES} work_group_named_barrier(__local struct __namedBarrier *"
        lines.append(f"{wait}, cl_mem_fence_flags);")
        if standard >= (2, 0):
            lines.append(f"{wait}, cl_mem_fence_flags, memory_scope);")
    if "cl_intel_subgroups" not in has:
        return lines
    lines += _shuffles(has)
    for extension in sorted(has & _BLOCKS.keys()):
        for suffix, type_, counts in _BLOCKS[extension]:
            for count in counts:
                lines += _blocks(has, suffix + count, type_, type_ + count)
    for extension in sorted(has & _NARROW.keys()):
        for type_ in _NARROW[extension]:
            lines += _renamed(type_)
    return lines


def _shuffles(has: set[str]) -> Iterator[str]:
    types = [
        type_ + count
        for extension in sorted(has & _SHUFFLED.keys())
        for type_ in _SHUFFLED[extension][0]
        for count in _SHUFFLED[extension][1]
    ]
    types += ["long", "ulong", *["half"] * ("cl_khr_fp16" in has), *["double"] * ("cl_khr_fp64" in has)]
    for t in types:
        yield _declared(t, "shuffle", t, "uint")
        yield _declared(t, "shuffle_xor", t, "uint")
        yield _declared(t, "shuffle_down", t, t, "uint")
        yield _declared(t, "shuffle_up", t, t, "uint")


def _blocks(has: set[str], name: str, element: str, data: str) -> Iterator[str]:
    spaces = ["__global", *["__local"] * ("cl_intel_subgroup_local_block_io" in has)]
    for space in spaces:
        yield _declared(data, f"block_read{name}", f"const {space} {element} *")
        yield _declared("void", f"block_write{name}", f"{space} {element} *", data)
    if "__opencl_c_images" not in has:
        return
    both = ["__read_write"] * ("__opencl_c_read_write_images" in has)
    for access in ("__read_only", *both):
        yield _declared(data, f"block_read{name}", f"{access} image2d_t", "int2")
    for access in ("__write_only", *both):
        yield _declared("void", f"block_write{name}", f"{access} image2d_t", "int2", data)


def _renamed(type_: str) -> Iterator[str]:
    attributes = "__attribute__((overloadable, convergent, always_inline))"
    start = f"static __inline {type_} {attributes} intel_sub_group_"
    yield f"{start}broadcast({type_} x, uint i) {{ return sub_group_broadcast(x, i); }}"
    for name in _REDUCTIONS:
        yield f"{start}{name}({type_} x) {{ return sub_group_{name}(x); }}"


def _declared(result: str, name: str, *parameters: str) -> str:
    return f"{result} {_ATTRIBUTES} intel_sub_group_{name}({', '.join(parameters)});"
