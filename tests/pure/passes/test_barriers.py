"""Kernels with barriers, collectives and asynchronous copies: before the passes work-items are coroutines
that meet at barriers, after them regions run one after the other; the results must be the same, and
right."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cl_driver.passes.groups import barriers
from cl_driver.passes.ir.dump import function_text

from .support import Local, compare, compile_cl, make_plan

SOURCE = """
kernel void reduction(global int *out, global const int *in, local int *scratch) {
    int l = get_local_id(0);
    scratch[l] = in[get_global_id(0)];
    for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s) scratch[l] += scratch[l + s];
    }
    if (l == 0) out[get_group_id(0)] = scratch[0];
}

kernel void scan(global int *out, global const int *in) {
    local int a[2][8];
    int l = get_local_id(0), from = 0;
    a[0][l] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 1; d < 8; d *= 2) {
        int v = a[from][l];
        if (l >= d) v += a[from][l - d];
        a[1 - from][l] = v;
        from = 1 - from;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = a[from][l];
}

kernel void conditional(global int *out, int which, local int *t) {
    int l = get_local_id(0), n = get_local_size(0), keep = out[l] * 3;
    t[l] = l + keep;
    if (which > 0) {
        barrier(CLK_LOCAL_MEM_FENCE);
        keep += t[n - 1 - l];
        if (which > 1) {
            barrier(CLK_LOCAL_MEM_FENCE);
            t[l] = keep;
            barrier(CLK_LOCAL_MEM_FENCE);
            keep -= t[(l + 1) % n];
            if (which > 2) { out[l] = keep + 1000; return; }
        }
    }
    out[l] = keep;
}

void exchange(local int *t, int *v, int l, int n) {
    t[l] = *v;
    barrier(CLK_LOCAL_MEM_FENCE);
    *v += t[(l + 1) % n];
    barrier(CLK_LOCAL_MEM_FENCE);
}

kernel void in_functions(global int *out, local int *t, int times) {
    int l = get_local_id(0), n = get_local_size(0), v = l;
    exchange(t, &v, l, n);
    for (int k = 0; k < times; k++) { exchange(t, &v, l, n); if (v > 100000) break; }
    out[l] = v;
}

