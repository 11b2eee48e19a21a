"""Kernels of many control-flow shapes give the same results before and after the passes, and the right
ones."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.passes.ir.ops import PassOp
from cl_driver.spirv.enums import Op
from cl_driver.spirv.module import Constant, Kind

from .support import compare, compile_cl, make_plan

SOURCE = """
kernel void nested_loops(global int *out, int n) {
    int i = get_global_id(0), sum = 0;
    for (int a = 0; a < n; a++)
        for (int b = a; b < i; b++) {
            if ((a ^ b) == 5) continue;
            if (b > 12) break;
            sum += a * b + 1;
        }
    out[i] = sum;
}

kernel void early_return(global int *out, global const int *in, int n) {
    int i = get_global_id(0);
    if (i >= n) return;
    int v = in[i];
    for (int k = 0; k < 20; k++) {
        v = (v & 1) ? 3 * v + 1 : v >> 1;
        if (v == 1) { out[i] = k; return; }
    }
    out[i] = -v;
}

kernel void switched(global int *out, global const int *in) {
    int i = get_global_id(0), r = 0;
    switch (in[i]) {
    case 0: r = 7; break;
    case 1: r = 1;
    case 2: r += 20; break;
    case -3: out[i] = 99; return;
    case 1000: { for (int k = 0; k < i; k++) r += k; } break;
    default: r = in[i] * 2;
    }
    out[i] = r;
}

kernel void irreducible(global int *out, int n) {
    int i = get_global_id(0), x = i, steps = 0;
    if (i & 1) goto second;
first:
    x = x * 3 + 1; steps++;
    if (x > 200) goto done;
second:
    x = x + 7; steps += 100;
    if (x % 5 == 0 && steps < 1000) goto second;
    if (x < n) goto first;
done:
    out[i] = x * 10000 + steps;
}

int helper(int a, int b) {
    if (a > b) return a - b;
    for (int i = 0; i < 5; i++) if (a * i > b) return i;
    return -1;
}

kernel void calls(global int *out, global const int *in) {
    int i = get_global_id(0);
    int r = helper(in[i], 10);
    if (r > 0) r += helper(r, in[i]);
    out[i] = r * 100 + helper(i, i);
}

kernel void private_array(global int *out, global const int *in) {
    int i = get_global_id(0), t[8], u[16];
    for (int k = 0; k < 8; k++) t[k] = in[k] * i;
    for (int k = 0; k < 16; k++) u[k] = k + i;
    t[in[i & 7] & 7] = 1000;
    u[t[2] & 15] += 5;
    int s = 0;
    for (int k = 0; k < 8; k++) s += t[k] * u[in[k] & 15];
    out[i] = s;
}

struct pair { int a; char c; double d; int v[3]; };
struct outer { struct pair p[2]; float4 f; };

int by_value(struct outer o, int k) { o.p[1].v[k & 1] += 5; return o.p[1].v[1] + o.p[0].a; }

kernel void structs(global int *out, struct outer o) {
    int i = get_global_id(0);
    struct outer copy = o;
    copy.p[0].a += i;
    copy.p[1].v[2] = (int)copy.f.y;
    struct pair q = copy.p[1];
    o.p[0].a -= i;
    out[i] = by_value(copy, i) + by_value(o, i + 1) + q.v[2] + (int)q.d + q.c;
}

kernel void vectors(global float4 *out, global const float4 *in, float4 k, int n) {
    int i = get_global_id(0);
    float4 a = in[i];
    for (int j = 0; j < n; j++) {
        a.xz = a.yw + k.x;
        a.w = dot(a, k);
        float3 b = a.xyz * 0.5f;
        a.xyz = b.zxy;
    }
    ((float *)&a)[i & 3] = 42.0f;
    out[i] = a;
}

