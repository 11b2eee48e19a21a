"""An image of the driver beside a model of it in numpy."""

from __future__ import annotations

import ctypes
import random

import numpy as np

from cl_driver.api.generated import enums as cl
from tests.loader.images.model import HAS_SLICES, Format, described, descriptor, pitched

# (slices, rows, pixels); layers of arrays are the last dimension that there is.
SHAPES = {
    "1D": (1, 1, 37),
    "1D buffer": (1, 1, 37),
    "1D array": (1, 6, 37),
    "2D": (1, 9, 37),
    "2D array": (5, 7, 37),
    "3D": (5, 7, 37),
}
RGBA8 = Format("CL_RGBA", "CL_UNORM_INT8")


def noise(*shape) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 256, shape, np.uint8)


class Image:
    """An image of the driver, and beside it the bytes that must be in it: (slices, rows, bytes of a row)."""

    def __init__(self, opencl, context, queue, type_: str, format_: Format, shape=None, flags=0):
        self.cl, self.queue, self.type, self.format = opencl, queue, type_, format_
        self.shape = shape or SHAPES[type_]
        slices, rows, width = self.shape
        self.model = noise(slices, rows, width * format_.size)
        self.buffer = 0
        if type_ == "1D buffer":
            self.buffer = opencl.make(
                "clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, self.model.size, self.model.ctypes.data
            )
            desc = descriptor(type_, width, memory=self.buffer)
            self.handle = opencl.make("clCreateImage", context, flags, format_.c, desc, None)
        else:
            flags |= cl.CL_MEM_COPY_HOST_PTR
            arguments = (context, flags, format_.c, described(type_, self.shape), self.model.ctypes.data)
            self.handle = opencl.make("clCreateImage", *arguments)

    def release(self):
        for handle in filter(None, (self.handle, self.buffer)):
            self.cl.ok("clReleaseMemObject", handle)

    def part(self, origin, region) -> np.ndarray:
        """The model's bytes in a region of pixels (x, y, z)."""
        (x, y, z), (w, h, d), size = origin, region, self.format.size
        return self.model[z : z + d, y : y + h, x * size : (x + w) * size]

    def pitches(self, region, pad_row=0, pad_slice=0) -> tuple[int, int, int, int]:
        """row_pitch and slice_pitch as the API takes them, and what they mean for rows and slices here."""
        row = region[0] * self.format.size + pad_row
        if self.type == "1D array":
            return row, row + pad_slice, row + pad_slice, row + pad_slice
        slice_ = row * region[1] + pad_slice
        return row, slice_ if self.type in HAS_SLICES else 0, row, slice_

    def read(self, origin=(0, 0, 0), region=None, pads=(0, 0), blocking=True) -> np.ndarray:
        region = region or self.shape[::-1]
        row_pitch, slice_pitch, row, slice_ = self.pitches(region, *pads)
        shape = (region[2], region[1], region[0] * self.format.size)
        memory = np.full(slice_ * region[2] + row * region[1], 0xA5, np.uint8)
        pointer = memory.ctypes.data
        where = (list(origin), list(region), row_pitch, slice_pitch, pointer)
        self.cl.ok("clEnqueueReadImage", self.queue, self.handle, int(blocking), *where, 0, None, None)
        if not blocking:
            self.cl.ok("clFinish", self.queue)
        found = pitched(memory, shape, row, slice_).copy()
        pitched(memory, shape, row, slice_)[...] = 0xA5
        assert (memory == 0xA5).all(), "written between rows"
        return found

    def write(self, origin, region, pads=(0, 0), blocking=True) -> None:
        row_pitch, slice_pitch, row, slice_ = self.pitches(region, *pads)
        shape = (region[2], region[1], region[0] * self.format.size)
        memory = noise(slice_ * region[2] + row * region[1])
        where = (list(origin), list(region), row_pitch, slice_pitch, memory.ctypes.data)
        self.cl.ok("clEnqueueWriteImage", self.queue, self.handle, int(blocking), *where, 0, None, None)
        self.cl.ok("clFinish", self.queue)
        self.part(origin, region)[...] = pitched(memory, shape, row, slice_)

    def check(self):
        assert (self.read() == self.model).all()


def random_region(generator: random.Random, shape) -> tuple[tuple, tuple]:
    """origin and region (x, y, z) inside."""
    origin = tuple(generator.randrange(size) for size in shape[::-1])
    region = tuple(
        1 + generator.randrange(size - start) for start, size in zip(origin, shape[::-1], strict=True)
    )
    return origin, region


def map_image(opencl, queue, image, flags, origin, region):
    """pointer, row pitch, slice pitch."""
    row, slice_ = ctypes.c_uint64(77), ctypes.c_uint64(77)
    where = (flags, list(origin), list(region), row, slice_)
    pointer = opencl.make("clEnqueueMapImage", queue, image, 1, *where, 0, None, None)
    return pointer, row.value, slice_.value
