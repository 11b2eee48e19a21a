"""Fixtures of the pure tests."""

import pytest


@pytest.fixture
def widths():
    """Widths at which plans are run by the interpreter: 1 is no linearisation."""
    return (1,)
