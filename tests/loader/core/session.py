"""A context, a queue and what tests of kernels need around them, with numpy arrays for data."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cl_driver.api.generated import enums as cl

CL3 = "-cl-std=CL3.0"


class Buffer(int):
    """The handle of a memory object; as a kernel argument it is passed as one."""


@dataclass(frozen=True)
class Local:
    """A kernel argument in local memory, of so many bytes."""

    size: int


def sizes(value) -> list[int] | None:
    """A global or local size: one number, several, or None."""
    return None if value is None else [value] if isinstance(value, int) else list(value)


class Session:
    """A context of the devices and a queue on the first, released with all that was made through it."""

    def __init__(self, opencl, *devices: int, properties: int = 0):
        self.cl = opencl
        self.device = devices[0] if devices else opencl.device()
        self.context = opencl.context(*(devices or (self.device,)))
        self.releases: list[tuple[str, int]] = [("clReleaseContext", self.context)]
        self.queue = self.new_queue(properties=properties)

    def close(self) -> None:
        """Releases what was made, the newest first."""
        while self.releases:
            self.cl.ok(*self.releases.pop())

    def made(self, release: str, handle: int) -> int:
        self.releases.append((release, handle))
        return handle

    def new_queue(self, device: int | None = None, properties: int = 0) -> int:
        wanted = [cl.CL_QUEUE_PROPERTIES, properties, 0]
        queue = self.cl.make(
            "clCreateCommandQueueWithProperties", self.context, device or self.device, wanted
        )
        return self.made("clReleaseCommandQueue", queue)

    def event(self) -> ctypes.c_void_p:
        """Where an enqueueing call puts its event."""
        return ctypes.c_void_p()

    def buffer(self, data: np.ndarray | int, flags: int = cl.CL_MEM_READ_WRITE) -> Buffer:
        """A buffer of so many bytes, or with a copy of the array."""
        if isinstance(data, int):
            handle = self.cl.make("clCreateBuffer", self.context, flags, data, None)
        else:
            flags |= cl.CL_MEM_COPY_HOST_PTR
            handle = self.cl.make("clCreateBuffer", self.context, flags, data.nbytes, data.ctypes.data)
        return Buffer(self.made("clReleaseMemObject", handle))

    def read(self, buffer: int, dtype, count: int, offset: int = 0, queue: int | None = None) -> np.ndarray:
        """`count` elements from byte `offset` on."""
        result = np.empty(count, dtype)
        where = (cl.CL_TRUE, offset, result.nbytes, result.ctypes.data, 0, None, None)
        self.cl.ok("clEnqueueReadBuffer", queue or self.queue, buffer, *where)
        return result

    def write(self, buffer: int, data: np.ndarray, offset: int = 0) -> None:
        where = (cl.CL_TRUE, offset, data.nbytes, data.ctypes.data, 0, None, None)
        self.cl.ok("clEnqueueWriteBuffer", self.queue, buffer, *where)

    def program(self, source: str, options: str | None = CL3) -> int:
        program = self.made("clReleaseProgram", self.cl.program(self.context, source))
        self.cl.build(program, options)
        return program

    def kernel(self, source: str | int, name: str = "k", options: str | None = CL3) -> int:
        """A kernel of a source, or of a program that has been built."""
        program = self.program(source, options) if isinstance(source, str) else source
        return self.made("clReleaseKernel", self.cl.make("clCreateKernel", program, name.encode()))

    def set_arguments(self, kernel: int, arguments: Sequence) -> None:
        """Buffers, Locals, and numpy scalars or arrays by value."""
        for index, value in enumerate(arguments):
            if isinstance(value, Local):
                size, data = value.size, None
            elif isinstance(value, Buffer):
                size, data = 8, ctypes.c_uint64(value)
            else:
                data = np.asarray(value).tobytes()
                size = len(data)
            self.cl.ok("clSetKernelArg", kernel, index, size, data)

    def launch(self, kernel: int, items, *arguments, local=None, offset=None, queue=None, event=None) -> None:
        """Sets the arguments and enqueues; `items` and `local` are numbers or one number per dimension."""
        self.set_arguments(kernel, arguments)
        shape = sizes(items)
        where = (len(shape), sizes(offset), shape, sizes(local), 0, None, event)
        self.cl.ok("clEnqueueNDRangeKernel", queue or self.queue, kernel, *where)

    def finish(self, queue: int | None = None) -> None:
        self.cl.ok("clFinish", queue or self.queue)

    def compute(
        self, source: str, items, dtype, count: int, *arguments, local=None, offset=None
    ) -> np.ndarray:
        """What kernel k of the source, whose first argument is a buffer of zeros, leaves there."""
        out = self.buffer(np.zeros(count, dtype))
        self.launch(self.kernel(source), items, out, *arguments, local=local, offset=offset)
        return self.read(out, dtype, count)
