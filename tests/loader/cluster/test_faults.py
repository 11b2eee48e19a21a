"""Workers that die, hang, or are cut off: commands end with an error, and nothing waits for ever."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT

from .conftest import PYTHON

TIMEOUT = 4
KILLS = int(os.environ.get("CL_DRIVER_TEST_CLUSTER_KILLS") or 4)


def play(cluster, harm, last: str, scene: str = "lost", wait: float = 0, module: str = "host") -> float:
    """Plays a scene with a harm done while launches run. Seconds from then to their end."""
    host = cluster.start(scene, module=module, CL_DRIVER_CLUSTER_TIMEOUT=str(TIMEOUT))
    assert host.stdout.readline() == "ready\n"
    time.sleep(wait)
    start = time.monotonic()
    harm()
    assert host.stdout.readline() == "ended\n"
    taken = time.monotonic() - start
    host.communicate(f"{last}\n", timeout=60)
    assert host.returncode == 0
    return taken


def test_killed(own_cluster):
    assert play(own_cluster, lambda: os.kill(own_cluster.pids[0], signal.SIGKILL), "survivor") < TIMEOUT


def test_parts_of_a_buffer(own_cluster):
    def harm():
        os.kill(own_cluster.pids[0], signal.SIGKILL)

    assert play(own_cluster, harm, "", module="ranges") < TIMEOUT


def test_stopped(own_cluster):
    pid = own_cluster.pids[0]
    try:
        assert play(own_cluster, lambda: os.kill(pid, signal.SIGSTOP), "survivor") < 4 * TIMEOUT
    finally:
        os.kill(pid, signal.SIGKILL)


def link_with(address: str) -> int:
    """The process between a host and the cluster at an address, of which it is the only one."""
    found = [
        int(line.parent.name)
        for line in Path("/proc").glob("[0-9]*/cmdline")
        if {"cl_driver.cluster.link", address} <= set(line.read_text().replace("\0", " ").split())
    ]
    assert len(found) == 1
    return found[0]


def pause(pid: int, seconds: float) -> None:
    """Stops a process for a while."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


def starve(pid: int, seconds: float) -> None:
    """Leaves a process a twentieth of a CPU."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pause(pid, 0.95)
        time.sleep(0.05)


@pytest.mark.parametrize(
    "whom, harm, seconds",
    [("worker", pause, TIMEOUT / 2), ("worker", starve, 2 * TIMEOUT), ("link", pause, TIMEOUT + 2)],
)
def test_slow(own_cluster, whom, harm, seconds):
    """Who is slow has not gone, and nobody has while the process between does not listen."""
    host = own_cluster.start("steady", CL_DRIVER_CLUSTER_TIMEOUT=str(TIMEOUT))
    assert host.stdout.readline() == "ready\n"
    harm(own_cluster.pids[0] if whom == "worker" else link_with(own_cluster.address), seconds)
    time.sleep(2)
    host.communicate("\n", timeout=60)
    assert host.returncode == 0


def test_all_gone(own_cluster):
    def end():
        for pid in own_cluster.pids:
            os.kill(pid, signal.SIGKILL)
        own_cluster.process.kill()

    assert play(own_cluster, end, "none") < TIMEOUT


def test_while_contents_are_passed_on(own_cluster):
    chance = random.Random()
    for _ in range(min(KILLS, 2)):
        pid = own_cluster.pids[0]
        wait = chance.random()
        taken = play(own_cluster, lambda pid=pid: os.kill(pid, signal.SIGKILL), "", "passing", wait, "ranges")
        assert taken < TIMEOUT, f"killed after {wait} s"
        own_cluster.wait_for_workers(2, pid)


LIMITS = """
import asyncio, socket, sys
from cl_driver.cluster import connect

async def main():
    async with connect.open_client(sys.argv[1], 100) as client:
        for connection in await connect.connections(client, 100):
            end = connection._comm.stream.socket
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 100_000
            assert connection.carried().received > 0

asyncio.run(main())
"""


def test_limit_of_the_kernel(cluster):
    """A connection ends no sooner than a worker is taken for gone."""
    command = [PYTHON, "-c", LIMITS, cluster.address]
    subprocess.run(command, cwd=ROOT, env=cluster.environment, check=True, timeout=60)


PEERS = """
import asyncio, sys
from cl_driver.cluster import messages
from cl_driver.cluster.peers import Peers

