"""The driver in somebody else's process: FACTS of embedding, fork, exit, helpers, small stacks."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from tests.marks import needs_kernel


@pytest.mark.sanitize
def test_changes_nothing_of_the_process_and_prints_nothing(run_client):
    for env in ({}, {"CL_DRIVER_FAULT_MESSAGE": "off"}):
        done = run_client("guests/process", "quiet", env=env)
        assert done.stdout == done.stderr == ""


def test_surroundings_that_break_other_pythons(run_client, tmp_path):
    """Variables for the host's own Python, and modules that would run in ours."""
    for name in ("sitecustomize.py", "usercustomize.py", "struct.py", "socket.py", "cffi.py"):
        (tmp_path / name).write_text("import os\nos.write(2, b'imported')\nos._exit(3)\n")
    env = {
        "PYTHONHOME": "/nonexistent",
        "PYTHONPATH": str(tmp_path),
        "PYTHONSTARTUP": str(tmp_path / "struct.py"),
        "PYTHONINSPECT": "1",
        "PYTHONVERBOSE": "1",
        "PYTHONWARNINGS": "error",
        "PYTHONIOENCODING": "nonsense",
        "PYTHONNOUSERSITE": "",
        "VIRTUAL_ENV": str(tmp_path),
        "LC_ALL": "xx_XX.nonsense",
        "PATH": "/usr/bin:/bin",
        "HOME": None,
    }
    done = run_client("guests/process", "quiet", env=env)
    assert done.stdout == done.stderr == ""


def test_programs_in_path_that_only_have_the_names_of_tools(run_client, tmp_path):
    """None of them is any use: what the driver needs is found elsewhere, and the log says what was wrong."""
    for name in ("clang", "clang-22", "clang-23", "python", "python3", "ld", "cc", "llvm-config"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "CL_DRIVER_CACHE_SIZE": "0",
        "CL_DRIVER_LOG": "errors",
    }
    done = run_client("guests/process", "quiet", env=env)
    assert f"{tmp_path}/clang-22 is not a clang: it ended with status 1" in done.stderr
    assert set((tmp_path / "ran").read_text().split()) == {"clang-22"}


def test_the_log_says_which_tools_are_in_use(run_client):
    done = run_client(
        "guests/process", "quiet", env={"CL_DRIVER_LOG": "calls", "CL_DRIVER_CACHE_SIZE": "0"}, check=False
    )
    lines = [line.partition(": ")[2] for line in done.stderr.splitlines()]
    for tool in ("clang: /", "LLVM: "):
        [line] = [line for line in lines if line.startswith(tool)]
        assert ", version 2" in line


def test_library_path_with_other_libraries(run_client, tmp_path):
    """Programs bring libraries of their own, which Python and LLVM must not get."""
    for name in ("libstdc++.so.6", "libgcc_s.so.1", "libffi.so.8", "libz.so.1", "libexpat.so.1"):
        (tmp_path / name).write_text("no library")
    done = run_client(
        "guests/process", "quiet", env={"LD_LIBRARY_PATH": str(tmp_path), "CL_DRIVER_CACHE_SIZE": "0"}
    )
    assert done.stdout == done.stderr == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a set-user-ID program of root's")
