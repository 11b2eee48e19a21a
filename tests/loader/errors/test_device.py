"""Error codes and answers of platform, device, sub-device and context calls (API specification, 4)."""

import ctypes

import pytest

from cl_driver.api.device_info import DEVICE_INFO
from cl_driver.api.generated import enums as cl
from tests.loader.opencl import Notify

BY_COUNTS, EQUALLY = cl.CL_DEVICE_PARTITION_BY_COUNTS, cl.CL_DEVICE_PARTITION_EQUALLY
BY_DOMAIN = cl.CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN


@pytest.fixture(scope="module")
def device(opencl):
    return opencl.device()


@pytest.fixture
def context(opencl):
    made = opencl.context()
    yield made
    opencl.ok("clReleaseContext", made)


@pytest.fixture
def units(opencl, device):
    count = opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_MAX_COMPUTE_UNITS)
    if count < 2:
        pytest.skip("one compute unit cannot be divided")
    return count


def test_device_ids(opencl):
    platform, found = opencl.platform(), ctypes.c_void_p()
    fails = opencl.fails
    # A loader dereferences platform handles; a device is one that is not a platform.
    assert (
        fails("clGetDeviceIDs", opencl.device(), cl.CL_DEVICE_TYPE_ALL, 1, found, None)
        == cl.CL_INVALID_PLATFORM
    )
    assert fails("clGetDeviceIDs", platform, 0, 1, found, None) == cl.CL_INVALID_DEVICE_TYPE
    assert fails("clGetDeviceIDs", platform, 1 << 40, 1, found, None) == cl.CL_INVALID_DEVICE_TYPE
    assert fails("clGetDeviceIDs", platform, cl.CL_DEVICE_TYPE_ALL, 0, found, None) == cl.CL_INVALID_VALUE
    assert fails("clGetDeviceIDs", platform, cl.CL_DEVICE_TYPE_ALL, 1, None, None) == cl.CL_INVALID_VALUE
    kind = cl.CL_DEVICE_TYPE_ACCELERATOR
    assert fails("clGetDeviceIDs", platform, kind, 1, found, None) == cl.CL_DEVICE_NOT_FOUND


def test_platform_info(opencl):
    platform = opencl.platform()
    assert opencl.fails("clGetPlatformInfo", platform, 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
    assert opencl.fails("clGetPlatformInfo", opencl.device(), cl.CL_PLATFORM_NAME, 0, None, None) == (
        cl.CL_INVALID_PLATFORM
    )
    assert opencl.text("clGetPlatformInfo", platform, cl.CL_PLATFORM_VERSION).startswith("OpenCL 3.1 ")


def test_every_device_query_answers_and_stays_the_same(opencl, device):
    for param_name in DEVICE_INFO:
        first = opencl.info("clGetDeviceInfo", device, param_name)
        assert opencl.info("clGetDeviceInfo", device, param_name) == first, hex(param_name)


def test_device_info_errors(opencl, device, context):
    assert opencl.fails("clGetDeviceInfo", device, 0x1999, 0, None, None) == cl.CL_INVALID_VALUE
    # Of an extension that the device does not have.
    assert (
        opencl.fails("clGetDeviceInfo", device, cl.CL_DEVICE_SPIR_VERSIONS, 0, None, None)
        == cl.CL_INVALID_VALUE
    )
    assert opencl.fails("clGetDeviceInfo", context, cl.CL_DEVICE_NAME, 0, None, None) == cl.CL_INVALID_DEVICE


def test_device_answers_that_must_agree(opencl, device):
    def versions(param_name):
        data = opencl.info("clGetDeviceInfo", device, param_name)
        return [data[at + 4 : at + 68].rstrip(b"\0").decode() for at in range(0, len(data), 68)]

    names = opencl.text("clGetDeviceInfo", device, cl.CL_DEVICE_EXTENSIONS).split()
    assert names == versions(cl.CL_DEVICE_EXTENSIONS_WITH_VERSION) and len(names) == len(set(names))
    ils = opencl.text("clGetDeviceInfo", device, cl.CL_DEVICE_IL_VERSION).split()
    assert len(ils) == len(versions(cl.CL_DEVICE_ILS_WITH_VERSION)) and ils[0] == "SPIR-V_1.0"
    features = versions(cl.CL_DEVICE_OPENCL_C_FEATURES)
    assert ("__opencl_c_fp64" in features) == ("cl_khr_fp64" in names)
    assert opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_PLATFORM) == opencl.platform()
    assert opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_PARENT_DEVICE) == 0
    assert opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_REFERENCE_COUNT) == 1
    memory = opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_GLOBAL_MEM_SIZE)
    assert opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_MAX_MEM_ALLOC_SIZE) == memory > 1 << 28


