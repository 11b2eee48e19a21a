"""Images from the host, beside numpy: every type and format, regions, pitches (5.3)."""

import ctypes
import itertools
import random

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images import (
    DIMENSIONS,
    HAS_SLICES,
    TYPES,
    Format,
    described,
    descriptor,
    formats,
    pitched,
)

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
every_type = pytest.mark.parametrize("type_", TYPES)


@pytest.fixture(scope="module")
def context(opencl):
    made = opencl.context()
    yield made
    opencl.ok("clReleaseContext", made)


@pytest.fixture(scope="module")
def queue(opencl, context):
    made = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
    yield made
    opencl.ok("clReleaseCommandQueue", made)


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


@every_type
def test_supported_formats(opencl, context, type_):
    """The list is exactly the model's, whatever kernels may do with them."""
    expected = sorted(format_.words for format_ in formats(type_))
    flags = (0, cl.CL_MEM_READ_ONLY, cl.CL_MEM_WRITE_ONLY, cl.CL_MEM_READ_WRITE)
    for access in (*flags, cl.CL_MEM_KERNEL_READ_AND_WRITE):
        count = ctypes.c_uint32()
        found = (ctypes.c_uint32 * 400)()
        where = (context, access, TYPES[type_])
        opencl.ok("clGetSupportedImageFormats", *where, 0, None, count)
        opencl.ok("clGetSupportedImageFormats", *where, 200, found, None)
        pairs = [(found[2 * i], found[2 * i + 1]) for i in range(count.value)]
        assert sorted(pairs) == expected
        few = (ctypes.c_uint32 * 6)()
        opencl.ok("clGetSupportedImageFormats", *where, 2, few, count)
        assert list(few) == [*found[:4], 0, 0] and count.value == len(expected)


# Table 28 and, for read-write, Table 29; besides what OpenCL 2 asks for.
REQUIRED = [
    *((order, type_) for order in ("CL_R", "CL_RG", "CL_RGBA") for type_ in (
        "CL_UNORM_INT8", "CL_UNORM_INT16", "CL_SNORM_INT8", "CL_SNORM_INT16", "CL_SIGNED_INT8",
        "CL_SIGNED_INT16", "CL_SIGNED_INT32", "CL_UNSIGNED_INT8", "CL_UNSIGNED_INT16", "CL_UNSIGNED_INT32",
        "CL_HALF_FLOAT", "CL_FLOAT",
    )),
    ("CL_DEPTH", "CL_UNORM_INT16"), ("CL_DEPTH", "CL_FLOAT"), ("CL_BGRA", "CL_UNORM_INT8"),
    ("CL_sRGBA", "CL_UNORM_INT8"),
]  # fmt: skip


def test_required_formats():
    listed = {(format_.order, format_.type) for format_ in formats("2D")}
    assert set(REQUIRED) <= listed


@every_type
def test_read_and_write(opencl, context, queue, type_):
    """Regions of every format, with and without pitches, blocking and not."""
    generator = random.Random(type_)
    for format_ in formats(type_):
        image = Image(opencl, context, queue, type_, format_)
        image.check()
        for blocking in (True, False):
            pads = (0, 0) if blocking else (format_.size * generator.randrange(4), 0)
            if type_ in HAS_SLICES and not blocking:
                pads = (pads[0], generator.randrange(3) * 40)
            origin, region = random_region(generator, image.shape)
            image.write(origin, region, pads, blocking)
            image.check()
            origin, region = random_region(generator, image.shape)
            assert (image.read(origin, region, pads, blocking) == image.part(origin, region)).all()
        image.release()


@pytest.mark.parametrize("from_", TYPES)
@pytest.mark.parametrize("to", TYPES)
def test_copy(opencl, context, queue, from_, to):
    """Between all types; of formats one of each size."""
    generator = random.Random(from_ + to)
    for format_ in {format_.size: format_ for format_ in formats(from_)}.values():
        if format_.order == "CL_DEPTH":
            continue
        images = [Image(opencl, context, queue, type_, format_) for type_ in (from_, to)]
        source, destination = images
        destination.model[...] = 255 - destination.model
        opencl.ok("clFinish", queue)
        everything = (list(destination.shape[::-1]), 0, 0, destination.model.ctypes.data)
        opencl.ok("clEnqueueWriteImage", queue, destination.handle, 1, [0, 0, 0], *everything, 0, None, None)
        for _ in range(3):
            common = tuple(map(min, source.shape, destination.shape))
            _, region = random_region(generator, common)
            origins = [
                [generator.randrange(size - w + 1) for size, w in zip(image.shape[::-1], region, strict=True)]
                for image in images
            ]
            handles = (source.handle, destination.handle)
            opencl.ok("clEnqueueCopyImage", queue, *handles, *origins, list(region), 0, None, None)
            destination.part(origins[1], region)[...] = source.part(origins[0], region)
        destination.check()
        for image in images:
            image.release()


