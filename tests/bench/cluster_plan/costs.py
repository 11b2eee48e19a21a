"""What commands cost on a cluster of this machine: the CPU time of each thread that they pass through.

A command that is alone in its frame, and one of a stream, whose frames are counted, give what a frame and a
command cost each thread. What no thread uses is the time in which threads wake up.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from . import simulation
from .simulation import Costs, Layout

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

# Commands of a run; seconds in which nothing is done.
STREAM, ALONE, NOTHING = 100000, 1000, 3


@dataclass(frozen=True)
class Threads:
    """CPU seconds of the threads of a host, of its link, and of all workers together."""

    program: float = 0.0
    sender: float = 0.0
    receiver: float = 0.0
    rest: float = 0.0  # others of the host's process
    link: float = 0.0
    loops: float = 0.0  # the workers' event loops
    executors: float = 0.0  # all other threads of the workers
    scheduler: float = 0.0  # all of its process

    def minus(self, before: Threads) -> Threads:
        return Threads(**{name: getattr(self, name) - getattr(before, name) for name in self.names()})

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(cls.__dataclass_fields__)


@dataclass(frozen=True)
class Run:
    """commands: that were sent to workers; others: the share of this machine's CPUs that went to other
    processes; frames: to workers; answers: from workers."""

    commands: int
    seconds: float
    threads: Threads
    others: float
    frames: int = 0
    answers: int = 0


@dataclass(frozen=True)
class Cluster:
    """A cluster of this machine. pids: the workers'; scheduler: its process, 0 where there is none."""

    address: str
    pids: tuple[int, ...]
    scheduler: int = 0


@contextlib.contextmanager
def local_cluster(workers: int) -> Iterator[Cluster]:
    """So many processes, each a worker with one thread."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "loader" / "cluster" / "local_cluster.py"), str(workers)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        address, *pids = process.stdout.readline().split()
        yield Cluster(address, tuple(map(int, pids)), process.pid)
    finally:
        process.stdin.close()
        process.wait(timeout=60)


def build(folder: Path) -> str:
    """Compiles launches.c."""
    program = str(folder / "launches")
    subprocess.run(
        ["cc", "-O2", "-Wall", "-Werror", str(HERE / "launches.c"), "-o", program, "-lOpenCL"], check=True
    )
    return program


def thread_times(pid: int) -> dict[int, float]:
    """CPU seconds of the threads of a process, by number."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            found[int(name)] = int(Path(f"/proc/{pid}/task/{name}/schedstat").read_text().split()[0]) / 1e9
    return found


def cluster_times(cluster: Cluster) -> float:
    """CPU seconds of a cluster's scheduler."""
    return sum(thread_times(cluster.scheduler).values()) if cluster.scheduler else 0.0


def resident(pid: int) -> int:
    """Bytes of memory that are a process's own."""
    text = Path(f"/proc/{pid}/status").read_text()
    return sum(int(size) << 10 for size in re.findall(r"RssAnon:\s+(\d+) kB", text))


def machine_times() -> tuple[float, float]:
    """Seconds of all CPUs of this machine: busy, and altogether."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / tick, sum(ticks) / tick


class Host:
    """launches.c, with the devices of a cluster. python: what runs the link, instead of this Python."""

    def __init__(self, program: str, cluster: Cluster, workers: int, log: Path, python: str = "") -> None:
        start = time.monotonic()
        self._log = log
        self._cluster = cluster
        log.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            [program, str(workers)],
            env=os.environ
            | {
                "PYTHONPATH": str(ROOT),
                "CL_DRIVER_CLUSTER": f"{cluster.address};whole",
                "CL_DRIVER_CLUSTER_CUT": "always",  # one on all workers is a message to each of them
                "CL_DRIVER_CLUSTER_PYTHON": python or sys.executable,
                "CL_DRIVER_LOG": "calls",
                "CL_DRIVER_LOG_FILE": str(log),
                "OCL_ICD_VENDORS": f"{ROOT / 'build' / 'vendors'}/",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._ask() != "ready":
            raise RuntimeError("the program with the launches has ended")
        self.start = time.monotonic() - start
        self.pid = self._process.pid
        self.link = self._find_link(cluster.address)

    def _ask(self, line: str = "") -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        if line:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def _find_link(self, address: str) -> int:
        """The process that has the address on its command line and was started after the host."""
        wanted = f"{address};whole".encode()
        for name in sorted((name for name in os.listdir("/proc") if name.isdigit()), key=int):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                if int(name) > self.pid and wanted in words:
                    return int(name)
        raise RuntimeError("the process that connects is not there")

    def times(self) -> Threads:
        """The two threads of the cluster in the host are the first ones after the link was started."""
        own = thread_times(self.pid)
        program = own.pop(self.pid)
        later = sorted(number for number in own if number > self.link)
        sender, receiver = own.pop(later[0]), own.pop(later[1])
        loops = executors = 0.0
        for pid in self._cluster.pids:
            found = thread_times(pid)
            loops += found.pop(pid)
            executors += sum(found.values())
        link = sum(thread_times(self.link).values())
        scheduler = cluster_times(self._cluster)
        return Threads(program, sender, receiver, sum(own.values()), link, loops, executors, scheduler)

    def run(self, what: str, count: int, commands: int) -> Run:
        """One line for launches.c. commands: that workers are sent by it."""
        before, busy_before, all_before = self.times(), *machine_times()
        seconds = float(self._ask(f"{what} {count}"))
        threads, busy, whole = self.times().minus(before), *machine_times()
        own = sum(getattr(threads, name) for name in Threads.names())
        others = max(0.0, busy - busy_before - own) / max(whole - all_before, 1e-9)
        return Run(commands, seconds, threads, min(others, 0.95))

    def end(self) -> tuple[int, int]:
        """Frames to workers and from them, of all that it has done."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        for _ in range(100):
            text = self._log.read_text() if self._log.exists() else ""
            found = re.search(r"bytes from workers, in (\d+) and (\d+) batches", text)
            if found:
                return int(found[1]), int(found[2])
            time.sleep(0.1)
        raise RuntimeError("the process that connects has not said what it has sent")


