"""The estimate puts what obviously differs in order, and follows what a launch says: sizes and arguments."""

import subprocess
import sys

import pytest

from cl_driver.device.target import Target
from cl_driver.passes.cost.cpu_models import model_of
from cl_driver.passes.cost.estimate import estimate
from cl_driver.passes.cost.launch import Launch
from cl_driver.passes.cost.operations import Operations

from ..support import compile_cl, make_plan

TRIPLE = "x86_64-unknown-linux-gnu"
AVX2 = Target(TRIPLE, ("avx2", "fma"), 256)
AMD_AVX2 = Target(TRIPLE, ("avx2", "fma"), 256, slow_masked_stores=True)
AVX512 = Target(TRIPLE, ("avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "fma"), 512)
ALL = [AVX2, AMD_AVX2, AVX512, Target(TRIPLE, (), 128), Target("aarch64-unknown-linux-gnu", ("neon",), 128)]

HEAD = (
    "kernel void k(global float *out, global const float *in, global const int *index, int n, int m, "
    "global uchar *bytes, local float *tile) { int i = get_global_id(0), j = get_global_id(1); "
)
LINE = Launch((1 << 16, 1, 1), (64, 1, 1), {3: 1024, 4: 64})
PLANE = Launch((512, 512, 1), (16, 16, 1), {3: 512, 4: 64})


def costs(body, target=AVX2, launch=LINE, width=8, **options):
    return estimate(
        make_plan(compile_cl(f"{HEAD} {body} }}"), "k", width=width, **options), model_of(target), launch
    )


def per_item(body, *arguments, **options):
    return costs(body, *arguments, **options).per_item


@pytest.mark.parametrize("target", ALL, ids=lambda target: model_of(target).name)
@pytest.mark.parametrize(
    "less, more",
    [
        ("out[i] = in[i];", "out[i] = in[index[i]];"),
        ("out[i] = in[i];", "out[i] = in[33 * i];"),
        ("out[i] = in[i];", "out[index[i]] = in[i];"),
        ("out[i] = in[i] + 3;", "out[i] = 3 / in[i];"),
        ("out[i] = index[i] + n;", "out[i] = index[i] / n;"),
        ("out[i] = in[i] * 3;", "out[i] = sin(in[i]);"),
        ("out[i] = in[i];", "if (in[i] > 3) out[i] = in[i + n] / in[i];"),
        ("for (int k = 0; k < 16; k++) *out += in[k * n];", "for (int k = 0; k < n; k++) *out += in[k * n];"),
        ("for (int k = 0; k < m; k++) out[i + k] += 1;", "for (int k = 0; k < n; k++) out[i + k] += 1;"),
        ("for (int k = m; k > 0; k >>= 1) out[i + k] += 1;", "for (int k = m; k > 0; k--) out[i + k] += 1;"),
    ],
)  # fmt: skip
def test_what_costs_more(less, more, target):
    assert per_item(less, target) < per_item(more, target)


def test_updates_cost_less_than_loads_and_stores(monkeypatch):
    body = "int c[16]; for (int k = 0; k < m; k++) c[(index[i] >> k) & 15] += 1; out[i] = c[3];"
    together = per_item(body)
    monkeypatch.setattr(Operations, "note_updates", lambda *_: None)
    assert together < 0.8 * per_item(body)


@pytest.mark.parametrize("target", ALL, ids=lambda target: model_of(target).name)
def test_lanes_save_most_of_a_stream(target):
    stream = "out[i] = in[i] * 3 + 1;"
    assert per_item(stream, target, width=16) < 0.5 * per_item(stream, target, width=1)
    assert per_item("out[i] = in[index[i]];", target, width=16) > 2 * per_item(stream, target, width=16)


def test_masked_stores_by_cpu():
    body = "float x = in[i]; if (x > 3) out[i] = x;"
    plain = "out[i] = in[i];"

    def more(target):
        return per_item(body, target, width=16) - per_item(plain, target, width=16)

    assert more(AVX512) < more(AVX2) < more(AMD_AVX2)


def test_registers_that_are_spilled():
    many = "".join(f"float v{k} = in[i + {k} * n];" for k in range(24))
    body = (
        many
        + "for (int k = 0; k < n; k++) {"
        + "".join(f"v{k} = v{k} * v{(k + 1) % 24} + 1;" for k in range(24))
    )
    body += "} out[i] = " + " + ".join(f"v{k}" for k in range(24)) + ";"
    twice = costs(body, width=16).memory / costs(body, width=8).memory
    assert twice > 2.5  # twice the registers, and they do not do


def rounds(body, **values):
    """How often the loop of a body goes round: bytes that it reads, over those of one iteration."""
    launch = Launch((1 << 16, 1, 1), (64, 1, 1), {3: values.get("n", 8), 4: values.get("m", 1)})
    return costs(body, launch=launch).bytes["contiguous"] / 4


@pytest.mark.parametrize(
    "loop, count",
    [
        ("for (int k = 0; k < n; k++)", 100),
        ("for (int k = 0; k <= n; k += 3)", 34),
        ("for (int k = n; k > m; k -= 7)", 15),
        ("for (int k = 1; k < n; k *= 2)", 7),
        ("for (uint k = n * n; k; k /= 10)", 5),
        ("for (int k = 0; k < 200 - n; k++)", 100),
        ("for (int k = i; k < i + n; k++)", 100),
        ("for (int k = get_local_id(0); k < n * 64; k += get_local_size(0))", 100),
        ("for (int p = 0; p < n / 10; p++) for (int k = 0; k < 10; k++)", 100),
        ("for (int p = 0; p < n; p++) for (int k = 0; k < p; k++)", 4950),
    ],
)
def test_loops_follow_arguments(loop, count):
    body = "float s = 0; int at = 0; " + loop + " { s += in[at * n * 64 + i]; at++; } if (s == 3) out[0] = s;"
    assert rounds(body, n=100) == pytest.approx(count, rel=0.12)


def test_loops_that_nobody_knows_the_end_of():
    assert (
        4 <= rounds("float s = 0; int k = 0; while (in[i + k * 64] > s) { s += 1; k++; } out[i] = s;") <= 40
    )


def test_conditions_leave_work_items_out():
    body = "if (i < n) for (int k = 0; k < 64; k++) out[i + k * n] += 1;"
    few, many = (costs(body, launch=Launch((1 << 16, 1, 1), (64, 1, 1), {3: n})) for n in (1 << 10, 1 << 15))
    assert many.bytes["contiguous"] / few.bytes["contiguous"] == pytest.approx(32, rel=0.3)
    assert few.launch < 0.2 * many.launch


def test_work_items_that_all_do_the_same():
    body = "float s = 0; for (int k = 0; k < n; k++) s += in[k]; out[0] = s;"
    other = "float s = 0; for (int k = 0; k < n; k++) s += in[k]; out[i] = s;"
    assert costs(body, width=1).launch < 0.1 * costs(other, width=1).launch


def test_barriers_in_loops_that_arguments_count():
    body = """int l = get_local_id(0); float s = 0;
    for (int t = 0; t < n; t += 64) {
        tile[l] = in[t + l]; barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 64; k++) s += tile[k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[i] = s;"""
    few, many = (costs(body, launch=Launch((1 << 16, 1, 1), (64, 1, 1), {3: n})) for n in (256, 4096))
    assert many.cycles / few.cycles == pytest.approx(16, rel=0.25)
    tree = """int l = get_local_id(0); tile[l] = in[i]; barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
        if (l < s) tile[l] += tile[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) out[get_group_id(0)] = tile[0];"""
    small, large = (costs(tree, launch=Launch((1 << 16, 1, 1), (size, 1, 1))) for size in (64, 256))
    assert small.cycles < large.cycles < 2 * small.cycles


def test_where_lines_come_from():
    small, large = Launch((1 << 12, 1, 1), (64, 1, 1)), Launch((1 << 24, 1, 1), (64, 1, 1))
    stream = "out[i] = in[i] + 1;"
    assert costs(stream, launch=small).lines[1:] == [0, 0]  # all is in the second cache
    assert costs(stream, launch=large).lines[2] == pytest.approx(
        3 << 20, rel=0.1
    )  # a written one is read, too
    for options in ({"width": 16}, {"parts": 4}, {"parts": 2, "part_axis": 1}):  # however they are divided
        lines = costs(stream, launch=large, **options).lines
        assert lines == pytest.approx(costs(stream, launch=large).lines, rel=0.01)
    columns = "float s = 0; for (int k = 0; k < n; k++) s += in[i * n + k]; out[i] = s;"
    rows = "float s = 0; for (int k = 0; k < n; k++) s += in[k * 65536 + i]; out[i] = s;"
    assert costs(columns).lines[0] < 2 * costs(rows).lines[0]
    product = (
        "float s = 0; for (int k = 0; k < n; k++) s += in[j * n + k] * in[k * n + i]; out[j * n + i] = s;"
    )
    found = costs(product, launch=PLANE)
    assert 1 << 22 < found.lines[0] < 1 << 26 and found.lines[2] == 0
    assert "uniform" in found.bytes and "contiguous" in found.bytes


def test_a_chain_is_hidden_by_several_vectors():
    chain = "float s = 0; for (int k = 0; k < 512; k++) s = s * in[k] + 1; out[i] = s;"
    one, four = costs(chain), costs(chain, parts=4)
    assert one.latency > one.arithmetic and four.per_item < 0.5 * one.per_item


def test_groups_in_lockstep_keep_nothing_across_barriers():
    body = "int l = get_local_id(0); tile[l] = in[i]; barrier(CLK_LOCAL_MEM_FENCE); "
    body += "out[i] = tile[l ^ 1] + in[i];"
    plain = costs(body)
    held = costs(body, parts=8, group=(64, 1, 1))
    assert held.items == 64 and held.per_item < plain.per_item
    assert held.bytes["contiguous"] == pytest.approx(plain.bytes["contiguous"], rel=0.3)


def test_one_group_stands_for_those_that_do_the_same():
    body = "int l = get_local_id(0); tile[l] = in[i]; barrier(CLK_LOCAL_MEM_FENCE); out[i] = tile[l ^ 1]"
    rows = Launch((1 << 16, 512, 1), (64, 1, 1))
    line, same = (costs(f"{body};", launch=launch).launch for launch in (LINE, rows))
    assert same == pytest.approx(line)
    assert costs(f"{body} + get_group_id(1);", launch=rows).launch > 2 * line


def test_lanes_that_go_on_in_the_next_row():
    body = "int x = get_local_id(0), y = get_local_id(1); for (int k = 0; k < y + get_group_id(0); k++) "
    body += "out[j * n + i] += in[k * n + x];"
    launch = Launch((512, 512, 1), (4, 16, 1), {3: 512})
    rows = costs(body, AVX512, launch, 1)  # where places of each lane's own are no scalar code
    options = {"linear_lanes": True, "linear_group": (4, 16, 1)}
    linear = costs(body, AVX512, launch, **options)
    # Eight lanes are in two rows, of which one goes round once more.
    assert sum(linear.bytes.values()) == pytest.approx(sum(rows.bytes.values()), rel=0.15)
    assert linear.per_item < 0.9 * rows.per_item


def test_ordinary_builds_do_without():
    code = "import sys, cl_driver.compiler.variants, cl_driver.service.jobs; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.rpartition(".")[2] for name in done.stdout.split() if ".passes.cost." in name}
    assert "width" in loaded
    unwanted = {"estimate", "launch", "locality", "region_work", "trips", "sampled_values"}
    assert loaded & unwanted == set()


def test_what_all_work_items_do_alike_is_done_once():
    """Where no work-item can tell groups, launches have one (native_shim/src/launch/ndrange.c)."""
    head = "kernel void k(global float *out, global const float *in, int n) { float s = 0; "
    head += "for (int k = 0; k < n; k++) s = s * in[k] + 1; "
    small, large = (Launch((size, 8, 1), (64, 1, 1), {2: 1024}) for size in (1 << 10, 1 << 18))
    times = {}
    for where in ("0", "get_global_id(1)", "get_global_id(0)", "get_group_id(0)"):
        plan = make_plan(compile_cl(f"{head} out[{where}] = s; }}"), "k")
        times[where] = [estimate(plan, model_of(AVX2), launch).launch for launch in (small, large)]
    for where in ("0", "get_global_id(1)"):
        assert times[where][0] == pytest.approx(times[where][1], rel=0.01)
    for where in ("get_global_id(0)", "get_group_id(0)"):
        assert 50 * times[where][0] < times[where][1]
    assert times["0"][0] < times["get_global_id(1)"][0] < times["get_global_id(0)"][0]
