"""Latency of this driver, Intel's runtime and PoCL in one run, in nanoseconds, and the ratio to the faster.

python tests/bench/latency.py [--intel LIBDIR] [--pocl] [--repeat N]

The platforms take turns, and the least figure of all turns counts. --intel names the lib folder of a Python
environment with intel-opencl-rt and intel-cmplr-lib-rt; PoCL is Debian's pocl-opencl-icd. Exits with 1 if a
command of this driver takes more than 1.3 times as long as the faster peer's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.bench import platforms

HERE = Path(__file__).resolve().parent
BOUND = 1.3
BOUNDED = ("enqueue_finish", "enqueue", "set_kernel_arg", "read_4_bytes")


def run(program: Path, additions: dict) -> dict:
    """One run of the C program: {figure: nanoseconds}."""
    done = subprocess.run(
        [program], env={**os.environ, **additions}, capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        sys.exit(f"{additions}: {done.stderr.strip() or done.returncode}")
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    platforms.add_options(parser)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        program = work / "latency"
        subprocess.run(["gcc", "-O2", "-Wall", HERE / "latency.c", "-o", program, "-lOpenCL"], check=True)
        found = platforms.find(arguments, work)
        best: dict = {name: {} for name in found}
        for _ in range(arguments.repeat):
            for name, additions in found.items():
                for figure, value in run(program, additions).items():
                    best[name][figure] = min(value, best[name].get(figure, value))
    print(f"{'ns':20}" + "".join(f"{name:>14}" for name in best) + f"{'ratio':>10}")
    missed = []
    for figure in best["cl_driver"]:
        peers = [best[name][figure] for name in best if name != "cl_driver"]
        ratio = best["cl_driver"][figure] / min(peers) if peers else float("nan")
        row = "".join(f"{best[name][figure]:14.1f}" for name in best)
        print(f"{figure:20}{row}{ratio:10.2f}")
        if figure in BOUNDED and ratio > BOUND:
            missed.append(figure)
    if missed:
        print(f"slower than {BOUND} times the faster peer: {', '.join(missed)}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
