"""Code for the values of arguments (CL_DRIVER_VALUE_CODE) is made when it should be, and does the same."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest

from tests.bench.cases import BENCHMARKS
from tests.bench.throughput import Child
from tests.loader.conftest import SANITIZE
from tests.marks import IS_EMULATED, more

MADE = r"there is code for values of arguments"
VERDICT = r"kernel (\w+): code for values of arguments takes [\d.]+ of the time, and is (not )?used"


@pytest.fixture
def run(run_client, tmp_path):
    """run(part, setting, **variables): the log of the client's part."""

    def client(part: str, setting: str, **variables) -> str:
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        variables |= {"CL_DRIVER_LOG": "calls", "CL_DRIVER_LOG_FILE": str(log)}
        run_client("value_code", part, env=variables | {"CL_DRIVER_VALUE_CODE": setting}, timeout=120)
        return log.read_text()

    return client


@pytest.mark.parametrize(
    "part, kernels, width, parts",
    [("types", 7, "", "")]
    + [("others", 1, *how) for how in (("", ""), ("4", "2x"))]
    + [more("others", 1, *how) for how in (("1", ""), ("8", "4y"), ("16", ""))],
)
def test_at_the_first_launch(run, part, kernels, width, parts):
    """Four versions of each kernel, and whatever has other values gets the code for all. (Where launches take
    long, as they do in an emulator, other code and one thread in place of several would be tried first.)"""
    alone = {"CL_DRIVER_THREADS": "1", "CL_DRIVER_GROUP_CODE": "off"} if IS_EMULATED else {}
    log = run(part, "now", CL_DRIVER_WIDTH=width, CL_DRIVER_PARTS=parts, **alone)
    assert len(re.findall(MADE, log)) == 4 * kernels


def test_with_code_for_the_local_size(run):
    """Four versions, whatever the local sizes."""
    log = run("others", "now", CL_DRIVER_GROUP_CODE="now")
    assert len(re.findall(MADE, log)) == 4


@pytest.mark.parametrize("part", ["types", "threads"])
def test_never(run, part):
    assert not re.findall(MADE, run(part, "off"))


@pytest.mark.clock
@pytest.mark.skipif(
    bool(SANITIZE or os.environ.get("CL_DRIVER_TEST_WIDTH")),
    reason="times mean nothing, or divisions by a constant save too little at that width",
)
def test_in_the_background(run):
    """Only once a kernel has run for a while; two values of n make two versions, both faster. That of another
    argument alone may be tried in between."""
    assert not re.findall(MADE, run("types", "background"))
    verdicts = re.findall(VERDICT, run("hot", "background"))
    assert verdicts.count(("hot", "")) == 2


@pytest.mark.clock
def test_from_the_cache(run, tmp_path):
    """What was made for a value once is not compiled again."""
    times = []
    for _ in range(2):
        log = run("others", "now", CL_DRIVER_CACHE_DIR=str(tmp_path / "cache"))
        times.append([int(time) for time in re.findall(r"kernel_variant: CL_SUCCESS \((\d+) us\)", log)])
    assert len(times[0]) == len(times[1]) >= 4
    assert 3 * sum(times[1]) < sum(times[0])


@pytest.mark.sanitize
@pytest.mark.parametrize("part", ["threads", "release"])
def test_while_it_is_made(run, part):
    """Launches of several threads, the release of everything, the end of the process."""
    run(part, "background")


def test_fork_while_it_is_made(run):
    run("forked", "background")


def test_kernels_of_the_benchmark(environment, tmp_path):
    """Addresses, loops, groups in lockstep, several launches."""
    names = {"matmul_tiled", "remap_modulo", "wave_steps"}
    (tmp_path / "dump").mkdir()
    additions = {"CL_DRIVER_VALUE_CODE": "now", "CL_DRIVER_GROUP_CODE": "now"}
    child = Child(environment | additions | {"CL_DRIVER_DUMP": str(tmp_path / "dump")}, tmp_path / "log")
    for name in sorted(names):
        path = tmp_path / "expected.npz"
        np.savez(path, **BENCHMARKS[name].case(small=True).expected())
        assert child.ask(f"load {name} {path} small", 60)["error"] is None
        assert child.ask("check", 60)["error"] is None
    child.close()
    assert {file.name.split(".")[0] for file in (tmp_path / "dump").rglob("*.values.o")} == names
