"""Addresses of buffers: cl_ext_buffer_device_address 1.0.2."""

import ctypes
import struct

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

from .session import Buffer, Session

PRIVATE_ADDRESS, ADDRESS, POINTERS = 0x5000, 0x5001, 0x5002  # of headers since 2025
ITEMS = 256
SOURCE = """
kernel void add(global int *p, int n) { p[get_global_id(0)] += n; }
kernel void follow(global long *address, global int *out) { *out = *(global int *)address[0]; }
kernel void copy(constant int *in, global int *out) { out[get_global_id(0)] = in[get_global_id(0)]; }
"""


def buffer(session, properties, flags=cl.CL_MEM_READ_WRITE, pointer=None) -> Buffer:
    made = session.cl.make(
        "clCreateBufferWithProperties", session.context, properties, flags, 4 * ITEMS, pointer
    )
    return Buffer(session.made("clReleaseMemObject", made))


def addresses(session, made: int) -> list[int]:
    answer = session.cl.info("clGetMemObjectInfo", made, ADDRESS)
    return list(struct.unpack(f"<{len(answer) // 8}Q", answer))


@pytest.fixture
def set_pointer(session):
    types = (ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64)
    return session.cl.extension("clSetKernelArgDevicePointerEXT", *types)


def test_one_address_for_each_device(opencl):
    if opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
        pytest.skip("one compute unit cannot be divided")
    parts = opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    session = Session(opencl, *parts)
    assert "cl_ext_buffer_device_address" in opencl.text(
        "clGetDeviceInfo", session.device, cl.CL_DEVICE_EXTENSIONS
    )
    made = buffer(session, [PRIVATE_ADDRESS, cl.CL_TRUE, 0])
    found = addresses(session, made)
    assert len(found) == len(parts) and all(found)
    assert addresses(session, made) == found
    assert opencl.words("clGetMemObjectInfo", made, cl.CL_MEM_PROPERTIES) == [PRIVATE_ADDRESS, 1, 0]
    session.close()
    for part in parts:
        opencl.ok("clReleaseDevice", part)


def test_the_hosts_memory_keeps_its_address(session):
    data = np.zeros(ITEMS, np.int32)
    made = buffer(
        session, [PRIVATE_ADDRESS, 1, 0], cl.CL_MEM_READ_WRITE | cl.CL_MEM_USE_HOST_PTR, data.ctypes.data
    )
    assert addresses(session, made) == [data.ctypes.data]


@pytest.mark.parametrize("properties", [None, [0], [PRIVATE_ADDRESS, 0, 0]])
def test_not_asked_for(session, properties):
    made = buffer(session, properties)
    size = ctypes.c_uint64()
    assert session.cl.call("clGetMemObjectInfo", made, ADDRESS, 0, None, size) == cl.CL_INVALID_OPERATION


def test_a_part_has_none(session):
    made = buffer(session, [PRIVATE_ADDRESS, 1, 0])
    region = [0, 128]
    part = session.cl.make("clCreateSubBuffer", made, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, region)
    assert session.cl.call("clGetMemObjectInfo", part, ADDRESS, 0, None, None) == cl.CL_INVALID_OPERATION
    session.cl.ok("clReleaseMemObject", part)


@pytest.mark.parametrize(
    "properties",
    [[PRIVATE_ADDRESS, 2, 0], [PRIVATE_ADDRESS, 1, PRIVATE_ADDRESS, 1, 0], [ADDRESS, 1, 0]],
)
def test_properties_that_fail(session, properties):
    arguments = (session.context, properties, cl.CL_MEM_READ_WRITE, 64, None)
    assert session.cl.fails("clCreateBufferWithProperties", *arguments) == cl.CL_INVALID_PROPERTY


def test_kernels_use_them(session, set_pointer):
    """As arguments, also into the middle, and as numbers in memory."""
    made, out = buffer(session, [PRIVATE_ADDRESS, 1, 0]), session.buffer(np.zeros(1, np.int32))
    session.write(made, np.arange(ITEMS, dtype=np.int32))
    (address,) = addresses(session, made)
    program = session.program(SOURCE)
    add, follow = session.kernel(program, "add"), session.kernel(program, "follow")
    assert set_pointer(add, 0, address + 400) == 0
    session.cl.ok("clSetKernelArg", add, 1, 4, np.int32(1000).tobytes())
    session.cl.ok("clEnqueueNDRangeKernel", session.queue, add, 1, None, [50], None, 0, None, None)
    wanted = np.arange(ITEMS)
    wanted[100:150] += 1000
    assert np.array_equal(session.read(made, np.int32, ITEMS), wanted)
    table = session.buffer(np.array([address + 480], np.uint64))
    session.cl.ok("clSetKernelExecInfo", follow, POINTERS, 8, [address])
    session.launch(follow, 1, table, out)
    assert session.read(out, np.int32, 1)[0] == 1120


def test_arguments_that_fail(session, set_pointer):
    program = session.program(SOURCE)
    add, copy = session.kernel(program, "add"), session.kernel(program, "copy")
    assert set_pointer(session.queue, 0, 0) == cl.CL_INVALID_KERNEL
    assert set_pointer(add, 2, 0) == cl.CL_INVALID_ARG_INDEX
    assert set_pointer(add, 1, 0) == cl.CL_INVALID_ARG_INDEX  # no pointer
    assert set_pointer(copy, 0, 0) == cl.CL_INVALID_ARG_INDEX  # not to global memory
    assert set_pointer(add, 0, 1) == 0  # "it's legal to pass invalid pointers"
    assert session.cl.fails("clSetKernelExecInfo", add, POINTERS, 7, [0]) == cl.CL_INVALID_VALUE
    assert session.cl.fails("clSetKernelExecInfo", add, POINTERS, 8, None) == cl.CL_INVALID_VALUE
