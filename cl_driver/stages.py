"""How long the stages of builds take, for who asks for a trace (CL_DRIVER_TRACE).

    with stages.stage("clang"):
        ...

Compiler processes note them, and send them with their answers; the control plane adds them to the trace
(trace/writer.py).
"""

from __future__ import annotations

from time import monotonic_ns

from . import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # Name, what it is about, begin and end in ns of the clock that all processes share.
    Stage: TypeAlias = tuple[str, str, int, int]

is_on = bool(settings.text("CL_DRIVER_TRACE"))
_noted: list[Stage] = []


class stage:
    """What is done within is one stage; about: of which kernel, or the like."""

    __slots__ = ("_about", "_begin", "_name")

    def __init__(self, name: str, about: str = "") -> None:
        self._name, self._about = name, about

    def __enter__(self) -> None:
        if is_on:
            self._begin = monotonic_ns()

    def __exit__(self, *error: object) -> None:
        if is_on:
            _noted.append((self._name, self._about, self._begin, monotonic_ns()))


def take() -> list[Stage]:
    """Those that were noted since the last time."""
    noted = _noted[:]
    del _noted[: len(noted)]
    return noted
