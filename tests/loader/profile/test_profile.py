"""Profiles of a program whose work is known: what was executed, how often, how many bytes and work-items."""

from __future__ import annotations

import json
import re
import signal

import pytest

from tests.conftest import PATIENCE
from tests.marks import needs_kernel

ITEMS, LAUNCHES = 1 << 16, 10
RUNTIMES = ["embedded", "process"]

# Of each kind of value: the names, and what they are.
SHAPE = {
    "format": str, "program": str, "process": int, "wall_ns": int, "command_ns": int, "threads": int,
    "roofline": {"threads": int, "operations_per_second": int, "bytes_per_second": int},
    "kernels": list, "transfers": list,
    "building": {"calls": dict, "at_launches_ns": int, "background_ns": int},
    "waiting": {"calls": dict},
}  # fmt: skip
ENTRY = {
    "name": str, "failed": int, "time_ns": int, "least_ns": int, "most_ns": int, "thread_ns": int,
    "share": float,
}  # fmt: skip


def check(value, shape):
    """Whether a JSON value has all that it should have, of these types."""
    if isinstance(shape, dict):
        for name, inner in shape.items():
            assert name in value, name
            check(value[name], inner)
    else:
        assert isinstance(value, shape), (value, shape)


@pytest.fixture
def profiled(run_client, tmp_path):
    """profiled(how): runs the client; its profile, and the finished process."""

    def run(how: str, succeeds: bool = True, **env):
        file = tmp_path / "profile.json"
        done = run_client("tools/profile", how, env={"CL_DRIVER_PROFILE": str(file), **env}, check=succeeds)
        return json.loads(file.read_text()), done

    return run


def named(entries, name):
    (entry,) = [entry for entry in entries if entry["name"] == name]
    return entry


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_was_executed(profiled, runtime):
    profile, done = profiled("plain", CL_DRIVER_RUNTIME=runtime)
    assert done.stdout == done.stderr == ""
    check(profile, SHAPE)
    (kernel,) = profile["kernels"]
    assert (kernel["name"], kernel["launches"], kernel["work_items"]) == ("saxpy", LAUNCHES, LAUNCHES * ITEMS)
    assert (kernel["bytes_read"], kernel["bytes_written"]) == (2 * 4 * ITEMS * LAUNCHES, 4 * ITEMS * LAUNCHES)
    assert (kernel["operations"], kernel["bytes_known"]) == (2 * ITEMS * LAUNCHES, LAUNCHES)
    assert sum(code["launches"] for code in kernel["codes"].values()) == LAUNCHES
    assert sum(code["time_ns"] for code in kernel["codes"].values()) == kernel["time_ns"]
    found = {entry["name"]: (entry["commands"], entry.get("bytes")) for entry in profile["transfers"]}
    assert found == {
        "write buffer": (2, 2 * 4 * ITEMS),
        "fill buffer": (1, ITEMS),
        "copy buffer": (1, 100 * 12),
        "read buffer": (1, 40),
        "map": (1, None),
        "unmap": (1, None),
    }
    traffic = {name: named(profile["transfers"], f"{name} buffer") for name in ("fill", "copy")}
    assert (traffic["fill"]["bytes_read"], traffic["fill"]["bytes_written"]) == (0, ITEMS)
    assert (traffic["copy"]["bytes_read"], traffic["copy"]["bytes_written"]) == (1200, 1200)


def test_shares_and_times_add_up(profiled):
    profile, _ = profiled("plain")
    entries = profile["kernels"] + profile["transfers"]
    assert sum(entry["share"] for entry in entries) == pytest.approx(100, abs=0.01)
    assert sum(entry["time_ns"] for entry in entries) == profile["command_ns"] <= profile["wall_ns"]
    for entry in entries:
        check(entry, ENTRY)
        count = entry.get("launches", entry.get("commands"))
        assert count * entry["least_ns"] <= entry["time_ns"] <= count * entry["most_ns"]
        assert entry["thread_ns"] <= entry["time_ns"] * profile["threads"] + count * 1_000_000


def test_what_the_host_waited_for(profiled):
    profile, _ = profiled("plain")
    building, waiting = profile["building"]["calls"], profile["waiting"]["calls"]
    assert {name: call["count"] for name, call in building.items()} == {
        "clBuildProgram": 1,
        "clCreateKernel": 1,
    }
    assert {name: call["count"] for name, call in waiting.items()} == {
        "clFinish": 2, "clEnqueueWriteBuffer": 2, "clEnqueueReadBuffer": 1, "clEnqueueMapBuffer": 1,
    }  # fmt: skip
    assert all(0 <= call["busy_ns"] <= call["time_ns"] for call in waiting.values())
    assert waiting["clFinish"]["busy_ns"] > 0
    assert sum(call["time_ns"] for call in (*building.values(), *waiting.values())) <= profile["wall_ns"]


def test_threads_of_the_host(profiled):
    profile, _ = profiled("threads")
    (kernel,) = profile["kernels"]
    assert (kernel["launches"], kernel["work_items"]) == (4 * LAUNCHES, 4 * LAUNCHES * ITEMS)
    assert profile["waiting"]["calls"]["clFinish"]["count"] == 4


def test_command_buffers(profiled):
    """What they have recorded counts, each time that it is executed."""
    profile, _ = profiled("record")
    (kernel,) = profile["kernels"]
    assert (kernel["launches"], kernel["work_items"]) == (2 * LAUNCHES, 2 * LAUNCHES * ITEMS)
    assert kernel["thread_ns"] > 0 and kernel["share"] == 100


