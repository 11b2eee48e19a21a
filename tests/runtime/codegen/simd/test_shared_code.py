"""Code for each lane that is a function of the module does what it does where it is written out."""

import numpy as np
import pytest

from cl_driver.codegen.library import shared_code
from cl_driver.codegen.llvm.options import CodegenOptions
from tests.runtime.codegen.access.test_ways import CPUS
from tests.runtime.kernel_harness import Program, compile_c

ITEMS = 77
# What each work-item does with its place `at` in some arrays, twice.
BODIES = {
    "bytes": "s += bytes[at]; bytes[at + SIZE] = s; s += bytes[at ^ 1];",
    "steps": "s += bytes[i * 3]; bytes[i * 3 + 2] = s;",
    "shorts": "s += shorts[at]; shorts[at + SIZE] = s;",
    "pairs": "s += convert_int2(pairs[at]).y; pairs[at + SIZE] = s;",
    "rows": "rows[at + SIZE] = rows[at] + rows[at ^ 1].wzyx * 2; s += rows[at ^ 2].y;",
    "doubles": "wide[at + SIZE] = wide[at].yx + 1;",
    "structs": "records[at + SIZE] = records[at ^ 1]; s += records[at].b;",
    "atomics": "s += atomic_add(numbers + at % 5, s & 3); atomic_max(numbers + 5 + at % 3, i);",
    "exchanges": "s += atomic_cmpxchg(numbers + at % 5, i % 3, 7); s ^= atomic_xchg(numbers + at, i);",
    "volatile": "s += *(volatile global int *)(numbers + at); *(volatile global int *)(numbers + at) = s;",
    "local": "s += atomic_add(all + at % 4, i); atomic_xor(all + at % 3, s); atomic_cmpxchg(all, s & 1, 1);",
    "uniform": "s += atomic_xchg(numbers + n, i); s += bytes[n];",
}
SOURCE = """
#define SIZE 128
typedef struct { int a; short b; float c; } record;
kernel void k(global int *index, global uchar *bytes, global short *shorts, global char2 *pairs,
              global float4 *rows, global double2 *wide, global record *records, global int *numbers,
              global int *out, int n) {
    local int all[8];
    int i = get_global_id(0), s = i * 5, at = index[i];
    if (get_local_id(0) < 8) all[get_local_id(0)] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    BODY
    at = at * 7 % SIZE;
    if (at % n != 1) { BODY }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = s + all[i % 8];
}
"""


def results(body, options, width):
    """All arrays after a run, and the text of the kernel."""
    rng = np.random.default_rng(5)
    index = rng.permutation(128)[:ITEMS].astype(np.int32)
    kinds = ("u1", 256), ("i2", 256), ("i1", 512), ("f4", 1024), ("f8", 512), ("i4", 768), ("i4", 128)
    arrays = [rng.integers(0, 100, size).astype(kind) for kind, size in kinds]
    out = np.zeros(ITEMS, np.int32)
    program = Program(compile_c(SOURCE.replace("BODY", body)), options, width=width)
    program.run("k", ITEMS, 11, index, *arrays, out, np.int32(3))
    return [*arrays, out], program.code("k").text


@pytest.mark.parametrize("cpu", ["sse", "avx2", "avx512"])
@pytest.mark.parametrize("name", BODIES)
def test_functions_do_the_same(monkeypatch, name, cpu):
    options = CPUS[cpu]
    for width in (8, 16):
        monkeypatch.setattr(shared_code, "MOST_LINES", 1 << 30)
        expected, long = results(BODIES[name], options, width)
        monkeypatch.setattr(shared_code, "MOST_LINES", 0)
        found, short = results(BODIES[name], options, width)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        assert "@lanes." not in long
        assert "@lanes.0(" in short or (name == "atomics" and "lanes" not in long)


def test_one_function_for_what_is_alike(monkeypatch):
    """And another for what is not."""
    monkeypatch.setattr(shared_code, "MOST_LINES", 0)

    def functions(body):
        _, text = results(body, CodegenOptions(), 8)
        return [
            text.count(f"{what} <8 x {t}> @lanes.")
            for what in ("define internal", "call")
            for t in ("i8", "i16")
        ]

    assert functions("s += bytes[at]; s += bytes[at + 7];") == [1, 0, 8, 0]
    assert functions("s += bytes[at]; s += shorts[at];") == [1, 1, 4, 4]


def test_little_is_written_out():
    """Inner loops may have more of it."""
    body = "s += bytes[at ^ s];"
    lines = 5 * 8
    half = shared_code.MOST_LINES // 2 // lines
    many = half // 4 * body  # of which there are four: full vectors and the rest, each with two
    assert "@lanes." not in results(many, CodegenOptions(), 8)[1]
    assert "@lanes." in results(2 * many, CodegenOptions(), 8)[1]
    in_loop = f"for (int k = 0; k < n; k++) {{ {many} {many} }}"
    whole, parts = results(in_loop, CodegenOptions(), 8)[1], results(2 * many, CodegenOptions(), 8)[1]
    assert whole.count("call <8 x i8> @lanes.") < parts.count("call <8 x i8> @lanes.")


def test_questions_about_address_spaces_are_no_functions():
    """Where local memory is only the kernel knows."""
    source = """kernel void k(global int *out) {
        local int one; one = 2;
        int i = get_global_id(0), mine = 3, *at = &mine;
        if (i % 2) at = &one;
        barrier(CLK_LOCAL_MEM_FENCE);
        int found = 0;
        if (i % 3) found += (to_local(at) != 0) + 2 * (to_private(at) != 0) + 4 * (to_global(at) != 0);
        if (i % 5) found += 8 * *at + 64 * (get_fence(at) == CLK_LOCAL_MEM_FENCE);
        out[i] = found;
    }"""
    i = np.arange(64)
    odd, out = i % 2, np.zeros(64, np.int32)
    Program(compile_c(source), width=16).run("k", 64, 32, out)
    wanted = (i % 3 > 0) * np.where(odd, 1, 2) + (i % 5 > 0) * (8 * np.where(odd, 2, 3))
    assert np.array_equal(out & 63, wanted)
    assert (out[(odd == 1) & (i % 5 > 0)] & 64).all()
