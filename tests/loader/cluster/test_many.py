"""Clusters of many workers, which are in one process here."""

from __future__ import annotations

from .conftest import Hosts, running

WORKERS = 70


def test_more_workers_than_a_word_has_bits(distributed, environment):
    with running(environment, str(WORKERS), "--one-process") as cluster:
        hosts = Hosts(f"{cluster.address};whole", cluster.environment)
        hosts.run(str(WORKERS), module="many")
