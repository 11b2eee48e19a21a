"""Fixtures of the pure tests."""

import pytest


@pytest.fixture
def widths():
    """Widths at which plans are run by the interpreter, with parts; above 1 they are linearised."""
    return (1, 4, 8, (2, 3, 0), (4, 2, 1))
