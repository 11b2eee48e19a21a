"""All that is measured for the plan: local clusters of several sizes, and hosts of workers that stand in."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from cl_driver.cluster import connect

from . import costs
from .costs import Cluster, Host, Run
from .simulation import Costs

# How many are measured, and the bytes that launches.c has sent at a time.
PROGRAMS, CONTENTS, CONTENT_BYTES = 8, 40, 4 << 20

# How often a cluster is connected with.
CONNECTIONS = 20

_STAND_IN = "stand-in://workers"


@dataclass(frozen=True)
class Local:
    """A cluster of processes of this machine. start: seconds until the host has its devices; connect: CPU
    seconds that connecting takes the link, the scheduler and the workers; memory: bytes that the link, the
    scheduler and one worker have more than without a host; connections: descriptors of the link and of a
    worker that have come with the host."""

    workers: int
    runs: dict[str, Run]
    start: float
    connect: tuple[float, float, float]
    memory: tuple[int, int, int]
    connections: tuple[int, int]


@dataclass(frozen=True)
class StandIn:
    """A host with workers that stand in (stand_in.py). memory: bytes of the host and of the link."""

    workers: int
    runs: dict[str, Run]
    start: float
    memory: tuple[int, int]


@dataclass(frozen=True)
class Measured:
    """cores: of the machine; turns: of which the best counts."""

    cores: int
    turns: int
    local: list[Local]
    stand_in: list[StandIn]

    def costs(self, workers: int) -> Costs:
        """Of one worker. What a launch on so many costs the host is of those that stood in, of as many at
        least if there were; so is what a command costs it, where there are more queues than were measured."""
        runs = self.local[0].runs
        found = costs.solve(runs["alone"], runs["stream"])
        like = next((one for one in self.stand_in if one.workers >= workers), self.stand_in[-1])
        if workers > self.local[-1].workers:
            stream = like.runs["stream"]
            found = replace(
                found,
                enqueue=stream.threads.program / stream.commands,
                ready=stream.threads.rest / stream.commands,
            )
        whole = like.runs["whole"]
        return replace(
            found,
            cut=max(0.0, whole.threads.program / whole.commands - found.enqueue / like.workers),
            ready_part=whole.threads.rest / whole.commands,
        )

    def idle(self) -> tuple[float, float, float]:
        """CPU seconds in a second in which nothing is done: of the link, the scheduler and a worker, for each
        worker more. Of the link that is a sign of life, a frame there and one back: what else it does at
        times is more than that, however many workers there are."""
        few, many = self.local[0], self.local[-1]

        def rates(run: Run) -> tuple[float, ...]:
            threads = run.threads
            parts = threads.link, threads.scheduler, threads.loops + threads.executors
            return tuple(part / run.seconds for part in parts)

        more = many.workers - few.workers
        pairs = zip(rates(many.runs["nothing"]), rates(few.runs["nothing"]), strict=True)
        _, scheduler, worker = ((a - b) / more for a, b in pairs)
        return 2 * self.costs(1).link_frame, scheduler, worker

    def byte(self) -> float:
        """CPU seconds for a byte of contents, of the link."""
        runs = self.local[0].runs
        frame = runs["alone"].threads.link / runs["alone"].commands
        contents = runs["contents"]
        return max(0.0, contents.threads.link / contents.commands - frame) / CONTENT_BYTES

    def compile(self) -> float:
        """Seconds until a worker has built a small program and executed its first launch."""
        run = self.local[0].runs["program"]
        return run.seconds / run.commands


def connect_times(cluster: Cluster) -> tuple[float, float, float]:
    """CPU seconds of one connection with a cluster: of who connects, of the scheduler, of all workers."""

    def theirs() -> tuple[float, float]:
        return costs.cluster_times(cluster), sum(sum(costs.thread_times(p).values()) for p in cluster.pids)

    async def times() -> tuple[float, float, float]:
        async with connect.open_client(cluster.address, 30) as client:
            before, scheduler, workers = time.process_time(), *theirs()
            for _ in range(CONNECTIONS):
                for one in await connect.connections(client, 30):
                    one.close()
            own, after = time.process_time() - before, theirs()
        return own / CONNECTIONS, (after[0] - scheduler) / CONNECTIONS, (after[1] - workers) / CONNECTIONS

    return asyncio.run(times())


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def measure_local(program: str, workers: int, folder: Path, turns: int) -> Local:
    """Starts a cluster, and measures."""
    with costs.local_cluster(workers) as cluster:
        warm = Host(program, cluster, workers, folder / "log")  # loads the driver in each worker
        warm.end()
        time.sleep(1)
        pid = cluster.pids[0]
        memory = costs.resident(cluster.scheduler), costs.resident(pid)
        open_before = descriptors(pid)
        connect = connect_times(cluster)
        host = Host(program, cluster, workers, folder / "log")
        after = (
            costs.resident(host.link),
            costs.resident(cluster.scheduler) - memory[0],
            costs.resident(pid) - memory[1],
        )
        connections = descriptors(host.link), descriptors(pid) - open_before
        others = {"nothing": host.run("nothing", 1000 * costs.NOTHING, workers)}
        others["program"] = host.run("program", PROGRAMS, PROGRAMS)
        others["contents"] = host.run("contents", CONTENTS, CONTENTS)
        host.end()
        runs = costs.measure(program, cluster, workers, folder, turns)
    return Local(workers, runs | others, host.start, connect, after, connections)


def measure_stand_in(program: str, workers: int, folder: Path, turns: int) -> StandIn:
    """A host that believes to have so many workers."""
    script = folder / "stand_in"
    command = [sys.executable, "-m", "tests.bench.cluster_plan.stand_in", str(workers), f"{_STAND_IN};whole"]
    script.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n")
    script.chmod(0o755)
    host = Host(program, Cluster(_STAND_IN, ()), workers, folder / "log", str(script))
    memory = costs.resident(host.pid), costs.resident(host.link)
    count = max(10, 2000 // workers)
    runs = {
        what: costs.best([host.run(what, count, count * workers) for _ in range(turns)])
        for what in ("round", "whole")
    }
    runs["stream"] = costs.best(
        [host.run("stream", costs.STREAM // 5, costs.STREAM // 5) for _ in range(turns)]
    )
    host.end()
    return StandIn(workers, runs, host.start, memory)
