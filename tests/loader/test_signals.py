"""Signals of the host, and faults in kernels (c/signals.c, c/fault.c)."""

from __future__ import annotations

import platform
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EMULATOR


def test_a_handler_of_the_host_resumes_a_kernel(run_client):
    run_client("signals", "resume")


def test_what_is_sent_waits_for_the_host(run_client):
    run_client("signals", "sent")


@pytest.mark.long
def test_the_main_thread_ends(run_client):
    run_client("signals", "main_thread_ends")


@pytest.mark.long
@pytest.mark.sanitize
def test_threads_end_with_those_of_the_host(run_client):
    run_client("signals", "threads_end")


MESSAGE = re.compile(
    r"cl_driver: (?P<signal>\w+) in kernel (?P<kernel>\w+)(?: at (?P<line>\S+))? "
    r"\(byte 0x[0-9a-f]+ of its code(?P<advice>; built with -g, it has lines)?\), "
    r"which (?P<access>[a-z ]+?)(?: 0x(?P<address>[0-9a-f]+))?"
    r"; CL_DRIVER_CHECK=1, or cl-driver run --check, finds out more\n"
)


@pytest.fixture
def die(client, variables):
    """die(scene, options, **variables): how c/fault.c ends, and what it says."""

    def run(scene: str, options: str = "", **settings: str):
        done = subprocess.run(
            [client("fault"), scene, options],
            env=variables | settings,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, EMULATOR.sub("", done.stderr)

    return run


@pytest.mark.parametrize(
    ("scene", "options", "end", "line", "access", "address"),
    [
        ("read", "", signal.SIGSEGV, None, "reads from address", "10000"),
        ("write", "", signal.SIGSEGV, None, "writes to address", "10000"),
        ("read", "-g", signal.SIGSEGV, "program.cl:10", "reads from address", "10000"),
        ("write", "-g -cl-opt-disable", signal.SIGSEGV, "program.cl:12", "writes to address", "10000"),
        ("many", "-g", signal.SIGSEGV, "program.cl:12", "writes to address", None),
        ("file", "-g", signal.SIGBUS, "program.cl:10", "accesses address", None),
        (
            "no_address",
            "-g",
            signal.SIGSEGV,
            "program.cl:10",
            "accesses an address that is not aligned or cannot be",
            None,
        ),
        ("chained", "-g", signal.SIGSEGV, "program.cl:12", "writes to address", "10000"),
        ("child", "-g", signal.SIGSEGV, "program.cl:12", "writes to address", "10000"),
    ],
)
def test_a_fault_is_told_before_the_host_dies_of_it(die, scene, options, end, line, access, address):
    status, text = die(scene, options)
    assert status == -end
    told = MESSAGE.fullmatch(text)
    assert told, text
    assert (told["signal"], told["kernel"], told["line"]) == (end.name, "bad", line)
    assert bool(told["advice"]) == (line is None)
    if platform.machine() != "x86_64":  # which does not say so where the address cannot be
        known = {"program.cl:10": "reads from address", "program.cl:12": "writes to address"}
        assert told["access"] in ("accesses address", known.get(line, access))  # the former of emulators
        return
    assert told["access"] == access
    assert address is None or told["address"] == address


@pytest.mark.parametrize("scene", ["handler", "later_handler"])
def test_a_handler_of_the_host_is_alone(die, scene):
    assert die(scene) == (77, "")


def test_before_a_handler_of_the_host(die):
    status, text = die("handler", CL_DRIVER_FAULT_MESSAGE="on")
    assert status == 77
    assert MESSAGE.fullmatch(text), text
    assert die("later_handler", CL_DRIVER_FAULT_MESSAGE="on") == (77, "")


@pytest.mark.parametrize(
    ("scene", "end"),
    [
        ("own", signal.SIGSEGV),
        ("ended_thread", signal.SIGSEGV),
        ("raised", signal.SIGSEGV),
        ("sent", signal.SIGBUS),
        ("data", signal.SIGSEGV),
    ],
)
def test_what_is_no_kernels_fault_ends_the_host_in_silence(die, scene, end):
    assert die(scene) == (-end, "")


def test_nothing_is_told_where_nothing_is_to_be(die):
    assert die("write", CL_DRIVER_FAULT_MESSAGE="off") == (-signal.SIGSEGV, "")


@pytest.mark.parametrize("when", ["before", "after"])
def test_faulthandler_of_a_host_python(variables, when):
    """Before the first kernel it is the host's own handler; afterwards it passes on to the driver's."""
    script = Path(__file__).parent / "py" / "fault_host.py"
    done = subprocess.run(
        [sys.executable, script, when], env=variables, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.startswith("Fatal Python error: Segmentation fault"), done.stderr
    assert "fault_host.py" in done.stderr and "cl_driver:" not in done.stderr
