"""Updates by compare and exchange that become atomics, and others (passes/scalar/exchange_loops.py)."""

import numpy as np
import pytest

from cl_driver.passes.ir.instructions import ATOMICS
from cl_driver.passes.pipeline import plan
from cl_driver.passes.scalar import exchange_loops
from cl_driver.spirv.enums import Op
from tests.runtime.kernel_harness import Local, Program, builtin_library, compile_c

FLOATS = "union { int i; float f; } was, now, next;"
# What each work-item does to the cell `p` with its number x, and `old` is what it found; and the result.
BECOME = {
    "reload": ("do { old = *p; } while (atomic_cmpxchg(p, old, old + x) != old);", lambda old, x: old + x),
    "carried": (
        "int now = *p; do { old = now; now = atomic_cmpxchg(p, old, old - x); } while (now != old);",
        lambda old, x: old - x,
    ),
    "unrolled": (
        "old = *p; int now = atomic_cmpxchg(p, old, x + old); if (now != old) { old = now; "
        "now = atomic_cmpxchg(p, old, x + old); if (now != old) do { old = now; "
        "now = atomic_cmpxchg(p, old, x + old); } while (now != old); }",
        lambda old, x: old + x,
    ),
    "largest": ("do { old = *p; } while (atomic_cmpxchg(p, old, max(old, x)) != old);", max),
    "bits": ("do { old = *p; } while (atomic_cmpxchg(p, old, old ^ x) != old);", lambda old, x: old ^ x),
    "new_is_used": (
        "int sum; do { old = *p; sum = old + x; } while (atomic_cmpxchg(p, old, sum) != old); old = sum - x;",
        lambda old, x: old + x,
    ),
    "float_reload": (
        FLOATS + "do { was.i = *p; now.f = was.f + (float)x; } "
        "while (atomic_cmpxchg(p, was.i, now.i) != was.i); old = was.f;",
        lambda old, x: old + x,
    ),
    "float_carried": (
        FLOATS + "now.f = *(volatile G float *)p; do { was.f = now.f; next.f = was.f + (float)x; "
        "now.i = atomic_cmpxchg(p, was.i, next.i); } while (now.i != was.i); old = was.f;",
        lambda old, x: old + x,
    ),
    "float_least": (
        FLOATS + "do { was.f = *(volatile G float *)p; now.f = fmin(was.f, (float)x); } "
        "while (atomic_cmpxchg(p, was.i, now.i) != was.i); old = was.f;",
        min,
    ),
    "once": ("old = *p; if (atomic_cmpxchg(p, old, old + x) != old) old = -1;", lambda old, x: old + x),
}  # fmt: skip
STAY = {
    "a condition": "do { old = *p; if (old > 40) break; } while (atomic_cmpxchg(p, old, old + x) != old);",
    "no atomic": "do { old = *p; } while (atomic_cmpxchg(p, old, old * x) != old);",
    "twice what was loaded": "do { old = *p; } while (atomic_cmpxchg(p, old, old + old) != old);",
    "the other way round": "do { old = *p; } while (atomic_cmpxchg(p, old, x - old) != old);",
    "a store between": "do { old = *p; out[x] = old; } while (atomic_cmpxchg(p, old, old + x) != old);",
    "another place": "old = p[1]; atomic_cmpxchg(p, old, old + x);",
    "a number": "atomic_cmpxchg(p, 0, x);",
    "failures count": "old = *p; for (int k = 0; k < n; k++) old = atomic_cmpxchg(p, old, old + x);",
    "a wait": "while (atomic_cmpxchg(p, 0, 1) != 0) ; atomic_xchg(p, 0);",
    "another length": "long l = *(volatile G long *)p; atomic_cmpxchg(p, (int)l, (int)l + x);",
}
SOURCE = """
kernel void k(volatile global int *cells, global int *out, volatile local int *locals, int n) {
    int i = get_global_id(0), l = get_local_id(0), x = i % 7, old = 0;
    if (l < 6) locals[l] = cells[get_group_id(0) * 6 + l];
    barrier(CLK_LOCAL_MEM_FENCE);
    volatile G int *p = (volatile G int *)CELLS + i % 3 * 2;
    if (n != i) { CODE }
    out[i] = old;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 6 && LOCALS) cells[get_group_id(0) * 6 + l] = locals[l];
}
"""
ITEMS, GROUP = 52, 13
LEFT_OUT = 20


