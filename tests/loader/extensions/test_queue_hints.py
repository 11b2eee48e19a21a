"""What queues are told of their commands: cl_khr_priority_hints and cl_khr_throttle_hints 1.0.0."""

import itertools

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.marks import needs_kernel

PRIORITY, THROTTLE = 0x1096, 0x1097
HIGH, MEDIUM, LOW = 1, 2, 4
HINTS = (HIGH, MEDIUM, LOW)
ITEMS = 100_000


@pytest.mark.sanitize
@pytest.mark.parametrize(
    "what, threads",
    [
        ("urgent", 2),
        ("order", 1),
        pytest.param("low", 1, marks=needs_kernel),
        pytest.param("made by low", 2, marks=needs_kernel),
        ("throttle", 8),
    ],
)
def test_hints_are_followed(run_client, what, threads):
    """Whatever CPUs there are: nothing is asked but which thread does what, and how the system shares one."""
    run_client(
        "threads/queue_hints",
        what,
        env={"CL_DRIVER_THREADS": str(threads), "CL_DRIVER_WIDTH": "1"},
        timeout=300,
    )


def make(session, *properties) -> int:
    where = (session.context, session.device, [*properties, 0])
    queue = session.cl.make("clCreateCommandQueueWithProperties", *where)
    return session.made("clReleaseCommandQueue", queue)


@pytest.mark.parametrize("mode", [0, cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE])
def test_commands_of_all_queues(session, mode):
    """All that is done is done, whoever waits: chains through queues of each priority and throttle."""
    program = session.program(
        "kernel void k(global int *p) { p[get_global_id(0)] += 3; }"
        "kernel void twice(global int *p) { int i = get_global_id(0); p[i] = 2 * p[i]; }"
    )
    kernels = [session.kernel(program), session.kernel(program, "twice")]
    queues = [
        make(session, cl.CL_QUEUE_PROPERTIES, mode, PRIORITY, priority, THROTTLE, throttle)
        for priority, throttle in itertools.product(HINTS, HINTS)
    ]
    for size in (1, ITEMS):
        data, wanted, last = session.buffer(np.arange(size, dtype=np.int32)), np.arange(size), []
        for kernel, queue in itertools.product(kernels, queues):
            event = session.event()
            session.set_arguments(kernel, [data])
            where = (1, None, [size], None, len(last), last or None, event)
            session.cl.ok("clEnqueueNDRangeKernel", queue, kernel, *where)
            last = [event.value]
            wanted = wanted + 3 if kernel == kernels[0] else 2 * wanted
        session.cl.ok("clWaitForEvents", 1, last)
        for queue in queues:
            session.finish(queue)
        assert np.array_equal(session.read(data, np.int32, size), wanted)


def test_command_buffers_of_several_queues(session):
    kernel = session.kernel("kernel void k(global int *p) { p[get_global_id(0)] += 1; }")
    data = session.buffer(np.zeros(ITEMS, np.int32))
    queues = [make(session, PRIORITY, priority) for priority in HINTS]
    wanted = 0
    for used in (queues[2:], queues):
        buffer, after = session.create(*used), []
        for queue in used * 4:
            where = queue if len(used) > 1 else None
            after = [session.record(buffer, kernel, ITEMS, data, queue=where, after=after)]
            wanted += 3
        session.finalize(buffer)
        for _ in range(3):
            session.enqueue(buffer)
            for queue in used:
                session.finish(queue)
        assert np.array_equal(session.read(data, np.int32, ITEMS), np.full(ITEMS, wanted))


def test_queries(session):
    given = [PRIORITY, LOW, cl.CL_QUEUE_PROPERTIES, 0, THROTTLE, HIGH]
    queue = make(session, *given)
    assert session.cl.words("clGetCommandQueueInfo", queue, cl.CL_QUEUE_PROPERTIES_ARRAY) == [*given, 0]
    assert session.cl.integer("clGetCommandQueueInfo", queue, cl.CL_QUEUE_PROPERTIES) == 0


@pytest.mark.parametrize("name", [PRIORITY, THROTTLE])
def test_errors(session, name):
    on_device = cl.CL_QUEUE_ON_DEVICE | cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
    for wanted, properties in (
        (cl.CL_INVALID_VALUE, [name, 0]),
        (cl.CL_INVALID_VALUE, [name, 8]),
        (cl.CL_INVALID_VALUE, [name, HIGH | LOW]),
        (cl.CL_INVALID_QUEUE_PROPERTIES, [cl.CL_QUEUE_PROPERTIES, on_device, name, HIGH]),
    ):
        where = (session.context, session.device, [*properties, 0])
        assert session.cl.fails("clCreateCommandQueueWithProperties", *where) == wanted
