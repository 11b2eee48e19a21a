"""What decides about lanes and parts: stencils that leave their edges out take several vectors of one row,
not of several."""

from types import SimpleNamespace

import pytest

from cl_driver.device.target import Target
from cl_driver.passes.cost import width
from cl_driver.passes.cost.cpu_models import model_of
from cl_driver.passes.cost.work import PlanCosts
from cl_driver.spirv.reflect import called

from ..support import compile_cl, entry, make_plan

HEAD = (
    "kernel void k(global int *out, global const int *start, global const int *column, global const int *x, "
    "int n, global int *marks) { int i = get_global_id(0), s = 0; "
)


@pytest.mark.parametrize(
    "body, axis",
    [
        ("out[i] = x[i];", 0),
        ("int y = get_global_id(1); out[y * n + i] = x[y * n + i + 1] + x[y * n + i - 1];", 1),
        ("int y = get_global_id(1); out[y * n + i] = x[clamp(y + 1, 0, n) * n + i];", 1),
        ("int y = get_global_id(1); if (y && i) out[y * n + i] = x[y * n + i] + x[y * n + i - n];", 0),
        ("int y = get_global_id(1); if (y > 2 * n || i < n) return; out[y * n + i] = x[y * n + i - n];", 0),
        ("int y = get_global_id(1); if (i) out[y * n + i] = x[y * n + i] + x[y * n + i - n];", 1),
        # Rows leave a loop one by one that lanes leave together; or rows do as lanes do.
        ("int y = get_global_id(1); for (int k = 0; k < y; k++) s += x[k * n + i]; out[y * n + i] = s;", 0),
        ("int y = get_global_id(1); for (int k = *start; k < start[y]; k++) s += x[k + i]; out[i] = s;", 0),
        ("int y = get_global_id(1); for (int k = 0; k < n; k++) s += x[k * y + i]; out[y * n + i] = s;", 1),
        ("int y = get_global_id(1); for (int k = 0; k < i + y; k++) s += x[k * n]; out[y * n + i] = s;", 1),
        (
            "int y = get_global_id(1); for (int k = 0; k < n && k != y; k++) s += x[k + i];"
            "out[y * n + i] = s;",
            0,
        ),
    ],
)
def test_rows_or_one_row(body, axis):
    plan = make_plan(compile_cl(f"{HEAD} {body} }}"), "k", width=16)
    assert width._axis([PlanCosts(plan, AVX512).of(region) for region in plan.regions]) == axis


AVX2, AVX512 = (Target("x86_64-unknown-linux-gnu", (), bits) for bits in (256, 512))
NEON = Target("aarch64-unknown-linux-gnu", (), 128)
SET_TO_2 = Target("x86_64-unknown-linux-gnu", (), 256, 2)


@pytest.fixture
def best(monkeypatch):
    """width._best of regions of which everything that it asks is known.

    Each region: cycles of 1, 2, 4 and 8 vectors; pressure: registers that one vector needs, None where that
    is not known; loops: whether lanes leave one at different times, None without any; walks: as of Work.
    share: what is left of the work of several rows.
    """

    def ask(*regions, axis=0, target=AVX2, most=8, share=1.0):
        operations = SimpleNamespace(model=model_of(target))
        asked = [
            SimpleNamespace(operations=operations, region=r, nest=r, pressure=r["pressure"]) for r in regions
        ]
        monkeypatch.setattr(width, "divergent_loops", lambda region: region["loops"])
        monkeypatch.setattr(width, "_work", lambda costs, axis: work(costs.region))
        monkeypatch.setattr(width, "_share", lambda plan, region, work, count: share if count > 1 else 1.0)
        return width._best(None, asked, axis, most)[:2]

    def work(region):
        times = dict(zip((1, 2, 4, 8), region["cycles"], strict=True))
        return SimpleNamespace(walks=region["walks"], cycles=lambda count, p, share: times[count] * share)

    return ask


def region(*cycles, pressure=1.0, loops=False, walks=False):
    return {"cycles": cycles, "pressure": pressure, "loops": loops, "walks": walks}


FALLING = (100, 90, 80, 60)
FLAT = (100, 100, 100, 10)


