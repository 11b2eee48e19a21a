"""A program that uses the devices of a cluster: python -m tests.loader.cluster.host SCENE. Scenes end with an
exception where something is not as it should be."""

from __future__ import annotations

import array
import ctypes
import select
import struct
import sys
import time

from cl_driver.api.generated import enums as cl
from tests.loader.opencl import ContextNotify, OpenCL

COUNT = 1000
_HANDLE = ctypes.c_void_p

SOURCE = """
kernel void add(global const int *a, global const int *b, global int *c, int k) {
    size_t i = get_global_id(0);
    c[i] = a[i] + k * b[i];
}
kernel void increment(global int *x, int by) { x[get_global_id(0)] += by; }
kernel void reverse_groups(global int *x, local int *t) {
    size_t l = get_local_id(0), n = get_local_size(0);
    t[l] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    x[get_global_id(0)] = t[n - 1 - l];
}
kernel void is_null(global int *out, global int *maybe) { out[get_global_id(0)] = maybe == 0; }
kernel void spin(global volatile int *x) {
    for (int i = 0; i < 2000000000; i++)
        x[0] += i;
}
"""


class Host:
    """A context of some devices, by their number, with a queue for each. most: how many there are. notified:
    what its callback is told."""

    def __init__(self, *numbers: int, profiled: bool = False, most: int = 3) -> None:
        self.cl = OpenCL("libOpenCL.so.1")
        found = (_HANDLE * (most + 1))()
        count = ctypes.c_uint32()
        self.cl.ok("clGetDeviceIDs", self.cl.platform(), cl.CL_DEVICE_TYPE_ALL, most + 1, found, count)
        self.every = list(found[: count.value])
        assert len(self.every) == most, f"{len(self.every)} devices"
        self.devices = [self.every[number] for number in numbers]
        self.notified: list[bytes] = []
        self._notify = ContextNotify(lambda text, *_: self.notified.append(text))
        self.context = self.cl.make(
            "clCreateContext", None, len(self.devices), self.devices, self._notify, None
        )
        properties = [cl.CL_QUEUE_PROPERTIES, cl.CL_QUEUE_PROFILING_ENABLE if profiled else 0, 0]
        self.queues = [
            self.cl.make("clCreateCommandQueueWithProperties", self.context, device, properties)
            for device in self.devices
        ]
        self.queue = self.queues[0] if self.queues else 0

    def build(self, source: str = SOURCE) -> None:
        """Builds the kernels."""
        self.program = self.cl.program(self.context, source)
        self.cl.build(self.program)

    def kernel(self, name: str) -> int:
        return self.cl.make("clCreateKernel", self.program, name.encode())

    def buffer(self, values: list[int] | None = None, flags: int = cl.CL_MEM_READ_WRITE) -> int:
        """A buffer of COUNT ints."""
        data = None if values is None else array.array("i", values).tobytes()
        flags |= cl.CL_MEM_COPY_HOST_PTR if data else 0
        return self.cl.make("clCreateBuffer", self.context, flags, 4 * COUNT, data)

    def launch(
        self, queue: int, kernel: int, size: int, *arguments, local: int = 0, wait=(), event=None
    ) -> None:
        """arguments: ints are of 32 bits; bytes as they are; (n,) is local memory, handles are [handle]."""
        for i, argument in enumerate(arguments):
            if isinstance(argument, tuple):
                self.cl.ok("clSetKernelArg", kernel, i, argument[0], None)
            else:
                data = (
                    struct.pack("<Q", argument[0])
                    if isinstance(argument, list)
                    else struct.pack("<i", argument)
                )
                self.cl.ok("clSetKernelArg", kernel, i, len(data), data)
        self.cl.ok(
            "clEnqueueNDRangeKernel", queue, kernel, 1, None, [size], [local] if local else None, len(wait),
            list(wait) or None, event,
        )  # fmt: skip

    def read(self, queue: int, buffer: int, count: int = COUNT) -> list[int]:
        data = (ctypes.c_int32 * count)()
        self.cl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, 4 * count, data, 0, None, None)
        return list(data)

    def status(self, event: int) -> int:
        value = self.cl.info("clGetEventInfo", event, cl.CL_EVENT_COMMAND_EXECUTION_STATUS)
        return int.from_bytes(value, "little", signed=True)


