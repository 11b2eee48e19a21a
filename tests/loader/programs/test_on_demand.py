"""Kernels that clBuildProgram leaves to be compiled when they are asked for: by clCreateKernel,
clCreateKernelsInProgram, or for a program's binary."""

import ctypes
import os
import uuid

import pytest

from cl_driver.api import program_binary
from cl_driver.api.generated import enums as cl
from cl_driver.api.program import DeviceBuild

ON_DEMAND = {"CL_DRIVER_COMPILE_KERNELS": "create"}

# Much to compile, for any number of processes.
COUNT = 70 * max(1, len(os.sched_getaffinity(0)))


def many(text: str = "") -> str:
    """A program of which a build compiles no kernel. Kernel number i writes i."""
    lines = [f"kernel void k{i}(global int *a) {{ a[get_global_id(0)] = {i}; }}" for i in range(COUNT)]
    return "\n".join([*lines, text])


@pytest.mark.parametrize(
    "what",
    [
        *(pytest.param(what, marks=pytest.mark.sanitize) for what in ("threads", "all", "again")),
        "fork",  # of which ThreadSanitizer lets no child start threads
    ],
)
@pytest.mark.parametrize("mode", ["embedded", "process"])
def test_a_client(run_client, tmp_path, what, mode):
    """At first they are compiled, then they are in the cache."""
    env = {**ON_DEMAND, "CL_DRIVER_RUNTIME": mode, "CL_DRIVER_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        run_client("on_demand", what, timeout=120, env=env)


def test_variables_of_a_program_are_those_of_all_its_kernels(run_client, tmp_path):
    env = {**ON_DEMAND, "CL_DRIVER_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        assert run_client("on_demand", "globals", env=env).stdout == "9 and x\n10 and x\n"


def test_a_host_whose_runtime_process_is_gone(run_client, tmp_path):
    """The next one compiles kernels of what the host has."""
    env = {
        **ON_DEMAND,
        "CL_DRIVER_CACHE_DIR": str(tmp_path),
        "CL_DRIVER_RUNTIME": "process",
        "MARK": uuid.uuid4().hex,
    }
    run_client("on_demand", "lost", env=env)


@pytest.mark.parametrize("setting", ["auto", "create", "build"])
def test_threads_that_build_and_use_programs(run_client, setting):
    run_client("programs", "threads", timeout=120, env={"CL_DRIVER_COMPILE_KERNELS": setting})


def result_of(opencl, context, device, kernel) -> int:
    queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
    value = ctypes.c_int32(-1)
    buffer = opencl.make("clCreateBuffer", context, 0, 64, None)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [1], None, 0, None, None)
    opencl.ok("clEnqueueReadBuffer", queue, buffer, cl.CL_TRUE, 0, 4, value, 0, None, None)
    opencl.ok("clReleaseMemObject", buffer)
    opencl.ok("clReleaseCommandQueue", queue)
    return value.value


def binary_of(opencl, program, devices: int = 1) -> bytes:
    sizes = opencl.words("clGetProgramInfo", program, cl.CL_PROGRAM_BINARY_SIZES)
    data = [ctypes.create_string_buffer(size) for size in sizes]
    pointers = (ctypes.c_void_p * len(sizes))(*map(ctypes.addressof, data))
    opencl.ok("clGetProgramInfo", program, cl.CL_PROGRAM_BINARIES, 8 * len(sizes), pointers, None)
    return data[0].raw


def test_queries_of_a_program_need_no_kernel(opencl):
    context = opencl.context()
    program = opencl.program(context, many("global int counter[7];"))
    opencl.build(program, "-cl-std=CL3.0")
    names = opencl.text("clGetProgramInfo", program, cl.CL_PROGRAM_KERNEL_NAMES)
    assert names.split(";") == [f"k{i}" for i in range(COUNT)]
    assert opencl.integer("clGetProgramInfo", program, cl.CL_PROGRAM_NUM_KERNELS) == COUNT
    size = opencl.integer(
        "clGetProgramBuildInfo", program, opencl.device(), cl.CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE
    )
    assert size == 28
    assert opencl.fails("clCreateKernel", program, b"nope") == cl.CL_INVALID_KERNEL_NAME
    kernel = opencl.make("clCreateKernel", program, b"k5")
    assert result_of(opencl, context, opencl.device(), kernel) == 5
    for release, handle in (("Kernel", kernel), ("Program", program), ("Context", context)):
        opencl.ok(f"clRelease{release}", handle)


def test_a_binary_has_all_kernels(opencl):
    context, device = opencl.context(), opencl.device()
    program = opencl.program(context, many())
    opencl.build(program)
    binary, build = binary_of(opencl, program), DeviceBuild()
    program_binary.unpack(binary, build)
    assert build.executable.names == [f"k{i}" for i in range(COUNT)] and not build.executable.missing()
    status = ctypes.c_int32(1)
    other = opencl.make("clCreateProgramWithBinary", context, 1, [device], [len(binary)], [binary], status)
    opencl.build(other)
    for each in (program, other):
        kernel = opencl.make("clCreateKernel", each, b"k6")
        assert result_of(opencl, context, device, kernel) == 6
        opencl.ok("clReleaseKernel", kernel)
        opencl.ok("clReleaseProgram", each)
    opencl.ok("clReleaseContext", context)


def test_devices_that_were_built_apart(opencl):
    root = opencl.device()
    if opencl.integer("clGetDeviceInfo", root, cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
        pytest.skip("one compute unit cannot be divided")
    first, second, *_ = devices = opencl.sub_devices(root, cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    context = opencl.context(first, second)
    program = opencl.program(
        context,
        many("kernel void odd(global int *a\n#ifdef ODD\n, int b\n#endif\n) { a[0] = N; }"),
    )
    opencl.ok("clBuildProgram", program, 1, [first], b"-D N=30 -cl-kernel-arg-info", None, None)
    opencl.ok("clBuildProgram", program, 1, [second], b"-D N=40 -D ODD", None, None)
    kernel = opencl.make("clCreateKernel", program, b"k8")
    assert [result_of(opencl, context, device, kernel) for device in (first, second)] == [8, 8]
    assert opencl.text("clGetKernelArgInfo", kernel, 0, cl.CL_KERNEL_ARG_NAME) == "a"
    assert opencl.fails("clCreateKernel", program, b"odd") == cl.CL_INVALID_KERNEL_DEFINITION
    count = ctypes.c_uint32()
    opencl.ok("clCreateKernelsInProgram", program, 0, None, count)
    assert count.value == COUNT
    opencl.ok("clReleaseKernel", kernel)
    opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)
    for device in devices:
        opencl.ok("clReleaseDevice", device)


def test_linked_programs(opencl):
    """The library is compiled once, and its kernels by whoever links it."""
    context = opencl.context()
    library = opencl.program(context, "int twice(int x) { return 2 * x; }")
    main = opencl.program(context, many("int twice(int); kernel void k(global int *a) { a[0] = twice(21); }"))
    for part in (library, main):
        opencl.ok("clCompileProgram", part, 0, None, None, 0, None, None, None, None)
    linked = opencl.make("clLinkProgram", context, 0, None, None, 2, [library, main], None, None)
    kernel = opencl.make("clCreateKernel", linked, b"k")
    assert result_of(opencl, context, opencl.device(), kernel) == 42
    opencl.ok("clReleaseKernel", kernel)
    for program in (library, main, linked):
        opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)
