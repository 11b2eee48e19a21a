"""Code of its own for vectors away from edges: who gets it, that masks are gone there, that results stay."""

import numpy as np
import pytest

from cl_driver.passes.ir.ops import PassOp
from cl_driver.passes.pipeline import version_by_guards
from cl_driver.spirv.enums import Op
from tests.pure.random.kernels import check

from .support import compare, compile_cl, make_plan, masked, reached

# Kernels of two dimensions, x and y, of sizes w and h; `k` is no bound.
EDGES = {
    "below": "if (x < w) out[i] = in[i] * 3;",
    "both_below": "if (x < w && y < h) out[i] = in[i] * 3 + y;",
    "returns": "if (x >= w || y >= h) return; out[i] = in[i] - x;",
    "inside": "if (x > 0 && x < w - 1 && y > 0 && y < h - 1) out[i] = in[i - 1] + in[i + w] + in[i - w]; "
    "else out[i] = in[i];",
    "equal": "if (x == 0 || y == 0 || x == w - 1 || y == h - 1) out[i] = in[i]; else "
    "out[i] = in[i - 1] + in[i + 1] * 3;",
    "swapped": "if (w > x && 1 <= x) out[i] = in[i - 1];",
    "as_unsigned": "if ((uint)(x + 1) < (uint)w) out[i] = in[i + 1];",
    "apart": "if (x - 2 >= 0 && x + 2 < w) out[i] = in[i - 2] + in[i + 2];",
    "loops": "if (x < w) { int s = 0; for (int j = 0; j < k; j++) s += in[i] * j; out[i] = s; }",
    "wide": "size_t at = get_global_id(0); if (at < (size_t)w) out[i] = in[i] + 1;",
    "deep": "int c = 2 + ((k >> ((((y + 2) << 1 & 14) + (k & 1)) << 1)) & 7) + 2 * x; if (c > w - 2) return; "
    "out[i] = in[i + 1];",
    "wraps": "if (x + 0x7ffffff0 > 3) out[i] = in[i] + 5; else out[i] = 7;",
}
# What has no edges, or none that can be asked for in scalars.
PLAIN = {
    "all": "out[i] = in[i] + x;",
    "data": "if (in[i] < k) out[i] = in[i];",
    "flag": "if (k == 3) out[i] = in[i];",
    "odd": "if (x & 1) out[i] = in[i];",
    "strided": "if (w - x > 2) out[i] = in[i];",
}
SHAPES = [(4, 1, 0), (8, 1, 0), (8, 2, 0), (4, 3, 0), (4, 2, 1)]


@pytest.fixture(scope="module")
def module():
    return compile_cl("\n".join(
        f"kernel void {name}(global int *restrict out, global const int *restrict in, int w, int h, int k) "
        f"{{ int x = get_global_id(0), y = get_global_id(1), i = (y + 1) * w + x; {body} }}"
        for name, body in (EDGES | PLAIN).items()
    ))  # fmt: skip


@pytest.mark.parametrize(("width", "parts", "axis"), SHAPES)
def test_who_has_it(module, width, parts, axis):
    for name in EDGES | PLAIN:
        plan = make_plan(module, name, width=width, parts=parts, part_axis=axis)
        (function,) = (region.function for region in plan.regions)
        before = len(masked(function.blocks))
        version_by_guards(plan)
        entry = function.blocks[0]
        asks = any(i.op is PassOp.FirstItem for i in entry.instructions)
        assert asks == (name in EDGES), name
        if asks:
            assert entry.terminator.op is Op.BranchConditional
            inner, edges = (reached(block) for block in entry.successors())
            assert before and not masked(inner) and len(masked(edges)) == before, name
            assert not set(inner) & set(edges)


@pytest.mark.long
@pytest.mark.parametrize("size", [(20, 5), (64, 3), (7, 2)])
def test_same_results(module, size):
    """Bounds within the range, at its end, above it; groups that are whole and that are not."""
    data = np.random.default_rng(1).integers(-50, 100, 2000).astype(np.int32)
    for name in EDGES | PLAIN:
        for w, h in (size, (size[0] - 3, size[1] - 1), (70, 9), (0, 0)):
            args = [np.zeros(2000, np.int32), data, w, h, 5]
            compare(module, name, args, size, (8, 1), SHAPES, inner=True)


def test_offset(module):
    data = np.arange(4000, dtype=np.int32)
    for name in EDGES:
        args = [np.zeros(4000, np.int32), data, 40, 30, 5]
        compare(module, name, args, (32, 4), (16, 2), SHAPES, global_offset=(5, 2, 0), inner=True)


@pytest.mark.parametrize("seed", [*range(500, 508)])
def test_random(seed):
    check(seed, "-O2", ((4, 1, 0), 8, (2, 3, 0)), inner=True)
