"""The kernels of tests/bench/ compute what they should on this driver, at sizes that take no time.

CL_DRIVER_TEST_WIDTH=16 runs them at that width.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.bench.cases import BENCHMARKS
from tests.bench.throughput import Child


@pytest.fixture(scope="module")
def child_of(environment, tmp_path_factory):
    """A function that answers with a living child process; a dead one is replaced."""
    width = os.environ.get("CL_DRIVER_TEST_WIDTH")
    additions = environment | ({"CL_DRIVER_WIDTH": width} if width else {})
    log = tmp_path_factory.mktemp("bench") / "log"
    children: list[Child] = []

    def living() -> Child:
        if not children or children[-1].error:
            children.append(Child(additions, log))
        return children[-1]

    yield living
    for child in children:
        child.close()


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
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
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "throughput.md").read_text()
    assert "poly_float8" in table and "2 right, 0 skipped, 0 failed" in table and "warm sum" in table
