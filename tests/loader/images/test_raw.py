"""Images whose pixels share bytes, as sensors give them (cl_ext_image_raw10_raw12 1.0.0)."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images.image import map_image, noise
from tests.loader.images.model import HAS_SLICES, RAWS, TYPES, described, descriptor, pitched
from tests.loader.images.test_kernels import C_TYPES, PLACE

# (slices, rows, pixels); layers of arrays are the last dimension that there is.
SHAPES = {
    "1D": (1, 1, 44),
    "1D buffer": (1, 1, 44),
    "1D array": (1, 6, 44),
    "2D": (1, 9, 44),
    "2D array": (5, 7, 44),
}
READ, IMMUTABLE = cl.CL_MEM_READ_ONLY, 1 << 6
every_raw = pytest.mark.parametrize("raw", RAWS)
every_type = pytest.mark.parametrize("type_", SHAPES)


def words(raw: int, order: int = cl.CL_R):
    return (ctypes.c_uint32 * 2)(order, raw)


def row_bytes(raw: int, pixels: int) -> int:
    _, group, size = RAWS[raw]
    assert pixels % group == 0
    return pixels // group * size


def unpacked(raw: int, data: np.ndarray) -> np.ndarray:
    """The numbers in rows of bytes: the upper 8 bits of each pixel, then the others, the first one lowest."""
    bits, group, size = RAWS[raw]
    groups = data.reshape(*data.shape[:-1], -1, size).astype(np.uint32)
    low = bits - 8
    rest = groups[..., -1:] >> np.arange(group, dtype=np.uint32) * low & (1 << low) - 1
    return (groups[..., :-1] << low | rest).reshape(*data.shape[:-1], -1)


def test_the_layout_of_the_text():
    """P0[9] is bit 7 of byte 0, P3[1] bit 7 of byte 4, and so on."""
    ten = unpacked(0x10E3, np.array([0x80, 1, 0, 0xFF, 0b10_01_00_11], np.uint8))
    assert ten.tolist() == [0x203, 0x4, 0x1, 0x3FE]
    twelve = unpacked(0x10E4, np.array([0x80, 0x01, 0x4F], np.uint8))
    assert twelve.tolist() == [0x80F, 0x14]


class Raw:
    """An image, and beside it the bytes that must be in it."""

    def __init__(self, opencl, context, queue, type_: str, raw: int):
        self.cl, self.queue, self.type, self.raw, self.shape = opencl, queue, type_, raw, SHAPES[type_]
        slices, rows, width = self.shape
        self.model = noise(slices, rows, row_bytes(raw, width))
        self.buffer = 0
        if type_ == "1D buffer":
            data = (self.model.size, self.model.ctypes.data)
            self.buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, *data)
            desc, flags, pointer = descriptor(type_, width, memory=self.buffer), READ, None
        else:
            desc, flags = described(type_, self.shape), READ | cl.CL_MEM_COPY_HOST_PTR
            pointer = self.model.ctypes.data
        self.handle = opencl.make("clCreateImage", context, flags, words(raw), desc, pointer)

    def release(self):
        for handle in filter(None, (self.handle, self.buffer)):
            self.cl.ok("clReleaseMemObject", handle)

    def part(self, origin, region) -> np.ndarray:
        (x, y, z), (w, h, d) = origin, region
        start = row_bytes(self.raw, x)
        return self.model[z : z + d, y : y + h, start : start + row_bytes(self.raw, w)]

    def read(self) -> np.ndarray:
        found = np.zeros_like(self.model)
        where = ([0, 0, 0], list(self.shape[::-1]), 0, 0, found.ctypes.data)
        self.cl.ok("clEnqueueReadImage", self.queue, self.handle, 1, *where, 0, None, None)
        return found

    def check(self):
        assert np.array_equal(self.read(), self.model)


@pytest.fixture
def image(opencl, context, queue):
    made = []

    def make(type_: str, raw: int) -> Raw:
        made.append(Raw(opencl, context, queue, type_, raw))
        return made[-1]

    yield make
    for each in made:
        each.release()


def some_region(raw: int, type_: str) -> tuple[list[int], list[int]]:
    """origin and region (x, y, z) of whole groups inside."""
    slices, rows, _ = SHAPES[type_]
    return [8, rows // 3, slices // 3], [20, max(rows // 2, 1), max(slices // 2, 1)]


@every_raw
@every_type
def test_commands(opencl, context, queue, image, type_, raw):
    """Regions of whole groups: written with pitches, read, copied, filled, mapped, to and from buffers."""
    a, b = image(type_, raw), image(type_, raw)
    a.check()
    origin, region = some_region(raw, type_)
    row, shape = row_bytes(raw, region[0]) + 3, (region[2], region[1], row_bytes(raw, region[0]))
    pitch = row if type_ == "1D array" else row * region[1]
    memory = noise(pitch * region[2] * region[1] + row)
    pitches = (row, pitch if type_ in HAS_SLICES else 0)
    where = (origin, region, *pitches, memory.ctypes.data)
    opencl.ok("clEnqueueWriteImage", queue, a.handle, 1, *where, 0, None, None)
    a.part(origin, region)[...] = pitched(memory, shape, row, pitch)
    a.check()
    opencl.ok("clEnqueueCopyImage", queue, a.handle, b.handle, origin, [0, 0, 0], region, 0, None, None)
    b.part([0, 0, 0], region)[...] = a.part(origin, region)
    b.check()
    value, bits = 0x9A7, RAWS[raw][0]
    color = np.array([value, 1, 2, 3], np.uint32)
    opencl.ok("clEnqueueFillImage", queue, b.handle, color.ctypes.data, origin, region, 0, None, None)
    before, b.model = b.model, b.read()
    assert (unpacked(raw, b.part(origin, region)) == min(value, (1 << bits) - 1)).all()
    changed, b.model = b.part(origin, region).copy(), before
    b.part(origin, region)[...] = changed
    b.check()
    pointer, row, slice_ = map_image(opencl, queue, b.handle, cl.CL_MAP_READ, origin, region)
    step = slice_ if type_ == "1D array" else row
    size = (region[2] - 1) * slice_ + (region[1] - 1) * step + shape[2]
    mapped = np.frombuffer((ctypes.c_uint8 * size).from_address(pointer), np.uint8)
    assert np.array_equal(pitched(mapped, shape, step, slice_), b.part(origin, region))
    opencl.ok("clEnqueueUnmapMemObject", queue, b.handle, pointer, 0, None, None)
    buffer = opencl.make("clCreateBuffer", context, 0, a.model.size, None)
    opencl.ok("clEnqueueCopyImageToBuffer", queue, a.handle, buffer, origin, region, 5, 0, None, None)
    opencl.ok("clEnqueueCopyBufferToImage", queue, buffer, b.handle, 5, origin, region, 0, None, None)
    b.part(origin, region)[...] = a.part(origin, region)
    b.check()
    opencl.ok("clReleaseMemObject", buffer)


@every_raw
@pytest.mark.parametrize(("width", "rows"), [(44, 9), (4004, 301)])
def test_fills_of_whole_images(opencl, queue, resources, raw, width, rows):
    """Rows without gaps, of a size that no pattern of 16 bytes divides; at once, and as a command."""
    desc = descriptor("2D", width, rows)
    handle = opencl.make("clCreateImage", resources.context, READ, words(raw), desc, None)
    resources.handles.append(handle)
    color, found = np.array([0x155, 0, 0, 0], np.uint32), np.zeros((rows, row_bytes(raw, width)), np.uint8)
    where = ([0, 0, 0], [width, rows, 1])
    opencl.ok("clEnqueueFillImage", queue, handle, color.ctypes.data, *where, 0, None, None)
    opencl.ok("clEnqueueReadImage", queue, handle, 1, *where, 0, 0, found.ctypes.data, 0, None, None)
    assert (unpacked(raw, found) == 0x155).all()


def read_by_kernel(opencl, context, queue, source: str, handle, count: int) -> np.ndarray:
    kernel = opencl.kernel(context, source, options="-cl-std=CL3.0")
    out = np.zeros((count, 4), np.uint32)
    data = (out.nbytes, out.ctypes.data)
    buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, *data)
    for k, argument in enumerate((handle, buffer)):
        opencl.ok("clSetKernelArg", kernel, k, 8, ctypes.c_uint64(argument))
    return kernel, buffer, out


@every_raw
@every_type
def test_kernels_read(opencl, context, queue, image, type_, raw):
    """Each pixel: red, and alpha 1; the launches after the first have code for the format."""
    a = image(type_, raw)
    c_type, at = C_TYPES[type_]
    source = f"""kernel void k(read_only {c_type} a, global uint4 *out) {{
        {PLACE} out[x + get_global_size(0) * (y + get_global_size(1) * z)] = read_imageui(a, {at}); }}"""
    kernel, buffer, out = read_by_kernel(opencl, context, queue, source, a.handle, np.prod(a.shape))
    for _ in range(3):
        where = (3, None, list(a.shape[::-1]), None, 0, None, None)
        opencl.ok("clEnqueueNDRangeKernel", queue, kernel, *where)
        read = (buffer, 1, 0, out.nbytes, out.ctypes.data, 0, None, None)
        opencl.ok("clEnqueueReadBuffer", queue, *read)
        found = out.reshape(*a.shape, 4)
        assert np.array_equal(found[..., 0], unpacked(raw, a.model))
        assert (found[..., 1:3] == 0).all() and (found[..., 3] == 1).all()
    opencl.ok("clReleaseMemObject", buffer)
    opencl.ok("clReleaseKernel", kernel)


@every_raw
def test_kernels_sample(opencl, context, queue, image, raw):
    """At the edges and outside, where clamped reads give 0; what the image says of its pixels."""
    a = image("2D", raw)
    _, rows, width = a.shape
    source = f"""kernel void k(read_only image2d_t a, global uint4 *out) {{
        const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
        const sampler_t e = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
        int x = get_global_id(0) - 3, y = get_global_id(1) - 2;
        out += 2 * (get_global_id(0) + get_global_size(0) * get_global_id(1));
        out[0] = read_imageui(a, s, (float2)(x + 0.5f, y + 0.5f));
        out[1] = read_imageui(a, e, (int2)(x, y));
        out[0].y = get_image_channel_data_type(a) == (get_image_width(a) == {width}
            ? {"CLK_UNSIGNED_INT_RAW10_EXT" if raw == 0x10E3 else "CLK_UNSIGNED_INT_RAW12_EXT"} : 0); }}"""
    count = (width + 6) * (rows + 4)
    kernel, buffer, out = read_by_kernel(opencl, context, queue, source, a.handle, 2 * count)
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 2, None, [width + 6, rows + 4], None, 0, None, None)
    read = (buffer, 1, 0, out.nbytes, out.ctypes.data, 0, None, None)
    opencl.ok("clEnqueueReadBuffer", queue, *read)
    found = out.reshape(rows + 4, width + 6, 2, 4)
    numbers = unpacked(raw, a.model)[0]
    assert np.array_equal(found[:, :, 0, 0], np.pad(numbers, ((2, 2), (3, 3))))
    assert np.array_equal(found[:, :, 1, 0], np.pad(numbers, ((2, 2), (3, 3)), "edge"))
    assert (found[:, :, 0, 1] == 1).all()
    opencl.ok("clReleaseMemObject", buffer)
    opencl.ok("clReleaseKernel", kernel)


@every_raw
@every_type
def test_only_for_reading(opencl, context, fails, type_, raw):
    """Work-items that write neighbours would write to one byte: kernels may read such images."""
    for flags, listed in (
        (READ, True),
        (READ | cl.CL_MEM_COPY_HOST_PTR, True),
        (0, False),
        (cl.CL_MEM_READ_WRITE, False),
        (cl.CL_MEM_WRITE_ONLY, False),
        (cl.CL_MEM_KERNEL_READ_AND_WRITE, False),
        (READ | cl.CL_MEM_KERNEL_READ_AND_WRITE, False),
        (IMMUTABLE, False),
    ):
        count, found = ctypes.c_uint32(), (ctypes.c_uint32 * 400)()
        opencl.ok("clGetSupportedImageFormats", context, flags, TYPES[type_], 200, found, count)
        pairs = [(found[2 * i], found[2 * i + 1]) for i in range(count.value)]
        assert ((cl.CL_R, raw) in pairs) == listed
        assert not any(pair[1] == raw for pair in pairs if pair[0] != cl.CL_R)
    if type_ != "1D buffer":
        for flags in (0, cl.CL_MEM_READ_WRITE, cl.CL_MEM_WRITE_ONLY):
            status = fails(described(type_, SHAPES[type_]), words(raw), flags)
            assert status == cl.CL_IMAGE_FORMAT_NOT_SUPPORTED


@every_raw
def test_no_volumes(opencl, context, fails, raw):
    count, found = ctypes.c_uint32(), (ctypes.c_uint32 * 400)()
    opencl.ok("clGetSupportedImageFormats", context, READ, TYPES["3D"], 200, found, count)
    assert raw not in found[1 : 2 * count.value : 2]
    status = fails(described("3D", (5, 7, 44)), words(raw), READ)
    assert status == cl.CL_IMAGE_FORMAT_NOT_SUPPORTED


@every_raw
def test_errors(opencl, queue, fails, image, resources, raw):
    _, group, _ = RAWS[raw]
    for order in (cl.CL_RG, cl.CL_RGBA, cl.CL_A, cl.CL_LUMINANCE):
        status = fails(descriptor("2D", 8, 8), words(raw, order), READ)
        assert status == cl.CL_INVALID_IMAGE_FORMAT_DESCRIPTOR
    for width in {1, group - 1, group + 1, 8 + group // 2}:
        status = fails(descriptor("2D", width, 8), words(raw), READ)
        assert status == cl.CL_INVALID_IMAGE_DESCRIPTOR
    assert fails(descriptor("2D", 8, 8, levels=2), words(raw), READ) == cl.CL_INVALID_IMAGE_DESCRIPTOR
    row, memory = row_bytes(raw, 8), resources.memory
    for pitch in (row - 1, 1):
        given = (READ | cl.CL_MEM_COPY_HOST_PTR, memory.ctypes.data)
        status = fails(descriptor("2D", 8, 8, row=pitch), words(raw), *given)
        assert status == cl.CL_INVALID_IMAGE_DESCRIPTOR
    a = image("2D", raw)
    for origin, region in (([1, 0, 0], [4, 1, 1]), ([0, 0, 0], [3, 1, 1]), ([group // 2, 0, 0], [4, 1, 1])):
        where = (origin, region, 0, 0, memory.ctypes.data, 0, None, None)
        for name in ("clEnqueueReadImage", "clEnqueueWriteImage"):
            assert opencl.fails(name, queue, a.handle, 1, *where) == cl.CL_INVALID_VALUE
        fill = (memory.ctypes.data, origin, region, 0, None, None)
        assert opencl.fails("clEnqueueFillImage", queue, a.handle, *fill) == cl.CL_INVALID_VALUE


@every_raw
def test_rows_of_the_hosts_memory(opencl, context, queue, raw):
    """With any pitch that has room for a row, used and copied; in a buffer, with its least size."""
    width, rows = 12, 5
    row = row_bytes(raw, width)
    memory = noise(rows * (row + 1))
    want = pitched(memory, (1, rows, row), row + 1, 0).copy()
    for flags in (cl.CL_MEM_USE_HOST_PTR, cl.CL_MEM_COPY_HOST_PTR):
        desc = descriptor("2D", width, rows, row=row + 1)
        handle = opencl.make("clCreateImage", context, READ | flags, words(raw), desc, memory.ctypes.data)
        found = np.zeros_like(want)
        where = ([0, 0, 0], [width, rows, 1], 0, 0, found.ctypes.data, 0, None, None)
        opencl.ok("clEnqueueReadImage", queue, handle, 1, *where)
        assert np.array_equal(found, want)
        size = ctypes.c_size_t()
        opencl.ok("clGetImageInfo", handle, cl.CL_IMAGE_ELEMENT_SIZE, 8, ctypes.byref(size), None)
        assert size.value == 2
        opencl.ok("clReleaseMemObject", handle)
    query = opencl.checked("clGetImageRequirementsInfoEXT", "ppbppuzpp")
    answers = {}
    for name in ("SIZE", "BASE_ADDRESS_ALIGNMENT", "ROW_PITCH_ALIGNMENT"):
        number, name_ = ctypes.c_size_t(), getattr(cl, f"CL_IMAGE_REQUIREMENTS_{name}_EXT")
        desc = descriptor("2D", width, rows)
        assert query(context, None, READ, words(raw), desc, name_, 8, ctypes.byref(number), None) == 0
        answers[name] = number.value
    assert answers == {"SIZE": rows * row, "BASE_ADDRESS_ALIGNMENT": 1, "ROW_PITCH_ALIGNMENT": 1}
    for size, of_buffer, flags, status in (
        (rows * row, 0, READ, 0),
        (rows * row, READ, 0, 0),
        (rows * row, 0, 0, cl.CL_IMAGE_FORMAT_NOT_SUPPORTED),
        (rows * row - 1, 0, READ, cl.CL_INVALID_IMAGE_SIZE),
    ):
        buffer = opencl.make("clCreateBuffer", context, of_buffer, size, None)
        arguments = (context, flags, words(raw), descriptor("2D", width, rows, memory=buffer), None)
        if status:
            assert opencl.fails("clCreateImage", *arguments) == status
        else:
            opencl.ok("clReleaseMemObject", opencl.make("clCreateImage", *arguments))
        opencl.ok("clReleaseMemObject", buffer)
