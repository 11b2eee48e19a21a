"""Compiler processes: started when there is work, at most one per core (but for run_apart()), kept for later
builds.

Each answers one request at a time. A process that dies loses its request. Another gets it if the process had
not begun, and once if it died without a word, as one that is killed; else the build fails with a log. The
next build starts a new one.
"""

from __future__ import annotations

import select
import time

from ..jit.errors import CompileError
from . import protocol
from .condition import Condition
from .process import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .process import Server
    from .protocol import Request

# Seconds of the clock for one of CPU time: machines are busy, but a process may be stuck.
_PATIENCE = 10

_ATTEMPTS = 3  # to hand a request to a process that begins it


class Budget:
    """The time that a build may take. seconds: of CPU time, for each of the processes that work for it, which
    is as long as the build takes of a machine that has nothing else to do; 0 for no limit."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._used: dict[Process, float] = {}
        self._deadline = time.monotonic() + _PATIENCE * seconds

    def of(self, process: Process) -> float:
        """What is left for a process; 0 for no limit."""
        left = self._seconds - self._used.get(process, 0.0)
        return max(left, 0.001) if self._seconds else 0

    def take(self, process: Process, seconds: float) -> None:
        """A process has used so much."""
        self._used[process] = self._used.get(process, 0.0) + seconds

    def wait(self) -> float | None:
        """Seconds of the clock after which it is given up; None for no limit."""
        return max(0.001, self._deadline - time.monotonic()) if self._seconds else None


class Pool:
    """limit: how many processes there may be at once; servers: those that start them, shared with other
    pools. Any thread may call run()."""

    def __init__(self, limit: int, servers: list[Server]) -> None:
        self.limit = limit
        self._servers = servers
        self._changed = Condition()
        self._idle: list[Process] = []
        self._count = 0  # idle, busy, and being started
        self._all: set[Process] = set()
        self._apart: set[Process] = set()  # of run_apart(), which nobody else has and _count has not

    def _take(self, wait: bool, for_source: bool = False) -> Process | None:
        """A process for the caller alone; None if there is none at once and it will not wait. for_source: it
        is to compile a source."""
        with self._changed:
            while True:
                while self._idle:
                    process = self._idle.pop()
                    if process.is_fit():
                        return process
                    self._drop(process)  # it was idle for too long, or was killed
                if self._count < self.limit:
                    self._count += 1
                    break
                if not wait:
                    return None
                self._changed.wait()
        try:
            process = Process(self._servers, for_source)
        except BaseException:
            with self._changed:
                self._count -= 1
                self._changed.notify()
            raise
        self._all.add(process)
        return process

    def _take_for_clang(self) -> Process:
        """A process for one request to compile a source."""
        process = Process(self._servers, for_source=True)
        self._apart.add(process)
        self._all.add(process)
        return process

    def _give(self, process: Process) -> None:
        with self._changed:
            if process in self._apart:
                self._drop(process)
            else:
                self._idle.append(process)
            self._changed.notify()

    def _discard(self, process: Process) -> None:
        with self._changed:
            self._drop(process)
            self._changed.notify()

    def _drop(self, process: Process) -> None:
        """With the lock held."""
        process.close()
        self._all.discard(process)
        if process in self._apart:
            self._apart.remove(process)
        else:
            self._count -= 1

    def processes(self) -> list[int]:
        """The numbers of the processes that have greeted: for tests and for `cl-driver status`."""
        return sorted(process.pid for process in list(self._all) if process.pid)

    def idle(self) -> int:
        """How many processes have nothing to do."""
        return len(self._idle)

    def start(self, count: int) -> None:
        """Starts processes up to `count` in all, so that they are warm when work comes. Never waits."""
        taken = []
        try:
            for _ in range(min(count, self.limit)):
                process = self._take(wait=False)
                if process is None:
                    break
                taken.append(process)
        finally:
            for process in reversed(taken):  # the first is there sooner, and so is the first to get work
                self._give(process)

    def has_any(self) -> bool:
        """Whether there are processes, or some are being started."""
        return self._count > 0

    def run_apart(self, request: Request, others: int, budget: Budget) -> Any:
        """The answer's value of a request that needs clang alone, by a process that then ends. What it makes
        is for `others`, which are started meanwhile. So one process imports what they need, once."""
        run = _Run(self, [request], budget, is_apart=True)
        run.begin()
        self.start(others)
        return run.answers()[0]

    def run(self, requests: list[Request], budget: Budget) -> list[Any]:
        """The answers' values, in the order of the requests, done by as many processes as there are.
        CompileError for the first that failed."""
        return _Run(self, requests, budget).answers()

    def rest(self) -> None:
        """Idle processes end unless they have work soon, and so do those that start them."""
        with self._changed:
            idle, self._idle = self._idle, []
            for process in idle:
                if process.rest():
                    self._idle.append(process)
                else:
                    self._drop(process)
            self._changed.notify_all()
        for server in list(self._servers):
            server.rest()

    def let_go(self) -> None:
        """In a fork of the process that started them: closes the copies of their sockets."""
        for process in list(self._all):
            process.close()


class _Run:
    """The requests of one build on the processes that it could get."""

    def __init__(self, pool: Pool, requests: list[Request], budget: Budget, is_apart: bool = False) -> None:
        self.pool = pool
        self.is_apart = is_apart
        self.requests = requests
        self.budget = budget
        self.waiting = list(range(len(requests)))
        self.attempts = [0] * len(requests)
        self.results: list[Any] = [None] * len(requests)
        self.busy: dict[int, tuple[Process, int]] = {}
        self.poll = select.poll()

    def begin(self) -> None:
        """Hands out what there are processes for."""
        try:
            self._hand_out()
        except BaseException:
            self._end()
            raise

    def answers(self) -> list[Any]:
        """Those of all requests."""
        try:
            while self.waiting or self.busy:
                self._hand_out()
                self._collect()
        finally:
            self._end()
        return self.results

    def _end(self) -> None:
        """After a failure: what still compiles for this build is of no use to anybody."""
        for process, _ in self.busy.values():
            self.pool._discard(process)
        self.busy.clear()

    def _hand_out(self) -> None:
        while self.waiting:
            for_source = self.requests[self.waiting[0]][0] in protocol.OF_SOURCES
            process = (
                self.pool._take_for_clang()
                if self.is_apart
                else self.pool._take(wait=not self.busy, for_source=for_source)
            )
            if process is None:
                return
            index = self.waiting.pop(0)
            self.attempts[index] += 1
            try:
                process.send(self.requests[index], self.budget)
            except protocol.Disconnected as error:
                self.pool._discard(process)
                self._again(index, error)
                continue
            self.busy[process.sock.fileno()] = process, index
            self.poll.register(process.sock.fileno(), select.POLLIN)

    def _collect(self) -> None:
        """Waits for at least one answer."""
        left = self.budget.wait()
        ready = self.poll.poll(None if left is None else left * 1000) if self.busy else []
        if self.busy and not ready:
            raise CompileError(
                f"the compiler took {_PATIENCE} times as long as CL_DRIVER_COMPILE_TIMEOUT says"
            )
        for descriptor, _ in ready:
            process, index = self.busy[descriptor]
            try:
                answer = process.receive()
            except protocol.Disconnected as error:
                words = process.last_words()
                obituary = _obituary(words, self.requests[index])
                self._release(descriptor)
                self.pool._discard(process)
                if process.started and (words or self.attempts[index] > 1):
                    raise CompileError(obituary) from error
                self._again(index, error)
                continue
            if answer is None:
                continue
            self._release(descriptor)
            self.pool._give(process)
            if answer[0] != protocol.OK:
                raise CompileError(answer[1])
            _, self.results[index], seconds = answer
            self.budget.take(process, seconds)

    def _release(self, descriptor: int) -> None:
        del self.busy[descriptor]
        self.poll.unregister(descriptor)

    def _again(self, index: int, error: Exception) -> None:
        """The process was gone before it began: nothing is lost yet."""
        if self.attempts[index] >= _ATTEMPTS:
            raise CompileError(f"the compiler process does not start: {error}") from error
        self.waiting.insert(0, index)


def _obituary(words: str, request: Request) -> str:
    """What the log says of a process that died over a request."""
    what, names = "", request[-1]
    if request[0] == "kernels":
        what = f" while it compiled kernel '{names[0]}'"
        what += f" or another, up to '{names[-1]}'" if len(names) > 1 else ""
    return f"the compiler process ended unexpectedly{what}" + (f":\n{words}" if words else "")
