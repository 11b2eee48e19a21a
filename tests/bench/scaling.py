"""How the drivers use 1, 2, 4, ... CPUs: kernels, small launches, many queues, builds; beside OpenMP's triad.

python -m tests.bench.scaling [--intel LIBDIR] [--pocl] [--threads 1,2,4] [--rounds N] [--json FILE]

Each run is a process held to so many CPUs (sched_setaffinity). The drivers take turns, and the best figure of
all rounds counts. Efficiency is the time with one CPU over the time with n, divided by n.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import platforms

HERE = Path(__file__).resolve().parent
# Those of which each thread has its share, and which memory does not bound.
SHARED = ("chain", "uneven", "product", "histogram")
OPENMP = "OpenMP"


def higher_is_better(unit: str) -> bool:
    """Rates; the others are times."""
    return unit.endswith("/s")


def run(command: list[str], cpus: list[int], additions: dict[str, str]) -> dict[str, tuple[float, str]]:
    """One process: {figure: (value, unit)}; nothing if it failed, which is said on stderr."""

    def hold() -> None:
        os.sched_setaffinity(0, cpus)

    environment = {**os.environ, **additions}
    try:
        done = subprocess.run(
            command, env=environment, preexec_fn=hold, capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        print(f"{command} on {len(cpus)} CPUs: not done after 300 s: {additions}", file=sys.stderr)
        return {}
    if done.returncode:
        print(f"{command} on {len(cpus)} CPUs: {done.stderr.strip() or done.returncode}", file=sys.stderr)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name: (float(value), unit) for name, value, unit in lines}


def build(work: Path) -> dict[str, list[str]]:
    """Compiles the two programs."""
    scaling, stream = str(work / "scaling"), str(work / "stream")
    flags = ["gcc", "-O3", "-march=native", "-Wall"]
    subprocess.run([*flags, HERE / "scaling.c", "-o", scaling, "-lOpenCL", "-lpthread"], check=True)
    subprocess.run([*flags, "-fopenmp", HERE / "stream.c", "-o", stream], check=True)
    return {"scaling": [scaling], "build": [scaling, "build"], "stream": [stream]}


def measure(
    found: dict[str, dict[str, str]], threads: list[int], rounds: int, work: Path
) -> dict[tuple[str, int], dict[str, tuple[float, str]]]:
    """{(driver, CPUs): {figure: (best value, unit)}}."""
    programs = build(work)
    allowed = sorted(os.sched_getaffinity(0))
    best: dict[tuple[str, int], dict[str, tuple[float, str]]] = {}
    for _ in range(rounds):
        for count in threads:
            runs = [(name, additions, ("scaling", "build")) for name, additions in found.items()]
            for name, additions, which in [*runs, (OPENMP, {"OMP_PROC_BIND": "true"}, ("stream",))]:
                figures = best.setdefault((name, count), {})
                for program in which:
                    for figure, (value, unit) in run(programs[program], allowed[:count], additions).items():
                        old = figures.get(figure, (value, unit))[0]
                        figures[figure] = ((max if higher_is_better(unit) else min)(value, old), unit)
    return best


def table(best: dict[tuple[str, int], dict[str, tuple[float, str]]], threads: list[int]) -> list[str]:
    """A line for each figure and driver, its values by number of CPUs, and its efficiency."""
    names = list(dict.fromkeys(name for name, _ in best))
    figures = dict.fromkeys(figure for column in best.values() for figure in column)
    lines = [f"{'figure':38}{'driver':12}" + "".join(f"{count:>12}" for count in threads) + "  efficiency"]
    for figure in figures:
        for name in names:
            values = [best.get((name, count), {}).get(figure) for count in threads]
            unit = next((value[1] for value in values if value), None)
            if unit is None:
                continue
            row = "".join(f"{value[0]:12.2f}" if value else f"{'-':>12}" for value in values)
            first, last = values[0], values[-1]
            efficiency = ""
            if figure in SHARED and first and last:
                efficiency = f"{first[0] / last[0] * threads[0] / threads[-1]:12.2f}"
            lines.append(f"{figure + ' ' + unit:38}{name:12}{row}{efficiency}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    platforms.add_options(parser)
    parser.add_argument("--threads", help="numbers of CPUs; doubling up to all of them")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    most = len(os.sched_getaffinity(0))
    threads = [1 << i for i in range(most.bit_length()) if 1 << i <= most]
    if arguments.threads:
        threads = [int(text) for text in arguments.threads.split(",")]
    with tempfile.TemporaryDirectory() as name:
        best = measure(platforms.find(arguments, Path(name)), threads, arguments.rounds, Path(name))
    print("\n".join(table(best, threads)))
    if arguments.json:
        rows = [
            {"driver": name, "cpus": count, "figures": figures} for (name, count), figures in best.items()
        ]
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
