"""Workers that die, hang, or are cut off: commands end with an error, and nothing waits for ever."""

from __future__ import annotations

import os
import signal
import time

TIMEOUT = 4


def play(cluster, harm, last: str) -> float:
    """Plays `lost` with a harm done while a launch runs. Seconds from then to the end of the launch."""
    host = cluster.start("lost", CL_DRIVER_CLUSTER_TIMEOUT=str(TIMEOUT))
    assert host.stdout.readline() == "ready\n"
    start = time.monotonic()
    harm()
    assert host.stdout.readline() == "ended\n"
    taken = time.monotonic() - start
    host.communicate(f"{last}\n", timeout=60)
    assert host.returncode == 0
    return taken


def test_killed(own_cluster):
    assert play(own_cluster, lambda: os.kill(own_cluster.pids[0], signal.SIGKILL), "survivor") < TIMEOUT


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
