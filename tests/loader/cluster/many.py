"""More workers than a word has bits, and workers that come later: python -m tests.loader.cluster.many
WORKERS, or `come`. Ends with an exception where something is not as it should be."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable

import numpy as np

from cl_driver.api.generated import enums as cl

from .host import Host

ALIGN = 1 << 6  # ints: what a sub-buffer's offset is a multiple of

SOURCE = """
kernel void increment(global int *x, int by) { x[get_global_id(0)] = 3 * x[get_global_id(0)] + by; }
kernel void neighbours(global const int *from, global int *to, int n) {
    int i = get_global_id(0);
    to[i] = (i > 0 ? from[i - 1] : 0) + (i < n - 1 ? 2 * from[i + 1] : 0);
}
"""


def buffer(host: Host, values: np.ndarray) -> int:
    flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR
    return host.cl.make("clCreateBuffer", host.context, flags, values.nbytes, values.tobytes())


def values(host: Host, of: int, count: int) -> np.ndarray:
    data = (ctypes.c_int32 * count)()
    host.cl.ok("clEnqueueReadBuffer", host.queue, of, 1, 0, 4 * count, data, 0, None, None)
    return np.array(data, np.int32)


def parts(workers: int) -> None:
    """Each worker has a part of a buffer; then some in turn have all of it, which come from all others."""
    host = Host(*range(1, workers + 1), most=workers + 2)
    host.build(SOURCE)
    kernel = host.kernel("increment")
    expected = np.arange(ALIGN * workers, dtype=np.int32)
    x = buffer(host, expected)
    for i, queue in enumerate(host.queues):
        region = [4 * ALIGN * i, 4 * ALIGN]
        part = host.cl.make("clCreateSubBuffer", x, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, region)
        host.launch(queue, kernel, ALIGN, [part], i)
        host.cl.ok("clReleaseMemObject", part)
    expected = 3 * expected + np.repeat(np.arange(workers, dtype=np.int32), ALIGN)
    for queue in host.queues:
        host.cl.ok("clFinish", queue)
    for turn in range(3):  # by way of the host at first, later from worker to worker
        for i in (workers - 1, 0, workers // 2, min(64, workers - 1)):
            host.launch(host.queues[i], kernel, expected.size, [x], turn)
            host.cl.ok("clFinish", host.queues[i])
            expected = 3 * expected + turn
        time.sleep(0.2)
    assert (values(host, x, expected.size) == expected).all()
    # All devices have the same threads, those of this machine's.
    assert len(os.listdir("/proc/self/task")) < (os.cpu_count() or 1) + workers // 2


def whole(workers: int) -> None:
    """The device that is all of them: each step takes what neighbours have written in the one before."""
    host = Host(workers + 1, most=workers + 2)
    assert host.cl.text("clGetDeviceInfo", host.devices[0], cl.CL_DEVICE_NAME).startswith(f"all {workers} ")
    host.build(SOURCE)
    kernel = host.kernel("neighbours")
    expected = np.arange(ALIGN * workers + 5, dtype=np.int32)
    buffers = [buffer(host, expected), buffer(host, expected)]
    for step in range(4):
        source, to = buffers[step % 2], buffers[1 - step % 2]
        host.launch(host.queue, kernel, expected.size, [source], [to], expected.size)
        after = np.zeros_like(expected)
        after[1:] += expected[:-1]
        after[:-1] += 2 * expected[1:]
        expected = after
    assert (values(host, buffers[0], expected.size) == expected).all()


def is_available(host: Host, device: int) -> bool:
    return bool(host.cl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_AVAILABLE))


def devices(host: Host, most: int = 8) -> list[int]:
    """The platform's, now."""
    found, count = (ctypes.c_void_p * most)(), ctypes.c_uint32()
    host.cl.ok("clGetDeviceIDs", host.cl.platform(), cl.CL_DEVICE_TYPE_ALL, most, found, count)
    return list(found[: count.value])


def wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def increase(host: Host, *places: int) -> None:
    """A buffer is changed by these queues in turn, which takes its contents from one device to the next."""
    kernel, expected = host.kernel("increment"), np.arange(32 * ALIGN, dtype=np.int32)
    x = buffer(host, expected)
    for i in places:
        host.launch(host.queues[i], kernel, expected.size, [x], i)
        host.cl.ok("clFinish", host.queues[i])
        expected = 3 * expected + i
    assert (values(host, x, expected.size) == expected).all()


def come() -> None:
    """The first of two workers goes and another one comes, twice. Prints `ready` before each time; with the
    second one those have gone that were there at first."""
    old = Host(1, 2, 3, most=4)
    old.build(SOURCE)
    increase(old, 0, 1, 2)
    first, second, whole = old.devices
    print("ready", flush=True)
    wait(lambda: len(devices(old)) == 5)
    later = devices(old)[4]
    assert devices(old)[:4] == old.every
    wait(lambda: not is_available(old, first))
    assert [is_available(old, device) for device in old.every] == [True, False, True, True]
    for listed in ([first], [second, first]):
        status = old.cl.fails("clCreateContext", None, len(listed), listed, None, None)
        assert status == cl.CL_DEVICE_NOT_AVAILABLE
    context = old.cl.make("clCreateContextFromType", None, cl.CL_DEVICE_TYPE_ALL, None, None)
    assert old.cl.integer("clGetContextInfo", context, cl.CL_CONTEXT_NUM_DEVICES) == 4
    new = Host(2, 4, 3, most=5)
    new.build(SOURCE)
    assert new.devices == [second, later, whole]
    increase(new, 0, 1, 0, 2, 1, 2)
    increase(old, 1, 2, 1, 2)
    print("ready", flush=True)
    wait(lambda: not is_available(old, second))
    assert is_available(old, whole) and is_available(old, later)
    for host in (old, new):  # with what has come alone, until another one has
        increase(host, 2)
    wait(lambda: len(devices(old)) == 6)
    for host in (old, new):
        increase(host, 2)


if __name__ == "__main__":
    if sys.argv[1] == "come":
        come()
    else:
        parts(int(sys.argv[1]))
        whole(int(sys.argv[1]))