def best(runs: list[Run]) -> Run:
    """That with the most commands in a second of CPUs that others did not take."""
    return min(runs, key=lambda run: run.seconds * (1 - run.others) / run.commands)


def measure(program: str, cluster: Cluster, workers: int, folder: Path, turns: int) -> dict[str, Run]:
    """The best of some turns of each way to launch, by name; each turn is a host of its own."""
    log = folder / "log"
    ways = {
        "alone": (ALONE, ALONE),
        "round": (ALONE // workers, ALONE // workers * workers),
        "stream": (STREAM, STREAM),
        "whole": (STREAM // 10, STREAM // 10 * workers),
    }
    found = {}
    empty = Host(program, cluster, workers, log).end()
    for what, (count, commands) in ways.items():
        runs = []
        for _ in range(turns):
            host = Host(program, cluster, workers, log)
            run = host.run(what, count, commands)
            frames, answers = host.end()
            runs.append(replace(run, frames=frames - empty[0], answers=answers - empty[1]))
        found[what] = best(runs)
    return found


def per_command(alone: float, stream: float, frames: float) -> tuple[float, float]:
    """What a frame and a command cost, of the costs of a command that is alone in its frame, and of one where
    there are so many frames for each command. Neither is less than nothing."""
    command = (stream - alone * frames) / (1 - frames) if frames < 1 else 0.0
    command = min(max(command, 0.0), alone)
    return alone - command, command


def solve(alone: Run, stream: Run) -> Costs:
    """The costs of which both runs, of one worker, consist. The threads of a worker's driver are not told
    apart: half of their time is taken for what decodes and enqueues, and half for what executes."""
    a = {name: getattr(alone.threads, name) / alone.commands for name in Threads.names()}
    s = {name: getattr(stream.threads, name) / stream.commands for name in Threads.names()}
    frames, answers = stream.frames / stream.commands, stream.answers / stream.commands
    send_frame, send = per_command(a["sender"], s["sender"], frames)
    receive_frame, receive = per_command(a["receiver"], s["receiver"], answers)
    execute_frame, execute = per_command(a["executors"], s["executors"], frames)
    costs = Costs(
        enqueue=s["program"],
        cut=0.0,
        ready=s["rest"],
        ready_part=s["rest"],
        send_frame=send_frame,
        send=send,
        receive_frame=receive_frame,
        receive=receive,
        link_frame=a["link"] / 2,
        worker_frame=a["loops"] / 2,
        execute_frame=execute_frame,
        execute=execute / 2,
        run=execute / 2,
    )
    return replace(costs, wake=wake_up(costs, alone.seconds / alone.commands))


def wake_up(costs: Costs, alone: float) -> float:
    """How long a thread takes to wake up, of how long a command takes that is alone: what CPU times leave."""
    layout = Layout(workers=1, host_cores=os.cpu_count() or 1)
    without = simulation.run(costs, layout, 20, at_once=1).seconds / 20
    probe = 1e-6
    wakes = (simulation.run(replace(costs, wake=probe), layout, 20, at_once=1).seconds / 20 - without) / probe
    return max(0.0, (alone - without) / wakes)
