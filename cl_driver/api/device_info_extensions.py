"""Queries of extensions: rows of device_info.py's table. The headers of Debian 12 lack the numbers that are
here."""

from __future__ import annotations

from ..device import capabilities
from .device import Device
from .generated import enums as cl
from .info import make_version, uint, ulong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .info import Row

# cl_ext_float_atomics
CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT = 0x4231
CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT = 0x4232
CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT = 0x4233

# cl_device_fp_atomic_capabilities_ext: bits for global memory; those for local memory are 16 places up.
_FP_ATOMICS = {"load_store": 1 << 0, "add": 1 << 1, "min_max": 1 << 2}
_LOCAL = 16


def fp_atomics(width: int) -> Row[Device]:
    """What the feature macros of that type say; load, store and exchange of float and double need none."""

    def get(device: Device) -> int:
        features = set(capabilities.features(device.limits.cpu))
        found = 0
        for place, shift in (("global", 0), ("local", _LOCAL)):
            for operation, bit in _FP_ATOMICS.items():
                if f"__opencl_c_ext_fp{width}_{place}_atomic_{operation}" in features:
                    found |= bit << shift
        if found and width > 16:
            found |= _FP_ATOMICS["load_store"] * (1 | 1 << _LOCAL)
        return found

    return ulong(get)


# cl_khr_kernel_clock
CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR = 0x1076
_CLOCK_SCOPES = {"device": 1 << 0, "work_group": 1 << 1, "sub_group": 1 << 2}


def _clock_scopes(device: Device) -> int:
    features, prefix = capabilities.features(device.limits.cpu), "__opencl_c_kernel_clock_scope_"
    return sum(bit for name, bit in _CLOCK_SCOPES.items() if prefix + name in features)


# cl_khr_command_buffer and the extensions on top of it. What answers with devices is in
# native_shim/src/api/device.c.
CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR = 0x129A
CL_COMMAND_BUFFER_CAPABILITY_MULTIPLE_QUEUE_KHR = 1 << 4
_COMMAND_BUFFER_CAPABILITIES = (
    cl.CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR
    | cl.CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR
    | CL_COMMAND_BUFFER_CAPABILITY_MULTIPLE_QUEUE_KHR
)


def _command_buffers(device: Device) -> int:
    enqueues = "__opencl_c_device_enqueue" in capabilities.features(device.limits.cpu)
    more = cl.CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR if enqueues else 0
    return _COMMAND_BUFFER_CAPABILITIES | more


_MUTABLE_FIELDS = (
    cl.CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR
    | cl.CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR
    | cl.CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR
    | cl.CL_MUTABLE_DISPATCH_ARGUMENTS_KHR
    | cl.CL_MUTABLE_DISPATCH_EXEC_INFO_KHR
)

# cl_khr_terminate_context's query of OpenCL 1.2, which clinfo asks beside the one that came after it
CL_DEVICE_TERMINATE_CAPABILITY_KHR_1X = 0x200F

# cl_khr_external_memory
CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR = 0x2052


def _ip_version(device: Device) -> int:
    major, minor, patch = device.limits.cpu.version
    return make_version(major, min(minor, 1023), patch)


EXTENSION_INFO: dict[int, Row[Device]] = {
    # cl_ext_cxx_for_opencl: the version that -cl-std=CLC++ stands for.
    cl.CL_DEVICE_CXX_FOR_OPENCL_NUMERIC_VERSION_EXT: uint(make_version(1)),
    # cl_intel_device_attribute_query. A CPU has no slices; a hardware thread is an execution unit.
    cl.CL_DEVICE_IP_VERSION_INTEL: uint(_ip_version),
    cl.CL_DEVICE_ID_INTEL: uint(lambda device: device.limits.cpu.identity),
    cl.CL_DEVICE_NUM_SLICES_INTEL: uint(1),
    cl.CL_DEVICE_NUM_SUB_SLICES_PER_SLICE_INTEL: uint(1),
    cl.CL_DEVICE_NUM_EUS_PER_SUB_SLICE_INTEL: uint(lambda device: len(device.cpus)),
    cl.CL_DEVICE_NUM_THREADS_PER_EU_INTEL: uint(1),
    # Its flags are of multiplications of a GPU's matrix units, and of a dot product that we do not call
    # accelerated either.
    cl.CL_DEVICE_FEATURE_CAPABILITIES_INTEL: ulong(0),
    CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR: ulong(_clock_scopes),
    CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT: fp_atomics(32),
    CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT: fp_atomics(64),
    CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT: fp_atomics(16),
    # cl_khr_semaphore, cl_khr_external_semaphore: lists of one entry
    cl.CL_DEVICE_SEMAPHORE_TYPES_KHR: uint(cl.CL_SEMAPHORE_TYPE_BINARY_KHR),
    cl.CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR: uint(cl.CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR),
    cl.CL_DEVICE_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR: uint(cl.CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR),
    # cl_khr_external_memory
    cl.CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR: uint(cl.CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR),
    CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR: uint(
        cl.CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR
    ),
    # cl_khr_terminate_context: CL_DEVICE_TERMINATE_CAPABILITY_CONTEXT_KHR, which headers of 2023 lack
    cl.CL_DEVICE_TERMINATE_CAPABILITY_KHR: ulong(1),
    CL_DEVICE_TERMINATE_CAPABILITY_KHR_1X: ulong(1),
    cl.CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR: ulong(_command_buffers),
    cl.CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR: ulong(0),
    CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR: ulong(
        cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl.CL_QUEUE_PROFILING_ENABLE
    ),
    cl.CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR: ulong(_MUTABLE_FIELDS),
}
