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
from tests.loader.tracing.reader import Slice, Trace, read

from .conftest import DELAY, PYTHON

SCENES = ("refusals", "buffers", "kernels", "order", "failures", "profiling", "mixed", "halves")


@pytest.mark.parametrize("scene", SCENES)
def test_scene(cluster, scene):
    cluster.run(scene)


@pytest.mark.parametrize("scene", ["types", "formats", "sampling", "shared", "between", "refusals"])
def test_images(cluster, scene):
    """imaging.py has the scenes."""
    cluster.run(scene, module="imaging")


@pytest.mark.parametrize("scene", ["macros", "failures", "built_for_one", "properties", "versions"])
def test_languages(cluster, scene):
    """languages.py has the scenes."""
    cluster.run(scene, module="languages")


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


MEMORY = """
import sys, distributed
client = distributed.Client(sys.argv[1])
print(*client.run(lambda dask_worker: dask_worker.memory_manager.memory_limit).values())
"""


def test_memory(cluster):
    """Dask ends a worker that takes more than its limit: its device has less."""
    command = [PYTHON, "-c", MEMORY, cluster.address]
    limits = subprocess.run(command, env=cluster.environment, check=True, stdout=subprocess.PIPE, text=True)
    found = [int(size) for size in cluster.run("memory").split()]
    assert len(found) == 2
    for size, limit in zip(found, map(int, limits.stdout.split()), strict=True):
        assert limit * 0.7 < size < limit * 0.8


@pytest.mark.parametrize("runtime", ["process", "embedded"])
def test_runtime(cluster, runtime):
    """Where the control plane runs makes no difference; in the host's Python it is a part of that."""
    cluster.run("kernels", CL_DRIVER_RUNTIME=runtime)


def traced(hosts, tmp_path, *scene: str, **more: str) -> tuple[Trace, dict[str, list[Slice]]]:
    """The trace of a scene, and what is on the tracks of workers: one after the other, and named after
    them."""
    path = tmp_path / "trace"
    hosts.run(*scene, CL_DRIVER_TRACE=str(path), **more)
    trace = read(path)
    tracks: dict[str, list[Slice]] = {}
    for one in trace.slices:
        if re.match(rf"Worker \d+ \({re.escape(socket.gethostname())}, 1 core: ", one.track):
            assert one.end and not one.parent, one
            tracks.setdefault(" ".join(one.track.split()[:2]), []).append(one)
    return trace, tracks


def test_traced(cluster, tmp_path):
    """A launch is on its queue's track and on that of the worker that has executed it, for as long."""
    trace, tracks = traced(cluster, tmp_path, "mixed")
    assert sorted(tracks) == ["Worker 1", "Worker 2"]
    launches = [command for command in trace.commands() if command.name == "increment"]
    assert len(launches) == 45
    for number, queue in (1, 2), (2, 3):
        on_queue = [one for one in launches if one.track.startswith(f"Queue {queue} ")]
        on_worker = tracks[f"Worker {number}"]
        assert len(on_queue) == len(on_worker) == 15
        assert all(one.name == "increment" and one.arguments == {"queue": queue} for one in on_worker)
        for a, b in zip(on_queue, on_worker, strict=True):
            assert (a.begin, a.end) == (b.begin, b.end)
            assert a.arguments["submitted"] <= a.begin
    # Those of another queue wait for one another.
    assert all(a.end <= b.begin for kind, a, b in trace.flows if kind == "dependency")


def test_traced_in_order(cluster, tmp_path):
    """A queue in order has one track, although its launches are sent before others have ended."""
    trace, tracks = traced(cluster, tmp_path, "order")
    assert len(tracks["Worker 1"]) == sum(one.name in ("step", "spin") for one in trace.commands()) >= 362
    assert {one.track for one in trace.commands()} == {"Queue 1 (in order)", "Queue 2 (in order)"}


@pytest.mark.parametrize("hosts", ["cluster", "far", "ahead"])
def test_traced_times(hosts, request, tmp_path):
    """Those of the worker's clock, moved by what that is ahead, and not of the messages: where the link is
    slow these come long after a launch has ended. The scene compares the event's times with its own."""
    trace, tracks = traced(request.getfixturevalue(hosts), tmp_path, "profiling")
    calls = trace.named("clEnqueueNDRangeKernel", "host "), trace.named("clWaitForEvents", "host ")
    for call, wait, one in zip(*calls, tracks["Worker 1"], strict=True):
        assert call.begin < one.begin < one.end < wait.end
        assert 100_000 < one.end - one.begin
    if hosts != "cluster":
        gaps = [wait.end - one.end for wait, one in zip(calls[1], tracks["Worker 1"], strict=True)]
        assert max(gaps) > DELAY * 1_000_000 / 2


def test_traced_parts(whole, tmp_path):
    """Of a launch on all workers each has its part on its track."""
    trace, tracks = traced(whole, tmp_path, "maps", module="whole")
    launches = [one for one in trace.commands() if one.name in ("map", "in_place")]
    assert [len(tracks[f"Worker {number}"]) for number in (1, 2)] == [len(launches)] * 2
    for launch, *parts in zip(launches, tracks["Worker 1"], tracks["Worker 2"], strict=True):
        assert launch.begin == min(part.begin for part in parts)
        assert launch.end == max(part.end for part in parts)


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
