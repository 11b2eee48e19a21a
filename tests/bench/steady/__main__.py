"""What a trace or a profile costs a host that enqueues at a steady rate: python -m tests.bench.steady

Runs steady.c with and without CL_DRIVER_TRACE (--with: another setting) in turns, on one CPU, so that no
thread spins for another, and prints the medians of the differences between runs side by side: CPU time of all
threads, and what the calls took in the host's thread, in µs a command and in percent of the time of the run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
VENDORS = f"{ROOT / 'build' / 'vendors'}/"


def run(command: list[str], variables: dict[str, str]) -> dict[str, float]:
    """The figures of one run, in ms; SystemExit if it did not keep its rate."""
    environment = {"OCL_ICD_VENDORS": VENDORS, **os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr or f"{command} ended with {done.returncode}")
    return {name: float(number) for name, number in map(str.split, done.stdout.splitlines())}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=10000, help="commands a second")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--items", type=int, default=16384, help="work-items of each launch")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument(
        "--with", dest="setting", default="CL_DRIVER_TRACE", help="a setting that is a file's name"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/steady"
        subprocess.run(
            ["cc", "-O2", "-o", program, Path(__file__).with_name("steady.c"), "-lOpenCL"], check=True
        )
        cpu = str(max(os.sched_getaffinity(0)))
        sizes = [str(arguments.rate), str(arguments.seconds), str(arguments.items)]
        command = ["taskset", "-c", cpu, program, *sizes]
        pairs = [
            (run(command, {}), run(command, {arguments.setting: f"{folder}/file"}))
            for _ in range(arguments.pairs)
        ]
    for name in ("cpu", "busy", "wall"):
        more = statistics.median(on[name] - off[name] for off, on in pairs)
        off = statistics.median(off[name] for off, _ in pairs)
        each = more * 1e3 / pairs[0][0]["commands"]
        share = more / pairs[0][0]["wall"]
        print(f"{name}: {off:.1f} ms, and {more:.1f} more: {each:.2f} µs a command, {share:.2%} of the time")


if __name__ == "__main__":
    main()
