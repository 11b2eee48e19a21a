"""Traces of programs (CL_DRIVER_TRACE, cl-driver run --trace), by a reader of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cl_driver.trace.packets import whole_size
from tests.conftest import ROOT
from tests.loader.tracing.reader import read
from tests.marks import needs_kernel


@pytest.fixture
def traced(run_client, tmp_path):
    """traced(scene, **variables): the trace of c/tools/trace.c."""

    def run(scene: str, returns: int = 0, **variables: str):
        path = tmp_path / "trace.pftrace"
        done = run_client(
            "tools/trace",
            scene,
            env={"CL_DRIVER_TRACE": str(path)} | variables,
            timeout=300,
            check=not returns,
        )
        assert done.returncode == returns, done.stderr
        data = path.read_bytes()
        assert whole_size(data) == len(data)
        return read(path)

    return run


@pytest.mark.parametrize("runtime", ["embedded", "process"])
def test_a_program(traced, runtime):
    trace = traced("plain", CL_DRIVER_RUNTIME=runtime, CL_DRIVER_CACHE_SIZE="0")
    assert list(trace.processes.values()).count("trace") == 1

    # Calls, on the track of the thread, with their arguments.
    launches = trace.named("clEnqueueNDRangeKernel", "host ")
    assert [launch.arguments["global_work_size"] for launch in launches] == ["65536"] * 2
    assert launches[0].arguments["local_work_size"] == "64" and launches[0].arguments["work_dim"] == 1
    assert [k.arguments["kernel_name"] for k in trace.named("clCreateKernel")] == ["twice", "more"]
    assert all(k.arguments["returns"] for k in trace.named("clCreateKernel"))
    errors = [s.arguments.get("error") for s in trace.named("clEnqueueReadBuffer")]
    assert errors == [None, "CL_INVALID_VALUE"]
    assert {s.arguments["error"] for s in trace.named("clGetEventProfilingInfo")} == {
        "CL_PROFILING_INFO_NOT_AVAILABLE"
    }

    # Commands: each once, in the order that the program asks for, their times in order.
    commands = trace.commands()
    assert sorted(c.name for c in commands) == ["marker", "more", "read buffer", "twice", "write buffer"]
    write, twice, more, back = (
        trace.named(n, "Queue")[0] for n in ("write buffer", "twice", "more", "read buffer")
    )
    assert write.end <= twice.begin and twice.end <= more.begin and more.end <= back.begin
    for command in commands:
        assert command.arguments["queued"] <= command.arguments["submitted"] <= command.begin <= command.end
    # Groups that need not be told apart are executed as larger ones.
    group = int(twice.arguments["local_size as executed"])
    assert twice.arguments["global_size"] == "65536" and group % 64 == 0
    assert write.arguments["bytes"] == back.arguments["bytes"] == 4 << 16
    assert twice.arguments["bytes of memory objects"] == 4 << 16
    assert twice.track == "Queue 1 (in order)" and more.track.startswith("Queue 2 (out of order)")

    # Arrows: from calls to commands, and to what waits.
    arrows = {(kind, a.name, b.name) for kind, a, b in trace.flows}
    assert ("enqueue", "clEnqueueNDRangeKernel", "twice") in arrows
    assert ("enqueue", "clEnqueueWriteBuffer", "write buffer") in arrows
    waits = sorted((a, b) for kind, a, b in arrows if kind == "dependency")
    assert waits == [("more", "read buffer"), ("twice", "marker"), ("twice", "more")]
    for kind, a, b in trace.flows:
        assert a.end <= b.begin or kind == "enqueue" and a.begin <= b.begin

    # Who has executed them, and counters.
    parts = [s for s in trace.named("twice") if s not in commands]
    assert sum(s.arguments["groups"] for s in parts) == (1 << 16) // group
    assert 4 << 16 <= max(trace.counters["Memory in use"]) < (4 << 16) + 4096  # with room behind buffers
    assert trace.counters["Queue 1: unfinished commands"][-1] == 0
    assert max(trace.counters["Queue 1: bandwidth of copies"]) > 0
    assert "Lost records" not in trace.counters

    # Stages of the build, of compiler processes.
    stages = [s for s in trace.slices if s.track == "stages of builds"]
    assert {"clang", "read and link SPIR-V", "passes", "write LLVM IR", "optimise", "generate code"} <= {
        s.name for s in stages
    }
    (build, *_) = trace.named("clBuildProgram")
    (clang, *_) = [s for s in stages if s.name == "clang"]
    assert build.begin < clang.begin < clang.end < build.end
    assert trace.processes[clang.process] == "cl_driver compiler"


def test_calls_nest_in_time(traced):
    trace = traced("plain")
    for piece in trace.slices:
        assert piece.begin <= piece.end
        if piece.parent:
            assert piece.parent.begin <= piece.begin and piece.end <= piece.parent.end


def test_threads_of_the_host(traced):
    """More records than the buffers hold at once: none is lost."""
    trace = traced("threads")
    calls = trace.named("clEnqueueNDRangeKernel")
    assert len(calls) == 4 * 3000
    assert len({call.track for call in calls}) == 4
    commands = trace.commands()
    assert len(commands) == 4 * 3000 and all(c.name == "twice" and c.end for c in commands)
    assert len({c.track for c in commands}) == 4
    assert sum(kind == "enqueue" for kind, _, _ in trace.flows) == 4 * 3000
    assert "Lost records" not in trace.counters


@pytest.mark.parametrize(("scene", "status"), [("killed", -9), ("exits", 0)])
def test_what_a_program_did_that_ended_in_the_middle(traced, scene, status):
    trace = traced(scene, returns=status)
    assert len([s for s in trace.named("twice", "Queue") if s.end]) == 10
    (slow,) = trace.named("slow", "Queue")
    assert not slow.end and slow.arguments["global_size"] == "1"


def test_a_fork_goes_on_in_the_same_file(traced):
    trace = traced("forks")
    assert list(trace.processes.values()).count("trace") == 2
    (more,) = trace.named("more", "Queue")
    (first, second) = trace.named("twice", "Queue")
    assert first.process == second.process != more.process
    assert first.end < more.begin < more.end < second.begin


def test_a_file_for_each_process(run_client, tmp_path):
    run_client("tools/trace", "forks", env={"CL_DRIVER_TRACE": f"{tmp_path}/of-%p"}, timeout=300)
    # The stages of builds may be in more files: a control plane can be a process of its own.
    traces = [read(path) for path in tmp_path.iterdir()]
    names = [[s.name for s in trace.commands()] for trace in traces]
    assert sorted(filter(None, names)) == [["more"], ["twice", "twice"]]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_workers_share_a_launch(traced):
    trace = traced("large")
    (launch,) = trace.named("slow", "Queue")
    parts = [s for s in trace.named("slow") if s is not launch]
    assert len({s.track for s in parts}) > 1
    assert all(launch.begin <= s.begin and s.end <= launch.end for s in parts)
    assert all(s.arguments["groups"] >= s.arguments["pieces"] >= s.arguments["stolen"] >= 0 for s in parts)


def test_a_file_is_begun_anew_unless_somebody_writes_to_it(run_client, client, variables, tmp_path):
    path = tmp_path / "trace"
    path.write_bytes(b"of another run")
    run_client("tools/trace", "plain", env={"CL_DRIVER_TRACE": str(path)}, timeout=300)
    assert len(read(path).named("twice", "Queue")) == 1
    program = str(client("tools/trace"))
    command = [sys.executable, "-m", "cl_driver.cli", "run", "--trace", str(path), "--"]
    shell = ["sh", "-c", f"{program} plain && {program} plain"]
    subprocess.run([*command, *shell], env=variables, cwd=ROOT, check=True, timeout=300)
    trace = read(path)
    assert len(trace.named("twice", "Queue")) == 2
    assert list(trace.processes.values()).count("trace") == 2


@needs_kernel
def test_pointers_of_calls_that_are_refused(traced):
    """They are looked at without trusting them: what cannot be read is shown as the pointer."""
    trace = traced("refused")
    *others, nowhere, odd, last = trace.named("clCreateKernel")
    assert others and nowhere.arguments["error"] == last.arguments["error"] == "CL_INVALID_PROGRAM"
    assert last.arguments["kernel_name"] == "last"
    assert odd.arguments["kernel_name"] == "? \u20ac ??"
    place = nowhere.arguments["kernel_name"]
    assert place % 4096 == 0
    (launch,) = trace.named("clEnqueueNDRangeKernel")
    for name in ("global_work_offset", "global_work_size", "local_work_size"):
        assert launch.arguments[name] == place
    (image,) = trace.named("clCreateImage")
    assert image.arguments["image_format"] == image.arguments["image_desc"] == place
    assert trace.named("clBuildProgram")[-1].arguments["options"] == place
    assert trace.named("clEnqueueReadBufferRect")[0].arguments["region"] == place
    made = trace.named("clCreateCommandQueueWithProperties")[-1]
    assert made.arguments["properties"] == place


def test_a_file_that_cannot_be_written(run_client, tmp_path):
    where = {"CL_DRIVER_TRACE": f"{tmp_path}/no/such/folder/trace", "CL_DRIVER_LOG": "errors"}
    done = run_client("tools/trace", "plain", env=where, timeout=300)
    assert "no/such/folder/trace cannot be written: No such file or directory" in done.stderr


def test_perfetto_knows_every_field(traced, tmp_path):
    """By the messages that Perfetto's own package has, where it is installed."""
    messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    traced("plain")
    trace = messages.Trace.FromString((tmp_path / "trace.pftrace").read_bytes())
    from google.protobuf import unknown_fields

    def look(message) -> None:
        assert not unknown_fields.UnknownFieldSet(message), message
        for descriptor, value in message.ListFields():
            if descriptor.message_type:
                for each in value if descriptor.is_repeated else [value]:
                    look(each)

    look(trace)
    assert {event.track_event.type for event in trace.packet} <= {0, 1, 2, 4}
