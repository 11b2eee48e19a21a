"""Hosts that change their root folder or their user after they have made a context.

What they build is compiled, and finds the files that they find: no others, and with no rights that they gave
up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.loader.test_guest import gone, marked, status_of
from tests.marks import needs_kernel
from tests.runtime.service.test_processes import children

NOBODY = 65534
# Compilers of a runtime process are in the root folder of that.
HERE = os.environ.get("CL_DRIVER_RUNTIME") != "process" and not os.environ.get("SANITIZE")

pytestmark = [
    pytest.mark.skipif(not HERE, reason="the control plane has a process of its own"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its root folder"),
]


@pytest.fixture
def places(tmp_path):
    """A root folder, and files in it and outside under the same names."""
    jail = tmp_path / "jail"
    outside = f"/tmp/{uuid.uuid4().hex}"
    for folder in (jail / "headers", jail / "work", Path(outside), jail / outside[1:]):
        folder.mkdir(parents=True)
        folder.chmod(0o755)
    (jail / "headers" / "in.h").write_text("#define VALUE 3\n")
    (jail / "work" / "local.h").write_text("#define VALUE 4\n")
    (jail / "for_root.h").write_text("#define VALUE 5\n")
    (jail / "for_root.h").chmod(0o600)
    Path(outside, "both.h").write_text("#define VALUE 6\n")
    (jail / outside[1:] / "both.h").write_text("#define VALUE 7\n")
    Path(outside, "out.h").write_text("#define VALUE 8\n")
    (jail / "link.h").symlink_to(f"{outside}/out.h")
    tmp_path.chmod(0o755)
    jail.chmod(0o755)
    yield jail, outside
    for path in Path(outside).iterdir():
        path.unlink()
    Path(outside).rmdir()


@pytest.fixture
def moves(run_client, places):
    """What the host prints for pairs of options and headers; user: it becomes that one."""

    def run(when: str, *pairs: str, user: int = 0, root: bool = True, **env: str) -> list[str]:
        arguments = [when, str(places[0]) if root else "", str(user), *pairs]
        done = run_client("guests/moves", *arguments, env={"CL_DRIVER_CACHE_SIZE": "0"} | env)
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize("user", [0, NOBODY])
@pytest.mark.parametrize("when", ["cold", "warm"])
def test_programs_find_what_their_host_finds(moves, places, when, user):
    outside = places[1]
    pairs = ["-I /headers", "in.h", "-I .", "local.h", "-I /", f"{outside}/both.h"]
    assert moves(when, *pairs, user=user) == ["3", "4", "7"]
    for header in (f"{outside}/out.h", "/link.h", "/proc/self/root/etc/passwd", "../../../etc/passwd"):
        (said,) = moves(when, "", header, user=user)
        assert f"'{header}' file not found" in said


# As root's own folder is not: no other user can start the Python that is in it.
FOR_ALL = all(folder.stat().st_mode & 0o001 for folder in ROOT.parents)


@pytest.mark.parametrize(
    "root",
    [pytest.param(False, marks=pytest.mark.skipif(not FOR_ALL, reason=f"{ROOT} is not for all users")), True],
)
@pytest.mark.parametrize("when", ["cold", "warm"])
def test_compilers_have_no_rights_that_their_host_gave_up(moves, places, when, root):
    name = "/for_root.h" if root else str(places[0] / "for_root.h")
    assert moves(when, "", name, root=root) == ["5"]
    (said,) = moves(when, "", name, root=root, user=NOBODY)
    assert f"cannot open file '{name}': Permission denied" in said


def test_all_ways_to_compile(moves):
    """Programs with the same options (of which clang holds), with debug information, of other versions of the
    language, with rounding conversions and large fills (clang runs again), kernels on demand."""
    same = ["-I /headers", "in.h"] * 4
    options = ["-g", "-cl-std=CL3.0", "-cl-opt-disable", "-cl-kernel-arg-info"]
    pairs = [word for each in options for word in (f"{each} -I /headers", "in.h")]
    assert moves("cold", *same, *pairs) == ["3"] * 8
    assert moves("cold", *same, CL_DRIVER_COMPILE_KERNELS="create") == ["3"] * 4


def test_headers_that_a_program_brings_along(moves, places):
    """They are in a folder for temporary files while clang runs, where there is one."""
    folder = places[0] / "temporary"
    folder.mkdir()
    folder.chmod(0o1777)
    header = "#define VALUE 1\n"
    assert moves("cold", "link", header, user=NOBODY, TMPDIR="/temporary") == ["linked"]
    assert not list(folder.iterdir())


@pytest.fixture
def waiting(client, variables, places):
    """Starts a host that has built a program in its new root folder: it, and its helpers by id."""
    started = []

    def start(*before: str, user: int = 0, **env: str):
        mark = f"TEST_MARK={uuid.uuid4().hex}"
        command = [
            client("guests/moves"),
            "cold",
            places[0],
            user,
            *before,
            "",
            "wait",
            "-I /headers",
            "in.h",
        ]
        host = subprocess.Popen(
            [str(word) for word in command],
            env=variables | dict([mark.split("=")]) | {"CL_DRIVER_CACHE_SIZE": "0"} | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(host)
        lines = []
        while "ready" not in lines:
            lines.append(host.stdout.readline().strip())
        return host, {pid: line for pid, line in marked(mark).items() if pid != host.pid}, mark

    yield start
    for host in started:
        host.kill()
        host.wait()
        host.stdin.close()
        host.stdout.close()


def folders_open(pid: int) -> list[str]:
    links = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    return [link for link in links if os.path.isdir(link)]


@pytest.mark.parametrize("user", [0, NOBODY])
def test_no_way_out(waiting, places, user):
    """Neither the host nor its compilers have a folder of the old root open, and what stays there belongs to
    nobody who is inside."""
    host, helpers, _ = waiting("-I /headers", "in.h", user=user)
    helpers = {pid: "" for helper in helpers for pid in (helper, *children(helper))}  # clang has no mark
    inside = [pid for pid in helpers if os.path.samefile(f"/proc/{pid}/root", places[0])]
    names = sorted(Path(f"/proc/{pid}/comm").read_text().strip() for pid in inside)
    assert len(names) == 2 and names[0] == "clang-22" and names[1].startswith("python"), names
    for pid in (host.pid, *inside):
        assert [folder for folder in folders_open(pid) if not folder.startswith(str(places[0]))] == []
        assert status_of(pid)["Uid"].split() == [str(user)] * 4
        assert os.readlink(f"/proc/{pid}/cwd").startswith(str(places[0]))
    outside = set(helpers) - set(inside)
    assert outside
    for pid in outside:
        assert status_of(pid)["Uid"].split() == ["0"] * 4


@needs_kernel
def test_until_somebody_builds_there_is_a_small_process_only(waiting):
    host, _, mark = waiting()
    while len(marked(mark)) < 2:  # its variables are there a little later than itself
        time.sleep(0.01)
    (holder,) = set(marked(mark)) - {host.pid}
    assert Path(f"/proc/{holder}/comm").read_text().strip() == "_cl_driver_hold"
    assert int(status_of(holder)["VmRSS"].split()[0]) < 2000
    while os.readlink(f"/proc/{holder}/cwd") != "/":  # it has to come up first
        time.sleep(0.01)
    host.stdin.write("\n")
    host.stdin.flush()
    assert host.stdout.readline() == "3\n"
    assert host.wait(timeout=20) == 0
    assert gone(mark)


def test_it_is_small_again_when_nobody_has_built_for_long(waiting):
    """And then there are compilers again, of a host that has been in its new root folder all the time."""
    host, _, mark = waiting("-I /headers", "in.h", user=NOBODY, CL_DRIVER_COMPILE_IDLE="1")

    def helpers() -> list[str]:
        pids = [pid for pid in marked(mark) if pid != host.pid]
        return [Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids]

    assert any(name.startswith("python") for name in helpers())
    end = time.monotonic() + 20
    while helpers() != ["_cl_driver_hold"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    host.stdin.write("\n")
    host.stdin.flush()
    assert host.stdout.readline() == "3\n"
    assert host.wait(timeout=20) == 0
    assert gone(mark)


def test_a_clang_that_is_killed_there_is_replaced(waiting, places):
    """With its compiler, for neither can start another one."""
    host, helpers, _ = waiting("-I /headers", "in.h", user=NOBODY)
    inside = [pid for helper in helpers for pid in children(helper) if os.path.exists(f"/proc/{pid}/exe")]
    (clang,) = [pid for pid in inside if Path(f"/proc/{pid}/comm").read_text().strip() == "clang-22"]
    os.kill(clang, signal.SIGKILL)
    host.stdin.write("\n")
    host.stdin.flush()
    assert host.stdout.readline() == "3\n"


def test_hosts_that_cannot_change_it_have_none(client, variables):
    mark = f"TEST_MARK={uuid.uuid4().hex}"
    drop = ["setpriv", "--bounding-set", "-sys_chroot", "--inh-caps", "-sys_chroot"]
    host = subprocess.Popen(
        [*drop, str(client("guests/moves")), "cold", "", "0", "", "wait"],
        env=variables | dict([mark.split("=")]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert host.stdout.readline() == "ready\n"
        assert [pid for pid in marked(mark) if pid != host.pid] == []
    finally:
        host.communicate("\n")
