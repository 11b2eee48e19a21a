"""Commands on their way through a cluster, as discrete events: who is busy when, and what is sent together.

The queue network is that of cl_driver/cluster/README.md. A command is enqueued by the program's thread, made
ready, sent by one thread and handed on by the process that has Dask (the link). The worker's event loop takes
its frame, its executor decodes and enqueues it, its threads execute it, and what has ended goes back the same
way. Frames gather commands where they wait: one frame is on its way to each worker, and a worker tells all
that has ended since it last did.

Threads are on machines, whose cores they share. Times are seconds.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Commands of a frame at most (MOST_PARTS in native_shim/src/cluster/sending.c).
MOST_COMMANDS = 512

# How long a thread keeps a core while others wait for one, as Linux has it (base_slice_ns).
SLICE = 3e-3

# How long what others do on a machine lasts at a time.
BURST = 1e-3

# How long the work takes, and what comes of it; asked when a core begins with it.
Work = Callable[[], tuple[float, Callable[[], None]]]


@dataclass(frozen=True)
class Costs:
    """Seconds of CPU time, but for `wake` and `latency`. A frame's are those of one frame each way."""

    enqueue: float  # the program's thread, for a command
    cut: float  # the same, for each part of a launch on all workers
    ready: float  # the thread that makes a command ready
    ready_part: float
    send_frame: float
    send: float  # for each command in it
    receive_frame: float
    receive: float
    link_frame: float  # from the host to a worker, or from a worker to the host
    worker_frame: float  # the worker's event loop: in, or out
    execute_frame: float
    execute: float  # decodes and enqueues a command
    run: float  # a command itself, and what notes its end
    wake: float = 0.0  # until a thread that slept runs, where a core is free
    latency: float = 0.0  # of the network, one way


