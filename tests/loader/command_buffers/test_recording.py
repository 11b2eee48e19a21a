"""What is recorded is what is executed: each command, its order, its arguments (cl_khr_command_buffer)."""

import ctypes
import struct

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.core.session import Local

from .recorder import COMMAND_COMMAND_BUFFER, EXECUTABLE, RECORDING, REFERENCE_COUNT, Recorder

ITEMS = 64
OUT_OF_ORDER = cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
SOURCE = """
kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }
kernel void twice(global int *data) { data[get_global_id(0)] *= 2; }
kernel void sum(global int *out, global const int *in, local int *scratch) {
    size_t i = get_local_id(0);
    scratch[i] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i == 0) {
        int all = 0;
        for (size_t k = 0; k < get_local_size(0); k++)
            all += scratch[k];
        out[get_group_id(0)] = all;
    }
}
// Takes as long whatever it sees: how many of them are executed at the same time, at most.
kernel void meet(global atomic_int *present, global int *met, int long_enough) {
    atomic_fetch_add_explicit(present, 1, memory_order_relaxed, memory_scope_device);
    int most = 0;
    for (int i = 0; i < long_enough; i++)
        most = max(most, atomic_load_explicit(present, memory_order_relaxed, memory_scope_device));
    *met = most;
    atomic_fetch_sub_explicit(present, 1, memory_order_relaxed, memory_scope_device);
}
kernel void say(int x) { printf("said %d\\n", x); }
"""


@pytest.fixture
def program(session):
    return session.program(SOURCE)


def test_a_chain_keeps_its_order(session, program):
    """On an in-order queue each command waits for the one before."""
    add, twice = session.kernel(program, "add"), session.kernel(program, "twice")
    data, buffer = session.buffer(np.zeros(ITEMS, np.int32)), session.create()
    wanted = 0
    for i in range(40):
        session.record(buffer, add, ITEMS, data, np.int32(i))
        wanted += i
        if i % 4 == 0:
            session.record(buffer, twice, ITEMS, data)
            wanted *= 2
    assert session.state(buffer) == RECORDING
    session.finalize(buffer)
    assert session.state(buffer) == EXECUTABLE
    for round_ in range(40):
        session.write(data, np.zeros(ITEMS, np.int32))
        session.enqueue(buffer)
        assert np.all(session.read(data, np.int32, ITEMS) == np.int32(wanted & 0xFFFFFFFF)), round_


@pytest.mark.parametrize("items", [ITEMS, 1 << 18])
def test_sync_points_are_the_order(opencl, items):
    """On an out-of-order queue nothing else is: a diamond, of small and of large kernels."""
    session = Recorder(opencl, properties=OUT_OF_ORDER)
    program = session.program(SOURCE)
    add, twice = session.kernel(program, "add"), session.kernel(program, "twice")
    left, right = (session.buffer(np.zeros(items, np.int32)) for _ in range(2))
    both = session.buffer(np.zeros(2 * items, np.int32))
    buffer, size = session.create(), 4 * items
    first = [session.record(buffer, add, items, side, np.int32(3)) for side in (left, right)]
    second = [session.record(buffer, twice, items, left, after=first[:1])]
    second.append(session.record(buffer, add, items, right, np.int32(4), after=first[1:]))
    copies = [
        session.command("clCommandCopyBufferKHR", buffer, side, both, 0, at, size, after=[point])
        for side, at, point in zip((left, right), (0, size), second, strict=True)
    ]
    session.record(buffer, add, 2 * items, both, np.int32(100), after=copies)
    session.finalize(buffer)
    for round_ in range(1, 30):
        for side in (left, right):
            session.write(side, np.zeros(items, np.int32))
        session.enqueue(buffer)
        session.finish()
        found = session.read(both, np.int32, 2 * items)
        assert np.all(found[:items] == 106) and np.all(found[items:] == 107), round_
    session.close()


@pytest.mark.parametrize("named", [False, True])
def test_barriers(opencl, named):
    session = Recorder(opencl, properties=OUT_OF_ORDER)
    program = session.program(SOURCE)
    add, twice = session.kernel(program, "add"), session.kernel(program, "twice")
    data, buffer, wanted = session.buffer(np.zeros(ITEMS, np.int32)), session.create(), 0
    for i in range(20):
        point = session.record(buffer, add, ITEMS, data, np.int32(i))
        session.command("clCommandBarrierWithWaitListKHR", buffer, after=[point] if named else ())
        session.record(buffer, twice, ITEMS, data)
        session.command("clCommandBarrierWithWaitListKHR", buffer)
        wanted = 2 * (wanted + i)
    session.finalize(buffer)
    for _ in range(20):
        session.write(data, np.zeros(ITEMS, np.int32))
        session.enqueue(buffer)
        session.finish()
        assert np.all(session.read(data, np.int32, ITEMS) == wanted)
    session.close()