kernel void private_memory(global int *out, global const int *in, local int *t) {
    int l = get_local_id(0), n = get_local_size(0), mine[6];
    for (int k = 0; k < 6; k++) mine[k] = in[k] + l;
    for (int round = 0; round < 4; round++) {
        t[l] = mine[in[round] % 6];
        barrier(CLK_LOCAL_MEM_FENCE);
        mine[(round + in[0]) % 6] += t[(l + round) % n];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    int s = 0;
    for (int k = 0; k < 6; k++) s = s * 3 + mine[k];
    out[l] = s;
}

kernel void matrix(global float *c, global const float *a, global const float *b, int n) {
    local float ta[4][4], tb[4][4];
    int x = get_local_id(0), y = get_local_id(1), gx = get_global_id(0), gy = get_global_id(1);
    float sum = 0;
    for (int t = 0; t < n / 4; t++) {
        ta[y][x] = a[gy * n + t * 4 + x];
        tb[y][x] = b[(t * 4 + y) * n + gx];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 4; k++) sum += ta[y][k] * tb[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[gy * n + gx] = sum;
}

kernel void collectives(global int *out, global const int *in, global float *f) {
    int i = get_global_id(0), v = in[i];
    int o = work_group_scan_inclusive_add(v) + 10 * work_group_scan_exclusive_max(v);
    if (work_group_any(v > 90)) o += 1000;
    if (work_group_all(v > 2)) { o += 5000; o += work_group_reduce_min(v); }
    o += 7 * work_group_broadcast(v, 2);
    for (int k = 0; k < 3; k++) o += work_group_reduce_add(o & 15);
    out[i] = o;
    f[i] = work_group_reduce_max(f[i]) + work_group_scan_exclusive_min(f[i]);
}

kernel void broadcast_2d(global int *out, int x, int y) {
    int i = get_local_linear_id();
    out[i] = work_group_broadcast(i * i, x, y);
}

kernel void goto_loop(global int *out, local int *t) {
    int l = get_local_id(0), n = get_local_size(0), k = 0, v = l;
again:
    t[l] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    v += t[n - 1 - l];
    if (k++ & 1) { barrier(CLK_LOCAL_MEM_FENCE); if (k < 7) goto again; goto out; }
    barrier(CLK_LOCAL_MEM_FENCE);
    v++;
    goto again;
out:
    out[l] = v;
}
"""

# On its own: clang writes an OpConstantNull of four words for the event at -O0.
ASYNC = """
kernel void async(global int *out, global const int *in, int n) {
    local int t[32];
    event_t e = async_work_group_copy(t, in, n, 0);
    e = async_work_group_strided_copy(t + 16, in, 8, 2, e);
    wait_group_events(1, &e);
    int l = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    t[l] = t[l] * 2 + t[16 + l];
    barrier(CLK_LOCAL_MEM_FENCE);
    e = async_work_group_copy(out, t, 8, 0);
    wait_group_events(1, &e);
}
"""

BOTH = pytest.mark.parametrize("level", ["-O0", "-O2"])


def zeros(n):
    return np.zeros(n, np.int32)


def random_ints(n, high=100):
    return np.random.default_rng(5).integers(0, high, n).astype(np.int32)


@BOTH
@pytest.mark.parametrize("size", [1, 4, 8])
def test_barrier_in_a_loop(level, size, widths):
    given = random_ints(24)
    args = [zeros(24 // size), given, Local(4 * size)]
    result, *_ = compare(compile_cl(SOURCE, level), "reduction", args, (24,), (size,), widths)
    assert result.tolist() == given.reshape(-1, size).sum(1).tolist()


@BOTH
def test_values_live_around_the_loop(level, widths):
    given = random_ints(16)
    result, _ = compare(compile_cl(SOURCE, level), "scan", [zeros(16), given], (16,), (8,), widths)
    assert result.tolist() == given.reshape(2, 8).cumsum(1).ravel().tolist()


@BOTH
@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_barriers_in_uniform_conditionals(level, which, widths):
    given = random_ints(6)
    result, *_ = compare(
        compile_cl(SOURCE, level), "conditional", [given, which, Local(24)], (6,), (6,), widths
    )
    keep = given * 3
    table = np.arange(6) + keep
    if which > 0:
        keep = keep + table[::-1]
    if which > 1:
        keep = keep - np.roll(keep, -1)
    assert result.tolist() == (keep + (1000 if which > 2 else 0)).tolist()


@BOTH
def test_barriers_in_functions(level, widths):
    result, *_ = compare(
        compile_cl(SOURCE, level), "in_functions", [zeros(5), Local(20), 3], (5,), (5,), widths
    )
    v = np.arange(5)
    for _ in range(4):
        v = v + np.roll(v, -1)
    assert result.tolist() == v.tolist()


@BOTH
def test_private_memory_lives_across_barriers(level, widths):
    given = random_ints(8)
    result, *_ = compare(
        compile_cl(SOURCE, level), "private_memory", [zeros(5), given, Local(20)], (5,), (5,), widths
    )
    mine = [[int(given[k]) + item for k in range(6)] for item in range(5)]
    for r in range(4):
        t = [m[given[r] % 6] for m in mine]
        for item, m in enumerate(mine):
            m[(r + given[0]) % 6] += t[(item + r) % 5]
    expected = []
    for m in mine:
        s = 0
        for v in m:
            s = s * 3 + v
        expected.append(s)
    assert result.tolist() == expected


@BOTH
def test_tiled_matrix_product(level, widths):
    n = 8
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 8, (n, n)).astype(np.float32) for _ in range(2))
    c, *_ = compare(
        compile_cl(SOURCE, level), "matrix", [np.zeros((n, n), np.float32), a, b, n], (n, n), (4, 4), widths
    )
    np.testing.assert_array_equal(c, a @ b)


@BOTH
def test_collectives(level, widths):
    given = random_ints(12)
    floats = np.random.default_rng(2).random(12, np.float32)
    result, _, f = compare(
        compile_cl(SOURCE, level), "collectives", [zeros(12), given, floats], (12,), (4,), widths
    )
    for g in range(3):
        v, x = given[4 * g : 4 * g + 4].astype(np.int64), floats[4 * g : 4 * g + 4]
        before = np.array([-(2**31)] + [v[: k + 1].max() for k in range(3)])
        o = v.cumsum() + 10 * before
        o += 1000 * (v > 90).any() + (5000 + v.min()) * (v > 2).all() + 7 * v[2]
        for _ in range(3):
            o = o + (o & 15).sum()
        assert result[4 * g : 4 * g + 4].tolist() == o.astype(np.int32).tolist()
        least = np.array([np.inf] + [x[: k + 1].min() for k in range(3)], np.float32)
        np.testing.assert_array_equal(f[4 * g : 4 * g + 4], x.max() + least)


def test_broadcast_from_two_dimensions(widths):
    result, *_ = compare(compile_cl(SOURCE), "broadcast_2d", [zeros(12), 1, 2], (4, 3), (4, 3), widths)
    assert result.tolist() == [81] * 12


def test_asynchronous_copies(widths):
    given = random_ints(16)
    result, *_ = compare(compile_cl(ASYNC), "async", [zeros(8), given, 8], (8,), (8,), widths)
    assert result.tolist() == (given[:8] * 2 + given[::2]).tolist()


@BOTH
def test_loop_made_of_gotos(level, widths):
    result, _ = compare(compile_cl(SOURCE, level), "goto_loop", [zeros(4), Local(16)], (4,), (4,), widths)
    v, k = np.arange(4), 0
    while True:
        v = v + v[::-1]
        odd, k = k & 1, k + 1
        if odd and k >= 7:
            break
        if not odd:
            v = v + 1
    assert result.tolist() == v.tolist()


def test_regions_hold_no_barrier_and_once_regions_no_items():
    module = compile_cl(SOURCE)
    for entry_point in module.entry_points:
        plan = make_plan(module, entry_point.name)
        assert plan.uses_barrier
        for region in plan.regions:
            names = {i.op.name for b in region.function.blocks for i in b.instructions}
            assert not names & {"ControlBarrier", "Return"}, entry_point.name
            assert not any(n.startswith("Group") and n != "GroupItems" for n in names)
            assert region.once == bool(names & {"SlotLoadItem", "CopyMemorySized", "GroupItems"})


@pytest.mark.parametrize("before", ["barrier(1);", ""])
def test_kernels_end_that_do_nothing_but_divide_by_a_constant_zero(before):
    """clang has OpUnreachable for it, of which LLVM makes no instruction, not even a return."""
    body = f"a = a * 3 + b % 0; {before} if (a > b) a ^= b; else b -= 3; o[0] = a - b;"
    source = f"kernel void k(global int *o, int a, int b) {{ {body} }}"
    for region in make_plan(compile_cl(source), "k").regions:
        assert [b.terminator.op.name for b in region.function.blocks] == ["RegionExit"]


def test_cheap_values_are_computed_again_and_uniform_ones_kept_once():
    plan = make_plan(compile_cl(SOURCE), "matrix")
    kinds = sorted((s.type.kind.value, s.uniform, s.stride) for s in plan.slots)
    # The accumulator, and the tile number that every work-item reads and advances: no ids, no addresses.
    assert ("float", False, None) in kinds
    assert len(kinds) <= 3, kinds
    assert any(stride == 0 for _, _, stride in kinds), kinds


def test_a_local_id_that_clang_writes_in_two_ways_is_not_kept():
    """Behind the loop clang has a phi of the id as it is for 8 and more, and of what it is for others."""
    source = """kernel void k(global float4 *to, global const float4 *from) {
        local float4 t[72]; int x = get_global_id(0), l = get_local_id(0), size = get_local_size(0);
        t[l] = from[x]; for (int i = l; i < 8; i += size) t[size + i] = from[i];
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 s = 0; for (int i = 0; i < 8; i++) s += t[l + i] * (float)i; to[x] = s; }"""
    assert not make_plan(compile_cl(source), "k").slots


def test_a_barrier_at_the_end_makes_no_region():
    source = "kernel void k(global int *a) { a[get_global_id(0)] = 1; barrier(CLK_GLOBAL_MEM_FENCE); }"
    assert len(make_plan(compile_cl(source), "k").regions) == 1


def test_a_loop_counter_that_a_region_reads_and_advances_is_kept_once_per_group():
    plan = make_plan(compile_cl(SOURCE), "matrix")
    for region in plan.regions:
        touched: dict = {}
        for block in region.function.blocks:
            for i in block.instructions:
                if i.op.name in ("SlotLoad", "SlotStore"):
                    touched.setdefault(i.operands[0], set()).add(i.op.name)
        if any(slot.uniform and len(ops) == 2 for slot, ops in touched.items()):
            return
    raise AssertionError("no such region")


def test_results_of_collectives_are_uniform():
    """No work-item can part from the others at a condition that all share: none needs to be remembered."""
    plan = make_plan(compile_cl(SOURCE), "collectives")
    assert plan.returned is None


def test_a_plan_says_which_slot_holds_who_has_returned():
    """Not by its name, which a variable of the program may have."""
    source = """kernel void k(global int *a) {
        local int t[8]; int l = get_local_id(0), v = a[l]; %s
        t[l] = 1; barrier(CLK_LOCAL_MEM_FENCE); a[l] = v + t[7 - l]; }"""
    plan = make_plan(compile_cl(source % ""), "k")
    assert len(plan.slots) == 1 and plan.returned is None
    early = make_plan(compile_cl(source % "if (v == 5) return;"), "k")
    assert early.returned in early.slots and early.returned.type.kind.value == "bool"


ROUNDS = """
void by_pointer(int *p) { if (p) *p = 1; }
kernel void k(global int *out, volatile local int *left, int n) {
    int l = get_local_id(0), done = 0;
    if (l == 0) left[0] = n;
    for (;;) {
        barrier(CLK_LOCAL_MEM_FENCE);
        done += l;
        out[l] = done;
        OTHER if (left[0] < 1) { if (l == 1) out[9] = 7; return; }
        done += left[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l == 0) left[0] -= 2;
    }
}
"""


@BOTH
def test_what_nobody_writes_between_barriers_is_the_groups_though_it_is_volatile(level, widths):
    module = compile_cl(ROUNDS.replace("OTHER", ""), level)
    if level == "-O2":  # at -O0 the pointer is in a volatile variable
        for width in (1, 8):
            assert make_plan(module, "k", width=width).returned is None
    for n in (0, 3):
        out, *_ = compare(module, "k", [zeros(10), Local(64), n], (8,), (8,), widths)
        rounds, lefts = (n + 1) // 2 + 1, sum(range(n, 0, -2))
        assert out.tolist() == [item * rounds + lefts for item in range(8)] + [0, 7]


@pytest.mark.parametrize(
    "other",
    [
        "left[1] = l;",
        "if (l == 3) left[1] = done; else",
        "if (n > 9) left[2 + l] = n;",
        "atomic_add(&left[1], l);",
        "left[l + 1] = left[l + 1] + 1;",
        "by_pointer(n > 5 ? (int *)out + 9 : (int *)left + 5);",
        "vstore2((int2)l, l, (local int *)left + 4);",
        "sincos((float)l, (local float *)left + 5);",
    ],
)
def test_what_may_be_written_between_the_same_barriers_is_not(other):
    """However unlikely it is that somebody reads the place that is written."""
    assert make_plan(compile_cl(ROUNDS.replace("OTHER", other)), "k").returned is not None


def test_what_is_written_elsewhere_does_not_matter():
    """Memory of all groups and of one work-item is not the group's."""
    other = "vstore2((int2)l, l, out + 12); int t[4]; t[l & 3] = n; out[11] = t[n & 3];"
    assert make_plan(compile_cl(ROUNDS.replace("OTHER", other)), "k").returned is None
    of_all = ROUNDS.replace("volatile local", "volatile global").replace("OTHER", "")
    assert make_plan(compile_cl(of_all), "k").returned is not None


def test_lanes_along_the_linear_local_id():
    n = 8
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-8, 8, (n, n)).astype(np.float32) for _ in range(2))
    args = [np.zeros((n, n), np.float32), a, b, n]
    c, *_ = compare(compile_cl(SOURCE), "matrix", args, (n, n), (4, 4), (4, 8, 16), linear_lanes=True)
    np.testing.assert_array_equal(c, a @ b)
    result, *_ = compare(
        compile_cl(SOURCE), "broadcast_2d", [zeros(12), 1, 2], (4, 3), (4, 3), (8,), linear_lanes=True
    )
    assert result.tolist() == [81] * 12


