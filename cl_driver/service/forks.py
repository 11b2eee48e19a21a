"""The process that starts compiler processes (fork_server.py), once it has imported what it needs.

The first one is forked before there is anything to share but the clang that a source needs: a host may need
no other, and it can load LLVM while clang runs. Before the second one this process loads what all of them
need, and a clang (frontend/resident.py), so that each later one has that at once. It has one thread and no
programs, so that forks of it are sound.

The host or a fork of it may have given up rights, or may be in another place, on purpose. A child for one
that has not the same as who asked first gets what that has (standing.py). Where that cannot be the socket is
closed, and the service starts a server of that process's own.

It ends when nobody has its socket any more, or nobody has asked for long, but never before its last child: it
may be that orphans would become children of the host.
"""

from __future__ import annotations

# Not signal, which makes enumerations of all that it has.
import _signal as signal  # type: ignore[import-not-found]
import gc
import os
import select
import struct
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOL_SOCKET, socket

from .. import log, settings
from ..frontend import clang, resident
from ..frontend.clang_start import Started
from . import jobs, protocol
from .standing import Standing, can_be_taken, standing, take

_CREDENTIALS = struct.Struct("@3i")  # process, user and group


class _Asked:
    """what: b"" for the end; pid, user: who asks; descriptors: what came with it: the end of a socket, and a
    root folder."""

    __slots__ = ("descriptors", "pid", "user", "what")

    def __init__(self, what: bytes = b"", pid: int = 0, user: int = 0) -> None:
        self.what, self.pid, self.user = what, pid, user
        self.descriptors: list[int] = []


class Server:
    """control: the descriptor on which it is asked; idle: seconds that it stays, 0 for no limit; holder: the
    program that it then becomes, which was there before it (native_shim/holder/holder.c), or ""; started: a
    clang for its forks."""

    def __init__(self, control: int, idle: float, holder: str, started: Started | None = None) -> None:
        self._control, self._idle, self._holder = socket(fileno=control), idle, holder
        if started:
            resident.adopt(started)
        self._children: set[int] = set()
        self._first: tuple[int, Standing | None] | None = None
        self._is_warm = False
        if holder:  # which has what the host had then
            self._first = os.getpid(), standing(os.getpid())

    def serve(self) -> socket:
        """Forks a child for each that asks. Returns in the children only, with their sockets."""
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())
        self._control.setsockopt(SOL_SOCKET, protocol.SO_PASSCRED, 1)
        poll, stay = select.poll(), self._idle
        poll.register(self._control, select.POLLIN)
        while True:
            if not poll.poll(stay * 1000 if stay else None):
                if not self._children:
                    self._hold()
                continue
            asked = self._receive()
            if not asked.what:
                self._end()
            if not asked.descriptors:
                stay = protocol.resting(self._idle)
                continue
            stay = self._idle
            child = self._answer(asked)
            if child:
                self._control.close()
                return child
            for descriptor in asked.descriptors:
                os.close(descriptor)

    def _receive(self) -> _Asked:
        space = CMSG_SPACE(2 * protocol.DESCRIPTOR.size) + CMSG_SPACE(_CREDENTIALS.size)
        try:
            what, parts, _, _ = self._control.recvmsg(1, space, MSG_CMSG_CLOEXEC)
        except OSError:
            return _Asked()
        asked = _Asked(what)
        for _, kind, content in parts:
            if kind == protocol.SCM_CREDENTIALS:
                asked.pid, asked.user, _ = _CREDENTIALS.unpack(content)
            elif kind == SCM_RIGHTS:
                asked.descriptors += (number for (number,) in protocol.DESCRIPTOR.iter_unpack(content))
        return asked

    def _answer(self, asked: _Asked) -> socket | None:
        """Forks a child, if who asks may have one: its socket, in the child."""
        first, now = self._first, standing(asked.pid)
        if first is None:
            first = self._first = asked.pid, now
        before, root = first[1], (*asked.descriptors, -1)[1]
        if now is None or before is None:
            is_same, may_try = asked.pid == first[0] and before is now, False
        else:
            is_same = now.is_that_of(before)
            # Numbers of processes come again: it may have ended, and another one be meant.
            may_try = str(asked.user) == now.fields["Uid"].split()[0] and can_be_taken(now, before, root)
        if not is_same and not may_try:
            return None
        if is_same and (self._children or self._is_warm):
            self._warm_up()
        if not is_same and not self._children:
            resident.end()  # it is not for this one
        if self._fork():
            return None
        if not is_same and now and before:
            _confine(now, before, root)
        elif root >= 0:
            os.close(root)
        return socket(fileno=asked.descriptors[0])

    def _warm_up(self) -> None:
        if self._is_warm:
            return
        self._is_warm = True
        clang.load(settings.text("CL_DRIVER_CLANG"))
        jobs.warm_up()
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

    def _hold(self) -> None:
        """Nobody has asked for long."""
        resident.end()
        if self._holder:
            with open("/proc/self/cmdline", "rb") as file:
                command = file.read().split(b"\0")[:-1]
            os.set_inheritable(self._control.fileno(), True)
            os.execv(self._holder, [os.fsencode(self._holder), *command])
        os._exit(0)


def _confine(wanted: Standing, own: Standing, root: int) -> None:
    """This child, which is for another process than those of the host, has what that has; or it ends."""
    resident.end()
    try:
        jobs.load_everything()
        take(wanted, own, root, settings.text("CL_DRIVER_CLANG"))
    except Exception as error:
        log.log(1, f"a compiler process cannot have the rights and the root folder of its host: {error}")
        os._exit(1)
