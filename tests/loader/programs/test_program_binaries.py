"""Program binaries from one process in another; those of other builds, for other CPUs, and damaged ones."""

import ctypes
import importlib.util
import os
import platform
import resource
import shutil
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import pytest

import cl_driver
from cl_driver import wire
from cl_driver.api import program_binary
from cl_driver.api.generated import enums as cl
from cl_driver.jit import executable
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
from tests.loader.programs.test_program_binaries import SOURCE, write_binary
write_binary(OpenCL({library!r}), {path!r})
"""


def write_binary(opencl, path):
    context = opencl.context()
    program = opencl.program(context, SOURCE)
    kind = os.environ.get("KIND", "executable")
    if kind != "executable":
        opencl.ok("clCompileProgram", program, 0, None, OPTIONS.encode(), 0, None, None, None, None)
        if kind == "library":
            link = context, 0, None, b"-create-library", 1, [program], None, None
            program = opencl.make("clLinkProgram", *link)
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


KINDS = pytest.mark.parametrize("kind", ["executable", "object", "library"])


def status_of(opencl, binary):
    """What clCreateProgramWithBinary and binary_status say, which must be the same."""
    context, status = opencl.context(), ctypes.c_int32(1)
    arguments = context, 1, [opencl.device()], [len(binary)], [binary], status
    program, error = opencl.call("clCreateProgramWithBinary", *arguments)
    assert error == status.value and bool(program) == (error == cl.CL_SUCCESS)
    if program:
        opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)
    return error


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names levels of x86-64")
@KINDS
def test_binaries_for_another_cpu_are_refused(opencl, written, kind):
    """When they are loaded, so that programs turn to their sources."""
    assert status_of(opencl, written(CL_DRIVER_CPU="x86-64-v2", KIND=kind)) == cl.CL_INVALID_BINARY
    assert status_of(opencl, written(KIND=kind)) == cl.CL_SUCCESS


def test_each_device_has_its_own_status(opencl, written):
    """ "binary_status will return specific status for each device." """
    good, context, device = written(), opencl.context(), opencl.device()
    statuses = (ctypes.c_int32 * 2)(1, 1)
    arguments = context, 2, [device, device], [len(good), 9], [good, b"no binary"], statuses
    assert opencl.fails("clCreateProgramWithBinary", *arguments) == cl.CL_INVALID_BINARY
    assert list(statuses) == [cl.CL_SUCCESS, cl.CL_INVALID_BINARY]
    opencl.ok("clReleaseContext", context)


def nested(depth: int) -> bytes:
    return b"l\1\0\0\0" * depth + b"n"


@pytest.mark.parametrize("body", [
    b"", b"n", wire.encode(5), wire.encode([1, 2]), nested(20), nested(100_000), b"l\xff\xff\xff\xff",
    wire.encode([cl.CL_PROGRAM_BINARY_TYPE_LIBRARY, "", [[]], b""]), wire.encode([[], "", [], b""]),
    wire.encode([cl.CL_PROGRAM_BINARY_TYPE_EXECUTABLE, "", [], b""]), executable.MAGIC, executable.MAGIC * 9,
])  # fmt: skip
def test_sealed_nonsense_is_refused(opencl, body):
    """Who knows the format gets no further than the checks of what is inside."""
    assert status_of(opencl, program_binary.seal(body)) == cl.CL_INVALID_BINARY


def globals_of(values):
    """Program-scope variables' size, alignment, bytes, fix-ups and names, within an executable's values."""
    if isinstance(values, list):
        if [type(value) for value in values] == [int, int, bytes, list, list]:
            return values
        return next(filter(None, map(globals_of, values)), None)
    return None


def test_memory_of_variables_is_not_touched_before_it_is_used(opencl, written):
    """What the binary asks for may be more than the machine has."""
    start, digest = len(executable.MAGIC), 16
    body = written()[program_binary.BODY :]
    values = wire.decode(body[start + digest :])
    globals_of(values)[0] = 4 << 30
    rest = wire.encode(values)
    binary = program_binary.seal(executable.MAGIC + blake2b(rest, digest_size=digest).digest() + rest)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert result_of(opencl, binary) == [5.0] * 4
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


def other_build(folder):
    """A copy of the driver, as another version would be; what OCL_ICD_VENDORS has to name for it."""
    package = Path(cl_driver.__file__).parent
    shutil.copytree(package, folder / "cl_driver", ignore=shutil.ignore_patterns("_native"))
    for name in ("cffi", "_cffi_backend", "llvmlite"):  # which a wheel's driver looks for beside itself
        found = importlib.util.find_spec(name)
        source = Path(found.origin).parent if found.submodule_search_locations else Path(found.origin)
        (folder / source.name).symlink_to(source)
    native = folder / "cl_driver" / "_native"
    shutil.copytree(ROOT / "build" / "lib", native)
    conf = native / "cl_driver.conf"
    conf.write_text(conf.read_text().replace(f"path={ROOT}\n", f"path={folder}\n"))
    vendors = folder / "vendors"
    vendors.mkdir()
    (vendors / "cl_driver.icd").write_text(f"{native / 'libcl_driver.so'}\n")
    return f"{vendors}/"


@KINDS
def test_binaries_of_another_build_are_refused(opencl, written, tmp_path, kind):
    """Its object code and SPIR-V may ask the library for what this one's has not."""
    tree = tmp_path / "other"
    foreign = written(tree, KIND=kind, OCL_ICD_VENDORS=other_build(tree))
    assert status_of(opencl, foreign) == cl.CL_INVALID_BINARY
    assert status_of(opencl, written(KIND=kind)) == cl.CL_SUCCESS


@KINDS
def test_damaged_binaries_are_refused(opencl, written, kind):
    """Every byte counts; nothing of a damaged binary is trusted."""
    binary = written(KIND=kind)
    for at in [*range(0, 96, 5), *range(96, len(binary), max(1, len(binary) // 100))]:
        damaged = binary[:at] + bytes([binary[at] ^ 0x10]) + binary[at + 1 :]
        assert status_of(opencl, damaged) == cl.CL_INVALID_BINARY, at
        assert status_of(opencl, binary[: at or 1]) == cl.CL_INVALID_BINARY, at
