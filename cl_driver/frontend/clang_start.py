"""Starts the clang that stays (resident.py): native_shim/clang/resident.c, preloaded, stops it before its
main(). A process that knows that it will need one starts it before it imports all that it needs itself, and
clang is loaded meanwhile; so this imports next to nothing."""

from __future__ import annotations

import fcntl
import os
import resource
import select
from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

from .. import native, trust
from ..spawn import LARGE_PAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    # Device, inode, time and path of a file.
    Identity: TypeAlias = tuple[int, int, int, str]

MEMORY_LIMIT = 8 << 30  # bytes of address space

_ENOUGH_DESCRIPTORS = 64  # with fewer there are none for what only makes things faster
# With fewer there are none for a clang that stays: it, its sockets and the files of a program are up to ten
# beside the standard ones while it starts, and a module that is imported meanwhile is one more.
_FOR_SEVERAL = 16

_STANDARD = (0, 1, 2)  # descriptors

# By number, since signal takes long to import; those that Python ignores for itself.
SIGKILL, _SIGPIPE, _SIGXFSZ = 9, 13, 25


def has_fewest_descriptors() -> bool:
    """Whether this process may have so few that only one thread at a time may open files."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _FOR_SEVERAL


def has_few_descriptors() -> bool:
    """Whether there are not enough for all that makes things faster."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _ENOUGH_DESCRIPTORS


def environment() -> dict[str, str]:
    """Nothing of the host's that changes what clang does (CPATH, CCC_OVERRIDE_OPTIONS, locale...)."""
    believed = trust.environment()
    return {
        "PATH": believed.get("PATH", trust.FIXED["PATH"]),
        "LC_ALL": "C",
        "TMPDIR": believed.get("TMPDIR", "/tmp"),
        "LLVM_DISABLE_SYMBOLIZATION": "1",  # of a crash it would name its own functions, which takes longer
        **LARGE_PAGES,
    }


def library_path() -> str:
    """What is preloaded into clang."""
    return os.path.join(native.folder(), "_cl_driver_clang.so")


def limit(pid: int) -> None:
    """Limits the memory of a process, which leaves no core."""
    # Limits are set from outside: code that runs between fork and exec would forbid vfork.
    for kind, value in ((resource.RLIMIT_AS, MEMORY_LIMIT), (resource.RLIMIT_CORE, 0)):
        try:
            resource.prlimit(pid, kind, (value, value))
        except (OSError, ValueError):  # it has ended already, or a lower limit is in force
            pass


class Started:
    """A clang that waits before its main(), for this process and its forks. pid: it; socket: to it."""

    __slots__ = ("_identity", "_owner", "pid", "socket")

    def __init__(self, clang: str, environment: dict[str, str], given: Iterable[int] = ()) -> None:
        """clang: its path; environment: its variables; given: descriptors that it gets. OSError if it cannot
        be started."""
        self._owner = os.getpid()
        self._identity = _identity(clang)
        given, number = list(given), -1
        self.socket, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        try:
            number = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD, len(_STANDARD))  # this one is inherited
            for each in given:
                os.set_inheritable(each, True)
            meant = " ".join(map(str, (number, *self._identity[:2])))
            self.pid = os.posix_spawn(
                clang,
                [clang],
                environment | {"LD_PRELOAD": library_path(), "CLD_CLANG_SOCKET": meant},
                file_actions=[(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_RDWR, 0) for n in _STANDARD],
                setsigdef=(_SIGPIPE, _SIGXFSZ),
            )
        except BaseException:
            self.socket.close()
            raise
        finally:
            for each in given:
                os.set_inheritable(each, False)
            theirs.close()
            if number >= 0:
                os.close(number)
        limit(self.pid)

    def is_there(self) -> bool:
        """Whether it has not ended."""
        poll = select.poll()
        poll.register(self.socket, 0)
        return not poll.poll(0)

    def is_still(self, clang: str) -> bool:
        """Whether it is there, and what is at this path."""
        return self.is_there() and self._identity == _identity(clang)

    def end(self) -> None:
        """Ends it if this process has started it, and else what this process has of it."""
        self.socket.close()
        if self._owner == os.getpid():
            try:
                os.kill(self.pid, SIGKILL)
                os.waitpid(self.pid, 0)
            except OSError:  # somebody else has waited for it
                pass


def _identity(path: str) -> Identity:
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_mtime_ns, path
