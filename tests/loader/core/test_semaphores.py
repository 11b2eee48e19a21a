"""Semaphores: cl_khr_semaphore 1.0.1, cl_khr_external_semaphore 1.0.1 with descriptors of this driver."""

import ctypes
import os
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.conftest import ROOT

from .session import Session

TYPE, BINARY, DEVICES, EXPORT, EXPORTABLE, FD = 0x203D, 1, 0x2053, 0x203F, 0x2054, 0x2055
CONTEXT, REFERENCES, PROPERTIES, PAYLOAD = 0x2039, 0x203A, 0x203B, 0x203C
WAIT, SIGNAL = 0x2042, 0x2043
INVALID_SEMAPHORE = -1142
PLAIN = [TYPE, BINARY, 0]
SHARED = [TYPE, BINARY, EXPORT, FD, 0, 0]


class Semaphores:
    """The functions of the extensions for a session."""

    def __init__(self, session):
        self.session = session
        self._make = session.cl.checked("clCreateSemaphoreWithPropertiesKHR", "ppp", ctypes.c_void_p)
        self.enqueue_wait = session.cl.checked("clEnqueueWaitSemaphoresKHR", "puppupp")
        self.enqueue_signal = session.cl.checked("clEnqueueSignalSemaphoresKHR", "puppupp")
        self.info = session.cl.checked("clGetSemaphoreInfoKHR", "puzpp")
        self.export = session.cl.checked("clGetSemaphoreHandleForTypeKHR", "ppuzpp")
        self.retain = session.cl.checked("clRetainSemaphoreKHR", "p")
        self.release = session.cl.checked("clReleaseSemaphoreKHR", "p")
        self.live = []

    def make(self, properties=PLAIN, context=None) -> int:
        status = ctypes.c_int32(1)
        made = self._make(context or self.session.context, properties, status)
        assert status.value == 0 and made
        self.live.append(made)
        return made

    def refused(self, properties, context=None) -> int:
        status = ctypes.c_int32(1)
        assert not self._make(self.session.context if context is None else context, properties, status)
        assert not self._make(self.session.context if context is None else context, properties, None)
        return status.value

    def signal(self, *semaphores, queue=None, events=(), event=None) -> None:
        where = (queue or self.session.queue, len(semaphores), list(semaphores), None)
        assert self.enqueue_signal(*where, len(events), list(events) or None, event) == 0

    def wait(self, *semaphores, queue=None, events=(), event=None) -> None:
        where = (queue or self.session.queue, len(semaphores), list(semaphores), None)
        assert self.enqueue_wait(*where, len(events), list(events) or None, event) == 0

    def answer(self, semaphore, name) -> bytes:
        size = ctypes.c_uint64()
        assert self.info(semaphore, name, 0, None, size) == 0
        data = ctypes.create_string_buffer(size.value + 1)
        assert self.info(semaphore, name, size.value, data, None) == 0
        if size.value:
            assert self.info(semaphore, name, size.value - 1, data, None) == cl.CL_INVALID_VALUE
        return data.raw[: size.value]

    def is_signaled(self, semaphore) -> bool:
        return struct.unpack("<Q", self.answer(semaphore, PAYLOAD))[0] == 1

    def descriptor(self, semaphore) -> int:
        found, size = ctypes.c_int32(-1), ctypes.c_uint64()
        assert self.export(semaphore, self.session.device, FD, 4, found, size) == 0
        assert size.value == 4
        return found.value


@pytest.fixture
def semaphores(session):
    made = Semaphores(session)
    yield made
    for semaphore in made.live:
        made.release(semaphore)


def status_of(session, event) -> int:
    return ctypes.c_int32(
        session.cl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_EXECUTION_STATUS)
    ).value


def ends(session, event, seconds=10) -> bool:
    """Whether the command ends without a thread of the host that waits for it, and might help."""
    limit = time.monotonic() + seconds
    while status_of(session, event) > 0 and time.monotonic() < limit:
        time.sleep(0.001)
    return status_of(session, event) == 0