@pytest.mark.parametrize(
    "regions, ways, found, gain",
    [
        ([region(*FALLING)], {}, 8, 100 / 60),
        ([region(*FALLING)], {"most": 4}, 4, 100 / 80),
        ([region(*FALLING)], {"most": 2}, 2, 100 / 90),
        ([region(100, 50, 100, 100)], {}, 2, 2),
        # More code has to gain something, except of rows, which have work in common: as much more for eight.
        ([region(100, 96, 96, 96)], {}, 1, 1),
        ([region(100, 95, 96, 96)], {}, 2, 100 / 95),
        ([region(100, 83, 80, 79)], {}, 2, 100 / 83),
        ([region(100, 83, 80, 79)], {"axis": 1}, 4, 100 / 80),
        # ... as long as registers are not spilled for it.
        ([region(100, 83, 80, 79, pressure=4)], {"axis": 1}, 4, 100 / 80),
        ([region(100, 83, 80, 79, pressure=5)], {"axis": 1}, 2, 100 / 83),
        ([region(100, 83, 70, 69, pressure=5)], {"axis": 1}, 4, 100 / 70),
        ([region(100, 100, 100, 90)], {}, 8, 100 / 90),
        ([region(100, 100, 100, 92)], {}, 1, 1),
        ([region(11, 11, 11, 10)], {}, 8, 1.1),
        # Of eight, only if registers have room for them.
        ([region(*FLAT, pressure=1.5)], {}, 8, 10),
        ([region(*FLAT, pressure=1.6)], {}, 1, 1),
        ([region(*FLAT, pressure=2)], {}, 1, 1),
        ([region(*FLAT, pressure=3)], {"target": AVX512}, 8, 10),
        ([region(*FLAT, pressure=3)], {"target": NEON}, 8, 10),
        ([region(*FLAT), region(*FLAT, pressure=2)], {}, 1, 1),
        # ... and if there is a loop in which no lane waits for others.
        ([region(*FLAT, loops=None)], {}, 1, 1),
        ([region(*FLAT, loops=True)], {}, 1, 1),
        ([region(*FLAT), region(*FLAT, loops=True)], {}, 1, 1),
        ([region(*FLAT, loops=None), region(*FLAT, loops=None)], {}, 8, 10),
        # Lanes that wait, those in a row for longer.
        ([region(100, 50, 50, 50, loops=True)], {}, 2, 100 / 54),
        ([region(100, 50, 50, 50, loops=True)], {"axis": 1}, 2, 100 / 51.5),
        ([region(100, 90, 60, 60, loops=True)], {}, 4, 100 / (60 * 1.24)),
        ([region(100, 96, 100, 100, loops=True)], {"axis": 1}, 1, 1),
        # Rows with work in common.
        ([region(100, 100, 100, 100)], {"axis": 1, "share": 0.5}, 2, 2),
        ([region(100, 100, 100, 100)], {"axis": 0, "share": 0.5}, 1, 1),
        ([region(50, 45, 40, 30), region(50, 45, 40, 30)], {}, 8, 100 / 60),
        # Nothing is known, or lanes walk through rows.
        ([region(*FALLING, pressure=None)], {}, 1, 1),
        ([region(*FALLING, walks=True)], {}, 1, 1),
        ([region(*FALLING), region(*FALLING, walks=True)], {}, 1, 1),
    ],
)  # fmt: skip
def test_the_best_number_of_vectors(best, regions, ways, found, gain):
    assert best(*regions, **ways) == (found, pytest.approx(gain))


def chosen(source, target=AVX2, required=(0, 0, 0)):
    kernel = entry(compile_cl(source), "k")
    return width.choose(called(kernel.function), required, target)


PLAIN = "kernel void k(global int *a) { a[get_global_id(0)] *= 3; }"


@pytest.mark.parametrize(
    "target, lanes",
    [(AVX2, 8), (AVX512, 16), (NEON, 4), (SET_TO_2, 2)],
)
def test_lanes_are_those_of_ints_or_what_a_setting_says(target, lanes):
    assert chosen(PLAIN, target) == lanes


@pytest.mark.parametrize("columns, avx2, avx512", [
    (0, 8, 16), (1, 1, 1), (2, 1, 1), (4, 4, 4), (7, 1, 1), (8, 8, 8), (9, 8, 1), (12, 8, 4), (16, 8, 16),
])  # fmt: skip
def test_rows_that_a_kernel_requires_leave_no_lane_idle(columns, avx2, avx512):
    """If they are shorter than a vector."""
    found = [chosen(PLAIN, target, required=(columns, 1, 1)) for target in (AVX2, AVX512)]
    assert found == [avx2, avx512]


INNER = "__attribute__((noinline)) void inner(global int *a) { a[%s] += 1; }"
INNER += "kernel void k(global int *a) { inner(a); }"


@pytest.mark.parametrize(
    "source, lanes",
    [
        ("kernel void k(global int *a) { a[0] = 3; }", 1),
        ("kernel void k(global int *a) { a[get_global_size(0)] = get_num_groups(1) + get_work_dim(); }", 1),
        ("kernel void k(global int *a) { a[get_local_id(1)] = 3; }", 8),
        ("kernel void k(global int *a) { a[get_group_id(0)] = 3; }", 8),
        ("kernel void k(global int *a) { atomic_inc(a); }", 8),
        ("kernel void k(global int *a) { a[0] = 3; barrier(CLK_GLOBAL_MEM_FENCE); }", 8),
        ("void outside(global int *a); kernel void k(global int *a) { outside(a); }", 8),
        (INNER % "get_global_id(0)", 8),
        (INNER % "0", 1),
    ],
)
def test_one_lane_where_work_items_are_all_alike(source, lanes):
    assert chosen(source) == lanes


@pytest.mark.parametrize(
    "type_, avx2, avx512",
    [("float4", 8, 16), ("float16", 8, 16), ("double8", 8, 16), ("double16", 4, 8)],
)
def test_a_value_of_all_lanes_fits_into_the_registers(type_, avx2, avx512):
    """Sixteen of them at most. The sine is there so that nothing is gained without lanes."""
    source = f"kernel void k(global {type_} *a, {type_} d) {{ {type_} x = a[get_global_id(0)]; "
    source += "for (int k = 0; k < 9; k++) x = sin(x) / d; a[get_global_id(0)] = x; }"
    assert (chosen(source), chosen(source, AVX512)) == (avx2, avx512)
