"""A session of the driver per test."""

import pytest

from .session import Session


@pytest.fixture
def session(opencl):
    made = Session(opencl)
    yield made
    made.close()
