"""Values that most iterations of a loop, or most lanes, leave as they are: nothing is done for those."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.passes.ir.dominance import LoopNest, dominators
from cl_driver.passes.ir.instructions import predecessors
from cl_driver.spirv.enums import Op
from cl_driver.spirv.module import Kind

from ..support import compare, compile_cl, make_plan

WIDTHS = (1, 4, 8, (4, 2, 0), (8, 2, 1))

SOURCE = """
int work(global const int *in, int a, int b) {
    int r = a * b + 3;
    for (int m = 0; m < (b & 7); m++) r = r * in[m] + a;
    return (r ^ a * 5) * (b + 7) - (r >> 3) * a;
}
kernel void nearest(global int *out, global const int *in, int n) {
    int i = get_global_id(0), best = n, where = -1, other = 7, count = in[i] & 15;
    for (int k = 0; k < count; k++) {
        int at = in[i * 3 + k & 31];
        if (at == 3) continue;
        if (at == 5) {
            int w = work(in, k, i);
            if (w > best) { best = w; where = k * n; other = w * i; }
        }
        if (at == 9) {
            int w = work(in, i, k);
            if (w < best) { best = w * 3; where = k + w; other -= w; }
        }
    }
    out[i] = best * 5 + where * 3 + other;
}
kernel void both_leave(global int *out, global const int *in, int n) {
    int i = get_global_id(0), x = n, last = 1, k = 0;
    while (true) {
        int at = in[i * 5 + k & 31], next = x;
        if (at > 20) { next = work(in, x, at); if (next & 1) next = at - x; }
        if (at == 7) { last = x; x = next; break; }
        if (++k > (i & 15) + n) { last = next - x; break; }
        last = x;
        x = next;
    }
    out[i] = x * 7 + last;
}
kernel void changed_on_the_way(global int *out, global const int *in, int n) {
    int i = get_global_id(0), x = n, y = i;
    for (int k = 0; k < (i & 15); k++) {
        int at = in[i + k * 3 & 31], old = x;
        if (at > 12) {
            x = work(in, x, at);
            if (x & 2) { y = old; if (at & 1) { x = old; } else if (at & 4) continue; }
            y += work(in, y, x) & 3;
        }
        if (at < 4) { x = y * at; if (x == 0) break; y = x + work(in, at, y); }
        if (at == n) x = old;
    }
    out[i] = x * 7 + y;
}
kernel void at_the_top(global int *out, global const int *in, int n) {
    int i = get_global_id(0), x = in[i], steps = 0, y = 1;
    while (x < n * 9 && (y & 63) != 21) {
        if (x & 4) { y = work(in, y, x); if (y & 8) steps += y & 3; }
        x += (x & 3) + 1;
    }
    out[i] = x + y * 3 + steps * 5;
}
kernel void in_one_another(global int *out, global const int *in, int n) {
    int i = get_global_id(0), x = n, y = 0;
    for (int k = 0; k < (in[i] & 7); k++) {
        for (int m = k; m < (in[i + k & 31] & 7); m++) {
            if (in[m] == k) { x = work(in, x, m); if (x & 4) { y = x - m; } }
            if ((x & 31) == 9) break;
        }
        if (in[k + i & 31] > 25) {
            int z = work(in, y, x);
            if (z > x) x = z; else { y = z; if (z & 1) break; }
        }
    }
    out[i] = x * 3 + y;
}
kernel void without_a_loop(global int *out, global const int *in, int n) {
    int i = get_global_id(0), x = in[i], r = n;
    if (x > 3) {
        if (x > 20) { r = work(in, x, i); if (r & 1) { r = work(in, r, x); if (r & 2) goto end; } }
        if (x == 13) { r = work(in, i, r); if (r > 0) goto end; r = r & 15; }
        if (x & 1) r = work(in, r, r) + 1;
    }
    if (r == n) r = work(in, r, i);
end:
    out[i] = r;
}
kernel void bools(global int *out, global const int *in, int n) {
    int i = get_global_id(0);
    bool seen = n & 1, twice = false;
    for (int k = 0; k < (i & 15); k++) {
        int at = in[i + k * 3 & 31];
        if (at > 20) { if (work(in, at, k) & 1) { twice = seen; seen = true; } }
        if (twice && at == 3) break;
    }
    out[i] = seen + 2 * twice;
}
"""
NAMES = (
    "nearest", "both_leave", "changed_on_the_way", "at_the_top", "in_one_another", "without_a_loop", "bools",
)  # fmt: skip


@pytest.mark.parametrize("level", ["-O2", "-O1"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [2, 5, 11])
def test_results(name, level, n):
    values = np.random.default_rng(n).integers(0, 32, 40).astype(np.int32)
    compare(compile_cl(SOURCE, level), name, [np.zeros(40, np.int32), values, n], (40,), (8,), WIDTHS)


def outer_loop(name: str):
    """The blocks of the outermost loop of a kernel, and its header."""
    function = make_plan(compile_cl(SOURCE), name, width=8).regions[0].function
    before = predecessors(function)
    tree = dominators(function, before)
    (loop,) = [loop for loop in LoopNest(function, tree, before).loops if loop.parent is None]
    return loop, tree


def test_an_iteration_without_changes_selects_nothing():
    loop, tree = outer_loop("nearest")
    (latch,) = loop.latches
    always = [b for b in loop.blocks if tree.dominates(b, latch)]
    assert not [i for b in always for i in b.instructions if i.op is Op.Select]


def test_what_leaves_a_loop_is_carried_only_once():
    loop, _ = outer_loop("nearest")
    carried = [phi for phi in loop.header.phis() if phi.type.kind is not Kind.BOOL]
    assert len(carried) == 4  # the counter, best, where, other
