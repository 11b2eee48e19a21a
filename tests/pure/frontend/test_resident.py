"""clang that stays loaded: who gets it, that it says what another one says, and what if it is gone."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from cl_driver import native
from cl_driver.frontend import clang, effort, opencl_c, resident
from cl_driver.frontend.options import parse
from tests.marks import few

SOURCE = b"kernel void k(global float *p, float f) { p[get_global_id(0)] += f; }"


def result(options: str = "", source: bytes = SOURCE, **more) -> clang.FrontendResult:
    return opencl_c.compile(source, parse(options), language=clang.Language(), **more)


def compiled(options: str = "", source: bytes = SOURCE, **more) -> bytes | None:
    return result(options, source, **more).spirv


def descendants(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = [int(word) for word in file.read().split()]
    except OSError:  # it has ended
        return []
    return children + [each for child in children for each in descendants(child)]


def holding(clang_) -> list[int]:
    """Those that hold: others may just be ending."""
    pids = descendants(clang_.clang.pid)
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}/fd/{resident.Number.HOLD}")]


def is_gone(pid: int) -> bool:
    """Whether a process ends soon."""
    for _ in range(600):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def loaded(monkeypatch):
    """The clang that is loaded, in a list, as a compiler process has it."""
    monkeypatch.setattr(resident, "_tries", 3)
    yield resident._loaded
    resident.end()


def test_only_a_compilers_own_process_has_one():
    assert not resident._tries
    compiled(), compiled()
    assert resident._loaded == []


def test_all_programs_have_the_same(loaded):
    first = compiled()
    [clang_] = loaded
    assert first and clang_._held == {}
    assert compiled() == first and len(clang_._held) == 1
    [held] = holding(clang_)
    assert compiled() == first
    assert compiled(source=SOURCE.replace(b"k(", b"other(")) not in (first, None)
    assert holding(clang_) == [held]
    assert loaded == [clang_] and resident._tries == 3
    resident.end()
    assert is_gone(held) and is_gone(clang_.clang.pid)


def test_it_holds_for_some_sets_of_arguments(loaded, tmp_path):
    first = compiled()
    for n in [*range(resident._MOST_HELD + 2)] * 2:
        assert compiled(f"-DN={n}") == first
    assert compiled(folder=str(tmp_path)) == compiled(folder=str(tmp_path)) == first
    assert len(loaded[0]._held) == resident._MOST_HELD


def test_includes_are_followed(loaded, tmp_path):
    (tmp_path / "n.h").write_text("#define N 3\n")
    source = b'#include "n.h"\n' + SOURCE.replace(b"+= f", b"+= N")
    for _ in range(3):
        done = result(f"-I{tmp_path}", source)
        assert done.spirv is not None and done.dependencies == (str(tmp_path / "n.h"),)
        assert result(source=source, headers={"n.h": b"#define N 4\n"}).spirv not in (None, done.spirv)
        assert result(source=source, folder=str(tmp_path)).spirv == done.spirv
    assert loaded and resident._tries == 3


def test_programs_that_include_something_are_held_too(loaded, tmp_path):
    """What they include from the folder of the program, of one of their files, and of -I."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "n.h").write_text('#include "sub/m.h"\n')
    (tmp_path / "sub" / "m.h").write_text('#include "o.h"\n')
    (tmp_path / "sub" / "o.h").write_text("#define N 7\n")
    source = b'#define NAME "n.h"\n#include NAME\n' + SOURCE.replace(b"+= f", b"+= N")
    for options, folder in (("", tmp_path), (f"-I{tmp_path}", tmp_path / "sub")):
        done = [result(options, source, folder=str(folder)) for _ in range(3)]
        assert done[0].spirv is not None and done == done[:1] * 3
        assert set(done[0].dependencies) == {str(tmp_path / n) for n in ("n.h", "sub/m.h", "sub/o.h")}
    assert len(loaded[0]._held) == 2 and loaded[0]._failures == 0
    (tmp_path / "sub" / "o.h").write_text("#define N 8\n")
    assert result("", source, folder=str(tmp_path)).spirv not in (None, done[0].spirv)


@pytest.mark.parametrize("size", [*resident._ROOM, resident._ROOM[-1] + 100])
def test_programs_of_every_size(loaded, size):
    """Those that just fit, and those that just do not."""
    for length in range(size - 6, size - 2):
        text = clang.marked_source(SOURCE, parse(""), clang.Language(), with_functions=True)
        source = SOURCE + b"\n" * (length - len(text))
        done = [compiled(source=source) for _ in range(2 + (length == size - 6))]
        assert done[0] and done == done[:1] * len(done)
    assert loaded[0]._failures == 0 and bool(loaded[0]._held) == (size <= resident._ROOM[-1])


