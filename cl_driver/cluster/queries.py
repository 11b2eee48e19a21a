"""What a worker's device answers to clGetDeviceInfo: what the driver says there, less what cannot be done
from another machine."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from ..api.generated import enums as cl
from ..device import remote

if TYPE_CHECKING:
    from collections.abc import Callable

# Queries whose answers are the worker's own. A query that is in no table here is none of such a device.
_OWN = (
    "ADDRESS_BITS", "VENDOR_ID", "MAX_COMPUTE_UNITS", "MAX_WORK_ITEM_DIMENSIONS", "MAX_WORK_ITEM_SIZES",
    "MAX_WORK_GROUP_SIZE", "PREFERRED_VECTOR_WIDTH_CHAR", "PREFERRED_VECTOR_WIDTH_SHORT",
    "PREFERRED_VECTOR_WIDTH_INT", "PREFERRED_VECTOR_WIDTH_LONG", "PREFERRED_VECTOR_WIDTH_FLOAT",
    "PREFERRED_VECTOR_WIDTH_DOUBLE", "PREFERRED_VECTOR_WIDTH_HALF", "NATIVE_VECTOR_WIDTH_CHAR",
    "NATIVE_VECTOR_WIDTH_SHORT", "NATIVE_VECTOR_WIDTH_INT", "NATIVE_VECTOR_WIDTH_LONG",
    "NATIVE_VECTOR_WIDTH_FLOAT", "NATIVE_VECTOR_WIDTH_DOUBLE", "NATIVE_VECTOR_WIDTH_HALF",
    "MAX_CLOCK_FREQUENCY", "MAX_MEM_ALLOC_SIZE", "MAX_PARAMETER_SIZE", "MEM_BASE_ADDR_ALIGN",
    "MIN_DATA_TYPE_ALIGN_SIZE", "SINGLE_FP_CONFIG", "DOUBLE_FP_CONFIG", "HALF_FP_CONFIG",
    "GLOBAL_MEM_CACHE_TYPE", "GLOBAL_MEM_CACHELINE_SIZE", "GLOBAL_MEM_CACHE_SIZE", "GLOBAL_MEM_SIZE",
    "MAX_CONSTANT_BUFFER_SIZE", "MAX_CONSTANT_ARGS", "LOCAL_MEM_TYPE", "LOCAL_MEM_SIZE",
    "ERROR_CORRECTION_SUPPORT", "PROFILING_TIMER_RESOLUTION", "ENDIAN_LITTLE", "COMPILER_AVAILABLE",
    "LINKER_AVAILABLE", "IL_VERSION", "ILS_WITH_VERSION", "VENDOR", "PROFILE", "VERSION", "NUMERIC_VERSION",
    "OPENCL_C_VERSION", "OPENCL_C_ALL_VERSIONS", "PREFERRED_WORK_GROUP_SIZE_MULTIPLE",
    "NON_UNIFORM_WORK_GROUP_SUPPORT", "GENERIC_ADDRESS_SPACE_SUPPORT",
    "WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT", "LATEST_CONFORMANCE_VERSION_PASSED", "TYPE",
    "INTEGER_DOT_PRODUCT_CAPABILITIES_KHR", "INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_8BIT_KHR",
    "INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED_KHR", "PRINTF_BUFFER_SIZE",
    "PREFERRED_PLATFORM_ATOMIC_ALIGNMENT", "PREFERRED_GLOBAL_ATOMIC_ALIGNMENT",
    "PREFERRED_LOCAL_ATOMIC_ALIGNMENT", "IMAGE_SUPPORT", "MAX_READ_IMAGE_ARGS", "MAX_WRITE_IMAGE_ARGS",
    "MAX_READ_WRITE_IMAGE_ARGS", "MAX_SAMPLERS", "IMAGE_PITCH_ALIGNMENT", "IMAGE_BASE_ADDRESS_ALIGNMENT",
    "IMAGE2D_MAX_WIDTH", "IMAGE2D_MAX_HEIGHT", "IMAGE3D_MAX_WIDTH", "IMAGE3D_MAX_HEIGHT",
    "IMAGE3D_MAX_DEPTH", "IMAGE_MAX_BUFFER_SIZE", "IMAGE_MAX_ARRAY_SIZE",
)  # fmt: skip

# CLDRIVER_VERSION is none of CL_DEVICE_*.
DRIVER_VERSION = 0x102D

# Sizes and numbers of what remote devices do not have.
_NONE_OF = {
    "uint": (
        "MAX_PIPE_ARGS", "PIPE_MAX_ACTIVE_RESERVATIONS", "PIPE_MAX_PACKET_SIZE",
        "QUEUE_ON_DEVICE_PREFERRED_SIZE", "QUEUE_ON_DEVICE_MAX_SIZE", "MAX_ON_DEVICE_QUEUES",
        "MAX_ON_DEVICE_EVENTS", "MAX_NUM_SUB_GROUPS",
        "SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS", "PARTITION_MAX_SUB_DEVICES", "PIPE_SUPPORT",
        "HOST_UNIFIED_MEMORY",
    ),
    "ulong": (
        "SVM_CAPABILITIES", "QUEUE_ON_DEVICE_PROPERTIES", "DEVICE_ENQUEUE_CAPABILITIES",
        "PARTITION_AFFINITY_DOMAIN",
    ),
    "size_t": ("MAX_GLOBAL_VARIABLE_SIZE", "GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE"),
    "intptr_t": ("PARTITION_PROPERTIES", "PARTITION_TYPE"),
}  # fmt: skip
_FORMATS = {"uint": "<I", "ulong": "<Q", "size_t": "<Q", "intptr_t": "<q"}

_NAME_VERSION = struct.Struct("<I64s")  # cl_name_version
_UINT, _ULONG = struct.Struct("<I"), struct.Struct("<Q")


def number(name: str) -> int:
    """A query's, by its name after CL_DEVICE_."""
    found: int = getattr(cl, f"CL_DEVICE_{name}")
    return found


