"""Which kernels lanes that go on in the next row are estimated to pay for."""

import pytest

from cl_driver.device.target import make_target
from cl_driver.passes.cost.short_rows import has_idle_lanes, lanes_that_rows_fill, linear_lanes_pay
from tests.cpus import ZEN3

from ..support import compile_cl, make_plan

HEAD = "kernel void k(global float *o, global const float *a, global const int *at, int n, local float *l) {"
IDS = "int x = get_local_id(0) + get_group_id(0) * get_local_size(0), y = get_global_id(1), p = y * n + x;"
STEPS = "float s = x, t = y; for (int i = 0; i < n; i++) { t = t * s + i; s = s * s - t * t; } o[p] = s;"
BLUR = "float s = 0; for (int i = 0; i < n; i++) s += a[y * n + clamp(x + i, 0, n - 1)]; o[p] = s;"
TABLE = (
    "float s = 0; for (int i = 0; i < n; i++) { float t = a[at[i]]; s = (s + t) * t * (x + i); } o[p] = s;"
)


def pays(body, size, width=8, of_rows=8) -> bool:
    module = compile_cl(f"{HEAD} {IDS} {body} }}")
    rows = make_plan(module, "k", width=of_rows)
    linear = make_plan(module, "k", width=width, linear_lanes=True, linear_group=size)
    return linear_lanes_pay(rows, linear, make_target(ZEN3))


@pytest.mark.parametrize(
    "body, size, expected",
    [
        (STEPS, (4, 4, 1), True),
        (STEPS.replace("t = y", "t = y + get_local_id(2)"), (4, 4, 4), True),
        (STEPS, (4, 4, 4), False),  # all planes do the same, of which one is enough
        (STEPS, (1, 64, 1), True),
        (STEPS, (2, 2, 2), True),
        (STEPS, (7, 8, 1), False),  # one lane in eight is idle
        (STEPS, (9, 8, 1), True),
        (TABLE, (4, 4, 1), True),
        (BLUR, (4, 4, 1), False),  # neighbours' pixels are next to one another
        ("o[p] = a[p] * 2;", (4, 4, 1), False),
        ("o[p] = a[p] * 2;", (1, 16, 1), False),
    ],
)
def test_what_pays(body, size, expected):
    assert pays(body, size) == expected


def test_what_is_executed_alone_gains_more():
    assert pays(STEPS, (7, 8, 1), of_rows=1)


@pytest.mark.parametrize("size, expected", [((4, 4, 1), True), ((4, 1, 8), False)])
def test_narrower_vectors_gain_less(size, expected):
    """Rows that fill vectors of half the width; all planes do the same, so there is one row."""
    assert pays(STEPS, size, of_rows=4) == expected


@pytest.mark.parametrize(
    "size, lanes, expected",
    [
        ((4, 4, 1), 8, True),
        ((12, 1, 2), 8, True),
        ((16, 4, 1), 8, False),
        ((5, 1, 1), 8, False),
        ((4, 4, 1), 1, False),
    ],
)
def test_idle_lanes(size, lanes, expected):
    assert has_idle_lanes(size, lanes) == expected


@pytest.mark.parametrize(
    "row, lanes, expected",
    [(16, 16, 16), (48, 16, 16), (8, 16, 8), (24, 16, 8), (4, 16, 4), (4, 8, 4), (16, 64, 16)]
    + [(2, 8, 1), (8, 64, 1), (10, 16, 1), (4, 4, 4), (8, 1, 1), (7, 8, 1)],
)
def test_lanes_of_groups_in_lockstep(row, lanes, expected):
    """Rows fill whole vectors, of a quarter of the lanes and of four at least."""
    assert lanes_that_rows_fill(row, lanes) == expected