async def main():
    told, asked, tell = [], [], asyncio.Event()
    peers = Peers({"timeout": 2}, lambda *news: (told.append(news), tell.set()), asked.append)
    peers.connect(0)
    peers.introduce(0, "tcp://127.0.0.1:1", "key")  # nobody is there
    await asyncio.wait_for(tell.wait(), 30)
    peers.connect(0)  # is not tried again
    peers.put(0, 7, memoryview(b"contents"))
    peers.connect(5)
    peers.introduce(5, "", "")  # nobody has that number
    assert told == [(messages.UNREACHABLE, number) for number in (0, 0, 5)], told
    assert asked == [0, 5], asked
    for number in (0, 3):
        try:
            peers.introduce(number, "tcp://127.0.0.1:1", "key")
        except ValueError:
            continue
        raise AssertionError(number)
    peers.close()

asyncio.run(main())
"""


def test_worker_that_another_cannot_reach(distributed, environment):
    subprocess.run([PYTHON, "-c", PEERS], cwd=ROOT, env=environment, check=True, timeout=60)


def test_at_any_moment(own_cluster):
    """A worker is killed, another one is stopped, while commands come and go; new ones take their place."""
    chance = random.Random()
    for _ in range(KILLS):
        pid = own_cluster.pids[0]
        wait = chance.random() / 2
        taken = play(own_cluster, lambda pid=pid: os.kill(pid, signal.SIGKILL), "", "busy", wait)
        assert taken < TIMEOUT, f"killed after {wait} s"
        own_cluster.wait_for_workers(2, pid)
    pid = own_cluster.pids[0]
    try:
        taken = play(own_cluster, lambda: os.kill(pid, signal.SIGSTOP), "", "busy", chance.random() / 2)
    finally:
        os.kill(pid, signal.SIGKILL)
    assert taken < 4 * TIMEOUT


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
def test_scheduler(apart, harm):
    """A scheduler that ends takes its workers with it; one that hangs is not needed by who is connected."""
    scheduler = apart.processes[0]
    host = apart.start("busy", CL_DRIVER_CLUSTER_TIMEOUT=str(TIMEOUT))
    assert host.stdout.readline() == "ready\n"
    scheduler.send_signal(harm)
    if harm == signal.SIGSTOP:
        time.sleep(2 * TIMEOUT)
        assert host.poll() is None
        start = time.monotonic()
        late = apart.start("devices", CL_DRIVER_CLUSTER_TIMEOUT="1")
        late.communicate(timeout=60)  # has this machine's device only
        assert late.returncode == 1 and time.monotonic() - start < 20
        os.kill(apart.pids[0], signal.SIGKILL)
    assert host.stdout.readline() == "ended\n"
    host.communicate("\n", timeout=60)
    # Dask ends the workers at about the same time.
    assert host.returncode == 0 or harm == signal.SIGKILL


def held(pid: int) -> list[int]:
    """Descriptors, threads and KiB of a process."""
    with open(f"/proc/{pid}/status") as status:
        size = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return [len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), size]


# asyncio makes the threads of its pool as they are needed, and keeps them.
FILL_POOL = """
import asyncio, sys, time, distributed
async def fill():
    run = asyncio.get_running_loop().run_in_executor
    await asyncio.gather(*(run(None, time.sleep, 0.1) for _ in range(64)))
distributed.Client(sys.argv[1]).run(fill)
"""


def test_hosts_killed(own_cluster):
    """Hosts that die while they use workers leave nothing there."""
    command = [PYTHON, "-c", FILL_POOL, own_cluster.address]
    subprocess.run(command, env=own_cluster.environment, check=True, timeout=60)
    for turn in range(8):
        host = own_cluster.start("busy")
        assert host.stdout.readline() == "ready\n"
        time.sleep(0.3)
        host.kill()
        host.communicate(timeout=60)
        if turn == 1:
            before = [held(pid) for pid in own_cluster.pids]
    end = time.monotonic() + 30
    while time.monotonic() < end:
        now = [held(pid) for pid in own_cluster.pids]
        if all(
            a <= b + more
            for one, two in zip(now, before, strict=True)
            for a, b, more in zip(one, two, (0, 0, 16 << 10), strict=True)
        ):
            return
        time.sleep(0.2)
    raise AssertionError(f"{before} {now}")


@pytest.mark.parametrize("scene", ["buffers", "mixed"])
def test_far(far, scene):
    """Workers far away: slower, and right."""
    far.run(scene)