@needs_kernel
def test_set_user_id_programs_ignore_settings(client, variables):
    """Somebody else's variables must not choose what runs with the program's rights."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = Path(folder) / "guest"
        program.write_bytes(client("guests/process").read_bytes())
        program.chmod(0o4755)
        settings = {
            "CL_DRIVER_LOG": "calls",
            "CL_DRIVER_CACHE_DIR": f"{folder}/cache",
            "CL_DRIVER_RUNTIME": "process",
        }
        done = subprocess.run(
            [program, "threads"],
            env=variables | settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            user=65534,
            group=0,
            extra_groups=[],
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == done.stderr == ""
        assert os.listdir(folder) == ["guest"]


def test_no_devices(client, variables):
    """A jail without /dev/null."""
    inside = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    done = subprocess.run(
        [*inside, client("guests/process"), "threads"],
        env=variables | {"CL_DRIVER_CACHE_SIZE": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_working_folder_full_of_modules(client, variables, tmp_path):
    (tmp_path / "struct.py").write_text("import os\nos._exit(3)\n")
    subprocess.run(
        [str(client("guests/process")), "quiet"], cwd=tmp_path, env=variables, check=True, timeout=60
    )


def test_fork(run_client):
    run_client("guests/forks", "fork", 20, timeout=120)


def test_parent_and_child_go_on_at_the_same_time(run_client):
    run_client("guests/forks", "fork_both", 5, timeout=120)


def test_a_child_outlives_its_parent(run_client):
    run_client("guests/forks", "fork_orphan", os.getpid())


def test_fork_before_the_first_use(run_client):
    run_client("guests/forks", "fork_first")


def test_fork_while_other_threads_are_in_the_control_plane(run_client, tmp_path):
    """The other threads' builds are the first that are not cached: they import what a build needs."""
    env = {"CL_DRIVER_CACHE_DIR": str(tmp_path)}
    run_client("guests/forks", "fork", 1, env=env)
    run_client("guests/forks", "fork_busy", 5, timeout=120, env=env)


@pytest.mark.long
def test_a_fork_does_not_wait_for_ever_for_an_import(run_client, variables, tmp_path):
    if variables.get("CL_DRIVER_RUNTIME") == "process":
        pytest.skip("no Python to import anything in this process")
    (tmp_path / "slow.py").write_text(f"""
import os, time
os.close(os.open({str(tmp_path / "begun")!r}, os.O_CREAT))
while not os.path.exists({str(tmp_path / "end")!r}):
    time.sleep(0.01)
""")
    log = tmp_path / "log"
    env = {"CL_DRIVER_LOG": "errors", "CL_DRIVER_LOG_FILE": str(log)}
    run_client("guests/forks", "fork_import", tmp_path, env=env)
    assert "fork: another thread is still importing a module" in log.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root folder")
def test_the_root_folder_changes_before_the_first_program(run_client, variables, tmp_path):
    jail = tmp_path / "jail"
    jail.mkdir()
    """It may do so when it makes its context; or it may not, and then nothing is there for that."""
    if variables.get("CL_DRIVER_RUNTIME") != "process":
        env = {"CL_DRIVER_LOG": "errors", "CL_DRIVER_CACHE_SIZE": "0"}
        done = run_client("guests/process", "chroot", jail, env=env)
        assert done.stdout == "" and "the driver's files are not there any more" in done.stderr
        done = run_client("guests/process", "chroot", jail, "prepared", env=env)
        assert done.stdout == done.stderr == ""
    env = {"CL_DRIVER_RUNTIME": "process", "CL_DRIVER_CACHE_SIZE": "0"}
    done = run_client("guests/process", "chroot", jail, "prepared", env=env)
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize("kib", [16, 64, 256])
def test_small_stacks(run_client, kib):
    settings = {"CL_DRIVER_WIDTH": "8", "CL_DRIVER_JIT_DEBUG": "gdb,perf", "CL_DRIVER_CACHE_SIZE": "1G"}
    run_client("guests/process", "small_stack", max(kib, 64))
    run_client("guests/process", "first_on_thread", kib)
    run_client("guests/process", "first_on_thread", kib, env=settings)


@pytest.mark.sanitize
def test_many_threads_at_once(run_client):
    run_client("guests/process", "threads")


@pytest.mark.sanitize
@pytest.mark.parametrize("late_release", [0, 1])
def test_exit_with_work_in_flight(run_client, late_release):
    for _ in range(20):
        done = run_client("guests/process", "exit", late_release, timeout=30)
        assert done.stdout == done.stderr == ""


def test_the_program_closes_all_descriptors(run_client):
    done = run_client("guests/process", "close_descriptors")
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize("before", [0, 1])
def test_the_program_uses_up_its_descriptors(run_client, before):
    done = run_client("guests/process", "used_up_descriptors", before, env={"CL_DRIVER_CACHE_SIZE": "0"})
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize(
    "most", [pytest.param(6, marks=needs_kernel), pytest.param(7, marks=needs_kernel), 9, 11, 12, 16, 20]
)
def test_the_program_may_have_few_descriptors(run_client, variables, most):
    if variables.get("CL_DRIVER_RUNTIME") == "process" and most < 8:
        pytest.skip("the runtime process has a socket, too")
    run_client("guests/process", "few_descriptors", most, env={"CL_DRIVER_CACHE_SIZE": "0"})


