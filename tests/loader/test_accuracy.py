"""cl-driver accuracy on this driver: what it writes, and that it finds a wrong function."""

from __future__ import annotations

import subprocess
import sys

import pytest

FUNCTIONS = "exp,pown,fma,remquo,sincos,ilogb,divide"


@pytest.fixture
def run(environment, tmp_path):
    def measure(*options: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "cl_driver.cli", "accuracy", "--output", str(tmp_path), "--no-time"]
        command += ["--count", "2000", *options]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    return measure


def test_functions_are_within_their_bounds(run, tmp_path):
    done = run("--functions", FUNCTIONS)
    assert done.returncode == 0, done.stderr
    assert "Over the bound: none." in done.stdout
    table = (tmp_path / "accuracy.md").read_text()
    assert table.count("\n| exp | ") == 3 and "| remquo | half | 0 | 0 |" in table
    assert "<table>" in (tmp_path / "accuracy.html").read_text()


def test_a_wrong_function_is_over_its_bound(run):
    """half_exp in place of exp; exp2 is what it should be."""
    done = run("--functions", "exp,exp2", "--types", "float", "--options=-Dexp=half_exp10")
    assert done.returncode == 1
    assert "Over the bound: exp of float" in done.stdout and "exp2" not in done.stdout


def test_plots_are_drawn(run, tmp_path):
    pytest.importorskip("matplotlib", reason="make bench installs it")
    assert run("--functions", "exp,pow", "--types", "float").returncode == 0
    assert (tmp_path / "accuracy_float.png").stat().st_size > 1000
