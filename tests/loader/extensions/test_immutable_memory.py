"""Memory objects that nothing may change: cl_ext_immutable_memory_objects 1.0.0."""

import os

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.core.session import Buffer
from tests.loader.images.model import RAWS, Format, descriptor

IMMUTABLE = 1 << 6
FD = 0x2060
ITEMS = 256
SIZE = 4 * ITEMS
RGBA8 = Format("CL_RGBA", "CL_UNSIGNED_INT8")
PLANE = descriptor("2D", 16, 16)
REGION = cl.CL_BUFFER_CREATE_TYPE_REGION
ORIGIN, WHOLE = [0, 0, 0], [16, 16, 1]
NO_WAIT = (0, None, None)
POINTERS = {
    "copy": cl.CL_MEM_COPY_HOST_PTR,
    "use": cl.CL_MEM_USE_HOST_PTR,
    "copy and alloc": cl.CL_MEM_COPY_HOST_PTR | cl.CL_MEM_ALLOC_HOST_PTR,
}


@pytest.fixture
def data():
    return np.arange(ITEMS, dtype=np.uint32) * 77


def make_buffer(session, data, flags=cl.CL_MEM_COPY_HOST_PTR) -> Buffer:
    where = (session.context, flags | IMMUTABLE, data.nbytes, data.ctypes.data)
    return Buffer(session.made("clReleaseMemObject", session.cl.make("clCreateBuffer", *where)))


def make_image(session, data, flags=cl.CL_MEM_COPY_HOST_PTR, desc=PLANE) -> Buffer:
    pointer = data.ctypes.data if flags & (cl.CL_MEM_COPY_HOST_PTR | cl.CL_MEM_USE_HOST_PTR) else None
    where = (session.context, flags | IMMUTABLE, RGBA8.c, desc, pointer)
    return Buffer(session.made("clReleaseMemObject", session.cl.make("clCreateImage", *where)))


def read_image(session, image) -> np.ndarray:
    got = np.zeros(ITEMS, np.uint32)
    where = (cl.CL_TRUE, ORIGIN, WHOLE, 0, 0, got.ctypes.data, *NO_WAIT)
    session.cl.ok("clEnqueueReadImage", session.queue, image, *where)
    return got


@pytest.mark.parametrize("flags", POINTERS.values(), ids=POINTERS)
def test_they_are_read_in_every_way(session, data, flags):
    buffer, image = make_buffer(session, data, flags), make_image(session, data, flags)
    assert session.cl.integer("clGetMemObjectInfo", buffer, cl.CL_MEM_FLAGS) == flags | IMMUTABLE
    assert np.array_equal(session.read(buffer, np.uint32, ITEMS), data)
    assert np.array_equal(read_image(session, image), data)
    target, plane = session.buffer(SIZE), Buffer(make_plain_image(session))
    session.cl.ok("clEnqueueCopyBuffer", session.queue, buffer, target, 0, 0, SIZE, *NO_WAIT)
    assert np.array_equal(session.read(target, np.uint32, ITEMS), data)
    session.cl.ok("clEnqueueCopyBufferToImage", session.queue, buffer, plane, 0, ORIGIN, WHOLE, *NO_WAIT)
    session.cl.ok("clEnqueueCopyImage", session.queue, image, plane, ORIGIN, ORIGIN, WHOLE, *NO_WAIT)
    session.cl.ok("clEnqueueCopyImageToBuffer", session.queue, image, target, ORIGIN, WHOLE, 0, *NO_WAIT)
    assert np.array_equal(read_image(session, plane), data)
    mapped = session.cl.make(
        "clEnqueueMapBuffer", session.queue, buffer, cl.CL_TRUE, cl.CL_MAP_READ, 0, SIZE, *NO_WAIT
    )
    session.cl.ok("clEnqueueUnmapMemObject", session.queue, buffer, mapped, *NO_WAIT)
    session.cl.ok("clEnqueueMigrateMemObjects", session.queue, 1, [buffer], 0, *NO_WAIT)
    kernel = session.kernel(
        "kernel void k(global const uint *in, constant uint *too, global uint *a, read_only image2d_t i,"
        "global uint *out) { int g = get_global_id(0);"
        "out[g] = in[g] + too[g] + a[g] + read_imageui(i, (int2)(g & 15, g >> 4)).x; }"
    )
    session.launch(kernel, ITEMS, buffer, buffer, buffer, image, target)
    assert np.array_equal(session.read(target, np.uint32, ITEMS), 3 * data + (data & 255))
    assert np.array_equal(session.read(buffer, np.uint32, ITEMS), data)