def program(code, storage, width):
    """A kernel for cells in global or local memory."""
    names = {"CODE": code, "G": storage, "CELLS": "locals" if storage == "local" else "cells"}
    text = SOURCE.replace("LOCALS", str(int(storage == "local")))
    for name, value in names.items():
        text = text.replace(f"{name} ", f"{value} ")
    return Program(compile_c(text), width=width)


def atomics(made):
    """Those of the plan."""
    planned = plan(made.module, made.module.entry_points[0], made.plan_options, builtin_library())
    blocks = [block for region in planned.regions for block in region.function.blocks]
    return [i.op for block in blocks for i in block.instructions if i.op in ATOMICS]


@pytest.mark.parametrize("width", [1, 4, 16])
@pytest.mark.parametrize("storage", ["global", "local"])
@pytest.mark.parametrize("name", BECOME)
def test_updates(name, storage, width):
    """Old values tell in which order work-items came: those of a cell with the same number are alike else."""
    code, update = BECOME[name]
    made = program(code, storage, width)
    kind = np.float32 if name.startswith("float") else np.int32
    cells = np.tile([3, 3, 5, 9, 30, 1], 4).astype(kind)
    want = cells.copy()
    out, found = np.zeros(ITEMS, np.int32), np.zeros(ITEMS, np.int32)
    made.run("k", ITEMS, GROUP, cells.view(np.int32), out, Local(24), np.int32(LEFT_OUT))
    for i in range(ITEMS):
        if i != LEFT_OUT:
            at = i % 3 * 2 + (i // GROUP * 6 if storage == "local" else 0)
            found[i] = want[at]
            want[at] = update(want[at].item(), i % 7)
    np.testing.assert_array_equal(cells, want)
    np.testing.assert_array_equal(out, found)
    if width > 1:
        assert len(atomics(made)) == 1
        assert atomics(made)[0] is not Op.AtomicCompareExchange


@pytest.mark.parametrize("storage", ["global", "local"])
@pytest.mark.parametrize("name", STAY)
def test_what_stays(name, storage):
    assert Op.AtomicCompareExchange in atomics(program(STAY[name], storage, 8))


CHAIN = """
kernel void k(volatile global int *cells, global int *out) {
    int i = get_global_id(0), x = i % 7, first, second;
    do first = cells[0]; while (atomic_cmpxchg(cells, first, first + x) != first);
    do second = cells[1]; while (atomic_cmpxchg(cells + 1, second, second ^ first) != second);
    out[i] = second - first;
}
"""


@pytest.mark.parametrize("width", [1, 4, 16])
def test_what_one_update_found_is_the_number_of_the_next(width):
    made = Program(compile_c(CHAIN), width=width)
    cells, out = np.array([3, 5], np.int32), np.zeros(ITEMS, np.int32)
    made.run("k", ITEMS, GROUP, cells, out)
    first, second, found = 3, 5, []
    for i in range(ITEMS):
        found.append(second - first)
        first, second = first + i % 7, second ^ first
    np.testing.assert_array_equal(out, found)
    assert cells.tolist() == [first, second]
    if width > 1:
        assert atomics(made) == [Op.AtomicIAdd, Op.AtomicXor]


def test_a_kernel_is_looked_through_once_for_all_updates(monkeypatch):
    """Programs that write tries out have hundreds of exchanges."""
    seen = []
    users = exchange_loops.users
    monkeypatch.setattr(exchange_loops, "users", lambda f: seen.append(f) or users(f))
    one = "do old = p[K]; while (atomic_cmpxchg(p + K, old, old + x) != old);"
    many = "".join(one.replace("K", str(k)) for k in range(4))
    assert atomics(program(many, "global", 8)) == [Op.AtomicIAdd] * 4
    assert len(seen) == 1
