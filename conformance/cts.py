"""Runs a Khronos CTS build that is already there, each sub-test in a process of its own.

python -m conformance.cts CTS_BUILD [--set quick|wimpy|full] [--suites basic,api] [--tests PATTERN]
    [--jobs N] [--timeout SECONDS] [--out FOLDER] [--resume] [--compare FILE]

CTS_BUILD is the CMake build folder of KhronosGroup/OpenCL-CTS. The suites and their arguments come from the
CTS's own csv lists. Outcomes: pass, fail, skip, crash (killed by a signal), timeout. OUT (default
build/conformance) gets results.json, junit.xml, index.html and one log per sub-test. Exits with 1 if anything
failed, crashed or timed out, or with --compare if anything got worse against an earlier results.json.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from . import report

ROOT = Path(__file__).resolve().parent.parent
LISTS = {
    "quick": "opencl_conformance_tests_quick.csv",
    "full": "opencl_conformance_tests_full.csv",
    "wimpy": "opencl_conformance_tests_full.csv",
}
BAD = ("fail", "crash", "timeout")


@dataclass
class Result:
    """One sub-test: what happened, in how many seconds, and where its output is."""

    suite: str
    test: str
    outcome: str
    seconds: float
    log: str

    @property
    def key(self) -> str:
        return f"{self.suite}:{self.test}"


@dataclass(frozen=True)
class Suite:
    """A row of the csv list: title, executable and fixed arguments; patterns choose sub-tests."""

    name: str
    program: Path
    arguments: tuple
    patterns: tuple


def environment() -> dict:
    """This working tree's driver, unless the environment names another platform."""
    return {"OCL_ICD_VENDORS": f"{ROOT / 'build' / 'vendors'}/", **os.environ}


def read_list(build: Path, which: str) -> list[Suite]:
    """The suites of the CTS's csv list that this build has."""
    cache = (build / "CMakeCache.txt").read_text()
    source = Path(re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.MULTILINE)[1])
    suites = []
    for line in (source / "test_conformance" / LISTS[which]).read_text().splitlines():
        fields = [field.strip() for field in line.split(",")]
        if not line.strip() or line.startswith("#"):
            continue
        if fields[0].startswith("CL_DEVICE_TYPE"):
            if fields.pop(0) != "CL_DEVICE_TYPE_CPU":
                continue
        program, *arguments = fields[1].split()
        options = tuple(
            a
            for a in arguments
            if a.startswith(("-", "use_", "max_", "small_", "CL_"))
            or a in ("single", "multiple")
            or a.isdigit()
        )
        patterns = tuple(a for a in arguments if a not in options and a != "all")
        path = build / "test_conformance" / program
        if path.exists():
            extra = ("-w",) if which == "wimpy" and "-w" not in options else ()
            suites.append(Suite(Path(program).parent.as_posix(), path, options + extra, patterns or ("*",)))
    return suites


def sub_tests(suite: Suite) -> list[str]:
    """What `--list` prints, narrowed to the suite's patterns."""
    done = subprocess.run(
        [suite.program, "--list"], env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    names = [line.strip() for line in done.stdout.splitlines() if re.fullmatch(r"\s+[\w.+-]+", line)]
    return [n for n in names if any(fnmatch.fnmatch(n, p) for p in suite.patterns)]


def run_one(suite: Suite, test: str, out: Path, limit: float) -> Result:
    """One sub-test in a process group of its own, killed as a whole when its time is up."""
    label = "_".join(("".join(suite.arguments), test)).strip("_")
    log = out / "logs" / suite.name.replace("/", "-") / f"{label}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    answers = log.with_suffix(".json")
    answers.unlink(missing_ok=True)
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [suite.program, *suite.arguments, test],
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            cwd=suite.program.parent,
            start_new_session=True,
            env={**environment(), "CL_CONFORMANCE_RESULTS_FILENAME": str(answers)},
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
    seconds = round(time.monotonic() - start, 2)
    return Result(suite.name, label, judge(status, answers, test), seconds, str(log.relative_to(out)))


def judge(status: int | None, answers: Path, test: str) -> str:
    """The outcome by exit status and the results file that the CTS writes."""
    if status is None:
        return "timeout"
    if status < 0:
        return "crash"
    try:
        outcome = json.loads(answers.read_text())["results"].get(test)
    except (OSError, ValueError, KeyError):
        outcome = None
    if outcome == "skip":
        return "skip"
    return "pass" if status == 0 and outcome in ("pass", None) else "fail"


def worse(results: list[Result], earlier: Path) -> list[str]:
    """Prints what changed against an earlier results.json; the keys that got worse."""
    before = {f"{r['suite']}:{r['test']}": r["outcome"] for r in json.loads(earlier.read_text())["results"]}
    lost = []
    for result in results:
        old = before.get(result.key)
        if old is not None and old != result.outcome:
            print(f"{result.key}: {old} -> {result.outcome}")
            if result.outcome in BAD and old not in BAD:
                lost.append(result.key)
    return lost


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--set", choices=LISTS, default="quick")
    parser.add_argument("--suites", default="")
    parser.add_argument("--tests", default="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "conformance")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--compare", type=Path)
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "results.json"
    done = {}
    if arguments.resume and kept.exists():
        done = {f"{r['suite']}:{r['test']}": Result(**r) for r in json.loads(kept.read_text())["results"]}
    wanted = {s for s in arguments.suites.split(",") if s}
    suites = [
        s
        for s in read_list(arguments.build.resolve(), arguments.set)
        if not wanted or s.name in wanted or s.name.split("/")[0] in wanted
    ]
    work = [(s, t) for s in suites for t in sub_tests(s) if fnmatch.fnmatch(t, arguments.tests)]
    results = dict(done)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        todo = [
            pool.submit(run_one, s, t, out, arguments.timeout)
            for s, t in work
            if f"{s.name}:{'_'.join((''.join(s.arguments), t)).strip('_')}" not in done
        ]
        for number, future in enumerate(concurrent.futures.as_completed(todo), 1):
            result = future.result()
            results[result.key] = result
            print(
                f"[{number}/{len(todo)}] {result.outcome:8}{result.seconds:8.1f} s  {result.key}", flush=True
            )
            kept.write_text(json.dumps({"results": [asdict(r) for r in results.values()]}, indent=0))
    rows = sorted(results.values(), key=lambda r: r.key)
    report.write(out, rows)
    report.summary(rows)
    lost = worse(rows, arguments.compare) if arguments.compare else []
    return 1 if lost or (not arguments.compare and any(r.outcome in BAD for r in rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
