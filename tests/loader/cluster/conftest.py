"""A cluster of two workers for all tests, and one for each test that harms it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

HERE = Path(__file__).parent
PYTHON = os.environ.get("CL_DRIVER_TEST_CLUSTER_PYTHON", sys.executable)


class Cluster:
    """address: the scheduler's; pids: the workers', in the order of the devices."""

    def __init__(self, process: subprocess.Popen[str], environment: dict[str, str]) -> None:
        self.process = process
        self.pids: list[int] = []
        self._read()
        self.environment = environment | {
            "CL_DRIVER_CLUSTER": self.address,
            "CL_DRIVER_CLUSTER_PYTHON": PYTHON,
        }

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.address, *pids = self.process.stdout.readline().split()
        self.pids = [int(pid) for pid in pids]

    def wait_for_workers(self, count: int, gone: int) -> None:
        """Returns when there are so many workers again, without the process that has gone."""
        end = time.monotonic() + 120
        while len(self.pids) < count or gone in self.pids:
            assert time.monotonic() < end
            time.sleep(0.5)
            assert self.process.stdin is not None
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            self._read()

    def start(self, *scene: str, module: str = "host", **more: str) -> subprocess.Popen[str]:
        """Starts a scene of host.py, or another module; its standard input and output are pipes."""
        return subprocess.Popen(
            [sys.executable, "-m", f"tests.loader.cluster.{module}", *scene],
            cwd=ROOT,
            env=self.environment | more,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *scene: str, **more: str) -> str:
        """Plays a scene, which must end well. What it prints."""
        process = self.start(*scene, **more)
        text, _ = process.communicate(timeout=180)
        assert process.returncode == 0
        return text


@contextlib.contextmanager
def running(environment: dict[str, str]) -> Iterator[Cluster]:
    """A cluster of two workers of this tree's driver."""
    environment = environment | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [PYTHON, str(HERE / "local_cluster.py"), "2"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield Cluster(process, environment)
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:  # workers that were harmed may hold it up; they end without it
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def distributed() -> None:
    """Dask's distributed is there, for PYTHON."""
    found = subprocess.run([PYTHON, "-c", "import distributed"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"{PYTHON} has no distributed: CL_DRIVER_TEST_CLUSTER_PYTHON")


@pytest.fixture(scope="package")  # Dask works also where nobody asks for anything
def cluster(distributed, environment) -> Iterator[Cluster]:
    """A cluster that no test harms."""
    with running(environment) as found:
        yield found


@pytest.fixture
def own_cluster(distributed, environment) -> Iterator[Cluster]:
    """A cluster of the test's own."""
    with running(environment) as found:
        yield found
