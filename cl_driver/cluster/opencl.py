"""OpenCL as a worker calls it: the driver's own library, by ctypes, without a loader."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from .. import native
from ..api.generated import enums as cl

_HANDLE = ctypes.c_void_p
_WORD = ctypes.c_size_t

# Of the worker's environment. What it runs for others is no host of a cluster itself.
_CLUSTER = "CL_DRIVER_CLUSTER"
_THREADS = "CL_DRIVER_THREADS"


class CallError(Exception):
    """A call that failed; status: why."""

    def __init__(self, name: str, status: int) -> None:
        super().__init__(f"{name}: {status}")
        self.status = status


def _load(threads: int) -> ctypes.CDLL:
    """The library, which reads its settings while it is loaded."""
    changed = {_CLUSTER: None, _THREADS: os.environ.get(_THREADS) or str(threads)}
    before = {name: os.environ.get(name) for name in changed}
    try:
        _set_environment(changed)
        return ctypes.CDLL(str(native.library()))
    finally:
        _set_environment(before)


def _set_environment(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


class OpenCL:
    """The functions of the driver, and its device. library: the driver's."""

    def __init__(self, threads: int) -> None:
        """threads: that the device has, unless a setting says so. OSError if there is no library, CallError
        if there is no device."""
        self.library = library = _load(threads)
        find = library.clGetExtensionFunctionAddress
        find.restype, find.argtypes = _HANDLE, [ctypes.c_char_p]
        self._find = find
        self._functions: dict[str, Any] = {}
        platform, device = _HANDLE(), _HANDLE()
        status = library.clIcdGetPlatformIDsKHR(1, ctypes.byref(platform), None)
        if status:
            raise CallError("clIcdGetPlatformIDsKHR", status)
        every = ctypes.c_uint64(cl.CL_DEVICE_TYPE_ALL)
        self.call("clGetDeviceIDs", platform, every, 1, ctypes.byref(device), None)
        self.device = device

    def function(self, name: str) -> Any:
        """A function by its name, whose result is a status. CallError if there is none."""
        found = self._functions.get(name)
        if found is None:
            address = self._find(name.encode())
            if not address:
                raise CallError(name, cl.CL_INVALID_OPERATION)
            found = self._functions[name] = ctypes.CFUNCTYPE(ctypes.c_int32)(address)
        return found

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status. CallError if it is no success."""
        status = self.function(name)(*arguments)
        if status:
            raise CallError(name, status)

    def info(self, name: str, what: int, *of: Any) -> bytes:
        """The value of a query. CallError if there is none."""
        size = _WORD()
        self.call(name, *of, what, _WORD(0), None, ctypes.byref(size))
        value = ctypes.create_string_buffer(size.value or 1)
        self.call(name, *of, what, size, value, None)
        return value.raw[: size.value]