@every_type
def test_buffers(opencl, context, queue, type_):
    """To a buffer and back, at offsets, of every format."""
    generator = random.Random(type_)
    for format_ in formats(type_):
        image = Image(opencl, context, queue, type_, format_)
        offset = generator.randrange(100)
        memory = noise(image.model.size + 300)
        flags = cl.CL_MEM_USE_HOST_PTR
        buffer = opencl.make("clCreateBuffer", context, flags, memory.size, memory.ctypes.data)
        origin, region = random_region(generator, image.shape)
        expected = memory.copy()
        part = image.part(origin, region).ravel()
        expected[offset : offset + part.size] = part
        where = (list(origin), list(region))
        opencl.ok("clEnqueueCopyImageToBuffer", queue, image.handle, buffer, *where, offset, 0, None, None)
        opencl.ok("clFinish", queue)
        assert (memory == expected).all()
        memory[...] = noise(memory.size)[::-1]
        opencl.ok("clEnqueueCopyBufferToImage", queue, buffer, image.handle, offset, *where, 0, None, None)
        opencl.ok("clFinish", queue)
        part = image.part(origin, region)
        part[...] = memory[offset : offset + part.size].reshape(part.shape)
        image.check()
        opencl.ok("clReleaseMemObject", buffer)
        image.release()


COLORS = ((0.25, 0.5, 0.75, 1.0), (200, 90, 33, 7))


@every_type
def test_fill(opencl, context, queue, type_):
    """A region of every format; the rest stays."""
    generator = random.Random(type_)
    for format_ in formats(type_):
        image = Image(opencl, context, queue, type_, format_)
        color = COLORS[format_.is_integer]
        origin, region = random_region(generator, image.shape)
        values = format_.color(color)
        where = (values.ctypes.data, list(origin), list(region))
        opencl.ok("clEnqueueFillImage", queue, image.handle, *where, 0, None, None)
        pixel = np.frombuffer(format_.pack(color), np.uint8)
        image.part(origin, region)[...] = np.tile(pixel, region[0])
        image.check()
        image.release()


def special_colors(format_: Format):
    generator = random.Random(repr(format_))
    if format_.is_integer:
        limits = [0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, -32768, -32769, 65535, 65536]
        limits += [2**31 - 1, -(2**31), *(generator.randrange(-(2**31), 2**31) for _ in range(20))]
        if "UNSIGNED" in format_.type:
            limits = [value % 2**32 for value in limits]
        return [tuple(generator.choice(limits) for _ in range(4)) for _ in range(60)] + [
            (value,) * 4 for value in limits
        ]
    values = [0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 1e30, -1e30, float("inf"), float("-inf"), 1e-8, 0.0031307]
    values += [(k + 0.5) / most for most in (255, 127, 65535, 31, 63, 1023) for k in (0, 1, 2, 30)]
    values += [65504.0, 65519.9, 65520.0, 5.9e-8, 2.98e-8, 3.0e-8, 6.1e-5, 1 + 2**-11, 1 + 3 * 2**-11]
    values += [generator.uniform(-1.2, 1.2) for _ in range(40)]
    if format_.type not in ("CL_FLOAT", "CL_HALF_FLOAT"):
        values.append(float("nan"))
    return [(value, value, value, value) for value in values] + [
        tuple(generator.choice(values) for _ in range(4)) for _ in range(60)
    ]


