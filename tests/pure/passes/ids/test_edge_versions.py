"""Code of its own for vectors that no choice by an edge concerns: who gets it, what it lacks, results."""

import numpy as np
import pytest

from cl_driver.passes.cost.cpu_models import model_of
from cl_driver.passes.cost.work import RegionCosts
from cl_driver.passes.ir.ops import PassOp
from tests.pages.stages import target

from ..support import compare, compile_cl, make_plan, masked, reached

# x counts to the global size w, i is the place of x and y in rows of `pitch`; k is a small number.
EDGES = {
    "convolution": "int h = x + k / 2, from = h >= w ? h + 1 - w : 0, to = x - k / 2 < 0 ? h + 1 : k, s = 0; "
    "for (int j = from; j < to; j++) s += in[j] * in[h - j + pitch * y]; out[i] = s;",
    "begins": "int s = 0; for (int j = x < k ? k - x : 0; j < 9; j++) s += in[i + j]; out[i] = s;",
    "ends": "int s = 0; for (int j = 0; j < (x + 9 < w ? 9 : w - x); j++) s += in[i + j]; out[i] = s;",
    "neighbours": "int l = x ? i - 1 : i + w - 1, r = x < w - 1 ? i + 1 : i - w + 1; "
    "out[i] = in[l] + in[r] * 3;",
    "clamped": "int l = x > 2 ? x - 2 : 0, r = x + 2 < w ? x + 2 : w - 1; out[i] = in[l] - in[r];",
    "swapped": "int l = 0 < x ? i - 1 : i; out[i] = in[l];",
    "effects": "int l = x == 0 ? i : i - 1; if (in[l] > k) out[i] = in[l]; else out[i] -= 2;",
}
# What differs between rows alone, comes from memory, cannot be asked first, or gains nothing.
PLAIN = {
    "rows": "int up = y == 0 ? i : i - pitch; out[i] = in[up];",
    "data": "int s = 0; for (int j = in[i] > k ? 1 : 0; j < k; j++) s += in[i + j]; out[i] = s;",
    "values": "out[i] = x == 0 ? in[i] : 5;",
    "array": "int a[4]; a[k & 3] = x; int l = x == 0 ? i : i - 1; out[i] = in[l] + a[y & 3];",
    "atomic": "int l = x == 0 ? i : i - 1; atomic_add(out + i, in[l]);",
    "elsewhere": "int l = x == 0 ? i : i - 1; out[i] = in[in[l] & 15] + in[in[l + k] & 15];",
}
SHAPES = [(4, 1, 0), (8, 1, 0), (8, 2, 0), (4, 3, 0), (4, 2, 1)]


@pytest.fixture(scope="module")
def module():
    return compile_cl("\n".join(
        f"kernel void {name}(global int *restrict out, global const int *restrict in, int pitch, int k) {{ "
        "int w = get_global_size(0), x = get_global_id(0), y = get_global_id(1), i = (y + 1) * pitch + x; "
        f"{body} }}"
        for name, body in (EDGES | PLAIN).items()
    ))  # fmt: skip


@pytest.mark.parametrize(("width", "parts", "axis"), SHAPES)
def test_who_has_it(module, width, parts, axis):
    for name in EDGES | PLAIN:
        plan = make_plan(module, name, width=width, parts=parts, part_axis=axis)
        (region,) = plan.regions
        assert (region.edges is not None) == (name in EDGES), name
        assert make_plan(module, name, width=width, thorough=False).has_more == (name in EDGES), name
        if region.edges is not None:
            entry = region.function.blocks[0]
            test, edges, inner = entry.terminator.operands[:3]
            assert test.op is PassOp.AnyLane
            assert edges is region.edges
            assert not set(reached(inner)) & set(reached(edges))


def test_what_is_simpler(module):
    """No masks but that of the tail where loops were the matter, no places of each lane's own elsewhere."""
    for name in EDGES:
        (region,) = make_plan(module, name, width=8).regions
        _, edges, inner = region.function.blocks[0].terminator.operands[:3]
        places = [
            [i for b in reached(side) for i in b.instructions
             if i.memory is not None and region.shapes.stride(i.operands[0]) is None]
            for side in (inner, edges)
        ]  # fmt: skip
        assert len(places[0]) * 2 <= len(places[1]), name
        if name in ("convolution", "begins", "ends"):
            assert not masked(reached(inner)), name
            assert masked(reached(edges)), name


def test_edges_are_taken_to_be_seldom(module):
    (region,) = make_plan(module, "convolution", width=8).regions
    costs = RegionCosts(region, model_of(target("x86-64-v3")), 8)
    loops = {loop: costs.times(loop) for loop in costs.nest.loops}
    edges = set(reached(region.edges))
    (inside,) = (times for loop, times in loops.items() if loop.header not in edges)
    assert all(times < inside for loop, times in loops.items() if loop.header in edges)
    assert len(loops) == 2


LONG = [pytest.param((64, 3), 1, marks=pytest.mark.long), pytest.param((1, 1), 16, marks=pytest.mark.long)]


@pytest.mark.parametrize(("size", "k"), [((20, 5), 5), ((7, 2), 0), *LONG])
def test_same_results(module, size, k):
    """Where all lanes are inside, some, or none, as the guess is wrong; groups that are whole or not."""
    data = np.random.default_rng(1).integers(-50, 100, 2000).astype(np.int32)
    for name in EDGES | PLAIN:
        args = [np.zeros(2000, np.int32), data, 70, k]
        compare(module, name, args, size, (8, 1), SHAPES)


def test_offset(module):
    data = np.arange(4000, dtype=np.int32)
    for name in EDGES:
        args = [np.zeros(4000, np.int32), data, 40, 5]
        compare(module, name, args, (32, 4), (16, 2), SHAPES, global_offset=(5, 2, 0))
