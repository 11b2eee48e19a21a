"""Many random programs in processes of their own, which may die of one: what the scripts for it share."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.conftest import ROOT

REPORTED = 100  # after so many it is said how many failed


def failure(problem: Exception) -> str:
    """One line: what is wrong, and where it was noticed."""
    last = traceback.extract_tb(problem.__traceback__)[-1]
    text = f"{type(problem).__name__}: {str(problem)[:300]}".replace("\n", " ")
    return f"{text} ({Path(last.filename).name}:{last.lineno})"


class Tally:
    """Runs shares in threads, counts what their processes say, and writes it down."""

    def __init__(self, module: str, widths: str, log: str, deadline: float):
        self.module, self.widths, self.log, self.deadline = module, widths, log, deadline
        self.lock = threading.Lock()
        self.counts: Counter = Counter()
        self.known: set[int] = set()
        if log and os.path.exists(log):
            for line in Path(log).read_text().splitlines():
                words = line.split(" ", 3)
                if words[0] == "seed":
                    self.known.add(int(words[1].rstrip(":")))
                    self.counts["failed"] += 1
                elif words[0] == "ok":
                    self.known.update(range(int(words[1]), int(words[2])))
        self.counts["done"] = len(self.known)

    def say(self, text: str) -> None:
        print(text, flush=True)
        if self.log:
            with open(self.log, "a") as file:
                print(text, file=file)

    def note(self, seed: int, line: str) -> None:
        with self.lock:
            self.counts["done"] += 1
            if line != "ok":
                self.counts["failed"] += 1
                self.say(f"seed {seed}: {line}")
            elif self.log:
                with open(self.log, "a") as file:
                    print(f"ok {seed} {seed + 1}", file=file)
            if self.counts["done"] % REPORTED == 0:
                self.say(self.summary())

    def summary(self) -> str:
        return f"{self.counts['done']} programs at widths {self.widths}: {self.counts['failed']} failed"

    def run(self, first: int, end: int) -> None:
        """All seeds of a share; a process that dies is replaced behind the seed that it died of."""
        while first < end and time.monotonic() < self.deadline:
            if first in self.known:
                first += 1
                continue
            last = next((seed for seed in range(first, end) if seed in self.known), end)
            first = self.run_process(first, last)

    def run_process(self, first: int, end: int) -> int:
        """The seed to go on with."""
        command = [sys.executable, "-m", self.module, "--work", f"{first}-{end}", "--widths", self.widths]
        child = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        seed, told = first, True
        for line in child.stdout:
            if line.startswith("start "):
                seed, told = int(line.split()[1]), False
            else:
                self.note(seed, line.strip())
                told = True
            if time.monotonic() > self.deadline:
                break
        else:
            if not told:
                self.note(seed, f"the process ended with {child.wait()}")
        child.kill()
        child.wait()
        return seed + 1


def main(module: str, description: str, widths: str, work: Callable[[int, int, list[int]], None]) -> int:
    """The command line of a module that is run; returns its exit status.

    work(first, end, widths) does these seeds: it says `start SEED`, then `ok` or what is wrong.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--widths", default=widths)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no kernel after so long")
    parser.add_argument("--log", default="", help="file of what was done, to go on from")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        first, end = map(int, options.work.split("-"))
        work(first, end, [int(width) for width in options.widths.split(",")])
        return 0
    os.nice(10)
    tally = Tally(module, options.widths, options.log, time.monotonic() + options.seconds)
    last, size = options.seed + options.count, -(-options.count // options.jobs)
    threads = [
        threading.Thread(target=tally.run, args=(first, min(first + size, last)))
        for first in range(options.seed, last, size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tally.say(tally.summary())
    return int(tally.counts["failed"] > 0)
