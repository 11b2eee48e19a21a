"""A session with command-buffers per test."""

import pytest

from .recorder import Recorder


@pytest.fixture
def session(opencl):
    made = Recorder(opencl)
    yield made
    made.close()
