"""Starts helper processes of the driver: a child that the host program never sees.

In the host's process native_shim/src/python/spawn.c does it: no SIGCHLD, nothing for the host's wait(-1)
to reap.
Elsewhere (the runtime process, `cl-driver` commands, tests) posix_spawn does.
"""

from __future__ import annotations

import os

# Not socket: it imports more than everything else that a context costs.
from _socket import socket, socketpair

from . import log, trust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    # (argv, environment) to the descriptor of the socket.
    Spawn: TypeAlias = Callable[[list[str], dict[str, str]], int]

# What has malloc() of the C library ask the system for large pages, in processes that fill much memory soon:
# of the compiler and of clang; what it has for other threads would grow by small ones. Other C libraries do
# not read it.
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1"}

# The descriptor of the child's end of the socket.
CHILD_DESCRIPTOR = 3


class Descriptor:
    """A file descriptor, and what it refers to: hosts close descriptors that they do not know, and then the
    number may stand for a file of theirs."""

    def __init__(self, number: int) -> None:
        self.number = number
        status = os.fstat(number)
        self._identity = status.st_dev, status.st_ino

    def is_ours(self) -> bool:
        """Whether it still refers to what it did."""
        try:
            status = os.fstat(self.number)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def close(self) -> None:
        """Closes it, unless somebody else has. May be called again."""
        if self.number >= 0 and self.is_ours():
            os.close(self.number)
        self.number = -1


class Connection(socket):
    """A socket that is only closed if it is still the one that it was."""

    _descriptor: Descriptor | None = None

    def __init__(self, descriptor: int) -> None:
        super().__init__(fileno=descriptor)
        self._descriptor = Descriptor(descriptor)

    def is_ours(self) -> bool:
        """Whether the descriptor still refers to this socket."""
        return self._descriptor is not None and self.fileno() >= 0 and self._descriptor.is_ours()

    def close(self) -> None:
        """As socket.close; leaves alone what the host has opened under this number meanwhile."""
        if self.is_ours():
            super().close()
        else:
            self.detach()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass


_native: Spawn | None = None
_has_own: Callable[[], bool] | None = None
_may_move: Callable[[], bool] | None = None
_children: list[int] = []

# What starts compiler processes (service/process.py): of this process, and of its forks.
servers: list[Any] = []


def use(
    function: Spawn, has_own: Callable[[], bool] | None = None, may_move: Callable[[], bool] | None = None
) -> None:
    """Makes spawn() call that function instead of posix_spawn, which may raise OSError; has_own, may_move:
    what has_own_descriptors() and may_change_root() say."""
    global _native, _has_own, _may_move
    _native, _has_own, _may_move = function, has_own, may_move


def has_own_descriptors() -> bool:
    """Whether this thread has descriptors of its own, which no other thread sees and which end with it: those
    of the host are used up (native_shim/src/python/descriptors.c)."""
    return _has_own is not None and _has_own()


def may_change_root() -> bool:
    """Whether this process is a host's that could change its root folder, where spawn() finds nothing."""
    return _may_move is not None and _may_move()


def spawn(argv: list[str], environment: dict[str, str] | None = None) -> Connection:
    """Starts argv[0] (an absolute path) and returns this end of a stream socket to it.

    The child has its end as descriptor 3 and no other but 0 to 2, which are /dev/null (2 is kept while
    CL_DRIVER_LOG asks for a log), a session of its own, and default signals. It must end when it reads end of
    file from the socket. environment: all of the child's variables; those that this process
    believes when None. Raises OSError when it cannot be started.
    """
    variables = dict(trust.environment()) if environment is None else environment
    if _native is not None:
        return Connection(_native(argv, variables))
    # signal makes enumerations of all of them.
    from _signal import SIGKILL, SIGSTOP, valid_signals  # type: ignore[import-not-found]

    ours, theirs = socketpair()
    # Python's own descriptors all close on exec; what is not listed here does not reach the child.
    actions: list[tuple[int, int, str, int, int] | tuple[int, int, int]]
    actions = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
    if not log.level:
        actions.append((os.POSIX_SPAWN_DUP2, 1, 2))
    actions.append((os.POSIX_SPAWN_DUP2, theirs.fileno(), CHILD_DESCRIPTOR))
    try:
        pid = os.posix_spawn(
            argv[0],
            argv,
            variables,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=valid_signals() - {SIGKILL, SIGSTOP},
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    _children[:] = [child for child in _children if not _ended(child)]
    _children.append(pid)
    return Connection(ours.detach())


def _ended(pid: int) -> bool:
    """Reaps a child that has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