def answers(ask: Callable[[int], bytes], host: str, cores: int) -> dict[int, bytes]:
    """The answers of a device, by query. ask: the driver's answer to one on that machine, which may raise
    LookupError. host, cores: what it is named after."""
    found = {DRIVER_VERSION: ask(DRIVER_VERSION)}
    for name in _OWN:
        try:
            found[number(name)] = ask(number(name))
        except LookupError:
            continue
    for kind, names in _NONE_OF.items():
        for name in names:
            found[number(name)] = struct.pack(_FORMATS[kind], 0)
    cpu = _text(ask(number("NAME")))
    found[number("NAME")] = f"{host}, {cores} {'core' if cores == 1 else 'cores'}: {cpu}".encode() + b"\0"
    kept = [name for name in _text(ask(number("EXTENSIONS"))).split() if name in remote.EXTENSIONS]
    found[number("EXTENSIONS")] = " ".join(kept).encode() + b"\0"
    every = ask(number("EXTENSIONS_WITH_VERSION"))
    found[number("EXTENSIONS_WITH_VERSION")] = _among(remote.EXTENSIONS, every)
    found[number("OPENCL_C_FEATURES")] = _among(remote.FEATURES, ask(number("OPENCL_C_FEATURES")))
    major, minor = remote.OPENCL_VERSION
    _, _, vendor = ask(number("VERSION")).split(b" ", 2)
    found[number("VERSION")] = b"OpenCL %d.%d %s" % (major, minor, vendor)
    found[number("NUMERIC_VERSION")] = _UINT.pack(_cl_version(remote.OPENCL_VERSION))
    versions = {_cl_version(version) for version in remote.OPENCL_C_VERSIONS}
    every = ask(number("OPENCL_C_ALL_VERSIONS"))
    found[number("OPENCL_C_ALL_VERSIONS")] = b"".join(
        _NAME_VERSION.pack(*pair) for pair in _NAME_VERSION.iter_unpack(every) if pair[0] in versions
    )
    found[number("BUILT_IN_KERNELS")] = b"\0"
    found[number("BUILT_IN_KERNELS_WITH_VERSION")] = b""
    found[number("AVAILABLE")] = _UINT.pack(cl.CL_TRUE)
    found[number("PREFERRED_INTEROP_USER_SYNC")] = _UINT.pack(cl.CL_TRUE)
    found[number("EXECUTION_CAPABILITIES")] = _ULONG.pack(cl.CL_EXEC_KERNEL)
    found[number("QUEUE_ON_HOST_PROPERTIES")] = _ULONG.pack(
        cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl.CL_QUEUE_PROFILING_ENABLE
    )
    orders = cl.CL_DEVICE_ATOMIC_ORDER_RELAXED | cl.CL_DEVICE_ATOMIC_ORDER_ACQ_REL
    orders |= cl.CL_DEVICE_ATOMIC_ORDER_SEQ_CST
    scopes = cl.CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP | cl.CL_DEVICE_ATOMIC_SCOPE_DEVICE
    found[number("ATOMIC_MEMORY_CAPABILITIES")] = _ULONG.pack(orders | scopes)
    found[number("ATOMIC_FENCE_CAPABILITIES")] = _ULONG.pack(
        orders | scopes | cl.CL_DEVICE_ATOMIC_SCOPE_WORK_ITEM
    )
    return found


def _cl_version(version: tuple[int, int]) -> int:
    return version[0] << 22 | version[1] << 12


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode()


def _among(names: frozenset[str], value: bytes) -> bytes:
    """A list of cl_name_version without those of other names."""
    kept = [pair for pair in _NAME_VERSION.iter_unpack(value) if _text(pair[1]) in names]
    return b"".join(_NAME_VERSION.pack(*pair) for pair in kept)


