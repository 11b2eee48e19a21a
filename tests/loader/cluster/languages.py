"""Programs for this machine's device and a worker, which offers less:
python -m tests.loader.cluster.languages SCENE.
Scenes end with an exception where something is not as it should be."""

from __future__ import annotations

import struct
import sys

from cl_driver.api.generated import enums as cl

from .host import Host

FIND = """
#ifdef __opencl_c_subgroups
#define HAS 1
#else
#define HAS 0
#endif
int has(void) { return HAS * 1000 + __OPENCL_VERSION__; }
"""
STORE = "kernel void store(global int *x) { x[get_global_id(0)] = has(); }"
NEEDS = """
#ifndef cl_khr_subgroups
#error no sub-groups
#endif
kernel void store(global int *x) { x[get_global_id(0)] = 1; }
"""
FOUND = (1310, 300)  # here, by a worker
OPTIONS = b"-cl-std=CL3.0"


def _stored(host: Host, queue: int) -> int:
    kernel, x = host.kernel("store"), host.buffer()
    host.launch(queue, kernel, 100, [x])
    (found,) = set(host.read(queue, x, 100))
    for what, handle in (("Kernel", kernel), ("MemObject", x)):
        host.cl.ok(f"clRelease{what}", handle)
    return found


def _check_stored(host: Host) -> None:
    assert tuple(_stored(host, queue) for queue in host.queues) == FOUND


def _build_info(host: Host, device: int, what: int) -> int:
    return int.from_bytes(
        host.cl.info("clGetProgramBuildInfo", host.program, device, what), "little", signed=True
    )


def macros() -> None:
    """They are the device's, whatever the others of the context are and how the program came to be."""
    host = Host(0, 2)
    host.program = host.cl.program(host.context, FIND + STORE)
    host.cl.build(host.program, OPTIONS.decode())
    _check_stored(host)
    for device in host.devices:
        given = host.cl.text("clGetProgramBuildInfo", host.program, device, cl.CL_PROGRAM_BUILD_OPTIONS)
        assert given == OPTIONS.decode()

    host.program = host.cl.program(host.context, '#include "find.h"\n' + STORE)
    header = host.cl.program(host.context, FIND)
    names, headers = [b"find.h"], [header]
    host.cl.ok("clCompileProgram", host.program, 0, None, OPTIONS, 1, headers, names, None, None)
    host.program = host.cl.make("clLinkProgram", host.context, 0, None, None, 1, [host.program], None, None)
    _check_stored(host)

    for device, queue, found in zip(host.devices, host.queues, FOUND, strict=True):
        host.program = host.cl.program(host.context, FIND + STORE)
        host.cl.ok("clBuildProgram", host.program, 1, [device], OPTIONS, None, None)
        assert _stored(host, queue) == found


def failures() -> None:
    """What a worker lacks fails its build, and no other."""
    host = Host(0, 2)
    host.program = host.cl.program(host.context, NEEDS)
    status = host.cl.call("clBuildProgram", host.program, 0, None, OPTIONS, None, None)
    assert status == cl.CL_BUILD_PROGRAM_FAILURE
    here, there = (_build_info(host, device, cl.CL_PROGRAM_BUILD_STATUS) for device in host.devices)
    assert (here, there) == (cl.CL_BUILD_SUCCESS, cl.CL_BUILD_ERROR)
    log = host.cl.text("clGetProgramBuildInfo", host.program, host.devices[1], cl.CL_PROGRAM_BUILD_LOG)
    assert "no sub-groups" in log
    assert not host.cl.text("clGetProgramBuildInfo", host.program, host.devices[0], cl.CL_PROGRAM_BUILD_LOG)
    assert _stored(host, host.queues[0]) == 1


def built_for_one() -> None:
    """A program that was built for this machine's device has nothing that a worker could execute, and the
    other way round."""
    for built, other in ((0, 1), (1, 0)):
        host = Host(0, 2)
        host.program = host.cl.program(host.context, FIND + STORE)
        host.cl.ok("clBuildProgram", host.program, 1, [host.devices[built]], OPTIONS, None, None)
        status = _build_info(host, host.devices[other], cl.CL_PROGRAM_BUILD_STATUS)
        assert status == cl.CL_BUILD_NONE
        kernel, x = host.kernel("store"), host.buffer()
        host.cl.ok("clSetKernelArg", kernel, 0, 8, struct.pack("<Q", x))
        launch = ("clEnqueueNDRangeKernel", host.queues[other], kernel, 1, None, [100], None, 0, None, None)
        assert host.cl.fails(*launch) == cl.CL_INVALID_PROGRAM_EXECUTABLE
        assert _stored(host, host.queues[built]) == FOUND[built]


def properties() -> None:
    """Contexts of workers have none that need code of another kind."""
    host = Host(0)
    for name, value in ((cl.CL_CONTEXT_MEMORY_INITIALIZE_KHR, 1), (cl.CL_CONTEXT_TERMINATE_KHR, 1)):
        for devices in (host.every[1:], host.every):
            status = host.cl.fails("clCreateContext", [name, value, 0], len(devices), devices, None, None)
            assert status == cl.CL_INVALID_PROPERTY
        host.cl.make("clCreateContext", [name, value, 0], 1, host.devices, None, None)
        host.cl.make("clCreateContext", [name, 0, 0], len(host.every), host.every, None, None)


def versions() -> None:
    """Of OpenCL C, what workers say they have is compiled for them, with its macros."""
    host = Host(2)
    raw = host.cl.info("clGetDeviceInfo", host.devices[0], cl.CL_DEVICE_OPENCL_C_ALL_VERSIONS)
    every = [int.from_bytes(raw[at : at + 4], "little") for at in range(0, len(raw), 68)]
    assert [version >> 12 for version in every] == [1 << 10, 1 << 10 | 1, 1 << 10 | 2, 3 << 10]
    for version in every:
        major, minor = version >> 22, version >> 12 & 0x3FF
        name = f"CL{major}.{minor}"
        host.program = host.cl.program(
            host.context,
            "kernel void store(global int *x) {"
            "x[get_global_id(0)] = __OPENCL_C_VERSION__ * 1000 + __OPENCL_VERSION__; }",
        )
        host.cl.build(host.program, f"-cl-std={name}")
        assert _stored(host, host.queue) == (major * 100 + minor * 10) * 1000 + 300, name


if __name__ == "__main__":
    globals()[sys.argv[1]]()