def devices() -> None:
    """What devices answer; each line of the output is a name."""
    host = Host(1)
    for device in host.every[1:]:
        print(host.cl.text("clGetDeviceInfo", device, cl.CL_DEVICE_NAME))
        for absent in ("SVM_CAPABILITIES", "PIPE_SUPPORT", "DEVICE_ENQUEUE_CAPABILITIES",
                       "MAX_NUM_SUB_GROUPS", "PARTITION_MAX_SUB_DEVICES"):  # fmt: skip
            assert host.cl.integer("clGetDeviceInfo", device, getattr(cl, f"CL_DEVICE_{absent}")) == 0
        assert host.cl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_MAX_COMPUTE_UNITS) == 1
        assert host.cl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_PLATFORM) == host.cl.platform()
        assert host.cl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_PARENT_DEVICE) == 0
        assert host.cl.call("clGetDeviceInfo", device, 0x7777, 0, None, None) == cl.CL_INVALID_VALUE
    first = ctypes.c_void_p()
    host.cl.ok("clGetDeviceIDs", host.cl.platform(), cl.CL_DEVICE_TYPE_DEFAULT, 1, first, None)
    assert first.value == host.every[0]


def memory() -> None:
    """Prints how much workers have."""
    host = Host(1)
    for device in host.every[1:]:
        size = host.cl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_GLOBAL_MEM_SIZE)
        assert host.cl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_MAX_MEM_ALLOC_SIZE) <= size
        print(size)


def refusals() -> None:
    """What such devices cannot do is an error code."""
    host = Host(1)
    by_counts = [cl.CL_DEVICE_PARTITION_EQUALLY, 1, 0]
    assert host.cl.call("clCreateSubDevices", host.devices[0], by_counts, 0, None, ctypes.c_uint32()) == (
        cl.CL_INVALID_VALUE
    )
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
    assert host.cl.call(
        "clEnqueueNativeKernel", host.queue, function, None, 0, 0, None, None, 0, None, None
    ) == cl.CL_INVALID_OPERATION  # fmt: skip
    on_device = cl.CL_QUEUE_ON_DEVICE | cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
    assert host.cl.fails(
        "clCreateCommandQueueWithProperties", host.context, host.devices[0],
        [cl.CL_QUEUE_PROPERTIES, on_device, 0],
    ) == cl.CL_INVALID_QUEUE_PROPERTIES  # fmt: skip


def printed() -> None:
    """Kernels print where those of this machine do, before their commands end."""
    host = Host(1)
    size = host.cl.integer("clGetDeviceInfo", host.devices[0], cl.CL_DEVICE_PRINTF_BUFFER_SIZE)
    assert size >= 1 << 20  # table of clGetDeviceInfo, full profile
    host.build("""
        kernel void k(global int *x, int turn) { printf("%d: %d %s|", turn, x[get_global_id(0)], "text"); }
        kernel void many(int turn) { printf("%08d", (int)get_global_id(0)); }
    """)
    x, kernel = host.buffer([7] * COUNT), host.kernel("k")
    for turn in range(3):
        host.launch(host.queue, kernel, 1, [x], turn)
        host.cl.ok("clFinish", host.queue)
        print(f"after {turn}", flush=True)
    host.launch(host.queue, host.kernel("many"), 1 << 18, 0)  # more than the executor keeps
    host.cl.ok("clFinish", host.queue)
    print("end", flush=True)


def buffers() -> None:
    """Writes, reads, fills, copies, maps, around launches that change what they are about."""
    host = Host(1)
    host.build()
    increment = host.kernel("increment")
    x, y = host.buffer(), host.buffer()
    values = array.array("i", range(COUNT)).tobytes()
    host.cl.ok("clEnqueueWriteBuffer", host.queue, x, 0, 0, len(values), values, 0, None, None)
    host.launch(host.queue, increment, COUNT, [x], 5)
    host.cl.ok("clEnqueueCopyBuffer", host.queue, x, y, 400, 0, 400, 0, None, None)
    host.launch(host.queue, increment, 10, [y], 1000)
    expected = [i + 100 + 5 + (1000 if i < 10 else 0) for i in range(100)]
    assert host.read(host.queue, y, 100) == expected
    host.cl.ok("clEnqueueFillBuffer", host.queue, x, struct.pack("<i", 7), 4, 0, 40, 0, None, None)
    assert host.read(host.queue, x) == [7] * 10 + [i + 5 for i in range(10, COUNT)]
    pointer, status = host.cl.call(
        "clEnqueueMapBuffer", host.queue, x, 1, cl.CL_MAP_READ | cl.CL_MAP_WRITE, 0, 4 * COUNT, 0, None, None
    )
    assert not status
    mapped = (ctypes.c_int32 * COUNT).from_address(pointer)
    mapped[0] = 70
    host.cl.ok("clEnqueueUnmapMemObject", host.queue, x, pointer, 0, None, None)
    host.launch(host.queue, increment, COUNT, [x], 1)
    assert host.read(host.queue, x) == [71] + [8] * 9 + [i + 6 for i in range(10, COUNT)]
    part = host.cl.make("clCreateSubBuffer", x, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, [1024, 400])
    host.launch(host.queue, increment, 100, [part], -1)
    assert host.read(host.queue, x)[250:400] == [
        i + (5 if 256 <= i < 356 else 6) for i in range(250, 400)
    ]  # fmt: skip
    large = host.cl.make("clCreateBuffer", host.context, cl.CL_MEM_READ_WRITE, 20 << 20, None)
    host.cl.ok("clEnqueueFillBuffer", host.queue, large, b"\1\0\0\0", 4, 0, 20 << 20, 0, None, None)
    host.launch(host.queue, increment, 5 << 20, [large], 1)
    assert set(host.read(host.queue, large, 5 << 20)) == {2}


