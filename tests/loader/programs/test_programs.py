"""Programs and kernels as C programs use them: from several threads, in the background, at exit."""

import pytest


@pytest.mark.sanitize
def test_threads_build_and_use_programs_at_once(run_client):
    run_client("programs", "threads", timeout=120)


def test_builds_under_way_at_exit(run_client):
    for _ in range(5):
        run_client("programs", "exit")


def test_memory_of_programs_comes_back(run_client):
    run_client("programs", "leak", timeout=120)


@pytest.mark.sanitize
def test_threads_with_variables_of_programs(run_client):
    run_client("threads/program_symbols", 40)
