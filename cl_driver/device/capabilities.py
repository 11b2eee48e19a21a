"""What the device can do, one row per capability.

Extension strings, OpenCL C feature macros and SPIR-V capabilities all derive from these rows: what is not
here is not claimed anywhere, and what is here is claimed everywhere that its specification says.
"""

from __future__ import annotations

from .. import settings, trust
from .cpu import Cpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    Version: TypeAlias = tuple[int, int, int]


def may_have_inline_assembly() -> bool:
    """Whether programs may: not if somebody with fewer rights may have written them."""
    return settings.flag("CL_DRIVER_INLINE_ASSEMBLY") and trust.is_trusted()


def may_enqueue_from_kernels() -> bool:
    """Whether kernels may enqueue kernels."""
    return settings.flag("CL_DRIVER_DEVICE_ENQUEUE")


class Capability:
    """One thing that a device may or may not do.

    extensions: {name: (major, minor, patch)}; features: OpenCL C feature macros (from OpenCL C 3.0 on);
    spirv: names of SPIR-V capabilities; spirv_extensions: SPIR-V extensions that a module may declare;
    present(cpu): whether this CPU has it; unconditional: every CPU has.
    """

    __slots__ = ("extensions", "features", "name", "present", "spirv", "spirv_extensions", "unconditional")

    def __init__(
        self,
        name: str,
        *,
        extensions: dict[str, Version] | Iterable[str] = (),
        features: tuple[str, ...] = (),
        spirv: tuple[str, ...] = (),
        spirv_extensions: tuple[str, ...] = (),
        present: Callable[[Cpu], bool] | None = None,
    ) -> None:
        """extensions: names alone are of version 1.0.0; present: None for what every CPU has."""
        self.name = name
        self.extensions: dict[str, Version] = (
            extensions if isinstance(extensions, dict) else dict.fromkeys(extensions, (1, 0, 0))
        )
        self.features = features
        self.spirv = spirv
        self.spirv_extensions = spirv_extensions
        self.unconditional = present is None
        self.present = present or (lambda cpu: True)