class Simulation:
    """The clock, and what is to happen."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, delay: float, happen: Callable[[], None]) -> None:
        self._count += 1  # those of the same time happen in the order in which they were made
        heapq.heappush(self._events, (self.now + delay, self._count, happen))

    def run(self) -> float:
        """Until nothing is left to happen. The time then."""
        while self._events:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
        return self.now


class Machine:
    """Cores that threads share: who has waited longest has the next one that is free."""

    def __init__(self, simulation: Simulation, cores: int) -> None:
        self.simulation = simulation
        self._free = cores
        self._waiting: deque[Thread] = deque()

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def wants(self, thread: Thread) -> None:
        self._waiting.append(thread)
        self._assign()

    def _assign(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            self._waiting.popleft().run(self._release)

    def _release(self) -> None:
        self._free += 1
        self._assign()


class Thread:
    """Does one thing after the other. busy: seconds of CPU time so far."""

    def __init__(self, machine: Machine, wake: float) -> None:
        self._machine = machine
        self._wake = wake
        self._works: deque[Work] = deque()
        self._is_awake = False
        self.busy = 0.0

    def put(self, work: Work) -> None:
        self._works.append(work)
        if not self._is_awake:
            self._is_awake = True
            self._machine.simulation.after(self._wake, lambda: self._machine.wants(self))

    def run(self, release: Callable[[], None]) -> None:
        """Does what it has to do, the oldest first, on a core that it then releases."""
        simulation = self._machine.simulation
        end = simulation.now + SLICE

        def begin() -> None:
            taken, then = self._works.popleft()()
            self.busy += taken
            simulation.after(taken, lambda: finish(then))

        def finish(then: Callable[[], None]) -> None:
            then()
            if self._works and (simulation.now < end or not self._machine.has_waiting):
                begin()
                return
            self._is_awake = bool(self._works)
            if self._is_awake:
                self._machine.wants(self)
            release()

        begin()


class Outbox:
    """Gathers commands while a frame of earlier ones is on its way.

    thread, frame, each: who sends, and what a frame and a command in it cost; deliver: takes what was sent.
    most: frames that may be on their way, 0 for any number; left() says that one is not any more.
    """

    def __init__(
        self,
        thread: Thread,
        frame: float,
        each: float,
        deliver: Callable[[list[int]], None],
        most: int = 0,
    ) -> None:
        self._thread = thread
        self._frame, self._each = frame, each
        self._deliver = deliver
        self._most = most
        self._under_way = 0
        self._is_put = False
        self._commands: list[int] = []
        self.frames = 0

    def put(self, commands: Sequence[int]) -> None:
        self._commands.extend(commands)
        self._look()

    def left(self) -> None:
        self._under_way -= 1
        self._look()

    def _look(self) -> None:
        if self._commands and not self._is_put and (not self._most or self._under_way < self._most):
            self._is_put = True
            self._thread.put(self._send)

    def _send(self) -> tuple[float, Callable[[], None]]:
        commands, self._commands = self._commands[:MOST_COMMANDS], self._commands[MOST_COMMANDS:]
        self._is_put = False
        self._under_way += 1
        self.frames += 1

        def sent() -> None:
            self._deliver(commands)
            self._look()

        return self._frame + self._each * len(commands), sent


@dataclass(frozen=True)
class Layout:
    """A cluster. workers: how many; host_cores, worker_cores: of the machines, 0 for the workers where they
    are on the host's; links: processes that hand on frames; fan_out: of a tree of workers that hand on
    frames to others, 0 where each has a connection with the host's link; load: cores of the host's machine
    that others want."""

    workers: int
    host_cores: int
    worker_cores: int = 0
    links: int = 1
    fan_out: int = 0
    load: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """seconds: from the first command to the end of the last one; frames: from the host; answers: frames to
    it; link: seconds that the busiest link was busy."""

    seconds: float
    frames: int
    answers: int
    link: float


class _Worker:
    """A worker's threads, and the way back from it."""

    def __init__(self, cluster: Cluster, number: int, machine: Machine) -> None:
        costs = cluster.costs
        self.cluster = cluster
        self.number = number
        self.loop = Thread(machine, costs.wake)
        self.executor = Thread(machine, costs.wake)
        self.device = Thread(machine, costs.wake)
        self.parent: _Worker | None = None
        self.children: list[_Worker] = []
        self.top = self  # of those that have a connection with a link: the one that it is below of
        self.answers = Outbox(self.loop, costs.worker_frame, 0.0, self._answer)

    def arrive(self, commands: list[int]) -> None:
        """A frame is on its way to it."""
        costs = self.cluster.costs
        self.cluster.simulation.after(
            costs.latency, lambda: self.loop.put(lambda: (costs.worker_frame, lambda: self._take(commands)))
        )

    def _take(self, commands: list[int]) -> None:
        costs = self.cluster.costs
        below: dict[int, list[int]] = {}
        own = []
        for command in commands:
            to = self.cluster.workers[self.cluster.target(command)]
            if to is self:
                own.append(command)
                continue
            while to.parent is not self:
                assert to.parent is not None
                to = to.parent
            below.setdefault(to.number, []).append(command)
        for number, part in below.items():
            child = self.cluster.workers[number]
            self.loop.put(lambda child=child, part=part: (costs.worker_frame, lambda: child.arrive(part)))
        if own:
            taken = costs.execute_frame + costs.execute * len(own)
            self.executor.put(lambda: (taken, lambda: self._enqueued(own)))

    def _enqueued(self, commands: list[int]) -> None:
        run = self.cluster.costs.run
        for command in commands:
            self.device.put(lambda command=command: (run, lambda: self.answers.put([command])))

    def _answer(self, commands: list[int]) -> None:
        latency = self.cluster.costs.latency
        parent = self.parent
        if parent is None:
            self.cluster.simulation.after(latency, lambda: self.cluster.answered(self, commands))
            return
        costs = self.cluster.costs
        self.cluster.simulation.after(
            latency,
            lambda: parent.loop.put(lambda: (costs.worker_frame, lambda: parent.answers.put(commands))),
        )


