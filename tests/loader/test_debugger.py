"""Kernels in gdb, by their names and lines. Without vectorisers a line is in one place, where gdb stops."""

import re
import shutil
import subprocess

import pytest


def test_a_program_with_debug_information_runs(run_client):
    run_client("debugger")


@pytest.fixture
def gdb(client, variables, tmp_path):
    """gdb(place): what gdb says of the program when it stops there."""
    if not shutil.which("gdb"):
        pytest.skip("no gdb")

    def run(place: str) -> str:
        commands = ("set breakpoint pending on", f"break {place}", "run", "bt 2")
        arguments = [word for command in commands for word in ("-ex", command)]
        done = subprocess.run(
            ["gdb", "-nx", "-batch", *arguments, "--args", str(client("debugger"))],
            env={**variables, "CL_DRIVER_JIT_DEBUG": "gdb", "CL_DRIVER_CACHE_DIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.stdout + done.stderr

    return run


def test_gdb_stops_on_a_line_and_shows_it(gdb):
    text = gdb("program.cl:3")
    assert re.search(r"#0 .*helper .*program\.cl:3\n", text), text
    assert re.search(r"#1 .*k .*program\.cl:7\n", text), text
    assert "return y + 1.0f;" in text


def test_gdb_stops_in_a_kernel(gdb):
    text = gdb("k")
    assert re.search(r"#0 .*k \(.*program\.cl:[56]\n", text), text
