"""The error codes that cl_khr_command_buffer names for each of its functions."""

import ctypes
import struct

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.core.session import Session

from .recorder import (
    ASSERTS,
    COMMANDS,
    CONTEXT,
    DEVICE_SIDE_SYNC,
    DISPATCH_ASSERTS,
    FLAGS,
    INCOMPATIBLE_COMMAND_QUEUE,
    INVALID_COMMAND_BUFFER,
    INVALID_SYNC_POINT_WAIT_LIST,
    MUTABLE,
    NO_ADDITIONAL_WORK_GROUPS,
    NUM_QUEUES,
    PROPERTIES_ARRAY,
    QUEUES,
    REFERENCE_COUNT,
    SIMULTANEOUS_USE,
    STATE,
    UPDATABLE_FIELDS,
    Recorder,
)

SOURCE = """
kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }
kernel __attribute__((reqd_work_group_size(4, 1, 1))) void four(global int *data) { *data = 1; }
kernel void room(local char *much, global int *data) { *data = much[get_local_id(0)]; }
"""
SIZE = 1024
NOTHING = (0, None, None, None)


class Things:
    """A session with one of everything that commands need."""

    def __init__(self, session):
        self.session, self.cl = session, session.cl
        self.source, self.target = session.buffer(np.zeros(SIZE, np.uint8)), session.buffer(SIZE)
        self.images = [self.image(session), self.image(session)]
        self.add = session.kernel(SOURCE, "add")
        session.set_arguments(self.add, (self.source, np.int32(1)))
        library = session.cl.library
        library.clSVMAlloc.restype = ctypes.c_void_p
        allocate = (ctypes.c_void_p(session.context), ctypes.c_uint64(1), ctypes.c_size_t(SIZE), 0)
        self.shared = library.clSVMAlloc(*allocate)
        self.buffer = session.create()

    def image(self, session, kind=cl.CL_RGBA) -> int:
        format_ = struct.pack("<II", kind, cl.CL_UNSIGNED_INT8)
        desc = struct.pack("<Q7QIIQ", cl.CL_MEM_OBJECT_IMAGE2D, 8, 8, *[0] * 8)
        made = session.cl.make("clCreateImage", session.context, cl.CL_MEM_READ_WRITE, format_, desc, None)
        return session.made("clReleaseMemObject", made)

    def close(self) -> None:
        self.cl.library.clSVMFree(ctypes.c_void_p(self.session.context), ctypes.c_void_p(self.shared))

    def arguments(self, name: str) -> tuple:
        """What the command takes between properties and sync points; nothing of it is wrong."""
        origin, region = [0, 0, 0], [8, 8, 1]
        first, second = self.images
        return {
            "clCommandBarrierWithWaitListKHR": (),
            "clCommandCopyBufferKHR": (self.source, self.target, 0, 0, 16),
            "clCommandCopyBufferRectKHR": (self.source, self.target, origin, origin, [4, 4, 1], 0, 0, 0, 0),
            "clCommandCopyBufferToImageKHR": (self.source, first, 0, origin, region),
            "clCommandCopyImageKHR": (first, second, origin, origin, region),
            "clCommandCopyImageToBufferKHR": (first, self.target, origin, region, 0),
            "clCommandFillBufferKHR": (self.target, b"\1", 1, 0, 16),
            "clCommandFillImageKHR": (first, bytes(16), origin, region),
            "clCommandNDRangeKernelKHR": (self.add, 1, None, [16], None),
            "clCommandSVMMemcpyKHR": (self.shared, self.shared + 64, 64),
            "clCommandSVMMemFillKHR": (self.shared, b"\1", 1, 64),
        }[name]

    def status(self, name: str, *arguments, buffer=None, queue=None, properties=None, tail=NOTHING) -> int:
        """Of a command with these arguments, or with its usual ones."""
        given = arguments or self.arguments(name)
        buffer = self.buffer if buffer is None else buffer
        return self.session.status(name, buffer, queue, properties, *given, *tail)


