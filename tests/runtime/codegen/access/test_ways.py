"""The tables of loads and stores: for each row a kernel that takes it, and one where its precondition does
not hold. What the code does is for the other tests and for random programs: any row must be right."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from cl_driver.codegen.access import ways
from cl_driver.codegen.access.loads import LOADS
from cl_driver.codegen.access.stores import STORES
from cl_driver.codegen.llvm.options import CodegenOptions
from tests.runtime.emulation import IS_ARM
from tests.runtime.kernel_harness import Program, compile_c

SOURCE = """
constant uchar letters[16] = {{65, 9, 3, 1, 4, 8, 7, 23, 5, 43, 12, 90, 99, 3, 2, 1}};
kernel void k(global float *out, global const float *in, global const int *index, global const uchar *bytes,
              global uchar *to, global float4 *rows, global const float2 *pairs, volatile global int *port,
              int n, int m) {{
    local float tile[64];
    int i = get_global_id(0);
    {}
}}
"""
V2 = {"sse4.1", "ssse3"}
V3 = V2 | {"fma", "f16c", "avx", "avx2"}
V4 = V3 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
CPUS = {
    "sse": CodegenOptions(frozenset(V2), 128),
    "avx2": CodegenOptions(frozenset(V3), 256),
    "amd": CodegenOptions(frozenset(V3), 256, slow_masked_stores=True),
    "avx512": CodegenOptions(frozenset(V4), 512),
}


class Case(NamedTuple):
    """body: takes a row; other: does not, as its precondition does not hold; on other_cpu if that is why."""

    body: str
    other: str
    cpu: str = "avx2"
    other_cpu: str = ""
    options: tuple[tuple[str, object], ...] = ()


IN_LOCKSTEP = (("group", (64, 1, 1)), ("parts", 8))
BY_ROWS = (("parts", 4), ("part_axis", 1))
FAR = "i += 3 * get_global_size(0); "  # so that it may not be an int
ASKED = FAR + "float s = 0; for (int k = 0; k < 6; k++) { s = s * 3 + in[i]; i += get_global_size(0); } "
PACKED_ASKED = (
    FAR + "float4 s = 0; for (int k = 0; k < 4; k++) { s = s * 3 + rows[i]; i += get_global_size(0); } "
)
ARRAY = "float a[4]; for (int k = 0; k < 4; k++) a[k] = in[i + k * n]; for (int k = 0; k < n; k++) "

LOAD_CASES = {
    "volatile": Case("out[i] = port[i];", "out[i] = in[i];"),
    "fields": Case("out[i] = in[2 * i] + in[2 * i + 1];", "out[i] = in[i];"),
    "pieces": Case(ARRAY + "a[k & 3] += k; out[i] = a[n & 3];", "out[i] = in[i];"),
    "pieces, anywhere": Case(ARRAY + "a[k & 3] += k; out[i] = a[index[i] & 3];",
                             ARRAY + "a[k & 3] += k; out[i] = a[n & 3];"),
    "in registers": Case("tile[get_local_id(0)] = in[i]; barrier(1); out[i] = tile[get_local_id(0) ^ 1];",
                         "out[i] = in[i];", options=IN_LOCKSTEP),
    "packed": Case("rows[i] = rows[i] * 2;", "rows[i ^ n] = rows[i ^ n] * 2;"),
    "packed, placed": Case(PACKED_ASKED + "rows[get_global_id(0)] = s;", "rows[i ^ n] = rows[i ^ n] * 2;"),
    "packed, asked": Case("rows[i ^ n] = rows[i ^ n] * 2;", "rows[i] = rows[i] * 2;"),
    "packed, anywhere": Case(PACKED_ASKED + "rows[get_global_id(0)] = s;", "out[i] = rows[index[i]].x;"),
    "placed": Case(ASKED + "out[get_global_id(0)] = s;", "out[i] = in[i];"),
    "placed, anywhere": Case(ASKED + "out[get_global_id(0)] = s;", "out[i] = in[i];"),
    "table": Case("to[i] = letters[bytes[i] & 15];", "to[i] = letters[n & 15];"),
    "uniform": Case("out[i] = in[n];", "out[i] = in[i];"),
    "contiguous": Case("out[i] = in[i];", "out[i] = in[n];"),
    "asked whether alike": Case("out[i] = in[i / n];", "out[i] = in[i ^ n];"),
    "asked whether neighbours": Case("out[i] = in[i ^ n];", "out[i] = in[i / n];"),
    "transposed rows": Case(
        "float s = 0; for (int k = 0; k < n; k++) s += in[(size_t)i * n + k]; out[i] = s;",
        "float s = 0; for (int k = 0; k < n; k++) s += in[(size_t)i * n + 2 * k]; out[i] = s;"),
    "gather": Case("out[i] = in[index[i]];", "out[i] = in[index[i]];", "avx512", "avx2"),
    "rows": Case("out[i] = rows[index[i]].x;", "out[i] = pairs[index[i]].x;"),
    "lanes": Case("to[i] = bytes[index[i]];", "out[i] = rows[i * i].x;", "avx512"),
}  # fmt: skip
STORE_CASES = {
    "volatile": Case("port[i] = i;", "out[i] = i;"),
    "merged": Case("out[i * n + get_global_id(1)] = in[i];", "out[i] = in[i];", options=BY_ROWS),
    "fields": Case("out[2 * i] = in[i]; out[2 * i + 1] = n;", "out[2 * i] = in[i];"),
    "pieces": Case(ARRAY + "a[k & 3] += k; out[i] = a[n & 3];", "out[i] = in[i];"),
    "pieces, anywhere": Case(ARRAY + "a[index[i + k] & 3] = k; out[i] = a[n & 3];",
                             ARRAY + "a[k & 3] += k; out[i] = a[n & 3];"),
    "in registers": Case("tile[get_local_id(0)] = in[i]; barrier(1); out[i] = tile[get_local_id(0) ^ 1];",
                         "out[i] = in[i];", options=IN_LOCKSTEP),
    "uniform": Case("out[n] = in[i];", "out[i] = in[i];"),
    "past the caches": Case("out[i] = in[i];", "out[i] += in[i];"),
    "contiguous": Case("out[i] += in[i];", "if (in[i] > 3) out[i] = in[i];"),
    "masked store": Case("if (in[i] > 3) out[i] = in[i];", "if (in[i] > 3) to[i] = 3;"),
    "versions by mask": Case("if (in[i] > 3) out[i] = in[i];", "if (in[i] > 3) out[i] = in[i];", "amd",
                             "avx512"),
    "asked whether neighbours": Case("out[i ^ n] = in[i];", "out[index[i]] = in[i];"),
    "scatter": Case("out[index[i]] = in[i];", "out[index[i]] = in[i];", "avx512", "avx2"),
    "rows": Case("rows[index[i]] = in[i];", "out[index[i]] = in[i];"),
    "lanes": Case("to[index[i]] = bytes[i];", "rows[index[i]] = in[i];", "avx512"),
}  # fmt: skip
TABLES = {"loads": (LOADS, LOAD_CASES), "stores": (STORES, STORE_CASES)}
# Rows that no CPU of AArch64 has: NEON has neither masks nor gathers.
OF_X86 = ("gather", "scatter", "masked store", "versions by mask", "past the caches")
# Only code whose lanes go on in the next row loads ids under a mask or as vectors.
ELSEWHERE = {("loads", "built-in")}


class Seen:
    """Names of rows that were taken, and of those whose preconditions held."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.held: set[str] = set()