def test_conversion_of_colors(opencl, context, queue):
    """Saturation, rounding to even, sRGB, half: bit for bit."""
    for format_ in formats("2D"):
        colors = special_colors(format_)
        shape = (1, 1, len(colors))
        image = Image(opencl, context, queue, "2D", format_, shape)
        for x, color in enumerate(colors):
            values = format_.color(color)
            where = (values.ctypes.data, [x, 0, 0], [1, 1, 1])
            opencl.ok("clEnqueueFillImage", queue, image.handle, *where, 0, None, None)
        found = image.read()[0, 0].tobytes()
        for x, color in enumerate(colors):
            at = found[x * format_.size : (x + 1) * format_.size]
            assert at == format_.pack(color), f"{format_} {color}"
        image.release()


def map_image(opencl, queue, image, flags, origin, region):
    """pointer, row pitch, slice pitch."""
    row, slice_ = ctypes.c_uint64(77), ctypes.c_uint64(77)
    where = (flags, list(origin), list(region), row, slice_)
    pointer = opencl.make("clEnqueueMapImage", queue, image, 1, *where, 0, None, None)
    return pointer, row.value, slice_.value


@every_type
def test_map(opencl, context, queue, type_):
    """What is mapped is the memory itself: read, and write where it was mapped for writing."""
    generator = random.Random(type_)
    for format_ in formats(type_):
        image = Image(opencl, context, queue, type_, format_)
        origin, region = random_region(generator, image.shape)
        flags = cl.CL_MAP_READ | cl.CL_MAP_WRITE
        pointer, row, slice_ = map_image(opencl, queue, image.handle, flags, origin, region)
        assert (slice_ != 0) == (type_ in HAS_SLICES)
        assert row == image.shape[2] * format_.size
        assert opencl.integer("clGetMemObjectInfo", image.handle, cl.CL_MEM_MAP_COUNT) == 1
        step = slice_ if type_ == "1D array" else row
        shape = (region[2], region[1], region[0] * format_.size)
        size = (shape[0] - 1) * slice_ + (shape[1] - 1) * step + shape[2]
        memory = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_uint8)), (size,))
        view = pitched(memory, shape, step, slice_)
        assert (view == image.part(origin, region)).all()
        view[...] = noise(*shape)
        image.part(origin, region)[...] = noise(*shape)
        opencl.ok("clEnqueueUnmapMemObject", queue, image.handle, pointer, 0, None, None)
        opencl.ok("clFinish", queue)
        assert opencl.integer("clGetMemObjectInfo", image.handle, cl.CL_MEM_MAP_COUNT) == 0
        image.check()
        image.release()


@pytest.mark.parametrize("type_", [name for name in TYPES if name != "1D buffer"])
@pytest.mark.parametrize("flag", ["CL_MEM_USE_HOST_PTR", "CL_MEM_COPY_HOST_PTR"])
def test_host_memory(opencl, context, queue, type_, flag):
    """Host memory with pitches: copied, or used without a copy."""
    for format_, pads in itertools.product(formats(type_)[::7], ((0, 0), (3, 0), (2, 2))):
        slices, rows, width = SHAPES[type_]
        row = (width + pads[0]) * format_.size
        slice_ = row * ((1 if type_ == "1D array" else rows) + pads[1])
        step = slice_ if type_ == "1D array" else row
        memory = noise(slice_ * slices * rows)
        shape = (slices, rows, width * format_.size)
        has_slices = type_ in HAS_SLICES
        desc = described(type_, SHAPES[type_], row=row, slice_=slice_ if has_slices else 0)
        made = opencl.make("clCreateImage", context, getattr(cl, flag), format_.c, desc, memory.ctypes.data)
        assert opencl.integer("clGetImageInfo", made, cl.CL_IMAGE_ROW_PITCH) == row
        assert opencl.integer("clGetImageInfo", made, cl.CL_IMAGE_SLICE_PITCH) == has_slices * slice_
        expected = pitched(memory, shape, step, slice_).copy()
        if flag == "CL_MEM_COPY_HOST_PTR":
            memory[...] = 0
            assert opencl.integer("clGetMemObjectInfo", made, cl.CL_MEM_HOST_PTR) == 0
        else:
            assert opencl.integer("clGetMemObjectInfo", made, cl.CL_MEM_HOST_PTR) == memory.ctypes.data
        region = list(SHAPES[type_][::-1])
        found = np.zeros(shape, np.uint8)
        where = ([0, 0, 0], region, 0, 0, found.ctypes.data)
        opencl.ok("clEnqueueReadImage", queue, made, 1, *where, 0, None, None)
        assert (found == expected).all()
        if flag == "CL_MEM_USE_HOST_PTR":
            pointer, *pitches = map_image(opencl, queue, made, cl.CL_MAP_READ, (0, 0, 0), region)
            assert pointer == memory.ctypes.data and pitches == [row, has_slices * slice_]
            opencl.ok("clEnqueueUnmapMemObject", queue, made, pointer, 0, None, None)
            opencl.ok("clFinish", queue)
        opencl.ok("clReleaseMemObject", made)


