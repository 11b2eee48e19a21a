"""Memory of other processes and other APIs: cl_khr_external_memory 1.0.1 with descriptors of memory."""

import os
import struct
import subprocess
import sys

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.conftest import ROOT

from .session import Buffer, Session
from .test_semaphores import SHARED, Semaphores

FD, DEVICES, ADDRESS = 0x2060, 0x2051, 0x5000
ACQUIRE, RELEASE = 0x2047, 0x2048
ITEMS = 5000
SIZE = 4 * ITEMS
BUFFER = (cl.CL_MEM_READ_WRITE, SIZE, None)


def memory(size: int = SIZE) -> int:
    descriptor = os.memfd_create("shared", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, size)
    return descriptor


def buffer(session, descriptor, *properties) -> Buffer:
    """Takes the descriptor over."""
    made = session.cl.make(
        "clCreateBufferWithProperties", session.context, [FD, descriptor, *properties, 0], *BUFFER
    )
    return Buffer(session.made("clReleaseMemObject", made))


def refused(session, properties, flags=cl.CL_MEM_READ_WRITE, size=SIZE, pointer=None) -> int:
    where = (session.context, properties, flags, size, pointer)
    return session.cl.fails("clCreateBufferWithProperties", *where)


@pytest.fixture
def commands(session):
    """Of acquiring and of releasing."""
    names = ("clEnqueueAcquireExternalMemObjectsKHR", "clEnqueueReleaseExternalMemObjectsKHR")
    return [session.cl.checked(name, "pupupp") for name in names]


def test_queries(opencl):
    assert opencl.info("clGetPlatformInfo", opencl.platform(), 0x2044) == struct.pack("<I", FD)
    for name in (0x204F, 0x2052):
        assert opencl.info("clGetDeviceInfo", opencl.device(), name) == struct.pack("<I", FD)


def test_the_memory_is_the_descriptors(session, commands):
    descriptor = memory()
    mine = os.dup(descriptor)
    given = np.arange(ITEMS, dtype=np.uint32)
    os.pwrite(mine, given.tobytes(), 0)
    made = buffer(session, descriptor, DEVICES, session.device, 0, ADDRESS, 1)
    with pytest.raises(OSError):
        os.fstat(descriptor)  # it is the driver's now, which needs it no more
    words = [FD, descriptor, DEVICES, session.device, 0, ADDRESS, 1, 0]
    assert session.cl.words("clGetMemObjectInfo", made, cl.CL_MEM_PROPERTIES) == words
    kernel = session.kernel("kernel void k(global uint *p) { p[get_global_id(0)] *= 3; }")
    events = [session.event(), session.event()]
    assert commands[0](session.queue, 1, [made], 0, None, events[0]) == 0
    session.launch(kernel, ITEMS, made)
    assert commands[1](session.queue, 1, [made], 1, [events[0].value], events[1]) == 0
    session.finish()
    assert np.array_equal(np.frombuffer(os.pread(mine, SIZE, 0), np.uint32), given * 3)
    for event, kind in zip(events, (ACQUIRE, RELEASE), strict=True):
        assert session.cl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_TYPE) == kind
        session.cl.ok("clReleaseEvent", event.value)
    os.close(mine)


def test_two_imports_are_one_memory(session):
    descriptor = memory()
    first, second = buffer(session, os.dup(descriptor)), buffer(session, descriptor)
    session.write(first, np.arange(ITEMS, dtype=np.uint32))
    assert np.array_equal(session.read(second, np.uint32, ITEMS), np.arange(ITEMS))


def test_the_memory_goes_with_the_object(session):
    descriptor = memory()
    inode = os.fstat(descriptor).st_ino
    made = session.cl.make("clCreateBufferWithProperties", session.context, [FD, descriptor, 0], *BUFFER)

    def mapped() -> bool:
        with open("/proc/self/maps") as lines:
            return any(line.split()[4:6] == [str(inode), "/memfd:shared"] for line in lines)

    assert mapped()
    session.cl.ok("clReleaseMemObject", made)
    assert not mapped()


