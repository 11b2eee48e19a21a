"""Command-buffers of several queues, of one device and of sub-devices, and their copies for others:
cl_khr_command_buffer_multi_device."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

from .recorder import (
    DEVICE_SIDE_SYNC,
    INVALID_COMMAND_BUFFER,
    MUTABLE,
    NUM_QUEUES,
    RECORDING,
    Recorder,
    config,
)

ITEMS = 1 << 14
OUT_OF_ORDER = cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
SOURCE = """
kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }
kernel void twice(global int *data) { data[get_global_id(0)] *= 2; }
"""


@pytest.fixture(params=["one device", "sub-devices"])
def several(request, opencl):
    """A session with two queues: of the device, or of a sub-device each."""
    parts: list[int] = []
    if request.param == "sub-devices":
        if opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
            pytest.skip("one compute unit cannot be divided")
        parts = opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    session = Recorder(opencl, *parts)
    session.queues = [session.queue, session.new_queue(parts[1] if parts else None)]
    yield session
    session.close()
    for part in parts:
        opencl.ok("clReleaseDevice", part)


def record(session, buffer, queues, data) -> int:
    """((0 + 3) * 2 + 5) * 2, on alternating queues; returns the handle of the first launch."""
    program = session.program(SOURCE)
    add, twice = session.kernel(program, "add"), session.kernel(program, "twice")
    handle = ctypes.c_void_p()
    point = session.command(
        "clCommandFillBufferKHR", buffer, data, bytes(4), 4, 0, 4 * ITEMS, queue=queues[0]
    )
    first = {"queue": queues[1], "after": [point], "handle": handle}
    point = session.record(buffer, add, ITEMS, data, np.int32(3), **first)
    point = session.record(buffer, twice, ITEMS, data, queue=queues[0], after=[point])
    session.record(buffer, add, ITEMS, data, np.int32(5), queue=queues[1], after=[point])
    session.command("clCommandBarrierWithWaitListKHR", buffer, queue=queues[0])
    session.record(buffer, twice, ITEMS, data, queue=queues[0])
    return handle.value


def test_sync_points_across_queues(several):
    session, data = several, several.buffer(4 * ITEMS)
    buffer = session.create(*session.queues, flags=DEVICE_SIDE_SYNC)
    record(session, buffer, session.queues, data)
    session.finalize(buffer)
    assert session.answer("clGetCommandBufferInfoKHR", buffer, NUM_QUEUES) == b"\2\0\0\0"
    assert session.queues_of(buffer) == session.queues
    for round_ in range(20):
        session.enqueue(buffer)
        found = session.read(data, np.int32, ITEMS, queue=session.queues[round_ % 2])
        assert np.all(found == 22), round_


def test_the_order_in_each_queue(several):
    """It comes after what was enqueued before in any of its queues, and before what follows in any."""
    session, data = several, several.buffer(4 * ITEMS)
    first, second = session.queues
    buffer = session.create(first, second)
    add = session.kernel(SOURCE, "add")
    session.record(buffer, add, ITEMS, data, np.int32(1), queue=first)
    session.finalize(buffer)
    gate = session.cl.make("clCreateUserEvent", session.context)
    event = session.event()
    fill = (data, np.int32(40).tobytes(), 4, 0, 4 * ITEMS, 1, [gate], None)
    session.cl.ok("clEnqueueFillBuffer", second, *fill)
    session.enqueue(buffer, event=event)
    session.cl.ok("clFlush", first)
    status = session.cl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_EXECUTION_STATUS)
    assert status in (cl.CL_QUEUED, cl.CL_SUBMITTED)
    assert session.cl.words("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_QUEUE) == [0]
    session.cl.ok("clSetUserEventStatus", gate, cl.CL_COMPLETE)
    assert np.all(session.read(data, np.int32, ITEMS, queue=second) == 41)
    for made in (gate, event.value):
        session.cl.ok("clReleaseEvent", made)


def test_times_are_there_if_any_queue_takes_them(several):
    session = several
    device = session.cl.words("clGetCommandQueueInfo", session.queues[1], cl.CL_QUEUE_DEVICE)[0]
    timed = session.new_queue(device, cl.CL_QUEUE_PROFILING_ENABLE)
    for queues, wanted in (([session.queue, timed], 0), (session.queues, cl.CL_PROFILING_INFO_NOT_AVAILABLE)):
        buffer = session.create(*queues)
        session.finalize(buffer)
        event, time = session.event(), ctypes.c_uint64()
        session.enqueue(buffer, event=event)
        session.cl.ok("clWaitForEvents", 1, [event.value])
        where = (event.value, cl.CL_PROFILING_COMMAND_END, 8, time, None)
        assert session.cl.call("clGetEventProfilingInfo", *where) == wanted
        session.cl.ok("clReleaseEvent", event.value)


def test_other_queues_take_their_place(several):
    session, data = several, several.buffer(4 * ITEMS)
    buffer = session.create(*session.queues)
    record(session, buffer, session.queues, data)
    session.finalize(buffer)
    devices = [
        session.cl.words("clGetCommandQueueInfo", queue, cl.CL_QUEUE_DEVICE)[0] for queue in session.queues
    ]
    others = [session.new_queue(device, OUT_OF_ORDER) for device in devices]
    session.enqueue(buffer, *others)
    for queue in others:
        session.finish(queue)
    assert np.all(session.read(data, np.int32, ITEMS) == 22)


@pytest.mark.parametrize("automatic", [0, 1])
@pytest.mark.parametrize("finalized", [False, True])
def test_copies_for_other_queues(several, automatic, finalized):
    session, data = several, several.buffer(4 * ITEMS)
    buffer = session.create(*session.queues, flags=MUTABLE)
    handle = record(session, buffer, session.queues, data)
    if finalized:
        session.finalize(buffer)
    swapped = session.queues[:1] if automatic else session.queues[::-1]
    handles, again = [handle, handle], (ctypes.c_uint64 * 2)()
    copy, status = session.make(
        "clRemapCommandBufferKHR", buffer, automatic, len(swapped), list(swapped), 2, handles, again
    )
    assert status == 0
    session.keep(copy)
    assert again[0] and again[0] == again[1] != handle
    assert session.queues_of(copy) == list(swapped)
    if not finalized:
        assert session.state(copy) == RECORDING
        add = session.kernel(SOURCE, "add")
        session.record(copy, add, ITEMS, data, np.int32(1000), queue=swapped[0])
        session.finalize(copy)
        session.finalize(buffer)
    more = 0 if finalized else 1000
    assert session.update(copy, config(again[0], arguments=[(1, np.int32(4).tobytes())])) == 0
    for made, wanted in ((copy, 26 + more), (buffer, 22), (copy, 26 + more)):
        session.enqueue(made)
        assert np.all(session.read(data, np.int32, ITEMS) == wanted)
    session.release(buffer)
    session.enqueue(copy)
    assert np.all(session.read(data, np.int32, ITEMS) == 26 + more)


def test_all_other_commands_are_copied(session):
    source, target = session.buffer(np.arange(64, dtype=np.uint8)), session.buffer(64)
    buffer = session.create()
    session.command("clCommandCopyBufferKHR", buffer, source, target, 0, 0, 64)
    session.command("clCommandFillBufferKHR", buffer, target, b"\7", 1, 0, 8)
    session.command(
        "clCommandCopyBufferRectKHR", buffer, source, target, [0] * 3, [0, 2, 0], [8, 1, 1], 8, 0, 8, 0
    )
    session.finalize(buffer)
    other = session.new_queue()
    copy, status = session.make("clRemapCommandBufferKHR", buffer, 0, 1, [other], 0, None, None)
    assert status == 0
    session.release(buffer)
    session.enqueue(session.keep(copy))
    wanted = np.arange(64, dtype=np.uint8)
    wanted[:8], wanted[16:24] = 7, np.arange(8)
    assert np.array_equal(session.read(target, np.uint8, 64, queue=other), wanted)


def test_copies_that_fail(session):
    data = session.buffer(64)
    buffer, handle = session.create(), ctypes.c_void_p()
    add = session.kernel(SOURCE, "add")
    session.record(buffer, add, 16, data, np.int32(1), handle=handle)
    session.finalize(buffer)
    queue, other = session.queue, Recorder(session.cl)
    good, room = [handle.value], (ctypes.c_uint64 * 1)()

    def status(*arguments) -> int:
        made, found = session.make("clRemapCommandBufferKHR", *arguments)
        assert not made and not room[0]
        return found

    assert status(queue, 0, 1, [queue], 0, None, None) == INVALID_COMMAND_BUFFER
    for wrong in (
        (buffer, 0, 0, [queue], 0, None, None),
        (buffer, 0, 1, None, 0, None, None),
        (buffer, 0, 2, [queue, queue], 0, None, None),
        (buffer, 0, 1, [queue], 1, good, None),
        (buffer, 0, 1, [queue], 1, None, room),
        (buffer, 0, 1, [queue], 0, good, room),
        (buffer, 0, 1, [queue], 1, [buffer], room),
    ):
        assert status(*wrong) == cl.CL_INVALID_VALUE
    assert status(buffer, 0, 1, [buffer], 1, good, room) == cl.CL_INVALID_COMMAND_QUEUE
    assert status(buffer, 0, 1, [other.queue], 1, good, room) == cl.CL_INVALID_CONTEXT
    other.close()


def test_a_copy_for_a_device_without_the_program(opencl):
    if opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
        pytest.skip("one compute unit cannot be divided")
    parts = opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    session = Recorder(opencl, *parts)
    program = session.made("clReleaseProgram", opencl.program(session.context, SOURCE))
    opencl.ok("clBuildProgram", program, 1, [parts[0]], None, None, None)
    buffer, twice = session.create(), session.kernel(program, "twice")
    session.record(buffer, twice, 16, session.buffer(64))
    made, status = session.make(
        "clRemapCommandBufferKHR", buffer, 0, 1, [session.new_queue(parts[1])], 0, None, None
    )
    assert not made and status == cl.CL_INVALID_PROGRAM_EXECUTABLE
    session.close()
    for part in parts:
        opencl.ok("clReleaseDevice", part)
