"""Kernels in gdb, by their names and lines. Without vectorisers a line is in one place, where gdb stops."""

import re
import shutil
import subprocess

import pytest

from cl_driver.debugger import GDB_SCRIPT
from tests.marks import needs_kernel


def test_a_program_with_debug_information_runs(run_client):
    run_client("debugger")


@pytest.fixture
def gdb(client, variables, tmp_path):
    """gdb(place): what gdb says of the program when it stops there."""
    if not shutil.which("gdb"):
        pytest.skip("no gdb")

    def run(place: str, *more: str, **environment: str) -> str:
        commands = (
            f"source {GDB_SCRIPT}",
            "set breakpoint pending on",
            f"break {place}",
            "run",
            "bt 2",
            *more,
        )
        arguments = [word for command in commands for word in ("-ex", command)]
        done = subprocess.run(
            ["gdb", "-nx", "-batch", *arguments, "--args", str(client("debugger"))],
            env={
                **variables,
                "CL_DRIVER_JIT_DEBUG": "gdb",
                "CL_DRIVER_CACHE_DIR": str(tmp_path),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.stdout + done.stderr

    return run


@needs_kernel
def test_gdb_stops_on_a_line_and_shows_it(gdb):
    text = gdb("program.cl:3")
    assert re.search(r"#0 .*helper .*program\.cl:3\n", text), text
    assert re.search(r"#1 .*k .*program\.cl:7\n", text), text
    assert "return y + 1.0f;" in text


@needs_kernel
def test_gdb_stops_in_a_kernel(gdb):
    text = gdb("k")
    assert re.search(r"#0 .*k \(.*program\.cl:[56]\n", text), text


@needs_kernel
def test_gdb_shows_arguments_and_variables(gdb):
    text = gdb("program.cl:3", "info args", "info locals", "up", "info args", "info locals", "print *a@4")
    helper, kernel = text.partition("#1 ")[2].split("\n#1 ")
    assert re.search(r"^x = 0$", helper, re.MULTILINE) and re.search(r"^y = 0$", helper, re.MULTILINE), text
    assert re.search(r"^a = 0x[0-9a-f]+$", kernel, re.MULTILINE), text
    assert re.search(r"^i = 0$", kernel, re.MULTILINE) and "{0, 1, 2, 3}" in kernel, text


@needs_kernel
def test_gdb_goes_to_work_items(gdb):
    text = gdb(
        "program.cl:3", "delete", "work-item 2", "info kernel", "print i", "info work-items", "work-item a"
    )
    assert re.search(r"kernel k at .*program\.cl:7\n  global id: 2, 0, 0\n  local id: ", text), text
    assert "$1 = 2" in text and re.search(r"\* thread \d+: work-item 2, 0, 0 of kernel k", text), text
    assert "work-item X [Y [Z]]" in text


@needs_kernel
def test_gdb_goes_past_breakpoints_that_others_come_to(gdb):
    # Then the same one comes to the breakpoint, in helper: there is no other thread.
    commands = ("work-item 2", "print i", "continue", "up", "print i")
    text = gdb("program.cl:3", *commands, CL_DRIVER_THREADS="1")
    assert "$1 = 2" in text and "$2 = 2" in text, text


def test_gdb_commands_outside_of_kernels(gdb):
    text = gdb("main", "info kernel", "info work-items", "work-item 1")
    assert text.count("No work-item here") == 3, text


@needs_kernel
def test_gdb_shows_what_is_kept_across_barriers(gdb):
    text = gdb(
        "program.cl:14", "info locals", "delete", "work-item 3", "info locals", "print cl_item.local_size"
    )
    before, after = text.partition("$1")[0].split("\nl = ")[1:]
    assert before.startswith("0\nkept = 1.5\n") and after.startswith("3\nkept = 7.5\n"), text
    assert "$1 = {4, 1, 1}" in text