def test_an_image_with_pitches(session):
    """4 rows of 5 pixels, 2 layers: the places of the pixels are those that image_desc says."""
    row, layer = 32, 160
    descriptor = memory(2 * layer)
    mine = os.dup(descriptor)
    given = np.arange(2 * layer, dtype=np.uint8)
    os.pwrite(mine, given.tobytes(), 0)
    image_format = struct.pack("<II", cl.CL_RGBA, cl.CL_UNSIGNED_INT8)
    desc = struct.pack("<I4xQQQQQQIIQ", cl.CL_MEM_OBJECT_IMAGE2D_ARRAY, 5, 4, 0, 2, row, layer, 0, 0, 0)
    where = (session.context, [FD, descriptor, 0], 0, image_format, desc, None)
    image = session.made("clReleaseMemObject", session.cl.make("clCreateImageWithProperties", *where))
    kernel = session.kernel(
        """kernel void k(read_write image2d_array_t image) {
            int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);
            write_imageui(image, at, read_imageui(image, at) + 1); }"""
    )
    session.launch(kernel, [5, 4, 2], Buffer(image))
    session.finish()
    found = np.frombuffer(os.pread(mine, 2 * layer, 0), np.uint8)
    expected = given.copy()
    for z in range(2):
        for y in range(4):
            start = z * layer + y * row
            expected[start : start + 20] += 1
    assert np.array_equal(found, expected)
    os.close(mine)
    again = memory(2 * layer - 13)  # the last row's padding is part of the object
    where = (session.context, [FD, again, 0], 0, image_format, desc, None)
    assert session.cl.fails("clCreateImageWithProperties", *where) == cl.CL_INVALID_PROPERTY
    for flags, pointer in ((cl.CL_MEM_USE_HOST_PTR, given.ctypes.data), (cl.CL_MEM_ALLOC_HOST_PTR, None)):
        where = (session.context, [FD, again, 0], flags, image_format, desc, pointer)
        assert session.cl.fails("clCreateImageWithProperties", *where) == cl.CL_INVALID_VALUE
    where = (session.context, [FD, again, 0], 0, image_format, desc, given.ctypes.data)
    assert session.cl.fails("clCreateImageWithProperties", *where) == cl.CL_INVALID_HOST_PTR
    where = (session.context, [ADDRESS, 1, 0], 0, image_format, desc, None)
    assert session.cl.fails("clCreateImageWithProperties", *where) == cl.CL_INVALID_PROPERTY
    os.close(again)


CHILD = """
import sys
import numpy as np
from tests.loader.core.session import Session
from tests.loader.core.test_external_memory import ITEMS, buffer
from tests.loader.core.test_semaphores import BINARY, TYPE, Semaphores
from tests.loader.opencl import OpenCL
session = Session(OpenCL(sys.argv[1]))
semaphores = Semaphores(session)
there, back = (semaphores.make([TYPE, BINARY, 0x2055, int(text), 0]) for text in sys.argv[2:4])
data = buffer(session, int(sys.argv[4]))
names = ("clEnqueueAcquireExternalMemObjectsKHR", "clEnqueueReleaseExternalMemObjectsKHR")
acquire, release = (session.cl.checked(name, "pupupp") for name in names)
kernel = session.kernel("kernel void k(global uint *p) { p += get_global_id(0); *p = *p * 5 + 2; }")
for _ in range(50):
    semaphores.wait(there)
    assert acquire(session.queue, 1, [data], 0, None, None) == 0
    session.launch(kernel, ITEMS, data)
    assert release(session.queue, 1, [data], 0, None, None) == 0
    semaphores.signal(back)
session.finish()
"""


def test_two_processes_hand_a_buffer_to_and_fro(session, commands):
    """Each changes it in its turn; nobody copies it, and no host waits."""
    semaphores = Semaphores(session)
    there, back = semaphores.make(SHARED), semaphores.make(SHARED)
    descriptor = memory()
    handed = [semaphores.descriptor(there), semaphores.descriptor(back), descriptor]
    command = [sys.executable, "-c", CHILD, session.cl.library._name, *map(str, handed)]
    with subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), pass_fds=handed) as child:
        data = buffer(session, descriptor)
        for each in handed[:2]:
            os.close(each)
        kernel = session.kernel("kernel void k(global uint *p) { p += get_global_id(0); *p = *p * 3 + 1; }")
        session.write(data, np.arange(ITEMS, dtype=np.uint32))
        expected = np.arange(ITEMS, dtype=np.uint32)
        for _ in range(50):
            session.launch(kernel, ITEMS, data)
            assert commands[1](session.queue, 1, [data], 0, None, None) == 0
            semaphores.signal(there)
            semaphores.wait(back)
            assert commands[0](session.queue, 1, [data], 0, None, None) == 0
            expected = (expected * np.uint32(3) + np.uint32(1)) * np.uint32(5) + np.uint32(2)
        assert child.wait(100) == 0
        assert np.array_equal(session.read(data, np.uint32, ITEMS), expected)
    for each in semaphores.live:
        semaphores.release(each)