def test_a_clang_that_does_not_map_its_main_file(loaded, monkeypatch):
    """Then none holds, and programs are compiled all the same."""
    monkeypatch.setattr(resident, "_ROOM", (16383,))  # so small a file is read
    first = compiled("-cl-std=CL1.1")
    for _ in range(6):
        assert compiled("-cl-std=CL1.1") == first
    assert loaded[0]._held == {} and loaded[0]._failures == resident._MOST_FAILURES
    assert resident._tries == 3


def test_the_folder_is_the_programs(loaded, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "n.h").write_text("#define N 5\n")
    source = b"#include <n.h>\n" + SOURCE.replace(b"+= f", b"+= N")
    assert result("-Isub", source, folder=str(tmp_path)).spirv
    assert result("-Isub", source).spirv is None


def test_one_that_died_is_replaced(loaded):
    first = compiled()
    compiled()
    dead = loaded[0]
    held = holding(dead)
    os.kill(dead.clang.pid, signal.SIGKILL)
    os.waitid(os.P_PID, dead.clang.pid, os.WEXITED | os.WNOWAIT)
    assert all(map(is_gone, held))
    assert compiled() == compiled() == first
    assert loaded[0] is not dead and resident._tries == 3


def test_one_that_held_and_died(loaded):
    first = compiled()
    compiled()
    [held] = holding(loaded[0])
    os.kill(held, signal.SIGKILL)
    assert is_gone(held)
    assert compiled() == first == compiled() == compiled()
    assert loaded


def test_it_ends_when_its_socket_closes(loaded):
    compiled(), compiled()
    clang_ = loaded[0]
    held = holding(clang_)
    clang_.clang.socket.close()
    assert os.waitpid(clang_.clang.pid, 0)[1] == 0
    assert held and all(map(is_gone, held))


CRASH = b"#pragma clang __debug crash\n" + SOURCE


def test_a_crash_is_the_programs_own(loaded, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    first = compiled()
    for _ in range(3):
        done = result(source=CRASH)
        assert done.spirv is None and "crash" in done.log
        assert compiled() == first
    assert not list(tmp_path.iterdir())
    assert len(loaded) == 1 and resident._tries == 3


# The preprocessor adds up 2^40 numbers, one at a time.
ENDLESS = b"#define A0 1+\n%s\n#if A40 0\n#endif\n" % b"\n".join(
    b"#define A%d A%d A%d" % (n, n - 1, n - 1) for n in range(1, 41)
)


@pytest.fixture(params=["alone", "loaded"])
def either(request, monkeypatch):
    """Both ways of running clang."""
    monkeypatch.setattr(resident, "_tries", 3 * (request.param == "loaded"))
    yield
    resident.end()


def test_what_takes_too_long_is_ended(loaded):
    compiled(), compiled()
    pids = holding(loaded[0])
    done = result(source=ENDLESS, time_limit=0.5)
    assert done.spirv is None and "more than 0.5 s of CPU time" in done.log
    assert loaded == [] and pids and all(map(is_gone, pids))
    assert compiled() and resident._tries == 3


def test_cpu_time_is_limited(either):
    done = result(source=ENDLESS, time_limit=0.5)
    assert done.spirv is None and "more than 0.5 s of CPU time (CL_DRIVER_COMPILE_TIMEOUT)" in done.log
    assert compiled()


def test_the_setting_is_the_limit(either, monkeypatch):
    monkeypatch.setenv("CL_DRIVER_COMPILE_TIMEOUT", "1")
    assert "more than 1 s of CPU time" in result(source=ENDLESS).log


@pytest.mark.long
def test_time_in_which_clang_does_not_run_does_not_count(either, tmp_path):
    script = tmp_path / "clang-22"
    script.write_text('#!/bin/sh\nsleep 2\nexec clang-22 "$@"\n')
    script.chmod(0o755)
    assert compiled(clang=str(script), time_limit=1)


def test_one_that_does_nothing_is_ended(loaded, monkeypatch):
    compiled(), compiled()
    os.kill(loaded[0].clang.pid, signal.SIGSTOP)
    monkeypatch.setattr(effort, "STALLED", 2)
    done = result("-DOTHER")
    assert done.spirv is None and "did nothing for 2 s" in done.log
    assert compiled() and resident._tries == 3


@pytest.mark.parametrize("folder", ["/no/such/folder", "/etc/passwd"])
def test_a_folder_that_cannot_be_entered(either, folder):
    """Only what is to be found from there is not."""
    for _ in range(3):
        assert compiled(folder=folder)
        done = result(source=b'#include "n.h"\n' + SOURCE, folder=folder)
        assert done.spirv is None and "'n.h' file not found" in done.log
    assert resident._tries in (0, 3)


@pytest.mark.parametrize("most", [6, 10, 20, 44, 50])
def test_few_descriptors(most):
    script = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[3])!r})