ROWS = """
kernel void rows(global int *out, global const int *in) {
    int x = in[get_local_id(1)], i = get_global_id(0) + get_global_size(0) * get_global_id(1);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = x;
    if (get_local_id(1) == 1) return;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = x + 100;
}
"""


def test_what_a_row_shares_is_not_the_groups():
    """Lanes are neighbours of one row: what is uniform among them may differ in the next row."""
    args = [zeros(12), np.array([5, 6, 7], np.int32)]
    for linear_lanes in (False, True):
        out, _ = compare(compile_cl(ROWS), "rows", args, (4, 3), (4, 3), (1, 4, 8), linear_lanes=linear_lanes)
        assert out.tolist() == [105] * 4 + [6] * 4 + [107] * 4


def row_ends(body: str) -> list[int]:
    """How many exits of a kernel's regions may leave a row early, for each region."""
    source = (
        "kernel void k(global int *a, local int *s, int n) { int l = get_local_id(0);"
        f" s[l] = a[l]; {body} barrier(CLK_LOCAL_MEM_FENCE); a[l] = s[l]; }}"
    )
    plan = make_plan(compile_cl(source), "k", width=8)
    ends = [
        [block.terminator for block in region.function.blocks if block.terminator.op.name == "RegionExit"]
        for region in plan.regions
    ]
    return [sum(len(end.operands) > 1 for end in of_region) for of_region in ends]


