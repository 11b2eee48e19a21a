"""The device, as any host program has it: through a loader of OpenCL and the driver's own library."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path
from typing import Any

from . import native
from .api.generated import enums as cl

HANDLE = ctypes.c_void_p
_HANDLES = (
    "clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clCreateProgramWithSource",
    "clCreateKernel", "clGetExtensionFunctionAddressForPlatform",
)  # fmt: skip


class DeviceError(OSError):
    """An OpenCL call that failed."""


class HostDevice:
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
                getattr(self._cl, name).restype = HANDLE
            self._platform, self.device = HANDLE(), HANDLE()
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
        return HANDLE(handle)

    def free(self, *buffers: ctypes.c_void_p) -> None:
        """Releases buffers."""
        for buffer in buffers:
            self._ok("clReleaseMemObject", buffer)

    def kernel(self, source: bytes, name: str, options: str) -> ctypes.c_void_p:
        """A kernel of a program; DeviceError with the build log if it does not build."""
        text, size = ctypes.c_char_p(source), ctypes.c_size_t(len(source))
        program = self._make(
            "clCreateProgramWithSource", self.context, 1, ctypes.byref(text), ctypes.byref(size)
        )
        try:
            status = self._cl.clBuildProgram(program, 0, None, options.encode(), None, None)
            if status != cl.CL_SUCCESS:
                raise DeviceError(f"it does not build with '{options}': {self._log(program).strip()}")
            return self._make("clCreateKernel", program, name.encode())
        finally:
            self._ok("clReleaseProgram", program)

    def _log(self, program: ctypes.c_void_p) -> str:
        size, what = ctypes.c_size_t(), cl.CL_PROGRAM_BUILD_LOG
        where = program, self.device, what
        self._ok("clGetProgramBuildInfo", *where, ctypes.c_size_t(0), None, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self._ok("clGetProgramBuildInfo", *where, size, log, None)
        return log.value.decode(errors="replace")

    def set(self, kernel: ctypes.c_void_p, index: int, size: int, data: Any) -> None:
        """An argument: bytes, or what ctypes takes for a pointer; None: so many bytes of local memory."""
        self._ok("clSetKernelArg", kernel, index, ctypes.c_size_t(size), data)

    def release(self, kernel: ctypes.c_void_p) -> None:
        """Releases a kernel."""
        self._ok("clReleaseKernel", kernel)