CAPABILITIES = (
    Capability(
        "kernels",
        spirv=(
            "Addresses",
            "Float16Buffer",
            "Int16",
            "Int8",
            "Kernel",
            "Linkage",
            "Vector16",
        ),
    ),
    Capability("byte_addressable_store", extensions=("cl_khr_byte_addressable_store",)),
    Capability(
        "int32_atomics",
        extensions=(
            "cl_khr_global_int32_base_atomics",
            "cl_khr_global_int32_extended_atomics",
            "cl_khr_local_int32_base_atomics",
            "cl_khr_local_int32_extended_atomics",
        ),
    ),
    Capability(
        "int64_atomics",
        extensions=("cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"),
        spirv=("Int64Atomics",),
    ),
    Capability("int64", features=("__opencl_c_int64",), spirv=("Int64",)),
    Capability("fp64", extensions=("cl_khr_fp64",), features=("__opencl_c_fp64",), spirv=("Float64",)),
    Capability("fp16", extensions=("cl_khr_fp16",), spirv=("Float16",)),
    Capability(
        "atomic_orders_and_scopes",
        features=(
            "__opencl_c_atomic_order_acq_rel",
            "__opencl_c_atomic_order_seq_cst",
            "__opencl_c_atomic_scope_device",
            "__opencl_c_atomic_scope_all_devices",
        ),
    ),
    Capability(
        "fp32_atomics",
        extensions=("cl_ext_float_atomics",),
        features=(
            "__opencl_c_ext_fp32_global_atomic_add",
            "__opencl_c_ext_fp32_global_atomic_min_max",
            "__opencl_c_ext_fp32_local_atomic_add",
            "__opencl_c_ext_fp32_local_atomic_min_max",
        ),
        spirv=("AtomicFloat32AddEXT", "AtomicFloat32MinMaxEXT"),
        spirv_extensions=("SPV_EXT_shader_atomic_float_add", "SPV_EXT_shader_atomic_float_min_max"),
    ),
    Capability(
        "fp64_atomics",
        features=(
            "__opencl_c_ext_fp64_global_atomic_add",
            "__opencl_c_ext_fp64_global_atomic_min_max",
            "__opencl_c_ext_fp64_local_atomic_add",
            "__opencl_c_ext_fp64_local_atomic_min_max",
        ),
        spirv=("AtomicFloat64AddEXT", "AtomicFloat64MinMaxEXT"),
    ),
    Capability(
        "fp16_atomics",
        features=(
            "__opencl_c_ext_fp16_global_atomic_add",
            "__opencl_c_ext_fp16_global_atomic_load_store",
            "__opencl_c_ext_fp16_global_atomic_min_max",
            "__opencl_c_ext_fp16_local_atomic_add",
            "__opencl_c_ext_fp16_local_atomic_load_store",
            "__opencl_c_ext_fp16_local_atomic_min_max",
        ),
        spirv=("AtomicFloat16AddEXT", "AtomicFloat16MinMaxEXT"),
        spirv_extensions=("SPV_EXT_shader_atomic_float16_add",),
    ),
    Capability(
        "generic_address_space", features=("__opencl_c_generic_address_space",), spirv=("GenericPointer",)
    ),
    Capability(
        "images",
        features=("__opencl_c_images",),
        spirv=("ImageBasic", "LiteralSampler", "Image1D", "Sampled1D", "ImageBuffer", "SampledBuffer"),
    ),
    Capability("read_write_images", features=("__opencl_c_read_write_images",), spirv=("ImageReadWrite",)),
    Capability(
        "3d_image_writes", extensions=("cl_khr_3d_image_writes",), features=("__opencl_c_3d_image_writes",)
    ),
    Capability(
        "image_unorm_int_2_101010",
        extensions={"cl_ext_image_unorm_int_2_101010": (1, 0, 0)},
        features=("__opencl_c_ext_image_unorm_int_2_101010",),
    ),
    Capability(
        "image_unsigned_10x6_12x4_14x2",
        extensions={"cl_ext_image_unsigned_10x6_12x4_14x2": (1, 0, 0)},
        features=("__opencl_c_ext_image_unsigned_10x6_12x4_14x2",),
    ),
    Capability(
        "image_raw10_raw12",
        extensions={"cl_ext_image_raw10_raw12": (1, 0, 0)},
        features=("__opencl_c_ext_image_raw10_raw12",),
    ),
    Capability("pipes", features=("__opencl_c_pipes",), spirv=("Pipes", "PipeStorage")),
    Capability(
        "device_enqueue",
        features=("__opencl_c_device_enqueue",),
        spirv=("DeviceEnqueue",),
        present=lambda cpu: may_enqueue_from_kernels(),
    ),
    Capability("depth_images", extensions=("cl_khr_depth_images",)),
    Capability(
        "mipmap_images",
        extensions=("cl_khr_mipmap_image", "cl_khr_mipmap_image_writes"),
        spirv=("ImageMipmap",),
    ),
    Capability("srgb_image_writes", extensions=("cl_khr_srgb_image_writes",)),
    Capability("program_scope_global_variables", features=("__opencl_c_program_scope_global_variables",)),
    Capability(
        "work_group_collective_functions",
        features=("__opencl_c_work_group_collective_functions",),
        spirv=("Groups",),
    ),
    Capability(
        "subgroups",
        extensions=("cl_khr_subgroups",),
        features=("__opencl_c_subgroups",),
        spirv=("SubgroupDispatch",),
    ),
    Capability(
        "subgroup_named_barrier", extensions=("cl_khr_subgroup_named_barrier",), spirv=("NamedBarrier",)
    ),
    Capability("subgroup_extended_types", extensions=("cl_khr_subgroup_extended_types",)),
    Capability(
        "subgroup_non_uniform_vote",
        extensions=("cl_khr_subgroup_non_uniform_vote",),
        spirv=("GroupNonUniform", "GroupNonUniformVote"),
    ),
    Capability("subgroup_ballot", extensions=("cl_khr_subgroup_ballot",), spirv=("GroupNonUniformBallot",)),
    Capability(
        "subgroup_non_uniform_arithmetic",
        extensions=("cl_khr_subgroup_non_uniform_arithmetic",),
        spirv=("GroupNonUniformArithmetic",),
    ),
    Capability(
        "subgroup_shuffle", extensions=("cl_khr_subgroup_shuffle",), spirv=("GroupNonUniformShuffle",)
    ),
    Capability(
        "subgroup_shuffle_relative",
        extensions=("cl_khr_subgroup_shuffle_relative",),
        spirv=("GroupNonUniformShuffleRelative",),
    ),
    Capability(
        "subgroup_clustered_reduce",
        extensions=("cl_khr_subgroup_clustered_reduce",),
        spirv=("GroupNonUniformClustered",),
    ),
    Capability(
        "subgroup_rotate",
        extensions=("cl_khr_subgroup_rotate",),
        spirv=("GroupNonUniformRotateKHR",),
        spirv_extensions=("SPV_KHR_subgroup_rotate",),
    ),
    # The functions of cl_khr_work_group_uniform_arithmetic and cl_khr_async_work_group_copy_fence are there,
    # and so is the instruction set of cl_khr_spirv_extended_debug_info. Their names are not told as long as
    # the Khronos CTS (compiler_defines_for_extensions) takes them for names that Khronos did not approve.
    Capability(
        "work_group_uniform_arithmetic",
        spirv=("GroupUniformArithmeticKHR",),
        spirv_extensions=("SPV_KHR_uniform_group_instructions",),
    ),
    Capability(
        "intel_subgroups",
        extensions={
            "cl_intel_spirv_subgroups": (1, 0, 0),
            "cl_intel_subgroup_local_block_io": (1, 0, 1),
            "cl_intel_subgroups": (1, 0, 0),
            "cl_intel_subgroups_char": (1, 0, 0),
            "cl_intel_subgroups_long": (1, 0, 0),
            "cl_intel_subgroups_short": (1, 1, 0),
        },
        spirv=("SubgroupBufferBlockIOINTEL", "SubgroupImageBlockIOINTEL", "SubgroupShuffleINTEL"),
        spirv_extensions=("SPV_INTEL_subgroups",),
    ),
    Capability(
        "split_barrier",
        extensions=("cl_intel_split_work_group_barrier",),
        spirv=("SplitBarrierINTEL",),
        spirv_extensions=("SPV_INTEL_split_barrier",),
    ),
    Capability("devicelib_assert", extensions=("cl_intel_devicelib_assert",)),  # spirv/assertions.py
    Capability("global_variable_access", extensions={"cl_intel_global_variable_access": (0, 9, 0)}),
    Capability("device_attribute_query", extensions=("cl_intel_device_attribute_query",)),
    Capability("cxx_for_opencl", extensions=("cl_ext_cxx_for_opencl",)),
    Capability("required_subgroup_size", extensions=("cl_intel_required_subgroup_size",)),
    Capability("il_program", extensions=("cl_khr_il_program",)),
    Capability(
        "spirv_no_integer_wrap_decoration",
        extensions=("cl_khr_spirv_no_integer_wrap_decoration",),
        spirv_extensions=("SPV_KHR_no_integer_wrap_decoration",),
    ),
    Capability(
        "spirv_linkonce_odr",
        extensions=("cl_khr_spirv_linkonce_odr",),
        spirv_extensions=("SPV_KHR_linkonce_odr",),
    ),
    Capability(
        "expect_assume",
        extensions=("cl_khr_expect_assume",),
        spirv=("ExpectAssumeKHR",),
        spirv_extensions=("SPV_KHR_expect_assume",),
    ),
    Capability(
        "extended_bit_ops",
        extensions=("cl_khr_extended_bit_ops",),
        spirv=("BitInstructions",),
        spirv_extensions=("SPV_KHR_bit_instructions",),
    ),
    Capability(
        "integer_dot_product",
        extensions={"cl_khr_integer_dot_product": (2, 0, 0)},
        features=(
            "__opencl_c_integer_dot_product_input_4x8bit",
            "__opencl_c_integer_dot_product_input_4x8bit_packed",
        ),
        spirv=("DotProduct", "DotProductInput4x8Bit", "DotProductInput4x8BitPacked", "DotProductInputAll"),
        spirv_extensions=("SPV_KHR_integer_dot_product",),
    ),
    Capability(
        "kernel_clock",
        extensions=("cl_khr_kernel_clock",),
        features=(
            "__opencl_c_kernel_clock_scope_device",
            "__opencl_c_kernel_clock_scope_sub_group",
            "__opencl_c_kernel_clock_scope_work_group",
        ),
        spirv=("ShaderClockKHR",),
        spirv_extensions=("SPV_KHR_shader_clock",),
    ),
    Capability(
        "bfloat16_conversions",
        extensions=("cl_intel_bfloat16_conversions",),
        spirv=("BFloat16ConversionINTEL",),
        spirv_extensions=("SPV_INTEL_bfloat16_conversion",),
    ),
    # Subnormal numbers are kept and results rounded to nearest even whatever the host's modes are (thread.c).
    # Rounding toward zero is computed (passes/lower/toward_zero.py), of arithmetic and conversions, not of
    # atomics.
    Capability(
        "float_controls",
        spirv=(
            "DenormFlushToZero",
            "DenormPreserve",
            "RoundingModeRTE",
            "RoundingModeRTZ",
            "SignedZeroInfNanPreserve",
        ),
        spirv_extensions=("SPV_KHR_float_controls",),
    ),
    Capability("float_controls2", spirv=("FloatControls2",), spirv_extensions=("SPV_KHR_float_controls2",)),
    Capability("optnone", spirv=("OptNoneEXT",), spirv_extensions=("SPV_EXT_optnone", "SPV_INTEL_optnone")),
    Capability("non_semantic_info", spirv_extensions=("SPV_KHR_non_semantic_info",)),
    Capability(
        "spirv_memory_access_aliasing",
        spirv=("MemoryAccessAliasingINTEL",),
        spirv_extensions=("SPV_INTEL_memory_access_aliasing",),
    ),
    Capability(
        "spirv_fp_fast_math_mode",
        spirv=("FPFastMathModeINTEL",),
        spirv_extensions=("SPV_INTEL_fp_fast_math_mode",),
    ),
    Capability(
        "long_composites", spirv=("LongCompositesINTEL",), spirv_extensions=("SPV_INTEL_long_composites",)
    ),
    Capability(
        "inline_assembly",
        spirv=("AsmINTEL",),
        spirv_extensions=("SPV_INTEL_inline_assembly",),
        present=lambda cpu: may_have_inline_assembly(),
    ),
    Capability("long_vectors", spirv=("LongVectorEXT",), spirv_extensions=("SPV_EXT_long_vector",)),
    # The rest of SPV_INTEL_vector_compute is about threads of Intel's GPUs.
    Capability(
        "vectors_of_any_size", spirv=("VectorAnyINTEL",), spirv_extensions=("SPV_INTEL_vector_compute",)
    ),
    Capability(
        "masked_gather_scatter",
        spirv=("MaskedGatherScatterINTEL",),
        spirv_extensions=("SPV_INTEL_masked_gather_scatter",),
    ),
    Capability("fp_max_error", spirv=("FPMaxErrorINTEL",), spirv_extensions=("SPV_INTEL_fp_max_error",)),
    Capability(
        "function_pointers",
        spirv=("FunctionPointersINTEL", "IndirectReferencesINTEL"),
        spirv_extensions=("SPV_INTEL_function_pointers",),
    ),
    Capability(
        "variable_length_arrays",
        spirv=("UntypedVariableLengthArrayINTEL", "VariableLengthArrayINTEL"),
        spirv_extensions=("SPV_INTEL_variable_length_array",),
    ),
    Capability(
        "arbitrary_precision_integers",
        spirv=("ArbitraryPrecisionIntegersALTERA",),
        spirv_extensions=(
            "SPV_ALTERA_arbitrary_precision_integers",
            "SPV_INTEL_arbitrary_precision_integers",
        ),
    ),
    Capability(
        "untyped_pointers", spirv=("UntypedPointersKHR",), spirv_extensions=("SPV_KHR_untyped_pointers",)
    ),
    Capability(
        "bfloat16",
        spirv=("BFloat16DotProductKHR", "BFloat16TypeKHR"),
        spirv_extensions=("SPV_KHR_bfloat16",),
    ),
    Capability("int4", spirv=("Int4TypeINTEL",), spirv_extensions=("SPV_INTEL_int4",)),
    Capability("float8", spirv=("Float8EXT",), spirv_extensions=("SPV_EXT_float8",)),
    # Hints: nothing that a program can see depends on them.
    Capability(
        "unstructured_loop_controls",
        spirv=("UnstructuredLoopControlsINTEL",),
        spirv_extensions=("SPV_INTEL_unstructured_loop_controls",),
    ),
    Capability(
        "cache_controls", spirv=("CacheControlsINTEL",), spirv_extensions=("SPV_INTEL_cache_controls",)
    ),
    Capability(
        "global_variable_host_access",
        spirv=("GlobalVariableHostAccessINTEL",),
        spirv_extensions=("SPV_INTEL_global_variable_host_access",),
    ),
    Capability("debug_module", spirv=("DebugInfoModuleINTEL",), spirv_extensions=("SPV_INTEL_debug_module",)),
    # What limits work-groups is kept to; the rest are hints.
    Capability(
        "kernel_attributes",
        spirv=("FPGAKernelAttributesINTEL", "KernelAttributesINTEL"),
        spirv_extensions=("SPV_INTEL_kernel_attributes",),
    ),
    Capability(  # clang declares it by itself
        "relaxed_printf", spirv_extensions=("SPV_EXT_relaxed_printf_string_address_space",)
    ),
    Capability("uniform_decoration", spirv=("UniformDecoration",)),  # a hint
    Capability("spirv_queries", extensions=("cl_khr_spirv_queries",)),
    Capability("extended_versioning", extensions=("cl_khr_extended_versioning",)),
    Capability("create_command_queue", extensions=("cl_khr_create_command_queue",)),
    Capability("suggested_local_work_size", extensions=("cl_khr_suggested_local_work_size",)),
    Capability("unified_shared_memory", extensions={"cl_intel_unified_shared_memory": (1, 2, 0)}),
    Capability("unified_svm", extensions={"cl_khr_unified_svm": (0, 9, 0)}),
    Capability("buffer_device_address", extensions={"cl_ext_buffer_device_address": (1, 0, 2)}),
    Capability(
        "command_buffer",
        extensions={
            "cl_khr_command_buffer": (0, 9, 8),
            "cl_khr_command_buffer_multi_device": (0, 9, 2),
            "cl_khr_command_buffer_mutable_dispatch": (0, 9, 5),
        },
    ),
    Capability(
        "semaphore",
        extensions={
            "cl_khr_external_semaphore": (1, 0, 1),
            "cl_khr_external_semaphore_opaque_fd": (1, 0, 0),
            "cl_khr_semaphore": (1, 0, 1),
        },
    ),
    Capability(
        "queue_hints",
        extensions={"cl_khr_priority_hints": (1, 0, 0), "cl_khr_throttle_hints": (1, 0, 0)},
    ),
    Capability("immutable_memory_objects", extensions={"cl_ext_immutable_memory_objects": (1, 0, 0)}),
    Capability(
        "extended_async_copies",
        extensions={"cl_khr_extended_async_copies": (1, 0, 0)},
    ),
    Capability("terminate_context", extensions={"cl_khr_terminate_context": (1, 0, 0)}),
    Capability("initialize_memory", extensions={"cl_khr_initialize_memory": (1, 0, 0)}),
    Capability(
        "external_memory",
        extensions={
            "cl_khr_external_memory": (1, 0, 1),
            "cl_khr_external_memory_opaque_fd": (1, 0, 0),
        },
    ),
    Capability("device_uuid", extensions=("cl_khr_device_uuid",)),
    Capability("image2d_from_buffer", extensions=("cl_khr_image2d_from_buffer",)),
    Capability(
        "image_from_buffer",
        extensions={
            "cl_ext_image_from_buffer": (1, 0, 0),
            "cl_ext_image_requirements_info": (0, 5, 0),
        },
    ),
)