def test_queries_of_devices_and_platforms(opencl):
    for name in ("clGetPlatformInfo", "clGetDeviceInfo"):
        subject = opencl.platform() if name == "clGetPlatformInfo" else opencl.device()
        numbers = (0x2036, 0x2037, 0x2038) if name == "clGetPlatformInfo" else (0x204C, 0x204D, 0x204E)
        assert [opencl.info(name, subject, n) for n in numbers] == [
            struct.pack("<I", n) for n in (BINARY, FD, FD)
        ]


def test_queries(session, semaphores):
    semaphore = semaphores.make()
    listed = semaphores.make([DEVICES, session.device, 0, TYPE, BINARY, 0])
    shared = semaphores.make(SHARED)
    words = [struct.pack("<Q", n) for n in (session.context, session.device)]
    for made in (semaphore, listed, shared):
        assert [semaphores.answer(made, name) for name in (CONTEXT, DEVICES)] == words
        assert semaphores.answer(made, TYPE) == struct.pack("<I", BINARY)
    for made, given in ((semaphore, PLAIN), (listed, [DEVICES, session.device, 0, TYPE, BINARY, 0])):
        assert semaphores.answer(made, PROPERTIES) == struct.pack(f"<{len(given)}Q", *given)
    assert semaphores.answer(semaphore, EXPORT) == b""
    assert semaphores.answer(shared, EXPORT) == struct.pack("<I", FD)
    assert [semaphores.answer(s, EXPORTABLE) for s in (semaphore, shared)] == [bytes(4), b"\1\0\0\0"]
    assert semaphores.retain(semaphore) == 0
    assert semaphores.answer(semaphore, REFERENCES) == struct.pack("<I", 2)
    assert semaphores.release(semaphore) == 0
    assert semaphores.answer(semaphore, REFERENCES) == struct.pack("<I", 1)


@pytest.mark.parametrize("properties", [PLAIN, SHARED], ids=["plain", "shared"])
@pytest.mark.parametrize("flags", [0, cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE])
def test_a_wait_goes_on_once_it_is_signaled(session, semaphores, properties, flags):
    semaphore = semaphores.make(properties)
    queue, waits, last = session.new_queue(properties=flags), session.event(), session.event()
    semaphores.wait(semaphore, queue=queue, event=waits)
    session.cl.ok("clEnqueueBarrierWithWaitList", queue, 0, None, last)
    session.cl.ok("clFlush", queue)
    time.sleep(0.05)
    assert status_of(session, waits) > 0 and status_of(session, last) > 0
    assert session.cl.integer("clGetEventInfo", waits.value, cl.CL_EVENT_COMMAND_TYPE) == WAIT
    signals = session.event()
    semaphores.signal(semaphore, event=signals)
    assert session.cl.integer("clGetEventInfo", signals.value, cl.CL_EVENT_COMMAND_TYPE) == SIGNAL
    assert ends(session, signals) and ends(session, waits) and ends(session, last)
    assert not semaphores.is_signaled(semaphore)
    for event in (waits, last, signals):
        session.cl.ok("clReleaseEvent", event.value)


@pytest.mark.parametrize("properties", [PLAIN, SHARED], ids=["plain", "shared"])
def test_the_state(session, semaphores, properties):
    semaphore = semaphores.make(properties)
    assert not semaphores.is_signaled(semaphore)
    semaphores.signal(semaphore)
    session.finish()
    assert semaphores.is_signaled(semaphore)
    semaphores.wait(semaphore)
    session.finish()
    assert not semaphores.is_signaled(semaphore)


@pytest.mark.parametrize("properties", [PLAIN, SHARED], ids=["plain", "shared"])
def test_no_signal_is_lost(session, semaphores, properties):
    """Signals for which the waits are enqueued already may be executed before those."""
    semaphore, other, gate = semaphores.make(properties), session.new_queue(), session.event()
    gate.value = session.cl.make("clCreateUserEvent", session.context)
    for _ in range(20):
        semaphores.signal(semaphore)
        semaphores.wait(semaphore, queue=other, events=[gate.value])
    session.finish()
    session.cl.ok("clSetUserEventStatus", gate.value, 0)
    session.finish(other)
    assert not semaphores.is_signaled(semaphore)
    session.cl.ok("clReleaseEvent", gate.value)