def test_images_of_buffers_share_their_memory(opencl, context, queue):
    memory = noise(4096)
    buffer = opencl.make(
        "clCreateBuffer", context, cl.CL_MEM_USE_HOST_PTR | cl.CL_MEM_READ_ONLY, 4096, memory.ctypes.data
    )
    part = opencl.make("clCreateSubBuffer", buffer, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, [1024, 2048])
    # 13 pixels of 4 bytes, a pitch of 15.
    desc = descriptor("2D", 13, 20, row=60, memory=part)
    image = opencl.make("clCreateImage", context, 0, RGBA8.c, desc, None)
    found = np.zeros((20, 52), np.uint8)
    where = ([0, 0, 0], [13, 20, 1], 0, 0, found.ctypes.data)
    opencl.ok("clEnqueueReadImage", queue, image, 1, *where, 0, None, None)
    assert (found == pitched(memory[1024:], (1, 20, 52), 60, 1200)[0]).all()
    for name, value in (
        ("CL_MEM_FLAGS", cl.CL_MEM_READ_ONLY | cl.CL_MEM_USE_HOST_PTR),
        ("CL_MEM_ASSOCIATED_MEMOBJECT", part),
        ("CL_MEM_SIZE", 1200),
        ("CL_MEM_OFFSET", 0),
        ("CL_MEM_TYPE", cl.CL_MEM_OBJECT_IMAGE2D),
        ("CL_MEM_USES_SVM_POINTER", 0),
    ):
        assert opencl.integer("clGetMemObjectInfo", image, getattr(cl, name)) == value, name
    assert opencl.integer("clGetImageInfo", image, cl.CL_IMAGE_BUFFER) == part
    assert opencl.integer("clGetImageInfo", image, cl.CL_IMAGE_ROW_PITCH) == 60
    # A view of the view: the same bytes as sRGB.
    srgb = Format("CL_sRGBA", "CL_UNORM_INT8")
    view = opencl.make(
        "clCreateImage", context, 0, srgb.c, descriptor("2D", 13, 20, row=60, memory=image), None
    )
    assert opencl.integer("clGetMemObjectInfo", view, cl.CL_MEM_ASSOCIATED_MEMOBJECT) == image
    assert opencl.integer("clGetImageInfo", view, cl.CL_IMAGE_BUFFER) == part
    for handle in (buffer, part, image):
        opencl.ok("clReleaseMemObject", handle)
    color = srgb.color((0.5, 0.25, 1, 0.5))
    where = (color.ctypes.data, [1, 19, 0], [3, 1, 1])
    opencl.ok("clEnqueueFillImage", queue, view, *where, 0, None, None)
    opencl.ok("clFinish", queue)
    at = 1024 + 19 * 60 + 4
    assert memory[at : at + 12].tobytes() == srgb.pack((0.5, 0.25, 1, 0.5)) * 3
    opencl.ok("clReleaseMemObject", view)


@pytest.mark.parametrize("pair", ["sBGRA BGRA", "sRGBA RGBA", "sRGBx RGBx", "DEPTH R"])
def test_views_with_other_orders(opencl, context, pair):
    orders = [f"CL_{name}" for name in pair.split()]
    type_ = "CL_FLOAT" if "DEPTH" in pair else "CL_UNORM_INT8"
    for order, of in (orders, orders[::-1]):
        if order == "CL_R":
            continue  # only the other way round
        parent = opencl.make("clCreateImage", context, 0, Format(of, type_).c, descriptor("2D", 8, 8), None)
        desc = descriptor("2D", 8, 8, memory=parent)
        view = opencl.make("clCreateImage", context, 0, Format(order, type_).c, desc, None)
        opencl.ok("clReleaseMemObject", parent)
        opencl.ok("clReleaseMemObject", view)