@pytest.fixture
def things(session):
    made = Things(session)
    yield made
    made.close()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_all_commands_refuse(things, name):
    session = things.session
    point = ctypes.c_uint32()
    assert things.status(name, tail=(0, None, point, None)) == 0
    one, none, wild = ((ctypes.c_uint32 * 1)(value) for value in (point.value, 0, point.value + 7))
    for tail in ((1, None, None, None), (0, one, None, None), (1, none, None, None), (1, wild, None, None)):
        assert things.status(name, tail=tail) == INVALID_SYNC_POINT_WAIT_LIST
    assert things.status(name, tail=(1, one, None, None)) == 0
    for wrong in (0, session.queue, 1234):
        assert things.status(name, buffer=wrong) == INVALID_COMMAND_BUFFER
    assert things.status(name, queue=session.context) == cl.CL_INVALID_COMMAND_QUEUE
    assert things.status(name, queue=session.new_queue()) == cl.CL_INVALID_COMMAND_QUEUE
    stranger = Session(session.cl)
    assert things.status(name, queue=stranger.queue) == cl.CL_INVALID_CONTEXT
    stranger.close()
    assert things.status(name, queue=session.queue) == 0
    assert things.status(name, properties=[FLAGS, 0, 0]) == cl.CL_INVALID_VALUE
    assert things.status(name, properties=[0]) == 0
    handle = ctypes.c_void_p()
    wanted = 0 if name == "clCommandNDRangeKernelKHR" else cl.CL_INVALID_VALUE
    assert things.status(name, tail=(0, None, None, handle)) == wanted
    session.finalize(things.buffer)
    assert things.status(name) == cl.CL_INVALID_OPERATION
    session.enqueue(things.buffer)
    session.finish()


@pytest.mark.parametrize("name", [name for name in COMMANDS if "Barrier" not in name and "SVM" not in name])
def test_objects_of_another_context(things, name):
    stranger = Things(type(things.session)(things.cl))
    assert things.status(name, *stranger.arguments(name)) == cl.CL_INVALID_CONTEXT
    stranger.close()
    stranger.session.close()


def test_several_queues_and_none_named(things):
    session = things.session
    buffer = session.create(session.queue, session.new_queue())
    for name in COMMANDS:
        assert things.status(name, buffer=buffer) == cl.CL_INVALID_COMMAND_QUEUE
        assert things.status(name, buffer=buffer, queue=session.queue) == 0