def test_several_at_once(session, semaphores):
    first, second, shared = semaphores.make(), semaphores.make(), semaphores.make(SHARED)
    all_of_them, one, other = session.event(), session.event(), session.new_queue()
    semaphores.wait(first, shared, second, first, queue=other, event=all_of_them)
    session.cl.ok("clFlush", other)
    semaphores.signal(first, shared)
    semaphores.wait(first, event=one)
    session.cl.ok("clFlush", session.queue)
    time.sleep(0.05)
    assert status_of(session, all_of_them) > 0 and status_of(session, one) > 0
    other = session.new_queue()
    semaphores.signal(second, queue=other)
    assert ends(session, all_of_them) and status_of(session, one) > 0
    semaphores.signal(first, first, queue=other)
    assert ends(session, one)
    assert not any(map(semaphores.is_signaled, (first, second, shared)))
    for event in (all_of_them, one):
        session.cl.ok("clReleaseEvent", event.value)


@pytest.mark.parametrize("properties", [PLAIN, SHARED], ids=["plain", "shared"])
def test_signals_go_to_waits_in_the_order_of_their_enqueueing(session, semaphores, properties):
    semaphore, queues = semaphores.make(properties), [session.new_queue(), session.new_queue()]
    gate = session.cl.make("clCreateUserEvent", session.context)
    held_up, free = session.event(), session.event()
    semaphores.wait(semaphore, queue=queues[0], events=[gate], event=held_up)
    semaphores.wait(semaphore, queue=queues[1], event=free)
    for queue in queues:
        session.cl.ok("clFlush", queue)
    semaphores.signal(semaphore)
    session.finish()
    time.sleep(0.05)
    assert status_of(session, free) > 0  # that signal is the other's
    semaphores.signal(semaphore)
    assert ends(session, free) and status_of(session, held_up) > 0
    session.cl.ok("clSetUserEventStatus", gate, 0)
    assert ends(session, held_up)
    for event in (held_up.value, free.value, gate):
        session.cl.ok("clReleaseEvent", event)


@pytest.mark.parametrize("properties", [PLAIN, SHARED], ids=["plain", "shared"])
def test_a_wait_that_fails_leaves_its_signal(session, semaphores, properties):
    semaphore, queues = semaphores.make(properties), [session.new_queue(), session.new_queue()]
    gate = session.cl.make("clCreateUserEvent", session.context)
    failing, free = session.event(), session.event()
    semaphores.wait(semaphore, queue=queues[0], events=[gate], event=failing)
    semaphores.wait(semaphore, queue=queues[1], event=free)
    for queue in queues:
        session.cl.ok("clFlush", queue)
    semaphores.signal(semaphore)
    session.finish()
    session.cl.ok("clSetUserEventStatus", gate, -5)
    assert ends(session, free)
    assert status_of(session, failing) == cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    assert not semaphores.is_signaled(semaphore)
    for event in (failing.value, free.value, gate):
        session.cl.ok("clReleaseEvent", event)


def test_kernels_take_turns(session, semaphores):
    """Two queues change a buffer in turns."""
    kernel = session.kernel("kernel void k(global uint *p, uint n) { *p = *p * 3 + n; }")
    there, back, other = semaphores.make(), semaphores.make(), session.new_queue()
    data = session.buffer(np.zeros(1, np.uint32))
    expected = 0
    for _ in range(50):
        session.launch(kernel, 1, data, np.uint32(1))
        semaphores.signal(there)
        semaphores.wait(there, queue=other)
        session.launch(kernel, 1, data, np.uint32(2), queue=other)
        semaphores.signal(back, queue=other)
        semaphores.wait(back)
        expected = ((expected * 3 + 1) * 3 + 2) % 2**32
    assert session.read(data, np.uint32, 1)[0] == expected


def test_a_released_semaphore_lives_while_commands_use_it(session, semaphores):
    semaphore, other, event = semaphores.make(), session.new_queue(), session.event()
    gate = session.cl.make("clCreateUserEvent", session.context)
    semaphores.wait(semaphore, queue=other, event=event)
    semaphores.signal(semaphore, events=[gate])
    session.cl.ok("clFlush", other)
    assert semaphores.release(semaphores.live.pop()) == 0
    session.cl.ok("clSetUserEventStatus", gate, 0)
    assert ends(session, event)
    session.finish(other)
    for made in (event.value, gate):
        session.cl.ok("clReleaseEvent", made)


