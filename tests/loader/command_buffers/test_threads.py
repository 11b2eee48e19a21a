"""Command-buffers of several threads, through a loader (c/threads/command_buffers.c)."""

import pytest

from tests.loader.opencl import SUB_GROUP_SIZE


@pytest.mark.sanitize
@pytest.mark.parametrize("kind", ["own", "shared", "errors"])
def test_several_threads(run_client, kind):
    run_client("threads/command_buffers", kind, 100)


def test_one_thread_of_the_driver(run_client):
    run_client("threads/command_buffers", "own", 50, env={"CL_DRIVER_THREADS": "1"})


@pytest.mark.skipif(SUB_GROUP_SIZE < 8, reason="these groups are too many vectors of so few")
def test_better_code_comes_to_what_was_recorded(run_client, tmp_path):
    """It is asked for once the kernel has run for a while, though nothing else launches it."""
    environment = {"CL_DRIVER_GROUP_CODE": "background", "CL_DRIVER_DUMP": str(tmp_path)}
    run_client("threads/command_buffers", "hot", 5, env=environment)
    assert {path.name.split(".")[0] for path in tmp_path.rglob("*.group.o")} == {"tree"}


@pytest.mark.clock
def test_what_is_recorded_costs_little(run_client):
    assert float(run_client("threads/command_buffers", "cost", 100).stdout) <= 0.3