from cl_driver.frontend import clang, opencl_c, options, resident
resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))
resident.allow()
for options_ in ("", "-DN", "", "-DN", "", "-DN"):
    for source in ({SOURCE!r}, {SOURCE!r} + b"// include"):
        done = opencl_c.compile(source, options.parse(options_), language=clang.Language())
        assert done.spirv, done.log
assert resident._tries == 3 or {most} <= 10  # with so few each program has a clang of its own
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_fewest_descriptors():
    """In a compiler process with six of which a library of the system's keeps one: this one has a file for
    what it says, in place of the driver's socket; the last one is for the list of what clang reads."""
    script = f"""
import os, re, resource, sys
os.dup2(kept := os.memfd_create("stderr"), 2)
sys.path.insert(0, {str(Path(__file__).resolve().parents[3])!r})
from cl_driver.frontend import clang, opencl_c, options, resident

def compile(text):
    return opencl_c.compile(text, options.parse(""), language=clang.Language())

resident.allow()
resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
assert compile(b"kernel void k() {{}}").spirv  # what is imported late is there
resource.setrlimit(resource.RLIMIT_NOFILE, (5, 8))
done, wrong = compile(b"kernel void k() {{}}"), compile(b"kernel void k() {{ nothing; }}")
assert done.spirv and not done.log
assert not wrong.spirv and "undeclared identifier 'nothing'" in wrong.log
assert not os.fstat(2).st_size
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0


@pytest.mark.parametrize("last", ["source", "output", "errors"])
def test_standard_descriptors_come_back(last):
    """Where one of the files that take their places cannot be had."""
    script = f"""
import errno, os, sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[3])!r})
from cl_driver.frontend import alone
make = os.memfd_create

def fail(name):
    if name == {last!r}:
        raise OSError(errno.EMFILE, name)
    return make(name)

os.memfd_create = fail
try:
    alone._run_process_on_fewest(alone._Call(["/no/clang"], b"", None, {{}}, (), None))
except OSError as error:
    assert str(error) == "[Errno 24] " + {last!r}
else:
    sys.exit(3)
assert [os.readlink(f"/proc/self/fd/{{number}}") for number in (0, 1)] == ["/dev/null"] * 2
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_host_that_may_write_no_files():
    """Files in memory count, too."""
    script = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[3])!r})
from cl_driver.frontend import clang, opencl_c, options, resident
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
resident.allow()
for options_ in ("", "-DN", "", "-DN", "", "-DN"):
    done = opencl_c.compile({SOURCE!r}, options.parse(options_), language=clang.Language())
    assert done.spirv, done.log
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("told", [b"", (1).to_bytes(4, "little"), b"abcde"])
def test_output_is_whole_only_when_its_writer_says_so(told):
    """One that is killed while it writes may just have written the end of a function."""
    end_of_function = (1 << 16 | 56).to_bytes(4, "little")
    ends = []
    for content in (b"half of a module" + end_of_function, b"", told):
        read, write = os.pipe()
        os.write(write, content)
        os.close(write)
        ends.append(open(read, "rb", buffering=0))
    with pytest.raises(EOFError), effort.Watch(effort.Allowance(10), os.getpid(), is_new=False) as watch:
        resident._collect(*ends, watch)
    for end in ends:
        end.close()


_PIPE = 1 << 16  # bytes that a pipe holds


def has_filled(pipe: int) -> bool:
    try:
        return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), "little") >= _PIPE
    except OSError:
        return False


