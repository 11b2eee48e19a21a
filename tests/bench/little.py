"""Launches of little work on the device that is all workers of a cluster of this machine.

Usage: python -m tests.bench.little [--workers 2,4], with a Python that has Dask's distributed. Each line is
the best of some turns after a first one that does not count, in microseconds for a launch.
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
TURNS = 5

SOURCE = """
kernel void in_place(global int *x) { x[get_global_id(0)] = 3 * x[get_global_id(0)] + 1; }
kernel void stencil(global const float *in, global float *out, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x > 0 && y > 0 && x < width - 1 && y < height - 1)
        out[y * width + x] = 0.2f * (in[y * width + x] + in[y * width + x - 1] + in[y * width + x + 1] +
                                     in[(y - 1) * width + x] + in[(y + 1) * width + x]);
}
kernel void histogram(global const uchar *in, global uint *bins) { atomic_inc(bins + in[get_global_id(0)]); }
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
"""


def program() -> None:
    """The host's part, in a process of its own."""
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

    def measure(name: str, kernels: list[int], size: tuple[int, ...], launches: int, each: bool) -> None:
        """each: whether the host waits for each launch."""
        taken = []
        for _ in range(TURNS + 1):
            start = time.monotonic()
            for i in range(launches):
                one = kernels[i % len(kernels)]
                api.ok("clEnqueueNDRangeKernel", queue, one, len(size), None, list(size), None, 0, None, None)
                if each:
                    api.ok("clFinish", queue)
            api.ok("clFinish", queue)
            taken.append((time.monotonic() - start) / launches * 1e6)
        print(f"{name} {min(taken[1:]):.1f}", flush=True)

    x = buffer(values.integers(0, 100, 4096, dtype=np.int32))
    measure("map", [kernel("in_place", x)], (4096,), 1000, False)
    measure("map_waited", [kernel("in_place", x)], (4096,), 200, True)
    images = [buffer(values.random((128, 128), dtype=np.float32)) for _ in range(2)]
    steps = [kernel("stencil", *order, np.int32(128), np.int32(128)) for order in (images, images[::-1])]
    measure("stencil", steps, (128, 128), 300, False)
    bins = buffer(np.zeros(256, np.uint32))
    counts = kernel("histogram", buffer(values.integers(0, 256, 4096, dtype=np.uint8)), bins)
    measure("histogram", [counts], (4096,), 200, False)
    n = 8192
    places = [buffer(values.random((n, 4), dtype=np.float32)) for _ in range(2)]
    moves = [kernel("bodies", *order, np.uint32(n)) for order in (places, places[::-1])]
    measure("bodies", moves, (n,), 10, False)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--host", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        program()
        return
    from distributed import LocalCluster

    sys.path.insert(0, str(ROOT))  # which workers inherit
    for workers in map(int, options.workers.split(",")):
        print(f"{workers} workers", flush=True)
        with LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            environment = os.environ | {
                "CL_DRIVER_CLUSTER": f"{cluster.scheduler_address};whole",
                "CL_DRIVER_CLUSTER_PYTHON": sys.executable,
                "OCL_ICD_VENDORS": f"{ROOT}/build/vendors/",
            }
            command = [sys.executable, "-m", "tests.bench.little", "--host"]
            subprocess.run(command, env=environment, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
