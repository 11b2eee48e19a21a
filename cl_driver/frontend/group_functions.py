"""Declarations of group functions that clang does not declare by itself: those of
cl_khr_work_group_uniform_arithmetic for no version of OpenCL C, those of sub-groups for none before 2.0. The
SPIR-V back end knows the functions by their names, whoever declared them.
"""

from __future__ import annotations

from functools import cache

SIZES = ("", "2", "3", "4", "8", "16")
INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
SCANS = ("reduce", "scan_inclusive", "scan_exclusive")
BITWISE = ("and", "or", "xor")


def needed(texts: list[bytes], standard: tuple[int, int]) -> bytes:
    """What to put before a program of these texts in that version of OpenCL C."""
    out = b""
    if any(b"work_group_" in text for text in texts):
        out += _uniform_arithmetic()
    if standard < (2, 0) and any(b"sub_group_" in text for text in texts):
        out += _subgroups()
    return out


def _guarded(lines: dict[str, list[str]]) -> bytes:
    """Declarations by scalar type; those of half and double only where the type is there."""
    out = []
    for scalar, declarations in lines.items():
        guard = {"half": "cl_khr_fp16", "double": "cl_khr_fp64"}.get(scalar)
        out += [f"#ifdef {guard}\n"] * bool(guard) + declarations + ["#endif\n"] * bool(guard)
    return "".join(out).encode()


def _declare(result: str, name: str, *parameters: str) -> str:
    return f"{result} __attribute__((overloadable, convergent)) {name}({', '.join(parameters) or 'void'});\n"


@cache
def _uniform_arithmetic() -> bytes:
    """cl_khr_work_group_uniform_arithmetic: the types of the other work-group functions."""
    lines: dict[str, list[str]] = {}
    for t in ("int", "uint", "long", "ulong", "float", "double", "half"):
        operations = ("mul",) if t in ("float", "double", "half") else ("mul", *BITWISE)
        lines[t] = [_declare(t, f"work_group_{scan}_{op}", t) for scan in SCANS for op in operations]
    lines["int"] += [_declare("int", f"work_group_{s}_logical_{op}", "int") for s in SCANS for op in BITWISE]
    return _guarded(lines)


@cache
def _subgroups() -> bytes:
    """cl_khr_subgroup_..., and the functions of sub-groups that all of these need."""
    names = ["get_sub_group_size", "get_max_sub_group_size", "get_num_sub_groups", "get_sub_group_id"]
    names += ["get_sub_group_local_id"]
    plain = [_declare("uint", name) for name in names]
    plain += [_declare("uint4", f"get_sub_group_{m}_mask") for m in ("eq", "ge", "gt", "le", "lt")]
    votes = ("all", "any", "non_uniform_all", "non_uniform_any", "inverse_ballot")
    plain += [_declare("int", f"sub_group_{name}", "uint4" if "ballot" in name else "int") for name in votes]
    plain += [
        _declare("void", "sub_group_barrier", "cl_mem_fence_flags"),
        _declare("int", "sub_group_elect"),
        _declare("uint4", "sub_group_ballot", "int"),
        _declare("int", "sub_group_ballot_bit_extract", "uint4", "uint"),
    ]
    counts = ("bit_count", "inclusive_scan", "exclusive_scan", "find_lsb", "find_msb")
    plain += [_declare("uint", f"sub_group_ballot_{name}", "uint4") for name in counts]
    for op in BITWISE:
        plain += [_declare("int", f"sub_group_non_uniform_{scan}_logical_{op}", "int") for scan in SCANS]
        plain.append(_declare("int", f"sub_group_clustered_reduce_logical_{op}", "int", "uint"))
    lines = {"": plain}
    for t in (*INTEGERS, "float", "double", "half"):
        lines[t] = _of_type(t, t in INTEGERS)
    return _guarded(lines)


def _of_type(t: str, is_integer: bool) -> list[str]:
    out = [_declare(t, f"sub_group_{scan}_{op}", t) for scan in SCANS for op in ("add", "min", "max")]
    for op in ("add", "mul", "min", "max", *BITWISE * is_integer):
        out += [_declare(t, f"sub_group_non_uniform_{scan}_{op}", t) for scan in SCANS]
        out.append(_declare(t, f"sub_group_clustered_reduce_{op}", t, "uint"))
    for name in ("shuffle", "shuffle_xor", "shuffle_up", "shuffle_down"):
        out.append(_declare(t, f"sub_group_{name}", t, "uint"))
    out += [
        _declare("int", "sub_group_non_uniform_all_equal", t),
        _declare(t, "sub_group_broadcast_first", t),
        _declare(t, "sub_group_rotate", t, "int"),
        _declare(t, "sub_group_clustered_rotate", t, "int", "uint"),
    ]
    for size in SIZES:
        for name in ("broadcast", "non_uniform_broadcast"):
            out.append(_declare(t + size, f"sub_group_{name}", t + size, "uint"))
    return out