def kernels() -> None:
    """Arguments of all kinds that such a device takes, and programs of several modules."""
    host = Host(2)
    host.build()
    a, b = (host.buffer(list(range(COUNT)), cl.CL_MEM_READ_ONLY) for _ in range(2))
    c = host.buffer()
    host.launch(host.queue, host.kernel("add"), COUNT, [a], [b], [c], 3)
    assert host.read(host.queue, c) == [4 * i for i in range(COUNT)]
    host.launch(host.queue, host.kernel("reverse_groups"), 960, [c], (256,), local=64)
    assert host.read(host.queue, c)[:64] == [4 * i for i in range(63, -1, -1)]
    host.launch(host.queue, host.kernel("is_null"), COUNT, [c], [0])
    assert host.read(host.queue, c) == [1] * COUNT
    first = host.cl.program(host.context, "int twice(int x) { return 2 * x; }")
    second = host.cl.program(
        host.context, "int twice(int x); kernel void k(global int *x) { x[get_global_id(0)] = twice(21); }"
    )
    for program in (first, second):
        host.cl.ok("clCompileProgram", program, 0, None, None, 0, None, None, None, None)
    host.program = host.cl.make("clLinkProgram", host.context, 0, None, None, 2, [first, second], None, None)
    host.launch(host.queue, host.kernel("k"), COUNT, [c])
    assert host.read(host.queue, c) == [42] * COUNT


def order() -> None:
    """Launches in a queue's order, behind a user event, and behind one another in two queues."""
    host = Host(1)
    host.build("""
        kernel void step(global uint *x, uint k) { x[get_global_id(0)] = x[get_global_id(0)] * 3 + k; }
        kernel void spin(global volatile uint *x) { for (int i = 0; i < 20000000; i++) x[1] = 0; }
    """)
    step, x = host.kernel("step"), host.buffer([0] * COUNT)
    gate = host.cl.make("clCreateUserEvent", host.context)
    expected = 0
    spin, events = host.kernel("spin"), [ctypes.c_void_p(), ctypes.c_void_p()]
    host.launch(host.queue, spin, 1, [x], event=events[0])
    host.launch(host.queue, spin, 1, [x], wait=[events[0].value], event=events[1])
    host.cl.ok("clFlush", host.queue)
    while host.status(events[0].value):  # of two in order one runs at a time at most
        assert [host.status(event.value) for event in events].count(cl.CL_RUNNING) < 2
    host.cl.ok("clFinish", host.queue)
    for i in range(300):
        host.launch(host.queue, step, COUNT, [x], i, wait=[gate] if i == 100 else ())
        expected = (expected * 3 + i) & 0xFFFFFFFF
    host.cl.ok("clFlush", host.queue)
    host.cl.ok("clSetUserEventStatus", gate, 0)
    assert host.read(host.queue, x) == [ctypes.c_int32(expected).value] * COUNT
    other = host.cl.make("clCreateCommandQueueWithProperties", host.context, host.devices[0], None)
    before = ()
    for i in range(60):
        event = ctypes.c_void_p()
        host.launch((host.queue, other)[i % 2], step, COUNT, [x], i, wait=before, event=event)
        before = (event.value,)
        expected = (expected * 3 + i) & 0xFFFFFFFF
    host.cl.ok("clWaitForEvents", 1, list(before))
    assert host.read(host.queue, x) == [ctypes.c_int32(expected).value] * COUNT


