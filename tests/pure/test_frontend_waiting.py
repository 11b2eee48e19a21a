"""clang that waits for its program: who gets it, and what if it is gone."""

from __future__ import annotations

import errno
import os
import signal

import pytest

from cl_driver.frontend import clang, waiting
from cl_driver.frontend.options import parse

SOURCE = b"kernel void k(global float *p, float f) { p[get_global_id(0)] += f; }"


def compiled(options: str = "", source: bytes = SOURCE, **more) -> bytes:
    spirv = clang.compile(source, parse(options), language=clang.Language(), **more).spirv
    waiting.begin()
    return spirv


@pytest.fixture
def waiters(monkeypatch):
    """The children that wait, as a compiler process has them."""
    monkeypatch.setattr(waiting, "_allowed", True)
    monkeypatch.setattr(waiting, "_started", 0)
    monkeypatch.setattr(waiting, "_waiting", children := [])
    yield children
    for _, child in children:
        child.discard()


def test_only_a_compilers_own_process_has_them():
    assert not waiting._allowed
    compiled(), compiled()
    assert waiting._waiting == [] and not waiting.is_expected()


def test_the_third_program_finds_one(waiters):
    first = compiled()
    assert waiters == []
    assert compiled() == first
    [(_, child)] = waiters
    assert compiled() == first
    assert child.wait(timeout=60) == 0 and waiters[0][1] is not child
    assert compiled(source=SOURCE.replace(b"k(", b"other(")) not in (first, None)


def test_nothing_starts_before_it_is_time(waiters):
    compiled(), clang.compile(SOURCE, parse(""), language=clang.Language())
    assert waiters == [] and waiting.is_expected()
    waiting.begin(), waiting.begin()
    assert len(waiters) == 1 and not waiting.is_expected()


def test_other_options_get_another(waiters, tmp_path):
    compiled(), compiled()
    [(_, child)] = waiters
    assert compiled("-DN=1") is not None
    assert child.returncode == -signal.SIGKILL
    [(_, child)] = waiters
    assert compiled("-DN=1", folder=str(tmp_path)) is not None
    assert child.returncode == -signal.SIGKILL


def test_includes_are_followed_although_one_waits(waiters, tmp_path):
    compiled(), compiled()
    (tmp_path / "n.h").write_text("#define N 3\n")
    source = b'#include "n.h"\n' + SOURCE.replace(b"+= f", b"+= N")
    result = clang.compile(source, parse(f"-I{tmp_path}"), language=clang.Language())
    assert result.spirv is not None and result.dependencies == (str(tmp_path / "n.h"),)


def test_one_that_died_is_replaced(waiters):
    first = compiled()
    compiled()
    [(_, child)] = waiters
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert compiled() == first


def test_it_ends_when_its_input_does(waiters):
    compiled(), compiled()
    [(_, child)] = waiters
    child.stdin.close()
    assert child.wait(timeout=60) == 0


@pytest.mark.parametrize(
    "options", ["", "-Wall", "-Werror", "-w", "-cl-std=CLC++2021", "-cl-kernel-arg-info"]
)
@pytest.mark.parametrize("source", [
    SOURCE,
    b"static int idle(int n) { return n; }\n" + SOURCE,
    b"kernel void k(global int *p) { float *q = p; *p = no_such; }",
    b"#warning look\n#define N __LINE__ __FILE__ \nkernel void k(global int *p) { *p = sizeof N; }",
    b"kernel void k(global int *p) { *p = __INCLUDE_LEVEL__ + sizeof(__BASE_FILE__); }",
    b"kernel void k(global int *p) {",
    b"",
])  # fmt: skip
def test_what_waited_says_the_same(waiters, monkeypatch, options, source):
    """Modules, warnings and errors: the program's place is its own, whoever reads it."""

    def compile_one(text):
        result = clang.compile(text, parse(options), language=clang.Language())
        waiting.begin()
        return result.spirv, result.log

    monkeypatch.setattr(waiting, "_allowed", False)
    expected = compile_one(source)
    monkeypatch.setattr(waiting, "_allowed", True)
    monkeypatch.setattr(waiting, "_started", 1)
    compile_one(SOURCE)
    assert len(waiters) == 1
    assert compile_one(source) == expected


@pytest.mark.parametrize("scarce", ["memfd_create", "pipe", "process"])
def test_one_that_cannot_be_started_leaves_no_descriptors(waiters, monkeypatch, scarce):
    def refuse(*_, **__):
        raise OSError(errno.EMFILE, "too many open files")

    compiled()
    before = os.listdir("/proc/self/fd")
    if scarce == "process":
        monkeypatch.setattr(waiting.subprocess.Popen, "_execute_child", refuse)
    elif scarce == "memfd_create":
        monkeypatch.setattr(os, "memfd_create", refuse)
    else:
        pipes = iter([os.pipe, refuse])
        monkeypatch.setattr(os, "pipe", lambda: next(pipes)())
    with pytest.raises(OSError, match="too many"):
        waiting.Child([clang.find().path, "-"], None, {}, reads_ahead=True)
    monkeypatch.undo()
    assert os.listdir("/proc/self/fd") == before
