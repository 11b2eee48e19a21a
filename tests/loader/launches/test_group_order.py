"""Which groups of a launch run, and in which order (launch/kernel_run.c): those that run for long and
share local memory in panels; one for all that do the same."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

SOURCE = """
kernel void k(global int *times, global int *number, global int *counter, int rounds) {
    local int all[64];
    int x = get_local_id(0), y = get_local_id(1), width = get_local_size(0);
    all[y * width + x] = x;
    for (int i = 0; i < rounds; i++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int next = all[(y * width + x + 1) % 32] * 5 + i;
        barrier(CLK_LOCAL_MEM_FENCE);
        all[y * width + x] = next;
    }
    if (x == 0 && y == 0) {
        size_t groups = get_num_groups(0), row = get_group_id(1) + get_num_groups(1) * get_group_id(2);
        atomic_inc(times + row * groups + get_group_id(0));
        number[row * groups + get_group_id(0)] = atomic_inc(counter) + (all[0] == 1 << 30);
    }
}
"""


@pytest.fixture(scope="module")
def one_thread(opencl):
    """(context, queue, kernel) of a device that executes one group after the other."""
    device = opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_BY_COUNTS, 1, 0)[0]
    context = opencl.context(device)
    queue = opencl.make("clCreateCommandQueue", context, device, 0)
    yield context, queue, opencl.kernel(context, SOURCE)
    opencl.ok("clReleaseCommandQueue", queue)
    opencl.ok("clReleaseContext", context)


@pytest.mark.parametrize("groups", [(21, 5, 3), (9, 2, 1), (16, 4, 1), (8, 3, 1), (30, 1, 2)])
@pytest.mark.parametrize("rounds", [0, 400])
def test_each_group_runs_once(opencl, one_thread, groups, rounds):
    context, queue, kernel = one_thread
    shape = groups[::-1]
    times, number, counter = np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(1, np.int32)
    flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR
    buffers = [
        opencl.make("clCreateBuffer", context, flags, a.nbytes, a.ctypes.data)
        for a in (times, number, counter)
    ]
    for index, buffer in enumerate(buffers):
        opencl.ok("clSetKernelArg", kernel, index, 8, ctypes.c_uint64(buffer))
    opencl.ok("clSetKernelArg", kernel, 3, 4, ctypes.c_int32(rounds))
    sizes = (ctypes.c_size_t * 3)(16 * groups[0], 2 * groups[1], groups[2])
    local = (ctypes.c_size_t * 3)(16, 2, 1)
    launches = 20  # what a group takes is learnt from the first ones
    for _ in range(launches):
        opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 3, None, sizes, local, 0, None, None)
        opencl.ok("clFinish", queue)
    for array, buffer in zip((times, number), buffers, strict=False):
        address = array.ctypes.data
        opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, array.nbytes, address, 0, None, None)
    assert (times == launches).all()
    assert sorted(number.flat) == list(range((launches - 1) * number.size, launches * number.size))
    in_panels = number.size > 8 and groups[0] > 8 and groups[1] > 1 and rounds
    place = number - (launches - 1) * number.size
    assert place[0, 0, 7] == 7
    if in_panels:
        assert place[0, 1, 0] == 8 and place[0, 0, 8] == 8 * groups[1]
    if rounds and not in_panels:
        assert (place == np.arange(place.size).reshape(shape)).all()
    for buffer in buffers:
        opencl.ok("clReleaseMemObject", buffer)


REPEATED = """
kernel void k(global int *times, int rounds) {
    local int all[16];
    int x = get_local_id(0);
    all[x] = x;
    for (int i = 0; i < rounds; i++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int next = all[(x + 1) % 16] * 5 + i;
        barrier(CLK_LOCAL_MEM_FENCE);
        all[x] = next;
    }
    times[get_group_id(0) * 16 + x] += 1 + (all[0] == 1 << 30);
}
"""


@pytest.mark.parametrize("rounds", [0, 400])
@pytest.mark.parametrize("rows, planes", [(1, 1), (5, 1), (5, 3), (1, 3)])
def test_one_group_of_those_that_do_the_same(opencl, one_thread, rounds, rows, planes):
    """Along dimensions that a kernel never asks for; not in panels, which have groups of several rows."""
    context, queue, _ = one_thread
    kernel = opencl.kernel(context, REPEATED)
    columns, launches = 21, 20
    times = np.zeros(16 * columns, np.int32)
    flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR
    buffer = opencl.make("clCreateBuffer", context, flags, times.nbytes, times.ctypes.data)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    opencl.ok("clSetKernelArg", kernel, 1, 4, ctypes.c_int32(rounds))
    sizes, local = (ctypes.c_size_t * 3)(16 * columns, 2 * rows, planes), (ctypes.c_size_t * 3)(16, 2, 1)
    for _ in range(launches):
        opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 3, None, sizes, local, 0, None, None)
        opencl.ok("clFinish", queue)
    opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, times.nbytes, times.ctypes.data, 0, None, None)
    assert (times == launches).all()
    opencl.ok("clReleaseMemObject", buffer)
    opencl.ok("clReleaseKernel", kernel)