@pytest.fixture
def emitted(monkeypatch):
    """A function that emits a body, and tells what a table was asked."""
    take = ways.Table.take

    def of(table, body: str, cpu: str, options=()) -> Seen:
        seen = Seen()

        def watched(self, e, access):
            if self is table:
                seen.held |= {w.name for w in self.of[access.demand] if w.match(e, access) is not None}
            way = take(self, e, access)
            if self is table:
                seen.taken.add(way.name)
            return way

        monkeypatch.setattr(ways.Table, "take", watched)
        Program(compile_c(SOURCE.format(body)), CPUS[cpu], width=8, **dict(options)).code("k")
        return seen

    return of


@pytest.mark.parametrize("kind, name", [(k, name) for k, (_, cases) in TABLES.items() for name in cases])
def test_a_row_is_taken_where_it_holds(emitted, kind, name):
    if IS_ARM and name in OF_X86:
        pytest.skip("not on AArch64")
    table, cases = TABLES[kind]
    case = cases[name]
    seen = emitted(table, case.body, case.cpu, case.options)
    last = {way.name for way in table.ways if way.match is ways.always}  # for a demand: they always hold
    assert name in seen.held and name in seen.taken, (seen.held, seen.taken)
    without = emitted(table, case.other, case.other_cpu or case.cpu)
    assert without.taken and name not in without.taken
    assert name not in without.held or name in last


def test_every_row_has_a_case():
    for kind, (table, cases) in TABLES.items():
        assert {way.name for way in table.ways} == {*cases, *(n for k, n in ELSEWHERE if k == kind)}


def test_ids_of_lanes_in_several_rows(emitted):
    body = "out[i] = get_local_id(0) * 3 + get_local_id(1);"
    options = (("linear_lanes", True),)
    assert "built-in" in emitted(LOADS, body, "avx2", options).taken


def test_the_last_row_for_a_demand_always_holds():
    """But rows of what is found together with others are demanded only where it is found."""
    for table, _ in TABLES.values():
        for demand, rows in table.of.items():
            if demand not in (ways.FIELD, ways.MERGED, ways.ANY):
                assert rows[-1].match is ways.always, demand
        assert [way.name for way in table.of[ways.ANY]][-2:] == ["rows", "lanes"]
