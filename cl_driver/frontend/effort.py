"""How long a clang may go on: CPU time is limited, for a machine that has much to do takes long for little;
and one that takes no CPU time at all waits for what will not come, say a folder whose server is gone."""

from __future__ import annotations

import time

from .. import settings

TYPE_CHECKING = False  # typing takes long to import, and clang waits
if TYPE_CHECKING:
    from collections.abc import Callable

# Seconds without any CPU time, of which a process that is stopped as a whole counts one.
STALLED = 60
_TICK = 1.0

_ended = 0.0  # CPU seconds of the clangs of this process that have ended
_running: dict[int, float] = {}  # by process number: CPU seconds before the run
_limit: float | None = None
_when_running: list[Callable[[], object]] = []


def when_running(function: Callable[[], object]) -> None:
    """Has that called, once, as soon as a clang has a program. Takes the place of one that never was."""
    _when_running[:] = [function]


def set_limit(seconds: float) -> None:
    """CPU seconds that a program may take from now on."""
    global _limit
    _limit = seconds


def limit() -> float:
    """What set_limit() said, else what the setting says."""
    if _limit is not None:
        return _limit
    return settings.integer("CL_DRIVER_COMPILE_TIMEOUT") or float("inf")


def of_clangs() -> float:
    """CPU seconds of all clangs that this process has run."""
    return _ended + sum(max(0.0, _of(pid) - before) for pid, before in list(_running.items()))


def _of(pid: int) -> float:
    """CPU seconds of a process; 0 if it is gone."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3)
    except OSError:
        return 0.0


class Allowance:
    """CPU seconds for a program, in however many runs of clang. stalled: seconds without any CPU time after
    which a run is given up."""

    def __init__(self, seconds: float | None = None, stalled: float | None = None) -> None:
        self.seconds = limit() if seconds is None else seconds
        self.stalled = STALLED if stalled is None else stalled
        self.used = 0.0


class Watch:
    """One run of clang, in a with statement. stopped: why it has to be ended, "" if it need not be."""

    def __init__(self, allowance: Allowance, pid: int, is_new: bool = True) -> None:
        """is_new: the process was started for this run."""
        self.allowance = allowance
        self.stopped = ""
        self._pid, self._before = pid, 0.0 if is_new else _of(pid)
        self._used = self._still = 0.0
        _running[pid] = self._before

    def __enter__(self) -> Watch:
        while _when_running:
            _when_running.pop()()
        return self

    def __exit__(self, *_: object) -> None:
        global _ended
        self._look()
        self.allowance.used += self._used
        _ended += self._used
        _running.pop(self._pid, None)

    def follow(self, pid: int) -> None:
        """The process that the run is in is this one, from its start on."""
        _running.pop(self._pid, None)
        self._pid, self._before = pid, 0.0
        _running[pid] = 0.0

    def _look(self) -> bool:
        """Whether the process has done something since the last look."""
        now = max(self._used, _of(self._pid) - self._before)
        has_worked, self._used = now > self._used, now
        return has_worked

    def patience(self) -> float:
        """Seconds after which is_over() is to be asked."""
        return max(0.0, min(_TICK, self.allowance.seconds - self.allowance.used - self._used))

    def is_over(self) -> bool:
        """Whether it has had its time. To be asked when patience() is at its end."""
        waited = self.patience()
        self._still = 0.0 if self._look() else self._still + waited
        if self.allowance.used + self._used >= self.allowance.seconds:
            limit = f"{self.allowance.seconds:g} s of CPU time (CL_DRIVER_COMPILE_TIMEOUT)"
            self.stopped = f"clang took more than {limit} and was stopped"
        elif self._still >= self.allowance.stalled:
            self.stopped = f"clang did nothing for {self.allowance.stalled:g} s and was stopped"
        return bool(self.stopped)
