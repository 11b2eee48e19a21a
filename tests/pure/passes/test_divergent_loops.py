"""How lanes leave divergent loops: results are right, and the loops have nothing in them that need not be."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.passes.ir.dominance import LoopNest, dominators
from cl_driver.passes.ir.instructions import predecessors
from cl_driver.passes.ir.ops import PassOp
from cl_driver.spirv.enums import Op
from tests.marks import few

from .support import compare, compile_cl, make_plan

SOURCE = """
kernel void escape(global int *out, global const int *in, int limit) {
    int i = get_global_id(0), x = in[i], n = 0;
    while (n < limit && x * x < 4000) {
        x = x + (x >> 1) + 1;
        n++;
    }
    out[i] = n;
}

kernel void march(global int *out, global const int *in, int limit, int end) {
    int i = get_global_id(0), at = 0, result = -1;
    for (int k = 0; k < limit; k++) {
        int here = at * 5 + i, d = in[here & 31] & 15;
        if (d < 2) {
            result = (here ^ 3) + d * 100;
            break;
        }
        at += d;
        if (at > end) {
            result = at;
            break;
        }
    }
    out[i] = result * 1000 + at;
}

kernel void flags(global int *out, global const int *in, int limit) {
    int i = get_global_id(0), k = 0;
    bool found = false, odd = false;
    while (true) {
        int v = in[(i + k) & 31];
        if (v == 7) { found = true; break; }
        if (v > 40 && (k & 1)) { odd = true; break; }
        if (++k == limit) break;
        if (v < 0) continue;
        for (int m = 0; m < v; m++) {
            if (in[(m + k) & 31] == i) { k += m; break; }
        }
        if (k > limit) { k = limit; break; }
    }
    out[i] = k * 4 + found * 2 + odd;
}

kernel void inner(global int *out, global const int *in, int limit) {
    int i = get_global_id(0), sum = 0;
    for (int k = 0; k < limit; k++) {
        int v = in[(k + i) & 31], n = 0;
        do {
            v = (v & 1) ? v * 3 + 1 : v >> 1;
            if (n == limit) { sum -= v & 3; break; }
            n++;
        } while (v > 4);
        sum = sum * 3 + n + v;
        if ((sum & 255) == 9) { sum += limit; break; }
    }
    out[i] = sum;
}
"""
INPUT = np.random.default_rng(5).integers(-9, 60, 32).astype(np.int32)
WIDTHS = (1, 8, (4, 2, 1))
ARGUMENTS = {"escape": (9,), "march": (12, 60), "flags": (13,), "inner": (7,)}


@pytest.mark.parametrize("level", few(["-O2", "-O0"], 1))
@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("limits", [0, 1])
def test_results(name, level, limits):
    arguments = [value * limits for value in ARGUMENTS[name]]
    if name == "flags":
        arguments = [max(arguments[0], 1)]  # it counts up to its limit, past 0 for ever
    args = [np.zeros(27, np.int32), INPUT, *arguments]
    compare(compile_cl(SOURCE, level), name, args, (27,), (9,), WIDTHS)


def loop_of(name: str, **options):
    """The instructions of the only loop of a kernel, and the conditions of the branches out of it."""
    function = make_plan(compile_cl(SOURCE), name, width=8, **options).regions[0].function
    before = predecessors(function)
    (loop,) = LoopNest(function, dominators(function, before), before).loops
    inside = [i for block in function.blocks if block in loop.blocks for i in block.instructions]
    leaving = [b for b in loop.blocks if not loop.blocks.issuperset(b.successors())]
    return inside, [b.terminator.operands[0].op for b in leaving]


@pytest.mark.parametrize("parts", [1, 2])
def test_a_uniform_counter_ends_the_loop_by_itself(parts):
    inside, conditions = loop_of("escape", parts=parts)
    assert sorted(op is PassOp.AnyLane for op in conditions) == [False, True]
    ops = [i.op for i in inside]
    assert ops.count(Op.Select) == parts  # what n was, of the lanes that are still there
    assert Op.LogicalNot not in ops and ops.count(Op.LogicalAnd) == parts


def test_what_follows_from_other_values_is_computed_behind_the_loop():
    inside, _ = loop_of("march")
    collected = [i for i in inside if i.op is Op.Select and any(o.op is Op.Phi for o in i.operands[2:])]
    assert len(collected) <= 5, [i.op for i in inside]  # the exit, at, at before, d and here or less


ROWS = """
kernel void rows(global int *out, int limit) {
    short x = (short)get_global_id(0) * 3;
    int left = get_local_id(1) & 7;
    do {
        if (limit > 20) x += 26;
    } while (--left > 0);
    out[get_global_linear_id()] = x;
}
"""


@pytest.mark.parametrize("limit", [5, 30])
def test_what_differs_by_lane_leaves_a_loop_that_differs_by_row(limit):
    """The value that goes round is undefined at first: its stride is known from the other one alone."""
    compare(compile_cl(ROWS), "rows", [np.zeros(36, np.int32), limit], (6, 6), (6, 3), WIDTHS)
