"""Programs that run with more rights than whoever started them: their environment decides nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.loader.programs.test_program_binaries import other_build
from tests.marks import needs_kernel

NOBODY = 65534
EVIL_CLANG = '#!/bin/sh\necho $(id -u) >> {marker}\nexec /usr/bin/clang-22 "$@"\n'
JOINED = """
import ctypes, os, sys
os.environ["OCL_ICD_VENDORS"] = sys.argv[1]
if sys.argv[2] == "setreuid":
    os.setreuid(os.geteuid(), os.geteuid())
cl, status = ctypes.CDLL("libOpenCL.so.1"), ctypes.c_int()
for name in ("clCreateContext", "clCreateProgramWithSource", "clCreateKernel"):
    getattr(cl, name).restype = ctypes.c_void_p
platform, device, name = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(256)
assert not cl.clGetPlatformIDs(1, ctypes.byref(platform), None)
assert not cl.clGetDeviceIDs(platform, ctypes.c_uint64(1), 1, ctypes.byref(device), None)
assert not cl.clGetDeviceInfo(device, 0x102B, ctypes.c_size_t(256), name, None)
context = ctypes.c_void_p(
    cl.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(status)))
source = ctypes.c_char_p(b"kernel void k(global int *p) { p[0] += 5; }")
program = ctypes.c_void_p(
    cl.clCreateProgramWithSource(context, 1, ctypes.byref(source), None, ctypes.byref(status)))
built = cl.clBuildProgram(program, 1, ctypes.byref(device), b"", None, None)
log = ctypes.create_string_buffer(4096)
cl.clGetProgramBuildInfo(program, device, 0x1183, ctypes.c_size_t(4096), log, None)
assert not built and cl.clCreateKernel(program, b"k", ctypes.byref(status)), (built, log.value)
print(name.value.decode())
"""


@pytest.fixture
def place():
    """A folder that every user may reach, where programs may have more rights than their users."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    if os.geteuid() or os.statvfs(folder).f_flag & os.ST_NOSUID:
        pytest.skip("only root can make such programs, and not everywhere")
    yield folder
    shutil.rmtree(folder)


def evil(folder: Path) -> dict[str, str]:
    """An environment that names a folder of nobody's for all that the driver might write, and programs in it
    for all that it might run. No place of it, or program in it, is to be used."""
    folder.mkdir()
    marker = folder / "ran"
    for name in ("clang-22", "clang", "python3", "python"):
        (folder / name).write_text(EVIL_CLANG.format(marker=marker))
        (folder / name).chmod(0o755)
    os.chown(folder, NOBODY, NOBODY)
    settings = {
        "CLANG": folder / "clang-22", "CACHE_DIR": folder / "cache", "DUMP": folder / "dump",
        "EXPLAIN": folder / "explain", "LOG": "calls", "LOG_FILE": folder / "log", "DEVICE_NAME": "evil",
    }  # fmt: skip
    return {
        "PATH": f"{folder}:/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_CACHE_HOME": str(folder),
        **{f"CL_DRIVER_{name}": str(value) for name, value in settings.items()},
    }


def run(command: list, environment: dict[str, str]) -> str:
    done = subprocess.run(
        list(map(str, command)), env=environment, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def nothing_used(folder: Path, output: str) -> bool:
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["clang", "clang-22", "python", "python3"]
    return output.strip() not in ("", "evil")


def capable(program: Path, capabilities: str) -> None:
    if not shutil.which("setcap"):
        pytest.skip("no setcap")
    done = subprocess.run(["setcap", capabilities, program], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file capabilities here: {done.stderr}")


@needs_kernel
@pytest.mark.parametrize("ids", ["nothing", "setreuid"])
def test_a_set_user_id_program(client, environment, place, ids):
    program = Path(shutil.copy(client("set_user_id"), place / "program"))
    program.chmod(0o4755)
    output = run([program, environment["OCL_ICD_VENDORS"], ids], evil(place / "evil"))
    assert nothing_used(place / "evil", output)


@needs_kernel
def test_its_runtime_process(client, place):
    """Where no Python can be embedded. It is one of another build, which says so."""
    vendors = other_build(place / "tree")
    conf = place / "tree" / "cl_driver" / "_native" / "cl_driver.conf"
    lines = conf.read_text().splitlines()
    conf.write_text("".join("libpython=\n" if w.startswith("libpython=") else f"{w}\n" for w in lines))
    for file in conf.parent.glob("_cl_driver_embed-*.so"):  # an installed package records no libpython
        file.unlink()
    program = Path(shutil.copy(client("set_user_id"), place / "program"))
    program.chmod(0o4755)
    assert nothing_used(place / "evil", run([program, vendors, "setreuid"], evil(place / "evil")))


@needs_kernel
def test_a_program_with_file_capabilities(client, environment, place):
    """All its user ids are nobody's. (The capability lets it, and what it starts, read this driver.)"""
    program = Path(shutil.copy(client("set_user_id"), place / "program"))
    capable(program, "cap_dac_override+ep")
    output = run([program, environment["OCL_ICD_VENDORS"], "inherit"], evil(place / "evil"))
    assert nothing_used(place / "evil", output)


@needs_kernel
@pytest.mark.parametrize("ids", ["nothing", "setreuid"])
def test_a_set_user_id_python(environment, place, ids):
    """Which the driver joins, and of which it starts no other by the name that it was called by."""
    program = Path(shutil.copy(os.path.realpath(sys.executable), place / "python3"))
    program.chmod(0o4755)
    command = [program, "-I", "-S", "-c", JOINED, environment["OCL_ICD_VENDORS"], ids]
    output = run(command, evil(place / "evil"))
    assert nothing_used(place / "evil", output)


def test_the_same_programs_with_no_more_rights_are_trusted(environment, place):
    """So that it is the rights that make the difference."""
    program = Path(shutil.copy(os.path.realpath(sys.executable), place / "python3"))
    settings = {"PATH": "/usr/bin:/bin", "CL_DRIVER_DEVICE_NAME": "believed"}
    command = [program, "-I", "-S", "-c", JOINED, environment["OCL_ICD_VENDORS"], "nothing"]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=100, check=False)
    assert (done.stdout, done.stderr) == ("believed\n", "")
