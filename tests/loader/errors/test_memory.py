"""Error codes and answers of buffers (5.2 to 5.7)."""

import ctypes
import itertools
import resource
import threading
from pathlib import Path

import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.opencl import ContextNotify, Notify
from tests.marks import needs_kernel

KERNEL_ACCESS = (cl.CL_MEM_READ_WRITE, cl.CL_MEM_WRITE_ONLY, cl.CL_MEM_READ_ONLY)
HOST_ACCESS = (cl.CL_MEM_HOST_WRITE_ONLY, cl.CL_MEM_HOST_READ_ONLY, cl.CL_MEM_HOST_NO_ACCESS)
REGION = cl.CL_BUFFER_CREATE_TYPE_REGION


@pytest.fixture(scope="module")
def context(opencl):
    made = opencl.context()
    yield made
    opencl.ok("clReleaseContext", made)


@pytest.fixture
def buffer(opencl, context):
    made = opencl.make("clCreateBuffer", context, 0, 4096, None)
    yield made
    opencl.ok("clReleaseMemObject", made)


def query(opencl, buffer, name):
    return opencl.integer("clGetMemObjectInfo", buffer, getattr(cl, name))


def test_buffer_queries(opencl, context):
    memory = ctypes.create_string_buffer(b"0123456789abcdef" * 16, 256)
    flags = cl.CL_MEM_USE_HOST_PTR | cl.CL_MEM_READ_ONLY
    made = opencl.make("clCreateBuffer", context, flags, 256, memory)
    assert query(opencl, made, "CL_MEM_TYPE") == cl.CL_MEM_OBJECT_BUFFER
    assert query(opencl, made, "CL_MEM_FLAGS") == flags
    assert query(opencl, made, "CL_MEM_SIZE") == 256
    assert query(opencl, made, "CL_MEM_HOST_PTR") == ctypes.addressof(memory)
    assert query(opencl, made, "CL_MEM_MAP_COUNT") == 0
    assert query(opencl, made, "CL_MEM_REFERENCE_COUNT") == 1
    assert query(opencl, made, "CL_MEM_CONTEXT") == context
    assert query(opencl, made, "CL_MEM_ASSOCIATED_MEMOBJECT") == 0
    assert query(opencl, made, "CL_MEM_OFFSET") == 0
    assert query(opencl, made, "CL_MEM_USES_SVM_POINTER") == cl.CL_FALSE
    assert opencl.info("clGetMemObjectInfo", made, cl.CL_MEM_PROPERTIES) == b""

    part = opencl.make("clCreateSubBuffer", made, 0, REGION, [128, 64])
    assert query(opencl, part, "CL_MEM_FLAGS") == flags
    assert query(opencl, part, "CL_MEM_HOST_PTR") == ctypes.addressof(memory) + 128
    assert query(opencl, part, "CL_MEM_OFFSET") == 128 and query(opencl, part, "CL_MEM_SIZE") == 64
    assert query(opencl, part, "CL_MEM_ASSOCIATED_MEMOBJECT") == made
    opencl.ok("clReleaseMemObject", made)
    assert query(opencl, part, "CL_MEM_CONTEXT") == context  # the parent lives as long as its part
    opencl.ok("clReleaseMemObject", part)


def test_properties_are_kept_as_given(opencl, context):
    made = opencl.make("clCreateBufferWithProperties", context, [0], 0, 64, None)
    assert opencl.words("clGetMemObjectInfo", made, cl.CL_MEM_PROPERTIES) == [0]
    opencl.ok("clReleaseMemObject", made)
    with_property = [0x1234, 1, 0]
    assert (
        opencl.fails("clCreateBufferWithProperties", context, with_property, 0, 64, None)
        == cl.CL_INVALID_PROPERTY
    )


