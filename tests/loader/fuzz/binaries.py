"""Mutated program binaries through clCreateProgramWithBinary, clBuildProgram and clCreateKernel.

    python -m tests.loader.fuzz.binaries --count 5000 [--seed 0] [--jobs 16]

A third are damaged binaries, which the digest must find. The others are changed inside and have a right
digest again: numbers, texts, object code. A defect is a hang or the end of the host's process while they
are loaded, an error that no specification names, or a damaged binary that is taken. None is launched: a
binary is code, and what was changed on purpose may do anything.
"""

from __future__ import annotations

import ctypes
import random
import sys
import time

from cl_driver import wire
from cl_driver.api import program_binary
from cl_driver.api.generated import enums as cl
from cl_driver.jit.executable import MAGIC, blake2b

from . import children

SECONDS = 20
SOURCE = """
constant int t[4] = {1, 2, 3, 4}; global int gv = 5; global int *global gp = &gv;
kernel void a(global int *o, int v) { o[get_global_id(0)] = v + t[v & 3] + *gp; }
kernel void b(global float *o, local float *l, float4 f) {
    l[get_local_id(0)] = f.x; barrier(CLK_LOCAL_MEM_FENCE); o[get_global_id(0)] = l[0]; printf("x%d", 1); }
kernel void c(read_only image2d_t i, sampler_t s, global float4 *o) {
    o[0] = read_imagef(i, s, (int2)(0, 0)); }
"""
NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    8,
    16,
    64,
    255,
    4096,
    65535,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    1 << 40,
    (1 << 63) - 1,
)
TEXTS = ("", "a", "b", "x\0y", "/" * 100, "-cl-std=CL9")
DIGEST = program_binary.DIGEST
REFUSED = (cl.CL_INVALID_BINARY, cl.CL_INVALID_VALUE)


def damaged(good: bytes, rng: random.Random) -> bytes:
    """Bits changed, or the end cut off."""
    data = bytearray(good)
    for _ in range(rng.randrange(1, 4)):
        if rng.random() < 0.2:
            del data[rng.randrange(1, len(data)) :]
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def places(value, path=()):
    """The paths of all values that are no lists."""
    if isinstance(value, list):
        for i, inner in enumerate(value):
            yield from places(inner, (*path, i))
    else:
        yield path


def other(value, rng: random.Random):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice(NUMBERS) if rng.random() < 0.8 else -rng.choice(NUMBERS)
    if isinstance(value, str):
        return rng.choice((*TEXTS, value + "z"))
    if not isinstance(value, bytes) or not value:
        return value
    data = bytearray(value)
    for _ in range(rng.choice((1, 2, 8))):
        near = rng.choice((len(data), min(len(data), 64)))
        at = rng.randrange(near)
        data[at if rng.random() < 0.7 else len(data) - 1 - rng.randrange(min(len(data), 1200))] = (
            rng.randrange(256)
        )
    return bytes(data) if rng.random() < 0.9 else bytes(data[: rng.randrange(len(data))])


def changed(good: bytes, rng: random.Random) -> bytes:
    """Other values in an executable, and right digests."""
    head, executable = good[: program_binary.BODY], good[program_binary.BODY :]
    values = wire.decode(executable[len(MAGIC) + DIGEST :])
    paths = list(places(values))
    for _ in range(rng.randrange(1, 4)):
        path, at = rng.choice(paths), values
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = other(at[path[-1]], rng)
    body = wire.encode(values)
    rest = head[program_binary.BUILD :] + MAGIC + blake2b(body, digest_size=DIGEST).digest() + body
    return program_binary.MAGIC + blake2b(rest, digest_size=DIGEST).digest() + rest


def case(seed: int, good: bytes) -> tuple[str, bytes]:
    rng = random.Random(seed)
    if rng.random() < 0.3:
        return "damaged", damaged(good, rng)
    try:
        return "changed", changed(good, rng)
    except (wire.WireError, ValueError, OverflowError):  # a value that cannot be written
        return "damaged", damaged(good, rng)


def binary(opencl, context: int) -> bytes:
    """What the driver gives for SOURCE."""
    program = opencl.program(context, SOURCE)
    opencl.build(program, "-cl-std=CL3.0")
    (size,) = opencl.words("clGetProgramInfo", program, cl.CL_PROGRAM_BINARY_SIZES)
    data = ctypes.create_string_buffer(size)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(data))
    opencl.ok("clGetProgramInfo", program, cl.CL_PROGRAM_BINARIES, 8, pointers, None)
    opencl.ok("clReleaseProgram", program)
    return data.raw


def try_one(opencl, context: int, kind: str, data: bytes) -> tuple[str, str]:
    """(outcome, what is wrong about it or "")."""
    start = time.monotonic()
    device, status = opencl.device(), ctypes.c_int32()  # of the one device
    buffer = ctypes.create_string_buffer(data, len(data))
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(buffer))
    program, result = opencl.call(
        "clCreateProgramWithBinary", context, 1, [device], [len(data)], pointers, status
    )
    if result != cl.CL_SUCCESS:
        wrong = "" if result in REFUSED else f"clCreateProgramWithBinary: {result}"
        return f"{kind}, not created", wrong
    wrong = "a damaged binary was taken" if kind == "damaged" else ""
    result = opencl.call("clBuildProgram", program, 0, None, None, None, None)
    outcome = f"{kind}, {'loaded' if result == cl.CL_SUCCESS else 'not built'}"
    if result == cl.CL_SUCCESS:
        for name in opencl.text("clGetProgramInfo", program, cl.CL_PROGRAM_KERNEL_NAMES).split(";"):
            kernel, created = opencl.call("clCreateKernel", program, name.encode("utf-8", "replace"))
            if created == cl.CL_SUCCESS:
                size, query = ctypes.c_uint64(), cl.CL_KERNEL_PRIVATE_MEM_SIZE
                opencl.call("clGetKernelWorkGroupInfo", kernel, device, query, 8, size, None)
                opencl.ok("clReleaseKernel", kernel)
    elif result not in (cl.CL_BUILD_PROGRAM_FAILURE, cl.CL_INVALID_BINARY, cl.CL_OUT_OF_HOST_MEMORY):
        wrong = wrong or f"clBuildProgram: {result}"
    opencl.ok("clReleaseProgram", program)
    if time.monotonic() - start > SECONDS:
        wrong = wrong or f"{time.monotonic() - start:.0f} s"
    return outcome, wrong


def child(first: int, last: int, args) -> None:
    from tests.loader.opencl import OpenCL

    opencl = OpenCL("libOpenCL.so.1")
    context = opencl.context()
    good = binary(opencl, context)
    for seed in range(first, last):
        children.begin(seed)
        kind, data = case(seed, good)
        outcome, wrong = try_one(opencl, context, kind, data)
        if wrong:
            children.defect(wrong)
        children.end(outcome)


def main() -> int:
    return children.main("tests.loader.fuzz.binaries", __doc__, child)


if __name__ == "__main__":
    sys.exit(main())
