"""Kernels that a build leaves to be compiled when they are asked for."""

import os
import signal
import threading

import pytest

from cl_driver.api import on_demand
from cl_driver.api.errors import CLError
from cl_driver.api.generated import enums as cl
from cl_driver.api.program import DeviceBuild
from cl_driver.jit.errors import CompileError
from cl_driver.jit.executable import Executable
from cl_driver.service import client, jobs
from tests.runtime.service.test_processes import in_thread, wait_until
from tests.runtime.service_harness import EXPECTED, SOURCE, scaled

# Much to compile, for any number of processes; "scale" is one of them.
COUNT = 70 * max(1, len(os.sched_getaffinity(0)))
MANY = SOURCE + b"".join(b"kernel void k%d(global int *a) { a[0] = %d; }\n" % (i, i) for i in range(COUNT))


def build(service, source=MANY) -> Executable:
    executable, log = service.build_source(source, "", {})
    assert executable, log
    return executable


def get(service, executable, *names):
    """Adds kernels to an executable, as the control plane does."""
    missing = executable.missing()
    wanted = {name: missing[name] for name in names if name in missing}
    made = service.kernels(executable.options, executable.il, wanted, missing, len(executable.kernels))
    for code in made.values():
        executable.add(*code)
    return made


@pytest.fixture
def requests(monkeypatch):
    """requests(service): a list of what its processes are asked for from now on."""

    def listen(service):
        asked, run = [], service._pool().run

        def note(requests, budget):
            asked.extend(requests)
            return run(requests, budget)

        monkeypatch.setattr(service._pool(), "run", note)
        return asked

    return listen


def test_a_build_of_many_kernels_compiles_none(make_service):
    service = make_service()
    executable = build(service)
    assert executable.kernels == [] and executable.objects == []
    assert executable.names == ["scale", *(f"k{i}" for i in range(COUNT))]
    made = get(service, executable, "scale")
    assert list(made) == ["scale"] and scaled(executable) == EXPECTED


def test_a_build_of_few_kernels_compiles_all(make_service):
    assert not build(make_service(COMPILE_KERNELS="auto"), b"\n".join(MANY.splitlines()[:4])).missing()


def test_a_second_service_finds_build_and_kernels_in_the_cache(make_service):
    service = make_service()
    first = build(service)
    get(service, first, "scale")
    service = make_service()
    second = build(service)
    assert second.kernels == [] and second.names == first.names
    get(service, second, "scale")
    assert second == first and scaled(second) == EXPECTED and not service._pools
    get(service, second, "k7")
    assert service._pools


def test_all_kernels_are_shared_out_and_found_again(make_service, requests):
    service = make_service()
    executable = build(service)
    asked = requests(service)
    get(service, executable, *executable.names)
    assert not executable.missing() and scaled(executable) == EXPECTED
    assert len(asked) <= 16 * service._pool().limit
    service = make_service()
    get(service, executable := build(service), *executable.names)
    assert not executable.missing() and not service._pools


@pytest.mark.parametrize("when", ["build", "create"])
def test_the_setting_decides(make_service, when):
    few = b"\n".join(MANY.splitlines()[:2])
    for source in (SOURCE, few, MANY):
        executable = build(make_service(COMPILE_KERNELS=when), source)
        assert bool(executable.missing()) == (when == "create")


def test_what_a_build_left_another_completes(make_service):
    """The settings differ, the entry in the cache is one."""
    few = b"\n".join(MANY.splitlines()[:3])
    assert len(build(make_service(COMPILE_KERNELS="create"), few).missing()) == 3
    assert not build(make_service(COMPILE_KERNELS="build"), few).missing()


def test_in_process(make_service):
    service = make_service(COMPILE="inprocess")
    executable = build(service)
    assert executable.kernels == []
    get(service, executable, "scale")
    assert scaled(executable) == EXPECTED and not service._pools


def test_a_dump_has_all_kernels(make_service, tmp_path):
    service = make_service(DUMP=tmp_path / "dump", COMPILE_KERNELS="create")
    assert not build(service, SOURCE).missing()
    assert (tmp_path / "dump" / "scale.ll").exists()


def test_threads_that_want_one_kernel_compile_it_once(make_service, requests):
    service = make_service()
    executable = build(service)
    asked, barrier = requests(service), threading.Barrier(8)

    def want():
        barrier.wait()
        return service.kernels(executable.options, executable.il, {"scale": 70, "k1": 70}, {}, 0)

    answers = [in_thread(want) for _ in range(8)]
    for thread, _ in answers:
        thread.join(60)
    assert sorted(name for request in asked for name in request[-1]) == ["k1", "scale"]
    [first, *others] = [results[0] for _, results in answers]
    assert all(other == first for other in others)
    assert all(other["scale"][0] is not first["scale"][0] for other in others)  # executables number them
    assert service._kernels._in_hand == {}


BAD = b"""
kernel void good(global int *a) { a[0] = 1; }
kernel void wide(global int *a) { %s }
"""


