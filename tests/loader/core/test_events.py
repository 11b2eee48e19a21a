"""Events of every kind of command: type, status, times, callbacks, waiting (API specification, 5.11 on)."""

import ctypes
import threading

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

from .session import Session

BOTH = cl.CL_QUEUE_PROFILING_ENABLE | cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
STAMPS = [getattr(cl, f"CL_PROFILING_COMMAND_{n}") for n in ("QUEUED", "SUBMIT", "START", "END", "COMPLETE")]
EventNotify = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)


@pytest.fixture(params=[cl.CL_QUEUE_PROFILING_ENABLE, BOTH], ids=["in order", "out of order"])
def profiled(opencl, request):
    made = Session(opencl, properties=request.param)
    yield made
    made.close()


def commands(session, memory):
    """Every command that this driver has: (its type, function, arguments before the wait list).

    memory: an array of 4096 bytes that the commands use.
    """
    buffer, other = session.buffer(4096), session.buffer(4096)
    where, box = memory.ctypes.data, ([0] * 3, [0] * 3, [4, 4, 4], 16, 64, 16, 64)
    svm = session.cl.library.clSVMAlloc
    svm.restype, svm.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint],
    )
    shared = svm(session.context, cl.CL_MEM_READ_WRITE, 4096, 0)
    kernel = session.kernel("kernel void k(global int *p) { p[get_global_id(0)] = 1; }")
    session.set_arguments(kernel, [buffer])
    return [
        ("READ_BUFFER", "clEnqueueReadBuffer", (buffer, 0, 0, 64, where)),
        ("WRITE_BUFFER", "clEnqueueWriteBuffer", (buffer, 0, 0, 64, where)),
        ("COPY_BUFFER", "clEnqueueCopyBuffer", (buffer, other, 0, 0, 64)),
        ("READ_BUFFER_RECT", "clEnqueueReadBufferRect", (buffer, 0, *box, where)),
        ("WRITE_BUFFER_RECT", "clEnqueueWriteBufferRect", (buffer, 0, *box, where)),
        ("COPY_BUFFER_RECT", "clEnqueueCopyBufferRect", (buffer, other, *box)),
        ("FILL_BUFFER", "clEnqueueFillBuffer", (buffer, b"1234", 4, 0, 64)),
        ("MAP_BUFFER", "clEnqueueMapBuffer", (buffer, 0, cl.CL_MAP_READ, 0, 64)),
        ("UNMAP_MEM_OBJECT", "clEnqueueUnmapMemObject", (buffer, "mapped")),
        ("MIGRATE_MEM_OBJECTS", "clEnqueueMigrateMemObjects", (1, [buffer], 0)),
        ("NDRANGE_KERNEL", "clEnqueueNDRangeKernel", (kernel, 1, None, [64], None)),
        ("TASK", "clEnqueueTask", (kernel,)),
        ("MARKER", "clEnqueueMarkerWithWaitList", ()),
        ("BARRIER", "clEnqueueBarrierWithWaitList", ()),
        ("SVM_MEMCPY", "clEnqueueSVMMemcpy", (0, shared, where, 64)),
        ("SVM_MEMFILL", "clEnqueueSVMMemFill", (shared, b"1234", 4, 64)),
        ("SVM_MAP", "clEnqueueSVMMap", (0, cl.CL_MAP_WRITE, shared, 64)),
        ("SVM_UNMAP", "clEnqueueSVMUnmap", (shared,)),
        ("SVM_MIGRATE_MEM", "clEnqueueSVMMigrateMem", (1, [shared], [64], 0)),
        ("SVM_FREE", "clEnqueueSVMFree", (1, [shared], None, None)),
    ]


def test_every_command_has_its_type_and_times(profiled):
    """CL_EVENT_COMMAND_TYPE, and QUEUED <= SUBMIT <= START <= END <= COMPLETE (5.14), one after another."""
    session, last, mapped, memory = profiled, [], None, np.zeros(4096, np.uint8)
    for name, call, arguments in commands(session, memory):
        event = session.event()
        arguments = [
            mapped if a == "mapped" else a for a in arguments if not isinstance(a, str) or a == "mapped"
        ]
        waits = (len(last), [e.value for e in last] or None)
        done = session.cl.call(call, session.queue, *arguments, *waits, event)
        mapped, status = done if isinstance(done, tuple) else (mapped, done)
        assert status == cl.CL_SUCCESS, name
        command = session.cl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_TYPE)
        assert command == getattr(cl, f"CL_COMMAND_{name}"), name
        assert session.cl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_QUEUE) == session.queue
        assert session.cl.integer("clGetEventInfo", event.value, cl.CL_EVENT_CONTEXT) == session.context
        session.cl.ok("clWaitForEvents", 1, [event.value])
        stamps = [session.cl.integer("clGetEventProfilingInfo", event.value, stamp) for stamp in STAMPS]
        assert stamps == sorted(stamps) and stamps[0] > 0, name
        for old in last:
            ended = session.cl.integer("clGetEventProfilingInfo", old.value, cl.CL_PROFILING_COMMAND_END)
            assert ended <= stamps[2], name
            session.cl.ok("clReleaseEvent", old.value)
        last = [event]
    session.cl.ok("clReleaseEvent", last[0].value)