kernel void two_dimensions(global int *out, int w) {
    int x = get_global_id(0), y = get_global_id(1);
    out[y * w + x] = get_local_id(0) + 10 * get_local_id(1) + 100 * get_group_id(0) + 1000 * get_group_id(1)
        + 10000 * get_local_size(0) + 100000 * get_global_offset(1);
}
"""

BOTH = pytest.mark.parametrize("level", ["-O0", "-O2"])
N = 20


def ints(*values):
    return np.array(values, np.int32)


def out(n=N):
    return np.zeros(n, np.int32)


@BOTH
def test_nested_loops(level, widths):
    (result, _) = compare(compile_cl(SOURCE, level), "nested_loops", [out(), 9], (N,), (5,), widths)
    expected = []
    for i in range(N):
        total = 0
        for a in range(9):
            for b in range(a, i):
                if a ^ b == 5:
                    continue
                if b > 12:
                    break
                total += a * b + 1
        expected.append(total)
    assert result.tolist() == expected


@BOTH
def test_early_return(level, widths):
    values = np.arange(1, N + 1, dtype=np.int32)
    result, *_ = compare(compile_cl(SOURCE, level), "early_return", [out(), values, 17], (N,), (4,), widths)

    def steps(v):
        for k in range(20):
            v = 3 * v + 1 if v & 1 else v >> 1
            if v == 1:
                return k
        return -v

    assert result.tolist() == [steps(int(v)) for v in values[:17]] + [0] * 3


@BOTH
def test_switch(level, widths):
    values = ints(*([0, 1, 2, -3, 1000, 5, -7] * 3)[:N])
    result, _ = compare(compile_cl(SOURCE, level), "switched", [out(), values], (N,), (4,), widths)

    def case(i, v):
        return {0: 7, 1: 21, 2: 20, -3: 99, 1000: i * (i - 1) // 2}.get(v, 2 * v)

    assert result.tolist() == [case(i, int(v)) for i, v in enumerate(values)]


@BOTH
def test_irreducible(level, widths):
    result, _ = compare(compile_cl(SOURCE, level), "irreducible", [out(), 100], (N,), (4,), widths)

    def walk(i):
        x, steps = i, 0
        at_second = bool(i & 1)
        while True:
            if not at_second:
                x, steps = 3 * x + 1, steps + 1
                if x > 200:
                    break
            x, steps = x + 7, steps + 100
            if x % 5 == 0 and steps < 1000:
                at_second = True
                continue
            if x >= 100:
                break
            at_second = False
        return x * 10000 + steps

    assert result.tolist() == [walk(i) for i in range(N)]


@BOTH
def test_calls(level, widths):
    values = np.arange(N, dtype=np.int32) * 3 - 10
    result, _ = compare(compile_cl(SOURCE, level), "calls", [out(), values], (N,), (4,), widths)

    def helper(a, b):
        if a > b:
            return a - b
        return next((i for i in range(5) if a * i > b), -1)

    def kernel(i, v):
        r = helper(v, 10)
        if r > 0:
            r += helper(r, v)
        return r * 100 + helper(i, i)

    assert result.tolist() == [kernel(i, int(v)) for i, v in enumerate(values)]


@BOTH
def test_private_arrays(level, widths):
    values = ints(3, 1, 4, 1, 5, 9, 2, 6)
    result, _ = compare(compile_cl(SOURCE, level), "private_array", [out(), values], (N,), (4,), widths)
    expected = []
    for i in range(N):
        t, u = [int(v) * i for v in values], [k + i for k in range(16)]
        t[values[i & 7] & 7] = 1000
        u[t[2] & 15] += 5
        expected.append(sum(t[k] * u[values[k] & 15] for k in range(8)))
    assert result.tolist() == expected


@BOTH
def test_structs_by_value(level, widths):
    pair = np.dtype([("a", "i4"), ("c", "i1"), ("d", "f8"), ("v", "i4", 3)], align=True)
    outer = np.dtype({"names": ["p", "f"], "formats": [(pair, 2), ("f4", 4)], "offsets": [0, 64]})
    o = np.zeros((), outer)
    o["p"]["a"], o["p"]["c"], o["p"]["d"] = [10, 20], [-3, -4], [1.5, 2.5]
    o["p"]["v"] = [[1, 2, 3], [4, 5, 6]]
    o["f"] = [1, 77, 3, 4]
    given = o.tobytes()
    result, _ = compare(compile_cl(SOURCE, level), "structs", [out(), given], (N,), (4,), widths)
    expected = [(5 + 5 * (i & 1) + 10 + i) + (5 + 5 * (~i & 1) + 10 - i) + 77 + 2 - 4 for i in range(N)]
    assert result.tolist() == expected


@BOTH
def test_vectors(level, widths):
    given = np.arange(4 * N, dtype=np.float32)
    k = (0.25, 0.5, -0.5, 0.125)
    result, *_ = compare(compile_cl(SOURCE, level), "vectors", [given * 0, given, k, 3], (N,), (4,), widths)
    f = np.float32
    for i in range(N):
        a = given[4 * i : 4 * i + 4].copy()
        for _ in range(3):
            a[0], a[2] = a[1] + f(k[0]), a[3] + f(k[0])
            a[3] = np.dot(a, np.array(k, f))
            b = a[:3] * f(0.5)
            a[:3] = b[[2, 0, 1]]
        a[i & 3] = 42
        np.testing.assert_allclose(result[4 * i : 4 * i + 4], a, rtol=1e-6)


def test_non_uniform_groups_and_offsets(widths):
    module = compile_cl(SOURCE)
    w, h = 7, 5
    result, _ = compare(
        module, "two_dimensions", [out(12 * 9), 12], (w, h), (4, 2), widths, global_offset=(3, 2, 0)
    )
    for y in range(h):
        for x in range(w):
            lx, ly, gx, gy = x % 4, y % 2, x // 4, y // 2
            size = min(4, w - 4 * gx)
            expected = lx + 10 * ly + 100 * gx + 1000 * gy + 10000 * size + 200000
            assert result[(y + 2) * 12 + x + 3] == expected


def test_variables_are_promoted():
    """At -O0 everything is in variables; only arrays with computed indices may stay."""
    module = compile_cl(SOURCE, "-O0")
    for name in ("nested_loops", "early_return", "switched", "irreducible", "calls"):
        assert make_plan(module, name).private_size == 0, name
    assert make_plan(module, "private_array").private_size == 8 * 4 + 16 * 4


def test_the_module_is_not_changed():
    module = compile_cl(SOURCE)
    before = [len(b.instructions) for f in module.functions for b in f.blocks]
    make_plan(module, "structs")
    make_plan(module, "irreducible")
    assert before == [len(b.instructions) for f in module.functions for b in f.blocks]


RARE = """
kernel void k(global float *a, global float *b) {
    int i = get_global_id(0);
    float x = a[i], y = b[i];
    if (x > 100) for (int k = 0; k < 9; k++) { x = x * 0.5f + y; y = sqrt(y + x); }
    a[i] = x + y;
}
"""


def test_a_rare_case_costs_nothing_where_no_lane_has_it():
    """Selects are where lanes part (vectorize/sink_selects.py), not where they meet again. That they stay out
    of loops is tested in test_divergent_loops.py."""
    (region,) = make_plan(compile_cl(RARE), "k", width=8).regions
    blocks = region.function.blocks
    (test,) = (b.terminator for b in blocks if b.terminator.op is Op.BranchConditional)
    assert test.operands[0].op is PassOp.AnyLane
    rare = test.operands[1]
    found = {b: sum(i.op is Op.Select for i in b.instructions) for b in blocks}
    assert found == {b: 2 if b is rare else 0 for b in blocks}


GUARDS = """
kernel void guarded(global int *out, global const int *in, int n) {
    int i = get_global_id(0);
    if (i < n) {
        int sum = 0, count = in[i];
        for (int k = 0; k < count; k++) sum += in[k] ^ i;
        out[i] = sum;
    }
}
kernel void both(global int *out, global const int *in, int n) {
    int i = get_global_id(0), r = 3;
    if (i < n) {
        int sum = in[i];
        if (sum & 1) { for (int k = 0; k < sum; k++) r += in[k] * k; if (r > 40) r = r % 7 + in[0]; }
        out[i] = r;
    } else {
        for (int k = i; k < 2 * n; k++) r ^= in[k & 7] + k;
        out[i] = r * 2;
    }
    out[i] += r + (i < n);
}
kernel void in_turn(global int *out, global const int *in, int n) {
    int i = get_global_id(0);
    if (i >= n) return;
    int a = in[i], b = in[a], c = a * b + n, d = (c ^ a) * 7;
    if (a == 0 && b == 0) return;
    if (in[i + 1] + c == d) { out[i] = d; return; }
    for (int k = 0; k < a; k++) d += in[k] * c;
    if (d & 1) d = d * 3 + in[b] * c - (d >> 3) * a + (c & d);
    out[i] = d;
}
kernel void two_ways_on(global int *out, global const int *in, int n) {
    int i = get_global_id(0), a = in[i], r = a * 5, s = 1;
    if (i < n) {
        int b = in[i + 1], c = (a + b) * (a ^ n), d = c * c - b, e = (d >> 2) * c;
        if (e & 1) {
            r = e * d + in[b] * c - (d & r) * 3;
            if (b > 3) goto second;
        } else if (d & 2) {
            for (int k = 0; k < b; k++) s += in[k] * e;
            r -= s * d + (c ^ b) * a - e;
        }
    }
    r = r * 7 + n; s ^= r;
    out[i + 40] = s;
second:
    out[i] = r + 2 * s;
}
"""


def test_the_body_of_a_guard_is_jumped_over_as_a_whole():
    plan = make_plan(compile_cl(GUARDS), "guarded", width=8)
    entry = plan.regions[0].function.blocks[0]
    test, _, behind = entry.terminator.operands[:3]
    assert test.op is PassOp.AnyLane
    assert [i.op for i in behind.instructions] == [PassOp.RegionExit]
    assert not any(i.op in (Op.Load, Op.Store) for i in entry.instructions if i.mask is not None)


def test_what_a_large_block_leads_to_is_jumped_over_with_it():
    """Also where the ways out of it are several."""
    plan = make_plan(compile_cl(GUARDS), "in_turn", width=8)
    test, _, behind = plan.regions[0].function.blocks[0].terminator.operands[:3]
    assert test.op is PassOp.AnyLane
    assert [i.op for i in behind.instructions] == [PassOp.RegionExit]


@pytest.mark.parametrize("step, is_asked", [(4, True), (1, False)])
def test_small_blocks_are_asked_for_together_where_much_is_saved(step, is_asked):
    """Loads at places of each lane's own are much."""
    source = f"""kernel void k(global int *out, global const int *in, int n) {{
        int i = get_global_id(0);
        if (i < n) {{
            int a = i & n ? in[i * {step} + 1] : 7, b = in[i * {step}];
            if (a != b) out[b] = i;
        }}
    }}"""
    plan = make_plan(compile_cl(source), "k", width=8)
    blocks = plan.regions[0].function.blocks
    tests = [b.terminator.operands[0] for b in blocks if b.terminator.op is Op.BranchConditional]
    assert len(tests) == 1 + is_asked
    assert any(i.op is Op.Load and i.mask is not None for i in blocks[0].instructions) != is_asked


