"""Workers that die, hang, or are cut off: commands end with an error, and nothing waits for ever."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time

from tests.conftest import ROOT

from .conftest import PYTHON

TIMEOUT = 4


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


def test_all_gone(own_cluster):
    def end():
        for pid in own_cluster.pids:
            os.kill(pid, signal.SIGKILL)
        own_cluster.process.kill()

    assert play(own_cluster, end, "none") < TIMEOUT


def test_while_contents_are_passed_on(own_cluster):
    chance = random.Random()
    for _ in range(2):
        pid = own_cluster.pids[0]
        wait = chance.random()
        taken = play(own_cluster, lambda pid=pid: os.kill(pid, signal.SIGKILL), "", "passing", wait, "ranges")
        assert taken < TIMEOUT, f"killed after {wait} s"
        own_cluster.wait_for_workers(2, pid)


PEERS = """
import asyncio, sys
from cl_driver.cluster import messages
from cl_driver.cluster.peers import Peers

async def main():
    told, tell = [], asyncio.Event()
    peers = Peers({"timeout": 2}, lambda *news: (told.append(news), tell.set()))
    peers.introduce([["tcp://127.0.0.1:1", "key"]])
    peers.connect(0)  # nobody is there
    await asyncio.wait_for(tell.wait(), 30)
    peers.connect(0)  # is not tried again
    peers.put(0, 7, memoryview(b"contents"))
    peers.connect(5)  # nobody has that number
    assert told == [(messages.UNREACHABLE, number) for number in (0, 0, 5)], told
    peers.close()

asyncio.run(main())
"""


def test_worker_that_another_cannot_reach(distributed, environment):
    subprocess.run([PYTHON, "-c", PEERS], cwd=ROOT, env=environment, check=True, timeout=60)


def test_at_any_moment(own_cluster):
    """A worker is killed, another one is stopped, while commands come and go; new ones take their place."""
    chance = random.Random()
    for _ in range(4):
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