def test_times_are_not_available(session):
    """Without CL_QUEUE_PROFILING_ENABLE, for user events, and before a command is complete."""
    buffer, event = session.buffer(64), session.event()
    session.cl.ok("clEnqueueFillBuffer", session.queue, buffer, b"1", 1, 0, 64, 0, None, event)
    session.finish()
    user = session.cl.make("clCreateUserEvent", session.context)
    queue = session.new_queue(properties=cl.CL_QUEUE_PROFILING_ENABLE)
    waits = session.event()
    session.cl.ok("clEnqueueFillBuffer", queue, buffer, b"1", 1, 0, 64, 1, [user], waits)
    for unfinished in (event.value, user, waits.value):
        for stamp in STAMPS:
            refused = session.cl.fails("clGetEventProfilingInfo", unfinished, stamp, 0, None, None)
            assert refused == cl.CL_PROFILING_INFO_NOT_AVAILABLE
    session.cl.ok("clSetUserEventStatus", user, cl.CL_COMPLETE)
    session.finish(queue)
    assert session.cl.integer("clGetEventProfilingInfo", waits.value, cl.CL_PROFILING_COMMAND_END) > 0
    for handle in (event.value, user, waits.value):
        session.cl.ok("clReleaseEvent", handle)


def test_callbacks_for_each_status(session):
    """Called with the status that they were registered for, in its order, once each (5.11)."""
    user, event, told = session.cl.make("clCreateUserEvent", session.context), session.event(), []
    complete = threading.Event()

    def notify(handle, status, data):
        told.append((handle, status, data))
        if status <= cl.CL_COMPLETE:
            complete.set()

    notify = EventNotify(notify)
    buffer = session.buffer(64)
    session.cl.ok("clEnqueueFillBuffer", session.queue, buffer, b"1", 1, 0, 64, 1, [user], event)
    for data, status in enumerate((cl.CL_COMPLETE, cl.CL_RUNNING, cl.CL_SUBMITTED), 5):
        session.cl.ok("clSetEventCallback", event.value, status, notify, data)
    session.cl.ok("clSetUserEventStatus", user, cl.CL_COMPLETE)
    session.finish()
    assert complete.wait(20)
    wanted = [
        (event.value, cl.CL_SUBMITTED, 7),
        (event.value, cl.CL_RUNNING, 6),
        (event.value, cl.CL_COMPLETE, 5),
    ]
    assert sorted(told, key=lambda entry: -entry[1]) == wanted
    assert session.cl.fails("clSetEventCallback", event.value, cl.CL_QUEUED, notify, 0) == cl.CL_INVALID_VALUE
    assert session.cl.fails("clSetEventCallback", event.value, cl.CL_COMPLETE, None, 0) == cl.CL_INVALID_VALUE
    for handle in (event.value, user):
        session.cl.ok("clReleaseEvent", handle)


def test_a_failed_event_fails_what_waits_for_it(session):
    """A negative status of a user event ends the kernel that waits, which is not executed, and what waits for
    that (5.11); clWaitForEvents says so."""
    user = session.cl.make("clCreateUserEvent", session.context)
    out, events = session.buffer(np.zeros(4, np.int32)), [session.event(), session.event()]
    kernel = session.kernel("kernel void k(global int *p) { p[get_global_id(0)] = 1; }")
    queue = session.new_queue(properties=cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    session.set_arguments(kernel, [out])
    for event, before in zip(events, (user, events[0]), strict=True):
        waits = [getattr(before, "value", before)]
        session.cl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [4], None, 1, waits, event)
    session.cl.ok("clSetUserEventStatus", user, -5)
    waited = session.cl.fails("clWaitForEvents", 2, [e.value for e in events])
    assert waited == cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    for event in events:
        data = session.cl.info("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_EXECUTION_STATUS)
        assert int.from_bytes(data, "little", signed=True) < 0
    assert not session.read(out, np.int32, 4).any()
    assert session.cl.fails("clSetUserEventStatus", user, 0) == cl.CL_INVALID_OPERATION  # only once
    for handle in (user, *(event.value for event in events)):
        session.cl.ok("clReleaseEvent", handle)


def test_wait_lists_order_what_a_queue_does_not(session):
    """Kernels in an out-of-order queue, each of which needs the one before it."""
    queue = session.new_queue(properties=cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    kernel = session.kernel(
        "kernel void k(global uint *p, uint n) { p[get_global_id(0)] = p[get_global_id(0)] * 31 + n; }"
    )
    out, events = session.buffer(np.zeros(64, np.uint32)), [session.event() for _ in range(50)]
    expected = np.uint32(0)
    for step, event in enumerate(events):
        session.set_arguments(kernel, [out, np.uint32(step)])
        waits = (1, [events[step - 1].value]) if step else (0, None)
        session.cl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [64], None, *waits, event)
        expected = np.uint32((int(expected) * 31 + step) % 2**32)
    session.cl.ok("clWaitForEvents", 1, [events[-1].value])
    assert np.array_equal(session.read(out, np.uint32, 64, queue=queue), np.full(64, expected))
    for event in events:
        session.cl.ok("clReleaseEvent", event.value)


def test_errors_of_waiting(session):
    other = Session(session.cl)
    users = [session.cl.make("clCreateUserEvent", s.context) for s in (session, other)]
    assert session.cl.fails("clWaitForEvents", 0, None) == cl.CL_INVALID_VALUE
    assert session.cl.fails("clWaitForEvents", 2, users) == cl.CL_INVALID_CONTEXT
    assert session.cl.fails("clWaitForEvents", 1, [session.queue]) == cl.CL_INVALID_EVENT
    for count, waits, status in (
        (1, None, cl.CL_INVALID_EVENT_WAIT_LIST),
        (0, [users[0]], cl.CL_INVALID_EVENT_WAIT_LIST),
        (1, [session.queue], cl.CL_INVALID_EVENT_WAIT_LIST),
        (1, [users[1]], cl.CL_INVALID_CONTEXT),
    ):
        refused = session.cl.fails("clEnqueueMarkerWithWaitList", session.queue, count, waits, None)
        assert refused == status
    for user in users:
        session.cl.ok("clSetUserEventStatus", user, cl.CL_COMPLETE)
        session.cl.ok("clReleaseEvent", user)
    other.close()
