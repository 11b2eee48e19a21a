"""cl_khr_unified_svm 0.9: allocations by type and properties, what is known of pointers, suggested types."""

import ctypes
import itertools

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.core.test_svm import view

P, U32, U64, SIZE_T, INT = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int32
FUNCTIONS = {
    "clSVMAllocWithPropertiesKHR": (P, P, P, U32, SIZE_T, P),
    "clSVMFreeWithPropertiesKHR": (INT, P, P, U64, P),
    "clGetSVMPointerInfoKHR": (INT, P, P, P, U32, SIZE_T, P, P),
    "clGetSVMSuggestedTypeIndexKHR": (INT, P, U64, U64, P, SIZE_T, P),
}
# Of the registry's cl.xml; the headers of Debian 12 lack them.
PLATFORM_TYPES, DEVICE_TYPES, INDIRECT_ACCESS = 0x0909, 0x1077, 0x11BB
DEVICE, ACCESS, ALIGNMENT = 0x2078, 0x2079, 0x207A
TYPE_INDEX, CAPABILITIES, PROPERTIES, ACCESS_FLAGS = 0x2088, 0x2089, 0x208A, 0x208B
BASE_PTR, SIZE, ASSOCIATED_DEVICE = 0x419B, 0x419C, 0x419D
SYSTEM_ALLOCATED, DEVICE_OWNED, UNASSOCIATED, HOST_OWNED = 1 << 1, 1 << 2, 1 << 3, 1 << 5
# The macros of the registry: what a program asks for that wants a kind of memory.
COARSE_GRAIN_BUFFER, FINE_GRAIN_BUFFER = 0b0000_1111_0001_1001, 0b0001_1111_1101_1001
OF_DEVICE, OF_HOST, SHARED, SYSTEM = 0x4E05, 0x46F9, 0x46C1, 0x7FDB
TYPES, BYTES = 4, 4096
UNKNOWN = 0xFFFF_FFFF


class Memory:
    def __init__(self, session):
        self.session, self.context = session, session.context
        self.functions = {name: session.cl.extension(name, *types) for name, types in FUNCTIONS.items()}

    def allocate(self, type_=0, size=BYTES, properties=None, context=None):
        """An address, or None, and a status."""
        status = INT(1)
        listed = listing(properties)
        arguments = (context or self.context, listed, type_, size, ctypes.byref(status))
        return self.functions["clSVMAllocWithPropertiesKHR"](*arguments), status.value

    def new(self, *arguments, **options) -> int:
        address, status = self.allocate(*arguments, **options)
        assert status == cl.CL_SUCCESS and address
        return address

    def free(self, address, properties=None, flags=0, context=None) -> int:
        listed = listing(properties)
        return self.functions["clSVMFreeWithPropertiesKHR"](context or self.context, listed, flags, address)

    def ask(self, address, name, count=1, type_=U64, device=None, context=None, size=None):
        """A status, values, and the size of the whole answer."""
        values, whole = (type_ * max(count, 1))(), SIZE_T()
        given = count * ctypes.sizeof(type_) if size is None else size
        arguments = (context or self.context, device, address, name, given, values, ctypes.byref(whole))
        status = self.functions["clGetSVMPointerInfoKHR"](*arguments)
        return status, list(values)[:count], whole.value

    def info(self, address, name, type_=U64, device=None):
        status, [value], size = self.ask(address, name, type_=type_, device=device)
        assert (status, size) == (cl.CL_SUCCESS, ctypes.sizeof(type_))
        return value

    def suggest(self, required, desired=0, properties=None, context=None):
        found = U32(77)
        arguments = (
            context or self.context,
            required,
            desired,
            listing(properties),
            BYTES,
            ctypes.byref(found),
        )
        return self.functions["clGetSVMSuggestedTypeIndexKHR"](*arguments), found.value


def listing(properties):
    return None if properties is None else (U64 * len(properties))(*properties)


@pytest.fixture
def memory(session):
    return Memory(session)


@pytest.fixture
def types(session):
    """The capabilities of each type, of the device."""
    return session.cl.words("clGetDeviceInfo", session.device, DEVICE_TYPES)


def test_platform_and_device_have_the_same_types(session, types):
    assert session.cl.words("clGetPlatformInfo", session.cl.platform(), PLATFORM_TYPES) == types
    assert len(types) == TYPES and len(set(types)) == TYPES