def present(cpu: Cpu) -> list[Capability]:
    """The capabilities of that CPU, in the order of the table."""
    return [capability for capability in CAPABILITIES if capability.present(cpu)]


def extensions(cpu: Cpu) -> dict[str, tuple[int, int, int]]:
    """Names and versions of the device's extensions, sorted by name."""
    found: dict[str, Version] = {}
    for capability in present(cpu):
        found.update(capability.extensions)
    return dict(sorted(found.items()))


def features(cpu: Cpu) -> tuple[str, ...]:
    """The feature macros that programs of OpenCL C 3.0 and later see, sorted."""
    return tuple(sorted(name for capability in present(cpu) for name in capability.features))


def spirv_capabilities(cpu: Cpu) -> tuple[str, ...]:
    """The SPIR-V capabilities that a module may declare, sorted."""
    return tuple(sorted(name for capability in present(cpu) for name in capability.spirv))


def spirv_extensions(cpu: Cpu) -> tuple[str, ...]:
    """The SPIR-V extensions that a module may declare, sorted."""
    return tuple(sorted(name for capability in present(cpu) for name in capability.spirv_extensions))


# The numbers of the SPIR-V capabilities above, for CL_DEVICE_SPIRV_CAPABILITIES_KHR. A test compares them
# with the grammar, which the host's process does not load.
SPIRV_NUMBERS = {
    "Addresses": 4,
    "ArbitraryPrecisionIntegersALTERA": 5844,
    "AsmINTEL": 5606,
    "AtomicFloat16AddEXT": 6095,
    "AtomicFloat16MinMaxEXT": 5616,
    "AtomicFloat32AddEXT": 6033,
    "AtomicFloat32MinMaxEXT": 5612,
    "AtomicFloat64AddEXT": 6034,
    "AtomicFloat64MinMaxEXT": 5613,
    "BFloat16ConversionINTEL": 6115,
    "BFloat16DotProductKHR": 5117,
    "BFloat16TypeKHR": 5116,
    "BitInstructions": 6025,
    "CacheControlsINTEL": 6441,
    "DebugInfoModuleINTEL": 6114,
    "DenormFlushToZero": 4465,
    "DenormPreserve": 4464,
    "DotProduct": 6019,
    "DotProductInput4x8Bit": 6017,
    "DotProductInput4x8BitPacked": 6018,
    "DotProductInputAll": 6016,
    "ExpectAssumeKHR": 5629,
    "FPFastMathModeINTEL": 5837,
    "FPMaxErrorINTEL": 6169,
    "FPGAKernelAttributesINTEL": 5897,
    "Float16": 9,
    "Float16Buffer": 8,
    "Float64": 10,
    "Float8EXT": 4212,
    "FloatControls2": 6029,
    "FunctionPointersINTEL": 5603,
    "GenericPointer": 38,
    "GlobalVariableHostAccessINTEL": 6187,
    "GroupNonUniform": 61,
    "GroupNonUniformArithmetic": 63,
    "GroupNonUniformBallot": 64,
    "GroupNonUniformClustered": 67,
    "GroupNonUniformRotateKHR": 6026,
    "GroupNonUniformShuffle": 65,
    "GroupNonUniformShuffleRelative": 66,
    "GroupNonUniformVote": 62,
    "GroupUniformArithmeticKHR": 6400,
    "Groups": 18,
    "Image1D": 44,
    "ImageBasic": 13,
    "ImageBuffer": 47,
    "ImageMipmap": 15,
    "ImageReadWrite": 14,
    "IndirectReferencesINTEL": 5604,
    "Int16": 22,
    "Int4TypeINTEL": 5112,
    "Int64": 11,
    "Int64Atomics": 12,
    "Int8": 39,
    "Kernel": 6,
    "KernelAttributesINTEL": 5892,
    "Linkage": 5,
    "LiteralSampler": 20,
    "LongCompositesINTEL": 6089,
    "LongVectorEXT": 5425,
    "DeviceEnqueue": 19,
    "MaskedGatherScatterINTEL": 6427,
    "MemoryAccessAliasingINTEL": 5910,
    "NamedBarrier": 59,
    "OptNoneEXT": 6094,
    "PipeStorage": 60,
    "Pipes": 17,
    "RoundingModeRTE": 4467,
    "RoundingModeRTZ": 4468,
    "Sampled1D": 43,
    "SampledBuffer": 46,
    "ShaderClockKHR": 5055,
    "SignedZeroInfNanPreserve": 4466,
    "SplitBarrierINTEL": 6141,
    "SubgroupBufferBlockIOINTEL": 5569,
    "SubgroupDispatch": 58,
    "SubgroupImageBlockIOINTEL": 5570,
    "SubgroupShuffleINTEL": 5568,
    "UniformDecoration": 71,
    "UnstructuredLoopControlsINTEL": 5886,
    "UntypedPointersKHR": 4473,
    "UntypedVariableLengthArrayINTEL": 6243,
    "VariableLengthArrayINTEL": 5817,
    "Vector16": 7,
    "VectorAnyINTEL": 5619,
}
SPIRV_INSTRUCTION_SETS = ("OpenCL.std", "OpenCL.DebugInfo.100")

