"""Code for formats of images: what a launch waits for, what comes later.

native_shim/src/kernel/argument_specialisation.c chooses it.
"""

import re
import time

import numpy as np
import pytest

from tests.bench.cases import BENCHMARKS
from tests.bench.throughput import Child
from tests.marks import few, needs_kernel

MADE = r"kernel (\w+): there is code for values of arguments"

# Launches: the kinds of code that they have made, and how many pieces are for formats.
LAUNCHES = {
    "whole": ({"blur.soon.values"}, 1),
    "odd": ({"blur.soon.values"}, 1),
    "sizes": ({"blur.soon.values"}, 1),
    "large": ({"loops.soon.values"}, 3),
    "samplers": ({"blur.soon.values"}, 2),
    "far away": ({"blur.any"}, 0),
    "groups": ({"turn.soon.values"}, 1),
}

KERNELS = {"large": "loops", "groups": "turn"}  # else blur

# On a slow machine kernels run for long enough that better code is made, too.
NONE_LATER = {"CL_DRIVER_GROUP_CODE": "off"}


@pytest.fixture
def run(run_client, tmp_path):
    """run(part, **variables): kinds of code that were made, and how many pieces for formats."""

    def client(part: str, **variables):
        log, dump = tmp_path / "log", tmp_path / "dump"
        variables |= {"CL_DRIVER_LOG": "calls", "CL_DRIVER_LOG_FILE": str(log), "CL_DRIVER_DUMP": str(dump)}
        run_client("image_code", part, env=variables)
        made = {path.name.removesuffix(".o") for path in dump.glob("*.o")}
        return made, len(re.findall(MADE, log.read_text()))

    return client


@pytest.mark.parametrize("part", LAUNCHES)
def test_a_launch_waits_for_code_for_its_formats(run, part):
    """And for nothing else: the build makes none, as no launch would run it."""
    assert run(part, **NONE_LATER) == LAUNCHES[part]


@pytest.mark.parametrize("part", LAUNCHES)
def test_the_best_code_at_the_first_launch(run, part):
    kernel = KERNELS.get(part, "blur")
    made, count = run(part, CL_DRIVER_GROUP_CODE="now")
    assert made == ({"blur.any"} if part == "far away" else {f"{kernel}.any.values"})
    assert count == (part == "samplers") + (part != "far away")


@pytest.mark.parametrize("best", ["off", "now"], ids=["first", "best"])
def test_buffers_of_one_memory(run, best):
    """What assumes that they are apart is not run where they are not."""
    made, _ = run("sums", CL_DRIVER_GROUP_CODE=best)
    assert made == {"add.any.values" if best == "now" else "add.soon.values", "add.overlap"}


@pytest.mark.parametrize("part", LAUNCHES)
@pytest.mark.parametrize("width", few(["", "1", "4", "8"], 1))
def test_code_for_any_format(run, part, width):
    """Where a setting wants no other. A width that a setting asks for leaves nothing to be found out."""
    made, count = run(part, CL_DRIVER_VALUE_CODE="off", CL_DRIVER_WIDTH=width)
    kernel = KERNELS.get(part, "blur")
    assert count == 0 and not any(name.endswith(".values") for name in made)
    assert f"{kernel}.any" in made if not width else {"blur", "turn"} <= made


@pytest.mark.long
@pytest.mark.parametrize("settings", [
    {"CL_DRIVER_WIDTH": "1"}, {"CL_DRIVER_WIDTH": "4"}, {"CL_DRIVER_WIDTH": "8"}, {"CL_DRIVER_PARTS": "4y"},
    {"CL_DRIVER_PARTS": "2x"}, {"CL_DRIVER_VALUE_CODE": "now"},
])  # fmt: skip
@pytest.mark.parametrize("part", LAUNCHES)
def test_other_settings(run, part, settings):
    """The results are checked by the client."""
    _, count = run(part, **settings)
    assert (count > 0) == (part != "far away")


@pytest.mark.sanitize
def test_first_launches_of_several_threads(run):
    made, count = run("threads", **NONE_LATER)
    assert made == {"blur.soon.values"} and count >= 2


@needs_kernel
@pytest.mark.parametrize("runtime", ["embedded", "process"])
def test_code_for_formats_is_kept(run_client, tmp_path, runtime):
    """The second process finds all in the cache; what is not there, its compiler could not make."""
    environment = {"CL_DRIVER_RUNTIME": runtime, "CL_DRIVER_CACHE_DIR": str(tmp_path / "cache")}
    without_compiler = environment | {"CL_DRIVER_COMPILE_MEMORY": "1M"}
    for variables in (environment, without_compiler):
        for part in ("whole", "groups"):
            run_client("image_code", part, env=variables)
    assert run_client("image_code", "samplers", env=without_compiler, check=False).returncode
    run_client("image_code", "far away", env=environment)
    run_client("image_code", "samplers", env=without_compiler)  # by code for any format


@pytest.mark.clock
def test_the_best_code_comes_later(environment, tmp_path):
    """Once the kernel has run for a while; the results stay right."""
    name, dump = "image_box_rgba8", tmp_path / "dump"
    path = tmp_path / "expected.npz"
    np.savez(path, **BENCHMARKS[name].case(small=True).expected())
    child = Child(environment | {"CL_DRIVER_DUMP": str(dump)}, tmp_path / "log")
    assert child.ask(f"load {name} {path} small", 60)["error"] is None
    assert {file.name for file in dump.glob("*.o")} == {"image_box.soon.values.o"}
    end = time.monotonic() + 60
    while not (dump / "image_box.any.values.o").exists() and time.monotonic() < end:
        assert "times" in child.ask("time 0.1", 60)
        assert child.ask("check", 60)["error"] is None
    assert (dump / "image_box.any.values.o").exists()
    for _ in range(5):
        assert "times" in child.ask("time 0.02", 60)
        assert child.ask("check", 60)["error"] is None
    child.close()
