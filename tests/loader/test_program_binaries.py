"""Program binaries from one process in another, also for another CPU, and damaged ones."""

import ctypes
import os
import platform
import shutil
import subprocess
import sys

import pytest

from cl_driver.api.generated import enums as cl
from tests.conftest import ROOT

SOURCE = """
global int counter = 5;
kernel void k(global float *a, constant float *scale) {
    a[get_global_id(0)] = sin(a[get_global_id(0)]) * scale[0] + counter;
}
"""
OPTIONS = "-cl-std=CL3.0 -cl-mad-enable"
WRITER = """
import sys
sys.path[:0] = [{tree!r}, {root!r}]
import cl_driver
from tests.loader.opencl import OpenCL
from tests.loader.test_program_binaries import SOURCE, write_binary
write_binary(OpenCL({library!r}), {path!r})
"""


def write_binary(opencl, path):
    context = opencl.context()
    program = opencl.program(context, SOURCE)
    if os.environ.get("KIND") == "object":
        opencl.ok("clCompileProgram", program, 0, None, OPTIONS.encode(), 0, None, None, None, None)
    else:
        opencl.build(program, OPTIONS)
    [size] = opencl.words("clGetProgramInfo", program, cl.CL_PROGRAM_BINARY_SIZES)
    data = ctypes.create_string_buffer(size)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(data))
    opencl.ok("clGetProgramInfo", program, cl.CL_PROGRAM_BINARIES, 8, pointers, None)
    with open(path, "wb") as file:
        file.write(data.raw)


@pytest.fixture
def written(environment, ocl_icd, tmp_path):
    """written(tree, **settings): the binary that another process makes, with the driver of a tree."""

    def run(tree=ROOT, **settings):
        path = tmp_path / "program.bin"
        program = WRITER.format(tree=str(tree), root=str(ROOT), library=str(ocl_icd), path=str(path))
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env=environment | settings,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return path.read_bytes()

    return run


def result_of(opencl, binary):
    """What kernel k makes of 0.0 and a scale of 2, from a binary; and the build's log."""
    context, device = opencl.context(), opencl.device()
    status = ctypes.c_int32(1)
    program, error = opencl.call(
        "clCreateProgramWithBinary", context, 1, [device], [len(binary)], [binary], status
    )
    assert (error, status.value) == (cl.CL_SUCCESS, cl.CL_SUCCESS)
    opencl.build(program)
    options = opencl.text("clGetProgramBuildInfo", program, device, cl.CL_PROGRAM_BUILD_OPTIONS)
    assert options == OPTIONS
    kernel = opencl.make("clCreateKernel", program, b"k")
    queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
    values, scale = (ctypes.c_float * 4)(0, 0, 0, 0), ctypes.c_float(2)
    flags = cl.CL_MEM_COPY_HOST_PTR
    buffers = [opencl.make("clCreateBuffer", context, flags, 16, values)]
    buffers.append(opencl.make("clCreateBuffer", context, flags, 4, scale))
    for index, buffer in enumerate(buffers):
        opencl.ok("clSetKernelArg", kernel, index, 8, ctypes.c_uint64(buffer))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [4], None, 0, None, None)
    opencl.ok("clEnqueueReadBuffer", queue, buffers[0], cl.CL_TRUE, 0, 16, values, 0, None, None)
    for release, handle in (
        *(("clReleaseMemObject", buffer) for buffer in buffers),
        ("clReleaseCommandQueue", queue),
        ("clReleaseKernel", kernel),
        ("clReleaseProgram", program),
        ("clReleaseContext", context),
    ):
        opencl.ok(release, handle)
    return list(values)


def test_a_binary_of_another_process(opencl, written):
    assert result_of(opencl, written()) == [5.0] * 4


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names levels of x86-64")
def test_a_binary_for_another_cpu_is_made_anew(opencl, written):
    """It holds the SPIR-V that it was made of."""
    foreign = written(CL_DRIVER_CPU="x86-64-v2")
    assert foreign != written()
    context, status = opencl.context(), ctypes.c_int32(1)
    program, _ = opencl.call(
        "clCreateProgramWithBinary", context, 1, [opencl.device()], [len(foreign)], [foreign], status
    )
    # Its code must not run here: without clBuildProgram there is no kernel.
    assert opencl.fails("clCreateKernel", program, b"k") == cl.CL_INVALID_PROGRAM_EXECUTABLE
    opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)
    assert result_of(opencl, foreign) == [5.0] * 4


def other_build(folder):
    """A copy of the driver, as another version would be; what OCL_ICD_VENDORS has to name for it."""
    shutil.copytree(ROOT / "cl_driver", folder / "cl_driver")
    native = folder / "cl_driver" / "_native"
    shutil.copytree(ROOT / "build" / "lib", native)
    conf = native / "cl_driver.conf"
    conf.write_text(conf.read_text().replace(f"path={ROOT}\n", f"path={folder}\n"))
    vendors = folder / "vendors"
    vendors.mkdir()
    (vendors / "cl_driver.icd").write_text(f"{native / 'libcl_driver.so'}\n")
    return f"{vendors}/"


@pytest.mark.parametrize("kind", ["executable", "object"])
def test_binaries_of_another_build_are_refused(opencl, written, tmp_path, kind):
    """Its object code and SPIR-V may ask the library for what this one's has not."""
    tree = tmp_path / "other"
    foreign = written(tree, KIND=kind, OCL_ICD_VENDORS=other_build(tree))
    own = written(KIND=kind)
    context, device = opencl.context(), opencl.device()
    for binary, error in ((foreign, cl.CL_INVALID_BINARY), (own, cl.CL_SUCCESS)):
        status = ctypes.c_int32(1)
        arguments = context, 1, [device], [len(binary)], [binary], status
        program, code = opencl.call("clCreateProgramWithBinary", *arguments)
        assert (code, status.value, bool(program)) == (error, error, error == cl.CL_SUCCESS)
    opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)


def test_damaged_binaries_are_refused(opencl, written):
    """Every byte counts; nothing of a damaged binary is trusted."""
    binary, context, device = written(), opencl.context(), opencl.device()
    for at in [*range(0, 64, 5), *range(64, len(binary), max(1, len(binary) // 100))]:
        damaged = binary[:at] + bytes([binary[at] ^ 0x10]) + binary[at + 1 :]
        status = ctypes.c_int32(1)
        arguments = context, 1, [device], [len(damaged)], [damaged], status
        assert opencl.fails("clCreateProgramWithBinary", *arguments) == cl.CL_INVALID_BINARY, at
        assert status.value == cl.CL_INVALID_BINARY
    opencl.ok("clReleaseContext", context)