def test_spirv_queries(opencl, device):
    def strings(param_name):
        pointers = opencl.words("clGetDeviceInfo", device, param_name)
        return [ctypes.string_at(pointer).decode() for pointer in pointers]

    assert strings(0x12B9) == ["OpenCL.std", "OpenCL.DebugInfo.100"]
    assert "SPV_KHR_no_integer_wrap_decoration" in strings(0x12BA)
    data = opencl.info("clGetDeviceInfo", device, 0x12BB)
    numbers = [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
    assert {4, 5, 6, 11} <= set(numbers)  # Addresses, Linkage, Kernel, Int64


def test_timers(opencl, device, context):
    times = ctypes.c_uint64(), ctypes.c_uint64()
    opencl.ok("clGetDeviceAndHostTimer", device, *times)
    later = ctypes.c_uint64()
    opencl.ok("clGetHostTimer", device, later)
    assert 0 <= later.value - times[1].value < 10**9
    assert opencl.fails("clGetDeviceAndHostTimer", context, *times) == cl.CL_INVALID_DEVICE
    assert opencl.fails("clGetDeviceAndHostTimer", device, None, later) == cl.CL_INVALID_VALUE
    assert opencl.fails("clGetDeviceAndHostTimer", device, later, None) == cl.CL_INVALID_VALUE
    assert opencl.fails("clGetHostTimer", context, later) == cl.CL_INVALID_DEVICE
    assert opencl.fails("clGetHostTimer", device, None) == cl.CL_INVALID_VALUE


def test_sub_devices(opencl, device, units):
    parts = opencl.sub_devices(device, EQUALLY, 1)
    assert len(parts) == units
    for part in parts:
        assert opencl.integer("clGetDeviceInfo", part, cl.CL_DEVICE_MAX_COMPUTE_UNITS) == 1
        assert opencl.integer("clGetDeviceInfo", part, cl.CL_DEVICE_PARENT_DEVICE) == device
        assert opencl.words("clGetDeviceInfo", part, cl.CL_DEVICE_PARTITION_TYPE) == [EQUALLY, 1, 0]
        assert opencl.words("clGetDeviceInfo", part, cl.CL_DEVICE_PARTITION_PROPERTIES) == [0]
        assert opencl.integer("clGetDeviceInfo", part, cl.CL_DEVICE_REFERENCE_COUNT) == 1
        opencl.ok("clRetainDevice", part)
        assert opencl.integer("clGetDeviceInfo", part, cl.CL_DEVICE_REFERENCE_COUNT) == 2
        opencl.ok("clReleaseDevice", part)
    # A single compute unit cannot be divided any further.
    assert opencl.fails("clCreateSubDevices", parts[0], [EQUALLY, 1, 0], 0, None, None) == (
        cl.CL_DEVICE_PARTITION_FAILED
    )
    for part in parts:
        opencl.ok("clReleaseDevice", part)
    assert opencl.fails("clGetDeviceInfo", parts[0], cl.CL_DEVICE_NAME, 0, None, None) == cl.CL_INVALID_DEVICE
    for name in ("clRetainDevice", "clReleaseDevice"):
        assert opencl.fails(name, parts[0]) == cl.CL_INVALID_DEVICE
    # "If device is a root level device [...] the device reference count remains unchanged."
    opencl.ok("clRetainDevice", device)
    opencl.ok("clReleaseDevice", device)
    opencl.ok("clReleaseDevice", device)
    assert opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_REFERENCE_COUNT) == 1


