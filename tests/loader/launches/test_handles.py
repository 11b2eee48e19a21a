"""The memory of handles."""

from tests.marks import needs_kernel


@needs_kernel
def test_memory_of_many_events_is_given_back(loader, run_client):
    """Through the loaders, which read what released handles begin with."""
    run_client("handles", 200_000, loader=loader)