@pytest.mark.parametrize(
    "wanted", [COARSE_GRAIN_BUFFER, FINE_GRAIN_BUFFER, OF_DEVICE, OF_HOST, SHARED, SYSTEM]
)
def test_every_kind_of_the_registry_is_suggested_and_allocated(session, memory, types, wanted):
    for properties in (None, [0], [DEVICE, session.device, ACCESS, 0, ALIGNMENT, 0, 0]):
        status, index = memory.suggest(wanted, properties=properties)
        assert status == cl.CL_SUCCESS and types[index] & wanted == wanted
        assert memory.free(memory.new(index, properties=properties)) == cl.CL_SUCCESS


def test_what_is_desired_decides_between_types_that_have_what_is_required(memory, types):
    for index, own in enumerate((0, DEVICE_OWNED, HOST_OWNED, SYSTEM_ALLOCATED)):
        assert memory.suggest(SHARED, own) == (cl.CL_SUCCESS, index)
        assert memory.suggest(own) == (cl.CL_SUCCESS, index)
    assert memory.suggest(DEVICE_OWNED | HOST_OWNED) == (cl.CL_SUCCESS, UNKNOWN)
    assert memory.suggest(1 << 40) == (cl.CL_SUCCESS, UNKNOWN)


def test_suggestions_that_fail(session, memory):
    assert memory.suggest(0, context=session.queue)[0] == cl.CL_INVALID_CONTEXT
    assert memory.suggest(0, properties=[DEVICE, session.queue, 0])[0] == cl.CL_INVALID_PROPERTY
    function = memory.functions["clGetSVMSuggestedTypeIndexKHR"]
    assert function(memory.context, 0, 0, None, 0, None) == cl.CL_INVALID_VALUE


@pytest.mark.parametrize("type_", range(TYPES))
def test_what_is_known_of_a_pointer(session, memory, types, type_):
    properties = [ACCESS, 0x302, DEVICE, session.device, ALIGNMENT, 64, 0]
    address = memory.new(type_, 1000, properties=properties)
    for pointer, device in itertools.product((address, address + 999), (None, session.device)):
        assert memory.info(pointer, TYPE_INDEX, U32, device) == type_
        assert memory.info(pointer, CAPABILITIES, device=device) == types[type_]
        assert memory.info(pointer, ACCESS_FLAGS, device=device) == 0x302
        assert memory.info(pointer, BASE_PTR, P, device) == address
        assert memory.info(pointer, SIZE, device=device) == 1000
        assert memory.info(pointer, ASSOCIATED_DEVICE, P, device) == session.device
        assert memory.ask(pointer, PROPERTIES, 7, device=device) == (0, properties, 7 * 8)
    assert address % 64 == 0
    assert memory.free(address) == cl.CL_SUCCESS
    assert memory.info(address, TYPE_INDEX, U32) == UNKNOWN


def test_properties_are_as_they_were_given(session, memory):
    for properties in (None, [0], [ALIGNMENT, 1, 0]):
        address = memory.new(properties=properties)
        words = properties or []
        assert memory.ask(address, PROPERTIES, len(words)) == (0, words, 8 * len(words))
        assert memory.info(address, ASSOCIATED_DEVICE, P) is None and memory.info(address, ACCESS_FLAGS) == 0
        assert memory.free(address) == cl.CL_SUCCESS


def test_nothing_is_known_of_other_pointers(memory):
    own = np.zeros(4)
    for pointer in (own.ctypes.data, None):
        assert memory.info(pointer, TYPE_INDEX, U32) == UNKNOWN
        assert memory.info(pointer, CAPABILITIES) == 0 and memory.info(pointer, ACCESS_FLAGS) == 0
        assert memory.info(pointer, BASE_PTR, P) is None and memory.info(pointer, SIZE) == 0
        assert memory.info(pointer, ASSOCIATED_DEVICE, P) is None
        assert memory.ask(pointer, PROPERTIES, 0) == (cl.CL_SUCCESS, [], 0)


def test_pointers_of_other_functions_are_of_the_types_that_they_have(session, memory):
    svm = session.cl.extension("clSVMAlloc", P, P, U64, SIZE_T, U32)(
        memory.context, cl.CL_MEM_READ_WRITE, 64, 0
    )
    allocate = session.cl.extension("clHostMemAllocINTEL", P, P, P, SIZE_T, U32, P)
    host = allocate(memory.context, None, 64, 0, None)
    assert memory.info(svm, TYPE_INDEX, U32) == memory.suggest(SHARED)[1]
    assert memory.info(host, TYPE_INDEX, U32) == memory.suggest(OF_HOST)[1]
    assert memory.free(svm) == cl.CL_SUCCESS
    assert memory.free(host) == cl.CL_INVALID_VALUE  # it is of unified shared memory
    assert session.cl.extension("clMemFreeINTEL", INT, P, P)(memory.context, host) == cl.CL_SUCCESS


