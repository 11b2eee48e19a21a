"""The kernels of tests/bench/ compute what they should on this driver, at sizes that take no time."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.bench import functions
from tests.bench.cases import BENCHMARKS
from tests.bench.model import check
from tests.bench.throughput import Child
from tests.marks import few, halved


@pytest.fixture(scope="module", params=few(["now", "background"], 1))
def child_of(request, environment, tmp_path_factory):
    """A function that answers with a living child process; a dead one is replaced. Its kernels are those of
    first launches, or those that have run for a while."""
    additions = environment | {"CL_DRIVER_GROUP_CODE": request.param}
    log = tmp_path_factory.mktemp("bench") / "log"
    children: list[Child] = []

    def living() -> Child:
        if not children or children[-1].error:
            children.append(Child(additions, log))
        return children[-1]

    yield living
    for child in children:
        child.close()


@pytest.mark.parametrize("name", halved(sorted(BENCHMARKS)))
def test_kernel(name, child_of, tmp_path):
    path = tmp_path / "expected.npz"
    np.savez(path, **BENCHMARKS[name].case(small=True).expected())
    answer = child_of().ask(f"load {name} {path} small", 60)
    if "skipped" in answer:
        pytest.skip(answer["skipped"])
    assert answer["error"] is None
    assert child_of().ask("check", 60)["error"] is None


def test_the_script_writes_table_and_plot(environment, tmp_path):
    """Two kernels on this driver alone."""
    pytest.importorskip("matplotlib", reason="make bench installs it")
    command = [sys.executable, "-m", "tests.bench.throughput", "--filter", "^(poly_float8|gcd)$"]
    command += ["--rounds", "1", "--seconds", "0.05", "--output", str(tmp_path)]
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- throughput -->\nold\n<!-- end of throughput -->\nafter\n")
    command += ["--readme", str(page)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "throughput.md").read_text()
    assert "poly_float8" in table and "2 right, 0 skipped, 0 failed" in table and "warm sum" in table
    begin, end = "before\n<!-- throughput -->\n", "<!-- end of throughput -->\nafter\n"
    assert page.read_text() == begin + table + end


@pytest.mark.parametrize(
    "name", ["sincos:float", "frexp:double", "fma:double", "pown:float", "half_divide:float"]
)
def test_function(name, child_of):
    assert child_of().ask(f"load {name} own small", 60)["error"] is None


def test_a_wrong_function_is_found():
    """A result that is off in one place by a thousandth of it."""
    case = functions.benchmark("exp:float").case(small=True)
    want = case.expected()
    got = {"out": want["out"].astype(np.float32)}
    assert check(case, want, got) is None
    got["out"][want["out"].argmax()] *= 1.001
    assert "1 of 16384 wrong" in check(case, want, got)