def failures() -> None:
    """A launch that fails on the worker fails those that wait for it by event, and no others."""
    host = Host(1)
    host.build()
    increment, x = host.kernel("increment"), host.buffer([0] * COUNT)
    gate = host.cl.make("clCreateUserEvent", host.context)
    events = [ctypes.c_void_p() for _ in range(3)]
    host.launch(host.queue, increment, COUNT, [x], 1, wait=[gate], event=events[0])
    host.launch(host.queue, increment, COUNT, [x], 10, wait=[events[0].value], event=events[1])
    host.launch(host.queue, increment, COUNT, [x], 100, event=events[2])
    host.cl.ok("clFlush", host.queue)
    host.cl.ok("clSetUserEventStatus", gate, -7)
    host.cl.ok("clFinish", host.queue)
    failed = cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    assert [host.status(event.value) for event in events] == [failed, failed, 0]
    assert host.read(host.queue, x) == [100] * COUNT


def profiling() -> None:
    """Times are in the order of the specification, and those of a launch are as long as it."""
    host = Host(1, profiled=True)
    host.build("""
        kernel void k(global float *x) {
            float y = x[get_global_id(0)];
            for (int i = 0; i < 20000; i++) y = y * 0.5f + 1.0f;
            x[get_global_id(0)] = y;
        }
    """)
    x = host.buffer([0] * COUNT)
    for _ in range(3):
        event = ctypes.c_void_p()
        start = time.monotonic_ns()
        host.launch(host.queue, host.kernel("k"), COUNT, [x], event=event)
        host.cl.ok("clWaitForEvents", 1, [event.value])
        taken = time.monotonic_ns() - start
        times = [
            host.cl.integer("clGetEventProfilingInfo", event.value, what)
            for what in (
                cl.CL_PROFILING_COMMAND_QUEUED,
                cl.CL_PROFILING_COMMAND_SUBMIT,
                cl.CL_PROFILING_COMMAND_START,
                cl.CL_PROFILING_COMMAND_END,
            )  # fmt: skip
        ]
        assert times == sorted(times)
        assert start <= times[0] and times[3] <= time.monotonic_ns()
        assert 100_000 < times[3] - times[2] < taken


def mixed() -> None:
    """One context of this machine and two workers: what each does the others see."""
    host = Host(0, 1, 2)
    host.build()
    increment, x = host.kernel("increment"), host.buffer([0] * COUNT)
    expected = 0
    for turn in range(5):
        for i, queue in enumerate(host.queues):
            host.launch(queue, increment, COUNT, [x], 10**i)
            host.cl.ok("clFinish", queue)
            expected += 10**i
        assert host.read(host.queues[turn % 3], x) == [expected] * COUNT
    before = ()
    for i in range(30):
        event = ctypes.c_void_p()
        host.launch(host.queues[i * 7 % 3], increment, COUNT, [x], 1, wait=before, event=event)
        host.cl.ok("clFlush", host.queues[i * 7 % 3])
        before = (event.value,)
    host.cl.ok("clWaitForEvents", 1, list(before))
    assert host.read(host.queues[1], x) == [expected + 30] * COUNT


def halves() -> None:
    """Two sub-buffers of one buffer, each used by another device at a time."""
    host = Host(0, 1)
    host.build("""
        kernel void increment(global int *x, int by) { x[get_global_id(0)] += by; }
    """)
    whole = host.cl.make("clCreateBuffer", host.context, cl.CL_MEM_READ_WRITE, 1 << 16, None)
    host.cl.ok("clEnqueueFillBuffer", host.queue, whole, b"\0\0\0\0", 4, 0, 1 << 16, 0, None, None)
    host.cl.ok("clFinish", host.queue)
    parts = [
        host.cl.make("clCreateSubBuffer", whole, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, [at, 1 << 15])
        for at in (0, 1 << 15)
    ]
    kernels = [host.kernel("increment") for _ in parts]
    for _ in range(20):
        for queue, kernel, part in zip(host.queues, kernels, parts, strict=True):
            host.launch(queue, kernel, 1 << 13, [part], 1)
            host.cl.ok("clFlush", queue)
    for queue in host.queues:
        host.cl.ok("clFinish", queue)
    assert host.read(host.queue, whole, 1 << 14) == [20] * (1 << 14)