def test_branches_run_at_once(opencl):
    session = Recorder(opencl, properties=OUT_OF_ORDER)
    if opencl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
        pytest.skip("one thread")
    meet = session.kernel(session.program(SOURCE), "meet")
    present = session.buffer(np.zeros(1, np.int32))
    met = [session.buffer(np.zeros(1, np.int32)) for _ in range(2)]
    buffer = session.create()
    start = session.command("clCommandFillBufferKHR", buffer, present, bytes(4), 4, 0, 4)
    for place in met:
        session.record(buffer, meet, 1, present, place, np.int32(1 << 24), after=[start])
    session.finalize(buffer)
    for _ in range(5):
        session.enqueue(buffer)
        session.finish()
        assert [session.read(place, np.int32, 1)[0] for place in met] == [2, 2]
    session.close()


def test_arguments_are_those_of_the_recording(session, program):
    add = session.kernel(program, "add")
    data, other = session.buffer(np.zeros(ITEMS, np.int32)), session.buffer(np.zeros(ITEMS, np.int32))
    buffer = session.create()
    for value in (1, 10):
        session.record(buffer, add, ITEMS, data, np.int32(value))
    session.set_arguments(add, (other, np.int32(100)))
    session.finalize(buffer)
    session.enqueue(buffer)
    assert np.all(session.read(data, np.int32, ITEMS) == 11)
    assert not np.any(session.read(other, np.int32, ITEMS))


def test_local_arguments_and_many_groups(session, program):
    total = session.kernel(program, "sum")
    data = np.arange(1024, dtype=np.int32)
    given, out = session.buffer(data), session.buffer(np.zeros(16, np.int32))
    buffer = session.create()
    session.record(buffer, total, 1024, out, given, Local(256), local=64)
    session.finalize(buffer)
    for _ in range(20):
        session.write(out, np.zeros(16, np.int32))
        session.enqueue(buffer)
        assert np.array_equal(session.read(out, np.int32, 16), data.reshape(16, 64).sum(1))


