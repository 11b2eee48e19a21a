"""Clusters of many workers, which are in one process here, and workers that come when a host is there."""

from __future__ import annotations

import os
import signal

from .conftest import Hosts, running

WORKERS = 70


def test_more_workers_than_a_word_has_bits(distributed, environment):
    with running(environment, str(WORKERS), "--one-process") as cluster:
        hosts = Hosts(f"{cluster.address};whole", cluster.environment)
        hosts.run(str(WORKERS), module="many")


def test_workers_that_come_later(own_cluster):
    host = own_cluster.start(
        "come",
        module="many",
        CL_DRIVER_CLUSTER=f"{own_cluster.address};whole",
        CL_DRIVER_CLUSTER_CUT="always",
    )
    for pid in own_cluster.pids:
        assert host.stdout.readline() == "ready\n"
        os.kill(pid, signal.SIGKILL)
    host.communicate(timeout=120)
    assert host.returncode == 0
