"""Queues, events and threads with compiled kernels, through a loader."""

import pytest


@pytest.mark.sanitize
def test_two_threads_of_100000_commands(run_client):
    run_client("queues", "stress", 100000, timeout=300)


@pytest.mark.parametrize("threads", ["1", "5"])
def test_other_numbers_of_threads(run_client, threads):
    run_client("queues", "stress", 20000, env={"CL_DRIVER_THREADS": threads}, timeout=120)


@pytest.mark.sanitize
def test_chain_over_two_queues(run_client):
    run_client("queues", "chain", 1000)


@pytest.mark.sanitize
def test_everything_released_with_work_in_flight(run_client):
    run_client("queues", "release_early", 200)


def test_little_address_space(run_client, client, variables):
    """The driver's reservation is a part of what RLIMIT_AS leaves."""
    import resource
    import subprocess

    limit = 3 << 30
    done = subprocess.run(
        [str(client("queues")), "stress", "2000"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.sanitize
def test_threads_with_unified_shared_memory(run_client):
    run_client("threads/usm", 200)
