"""Kernels for sub-groups: every function for every type, where all work-items meet it and where only some do.

Each kernel writes the results of its expressions one after the other, for all work-items each:
out[k * global size + global linear id].
Where a result is not defined (a shuffle that reads a work-item that is not there) it writes 0.
"""

from __future__ import annotations

import numpy as np

INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
FLOATS = ("half", "float", "double")
TYPES = INTEGERS + FLOATS
_NAMES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64"
NUMPY = dict(zip(TYPES, _NAMES.split(), strict=True))
SCANS = ("reduce", "scan_inclusive", "scan_exclusive")


def arithmetic(type_: str) -> list[str]:
    """Reductions and scans, uniform, non-uniform and clustered."""
    out = [f"sub_group_{scan}_{op}(x)" for scan in SCANS for op in ("add", "min", "max")]
    return out + non_uniform_arithmetic(type_)


def non_uniform_arithmetic(type_: str) -> list[str]:
    operations = ["add", "mul", "min", "max"] + ["and", "or", "xor"] * (type_ in INTEGERS)
    out = [f"sub_group_non_uniform_{scan}_{op}(x)" for scan in SCANS for op in operations]
    return out + [f"sub_group_clustered_reduce_{op}(x, {c})" for op in operations for c in (1, 2, 4)]


def logical() -> list[str]:
    out = [f"sub_group_non_uniform_{scan}_logical_{op}(b)" for scan in SCANS for op in ("and", "or", "xor")]
    return out + [f"sub_group_clustered_reduce_logical_{op}(b, 2)" for op in ("and", "or", "xor")]


def moves(_type: str) -> list[str]:
    """What fetches another work-item's value: (expression, lane that it reads)."""
    pairs = [
        ("sub_group_shuffle(x, r)", "r"),
        ("sub_group_shuffle_xor(x, 1)", "lane ^ 1"),
        ("sub_group_shuffle_xor(x, r)", "lane ^ r"),
        ("sub_group_shuffle_up(x, 1)", "lane - 1"),
        ("sub_group_shuffle_up(x, r)", "lane - r"),
        ("sub_group_shuffle_down(x, 2)", "lane + 2"),
        ("sub_group_shuffle_down(x, r)", "lane + r"),
        ("sub_group_rotate(x, 3)", "(lane + 3) & (most - 1)"),
        ("sub_group_rotate(x, -1)", "(lane - 1) & (most - 1)"),
        ("sub_group_clustered_rotate(x, 1, 2)", "lane ^ 1"),
        ("sub_group_clustered_rotate(x, 3, 4)", "(lane & ~3) | ((lane + 3) & 3)"),
        ("sub_group_non_uniform_broadcast(x, first)", "first"),
        ("sub_group_non_uniform_broadcast(x, leader)", "leader"),
        ("sub_group_broadcast_first(x)", "first"),
    ]
    return [f"if_there({place}, {expression})" for expression, place in pairs]


VOTES = [
    "sub_group_elect()", "sub_group_non_uniform_all(b)", "sub_group_non_uniform_any(b)",
    "sub_group_non_uniform_all(lane < 40)", "sub_group_non_uniform_any(b & (lane > 40))",
    "sub_group_non_uniform_all_equal(x)", "sub_group_non_uniform_all_equal((T)7)",
]  # fmt: skip
BALLOTS = [
    *(f"sub_group_ballot(b).s{k}" for k in range(4)),
    *(f"get_sub_group_{m}_mask().s{k}" for m in ("eq", "ge", "gt", "le", "lt") for k in (0, 1)),
    "sub_group_inverse_ballot(odd)", "sub_group_ballot_bit_extract(odd, r)",
    "sub_group_ballot_bit_count(odd)", "sub_group_ballot_inclusive_scan(odd)",
    "sub_group_ballot_exclusive_scan(odd)", "sub_group_ballot_find_lsb(odd)",
    "sub_group_ballot_find_msb(odd)", "sub_group_ballot_bit_count(sub_group_ballot(b))",
    "sub_group_ballot_exclusive_scan(sub_group_ballot(b))", "sub_group_ballot_find_msb(sub_group_ballot(1))",
    "sub_group_ballot_find_lsb(sub_group_ballot(1))",
]  # fmt: skip
QUERIES = [
    "get_sub_group_size()", "get_max_sub_group_size()", "get_num_sub_groups()", "get_sub_group_id()",
    "get_enqueued_num_sub_groups()", "get_sub_group_local_id()",
]  # fmt: skip
UNIFORM = [
    "sub_group_all(b)", "sub_group_any(b)", "sub_group_all(1)", "sub_group_any(0)",
    "sub_group_broadcast(x, get_sub_group_size() - 1)", "sub_group_broadcast(x, 0)",
]  # fmt: skip


