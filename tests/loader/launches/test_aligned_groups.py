"""Kernels with required group sizes, whose groups begin with any global id (native_shim/src/kernel/
variant_choice.c)."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

SOURCE = """
kernel __attribute__((reqd_work_group_size(32, 2, 1))) void k(global int *out, global const int *in) {
    int x = get_global_id(0), at = x - get_global_offset(0), s = 0;
    for (int i = in[x / 16]; i < in[x >> 3] + 20; i += 3) s = s * 5 + in[i + (x & 15)] + x % 32;
    out[get_global_id(1) * get_global_size(0) + at] = s;
}
kernel __attribute__((reqd_work_group_size(32, 2, 1))) void meeting(global int *out, global const int *in) {
    local int all[64];
    int x = get_global_id(0), at = x - get_global_offset(0), me = get_local_id(1) * 32 + get_local_id(0);
    all[me] = in[x >> 4];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(1) * get_global_size(0) + at] = all[63 - me] * 100 + in[x / 8 + (x & 7)];
}
"""
COLUMNS, ROWS = 96, 4


def wanted(name, given, offset):
    x, y = np.meshgrid(np.arange(COLUMNS) + offset, np.arange(ROWS))
    if name == "meeting":
        group = (x - offset) // 32 * 32 + offset
        other = given[(group + 31 - (x - offset) % 32) >> 4]
        return other * 100 + given[x // 8 + (x & 7)]
    out = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        g, s = int(x[place]), 0
        for i in range(int(given[g // 16]), int(given[g >> 3]) + 20, 3):
            s = s * 5 + int(given[i + (g & 15)]) + g % 32
        out[place] = s & 0xFFFFFFFF
    return out.astype(np.uint32).astype(np.int32)


@pytest.mark.parametrize("offset", [0, 64, 128, 1, 8, 16, 37, 100])
@pytest.mark.parametrize("name", ["k", "meeting"])
def test_offsets(opencl, name, offset):
    device = opencl.device()
    context = opencl.context(device)
    queue = opencl.make("clCreateCommandQueue", context, device, 0)
    given = np.random.default_rng(1).integers(0, 9, 300).astype(np.int32)
    kernel = opencl.kernel(context, SOURCE, name)
    flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR
    out = np.zeros((ROWS, COLUMNS), np.int32)
    buffers = [opencl.make("clCreateBuffer", context, flags, a.nbytes, a.ctypes.data) for a in (out, given)]
    for index, buffer in enumerate(buffers):
        opencl.ok("clSetKernelArg", kernel, index, 8, ctypes.c_uint64(buffer))
    sizes = [(ctypes.c_size_t * 2)(*size) for size in ((offset, 0), (COLUMNS, ROWS), (32, 2))]
    for _ in range(3):
        opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 2, *sizes, 0, None, None)
        opencl.ok("clEnqueueReadBuffer", queue, buffers[0], 1, 0, out.nbytes, out.ctypes.data, 0, None, None)
        np.testing.assert_array_equal(out, wanted(name, given, offset))
    for handle, release in ((kernel, "clReleaseKernel"), (queue, "clReleaseCommandQueue")):
        opencl.ok(release, handle)
    opencl.ok("clReleaseContext", context)
