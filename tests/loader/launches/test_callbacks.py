"""Callbacks of the host's that misbehave."""

from __future__ import annotations

import pytest


@pytest.mark.sanitize
def test_callbacks_may_end_their_thread(run_client):
    """pthread_exit: those that are due, and those of later events, are called all the same."""
    for _ in range(5):
        done = run_client("callbacks", "thread_exit", timeout=30)
        assert done.stdout == done.stderr == ""
