"""The benchmark's kernels in the check mode: python tests/peers/check_speed.py [--filter REGEX] [--full]

Each kernel of tests/bench runs at the size that tests can afford (--full: at that of the benchmark, without
oclgrind), with checks here and in Debian's oclgrind. Prints the times of a launch, their ratio, and what is
reported; exits with 1 if anything is here: these kernels are right.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys

import check_runs
from peers import ROOT

sys.path.insert(0, str(ROOT))
from tests.bench.cases import BENCHMARKS

SECONDS = 200


def run(checker: str, name: str, size: str) -> tuple[float, list[check_runs.Report], str]:
    """Milliseconds of a launch, the reports, and why there is none."""
    log = check_runs.FOLDER / "log"
    log.unlink(missing_ok=True)
    lines = f"load {name} own {size}".strip() + "\ntime 0.01\n"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.child"],
            input=lines,
            env=check_runs.environment_of(checker, log),
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return 0.0, [], "timed out"
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    logged = log.read_text(errors="replace") if log.exists() else ""
    parse = check_runs.oclgrind_reports if checker == "oclgrind" else check_runs.our_reports
    reports = parse(logged)
    why = next(
        (str(answer[key]) for answer in answers for key in ("error", "skipped") if answer.get(key)), ""
    )
    if len(answers) < 2 or why:
        return 0.0, reports, why or f"ended with {done.returncode}: {done.stderr[-200:]}"
    return min(answers[1]["times"]), reports, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="")
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    check_runs.prepare()
    ratios, alarms = [], 0
    for name in BENCHMARKS:
        if not re.search(arguments.filter, name):
            continue
        size = "" if arguments.full else "small"
        ours, reports, why = run("ours", name, size)
        plain = run("plain", name, size)[0]
        theirs, other, other_why = (0.0, [], "") if arguments.full else run("oclgrind", name, size)
        ratio = theirs / ours if ours and theirs else 0.0
        if ratio:
            ratios.append(ratio)
        told = ", ".join(f"{r.kind} {list(r.lines)}" for r in reports)
        others = ", ".join(f"{r.kind} {list(r.lines)}" for r in other[:3])
        alarms += len(reports)
        print(
            f"{name:20} {ours:10.3f} ms, {ours / plain if plain else 0:7.1f} times as without; oclgrind "
            f"{theirs:10.3f} ms ({ratio:7.1f}) {why} {told} | {other_why} {others}".rstrip(),
            flush=True,
        )
    if ratios:
        print(f"{len(ratios)} kernels, oclgrind takes {statistics.geometric_mean(ratios):.1f} times as long")
    print(f"{alarms} reports")
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
