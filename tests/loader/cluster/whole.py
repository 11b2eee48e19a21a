"""The device that is all workers: python -m tests.loader.cluster.whole SCENE. Scenes end with an exception
where something is not as it should be."""

from __future__ import annotations

import ctypes
import struct
import sys
import time

import numpy as np

from cl_driver.api.generated import enums as cl

from .host import Host

SOURCE = """
kernel void map(global const float *in, global float *out, float by, uint n) {
    uint i = get_global_id(0);
    if (i < n) out[i] = by * in[i];
}
kernel void in_place(global int *x) { x[get_global_id(0)] = 3 * x[get_global_id(0)] + (int)get_group_id(0); }
kernel void product(global const float *a, global const float *b, global float *c, int k, int n) {
    int column = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}
kernel void rows_first(global const float *in, global float *out, int n) {
    int row = get_global_id(0), column = get_global_id(1);
    out[row * n + column] = in[row * n + column] + row;
}
kernel void stencil(global const float *in, global float *out, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x > 0 && y > 0 && x < width - 1 && y < height - 1)
        out[y * width + x] = 0.2f * (in[y * width + x] + in[y * width + x - 1] + in[y * width + x + 1] +
                                     in[(y - 1) * width + x] + in[(y + 1) * width + x]);
}
kernel void bodies(global const float4 *from, global float4 *to, uint n) {
    size_t i = get_global_id(0);
    float4 mine = from[i], force = 0;
    for (uint j = 0; j < n; j++) {
        float4 d = from[j] - mine;
        d.w = 0;
        force += d * rsqrt(dot(d, d) + 0.01f);
    }
    to[i] = mine + 0.001f * force;
}
kernel void histogram(global const uchar *in, global uint *bins) { atomic_inc(bins + in[get_global_id(0)]); }
kernel void extremes(global const int *in, global int *found) {
    atomic_max(found, in[get_global_id(0)]);
    atomic_min(found + 1, in[get_global_id(0)]);
}
kernel void greatest(global const int *in, global int *found) { atomic_max(found, in[get_global_id(0)]); }
kernel void add_floats(global const int *in, global volatile uint *to) {
    uint old, new;
    do {
        old = to[0];
        new = as_uint(as_float(old) + in[get_global_id(0)]);
    } while (atomic_cmpxchg(to, old, new) != old);
}
kernel void append(global const int *in, global int *out, global int *count) {
    int i = get_global_id(0);
    if (in[i] & 1) out[atomic_inc(count)] = in[i];
}
kernel void scatter(global const int *where, global int *out) {
    out[where[get_global_id(0)]] = get_global_id(0);
}
kernel void comb(global int *x, int from) {
    int i = 2 * (int)get_global_id(0) + 4;
    x[i] += x[i + from];
}
kernel void optional(global float *x, global const float *y) {
    size_t i = get_global_id(0);
    x[i] += y ? y[i] : 1;
}
kernel void grey(read_only image2d_t in, global float *out) {
    const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
    int x = get_global_id(0), y = get_global_id(1);
    float4 c = read_imagef(in, s, (int2)(x, y));
    out[y * get_global_size(0) + x] = c.x + c.y;
}
kernel void sizes(global ulong *out) {
    size_t i = get_global_id(0);
    out[4 * i] = get_group_id(0);
    out[4 * i + 1] = get_num_groups(0) << 32 | get_global_size(0);
    out[4 * i + 2] = get_global_offset(0);
    out[4 * i + 3] = get_local_size(0) << 32 | get_local_id(0);
}
"""


