"""A compiler process: a fork of fork_server.py with a socket.

It does one job after the other (service/jobs.py) until its socket closes or it was idle for long, and ends at
once, in the middle of a compilation too, when whoever asked for it is gone.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import threading
import time
from _signal import SIGKILL  # type: ignore[import-not-found]  # signal makes enumerations of all of them
from contextlib import suppress

from .. import log, stages
from ..frontend import effort, resident
from ..jit.errors import CompileError
from . import jobs, protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from typing import Any

    from .protocol import Request

# Objects that are new since garbage was searched for: with more it is searched for between jobs; with fewer
# than the second number it is not worth while when there is nothing to do either, since all that is new and
# stays is looked at.
_MANY_OBJECTS, _FEW_OBJECTS = 200_000, 20_000

# So many searches in a row look at what is new since the one before only: what is older is mostly programs,
# which stay.
_YOUNG = 8

# CPU time is looked at after a time in which so many threads cannot use up what is left, or so many seconds.
_MOST_THREADS, _SHORTEST = 4, 0.05

# What malloc() keeps of freed memory, and up to which size it takes from there (mallopt(3)): LLVM frees what
# it used for one kernel before the next, and the kernel would have to clear the pages again.
_KEPT = {-1: 64 << 20, -3: 32 << 20}  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD


def _end() -> None:
    """Ends this process and its children (clang), without asking what other threads are doing."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, SIGKILL)
    os._exit(1)


def _watch(sock: Socket) -> None:
    """Waits for the other side to go; nothing else is reported."""
    poll = select.poll()
    poll.register(sock, protocol.POLLRDHUP)
    while True:
        if poll.poll():
            _end()


class _Clock:
    """The CPU time of one job, of this process and clang. limit: seconds after which the process says so in
    the job's place and ends; 0 for none."""

    def __init__(self, sock: Socket, limit: float) -> None:
        self._sock, self._limit, self._start = sock, limit, _cpu_time()
        self._has_ended, self._answering = threading.Event(), threading.Lock()
        effort.set_limit(limit or float("inf"))
        if limit:
            threading.Thread(target=self._watch, daemon=True).start()

    def used(self) -> float:
        return _cpu_time() - self._start

    def _watch(self) -> None:
        while not self._has_ended.wait(max(_SHORTEST, (self._limit - self.used()) / _MOST_THREADS)):
            if self.used() < self._limit or not self._answering.acquire(blocking=False):
                continue
            text = f"the compiler took more than {self._limit:g} s of CPU time (CL_DRIVER_COMPILE_TIMEOUT)"
            with suppress(protocol.Disconnected):
                protocol.send(self._sock, [protocol.FAILED, text])
            _end()

    def answer(self, values: list[Any]) -> None:
        """Ends the job, unless it is over."""
        self._answering.acquire()
        self._has_ended.set()
        while _said:
            protocol.send(self._sock, [protocol.SAID, *_said.pop(0)])
        if stages.is_on:
            protocol.send(self._sock, [protocol.TOOK, stages.take()])
        protocol.send(self._sock, values)


# Level and text of lines for the log, which whoever started this process keeps.
_said: list[tuple[int, str]] = []


def _cpu_time() -> float:
    return time.process_time() + effort.of_clangs()


def _names(request: Request) -> str:
    """The kernels that a request is about, for the trace."""
    operation, *arguments = request
    if operation == "kernels":
        return ", ".join(arguments[2])
    return str(arguments[2]) if operation == "kernel_variant" else ""


def _answer(request: Request, clock: _Clock) -> list[Any]:
    try:
        with stages.stage(request[0], _names(request)):
            value = jobs.run(*request)
        return [protocol.OK, value, clock.used()]
    except CompileError as error:
        return [protocol.FAILED, str(error)]
    except Exception as error:
        import traceback

        text = f"internal error of the compiler, please report it: {type(error).__name__}: {error}"
        return [protocol.FAILED, f"{text}\n{traceback.format_exc()}"]


def _is_readable(sock: Socket, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def serve(sock: Socket, idle: float) -> None:
    """Answers requests until the socket closes or nothing came for `idle` seconds.

    Cyclic garbage is searched for between jobs. During one it would be in vain, since a program stays alive
    until it is compiled, and would take more than proportional time: all is looked at again and again. What
    is there after the first jobs stays, and is not looked at again.
    """
    sys.setswitchinterval(0.0005)  # LLVM on another thread wants the GIL seldom, but then soon
    gc.disable()
    gc.freeze()
    is_first, has_rested = True, False
    stay = idle
    while _is_readable(sock, stay or None):
        try:
            operation, *arguments = protocol.receive(sock)
            if operation == protocol.REST:
                stay = protocol.resting(idle)
                continue
            seconds, *arguments = arguments
            stay = idle
            protocol.send(sock, [protocol.STARTED])
            clock = _Clock(sock, seconds)
            clock.answer(_answer([operation, *arguments], clock))
        except protocol.Disconnected:
            return
        if is_first:
            is_first = False
            _keep_memory()
        if not has_rested and not _is_readable(sock, 0.1):
            has_rested = True
            gc.collect()
            gc.freeze()
            continue
        new, searches, _ = gc.get_count()
        if new > _MANY_OBJECTS:
            gc.collect(0 if searches < _YOUNG else 2)
        elif new > _FEW_OBJECTS and not _is_readable(sock, 0.1):
            gc.collect()


def _keep_memory() -> None:
    import ctypes

    for parameter, size in _KEPT.items():
        with suppress(AttributeError):  # not glibc
            ctypes.CDLL(None).mallopt(parameter, size)


def _greet(sock: Socket) -> None:
    """Makes stderr a file in memory that whoever started this process can read when it is dead."""
    errors = os.memfd_create("stderr")
    os.dup2(errors, 2)
    os.close(errors)
    protocol.send_hello(sock, os.getpid(), 2)


def run(sock: Socket, idle: float) -> None:
    """Runs until nobody needs this process: until its socket closes, or it has been idle for so many seconds,
    0 for no limit."""
    os.setsid()
    _greet(sock)
    log.hand_to(lambda level, text: _said.append((level, text)))
    resident.allow()
    threading.Thread(target=_watch, args=(sock,), daemon=True).start()
    if not _is_readable(sock, 0):
        jobs.warm_up()  # nobody waits for this process yet
    serve(sock, idle)
    os._exit(0)  # nothing here needs an orderly end, and the watcher never ends