def test_buffer_errors(opencl, context, buffer):
    memory = ctypes.create_string_buffer(256)

    def fails(flags=0, size=64, pointer=None, handle=context):
        return opencl.fails("clCreateBuffer", handle, flags, size, pointer)

    assert fails(handle=buffer) == cl.CL_INVALID_CONTEXT
    for pair in itertools.chain(
        itertools.combinations(KERNEL_ACCESS, 2), itertools.combinations(HOST_ACCESS, 2)
    ):
        assert fails(flags=pair[0] | pair[1]) == cl.CL_INVALID_VALUE
    assert fails(flags=1 << 30) == cl.CL_INVALID_VALUE
    for other in (cl.CL_MEM_ALLOC_HOST_PTR, cl.CL_MEM_COPY_HOST_PTR):
        assert fails(flags=cl.CL_MEM_USE_HOST_PTR | other, pointer=memory) == cl.CL_INVALID_VALUE
    assert fails(size=0) == cl.CL_INVALID_BUFFER_SIZE
    most = opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_MEM_ALLOC_SIZE)
    assert fails(size=most + 1) == cl.CL_INVALID_BUFFER_SIZE
    assert fails(pointer=memory) == cl.CL_INVALID_HOST_PTR
    assert fails(flags=cl.CL_MEM_ALLOC_HOST_PTR, pointer=memory) == cl.CL_INVALID_HOST_PTR
    assert fails(flags=cl.CL_MEM_USE_HOST_PTR) == cl.CL_INVALID_HOST_PTR
    assert fails(flags=cl.CL_MEM_COPY_HOST_PTR) == cl.CL_INVALID_HOST_PTR


@needs_kernel
def test_no_memory_for_a_buffer(opencl):
    """The call fails, and the context's callback is told; not after the context's destructor callbacks."""
    calls, ended = [], threading.Event()
    told = ContextNotify(lambda text, info, size, data: calls.append((text.decode(), data)))
    notify = Notify(lambda handle, data: (calls.append("destroyed"), ended.set()))
    context = opencl.make("clCreateContext", None, 1, [opencl.device()], told, 7)
    opencl.ok("clSetContextDestructorCallback", context, notify, None)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + (256 << 20), hard))
    try:
        status = opencl.fails("clCreateBuffer", context, 0, 1 << 30, None)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert status == cl.CL_MEM_OBJECT_ALLOCATION_FAILURE
    opencl.ok("clReleaseContext", context)
    assert ended.wait(10)
    assert calls == [("there is no memory for a buffer of 1073741824 bytes", 7), "destroyed"]


def test_buffers_on_svm(opencl, context):
    opencl.library.clSVMAlloc.restype = ctypes.c_void_p
    opencl.library.clSVMAlloc.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint32]
    opencl.library.clSVMFree.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    memory = opencl.library.clSVMAlloc(context, 0, 1024, 0)
    assert memory
    made = opencl.make("clCreateBuffer", context, cl.CL_MEM_USE_HOST_PTR, 1024, memory)
    assert query(opencl, made, "CL_MEM_USES_SVM_POINTER") == cl.CL_TRUE
    part = opencl.make("clCreateSubBuffer", made, 0, REGION, [0, 64])
    assert query(opencl, part, "CL_MEM_USES_SVM_POINTER") == cl.CL_TRUE
    for handle in (part, made):
        opencl.ok("clReleaseMemObject", handle)
    # "size is greater than the size passed to clSVMAlloc."
    too_much = opencl.fails("clCreateBuffer", context, cl.CL_MEM_USE_HOST_PTR, 1025, memory)
    assert too_much == cl.CL_INVALID_BUFFER_SIZE
    opencl.library.clSVMFree(context, memory)


