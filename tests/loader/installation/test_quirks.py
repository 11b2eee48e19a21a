"""Programs that want settings of their own, by the names of their files (cl_driver/device/quirks.toml)."""

import os
import shutil
import subprocess

import pytest

from cl_driver.device.cpu import host_cpu
from cl_driver.quirks import read
from tests.conftest import compile_c

PROGRAM = r"""
#include <CL/cl.h>
#include <stdio.h>
int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    char text[500];
    if (clGetPlatformIDs(1, &platform, 0) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, 0) ||
        clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof text, text, 0))
        return 1;
    puts(text);
    return 0;
}
"""
NAME = host_cpu().name


@pytest.fixture(scope="module")
def device_name(tmp_path_factory, variables):
    """device_name(name of the program's file, **variables): what CL_DEVICE_NAME it sees."""
    folder = tmp_path_factory.mktemp("quirks")
    (folder / "name.c").write_text(PROGRAM)
    program = compile_c(folder / "name.c", folder / "name", "-lOpenCL")

    def run(name, **more):
        copy = folder / name
        if not copy.exists():
            shutil.copy(program, copy)
        done = subprocess.run(
            [copy], capture_output=True, text=True, timeout=60, check=False, env=variables | more
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.mark.parametrize("runtime", ["embedded", "process"])
def test_by_the_programs_name(device_name, runtime):
    settings = {"CL_DRIVER_RUNTIME": runtime}
    assert device_name("llama-bench", **settings) == f"{NAME} (as Intel)"
    assert device_name("llama", **settings) == device_name("my-llama-bench", **settings) == NAME


def test_by_a_library(device_name, tmp_path):
    (tmp_path / "empty.c").write_text("")
    library = compile_c(tmp_path / "empty.c", tmp_path / "libggml-opencl.so.1", "-shared", "-fPIC")
    assert device_name("name", LD_PRELOAD=str(library)) == f"{NAME} (as Intel)"
    other = library.with_name("libggml-cpu.so.1")
    os.rename(library, other)
    assert device_name("name", LD_PRELOAD=str(other)) == NAME


def test_the_user_has_the_last_word(device_name):
    assert device_name("llama-bench", CL_DRIVER_QUIRKS="0") == NAME
    assert device_name("llama-bench", CL_DRIVER_DEVICE_NAME="mine") == "mine"
    assert device_name("name", CL_DRIVER_DEVICE_NAME="an {} of mine") == f"an {NAME} of mine"


def test_the_log_tells_which_one_applies(device_name, tmp_path):
    log = tmp_path / "log"
    for level, lines in (("off", 0), ("errors", len(read()[0].settings)), ("calls", len(read()[0].settings))):
        device_name("llama-bench", CL_DRIVER_LOG=level, CL_DRIVER_LOG_FILE=str(log))
        text = log.read_text() if log.exists() else ""
        assert text.count("quirk llama.cpp: CL_DRIVER_") == lines
        log.unlink(missing_ok=True)
    for name, more in (("name", {}), ("llama-bench", {"CL_DRIVER_QUIRKS": "0"})):
        device_name(name, CL_DRIVER_LOG="calls", CL_DRIVER_LOG_FILE=str(log), **more)
        assert "quirk" not in log.read_text()
        log.unlink()


def test_the_doctor_lists_them():
    from cl_driver.cli import doctor

    lines = list(doctor.programs())
    assert len(lines) == len(read()) and all("CL_DRIVER_" in line for line in lines)