class Whole(Host):
    """A context of the device that is all workers, the last one."""

    def __init__(self, source: str = SOURCE, profiled: bool = False) -> None:
        super().__init__(3, profiled=profiled, most=4)
        self.launched: list[int] = []
        name = self.cl.text("clGetDeviceInfo", self.devices[0], cl.CL_DEVICE_NAME)
        assert name.startswith("all 2 workers, 2 cores"), name
        self.program = self.cl.program(self.context, source)
        self.cl.build(self.program, "-cl-std=CL3.0")

    def array(self, values: np.ndarray) -> int:
        flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR
        return self.cl.make("clCreateBuffer", self.context, flags, values.nbytes, values.tobytes())

    def empty(self, size: int) -> int:
        return self.cl.make("clCreateBuffer", self.context, cl.CL_MEM_READ_WRITE, size, None)

    def run(
        self, name: str, size: tuple[int, ...], *arguments, local: tuple[int, ...] = (), offset=()
    ) -> int:
        """Enqueues a launch; its event, at which values() looks."""
        kernel, event = self.kernel(name), ctypes.c_void_p()
        for i, argument in enumerate(arguments):
            data = argument.tobytes() if isinstance(argument, np.generic) else ctypes.c_uint64(argument)
            self.cl.ok(
                "clSetKernelArg", kernel, i, argument.nbytes if isinstance(argument, np.generic) else 8, data
            )
        self.cl.ok(
            "clEnqueueNDRangeKernel", self.queue, kernel, len(size), list(offset) or None, list(size),
            list(local) or None, 0, None, event,
        )  # fmt: skip
        self.launched.append(event.value or 0)
        return self.launched[-1]

    def finish(self) -> None:
        self.cl.ok("clFinish", self.queue)

    def values(self, buffer: int, like: np.ndarray) -> np.ndarray:
        data = ctypes.create_string_buffer(like.nbytes)
        self.cl.ok("clEnqueueReadBuffer", self.queue, buffer, 1, 0, like.nbytes, data, 0, None, None)
        assert [self.status(event) for event in self.launched] == [cl.CL_COMPLETE] * len(self.launched)
        while self.launched:
            self.cl.ok("clReleaseEvent", self.launched.pop())
        return np.frombuffer(data, like.dtype)[: like.size].reshape(like.shape)


RANDOM = np.random.default_rng(5)


def maps() -> None:
    """One element for each work-item, of a size that is no multiple of anything, and in place."""
    whole = Whole()
    n = 100_003
    values = RANDOM.random(n, dtype=np.float32)
    source, to = whole.array(values), whole.empty(4 * n)
    whole.run("map", (n + 253,), source, to, np.float32(3), np.uint32(n))
    assert (whole.values(to, values) == 3 * values).all()
    numbers = RANDOM.integers(0, 1 << 20, 64 * 300, dtype=np.int32)
    x, expected = whole.array(numbers), numbers.copy()
    for _ in range(20):
        whole.run("in_place", (numbers.size,), x, local=(64,))
        expected = 3 * expected + np.repeat(np.arange(300, dtype=np.int32), 64)
    assert (whole.values(x, numbers) == expected).all()


def products() -> None:
    """Matrices: each worker has some rows of one and all of the other."""
    whole = Whole()
    m, k, n = 192, 80, 112
    a, b = RANDOM.random((m, k), dtype=np.float32), RANDOM.random((k, n), dtype=np.float32)
    c = whole.empty(4 * m * n)
    whole.run("product", (n, m), whole.array(a), whole.array(b), c, np.int32(k), np.int32(n), local=(16, 16))
    assert np.allclose(whole.values(c, np.empty((m, n), np.float32)), a @ b, rtol=1e-4)
    out = whole.empty(4 * m * n)
    whole.run("rows_first", (m, n), c, out, np.int32(n))
    expected = a @ b + np.arange(m, dtype=np.float32)[:, None]
    assert np.allclose(whole.values(out, expected), expected, rtol=1e-4)