def test_sub_buffer_errors(opencl, context, buffer):
    def fails(handle=buffer, flags=0, kind=REGION, region=(0, 64)):
        return opencl.fails("clCreateSubBuffer", handle, flags, kind, list(region) if region else None)

    part = opencl.make("clCreateSubBuffer", buffer, 0, REGION, [0, 1024])
    assert fails(handle=context) == cl.CL_INVALID_MEM_OBJECT
    assert fails(handle=part) == cl.CL_INVALID_MEM_OBJECT
    opencl.ok("clReleaseMemObject", part)
    for flag in (cl.CL_MEM_USE_HOST_PTR, cl.CL_MEM_ALLOC_HOST_PTR, cl.CL_MEM_COPY_HOST_PTR):
        assert fails(flags=flag) == cl.CL_INVALID_VALUE
    assert fails(kind=0x1234) == cl.CL_INVALID_VALUE
    assert fails(region=None) == cl.CL_INVALID_VALUE
    assert fails(region=(0, 0)) == cl.CL_INVALID_BUFFER_SIZE
    assert fails(region=(4096, 1)) == cl.CL_INVALID_VALUE
    assert fails(region=(0, 4097)) == cl.CL_INVALID_VALUE
    assert fails(region=(128, -1)) == cl.CL_INVALID_VALUE
    assert fails(region=(64, 64)) == cl.CL_MISALIGNED_SUB_BUFFER_OFFSET


@pytest.mark.parametrize(
    "parent, wrong",
    [
        (cl.CL_MEM_WRITE_ONLY, cl.CL_MEM_READ_WRITE),
        (cl.CL_MEM_WRITE_ONLY, cl.CL_MEM_READ_ONLY),
        (cl.CL_MEM_READ_ONLY, cl.CL_MEM_READ_WRITE),
        (cl.CL_MEM_READ_ONLY, cl.CL_MEM_WRITE_ONLY),
        (cl.CL_MEM_HOST_WRITE_ONLY, cl.CL_MEM_HOST_READ_ONLY),
        (cl.CL_MEM_HOST_READ_ONLY, cl.CL_MEM_HOST_WRITE_ONLY),
        (cl.CL_MEM_HOST_NO_ACCESS, cl.CL_MEM_HOST_READ_ONLY),
        (cl.CL_MEM_HOST_NO_ACCESS, cl.CL_MEM_HOST_WRITE_ONLY),
    ],
)
def test_a_sub_buffer_allows_no_more_than_its_buffer(opencl, context, parent, wrong):
    made = opencl.make("clCreateBuffer", context, parent, 256, None)
    assert opencl.fails("clCreateSubBuffer", made, wrong, REGION, [0, 64]) == cl.CL_INVALID_VALUE
    part = opencl.make("clCreateSubBuffer", made, 0, REGION, [0, 64])
    assert query(opencl, part, "CL_MEM_FLAGS") == parent  # inherited
    for handle in (made, part):
        opencl.ok("clReleaseMemObject", handle)


def test_memory_object_errors(opencl, context, buffer):
    notify = Notify(lambda handle, data: None)
    assert opencl.fails("clGetMemObjectInfo", buffer, 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
    for name, *arguments in (
        ("clGetMemObjectInfo", cl.CL_MEM_SIZE, 0, None, None),
        ("clRetainMemObject",),
        ("clReleaseMemObject",),
        ("clSetMemObjectDestructorCallback", notify, None),
    ):
        assert opencl.fails(name, context, *arguments) == cl.CL_INVALID_MEM_OBJECT
    assert opencl.fails("clSetMemObjectDestructorCallback", buffer, None, None) == cl.CL_INVALID_VALUE


def test_memory_object_destructors_run_newest_first(opencl, context):
    calls = []
    notify = Notify(lambda handle, data: calls.append(data))
    made = opencl.make("clCreateBuffer", context, 0, 64, None)
    for data in (1, 2):
        opencl.ok("clSetMemObjectDestructorCallback", made, notify, data)
    opencl.ok("clRetainMemObject", made)
    opencl.ok("clReleaseMemObject", made)
    assert calls == []
    opencl.ok("clReleaseMemObject", made)
    assert calls == [2, 1]
    assert opencl.fails("clReleaseMemObject", made) == cl.CL_INVALID_MEM_OBJECT
