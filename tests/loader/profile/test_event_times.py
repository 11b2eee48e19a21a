"""What event profiling says of when commands were executed (API specification, 5.14)."""

import time

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.core.session import Session
from tests.loader.core.test_devices import times as timers

IN_ORDER = cl.CL_QUEUE_PROFILING_ENABLE
OUT_OF_ORDER = IN_ORDER | cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
STAMPS = ("QUEUED", "SUBMIT", "START", "END", "COMPLETE")
SPIN = """kernel void k(global uint *p, uint rounds) {
    uint x = p[get_global_id(0)];
    for (uint i = 0; i < rounds; i++) x = x * 1664525 + (x >> 7);
    p[get_global_id(0)] = x;
}"""


@pytest.fixture(params=[IN_ORDER, OUT_OF_ORDER], ids=["in order", "out of order"])
def session(opencl, request):
    made = Session(opencl, properties=request.param)
    yield made
    made.close()


def stamps_of(session, event) -> dict[str, int]:
    """In the order of their names, which they must be in."""
    found = {
        name: session.cl.integer(
            "clGetEventProfilingInfo", event.value, getattr(cl, f"CL_PROFILING_COMMAND_{name}")
        )
        for name in STAMPS
    }
    assert list(found.values()) == sorted(found.values())
    return found


def spinning(session, items: int = 1):
    """enqueue(rounds, queue, waits): the event of a launch that spins."""
    kernel, data = session.kernel(SPIN), session.buffer(np.ones(items, np.uint32))

    def enqueue(rounds: int, queue=None, waits=()):
        event = session.event()
        session.set_arguments(kernel, [data, np.uint32(rounds)])
        listed = [wait.value for wait in waits]
        where = (1, None, [items], None, len(listed), listed or None, event)
        session.cl.ok("clEnqueueNDRangeKernel", queue or session.queue, kernel, *where)
        return event

    return enqueue


def release(session, *events) -> None:
    for event in events:
        session.cl.ok("clReleaseEvent", event.value)


def test_a_command_that_waits_for_a_user_event(session):
    gate = session.cl.make("clCreateUserEvent", session.context)
    buffer, event, kernel_event = session.buffer(64), session.event(), session.event()
    session.cl.ok("clEnqueueFillBuffer", session.queue, buffer, b"\0" * 4, 4, 0, 64, 1, [gate], event)
    kernel = session.kernel("kernel void k(global int *p) { p[get_global_id(0)] = 1; }")
    session.set_arguments(kernel, [buffer])
    where = (1, None, [16], None, 1, [event.value], kernel_event)
    session.cl.ok("clEnqueueNDRangeKernel", session.queue, kernel, *where)
    session.cl.ok("clFlush", session.queue)
    queued = timers(session)[0]
    time.sleep(0.05)
    opened = timers(session)[0]
    session.cl.ok("clSetUserEventStatus", gate, cl.CL_COMPLETE)
    session.finish()
    first, second = stamps_of(session, event), stamps_of(session, kernel_event)
    assert first["QUEUED"] <= second["QUEUED"] <= queued < opened <= first["START"]
    assert first["END"] <= second["START"] and second["COMPLETE"] <= timers(session)[0]
    release(session, event, kernel_event)
    session.cl.ok("clReleaseEvent", gate)


def test_what_depends_starts_after_the_end_of_all_that_it_waits_for(session):
    """Of one queue, and across two."""
    other = session.new_queue(properties=OUT_OF_ORDER)
    enqueue = spinning(session)
    waited = [enqueue(rounds, queue) for rounds, queue in ((1, other), (200_000, None), (2000, other))]
    last = enqueue(1, other, waited)
    after = enqueue(1, None, [last])
    session.finish()
    session.finish(other)
    ends = [stamps_of(session, event)["END"] for event in waited]
    found = stamps_of(session, last)
    assert found["START"] >= max(ends)
    assert stamps_of(session, after)["START"] >= found["END"]
    release(session, *waited, last, after)


def test_commands_of_a_queue_in_order_do_not_overlap(opencl):
    session = Session(opencl, properties=IN_ORDER)
    enqueue = spinning(session)
    events = [enqueue(rounds) for rounds in (50_000, 1, 0, 20_000, 1, 1)]
    session.finish()
    found = [stamps_of(session, event) for event in events]
    for before, after in zip(found, found[1:], strict=False):
        assert before["END"] <= after["START"] and before["QUEUED"] <= after["QUEUED"]
    release(session, *events)
    session.close()


def test_the_span_of_a_launch_is_as_long_as_it_takes(session):
    """By the host's clock around it; the best of some, for other programs run as well."""
    enqueue = spinning(session)

    def measured(rounds: int) -> tuple[int, int]:
        start = time.monotonic_ns()
        event = enqueue(rounds)
        session.finish()
        passed = time.monotonic_ns() - start
        found = stamps_of(session, event)
        release(session, event)
        return found["END"] - found["START"], passed

    rounds = 1 << 20
    while measured(rounds)[1] < 100_000_000:
        rounds *= 2
    pairs = [measured(rounds) for _ in range(4)]
    assert all(span <= passed for span, passed in pairs)
    assert max(span / passed for span, passed in pairs) > 0.97


def test_host_and_device_timers_agree_with_events(session):
    """An event's times lie between readings of the device's timer, whose distance is the host's."""
    enqueue = spinning(session)
    release(session, enqueue(1))
    session.finish()
    before = timers(session)
    event = enqueue(1 << 24)
    session.finish()
    after = timers(session)
    found = stamps_of(session, event)
    release(session, event)
    assert before[0] <= found["QUEUED"] and found["COMPLETE"] <= after[0]
    assert after[0] - before[0] == pytest.approx(after[1] - before[1], rel=0.02, abs=1_000_000)