# CL_DEVICE_OPENCL_C_ALL_VERSIONS: "Support for at least OpenCL C 3.1, OpenCL C 3.0, OpenCL C 1.2, OpenCL C
# 1.1, and OpenCL C 1.0 is required for an OpenCL 3.1 device."
_REQUIRED_OPENCL_C = ((1, 0), (1, 1), (1, 2), (3, 0), (3, 1))
# What OpenCL C 2.0 has without asking, and OpenCL C 3.0 only with these features.
_FEATURES_OF_OPENCL_C_2 = frozenset((
    "__opencl_c_3d_image_writes", "__opencl_c_atomic_order_acq_rel", "__opencl_c_atomic_order_seq_cst",
    "__opencl_c_atomic_scope_all_devices", "__opencl_c_atomic_scope_device", "__opencl_c_device_enqueue",
    "__opencl_c_generic_address_space", "__opencl_c_images", "__opencl_c_pipes",
    "__opencl_c_program_scope_global_variables", "__opencl_c_read_write_images",
    "__opencl_c_work_group_collective_functions",
))  # fmt: skip


def opencl_c_versions(features: Iterable[str]) -> tuple[tuple[int, int], ...]:
    """The versions of OpenCL C that a device with these features has."""
    has_all = _FEATURES_OF_OPENCL_C_2.issubset(features)
    return tuple(sorted((*_REQUIRED_OPENCL_C, *[(2, 0)] * has_all)))


# "may return an OpenCL C version newer than OpenCL C 1.2 if and only if all optional OpenCL C features are
# supported by the device for the newer version."
HIGHEST_COMPATIBLE_OPENCL_C = (1, 2)
SPIRV_VERSIONS = ((1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6))
OPENCL_VERSION = (3, 1)
