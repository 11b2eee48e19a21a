"""Kernels whose lanes follow dimension 1 (cl_driver/passes/lower/exchange_ids.py), launched in all shapes."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

COLUMNS = 300
SOURCE = f"""
kernel void k(global int *out) {{
    size_t row = get_global_id(0), column = get_global_id(1), plane = get_global_id(2);
    out[(plane * {COLUMNS} + row) * {COLUMNS} + column] +=
        1 + row * 7 + column * 1000 + 13 * get_global_size(0) + 17 * get_global_size(1) +
        19 * get_global_offset(0) + 23 * get_global_offset(1) + 29 * get_work_dim();
}}
"""


@pytest.fixture(scope="module")
def launched(opencl):
    """(context, queue, kernel)"""
    device = opencl.device()
    context = opencl.context(device)
    queue = opencl.make("clCreateCommandQueue", context, device, 0)
    yield context, queue, opencl.kernel(context, SOURCE, "k")
    opencl.ok("clReleaseCommandQueue", queue)
    opencl.ok("clReleaseContext", context)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize(
    "size, offset",
    [
        ((1, 1), (0, 0)),
        ((290, 295), (0, 0)),
        ((290, 3), (0, 0)),  # lanes along dimension 1 would be idle: plain code
        ((3, 290), (0, 0)),
        ((290,), (0,)),
        ((1, 290), (5, 7)),
        ((37, 41), (100, 200)),
        ((290, 1), (3, 5)),
        ((33, 65, 5), (0, 0, 0)),
        ((65, 2, 5), (1, 2, 1)),
    ],
)
def test_each_work_item_runs_once(opencl, launched, size, offset, local):
    context, queue, kernel = launched
    counts, starts = (*size, 1, 1)[:3], (*offset, 0, 0)[:3]
    out = np.zeros((6, COLUMNS, COLUMNS), np.int32)
    expected = out.copy()
    row, column = np.arange(COLUMNS)[:, None], np.arange(COLUMNS)[None, :]
    value = 1 + row * 7 + column * 1000 + 13 * counts[0] + 17 * counts[1]
    value = value + 19 * starts[0] + 23 * starts[1] + 29 * len(size)
    x, y, z = (slice(start, start + count) for start, count in zip(starts, counts, strict=True))
    expected[z, x, y] = value[x, y]
    launch(opencl, context, queue, kernel, out, size, offset, local)
    np.testing.assert_array_equal(out, expected)


def launch(opencl, context, queue, kernel, out, size, offset, local):
    flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR
    buffer = opencl.make("clCreateBuffer", context, flags, out.nbytes, out.ctypes.data)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    sizes = (ctypes.c_size_t * 3)(*offset), (ctypes.c_size_t * 3)(*size)
    groups = (ctypes.c_size_t * 3)(*(1 for _ in size)) if local else None
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, len(size), *sizes, groups, 0, None, None)
    opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, out.nbytes, out.ctypes.data, 0, None, None)
    opencl.ok("clReleaseMemObject", buffer)