def test_standard_descriptors_are_closed(run_client):
    run_client("guests/process", "no_standard_descriptors")


def marked(mark: str) -> dict[int, str]:
    """Processes with the mark in their environment: command line by process id."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def gone(mark: str, seconds: float = 10) -> bool:
    """Whether all marked processes end in time."""
    end = time.monotonic() + seconds
    while marked(mark):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


@pytest.fixture
def host_with_helpers(client, variables):
    """Starts the scene `children`; yields (process, helpers by id, mark) while the helpers are idle."""
    started = []

    def start(subreaper: int = 0, **env):
        mark = f"TEST_MARK={uuid.uuid4().hex}"
        host = subprocess.Popen(
            [str(client("guests/process")), "children", str(subreaper)],
            env=variables | dict([mark.split("=")]) | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(host)
        assert host.stdout.readline() == "ready\n"
        helpers = {pid: line for pid, line in marked(mark).items() if pid != host.pid}
        return host, helpers, mark

    yield start
    for host in started:
        host.kill()
        host.wait()
        host.stdin.close()
        host.stdout.close()


@pytest.mark.parametrize("subreaper", [0, pytest.param(1, marks=needs_kernel)])
def test_helpers_are_invisible(host_with_helpers, subreaper, variables):
    host, helpers, mark = host_with_helpers(subreaper, CL_DRIVER_CACHE_SIZE="0")
    assert any("service.fork_server" in line for line in helpers.values()), helpers
    if variables.get("CL_DRIVER_RUNTIME") == "process":
        assert any("cl_driver.runtime" in line for line in helpers.values())
    for pid, line in helpers.items():
        status = status_of(pid)
        assert os.getsid(pid) != os.getsid(host.pid), line
        assert int(status["SigBlk"], 16) == 0 or "guest" in line, line
        descriptors = {int(p.name): os.readlink(p) for p in Path(f"/proc/{pid}/fd").iterdir()}
        assert [d for d, name in descriptors.items() if d > 3 and name == "/dev/null"] == [], line
        if not subreaper:
            assert int(status["PPid"]) != host.pid, line
    host.stdin.write("end\n")
    host.stdin.flush()
    assert host.wait(timeout=20) == 0
    assert gone(mark)


@pytest.mark.parametrize("subreaper", [0, pytest.param(1, marks=needs_kernel)])
def test_helpers_go_when_the_host_is_killed(host_with_helpers, subreaper):
    host, helpers, mark = host_with_helpers(subreaper, CL_DRIVER_CACHE_SIZE="0")
    assert helpers
    host.send_signal(signal.SIGKILL)
    host.wait()
    assert gone(mark)


def test_helpers_of_a_host_that_can_only_fork(host_with_helpers, no_clone):
    host, helpers, mark = host_with_helpers(CL_DRIVER_CACHE_SIZE="0", **no_clone)
    assert all(int(status_of(pid)["PPid"]) != host.pid for pid in helpers)
    host.stdin.write("end\n")
    host.stdin.flush()
    assert host.wait(timeout=20) == 0
    assert gone(mark)


def test_interrupt_reaches_the_host_alone(host_with_helpers):
    """Ctrl-C goes to the terminal's process group: the helpers are not in it."""
    host, helpers, _ = host_with_helpers(CL_DRIVER_CACHE_SIZE="0")
    assert all(os.getpgid(pid) != os.getpgid(host.pid) for pid in helpers)


def test_runtime_process_that_is_killed(host_with_helpers, variables):
    """What it knew is lost, which calls say; the program goes on, and ends."""
    host, helpers, mark = host_with_helpers(CL_DRIVER_RUNTIME="process", CL_DRIVER_CACHE_SIZE="0")
    for pid, line in helpers.items():
        if "cl_driver.runtime" in line:
            os.kill(pid, signal.SIGKILL)
    host.stdin.write("end\n")
    host.stdin.flush()
    assert host.wait(timeout=20) == 0
    assert gone(mark)
