"""What a worker of a cluster offers as a device: of what the driver can (capabilities.py), what needs nothing
of the host beyond memory objects and arguments."""

from __future__ import annotations

from .capabilities import CAPABILITIES, opencl_c_versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# No sub-groups: they are as long as a vector of the CPU, which the host does not know of the worker's.
EXTENSIONS = frozenset((
    "cl_ext_image_from_buffer", "cl_ext_image_raw10_raw12", "cl_ext_image_requirements_info",
    "cl_ext_image_unorm_int_2_101010", "cl_ext_image_unsigned_10x6_12x4_14x2", "cl_khr_3d_image_writes",
    "cl_khr_byte_addressable_store", "cl_khr_create_command_queue", "cl_khr_depth_images",
    "cl_khr_expect_assume", "cl_khr_extended_async_copies", "cl_khr_extended_bit_ops",
    "cl_khr_extended_versioning", "cl_khr_fp16", "cl_khr_fp64",
    "cl_khr_global_int32_base_atomics", "cl_khr_global_int32_extended_atomics",
    "cl_khr_il_program", "cl_khr_image2d_from_buffer", "cl_khr_int64_base_atomics",
    "cl_khr_int64_extended_atomics", "cl_khr_integer_dot_product", "cl_khr_local_int32_base_atomics",
    "cl_khr_local_int32_extended_atomics",
    "cl_khr_spirv_linkonce_odr", "cl_khr_spirv_no_integer_wrap_decoration", "cl_khr_srgb_image_writes",
))  # fmt: skip

FEATURES = frozenset((
    "__opencl_c_3d_image_writes", "__opencl_c_ext_image_raw10_raw12",
    "__opencl_c_ext_image_unorm_int_2_101010", "__opencl_c_ext_image_unsigned_10x6_12x4_14x2",
    "__opencl_c_images", "__opencl_c_read_write_images",
    "__opencl_c_atomic_order_acq_rel", "__opencl_c_atomic_order_seq_cst", "__opencl_c_atomic_scope_device",
    "__opencl_c_fp64", "__opencl_c_generic_address_space", "__opencl_c_int64",
    "__opencl_c_integer_dot_product_input_4x8bit", "__opencl_c_integer_dot_product_input_4x8bit_packed",
    "__opencl_c_work_group_collective_functions",
))  # fmt: skip

OPENCL_VERSION = (3, 0)  # OpenCL 3.1 has sub-groups
OPENCL_C_VERSIONS = tuple(v for v in opencl_c_versions(FEATURES) if v <= OPENCL_VERSION)


def _words() -> tuple[bytes, ...]:
    """Macros that a worker lacks or has another value of; and how a text gets names that are not in it."""
    names = {name for row in CAPABILITIES for name in (*row.extensions, *row.features)}
    return (b"__OPENCL_VERSION__", b"##", b"include", *map(str.encode, names - EXTENSIONS - FEATURES))


def is_another_program(texts: Iterable[bytes]) -> bool:
    """Whether a program for a worker may be another one than that for this machine's device. texts: its
    source, headers and options."""
    words = _words()
    for text in texts:
        joined = text.replace(b"\\\r\n", b"").replace(b"\\\n", b"")
        if any(word in joined for word in words):
            return True
    return False
