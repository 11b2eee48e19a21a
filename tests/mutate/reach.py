"""Which tests reach which functions: a plugin of pytest that notes it, and the notes of a whole run.

    python -m pytest -p tests.mutate.reach --reach FOLDER ...    # a file of notes for each process

A function counts as reached by a test in which it was called, itself or one that is nested in it. What is
called while modules are imported counts for nobody.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from types import CodeType
from typing import Any

from tests.conftest import ROOT

PACKAGE = f"{ROOT / 'cl_driver'}{os.sep}"


def function_of(code: CodeType) -> str:
    """PATH:NAME of the outermost function that some code is of, or "" if it is none of the package's."""
    if not code.co_filename.startswith(PACKAGE):
        return ""
    name = code.co_qualname.partition(".<locals>")[0]
    return f"{code.co_filename.removeprefix(f'{ROOT}{os.sep}')}:{name}"


class Calls:
    """Notes the code that is called: by sys.monitoring where there is one, else by a profile function."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self._has_monitoring = sys.version_info >= (3, 12)
        if self._has_monitoring:
            monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
            self._monitoring = monitoring
            monitoring.use_tool_id(monitoring.PROFILER_ID, "reach")
            monitoring.register_callback(monitoring.PROFILER_ID, monitoring.events.PY_START, self._started)

    def _started(self, code: CodeType, _offset: int) -> Any:
        self.codes.add(code)
        return self._monitoring.DISABLE  # once for each test is enough

    def _profile(self, frame: Any, event: str, _argument: Any) -> None:
        if event == "call":
            self.codes.add(frame.f_code)

    def begin(self) -> None:
        """Forgets what was called."""
        self.codes.clear()
        if self._has_monitoring:
            self._monitoring.set_events(self._monitoring.PROFILER_ID, self._monitoring.events.PY_START)
            self._monitoring.restart_events()
        else:
            sys.setprofile(self._profile)

    def end(self) -> list[str]:
        """The functions that were called."""
        if self._has_monitoring:
            self._monitoring.set_events(self._monitoring.PROFILER_ID, 0)
        else:
            sys.setprofile(None)
        return sorted({name for code in self.codes if (name := function_of(code))})


class _Plugin:
    def __init__(self, folder: Path):
        self._file = folder / f"{os.getpid()}.jsonl"
        self._calls = Calls()
        self._start = 0.0
        self._has_failed = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._calls.begin()
        self._start, self._has_failed = time.perf_counter(), False

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._has_failed |= report.failed or report.skipped

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        functions, seconds = self._calls.end(), time.perf_counter() - self._start
        if not self._has_failed:
            with self._file.open("a") as notes:
                notes.write(json.dumps([nodeid, round(seconds, 3), functions]) + "\n")


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--reach", help="folder for notes on which test calls which function")


def pytest_configure(config: Any) -> None:
    # With xdist the tests run in its workers, which are given the same options.
    is_controller = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if not is_controller:
        config.pluginmanager.register(_Plugin(Path(config.getoption("--reach"))))


class Reach:
    """The notes of a run."""

    def __init__(self, folder: Path):
        self.seconds: dict[str, float] = {}
        self.tests: dict[str, list[str]] = {}  # of each function
        for file in sorted(folder.glob("*.jsonl")):
            for line in file.read_text().splitlines():
                test, seconds, functions = json.loads(line)
                self.seconds[test] = seconds
                for function in functions:
                    self.tests.setdefault(function, []).append(test)

    def choose(self, path: str, function: str, limit: float) -> list[str]:
        """The tests that a function's mutations are tried with, the most promising first: those of the file
        that is named like it, then by turns one of each test function, the quickest first; as many as take
        `limit` seconds together, but one at the least."""
        name = Path(path).stem
        turns: dict[str, int] = {}
        ranked = []
        for test in sorted(self.tests.get(f"{path}:{function}", ()), key=lambda t: (self.seconds[t], t)):
            of = test.partition("[")[0]
            turns[of] = turns.get(of, 0) + 1
            is_named = Path(test.partition("::")[0]).stem == f"test_{name}"
            ranked.append(((not is_named or turns[of] > 8), turns[of], self.seconds[test], test))
        chosen: list[str] = []
        for _, _, seconds, test in sorted(ranked):
            if chosen and seconds > limit:
                continue
            limit -= seconds
            chosen.append(test)
        return chosen
