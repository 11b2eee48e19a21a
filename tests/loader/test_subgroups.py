"""Sub-groups through the loader: how launches are divided, queries, what a kernel may require."""

import ctypes

import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.device import limits
from cl_driver.jit.target import host_target

COMPILE_SIZE = 0x410A  # CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL
INFO = "clGetKernelSubGroupInfo"


@pytest.mark.parametrize("width", ["", "1", "8", "64"])
def test_launches_of_many_shapes(run_client, width):
    run_client("subgroups", width or host_target().sub_group_size, env={"CL_DRIVER_WIDTH": width})


def test_on_a_lesser_cpu(run_client):
    run_client("subgroups", env={"CL_DRIVER_CPU": "x86-64"})


@pytest.fixture
def build_kernel(opencl):
    """build_kernel(source): a kernel in a context that goes with it."""
    context, kernels = opencl.context(), []

    def make(source):
        kernels.append(opencl.kernel(context, source, options="-cl-std=CL3.0"))
        return kernels[-1]

    yield make
    for kernel in kernels:
        opencl.ok("clReleaseKernel", kernel)
    opencl.ok("clReleaseContext", context)


PLAIN = "kernel void k(global int *out) { out[get_global_id(0)] = sub_group_reduce_add(1); }"


def test_device_queries(opencl):
    size = host_target().sub_group_size
    most = opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_NUM_SUB_GROUPS)
    assert most == limits.MAX_WORK_GROUP_SIZE // size
    found = opencl.words("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_SUB_GROUP_SIZES_INTEL)
    assert tuple(found) == limits.SUB_GROUP_SIZES


def test_kernel_queries(opencl, build_kernel):
    size = host_target().sub_group_size
    kernel, device = build_kernel(PLAIN), opencl.device()

    def ask(query, *values, results=1):
        given, out = (ctypes.c_size_t * 3)(*values), (ctypes.c_size_t * results)()
        bytes_, written = ctypes.sizeof(out), ctypes.c_size_t()
        opencl.ok(INFO, kernel, device, query, 8 * len(values), given, bytes_, out, ctypes.byref(written))
        assert written.value == bytes_
        return list(out)

    assert ask(cl.CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 7) == [size]
    assert ask(cl.CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, size, 3) == [3]
    assert ask(cl.CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, 1, size, 2) == [2]
    assert ask(cl.CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, size + 1) == [2]
    for results in (1, 2, 3):
        local = ask(cl.CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, 5, results=results)
        assert local == [5 * size, 1, 1][:results]
    assert ask(cl.CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, 1 << 40, results=3) == [0, 0, 0]
    assert ask(cl.CL_KERNEL_MAX_NUM_SUB_GROUPS) == [limits.MAX_WORK_GROUP_SIZE // size]
    assert ask(cl.CL_KERNEL_COMPILE_NUM_SUB_GROUPS) == [0]
    assert ask(COMPILE_SIZE) == [0]


def test_errors_of_kernel_queries(opencl, build_kernel):
    kernel, device = build_kernel(PLAIN), opencl.device()
    size, count = ctypes.c_size_t(4), cl.CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE
    give = (8, ctypes.byref(size))
    out = (8, ctypes.byref(ctypes.c_size_t()), None)
    assert opencl.fails(INFO, device, device, count, *give, *out) == cl.CL_INVALID_KERNEL
    assert opencl.fails(INFO, kernel, kernel, count, *give, *out) == cl.CL_INVALID_DEVICE
    assert opencl.fails(INFO, kernel, device, 0x1234, *give, *out) == cl.CL_INVALID_VALUE
    for query in (
        cl.CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
        count,
        cl.CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT,
    ):
        assert opencl.fails(INFO, kernel, device, query, 8, None, *out) == cl.CL_INVALID_VALUE
        assert opencl.fails(INFO, kernel, device, query, 4, give[1], *out) == cl.CL_INVALID_VALUE
        assert opencl.fails(INFO, kernel, device, query, 32, give[1], *out) == cl.CL_INVALID_VALUE
        short = (4, out[1], None)
        assert opencl.fails(INFO, kernel, device, query, *give, *short) == cl.CL_INVALID_VALUE
    opencl.ok(INFO, kernel, device, count, *give, 0, None, None)
    opencl.ok(INFO, kernel, None, count, *give, *out)


@pytest.mark.parametrize("size", limits.SUB_GROUP_SIZES)
def test_a_required_size(opencl, build_kernel, size):
    kernel = build_kernel(f"__attribute__((intel_reqd_sub_group_size({size}))) {PLAIN}")
    out = ctypes.c_size_t()
    for query in (COMPILE_SIZE, cl.CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE):
        given = ctypes.c_size_t(100)
        opencl.ok(INFO, kernel, None, query, 8, ctypes.byref(given), 8, ctypes.byref(out), None)
        assert out.value == size
    spilled = opencl.integer("clGetKernelWorkGroupInfo", kernel, None, cl.CL_KERNEL_SPILL_MEM_SIZE_INTEL)
    assert spilled == 0
    assert f"({size})" in opencl.text("clGetKernelInfo", kernel, cl.CL_KERNEL_ATTRIBUTES)


def test_a_size_that_no_kernel_may_require(opencl):
    context = opencl.context()
    program = opencl.program(context, f"__attribute__((intel_reqd_sub_group_size(12))) {PLAIN}")
    status = opencl.fails("clBuildProgram", program, 0, None, b"-cl-std=CL3.0", None, None)
    assert status == cl.CL_BUILD_PROGRAM_FAILURE
    assert "12" in opencl.build_log(program)
    opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)