def _kernel(name: str, type_: str, expressions: list[str], divergent: bool) -> str:
    lines = [f"out[{k} * n + i] = {e};" for k, e in enumerate(expressions)]
    body = "\n    ".join(lines)
    if divergent:
        # Two branches, and a loop that work-items leave one after the other.
        half = len(lines) // 2
        first, second = "\n        ".join(lines[:half]), "\n        ".join(lines[half:])
        body = f"""if (r & 1) {{
        {first}
    }} else {{
        {second}
    }}
    for (uint turn = 0; turn < r % 4; turn++) {{
        {lines[0].replace(" = ", " += ", 1)}
        if (x > 2) continue;
        {lines[-1].replace(" = ", " += ", 1)}
    }}"""
    return f"""
kernel void {name}(global {type_} *out, global const {type_} *in, global const uint *random) {{
    typedef {type_} T;
    size_t n = get_global_size(0) * get_global_size(1) * get_global_size(2), i = get_global_linear_id();
    T x = in[i];
    uint r = random[i] % get_sub_group_size(), lane = get_sub_group_local_id();
    uint most = get_max_sub_group_size();
    int b = random[i] & 2;
    // The same for all that take one branch, which the compiler cannot see.
    uint ones = sub_group_ballot_find_lsb(sub_group_ballot(r & 1));
    uint leader = r & 1 ? ones : sub_group_ballot_find_lsb(sub_group_ballot(!(r & 1)));
    leader = {"sub_group_shuffle(leader, lane)" if divergent else "sub_group_broadcast_first(leader)"};
    uint4 odd = (uint4)(0x5A5A5A5B, 0x12345678, ~0u, 3);
    {body}
}}
"""


def _with_places(expressions: list[str], divergent: bool) -> list[str]:
    """Expands if_there(lane, value): the value where that lane is active, else 0."""
    out = []
    for e in expressions:
        if e.startswith("if_there("):
            place, value = e[len("if_there(") : -1].split(", ", 1)
            here = "sub_group_ballot(1)" if divergent else "(uint4)(1, 0, 0, 0)"
            e = f"({{ uint4 here = {here}; uint first = sub_group_ballot_find_lsb(here); uint p = {place}; "
            e += f"T y = {value}; uint q = p < 64 ? p : 0; "
            is_there = " && (here[q / 32] >> q % 32 & 1)" if divergent else ""
            e += f"p < get_sub_group_size(){is_there} ? y : 0; }})"
        out.append(e)
    return out


def kernels() -> dict[str, tuple[str, str, int]]:
    """{name: (source, type, results per work-item)}."""
    found = {}

    def add(topic: str, type_: str, expressions: list[str], divergent: bool):
        name = f"{topic}_{type_}_{'some' if divergent else 'all'}"
        expressions = _with_places(expressions, divergent)
        found[name] = _kernel(name, type_, expressions, divergent), type_, len(expressions)

    for type_ in TYPES:
        add("arithmetic", type_, arithmetic(type_), False)
        add("arithmetic", type_, non_uniform_arithmetic(type_), True)
        for divergent in (False, True):
            add("moves", type_, moves(type_), divergent)
        add("votes", type_, VOTES, True)
        add("uniform", type_, UNIFORM, False)
    for divergent in (False, True):
        add("logical", "int", logical(), divergent)
        add("ballots", "uint", BALLOTS, divergent)
    add("votes", "int", VOTES, False)
    add("queries", "uint", QUERIES, False)
    return found


def source() -> str:
    """All kernels as one program."""
    texts = "".join(text for text, _, _ in kernels().values())
    return "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n" + texts


def arguments(type_: str, results: int, items: int, seed: int = 1) -> list[np.ndarray]:
    """Small whole numbers, whose sums and products are exact in any order."""
    rng = np.random.default_rng(seed)
    dtype = NUMPY[type_]
    low = 0 if type_[0] == "u" else -1
    return [
        np.zeros(results * items, dtype),
        rng.integers(low, 3, items).astype(dtype),
        rng.integers(0, 1 << 30, items).astype(np.uint32),
    ]