class Cluster:
    """A host and its workers. run() is called once. target: the worker of a command."""

    def __init__(self, costs: Costs, layout: Layout, target: Callable[[int], int]) -> None:
        self.simulation = Simulation()
        self.costs = costs
        self.target = target
        host = Machine(self.simulation, layout.host_cores)
        self._program, self._ready, self._sender, self._receiver = (
            Thread(host, costs.wake) for _ in range(4)
        )
        self._links = [Thread(host, costs.wake) for _ in range(layout.links)]
        self.workers = [
            _Worker(self, i, Machine(self.simulation, layout.worker_cores) if layout.worker_cores else host)
            for i in range(layout.workers)
        ]
        if layout.fan_out:
            self._make_tree(layout.fan_out)
        self._outboxes = {
            worker.number: Outbox(
                self._sender,
                costs.send_frame,
                costs.send,
                lambda commands, worker=worker: self._hand_on(worker, commands),
                most=1,
            )
            for worker in self.workers
            if worker.parent is None
        }
        self._answers = 0
        self._left = 0
        self._end = 0.0
        self._has_ended = False
        self._more: Callable[[], None] | None = None
        for i in range(math.ceil(layout.load)):
            self._burden(Thread(host, 0.0), min(1.0, layout.load - i))

    def _burden(self, thread: Thread, share: float) -> None:
        """Has a thread want so much of a core, as long as there are commands."""

        def again() -> None:
            if not self._has_ended:
                thread.put(lambda: (share * BURST, lambda: None))
                self.simulation.after(BURST, again)

        again()

    def _make_tree(self, fan_out: int) -> None:
        """The first `fan_out` workers are next to a link. Each level has fan_out times as many as the one
        before it, among which it is dealt out in turn."""
        above, level = self.workers[:fan_out], self.workers[fan_out : fan_out + fan_out**2]
        while level:
            for i, worker in enumerate(level):
                worker.parent = above[i % len(above)]
                worker.parent.children.append(worker)
                worker.top = worker.parent.top
            end = level[-1].number + 1
            above, level = level, self.workers[end : end + fan_out * len(level)]

    def link(self, number: int) -> Thread:
        return self._links[number % len(self._links)]

    def _hand_on(self, worker: _Worker, commands: list[int]) -> None:
        def handed_on() -> None:
            worker.arrive(commands)
            self._outboxes[worker.number].left()

        self.link(worker.number).put(lambda: (self.costs.link_frame, handed_on))

    def answered(self, worker: _Worker, commands: list[int]) -> None:
        """A frame of answers has come to the worker's link."""
        self._answers += 1
        costs = self.costs
        taken = costs.receive_frame + costs.receive * len(commands)
        self.link(worker.number).put(
            lambda: (
                costs.link_frame,
                lambda: self._receiver.put(lambda: (taken, lambda: self._ended(len(commands)))),
            )
        )

    def _ended(self, count: int) -> None:
        self._left -= count
        self._end = self.simulation.now
        if not self._left and self._more:
            self._more()

    def _enqueue(self, commands: Sequence[int], parts: int) -> None:
        taken = self.costs.enqueue + (self.costs.cut * parts if parts > 1 else 0.0)
        for at in range(0, len(commands), parts):
            group = commands[at : at + parts]
            self._program.put(lambda group=group: (taken, lambda: self._make_ready(group)))

    def _make_ready(self, group: Sequence[int]) -> None:
        taken = self.costs.ready_part * len(group) if len(group) > 1 else self.costs.ready

        def send() -> None:
            for command in group:
                self._outboxes[self.workers[self.target(command)].top.number].put([command])

        self._ready.put(lambda: (taken, send))

    def run(self, commands: int, parts: int = 1, at_once: int = 0) -> Outcome:
        """So many commands, of which `parts` at a time are one launch. at_once: how many are enqueued before
        their end is waited for; 0: all."""
        at_once = at_once or commands
        at = 0

        def next_ones() -> None:
            nonlocal at
            group = range(at, min(at + at_once, commands))
            at = group.stop
            self._left = len(group)
            self._has_ended = not group
            if group:
                self._enqueue(group, parts)

        self._more = next_ones
        next_ones()
        self.simulation.run()
        frames = sum(outbox.frames for outbox in self._outboxes.values())
        return Outcome(self._end, frames, self._answers, max(link.busy for link in self._links))


def run(costs: Costs, layout: Layout, commands: int, parts: int = 1, at_once: int = 0) -> Outcome:
    """Commands on workers in turn."""
    return Cluster(costs, layout, lambda command: command % layout.workers).run(commands, parts, at_once)


def broadcast(costs: Costs, layout: Layout, size: int, byte: float, network: float) -> float:
    """Seconds until all workers have so many bytes. byte: CPU seconds for one of them of who hands them on;
    network: bytes in a second of a machine's connection. Each hands on to one worker after the other."""
    cluster = Cluster(costs, layout, lambda command: command)
    simulation = cluster.simulation
    last = 0.0

    def line() -> Thread:
        return Thread(Machine(simulation, 1), 0.0)

    def hand_on(thread: Thread, lines: Thread, frame: float, to: list[_Worker]) -> None:
        for worker in to:
            thread.put(lambda worker=worker: (frame + byte * size, lambda: send(lines, worker)))

    def send(lines: Thread, worker: _Worker) -> None:
        arrive = lambda: simulation.after(costs.latency, lambda: take(worker))  # noqa: E731
        lines.put(lambda: (size / network, arrive))

    def take(worker: _Worker) -> None:
        worker.loop.put(lambda: (costs.worker_frame, lambda: has(worker)))

    def has(worker: _Worker) -> None:
        nonlocal last
        last = simulation.now
        hand_on(worker.loop, line(), costs.worker_frame, worker.children)

    of_host = line()
    for i in range(layout.links):
        tops = [worker for worker in cluster.workers if worker.parent is None]
        hand_on(cluster.link(i), of_host, costs.link_frame, tops[i :: layout.links])
    simulation.run()
    return last
