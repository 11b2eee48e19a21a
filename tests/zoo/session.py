"""A process of tests.zoo.child on one platform, and what it answers within a time limit."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.platforms import ROOT

BUILD_LIMIT, RUN_LIMIT = 300.0, 20.0
# What a run must not find: objects of an earlier one. A control plane of its own is what a C program has.
_CACHES = ("CL_DRIVER_CACHE_DIR", "POCL_CACHE_DIR")


class Dead(Exception):
    """The process ended, or was ended at its time limit; says which."""


class Session:
    """One platform. A process that died is started again when it is asked the next time."""

    def __init__(self, name: str, environment: dict[str, str], work: Path, cache: Path | None = None):
        self.name, self.work, self._cache = name, work, cache
        self._environment = {**os.environ, "CL_DRIVER_RUNTIME": "process", **environment}
        self._process: subprocess.Popen | None = None
        self._program: dict = {}
        self._log = work / f"{name}.stderr"
        self._built = False

    def build(self, text: str, options: str) -> dict:
        self._program = {"do": "build", "text": text, "options": options}
        self.close()
        answer = self._ask(self._program, BUILD_LIMIT)
        self._built = "kernels" in answer
        return answer

    def weigh(self, text: str, options: str) -> dict:
        """The memory that a build takes, in a process that ends then."""
        try:
            return self._ask({"do": "weigh", "text": text, "options": options}, BUILD_LIMIT)
        finally:
            self.close()

    def ask(self, message: dict, limit: float = RUN_LIMIT) -> dict:
        """Of the program that was built; builds it again where the process died since."""
        if self._process is None:
            self._ask(self._program, BUILD_LIMIT)
        return self._ask(message, limit)

    def _ask(self, message: dict, limit: float) -> dict:
        if self._process is None:
            # What is built again is built as at first: a process that finds its program in the cache would
            # start its compilers at a first launch.
            folder = self._cache or tempfile.mkdtemp(dir=self.work)
            caches = dict.fromkeys(_CACHES, str(folder))
            with self._log.open("w") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.zoo.child"],
                    cwd=ROOT,
                    env=caches | self._environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
        process = self._process
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise Dead(self._end()) from None
        ready, _, _ = select.select([process.stdout], [], [], limit)
        line = process.stdout.readline() if ready else b""
        if not line:
            raise Dead(self._end() if ready else f"no answer in {limit:.0f} s{self._kill()}")
        return json.loads(line)

    def _end(self) -> str:
        assert self._process
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            code = 0
        self._kill()
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return f"{name} {self.errors()[-400:]}".strip()

    def errors(self) -> str:
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    def _kill(self) -> str:
        if self._process:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._process.wait()
            self._process = None
        return ""

    def close(self) -> None:
        """Ends the process."""
        if self._process and self._process.stdin:
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                pass
        self._kill()
