"""Runs benchmarks on the first OpenCL platform that the loader finds; told what to do by lines on stdin.

    load NAME [EXPECTED.npz] [small]   builds, launches once, checks if there is what to compare with
                                       (own: what this process computes; NAME: also FUNCTION:TYPE)
    time SECONDS                       launches the loaded one again and again
    check                              runs it on the initial contents once more, and compares

Each line is answered by one line of JSON on what was stdout at start; what drivers print goes to stderr.
Times are wall-clock milliseconds. An answer with "error" says what went wrong, one with "skipped" why not.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time

import numpy as np

from cl_driver.api.generated import enums as cl
from tests.bench import functions
from tests.bench.cases import BENCHMARKS
from tests.bench.model import Benchmark, Case, Image, Launch, Local, check
from tests.loader.opencl import OpenCL

ORDERS = {1: cl.CL_R, 4: cl.CL_RGBA}
CHANNELS = {"uint8": cl.CL_UNORM_INT8, "float16": cl.CL_HALF_FLOAT, "float32": cl.CL_FLOAT}


def milliseconds(function, *arguments):
    """(result, time taken)"""
    start = time.perf_counter()
    result = function(*arguments)
    return result, (time.perf_counter() - start) * 1000


class Failure(Exception):
    """An OpenCL call that failed."""


class Device:
    """The device, a context and a queue of it."""

    def __init__(self):
        self.cl = OpenCL("libOpenCL.so.1")
        self.device = self.cl.device()
        self.context = self.cl.context(self.device)
        self.queue = self.cl.make("clCreateCommandQueue", self.context, self.device, 0)

    def has_images(self) -> bool:
        answer = ctypes.c_uint32()
        self.cl.ok("clGetDeviceInfo", self.device, cl.CL_DEVICE_IMAGE_SUPPORT, 4, answer, None)
        return bool(answer.value)

    def ok(self, name: str, *arguments) -> None:
        status = self.cl.call(name, *arguments)
        if status != cl.CL_SUCCESS:
            raise Failure(f"{name}: {status}")

    def make(self, name: str, *arguments) -> int:
        handle, status = self.cl.call(name, *arguments)
        if status != cl.CL_SUCCESS:
            raise Failure(f"{name}: {status}")
        return handle


class Loaded:
    """A built benchmark with its buffers. Its memory is freed by `release`."""

    def __init__(self, device: Device, benchmark: Benchmark, case: Case):
        self.device, self.case = device, case
        self.program, self.kernels, self.memory = 0, [], {}
        self.launches = []
        for name in case.memory:
            self.memory[name] = self._allocate(name)
        self.write()
        _, self.build_time = milliseconds(self._build, benchmark)

    def _allocate(self, name: str) -> int:
        memory, flags = self.case.memory[name], cl.CL_MEM_READ_WRITE
        if not isinstance(memory, Image):
            return self.device.make("clCreateBuffer", self.device.context, flags, memory.nbytes, None)
        *sizes, channels = memory.texels.shape
        form = (ctypes.c_uint32 * 2)(ORDERS[channels], CHANNELS[memory.texels.dtype.name])
        kind = cl.CL_MEM_OBJECT_IMAGE2D if len(sizes) == 2 else cl.CL_MEM_OBJECT_IMAGE3D
        # cl_image_desc: type, width, height, depth, array size, two pitches, two counts, a memory object.
        shape = (ctypes.c_uint64 * 9)(kind, *reversed(sizes))
        return self.device.make("clCreateImage", self.device.context, flags, form, shape, None)

    def _build(self, benchmark: Benchmark) -> None:
        device = self.device
        self.program = device.make("clCreateProgramWithSource", device.context, 1, [benchmark.source], None)
        status = device.cl.call("clBuildProgram", self.program, 0, None, None, None, None)
        if status != cl.CL_SUCCESS:
            raise Failure(f"clBuildProgram: {status}: {device.cl.build_log(self.program).strip()[:1000]}")
        for launch in self.case.launches:
            kernel = device.make("clCreateKernel", self.program, benchmark.entry_point.encode())
            self.kernels.append(kernel)
            self._set_arguments(kernel, launch)
            sizes = [
                size and (ctypes.c_size_t * len(size))(*size)
                for size in (launch.global_size, launch.local_size)
            ]
            self.launches.append((kernel, len(launch.global_size), *sizes))

    def _set_arguments(self, kernel: int, launch: Launch) -> None:
        for index, argument in enumerate(launch.arguments):
            if isinstance(argument, Local):
                size, value = argument.size, None
            elif isinstance(argument, str):
                size, value = 8, ctypes.c_uint64(self.memory[argument])
            else:
                value = argument.tobytes()
                size = len(value)
            self.device.ok("clSetKernelArg", kernel, index, size, value)

    def _transfer(self, verb: str, name: str, data: np.ndarray) -> None:
        handle, queue = self.memory[name], self.device.queue
        address = ctypes.c_void_p(data.ctypes.data).value
        if isinstance(self.case.memory[name], Image):
            sizes = [*reversed(data.shape[:-1]), 1][:3]
            origin, region = (ctypes.c_size_t * 3)(), (ctypes.c_size_t * 3)(*sizes)
            where = (origin, region, 0, 0)
            self.device.ok(f"clEnqueue{verb}Image", queue, handle, 1, *where, address, 0, None, None)
        else:
            self.device.ok(f"clEnqueue{verb}Buffer", queue, handle, 1, 0, data.nbytes, address, 0, None, None)

    def write(self) -> None:
        """Puts the initial contents into all memory."""
        for name in self.case.memory:
            self._transfer("Write", name, np.ascontiguousarray(self.case.initial(name)))

    def read(self, name: str) -> np.ndarray:
        """What is in a buffer or image."""
        data = np.empty_like(np.ascontiguousarray(self.case.initial(name)))
        self._transfer("Read", name, data)
        return data

    def runner(self):
        """A function that enqueues all launches and waits; with as little Python in it as can be."""
        library = self.device.cl.library
        enqueue, finish = library.clEnqueueNDRangeKernel, library.clFinish
        pointer = ctypes.c_void_p
        enqueue.argtypes = [pointer, pointer, ctypes.c_uint32, pointer, pointer, pointer, ctypes.c_uint32]
        enqueue.argtypes += [pointer, pointer]
        finish.argtypes = [pointer]
        enqueue.restype = finish.restype = ctypes.c_int32
        queue = self.device.queue
        commands = [
            (queue, kernel, dimensions, None, global_size, local_size, 0, None, None)
            for kernel, dimensions, global_size, local_size in self.launches
        ]

        def run():
            for command in commands:
                status = enqueue(*command)
                if status:
                    raise Failure(f"clEnqueueNDRangeKernel: {status}")
            status = finish(queue)
            if status:
                raise Failure(f"clFinish: {status}")

        return run

    def compare(self, expected: dict[str, np.ndarray]) -> str | None:
        return check(self.case, expected, {name: self.read(name) for name in expected})

    def release(self) -> None:
        for kernel in self.kernels:
            self.device.ok("clReleaseKernel", kernel)
        if self.program:
            self.device.ok("clReleaseProgram", self.program)
        for handle in self.memory.values():
            self.device.ok("clReleaseMemObject", handle)


class Session:
    """What the lines on stdin do."""

    def __init__(self):
        self.device, self.setup_time = None, 0.0
        self.loaded, self.run, self.expected = None, None, {}

    def load(self, name: str, path: str = "-", size: str = "") -> dict:
        benchmark = functions.benchmark(name) if ":" in name else BENCHMARKS[name]
        if self.device is None:
            self.device, self.setup_time = milliseconds(Device)
        if self.loaded:
            self.loaded.release()
            self.loaded = None
        case = benchmark.case(size == "small")
        uses_images = any(isinstance(memory, Image) for memory in case.memory.values())
        if uses_images and not self.device.has_images():
            return {"skipped": "no images"}
        self.loaded = Loaded(self.device, benchmark, case)
        self.run = self.loaded.runner()
        _, first = milliseconds(self.run)
        answer = {"setup": self.setup_time, "build": self.loaded.build_time, "first": first}
        if path != "-":
            if path == "own":
                self.expected = case.expected()
            else:
                with np.load(path) as file:
                    self.expected = dict(file)
            answer["error"] = self.loaded.compare(self.expected)
        return answer

    def time(self, seconds: str) -> dict:
        time.sleep(0.005)  # workers of the driver that ran before fall asleep
        self.run()
        times, used = [], []
        end = time.perf_counter() + float(seconds)
        while len(times) < 3 or time.perf_counter() < end:
            before = time.process_time()
            times.append(milliseconds(self.run)[1])
            used.append((time.process_time() - before) * 1000)
        return {"times": times, "cpu": min(used)}

    def check(self) -> dict:
        self.loaded.write()
        self.run()
        return {"error": self.loaded.compare(self.expected)}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = Session()
    verbs = {"load": session.load, "time": session.time, "check": session.check}
    for line in sys.stdin:
        verb, *arguments = line.split()
        try:
            answer = verbs[verb](*arguments)
        except Failure as failure:
            answer = {"error": str(failure)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