def test_sub_devices_by_counts(opencl, device, units):
    parts = opencl.sub_devices(device, BY_COUNTS, 1, units - 1, 0)
    counts = [opencl.integer("clGetDeviceInfo", part, cl.CL_DEVICE_MAX_COMPUTE_UNITS) for part in parts]
    assert counts == [1, units - 1]
    assert opencl.words("clGetDeviceInfo", parts[0], cl.CL_DEVICE_PARTITION_TYPE) == [
        BY_COUNTS,
        1,
        units - 1,
        0,
        0,
    ]
    for part in parts:
        opencl.ok("clReleaseDevice", part)


def test_sub_devices_by_affinity_domain(opencl, device, units):
    domains = opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_PARTITION_AFFINITY_DOMAIN)
    if not domains:
        pytest.skip("all compute units share every cache")
    parts = opencl.sub_devices(device, BY_DOMAIN, cl.CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE)
    assert len(parts) > 1
    # "the affinity domain used to perform the partition will be returned."
    scheme, domain, end = opencl.words("clGetDeviceInfo", parts[0], cl.CL_DEVICE_PARTITION_TYPE)
    assert (scheme, end) == (BY_DOMAIN, 0) and domain & domains
    assert domain != cl.CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE
    for part in parts:
        opencl.ok("clReleaseDevice", part)


def test_sub_device_errors(opencl, device, units, context):
    def fails(*properties, handle=device, room=64):
        found = (ctypes.c_void_p * 64)()
        return opencl.fails("clCreateSubDevices", handle, [*properties, 0], room, found, None)

    assert fails(EQUALLY, 1, handle=context) == cl.CL_INVALID_DEVICE
    assert opencl.fails("clCreateSubDevices", device, None, 0, None, None) == cl.CL_INVALID_VALUE
    assert fails() == cl.CL_INVALID_VALUE
    assert fails(0x1234, 1) == cl.CL_INVALID_VALUE
    assert fails(EQUALLY, 0) == cl.CL_INVALID_VALUE
    assert fails(EQUALLY, 1, BY_COUNTS, 1) == cl.CL_INVALID_VALUE
    assert fails(EQUALLY, 1, room=1) == cl.CL_INVALID_VALUE
    assert fails(EQUALLY, units) == cl.CL_DEVICE_PARTITION_FAILED
    assert fails(EQUALLY, units + 1) == cl.CL_INVALID_DEVICE_PARTITION_COUNT
    assert fails(BY_COUNTS, units + 1, 0) == cl.CL_INVALID_DEVICE_PARTITION_COUNT
    assert fails(BY_COUNTS, *[1] * (units + 1), 0) == cl.CL_INVALID_DEVICE_PARTITION_COUNT
    assert fails(BY_COUNTS, -1, 0) == cl.CL_INVALID_DEVICE_PARTITION_COUNT
    assert fails(BY_DOMAIN, 0x4000) == cl.CL_INVALID_VALUE
    assert fails(BY_DOMAIN, cl.CL_DEVICE_AFFINITY_DOMAIN_L4_CACHE) in (
        cl.CL_INVALID_VALUE,  # there is no such cache
        cl.CL_DEVICE_PARTITION_FAILED,
    )


def test_contexts(opencl, device):
    platform = opencl.platform()
    properties = [cl.CL_CONTEXT_PLATFORM, platform, cl.CL_CONTEXT_INTEROP_USER_SYNC, 1, 0]
    made = opencl.make("clCreateContext", properties, 2, [device, device], None, None)
    assert opencl.words("clGetContextInfo", made, cl.CL_CONTEXT_PROPERTIES) == properties
    # "Duplicate devices specified in devices are ignored."
    assert opencl.words("clGetContextInfo", made, cl.CL_CONTEXT_DEVICES) == [device]
    assert opencl.integer("clGetContextInfo", made, cl.CL_CONTEXT_NUM_DEVICES) == 1
    assert opencl.integer("clGetContextInfo", made, cl.CL_CONTEXT_REFERENCE_COUNT) == 1
    opencl.ok("clReleaseContext", made)
    made = opencl.make("clCreateContextFromType", None, cl.CL_DEVICE_TYPE_DEFAULT, None, None)
    # "If [...] was NULL, the implementation must return param_value_size_ret equal to 0".
    assert opencl.info("clGetContextInfo", made, cl.CL_CONTEXT_PROPERTIES) == b""
    opencl.ok("clReleaseContext", made)


