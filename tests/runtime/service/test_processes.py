"""The compile service works, whatever happens to compiler processes; and the protocol between them."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cl_driver import spawn
from cl_driver.api import entrypoint
from cl_driver.frontend import opencl_c
from cl_driver.frontend.options import parse
from cl_driver.service import client, pool, protocol
from tests.marks import needs_kernel
from tests.runtime.service_harness import EXPECTED, SOURCE, scaled

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def blocked():
    """A source that clang cannot finish reading: its preprocessor is to add up 2^60 numbers."""
    lines = [b"#define A%d A%d A%d" % (n, n - 1, n - 1) for n in range(1, 61)]
    return b"\n".join([b"#define A0 1+", *lines, b"#if A60 0", b"#endif", SOURCE]), ""


def in_thread(function, *args):
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*args)))
    thread.start()
    return thread, results


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def running_clangs(compiler: int) -> list[int]:
    """Those that read a program: children of the one that stays loaded, which is a child of another thread of
    this compiler process, or of what has started that (fork_server.py)."""
    starters = compiler, parent(Path(f"/proc/{compiler}"))
    processes = [path for path in Path("/proc").glob("[0-9]*") if parent(path) in starters]
    loaded = [int(path.name) for path in processes if is_clang(path)]
    return [child for pid in loaded for child in children(pid)]


def is_clang(process: Path) -> bool:
    try:
        return (process / "comm").read_text().startswith("clang")
    except OSError:
        return False


def parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def started_clangs(service) -> list[int]:
    """Waits until a service has clang read a program."""

    def running() -> list[int]:
        """One that was killed may be listed a while longer."""
        return [clang for pid in service._pool().processes() for clang in running_clangs(pid)]

    wait_until(lambda: service._pools and running())
    return running()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def of_server(service) -> list[str]:
    """The names of the children of what starts a service's compiler processes."""
    (compiler, *_) = service._pool().processes()
    return [
        (Path("/proc") / str(pid) / "comm").read_text().strip()
        for pid in children(parent(Path(f"/proc/{compiler}")))
    ]


def test_a_clang_is_started_before_who_needs_it(make_service):
    service = make_service()
    service.build_source(SOURCE, "", {})
    assert any(name.startswith("clang") for name in of_server(service))


def test_malloc_of_compilers_asks_for_large_pages(make_service):
    service = make_service()
    service.build_source(SOURCE, "", {})
    (compiler, *_) = service._pool().processes()
    for pid in (compiler, *children(parent(Path(f"/proc/{compiler}")))):
        variables = (Path("/proc") / str(pid) / "environ").read_bytes()
        for name, value in spawn.LARGE_PAGES.items():
            # GNU's C library ends each setting where the next one begins.
            assert f"{name}={value}".encode() in variables.replace(b"\0", b":")


def test_no_clang_is_started_where_nobody_needs_one(make_service):
    service = make_service()
    executable, log = service.build([opencl_c.compile(SOURCE, parse("")).spirv], "", {})
    assert executable, log
    assert not any(name.startswith("clang") for name in of_server(service))


def test_a_killed_compiler_is_a_failed_build_and_the_next_one_works(make_service, blocked):
    service = make_service()
    thread, results = in_thread(service.build_source, *blocked, {})
    for _ in range(2):
        clangs = started_clangs(service)
        os.kill(service._pool().processes()[0], signal.SIGKILL)
        wait_until(lambda clangs=clangs: not any(map(alive, clangs)))
    thread.join(60)
    executable, log = results[0]
    assert executable is None and "ended unexpectedly" in log
    assert scaled(service.build_source(SOURCE, "", {})[0]) == EXPECTED