@pytest.mark.parametrize("type_", [name for name in TYPES if name != "1D buffer"])
def test_mip_levels(opencl, context, queue, type_):
    """Each level is an image of its own size; every command finds it by the entry behind the origin."""
    slices, rows, width = SHAPES[type_]
    format_ = Format("CL_RG", "CL_UNORM_INT16")
    dimensions = DIMENSIONS[type_]
    made = opencl.make(
        "clCreateImage", context, 0, format_.c, described(type_, SHAPES[type_], levels=6), None
    )
    assert opencl.integer("clGetImageInfo", made, cl.CL_IMAGE_NUM_MIP_LEVELS) == 6
    models = []
    for level in range(6):
        size = [max(width >> level, 1), rows, slices]
        if type_ in ("2D", "2D array", "3D"):
            size[1] = max(rows >> level, 1)
        if type_ == "3D":
            size[2] = max(slices >> level, 1)
        models.append((size, noise(size[2], size[1], size[0] * 4) ^ level))

    def origin(level):
        return [*[0] * dimensions, level, 0, 0, 0][:4]

    for level, (size, model) in enumerate(models):
        where = (origin(level), size, 0, 0, model.ctypes.data)
        opencl.ok("clEnqueueWriteImage", queue, made, 1, *where, 0, None, None)
    for level, (size, model) in enumerate(models):
        found = np.zeros_like(model)
        where = (origin(level), size, 0, 0, found.ctypes.data)
        opencl.ok("clEnqueueReadImage", queue, made, 1, *where, 0, None, None)
        assert (found == model).all(), level
        pointer, _, slice_ = map_image(opencl, queue, made, cl.CL_MAP_READ, origin(level), size)
        assert ctypes.string_at(pointer, model.size) == model.tobytes()
        opencl.ok("clEnqueueUnmapMemObject", queue, made, pointer, 0, None, None)
        assert (slice_ != 0) == (type_ in HAS_SLICES)
    # A region of level 1 over one of level 0.
    size, model = models[1]
    where = (origin(1), origin(0), size)
    opencl.ok("clEnqueueCopyImage", queue, made, made, *where, 0, None, None)
    found = np.zeros_like(model)
    where = (origin(0), size, 0, 0, found.ctypes.data)
    opencl.ok("clEnqueueReadImage", queue, made, 1, *where, 0, None, None)
    assert (found == model).all()
    beyond = (origin(6), [1, 1, 1], 0, 0, found.ctypes.data)
    status = opencl.fails("clEnqueueReadImage", queue, made, 1, *beyond, 0, None, None)
    assert status == cl.CL_INVALID_MIP_LEVEL
    # What fits level 0 does not fit level 1.
    outside = (origin(1), models[0][0], 0, 0, found.ctypes.data)
    status = opencl.fails("clEnqueueReadImage", queue, made, 1, *outside, 0, None, None)
    assert status == cl.CL_INVALID_VALUE
    opencl.ok("clReleaseMemObject", made)


def test_large_copies(opencl, context, queue):
    """From 1 MiB on all cores: linear ones, rows with gaps, fills, one row at the end that is not whole."""
    generator = random.Random(0)
    for shape in ((1, 1000, 777), (3, 300, 1001)):
        type_ = "2D" if shape[0] == 1 else "2D array"
        image = Image(opencl, context, queue, type_, RGBA8, shape)
        image.check()
        for _ in range(3):
            origin, region = random_region(generator, shape)
            image.write(origin, region, (16, 0), blocking=False)
        region = (700, 290, shape[0])
        color = RGBA8.color((0.1, 0.2, 0.3, 0.4))
        where = (color.ctypes.data, [50, 5, 0], list(region))
        opencl.ok("clEnqueueFillImage", queue, image.handle, *where, 0, None, None)
        pixel = np.frombuffer(RGBA8.pack((0.1, 0.2, 0.3, 0.4)), np.uint8)
        image.part((50, 5, 0), region)[...] = np.tile(pixel, region[0])
        image.check()
        image.release()


