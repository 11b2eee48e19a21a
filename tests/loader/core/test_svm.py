"""Shared virtual memory: coarse, fine and the system's own (API specification, 5.6)."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

ITEMS, SIZE = 1024, 16384
FINE = cl.CL_MEM_SVM_FINE_GRAIN_BUFFER
ATOMICS = FINE | cl.CL_MEM_SVM_ATOMICS
KERNEL = "kernel void k(global int *p, int n) { int i = get_global_id(0); p[i] = p[i] * 2 + n; }"
LIST = """
typedef struct node { int value; global struct node *next; } node;
kernel void make(global node *nodes) {
  int i = get_global_id(0), n = get_global_size(0);
  nodes[i].value = i * 3; nodes[i].next = i + 1 < n ? nodes + i + 1 : 0;
}
kernel void sum(global node *first, global long *out) {
  for (long s = 0; first; first = first->next) { s += first->value; *out = s; }
}"""


@pytest.fixture
def allocate(session):
    """allocate(size, flags): an address of shared memory, freed after the test."""
    alloc, free = session.cl.library.clSVMAlloc, session.cl.library.clSVMFree
    alloc.restype, alloc.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint],
    )
    free.restype, free.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
    made = []

    def make(size: int, flags: int = 0, alignment: int = 0) -> int | None:
        made.append(alloc(session.context, cl.CL_MEM_READ_WRITE | flags, size, alignment))
        return made[-1]

    yield make
    session.finish()
    for address in made:
        free(session.context, address)


def view(address: int, dtype=np.int32, count: int = ITEMS) -> np.ndarray:
    """The memory at an address as an array."""
    raw = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(raw, dtype)


def launch(session, kernel, items, *arguments) -> None:
    """Addresses (ints) as pointers, numpy scalars by value."""
    for index, value in enumerate(arguments):
        if isinstance(value, int):
            session.cl.ok("clSetKernelArgSVMPointer", kernel, index, value)
        else:
            session.cl.ok("clSetKernelArg", kernel, index, value.nbytes, value.tobytes())
    session.cl.ok("clEnqueueNDRangeKernel", session.queue, kernel, 1, None, [items], None, 0, None, None)


def test_allocation(session, allocate):
    """NULL for sizes and alignments that there are not; alignment as asked for."""
    for power in range(8):
        assert allocate(100, alignment=1 << power) % (1 << power) == 0
    assert allocate(100) % 128 == 0  # of the largest type
    assert not allocate(0) and not allocate(100, alignment=3) and not allocate(100, alignment=1 << 20)
    most = session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_MAX_MEM_ALLOC_SIZE)
    assert not allocate(most + 1)
    assert not allocate(100, cl.CL_MEM_SVM_ATOMICS)  # only together with fine grain


def test_coarse_memory_is_mapped(session, allocate):
    address, where = allocate(SIZE), (0, None, None)
    session.cl.ok("clEnqueueSVMMap", session.queue, cl.CL_TRUE, cl.CL_MAP_WRITE, address, SIZE, *where)
    view(address)[:] = np.arange(ITEMS)
    session.cl.ok("clEnqueueSVMUnmap", session.queue, address, *where)
    launch(session, session.kernel(KERNEL), ITEMS, address, np.int32(5))
    session.cl.ok("clEnqueueSVMMap", session.queue, cl.CL_TRUE, cl.CL_MAP_READ, address, SIZE, *where)
    assert np.array_equal(view(address), 2 * np.arange(ITEMS) + 5)
    session.cl.ok("clEnqueueSVMUnmap", session.queue, address, *where)


def test_a_pointer_into_the_middle(session, allocate):
    address = allocate(SIZE, FINE)
    view(address)[:] = 1
    launch(session, session.kernel(KERNEL), 100, address + 400, np.int32(1))
    session.finish()
    assert np.array_equal(np.flatnonzero(view(address) == 3), np.arange(100, 200))


def test_lists_go_both_ways(session, allocate):
    """The device makes a list that the host walks, and the host one that the device walks."""
    node = np.dtype([("value", "<i4"), ("pad", "<i4"), ("next", "<u8")])
    nodes, out = allocate(ITEMS * 16, FINE), allocate(8, FINE)
    program = session.program(LIST)
    launch(session, session.kernel(program, "make"), ITEMS, nodes)
    session.finish()
    walked, address = [], nodes
    while address:
        entry = view(address, node, 1)[0]
        walked.append(int(entry["value"]))
        address = int(entry["next"])
    assert walked == [3 * i for i in range(ITEMS)]
    order = np.random.default_rng(2).permutation(ITEMS)
    entries = view(nodes, node)
    entries["next"][order[:-1]] = nodes + 16 * order[1:]
    entries["next"][order[-1]] = 0
    view(out, np.int64, 1)[0] = -1
    launch(session, session.kernel(program, "sum"), 1, nodes + 16 * int(order[0]), out)
    session.finish()
    assert view(out, np.int64, 1)[0] == 3 * ITEMS * (ITEMS - 1) // 2


def test_memory_that_only_pointers_lead_to(session, allocate):
    """CL_KERNEL_EXEC_INFO_SVM_PTRS names it (5.9.2)."""
    source = "kernel void k(global int **table) { int i = get_global_id(0); table[i % 4][i] = i; }"
    table, rows = allocate(32), [allocate(SIZE) for _ in range(4)]
    where, kernel = (0, None, None), session.kernel(source.replace("int **", "int * global *"))
    session.cl.ok("clEnqueueSVMMap", session.queue, cl.CL_TRUE, cl.CL_MAP_WRITE, table, 32, *where)
    view(table, np.uint64, 4)[:] = rows
    session.cl.ok("clEnqueueSVMUnmap", session.queue, table, *where)
    session.cl.ok("clSetKernelExecInfo", kernel, cl.CL_KERNEL_EXEC_INFO_SVM_PTRS, 32, rows)
    launch(session, kernel, ITEMS, table)
    for number, row in enumerate(rows):
        session.cl.ok("clEnqueueSVMMap", session.queue, cl.CL_TRUE, cl.CL_MAP_READ, row, SIZE, *where)
        assert np.array_equal(view(row)[number::4], np.arange(number, ITEMS, 4))
        session.cl.ok("clEnqueueSVMUnmap", session.queue, row, *where)


def test_the_systems_memory(session):
    """Any memory of the process, where the device has fine-grained system SVM."""
    told = session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_SVM_CAPABILITIES)
    if not told & cl.CL_DEVICE_SVM_FINE_GRAIN_SYSTEM:
        pytest.skip("no fine-grained system SVM")
    kernel, data = session.kernel(KERNEL), np.arange(ITEMS, dtype=np.int32)
    system = np.uint32(cl.CL_TRUE).tobytes()
    session.cl.ok("clSetKernelExecInfo", kernel, cl.CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, 4, system)
    launch(session, kernel, ITEMS, data.ctypes.data, np.int32(7))
    session.finish()
    assert np.array_equal(data, 2 * np.arange(ITEMS) + 7)


def test_host_and_kernel_at_once(session, allocate):
    """Fine-grained memory with atomics: a kernel waits for the host's word, and the host for its answer."""
    source = """
        kernel void k(volatile global atomic_int *word, volatile global atomic_int *answer) {
          while (atomic_load_explicit(word, memory_order_acquire, memory_scope_all_svm_devices) == 0);
          atomic_store_explicit(answer, 42, memory_order_release, memory_scope_all_svm_devices);
        }"""
    word, answer = allocate(4, ATOMICS), allocate(4, ATOMICS)
    view(word, count=1)[0] = view(answer, count=1)[0] = 0
    launch(session, session.kernel(source), 1, word, answer)
    session.cl.ok("clFlush", session.queue)
    assert view(answer, count=1)[0] == 0
    view(word, count=1)[0] = 1
    session.finish()
    assert view(answer, count=1)[0] == 42


