"""Whether the environment may be believed, and what of it is read where it may not."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from cl_driver import native, trust

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = """
import os
from cl_driver import log, settings, spawn, trust
from cl_driver.frontend import find_clang
from cl_driver.service import client, process; from cl_driver.jit import identity
service, seen = client.Service(), []
spawn.use(lambda argv, environment: seen.append((argv, environment)) or os.open("/dev/null", 0))
try:
    spawn.spawn(["/bin/true"])
except OSError:
    pass  # /dev/null is no socket
print([name for name in settings.SETTINGS if settings.text(name) != settings.SETTINGS[name].default])
print([service.entries.cache.folder, log.level, [line.split()[0] for line in identity.tools("")][:1]])
print([find_clang.environment(), find_clang.find().path, seen[0][1]])
print("trust.hand(False)" in process.command("m")[4])
"""


def run(handed: str, environment: dict[str, str]) -> list[str]:
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{handed}\n{EVERYTHING}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", script],
        env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def evil(tmp_path) -> dict[str, str]:
    (tmp_path / "clang-22").symlink_to("/usr/bin/clang-22")
    return {
        "PATH": f"{tmp_path}:/usr/bin",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "CL_DRIVER_LOG": "calls",
        "CL_DRIVER_LOG_FILE": str(tmp_path / "log"),
        "CL_DRIVER_WIDTH": "4",
        "LD_LIBRARY_PATH": str(tmp_path),
    }


def test_nothing_of_an_environment_that_is_not_trusted_is_read(evil):
    chosen, where, tools, command = run("from cl_driver import trust; trust.hand(False)", evil)
    assert chosen == "[]"
    assert where == "['', 0, ['/usr/bin/clang-22']]"
    assert evil["HOME"] not in tools and tools.count(str(trust.FIXED)) == 1
    assert command == "True"


def test_all_of_one_that_is_trusted_is_read(evil):
    chosen, where, tools, command = run("from cl_driver import trust; trust.hand(True)", evil)
    assert chosen == "['CL_DRIVER_LOG', 'CL_DRIVER_LOG_FILE', 'CL_DRIVER_WIDTH']"
    home = evil["HOME"]
    assert where == f"['{home}/.cache/cl_driver/v2-{os.geteuid()}', 2, ['{home}/clang-22']]"
    assert tools.count(home) > 3 and command == "False"


def auxv(tmp_path, *pairs) -> str:
    path = tmp_path / "auxv"
    path.write_bytes(b"".join(struct.pack("@LL", *pair) for pair in pairs))
    return str(path)


def test_the_kernel_is_asked_where_nobody_has_answered(tmp_path):
    assert trust._ask_kernel() is True
    assert trust._ask_kernel(auxv(tmp_path, (6, 4096), (23, 0), (0, 0))) is True
    assert trust._ask_kernel(auxv(tmp_path, (6, 4096), (23, 1), (0, 0))) is False
    assert trust._ask_kernel(auxv(tmp_path, (6, 4096), (0, 0))) is False
    assert trust._ask_kernel(str(tmp_path / "none")) is False


def test_nothing_is_dumped_through_links_or_to_whom_one_must_wait_for(tmp_path):
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "source.cl").symlink_to(tmp_path / "kept")
    os.mkfifo(tmp_path / "source.spv")
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from cl_driver.compiler.source import Context\n"
        "from types import SimpleNamespace\n"
        f"context = Context(SimpleNamespace(checks=False), '', {{'CL_DRIVER_DUMP': {str(tmp_path)!r}}})\n"
        "for name in ('source.cl', 'source.spv', 'k.ll'): context.dump(name, 'text')"
    )
    subprocess.run([sys.executable, "-I", "-c", script], timeout=20, check=True)
    assert (tmp_path / "kept").read_text() == "kept" and (tmp_path / "k.ll").read_text() == "text"


@pytest.mark.parametrize("trusted", [False, True])
def test_which_python_processes_run(monkeypatch, trusted):
    """An installed package records none; what is not trusted has no other than the one that C found."""
    monkeypatch.setattr(native, "configuration", dict)
    monkeypatch.setattr(native, "_found", [])
    monkeypatch.setattr(trust, "_known", [trusted])
    assert native.python() == sys.executable
    native.use_python("/bin/true")
    assert native.python() == "/bin/true"
    native.use_python("/nonexistent/python")
    assert native.python() == (sys.executable if trusted else "/nonexistent/python")
