"""A session with shared memory per test."""

import pytest

from .device import Device


@pytest.fixture
def device(opencl):
    made = Device(opencl)
    yield made
    made.close()
