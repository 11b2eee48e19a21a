"""Commands on buffers beside kernels, and what the host may do with a buffer (API specification, 5.2)."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

BYTES = 4096
REGION = cl.CL_BUFFER_CREATE_TYPE_REGION
NO_WAIT = (0, None, None)
ADD = "kernel void k(global int *p, int n) { p[get_global_id(0)] += n; }"


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32, 64, 128])
def test_patterns(session, size):
    """clEnqueueFillBuffer with patterns of every size, anywhere that is a multiple of it, between kernels."""
    pattern, buffer = np.arange(size, dtype=np.uint8) + 1, session.buffer(np.full(BYTES, 200, np.uint8))
    where = (pattern.tobytes(), size, 3 * size, 5 * size)
    session.cl.ok("clEnqueueFillBuffer", session.queue, buffer, *where, *NO_WAIT)
    kernel = session.kernel("kernel void k(global uchar *p) { p[get_global_id(0)] ^= 0x80; }")
    session.launch(kernel, BYTES, buffer)
    expected = np.full(BYTES, 200, np.uint8)
    expected[3 * size : 8 * size] = np.tile(pattern, 5)
    assert np.array_equal(session.read(buffer, np.uint8, BYTES), expected ^ 0x80)


def test_parts_of_a_buffer_are_the_buffer(session):
    """Kernels, copies and reads through sub-buffers reach the same bytes (5.2.1)."""
    data = np.arange(BYTES // 4, dtype=np.int32)
    buffer, kernel = session.buffer(data), session.kernel(ADD)
    parts = []
    for origin, size in ((0, 1024), (1024, 2048)):
        handle = session.cl.make("clCreateSubBuffer", buffer, 0, REGION, [origin, size])
        parts.append(type(buffer)(session.made("clReleaseMemObject", handle)))
    session.launch(kernel, 256, parts[0], np.int32(1000))
    session.launch(kernel, 512, parts[1], np.int32(-5))
    session.cl.ok("clEnqueueCopyBuffer", session.queue, parts[0], parts[1], 0, 1024, 1024, *NO_WAIT)
    expected = data.copy()
    expected[:256] += 1000
    expected[256:768] -= 5
    expected[512:768] = expected[:256]
    assert np.array_equal(session.read(buffer, np.int32, 1024), expected)
    assert np.array_equal(session.read(parts[1], np.int32, 8, 1024), expected[512:520])


def test_boxes(session):
    """clEnqueueCopyBufferRect and clEnqueueReadBufferRect: a box of three dimensions to another place."""
    shape = (5, 7, 16)  # slices, rows, bytes
    data = np.random.default_rng(1).integers(0, 255, shape, np.uint8)
    source, target = session.buffer(data), session.buffer(np.zeros(shape, np.uint8))
    pitches = (16, 16 * 7)
    session.cl.ok(
        "clEnqueueCopyBufferRect", session.queue, source, target, [3, 2, 1], [5, 0, 2], [8, 4, 3], *pitches,
        *pitches, *NO_WAIT,
    )  # fmt: skip
    expected = np.zeros(shape, np.uint8)
    expected[2:5, 0:4, 5:13] = data[1:4, 2:6, 3:11]
    assert np.array_equal(session.read(target, np.uint8, data.size).reshape(shape), expected)
    box = np.zeros((2, 3, 20), np.uint8)
    session.cl.ok(
        "clEnqueueReadBufferRect", session.queue, target, cl.CL_TRUE, [6, 1, 3], [4, 0, 0], [6, 3, 2],
        *pitches, 20, 60, box.ctypes.data, *NO_WAIT,
    )  # fmt: skip
    assert np.array_equal(box[:, :, 4:10], expected[3:5, 1:4, 6:12])
    assert not box[:, :, :4].any() and not box[:, :, 10:].any()


def test_maps_between_kernels(session):
    """What is written to a mapped region is seen after clEnqueueUnmapMemObject, and nothing else changes."""
    buffer, kernel = session.buffer(np.arange(1024, dtype=np.int32)), session.kernel(ADD)
    session.launch(kernel, 1024, buffer, np.int32(1))
    flags = cl.CL_MAP_READ | cl.CL_MAP_WRITE
    where = (cl.CL_TRUE, flags, 400, 800, *NO_WAIT)
    address = session.cl.make("clEnqueueMapBuffer", session.queue, buffer, *where)
    view = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_int32)), (200,))
    assert np.array_equal(view, np.arange(100, 300) + 1)
    assert session.cl.integer("clGetMemObjectInfo", buffer, cl.CL_MEM_MAP_COUNT) == 1
    view[:] = -7
    session.cl.ok("clEnqueueUnmapMemObject", session.queue, buffer, address, *NO_WAIT)
    session.launch(kernel, 1024, buffer, np.int32(10))
    expected = np.arange(1024) + 11
    expected[100:300] = 3
    assert np.array_equal(session.read(buffer, np.int32, 1024), expected)
    assert session.cl.integer("clGetMemObjectInfo", buffer, cl.CL_MEM_MAP_COUNT) == 0


@pytest.mark.parametrize(
    "flags", [0, cl.CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, cl.CL_MIGRATE_MEM_OBJECT_HOST]
)
def test_migration(session, flags):
    buffer, kernel = session.buffer(np.ones(64, np.int32)), session.kernel(ADD)
    session.cl.ok("clEnqueueMigrateMemObjects", session.queue, 1, [buffer], flags, *NO_WAIT)
    if flags == cl.CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED:
        session.write(buffer, np.ones(64, np.int32))
    session.launch(kernel, 64, buffer, np.int32(4))
    assert np.array_equal(session.read(buffer, np.int32, 64), np.full(64, 5))


HOST_FLAGS = {
    "none": (0, True, True),
    "write only": (cl.CL_MEM_HOST_WRITE_ONLY, False, True),
    "read only": (cl.CL_MEM_HOST_READ_ONLY, True, False),
    "no access": (cl.CL_MEM_HOST_NO_ACCESS, False, False),
}


@pytest.mark.parametrize("part", [False, True], ids=["whole", "sub-buffer"])
@pytest.mark.parametrize("name", HOST_FLAGS)
def test_what_the_host_may_do(session, name, part):
    """CL_INVALID_OPERATION for reads, writes and maps that CL_MEM_HOST_* exclude (5.2.2 to 5.2.5). Kernels,
    copies and fills may do all the same, and a sub-buffer inherits the flags."""
    flag, readable, writable = HOST_FLAGS[name]
    buffer = session.buffer(np.arange(64, dtype=np.int32), flag)
    if part:
        handle = session.cl.make("clCreateSubBuffer", buffer, 0, REGION, [0, 256])
        buffer = type(buffer)(session.made("clReleaseMemObject", handle))
        assert session.cl.integer("clGetMemObjectInfo", buffer, cl.CL_MEM_FLAGS) & flag == flag
    memory = np.zeros(64, np.int32)
    box = ([0, 0, 0], [0, 0, 0], [16, 1, 1], 0, 0, 0, 0, memory.ctypes.data)
    calls = [
        ("clEnqueueReadBuffer", readable, (0, 256, memory.ctypes.data)),
        ("clEnqueueReadBufferRect", readable, box),
        ("clEnqueueWriteBuffer", writable, (0, 256, memory.ctypes.data)),
        ("clEnqueueWriteBufferRect", writable, box),
    ]
    for call, allowed, where in calls:
        status = session.cl.call(call, session.queue, buffer, cl.CL_TRUE, *where, *NO_WAIT)
        assert status == (cl.CL_SUCCESS if allowed else cl.CL_INVALID_OPERATION), call
    for flags, allowed in (
        (cl.CL_MAP_READ, readable),
        (cl.CL_MAP_WRITE, writable),
        (cl.CL_MAP_WRITE_INVALIDATE_REGION, writable),
        (cl.CL_MAP_READ | cl.CL_MAP_WRITE, readable and writable),
    ):
        where = (session.queue, buffer, cl.CL_TRUE, flags, 0, 256, *NO_WAIT)
        address, status = session.cl.call("clEnqueueMapBuffer", *where)
        assert status == (cl.CL_SUCCESS if allowed else cl.CL_INVALID_OPERATION), flags
        if allowed:
            session.cl.ok("clEnqueueUnmapMemObject", session.queue, buffer, address, *NO_WAIT)
    session.cl.ok("clEnqueueFillBuffer", session.queue, buffer, b"\1\0\0\0", 4, 0, 256, *NO_WAIT)
    session.launch(session.kernel(ADD), 64, buffer, np.int32(6))
    copy = session.buffer(256)
    session.cl.ok("clEnqueueCopyBuffer", session.queue, buffer, copy, 0, 0, 256, *NO_WAIT)
    assert np.array_equal(session.read(copy, np.int32, 64), np.full(64, 7))
