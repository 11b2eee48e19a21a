"""Runs random cases in processes of their own, several at a time: a case that kills its process is found, and
does not end the others. For fuzz_sources and fuzz_binaries."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import Counter

from tests.conftest import ROOT

STEP = 20  # cases that a process runs, unless one kills it
PATIENCE = 120  # seconds of wall clock after which a process that says nothing hangs


class Child:
    """A process that runs the cases first..last-1 of a module, and says how each went."""

    def __init__(self, module: str, first: int, last: int, more: list[str]):
        self.first, self.last, self.case = first, last, first
        self.heard = time.monotonic()
        command = [sys.executable, "-m", module, "--child", str(first), str(last), *more]
        environment = os.environ | {"CL_DRIVER_CACHE_SIZE": "0"}
        environment.setdefault("OCL_ICD_VENDORS", f"{ROOT / 'build' / 'vendors'}/")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, env=environment
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self.rest = b""

    def lines(self) -> list[str]:
        """What it has said since."""
        try:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return []
        if data:
            self.heard = time.monotonic()
        *whole, self.rest = (self.rest + data).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]


def run(
    module: str, first: int, count: int, jobs: int, more: list[str], report=print
) -> tuple[Counter, list]:
    """Outcomes of the cases, and (seed, what is wrong) of the defects."""
    outcomes: Counter = Counter()
    defects: list[tuple[int, str]] = []
    waiting = [(a, min(a + STEP, first + count)) for a in range(first, first + count, STEP)][::-1]
    running: list[Child] = []
    start = told = time.monotonic()

    def take(child: Child, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "begin":
            child.case = int(rest)
        elif word == "end":
            outcomes[rest] += 1
            child.case += 1
        elif word == "defect":
            defects.append((child.case, rest))
            report(f"seed {child.case}: {rest}")

    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(Child(module, *waiting.pop(), more))
        time.sleep(0.05)
        for child in list(running):
            ended = child.process.poll()
            for line in child.lines():
                take(child, line)
            late = ended is None and time.monotonic() - child.heard > PATIENCE
            if late:
                child.process.send_signal(signal.SIGKILL)
                ended = child.process.wait()
            if ended is None:
                continue
            for line in child.lines():
                take(child, line)
            child.process.stdout.close()
            running.remove(child)
            if ended or child.case < child.last:
                what = "a hang" if late else f"its process ended with status {ended}"
                take(child, f"defect {what}")
                outcomes["ended the process"] += 1
                if child.case + 1 < child.last:
                    waiting.append((child.case + 1, child.last))
        if time.monotonic() - told > 10 or not (waiting or running):
            told = time.monotonic()
            shown = ", ".join(f"{what} {number}" for what, number in outcomes.most_common())
            report(f"{outcomes.total()} of {count}, {told - start:.0f} s, {len(defects)} defects: {shown}")
    return outcomes, defects


def main(module: str, doc: str, child, options=lambda parser: None, more=lambda args: []) -> int:
    """The command line. child(first, last, args) runs cases: it calls begin, end and defect below."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the others follow")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    options(parser)
    args = parser.parse_args()
    if args.child:
        child(*args.child, args)
        return 0
    _, defects = run(
        module, args.seed, args.count, args.jobs, more(args), lambda text: print(text, flush=True)
    )
    return bool(defects)


def _say(*words) -> None:
    os.write(1, (" ".join(map(str, words)).replace("\n", " | ") + "\n").encode("utf-8", "replace"))


def begin(seed: int) -> None:
    _say("begin", seed)


def end(outcome: str) -> None:
    _say("end", outcome)


def defect(what: str) -> None:
    _say("defect", what)