def test_a_build_whose_compiler_is_killed_is_done_by_another(make_service, tmp_path):
    """By somebody who kills what is large, say: the program is not to blame."""
    clang = tmp_path / "clang-22"
    clang.write_text('#!/bin/sh\nsleep 1\nexec clang-22 "$@"\n')
    clang.chmod(0o755)
    service = make_service(CLANG=str(clang))
    thread, results = in_thread(service.build_source, SOURCE, "", {})
    wait_until(lambda: service._pools and any(process.started for process in service._pool()._all))
    os.kill(service._pool().processes()[0], signal.SIGKILL)
    thread.join(60)
    executable, log = results[0]
    assert executable, log
    assert scaled(executable) == EXPECTED


def test_an_idle_compiler_that_is_killed_is_not_missed(make_service):
    service = make_service()
    service.build_source(SOURCE, "", {})
    pid = service._pool().processes()[0]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid))
    executable, log = service.build_source(SOURCE, "-cl-mad-enable", {})
    assert executable, log
    assert scaled(executable) == EXPECTED
    assert pid not in service._pool().processes()


def test_a_compiler_that_dies_before_it_begins_is_replaced(make_service):
    service = make_service()
    service.build_source(SOURCE, "", {})
    pid = service._pool().processes()[0]
    os.kill(pid, signal.SIGSTOP)  # it looks alive when it gets the request
    thread, results = in_thread(service.build_source, SOURCE, "-cl-mad-enable", {})
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    thread.join(60)
    assert scaled(results[0][0]) == EXPECTED


@needs_kernel
def test_a_time_limit(make_service, blocked):
    service = make_service(COMPILE_TIMEOUT=2)
    start = time.monotonic()
    thread, results = in_thread(service.build_source, *blocked, {})
    clangs = started_clangs(service)
    thread.join(60)
    executable, log = results[0]
    assert executable is None and "2 s of CPU time (CL_DRIVER_COMPILE_TIMEOUT)" in log
    assert 1.5 < time.monotonic() - start < 60
    wait_until(lambda: not any(map(alive, clangs)))  # they end with their compiler process
    assert scaled(service.build_source(SOURCE, "", {})[0]) == EXPECTED


@needs_kernel
@pytest.mark.long
def test_a_compiler_that_waits_does_not_use_its_time(make_service, tmp_path):
    clang = tmp_path / "clang-22"
    clang.write_text('#!/bin/sh\nsleep 4\nexec clang-22 "$@"\n')
    clang.chmod(0o755)
    start = time.monotonic()
    executable, log = make_service(COMPILE_TIMEOUT=3, CLANG=clang).build_source(SOURCE, "", {})
    assert executable, log
    assert scaled(executable) == EXPECTED and time.monotonic() - start > 4


def test_a_compiler_ends_itself_when_its_cpu_time_is_over():
    """In the midst of LLVM say: another thread answers."""
    script = f"""
import socket, sys
sys.path.insert(0, {str(ROOT)!r})
from cl_driver.service import worker
clock = worker._Clock(socket.socket(fileno=int(sys.argv[1])), 0.5)
while clock.used() < 100:
    pass
"""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", script, str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
    theirs.close()
    kind, log = protocol.receive(ours)
    assert kind == protocol.FAILED and "0.5 s of CPU time (CL_DRIVER_COMPILE_TIMEOUT)" in log
    assert process.wait(60) == -signal.SIGKILL
    ours.close()


def test_each_process_has_what_is_left_of_the_time():
    budget, one, other = pool.Budget(10), object(), object()
    budget.take(one, 4.0)
    budget.take(one, 5.0)
    assert (budget.of(one), budget.of(other)) == (1, 10)
    budget.take(one, 5.0)
    assert 0 < budget.of(one) < 0.1
    assert 0 < budget.wait() <= 10 * pool._PATIENCE
    assert pool.Budget(0).of(one) == 0 and pool.Budget(0).wait() is None