def test_context_errors(opencl, device, context):
    platform = opencl.platform()
    data = ctypes.c_int()

    def fails(properties=None, count=1, devices=(device,), notify=None, user_data=None):
        devices = list(devices) if devices else None
        return opencl.fails("clCreateContext", properties, count, devices, notify, user_data)

    assert fails(devices=None) == cl.CL_INVALID_VALUE
    assert fails(count=0) == cl.CL_INVALID_VALUE
    assert fails(user_data=data) == cl.CL_INVALID_VALUE
    assert fails(devices=[context]) == cl.CL_INVALID_DEVICE
    assert fails(properties=[0x1234, 1, 0]) == cl.CL_INVALID_PROPERTY
    assert fails(properties=[cl.CL_CONTEXT_INTEROP_USER_SYNC, 2, 0]) == cl.CL_INVALID_PROPERTY
    assert fails(properties=[cl.CL_CONTEXT_PLATFORM, platform] * 2 + [0]) == cl.CL_INVALID_PROPERTY
    assert fails(properties=[cl.CL_CONTEXT_PLATFORM, device, 0]) == cl.CL_INVALID_PLATFORM

    from_type = "clCreateContextFromType"
    properties = [cl.CL_CONTEXT_PLATFORM, platform, 0]
    assert opencl.fails(from_type, properties, 0, None, None) == cl.CL_INVALID_DEVICE_TYPE
    assert (
        opencl.fails(from_type, properties, cl.CL_DEVICE_TYPE_ACCELERATOR, None, None)
        == cl.CL_DEVICE_NOT_FOUND
    )
    assert opencl.fails(from_type, properties, cl.CL_DEVICE_TYPE_CPU, None, data) == cl.CL_INVALID_VALUE
    assert opencl.fails(from_type, [*properties[:2], 0x1234, 1, 0], cl.CL_DEVICE_TYPE_CPU, None, None) == (
        cl.CL_INVALID_PROPERTY
    )

    assert opencl.fails("clGetContextInfo", context, 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
    assert (
        opencl.fails("clGetContextInfo", device, cl.CL_CONTEXT_DEVICES, 0, None, None)
        == cl.CL_INVALID_CONTEXT
    )
    assert opencl.fails("clRetainContext", device) == cl.CL_INVALID_CONTEXT
    assert opencl.fails("clReleaseContext", device) == cl.CL_INVALID_CONTEXT
    assert opencl.fails("clSetContextDestructorCallback", context, None, None) == cl.CL_INVALID_VALUE


def test_context_destructors_run_newest_first(opencl, device):
    calls = []
    notify = Notify(lambda handle, data: calls.append((handle, data)))
    assert opencl.fails("clSetContextDestructorCallback", device, notify, None) == cl.CL_INVALID_CONTEXT
    made = opencl.context()
    for data in (1, 2, 3):
        opencl.ok("clSetContextDestructorCallback", made, notify, data)
    buffer = opencl.make("clCreateBuffer", made, 0, 64, None)
    opencl.ok("clReleaseContext", made)
    assert calls == []  # its buffer keeps it
    opencl.ok("clReleaseMemObject", buffer)
    assert calls == [(made, 3), (made, 2), (made, 1)]


def test_queues_through_the_extension(opencl, device, context):
    word, status = ctypes.c_void_p, ctypes.c_int32(1)
    create = opencl.extension("clCreateCommandQueueWithPropertiesKHR", word, word, word, word, word)
    queue = create(context, device, None, ctypes.addressof(status))
    assert queue and status.value == cl.CL_SUCCESS
    opencl.ok("clReleaseCommandQueue", queue)
    properties = (ctypes.c_int64 * 3)(cl.CL_QUEUE_PROPERTIES, 1 << 40, 0)
    assert not create(context, device, ctypes.addressof(properties), ctypes.addressof(status))
    assert status.value == cl.CL_INVALID_VALUE