def test_copies_and_fills_that_fail(things):
    """As the enqueue functions do."""
    source, target, (first, second) = things.source, things.target, things.images
    origin, region = [0, 0, 0], [8, 8, 1]
    wrong = (
        ("clCommandCopyBufferKHR", (first, target, 0, 0, 16), cl.CL_INVALID_MEM_OBJECT),
        ("clCommandCopyBufferKHR", (source, target, SIZE, 0, 1), cl.CL_INVALID_VALUE),
        ("clCommandCopyBufferKHR", (source, source, 0, 8, 16), cl.CL_MEM_COPY_OVERLAP),
        (
            "clCommandCopyBufferRectKHR",
            (source, target, origin, origin, [4, 0, 1], 0, 0, 0, 0),
            cl.CL_INVALID_VALUE,
        ),
        (
            "clCommandCopyBufferRectKHR",
            (source, source, origin, [2, 0, 0], [4, 4, 1], 8, 0, 8, 0),
            cl.CL_MEM_COPY_OVERLAP,
        ),
        (
            "clCommandCopyBufferRectKHR",
            (first, target, origin, origin, [4, 4, 1], 0, 0, 0, 0),
            cl.CL_INVALID_MEM_OBJECT,
        ),
        ("clCommandCopyBufferToImageKHR", (source, target, 0, origin, region), cl.CL_INVALID_MEM_OBJECT),
        ("clCommandCopyBufferToImageKHR", (source, first, SIZE, origin, region), cl.CL_INVALID_VALUE),
        ("clCommandCopyImageKHR", (first, first, origin, [1, 0, 0], [4, 4, 1]), cl.CL_MEM_COPY_OVERLAP),
        (
            "clCommandCopyImageKHR",
            (first, things.image(things.session, cl.CL_BGRA), origin, origin, region),
            cl.CL_IMAGE_FORMAT_MISMATCH,
        ),
        ("clCommandCopyImageKHR", (first, second, origin, origin, [9, 8, 1]), cl.CL_INVALID_VALUE),
        ("clCommandCopyImageKHR", (source, second, origin, origin, region), cl.CL_INVALID_MEM_OBJECT),
        ("clCommandCopyImageToBufferKHR", (first, first, origin, region, 0), cl.CL_INVALID_MEM_OBJECT),
        ("clCommandCopyImageToBufferKHR", (first, target, origin, region, SIZE), cl.CL_INVALID_VALUE),
        ("clCommandFillBufferKHR", (target, None, 4, 0, 16), cl.CL_INVALID_VALUE),
        ("clCommandFillBufferKHR", (target, bytes(3), 3, 0, 12), cl.CL_INVALID_VALUE),
        ("clCommandFillBufferKHR", (target, bytes(4), 4, 2, 12), cl.CL_INVALID_VALUE),
        ("clCommandFillBufferKHR", (first, b"\1", 1, 0, 16), cl.CL_INVALID_MEM_OBJECT),
        ("clCommandFillImageKHR", (first, None, origin, region), cl.CL_INVALID_VALUE),
        ("clCommandFillImageKHR", (first, bytes(16), origin, [9, 8, 1]), cl.CL_INVALID_VALUE),
        ("clCommandFillImageKHR", (target, bytes(16), origin, region), cl.CL_INVALID_MEM_OBJECT),
        ("clCommandSVMMemcpyKHR", (things.shared, None, 16), cl.CL_INVALID_VALUE),
        ("clCommandSVMMemcpyKHR", (things.shared, things.shared + 8, 16), cl.CL_MEM_COPY_OVERLAP),
        ("clCommandSVMMemFillKHR", (None, b"\1", 1, 16), cl.CL_INVALID_VALUE),
        ("clCommandSVMMemFillKHR", (things.shared + 1, bytes(4), 4, 16), cl.CL_INVALID_VALUE),
    )
    for name, arguments, status in wrong:
        assert things.status(name, *arguments) == status, (name, arguments)


def test_launches_that_fail(things):
    session, name = things.session, "clCommandNDRangeKernelKHR"
    program = session.program(SOURCE)
    fresh, four, room = (session.kernel(program, kernel) for kernel in ("add", "four", "room"))
    session.set_arguments(four, (things.source,))
    session.cl.ok("clSetKernelArg", room, 0, 1 << 40, None)
    session.cl.ok("clSetKernelArg", room, 1, 8, int(things.source).to_bytes(8, "little"))
    assert things.status(name, session.queue, 1, None, [16], None) == cl.CL_INVALID_KERNEL
    assert things.status(name, fresh, 1, None, [16], None) == cl.CL_INVALID_KERNEL_ARGS
    assert things.status(name, things.add, 0, None, [16], None) == cl.CL_INVALID_WORK_DIMENSION
    assert things.status(name, things.add, 1, None, [16], [0]) == cl.CL_INVALID_WORK_GROUP_SIZE
    assert things.status(name, four, 1, None, [16], [8]) == cl.CL_INVALID_WORK_GROUP_SIZE
    assert things.status(name, things.add, 1, None, [16], [1 << 20]) == cl.CL_INVALID_WORK_ITEM_SIZE
    assert things.status(name, things.add, 1, [-1], [16], None) == cl.CL_INVALID_GLOBAL_OFFSET
    assert things.status(name, room, 1, None, [16], None) == cl.CL_OUT_OF_RESOURCES
    properties = (
        [UPDATABLE_FIELDS, 1 << 20, 0],
        [UPDATABLE_FIELDS, 0, UPDATABLE_FIELDS, 0, 0],
        [DISPATCH_ASSERTS, 2, 0],
        [DISPATCH_ASSERTS, 0, DISPATCH_ASSERTS, 0, 0],
        [DISPATCH_ASSERTS, NO_ADDITIONAL_WORK_GROUPS, 0],  # and no local size
        [7, 0, 0],
    )
    for wrong in properties:
        assert things.status(name, properties=wrong) == cl.CL_INVALID_VALUE
    local = (things.add, 1, None, [16], [4])
    assert things.status(name, *local, properties=[DISPATCH_ASSERTS, NO_ADDITIONAL_WORK_GROUPS, 0]) == 0
    asserting = session.create(asserts=NO_ADDITIONAL_WORK_GROUPS)
    assert things.status(name, buffer=asserting) == cl.CL_INVALID_VALUE
    assert things.status(name, *local, buffer=asserting) == 0