@pytest.mark.parametrize(
    ("kind", "hard"),
    [
        ("NOFILE", False),
        ("NOFILE", True),
        ("STACK", False),
        ("STACK", True),
        ("FSIZE", False),
        ("DATA", False),
    ],
)
def test_limits_of_the_host(tmp_path, kind, hard):
    """Soft ones do not concern compilers; with few descriptors they work all the same."""
    limit = {"NOFILE": 20, "STACK": 1 << 16, "FSIZE": 4096, "DATA": 64 << 20}[kind]
    script = f"""
import resource, sys
sys.path.insert(0, {str(ROOT)!r})
from cl_driver.service import client
_, hard = resource.getrlimit(resource.RLIMIT_{kind})
resource.setrlimit(resource.RLIMIT_{kind}, ({limit}, {limit if hard else "hard"}))
for options in ("", "-w", "-cl-mad-enable"):
    executable, log = client.build_source({SOURCE!r}, options)
    assert executable, log
"""
    environment = {**os.environ, "CL_DRIVER_CACHE_DIR": str(tmp_path), "CL_DRIVER_CACHE_SIZE": "0"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_kernel
def test_a_memory_limit(make_service):
    executable, log = make_service(COMPILE_MEMORY="150M").build_source(SOURCE, "", {})
    assert executable is None and log
    assert scaled(make_service(COMPILE_MEMORY="4G").build_source(SOURCE, "", {})[0]) == EXPECTED


@needs_kernel
def test_the_last_words_of_a_compiler_are_in_the_log(make_service, blocked):
    """A failed assertion of LLVM's: the process aborts after a line on stderr."""
    service = make_service()
    thread, results = in_thread(service.build_source, *blocked, {})
    started_clangs(service)
    pid = service._pool().processes()[0]
    with open(f"/proc/{pid}/fd/2", "wb", buffering=0) as errors:
        errors.write(b"LLVM ERROR: Cannot select: the test\n")
    os.kill(pid, signal.SIGABRT)
    thread.join(60)
    executable, log = results[0]
    assert executable is None and "Cannot select: the test" in log


def test_a_compiler_ends_in_mid_work_when_its_user_is_gone(tmp_path, blocked):
    source, options = blocked
    script = f"""
import sys, threading, time
sys.path.insert(0, {str(ROOT)!r})
from cl_driver.service import client
threading.Thread(target=client.build_source, args=({source!r}, {options!r}), daemon=True).start()
while True:
    time.sleep(0.05)
    pools = client.service()._pools
    if pools and pools[0].processes():
        print(pools[0].processes()[0], flush=True)
        time.sleep(100)
"""
    environment = {**os.environ, "CL_DRIVER_CACHE_DIR": str(tmp_path / "cache")}
    user = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE)
    pid = int(user.stdout.readline())
    wait_until(lambda: running_clangs(pid))
    clangs = running_clangs(pid)
    user.kill()
    user.wait()
    wait_until(lambda: not any(map(alive, [pid, *clangs])))


def test_an_idle_compiler_goes(make_service):
    service = make_service(COMPILE_IDLE=1)
    service.build_source(SOURCE, "", {})
    pid = service._pool().processes()[0]
    wait_until(lambda: not alive(pid))
    executable, log = service.build_source(SOURCE, "-cl-mad-enable", {})
    assert executable, log
    assert scaled(executable) == EXPECTED


def test_a_host_that_closes_all_descriptors(make_service):
    """As daemons do: the numbers then stand for files of the host, which must be left alone."""
    service = make_service()
    service.build_source(SOURCE, "", {})
    process = service._pool()._idle[0]
    mine = os.open(os.devnull, os.O_RDWR)
    numbers = process.sock.fileno(), process.errors.number
    for number in numbers:
        os.dup2(mine, number)
    executable, log = service.build_source(SOURCE, "-cl-mad-enable", {})
    assert executable, log
    assert scaled(executable) == EXPECTED
    for number in numbers:
        assert os.path.samestat(os.fstat(number), os.fstat(mine))
        os.close(number)
    os.close(mine)


