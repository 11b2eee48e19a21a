"""What decides about lanes and parts: loops of gathers take work-items one by one; stencils that leave their
edges out take several vectors of one row, not of several."""

import pytest

from cl_driver.passes.cost import width

from .support import compile_cl, make_plan

HEAD = (
    "kernel void k(global int *out, global const int *start, global const int *column, global const int *x, "
    "int n, global int *marks) { int i = get_global_id(0), s = 0; "
)


def prefers_one(body, width_=16):
    module = compile_cl(f"{HEAD} {body} out[i] = s; }}")
    return width.prefers_one(make_plan(module, "k", width=width_))


def row(body):
    return f"for (int k = start[i]; k < start[i + 1]; k++) {body}"


SPARSE = row("s += marks[k] * x[column[k]];")
WORK = row("{ int v = marks[k] * x[column[k]]; s += v ^ (v << 3) ^ (v * v) ^ (s >> v); }")


@pytest.mark.parametrize(
    "body, one",
    [
        (SPARSE, True),
        (row("marks[column[k]] = x[k];"), True),
        (row("atomic_add(&marks[column[k]], x[k]);"), True),
        (row("s += x[column[k]];"), False),
        (WORK, False),
        ("for (int k = 0; k < n; k++) s += start[k * n + i] * x[column[k * n + i]];", False),
        ("for (int k = 0; k < n; k++) s += x[column[marks[(k ^ i) * n]]];", False),  # all lanes go on
        ("s = x[column[start[i]]] + x[marks[start[i]]];", False),
        (SPARSE + WORK, False),
    ],
)
def test_one_work_item_at_a_time(body, one):
    assert prefers_one(body) == one


def test_it_is_no_choice_at_width_1():
    assert not prefers_one(SPARSE, 1)


@pytest.mark.parametrize(
    "body, axis",
    [
        ("out[i] = x[i];", 0),
        ("int y = get_global_id(1); out[y * n + i] = x[y * n + i + 1] + x[y * n + i - 1];", 1),
        ("int y = get_global_id(1); out[y * n + i] = x[clamp(y + 1, 0, n) * n + i];", 1),
        ("int y = get_global_id(1); if (y && i) out[y * n + i] = x[y * n + i] + x[y * n + i - n];", 0),
        ("int y = get_global_id(1); if (y > 2 * n || i < n) return; out[y * n + i] = x[y * n + i - n];", 0),
        ("int y = get_global_id(1); if (i) out[y * n + i] = x[y * n + i] + x[y * n + i - n];", 1),
        ("int y = get_global_id(1); for (int k = 0; k < y; k++) s += x[k * n + i]; out[y * n + i] = s;", 1),
    ],
)
def test_rows_or_one_row(body, axis):
    module = compile_cl(f"{HEAD} {body} }}")
    assert width._axis(make_plan(module, "k", width=16).regions) == axis
