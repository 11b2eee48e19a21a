"""Runs what is checked of memory objects in a process of its own, and gives what the log got of each.

python -m tests.loader.check.objects LOADER > {name: text}

as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

import numpy as np

from cl_driver.api.generated import enums as cl
from tests.loader.core.session import Buffer, Session
from tests.loader.opencl import OpenCL

COPY = "kernel void k(global int *to, global const int *from) { int i = get_global_id(0); to[i] = from[i]; }"
SET = "kernel void k(global int *to) { to[get_global_id(0)] = 1; }"
GET = "kernel void k(global int *to, global const int *from) { to[0] = from[get_global_id(0)]; }"
N = 16
running = ""  # the function


def kernel(session: Session, source: str) -> int:
    """A kernel of a program of the function's own: what one does is told once."""
    return session.kernel(f"{source}\n// {running}\n")


def copies(session: Session, source: int, target: int | None = None) -> None:
    """Has a kernel read all of a buffer."""
    target = session.buffer(4 * N) if target is None else target
    session.launch(kernel(session, COPY), N, target, source, local=N)


def empty(session: Session) -> Buffer:
    """A buffer that nobody has written to."""
    return session.buffer(4 * N)


def unwritten(session: Session) -> None:
    copies(session, empty(session))


def written(session: Session) -> None:
    buffer = empty(session)
    session.write(buffer, np.zeros(N, np.int32))
    copies(session, buffer)


def written_in_part(session: Session) -> None:
    buffer = empty(session)
    session.write(buffer, np.zeros(N // 2, np.int32))
    copies(session, buffer)


def filled(session: Session) -> None:
    buffer, pattern = empty(session), ctypes.c_int32(7)
    session.cl.ok(
        "clEnqueueFillBuffer",
        session.queue,
        buffer,
        ctypes.addressof(pattern),
        4,
        0,
        4 * N,
        0,
        None,
        None,
    )
    copies(session, buffer)


def mapped(session: Session) -> None:
    buffer = empty(session)
    pointer = session.cl.make(
        "clEnqueueMapBuffer", session.queue, buffer, 1, cl.CL_MAP_WRITE, 0, 4 * N, 0, None, None
    )
    ctypes.memset(pointer, 1, 4 * N)
    session.cl.ok("clEnqueueUnmapMemObject", session.queue, buffer, pointer, 0, None, None)
    copies(session, buffer)


def copy_of(session: Session, source: int) -> Buffer:
    buffer = empty(session)
    session.cl.ok("clEnqueueCopyBuffer", session.queue, source, buffer, 0, 0, 4 * N, 0, None, None)
    return buffer


def copied(session: Session) -> None:
    copies(session, copy_of(session, session.buffer(np.zeros(N, np.int32))))


def copied_unwritten(session: Session) -> None:
    copies(session, copy_of(session, empty(session)))


def written_by_kernel(session: Session) -> None:
    buffer = empty(session)
    session.launch(kernel(session, SET), N, buffer, local=N)
    copies(session, buffer)


def host_pointer(session: Session) -> None:
    memory = np.zeros(N, np.int32)
    flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_USE_HOST_PTR
    buffer = Buffer(session.cl.make("clCreateBuffer", session.context, flags, 4 * N, memory.ctypes.data))
    copies(session, buffer)
    session.finish()
    session.cl.ok("clReleaseMemObject", buffer)


def sub_buffer(session: Session) -> None:
    whole = session.buffer(np.zeros(1024, np.int32))
    region = [1024, 4 * (N - 1)]
    part = session.cl.make("clCreateSubBuffer", whole, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, region)
    copies(session, Buffer(part))
    session.finish()
    session.cl.ok("clReleaseMemObject", part)


def read_only(session: Session) -> None:
    buffer = session.buffer(np.zeros(N, np.int32), cl.CL_MEM_READ_ONLY)
    session.launch(kernel(session, SET), N, buffer, local=N)


def write_only(session: Session) -> None:
    copies(session, session.buffer(np.zeros(N, np.int32), cl.CL_MEM_WRITE_ONLY))


def svm(session: Session, count: int, is_freed: bool) -> None:
    alloc, free = session.cl.library.clSVMAlloc, session.cl.library.clSVMFree
    alloc.restype = ctypes.c_void_p
    alloc.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint32]
    free.restype, free.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
    pointer = alloc(session.context, cl.CL_MEM_READ_WRITE, 4 * count, 0)
    setter = kernel(session, SET)
    session.cl.ok("clSetKernelArgSVMPointer", setter, 0, pointer)
    if is_freed:
        free(session.context, pointer)
    session.cl.ok("clEnqueueNDRangeKernel", session.queue, setter, 1, None, [N], [N], 0, None, None)
    session.finish()
    if not is_freed:
        free(session.context, pointer)


def svm_right(session: Session) -> None:
    svm(session, N, False)


def svm_too_short(session: Session) -> None:
    svm(session, N - 1, False)


def svm_freed(session: Session) -> None:
    svm(session, N, True)


def told_once(session: Session) -> None:
    getter, target, source = (
        kernel(session, GET),
        session.buffer(4 * N),
        session.buffer(np.zeros(N, np.int32)),
    )
    for _ in range(3):
        session.launch(getter, N + 1, target, source, local=N + 1)


FUNCTIONS = (
    unwritten, written, written_in_part, filled, mapped, copied, copied_unwritten, written_by_kernel,
    host_pointer, sub_buffer, read_only, write_only, svm_right, svm_too_short, svm_freed, told_once,
)  # fmt: skip


def main() -> None:
    """The program."""
    global running
    log = Path(os.environ["CL_DRIVER_LOG_FILE"])
    found = {}
    for function in FUNCTIONS:
        running = function.__name__
        session = Session(OpenCL(sys.argv[1]))
        log.write_text("")
        function(session)
        session.finish()
        found[function.__name__] = log.read_text()
        session.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
