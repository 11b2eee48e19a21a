"""Loops of asynchronous copies alone run once per group (passes/lower/copy_loops.py)."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.spirv.enums import Op

from .support import compare, compile_cl, make_plan

HEAD = """
#define COPY(to, from, count) async_work_group_copy(to, from, count, 0)
kernel void k(global int *out, global const int *in, int n, int h) {
    local int t[64]; int l = get_local_id(0), g = get_group_id(0);
    t[l] = t[l + 8] = t[l + 16] = t[l + 24] = t[l + 32] = t[l + 40] = t[l + 48] = t[l + 56] = -1;
    barrier(CLK_LOCAL_MEM_FENCE);
"""
TAIL = """
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = l; i < 64; i += get_local_size(0)) out[64 * g + i] = t[i];
}
"""


def lines(t, given, n, h, group):
    for y in range(h):
        t[8 * y : 8 * y + n] = given[16 * y : 16 * y + n]


def strided(t, given, n, h, group):
    for y in range(h):
        t[8 * y : 8 * y + n] = given[y : y + 3 * n : 3]


def planes(t, given, n, h, group):
    for z in range(2):
        for y in range(h // 2):
            begin = 32 * z + 8 * y
            t[begin : begin + n] = given[begin + group : begin + group + n]


def chosen(t, given, n, h, group):
    for y in range(h):
        count = n if y % 2 else group
        t[8 * y : 8 * y + count] = given[8 * y : 8 * y + count]


def twice(t, given, n, h, group):
    lines(t, given, n, h, group)
    for y in range(h - 1):
        t[8 * y + 4 : 8 * y + 8] = given[y : y + 4]


def nothing(t, given, n, h, group):
    pass


LOOPS = {
    "for (int y = 0; y < h; y++) COPY(t + 8 * y, in + 16 * y, n);": lines,
    "for (int y = 0; y < h; y++) async_work_group_strided_copy(t + 8 * y, in + y, n, 3, 0);": strided,
    """for (int z = 0; z < 2; z++) for (int y = 0; y < h / 2; y++)
        COPY(t + 32 * z + 8 * y, in + 32 * z + 8 * y + get_group_id(0), n);""": planes,
    """for (int y = 0; y < h; y++)
        if (y & 1) COPY(t + 8 * y, in + 8 * y, n); else COPY(t + 8 * y, in + 8 * y, g);""": chosen,
    """for (int y = 0; y < h; y++) COPY(t + 8 * y, in + 16 * y, n);
       for (int y = 0; y < h - 1; y++) COPY(t + 8 * y + 4, in + y, 4);""": twice,
    "if (h > 1000) for (int y = 0; y < h; y++) COPY(t + 8 * y, in + 16 * y, n);": nothing,
}


def loops_of(plan):
    """For each region that runs once per group: the loops in it, by their phis."""
    once = [r.function for r in plan.regions if r.once]
    return [sum(i.op is Op.Phi for block in f.blocks for i in block.instructions) for f in once]


def check(module, expected, widths, last=lambda h: 0):
    """last: what the kernel leaves in out[192...]."""
    given = np.arange(200, dtype=np.int32)
    for n, h in ((3, 8), (4, 5), (4, 0)):
        args = [np.zeros(216, np.int32), given, n, h]
        result, *_ = compare(module, "k", args, (24,), (8,), widths)
        for group, found in enumerate(result[:192].reshape(3, 64)):
            t = np.full(64, -1)
            expected(t, given, n, h, group)
            assert found.tolist() == t.tolist()
        assert set(result[192:]) == {last(h)}


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_of_copies(loop, widths):
    module = compile_cl(HEAD + loop + TAIL)
    check(module, LOOPS[loop], widths)
    assert any(loops_of(make_plan(module, "k")))


def test_events_that_go_around(widths):
    """At -O0: clang's back end crashes on phis of events."""
    loop = """event_t e = 0;
        for (int y = 0; y < h; y++) e = async_work_group_copy(t + 8 * y, in + 16 * y, n, e);
        wait_group_events(1, &e);"""
    module = compile_cl(HEAD + loop + TAIL, "-O0")
    check(module, lines, widths)
    assert any(loops_of(make_plan(module, "k")))


def mixed(h):
    s = 1
    for _ in range(h):
        s = s * 3 ^ s >> 1
    return s


# What is done in such a loop besides copies, or what is left of it, is for every work-item to do.
OTHERS = {
    """for (int y = 0; y < h; y++) {
        COPY(t + 8 * y, in + 16 * y, n); out[192 + get_global_id(0)] = y + 1; }""": lambda h: h,
    """int s = 1; for (int y = 0; y < h; y++) { COPY(t + 8 * y, in + 16 * y, n); s = s * 3 ^ s >> 1; }
        out[192 + get_global_id(0)] = s;""": mixed,
    "for (int y = 0; y < h; y++) COPY(t + 8 * y, in + 16 * y, n + in[0]);": lambda h: 0,
    "for (int y = 0; y < h; y++) COPY(t + 8 * y, in + 16 * y, n / (h - y));": lambda h: 0,
}


@pytest.mark.parametrize("loop", OTHERS)
def test_loops_with_more_in_them(loop, widths):
    def expected(t, given, n, h, group):
        for y in range(h):
            count = n // (h - y) if "/" in loop else n
            t[8 * y : 8 * y + count] = given[16 * y : 16 * y + count]

    module = compile_cl(HEAD + loop + TAIL)
    check(module, expected, widths, OTHERS[loop])
    assert not any(loops_of(make_plan(module, "k")))


@pytest.mark.parametrize(
    "way", ["if (l > 2) LOOP", "if (l > 2) { LOOP t[l] += 5; }", "if (l < 3) return; LOOP"]
)
def test_loops_that_some_work_items_do_not_come_to(way, widths):
    """They never copy."""
    loop = "for (int y = 0; y < h - in[l] / 1000; y++) COPY(t + 8 * y, in + 16 * y, n);"
    source = HEAD.replace("barrier(CLK_LOCAL_MEM_FENCE);", "") + way.replace("LOOP", loop)
    module = compile_cl(source + "out[get_global_id(0)] = t[l] + 3; }")
    given = np.arange(200, dtype=np.int32)
    result, *_ = compare(module, "k", [np.zeros(24, np.int32), given, 4, 0], (24,), (8,), widths)
    others = 0 if "return" in way else 2
    assert result.tolist() == ([others] * 3 + [7 if "+= 5" in way else 2] * 5) * 3
    assert not any(loops_of(make_plan(module, "k")))
