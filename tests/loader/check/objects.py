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
from tests.pure.spirv.assembler import assemble

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


def read_only_written(session: Session) -> None:
    """What a kernel has written to a buffer that is read-only is there: the next one reads it."""
    buffer = session.buffer(4 * N, cl.CL_MEM_READ_ONLY)
    session.launch(kernel(session, SET), N, buffer, local=N)
    copies(session, buffer)
    found = session.read(buffer, np.int32, N)
    assert (found == 1).all(), found


def read_only_outside(session: Session) -> None:
    """Past the end it is dropped all the same."""
    buffer = session.buffer(np.zeros(N, np.int32), cl.CL_MEM_READ_ONLY)
    session.launch(kernel(session, SET), 2 * N, buffer, local=2 * N)


SCALE = """kernel void k(global int *to, constant int *by, global int *again) {
  int i = get_global_id(0);
  to[i] = by[i];
  if (i < 3) again[i] = 1; }"""


def constants(session: Session, again: int | None) -> None:
    """A kernel has constant memory, and writes to other memory or, by a sub-buffer, to a half of it."""
    buffer = session.buffer(np.zeros(1024, np.int32))
    region = [4 * again if again else 0, 1024]
    part = session.cl.make("clCreateSubBuffer", buffer, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, region)
    other = Buffer(session.made("clReleaseMemObject", part))
    table = session.made(
        "clReleaseMemObject",
        session.cl.make("clCreateSubBuffer", buffer, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, [0, 1024]),
    )
    session.launch(kernel(session, SCALE), N, empty(session), Buffer(table), other, local=N)


def constant_memory(session: Session) -> None:
    constants(session, 512)


def constant_written(session: Session) -> None:
    constants(session, None)


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


PIXELS = """
constant sampler_t nearest = CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST | CLK_NORMALIZED_COORDS_FALSE;
kernel void k(read_only image2d_t from, write_only image2d_array_t to, int dx, int dlayer) {
  int i = get_global_id(0);
  float4 pixel = read_imagef(from, (int2)(i + dx, 3)) + read_imagef(from, nearest, (int2)(i + 9, -3));
  write_imagef(to, (int4)(i, 3, 1 + dlayer, 0), pixel);
}
"""


def pixels(session: Session, dx: int, layer: int) -> None:
    """Reads a row of an image, dx to the right, and writes one of another, so many layers too far."""
    size = (N, 4)
    rgba = (ctypes.c_uint32 * 2)(cl.CL_RGBA, cl.CL_UNORM_INT8)
    images = []
    for type_, layers in ((cl.CL_MEM_OBJECT_IMAGE2D, 0), (cl.CL_MEM_OBJECT_IMAGE2D_ARRAY, 2)):
        desc = (ctypes.c_uint64 * 9)(type_, *size, 0, layers)
        images.append(session.cl.make("clCreateImage", session.context, 0, rgba, desc, None))
    source, target = (Buffer(session.made("clReleaseMemObject", image)) for image in images)
    session.launch(kernel(session, PIXELS), N, source, target, np.int32(dx), np.int32(layer), local=N)


def pixels_inside(session: Session) -> None:
    pixels(session, 0, 0)


def pixel_outside(session: Session) -> None:
    pixels(session, 2, 0)


def pixel_before(session: Session) -> None:
    pixels(session, -1, 0)


def layer_outside(session: Session) -> None:
    pixels(session, 0, 1)


SHIFT = """
OpEntryPoint Kernel %k "k" %id
OpDecorate %id BuiltIn GlobalInvocationId
%void = OpTypeVoid
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%ids = OpTypeVector %i64 3
%idptr = OpTypePointer Input %ids
%id = OpVariable %idptr Input
%ptr = OpTypePointer CrossWorkgroup %i32
%fn = OpTypeFunction %void %ptr
%c_20 = OpConstant %i32 20
%c_1 = OpConstant %i32 1
%k = OpFunction %void None %fn
%p = OpFunctionParameter %ptr
%entry = OpLabel
%v = OpLoad %ids %id
%x = OpCompositeExtract %i64 %v 0
%i = OpUConvert %i32 %x
%at = OpPtrAccessChain %ptr %p %x
%count = OpIAdd %i32 %i %c_20
%s = OpShiftLeftLogical %i32 %c_1 %count
OpStore %at %s Aligned 4
OpReturn
OpFunctionEnd
"""


def shift(session: Session, items: int) -> None:
    """Shifts by up to 20 and the last item's number, in a module of no OpenCL C."""
    il = assemble("\n".join(("OpCapability Addresses", "OpCapability Kernel", "OpCapability Int64",
                             "OpMemoryModel Physical64 OpenCL", SHIFT)))  # fmt: skip
    program = session.made(
        "clReleaseProgram", session.cl.make("clCreateProgramWithIL", session.context, il, len(il))
    )
    session.cl.build(program, None)
    session.launch(session.kernel(program), items, empty(session), local=items)


def shift_in_range(session: Session) -> None:
    shift(session, 12)


def shift_by_more(session: Session) -> None:
    shift(session, N)


FUNCTIONS = (
    unwritten, written, written_in_part, filled, mapped, copied, copied_unwritten, written_by_kernel,
    host_pointer, sub_buffer, read_only, read_only_written, read_only_outside, write_only,
    constant_memory, constant_written,
    svm_right, svm_too_short, svm_freed, told_once,
    pixels_inside, pixel_outside, pixel_before, layer_outside, shift_in_range, shift_by_more,
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
