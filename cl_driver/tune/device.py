"""The device, as any program has it: through a loader of OpenCL and the driver's own library."""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import native
from ..api.generated import enums as cl

_HANDLE = ctypes.c_void_p
_HANDLES = (
    "clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clCreateProgramWithSource",
    "clCreateKernel", "clGetExtensionFunctionAddressForPlatform",
)  # fmt: skip


class DeviceError(OSError):
    """An OpenCL call that failed."""


def _sizes(values: Sequence[int] | None) -> Any:
    return None if values is None else (ctypes.c_size_t * len(values))(*values)


class Device:
    """The driver's device with a context and a queue. A process can have one such. DeviceError, as of all
    methods."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "cl_driver.icd").write_text(f"{native.library()}\n")
            os.environ["OCL_ICD_VENDORS"] = f"{folder}/"
            os.environ.pop("OCL_ICD_FILENAMES", None)
            try:
                self._cl = ctypes.CDLL("libOpenCL.so.1")
            except OSError as error:
                raise DeviceError(
                    f"there is no OpenCL loader: {error}. Debian: apt install ocl-icd-libopencl1"
                ) from error
            for name in _HANDLES:
                getattr(self._cl, name).restype = _HANDLE
            self._platform, self.device = _HANDLE(), _HANDLE()
            self._ok("clGetPlatformIDs", 1, ctypes.byref(self._platform), None)
        every = ctypes.c_uint64(cl.CL_DEVICE_TYPE_ALL)
        self._ok("clGetDeviceIDs", self._platform, every, 1, ctypes.byref(self.device), None)
        self.context = self._make("clCreateContext", None, 1, ctypes.byref(self.device), None, None)
        self.queue = self._make("clCreateCommandQueue", self.context, self.device, ctypes.c_uint64(0))

    def _ok(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cl, name)(*arguments)
        if status != cl.CL_SUCCESS:
            raise DeviceError(f"{name}: {status}")

    def _make(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        status = ctypes.c_int32()
        handle = getattr(self._cl, name)(*arguments, ctypes.byref(status))
        if status.value != cl.CL_SUCCESS:
            raise DeviceError(f"{name}: {status.value}")
        return _HANDLE(handle)

    def buffer(self, size: int) -> ctypes.c_void_p:
        """A buffer of so many bytes, all of them zero."""
        made = self._make(
            "clCreateBuffer", self.context, ctypes.c_uint64(cl.CL_MEM_READ_WRITE), ctypes.c_size_t(size), None
        )
        where = ctypes.c_size_t(1), ctypes.c_size_t(0), ctypes.c_size_t(size), 0, None, None
        self._ok("clEnqueueFillBuffer", self.queue, made, b"\0", *where)
        self._ok("clFinish", self.queue)
        return made

    def free(self, buffer: ctypes.c_void_p) -> None:
        """Releases a buffer."""
        self._ok("clReleaseMemObject", buffer)

    def kernel(self, source: bytes, name: str, options: str) -> ctypes.c_void_p:
        """A kernel of a program; DeviceError with the build log if it does not build."""
        text, size = ctypes.c_char_p(source), ctypes.c_size_t(len(source))
        program = self._make(
            "clCreateProgramWithSource", self.context, 1, ctypes.byref(text), ctypes.byref(size)
        )
        status = self._cl.clBuildProgram(program, 0, None, options.encode(), None, None)
        if status != cl.CL_SUCCESS:
            log = ctypes.create_string_buffer(8192)
            what = cl.CL_PROGRAM_BUILD_LOG
            self._cl.clGetProgramBuildInfo(program, self.device, what, ctypes.c_size_t(8192), log, None)
            raise DeviceError(f"it does not build with '{options}': {log.value.decode().strip()}")
        made = self._make("clCreateKernel", program, name.encode())
        self._ok("clReleaseProgram", program)
        return made

    def set(self, kernel: ctypes.c_void_p, index: int, size: int, data: bytes | None) -> None:
        """An argument; no data: so many bytes of local memory."""
        self._ok("clSetKernelArg", kernel, index, ctypes.c_size_t(size), data)

    def most_items(self, kernel: ctypes.c_void_p) -> int:
        """CL_KERNEL_WORK_GROUP_SIZE."""
        found = ctypes.c_size_t()
        where = cl.CL_KERNEL_WORK_GROUP_SIZE, ctypes.c_size_t(8), ctypes.byref(found), None
        self._ok("clGetKernelWorkGroupInfo", kernel, self.device, *where)
        return found.value

    def suggested(self, kernel: ctypes.c_void_p, items: Sequence[int]) -> list[int]:
        """The local size that launches have which name none (cl_khr_suggested_local_work_size).

        DeviceError if the call fails."""
        name = b"clGetKernelSuggestedLocalWorkSizeKHR"
        address = self._cl.clGetExtensionFunctionAddressForPlatform(self._platform, name)
        call = ctypes.CFUNCTYPE(ctypes.c_int32, _HANDLE, _HANDLE, ctypes.c_uint32, _HANDLE, _HANDLE, _HANDLE)(
            address
        )
        found = (ctypes.c_size_t * 3)(1, 1, 1)
        if status := call(self.queue, kernel, len(items), None, _sizes(items), found):
            raise DeviceError(f"{name.decode()}: {status}")
        return list(found[: len(items)])

    def seconds(
        self, kernel: ctypes.c_void_p, items: Sequence[int], local: Sequence[int] | None, launches: int
    ) -> float:
        """What so many launches take, one after another, from the first call to the end of the last."""
        where = len(items), None, _sizes(items), _sizes(local), 0, None, None
        start = time.perf_counter()
        for _ in range(launches):
            self._ok("clEnqueueNDRangeKernel", self.queue, kernel, *where)
        self._ok("clFinish", self.queue)
        return time.perf_counter() - start

    def release(self, kernel: ctypes.c_void_p) -> None:
        """Releases a kernel."""
        self._ok("clReleaseKernel", kernel)
