"""A process that tries mutations: it imports everything and collects the tests once, then forks for each.

The fork gives the function its changed code, in place, and runs the tests that it is told, up to the first
that fails. So no file is ever changed, and a mutation that crashes or hangs harms nobody. What tests start as
programs of their own has the code as it is in the files.

Requests are lines of JSON on stdin, answers on stdout, in that order:

    {"mutation": null or [fields of Mutation], "tests": [names], "limit": seconds}
    {"outcome": "killed", "by": test} or "survived", "timeout", "crash", "unchanged" (no such function)
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, TextIO

import pytest

from cl_driver.frontend import opencl_c
from tests.conftest import MADE, ROOT

from .mutations import Mutation, mutated

# As in `make check`.
SELECTED = "not clock and not long and not network"


TOOLS = ("clang", "spirv-as")  # programs whose names begin so: what they print depends on what they are given


def remember_compiled(folder: Path) -> None:
    """Keeps what clang and spirv-as make of each source, for all processes and runs. They are run by
    subprocess.run with the source on stdin, or by cl_driver/frontend/."""
    sources = [file.read_bytes() for file in sorted(Path(opencl_c.__file__).parent.glob("*.py"))]
    folder /= hashlib.sha256(b"".join(sources)).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    compile_, run = opencl_c.compile, subprocess.run

    def kept(key: Any, make: Callable[[], Any]) -> Any:
        path = folder / hashlib.sha256(repr(key).encode()).hexdigest()
        with contextlib.suppress(OSError):
            return pickle.loads(path.read_bytes())
        result = make()
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(pickle.dumps(result))
        fresh.replace(path)
        return result

    @functools.wraps(compile_)
    def compile_once(*arguments: Any, **options: Any) -> Any:
        return kept((arguments, options), lambda: compile_(*arguments, **options))

    @functools.wraps(run)
    def run_once(command: Any, **options: Any) -> Any:
        is_tool = isinstance(command, list) and Path(str(command[0])).name.startswith(TOOLS)
        if not is_tool or "input" not in options or "-" not in command:
            return run(command, **options)
        return kept((command, options), lambda: run(command, **options))

    opencl_c.compile, subprocess.run = compile_once, run_once  # type: ignore[assignment]


def import_package(folder: Path) -> None:
    """All modules of a folder, so that their functions are there to be changed."""
    for file in sorted(folder.rglob("*.py")):
        if file.name != "__main__.py":
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


class Worker:
    """What runs in place of pytest's loop over the tests."""

    def __init__(self, packages: list[str], requests: TextIO, answers: TextIO):
        self._packages = packages
        self._requests, self._answers = requests, answers
        self._failed = -1  # in a fork: where to say which test failed

    def pytest_runtestloop(self, session: Any) -> bool:
        items = {item.nodeid: item for item in session.items}
        for package in self._packages:
            import_package(ROOT / package)
        functions: dict[tuple[str, str], list[FunctionType]] = {}
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and isinstance(one.__code__.co_filename, str):
                functions.setdefault((one.__code__.co_filename, one.__code__.co_qualname), []).append(one)
        gc.collect()
        gc.freeze()
        for line in self._requests:
            request = json.loads(line)
            mutation = Mutation(*request["mutation"]) if request["mutation"] else None
            tests = [items[name] for name in request["tests"] if name in items]
            self._answer(self._try(mutation, functions, tests, request["limit"]))
        return True

    def _answer(self, answer: dict[str, str]) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()

    def _try(
        self,
        mutation: Mutation | None,
        functions: dict[tuple[str, str], list[FunctionType]],
        tests: list[Any],
        limit: float,
    ) -> dict[str, str]:
        changed: list[FunctionType] = []
        if mutation is not None:
            code = mutated(ROOT / mutation.path, mutation)
            of_name = functions.get((code.co_filename, code.co_qualname), [])
            changed = [f for f in of_name if f.__code__.co_firstlineno == code.co_firstlineno]
            if not changed:
                return {"outcome": "unchanged"}
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            self._failed = writing
            for function in changed:
                function.__code__ = code
            for item, following in zip(tests, [*tests[1:], None], strict=True):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            os._exit(0)
        os.close(writing)
        try:
            return self._wait(child, reading, limit)
        finally:
            os.close(reading)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)

    @staticmethod
    def _wait(child: int, reading: int, limit: float) -> dict[str, str]:
        end = time.monotonic() + limit
        by = b""
        while select.select([reading], [], [], max(end - time.monotonic(), 0))[0]:
            if not (text := os.read(reading, 4096)):
                break
            by += text
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"outcome": "timeout"}
        _, status = os.waitpid(child, 0)
        if by:
            return {"outcome": "killed", "by": by.decode()}
        return {"outcome": "crash" if status else "survived"}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self._failed >= 0:
            os.write(self._failed, report.nodeid.encode()[:4096])
            os._exit(1)


@contextlib.contextmanager
def _own_channels() -> Iterator[tuple[TextIO, TextIO]]:
    """stdin and stdout for the protocol alone: what tests print goes nowhere."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    with requests, answers:
        yield requests, answers


def main() -> int:
    """Arguments: a number of its own, folders of the package with commas between them, those of the tests."""
    number, packages, *tests = sys.argv[1:]
    folder = MADE / "mutate"
    if "cl_driver/frontend" not in packages.split(","):
        remember_compiled(folder / "clang")
    with _own_channels() as (requests, answers):
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", SELECTED, "--capture=no"]
        options += [f"--basetemp={folder / f'tmp-{number}'}", f"--rootdir={ROOT}"]
        worker = Worker(packages.split(","), requests, answers)
        return int(pytest.main([*options, *tests], plugins=[worker]))


if __name__ == "__main__":
    sys.exit(main())
