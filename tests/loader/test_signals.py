"""Signals of the host, and faults in kernels (c/signals.c, c/fault.c)."""

from __future__ import annotations

import pytest


def test_a_handler_of_the_host_resumes_a_kernel(run_client):
    run_client("signals", "resume")


def test_what_is_sent_waits_for_the_host(run_client):
    run_client("signals", "sent")


def test_the_main_thread_ends(run_client):
    run_client("signals", "main_thread_ends")


@pytest.mark.sanitize
def test_threads_end_with_those_of_the_host(run_client):
    run_client("signals", "threads_end")
