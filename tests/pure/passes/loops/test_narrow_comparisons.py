"""Comparisons of 64 bits with 32: for all numbers, and only where nothing can wrap."""

import numpy as np
import pytest

from cl_driver.spirv.enums import Op

from ..support import compare, compile_cl, make_plan

HEAD = "kernel void k(global uint *out, global int *in, int u, int c, long w) { int i = get_global_id(0);"
OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
COMPARISONS = (
    Op.IEqual,
    Op.INotEqual,
    Op.SLessThan,
    Op.SLessThanEqual,
    Op.SGreaterThan,
    Op.SGreaterThanEqual,
)
LEAST, MOST = -(1 << 31), (1 << 31) - 1
EDGES = (LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST)


def wide_comparisons(body):
    """How many comparisons a plan has of lanes' integers of 64 bits."""
    (region,) = make_plan(compile_cl(f"{HEAD} long x = in[i]; {body} }}"), "k", width=8).regions
    found = (i for b in region.function.blocks for i in b.instructions if i.op in COMPARISONS)
    return sum(i.operands[0].type.width == 64 and region.shapes.stride(i) is None for i in found)


@pytest.mark.parametrize("sum_", ["x + u", "u + x", "x - u", "x + u - 1", "x + u - w % 77"])
def test_all_numbers(sum_):
    tests = [f"({sum_} {how} c) << {n} | (c {how} {sum_}) << {n + 6}" for n, how in enumerate(OPERATORS)]
    body = f"out[i] = {' | '.join(tests)};"
    module = compile_cl(f"{HEAD} long x = in[i]; {body} }}")
    numbers = np.array([*EDGES, 77, -5, 1 << 30, -(1 << 30), 12, 3, 2, 9, 8], np.int32)
    for u in EDGES:
        for c in EDGES:
            compare(module, "k", [np.zeros(16, np.uint32), numbers, u, c, 5], (16, 1, 1), (16, 1, 1), (1, 8))


@pytest.mark.parametrize(
    "body, wide",
    [
        ("out[i] = x + u < c;", 0),
        ("out[i] = c >= x - u;", 0),
        ("out[i] = x + u == w;", 0),
        ("int s = 0; for (long j = -u; j <= u; j++) if (x + j >= 1 && x + j < c) s += in[j]; out[i] = s;", 0),
        ("out[i] = x + w < c;", 1),  # w may be so far from 0 that c - w wraps
        ("out[i] = (long)((ulong)x + (ulong)w) < c;", 1),
        ("out[i] = x * 3 + u < c;", 1),
        ("out[i] = (x + u) * w < c;", 1),
        ("out[i] = x + in[i + 1] < c;", 1),
        ("out[i] = (long)i + u < c;", 1),  # lanes follow one another
    ],
)
def test_which(body, wide):
    assert wide_comparisons(body) == wide


def test_counters_as_wide_as_addresses():
    """clang makes the counter, and what it is compared with, 64 bits wide."""
    loop = "for (int j = -u; j <= u; j++) if (x + j >= 1 && x + j < c) s += in[8 + j] * j;"
    module = compile_cl(f"{HEAD} int x = in[i], s = 0; {loop} out[i] = s; }}")
    numbers = np.arange(-4, 20, dtype=np.int32)
    for u, c in ((0, 0), (3, 5), (8, 4), (8, MOST), (2, LEAST), (-1, 5)):
        compare(module, "k", [np.zeros(24, np.uint32), numbers, u, c, 0], (24, 1, 1), (8, 1, 1), (1, 4, 8))