@pytest.mark.long
def test_a_kernel_that_takes_too_long_is_no_other_kernels_fault(make_service):
    """The time is for each call."""
    statements = "".join(f"a[{i}] = a[{i + 1}] * a[a[{i}]] + {i};" for i in range(6000))
    service = make_service(COMPILE_KERNELS="create")
    executable = build(service, BAD % statements.encode())
    service = make_service(COMPILE_TIMEOUT=1)
    with pytest.raises(CompileError, match="CL_DRIVER_COMPILE_TIMEOUT"):
        get(service, executable, "wide")
    with pytest.raises(CompileError, match="CL_DRIVER_COMPILE_TIMEOUT"):
        get(service, executable, "good", "wide")
    assert list(get(service, executable, "good")) == ["good"]
    assert service._kernels._in_hand == {}


def test_the_log_says_why_a_kernel_cannot_be_compiled(make_service, monkeypatch):
    service = make_service(COMPILE_KERNELS="create")
    executable = build(service, b"\n".join(MANY.splitlines()[:3]))
    builds = [DeviceBuild(), DeviceBuild()]
    monkeypatch.setattr(client, "service", lambda: service)

    def run(requests, budget):
        raise CompileError("kernel 'k0': it is beyond us\n")

    with monkeypatch.context() as patch:
        patch.setattr(service, "run", run)
        with pytest.raises(CLError) as failure:
            on_demand.compile_kernels(executable, ["k0"], builds)
    assert failure.value.code == cl.CL_OUT_OF_RESOURCES and "beyond us" in str(failure.value)
    assert [build.log for build in builds] == ["kernel 'k0': it is beyond us\n"] * 2
    on_demand.compile_kernels(executable, ["k0"], builds)  # the next one may have more luck
    assert executable.kernel("k0")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            "int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }"
            "kernel void k(global int *a) { a[0] = f(a[1]); }",
            "recursion",
        ),
        ("kernel void k(global int *a) { local int b[1 << 28]; b[a[0]] = 1; a[1] = b[a[2]]; }", "local"),
        ("int g(int); kernel void k(global int *a) { a[0] = g(a[1]); }", "g"),
        (
            "kernel __attribute__((intel_reqd_sub_group_size(7))) void k(global int *a) { a[0] = 1; }",
            "sub-groups of 7",
        ),
    ],
    ids=["recursion", "local memory", "undefined", "sub-groups"],
)
def test_builds_fail_for_what_is_wrong_with_a_program(make_service, source, why):
    """Whether kernels are compiled by them or not."""
    for when in ("build", "create"):
        service = make_service(COMPILE_KERNELS=when)
        executable, log = service.build_source(source.encode(), "", {})
        assert executable is None and why in log, when


def test_a_killed_process_is_replaced(make_service):
    service = make_service()
    executable = build(service)
    [*before] = service._pool().processes()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    get(service, executable, "scale")
    assert scaled(executable) == EXPECTED


def test_a_fork_does_not_wait_for_threads_that_it_does_not_have(monkeypatch, tmp_path):
    monkeypatch.setenv("CL_DRIVER_CACHE_DIR", str(tmp_path / "cache"))
    client._services.clear()
    try:
        service = client.service()
        executable = build(service)
        service._kernels._take(
            service.entries.key("kernel", "", executable.il), {"scale": 1}
        )  # and never done
        pid = os.fork()
        if not pid:
            try:
                signal.alarm(60)
                get(client.service(), executable, "scale")
                assert scaled(executable) == EXPECTED
                client.unload()
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        client.unload()
        client._services.clear()


def test_idle_processes_compile_what_may_be_asked_for_next(make_service, requests):
    """After some were asked for, kernels that follow and are no larger, if there is somebody to do it."""
    service = make_service()
    executable = build(service)
    if service._pool().limit < 2:
        pytest.skip("one CPU")
    service._pool().limit = 2  # however many CPUs there are
    asked = requests(service)
    service._pool().start(2)
    for i in range(3):
        assert list(get(service, executable, f"k{i}")) == [f"k{i}"]
    get(service, executable, "k3")
    wait_until(lambda: service._pool().idle() == 2)
    made = get(service, executable, "k4")
    assert list(made) == ["k4", "k5"] and executable.kernel("k5")
    assert [request[-1] for request in asked[-2:]] == [["k4"], ["k5"]]
    assert list(get(service, executable, "scale")) == ["scale", "k6"]
    busy = service._pool()._take(wait=True)
    assert list(get(service, executable, "k9")) == ["k9"]
    service._pool()._give(busy)


def test_what_is_compiled_ahead_may_fail(make_service, monkeypatch):
    service = make_service()
    executable = build(service)
    run, failed = service.run, []

    def fail_ahead(requests, budget):
        if len(requests) > 1:
            failed.append(requests)
            raise CompileError("not that one")
        return run(requests, budget)

    monkeypatch.setattr(service, "spare_processes", lambda wanted: 1)
    monkeypatch.setattr(service, "run", fail_ahead)
    made = service.kernels("", executable.il, {"scale": 100}, executable.missing(), 4)
    assert list(made) == ["scale"] and len(failed) == 1


def test_processes_keep_the_programs_that_they_read_last():
    """Hosts take turns between programs."""
    job = client.Service().job("")
    modules = [jobs.compile_source(job, SOURCE + b"// %d" % i, {})[0] for i in range(2)]
    first = jobs._prepare(job, modules[0])
    assert jobs._prepare(job, modules[0]) is first
    other = {**job, "options": "-cl-mad-enable"}
    second = jobs._prepare(other, modules[0])
    assert jobs._prepare(job, modules[0]) is first and jobs._prepare(other, modules[0]) is second