def stencils() -> None:
    """Neighbours' values come from the other worker, step by step; rows are no multiple of the groups."""
    whole = Whole()
    height, width = 203, 161
    values = RANDOM.random((height, width), dtype=np.float32)
    buffers, expected = [whole.array(values), whole.array(values)], values.copy()
    for step in range(30):
        sizes = np.int32(width), np.int32(height)
        whole.run("stencil", (176, 208), buffers[step % 2], buffers[1 - step % 2], *sizes, local=(16, 16))
        e = expected
        new = e.copy()
        new[1:-1, 1:-1] = 0.2 * (e[1:-1, 1:-1] + e[1:-1, :-2] + e[1:-1, 2:] + e[:-2, 1:-1] + e[2:, 1:-1])
        expected = new
    assert np.allclose(whole.values(buffers[0], values), expected, rtol=1e-4)


def bodies() -> None:
    """Each work-item reads all of what is written elsewhere, and writes its own."""
    whole = Whole()
    n = 2048
    values = RANDOM.random((n, 4), dtype=np.float32)
    buffers, expected = [whole.array(values), whole.empty(16 * n)], values.astype(np.float64)
    for step in range(4):
        whole.run("bodies", (n,), buffers[step % 2], buffers[1 - step % 2], np.uint32(n))
        d = expected[None, :, :] - expected[:, None, :]
        d[:, :, 3] = 0
        expected = expected + 0.001 * (d / np.sqrt((d * d).sum(2) + 0.01)[:, :, None]).sum(1)
    assert np.allclose(whole.values(buffers[0], values), expected, rtol=1e-3, atol=1e-4)


def sums() -> None:
    """What atomics add up, each worker for itself, on what was there before."""
    whole = Whole()
    data = RANDOM.integers(0, 256, 1 << 18, dtype=np.uint8)
    before = RANDOM.integers(0, 1000, 256, dtype=np.uint32)
    source, bins = whole.array(data), whole.array(before)
    for _ in range(3):
        whole.run("histogram", (data.size,), source, bins)
    expected = before + 3 * np.bincount(data, minlength=256).astype(np.uint32)
    assert (whole.values(bins, before) == expected).all()
    numbers = RANDOM.integers(-(1 << 31), 1 << 31, 1 << 14, dtype=np.int32)
    found = np.array([-(1 << 31), (1 << 31) - 1], np.int32)
    of, to = whole.array(numbers), whole.array(found)
    whole.run("greatest", (numbers.size,), of, to)
    assert (whole.values(to, found) == [numbers.max(), (1 << 31) - 1]).all()
    few = numbers[:1000] >> 20  # added by compare and exchange: by one worker
    total = whole.array(np.float32([7]))
    whole.run("add_floats", (few.size,), whole.array(few), total)
    assert whole.values(total, np.zeros(1, np.float32))[0] == 7 + few.sum()
    whole.run("extremes", (numbers.size,), of, to)  # in two ways: by one worker
    assert (whole.values(to, found) == [numbers.max(), numbers.min()]).all()


def combinations() -> None:
    """Each way in which atomics combine, of each size, with what was there."""
    lines, ways = ["#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable"], []
    lines.append("#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable")
    for kind, type_ in (("int", np.int32), ("uint", np.uint32), ("long", np.int64), ("ulong", np.uint64)):
        prefix = "atomic" if type_().nbytes == 4 else "atom"
        for way in ("add", "sub", "and", "or", "xor", "min", "max"):
            ways.append((f"{way}_{kind}", way, type_))
            lines.append(
                f"kernel void {way}_{kind}(global const {kind} *in, global volatile {kind} *to) "
                f"{{ {prefix}_{way}(to + get_global_id(0) % 5, in[get_global_id(0)]); }}"
            )
    whole = Whole("\n".join(lines))
    functions = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min": np.minimum,
                 "max": np.maximum, "add": np.add, "sub": np.subtract}  # fmt: skip
    for name, way, type_ in ways:
        most = np.iinfo(type_)
        values = RANDOM.integers(most.min, most.max, 1000, dtype=type_, endpoint=True)
        before = RANDOM.integers(most.min, most.max, 5, dtype=type_, endpoint=True)
        to = whole.array(before)
        whole.run(name, (1000,), whole.array(values), to)
        expected = before.copy()
        functions[way].at(expected, np.arange(1000) % 5, values)
        assert (whole.values(to, before) == expected).all(), name


