"""Timers, parts of the device, and several contexts at once (API specification, 4.2, 4.3, 4.4)."""

import ctypes
import re
import time

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

from .session import Session

SQUARE = "kernel void k(global int *p) { int i = get_global_id(0); p[i] = i * i + %d; }"
SQUARES = np.arange(256) ** 2


def times(session) -> tuple[int, int]:
    """(device, host) in ns."""
    device, host = ctypes.c_uint64(), ctypes.c_uint64()
    session.cl.ok("clGetDeviceAndHostTimer", session.device, device, host)
    return device.value, host.value


def test_no_version_of_the_cts_is_said_to_be_passed(session):
    """CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED (table 5) in the CTS's form, of a year that never was."""
    found = session.cl.text("clGetDeviceInfo", session.device, cl.CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED)
    assert re.fullmatch(r"v0000-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])-\d\d", found)


def test_timers_run_at_the_same_pace(session):
    """Both in ns; a device time stamp has the time base of clGetEventProfilingInfo."""
    resolution = session.cl.integer(
        "clGetPlatformInfo", session.cl.platform(), cl.CL_PLATFORM_HOST_TIMER_RESOLUTION
    )
    assert 0 < resolution < 10**6
    start, clock = times(session), time.monotonic_ns()
    time.sleep(0.2)
    end, passed = times(session), time.monotonic_ns() - clock
    device, host = end[0] - start[0], end[1] - start[1]
    assert abs(device - host) < 10**7 and 0.19e9 < device <= passed + 10**7


def test_events_have_the_devices_time(opencl):
    session = Session(opencl, properties=cl.CL_QUEUE_PROFILING_ENABLE)
    event, buffer = session.event(), session.buffer(4)
    before = times(session)[0]
    session.cl.ok("clEnqueueFillBuffer", session.queue, buffer, b"\0" * 4, 4, 0, 4, 0, None, event)
    session.finish()
    after = times(session)[0]
    for name in ("QUEUED", "SUBMIT", "START", "END", "COMPLETE"):
        stamp = session.cl.integer(
            "clGetEventProfilingInfo", event.value, getattr(cl, f"CL_PROFILING_COMMAND_{name}")
        )
        assert before <= stamp <= after
    session.cl.ok("clReleaseEvent", event.value)
    session.close()


@pytest.fixture
def parts(opencl):
    device = opencl.device()
    if opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
        pytest.skip("one compute unit cannot be divided")
    made = opencl.sub_devices(device, cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    yield made
    for part in made:
        opencl.ok("clReleaseDevice", part)


def test_parts_of_the_device_share_buffers(opencl, parts):
    """One context of several sub-devices: what one has written the next one reads, ordered by events."""
    session = Session(opencl, *parts)
    queues = [session.queue, *(session.new_queue(part) for part in parts[1:])]
    kernel = session.kernel(
        "kernel void k(global int *p, int n) { p[get_global_id(0)] = p[get_global_id(0)] * 3 + n; }"
    )
    buffer, expected, last = session.buffer(np.ones(512, np.int32)), np.ones(512, np.int64), None
    for step in range(12):
        session.set_arguments(kernel, [buffer, np.int32(step)])
        event, waits = session.event(), [last.value] if last else None
        where = (1, None, [512], None, int(bool(last)), waits, event)
        opencl.ok("clEnqueueNDRangeKernel", queues[step % len(queues)], kernel, *where)
        opencl.ok("clFlush", queues[step % len(queues)])
        if last:
            opencl.ok("clReleaseEvent", last.value)
        last, expected = event, expected * 3 + step
    opencl.ok("clWaitForEvents", 1, [last.value])
    opencl.ok("clReleaseEvent", last.value)
    assert np.array_equal(session.read(buffer, np.int32, 512), expected.astype(np.int32))
    session.close()


def test_a_part_and_the_whole_at_once(opencl, parts):
    sessions = [Session(opencl, parts[0]), Session(opencl)]
    buffers = []
    for number, session in enumerate(sessions):
        buffers.append(session.buffer(1024))
        session.launch(session.kernel(SQUARE % number), 256, buffers[-1])
    for number, session in enumerate(sessions):
        assert np.array_equal(session.read(buffers[number], np.int32, 256), SQUARES + number)
        session.close()


def test_contexts_do_not_know_of_each_other(opencl):
    """Four of one device with kernels of one name, released in the order in which they were made."""
    sessions = [Session(opencl) for _ in range(4)]
    buffers = [session.buffer(1024) for session in sessions]
    kernels = [session.kernel(SQUARE % (10 * number)) for number, session in enumerate(sessions)]
    for session, buffer, kernel in zip(sessions, buffers, kernels, strict=True):
        session.launch(kernel, 256, buffer)
    # "CL_INVALID_CONTEXT if context associated with command_queue and buffer are not the same".
    memory = np.zeros(256, np.int32)
    where = (cl.CL_TRUE, 0, 1024, memory.ctypes.data, 0, None, None)
    assert opencl.fails("clEnqueueReadBuffer", sessions[0].queue, buffers[1], *where) == cl.CL_INVALID_CONTEXT
    shape = (1, None, [256], None, 0, None, None)
    refused = opencl.fails("clEnqueueNDRangeKernel", sessions[0].queue, kernels[1], *shape)
    assert refused == cl.CL_INVALID_CONTEXT
    for number, (session, buffer) in enumerate(zip(sessions, buffers, strict=True)):
        assert np.array_equal(session.read(buffer, np.int32, 256), SQUARES + 10 * number)
        session.close()


def test_a_hundred_queues(session):
    kernel = session.kernel("kernel void k(global int *p, int n) { p[n] = n * 7; }")
    out = session.buffer(np.zeros(100, np.int32))
    queues = [session.new_queue() for _ in range(100)]
    for number, queue in enumerate(queues):
        session.launch(kernel, 1, out, np.int32(number), queue=queue)
    for queue in queues:
        session.finish(queue)
    assert np.array_equal(session.read(out, np.int32, 100), np.arange(100) * 7)
