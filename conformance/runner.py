"""Runs jobs, several at a time, each under a guard (guard.py), and says what became of them."""

from __future__ import annotations

import concurrent.futures
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from .results import Result
from .sets import Job

GUARD = Path(__file__).resolve().parent / "guard.py"
MOST_OUTPUT = 64 << 20  # bytes of a log; a sub-test that prints more is stopped
SKIP = re.compile(
    r"skip|not support|unsupported|does(n't| not) support|requires|no .* support", re.IGNORECASE
)
FAIL = re.compile(r"error|fail|mismatch|unexpected|wrong|invalid|assert", re.IGNORECASE)
# What the CTS's own frame prints around a sub-test says nothing of the reason.
FRAME = re.compile(
    r"^(PASSED|FAILED|SKIPPED) |^(Saving|Supports|sizeof|Initializing|Requesting|Compute Device)"
    r"|^Device latest|test (not supported|skipped)$|sub-tests?\.?$",
)


def environment(vendors: Path | None, more: list[str], out: Path) -> dict[str, str]:
    """The programs' variables: this tree's driver unless told otherwise, and a compile cache of the run's."""
    root = GUARD.parent.parent
    found = {
        "OCL_ICD_VENDORS": f"{root / 'build' / 'vendors'}/",
        "CL_DRIVER_CACHE_DIR": str(out / "cache"),
        **os.environ,
        **dict(setting.split("=", 1) for setting in more),
    }
    if vendors:
        found["OCL_ICD_VENDORS"] = f"{vendors.resolve()}/"
    return found


def last_lines(log: Path, size: int = 1 << 16) -> str:
    """The end of a log as text, whatever was printed."""
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - size))
        return file.read().decode(errors="replace")


def reason_of(pattern: re.Pattern, text: str, last: bool) -> str:
    """The first or the last line that matches and isn't of the CTS's own frame, cut to 160 characters."""
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    found = [line for line in lines if pattern.search(line) and not FRAME.search(line)]
    line = found[-1 if last else 0] if found else ""
    return re.sub(r"[^\x21-\x7e]+", " ", line).strip()[:160]


def judge(answer: dict, answers: Path, log: Path, limit: float) -> tuple[str, str]:
    """(outcome, reason) by how the program ended, the results file that the CTS writes, and the log."""
    if answer["why"] == "timeout":
        return "timeout", f"not done after {limit:g} s"
    if answer["why"]:
        return "fail", f"stopped: {answer['why']}"
    if answer["status"] < 0:
        return "crash", signal.Signals(-answer["status"]).name
    try:
        told = list(json.loads(answers.read_text(errors="replace"))["results"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        told = []
    text = last_lines(log)
    if answer["status"] == 0 and told and set(told) <= {"pass", "skip"}:
        if "pass" in told:
            return "pass", ""
        return "skip", reason_of(SKIP, text, True) or "no reason given"
    reason = reason_of(FAIL, text, False)
    if not told:
        return "fail", reason or f"no results, exit status {answer['status']}"
    return "fail", reason or f"exit status {answer['status']}"


def run_one(job: Job, out: Path, variables: dict[str, str], life: int) -> Result:
    """One job under a guard, with a temporary folder of its own."""
    log = out / "logs" / job.suite.replace("/", "-") / f"{job.test.replace('/', '-')}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    answers, temporary = log.with_suffix(".json"), log.with_suffix(".tmp")
    answers.unlink(missing_ok=True)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    folder = Path(job.command[0]).parent
    added = {"CL_CONFORMANCE_RESULTS_FILENAME": str(answers), "TMPDIR": str(temporary)}
    shown = " ".join(
        f"{k}={shlex.quote(v)}"
        for k, v in variables.items()
        if os.environ.get(k) != v or k.startswith(("OCL_", "CL_"))
    )
    start = f"# cd {shlex.quote(str(folder))} && env {shown} {shlex.join(job.command)}\n"
    log.write_text(start)
    with log.open("ab") as output:
        guard = subprocess.run(
            [sys.executable, "-I", "-S", GUARD, str(life), str(job.limit), str(MOST_OUTPUT), *job.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=folder,
            start_new_session=True,
            pass_fds=(life,),
            env={**variables, **added},
            check=False,
        )
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        answer = json.loads(guard.stdout)
        outcome, reason = judge(answer, answers, log, job.limit)
    except ValueError:
        answer = {"seconds": 0.0, "cpu": 0.0, "left": 0}
        outcome, reason = "crash", f"could not be run: {reason_of(FAIL, last_lines(log), True)}"
    with log.open("a") as output:
        left = f", left {answer['left']} processes behind" if answer["left"] else ""
        took = f"{answer['seconds']} s, {answer['cpu']} s of CPU"
        output.write(f"\n# {outcome} after {took}{left}{': ' * bool(reason)}{reason}\n")
    where, arguments = str(log.relative_to(out)), list(job.command[1:])
    return Result(job.suite, job.test, outcome, answer["seconds"], reason, where, arguments, answer["cpu"])


def run_all(jobs: list[Job], out: Path, variables: dict[str, str], count: int) -> Iterator[Result]:
    """The results as they come, `count` at a time; started in the order given.

    All guards hold the reading end of one pipe: when this process ends, however it does, its writing end is
    closed and they end what they guard.
    """
    life, mine = os.pipe()
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(run_one, job, out, variables, life) for job in jobs]
        try:
            for future in concurrent.futures.as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            os.close(mine)
    os.close(life)


def nice_time(seconds: float) -> str:
    """12 s, 3 min, 1 h 05 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


class Progress:
    """A line for each result, to the terminal and to a file, with what is left by the expected times."""

    def __init__(self, jobs: list[Job], expected: dict[str, float], count: int, log: Path):
        self.left = {job.key: expected.get(job.key, job.about) for job in jobs}
        self.total, self.count, self.log = len(jobs), count, log.open("a")
        self.spent = self.planned = 0.0
        self.start = time.monotonic()

    def say(self, line: str) -> None:
        print(line, flush=True)
        print(line, file=self.log, flush=True)

    def done(self, result: Result) -> None:
        self.planned += self.left.pop(result.key)
        self.spent += result.seconds
        # The machine may be slower than the one whose times are expected, or the driver.
        pace = (self.spent + 1) / (self.planned + 1)
        left = sum(self.left.values()) * pace / self.count
        number = f"[{self.total - len(self.left)}/{self.total}]"
        reason = f"  {result.reason}" if result.reason else ""
        self.say(
            f"{number:11} {result.outcome:7} {result.seconds:7.1f} s  {result.key}"
            f"{f'  ({nice_time(left)} left)' if self.left else ''}{reason}"
        )
