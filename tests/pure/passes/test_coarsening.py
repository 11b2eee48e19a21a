"""A plan for one vector at a time becomes one for several: the same as if it had been made for them."""

import pytest

from cl_driver.passes.ir.dump import plan_text
from cl_driver.passes.ir.plan import PlanOptions
from cl_driver.passes.pipeline import coarsened
from tests.bench.model import kernel_file

from .support import compile_cl, make_plan

ROWS = """kernel void rows(global int *a, int n) {
    int x = get_global_id(0), y = get_global_id(1), s = 0;
    if (BRANCH) s = a[x];
    for (int k = 0; k < TRIPS; k++) s = s * 3 + a[k * n + x];
    a[y * n + x] = s;
}"""


def texts(module, name: str, lanes: int, parts: int, axis: int):
    """The plan made of the one without parts, if that is possible, and the one made for them."""
    options = {"width": lanes, "thorough": False}
    made_for = {"parts": parts, "part_axis": axis, **options}
    made = coarsened(make_plan(module, name, **options), PlanOptions(verify=True, **made_for))
    return made and plan_text(made), plan_text(make_plan(module, name, **made_for))


@pytest.mark.parametrize("lanes", [4, 16])
@pytest.mark.parametrize(
    "name", ["convolution", "gcd", "kmeans", "mandelbrot", "raymarch", "stencil7", "triad"]
)
def test_benchmarks(name, lanes):
    module = compile_cl(kernel_file(name).read_text())
    for parts, axis in ((2, 0), (4, 0), (4, 1)):
        became, made = texts(module, name, lanes, parts, axis)
        assert became in (None, made)
        assert became or axis == 1


@pytest.mark.parametrize(
    "branch, trips, possible",
    [("n", "n", True), ("x < n", "x", True), ("y & 1", "n", False), ("n", "y", False), ("x < y", "n", True)],
)
def test_rows_that_go_different_ways(branch, trips, possible):
    module = compile_cl(ROWS.replace("BRANCH", branch).replace("TRIPS", trips))
    became, made = texts(module, "rows", 8, 2, 1)
    assert became == (made if possible else None)
    became, made = texts(module, "rows", 8, 2, 0)
    assert became == made