def test_an_event_that_fails_later(session, semaphores):
    semaphore, event = semaphores.make(), session.event()
    gate = session.cl.make("clCreateUserEvent", session.context)
    semaphores.signal(semaphore, events=[gate], event=event)
    session.cl.ok("clSetUserEventStatus", gate, -5)
    session.cl.call("clFinish", session.queue)
    assert status_of(session, event) == cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    assert not semaphores.is_signaled(semaphore)
    for function in (semaphores.enqueue_wait, semaphores.enqueue_signal):
        status = function(session.queue, 1, [semaphore], None, 1, [gate], None)
        assert status == cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    for made in (event.value, gate):
        session.cl.ok("clReleaseEvent", made)


def test_an_imported_semaphore_is_the_same(session, semaphores):
    shared = semaphores.make(SHARED)
    imported = semaphores.make([TYPE, BINARY, FD, semaphores.descriptor(shared), 0])
    assert semaphores.answer(imported, EXPORTABLE) == bytes(4)
    event, other = session.event(), session.new_queue()
    semaphores.wait(imported, queue=other, event=event)
    session.cl.ok("clFlush", other)
    time.sleep(0.2)  # the thread that watches may have ended by now, were nothing watched
    assert status_of(session, event) > 0
    semaphores.signal(shared)
    assert ends(session, event) and not semaphores.is_signaled(shared)
    session.cl.ok("clReleaseEvent", event.value)


CHILD = """
import sys
from tests.loader.core.session import Session
from tests.loader.core.test_semaphores import BINARY, FD, TYPE, Semaphores
from tests.loader.opencl import OpenCL
session = Session(OpenCL(sys.argv[1]))
semaphores = Semaphores(session)
there, back = (semaphores.make([TYPE, BINARY, FD, int(text), 0]) for text in sys.argv[2:4])
for _ in range(100):
    semaphores.wait(there)
    semaphores.signal(back)
session.finish()
"""


@pytest.mark.parametrize("threads", ["", "1"])
def test_two_processes(session, semaphores, threads):
    there, back = semaphores.make(SHARED), semaphores.make(SHARED)
    handed = [semaphores.descriptor(semaphore) for semaphore in (there, back)]
    command = [sys.executable, "-c", CHILD, session.cl.library._name, *map(str, handed)]
    environment = os.environ | ({"CL_DRIVER_THREADS": threads} if threads else {})
    with subprocess.Popen(command, cwd=ROOT, env=environment, pass_fds=handed) as child:
        for descriptor in handed:
            os.close(descriptor)
        for _ in range(100):
            semaphores.signal(there)
            semaphores.wait(back)
        last = session.event()
        session.cl.ok("clEnqueueMarkerWithWaitList", session.queue, 0, None, last)
        session.cl.ok("clFlush", session.queue)
        assert ends(session, last, 60)
        assert child.wait(60) == 0
    assert not semaphores.is_signaled(there) and not semaphores.is_signaled(back)
    session.cl.ok("clReleaseEvent", last.value)


ONE_THREAD = """
import sys
from tests.loader.core.session import Session
from tests.loader.core.test_semaphores import Semaphores, ends
from tests.loader.opencl import OpenCL
session = Session(OpenCL(sys.argv[1]))
semaphores = Semaphores(session)
made, events = [semaphores.make() for _ in range(8)], []
for semaphore in made:
    events.append(session.event())
    queue = session.new_queue()
    semaphores.wait(semaphore, queue=queue, event=events[-1])
    session.cl.ok("clFlush", queue)
for semaphore in reversed(made):
    semaphores.signal(semaphore)
assert all(ends(session, event) for event in events)
"""


def test_waits_take_no_thread(opencl):
    """The only worker signals what eight commands before wait for."""
    subprocess.run(
        [sys.executable, "-c", ONE_THREAD, opencl.library._name],
        cwd=ROOT,
        env=os.environ | {"CL_DRIVER_THREADS": "1"},
        check=True,
        timeout=100,
    )