def test_queries_that_fail(session, memory):
    address = memory.new()
    assert memory.ask(address, SIZE, context=session.queue)[0] == cl.CL_INVALID_CONTEXT
    assert memory.ask(address, SIZE, device=session.queue)[0] == cl.CL_INVALID_DEVICE
    assert memory.ask(address, 0x1234)[0] == cl.CL_INVALID_VALUE
    assert memory.ask(address, SIZE, size=4)[0] == cl.CL_INVALID_VALUE
    assert memory.free(address) == cl.CL_SUCCESS


@pytest.mark.parametrize("alignment", [0, *(1 << bit for bit in range(8))])
def test_alignments(memory, alignment):
    for type_ in range(TYPES):
        address = memory.new(type_, 3, properties=[ALIGNMENT, alignment, 0])
        assert address % (alignment or 1) == 0
        assert memory.free(address) == cl.CL_SUCCESS


def test_no_bytes_are_no_pointer(memory):
    for type_ in range(TYPES):
        assert memory.allocate(type_, 0) == (None, cl.CL_SUCCESS)
    assert memory.free(None) == cl.CL_SUCCESS


def test_allocations_that_fail(session, memory):
    assert memory.allocate(context=session.queue) == (None, cl.CL_INVALID_CONTEXT)
    assert memory.allocate(TYPES) == (None, cl.CL_INVALID_VALUE)
    for properties in (
        [0x2077, 0, 0],
        [DEVICE, session.context, 0],
        [DEVICE, 0, 0],
        [ACCESS, 1 << 2, 0],
        [ALIGNMENT, 3, 0],
        [ALIGNMENT, 256, 0],
        [ALIGNMENT, 8, ALIGNMENT, 8, 0],
    ):
        assert memory.allocate(properties=properties) == (None, cl.CL_INVALID_PROPERTY), properties
    assert memory.allocate(size=1 << 62) == (None, cl.CL_OUT_OF_RESOURCES)


def test_frees_that_fail(session, memory):
    address = memory.new()
    assert memory.free(address, context=session.queue) == cl.CL_INVALID_CONTEXT
    assert memory.free(address, properties=[0x2080, 1, 0]) == cl.CL_INVALID_PROPERTY
    assert memory.free(address, flags=1) == cl.CL_INVALID_VALUE
    assert memory.free(address + 8) == cl.CL_INVALID_VALUE
    assert memory.free(address, properties=[0]) == cl.CL_SUCCESS
    assert memory.free(address) == cl.CL_INVALID_VALUE


@pytest.mark.parametrize("type_", range(TYPES))
def test_commands_and_kernels_use_it(session, memory, type_):
    """Written by the host, read through an address that lies in other memory, mapped, filled and freed by a
    command."""
    count = 256
    address, list_ = memory.new(type_, 4 * count), memory.new(type_, 8)
    view(address, np.int32, count)[:] = np.arange(count)
    view(list_, np.uint64, 1)[0] = address
    text = """struct s { global int *p; };
        kernel void k(global struct s *list) { list->p[get_global_id(0)] *= 3; }"""
    kernel = session.kernel(text)
    session.cl.ok("clSetKernelExecInfo", kernel, INDIRECT_ACCESS, 4, U32(1))
    assert session.cl.fails("clSetKernelExecInfo", kernel, INDIRECT_ACCESS, 8, U64(1)) == cl.CL_INVALID_VALUE
    session.cl.ok("clSetKernelArgSVMPointer", kernel, 0, list_)
    session.cl.ok("clEnqueueNDRangeKernel", session.queue, kernel, 1, None, [count], None, 0, None, None)
    session.cl.ok(
        "clEnqueueSVMMap", session.queue, cl.CL_TRUE, cl.CL_MAP_READ, address, 4 * count, 0, None, None
    )
    assert (view(address, np.int32, count) == 3 * np.arange(count)).all()
    session.cl.ok("clEnqueueSVMUnmap", session.queue, address, 0, None, None)
    session.cl.ok("clEnqueueSVMFree", session.queue, 2, [address, list_], None, None, 0, None, None)
    session.cl.ok("clFinish", session.queue)
    assert memory.info(address, TYPE_INDEX, U32) == memory.info(list_, TYPE_INDEX, U32) == UNKNOWN