def lost() -> None:
    """A worker goes while a launch runs: prints `ready`, and waits for a line when it has gone."""
    host = Host(1, 2)
    host.build()
    x, y = host.buffer([0] * COUNT), host.buffer([0] * COUNT)
    spin, increment = host.kernel("spin"), host.kernel("increment")
    events = [ctypes.c_void_p() for _ in range(3)]
    host.launch(host.queues[0], increment, COUNT, [x], 1)
    host.cl.ok("clFinish", host.queues[0])
    host.launch(host.queues[0], spin, 1, [x], event=events[0])
    host.launch(host.queues[0], increment, COUNT, [x], 1, event=events[1])
    host.launch(host.queues[1], increment, COUNT, [y], 1, wait=[events[0].value], event=events[2])
    host.cl.ok("clFlush", host.queues[0])
    host.cl.ok("clFlush", host.queues[1])
    time.sleep(0.5)
    print("ready", flush=True)
    assert host.cl.call("clWaitForEvents", 1, [events[0].value]) < 0
    print("ended", flush=True)
    gone, failed = cl.CL_DEVICE_NOT_AVAILABLE, cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    assert host.cl.call("clFinish", host.queues[0]) == 0
    assert host.cl.call("clFinish", host.queues[1]) == 0
    assert [host.status(event.value) for event in events] == [gone, gone, failed]
    for _ in range(100):
        if host.notified:
            break
        time.sleep(0.05)
    assert any(b"CL_DEVICE_NOT_AVAILABLE" in text for text in host.notified), host.notified
    # What only the worker had is lost; the device stays and does nothing.
    data = (ctypes.c_int32 * COUNT)()
    read = host.cl.prepared("clEnqueueReadBuffer", host.queues[0], x, 1, 0, 4 * COUNT, data, 0, None, None)
    assert read() == gone
    late = ctypes.c_void_p()
    host.launch(host.queues[0], increment, COUNT, [y], 1, event=late)
    host.cl.ok("clFinish", host.queues[0])
    assert host.status(late.value) == gone
    # The other one works, also with what is written anew.
    if sys.stdin.readline().strip() == "survivor":
        host.launch(host.queues[1], increment, COUNT, [y], 3)
        assert host.read(host.queues[1], y) == [3] * COUNT
        host.cl.ok("clEnqueueWriteBuffer", host.queues[1], x, 1, 0, 4 * COUNT, data, 0, None, None)
        host.launch(host.queues[1], increment, COUNT, [x], 4)
        assert host.read(host.queues[1], x) == [4] * COUNT


def busy() -> None:
    """Uses two workers until the first one has gone, at whatever moment: prints `ready`, then `ended`."""
    host = Host(1, 2)
    host.build()
    x, y = host.buffer([0] * COUNT), host.buffer([0] * COUNT)
    increments = [host.kernel("increment") for _ in host.queues]
    launches: list[int] = []
    reads: list[int] = []
    others = 0
    data = (ctypes.c_int32 * COUNT)()
    print("ready", flush=True)
    while not any(host.status(event) < 0 for event in launches[-20:] + reads[-1:]):
        for _ in range(20):
            event = ctypes.c_void_p()
            host.launch(host.queues[0], increments[0], COUNT, [x], 1, event=event)
            launches.append(event.value)
        event = ctypes.c_void_p()
        host.cl.ok("clEnqueueReadBuffer", host.queues[0], x, 0, 0, 4 * COUNT, data, 0, None, event)
        reads.append(event.value)
        host.launch(host.queues[1], increments[1], COUNT, [y], 1)
        others += 1
        host.cl.ok("clFlush", host.queues[0])
        host.cl.ok("clFlush", host.queues[1])
        host.cl.call("clWaitForEvents", 1, [reads[-1]])
    print("ended", flush=True)
    host.cl.ok("clFinish", host.queues[0])
    # What the last launch before has left may have been read back: then only launches fail.
    for events in (launches, reads):
        found = [host.status(event) for event in events]
        right = found.count(0)
        assert found == [0] * right + [cl.CL_DEVICE_NOT_AVAILABLE] * (len(found) - right), found[right:]
    assert host.read(host.queues[1], y) == [others] * COUNT
    sys.stdin.readline()


def steady() -> None:
    """Uses two workers until there is a line to read; nothing fails."""
    host = Host(1, 2)
    host.build()
    buffers = [host.buffer([0] * COUNT) for _ in host.queues]
    increment = host.kernel("increment")
    print("ready", flush=True)
    turns = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        turns += 1
        for queue, buffer in zip(host.queues, buffers, strict=True):
            host.launch(queue, increment, COUNT, [buffer], 1)
            host.cl.ok("clFlush", queue)
        for queue, buffer in zip(host.queues, buffers, strict=True):
            assert host.read(queue, buffer) == [turns] * COUNT


if __name__ == "__main__":
    globals()[sys.argv[1]]()