@pytest.mark.parametrize(
    "properties, status",
    [
        ([DEVICES, "device", 0, 0], cl.CL_INVALID_PROPERTY),
        ([FD, "memory", FD, "memory", 0], cl.CL_INVALID_PROPERTY),
        ([FD, "memory", DEVICES, "device", 0, DEVICES, "device", 0, 0], cl.CL_INVALID_PROPERTY),
        ([FD, "memory", DEVICES, 0, 0], cl.CL_INVALID_PROPERTY),
        ([FD, "memory", DEVICES, 64, 0, 0], cl.CL_INVALID_DEVICE),
        ([0x2067, "memory", 0], cl.CL_INVALID_PROPERTY),
        ([FD, -1, 0], cl.CL_INVALID_PROPERTY),
        ([FD, 1 << 20, 0], cl.CL_INVALID_PROPERTY),
    ],
)
def test_properties_that_are_wrong(session, properties, status):
    words = {"device": session.device, "memory": memory()}
    assert refused(session, [words.get(word, word) for word in properties]) == status
    os.close(words["memory"])  # it is still ours


def test_other_descriptors_and_flags(session):
    descriptor, data = memory(), np.zeros(SIZE, np.uint8)
    properties = [FD, descriptor, 0]
    for flags, pointer in (
        (cl.CL_MEM_USE_HOST_PTR, data.ctypes.data),
        (cl.CL_MEM_COPY_HOST_PTR, data.ctypes.data),
        (cl.CL_MEM_ALLOC_HOST_PTR, None),
    ):
        assert refused(session, properties, flags, pointer=pointer) == cl.CL_INVALID_VALUE
    assert refused(session, properties, pointer=data.ctypes.data) == cl.CL_INVALID_HOST_PTR
    assert refused(session, properties, size=SIZE + 1) == cl.CL_INVALID_PROPERTY
    reading = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)
    ends = os.pipe()
    for other in (reading, *ends):
        assert refused(session, [FD, other, 0]) == cl.CL_INVALID_PROPERTY
        os.close(other)
    os.close(descriptor)


def test_enqueued_wrongly(opencl, session, commands):
    made, plain, event = buffer(session, memory()), session.buffer(64), session.event()
    failed = session.cl.make("clCreateUserEvent", session.context)
    session.cl.ok("clSetUserEventStatus", failed, -5)
    stranger = Session(opencl)
    for function in commands:
        assert function(64, 1, [made], 0, None, None) == cl.CL_INVALID_COMMAND_QUEUE
        assert function(session.queue, 0, [made], 0, None, None) == cl.CL_INVALID_VALUE
        assert function(session.queue, 1, None, 0, None, None) == cl.CL_INVALID_VALUE
        for wrong in (plain, 64, session.queue, 0):
            status = function(session.queue, 2, [made, wrong], 0, None, None)
            assert status == cl.CL_INVALID_MEM_OBJECT
        for count, events in ((1, None), (0, [failed]), (1, [made])):
            status = function(session.queue, 1, [made], count, events, None)
            assert status == cl.CL_INVALID_EVENT_WAIT_LIST
        status = function(session.queue, 1, [made], 1, [failed], None)
        assert status == cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
        assert function(stranger.queue, 1, [made], 0, None, None) == cl.CL_INVALID_CONTEXT
        assert function(session.queue, 0, None, 0, None, event) == 0
        session.finish()
        session.cl.ok("clReleaseEvent", event.value)
    stranger.close()
    session.cl.ok("clReleaseEvent", failed)


def test_memory_for_one_of_two_devices(opencl):
    if opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
        pytest.skip("one compute unit cannot be divided")
    parts = opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    session = Session(opencl, *parts)
    made, other = buffer(session, memory(), DEVICES, parts[0], 0), session.new_queue(parts[1])
    for name in ("clEnqueueAcquireExternalMemObjectsKHR", "clEnqueueReleaseExternalMemObjectsKHR"):
        function = session.cl.checked(name, "pupupp")
        assert function(session.queue, 1, [made], 0, None, None) == 0
        assert function(other, 1, [made], 0, None, None) == cl.CL_INVALID_COMMAND_QUEUE
    session.close()
    for part in parts:
        opencl.ok("clReleaseDevice", part)
