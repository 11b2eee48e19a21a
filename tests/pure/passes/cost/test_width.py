"""What decides about lanes and parts: loops of gathers take work-items one by one; stencils that leave their
edges out take several vectors of one row, not of several."""

from types import SimpleNamespace

import pytest

from cl_driver.device.target import Target
from cl_driver.passes.cost import latency, width
from cl_driver.spirv.reflect import called

from ..support import compile_cl, entry, make_plan

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
    "id_, one", [("get_group_id(0)", True), ("get_global_id(1)", True), ("get_local_id(0)", False)]
)
def test_rows_that_do_the_same(id_, one):
    """One work-item stands for all of a row."""
    module = compile_cl(f"kernel void k(global int *out, global int *in) {{ out[{id_}] = in[{id_}]; }}")
    assert width.prefers_one(make_plan(module, "k", width=8)) == one


@pytest.mark.parametrize("size, one", [(1 << 16, False), (1 << 20, True)])
def test_much_private_memory(size, one):
    """No cache holds that of all lanes."""
    body = f"int own[{size >> 2}]; for (int k = 0; k < n; k++) own[k * k % n] += x[k]; s = own[n];"
    assert prefers_one(body) == one


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
        asked = [SimpleNamespace(function=region, shapes=None) for region in regions]
        pressures = {target.vector_bits // 8: lambda region: region["pressure"]}  # by the bits of a lane
        monkeypatch.setattr(width, "vector_pressure", lambda region, shapes, bits: pressures[bits](region))
        monkeypatch.setattr(width, "divergent_loops", lambda region: region["loops"])
        monkeypatch.setattr(width, "work_of", lambda region, shapes, bits, lanes: work(region))
        monkeypatch.setattr(width, "_share", lambda plan, region, work, count: share if count > 1 else 1.0)
        plan = SimpleNamespace(options=SimpleNamespace(width=8))
        return width._best(plan, asked, axis, target, most)[:2]

    def work(region):
        times = dict(zip((1, 2, 4, 8), region["cycles"], strict=True))
        return SimpleNamespace(
            walks=region["walks"], cycles=lambda count, p, room, share: times[count] * share
        )

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


def rounds(count, chained):
    """A kernel that takes many steps on vectors of 256 bits for each value of a list: each of them needs what
    the step before gave, or one of several that are independent."""
    names = ["a"] if chained else ["a", "b", "c", "d", "e", "f"]
    steps = [f"{{0}} = ({{0}} ^ v) + {k * 977 + 1}u;".format(names[k % len(names)]) for k in range(count)]
    declared = " ".join(f"uint8 {name} = x[i + {n}];" for n, name in enumerate(names))
    return (
        "kernel void k(global uint8 *out, global const uint8 *x, constant uint8 *list, int n) { "
        f"int i = get_global_id(0); {declared} for (int j = 0; j < n; j++) {{ uint8 v = list[j] + a; "
        f"{' '.join(steps)} }} out[i] = {' + '.join(names)}; }}"
    )


@pytest.mark.parametrize(
    "count, chained, own",
    [(400, False, True), (40, False, False), (400, True, False)],
    ids=["too long for lanes", "short", "lanes fill its gaps"],
)
def test_vectors_that_fill_registers_need_no_lanes_where_code_is_long(count, chained, own):
    plan = make_plan(compile_cl(rounds(count, chained)), "k", width=8)
    assert width.prefers_own_vectors(plan, AVX2) == own


def test_scalars_have_lanes_however_long_the_code_is():
    source = rounds(400, False).replace("uint8", "uint")
    assert not width.prefers_own_vectors(make_plan(compile_cl(source), "k", width=8), AVX2)


def test_more_vectors_are_not_worth_code_beyond_the_cache():
    """A loop of 3000 operations is 24 KB, twice that is more than the cache for instructions has."""
    small = latency.Work(units=8 * 600.0, loops=[(8, 600, 400, 0)], code=[(8 * 600.0, 600)])
    large = latency.Work(units=8 * 3000.0, loops=[(8, 3000, 400, 0)], code=[(8 * 3000.0, 3000)])
    assert small.cycles(2, 4, 16) < small.cycles(1, 4, 16)
    assert large.cycles(2, 4, 16) > large.cycles(1, 4, 16)