def test_where_the_lanes_of_a_body_go_on_is_known_behind_it():
    plan = make_plan(compile_cl(GUARDS), "two_ways_on", width=8)
    test, _, behind = plan.regions[0].function.blocks[0].terminator.operands[:3]
    assert test.op is PassOp.AnyLane
    masks = [i for i in behind.phis() if i.type.kind is Kind.BOOL]
    assert any(isinstance(o, Constant) and not o.value for phi in masks for o in phi.operands)


@pytest.mark.parametrize(
    "place, is_asked", [("in[i] & 7", True), ("i * 3", True), ("i", False), ("i & n", True)]
)
def test_a_store_to_places_of_each_lanes_own_is_jumped_over(place, is_asked):
    source = f"""kernel void k(global int *out, global const int *in, int n) {{
        int i = get_global_id(0);
        if (in[i] > n) out[{place}] = i;
    }}"""
    plan = make_plan(compile_cl(source), "k", width=8)
    tests = [i for b in plan.regions[0].function.blocks for i in b.instructions if i.op is PassOp.AnyLane]
    assert len(tests) == is_asked


@pytest.mark.parametrize("name", ["guarded", "both", "in_turn", "two_ways_on"])
@pytest.mark.parametrize("n", [0, 1, 5, 16, 40])
def test_bodies_of_guards(name, n, widths):
    rng = np.random.default_rng(n)
    values = rng.integers(0, 8, 64).astype(np.int32)
    compare(compile_cl(GUARDS), name, [np.zeros(80, np.int32), values, n], (40,), (8,), widths)


