"""Starts compiler processes: `python -m cl_driver.service.fork_server`, started by cl_driver/spawn.py with a
socket, on which the service and its host's forks ask for them.

The first one is forked before there is anything to share: a host may need no other, and it can load LLVM
while clang runs. Before the second one this process loads what all of them need, and a clang
(frontend/resident.py), so that each later one has that at once. It has one thread and no programs, so that
forks of it are sound.

A fork of the host may have given up rights, or may be in another place, on purpose. Who asks must have the
same as who asked first; else the socket is closed, and the service starts a server of that process's own.

It ends when nobody has its socket any more, or nobody has asked for long, but never before its last child: it
may be that orphans would become children of the host. Arguments: seconds to stay idle, bytes of address
space, each 0 for no limit.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import struct

from .. import settings
from ..frontend import clang
from ..spawn import CHILD_DESCRIPTOR
from . import jobs, protocol, worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # What a process may do and where it is; None where that cannot be known.
    Standing: TypeAlias = list[object] | None

_CREDENTIALS = struct.Struct("@3i")  # process, user and group
_FIELDS = (b"Uid:", b"Gid:", b"Groups:", b"CapEff:", b"NoNewPrivs:", b"Seccomp:", b"Cpus_allowed:")
_PLACES = ("root", "ns/mnt", "ns/user", "ns/net", "ns/ipc", "ns/pid")


def standing(pid: int) -> Standing:
    """Of a process: users, groups, rights, processors and priority, the root folder and namespaces."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            found: list[object] = [line for line in file if line.startswith(_FIELDS)]
        for place in _PLACES:
            status = os.stat(f"/proc/{pid}/{place}")
            found.append((status.st_dev, status.st_ino))
        found.append(os.getpriority(os.PRIO_PROCESS, pid))
    except OSError:
        return None
    return found


class _Server:
    """control: where it is asked; idle: seconds that it stays, 0 for no limit."""

    def __init__(self, control: socket.socket, idle: float) -> None:
        self._control, self._idle = control, idle
        self._children: set[int] = set()
        self._first: tuple[int, Standing] | None = None
        self._is_warm = False

    def serve(self) -> socket.socket:
        """Forks a child for each that asks. Returns in the children only, with their sockets."""
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())
        self._control.setsockopt(socket.SOL_SOCKET, protocol.SO_PASSCRED, 1)
        poll, stay = select.poll(), self._idle
        poll.register(self._control, select.POLLIN)
        while True:
            if not poll.poll(stay * 1000 if stay else None):
                if not self._children:
                    os._exit(0)
                continue
            what, pid, descriptor = self._receive()
            if not what:
                self._end()
            if descriptor < 0:
                stay = protocol.resting(self._idle)
                continue
            stay = self._idle
            if not self._may_ask(pid):
                os.close(descriptor)
                continue
            if self._children or self._is_warm:
                self._warm_up()
            if not self._fork():
                self._control.close()
                return socket.socket(fileno=descriptor)
            os.close(descriptor)

    def _receive(self) -> tuple[bytes, int, int]:
        """What is asked, b"" for the end; by which process; and the descriptor that came with it, or -1."""
        space = socket.CMSG_SPACE(protocol.DESCRIPTOR.size) + socket.CMSG_SPACE(_CREDENTIALS.size)
        try:
            what, parts, _, _ = self._control.recvmsg(1, space, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            return b"", 0, -1
        pid, descriptor = 0, -1
        for _, kind, content in parts:
            if kind == protocol.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(content)[0]
            elif kind == socket.SCM_RIGHTS:
                (descriptor,) = protocol.DESCRIPTOR.unpack(content)
        return what, pid, descriptor

    def _may_ask(self, pid: int) -> bool:
        if self._first is None:
            self._first = pid, standing(pid)
            return True
        first, before = self._first
        now = standing(pid)
        return pid == first and before is None if now is None else now == before

    def _warm_up(self) -> None:
        if self._is_warm:
            return
        self._is_warm = True
        clang.load(settings.text("CL_DRIVER_CLANG"))
        jobs.warm_up()
        gc.collect()
        gc.freeze()  # so that no search for garbage writes to what is shared

    def _fork(self) -> int:
        """0 in the child."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if pid:
            self._children.add(pid)
        else:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        return pid

    def _reap(self) -> None:
        for pid in list(self._children):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self._children.discard(pid)

    def _end(self) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._control.close()
        for pid in self._children:
            os.waitpid(pid, 0)
        os._exit(0)


def main(arguments: list[str]) -> None:
    """Runs until nobody needs this process, and in each fork until nobody needs that."""
    idle, memory = float(arguments[0]), int(arguments[1])
    os.set_inheritable(CHILD_DESCRIPTOR, False)  # clang must not keep the socket open
    worker.raise_limits()
    worker.limit_memory(memory)
    worker.run(_Server(socket.socket(fileno=CHILD_DESCRIPTOR), idle).serve(), idle)
