"""One device of this machine beside a cluster on it: all workers as one device, and work divided by hand.

Usage: python -m tests.bench.whole [--workers 4] [--threads 4] [--scale 1], with a Python that has Dask's
distributed. Each line is the best of some turns, in seconds: once all that a turn needs is where it is used,
and with the contents sent before and read after it. With --kinds little it is launches of little work on all
workers, in microseconds for a launch: the best turn, and the median.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
TURNS = 3
LITTLE_TURNS = 7
TILE = 16

SOURCE = """
#define T 16
kernel __attribute__((reqd_work_group_size(T, T, 1)))
void product(global const float *a, global const float *b, global float *c, int k, int n) {
    local float part_a[T][T], part_b[T][T];
    int x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (int t = 0; t < k / T; t++) {
        part_a[y][x] = a[row * k + t * T + x];
        part_b[y][x] = b[(t * T + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < T; i++)
            sum += part_a[y][i] * part_b[i][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}
kernel void bodies(global const float4 *from, global float4 *to, uint n, uint first) {
    size_t i = get_global_id(0);
    float4 mine = from[i + first], force = 0;
    for (uint j = 0; j < n; j++) {
        float4 d = from[j] - mine;
        d.w = 0;
        force += d * rsqrt(dot(d, d) + 0.01f);
    }
    to[i] = mine + 0.001f * force;
}
kernel void in_place(global int *x) { x[get_global_id(0)] = 3 * x[get_global_id(0)] + 1; }
kernel void histogram(global const uchar *in, global uint *bins) { atomic_inc(bins + in[get_global_id(0)]); }
kernel void stencil(global const float *in, global float *out, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x > 0 && y > 0 && x < width - 1 && y < height - 1)
        out[y * width + x] = 0.2f * (in[y * width + x] + in[y * width + x - 1] + in[y * width + x + 1] +
                                     in[(y - 1) * width + x] + in[(y + 1) * width + x]);
}
"""


def program(kind: str, scale: float) -> None:
    """The host's part, in a process of its own. kind: one, whole or hand."""
    from cl_driver.api.generated import enums as cl
    from tests.loader.opencl import OpenCL

    api = OpenCL("libOpenCL.so.1")
    found = (ctypes.c_void_p * 80)()
    count = ctypes.c_uint32()
    api.ok("clGetDeviceIDs", api.platform(), cl.CL_DEVICE_TYPE_ALL, 80, found, count)
    every = list(found[: count.value])
    devices = {"one": every[:1], "whole": every[-1:], "hand": every[1:-1]}[kind]
    context = api.make("clCreateContext", None, len(devices), devices, None, None)
    queues = [api.make("clCreateCommandQueueWithProperties", context, device, [0]) for device in devices]
    built = api.program(context, SOURCE)
    api.build(built)
    made = {
        name: api.make("clCreateKernel", built, name.encode()) for name in ("product", "bodies", "stencil")
    }

    def buffer(size: int) -> int:
        return api.make("clCreateBuffer", context, cl.CL_MEM_READ_WRITE, size, None)

    def launch(queue, name, size, local, *arguments) -> None:
        for i, argument in enumerate(arguments):
            data = ctypes.c_uint64(argument) if isinstance(argument, int) else argument.tobytes()
            api.ok("clSetKernelArg", made[name], i, 8 if isinstance(argument, int) else argument.nbytes, data)
        api.ok("clEnqueueNDRangeKernel", queue, made[name], len(size), None, list(size), local, 0, None, None)

    def write(queue, to: int, values: np.ndarray) -> None:
        api.ok("clEnqueueWriteBuffer", queue, to, 0, 0, values.nbytes, values.ctypes.data, 0, None, None)

    def read(queue, of: int, values: np.ndarray) -> None:
        api.ok("clEnqueueReadBuffer", queue, of, 1, 0, values.nbytes, values.ctypes.data, 0, None, None)

    def copy(queue, source: int, to: int, source_offset: int, offset: int, size: int) -> None:
        where = source_offset, offset, size
        api.ok("clEnqueueCopyBuffer", queue, source, to, *where, 0, None, None)

    def finish() -> None:
        for queue in queues:
            api.ok("clFlush", queue)
        for queue in queues:
            api.ok("clFinish", queue)

    def measure(name: str, send, work, fetch) -> None:
        best = [float("inf")] * 2
        for _ in range(TURNS):
            start = time.monotonic()
            send()
            work()
            fetch()
            best[1] = min(best[1], time.monotonic() - start)
        for _ in range(TURNS):
            finish()
            start = time.monotonic()
            work()
            finish()
            best[0] = min(best[0], time.monotonic() - start)
        print(f"{kind} {name} {best[0]:.4f} {best[1]:.4f}", flush=True)

    parts = len(queues)
    n = int(4096 * scale) // (TILE * parts) * TILE * parts
    values = np.random.default_rng(1)
    a, b = (values.random((n, n), dtype=np.float32) for _ in range(2))
    c = np.empty_like(a)
    rows = n // parts
    slices = [slice(i * rows, (i + 1) * rows) for i in range(parts)]
    of_a, of_b, of_c = ([buffer(4 * n * (rows if k != 1 else n)) for _ in queues] for k in range(3))

    def send_product() -> None:
        for i, queue in enumerate(queues):
            write(queue, of_a[i], a[slices[i]])
            write(queue, of_b[i], b)

    def multiply() -> None:
        for i, queue in enumerate(queues):
            sizes = np.int32(n), np.int32(n)
            launch(queue, "product", (n, rows), [TILE, TILE], of_a[i], of_b[i], of_c[i], *sizes)

    def fetch_product() -> None:
        finish()
        for i, queue in enumerate(queues):
            read(queue, of_c[i], c[slices[i]])

    measure("product", send_product, multiply, fetch_product)
    assert np.allclose(c[::97, ::89], a[::97] @ b[:, ::89], rtol=1e-3)

    m = int(65536 * scale) // parts * parts
    bodies = values.random((m, 4), dtype=np.float32)
    share = m // parts
    places = [[buffer(16 * m) for _ in range(2)] for _ in queues]
    results = [buffer(16 * share) for _ in queues]

    def send_bodies() -> None:
        for i, queue in enumerate(queues):
            write(queue, places[i][0], bodies)

    def move() -> None:
        for i, queue in enumerate(queues):
            to = results[i] if parts > 1 else places[i][1]
            launch(queue, "bodies", (share,), None, places[i][0], to, np.uint32(m), np.uint32(i * share))
        if parts == 1:
            places[0].reverse()
            return
        finish()
        for i in range(parts):  # each gets what the others have come to
            for k, queue in enumerate(queues):
                copy(queue, results[i], places[k][0], 0, 16 * i * share, 16 * share)

    def moves() -> None:
        for _ in range(4):
            move()

    measure("bodies", send_bodies, moves, lambda: read(queues[0], places[0][0], bodies))

    height = width = int(8192 * scale) // (TILE * parts) * TILE * parts
    image = values.random((height, width), dtype=np.float32)
    own = height // parts
    first = [max(0, i * own - 1) for i in range(parts)]
    last = [min(height, (i + 1) * own + 1) for i in range(parts)]
    steps = [[buffer(4 * width * (last[i] - first[i])) for _ in range(2)] for i in range(parts)]

    def send_image() -> None:
        for i, queue in enumerate(queues):
            for one in steps[i]:
                write(queue, one, image[first[i] : last[i]])

    def smooth() -> None:
        for _ in range(100):
            for i, queue in enumerate(queues):
                size = np.int32(width), np.int32(last[i] - first[i])
                launch(queue, "stencil", (width, last[i] - first[i]), None, *steps[i], *size)
            for one in steps:
                one.reverse()
            if parts == 1:
                continue
            finish()
            for i in range(parts - 1):  # a row from each to its neighbour
                row = 4 * width
                below = (last[i] - first[i] - 2) * row
                copy(queues[i], steps[i][0], steps[i + 1][0], below, 0, row)
                copy(queues[i], steps[i + 1][0], steps[i][0], row, below + row, row)
            finish()

    measure("stencil", send_image, smooth, lambda: read(queues[0], steps[0][0], image[: last[0]]))


def little() -> None:
    """The host's part where launches have little work, but for those of the last line."""
    from cl_driver.api.generated import enums as cl
    from tests.loader.opencl import OpenCL

    api = OpenCL("libOpenCL.so.1")
    found = (ctypes.c_void_p * 80)()
    count = ctypes.c_uint32()
    api.ok("clGetDeviceIDs", api.platform(), cl.CL_DEVICE_TYPE_ALL, 80, found, count)
    device = found[count.value - 1]
    context = api.make("clCreateContext", None, 1, [device], None, None)
    queue = api.make("clCreateCommandQueueWithProperties", context, device, [0])
    built = api.program(context, SOURCE)
    api.build(built)
    values = np.random.default_rng(1)

    def buffer(contents: np.ndarray) -> int:
        flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR
        return api.make("clCreateBuffer", context, flags, contents.nbytes, contents.tobytes())

    def kernel(name: str, *arguments: int | np.generic) -> int:
        made = api.make("clCreateKernel", built, name.encode())
        for i, argument in enumerate(arguments):
            data = ctypes.c_uint64(argument) if isinstance(argument, int) else argument.tobytes()
            api.ok("clSetKernelArg", made, i, 8 if isinstance(argument, int) else argument.nbytes, data)
        return made

    def measure(name: str, kernels: list[int], size: tuple[int, ...], launches: int, waits: bool) -> None:
        """waits: the host, for each launch."""
        taken = []
        for _ in range(LITTLE_TURNS + 1):
            start = time.monotonic()
            for i in range(launches):
                one = kernels[i % len(kernels)]
                api.ok("clEnqueueNDRangeKernel", queue, one, len(size), None, list(size), None, 0, None, None)
                if waits:
                    api.ok("clFinish", queue)
            api.ok("clFinish", queue)
            taken.append((time.monotonic() - start) / launches * 1e6)
        turns = sorted(taken[1:])
        print(f"little {name} {turns[0]:.0f} {turns[len(turns) // 2]:.0f}", flush=True)

    x = buffer(values.integers(0, 100, 4096, dtype=np.int32))
    measure("map", [kernel("in_place", x)], (4096,), 1000, False)
    measure("map_waited", [kernel("in_place", x)], (4096,), 200, True)
    images = [buffer(values.random((128, 128), dtype=np.float32)) for _ in range(2)]
    steps = [kernel("stencil", *order, np.int32(128), np.int32(128)) for order in (images, images[::-1])]
    measure("stencil", steps, (128, 128), 300, False)
    counts = buffer(np.zeros(256, np.uint32))
    pixels = buffer(values.integers(0, 256, 4096, dtype=np.uint8))
    measure("histogram", [kernel("histogram", pixels, counts)], (4096,), 200, False)
    n = 8192
    places = [buffer(values.random((n, 4), dtype=np.float32)) for _ in range(2)]
    moves = [kernel("bodies", *order, np.uint32(n), np.uint32(0)) for order in (places, places[::-1])]
    measure("bodies", moves, (n,), 10, False)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--threads", type=int, default=4, help="of each worker")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes")
    parser.add_argument("--kinds", default="one,whole,hand", help="or little")
    parser.add_argument("--host", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        sys.path.insert(0, str(ROOT))
        if options.host == "little":
            little()
        else:
            program(options.host, options.scale)
        return
    from distributed import LocalCluster

    sys.path.insert(0, str(ROOT))  # which workers inherit
    with LocalCluster(
        n_workers=options.workers, threads_per_worker=options.threads, processes=True, dashboard_address=None
    ) as cluster:
        environment = os.environ | {
            "CL_DRIVER_CLUSTER": f"{cluster.scheduler_address};whole",
            "CL_DRIVER_CLUSTER_PYTHON": sys.executable,
            "OCL_ICD_VENDORS": f"{ROOT}/build/vendors/",
        }
        alone = {key: value for key, value in environment.items() if not key.startswith("CL_DRIVER_CLUSTER")}
        for kind in options.kinds.split(","):
            command = [
                sys.executable,
                "-m",
                "tests.bench.whole",
                "--host",
                kind,
                "--scale",
                str(options.scale),
            ]
            subprocess.run(command, env=alone if kind == "one" else environment, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
