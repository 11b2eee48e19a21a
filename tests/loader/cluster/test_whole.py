"""The device that is all workers, on which launches are cut."""

import os
import signal

import pytest

from .test_cluster import traced


@pytest.mark.parametrize(
    "scene, alone",
    [
        ("maps", 0), ("products", 0), ("stencils", 0), ("bodies", 0), ("sums", 2), ("combinations", 0),
        ("alone", 4), ("ids", 0),
        ("events", 0), ("local_sizes", 0), ("buffers", 0), ("images", 0),
    ],
)  # fmt: skip
def test_scene(whole, tmp_path, scene, alone):
    """alone: launches that one worker executes."""
    log = tmp_path / "log"
    whole.run(scene, module="whole", CL_DRIVER_LOG="calls", CL_DRIVER_LOG_FILE=str(log))
    assert log.read_text().count("one worker executes the launch") == alone


@pytest.mark.parametrize(
    "scene, alone", [("planes", 0), ("outside", 0), ("data", 1), ("kinds", 0), ("views", 0)]
)
def test_images_that_are_written(whole, tmp_path, scene, alone):
    log = tmp_path / "log"
    whole.run(scene, module="whole_images", CL_DRIVER_LOG="calls", CL_DRIVER_LOG_FILE=str(log))
    assert log.read_text().count("one worker executes the launch") == alone


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.release)])
def test_random_kernels(whole, tmp_path, seed):
    log = tmp_path / "log"
    whole.run(str(seed), "40", module="random_cuts", CL_DRIVER_LOG="calls", CL_DRIVER_LOG_FILE=str(log))
    assert log.read_text().count("one worker executes the launch") < 20


def test_random_kernels_that_are_cut_at_first(whole, tmp_path):
    """Contents that parts have left on all workers one worker goes on with, and the other way round."""
    log = tmp_path / "log"
    more = {"CL_DRIVER_CLUSTER_CUT": "measured", "CL_DRIVER_LOG": "calls", "CL_DRIVER_LOG_FILE": str(log)}
    whole.run("3", "20", "4", module="random_cuts", **more)
    assert 20 <= log.read_text().count("instead of") < 80


def test_launches_of_little_work(whole, tmp_path):
    """By what it has measured the driver cuts those that take longer than messages, and no others."""
    log = tmp_path / "log"
    more = {"CL_DRIVER_CLUSTER_CUT": "measured", "CL_DRIVER_LOG": "calls", "CL_DRIVER_LOG_FILE": str(log)}
    whole.run("little", module="whole", **more)
    text = log.read_text()
    # Each is cut the first time, and until its contents are worth moving.
    assert 60 <= text.count("one worker executes the launch of in_place") < 120
    assert 30 <= text.count("one worker executes the launch of histogram") < 60
    assert "one worker executes the launch of bodies" not in text


def test_launches_before_anything_is_known(whole, tmp_path):
    """Those that follow the first ones of their kernel wait until it is known how long these have taken."""
    log = tmp_path / "log"
    more = {"CL_DRIVER_CLUSTER_CUT": "measured", "CL_DRIVER_LOG": "calls", "CL_DRIVER_LOG_FILE": str(log)}
    whole.run("burst", module="whole", **more)
    assert log.read_text().count("one worker executes the launch of in_place") >= 180


def test_launches_that_are_independent(whole, tmp_path):
    """Each worker has some of them, and those of a buffer stay where it is."""
    _, tracks = traced(whole, tmp_path, "independent", module="whole", CL_DRIVER_CLUSTER_CUT="measured")
    counts = [len(tracks[f"Worker {number}"]) for number in (1, 2)]
    # Of 160 launches those of little work are cut until the halves that this left are worth moving: that is
    # measured, and comes sooner on a slow machine. Never are all ten of each array cut.
    assert min(counts) >= 50 and 160 <= sum(counts) < 160 + 8 * 8, counts
    counts = [sum(one.name == "scatter" for one in tracks[f"Worker {number}"]) for number in (1, 2)]
    assert sum(counts) == 80 and not any(count % 10 for count in counts), counts


@pytest.mark.parametrize("scene", ["few_rows", "few_sums"])
def test_little_work_of_one_kind(whole, tmp_path, scene):
    """No launch has nothing but its message."""
    log = tmp_path / "log"
    more = {"CL_DRIVER_CLUSTER_CUT": "measured", "CL_DRIVER_LOG": "calls", "CL_DRIVER_LOG_FILE": str(log)}
    whole.run(scene, module="whole", **more)
    assert 20 <= log.read_text().count("one worker executes the launch") < 60


def test_messages_that_take_long(far, tmp_path):
    """What is worth cutting depends on the link: work of less time than a message takes is not."""
    log = tmp_path / "log"
    place = f"{far.address};whole"
    far.run(
        "some_work",
        module="whole",
        CL_DRIVER_CLUSTER=place,
        CL_DRIVER_LOG="calls",
        CL_DRIVER_LOG_FILE=str(log),
    )
    assert 16 <= log.read_text().count("one worker executes the launch of bodies") < 64


def test_a_worker_that_is_killed(own_cluster):
    """What it executed ends with an error; what is launched then the other one executes."""
    process = own_cluster.start("killed", module="whole", CL_DRIVER_CLUSTER=f"{own_cluster.address};whole")
    assert process.stdout.readline() == "running\n"
    os.kill(own_cluster.pids[1], signal.SIGKILL)
    assert process.stdout.readline() == "done\n"
    os.kill(own_cluster.pids[0], signal.SIGKILL)
    process.communicate("\n", timeout=120)
    assert process.returncode == 0


@pytest.mark.parametrize("scene", ["trial", "alone"])
def test_a_launch_that_never_ends(own_cluster, scene):
    """What is independent of it ends."""
    try:
        own_cluster.run(scene, module="held_up", CL_DRIVER_CLUSTER=f"{own_cluster.address};whole")
    finally:
        for pid in own_cluster.pids:
            os.kill(pid, signal.SIGKILL)