def test_rows_end_where_no_work_item_is_left_that_would_do_anything():
    barrier = "barrier(CLK_LOCAL_MEM_FENCE);"
    step = f"for (int h = n; h > 0; h /= 2) {{ {barrier} if (l < h) s[l] += s[l + h]; }}"
    assert sum(row_ends(step)) > 0
    assert sum(row_ends(f"{barrier} if (l <= n) if (l + 3 < 2 * n) s[l + n] = 3;")) == 1
    assert sum(row_ends(f"{barrier} if (l <= n && l + 3 < a[0]) s[l + n] = 3;")) == 0
    assert sum(row_ends(f"{barrier} if (l == 0) s[n] = 1; {barrier}")) == 1
    # Work-items that come later, work that is not behind the test, or a count of the vector's own.
    assert sum(row_ends(step.replace("l < h", "l > h"))) == 0
    assert sum(row_ends(step.replace("if (l < h)", "s[l + 64] = 1; if (l < h)"))) == 0
    assert sum(row_ends(step.replace("l < h", "l < h + s[l / 8]"))) == 0
    assert sum(row_ends(step.replace("l < h", "l < h || s[l] == 7"))) == 0
    assert sum(row_ends(step.replace("l < h", "(l & 3) < h"))) == 0


# Values that go round loops through barriers, loops in branches, places that loops accumulate in.
LOOPS = """
kernel void k(global int *o, global const int *at, int n, local int *l) {
    int i = get_local_id(0), a = o[i], b = at[i], c = a ^ b, d = a + n, e = b - n, f = c * n;
    for (int k = 0; k < n; k++) {
        l[i] = a + c;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k & 1) { a += l[i ^ 1]; c ^= d; e += f; } else { b += l[i ^ 2]; d -= c; f ^= e; }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l[i] > k)
            for (int p = at[i]; p > 0; p = at[p]) { o[p] += a; o[p + 1] ^= d; }
    }
    o[i] = a + b * c + d * e + f;
}
"""