def test_programs_that_the_host_starts_get_no_descriptor(make_service):
    service = make_service()
    service.build_source(SOURCE, "", {})
    process = service._pool()._idle[0]
    assert not os.get_inheritable(process.sock.fileno())
    assert not os.get_inheritable(process.errors.number)


def test_unload_ends_the_compilers(make_service):
    service = make_service()
    service.build_source(SOURCE, "", {})
    pid = service._pool().processes()[0]
    service.unload()
    wait_until(lambda: not alive(pid))
    executable, log = service.build_source(SOURCE, "-cl-mad-enable", {})
    assert executable, log
    assert scaled(executable) == EXPECTED


def test_a_host_that_unloads_the_compiler_ends_the_compilers(monkeypatch, tmp_path):
    monkeypatch.setenv("CL_DRIVER_CACHE_DIR", str(tmp_path / "cache"))
    client._services.clear()
    try:
        assert client.build_source(SOURCE, "")[0]
        pid = client.service()._pool().processes()[0]
        entrypoint.call("clUnloadCompiler", [])
        wait_until(lambda: not alive(pid))
    finally:
        client.unload()
        client._services.clear()


def test_many_threads_at_once(make_service):
    service = make_service()
    sources = [SOURCE + b"// %d" % i for i in range(12)]
    threads = [in_thread(service.build_source, source, "", {}) for source in sources]
    for thread, results in threads:
        thread.join(60)
        assert scaled(results[0][0]) == EXPECTED
    assert len(service._pool().processes()) <= service._pool().limit


def test_a_fork_has_compilers_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("CL_DRIVER_CACHE_DIR", str(tmp_path / "cache"))
    client._services.clear()
    try:
        assert client.build_source(SOURCE, "")[0]
        before = client.service()._pool().processes()
        pid = os.fork()
        if not pid:
            try:
                assert scaled(client.build_source(SOURCE, "-cl-mad-enable")[0]) == EXPECTED
                assert not set(before) & set(client.service()._pool().processes())
                client.unload()
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert all(map(alive, before))
        assert scaled(client.build_source(SOURCE, "-cl-finite-math-only")[0]) == EXPECTED
        assert client.service()._pool().processes() == before
    finally:
        client.unload()
        client._services.clear()


def test_frames():
    ours, theirs = socket.socketpair()
    values = ["x", {"a": [1, None]}, b"bytes" * 100_000]
    thread, _ = in_thread(protocol.send, ours, values)
    assert protocol.receive(theirs) == values
    thread.join()
    for junk in (b"\0" * 8, b"\xff" * 8, b"\3\0\0\0\0\0\0\0abc", b"\1\0\0\0\0\0\0\0n"):
        ours.sendall(junk)
        with pytest.raises(protocol.Disconnected):
            protocol.receive(theirs)
    ours.close()
    with pytest.raises(protocol.Disconnected):
        protocol.receive(theirs)


def leave_closed(folder):
    """A working folder that this process is in and may not enter; root from exec on, without privileges."""
    os.chdir(folder)
    os.chmod(folder, 0)
    if not os.geteuid():
        drop_from_bounding_set = 24
        for capability in range(64):
            ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


def test_a_working_folder_that_may_not_be_entered(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "n.h").write_text("#define N 1\n")
    script = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from cl_driver.service import client
for source in ({SOURCE!r}, {SOURCE!r} + b"// include"):
    for options in ("", "-I .", "-I sub", "-w"):
        executable, log = client.build_source(source, options)
        assert executable, log
executable, log = client.build_source(b'#include "n.h"\\n' + {SOURCE!r}, "-I .")
assert executable is None and "n.h" in log and "127" not in log, log
"""
    environment = {**os.environ, "CL_DRIVER_CACHE_DIR": str(tmp_path), "CL_DRIVER_CACHE_SIZE": "0"}
    command = [sys.executable, "-I", "-c", script]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, preexec_fn=lambda: leave_closed(folder)
    )
    folder.chmod(0o700)
    assert done.returncode == 0, done.stderr
