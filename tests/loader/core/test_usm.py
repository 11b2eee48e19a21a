"""Unified shared memory: cl_intel_unified_shared_memory 1.2."""

import ctypes
import threading

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

from .session import Session
from .test_svm import view

P, U32, U64, SIZE_T, INT = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int32
WAIT = (U32, P, P)
TYPES = {
    "clHostMemAllocINTEL": (P, P, P, SIZE_T, U32, P),
    "clDeviceMemAllocINTEL": (P, P, P, P, SIZE_T, U32, P),
    "clSharedMemAllocINTEL": (P, P, P, P, SIZE_T, U32, P),
    "clMemFreeINTEL": (INT, P, P),
    "clMemBlockingFreeINTEL": (INT, P, P),
    "clGetMemAllocInfoINTEL": (INT, P, P, U32, SIZE_T, P, P),
    "clSetKernelArgMemPointerINTEL": (INT, P, U32, P),
    "clEnqueueMemFillINTEL": (INT, P, P, P, SIZE_T, SIZE_T, *WAIT),
    "clEnqueueMemsetINTEL": (INT, P, P, INT, SIZE_T, *WAIT),  # deprecated
    "clEnqueueMemcpyINTEL": (INT, P, U32, P, P, SIZE_T, *WAIT),
    "clEnqueueMigrateMemINTEL": (INT, P, P, SIZE_T, U64, *WAIT),
    "clEnqueueMemAdviseINTEL": (INT, P, P, SIZE_T, U32, *WAIT),
}
ITEMS, SIZE, NO_WAIT = 1024, 4096, (0, None, None)
FLAGS = cl.CL_MEM_ALLOC_FLAGS_INTEL
ON_DEVICE, ON_HOST = (
    cl.CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL,
    cl.CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL,
)
COMBINED = cl.CL_MEM_ALLOC_WRITE_COMBINED_INTEL
ON_DEVICE_QUEUE = cl.CL_QUEUE_ON_DEVICE | cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
KERNEL = "kernel void k(global int *p, int n) { int i = get_global_id(0); p[i] = p[i] * 2 + n; }"


class Memory:
    """The functions of the extension, on the context of a session."""

    def __init__(self, session):
        self.session, self.context = session, session.context
        self.functions = {name: session.cl.extension(name, *types) for name, types in TYPES.items()}

    def call(self, name: str, *arguments) -> int:
        return self.functions[name](*arguments)

    def allocate(self, kind: str, size=SIZE, properties=None, alignment=0, device=0, context=None):
        """An address and a status; kind: "Host", "Device" or "Shared"."""
        status = ctypes.c_int32(1)
        where = () if kind == "Host" else (self.session.device if device == 0 else device,)
        listed = (ctypes.c_uint64 * len(properties))(*properties) if properties else None
        address = self.call(
            f"cl{kind}MemAllocINTEL", context or self.context, *where, listed, size, alignment,
            ctypes.byref(status),
        )  # fmt: skip
        assert (address is None) == (status.value != cl.CL_SUCCESS)
        return address, status.value

    def new(self, kind: str, size=SIZE, **options) -> int:
        address, status = self.allocate(kind, size, **options)
        assert status == cl.CL_SUCCESS
        return address

    def fails(self, kind: str, **options) -> int:
        address, status = self.allocate(kind, **options)
        assert address is None
        return status

    def free(self, address, context=None) -> int:
        return self.call("clMemFreeINTEL", context or self.context, address)

    def info(self, address, name: int, type_=ctypes.c_uint64) -> int | None:
        answer, size = type_(), ctypes.c_size_t()
        arguments = (self.context, address, name, ctypes.sizeof(answer))
        assert self.call("clGetMemAllocInfoINTEL", *arguments, ctypes.byref(answer), ctypes.byref(size)) == 0
        assert size.value == ctypes.sizeof(answer)
        return answer.value

    def description(self, address) -> tuple:
        """Type, base, size, device, flags."""
        return (
            self.info(address, cl.CL_MEM_ALLOC_TYPE_INTEL, ctypes.c_uint32),
            self.info(address, cl.CL_MEM_ALLOC_BASE_PTR_INTEL, ctypes.c_void_p),
            self.info(address, cl.CL_MEM_ALLOC_SIZE_INTEL),
            self.info(address, cl.CL_MEM_ALLOC_DEVICE_INTEL, ctypes.c_void_p),
            self.info(address, FLAGS),
        )