def test_copies_and_fills(session):
    """Each command that is no kernel: of buffers, rectangles, images, shared memory."""
    rows, row = 16, 64
    size = rows * row
    given, out = session.buffer(np.arange(size, dtype=np.uint8)), session.buffer(size)
    rect, pixels = session.buffer(size), session.buffer(size)
    format_ = struct.pack("<II", cl.CL_RGBA, cl.CL_UNSIGNED_INT8)
    desc = struct.pack("<Q7QIIQ", cl.CL_MEM_OBJECT_IMAGE2D, row // 4, rows, 0, 0, 0, 0, 0, 0, 0, 0)
    images = [
        session.made(
            "clReleaseMemObject",
            session.cl.make("clCreateImage", session.context, cl.CL_MEM_READ_WRITE, format_, desc, None),
        )
        for _ in range(2)
    ]
    session.cl.library.clSVMAlloc.restype = ctypes.c_void_p
    shared = [
        session.cl.library.clSVMAlloc(
            ctypes.c_void_p(session.context), ctypes.c_uint64(cl.CL_MEM_READ_WRITE), ctypes.c_size_t(256), 0
        )
        for _ in range(2)
    ]
    whole, origin = [row // 4, rows, 1], [0, 0, 0]
    buffer = session.create()
    session.command("clCommandCopyBufferKHR", buffer, given, out, 0, 0, size)
    session.command("clCommandFillBufferKHR", buffer, out, b"\x01\x02", 2, 8, 16)
    session.command("clCommandFillBufferKHR", buffer, rect, b"\xff", 1, 0, size)
    where = ([4, 2, 0], [8, 4, 0], [16, 3, 1], row, 0, row, 0)
    session.command("clCommandCopyBufferRectKHR", buffer, given, rect, *where)
    session.command("clCommandCopyBufferToImageKHR", buffer, given, images[0], 0, origin, whole)
    color = struct.pack("<4I", 9, 8, 7, 6)
    session.command("clCommandFillImageKHR", buffer, images[1], color, origin, whole)
    session.command("clCommandCopyImageKHR", buffer, images[0], images[1], origin, [1, 1, 0], [4, 4, 1])
    session.command("clCommandCopyImageToBufferKHR", buffer, images[1], pixels, origin, whole, 0)
    session.command("clCommandSVMMemFillKHR", buffer, shared[0], b"\x05\x06\x07\x08", 4, 256)
    session.command("clCommandSVMMemcpyKHR", buffer, shared[1], shared[0], 256)
    session.finalize(buffer)
    data = np.arange(size, dtype=np.uint8)
    for _ in range(2):
        session.enqueue(buffer)
        session.finish()
        filled = data.copy()
        filled[8:24] = np.tile([1, 2], 8)
        assert np.array_equal(session.read(out, np.uint8, size), filled)
        moved = np.full((rows, row), 255, np.uint8)
        moved[4:7, 8:24] = data.reshape(rows, row)[2:5, 4:20]
        assert np.array_equal(session.read(rect, np.uint8, size).reshape(rows, row), moved)
        drawn = np.tile(np.array([9, 8, 7, 6], np.uint8), (rows, row // 4))
        drawn[1:5, 4:20] = data.reshape(rows, row)[:4, :16]
        assert np.array_equal(session.read(pixels, np.uint8, size).reshape(rows, row), drawn)
        assert ctypes.string_at(shared[1], 256) == b"\x05\x06\x07\x08" * 64
        for place in (out, rect, pixels):
            session.write(place, np.zeros(size, np.uint8))
        ctypes.memset(shared[1], 0, 256)
    for pointer in shared:
        session.cl.library.clSVMFree(ctypes.c_void_p(session.context), ctypes.c_void_p(pointer))


def test_the_event_and_its_times(opencl):
    session = Recorder(opencl, properties=cl.CL_QUEUE_PROFILING_ENABLE)
    add = session.kernel(session.program(SOURCE), "add")
    data, buffer = session.buffer(np.zeros(ITEMS, np.int32)), session.create()
    for _ in range(3):
        session.record(buffer, add, ITEMS, data, np.int32(1))
    session.finalize(buffer)
    event = session.event()
    session.enqueue(buffer, event=event)
    session.cl.ok("clWaitForEvents", 1, [event.value])
    kind = session.cl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_TYPE)
    assert kind == COMMAND_COMMAND_BUFFER
    assert session.cl.words("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_QUEUE) == [session.queue]
    times = [
        session.cl.integer("clGetEventProfilingInfo", event.value, query)
        for query in (
            cl.CL_PROFILING_COMMAND_QUEUED,
            cl.CL_PROFILING_COMMAND_SUBMIT,
            cl.CL_PROFILING_COMMAND_START,
            cl.CL_PROFILING_COMMAND_END,
            cl.CL_PROFILING_COMMAND_COMPLETE,
        )
    ]
    assert times == sorted(times) and times[0] > 0
    session.cl.ok("clReleaseEvent", event.value)
    session.close()


def test_it_waits_for_events_and_others_for_it(session, program):
    add, twice = session.kernel(program, "add"), session.kernel(program, "twice")
    data, buffer = session.buffer(np.zeros(ITEMS, np.int32)), session.create()
    session.record(buffer, add, ITEMS, data, np.int32(5))
    session.finalize(buffer)
    gate, event = session.cl.make("clCreateUserEvent", session.context), session.event()
    other = session.new_queue()
    session.enqueue(buffer, after=[gate], event=event)
    session.set_arguments(twice, (data,))
    where = (1, None, [ITEMS], None, 1, [event.value], None)
    session.cl.ok("clEnqueueNDRangeKernel", other, twice, *where)
    session.cl.ok("clFlush", other)
    assert session.cl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_EXECUTION_STATUS) in (
        cl.CL_QUEUED,
        cl.CL_SUBMITTED,
    )
    session.cl.ok("clSetUserEventStatus", gate, cl.CL_COMPLETE)
    session.finish(other)
    assert np.all(session.read(data, np.int32, ITEMS) == 10)
    for made in (gate, event.value):
        session.cl.ok("clReleaseEvent", made)


def test_a_failed_event_fails_it(session, program):
    add = session.kernel(program, "add")
    data, buffer = session.buffer(np.zeros(ITEMS, np.int32)), session.create()
    session.record(buffer, add, ITEMS, data, np.int32(5))
    session.finalize(buffer)
    gate, event = session.cl.make("clCreateUserEvent", session.context), session.event()
    session.enqueue(buffer, after=[gate], event=event)
    session.cl.ok("clSetUserEventStatus", gate, -5)
    failed = cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    assert session.cl.call("clWaitForEvents", 1, [event.value]) == failed
    session.enqueue(buffer)
    assert np.all(session.read(data, np.int32, ITEMS) == 5)
    for made in (gate, event.value):
        session.cl.ok("clReleaseEvent", made)


def test_it_holds_what_it_needs(opencl):
    """Kernel, program, queue, buffers and the command-buffer itself are released before it is executed."""
    session = Recorder(opencl)
    out = session.buffer(np.zeros(ITEMS, np.int32))
    program = opencl.program(session.context, SOURCE)
    opencl.build(program, "-cl-std=CL3.0")
    add = opencl.make("clCreateKernel", program, b"add")
    queue = opencl.make("clCreateCommandQueueWithProperties", session.context, session.device, None)
    given = opencl.make(
        "clCreateBuffer",
        session.context,
        cl.CL_MEM_COPY_HOST_PTR,
        4 * ITEMS,
        np.ones(ITEMS, np.int32).tobytes(),
    )
    buffer = session.create(queue)
    session.command("clCommandCopyBufferKHR", buffer, given, out, 0, 0, 4 * ITEMS)
    session.record(buffer, add, ITEMS, out, np.int32(41))
    session.finalize(buffer)
    for release, handle in (
        ("clReleaseKernel", add),
        ("clReleaseProgram", program),
        ("clReleaseCommandQueue", queue),
        ("clReleaseMemObject", given),
    ):
        opencl.ok(release, handle)
    gate = opencl.make("clCreateUserEvent", session.context)
    event = session.event()
    session.enqueue(buffer, after=[gate], event=event)
    session.release(buffer)
    opencl.ok("clSetUserEventStatus", gate, cl.CL_COMPLETE)
    opencl.ok("clWaitForEvents", 1, [event.value])
    assert np.all(session.read(out, np.int32, ITEMS) == 42)
    for made in (gate, event.value):
        opencl.ok("clReleaseEvent", made)
    session.close()


def test_references_are_counted(session):
    buffer = session.create()

    def count() -> int:
        return int.from_bytes(session.answer("clGetCommandBufferInfoKHR", buffer, REFERENCE_COUNT), "little")

    assert count() == 1
    session.done("clRetainCommandBufferKHR", buffer)
    assert count() == 2
    session.done("clReleaseCommandBufferKHR", buffer)
    assert count() == 1


def test_an_empty_one_and_empty_launches(session, program):
    add = session.kernel(program, "add")
    data, buffer = session.buffer(np.zeros(ITEMS, np.int32)), session.create()
    session.finalize(buffer)
    session.enqueue(buffer)
    session.finish()
    other = session.create()
    session.record(other, add, 0, data, np.int32(1))
    session.record(other, add, ITEMS, data, np.int32(2))
    session.finalize(other)
    session.enqueue(other)
    assert np.all(session.read(data, np.int32, ITEMS) == 2)


def test_the_same_one_several_times_at_once(opencl):
    """Simultaneous use: executions that wait for nothing."""
    session = Recorder(opencl, properties=OUT_OF_ORDER)
    program = session.program(
        "kernel void count(global atomic_int *to) {"
        " atomic_fetch_add_explicit(to, 1, memory_order_relaxed, memory_scope_device); }"
    )
    count, total = session.kernel(program, "count"), session.buffer(np.zeros(1, np.int32))
    buffer = session.create(flags=1)
    for _ in range(10):
        session.record(buffer, count, ITEMS, total)
    session.finalize(buffer)
    for _ in range(50):
        session.enqueue(buffer)
        session.cl.ok("clFlush", session.queue)
    session.finish()
    assert session.read(total, np.int32, 1)[0] == 50 * 10 * ITEMS
    session.close()


def test_other_queues_take_its_place(session, program):
    add = session.kernel(program, "add")
    data, buffer = session.buffer(np.zeros(ITEMS, np.int32)), session.create()
    session.record(buffer, add, ITEMS, data, np.int32(5))
    session.finalize(buffer)
    other = session.new_queue(properties=OUT_OF_ORDER)
    session.enqueue(buffer, other)
    session.finish(other)
    assert np.all(session.read(data, np.int32, ITEMS) == 5)


def test_kernels_that_print(session, program, capfd):
    say, buffer = session.kernel(program, "say"), session.create()
    for value in (3, 4):
        session.record(buffer, say, 1, np.int32(value))
    session.finalize(buffer)
    for _ in range(2):
        session.enqueue(buffer)
        session.finish()
    assert capfd.readouterr().out == "said 3\nsaid 4\n" * 2
