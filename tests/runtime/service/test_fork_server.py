"""What starts compiler processes: shared by those of a host and of its forks that have the same rights."""

import ctypes
import os
import signal
from pathlib import Path

import pytest

from cl_driver.service import client
from tests.marks import needs_kernel
from tests.runtime.service.test_processes import alive, children, wait_until
from tests.runtime.service_harness import EXPECTED, SOURCE, scaled

_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP = 38, 22


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def has_llvm(pid: int) -> bool:
    """clang's library, or llvmlite's."""
    return "libllvm" in Path(f"/proc/{pid}/maps").read_text().lower()


@pytest.fixture
def host(monkeypatch, tmp_path):
    """The service of this process, with one compiler process that has built a program."""
    monkeypatch.setenv("CL_DRIVER_CACHE_DIR", str(tmp_path / "cache"))
    client.unload()
    client._services.clear()
    for server in client._servers:
        server.close()
    client._servers.clear()
    assert scaled(client.build_source(SOURCE, "")[0]) == EXPECTED
    yield client.service()
    client.unload()
    client._services.clear()


def in_fork(function) -> None:
    """Calls it in a fork of this process, where it must return."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            function()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def build_and_greet(options: str) -> int:
    """Builds with another process than that of the fixture, and says which."""
    assert scaled(client.build_source(SOURCE, options)[0]) == EXPECTED
    (compiler,) = client.service()._pool().processes()
    return compiler


def test_processes_of_a_host_are_forks_of_one_that_is_warm(host):
    (first,) = host._pool().processes()
    server = parent(first)
    assert not has_llvm(server)
    host._pool().start(2)
    wait_until(lambda: len(children(server)) >= 3)
    others = [pid for pid in children(server) if pid != first]
    assert sorted(map(name, others)) == ["clang-22", "python"]  # the clang that is loaded for all of them
    assert has_llvm(server) and all(has_llvm(pid) for pid in others if name(pid) == "python")


def test_a_fork_shares_what_starts_its_compilers(host):
    (first,) = host._pool().processes()

    def check() -> None:
        for options in ("-cl-mad-enable", "-cl-finite-math-only"):
            compiler = build_and_greet(options)
            assert compiler != first and parent(compiler) == parent(first)
            # It has no clang of its own.
            assert not [pid for pid in children(compiler) if name(pid).startswith("clang")]

    in_fork(check)
    in_fork(lambda: build_and_greet("-cl-no-signed-zeros"))
    assert alive(first)


def test_the_compiler_of_a_fork_with_fewer_rights_has_fewer(host):
    (first,) = host._pool().processes()

    def check() -> None:
        assert not ctypes.CDLL(None).prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        compiler = build_and_greet("-cl-mad-enable")
        assert parent(compiler) == parent(first)
        assert "NoNewPrivs:\t1" in Path(f"/proc/{compiler}/status").read_text()

    in_fork(check)


@needs_kernel
def test_a_fork_whose_system_calls_are_filtered_has_its_own(host):
    """No compiler process could get its filter."""
    (first,) = host._pool().processes()

    def check() -> None:
        allow = (ctypes.c_uint16 * 4)(6, 0, 0, 0x7FFF)  # BPF_RET: SECCOMP_RET_ALLOW
        program = (ctypes.c_uint64 * 2)(1, ctypes.addressof(allow))
        libc = ctypes.CDLL(None, use_errno=True)
        assert not libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        assert not libc.prctl(_SET_SECCOMP, 2, ctypes.byref(program)), ctypes.get_errno()
        compiler = build_and_greet("-cl-mad-enable")
        assert parent(compiler) != parent(first)
        assert "Seccomp:\t2" in Path(f"/proc/{compiler}/status").read_text()

    in_fork(check)


def test_that_of_one_on_other_processors_is_on_these(host):
    (first,) = host._pool().processes()
    some = os.sched_getaffinity(0)
    if len(some) < 2:
        pytest.skip("there is one processor")

    def check() -> None:
        os.sched_setaffinity(0, {min(some)})
        assert os.sched_getaffinity(build_and_greet("-cl-mad-enable")) == {min(some)}

    in_fork(check)
    assert os.sched_getaffinity(first) == some


def test_a_server_that_is_killed_is_replaced(host):
    (first,) = host._pool().processes()
    server = parent(first)
    for pid in (server, first):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(server) and not alive(first))
    assert parent(build_and_greet("-cl-mad-enable")) != server


def test_a_compiler_that_is_killed_leaves_no_clang(host):
    """Its clang is not its own child, but forked for it by one that others use as well."""
    lines = [b"#define A%d A%d A%d" % (n, n - 1, n - 1) for n in range(1, 61)]
    endless = b"\n".join([b"#define A0 1+", *lines, b"#if A60 0", b"#endif", SOURCE])
    (first,) = host._pool().processes()
    server = parent(first)
    child = os.fork()
    if not child:
        client.build_source(endless, "")
        os._exit(0)

    def reading() -> list[int]:
        loaded = [pid for pid in children(server) if name(pid).startswith("clang")]
        return [clang for pid in loaded for clang in children(pid)]

    wait_until(reading)
    clangs = reading()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    wait_until(lambda: not any(map(alive, clangs)))
    # And one that is killed itself, so that it can tell nobody.
    child = os.fork()
    if not child:
        client.build_source(endless, "")
        os._exit(0)
    wait_until(reading)
    clangs = reading()
    compilers = [pid for pid in children(server) if pid != first and name(pid) == "python"]
    os.kill(child, signal.SIGSTOP)  # it would ask for another one
    for pid in compilers:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(alive, clangs)))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_all_of_it_ends_with_the_host(host):
    (first,) = host._pool().processes()
    server = parent(first)
    in_fork(lambda: build_and_greet("-cl-mad-enable"))
    pids = [server, *children(server)]
    for process in list(host._pool()._idle):
        process.sock.close()
    for each in client._servers:
        each.close()
    wait_until(lambda: not any(map(alive, pids)))


def test_unloading_between_builds_costs_no_process(host):
    (first,) = host._pool().processes()
    for number in range(5):
        client.unload()
        assert scaled(client.build_source(SOURCE + b"// %d" % number, "")[0]) == EXPECTED
    assert host._pool().processes() == [first]
    server = parent(first)
    client.unload()
    wait_until(lambda: not alive(first) and not alive(server))
