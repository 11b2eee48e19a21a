"""What commands do to images, beside numpy: every type and format, regions, pitches (5.3.4 to 5.3.7)."""

import ctypes
import random

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images.image import RGBA8, Image, map_image, noise, random_region
from tests.loader.images.model import HAS_SLICES, TYPES, Format, formats, pitched

every_type = pytest.mark.parametrize("type_", TYPES)


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
