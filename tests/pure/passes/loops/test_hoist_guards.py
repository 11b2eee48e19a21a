"""Loops that would do nothing are passed over where a condition of theirs says so before they begin."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.passes.ir.dominance import LoopNest, dominators
from cl_driver.passes.ir.instructions import predecessors
from cl_driver.spirv.enums import Op

from ..support import compare, compile_cl, make_plan

HEAD = """kernel void k(global int *c, global int *a, global int *b, int n, int m) {
    int i = get_global_id(0), s = 3, t = 0; """


def comparisons_in_loops(plan) -> list[int]:
    """Of each loop, how many comparisons of order it has."""
    counts = []
    for region in plan.regions:
        function = region.function
        nest = LoopNest(function, dominators(function), predecessors(function))
        for loop in nest.loops:
            inside = [i for block in loop.blocks for i in block.instructions]
            orders = (Op.SLessThan, Op.SGreaterThan, Op.SLessThanEqual, Op.SGreaterThanEqual)
            counts.append(sum(i.op in orders for i in inside))
    return counts


# body, comparisons that are left in each loop: those that change, or that the loop does other work without
CASES = [
    ("for (int j = 0; j < n; j++) if (a[i] < 7) s += b[j];", [0]),
    ("for (int j = 0; j < n; j++) if (i < m && i + j > 4) s += b[j];", [1]),
    ("for (int j = 0; j < n; j++) if (!(i > m || a[i] > 20 || i + j > 4)) s += b[j];", [2]),
    ("for (int j = 0; j < n; j++) { if (i + j > 4) if (i < m) s += b[j]; }", [1]),
    ("for (int j = 0; j < n; j++) if (i < m) c[i] = b[j];", [0]),
    ("for (int j = 0; j < n; j++) if (i > m) { for (int l = 0; l < 5; l++) s += a[l + j]; s ^= j; }", None),
    ("for (int j = 0; j < n; j++) for (int l = 0; l < n; l++) if (i + l < m && i > j) s += a[l];", [2, 1]),
    ("for (int j = 0; j < n; j++) for (int l = 0; l < n; l++) if (l != j && i < m) s += a[l];", [0, 0]),
    ("for (int j = 0; j < n; j++) { if (i < m) s += b[j]; t ^= j; }", [1]),
    ("for (int j = 0; j < n; j++) { if (i < m) s += b[j]; else s -= 5; }", [1]),
    ("for (int j = 0; j < n; j++) { if (i < m) s += b[j]; c[i] = j; }", [1]),
    ("for (int j = 0; j < n; j++) { if (i < m) s += b[j]; a[i]++; }", [1]),
    ("for (int j = 0; j < n; j++) { if (i < m) s += b[j]; if (b[j] == 12) break; }", [1]),
    ("int j = 0; for (; j < n; j++) if (i < m) s += b[j]; t = j;", [0]),  # which is n
    ("for (int j = 1; j < n; j *= 2) if (i < m) s += b[j];", [2]),
    ("for (int j = 0; b[j] != 5 && j < n; j++) if (i < m) s += b[j];", None),
    ("for (int j = 0; j < n; j++) if (s < 40) s += b[j];", [1]),
    # Several ways out, to one place.
    ("for (int j = 0; j < n && (m & 1 ? j < a[i] + 1 : 1); j++) if (i < m) s += b[j];", [1]),
    ("for (int j = 0; j < n && (m & 1 ? j < a[i] + 1 : 1); j++) { if (i < m) s += b[j]; t = j; }", [2]),
    ("for (int j = 0; j < n; j++) { if (b[j] == 12) { t = 1; break; } if (i < m) s += b[j]; }", [1]),
    ("for (int j = 0; j < n; j++) if (i < m) { s += b[j]; if (s > 40) break; }", [1]),
    ("for (int j = 0; j < n; j++) if (i < m) { s += b[j]; if (s > 40) { t = j; break; } }", [2]),
    ("for (int j = 0; j < n; j++) { t = j; if (i < m) { s += b[j]; if (s > 40) break; } }", [2]),
]  # fmt: skip


@pytest.mark.parametrize("body, left", [case for case in CASES if case[1] is not None])
def test_conditions_leave_loops(body, left):
    module = compile_cl(f"{HEAD} {body} c[i + 64] = s + t; }}")
    plan = make_plan(module, "k", width=1)
    assert comparisons_in_loops(plan) == left


@pytest.mark.parametrize("body", [case[0] for case in CASES])
@pytest.mark.parametrize("n, m", [(0, 9), (1, 0), (6, 13), (9, 100)])
def test_the_same_is_computed(body, n, m):
    module = compile_cl(f"{HEAD} {body} c[i + 64] = s + t; }}")
    rng = np.random.default_rng(n)
    buffers = [rng.integers(0, 30, 128).astype(np.int32) for _ in range(3)]
    compare(module, "k", [*buffers, n, m], (40,), (20,), widths=(1, 8, 16))


@pytest.mark.parametrize("loop", [
    "for (int j = 0; j < n; j++) if (i < m) {{ {ifs} }}",
    "int p = i < m; {ands} for (int j = 0; j < n; j++) if (p & (b[j] > 2)) s += b[j];",
    "for (int j = 0; ; j++) {{ if (i < m) s += b[j]; int q = j; {squares} if (q > n) break; }}",
])  # fmt: skip
def test_long_expressions_are_not_looked_through(loop):
    """Neither by way of all uses of each value, nor by a call in a call for each operation."""
    numbers = range(1200)
    text = loop.format(
        ifs=" ".join(f"if (b[j + {k}] > {k}) s = s * 5 + a[s & 7];" for k in numbers[:200]),
        ands=" ".join(f"p &= a[{k}] > m;" for k in numbers),
        squares=" ".join("q = q * q + (q >> 1);" for _ in numbers),
    )
    assert make_plan(compile_cl(f"{HEAD} {text} c[i] = s; }}"), "k", width=1).regions