def test_commands_that_fail(profiled):
    """They have no time."""
    profile, _ = profiled("fail")
    (kernel,) = profile["kernels"]
    assert (kernel["launches"], kernel["failed"], kernel["time_ns"], kernel["least_ns"]) == (0, 1, 0, 0)


def test_a_forked_child_has_a_file_of_its_own(profiled, tmp_path):
    profile, done = profiled("fork")
    child = json.loads((tmp_path / f"profile.json.{done.stdout.strip()}").read_text())
    assert profile["kernels"][0]["launches"] == LAUNCHES
    assert (child["kernels"][0]["launches"], child["process"]) == (3, int(done.stdout))
    assert child["building"]["calls"] == {}


def test_each_process_has_its_number_in_the_name(profiled, run_client, tmp_path):
    done = run_client("tools/profile", "fork", env={"CL_DRIVER_PROFILE": f"{tmp_path}/%p.json"})
    profiles = [json.loads(file.read_text()) for file in tmp_path.glob("*.json")]
    assert {f"{profile['process']}.json" for profile in profiles} == {p.name for p in tmp_path.glob("*.json")}
    assert int(done.stdout) in [profile["process"] for profile in profiles] and len(profiles) == 2


@pytest.mark.parametrize(("how", "number"), [("terminate", signal.SIGTERM), ("abort", signal.SIGABRT)])
def test_programs_that_signals_end(profiled, how, number):
    profile, done = profiled(how, succeeds=False)
    assert done.returncode == -number
    assert profile["kernels"][0]["launches"] == LAUNCHES


def test_a_program_that_only_looks_has_none(run_client, tmp_path):
    done = run_client("tools/profile", "look", env={"CL_DRIVER_PROFILE": f"{tmp_path}/none"})
    assert done.stderr == "" and not (tmp_path / "none").exists()
    assert run_client("tools/profile", "look", env={"CL_DRIVER_PROFILE": "-"}).stderr == ""


def test_a_file_that_cannot_be_written(run_client, tmp_path):
    done = run_client("tools/profile", "plain", env={"CL_DRIVER_PROFILE": f"{tmp_path}/no/such/file"})
    assert done.stdout == done.stderr == ""


def test_the_table(run_client):
    table = run_client("tools/profile", "plain", env={"CL_DRIVER_PROFILE": "-"}).stderr
    (row,) = re.findall(r"^saxpy +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) .*$", table, re.MULTILINE)
    count, total, mean, least, share = map(float, row)
    assert count == LAUNCHES and least <= mean and 0 < share <= 100
    assert total == pytest.approx(mean * LAUNCHES / 1000, abs=0.01)
    for line in ("write buffer ", "building: ", "waiting: ", "this machine: "):
        assert f"\n{line}" in table


def test_the_roofline_is_measured_once(run_client, tmp_path):
    env = {"CL_DRIVER_PROFILE": str(tmp_path / "p.json"), "CL_DRIVER_CACHE_DIR": str(tmp_path / "cache")}
    found = []
    for _ in range(2):
        run_client("tools/profile", "plain", env=env)
        found.append(json.loads((tmp_path / "p.json").read_text())["roofline"])
    assert found[0] == found[1]
    assert found[0]["operations_per_second"] > 1e9 / PATIENCE and found[0]["bytes_per_second"] > 1e8
    (kept,) = (tmp_path / "cache").glob("v2-*/roofline-*")
    kept.write_text("123000000000 45000000000\n")
    run_client("tools/profile", "plain", env=env)
    roofline = json.loads((tmp_path / "p.json").read_text())["roofline"]
    assert (roofline["operations_per_second"], roofline["bytes_per_second"]) == (123e9, 45e9)
    kept.write_text("nonsense\n")
    run_client("tools/profile", "plain", env=env)
    assert re.fullmatch(r"\d+ \d+\n", kept.read_text())


@needs_kernel
@pytest.mark.parametrize(
    ("how", "why"),
    [
        (
            "forbidden",
            "the system forbids it: sysctl kernel.perf_event_paranoid, or a container's rules (error 13)",
        ),
        ("absent", "this machine, virtual perhaps, does not have them (error 2)"),
    ],
)
def test_hardware_counters_that_are_not_to_be_had(profiled, run_client, how, why):
    profile, _ = profiled(how, CL_DRIVER_PROFILE_HARDWARE="1")
    assert profile["no_hardware"] == f"no hardware counters: {why}"
    assert all("hardware" not in kernel for kernel in profile["kernels"])
    assert profile["kernels"][0]["launches"] == LAUNCHES
    assert "no_hardware" not in profiled(how)[0]  # nobody asked for them
    env = {"CL_DRIVER_PROFILE": "-", "CL_DRIVER_PROFILE_HARDWARE": "1"}
    assert run_client("tools/profile", how, env=env).stderr.splitlines()[-1] == profile["no_hardware"]


def test_hardware_counters(profiled):
    """Where the system has them: some machines of these tests do not."""
    profile, _ = profiled("plain", CL_DRIVER_PROFILE_HARDWARE="1")
    if "no_hardware" in profile:
        pytest.skip(profile["no_hardware"])
    counted = profile["kernels"][0]["hardware"]
    assert set(counted) == {"cycles", "instructions", "cache_misses", "branch_misses"}
    assert counted["instructions"] > LAUNCHES * ITEMS / 16 and counted["cycles"] > 0