def make_plain_image(session) -> int:
    image = session.cl.make("clCreateImage", session.context, 0, RGBA8.c, PLANE, None)
    return session.made("clReleaseMemObject", image)


@pytest.mark.parametrize("wrong", ["READ_WRITE", "WRITE_ONLY", "HOST_WRITE_ONLY"])
def test_flags_that_contradict(session, data, wrong):
    flags = IMMUTABLE | getattr(cl, f"CL_MEM_{wrong}") | cl.CL_MEM_COPY_HOST_PTR
    pointer = data.ctypes.data
    fails = session.cl.fails
    assert fails("clCreateBuffer", session.context, flags, SIZE, pointer) == cl.CL_INVALID_VALUE
    assert fails("clCreateImage", session.context, flags, RGBA8.c, PLANE, pointer) == cl.CL_INVALID_VALUE


def test_they_have_contents(session):
    """From the host, a descriptor or another memory object."""
    fails = session.cl.fails
    for flags in (IMMUTABLE, IMMUTABLE | cl.CL_MEM_ALLOC_HOST_PTR):
        assert fails("clCreateBuffer", session.context, flags, SIZE, None) == cl.CL_INVALID_VALUE
        assert fails("clCreateImage", session.context, flags, RGBA8.c, PLANE, None) == cl.CL_INVALID_VALUE
    descriptor_ = os.memfd_create("contents", os.MFD_CLOEXEC)
    os.pwrite(descriptor_, b"\5" * SIZE, 0)
    where = ("clCreateBufferWithProperties", session.context, [FD, descriptor_, 0], IMMUTABLE, SIZE, None)
    shared = session.made("clReleaseMemObject", session.cl.make(*where))
    assert np.array_equal(session.read(shared, np.uint8, SIZE), np.full(SIZE, 5))


def test_what_is_made_of_them_is_immutable(session, data):
    buffer = make_buffer(session, data, cl.CL_MEM_USE_HOST_PTR)
    region = [256, 512]
    for flags in (0, IMMUTABLE, cl.CL_MEM_READ_ONLY):
        part = session.cl.make("clCreateSubBuffer", buffer, flags, REGION, region)
        session.made("clReleaseMemObject", part)
        expected = IMMUTABLE | flags | cl.CL_MEM_USE_HOST_PTR
        assert session.cl.integer("clGetMemObjectInfo", part, cl.CL_MEM_FLAGS) == expected
        where = (cl.CL_TRUE, 0, 4, data.ctypes.data, *NO_WAIT)
        assert session.cl.call("clEnqueueWriteBuffer", session.queue, part, *where) == cl.CL_INVALID_OPERATION
    for name in ("READ_WRITE", "WRITE_ONLY", "HOST_WRITE_ONLY"):
        flags = getattr(cl, f"CL_MEM_{name}")
        status = session.cl.fails("clCreateSubBuffer", buffer, flags, REGION, region)
        assert status == cl.CL_INVALID_VALUE
    for desc in (descriptor("1D buffer", ITEMS, memory=buffer), descriptor("2D", 16, 16, memory=buffer)):
        made = make_image(session, data, 0, desc)
        assert session.cl.integer("clGetMemObjectInfo", made, cl.CL_MEM_FLAGS) & IMMUTABLE
        status = session.cl.fails("clCreateImage", session.context, 0, RGBA8.c, desc, None)
        assert status == cl.CL_INVALID_VALUE  # "if CL_MEM_IMMUTABLE_EXT is not set in flags"
    plain = session.buffer(SIZE)
    session.write(plain, data)
    view = make_image(session, data, 0, descriptor("2D", 16, 16, memory=plain))
    assert np.array_equal(read_image(session, view), data)


def test_other_memory_is_never_immutable(session):
    assert session.cl.call("clSVMAlloc", session.context, IMMUTABLE | cl.CL_MEM_READ_ONLY, 64, 0)[0] == 0