UNKNOWN = (cl.CL_MEM_TYPE_UNKNOWN_INTEL, None, 0, None, 0)


@pytest.fixture
def memory(session):
    return Memory(session)


def command_type(session, event) -> int:
    return session.cl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_TYPE)


def test_device_answers(session):
    for kind in ("HOST", "DEVICE", "SINGLE_DEVICE_SHARED", "CROSS_DEVICE_SHARED", "SHARED_SYSTEM"):
        name = getattr(cl, f"CL_DEVICE_{kind}_MEM_CAPABILITIES_INTEL")
        assert session.cl.integer("clGetDeviceInfo", session.device, name) == 0b1111
    names = session.cl.text("clGetDeviceInfo", session.device, cl.CL_DEVICE_EXTENSIONS).split()
    assert "cl_intel_unified_shared_memory" in names


def test_queries_of_every_kind(session, memory):
    host = memory.new("Host", properties=[FLAGS, COMBINED, 0])
    device = memory.new("Device", 100)
    shared = memory.new("Shared", 7, properties=[FLAGS, ON_HOST | COMBINED, 0])
    nobodys = memory.new("Shared", 9, device=None)
    kinds = cl.CL_MEM_TYPE_HOST_INTEL, cl.CL_MEM_TYPE_DEVICE_INTEL, cl.CL_MEM_TYPE_SHARED_INTEL
    assert memory.description(host + SIZE - 1) == (kinds[0], host, SIZE, None, COMBINED)
    assert memory.description(device + 50) == (kinds[1], device, 100, session.device, 0)
    assert memory.description(shared) == (kinds[2], shared, 7, session.device, ON_HOST | COMBINED)
    assert memory.description(nobodys) == (kinds[2], nobodys, 9, None, 0)
    assert memory.description(device + 100) == UNKNOWN
    assert memory.description(None) == UNKNOWN
    own = np.zeros(4)
    assert memory.description(own.ctypes.data) == UNKNOWN
    for address in (host, device, shared, nobodys):
        assert memory.free(address) == 0
        assert memory.description(address) == UNKNOWN


def test_queries_that_fail(session, memory):
    address = memory.new("Host")
    answer = ctypes.c_uint64()

    def ask(context=session.context, name=cl.CL_MEM_ALLOC_SIZE_INTEL, size=8):
        return memory.call("clGetMemAllocInfoINTEL", context, address, name, size, ctypes.byref(answer), None)

    assert ask() == 0 and answer.value == SIZE
    assert ask(context=session.queue) == cl.CL_INVALID_CONTEXT
    assert ask(name=cl.CL_MEM_SIZE) == cl.CL_INVALID_VALUE
    assert ask(size=7) == cl.CL_INVALID_VALUE
    assert memory.free(address) == 0


@pytest.mark.parametrize("kind", ["Host", "Device", "Shared"])
def test_allocations_that_fail(session, memory, kind):
    most = session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_MAX_MEM_ALLOC_SIZE)
    assert memory.fails(kind, context=session.queue) == cl.CL_INVALID_CONTEXT
    assert memory.fails(kind, size=0) == cl.CL_INVALID_BUFFER_SIZE
    assert memory.fails(kind, size=most + 1) == cl.CL_INVALID_BUFFER_SIZE
    for alignment in (3, 256):
        assert memory.fails(kind, alignment=alignment) == cl.CL_INVALID_VALUE
    wrong = [[1, 0, 0], [FLAGS, 8, 0], [FLAGS, 0, FLAGS, 0, 0], [FLAGS, ON_HOST | ON_DEVICE, 0]]
    for properties in wrong + ([] if kind == "Shared" else [[FLAGS, ON_HOST, 0], [FLAGS, ON_DEVICE, 0]]):
        assert memory.fails(kind, properties=properties) == cl.CL_INVALID_PROPERTY, properties
    if kind != "Host":
        assert memory.fails(kind, device=session.context) == cl.CL_INVALID_DEVICE
    if kind == "Device":
        assert memory.fails(kind, device=None) == cl.CL_INVALID_DEVICE
    for power in range(8):
        address = memory.new(kind, 10, alignment=1 << power)
        assert address % (1 << power) == 0 and memory.free(address) == 0


