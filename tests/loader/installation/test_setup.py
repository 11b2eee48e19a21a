"""What set-up says: a line per step, and one for each thing that is missing."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, compile_c

TOOLS = ("cc", "gcc", "nm", "ld", "as", "clang-22")


def build(folder: Path, **env: str) -> subprocess.CompletedProcess:
    """native_shim/build.py into a fresh folder."""
    command = [sys.executable, str(ROOT / "native_shim" / "build.py"), "--build", str(folder)]
    kept = {k: v for k, v in os.environ.items() if k not in ("CC", "CFLAGS", "CL_DRIVER_CLANG")}
    return subprocess.run(command, env=kept | env, text=True, capture_output=True, check=False, timeout=300)


@pytest.fixture
def path(tmp_path):
    """path(without): a PATH with all tools but those."""

    def make(*without: str) -> str:
        folder = tmp_path / "bin"
        folder.mkdir()
        for tool in set(TOOLS) - set(without):
            if found := shutil.which(tool):
                (folder / tool).symlink_to(found)
        return str(folder)

    return make


@pytest.mark.parametrize(
    "without, line",
    [
        (("cc", "gcc"), "needs gcc: apt install gcc"),
        (("nm",), "needs nm: apt install binutils"),
        (TOOLS, "needs gcc: apt install gcc\nneeds nm: apt install binutils"),
    ],
)
def test_what_is_missing_is_a_line(path, tmp_path, without, line):
    done = build(tmp_path / "build", PATH=path(*without))
    # A clang is found in the usual places and in packages, too.
    lines = [text for text in done.stderr.splitlines() if not text.startswith("needs clang")]
    assert done.returncode == 1 and "\n".join(lines) == line


def test_what_settings_name_is_told_so(tmp_path):
    done = build(tmp_path / "a", CC="no-such-compiler")
    assert done.stderr == "needs no-such-compiler, which CC names\n" and done.returncode == 1
    done = build(tmp_path / "b", CL_DRIVER_CLANG="/no/clang")
    assert done.stderr == "needs clang 20 or newer: apt install clang-22\n"
    done = build(tmp_path / "c", CFLAGS="-nostdinc")
    assert "needs OpenCL's headers (CL/cl_icd.h): apt install opencl-c-headers\n" in done.stderr


@pytest.fixture
def tree(tmp_path):
    """A copy of what set-up reads."""
    for name in ("native_shim", "cl_driver"):
        shutil.copytree(ROOT / name, tmp_path / "tree" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "tree"


def test_an_error_in_a_c_file_is_told_at_once(tree, tmp_path):
    """However long the built-in library takes, whose compiler is ended with what it has started."""
    (tree / "native_shim" / "src" / "abi" / "broken.c").write_text("int broken = ;\n")
    clang, number = tmp_path / "clang", tmp_path / "number"
    clang.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *library.cl*) sleep 1000 & echo $! $$ > {number}; exec sleep 1000;; esac\n'
        f'exec {shutil.which("clang-22") or "clang"} "$@"\n'
    )
    clang.chmod(0o755)
    command = [sys.executable, str(tree / "native_shim" / "build.py"), "--build", str(tmp_path / "build")]
    env = os.environ | {"CL_DRIVER_CLANG": str(clang)}
    done = subprocess.run(command, env=env, text=True, capture_output=True, check=False, timeout=200)
    assert done.returncode == 1 and "broken.c:1" in done.stderr and "Traceback" not in done.stderr
    for process in number.read_text().split() if number.exists() else []:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            assert Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_pip_says_no_more(tree, tmp_path):
    code = "import backend, sys; backend.build_wheel(sys.argv[1])"
    env = os.environ | {"PYTHONPATH": str(tree / "native_shim"), "CC": "no-such-compiler"}
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=tree, env=env, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "needs no-such-compiler, which CC names\n")


def test_the_first_program_says_what_the_device_is(variables, tmp_path):
    demo = compile_c(ROOT / "icd" / "demo.c", tmp_path / "demo", "-lOpenCL")
    done = subprocess.run([str(demo)], env=variables, text=True, capture_output=True, check=True, timeout=60)
    assert "one of OpenCL 3.1. Programs that name no version are OpenCL C 1.2:" in done.stdout
    assert "-cl-std=CL3.0" in done.stdout
