"""The device that trials run on."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any

from ..api.generated import enums as cl
from ..host_device import HANDLE, DeviceError, HostDevice


def _sizes(values: Sequence[int] | None) -> Any:
    return None if values is None else (ctypes.c_size_t * len(values))(*values)


class Device(HostDevice):
    """The driver's device, for launches of one kernel. DeviceError, as of all methods."""

    def buffer(self, size: int) -> ctypes.c_void_p:
        """A buffer of so many bytes, all of them zero."""
        made = self._make(
            "clCreateBuffer", self.context, ctypes.c_uint64(cl.CL_MEM_READ_WRITE), ctypes.c_size_t(size), None
        )
        where = ctypes.c_size_t(1), ctypes.c_size_t(0), ctypes.c_size_t(size), 0, None, None
        self._ok("clEnqueueFillBuffer", self.queue, made, b"\0", *where)
        self._ok("clFinish", self.queue)
        return made

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
        call = ctypes.CFUNCTYPE(ctypes.c_int32, HANDLE, HANDLE, ctypes.c_uint32, HANDLE, HANDLE, HANDLE)(
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
