"""cl-driver tune: what it makes up, what it asks for, and that its times are those of launches."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import pytest

from cl_driver.compiler import pipeline
from cl_driver.compiler.source import Context, compile_source
from cl_driver.device.target import host_target
from cl_driver.passes.traffic.prepare import account_of
from cl_driver.tune.bounds import UnknownError, accessed
from cl_driver.tune.trials import candidates
from tests.conftest import ROOT

SOURCE = """
kernel void shifted(global float *y, global const float *x, float a, int n) {
    int i = get_global_id(0);
    if (i < n) y[i] += a * x[i + 3];
}
kernel void product(global const float *a, global const float *b, global float *c, int n) {
    int i = get_global_id(0), j = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[j * n + k] * b[k * n + i];
    c[j * n + i] = sum;
}
kernel void groups(global int *sums) { sums[get_group_id(0)] = get_local_size(0); }
kernel void before(global int *a) { a[(int)get_global_id(0) - 2] = 1; }
kernel void gather(global float *out, global const float *table, global const int *index) {
    size_t i = get_global_id(0); out[i] = table[index[i]];
}
kernel void tile(global float *out, local float *t) {
    size_t l = get_local_id(0);
    t[l] = l;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = t[get_local_size(0) - 1 - l];
}
kernel void picture(read_only image2d_t image, global float4 *out) {
    out[get_global_id(0)] = read_imagef(image, (int2)(0, 0));
}
kernel __attribute__((reqd_work_group_size(32, 1, 1))) void fixed(global int *a) { a[get_global_id(0)] = 1; }
kernel void slow(global uint *a, uint rounds) {
    uint x = a[get_global_id(0)];
    for (uint i = 0; i < rounds; i++) x = x * 1664525 + (x >> 7);
    a[get_global_id(0)] = x;
}
"""


@pytest.fixture(scope="module")
def program():
    context = Context(host_target(), "-cl-kernel-arg-info", {})
    return pipeline.prepare(compile_source(SOURCE.encode(), {}, context).spirv, context)


@pytest.fixture
def tune(environment, tmp_path):
    file = tmp_path / "k.cl"
    file.write_text(SOURCE)

    def run(kernel: str, *options: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "cl_driver.cli", "tune", str(file), "--kernel", kernel, *options]
        return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)

    return run


def bytes_of(program, name: str, items, local, values) -> dict[int, tuple[int, int]]:
    account = account_of(program.module, program.entry_points[name])
    return accessed(account, items, local, values)


def test_bounds(program):
    """The first and the last byte, of what is executed only."""
    one = [64, 1, 1]
    assert bytes_of(program, "shifted", [1024, 1, 1], one, {3: 100}) == {0: (0, 400), 1: (12, 412)}
    assert bytes_of(program, "shifted", [1024, 1, 1], one, {3: 5000}) == {0: (0, 4096), 1: (12, 4108)}
    assert bytes_of(program, "shifted", [1024, 1, 1], one, {3: 0}) == {}
    whole = 4 * 32 * 32
    found = bytes_of(program, "product", [32, 32, 1], one, {3: 32})
    assert found == {0: (0, whole), 1: (0, whole), 2: (0, whole)}
    for local in (16, 64):
        assert bytes_of(program, "groups", [1024, 1, 1], [local, 1, 1], {}) == {0: (0, 4 * 1024 // local)}
    assert bytes_of(program, "before", [16, 1, 1], [16, 1, 1], {}) == {0: (-8, 56)}


def test_bounds_that_cannot_be_told(program):
    with pytest.raises(UnknownError):
        bytes_of(program, "gather", [64, 1, 1], [64, 1, 1], {})
    with pytest.raises(UnknownError):  # a number that nobody gave
        bytes_of(program, "shifted", [64, 1, 1], [64, 1, 1], {})


def test_local_sizes_that_are_tried():
    assert (24,) not in candidates([96]) and (32,) in candidates([96]) and (64,) not in candidates([96])
    found = candidates([64, 6], 128)
    assert found and all(64 % x == 0 and 6 % y == 0 and x * y <= 128 for x, y in found)


@pytest.mark.parametrize(
    ("kernel", "options", "said"),
    [
        ("shifted", (), ["a (float) is not known: --arg a=NUMBER", "n (int) is not known: --arg n=NUMBER"]),
        ("shifted", ("--arg", "a=x", "--arg", "n=1"), ["'x' is no float"]),
        ("shifted", ("--arg", "m=1"), ["has no argument m; it has y, x, a, n"]),
        ("before", (), ["a is accessed 8 bytes before its beginning"]),
        ("gather", (), ["how large table is depends", "--arg out=BYTES"]),
        ("tile", (), ["say which to try, --local-size 16x16"]),
        ("tile", ("--local-size", "64"), ["how many bytes of local memory t has", "--arg t=BYTES*items"]),
        ("tile", ("--local-size", "48"), ["a local size of '48' does not divide 1024"]),
        ("picture", (), ["image is image2d_t, which cannot be made up"]),
        ("nothing", (), ["--kernel must be one of shifted, product"]),
    ],
)
def test_what_is_asked_for(tune, kernel, options, said):
    done = tune(kernel, "--global-size", "1024", *options)
    assert done.returncode == 1 and done.stdout == "", done.stdout
    assert "Traceback" not in done.stderr and all(text in done.stderr for text in said), done.stderr


def rows(text: str) -> dict[tuple[str, str], tuple[float, float]]:
    """{(local size, build options): (µs, share)}"""
    found = re.findall(r"^(\S.*?)  +(as given|-cl\S*) +([\d.e+]+) µs +([\d.]+)$", text, re.MULTILINE)
    return {(size, options): (float(time), float(share)) for size, options, time, share in found}


def test_a_table(tune):
    done = tune("slow", "--global-size", "4096", "--arg", "rounds=2000")
    assert done.returncode == 0, done.stderr
    assert "a: 16384 bytes, by what the launch accesses" in done.stdout
    found = rows(done.stdout)
    own = found["the driver's own", "as given"]
    assert own[1] == 1
    assert {size for size, options in found if options == "as given"} == {
        "the driver's own", "1", "8", "16", "32", "64", "128", "256", "512", "1024"
    }  # fmt: skip
    assert sum(options == "-cl-fast-relaxed-math" for _, options in found) == 1
    for time, share in found.values():
        assert share == pytest.approx(time / own[0], abs=0.02)


@pytest.mark.clock
def test_times_are_of_launches(tune):
    """Twice the work takes about twice the time: the least of some, as CPUs may share a core with others."""
    options = ("--global-size", "1024", "--no-options", "--local-size", "64", "--arg")
    least = {20_000: math.inf, 40_000: math.inf}
    for _ in range(4):
        for rounds in least:
            done = tune("slow", *options, f"rounds={rounds}")
            assert done.returncode == 0, done.stderr
            ((time, _),) = rows(done.stdout).values()
            least[rounds] = min(least[rounds], time)
    a, b = least.values()
    assert 1.5 < b / a < 2.7


def test_local_memory_and_sizes_that_are_required(tune):
    sizes = ("--local-size", "64", "--local-size", "256")
    done = tune("tile", "--global-size", "1024", *sizes, "--arg", "t=4*items", "--no-options")
    assert done.returncode == 0, done.stderr
    assert "t: 4 bytes for each work-item of a group, as given" in done.stdout
    assert {size for size, _ in rows(done.stdout)} == {"64", "256"}
    done = tune("fixed", "--global-size", "1024", "--no-options")
    assert {size for size, _ in rows(done.stdout)} == {"32"}


def test_sizes_that_are_given(tune):
    given = [f"{name}=4096" for name in ("out", "table", "index")]
    done = tune(
        "gather", "--global-size", "1024", "--no-options", *(w for text in given for w in ("--arg", text))
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("4096 bytes, as given") == 3