def test_a_program_for_another_device(opencl):
    parts = sub_devices(opencl)
    session = Recorder(opencl, *parts)
    program = session.made("clReleaseProgram", opencl.program(session.context, SOURCE))
    opencl.ok("clBuildProgram", program, 1, [parts[0]], None, None, None)
    four = session.kernel(program, "four")
    session.set_arguments(four, (session.buffer(64),))
    buffer = session.create(session.queue, session.new_queue(parts[1]))
    where = (four, 1, None, [4], [4], *NOTHING)
    name, (first, second) = "clCommandNDRangeKernelKHR", session.queues_of(buffer)
    assert session.status(name, buffer, first, None, *where) == 0
    assert session.status(name, buffer, second, None, *where) == cl.CL_INVALID_PROGRAM_EXECUTABLE
    session.close()
    for part in parts:
        opencl.ok("clReleaseDevice", part)


def sub_devices(opencl) -> list[int]:
    if opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
        pytest.skip("one compute unit cannot be divided")
    return opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_EQUALLY, 1)


def test_creation(session):
    def status(*arguments) -> int:
        handle, found = session.make("clCreateCommandBufferKHR", *arguments)
        assert not handle
        return found

    other = Session(session.cl)
    assert status(0, None, None) == status(0, [session.queue], None) == cl.CL_INVALID_VALUE
    assert status(1, None, None) == cl.CL_INVALID_VALUE
    assert status(1, [0], None) == status(1, [session.context], None) == cl.CL_INVALID_COMMAND_QUEUE
    assert status(2, [session.queue, 0], None) == cl.CL_INVALID_COMMAND_QUEUE
    assert status(2, [session.queue, other.queue], None) == cl.CL_INVALID_CONTEXT
    for wrong in ([FLAGS, 8, 0], [FLAGS, -1, 0], [FLAGS, 0, FLAGS, 0, 0], [ASSERTS, 2, 0], [1, 0, 0]):
        assert status(1, [session.queue], wrong) == cl.CL_INVALID_VALUE
    other.close()


def test_retain_release_finalize(session):
    buffer = session.create()
    for name in ("clRetainCommandBufferKHR", "clReleaseCommandBufferKHR", "clFinalizeCommandBufferKHR"):
        for wrong in (0, session.queue, buffer + 8):
            assert session.status(name, wrong) == INVALID_COMMAND_BUFFER
    session.finalize(buffer)
    assert session.status("clFinalizeCommandBufferKHR", buffer) == cl.CL_INVALID_OPERATION
    session.release(buffer)
    assert session.status("clReleaseCommandBufferKHR", buffer) == INVALID_COMMAND_BUFFER


def test_enqueueing(session):
    def status(*arguments) -> int:
        return session.status("clEnqueueCommandBufferKHR", *arguments)

    buffer, queue, other = session.create(), session.queue, Session(session.cl)
    end = (0, None, None)
    assert status(0, None, 0, *end) == status(0, None, queue, *end) == INVALID_COMMAND_BUFFER
    assert status(0, None, buffer, *end) == cl.CL_INVALID_OPERATION
    session.finalize(buffer)
    assert status(1, None, buffer, *end) == status(0, [queue], buffer, *end) == cl.CL_INVALID_VALUE
    assert status(2, [queue, queue], buffer, *end) == cl.CL_INVALID_VALUE
    assert status(1, [session.context], buffer, *end) == cl.CL_INVALID_COMMAND_QUEUE
    assert status(1, [other.queue], buffer, *end) == cl.CL_INVALID_CONTEXT
    wait_list = cl.CL_INVALID_EVENT_WAIT_LIST
    assert status(0, None, buffer, 1, None, None) == status(0, None, buffer, 0, [1], None) == wait_list
    assert status(0, None, buffer, 1, [queue], None) == wait_list
    stranger = session.cl.make("clCreateUserEvent", other.context)
    assert status(0, None, buffer, 1, [stranger], None) == cl.CL_INVALID_CONTEXT
    session.cl.ok("clReleaseEvent", stranger)
    other.close()
    session.enqueue(buffer)


