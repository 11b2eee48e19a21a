"""The table of clGetDeviceInfo. Each row: the query, the C type of its answer, where it comes from."""

from __future__ import annotations

from .. import settings
from ..device import capabilities, limits, topology
from ..device.platform import NUMERIC_VERSION
from ..device.platform import VENDOR as PLATFORM_VENDOR
from ..device.platform import VERSION as PLATFORM_VERSION
from ..version import VERSION as DRIVER_VERSION
from .device import DOMAINS, Device
from .device_info_extensions import EXTENSION_INFO
from .entrypoint import entrypoint
from .generated import enums as cl
from .info import answer, make_version, raw, size, sizes, string, uint, ulong, unknown, versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..device.target import Target
    from .info import Row, Version

TRUE, FALSE = 1, 0

# cl_khr_spirv_queries, of headers newer than Debian 12's. The first two give const char *[]: here the strings
# one after the other with their NULs, of which the C side makes pointers.
CL_DEVICE_SPIRV_EXTENDED_INSTRUCTION_SETS_KHR = 0x12B9
CL_DEVICE_SPIRV_EXTENSIONS_KHR = 0x12BA
CL_DEVICE_SPIRV_CAPABILITIES_KHR = 0x12BB

# PCI vendor identifiers, which CL_DEVICE_VENDOR_ID must use where there is one.
VENDOR_IDS = {
    "GenuineIntel": 0x8086,
    "AuthenticAMD": 0x1022,
    "Arm": 0x13B5,
    "Apple": 0x106B,
    "Qualcomm": 0x5143,
    "NVIDIA": 0x10DE,
}


def _overridden(setting: str, otherwise: Callable[[Device], str]) -> Callable[[Device], str]:
    """An answer that a setting may replace, for programs that choose devices by it."""
    return lambda device: settings.text(setting) or otherwise(device)


def _name(device: Device) -> str:
    return (settings.text("CL_DRIVER_DEVICE_NAME") or "{}").replace("{}", device.limits.cpu.name)


def _device_type(device: Device) -> int:
    return {
        "cpu": cl.CL_DEVICE_TYPE_CPU,
        "gpu": cl.CL_DEVICE_TYPE_GPU,
        "accelerator": cl.CL_DEVICE_TYPE_ACCELERATOR,
    }[settings.text("CL_DRIVER_DEVICE_TYPE")]


def _capable(name: str) -> Callable[[Device], int]:
    """CL_TRUE if the CPU has the capability of that name."""
    return lambda device: int(any(row.name == name for row in capabilities.present(device.limits.cpu)))


def _target() -> Target:
    """What code is made for."""
    from ..device.target import target_of

    return target_of(settings)


def _vector_width(element_bytes: int) -> Callable[[Device], int]:
    """How many elements of that size a register of the CPU holds that code is made for."""

    return lambda device: _target().vector_width(element_bytes)


