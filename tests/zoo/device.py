"""OpenCL as the zoo's processes use it: memory between guards, a kernel's arguments, a launch."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path

import numpy as np

from cl_driver.api.generated import enums as cl
from tests.loader.opencl import OpenCL
from tests.zoo import arguments

_GUARD = 1 << 30
_libc = ctypes.CDLL(None)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_NO_RESERVE, _PRIVATE_ANONYMOUS = 0x4000, 0x22
_ADDRESS = {0x119B: "global", 0x119C: "local", 0x119D: "constant", 0x119E: "private"}
_IMAGES = cl.CL_MEM_OBJECT_IMAGE1D, cl.CL_MEM_OBJECT_IMAGE2D, cl.CL_MEM_OBJECT_IMAGE3D


class Failure(Exception):
    """An OpenCL call that failed."""


def guarded(size: int) -> int:
    """Address of memory before and after which a gigabyte faults."""
    start = _libc.mmap(None, size + 2 * _GUARD, 0, _PRIVATE_ANONYMOUS | _NO_RESERVE, -1, 0)
    if start in (None, ctypes.c_void_p(-1).value):
        raise Failure("no address space")
    _libc.mprotect(start + _GUARD, size, 3)
    return start + _GUARD


class Device:
    """The first device, a context and a queue of it."""

    def __init__(self, opencl: OpenCL):
        self.cl = opencl
        self.device = self.cl.device()
        self.context = self.cl.context(self.device)
        self.queue = self.make("clCreateCommandQueue", self.context, self.device, 0)
        self._memory: list[int] = []

    def ok(self, name: str, *values) -> None:
        status = self.cl.call(name, *values)
        if status != cl.CL_SUCCESS:
            raise Failure(f"{name}: {status}")

    def make(self, name: str, *values) -> int:
        handle, status = self.cl.call(name, *values)
        if status != cl.CL_SUCCESS:
            raise Failure(f"{name}: {status}")
        return handle

    def memory(self, index: int) -> int:
        """The guarded memory of the index-th buffer of a kernel."""
        while len(self._memory) <= index:
            self._memory.append(guarded(arguments.BUFFER_BYTES))
        return self._memory[index]

    def build(self, text: str, options: str) -> tuple[int, str]:
        """(program, ""), or (0, the log)"""
        program = self.make("clCreateProgramWithSource", self.context, 1, [text.encode()], None)
        words = f"{options} -cl-kernel-arg-info".strip()
        status = self.cl.call("clBuildProgram", program, 0, None, words, None, None)
        if status == cl.CL_SUCCESS:
            return program, ""
        size = ctypes.c_uint64()
        what = (program, self.device, cl.CL_PROGRAM_BUILD_LOG)
        self.cl.call("clGetProgramBuildInfo", *what, 0, None, size)
        log = ctypes.create_string_buffer(size.value + 1)
        self.cl.call("clGetProgramBuildInfo", *what, size.value, log, None)
        self.cl.call("clReleaseProgram", program)
        return 0, f"status {status}\n" + log.value.decode("utf-8", "replace")

    def _text(self, name: str, *what) -> str:
        size = ctypes.c_uint64()
        self.ok(name, *what, 0, None, size)
        data = ctypes.create_string_buffer(size.value + 1)
        self.ok(name, *what, size.value, data, None)
        return data.value.decode("utf-8", "replace")

    def _number(self, name: str, *what) -> int:
        data = ctypes.c_uint64()
        self.ok(name, *what[:-1], what[-1], data, None)
        return data.value

    def kernels(self, program: int) -> dict[str, dict]:
        """{name: its arguments as [address, type], its reqd_work_group_size}"""
        out = {}
        for name in filter(
            None, self._text("clGetProgramInfo", program, cl.CL_PROGRAM_KERNEL_NAMES).split(";")
        ):
            kernel = self.make("clCreateKernel", program, name.encode())
            count = self._number("clGetKernelInfo", kernel, cl.CL_KERNEL_NUM_ARGS, 4)
            found = []
            for index in range(count):
                what = (kernel, index)
                address = self._number("clGetKernelArgInfo", *what, cl.CL_KERNEL_ARG_ADDRESS_QUALIFIER, 4)
                text = self._text("clGetKernelArgInfo", *what, cl.CL_KERNEL_ARG_TYPE_NAME)
                found.append([_ADDRESS.get(address, "private"), text])
            required = (ctypes.c_size_t * 3)()
            what = (kernel, self.device, cl.CL_KERNEL_COMPILE_WORK_GROUP_SIZE)
            self.ok("clGetKernelWorkGroupInfo", *what, 24, required, None)
            most = self._number("clGetKernelWorkGroupInfo", *what[:2], cl.CL_KERNEL_WORK_GROUP_SIZE, 8)
            out[name] = {"arguments": found, "required": list(required), "most": most}
            self.ok("clReleaseKernel", kernel)
        return out


class Launch:
    """A kernel with synthetic arguments."""

    def __init__(self, device: Device, program: int, name: str, known: dict, text: str):
        self.device, self.name, self.text = device, name, text
        self.known = [arguments.Argument(*argument) for argument in known["arguments"]]
        self.kernel = device.make("clCreateKernel", program, name.encode())
        self.initial: dict[int, np.ndarray] = {}
        self.objects: dict[int, int] = {}
        self.images: dict[int, list[int]] = {}
        for index, argument in enumerate(self.known):
            if argument.address in ("global", "constant"):
                self._memory_object(index, argument)

    def _memory_object(self, index: int, argument: arguments.Argument) -> None:
        seed = f"{self.name} {index}"
        if argument.type.startswith("image"):
            self._image(index, argument.type, seed)
            return
        self.initial[index] = arguments.contents(argument.scalar, seed)
        flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_USE_HOST_PTR
        memory = self.device.memory(len(self.objects))
        size = arguments.BUFFER_BYTES
        self.objects[index] = self.device.make("clCreateBuffer", self.device.context, flags, size, memory)

    def _image(self, index: int, kind: str, seed: str) -> None:
        channel, scalar = arguments.channel(self.text, self.name)
        sizes = arguments.image_sides(kind)
        if not sizes:
            raise Failure(f"an argument of type {kind}")
        code = _IMAGES[len(sizes) - 1]
        form = (ctypes.c_uint32 * 2)(cl.CL_RGBA, channel)
        shape = (ctypes.c_uint64 * 9)(code, *sizes)
        self.images[index] = [*sizes, 1, 1][:3]
        size = 16 * int(np.prod(self.images[index]))
        self.initial[index] = arguments.contents(scalar, seed, size)
        flags = cl.CL_MEM_READ_WRITE
        self.objects[index] = self.device.make("clCreateImage", self.device.context, flags, form, shape, None)

    def prepare(self, sizes: arguments.Sizes) -> None:
        """Sets all arguments for a problem size, and what a launch takes."""
        locals_left = 24576
        for index, argument in enumerate(self.known):
            if index in self.objects:
                self.device.ok("clSetKernelArg", self.kernel, index, 8, ctypes.c_uint64(self.objects[index]))
                continue
            if argument.address == "local":
                size = min(max(arguments.LOCAL_BYTES, 64 * int(np.prod(sizes.local_size))), locals_left)
                locals_left = max(locals_left - size, 1024)
                self.device.ok("clSetKernelArg", self.kernel, index, size, None)
            elif argument.type == "sampler_t":
                sampler = self.device.make(
                    "clCreateSampler",
                    self.device.context,
                    0,
                    cl.CL_ADDRESS_CLAMP_TO_EDGE,
                    cl.CL_FILTER_NEAREST,
                )
                self.device.ok("clSetKernelArg", self.kernel, index, 8, ctypes.c_uint64(sampler))
            else:
                self._value(index, argument, sizes.number)
        # Called as a C program does: a launch may take less than Python needs to convert its arguments.
        self.enqueue = self.device.cl.prepared(
            "clEnqueueNDRangeKernel",
            self.device.queue,
            self.kernel,
            len(sizes.global_size),
            None,
            (ctypes.c_size_t * 3)(*sizes.global_size),
            (ctypes.c_size_t * 3)(*sizes.local_size),
            0,
            None,
            None,
        )
        self.finish = self.device.cl.prepared("clFinish", self.device.queue)

    def _value(self, index: int, argument: arguments.Argument, number: int) -> None:
        if argument.scalar:
            data = arguments.scalar_value(argument.scalar, argument.width, number)
            self.device.ok("clSetKernelArg", self.kernel, index, len(data), data)
            return
        for size in (1, 2, *range(4, 1028, 4)):  # nothing tells how large a structure is
            data = arguments.structure(size, number)
            if self.device.cl.call("clSetKernelArg", self.kernel, index, size, data) == cl.CL_SUCCESS:
                return
        raise Failure(f"an argument of type {argument.type}")

    def _transfer(self, verb: str, index: int, data: np.ndarray) -> None:
        address = data.ctypes.data
        queue, handle = self.device.queue, self.objects[index]
        if index in self.images:
            where = ([0, 0, 0], self.images[index], 0, 0)
            self.device.ok(f"clEnqueue{verb}Image", queue, handle, 1, *where, address, 0, None, None)
        else:
            where = (0, data.nbytes)
            self.device.ok(f"clEnqueue{verb}Buffer", queue, handle, 1, *where, address, 0, None, None)

    def write(self) -> None:
        """The initial contents of all memory."""
        for index, data in self.initial.items():
            self._transfer("Write", index, data)

    def run(self) -> float:
        """Launches, waits; milliseconds."""
        start = time.perf_counter()
        enqueued = self.enqueue()
        finished = self.finish()
        elapsed = time.perf_counter() - start
        if enqueued != cl.CL_SUCCESS or finished != cl.CL_SUCCESS:
            raise Failure(f"clEnqueueNDRangeKernel: {enqueued}, clFinish: {finished}")
        return elapsed * 1000

    def outputs(self, folder: Path, prefix: str) -> dict[str, list]:
        """{index: [file of what was changed, first changed element]} of the memory that it changed."""
        out = {}
        for index, before in self.initial.items():
            after = np.empty_like(before)
            self._transfer("Read", index, after)
            kind = f"u{before.dtype.itemsize}"
            changed = np.flatnonzero(before.view(kind) != after.view(kind))
            if changed.size:
                path = folder / f"{prefix}{index}.npy"
                np.save(path, after[changed[0] : changed[-1] + 1])
                out[str(index)] = [str(path), int(changed[0])]
        return out

    def release(self) -> None:
        for handle in self.objects.values():
            self.device.ok("clReleaseMemObject", handle)
        self.device.ok("clReleaseKernel", self.kernel)
