"""Programs for several compiler processes, built where none is there yet: one has clang read the source,
while those that go on with it are started."""

import os
import signal
from pathlib import Path

import pytest

from cl_driver.service import client
from tests.runtime.service.test_processes import (
    alive,
    blocked,  # noqa: F401  # a fixture
    children,
    in_thread,
    parent,
    started_clangs,
    wait_until,
)
from tests.runtime.service_harness import EXPECTED, SOURCE, scaled

LONG = b"-" * 1500
MANY = SOURCE + b"".join(
    b"kernel void more%d(global float *a) { a[get_global_id(0)] += sin(a[%d]); } // %s\n" % (k, k, LONG)
    for k in range(3)
)


@pytest.fixture
def service(make_service, monkeypatch):
    """With no process yet, and nothing that starts one."""
    for server in client._servers:
        server.close()
    client._servers.clear()
    made = make_service()
    if made.most_processes() < 2:
        pytest.skip("one CPU")
    return made


@pytest.fixture
def asked(service, monkeypatch):
    """(operation, the process that did it) of each request."""
    from cl_driver.service.process import Process

    found, send = [], Process.send

    def note(process, request, budget):
        found.append((request[0], process))
        send(process, request, budget)

    monkeypatch.setattr(Process, "send", note)
    return found


def operations(asked) -> list[str]:
    return [operation for operation, _ in asked]


def test_clang_has_a_process_that_the_others_are_not(service, asked):
    executable, log = service.build_source(MANY, "", {})
    assert executable and not executable.missing(), log
    assert scaled(executable) == EXPECTED
    assert operations(asked)[:2] == ["compile_source", "prepare"]
    first, *others = (process for _, process in asked)
    assert first not in others
    wait_until(lambda: not alive(first.pid))
    assert 1 <= len(service._pool().processes()) <= service.most_processes()
    assert first.pid not in service._pool().processes()


def test_no_more_processes_are_started_than_there_are_kernels(service):
    service._pool().limit = 16
    kernels = MANY.count(b"kernel void")
    assert service.build_source(MANY, "", {})[0]
    assert service._pool()._count == kernels


def test_who_starts_them_imports_what_they_need(service):
    service.build_source(MANY, "", {})
    for pid in service._pool().processes():
        server = parent(Path(f"/proc/{pid}"))
        assert "libllvm" in Path(f"/proc/{server}/maps").read_text().lower()


def test_it_is_the_program_that_one_process_makes(service, make_service, monkeypatch):
    executable, log = service.build_source(MANY, "-cl-kernel-arg-info", {})
    alone = make_service(CACHE_DIR="")
    monkeypatch.setattr(alone, "_processes_for", lambda source: 1)
    expected, expected_log = alone.build_source(MANY, "-cl-kernel-arg-info", {})
    assert executable.to_bytes() == expected.to_bytes() and log == expected_log


def test_with_processes_that_are_there_it_is_one_request(service, asked):
    service.build_source(SOURCE, "", {})
    asked.clear()
    executable, log = service.build_source(MANY, "", {})
    assert executable, log
    assert operations(asked)[0] == "build_source"
    service.build_source(MANY, "", {})  # the cache has it
    assert operations(asked).count("build_source") == 1


def test_errors_of_the_source_are_in_the_log(service, asked):
    executable, log = service.build_source(MANY + b"kernel void wrong() { nothing = 1; }\n", "", {})
    assert executable is None and "nothing" in log
    assert operations(asked) == ["compile_source"]


def test_what_clang_said_comes_before_what_linking_said(service, asked):
    source = MANY + b"#warning of clang\nvoid absent(void);\nkernel void wrong() { absent(); }\n"
    executable, log = service.build_source(source, "", {})
    assert executable is None and operations(asked) == ["compile_source", "prepare"]
    assert 0 <= log.find("of clang") < log.rfind("absent")


def test_files_that_it_included_are_known_to_the_cache(service, asked, tmp_path):
    header = tmp_path / "factor.h"
    source = MANY + b'#include "factor.h"\nkernel void k(global float *a) { a[0] = FACTOR; }\n'
    header.write_text("#define FACTOR 2.0f\n")
    os.utime(header, (1, 1))  # not while the build was running
    assert service.build_source(source, f"-I {tmp_path}", {})[0]
    asked.clear()
    assert service.build_source(source, f"-I {tmp_path}", {})[0] and not asked
    header.write_text("#define FACTOR 3.0f // another\n")
    assert service.build_source(source, f"-I {tmp_path}", {})[0] and asked


def test_the_first_process_may_be_killed_once(service, asked, blocked):  # noqa: F811
    text, options = blocked
    thread, results = in_thread(service.build_source, MANY + text, options, {})
    started_clangs(service)
    (operation, process), *_ = asked
    assert operation == "compile_source"
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: len(asked) > 1 and asked[-1][1].pid)
    assert operations(asked) == ["compile_source"] * 2
    wait_until(lambda: started_clangs(service))
    os.kill(asked[-1][1].pid, signal.SIGKILL)
    thread.join(60)
    ((executable, log),) = results
    assert executable is None and "ended unexpectedly" in log
    assert scaled(service.build_source(SOURCE, "", {})[0]) == EXPECTED


def test_the_process_that_is_there_first_gets_work_first(service):
    pool = service._pool()
    service.build_source(SOURCE, "", {})
    (first,) = pool.processes()
    pool.start(2)
    taken = pool._take(wait=True)
    assert taken.pid == first
    pool._give(taken)
    assert not children(first)