@pytest.mark.parametrize("kind", ["Device", "Shared"])
def test_devices_of_other_contexts(session, memory, kind):
    if session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
        pytest.skip("one compute unit cannot be divided")
    parts = session.cl.sub_devices(session.device, cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    assert memory.fails(kind, device=parts[0]) == cl.CL_INVALID_DEVICE
    for part in parts:
        session.cl.ok("clReleaseDevice", part)


def test_frees_that_fail(session, memory):
    other = Session(session.cl)
    address, svm = memory.new("Shared"), session.cl.library.clSVMAlloc
    svm.restype, svm.argtypes = P, [P, U64, SIZE_T, U32]
    shared = svm(session.context, cl.CL_MEM_READ_WRITE, 64, 0)
    for name in ("clMemFreeINTEL", "clMemBlockingFreeINTEL"):
        assert memory.call(name, session.context, None) == 0
        assert memory.call(name, session.queue, address) == cl.CL_INVALID_CONTEXT
        assert memory.call(name, other.context, address) == cl.CL_INVALID_VALUE
        assert memory.call(name, session.context, address + 1) == cl.CL_INVALID_VALUE
        assert memory.call(name, session.context, shared) == cl.CL_INVALID_VALUE
    free = session.cl.library.clSVMFree
    free.restype, free.argtypes = None, [P, P]
    free(session.context, address)  # not its own: the allocation stays
    assert memory.description(shared) == UNKNOWN
    free(session.context, shared)
    assert memory.free(address) == 0
    assert memory.free(address) == cl.CL_INVALID_VALUE
    other.close()


def test_many_allocations(memory):
    """Each is found by any address in it, also when half of the others are gone."""
    sizes = np.random.default_rng(3).integers(1, 600, 3000)
    addresses = [memory.new("Device", int(size)) for size in sizes]
    for address in addresses[::2]:
        assert memory.free(address) == 0
    for address, size in list(zip(addresses, sizes, strict=True))[1::2]:
        for offset in (0, int(size) - 1):
            assert memory.info(address + offset, cl.CL_MEM_ALLOC_BASE_PTR_INTEL) == address
    for address in addresses[1::2]:
        assert memory.free(address) == 0


@pytest.mark.parametrize("kind", ["Host", "Device", "Shared"])
def test_kernels_use_it(session, memory, kind):
    address, kernel = memory.new(kind), session.kernel(KERNEL)
    view(address)[:] = np.arange(ITEMS)
    set_pointer = memory.functions["clSetKernelArgMemPointerINTEL"]
    assert set_pointer(kernel, 0, address + 400) == 0
    session.cl.ok("clSetKernelArg", kernel, 1, 4, np.int32(5).tobytes())
    session.cl.ok("clEnqueueNDRangeKernel", session.queue, kernel, 1, None, [100], None, *NO_WAIT)
    session.finish()
    wanted = np.arange(ITEMS)
    wanted[100:200] = 2 * wanted[100:200] + 5
    assert np.array_equal(view(address), wanted)
    assert set_pointer(session.queue, 0, address) == cl.CL_INVALID_KERNEL
    assert set_pointer(kernel, 2, address) == cl.CL_INVALID_ARG_INDEX
    assert set_pointer(kernel, 1, address) == cl.CL_INVALID_ARG_VALUE
    assert set_pointer(kernel, 0, 1) == 0  # "any pointer value is valid"
    assert memory.free(address) == 0


def test_memory_that_only_pointers_lead_to(session, memory):
    source = "kernel void k(global int * global *table) { int i = get_global_id(0); table[i % 3][i] = i; }"
    rows = [memory.new(kind) for kind in ("Host", "Device", "Shared")]
    table, kernel = memory.new("Shared", 24), session.kernel(source)
    view(table, np.uint64, 3)[:] = rows
    session.cl.ok("clSetKernelExecInfo", kernel, cl.CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, 24, rows)
    session.cl.ok("clSetKernelExecInfo", kernel, cl.CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, 0, None)
    yes = np.uint32(cl.CL_TRUE).tobytes()
    for kind in ("HOST", "DEVICE", "SHARED"):
        name = getattr(cl, f"CL_KERNEL_EXEC_INFO_INDIRECT_{kind}_ACCESS_INTEL")
        session.cl.ok("clSetKernelExecInfo", kernel, name, 4, yes)
        assert session.cl.fails("clSetKernelExecInfo", kernel, name, 8, yes * 2) == cl.CL_INVALID_VALUE
        assert session.cl.fails("clSetKernelExecInfo", kernel, name, 4, None) == cl.CL_INVALID_VALUE
    wrong = (kernel, cl.CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, 7, rows)
    assert session.cl.fails("clSetKernelExecInfo", *wrong) == cl.CL_INVALID_VALUE
    assert memory.call("clSetKernelArgMemPointerINTEL", kernel, 0, table) == 0
    session.cl.ok("clEnqueueNDRangeKernel", session.queue, kernel, 1, None, [ITEMS], None, *NO_WAIT)
    session.finish()
    for number, row in enumerate(rows):
        assert np.array_equal(view(row)[number::3], np.arange(number, ITEMS, 3))
    for address in (*rows, table):
        assert memory.free(address) == 0


def test_commands(session, memory):
    a, b = memory.new("Device"), memory.new("Shared")
    host = np.arange(ITEMS, dtype=np.int32)
    event = session.event()

    def runs(name, wanted, *arguments):
        assert memory.call(name, session.queue, *arguments, 0, None, ctypes.byref(event)) == 0
        assert command_type(session, event) == wanted
        session.cl.ok("clWaitForEvents", 1, [event.value])
        session.cl.ok("clReleaseEvent", event.value)

    runs("clEnqueueMemcpyINTEL", cl.CL_COMMAND_MEMCPY_INTEL, cl.CL_FALSE, a, host.ctypes.data, SIZE)
    runs("clEnqueueMemcpyINTEL", cl.CL_COMMAND_MEMCPY_INTEL, cl.CL_TRUE, b, a, SIZE)
    assert np.array_equal(view(b), host)
    pattern = (ctypes.c_int32 * 2)(7, 8)
    runs("clEnqueueMemFillINTEL", cl.CL_COMMAND_MEMFILL_INTEL, b + 8, pattern, 8, 80)
    assert np.array_equal(view(b)[2:22], np.tile([7, 8], 10)) and view(b)[22] == 22
    runs("clEnqueueMemsetINTEL", cl.CL_COMMAND_MEMFILL_INTEL, b + 9, 0x1FE, 5)  # the lowest byte counts
    assert ctypes.string_at(b + 8, 8) == b"\7" + 5 * b"\xfe" + bytes(2)
    for flags in (0, cl.CL_MIGRATE_MEM_OBJECT_HOST):
        runs("clEnqueueMigrateMemINTEL", cl.CL_COMMAND_MIGRATEMEM_INTEL, b, SIZE, flags)
    runs("clEnqueueMemAdviseINTEL", cl.CL_COMMAND_MEMADVISE_INTEL, b, SIZE, 0)
    assert memory.free(a) == memory.free(b) == 0


def test_commands_that_fail(session, memory):
    a, other = memory.new("Shared"), Session(session.cl)
    byte, event = ctypes.c_uint64(1), session.event()
    session.cl.ok("clEnqueueMarkerWithWaitList", other.queue, 0, None, ctypes.byref(event))
    foreign = (ctypes.c_void_p * 1)(event.value)
    properties = [cl.CL_QUEUE_PROPERTIES, ON_DEVICE_QUEUE, 0]
    on_device = session.cl.make(
        "clCreateCommandQueueWithProperties", session.context, session.device, properties
    )
    commands = {
        "clEnqueueMemFillINTEL": (a, ctypes.byref(byte), 1, 16),
        "clEnqueueMemsetINTEL": (a, 1, 16),
        "clEnqueueMemcpyINTEL": (cl.CL_FALSE, a, a + 64, 16),
        "clEnqueueMigrateMemINTEL": (a, SIZE, 0),
        "clEnqueueMemAdviseINTEL": (a, SIZE, 0),
    }
    for name, arguments in commands.items():
        assert memory.call(name, session.queue, *arguments, *NO_WAIT) == 0
        for wrong in (session.context, on_device):
            assert memory.call(name, wrong, *arguments, *NO_WAIT) == cl.CL_INVALID_COMMAND_QUEUE
        assert memory.call(name, session.queue, *arguments, 1, foreign, None) == cl.CL_INVALID_CONTEXT
        for wait in ((1, None, None), (0, foreign, None)):
            assert memory.call(name, session.queue, *arguments, *wait) == cl.CL_INVALID_EVENT_WAIT_LIST

    def status(name, *arguments):
        return memory.call(name, session.queue, *arguments, *NO_WAIT)

    for destination, pattern, pattern_size, size in (
        (None, byte, 1, 16), (a + 1, byte, 2, 16), (a, None, 1, 16), (a, byte, 3, 15), (a, byte, 256, 256),
        (a, byte, 4, 15),
    ):  # fmt: skip
        given = pattern and ctypes.byref(pattern)
        assert status("clEnqueueMemFillINTEL", destination, given, pattern_size, size) == cl.CL_INVALID_VALUE
    assert status("clEnqueueMemsetINTEL", None, 1, 16) == cl.CL_INVALID_VALUE
    for to, source in ((None, a), (a, None)):
        assert status("clEnqueueMemcpyINTEL", cl.CL_TRUE, to, source, 16) == cl.CL_INVALID_VALUE
    assert status("clEnqueueMemcpyINTEL", cl.CL_TRUE, a, a + 15, 16) == cl.CL_MEM_COPY_OVERLAP
    assert status("clEnqueueMigrateMemINTEL", a, SIZE, 1 << 5) == cl.CL_INVALID_VALUE
    assert status("clEnqueueMemAdviseINTEL", a, SIZE, 0x4208) == cl.CL_INVALID_VALUE
    session.finish()
    other.finish()
    session.cl.ok("clReleaseEvent", event.value)
    session.cl.ok("clReleaseCommandQueue", on_device)
    other.close()
    assert memory.free(a) == 0


def test_a_blocking_copy_after_what_failed(session, memory):
    a, failed = memory.new("Shared"), session.cl.make("clCreateUserEvent", session.context)
    session.cl.ok("clSetUserEventStatus", failed, -1)
    waited = (ctypes.c_void_p * 1)(failed)
    status = memory.call("clEnqueueMemcpyINTEL", session.queue, cl.CL_TRUE, a, a + 64, 16, 1, waited, None)
    assert status == cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    session.finish()
    session.cl.ok("clReleaseEvent", failed)
    assert memory.free(a) == 0


def test_blocking_free_waits_for_all_queues(session, memory):
    """Also for what waits for a user event, in a queue that was not flushed, and for another queue."""
    address, other, kernel = memory.new("Shared"), session.new_queue(), session.kernel(KERNEL)
    view(address)[:] = 1
    gate = session.cl.make("clCreateUserEvent", session.context)
    first, last = session.event(), session.event()
    assert memory.call("clSetKernelArgMemPointerINTEL", kernel, 0, address) == 0
    session.cl.ok("clSetKernelArg", kernel, 1, 4, np.int32(5).tobytes())
    for queue, before, event in ((other, gate, first), (session.queue, None, last)):
        waited = [before or first.value]
        session.cl.ok(
            "clEnqueueNDRangeKernel", queue, kernel, 1, None, [ITEMS], None, 1, waited, ctypes.byref(event)
        )
    done = []
    thread = threading.Thread(
        target=lambda: done.append(memory.call("clMemBlockingFreeINTEL", session.context, address))
    )
    thread.start()
    thread.join(0.1)
    assert not done and memory.description(address) != UNKNOWN
    session.cl.ok("clSetUserEventStatus", gate, cl.CL_COMPLETE)
    thread.join()
    assert done == [0]
    for event in (first, last):
        state = session.cl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_EXECUTION_STATUS)
        assert state == cl.CL_COMPLETE
        session.cl.ok("clReleaseEvent", event.value)
    session.cl.ok("clReleaseEvent", gate)
    assert memory.description(address) == UNKNOWN
