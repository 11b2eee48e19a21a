"""A session with command-buffers per test."""

import pytest

from tests.loader.command_buffers.recorder import Recorder


@pytest.fixture
def session(opencl):
    made = Recorder(opencl)
    yield made
    made.close()
