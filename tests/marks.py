"""Marks of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def more(*arguments: Any) -> Any:
    """For parametrize: arguments of one test that is in long runs only."""
    return pytest.param(*arguments, marks=pytest.mark.long)


def few(values: Iterable[Any], count: int) -> list[Any]:
    """For parametrize: the first `count` values are in every run, the others in long ones only."""
    return [value if k < count else more(value) for k, value in enumerate(values)]