def test_commands_that_would_change_them(session, data):
    buffer, image = make_buffer(session, data), make_image(session, data)
    other, plane = session.buffer(data), make_plain_image(session)
    pointer, three, zero = data.ctypes.data, [4, 1, 1], np.zeros(4, np.uint32)
    pitches = (0, 0, 0, 0)
    calls = [
        ("clEnqueueWriteBuffer", buffer, cl.CL_TRUE, 0, 4, pointer),
        ("clEnqueueWriteBufferRect", buffer, cl.CL_TRUE, ORIGIN, ORIGIN, three, *pitches, pointer),
        ("clEnqueueFillBuffer", buffer, zero.ctypes.data, 4, 0, SIZE),
        ("clEnqueueCopyBuffer", other, buffer, 0, 0, SIZE),
        ("clEnqueueCopyBufferRect", other, buffer, ORIGIN, ORIGIN, three, *pitches),
        ("clEnqueueCopyImageToBuffer", plane, buffer, ORIGIN, WHOLE, 0),
        ("clEnqueueWriteImage", image, cl.CL_TRUE, ORIGIN, WHOLE, 0, 0, pointer),
        ("clEnqueueFillImage", image, zero.ctypes.data, ORIGIN, WHOLE),
        ("clEnqueueCopyImage", plane, image, ORIGIN, ORIGIN, WHOLE),
        ("clEnqueueCopyBufferToImage", other, image, 0, ORIGIN, WHOLE),
    ]
    for name, *arguments in calls:
        status = session.cl.call(name, session.queue, *arguments, *NO_WAIT)
        assert status == cl.CL_INVALID_OPERATION, name
    for flags in (cl.CL_MAP_WRITE, cl.CL_MAP_WRITE_INVALIDATE_REGION, cl.CL_MAP_READ | cl.CL_MAP_WRITE):
        where = (session.queue, buffer, cl.CL_TRUE, flags, 0, SIZE, *NO_WAIT)
        assert session.cl.fails("clEnqueueMapBuffer", *where) == cl.CL_INVALID_OPERATION
        pitch = np.zeros(2, np.uint64).ctypes.data
        where = (session.queue, image, cl.CL_TRUE, flags, ORIGIN, WHOLE, pitch, pitch, *NO_WAIT)
        assert session.cl.fails("clEnqueueMapImage", *where) == cl.CL_INVALID_OPERATION
    assert np.array_equal(session.read(buffer, np.uint32, ITEMS), data)
    assert np.array_equal(read_image(session, image), data)


def test_recorded_commands_that_would_change_them(session, data):
    buffer, image = make_buffer(session, data), make_image(session, data)
    other, plane = session.buffer(data), make_plain_image(session)
    recorded, zero = session.create(), np.zeros(4, np.uint32)
    calls = {
        "clCommandCopyBufferKHR": (other, buffer, 0, 0, SIZE),
        "clCommandCopyBufferRectKHR": (other, buffer, ORIGIN, ORIGIN, [4, 1, 1], 0, 0, 0, 0),
        "clCommandCopyBufferToImageKHR": (other, image, 0, ORIGIN, WHOLE),
        "clCommandCopyImageKHR": (plane, image, ORIGIN, ORIGIN, WHOLE),
        "clCommandCopyImageToBufferKHR": (plane, buffer, ORIGIN, WHOLE, 0),
        "clCommandFillBufferKHR": (buffer, zero.ctypes.data, 4, 0, SIZE),
        "clCommandFillImageKHR": (image, zero.ctypes.data, ORIGIN, WHOLE),
    }
    for name, arguments in calls.items():
        status = session.functions[name](recorded, None, None, *arguments, 0, None, None, None)
        assert status == cl.CL_INVALID_OPERATION, name


def test_kernels_that_would_change_them(session, data):
    buffer, image = make_buffer(session, data), make_image(session, data)
    program = session.program(
        "kernel void stores(global uint *p) { p[get_global_id(0)] = 1; }"
        "kernel void adds(global uint *p) { atomic_inc(p); }"
        "void deep(global uint *q, uint n) { if (n) q[n] = n; }"
        "kernel void calls(global uint *p) { deep(p + 1, p[0]); }"
        "kernel void paints(write_only image2d_t i) { write_imageui(i, (int2)(0), (uint4)(1)); }"
        "kernel void both(read_write image2d_t i) { write_imageui(i, (int2)(0), read_imageui(i, (int2)(1)));"
        "}"
    )
    for name in ("stores", "adds", "calls"):
        kernel = session.kernel(program, name)
        where = (kernel, 0, 8, np.uint64(buffer).tobytes())
        assert session.cl.call("clSetKernelArg", *where) == cl.CL_INVALID_ARG_VALUE, name
        session.launch(kernel, 4, session.buffer(data))
    for name in ("paints", "both"):
        where = (session.kernel(program, name), 0, 8, np.uint64(image).tobytes())
        assert session.cl.call("clSetKernelArg", *where) == cl.CL_INVALID_ARG_VALUE, name


def test_formats(session):
    count, again = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    kind = cl.CL_MEM_OBJECT_IMAGE2D
    for flags, number in ((IMMUTABLE, count), (cl.CL_MEM_READ_ONLY, again)):
        where = (session.context, flags, kind, 0, None, number.ctypes.data)
        session.cl.ok("clGetSupportedImageFormats", *where)
    # Of pixels that share bytes only with CL_MEM_READ_ONLY: basic/imagearraycopy takes each for two bytes.
    assert count[0] == again[0] - len(RAWS) > 0
