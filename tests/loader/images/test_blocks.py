"""Blocks of images that sub-groups read and write (cl_intel_subgroups, _char, _short and _long)."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images.image import Image
from tests.loader.images.model import Format

SUFFIXES = {"": np.uint32, "_uc": np.uint8, "_us": np.uint16, "_ul": np.uint64}
FORMATS = {
    1: Format("CL_R", "CL_UNSIGNED_INT8"),
    2: Format("CL_RG", "CL_UNORM_INT8"),
    4: Format("CL_RGBA", "CL_UNORM_INT8"),
}
SHAPE = (1, 9, 37)  # rows of 37, 74 and 148 bytes
ACCESSES = {"read_only": "write_only", "read_write": "read_write"}
PLACES = [(0, 0), (12, 2), (5, 3), (-3, -2), (-400, 1), (100, 6), (0, 8), (36, 0), (2**31 - 1, 2**31 - 1)]
WRITTEN = [(0, 0), (12, 2), (-4, -2), (100, 6), (24, 8), (-400, 1), (-(2**31), 3), (0, 2**31 - 4)]


def kernel_source(size: int, suffix: str, count: int, access: str) -> str:
    n = "" if count == 1 else str(count)
    name = f"block_%s{suffix}{n}"
    type_ = {"": "uint", "_uc": "uchar", "_us": "ushort", "_ul": "ulong"}[suffix] + n
    return f"""
__attribute__((intel_reqd_sub_group_size({size})))
kernel void k({access} image2d_t from, {ACCESSES[access]} image2d_t to, global {type_} *out,
              global const {type_} *in, int2 at, int2 there) {{
    size_t i = get_global_id(0);
    out[i] = intel_sub_group_{name % "read"}(from, at);
    intel_sub_group_{name % "write"}(to, there, in[i]);
}}"""


def pixel_at_edge(row: np.ndarray, place: int, pixel: int) -> int:
    """The byte at a place of a row; outside, that of the pixel at the edge."""
    if place < 0:
        return row[place % pixel]
    return row[place] if place < len(row) else row[len(row) - pixel + (place - len(row)) % pixel]


def read_model(rows: np.ndarray, pixel: int, size: int, count: int, length: int, at) -> np.ndarray:
    """(size, count * length) bytes."""
    found = np.zeros((size, count, length), np.uint8)
    for k in range(count):
        row = rows[min(max(at[1] + k, 0), len(rows) - 1)]
        for lane in range(size):
            for b in range(length):
                found[lane, k, b] = pixel_at_edge(row, at[0] + lane * length + b, pixel)
    return found.reshape(size, -1)


def write_model(rows: np.ndarray, size: int, count: int, length: int, at, data: np.ndarray) -> None:
    values = data.view(np.uint8).reshape(size, count, length)
    for k in range(count):
        y = at[1] + k
        for lane in range(size):
            for b in range(length):
                x = at[0] + lane * length + b
                if 0 <= y < len(rows) and 0 <= x < rows.shape[1]:
                    rows[y, x] = values[lane, k, b]


class Kernel:
    """A kernel that reads a block of one image and writes one of another, with its buffers."""

    def __init__(self, opencl, context, queue, pixel, size, suffix, count, access):
        self.cl, self.queue, self.pixel, self.size, self.count = opencl, queue, pixel, size, count
        self.type = np.dtype(SUFFIXES[suffix])
        source = kernel_source(size, suffix, count, access)
        self.kernel = opencl.kernel(context, source, options="-cl-std=CL3.0")
        self.from_ = Image(opencl, context, queue, "2D", FORMATS[pixel], SHAPE)
        self.to = Image(opencl, context, queue, "2D", FORMATS[pixel], SHAPE)
        generator = np.random.default_rng(size * count)
        self.data = generator.integers(0, 256, (size, count * self.type.itemsize), np.uint8)
        copy = cl.CL_MEM_COPY_HOST_PTR
        self.out, self.in_ = (
            opencl.make("clCreateBuffer", context, copy, self.data.nbytes, self.data.ctypes.data)
            for _ in range(2)
        )
        for k, handle in enumerate((self.from_.handle, self.to.handle, self.out, self.in_)):
            opencl.ok("clSetKernelArg", self.kernel, k, 8, ctypes.c_uint64(handle))

    def check(self, at, there) -> None:
        opencl, length = self.cl, self.type.itemsize
        for k, place in ((4, at), (5, there)):
            opencl.ok("clSetKernelArg", self.kernel, k, 8, (ctypes.c_int32 * 2)(*place))
        sizes = ([self.size], [self.size])
        opencl.ok("clEnqueueNDRangeKernel", self.queue, self.kernel, 1, None, *sizes, 0, None, None)
        out = np.zeros_like(self.data)
        where = (self.out, 1, 0, out.nbytes, out.ctypes.data, 0, None, None)
        opencl.ok("clEnqueueReadBuffer", self.queue, *where)
        want = read_model(self.from_.model[0], self.pixel, self.size, self.count, length, at)
        assert (out == want).all(), (at, out, want)
        write_model(self.to.model[0], self.size, self.count, length, there, self.data)
        self.to.check()

    def release(self) -> None:
        for image in (self.from_, self.to):
            image.release()
        for handle in (self.out, self.in_):
            self.cl.ok("clReleaseMemObject", handle)
        self.cl.ok("clReleaseKernel", self.kernel)


CASES = [
    (4, 8, "", 1, "read_only"),
    (4, 16, "", 8, "read_only"),
    (1, 8, "", 2, "read_only"),
    (4, 8, "_ul", 4, "read_only"),
    (2, 4, "_us", 16, "read_only"),
    (1, 32, "_uc", 4, "read_only"),
    (4, 16, "_uc", 16, "read_write"),
    (2, 64, "", 4, "read_write"),
]


@pytest.mark.parametrize(("pixel", "size", "suffix", "count", "access"), CASES)
def test_blocks(opencl, context, queue, pixel, size, suffix, count, access):
    kernel = Kernel(opencl, context, queue, pixel, size, suffix, count, access)
    for k, at in enumerate(PLACES):
        kernel.check(at, WRITTEN[k % len(WRITTEN)])
    kernel.release()


def test_an_image_of_one_pixel(opencl, context, queue, monkeypatch):
    """Values that are larger than the image."""
    monkeypatch.setattr("tests.loader.images.test_blocks.SHAPE", (1, 1, 1))
    kernel = Kernel(opencl, context, queue, 1, 8, "_ul", 2, "read_only")
    for at in ((0, 0), (-7, 0), (3, 1)):
        kernel.check(at, at)
    kernel.release()
