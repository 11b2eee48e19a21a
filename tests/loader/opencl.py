"""OpenCL through ctypes and a loader's libOpenCL, with argument types from the installed headers.

Made for tests of rules: every argument goes through as it is, also a wrong one. Handles are ints; lists of
ints and handles become arrays of 8-byte words, lists of bytes arrays of char pointers.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Callable

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "native_shim"))
from gen import headers

from cl_driver.api.generated import enums as cl
from cl_driver.device.target import host_target

# Work-items per sub-group where a test sets no width.
SUB_GROUP_SIZE = int(os.environ.get("CL_DRIVER_TEST_WIDTH") or 0) or host_target().sub_group_size

_WORDS_OF_64_BITS = {
    "size_t",
    "cl_ulong",
    "cl_bitfield",
    "cl_device_type",
    "cl_mem_flags",
    "cl_svm_mem_flags",
    "cl_map_flags",
    "cl_mem_migration_flags",
    "cl_command_queue_properties",
    "cl_device_affinity_domain",
}
_HANDLES = {
    "cl_platform_id",
    "cl_device_id",
    "cl_context",
    "cl_command_queue",
    "cl_mem",
    "cl_program",
    "cl_kernel",
    "cl_event",
    "cl_sampler",
}

Notify = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
ContextNotify = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


def _ctype(declaration: str):
    base = declaration.removeprefix("const ").split()[0].rstrip("*")
    if "*" in declaration or "(" in declaration or base in _HANDLES:
        return ctypes.c_void_p
    if base in _WORDS_OF_64_BITS:
        return ctypes.c_uint64
    return ctypes.c_int32 if base == "cl_int" else ctypes.c_uint32


def _argument(value):
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p)
    if isinstance(value, (list, tuple)):
        if any(isinstance(entry, bytes) for entry in value):
            array = (ctypes.c_char_p * len(value))(*value)
        else:
            array = (ctypes.c_int64 * len(value))(*(entry or 0 for entry in value))
        return ctypes.cast(array, ctypes.c_void_p)
    if isinstance(value, ctypes._CFuncPtr):
        return ctypes.cast(value, ctypes.c_void_p)
    if isinstance(value, (ctypes.Array, ctypes.Structure, ctypes._SimpleCData)):
        return ctypes.cast(ctypes.pointer(value), ctypes.c_void_p)
    return value


class OpenCL:
    """The functions of a loader. `call` for all; the rest is what tests need most."""

    def __init__(self, library: str):
        self.library = ctypes.CDLL(library)
        self.prototypes = headers.read().prototypes

    def call(self, name: str, *arguments):
        """Calls a function. Its status if it returns one, else (handle, status): without errcode_ret."""
        prototype = self.prototypes[name]
        if prototype.result == "cl_int":
            return self.prepared(name, *arguments)()
        function = getattr(self.library, name)
        types = [_ctype(parameter.declaration) for parameter in prototype.parameters]
        converted = [_argument(value) for value in arguments]
        function.restype, function.argtypes = ctypes.c_void_p, types
        status = ctypes.c_int32(1)
        handle = function(*converted, ctypes.cast(ctypes.pointer(status), ctypes.c_void_p))
        return handle or 0, status.value

    def prepared(self, name: str, *arguments) -> Callable[[], int]:
        """A function that returns a status, with its arguments: to be timed, or called many times."""
        function = self.library[name]
        function.restype = ctypes.c_int32
        function.argtypes = [_ctype(parameter.declaration) for parameter in self.prototypes[name].parameters]
        return functools.partial(function, *map(_argument, arguments))

    def extension(self, name: str, *types):
        """An extension function that returns cl_int, or a handle where the first type is c_void_p."""
        get = self.library.clGetExtensionFunctionAddressForPlatform
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
        address = get(self.platform(), name.encode())
        assert address, f"{name} is not there"
        return ctypes.CFUNCTYPE(*types)(address)

    def checked(self, name: str, types: str, result=ctypes.c_int32) -> Callable:
        """An extension function that takes what `call` does. types: of each parameter, p, z, b, u or i for
        pointers and handles, size_t, bit-fields, cl_uint, cl_int."""
        letters = {"p": ctypes.c_void_p, "z": ctypes.c_uint64, "b": ctypes.c_uint64}
        letters |= {"u": ctypes.c_uint32, "i": ctypes.c_int32}
        function = self.extension(name, result, *(letters[letter] for letter in types))
        return lambda *arguments: function(*map(_argument, arguments))

    def make(self, name: str, *arguments) -> int:
        """A handle that must come to be."""
        handle, status = self.call(name, *arguments)
        assert status == cl.CL_SUCCESS and handle, f"{name}: {status}"
        return handle

    def fails(self, name: str, *arguments) -> int:
        """The status of a call that must fail; functions that return handles must return NULL."""
        result = self.call(name, *arguments)
        if isinstance(result, tuple):
            assert not result[0], f"{name} made something"
            result = result[1]
        return result

    def ok(self, name: str, *arguments) -> None:
        """A call that must succeed."""
        status = self.call(name, *arguments)
        assert status == cl.CL_SUCCESS, f"{name}: {status}"

    def info(self, name: str, *arguments) -> bytes:
        """The answer of an info query; checks the rules of size, NULL and size_ret on the way."""
        size = ctypes.c_uint64(0)
        self.ok(name, *arguments, 0, None, size)
        buffer = ctypes.create_string_buffer(b"\xa5" * (size.value + 8), size.value + 8)
        again = ctypes.c_uint64(0)
        self.ok(name, *arguments, size.value, buffer, again)
        assert again.value == size.value
        assert buffer.raw[size.value :] == b"\xa5" * 8, f"{name} wrote past its answer"
        if size.value:
            # "CL_INVALID_VALUE [...] if size in bytes specified by param_value_size is < size of return
            # type".
            assert self.call(name, *arguments, size.value - 1, buffer, None) == cl.CL_INVALID_VALUE
        return buffer.raw[: size.value]

    def integer(self, name: str, *arguments) -> int:
        return int.from_bytes(self.info(name, *arguments), "little")

    def text(self, name: str, *arguments) -> str:
        data = self.info(name, *arguments)
        assert data.endswith(b"\0")
        return data[:-1].decode()

    def words(self, name: str, *arguments) -> list[int]:
        data = self.info(name, *arguments)
        return list(struct.unpack(f"<{len(data) // 8}q", data))

    def platform(self) -> int:
        found = ctypes.c_void_p()
        self.ok("clGetPlatformIDs", 1, found, None)
        return found.value

    def device(self) -> int:
        found = ctypes.c_void_p()
        self.ok("clGetDeviceIDs", self.platform(), cl.CL_DEVICE_TYPE_ALL, 1, found, None)
        return found.value

    def sub_devices(self, device: int, *properties: int) -> list[int]:
        found = (ctypes.c_void_p * 64)()
        count = ctypes.c_uint32()
        self.ok("clCreateSubDevices", device, [*properties, 0], 64, found, count)
        return list(found[: count.value])

    def context(self, *devices: int) -> int:
        devices = devices or (self.device(),)
        return self.make("clCreateContext", None, len(devices), list(devices), None, None)

    def program(self, context: int, source: str | bytes) -> int:
        text = source.encode() if isinstance(source, str) else source
        return self.make("clCreateProgramWithSource", context, 1, [text], None)

    def build(self, program: int, options: str | None = None) -> None:
        """Builds for all devices; fails with the log."""
        status = self.call("clBuildProgram", program, 0, None, options, None, None)
        assert status == cl.CL_SUCCESS, f"{status}\n{self.build_log(program)}"

    def build_log(self, program: int) -> str:
        device = self.words("clGetProgramInfo", program, cl.CL_PROGRAM_DEVICES)[0]
        return self.text("clGetProgramBuildInfo", program, device, cl.CL_PROGRAM_BUILD_LOG)

    def kernel(self, context: int, source: str, name: str = "k", options: str | None = None) -> int:
        program = self.program(context, source)
        self.build(program, options)
        kernel = self.make("clCreateKernel", program, name.encode())
        self.ok("clReleaseProgram", program)
        return kernel
