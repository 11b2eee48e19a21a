"""Builds programs and runs their kernels on the first OpenCL platform; told what to do by lines of JSON.

    {"do": "build", "text": ..., "options": ...}     {"ms", "cpu", "kernels"} or {"log"}
    {"do": "weigh", "text": ..., "options": ...}     {"memory"}: the most MiB while it is built
    {"do": "run", "kernel": ..., "known": ..., "sizes": [number, global, local], "folder": ..., "prefix": ...}
                                                     {"first", "cpu", "outputs"}
    {"do": "time", "seconds": ...}                   {"ms": best time of the kernel run last}

Each is answered by one line. "error" says which call failed. What drivers print goes to stderr.
cpu counts all processes below this one. So does memory, what this process had before left out; what several
of them share is counted once (proportional set size, looked at again and again, which takes time).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
import threading
import time
from pathlib import Path

from tests.loader.opencl import OpenCL
from tests.zoo.arguments import Sizes
from tests.zoo.device import Device, Failure, Launch

_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")


def below(process: int) -> list[int]:
    """The processes below one that live or are not waited for yet."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, queue = [], [process]
    while queue:
        more = children.get(queue.pop(), [])
        found += more
        queue += more
    return found


def used() -> float:
    """CPU seconds of this process and all below it."""
    own, waited = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = own.ru_utime + own.ru_stime + waited.ru_utime + waited.ru_stime
    for process in below(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            seconds += sum(int(field) for field in fields[11:15]) / _TICKS
        except OSError:
            continue
    return seconds


def held() -> float:
    """MiB of this process and all below it."""
    kib = 0
    for process in (os.getpid(), *below(os.getpid())):
        try:
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        kib += int(text.partition("\nPss:")[2].split(None, 1)[0]) if "\nPss:" in text else 0
    return kib / 1024


def settle(limit: float = 5.0) -> None:
    """Waits until the processes below do nothing: a driver may make better code after the first launches."""
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        before, start = used(), time.perf_counter()
        time.sleep(0.05)
        if used() - before < 0.3 * (time.perf_counter() - start):
            return


class Session:
    """What the lines do."""

    def __init__(self):
        # Reads OpenCL's headers, by a C compiler, which is no driver's business.
        self.opencl = OpenCL("libOpenCL.so.1")
        self.device = self.program = self.launch = None
        self.text = ""

    def build(self, text: str, options: str) -> dict:
        self.text = text
        cpu = used()
        start = time.perf_counter()
        if self.device is None:
            self.device = Device(self.opencl)
        self.program, log = self.device.build(text, options)
        if not self.program:
            return {"log": log}
        kernels = self.device.kernels(self.program)  # a driver may compile them as late as this
        elapsed = (time.perf_counter() - start) * 1000
        return {"ms": elapsed, "cpu": (used() - cpu) * 1000, "kernels": kernels}

    def weigh(self, text: str, options: str) -> dict:
        before, most = held(), 0.0
        thread = threading.Thread(target=self.build, args=(text, options))
        thread.start()
        while thread.is_alive():
            most = max(most, held())
            thread.join(0.001)
        return {"memory": max(most, held()) - before}

    def run(self, kernel: str, known: dict, sizes: list, folder: str, prefix: str) -> dict:
        if self.launch:
            self.launch.release()
            self.launch = None
        self.launch = Launch(self.device, self.program, kernel, known, self.text)
        self.launch.prepare(Sizes(*sizes))
        self.launch.write()
        before = used()
        first = self.launch.run()
        cpu = (used() - before) * 1000
        settle()  # or what is made for later launches would take the cores from the next platform
        return {"first": first, "cpu": cpu, "outputs": self.launch.outputs(Path(folder), prefix)}

    def time(self, seconds: float) -> dict:
        self.launch.write()
        self.launch.run()
        settle()
        times = []
        end = time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            times.append(self.launch.run())
        return {"ms": min(times)}


def main() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = Session()
    verbs = {"build": session.build, "weigh": session.weigh, "run": session.run, "time": session.time}
    for line in sys.stdin:
        message = json.loads(line)
        verb = verbs[message.pop("do")]
        try:
            answer = verb(**message)
        except Failure as failure:
            answer = {"error": str(failure)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