FORK = """
import os, sys
from tests.loader.core.session import Session
from tests.loader.core.test_semaphores import PLAIN, SHARED, Semaphores, ends
from tests.loader.opencl import OpenCL
session = Session(OpenCL(sys.argv[1]))
semaphores = Semaphores(session)
made = [semaphores.make(properties) for properties in (PLAIN, SHARED)]
queues, events = [session.new_queue() for _ in made], [session.event() for _ in made]
for semaphore, queue, event in zip(made, queues, events):
    semaphores.wait(semaphore, queue=queue, event=event)
    session.cl.ok("clFlush", queue)
child = os.fork()
fresh = made if child else [semaphores.make(properties) for properties in (PLAIN, SHARED)]
for semaphore, queue, event in zip(fresh, queues, events):
    if not child:
        semaphores.wait(semaphore, queue=queue, event=event)
        session.cl.ok("clFlush", queue)
    semaphores.signal(semaphore)
if not child:
    os._exit(not all(ends(session, event) for event in events))
assert all(ends(session, event) for event in events)
assert os.waitpid(child, 0)[1] == 0
"""


def test_fork_while_commands_wait(opencl):
    """The parent goes on; the child may use semaphores again."""
    command = [sys.executable, "-c", FORK, opencl.library._name]
    subprocess.run(command, cwd=ROOT, check=True, timeout=100)


@pytest.mark.parametrize(
    "properties, status",
    [
        (None, cl.CL_INVALID_VALUE),
        ([0], cl.CL_INVALID_VALUE),
        ([EXPORT, FD, 0, 0], cl.CL_INVALID_VALUE),
        ([TYPE, BINARY, EXPORT, FD, FD, 0, 0], cl.CL_INVALID_VALUE),
        ([TYPE, BINARY, EXPORT, 0x2058, 0, 0], cl.CL_INVALID_PROPERTY),
        ([TYPE, BINARY, EXPORT, 0, 0], cl.CL_INVALID_PROPERTY),
        ([TYPE, 7, 0], cl.CL_INVALID_PROPERTY),
        ([0x1234, 1, 0], cl.CL_INVALID_PROPERTY),
        ([TYPE, BINARY, TYPE, BINARY, 0], cl.CL_INVALID_PROPERTY),
        ([TYPE, BINARY, EXPORT, FD, 0, EXPORT, FD, 0, 0], cl.CL_INVALID_PROPERTY),
        ([TYPE, BINARY, FD, -1, 0], cl.CL_INVALID_PROPERTY),
        ([TYPE, BINARY, FD, 1 << 20, 0], cl.CL_INVALID_PROPERTY),
        ([TYPE, BINARY, FD, 3, FD, 3, 0], cl.CL_INVALID_PROPERTY),
        ([TYPE, BINARY, FD, 3, EXPORT, FD, 0, 0], cl.CL_INVALID_OPERATION),
        ([TYPE, BINARY, DEVICES, 0, 0], cl.CL_INVALID_DEVICE),
        ([TYPE, BINARY, DEVICES, 64, 0, 0], cl.CL_INVALID_DEVICE),
        ([TYPE, BINARY, DEVICES, "device", "device", 0, 0], cl.CL_INVALID_DEVICE),
        ([TYPE, BINARY, DEVICES, "device", 0, DEVICES, "device", 0, 0], cl.CL_INVALID_PROPERTY),
    ],
)
def test_properties_that_are_wrong(session, semaphores, properties, status):
    given = properties and [session.device if p == "device" else p for p in properties]
    assert semaphores.refused(given) == status


def test_other_descriptors_are_no_semaphores(semaphores):
    """A pipe, a file, and eventfds whose reads block or take all."""
    ends_of_pipe = os.pipe()
    file = os.open("/dev/null", os.O_RDWR | os.O_NONBLOCK)
    eventfd = ctypes.CDLL(None).eventfd
    blocking, nonblocking = eventfd(0, 1), os.O_NONBLOCK
    for descriptor in (*ends_of_pipe, file, blocking):
        assert semaphores.refused([TYPE, BINARY, FD, descriptor, 0]) == cl.CL_INVALID_PROPERTY
        os.close(descriptor)  # it is still ours
    descriptor = eventfd(0, nonblocking | 1)
    imported = semaphores.make([TYPE, BINARY, FD, descriptor, 0])
    assert not semaphores.is_signaled(imported)