# What all workers together have more of than one has; of other numbers they have the least.
_SUMS = ("MAX_COMPUTE_UNITS",)
# Bits, of which they have what each has.
_BITS = (
    "SINGLE_FP_CONFIG", "DOUBLE_FP_CONFIG", "HALF_FP_CONFIG", "EXECUTION_CAPABILITIES",
    "QUEUE_ON_HOST_PROPERTIES", "ATOMIC_MEMORY_CAPABILITIES", "ATOMIC_FENCE_CAPABILITIES",
    "INTEGER_DOT_PRODUCT_CAPABILITIES_KHR",
)  # fmt: skip
_GREATEST = ("MEM_BASE_ADDR_ALIGN", "MIN_DATA_TYPE_ALIGN_SIZE", "IMAGE_PITCH_ALIGNMENT",
             "IMAGE_BASE_ADDRESS_ALIGNMENT")  # fmt: skip
_LEAST = (
    "MAX_WORK_GROUP_SIZE", "MAX_MEM_ALLOC_SIZE", "MAX_PARAMETER_SIZE", "GLOBAL_MEM_SIZE",
    "GLOBAL_MEM_CACHE_SIZE", "MAX_CONSTANT_BUFFER_SIZE", "MAX_CONSTANT_ARGS", "LOCAL_MEM_SIZE",
    "PRINTF_BUFFER_SIZE", "NUMERIC_VERSION", "MAX_CLOCK_FREQUENCY", "IMAGE2D_MAX_WIDTH", "IMAGE2D_MAX_HEIGHT",
    "IMAGE3D_MAX_WIDTH", "IMAGE3D_MAX_HEIGHT", "IMAGE3D_MAX_DEPTH", "IMAGE_MAX_BUFFER_SIZE",
    "IMAGE_MAX_ARRAY_SIZE", "MAX_SAMPLERS",
    "MAX_READ_IMAGE_ARGS", "MAX_WRITE_IMAGE_ARGS", "MAX_READ_WRITE_IMAGE_ARGS",
)  # fmt: skip
_LISTS = ("EXTENSIONS_WITH_VERSION", "OPENCL_C_FEATURES", "OPENCL_C_ALL_VERSIONS", "ILS_WITH_VERSION")


def of_all(workers: list[list[list[Any]]]) -> list[list[Any]]:
    """The answers of a device that is all workers, [[query, value], ...], of theirs."""
    tables = [{query: bytes(value) for query, value in answers} for answers in workers]
    first = tables[0]
    found = {query: value for query, value in first.items() if all(query in table for table in tables)}
    for names, choose in ((_SUMS, sum), (_LEAST, min), (_GREATEST, max), (_BITS, _common_bits)):
        for name in names:
            if number(name) in found:
                size = len(found[number(name)])
                every = [int.from_bytes(table[number(name)], "little") for table in tables]
                found[number(name)] = choose(every).to_bytes(size, "little")
    sizes = [struct.unpack("<3Q", table[number("MAX_WORK_ITEM_SIZES")]) for table in tables]
    found[number("MAX_WORK_ITEM_SIZES")] = struct.pack("<3Q", *map(min, zip(*sizes, strict=True)))
    words = [set(_text(table[number("EXTENSIONS")]).split()) for table in tables]
    kept = [name for name in _text(first[number("EXTENSIONS")]).split() if all(name in one for one in words)]
    found[number("EXTENSIONS")] = " ".join(kept).encode() + b"\0"
    for name in _LISTS:
        pairs = [set(_NAME_VERSION.iter_unpack(table[number(name)])) for table in tables]
        common = [p for p in _NAME_VERSION.iter_unpack(first[number(name)]) if all(p in one for one in pairs)]
        found[number(name)] = b"".join(_NAME_VERSION.pack(*pair) for pair in common)
    cores = int.from_bytes(found[number("MAX_COMPUTE_UNITS")], "little")
    found[number("NAME")] = f"all {len(tables)} workers, {cores} cores".encode() + b"\0"
    return [[query, value] for query, value in found.items()]


# What nothing depends on, and is not the same at two moments.
_VARYING = ("NAME", "MAX_COMPUTE_UNITS", "MAX_CLOCK_FREQUENCY")


def can_join(whole: list[list[Any]], worker: list[list[Any]]) -> bool:
    """Whether all that a device which is all workers has answered stays true with one more. Both: answers,
    [[query, value], ...]."""
    after = dict(of_all([whole, worker]))
    varying = {number(name) for name in _VARYING}
    return all(after.get(query) == bytes(value) for query, value in whole if query not in varying)


def _common_bits(values: list[int]) -> int:
    common = values[0]
    for value in values:
        common &= value
    return common
