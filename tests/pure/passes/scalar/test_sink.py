"""What all ways to a join do alike is done behind it: addresses, and stores."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.spirv.enums import Op

from ..support import compare, compile_cl, make_plan

ADDRESS = Op.InBoundsPtrAccessChain


def instructions(plan):
    return [i for r in plan.regions for b in r.function.blocks for i in b.instructions]


def test_a_phi_of_equal_addresses_is_the_address():
    """Both branches store to a[i]; at -O0 each computes the address by itself."""
    source = """kernel void k(global int *a, int n) { int i = get_global_id(0); global int *p;
        if (a[i] > 3) { p = &a[i * 2 + n]; a[0] = 1; } else p = &a[i * 2 + n];
        *p = 7; }"""
    for level in ("-O0", "-O2"):
        plan = make_plan(compile_cl(source, level), "k", width=8)
        shapes = plan.regions[0].shapes
        last = [i for i in instructions(plan) if i.op is Op.Store][-1]
        assert shapes.stride(last.operands[0]) == 8, level


HEAD = """struct S { int a, b; int c[4]; };
kernel void k(global int *o, global int *p, global const int *x, int n, global struct S *s) {
    int i = get_global_id(0), v = x[i]; """


@pytest.mark.parametrize(
    "body, stores",
    [
        ("if (v < 4) o[i] = 0; else if (v > 9) o[i] = 1; else o[i] = v;", 1),
        ("if (v < 4) o[i] = x[n]; else { o[i] = p[i]; }", 1),
        ("if (v < 4) { o[i] = 5; p[i] = v; } else { o[i] = n; p[i] = 3; }", 2),
        ("if (v < 4) { o[i] = 5; p[i] = v; } else { p[i] = 3; o[i] = n; }", 4),  # the last are different
        ("if (v < 4) o[i] = 0; else if (v > 9) o[i] = 1;", 2),  # one way stores nothing
        ("if (v < 4) o[i] = 0; else o[i + 1] = 1;", 2),  # it would be a scatter
        ("if (v < 4) s[i].a = 7; else s[i].b = 8;", 2),  # no phi may choose members
        ("if (v < 4) *(volatile global int *)&o[i] = 0; else *(volatile global int *)&o[i] = 1;", 2),
        ("if (v < 4) o[i] = 3; else { p[0] = 0; o[i] = 9; p[1] = o[i + 1]; }", 4),  # something follows
        ("if (v < 4) ((global char *)o)[4 * i] = 3; else o[i] = 9;", 2),  # of other types
    ],
)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_stores_at_the_end_of_all_ways(body, stores, level):
    module = compile_cl(f"{HEAD} {body} }}", level)
    # LLVM may choose between pointers to members of structures, which are bytes for it then.
    count = sum(i.op is Op.Store for i in instructions(make_plan(module, "k", width=8)))
    assert count == stores or (level == "-O2" and count < stores)
    x = np.arange(40, dtype=np.int32) * 7 % 13
    buffers = [np.full(64, k, np.int32) for k in (21, 22)]
    compare(module, "k", [*buffers, x, 5, np.full(6 * 40, 23, np.int32)], (40,), (20,), widths=(1, 8, 16))


def test_an_index_is_chosen_and_not_an_address():
    """So lanes choose with 32 bits."""
    source = """kernel void k(global float *o, global const float *x, int n) {
        int i = get_global_id(0), at; float v = x[i];
        if (v < 0) { o[0] = 1; at = i + n; } else if (v > 5) { o[1] = 2; at = i - n; } else at = 3 * i;
        o[i] = x[at] + v; }"""
    for level in ("-O0", "-O2"):
        found = instructions(make_plan(compile_cl(source, level), "k", width=8))
        selects = [i for i in found if i.op in (Op.Select, Op.Phi)]
        assert selects and all(i.type.width == 32 for i in selects if i.type.kind.name == "INT"), level
        assert not any(i.type.kind.name == "POINTER" for i in selects), level


def test_values_that_only_some_ways_share():
    """The first two ways have an expression in common that the third computes by itself."""
    source = """kernel void k(global int *o, global const int *x, int n) {
        int i = get_global_id(0); global int *p;
        if (x[i] > 3) {
            int at = i * n + 7;
            if (x[i] > 9) { p = &o[at & 31]; o[40] = 1; } else { p = &o[at & 31]; o[41] = 1; }
        } else p = &o[(i * n + 7) & 31];
        *p = 7; }"""
    for level in ("-O0", "-O2"):
        module = compile_cl(source, level)
        x = np.arange(16, dtype=np.int32) * 5 % 12
        compare(module, "k", [np.zeros(48, np.int32), x, 3], (16,), (16,), widths=(1, 8))