def test_bytes_beside_one_another(session, allocate):
    """Kernels that write every other byte, at once in two queues, leave the others alone."""
    address = allocate(SIZE, FINE)
    view(address, np.uint8, SIZE)[:] = 0
    source = "kernel void k(global uchar *p, uchar n) { int i = get_global_id(0) * 2; p[i + n % 2] += n; }"
    kernels, queues = [session.kernel(source) for _ in range(2)], [session.queue, session.new_queue()]
    for _ in range(10):
        for number, (kernel, queue) in enumerate(zip(kernels, queues, strict=True), 1):
            session.cl.ok("clSetKernelArgSVMPointer", kernel, 0, address)
            session.cl.ok("clSetKernelArg", kernel, 1, 1, bytes([number]))
            session.cl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [SIZE // 2], None, 0, None, None)
    for queue in queues:
        session.finish(queue)
    assert np.array_equal(view(address, np.uint8, SIZE), np.tile([20, 10], SIZE // 2))


def test_commands(session, allocate):
    """Copies and fills, also from and to the host's own memory; what overlaps is refused (5.6)."""
    a, b, host, where = (
        allocate(SIZE, FINE),
        allocate(SIZE, FINE),
        np.arange(ITEMS, dtype=np.int32),
        (0, None, None),
    )
    session.cl.ok("clEnqueueSVMMemcpy", session.queue, cl.CL_FALSE, a, host.ctypes.data, 4096, *where)
    session.cl.ok("clEnqueueSVMMemcpy", session.queue, cl.CL_FALSE, b, a, 4096, *where)
    session.cl.ok("clEnqueueSVMMemFill", session.queue, b + 16, b"\1\0\0\0\2\0\0\0", 8, 32, *where)
    session.cl.ok("clEnqueueSVMMigrateMem", session.queue, 2, [a, b], [0, SIZE], 0, *where)
    result = np.zeros(ITEMS, np.int32)
    session.cl.ok("clEnqueueSVMMemcpy", session.queue, cl.CL_TRUE, result.ctypes.data, b, 4096, *where)
    expected = np.arange(ITEMS)
    expected[4:12] = [1, 2] * 4
    assert np.array_equal(result, expected)
    call = ("clEnqueueSVMMemcpy", session.queue, cl.CL_TRUE)
    assert session.cl.fails(*call, a + 100, a, 4096, *where) == cl.CL_MEM_COPY_OVERLAP
    assert session.cl.fails(*call, None, a, 4096, *where) == cl.CL_INVALID_VALUE
    fill = ("clEnqueueSVMMemFill", session.queue, a)
    assert session.cl.fails(*fill, b"123", 3, 12, *where) == cl.CL_INVALID_VALUE
    assert session.cl.fails(*fill, b"1234", 4, 10, *where) == cl.CL_INVALID_VALUE


def test_buffers_on_shared_memory(session, allocate):
    """A buffer made with CL_MEM_USE_HOST_PTR of shared memory is that memory (5.2.1)."""
    address = allocate(SIZE, FINE)
    view(address)[:] = np.arange(ITEMS)
    handle = session.cl.make("clCreateBuffer", session.context, cl.CL_MEM_USE_HOST_PTR, SIZE, address)
    session.made("clReleaseMemObject", handle)
    assert session.cl.integer("clGetMemObjectInfo", handle, cl.CL_MEM_USES_SVM_POINTER) == cl.CL_TRUE
    kernel = session.kernel(KERNEL)
    session.cl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(handle))
    session.cl.ok("clSetKernelArg", kernel, 1, 4, np.int32(1).tobytes())
    session.cl.ok("clEnqueueNDRangeKernel", session.queue, kernel, 1, None, [ITEMS], None, 0, None, None)
    session.finish()
    assert np.array_equal(view(address), 2 * np.arange(ITEMS) + 1)
