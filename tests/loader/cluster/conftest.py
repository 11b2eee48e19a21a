"""A cluster of two workers for all tests, and one for each test that harms it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

HERE = Path(__file__).parent
PYTHON = os.environ.get("CL_DRIVER_TEST_CLUSTER_PYTHON", sys.executable)


class Hosts:
    """Programs with the devices of a cluster. address: the scheduler's, or the name of a file that has it."""

    def __init__(self, address: str, environment: dict[str, str]) -> None:
        self.address = address
        self.environment = environment | {"CL_DRIVER_CLUSTER": address, "CL_DRIVER_CLUSTER_PYTHON": PYTHON}

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


class Cluster(Hosts):
    """pids: the workers', in the order of the devices."""

    def __init__(self, process: subprocess.Popen[str], environment: dict[str, str]) -> None:
        self.process = process
        self.pids: list[int] = []
        super().__init__(self._read(), environment)

    def _read(self) -> str:
        assert self.process.stdout is not None
        address, *pids = self.process.stdout.readline().split()
        self.pids = [int(pid) for pid in pids]
        return address

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


class Apart(Hosts):
    """A scheduler and two workers that are processes of their own. processes: all of them, the scheduler
    first; pids: the workers', in the order of the devices."""

    def __init__(
        self, folder: Path, environment: dict[str, str], prefix: tuple[str, ...], at: list[str]
    ) -> None:
        """prefix: of the workers' command lines; at: the addresses of the scheduler and of the workers."""
        super().__init__(str(folder / "scheduler.json"), environment | {"PYTHONPATH": str(ROOT)})
        common = ["--scheduler-file", self.address, "--no-dashboard", "--host"]
        worker = ["--no-nanny", "--nthreads", "1", "--local-directory", str(folder)]
        self.processes = [self._begin("scheduler", *common, at[0], "--port", "0")]
        self.processes += [self._begin("worker", *common, at[1], *worker, prefix=prefix) for _ in range(2)]
        ready = (
            "import os, sys, distributed; c = distributed.Client(scheduler_file=sys.argv[1]); "
            "c.wait_for_workers(2, 60); print(*(pid for _, pid in sorted(c.run(os.getpid).items())))"
        )
        try:
            command = [PYTHON, "-c", ready, self.address]
            told = subprocess.run(command, check=True, timeout=90, stdout=subprocess.PIPE, text=True)
        except subprocess.SubprocessError:
            self.end()
            raise
        self.pids = [int(pid) for pid in told.stdout.split()]

    def _begin(self, kind: str, *arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*prefix, PYTHON, "-m", f"distributed.cli.dask_{kind}", *arguments],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def running(environment: dict[str, str], *arguments: str) -> Iterator[Cluster]:
    """A cluster of two workers of this tree's driver, or of local_cluster.py's arguments."""
    environment = environment | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [PYTHON, str(HERE / "local_cluster.py"), *(arguments or ("2",))],
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


@pytest.fixture(scope="package")
def whole(cluster) -> Hosts:
    """Its programs have a device that is all workers, too, on which all is cut that can be."""
    return Hosts(f"{cluster.address};whole", cluster.environment | {"CL_DRIVER_CLUSTER_CUT": "always"})


@pytest.fixture
def own_cluster(distributed, environment) -> Iterator[Cluster]:
    """A cluster of the test's own."""
    with running(environment) as found:
        yield found


@pytest.fixture
def apart(distributed, environment, tmp_path) -> Iterator[Apart]:
    """A cluster whose scheduler may end alone."""
    found = Apart(tmp_path, environment, (), ["127.0.0.1", "127.0.0.1"])
    yield found
    found.end()


DELAY = 50  # ms one way, of the slow link


@contextlib.contextmanager
def behind_link(environment: dict[str, str], folder: Path, *prefix: str) -> Iterator[Apart]:
    """A cluster whose workers are behind a link with DELAY, which loses 1 % of packets. prefix: of their
    command lines."""
    if os.geteuid() or not os.path.exists("/dev/net/tun") or not shutil.which("ip"):
        pytest.skip("needs root, /dev/net/tun and ip")
    name = f"cld{os.getpid()}"
    link = subprocess.Popen(
        [sys.executable, str(HERE / "slow_link.py"), name, str(DELAY), "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        addresses = link.stdout.readline().split()
        if not addresses:
            pytest.skip(f"there is no such link: {link.stderr.read()}")
        found = Apart(folder, environment, ("ip", "netns", "exec", name, *prefix), addresses)
        try:
            yield found
        finally:
            found.end()
    finally:
        link.stdin.close()
        link.wait(timeout=20)


@pytest.fixture
def far(distributed, environment, tmp_path) -> Iterator[Apart]:
    """A cluster whose workers are behind the slow link."""
    with behind_link(environment, tmp_path) as found:
        yield found


@pytest.fixture
def ahead(distributed, environment, tmp_path) -> Iterator[Apart]:
    """The same, of workers whose clocks are ahead of this machine's, by 1000 seconds."""
    prefix = ("unshare", "--time", "--monotonic", "1000", "--kill-child")
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("needs unshare, and root")
    with behind_link(environment, tmp_path, *prefix) as found:
        yield found