def _most_sub_groups() -> int:
    """Of the largest work-group."""
    target = _target()
    least = 1 if target.checks else target.sub_group_size
    return -(-limits.max_work_group_size() // least)


def _single_fp_config(device: Device) -> int:
    # "CL_FP_FMA - IEEE754-2008 fused multiply-add is supported": only where the CPU has the instruction.
    return (
        cl.CL_FP_DENORM
        | cl.CL_FP_INF_NAN
        | cl.CL_FP_ROUND_TO_NEAREST
        | cl.CL_FP_ROUND_TO_ZERO  # of arithmetic, by the execution mode RoundingModeRTZ
        | cl.CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
        | (cl.CL_FP_FMA if _target().has_fma else 0)
    )


# "If double precision is supported by the device, then the minimum double precision floating-point capability
# [...] is" all of these.
DOUBLE_FP_CONFIG = (
    cl.CL_FP_FMA
    | cl.CL_FP_ROUND_TO_NEAREST
    | cl.CL_FP_ROUND_TO_ZERO
    | cl.CL_FP_ROUND_TO_INF
    | cl.CL_FP_INF_NAN
    | cl.CL_FP_DENORM
)

# What conversions alone can is no mode of arithmetic. fma is correctly rounded without instructions, too.
HALF_FP_CONFIG = (
    cl.CL_FP_DENORM | cl.CL_FP_INF_NAN | cl.CL_FP_ROUND_TO_NEAREST | cl.CL_FP_ROUND_TO_ZERO | cl.CL_FP_FMA
)

ATOMIC_CAPABILITIES = (
    cl.CL_DEVICE_ATOMIC_ORDER_RELAXED
    | cl.CL_DEVICE_ATOMIC_ORDER_ACQ_REL
    | cl.CL_DEVICE_ATOMIC_ORDER_SEQ_CST
    | cl.CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP
    | cl.CL_DEVICE_ATOMIC_SCOPE_DEVICE
    | cl.CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES
)

# Host and device share one address space and one coherent memory system.
SVM_CAPABILITIES = (
    cl.CL_DEVICE_SVM_COARSE_GRAIN_BUFFER
    | cl.CL_DEVICE_SVM_FINE_GRAIN_BUFFER
    | cl.CL_DEVICE_SVM_FINE_GRAIN_SYSTEM
    | cl.CL_DEVICE_SVM_ATOMICS
)

USM_CAPABILITIES = (
    cl.CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL
    | cl.CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL
    | cl.CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ACCESS_INTEL
    | cl.CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ATOMIC_ACCESS_INTEL
)

HOST_QUEUE_PROPERTIES = cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl.CL_QUEUE_PROFILING_ENABLE


def _of_device_queues(value: int) -> Callable[[Device], int]:
    """0 "for devices that do not support on-device queues"."""
    return lambda _: value if capabilities.may_enqueue_from_kernels() else 0


def _version_pairs(found: dict[str, tuple[int, int, int]]) -> list[Version]:
    return [(name, make_version(*version)) for name, version in found.items()]


def _extensions(device: Device) -> dict[str, tuple[int, int, int]]:
    return capabilities.extensions(device.limits.cpu)


def _affinity_domains(device: Device) -> int:
    found = 0
    for domain, name in DOMAINS.items():
        if len(topology.groups(device.cpus, name, topology.system())) > 1:
            found |= domain
    return found | (cl.CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE if found else 0)


def _partition_properties(device: Device) -> list[int]:
    # "If the device cannot be partitioned (i.e. there is no partitioning scheme supported by the device that
    # will return at least two sub-devices), a value of 0 will be returned."
    if len(device.cpus) < 2:
        return [0]
    schemes = [cl.CL_DEVICE_PARTITION_EQUALLY, cl.CL_DEVICE_PARTITION_BY_COUNTS]
    if _affinity_domains(device):
        schemes.append(cl.CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN)
    return schemes


def _uuid(kind: bytes) -> bytes:
    """16 bytes that stay the same on this machine: "immutable for a given device across processes, driver
    APIs, driver versions, and system reboots"."""
    import hashlib  # only this query needs it

    digest = bytearray(hashlib.sha256(b"cl_driver " + kind).digest()[: cl.CL_UUID_SIZE_KHR])
    digest[6] = digest[6] & 0x0F | 0x80  # RFC 9562: version 8, custom
    digest[8] = digest[8] & 0x3F | 0x80
    return bytes(digest)


def _driver_version(device: Device) -> str:
    """Version and identity of the compiler and of what it makes code for: programs that keep binaries
    (PyOpenCL does) take this string into the key, and must not meet binaries that would be refused."""
    from ..jit import identity
    from ..jit.cache import digest

    made = digest(identity.compiler(whole=True).encode(), _target().key.encode())
    return f"{DRIVER_VERSION}-{made[:8]}"


def _strings(names: Iterable[str]) -> bytes:
    return b"".join(name.encode() + b"\0" for name in names)


def _spirv_capabilities(device: Device) -> bytes:
    """cl_uint[] of the capabilities' numbers."""
    numbers = [
        capabilities.SPIRV_NUMBERS[name] for name in capabilities.spirv_capabilities(device.limits.cpu)
    ]
    return b"".join(number.to_bytes(4, "little") for number in sorted(numbers))


_extension_names: Row[Device] = string(lambda device: " ".join(_extensions(device)))
_extension_versions: Row[Device] = versions(lambda device: _version_pairs(_extensions(device)))
_il_version: Row[Device] = string(" ".join(f"SPIR-V_{a}.{b}" for a, b in capabilities.SPIRV_VERSIONS))
_il_versions: Row[Device] = versions(
    [("SPIR-V", make_version(*version)) for version in capabilities.SPIRV_VERSIONS]
)
_opencl_c = capabilities.HIGHEST_COMPATIBLE_OPENCL_C

DEVICE_INFO: dict[int, Row[Device]] = {
    cl.CL_DEVICE_TYPE: ulong(_device_type),
    cl.CL_DEVICE_VENDOR_ID: uint(lambda device: VENDOR_IDS.get(device.limits.cpu.vendor, 0)),
    cl.CL_DEVICE_MAX_COMPUTE_UNITS: uint(lambda device: len(device.cpus)),
    cl.CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS: uint(3),
    cl.CL_DEVICE_MAX_WORK_ITEM_SIZES: sizes(lambda _: (limits.max_work_group_size(),) * 3),
    cl.CL_DEVICE_MAX_WORK_GROUP_SIZE: size(lambda _: limits.max_work_group_size()),
    # The code generator vectorises across work-items: scalar code is what it prefers.
    cl.CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR: uint(1),
    cl.CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT: uint(1),
    cl.CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT: uint(1),
    cl.CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG: uint(1),
    cl.CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT: uint(1),
    cl.CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE: uint(1),
    cl.CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF: uint(1),
    cl.CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR: uint(_vector_width(1)),
    cl.CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT: uint(_vector_width(2)),
    cl.CL_DEVICE_NATIVE_VECTOR_WIDTH_INT: uint(_vector_width(4)),
    cl.CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG: uint(_vector_width(8)),
    cl.CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT: uint(_vector_width(4)),
    cl.CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE: uint(_vector_width(8)),
    cl.CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF: uint(_vector_width(2)),
    cl.CL_DEVICE_MAX_CLOCK_FREQUENCY: uint(lambda device: device.limits.clock_mhz),
    cl.CL_DEVICE_ADDRESS_BITS: uint(64),
    cl.CL_DEVICE_MAX_MEM_ALLOC_SIZE: ulong(lambda device: device.limits.global_memory),
    cl.CL_DEVICE_IMAGE_SUPPORT: uint(TRUE),
    cl.CL_DEVICE_MAX_READ_IMAGE_ARGS: uint(limits.MAX_IMAGE_ARGS),
    cl.CL_DEVICE_MAX_WRITE_IMAGE_ARGS: uint(limits.MAX_IMAGE_ARGS),
    cl.CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS: uint(limits.MAX_IMAGE_ARGS),
    cl.CL_DEVICE_IL_VERSION: _il_version,
    cl.CL_DEVICE_ILS_WITH_VERSION: _il_versions,
    cl.CL_DEVICE_IMAGE2D_MAX_WIDTH: size(limits.IMAGE2D_MAX_SIZE),
    cl.CL_DEVICE_IMAGE2D_MAX_HEIGHT: size(limits.IMAGE2D_MAX_SIZE),
    cl.CL_DEVICE_IMAGE3D_MAX_WIDTH: size(limits.IMAGE3D_MAX_SIZE),
    cl.CL_DEVICE_IMAGE3D_MAX_HEIGHT: size(limits.IMAGE3D_MAX_SIZE),
    cl.CL_DEVICE_IMAGE3D_MAX_DEPTH: size(limits.IMAGE3D_MAX_SIZE),
    cl.CL_DEVICE_IMAGE_MAX_BUFFER_SIZE: size(limits.IMAGE_MAX_BUFFER_SIZE),
    cl.CL_DEVICE_IMAGE_MAX_ARRAY_SIZE: size(limits.IMAGE_MAX_ARRAY_SIZE),
    cl.CL_DEVICE_MAX_SAMPLERS: uint(limits.MAX_SAMPLERS),
    cl.CL_DEVICE_IMAGE_PITCH_ALIGNMENT: uint(limits.IMAGE_PITCH_ALIGNMENT),
    cl.CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT: uint(limits.IMAGE_BASE_ADDRESS_ALIGNMENT),
    cl.CL_DEVICE_MAX_PIPE_ARGS: uint(limits.MAX_PIPE_ARGS),
    cl.CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS: uint(limits.PIPE_MAX_ACTIVE_RESERVATIONS),
    cl.CL_DEVICE_PIPE_MAX_PACKET_SIZE: uint(limits.PIPE_MAX_PACKET_SIZE),
    cl.CL_DEVICE_PIPE_SUPPORT: uint(TRUE),
    cl.CL_DEVICE_MAX_PARAMETER_SIZE: size(limits.MAX_PARAMETER_SIZE),
    cl.CL_DEVICE_MEM_BASE_ADDR_ALIGN: uint(limits.MEM_BASE_ADDR_ALIGN * 8),  # in bits
    cl.CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE: uint(limits.MEM_BASE_ADDR_ALIGN),  # in bytes: long16
    cl.CL_DEVICE_SINGLE_FP_CONFIG: ulong(_single_fp_config),
    cl.CL_DEVICE_DOUBLE_FP_CONFIG: ulong(DOUBLE_FP_CONFIG),
    cl.CL_DEVICE_HALF_FP_CONFIG: ulong(HALF_FP_CONFIG),
    cl.CL_DEVICE_GLOBAL_MEM_CACHE_TYPE: uint(
        lambda device: cl.CL_READ_WRITE_CACHE if device.limits.cache_size else cl.CL_NONE
    ),
    cl.CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE: uint(lambda device: device.limits.cache_line),
    cl.CL_DEVICE_GLOBAL_MEM_CACHE_SIZE: ulong(lambda device: device.limits.cache_size),
    cl.CL_DEVICE_GLOBAL_MEM_SIZE: ulong(lambda device: device.limits.global_memory),
    # Constant memory is ordinary memory.
    cl.CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE: ulong(
        lambda device: min(device.limits.global_memory, limits.MAX_CONSTANT_BUFFER_SIZE)
    ),
    cl.CL_DEVICE_MAX_CONSTANT_ARGS: uint(255),
    cl.CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE: size(limits.MAX_GLOBAL_VARIABLE_SIZE),
    cl.CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE: size(limits.MAX_GLOBAL_VARIABLE_SIZE),
    cl.CL_DEVICE_LOCAL_MEM_TYPE: uint(cl.CL_GLOBAL),
    cl.CL_DEVICE_LOCAL_MEM_SIZE: ulong(lambda device: device.limits.local_memory),
    cl.CL_DEVICE_ERROR_CORRECTION_SUPPORT: uint(FALSE),
    cl.CL_DEVICE_HOST_UNIFIED_MEMORY: uint(TRUE),
    cl.CL_DEVICE_PROFILING_TIMER_RESOLUTION: size(1),
    cl.CL_DEVICE_ENDIAN_LITTLE: uint(TRUE),
    cl.CL_DEVICE_AVAILABLE: uint(TRUE),
    cl.CL_DEVICE_COMPILER_AVAILABLE: uint(TRUE),
    cl.CL_DEVICE_LINKER_AVAILABLE: uint(TRUE),
    cl.CL_DEVICE_EXECUTION_CAPABILITIES: ulong(cl.CL_EXEC_KERNEL | cl.CL_EXEC_NATIVE_KERNEL),
    cl.CL_DEVICE_QUEUE_ON_HOST_PROPERTIES: ulong(HOST_QUEUE_PROPERTIES),
    cl.CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES: ulong(_of_device_queues(HOST_QUEUE_PROPERTIES)),
    cl.CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE: uint(_of_device_queues(limits.DEVICE_QUEUE_PREFERRED_SIZE)),
    cl.CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE: uint(_of_device_queues(limits.DEVICE_QUEUE_MAX_SIZE)),
    cl.CL_DEVICE_MAX_ON_DEVICE_QUEUES: uint(_of_device_queues(limits.MAX_DEVICE_QUEUES)),
    cl.CL_DEVICE_MAX_ON_DEVICE_EVENTS: uint(_of_device_queues(limits.MAX_DEVICE_EVENTS)),
    cl.CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES: ulong(
        _of_device_queues(cl.CL_DEVICE_QUEUE_SUPPORTED | cl.CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT)
    ),
    cl.CL_DEVICE_BUILT_IN_KERNELS: string(""),
    cl.CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION: versions(()),
    cl.CL_DEVICE_NAME: string(_name),
    cl.CL_DEVICE_VENDOR: string(
        _overridden("CL_DRIVER_DEVICE_VENDOR", lambda device: device.limits.cpu.vendor or PLATFORM_VENDOR)
    ),
    cl.CL_DRIVER_VERSION: string(_driver_version),
    cl.CL_DEVICE_PROFILE: string("FULL_PROFILE"),
    cl.CL_DEVICE_VERSION: string(_overridden("CL_DRIVER_DEVICE_VERSION", lambda _: PLATFORM_VERSION)),
    cl.CL_DEVICE_NUMERIC_VERSION: uint(make_version(*NUMERIC_VERSION)),
    cl.CL_DEVICE_OPENCL_C_VERSION: string(
        f"OpenCL C {_opencl_c[0]}.{_opencl_c[1]} cl_driver {DRIVER_VERSION}"
    ),
    cl.CL_DEVICE_OPENCL_C_NUMERIC_VERSION_KHR: uint(make_version(*_opencl_c)),
    cl.CL_DEVICE_OPENCL_C_ALL_VERSIONS: versions(
        lambda device: [
            ("OpenCL C", make_version(*version))
            for version in capabilities.opencl_c_versions(capabilities.features(device.limits.cpu))
        ]
    ),
    cl.CL_DEVICE_OPENCL_C_FEATURES: versions(
        lambda device: [(name, make_version(3)) for name in capabilities.features(device.limits.cpu)]
    ),
    cl.CL_DEVICE_EXTENSIONS: _extension_names,
    cl.CL_DEVICE_EXTENSIONS_WITH_VERSION: _extension_versions,
    cl.CL_DEVICE_PRINTF_BUFFER_SIZE: size(limits.PRINTF_BUFFER_SIZE),
    cl.CL_DEVICE_PREFERRED_INTEROP_USER_SYNC: uint(TRUE),
    cl.CL_DEVICE_PARTITION_MAX_SUB_DEVICES: uint(lambda device: len(device.cpus)),
    cl.CL_DEVICE_PARTITION_PROPERTIES: sizes(_partition_properties),
    cl.CL_DEVICE_PARTITION_AFFINITY_DOMAIN: ulong(_affinity_domains),
    # "Otherwise the implementation may either return a param_value_size_ret of 0 [...] or can return a
    # property value of 0".
    cl.CL_DEVICE_PARTITION_TYPE: sizes(lambda device: device.partition),
    cl.CL_DEVICE_SVM_CAPABILITIES: ulong(SVM_CAPABILITIES),
    # cl_intel_unified_shared_memory
    cl.CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL: ulong(USM_CAPABILITIES),
    cl.CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL: ulong(USM_CAPABILITIES),
    cl.CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL: ulong(USM_CAPABILITIES),
    cl.CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL: ulong(USM_CAPABILITIES),
    cl.CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL: ulong(USM_CAPABILITIES),
    # "This query can return 0 which indicates that the preferred alignment is aligned to the natural size".
    cl.CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT: uint(0),
    cl.CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT: uint(0),
    cl.CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT: uint(0),
    cl.CL_DEVICE_MAX_NUM_SUB_GROUPS: uint(lambda _: _most_sub_groups()),
    cl.CL_DEVICE_MAX_NAMED_BARRIER_COUNT_KHR: uint(limits.MAX_NAMED_BARRIERS),
    # cl_intel_required_subgroup_size
    cl.CL_DEVICE_SUB_GROUP_SIZES_INTEL: sizes(lambda _: limits.SUB_GROUP_SIZES),
    # "This query must return CL_TRUE for devices that support the cl_khr_subgroups extension."
    cl.CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS: uint(_capable("subgroups")),
    cl.CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES: ulong(ATOMIC_CAPABILITIES),
    cl.CL_DEVICE_ATOMIC_FENCE_CAPABILITIES: ulong(ATOMIC_CAPABILITIES | cl.CL_DEVICE_ATOMIC_SCOPE_WORK_ITEM),
    cl.CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT: uint(TRUE),
    cl.CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT: uint(_capable("work_group_collective_functions")),
    cl.CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT: uint(_capable("generic_address_space")),
    cl.CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE: size(_vector_width(4)),
    # "Returns the latest version of the conformance test suite that this device has fully passed in
    # accordance with the official conformance process": none. The CTS asks for vYYYY-MM-DD-XX; drivers that
    # have passed none, as Mesa's, have come to say so by the year 0.
    cl.CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED: string("v0000-01-01-00"),
    CL_DEVICE_SPIRV_EXTENDED_INSTRUCTION_SETS_KHR: raw(_strings(capabilities.SPIRV_INSTRUCTION_SETS)),
    CL_DEVICE_SPIRV_EXTENSIONS_KHR: raw(
        lambda device: _strings(capabilities.spirv_extensions(device.limits.cpu))
    ),
    CL_DEVICE_SPIRV_CAPABILITIES_KHR: raw(_spirv_capabilities),
    # cl_khr_integer_dot_product. Nothing is "accelerated": these are sums of products, which programs could
    # write as well.
    cl.CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES_KHR: ulong(
        cl.CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT_KHR
        | cl.CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT_PACKED_KHR
    ),
    cl.CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_8BIT_KHR: raw(bytes(6 * 4)),
    cl.CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED_KHR: raw(bytes(6 * 4)),
    # cl_khr_device_uuid
    cl.CL_DEVICE_UUID_KHR: raw(lambda _: _uuid(limits.machine_identity())),
    cl.CL_DRIVER_UUID_KHR: raw(lambda _: _uuid(DRIVER_VERSION.encode())),
    cl.CL_DEVICE_LUID_VALID_KHR: uint(FALSE),
    cl.CL_DEVICE_LUID_KHR: raw(bytes(cl.CL_LUID_SIZE_KHR)),
    cl.CL_DEVICE_NODE_MASK_KHR: uint(0),
    **EXTENSION_INFO,
}


@entrypoint("clGetDeviceInfo", Device)
def get_device_info(device: Device, cpus: list[int], param_name: int) -> tuple[bytes]:
    """The answer to a query (4.2). UnknownQuery, CL_INVALID_VALUE, for one that is not in the table."""
    device.cpus = tuple(cpus)
    if param_name not in DEVICE_INFO:
        # "CL_INVALID_VALUE if param_name is not one of the supported values"
        raise unknown(param_name)
    return (answer(DEVICE_INFO, param_name, device),)