def test_a_clang_that_is_killed_while_it_writes_leaves_no_half_module(loaded, monkeypatch):
    """Where the pipe is full, the module is at the end of a function."""
    kernels = b"".join(SOURCE.replace(b" k(", b" k%d(" % n) for n in range(150))

    def named(length: int) -> bytes:
        return kernels + b"constant int variable%s = 5;\n" % (b"_" * length)

    word = (1 << 16 | 56).to_bytes(4, "little")
    first = compiled(source=named(0))
    step = len(compiled(source=named(4))) - len(first)
    ends = [at + 4 for at in range(0, _PIPE, 4) if first[at : at + 4] == word]
    source = named(4 * min((_PIPE - end) // step for end in ends if (_PIPE - end) % step == 0))
    whole = compiled(source=source)
    assert len(whole) > _PIPE and whole[:_PIPE].endswith(word)
    compiled(source=source), compiled(source=source)
    read, killed = os.read, []

    def kill_and_read(file, size):
        end = time.monotonic() + 1
        while loaded and not killed and not has_filled(file) and time.monotonic() < end:
            time.sleep(0.01)
        if loaded and not killed and has_filled(file):
            held = holding(loaded[0])
            killed.extend(pid for pid in descendants(loaded[0].clang.pid) if pid not in held)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            assert all(map(is_gone, killed))
        return read(file, size)

    monkeypatch.setattr(os, "read", kill_and_read)
    assert compiled(source=source) == whole
    assert killed


@pytest.fixture(params=["/dev/zero", "/dev/random", "pipe", "huge", "/dev/stdin"])
def endless_file(request, tmp_path):
    path = request.param if request.param.startswith("/") else str(tmp_path / request.param)
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "huge":
        with open(path, "wb") as file:
            file.truncate(1 << 30)
    return path


def test_programs_include_regular_files_of_some_size(either, endless_file):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    for line in (f'#include "{endless_file}"\n', f"#include <{endless_file}>\n"):
        done = result(source=line.encode() + SOURCE)
        assert done.spirv is None and "error" in done.log
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < before + (1 << 20)
    assert compiled()


def test_without_the_library_each_has_its_own(loaded, monkeypatch, tmp_path, capfd):
    first = compiled()
    resident.end()
    monkeypatch.setattr(native, "folder", lambda: str(tmp_path))
    for _ in range(5):
        assert compiled() == first
    assert loaded == [] and resident._tries == 0
    assert capfd.readouterr() == ("", "")


def test_a_script_runs_for_each_program(loaded, tmp_path):
    script = tmp_path / "clang-of-mine"
    script.write_text('#!/bin/sh\nexec clang-22 "$@"\n')
    script.chmod(0o755)
    first = compiled()
    for _ in range(5):
        assert compiled(clang=str(script)) == first
    assert loaded == [] and resident._tries == 0


def test_arguments_that_are_too_long(loaded):
    options = " ".join(f"-DNAME_{n}={n}" for n in range(4000))
    assert compiled(options) == compiled() and resident._tries == 3


@pytest.mark.parametrize(
    "options",
    few(["-Wall", "-g", "", "-Werror", "-w", "-cl-std=CLC++2021", "-cl-kernel-arg-info"], 2),
)
@pytest.mark.parametrize("source", [
    SOURCE,
    b"static int idle(int n) { return n; }\n" + SOURCE,
    b"kernel void k(global int *p) { float *q = p; *p = no_such; }",
    b"#warning look\n#define N __LINE__ __FILE__ \nkernel void k(global int *p) { *p = sizeof N; }",
    b"kernel void k(global int *p) { *p = __INCLUDE_LEVEL__ + sizeof(__BASE_FILE__); }",
    b"kernel void k(global int *p) {",
    b"",
    b"kernel void k(global uint *p) { p[0] = (uint)p; }\n" + b"//\n" * 40_000,
    b'#include "no_such.h"\n' + SOURCE,
    b'#include "3"\n' + SOURCE,
    b'#if __has_include("5")\n#error\n#endif\n' + SOURCE,
    b'#if __has_include(<no_such.h>) || __has_include("no/such.h")\n#error\n#endif\n#pragma once\n' + SOURCE,
    b'#include_next "no_such.h"\n' + SOURCE,
    b"#pragma GCC system_header\nkernel void k(global int *p) { int unused; }",
    b"constant char c[] = __DATE__; kernel void k(global char *p) { *p = c[3]; }",
    b"kernel void k(global int *p) { *p = 1; }\n/* not finished",
    b"kernel void k(global int *p) { *p = 1; }\n#if 1",
    b"kernel void k(global int *p) { *p = 1; }\\",
])  # fmt: skip
def test_it_says_the_same(loaded, monkeypatch, options, source):
    """Modules, warnings and errors: the program's place is its own, whoever reads it."""
    monkeypatch.setattr(resident, "_tries", 0)
    expected = result(options, source)
    monkeypatch.setattr(resident, "_tries", 3)
    for _ in range(3):  # before main(), and then twice where clang holds
        assert result(options, source) == expected
    assert resident._tries == 3 and len(loaded) == 1
    assert loaded[0]._failures == 0 and (len(loaded[0]._held) == 1 or options == "-g")


@pytest.mark.parametrize("scarce", ["memfd_create", "pipe", "process"])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_what_cannot_be_had_leaves_no_descriptors(loaded, monkeypatch, scarce, before):
    def refuse(*_, **__):
        raise OSError(errno.EMFILE, "too many open files")

    descriptors = os.listdir("/proc/self/fd")
    for _ in range(before):
        compiled()
    if scarce == "process":
        resident.end()
        monkeypatch.setattr(os, "posix_spawn", refuse)
        monkeypatch.setattr(subprocess.Popen, "_execute_child", refuse)
    else:
        monkeypatch.setattr(os, scarce, refuse)
    done = result()
    assert (done.spirv is not None) == (scarce == "memfd_create")
    monkeypatch.undo()
    resident.end()
    assert len(os.listdir("/proc/self/fd")) == len(descriptors)
