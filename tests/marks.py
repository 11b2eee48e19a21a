"""Marks of parameters."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="names instructions of x86-64")


def _is_emulated() -> bool:
    """Whether qemu's user emulation executes this Python: it has a thread of its own in each process."""
    if platform.machine() == "x86_64":  # what is emulated is something else
        return False
    code = "import os; print(len(os.listdir('/proc/self/task')))"
    return subprocess.run([sys.executable, "-S", "-c", code], stdout=-1, check=True).stdout != b"1\n"


IS_EMULATED = _is_emulated()

needs_kernel = pytest.mark.skipif(
    IS_EMULATED,
    reason="qemu's user emulation has no limits of memory, set-user-ID programs, seccomp, subreapers, "
    "ptrace, scheduling of threads, partial reads of other memory and TCP_INFO; it has its own needs",
)


def more(*arguments: Any) -> Any:
    """For parametrize: arguments of one test that is in long runs only."""
    return pytest.param(*arguments, marks=pytest.mark.long)


def few(values: Iterable[Any], count: int) -> list[Any]:
    """For parametrize: the first `count` values are in every run, the others in long ones only."""
    return [value if k < count else more(value) for k, value in enumerate(values)]


def few_rows(rows: Iterable[tuple[Any, ...]], count: int) -> list[Any]:
    """The same for several arguments at once."""
    return [row if k < count else more(*row) for k, row in enumerate(rows)]


def split(values: Iterable[Any], count: int) -> list[Any]:
    """For parametrize: the first `count` values in one case of every run, the others in one of long runs."""
    values = list(values)
    return [values[:count], more(values[count:])]


def halved(values: Iterable[Any]) -> list[Any]:
    """For parametrize: every other value is in every run, the rest in long ones only."""
    return [more(value) if k % 2 else value for k, value in enumerate(values)]
