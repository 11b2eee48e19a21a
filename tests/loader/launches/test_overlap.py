"""Launches whose arguments are memory of one another, of a kernel that accumulates in memory: what a loop
reads is what it wrote (native_shim/src/kernel/variant_choice.c, cl_driver/passes/loops/promote_memory.py)."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

SOURCE = """kernel void k(global int *c, global const int *a, int n) {
    int i = get_global_id(0);
    for (int k = 0; k < n; k++) c[8 * i + 3] += a[8 * i + k];
}"""
ITEMS, N = 40, 8
WORDS = 8 * ITEMS


def expected(c: np.ndarray, a: np.ndarray) -> None:
    """What the kernel does, one work-item after the other; c and a may be views of the same memory."""
    for i in range(ITEMS):
        for k in range(N):
            c[8 * i + 3] += a[8 * i + k]


@pytest.fixture(scope="module")
def parts(opencl):
    """(context, queue, kernel)"""
    device = opencl.device()
    context = opencl.context(device)
    queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
    return context, queue, opencl.kernel(context, SOURCE)


def run(opencl, parts, local: int) -> None:
    _, queue, kernel = parts
    number = ctypes.c_int(N)
    opencl.ok("clSetKernelArg", kernel, 2, 4, ctypes.addressof(number))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [ITEMS], [local], 0, None, None)
    opencl.ok("clFinish", queue)


def set_buffer(opencl, kernel: int, index: int, buffer: int) -> None:
    handle = ctypes.c_void_p(buffer)
    opencl.ok("clSetKernelArg", kernel, index, 8, ctypes.addressof(handle))


WAYS = ["apart", "the same", "sub-buffers", "one host", "parent"]


@pytest.mark.parametrize("local", [1, 2, 8, 40])
@pytest.mark.parametrize("way", WAYS)
def test_buffers(opencl, parts, way, local):
    context, _, kernel = parts
    rng = np.random.default_rng(len(way))
    memory = np.frombuffer(bytearray(4096 + 3 * 4 * WORDS), np.int32)
    start = -memory.ctypes.data % 4096 // 4  # whole pages are used as they are
    memory = memory[start : start + 3 * WORDS]
    memory[:] = rng.integers(-99, 99, 3 * WORDS)
    want = memory.copy()
    flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_USE_HOST_PTR
    whole = opencl.make("clCreateBuffer", context, flags, memory.nbytes, memory.ctypes.data)

    def sub(first: int, count: int) -> int:
        region = [4 * first, 4 * count]
        return opencl.make("clCreateSubBuffer", whole, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, region)

    if way == "apart":
        buffers, views = [sub(0, WORDS), sub(WORDS, WORDS)], [want[:WORDS], want[WORDS:]]
    elif way == "the same":
        buffers, views = [whole, whole], [want, want]
    elif way == "sub-buffers":
        buffers, views = [sub(0, WORDS), sub(0, WORDS)], [want, want]
    elif way == "one host":
        other = opencl.make("clCreateBuffer", context, flags, memory.nbytes, memory.ctypes.data)
        buffers, views = [whole, other], [want, want]
    else:
        buffers, views = [sub(WORDS, WORDS), whole], [want[WORDS:], want]
    for index, buffer in enumerate(buffers):
        set_buffer(opencl, kernel, index, buffer)
    run(opencl, parts, local)
    expected(*views)
    read = np.zeros_like(memory)
    queue = parts[1]
    opencl.ok("clEnqueueReadBuffer", queue, whole, 1, 0, read.nbytes, read.ctypes.data, 0, None, None)
    assert np.array_equal(read, want)


@pytest.mark.parametrize("offset", [0, 8 * 4, None])
def test_shared_virtual_memory(opencl, parts, offset):
    """Two pointers into one allocation, and pointers into two."""
    context, _, kernel = parts
    library = opencl.library
    library.clSVMAlloc.restype = ctypes.c_void_p
    library.clSVMAlloc.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint32]
    library.clSVMFree.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.clSetKernelArgSVMPointer.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
    size = 8 * WORDS
    flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_SVM_FINE_GRAIN_BUFFER
    addresses = [library.clSVMAlloc(context, flags, size, 0) for _ in range(2)]
    memory = [np.frombuffer((ctypes.c_char * size).from_address(at), np.int32) for at in addresses]
    for number, words in enumerate(memory):
        words[:] = np.random.default_rng(number).integers(-99, 99, words.size)
    want = [words.copy() for words in memory]
    at = [addresses[0], addresses[1] if offset is None else addresses[0]]
    for index, address in enumerate(at):
        assert library.clSetKernelArgSVMPointer(kernel, index, address) == 0
    run(opencl, parts, 8)
    expected(want[0], want[1] if offset is None else want[0])
    assert all(np.array_equal(a, b) for a, b in zip(memory, want, strict=True))
    del memory
    for address in addresses:
        library.clSVMFree(context, address)
