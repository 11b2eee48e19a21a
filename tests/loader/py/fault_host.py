"""A Python whose kernel faults. Argument: when faulthandler is enabled, before or after the first kernel."""

import ctypes
import faulthandler
import resource
import sys

cl = ctypes.CDLL("libOpenCL.so.1")
for name in ("clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource", "clCreateKernel"):
    getattr(cl, name).restype = ctypes.c_void_p
SOURCE = b"kernel void k(ulong far) { if (far) *(global int *)far = 1; }"


def launch(queue, kernel, far: int) -> None:
    value, one = ctypes.c_uint64(far), ctypes.c_size_t(1)
    assert cl.clSetKernelArg(kernel, 0, ctypes.c_size_t(8), ctypes.byref(value)) == 0
    assert cl.clEnqueueNDRangeKernel(queue, kernel, 1, None, ctypes.byref(one), None, 0, None, None) == 0
    assert cl.clFinish(queue) == 0


def main(when: str) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    platform, device, error = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int32()
    assert cl.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0
    everything = ctypes.c_uint64(0xFFFFFFFF)
    assert cl.clGetDeviceIDs(platform, everything, 1, ctypes.byref(device), None) == 0
    context = cl.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(error))
    context = ctypes.c_void_p(context)
    queue = ctypes.c_void_p(cl.clCreateCommandQueue(context, device, ctypes.c_uint64(0), ctypes.byref(error)))
    source = ctypes.c_char_p(SOURCE)
    program = cl.clCreateProgramWithSource(context, 1, ctypes.byref(source), None, ctypes.byref(error))
    program = ctypes.c_void_p(program)
    assert cl.clBuildProgram(program, 0, None, None, None, None) == 0
    kernel = ctypes.c_void_p(cl.clCreateKernel(program, b"k", ctypes.byref(error)))
    if when == "before":
        faulthandler.enable()
    launch(queue, kernel, 0)
    if when == "after":
        faulthandler.enable()
    launch(queue, kernel, 0x10000)


main(sys.argv[1])
