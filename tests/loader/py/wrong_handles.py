"""Calls every function of the dispatch table with handles that are none, past the loader, and prints what did
not answer with the error code for them: wrong_handles.py LIBRARY."""

import ctypes
import random
import sys

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0])
from cl_driver.api.generated import enums as cl
from tests.loader.opencl import _HANDLES, _argument, _ctype, headers

INVALID = {
    "cl_platform_id": cl.CL_INVALID_PLATFORM,
    "cl_device_id": cl.CL_INVALID_DEVICE,
    "cl_context": cl.CL_INVALID_CONTEXT,
    "cl_command_queue": cl.CL_INVALID_COMMAND_QUEUE,
    "cl_mem": cl.CL_INVALID_MEM_OBJECT,
    "cl_program": cl.CL_INVALID_PROGRAM,
    "cl_kernel": cl.CL_INVALID_KERNEL,
    "cl_event": cl.CL_INVALID_EVENT,
    "cl_sampler": cl.CL_INVALID_SAMPLER,
}
# They return a pointer, or nothing. Functions of absent features say CL_INVALID_OPERATION, which is allowed.
WITHOUT_CODE = ("clSVMAlloc", "clGetExtensionFunctionAddressForPlatform")


def main():
    library = ctypes.CDLL(sys.argv[1])
    find = library.clGetExtensionFunctionAddress
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    read = headers.read()

    def function(name):
        prototype = read.prototypes[name]
        types = [_ctype(parameter.declaration) for parameter in prototype.parameters]
        result = {"cl_int": ctypes.c_int32, "void": None}.get(prototype.result, ctypes.c_void_p)
        return ctypes.CFUNCTYPE(result, *types)(find(name.encode())), prototype

    def call(name, *arguments):
        return function(name)[0](*[_argument(value) for value in arguments])

    platform, device = ctypes.c_void_p(), ctypes.c_void_p()
    assert call("clGetPlatformIDs", 1, platform, None) == 0
    assert call("clGetDeviceIDs", platform.value, cl.CL_DEVICE_TYPE_ALL, 1, device, None) == 0
    devices = ctypes.c_void_p(device.value)
    context = call("clCreateContext", None, 1, devices, None, None, None)
    stale = call("clCreateBuffer", context, 0, 64, None, None)
    assert call("clReleaseMemObject", stale) == 0
    random.seed(1)
    garbage = [0, 1, 8, stale, stale + 1, stale + 64, device.value + 8, platform.value - 8, (1 << 64) - 8]
    garbage += [random.getrandbits(47) & ~7 for _ in range(20)]
    failures, tested = [], 0
    for name in read.table:
        prototype = read.prototypes.get(name)
        if prototype is None or not prototype.parameters or not find(name.encode()):
            continue
        kind = prototype.parameters[0].declaration.split()[0]
        pointer = "*" in prototype.parameters[0].declaration
        if kind not in _HANDLES or pointer:
            continue
        called, _ = function(name)
        tested += 1
        status = ctypes.c_int32()
        by_pointer = prototype.parameters[-1].declaration.startswith("cl_int *")
        for handle in garbage:
            if kind == "cl_platform_id" and handle == 0:
                continue  # NULL stands for the platform
            arguments = [handle] + [0] * (len(prototype.parameters) - 1)
            status.value = 1
            if by_pointer:
                arguments[-1] = ctypes.addressof(status)
            returned = called(*arguments)
            if prototype.result == "void" or name in WITHOUT_CODE:
                continue
            code = status.value if by_pointer else returned
            if code not in (INVALID[kind], cl.CL_INVALID_OPERATION) or (by_pointer and returned):
                failures.append(f"{name}({handle:#x}): {code}")
                break
    assert tested > 80, tested
    print("\n".join(failures))


main()