def test_queues_on_the_device(session):
    """Commands may be recorded for one, but are executed where another takes its place."""
    name, properties = (
        "clEnqueueCommandBufferKHR",
        cl.CL_QUEUE_ON_DEVICE | cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
    )
    queue, data = session.new_queue(session.device, properties), session.buffer(np.zeros(16, np.int32))
    hosts, devices, add = session.create(), session.create(queue), session.kernel(SOURCE, "add")
    for buffer in (hosts, devices):
        session.record(buffer, add, 16, data, np.int32(3))
        session.finalize(buffer)
    for queues, buffer in ((queue, hosts), (queue, devices), (None, devices)):
        given = (1, [queues]) if queues else (0, None)
        assert session.status(name, *given, buffer, 0, None, None) == INCOMPATIBLE_COMMAND_QUEUE
    session.enqueue(devices, session.queue)
    assert np.all(session.read(data, np.int32, 16) == 3)


def test_enqueueing_for_another_device(opencl):
    parts = sub_devices(opencl)
    session = Recorder(opencl, *parts)
    buffer = session.create()
    session.finalize(buffer)
    other = session.new_queue(parts[1])
    status = session.status("clEnqueueCommandBufferKHR", 1, [other], buffer, 0, None, None)
    assert status == cl.CL_INVALID_DEVICE
    session.close()
    for part in parts:
        opencl.ok("clReleaseDevice", part)


def test_queries(session):
    name, queue = "clGetCommandBufferInfoKHR", session.queue
    buffer = session.create(flags=SIMULTANEOUS_USE | MUTABLE | DEVICE_SIDE_SYNC)
    assert struct.unpack("<Q", session.answer(name, buffer, QUEUES)) == (queue,)
    assert struct.unpack("<Q", session.answer(name, buffer, CONTEXT)) == (session.context,)
    assert struct.unpack("<3Q", session.answer(name, buffer, PROPERTIES_ARRAY)) == (FLAGS, 7, 0)
    assert session.answer(name, session.create(), PROPERTIES_ARRAY) == b""
    for query, value in ((NUM_QUEUES, 1), (REFERENCE_COUNT, 1), (STATE, 0)):
        assert struct.unpack("<I", session.answer(name, buffer, query)) == (value,)
    room = ctypes.create_string_buffer(64)
    assert session.status(name, buffer, 0x12FF, 64, room, None) == cl.CL_INVALID_VALUE
    assert session.status(name, buffer, QUEUES, 7, room, None) == cl.CL_INVALID_VALUE
    assert session.status(name, queue, QUEUES, 8, room, None) == INVALID_COMMAND_BUFFER


def test_what_the_device_and_the_platform_say(opencl):
    device, platform = opencl.device(), opencl.platform()

    def found(query: int) -> int:
        return opencl.integer("clGetDeviceInfo", device, query)

    # printf, device-side enqueue, simultaneous use, several queues
    assert found(0x12A9) == 1 | 2 | 4 | 16
    assert found(0x12AA) == 0
    assert found(0x129A) == found(cl.CL_DEVICE_QUEUE_ON_HOST_PROPERTIES)
    assert found(0x12B0) == 31
    assert found(0x12AB) == 1 and found(0x12AC) == device
    assert opencl.integer("clGetPlatformInfo", platform, 0x0908) == 7
    versions = opencl.info("clGetDeviceInfo", device, cl.CL_DEVICE_EXTENSIONS_WITH_VERSION)
    rows = [versions[at : at + 68] for at in range(0, len(versions), 68)]
    named = {row[4:].rstrip(b"\0").decode(): struct.unpack("<I", row[:4])[0] & 0xFFF for row in rows}
    assert named["cl_khr_command_buffer"] == 8
    assert named["cl_khr_command_buffer_mutable_dispatch"] == 5
    assert named["cl_khr_command_buffer_multi_device"] == 2
