"""Runs one program with a time limit, and leaves nothing of it behind. runner.py starts one per sub-test.

python -I -S guard.py LIFE SECONDS BYTES PROGRAM [ARGUMENT...]

LIFE is the number of an inherited pipe's reading end: when the other end is closed, whoever wanted the answer
is gone. The program's output goes to stderr, the answer to stdout: a line of JSON with
    status   its exit status, or minus the signal that ended it, or null if it was killed here
    why      why it was killed: "timeout", "output" (more than BYTES of it) or "abandoned"; else null
    seconds  its wall-clock time
    cpu      the CPU time of it and of all that it started
    left     how many processes it left behind, which have been killed

Being a subreaper (prctl(2)), this process is the parent of whatever the program leaves behind, also of what
made a session of its own; so all of it is found.
"""

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
GRACE = 3.0  # seconds that the children of a program that has ended may take to notice


def children() -> list[int]:
    """The processes whose parent this one is."""
    with open(f"/proc/self/task/{os.getpid()}/children") as kids:
        return [int(pid) for pid in kids.read().split()]


def tree(pid: int) -> list[int]:
    """`pid` and all that descend from it."""
    found = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as kids:
                for kid in kids.read().split():
                    found += tree(int(kid))
    except OSError:
        pass  # it ended meanwhile
    return found


def reap() -> None:
    """Buries children that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def kill_all() -> int:
    """Kills what descends from this process, until nothing is left or ten seconds are over; how many."""
    killed: set[int] = set()
    end = time.monotonic() + 10
    while (kids := children()) and time.monotonic() < end:
        for pid in [p for kid in kids for p in tree(kid)]:
            try:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            except ProcessLookupError:
                pass
        time.sleep(0.01)
        reap()
    return len(killed)


def before() -> None:
    """In the child: no core dumps, and the first to go if memory runs out."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")


def watch(process, life: int, limit: float, most: int) -> str | None:
    """Waits for the process; why it has to be killed, if it has."""
    end = time.monotonic() + limit
    ended = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(life, select.POLLHUP)
    while True:
        ready = {fd for fd, _ in poll.poll(1000 * max(0.0, min(1.0, end - time.monotonic())))}
        if ended in ready:
            return None
        if life in ready:
            return "abandoned"
        if time.monotonic() >= end:
            return "timeout"
        if os.fstat(2).st_size > most:
            return "output"


def main() -> None:
    life, limit, most, command = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start = time.monotonic()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True, preexec_fn=before
    )
    why = watch(process, life, limit, most)
    seconds = round(time.monotonic() - start, 2)
    status = None
    if why is None:
        status = process.wait()
        end = time.monotonic() + GRACE
        while children() and time.monotonic() < end:
            time.sleep(0.005)
            reap()
    left = kill_all() - (why is not None)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = round(used.ru_utime + used.ru_stime, 2)
    print(json.dumps({"status": status, "why": why, "seconds": seconds, "cpu": cpu, "left": max(0, left)}))


main()