def alone() -> None:
    """What cannot be cut one worker executes: where work-items see one another, or write anywhere."""
    whole = Whole()
    numbers = RANDOM.integers(0, 1 << 20, 1 << 14, dtype=np.int32)
    out, count = whole.empty(numbers.nbytes), whole.array(np.zeros(1, np.int32))
    whole.run("append", (numbers.size,), whole.array(numbers), out, count)
    odd = numbers[numbers % 2 == 1]
    assert whole.values(count, np.zeros(1, np.int32))[0] == odd.size
    assert (np.sort(whole.values(out, numbers)[: odd.size]) == np.sort(odd)).all()
    where = RANDOM.permutation(1 << 14).astype(np.int32)
    whole.run("scatter", (where.size,), whole.array(where), out)
    assert (whole.values(out, where)[where] == np.arange(where.size)).all()
    # Between what a part writes is what its neighbour reads, before it or behind it.
    for place in (3, -3):
        x = whole.array(numbers)
        whole.run("comb", (numbers.size // 2 - 4,), x, np.int32(place))
        expected = numbers.copy()
        expected[4:-4:2] += numbers[4 + place : numbers.size - 4 + place : 2]
        assert (whole.values(x, numbers) == expected).all()


def little() -> None:
    """Launches that are soon done, and some that are not, which share their memory."""
    whole = Whole()
    numbers = RANDOM.integers(0, 1 << 20, 64 * 30, dtype=np.int32)
    x, expected = whole.array(numbers), numbers.copy()
    data, bins = RANDOM.integers(0, 256, 4096, dtype=np.uint8), np.zeros(256, np.uint32)
    source, counts = whole.array(data), whole.array(bins)
    for i in range(120):
        whole.run("in_place", (numbers.size,), x, local=(64,))
        expected = 3 * expected + np.repeat(np.arange(30, dtype=np.int32), 64)
        if i % 2:
            whole.run("histogram", (data.size,), source, counts)
        if i % 3 == 0:  # else many are sent together
            whole.finish()
    assert (whole.values(x, numbers) == expected).all()
    assert (whole.values(counts, bins) == 60 * np.bincount(data, minlength=256)).all()
    n = 1 << 14
    values = RANDOM.random((n, 4), dtype=np.float32)
    buffers = [whole.array(values), whole.empty(16 * n)]
    for step in range(6):
        whole.run("bodies", (n,), buffers[step % 2], buffers[1 - step % 2], np.uint32(n))
        whole.finish()
    d = values[None] - values[:64, None]
    d[:, :, 3] = 0
    force = (d / np.sqrt((d * d).sum(2) + 0.01)[:, :, None]).sum(1)
    whole.run("bodies", (n,), whole.array(values), buffers[0], np.uint32(n))
    found = whole.values(buffers[0], values)[:64]
    assert np.allclose(found, values[:64] + 0.001 * force, rtol=1e-3, atol=1e-3)


def some_work() -> None:
    """Work for each launch that is far less than a message takes, also on a machine that is busy. Parts want
    what the others have written, which is to be worth moving after some of them."""
    whole = Whole()
    n = 1 << 12
    values = RANDOM.random((n, 4), dtype=np.float32)
    buffers = [whole.array(values), whole.array(values)]
    for step in range(64):
        whole.run("bodies", (n,), buffers[step % 2], buffers[1 - step % 2], np.uint32(n))
        whole.finish()


def few_rows() -> None:
    """A stencil alone, whose parts want something of one another each time."""
    whole = Whole()
    values = RANDOM.random((24, 16), dtype=np.float32)
    buffers, e = [whole.array(values), whole.array(values)], values.copy()
    for step in range(60):
        whole.run("stencil", (16, 24), buffers[step % 2], buffers[1 - step % 2], np.int32(16), np.int32(24),
                  local=(16, 4))  # fmt: skip
        whole.finish()
        new = e.copy()
        new[1:-1, 1:-1] = 0.2 * (e[1:-1, 1:-1] + e[1:-1, :-2] + e[1:-1, 2:] + e[:-2, 1:-1] + e[2:, 1:-1])
        e = new
    assert np.allclose(whole.values(buffers[0], values), e, rtol=1e-4)


def few_sums() -> None:
    """A histogram alone, which is added up here and never read."""
    whole = Whole()
    data, bins = RANDOM.integers(0, 256, 4096, dtype=np.uint8), np.zeros(256, np.uint32)
    source, counts = whole.array(data), whole.array(bins)
    for _ in range(60):
        whole.run("histogram", (data.size,), source, counts)
        whole.finish()
    assert (whole.values(counts, bins) == 60 * np.bincount(data, minlength=256)).all()


def burst() -> None:
    """Launches of little work, of which none has come back when the last one is enqueued."""
    whole = Whole()
    numbers = RANDOM.integers(0, 1 << 20, 64 * 30, dtype=np.int32)
    x, expected = whole.array(numbers), numbers.copy()
    for _ in range(200):
        whole.run("in_place", (numbers.size,), x, local=(64,))
        expected = 3 * expected + np.repeat(np.arange(30, dtype=np.int32), 64)
    assert (whole.values(x, numbers) == expected).all()


def independent() -> None:
    """Launches that cannot be cut, or have little work, on memory of their own."""
    whole = Whole()
    places = [RANDOM.permutation(4096).astype(np.int32) for _ in range(8)]
    numbers = [RANDOM.integers(0, 1 << 20, 64 * 30, dtype=np.int32) for _ in range(8)]
    where, x = [whole.array(one) for one in places], [whole.array(one) for one in numbers]
    out = [whole.empty(4 * 4096) for _ in range(8)]
    for _ in range(10):
        for i in range(8):
            whole.run("scatter", (4096,), where[i], out[i])
            whole.run("in_place", (numbers[i].size,), x[i], local=(64,))
            numbers[i] = 3 * numbers[i] + np.repeat(np.arange(30, dtype=np.int32), 64)
    for i in range(8):
        assert (whole.values(out[i], places[i]) == np.argsort(places[i])).all()
        assert (whole.values(x[i], numbers[i]) == numbers[i]).all()


def ids() -> None:
    """Work-items have the ids and sizes of the whole launch."""
    whole = Whole()
    for size, local, offset in ((1000, 8, 0), (1024, 64, 320), (4099, 128, 7)):
        out = whole.empty(32 * (size + offset))
        whole.run("sizes", (size,), out, local=(local,), offset=(offset,))
        found = whole.values(out, np.zeros((size + offset, 4), np.uint64))[offset:]
        i = np.arange(size, dtype=np.uint64)
        groups = -(-size // local)
        assert (found[:, 0] == i // local).all()
        assert (found[:, 1] == (groups << 32 | size)).all()
        assert (found[:, 2] == offset).all()
        last = size % local or local
        sizes = np.where(i // local == groups - 1, last, local).astype(np.uint64)
        assert (found[:, 3] == (sizes << np.uint64(32) | i % local)).all()


def events() -> None:
    """Times of a launch contain those of its parts; launches end in their order."""
    whole = Whole(profiled=True)
    n = 4096
    values = RANDOM.random((n, 4), dtype=np.float32)
    buffers = [whole.array(values), whole.empty(16 * n)]
    found = [
        whole.run("bodies", (n,), buffers[step % 2], buffers[1 - step % 2], np.uint32(n)) for step in range(6)
    ]
    last = 0
    whole.cl.ok("clWaitForEvents", 1, [found[-1]])
    for event in found:
        assert whole.status(event) == cl.CL_COMPLETE
        times = [
            whole.cl.integer("clGetEventProfilingInfo", event, getattr(cl, f"CL_PROFILING_COMMAND_{name}"))
            for name in ("QUEUED", "SUBMIT", "START", "END")
        ]
        assert times == sorted(times) and times[3] >= last, times
        last = times[3]


def local_sizes() -> None:
    """Groups that the driver chooses are made shorter where there would be too few along what can be cut."""
    whole = Whole()
    m, n = 192, 64
    values = RANDOM.random((m, n), dtype=np.float32)
    out = whole.empty(4 * m * n)
    whole.run("rows_first", (m, n), whole.array(values), out, np.int32(n))
    assert (whole.values(out, values) == values + np.arange(m, dtype=np.float32)[:, None]).all()


def buffers() -> None:
    """Arguments that are parts of one buffer: cut where no part of the launch touches what another writes."""
    whole = Whole()
    n = 1 << 14
    values = RANDOM.random(2 * n, dtype=np.float32)
    every = whole.array(values)
    halves = [
        whole.cl.make("clCreateSubBuffer", every, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, [4 * n * i, 4 * n])
        for i in range(2)
    ]
    whole.run("map", (n,), halves[0], halves[1], np.float32(2), np.uint32(n))
    expected = np.concatenate([values[:n], 2 * values[:n]])
    assert (whole.values(every, values) == expected).all()
    null = 0
    whole.run("optional", (n,), halves[1], null)
    whole.run("optional", (n,), halves[1], halves[0])
    expected[n:] = (expected[n:] + 1) + expected[:n]
    assert (whole.values(every, values) == expected).all()


def images() -> None:
    """What is read of images each worker has as a whole."""
    whole = Whole()
    height, width = 48, 64
    values = RANDOM.random((height, width, 4), dtype=np.float32)
    image_format = np.array([cl.CL_RGBA, cl.CL_FLOAT], np.uint32).tobytes()
    desc = struct.pack("<I4x6Q", cl.CL_MEM_OBJECT_IMAGE2D, width, height, 1, 0, 0, 0) + bytes(16)
    image = whole.cl.make(
        "clCreateImage", whole.context, cl.CL_MEM_READ_ONLY | cl.CL_MEM_COPY_HOST_PTR, image_format, desc,
        values.tobytes(),
    )  # fmt: skip
    out = whole.empty(4 * height * width)
    whole.run("grey", (width, height), image, out, local=(16, 4))
    found = whole.values(out, np.zeros((height, width), np.float32))
    assert np.allclose(found, values[:, :, 0] + values[:, :, 1], rtol=1e-6)


def killed() -> None:
    """A worker goes while a launch is executed."""
    whole = Whole()
    n = 1 << 16
    values = RANDOM.random((n, 4), dtype=np.float32)
    source, to = whole.array(values), whole.empty(16 * n)
    event = whole.run("bodies", (n,), source, to, np.uint32(n))
    whole.cl.ok("clFlush", whole.queue)
    print("running", flush=True)
    assert whole.cl.call("clWaitForEvents", 1, [event]) == cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    assert whole.status(event) == cl.CL_DEVICE_NOT_AVAILABLE
    whole.launched.clear()
    some = values[:4096]
    source, to = whole.array(some), whole.empty(some.nbytes)
    whole.run("bodies", (len(some),), source, to, np.uint32(len(some)))
    whole.values(to, some)
    print("done", flush=True)
    sys.stdin.readline()  # now the other one has gone, too
    told = len(whole.notified)
    event = whole.run("bodies", (len(some),), source, to, np.uint32(len(some)))
    assert whole.cl.call("clWaitForEvents", 1, [event]) == cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    assert whole.status(event) == cl.CL_DEVICE_NOT_AVAILABLE
    end = time.monotonic() + 60
    while len(whole.notified) == told:  # from 3.14 on, Python does not outlive a callback as it ends
        assert time.monotonic() < end
        time.sleep(0.01)


def main() -> None:
    globals()[sys.argv[1]]()


if __name__ == "__main__":
    main()
