"""Code for the local size of a launch (CL_DRIVER_GROUP_CODE) is made when it should be, and does the same."""

import time

import numpy as np
import pytest

from tests.bench.cases import BENCHMARKS
from tests.bench.throughput import Child
from tests.loader.opencl import SUB_GROUP_SIZE

pytestmark = pytest.mark.skipif(SUB_GROUP_SIZE < 8, reason="these groups are too many vectors of so few")

NAMES = ("bitonic_local", "fft_local", "matmul_tiled", "reduce_stride", "scan_hillis", "softmax")
LONG = ("edit_distance", "md5")  # whose loops are unrolled once it is worth it
FREE = ("black_scholes", "stencil5")  # which get several vectors at a time once it is worth it


@pytest.fixture
def child(environment, tmp_path):
    """A function that starts a child of tests/bench with a setting; what is compiled is left in dump/."""
    children = []

    def start(setting: str) -> Child:
        (tmp_path / "dump").mkdir()
        additions = {"CL_DRIVER_GROUP_CODE": setting, "CL_DRIVER_DUMP": str(tmp_path / "dump")}
        children.append(Child(environment | additions, tmp_path / "log"))
        return children[-1]

    yield start
    for started in children:
        started.close()


def load(child: Child, name: str, tmp_path) -> None:
    path = tmp_path / "expected.npz"
    np.savez(path, **BENCHMARKS[name].case(small=True).expected())
    assert child.ask(f"load {name} {path} small", 60)["error"] is None


def made(tmp_path, kind: str = "group") -> set[str]:
    """Kernels for which there is such code (variants.KINDS)."""
    return {path.name.split(".")[0] for path in (tmp_path / "dump").rglob(f"*.{kind}.o")}


def test_at_the_first_launch(child, tmp_path):
    started = child("now")
    for name in NAMES + LONG + FREE:
        load(started, name, tmp_path)
        assert started.ask("check", 60)["error"] is None
    assert made(tmp_path) == set(NAMES)
    assert made(tmp_path, "more") == set(LONG)
    assert made(tmp_path, "tiled") == set(FREE)


def test_never(child, tmp_path):
    started = child("off")
    load(started, "reduce_stride", tmp_path)
    assert "times" in started.ask("time 0.3", 60)
    assert not made(tmp_path)


@pytest.mark.clock
@pytest.mark.parametrize(
    ("name", "kind"), [("reduce_stride", "group"), ("black_scholes", "tiled"), ("md5", "more")]
)
def test_in_the_background(child, tmp_path, name, kind):
    started = child("background")
    load(started, name, tmp_path)
    assert not made(tmp_path, kind), "a kernel that has run for microseconds is not worth it"
    end = time.monotonic() + 60
    while not made(tmp_path, kind) and time.monotonic() < end:
        assert "times" in started.ask("time 0.1", 60)
        assert started.ask("check", 60)["error"] is None
    assert made(tmp_path, kind) == {name}
    for _ in range(5):
        assert "times" in started.ask("time 0.02", 60)
        assert started.ask("check", 60)["error"] is None
