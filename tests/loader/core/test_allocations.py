"""Buffers of a fifth of the memory, as one and as many (API specification, 5.2.1)."""

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

pytestmark = pytest.mark.long

PAGE = 1 << 21  # bytes between the places that are touched: memory that nobody reads costs nothing
MARK = """kernel void k(global ulong *p, ulong base, uint step) {
  size_t i = get_global_id(0); p[i * step] += base + i;
}"""


def a_fifth(session) -> int:
    memory = session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_GLOBAL_MEM_SIZE)
    return memory // 5 // PAGE * PAGE


def mark(session, kernel, buffer, size, base) -> None:
    session.launch(kernel, size // PAGE, buffer, np.uint64(base), np.uint32(PAGE // 8))


def test_one_buffer(session):
    size = a_fifth(session)
    kernel, buffer = session.kernel(MARK), session.buffer(size)
    for offset in range(0, size, PAGE):
        session.write(buffer, np.zeros(1, np.uint64), offset)
    mark(session, kernel, buffer, size, 7)
    for index in (0, 1, size // PAGE // 2, size // PAGE - 1):
        assert session.read(buffer, np.uint64, 1, index * PAGE)[0] == 7 + index


def test_many_buffers(session):
    size = a_fifth(session) // 16 // PAGE * PAGE
    kernel, buffers = session.kernel(MARK), [session.buffer(size) for _ in range(16)]
    pattern = np.uint64(1)
    for number, buffer in enumerate(buffers):
        for offset in range(0, size, PAGE):
            session.cl.ok(
                "clEnqueueFillBuffer", session.queue, buffer, pattern.tobytes(), 8, offset, 8, 0, None, None
            )
        mark(session, kernel, buffer, size, number << 32)
    last = size // PAGE - 1
    for number, buffer in enumerate(buffers):
        assert session.read(buffer, np.uint64, 1)[0] == (number << 32) + 1
        assert session.read(buffer, np.uint64, 1, last * PAGE)[0] == (number << 32) + 1 + last


def test_more_than_there_is(session):
    """CL_INVALID_BUFFER_SIZE "if size is greater than CL_DEVICE_MAX_MEM_ALLOC_SIZE for all devices"."""
    most = session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_MAX_MEM_ALLOC_SIZE)
    refused = session.cl.fails("clCreateBuffer", session.context, 0, most + 1, None)
    assert refused == cl.CL_INVALID_BUFFER_SIZE
