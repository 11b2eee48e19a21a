"""Starts helper processes of the driver: a child that the host program never sees.

In the host's process native_shim/src/spawn.c does it: no SIGCHLD, nothing for the host's wait(-1) to reap.
Elsewhere (the runtime process, `cl-driver` commands, tests) posix_spawn does.
"""

from __future__ import annotations

import os
import signal
import socket

from cl_driver import log

# The descriptor of the child's end of the socket.
CHILD_DESCRIPTOR = 3

_native = None
_children: list[int] = []


def use(function) -> None:
    """Makes spawn() call function(argv, environment) -> socket instead of posix_spawn."""
    global _native
    _native = function


def spawn(argv: list[str], environment: dict[str, str] | None = None) -> socket.socket:
    """Starts argv[0] (an absolute path) and returns this end of a stream socket to it.

    The child has its end as descriptor 3 and no other but 0 to 2, which are /dev/null (2 is kept while
    CL_DRIVER_LOG asks for a log), a session of its own, and default signals. It must end when it reads end of
    file from the socket. environment: all of the child's variables; this process's when None.
    Raises OSError when it cannot be started.
    """
    variables = dict(os.environ) if environment is None else environment
    if _native is not None:
        return _native(argv, variables)
    ours, theirs = socket.socketpair()
    with theirs:
        # Python's own descriptors all close on exec; what is not listed here does not reach the child.
        null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
        if not log.level:
            null.append((os.POSIX_SPAWN_DUP2, 1, 2))
        try:
            pid = os.posix_spawn(
                argv[0],
                argv,
                variables,
                file_actions=[*null, (os.POSIX_SPAWN_DUP2, theirs.fileno(), CHILD_DESCRIPTOR)],
                setsid=True,
                setsigmask=(),
                setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
            )
        except BaseException:
            ours.close()
            raise
    _children[:] = [child for child in _children if not _ended(child)]
    _children.append(pid)
    return ours


def _ended(pid: int) -> bool:
    """Reaps a child that has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