def test_contexts_and_devices(opencl, session, semaphores):
    assert semaphores.refused(PLAIN, context=64) == cl.CL_INVALID_CONTEXT
    stranger = Session(opencl)
    semaphore = semaphores.make()
    for function in (semaphores.enqueue_wait, semaphores.enqueue_signal):
        status = function(stranger.queue, 1, [semaphore], None, 0, None, None)
        assert status == cl.CL_INVALID_CONTEXT
    stranger.close()
    if opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
        pytest.skip("one compute unit cannot be divided")
    parts = opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    several = Session(opencl, *parts)
    made = Semaphores(several)
    assert made.refused(PLAIN) == cl.CL_INVALID_PROPERTY
    assert made.refused([TYPE, BINARY, DEVICES, opencl.device(), 0, 0]) == cl.CL_INVALID_DEVICE
    semaphore, shared = (made.make([*p[:-1], DEVICES, parts[0], 0, 0]) for p in (PLAIN, SHARED))
    other = several.new_queue(parts[1])
    for function in (made.enqueue_wait, made.enqueue_signal):
        for queue in (other, session.queue):  # whose device is not the semaphore's, or not the context's
            status = function(queue, 1, [semaphore], None, 0, None, None)
            assert status == cl.CL_INVALID_COMMAND_QUEUE
    found = ctypes.c_int32()
    assert made.export(shared, parts[1], FD, 4, found, None) == cl.CL_INVALID_DEVICE
    for each in (semaphore, shared):
        assert made.release(each) == 0
    several.close()
    for part in parts:
        opencl.ok("clReleaseDevice", part)


def test_enqueued_wrongly(session, semaphores):
    semaphore, event = semaphores.make(), session.event()
    for function in (semaphores.enqueue_wait, semaphores.enqueue_signal):
        one = (1, [semaphore], None)
        assert function(64, *one, 0, None, None) == cl.CL_INVALID_COMMAND_QUEUE
        assert function(session.queue, 0, [semaphore], None, 0, None, None) == cl.CL_INVALID_VALUE
        assert function(session.queue, 1, None, None, 0, None, None) == cl.CL_INVALID_VALUE
        for wrong in (0, 64, session.context):
            status = function(session.queue, 2, [semaphore, wrong], None, 0, None, None)
            assert status == INVALID_SEMAPHORE
        for count, events in ((1, None), (0, [semaphore]), (1, [semaphore])):
            status = function(session.queue, *one, count, events, event)
            assert status == cl.CL_INVALID_EVENT_WAIT_LIST
    assert not event.value and not semaphores.is_signaled(semaphore)


def test_asked_wrongly(session, semaphores):
    semaphore, shared, found = semaphores.make(), semaphores.make(SHARED), ctypes.c_int32(-7)
    for wrong in (0, 64, session.queue):
        assert semaphores.retain(wrong) == semaphores.release(wrong) == INVALID_SEMAPHORE
        assert semaphores.info(wrong, TYPE, 4, found, None) == INVALID_SEMAPHORE
        assert semaphores.export(wrong, session.device, FD, 4, found, None) == INVALID_SEMAPHORE
        assert semaphores.export(shared, wrong, FD, 4, found, None) == cl.CL_INVALID_DEVICE
    assert semaphores.info(semaphore, 0x2042, 8, None, None) == cl.CL_INVALID_VALUE
    assert semaphores.export(semaphore, session.device, FD, 4, found, None) == INVALID_SEMAPHORE
    assert semaphores.export(shared, session.device, 0x2058, 4, found, None) == cl.CL_INVALID_VALUE
    assert semaphores.export(shared, session.device, FD, 3, found, None) == cl.CL_INVALID_VALUE
    assert semaphores.export(shared, session.device, FD, 0, None, None) == 0
    assert found.value == -7


@pytest.mark.sanitize
@pytest.mark.parametrize("kind", ["plain", "shared"])
def test_several_threads(run_client, kind):
    run_client("threads/semaphores", kind, 200)
