"""Parts of buffers on several devices: python -m tests.loader.cluster.ranges SCENE. Scenes end with an
exception where something is not as it should be."""

from __future__ import annotations

import ctypes
import random
import sys
import time

import numpy as np

from cl_driver.api.generated import enums as cl

from .host import Host

COUNT = 1 << 14  # ints of a buffer
ALIGN = 1 << 6  # ints: what a sub-buffer's offset is a multiple of

SOURCE = """
kernel void change(global uint *x, uint by) { x[get_global_id(0)] = 3 * x[get_global_id(0)] + by; }
kernel void mix(global const uint *a, global uint *b) { b[get_global_id(0)] += 5 * a[get_global_id(0)]; }
"""


class Buffers:
    """Two buffers of a context, what is to be in them, and commands that change both alike."""

    def __init__(self, host: Host, seed: int) -> None:
        self.host = host
        self.chance = random.Random(seed)
        host.build(SOURCE)
        self.change, self.mix = host.kernel("change"), host.kernel("mix")
        values = np.random.default_rng(seed)
        self.expected = [values.integers(0, 1 << 32, COUNT, dtype=np.uint32) for _ in range(2)]
        flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR
        self.buffers = [
            host.cl.make("clCreateBuffer", host.context, flags, 4 * COUNT, one.tobytes())
            for one in self.expected
        ]

    def enqueue(self, name: str, *arguments) -> None:
        self.host.cl.ok(name, self.queue, *arguments, 0, None, None)

    @property
    def queue(self) -> int:
        return self.host.queues[self.device]

    def part(self, most: int = COUNT) -> slice:
        """Some ints."""
        begin = self.chance.randrange(COUNT)
        return slice(begin, min(COUNT, begin + self.chance.randint(1, most)))

    def sub_buffer(self, which: int) -> tuple[int, slice]:
        begin = self.chance.randrange(COUNT // ALIGN) * ALIGN
        end = min(COUNT, begin + self.chance.randint(1, COUNT // 2))
        region = [4 * begin, 4 * (end - begin)]
        where = cl.CL_BUFFER_CREATE_TYPE_REGION
        return self.host.cl.make("clCreateSubBuffer", self.buffers[which], 0, where, region), slice(
            begin, end
        )

    def launch(self, which: int) -> None:
        handle, part = self.sub_buffer(which)
        by = self.chance.randrange(1 << 20)
        self.host.launch(self.queue, self.change, part.stop - part.start, [handle], by)
        self.expected[which][part] = 3 * self.expected[which][part] + by
        self.host.cl.ok("clReleaseMemObject", handle)

    def launch_two(self, which: int) -> None:
        (a, at), (b, to) = self.sub_buffer(1 - which), self.sub_buffer(which)
        count = min(at.stop - at.start, to.stop - to.start)
        self.host.launch(self.queue, self.mix, count, [a], [b])
        source = self.expected[1 - which][at.start : at.start + count]
        self.expected[which][to.start : to.start + count] += 5 * source
        for handle in (a, b):
            self.host.cl.ok("clReleaseMemObject", handle)

    def write(self, which: int) -> None:
        part = self.part(self.chance.choice((4, COUNT)))
        data = np.full(part.stop - part.start, self.chance.randrange(1 << 32), dtype=np.uint32)
        self.enqueue(
            "clEnqueueWriteBuffer", self.buffers[which], 1, 4 * part.start, data.nbytes, data.tobytes()
        )
        self.expected[which][part] = data

    def write_rows(self, which: int) -> None:
        """A rectangle of rows of 128 ints."""
        x, width, y, height = (self.chance.randint(a, b) for a, b in ((0, 60), (1, 68), (0, 60), (1, 68)))
        data = np.full((height, width), self.chance.randrange(1 << 32), dtype=np.uint32)
        self.enqueue(
            "clEnqueueWriteBufferRect", self.buffers[which], 1, [4 * x, y, 0], [0, 0, 0],
            [4 * width, height, 1], 512, 0, 4 * width, 0, data.tobytes(),
        )  # fmt: skip
        self.expected[which].reshape(-1, 128)[y : y + height, x : x + width] = data

    def fill(self, which: int) -> None:
        part = self.part()
        value = self.chance.randrange(1 << 32)
        size = 4 * (part.stop - part.start)
        pattern = value.to_bytes(4, "little")
        self.enqueue("clEnqueueFillBuffer", self.buffers[which], pattern, 4, 4 * part.start, size)
        self.expected[which][part] = value

    def copy(self, which: int) -> None:
        at, to = self.part(), self.part()
        count = min(at.stop - at.start, to.stop - to.start)
        self.enqueue("clEnqueueCopyBuffer", self.buffers[1 - which], self.buffers[which], 4 * at.start,
                     4 * to.start, 4 * count)  # fmt: skip
        source = self.expected[1 - which][at.start : at.start + count]
        self.expected[which][to.start : to.start + count] = source

    def map(self, which: int) -> None:
        part = self.part()
        count = part.stop - part.start
        pointer, status = self.host.cl.call(
            "clEnqueueMapBuffer", self.queue, self.buffers[which], 1, cl.CL_MAP_READ | cl.CL_MAP_WRITE,
            4 * part.start, 4 * count, 0, None, None,
        )  # fmt: skip
        assert not status
        mapped = (ctypes.c_uint32 * count).from_address(pointer)
        mapped[0] ^= 1
        self.enqueue("clEnqueueUnmapMemObject", self.buffers[which], pointer)
        self.expected[which][part.start] ^= 1

    def read(self, which: int) -> None:
        part = self.part()
        data = np.zeros(part.stop - part.start, dtype=np.uint32)
        place = data.ctypes.data
        self.enqueue("clEnqueueReadBuffer", self.buffers[which], 1, 4 * part.start, data.nbytes, place)
        assert (data == self.expected[which][part]).all()

    def step(self) -> None:
        """One command, on some device, which is at its end when this returns."""
        self.device = self.chance.randrange(len(self.host.queues))
        commands = (self.launch, self.launch, self.launch, self.launch_two, self.write, self.write_rows,
                    self.fill, self.copy, self.map, self.read)  # fmt: skip
        self.chance.choice(commands)(self.chance.randrange(2))
        self.host.cl.ok("clFinish", self.queue)

    def check(self) -> None:
        for which in range(2):
            data = np.zeros(COUNT, dtype=np.uint32)
            place = data.ctypes.data
            self.enqueue("clEnqueueReadBuffer", self.buffers[which], 1, 0, data.nbytes, place)
            assert (data == self.expected[which]).all()


def chances(seed: str, turns: str = "1500") -> None:
    """Commands on parts of two buffers, on this machine and two workers."""
    buffers = Buffers(Host(0, 1, 2), int(seed))
    for turn in range(int(turns)):
        buffers.step()
        if turn % 200 == 199:
            buffers.check()


def pieces() -> None:
    """More pieces than are kept apart."""
    buffers = Buffers(Host(0, 1, 2), 1)
    for turn in range(3):
        buffers.device = 1
        buffers.host.launch(buffers.queue, buffers.change, COUNT, [buffers.buffers[0]], turn)
        buffers.host.cl.ok("clFinish", buffers.queue)
        buffers.expected[0][:] = 3 * buffers.expected[0] + turn
        buffers.device = 0
        for i in range(200):
            place = slice(40 * i + turn, 40 * i + turn + 2)
            buffers.enqueue(
                "clEnqueueWriteBuffer", buffers.buffers[0], 1, 4 * place.start, 8, struct_of(i, turn)
            )
            buffers.expected[0][place] = (i, turn)
        buffers.device = 2 * (turn % 2)
        buffers.launch(0)
        buffers.host.cl.ok("clFinish", buffers.queue)
    buffers.check()


def struct_of(*values: int) -> bytes:
    """Ints as they are in memory."""
    return np.array(values, dtype=np.uint32).tobytes()


def passed() -> None:
    """A buffer goes to and fro between two workers."""
    host = Host(1, 2)
    host.build(SOURCE)
    size, expected = 8 << 20, 1
    buffer = host.cl.make("clCreateBuffer", host.context, cl.CL_MEM_READ_WRITE, size, None)
    host.cl.ok("clEnqueueFillBuffer", host.queue, buffer, struct_of(1), 4, 0, size, 0, None, None)
    host.cl.ok("clFinish", host.queue)
    change = host.kernel("change")
    for turn in range(20):
        host.launch(host.queues[turn % 2], change, size // 4, [buffer], turn)
        host.cl.ok("clFinish", host.queues[turn % 2])
        expected = (3 * expected + turn) % (1 << 32)
        time.sleep(0.05)  # for the workers to connect
    data = np.zeros(size // 4, dtype=np.uint32)
    host.cl.ok("clEnqueueReadBuffer", host.queue, buffer, 1, 0, size, data.ctypes.data, 0, None, None)
    assert (data == expected).all()


def shared() -> None:
    """A buffer that two workers and this machine read in turn, made without a flag that says so."""
    host = Host(1, 2)
    host.build(SOURCE)
    size = 8 << 20
    source = host.cl.make("clCreateBuffer", host.context, cl.CL_MEM_READ_WRITE, size, None)
    results = [host.cl.make("clCreateBuffer", host.context, cl.CL_MEM_READ_WRITE, 4096, None) for _ in "ab"]
    host.cl.ok("clEnqueueFillBuffer", host.queue, source, struct_of(1), 4, 0, size, 0, None, None)
    for result in results:
        host.cl.ok("clEnqueueFillBuffer", host.queue, result, struct_of(0), 4, 0, 4096, 0, None, None)
    host.cl.ok("clFinish", host.queue)
    mix = host.kernel("mix")
    for turn in range(20):
        host.launch(host.queues[turn % 2], mix, 1024, [source], [results[turn % 2]])
        data = np.zeros(size // 4, dtype=np.uint32)
        host.cl.ok("clEnqueueReadBuffer", host.queue, source, 1, 0, size, data.ctypes.data, 0, None, None)
        host.cl.ok("clFinish", host.queues[turn % 2])
        assert (data == 1).all()
    for result in results:
        data = np.zeros(1024, dtype=np.uint32)
        host.cl.ok("clEnqueueReadBuffer", host.queue, result, 1, 0, 4096, data.ctypes.data, 0, None, None)
        assert (data == 50).all()
    # As one and the other argument it is written, and the other worker's copy is worth nothing any more.
    host.launch(host.queues[0], mix, size // 4, [source], [source])
    host.cl.ok("clFinish", host.queues[0])
    host.launch(host.queues[1], mix, 1024, [source], [results[1]])
    host.cl.ok("clEnqueueReadBuffer", host.queues[1], results[1], 1, 0, 4096, data.ctypes.data, 0, None, None)
    assert (data == 80).all()


def passing() -> None:
    """The same until a worker goes, at whatever moment: prints `ready`, then `ended`. What fails says so."""
    host = Host(1, 2)
    host.build(SOURCE)
    size = 4 << 20
    buffer = host.cl.make("clCreateBuffer", host.context, cl.CL_MEM_READ_WRITE, size, None)
    change = host.kernel("change")
    zeros, data = np.zeros(size // 4, dtype=np.uint32), np.zeros(size // 4, dtype=np.uint32)
    failed, refusals, told = False, (cl.CL_DEVICE_NOT_AVAILABLE,), False
    while not failed:
        host.cl.ok("clEnqueueWriteBuffer", host.queue, buffer, 1, 0, size, zeros.ctypes.data, 0, None, None)
        expected, last = 0, ()
        for turn in range(10):  # each waits for the one before, and not for the host
            event = ctypes.c_void_p()
            host.launch(host.queues[turn % 2], change, size // 4, [buffer], turn, wait=last, event=event)
            host.cl.ok("clFlush", host.queues[turn % 2])
            last = (event.value,)
            expected = 3 * expected + turn
        if not told:
            print("ready", flush=True)
            told = True
        status = host.cl.call("clWaitForEvents", 1, list(last))
        failed = status != 0
        if failed:
            found = host.status(last[0])
            allowed = (*refusals, cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
            assert found in allowed, found
            break
        read = host.cl.prepared(
            "clEnqueueReadBuffer", host.queues[1], buffer, 1, 0, size, data.ctypes.data, 0, None, None
        )
        status = read()
        failed = status != 0
        assert status in (0, *refusals), status
        assert failed or (data == expected).all()
    print("ended", flush=True)
    # The other worker goes on.
    host.cl.ok("clEnqueueWriteBuffer", host.queues[1], buffer, 1, 0, size, zeros.ctypes.data, 0, None, None)
    host.launch(host.queues[1], change, size // 4, [buffer], 5)
    host.cl.ok("clEnqueueReadBuffer", host.queues[1], buffer, 1, 0, size, data.ctypes.data, 0, None, None)
    assert (data == 5).all()
    sys.stdin.readline()


def lost() -> None:
    """A worker that goes takes with it what only it had: prints `ready`, and waits for it to go."""
    host = Host(1, 2)
    buffers = Buffers(host, 2)
    half = 2 * COUNT
    for device in range(2):
        region = [device * half, half]
        part = host.cl.make(
            "clCreateSubBuffer", buffers.buffers[0], 0, cl.CL_BUFFER_CREATE_TYPE_REGION, region
        )
        host.launch(host.queues[device], buffers.change, COUNT // 2, [part], 7)
        host.cl.ok("clFinish", host.queues[device])
    buffers.expected[0] = 3 * buffers.expected[0] + 7
    print("ready", flush=True)
    data = np.zeros(COUNT // 2, dtype=np.uint32)
    place = data.ctypes.data
    while not host.notified:  # a command of the worker that has gone fails
        buffers.device = 0
        host.launch(host.queues[0], buffers.change, 1, [buffers.buffers[1]], 1)
        host.cl.call("clFinish", host.queues[0])
    print("ended", flush=True)
    read = host.cl.prepared(
        "clEnqueueReadBuffer", host.queues[1], buffers.buffers[0], 1, 0, half, place, 0, None, None
    )
    assert read() == cl.CL_DEVICE_NOT_AVAILABLE
    buffers.device = 1
    buffers.enqueue("clEnqueueReadBuffer", buffers.buffers[0], 1, half, half, place)
    assert (data == buffers.expected[0][COUNT // 2 :]).all()
    # Written anew, it is there again, with the rest.
    buffers.enqueue("clEnqueueFillBuffer", buffers.buffers[0], b"\1\0\0\0", 4, 0, half)
    buffers.expected[0][: COUNT // 2] = 1
    host.launch(host.queues[1], buffers.change, COUNT, [buffers.buffers[0]], 9)
    buffers.expected[0] = 3 * buffers.expected[0] + 9
    data = np.zeros(COUNT, dtype=np.uint32)
    place = data.ctypes.data
    buffers.enqueue("clEnqueueReadBuffer", buffers.buffers[0], 1, 0, data.nbytes, place)
    assert (data == buffers.expected[0]).all()
    sys.stdin.readline()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