def test_a_plan_does_not_depend_on_places_in_memory():
    module = compile_cl(LOOPS)
    texts = set()
    for turn in range(8):
        garbage = [object() for _ in range(1000 * turn)]
        kept = random.Random(turn).sample(garbage, len(garbage) // 2)
        del garbage
        plan = make_plan(module, "k", width=8)
        texts.add("\n".join(function_text(region.function) for region in plan.regions))
        del kept
    assert len(texts) == 1


MANY_ARRAYS = """
kernel void k(global int *out, int n) {
    int DECLARED;
    for (int i = 0; i < n; i++) { SET }
    barrier(CLK_GLOBAL_MEM_FENCE);
    int inside[7];
    for (int i = 0; i < n; i++) inside[i % 7] = i;
    out[get_global_id(0)] = SUM inside[n % 7];
}
"""


def test_a_kernel_is_looked_through_once_for_all_private_variables(monkeypatch):
    """Of arrays that are written before a barrier and read behind it each lives across it; others do not."""
    seen = []
    users = barriers.users
    monkeypatch.setattr(barriers, "users", lambda f: seen.append(f) or users(f))
    text = MANY_ARRAYS.replace("DECLARED", ", ".join(f"a{k}[9]" for k in range(5)))
    text = text.replace("SET", " ".join(f"a{k}[i % 9] = i * {k};" for k in range(5)))
    text = text.replace("SUM", " ".join(f"a{k}[n % 9] +" for k in range(5)))
    made = make_plan(compile_cl(text), "k", width=8)
    assert [variable.size for variable in made.private_variables] == [36] * 5
    assert len(seen) == 1
