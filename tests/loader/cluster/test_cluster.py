"""Programs on the devices of a cluster. host.py has the scenes."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT

SCENES = ("refusals", "buffers", "kernels", "order", "failures", "profiling", "mixed", "halves")


@pytest.mark.parametrize("scene", SCENES)
def test_scene(cluster, scene):
    cluster.run(scene)


@pytest.mark.parametrize("scene", ["types", "formats", "sampling", "shared", "between", "refusals"])
def test_images(cluster, scene):
    """imaging.py has the scenes."""
    cluster.run(scene, module="imaging")


@pytest.mark.parametrize("scene", [("chances", "1"), ("chances", "2"), ("pieces",)], ids=" ".join)
def test_ranges(cluster, scene):
    cluster.run(*scene, module="ranges")


@pytest.mark.parametrize(
    "scene, most_sent, most_received",
    [("passed", 8, 8), ("shared", 4, 2)],  # without what they are about, 20 at least
)
def test_what_goes_by_way_of_the_host(cluster, tmp_path, scene, most_sent, most_received):
    """In times 8 MiB: contents come from other workers, and copies stay where they were only read."""
    path = tmp_path / "log"
    cluster.run(scene, module="ranges", CL_DRIVER_LOG="calls", CL_DRIVER_LOG_FILE=str(path))
    told = ""
    for _ in range(100):  # the process that connects ends after the host
        told = path.read_text() if path.exists() else ""
        if "bytes from workers" in told:
            break
        time.sleep(0.1)
    sent, received = (int(n) for n in re.search(r"(\d+) bytes to workers, (\d+) bytes", told).groups())
    size = 8 << 20
    assert size < sent < most_sent * size, told
    assert received < most_received * size, told


def test_printf(cluster):
    text = cluster.run("printed")
    first = "".join(f"{turn}: 7 text|after {turn}\n" for turn in range(3))
    assert text.startswith(first)
    rest = text[len(first) :]
    assert rest.endswith("end\n")
    numbers = sorted(rest[at : at + 8] for at in range(0, len(rest) - 4, 8))
    assert numbers == [f"{i:08d}" for i in range(1 << 18)]


def test_devices(cluster):
    names = cluster.run("devices").splitlines()
    assert len(names) == 2
    assert all(name.startswith(f"{socket.gethostname()}, 1 core: ") for name in names)


@pytest.mark.parametrize("runtime", ["process", "embedded"])
def test_runtime(cluster, runtime):
    """Where the control plane runs makes no difference; in the host's Python it is a part of that."""
    cluster.run("kernels", CL_DRIVER_RUNTIME=runtime)


def test_traced(cluster, tmp_path):
    """An observer of commands sees those of workers."""
    cluster.run("order", CL_DRIVER_TRACE=str(tmp_path / "trace"))
    assert (tmp_path / "trace").stat().st_size


def test_command(cluster):
    done = subprocess.run(
        [sys.executable, "-m", "cl_driver.cli", "cluster"],
        cwd=ROOT,
        env=cluster.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    first, *lines = done.stdout.splitlines()
    assert cluster.address in first
    assert len(lines) == 6
    assert all(" us, " in line for line in lines[2::3])


def test_no_cluster(cluster, environment):
    """An address where there is nothing: the platform is as without one."""
    program = (
        "from tests.loader.opencl import OpenCL; import ctypes; c = OpenCL('libOpenCL.so.1'); "
        "n = ctypes.c_uint32(); c.ok('clGetDeviceIDs', c.platform(), 0xFFFFFFFF, 0, None, n); "
        "assert n.value == 1"
    )
    nowhere = {"CL_DRIVER_CLUSTER": "tcp://127.0.0.1:1", "CL_DRIVER_CLUSTER_TIMEOUT": "2"}
    for more in (nowhere, nowhere | {"CL_DRIVER_CLUSTER_PYTHON": "/nowhere/python"}):
        environment_now = cluster.environment | more
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment_now, check=True, timeout=60)


def held(pid: int) -> tuple[int, int]:
    """Descriptors and threads of a process."""
    return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))


def test_nothing_is_left(cluster):
    """What a worker has for a host goes with it."""
    for _ in range(2):
        cluster.run("mixed")
    before = [held(pid) for pid in cluster.pids]
    for _ in range(3):
        cluster.run("mixed")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        now = [held(pid) for pid in cluster.pids]
        if all(a <= b for one, two in zip(now, before, strict=True) for a, b in zip(one, two, strict=True)):
            return
        time.sleep(0.2)
    raise AssertionError(f"{before} {now}")