def test_largest_images(opencl, context):
    """The limits that the device reports are those of clCreateImage."""

    def limit(name):
        return opencl.integer("clGetDeviceInfo", opencl.device(), getattr(cl, name))

    two = limit("CL_DEVICE_IMAGE2D_MAX_WIDTH"), limit("CL_DEVICE_IMAGE2D_MAX_HEIGHT")
    three = [limit(f"CL_DEVICE_IMAGE3D_MAX_{name}") for name in ("WIDTH", "HEIGHT", "DEPTH")]
    layers, pixels = limit("CL_DEVICE_IMAGE_MAX_ARRAY_SIZE"), limit("CL_DEVICE_IMAGE_MAX_BUFFER_SIZE")
    assert two == (16384, 16384) and three == [2048] * 3 and layers == 2048 and pixels >= 65536
    r8 = Format("CL_R", "CL_UNORM_INT8")
    buffer = opencl.make("clCreateBuffer", context, 0, pixels + 1, None)
    cases = [
        (descriptor("1D", two[0]), descriptor("1D", two[0] + 1)),
        (descriptor("2D", two[0], 1), descriptor("2D", two[0] + 1, 1)),
        (descriptor("2D", 1, two[1]), descriptor("2D", 1, two[1] + 1)),
        (descriptor("1D array", 1, layers=layers), descriptor("1D array", 1, layers=layers + 1)),
        (descriptor("2D array", 1, 1, layers=layers), descriptor("2D array", 1, 1, layers=layers + 1)),
        (descriptor("2D array", 1, two[1], layers=1), descriptor("2D array", 1, two[1] + 1, layers=1)),
        (descriptor("3D", three[0], 1, 1), descriptor("3D", three[0] + 1, 1, 1)),
        (descriptor("3D", 1, three[1], 1), descriptor("3D", 1, three[1] + 1, 1)),
        (descriptor("3D", 1, 1, three[2]), descriptor("3D", 1, 1, three[2] + 1)),
        (
            descriptor("1D buffer", pixels, memory=buffer),
            descriptor("1D buffer", pixels + 1, memory=buffer),
        ),
    ]
    for most, more in cases:
        opencl.ok("clReleaseMemObject", opencl.make("clCreateImage", context, 0, r8.c, most, None))
        assert opencl.fails("clCreateImage", context, 0, r8.c, more, None) == cl.CL_INVALID_IMAGE_SIZE
    opencl.ok("clReleaseMemObject", buffer)


@every_type
def test_queries(opencl, context, queue, type_):
    image = Image(opencl, context, queue, type_, RGBA8, flags=cl.CL_MEM_READ_ONLY)
    slices, rows, width = image.shape
    layers = {"1D array": rows, "2D array": slices}.get(type_, 0)
    height = rows if type_ in ("2D", "2D array", "3D") else 0
    size = image.model.size
    expected = {
        "CL_IMAGE_ELEMENT_SIZE": 4,
        "CL_IMAGE_ROW_PITCH": width * 4,
        "CL_IMAGE_SLICE_PITCH": width * 4 * max(height, 1) if type_ in HAS_SLICES else 0,
        "CL_IMAGE_WIDTH": width,
        "CL_IMAGE_HEIGHT": height,
        "CL_IMAGE_DEPTH": slices if type_ == "3D" else 0,
        "CL_IMAGE_ARRAY_SIZE": layers,
        "CL_IMAGE_BUFFER": image.buffer,
        "CL_IMAGE_NUM_MIP_LEVELS": 0,
        "CL_IMAGE_NUM_SAMPLES": 0,
    }
    for name, value in expected.items():
        data = opencl.info("clGetImageInfo", image.handle, getattr(cl, name))
        assert int.from_bytes(data, "little") == value, name
        assert len(data) == (4 if "NUM" in name else 8), name
    found = opencl.info("clGetImageInfo", image.handle, cl.CL_IMAGE_FORMAT)
    assert found == bytes(RGBA8.c)
    flags = cl.CL_MEM_READ_ONLY | cl.CL_MEM_COPY_HOST_PTR
    for name, value in (
        ("CL_MEM_TYPE", TYPES[type_]),
        ("CL_MEM_FLAGS", flags),
        ("CL_MEM_SIZE", size),
        ("CL_MEM_HOST_PTR", 0),
        ("CL_MEM_CONTEXT", context),
        ("CL_MEM_REFERENCE_COUNT", 1),
        ("CL_MEM_ASSOCIATED_MEMOBJECT", image.buffer),
    ):
        assert opencl.integer("clGetMemObjectInfo", image.handle, getattr(cl, name)) == value, name
    assert opencl.info("clGetMemObjectInfo", image.handle, cl.CL_MEM_PROPERTIES) == b""
    image.release()


