"""The device whose functions are measured."""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING

import numpy as np

from ..api.generated import enums as cl
from ..host_device import HANDLE, HostDevice
from .functions import BINARY, SECOND, TO_INTEGER, WITH_INTEGER, Type

if TYPE_CHECKING:
    from .functions import Array


class Device(HostDevice):
    """The driver's device, for kernels that read and write arrays. DeviceError, as of all methods."""

    def __init__(self, options: str = "") -> None:
        """options: of clBuildProgram, for all kernels."""
        super().__init__()
        self.options = options

    def info(self, what: int) -> str:
        """A text of clGetDeviceInfo."""
        text = ctypes.create_string_buffer(8192)
        self._ok("clGetDeviceInfo", self.device, what, ctypes.c_size_t(8192), text, None)
        return text.value.decode()

    def supports(self, type_: Type) -> bool:
        """Whether kernels may have that type."""
        extension = {"half": "cl_khr_fp16", "double": "cl_khr_fp64"}.get(type_.name)
        return extension is None or extension in self.info(cl.CL_DEVICE_EXTENSIONS).split()

    def buffer(self, array: Array) -> ctypes.c_void_p:
        """A buffer with the contents of an array."""
        flags = ctypes.c_uint64(cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR)
        size, data = ctypes.c_size_t(array.nbytes), array.ctypes.data_as(HANDLE)
        return self._make("clCreateBuffer", self.context, flags, size, data)

    def read(self, buffer: ctypes.c_void_p, array: Array) -> None:
        """A buffer's contents into an array."""
        size, data = ctypes.c_size_t(array.nbytes), array.ctypes.data_as(HANDLE)
        zero = ctypes.c_size_t(0)
        self._ok("clEnqueueReadBuffer", self.queue, buffer, 1, zero, size, data, 0, None, None)

    def set_buffers(self, kernel: ctypes.c_void_p, buffers: list[ctypes.c_void_p]) -> None:
        """The arguments of a kernel, from the first on."""
        for index, buffer in enumerate(buffers):
            self.set(kernel, index, 8, ctypes.byref(buffer))

    def run(self, kernel: ctypes.c_void_p, count: int, times: int = 1) -> float:
        """CPU time of all threads, in nanoseconds, that so many launches of so many work-items take."""
        size = ctypes.c_size_t(count)
        start = time.process_time_ns()
        for _ in range(times):
            where = (None, ctypes.byref(size), None, 0, None, None)
            self._ok("clEnqueueNDRangeKernel", self.queue, kernel, 1, *where)
        self._ok("clFinish", self.queue)
        return time.process_time_ns() - start


def source(name: str, type_: Type) -> str:
    """A kernel `apply` that calls a function once per work-item: arguments, result, second result."""
    t = type_.name
    second = SECOND.get(name, "int").replace("T", t)
    parameters = [f"global const {t} *x", f"global const {'int' if name in WITH_INTEGER else t} *y"]
    parameters += [f"global const {t} *z", f"global {'int' if name in TO_INTEGER else t} *out"]
    operands = ["x[i]"] + ["y[i]"] * (name in BINARY | WITH_INTEGER) + ["z[i]"] * (name == "fma")
    call = f"{name}({', '.join(operands + ['&r'] * (name in SECOND))})"
    if name == "divide":
        call = "x[i] / y[i]"
    enable = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n" if t == "half" else ""
    store = " second[i] = r;" if name in SECOND else ""
    return (
        f"{enable}kernel void apply({', '.join(parameters)}, global {second} *second)\n"
        f"{{ size_t i = get_global_id(0); {second} r; out[i] = {call};{store} }}\n"
    )


class Measured:
    """A function of a type on a device: its results and its time."""

    def __init__(self, device: Device, name: str, type_: Type) -> None:
        self.device, self.name, self.type = device, name, type_
        self.kernel = device.kernel(source(name, type_).encode(), "apply", device.options)

    def _buffers(self, arguments: list[Array], *results: Array) -> list[ctypes.c_void_p]:
        filled = [*arguments, *[arguments[0][:1]] * (3 - len(arguments)), *results]
        buffers = [self.device.buffer(np.ascontiguousarray(array)) for array in filled]
        self.device.set_buffers(self.kernel, buffers)
        return buffers

    def _outputs(self, count: int) -> tuple[Array, Array]:
        float_ = self.type.float
        out: Array = np.zeros(count, np.int32 if self.name in TO_INTEGER else float_)
        return out, np.zeros(count, float_ if SECOND.get(self.name) == "T" else np.int32)

    def results(self, arguments: list[Array]) -> tuple[Array, Array]:
        """(results, second results: zeros if there are none)"""
        out, second = self._outputs(len(arguments[0]))
        buffers = self._buffers(arguments, out, second)
        self.device.run(self.kernel, len(out))
        self.device.read(buffers[3], out)
        self.device.read(buffers[4], second)
        self.device.free(*buffers)
        return out, second

    def nanoseconds(self, arguments: list[Array], launches: int = 8, rounds: int = 5) -> float:
        """CPU time of one call, the least of some rounds; what loads and stores take is in it."""
        count = len(arguments[0])
        buffers = self._buffers(arguments, *self._outputs(count))
        best = min(self.device.run(self.kernel, count, launches) for _ in range(rounds + 1))
        self.device.free(*buffers)
        return best / (count * launches)

    def release(self) -> None:
        """Releases the kernel."""
        self.device.release(self.kernel)