SELDOM = """
kernel void k(global int *out, global const int *in, int n) {
    int i = get_global_id(0), x = in[i], s = 0, d = 1, m = (i * 7 & 15) + n;
    for (int j = 0; j < m; j++) {
        x = x * 1103515245 + 12345;
        if ((x >> 16 & 31) > n) {
            int y = x * s + d, z = y * y - x * 3, w = z * d + y * s - x;
            if (y > 0) { s += z * w - y; d = d * 5 + z * z * w - (y + w) * z; }
            if (w < 0) { if (y < s) { s += w * 25 + y * y * z; d -= z; } else s -= w * z * z * y + d * w; }
            if ((s & 15) == 5) break;
        }
        s += x;
    }
    out[i] = s + d;
}
"""


def test_what_is_seldom_in_a_loop_costs_one_question():
    """Lanes may leave the loop one by one, and from there."""
    (region,) = make_plan(compile_cl(SELDOM), "k", width=8).regions
    head = next(
        b for b in region.function.blocks if list(b.phis()) and any(i.op is Op.IMul for i in b.instructions)
    )
    questions, products, block = 0, 0, head
    while True:  # the way of an iteration in which no lane has the seldom case
        products += sum(i.op is Op.IMul for i in block.instructions)
        terminator = block.terminator
        if head in terminator.operands:
            break
        asks = terminator.op is Op.BranchConditional
        questions += asks
        block = terminator.operands[2 if asks else 0]
    assert (questions, products) == (1, 1)


@pytest.mark.parametrize("n", [0, 3, 28, 31])
def test_seldom(n, widths):
    values = np.random.default_rng(n).integers(0, 1 << 31, 40).astype(np.int32)
    compare(compile_cl(SELDOM), "k", [np.zeros(40, np.int32), values, n], (40,), (8,), widths)