def test_images_of_version_1(opencl, context, queue):
    """clCreateImage2D and clCreateImage3D, with their pitches."""
    memory = noise(4000)
    use = cl.CL_MEM_USE_HOST_PTR
    two = opencl.make("clCreateImage2D", context, use, RGBA8.c, 10, 5, 48, memory.ctypes.data)
    three = opencl.make("clCreateImage3D", context, use, RGBA8.c, 10, 5, 3, 48, 480, memory.ctypes.data)
    assert opencl.integer("clGetImageInfo", two, cl.CL_IMAGE_ROW_PITCH) == 48
    assert opencl.integer("clGetImageInfo", three, cl.CL_IMAGE_SLICE_PITCH) == 480
    assert opencl.integer("clGetMemObjectInfo", three, cl.CL_MEM_TYPE) == cl.CL_MEM_OBJECT_IMAGE3D
    for image, depth in ((two, 1), (three, 3)):
        found = np.zeros((depth, 5, 40), np.uint8)
        where = ([0, 0, 0], [10, 5, depth], 0, 0, found.ctypes.data)
        opencl.ok("clEnqueueReadImage", queue, image, 1, *where, 0, None, None)
        assert (found == pitched(memory, found.shape, 48, 480)).all()
        opencl.ok("clReleaseMemObject", image)


def test_events_and_migration(opencl, context, queue):
    """Each command has an event of its own type, waits for others, and holds the image."""
    image = Image(opencl, context, queue, "2D", RGBA8)
    other = Image(opencl, context, queue, "2D", RGBA8)
    buffer = opencl.make("clCreateBuffer", context, 0, 9 * 37 * 4, None)
    memory = np.zeros(9 * 37 * 4, np.uint8)
    color = RGBA8.color((1, 1, 1, 1))
    gate = opencl.make("clCreateUserEvent", context)
    zero, all_ = [0, 0, 0], [37, 9, 1]
    a, b, host = image.handle, other.handle, memory.ctypes.data
    commands = (
        (cl.CL_COMMAND_FILL_IMAGE, "clEnqueueFillImage", (a, color.ctypes.data, zero, all_)),
        (cl.CL_COMMAND_COPY_IMAGE, "clEnqueueCopyImage", (a, b, zero, zero, all_)),
        (cl.CL_COMMAND_COPY_IMAGE_TO_BUFFER, "clEnqueueCopyImageToBuffer", (b, buffer, zero, all_, 0)),
        (cl.CL_COMMAND_COPY_BUFFER_TO_IMAGE, "clEnqueueCopyBufferToImage", (buffer, a, 0, zero, all_)),
        (cl.CL_COMMAND_MIGRATE_MEM_OBJECTS, "clEnqueueMigrateMemObjects", (2, [a, b], 0)),
        (cl.CL_COMMAND_READ_IMAGE, "clEnqueueReadImage", (a, 0, zero, all_, 0, 0, host)),
        (cl.CL_COMMAND_WRITE_IMAGE, "clEnqueueWriteImage", (b, 0, zero, all_, 0, 0, host)),
    )
    events, before = [], gate
    for type_, name, arguments in commands:
        event = ctypes.c_void_p()
        opencl.ok(name, queue, *arguments, 1, [before], event)
        assert opencl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_TYPE) == type_
        events.append(before := event.value)
    row = ctypes.c_uint64()
    event = ctypes.c_void_p()
    where = (b, 0, cl.CL_MAP_READ, zero, all_, row, None)
    pointer = opencl.make("clEnqueueMapImage", queue, *where, 1, [before], event)
    assert opencl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_TYPE) == cl.CL_COMMAND_MAP_IMAGE
    events.append(event.value)
    opencl.ok("clReleaseMemObject", image.handle)  # the commands hold it
    opencl.ok("clSetUserEventStatus", gate, 0)
    opencl.ok("clFinish", queue)
    assert (memory == 255).all()
    assert ctypes.string_at(pointer, 64) == b"\xff" * 64
    opencl.ok("clEnqueueUnmapMemObject", queue, b, pointer, 0, None, None)
    opencl.ok("clFinish", queue)
    for event in (*events, gate):
        opencl.ok("clReleaseEvent", event)
    for handle in (b, buffer):
        opencl.ok("clReleaseMemObject", handle)
