"""A launch does once what all work-items along a dimension do (native_shim/src/launch/ndrange.c)."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

# How often groups do it can be told, though what they do is a race.
SOURCE = """
kernel void item(global int *out) {
    out[(get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0)]++;
}
kernel void all(global int *out) { out[0]++; }
kernel void of_x(global int *out) { out[get_global_id(0)]++; }
kernel void of_y(global int *out) { out[get_global_id(1)]++; }
kernel void of_z(global int *out) { out[get_global_id(2)]++; }
kernel void of_x_and_z(global int *out) { out[get_global_id(2) * get_global_size(0) + get_global_id(0)]++; }
kernel void group(global int *out) { out[get_group_id(0)]++; }
"""


@pytest.fixture(scope="module")
def kernels(opencl):
    """(context, queue, {name: kernel})"""
    device = opencl.device()
    context = opencl.context(device)
    queue = opencl.make("clCreateCommandQueue", context, device, 0)
    names = ["item", "all", "of_x", "of_y", "of_z", "of_x_and_z", "group"]
    yield context, queue, {name: opencl.kernel(context, SOURCE, name) for name in names}
    opencl.ok("clReleaseCommandQueue", queue)
    opencl.ok("clReleaseContext", context)


@pytest.mark.parametrize(
    "size, local",
    [
        ((1, 1, 1), (1, 1, 1)),
        ((4096, 1, 1), (64, 1, 1)),
        ((1000, 300, 1), (10, 3, 1)),
        ((30, 70, 90), (2, 7, 3)),
    ],
)
def test_work_items_that_do_the_same(opencl, kernels, size, local):
    context, queue, by_name = kernels
    x, y, z = size
    counts = {"item": x * y * z, "all": 1, "of_x": x, "of_y": y, "of_z": z, "of_x_and_z": x * z}
    for name, count in counts.items():
        out = np.zeros(count + 1, np.int32)
        launch(opencl, context, queue, by_name[name], out, size, local)
        assert (out[:-1] == 1).all() and out[-1] == 0, name
    # Groups that can be told apart are those that were asked for.
    out = np.zeros(x // local[0] + 1, np.int32)
    launch(opencl, context, queue, by_name["group"], out, (x, 1, 1), (local[0], 1, 1))
    assert (out[:-1] == 1).all() and out[-1] == 0


def launch(opencl, context, queue, kernel, out, size, local):
    flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR
    buffer = opencl.make("clCreateBuffer", context, flags, out.nbytes, out.ctypes.data)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    sizes = (ctypes.c_size_t * 3)(*size), (ctypes.c_size_t * 3)(*local)
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 3, None, *sizes, 0, None, None)
    opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, out.nbytes, out.ctypes.data, 0, None, None)
    opencl.ok("clReleaseMemObject", buffer)
