"""Workers that try mutations side by side, and the run before that notes which tests reach what."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

from .mutations import Mutation
from .reach import Reach
from .worker import SELECTED

# One thread each: the workers are what runs side by side.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}

NOTICED = ("killed", "crash", "timeout")
UNREACHED = "unreached"  # no test calls the function


@dataclass(frozen=True)
class Result:
    """What came of a mutation: killed, crash, timeout; survived, unreached."""

    mutation: Mutation
    outcome: str
    by: str = ""  # the test that failed

    @property
    def has_survived(self) -> bool:
        """Whether no test noticed it."""
        return self.outcome not in NOTICED


def find_reach(folder: Path, tests: list[str], jobs: int) -> Reach:
    """The notes on some tests, from a run of theirs if there was none in this state of the tree. RuntimeError
    if they cannot be run. What fails is left out."""
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print("running the tests to see what they reach", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutate.reach", "--reach", str(folder)]
        command += ["-p", "no:cacheprovider", "-m", SELECTED, "-n", str(jobs), *tests]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        print(*done.stdout.splitlines()[-4:], sep="\n", flush=True)
        if done.returncode not in (0, 1):
            raise RuntimeError("the tests cannot be run")
        (folder / "done").touch()
    return Reach(folder)


class _Process:
    """A worker, started anew if it has died."""

    def __init__(self, arguments: list[str]):
        self._command = [sys.executable, "-m", "tests.mutate.worker", *arguments]
        self._process: subprocess.Popen[str] | None = None

    def ask(self, mutation: Mutation | None, tests: list[str], limit: float) -> dict[str, str]:
        """A worker's answer, "died" if there is none."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        request = {"mutation": mutation and astuple(mutation), "tests": tests, "limit": limit}
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"outcome": "died"}
        line = self._process.stdout.readline()
        answer: dict[str, str] = json.loads(line) if line else {"outcome": "died"}
        return answer

    def end(self) -> None:
        """Lets it end."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()


class Pool:
    """So many workers. Use it in a `with`."""

    def __init__(self, jobs: int, packages: list[str], tests: list[str], reach: Reach, test_seconds: float):
        self._reach, self._test_seconds = reach, test_seconds
        self._good: set[str] = set()  # tests that pass without a mutation
        self._bad: set[str] = set()  # and those that do not
        self._workers = [_Process([str(number), ",".join(packages), *tests]) for number in range(jobs)]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: Any) -> None:
        for worker in self._workers:
            worker.end()

    def _tests(self, mutation: Mutation) -> tuple[list[str], float]:
        """The tests of a mutation, and the time after which they hang."""
        tests = self._reach.choose(mutation.path, mutation.function, self._test_seconds)
        return tests, 10 + 4 * sum(self._reach.seconds[test] for test in tests)

    def _try(self, worker: _Process, mutation: Mutation, tests: list[str], limit: float) -> dict[str, str]:
        """A worker's answer. A test that fails without the mutation, too, when it follows the same others, is
        left out from then on."""
        while True:
            tests = [test for test in tests if test not in self._bad]
            if not tests:
                return {"outcome": UNREACHED}
            answer = worker.ask(mutation, tests, limit)
            by = answer.get("by", "")
            if by not in tests or by in self._good:
                return answer
            if worker.ask(None, tests[: tests.index(by) + 1], limit).get("by") != by:
                self._good.add(by)
                return answer
            self._bad.add(by)

    def run(self, chosen: list[Mutation], end: float) -> Iterator[Result]:
        """What comes of each mutation, as long as there is time, in the order in which they are done."""
        waiting: queue.SimpleQueue[Mutation] = queue.SimpleQueue()
        done: queue.SimpleQueue[Result | None] = queue.SimpleQueue()
        for mutation in chosen:
            waiting.put(mutation)

        def work(worker: _Process) -> None:
            try:
                while time.monotonic() < end:
                    result = self._result(worker, waiting.get_nowait(), end)
                    if result.outcome != "timeout" or time.monotonic() < end:
                        done.put(result)
            except queue.Empty:
                pass
            finally:
                done.put(None)

        threads = [threading.Thread(target=work, args=[worker]) for worker in self._workers]
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            result = done.get()
            if result is None:
                left -= 1
            else:
                yield result

    def _result(self, worker: _Process, mutation: Mutation, end: float) -> Result:
        """What comes of a mutation. At `end` it is broken off, as a timeout."""
        tests, limit = self._tests(mutation)
        limit = min(limit, max(end - time.monotonic(), 1))
        if not tests:
            return Result(mutation, UNREACHED)
        answer = self._try(worker, mutation, tests, limit)
        if answer["outcome"] == "died":  # of a mutation before this one, perhaps
            answer = self._try(worker, mutation, tests, limit)
        # A worker has no function of that name where a decorator or a class body has run it and let go.
        outcome = UNREACHED if answer["outcome"] == "unchanged" else answer["outcome"]
        return Result(mutation, outcome, answer.get("by", ""))
