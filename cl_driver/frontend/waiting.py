"""Children that are started before there is work for them: more than half of a short run of clang is its
start, which takes as long as it may where nobody waits for it.

A compiler process that has compiled twice has clang wait for its standard input, with the arguments of the
last program; the next program gets that child if its arguments are the same. The child ends when its input
is closed, which the end of this process does.
"""

from __future__ import annotations

import os
import resource
import subprocess
from contextlib import suppress

TIME_LIMIT = 120  # seconds, of the wall clock and of the CPU
MEMORY_LIMIT = 8 << 30  # bytes of address space

_ENOUGH = 2  # programs that a process has compiled when it expects another one

_allowed = False
_started = 0
_waiting: list[tuple[tuple, subprocess.Popen]] = []  # (what it was started as, the child), one at most


def allow() -> None:
    """This process is a compiler's own, not somebody's who would not expect children."""
    global _allowed
    _allowed = True


def _key(arguments: list[str], folder: str | None) -> tuple:
    status = os.stat(arguments[0])
    return (*arguments, folder, status.st_mtime_ns, status.st_ino)


def start(arguments: list[str], folder: str | None, environment: dict[str, str], fds=()) -> subprocess.Popen:
    """A child with pipes, whose limits are set, started now."""
    child = subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment,
        pass_fds=fds,
    )
    try:
        # Limits are set from outside: code that runs between fork and exec would forbid vfork.
        resource.prlimit(child.pid, resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (TIME_LIMIT, TIME_LIMIT))
        resource.prlimit(child.pid, resource.RLIMIT_CORE, (0, 0))
    except (OSError, ValueError):
        pass  # it has ended already, or a lower limit is in force
    return child


def take(arguments: list[str], folder: str | None, environment: dict[str, str], fds=()) -> subprocess.Popen:
    """The child that waits, if it was started with these arguments; else a new one."""
    global _started
    _started += 1
    if _waiting and not fds:
        known, child = _waiting.pop()
        if child.poll() is None:
            if known == _key(arguments, folder):
                return child
            child.kill()
        child.communicate()
    return start(arguments, folder, environment, fds)


def expect(arguments: list[str], folder: str | None, environment: dict[str, str]) -> None:
    """A program came with these arguments: others like it may follow."""
    if _allowed and _started >= _ENOUGH and not _waiting:
        with suppress(OSError):  # the next program does without
            _waiting.append((_key(arguments, folder), start(arguments, folder, environment)))
