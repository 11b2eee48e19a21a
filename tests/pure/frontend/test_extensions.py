"""Functions of the extensions that the device reports are there in every version of OpenCL C."""

from __future__ import annotations

import pytest

from cl_driver.frontend import clang, opencl_c
from cl_driver.frontend.options import parse
from tests.marks import few

VERSIONS = ("CL1.0", "CL1.1", "CL1.2", "CL2.0", "CL3.0", "CL3.1", "CLC++1.0", "CLC++2021")

_PARAMETERS = """global uint *p, local uint *l, global int *z, global char *c, global short *t,
    global ulong *q, global half *h, global float *f, global double *b, sampler_t s, read_only image2d_t i,
    write_only image2d_t v, write_only image3d_t o, read_only image2d_depth_t d, write_only image2d_depth_t w,
    read_only image2d_array_depth_t da"""

# The sub-groups of OpenCL C 3.0's feature, and of an extension for older versions.
_SUB_GROUPS = """p[0] = get_sub_group_size() + get_max_sub_group_size() + get_num_sub_groups()
    + get_sub_group_id() + get_sub_group_local_id();
    sub_group_barrier(CLK_LOCAL_MEM_FENCE);
    z[0] = sub_group_all(z[1]) + sub_group_any(z[2]);
    p[1] = sub_group_broadcast(p[2], 3u) + sub_group_reduce_add(p[3]) + sub_group_reduce_max(p[4]);
    q[0] = sub_group_scan_exclusive_min(q[1]);
    f[0] = sub_group_reduce_min(f[1]);
    b[0] = sub_group_scan_inclusive_max(b[1]);
    h[0] = sub_group_scan_exclusive_add(h[1]);"""

# {name: what a kernel does with the functions}.
FUNCTIONS = {
    "__opencl_c_subgroups": _SUB_GROUPS,
    "cl_khr_subgroups": _SUB_GROUPS,
    "cl_khr_subgroup_named_barrier": """local struct __namedBarrier *two = named_barrier_init(2);
        work_group_named_barrier(two, CLK_LOCAL_MEM_FENCE); p[0] = 1;""",
    "cl_khr_subgroup_extended_types": """c[0] = sub_group_reduce_add(c[1]);
        t[0] = sub_group_scan_inclusive_max(t[1]); z[0] = sub_group_broadcast((char4)(c[0]), 1u).x;""",
    "cl_khr_subgroup_non_uniform_vote": """z[0] = sub_group_elect() + sub_group_non_uniform_all(z[1])
        + sub_group_non_uniform_any(z[2]) + sub_group_non_uniform_all_equal(f[0]);""",
    "cl_khr_subgroup_ballot": """uint4 x = sub_group_ballot(z[0]); z[0] = sub_group_inverse_ballot(x)
        + sub_group_ballot_bit_extract(x, 2u); p[0] = sub_group_ballot_bit_count(x)
        + sub_group_ballot_inclusive_scan(x) + sub_group_ballot_find_lsb(x) + get_sub_group_lt_mask().x
        + sub_group_non_uniform_broadcast(p[0], 1u) + sub_group_broadcast_first(p[1]);""",
    "cl_khr_subgroup_non_uniform_arithmetic": """p[0] = sub_group_non_uniform_reduce_add(p[0])
        + sub_group_non_uniform_scan_inclusive_mul(p[0]); h[0] = sub_group_non_uniform_reduce_mul(h[0]);
        z[0] = sub_group_non_uniform_scan_exclusive_logical_xor(z[0]);""",
    "cl_khr_subgroup_shuffle": "h[0] = sub_group_shuffle(h[0], 1u); b[0] = sub_group_shuffle_xor(b[0], 1u);",
    "cl_khr_subgroup_shuffle_relative": """c[0] = sub_group_shuffle_up(c[0], 1u);
        b[0] = sub_group_shuffle_down(b[0], 1u);""",
    "cl_khr_subgroup_clustered_reduce": """p[0] = sub_group_clustered_reduce_add(p[0], 4u);
        z[0] = sub_group_clustered_reduce_logical_and(z[0], 4u);""",
    "cl_khr_subgroup_rotate": "p[0] = sub_group_rotate(p[0], 1) + sub_group_clustered_rotate(p[0], 1, 2u);",
    "cl_khr_extended_bit_ops": """p[0] = bit_reverse(p[0]) + bitfield_insert(p[0], p[1], 3u, 4u)
        + bitfield_extract_unsigned(p[2], 3u, 4u); z[0] = bitfield_extract_signed(z[0], 3u, 4u);""",
    "cl_khr_integer_dot_product": """z[0] = dot(as_char4(p[0]), as_uchar4(p[1])) + dot_acc_sat(as_char4(p[0]),
        as_char4(p[1]), 3); p[2] = dot_4x8packed_uu_uint(p[0], p[1]);
        z[3] = dot_acc_sat_4x8packed_su_int(p[0], p[1], 4);""",
    "cl_khr_kernel_clock": """q[0] = clock_read_device() + clock_read_work_group() + clock_read_sub_group();
        p[0] = clock_read_hilo_device().x;""",
    "cl_khr_extended_async_copies": """event_t e = async_work_group_copy_2D2D(l, 0, p, 0, 4, 8, 2, 8, 8, 0);
        e = async_work_group_copy_3D3D(z, 0, l, 0, 4, 4, 2, 2, 4, 8, 4, 8, e); wait_group_events(1, &e);""",
    "cl_khr_expect_assume": "p[0] = __builtin_expect(p[1], 3); __builtin_assume(p[2] == 1);",
    "cl_intel_bfloat16_conversions": "t[0] = intel_convert_bfloat16_as_ushort(f[0]);",
    "cl_intel_split_work_group_barrier": """intel_work_group_barrier_arrive(CLK_LOCAL_MEM_FENCE);
        p[0] = 1; intel_work_group_barrier_wait(CLK_LOCAL_MEM_FENCE);""",
    "cl_intel_subgroups": """f[0] = intel_sub_group_shuffle(f[0], 1u); p[9] = sub_group_reduce_add(p[1]);
        b[0] = intel_sub_group_shuffle_xor(b[0], 1u); h[0] = intel_sub_group_shuffle_up(h[0], h[1], 1u);
        z[0] = intel_sub_group_shuffle_down((int3)(z[0]), (int3)(1), 2u).z;
        intel_sub_group_block_write4(p, intel_sub_group_block_read4(p));
        intel_sub_group_block_write8(v, (int2)(0), intel_sub_group_block_read8(i, (int2)(0)));""",
    "cl_intel_subgroups_char": """c[0] = intel_sub_group_shuffle((char4)(c[0]), 1u).x
        + intel_sub_group_reduce_min(c[1]) + intel_sub_group_broadcast(c[2], 1u);
        intel_sub_group_block_write_uc16(v, (int2)(0),
        intel_sub_group_block_read_uc16((global uchar *)c) + intel_sub_group_block_read_uc16(i, (int2)(0)));
        intel_sub_group_block_write_ui(p, intel_sub_group_block_read_ui(p));""",
    "cl_intel_subgroups_short": """t[0] = intel_sub_group_shuffle((short8)(t[0]), 1u).x
        + intel_sub_group_scan_exclusive_max(t[1]) + intel_sub_group_broadcast(t[2], 1u);
        ushort16 x = intel_sub_group_block_read_us16((global ushort *)t);
        intel_sub_group_block_write_us16(v, (int2)(0), x + intel_sub_group_block_read_us16(i, (int2)(0)));""",
    "cl_intel_subgroups_long": """intel_sub_group_block_write_ul8(v, (int2)(0),
        intel_sub_group_block_read_ul8(q) + intel_sub_group_block_read_ul8(i, (int2)(0)));
        intel_sub_group_block_write_ul(q, 1ul);""",
    "cl_intel_subgroup_local_block_io": """intel_sub_group_block_write2(l, intel_sub_group_block_read_ui2(l));
        local uchar *b8 = (local uchar *)l;
        intel_sub_group_block_write_uc4(b8, intel_sub_group_block_read_uc4(b8));""",
    "cl_intel_required_subgroup_size": """}
        __attribute__((intel_reqd_sub_group_size(8))) kernel void other(global int *p) { p[0] = 1;""",
    "cl_khr_fp16": """h[0] = sin(h[1]) + convert_half(b[0]) + vload_half(0, h); vstore2((half2)(1), 0, h);
        h[2] = read_imageh(i, s, (float2)(0)).x; write_imageh(v, (int2)(0), (half4)(0));""",
    "cl_khr_fp64": "b[0] = sin(b[1]) + (double)p[0] + fma(b[0], b[1], b[2]); vstore_half(b[3], 0, h);",
    "cl_khr_int64_base_atomics": "atom_add(q, 1ul); atom_cmpxchg((local ulong *)l, 1ul, 2ul); atom_inc(q);",
    "cl_khr_int64_extended_atomics": "atom_max(q, 1ul); atom_xor((local ulong *)l, 3ul);",
    "cl_khr_global_int32_base_atomics": "atom_add(p, 1u); atom_xchg(z, 2); atomic_dec(p);",
    "cl_khr_global_int32_extended_atomics": "atom_max(p, 1u); atomic_or(z, 2);",
    "cl_khr_local_int32_base_atomics": "atom_add(l, 1u); atomic_cmpxchg(l, 2u, 3u);",
    "cl_khr_local_int32_extended_atomics": "atom_min(l, 1u); atomic_and(l, 2u);",
    "cl_khr_3d_image_writes": """write_imagef(o, (int4)(0), (float4)(0));
        write_imageui(o, (int4)(0), (uint4)(0));""",
    "cl_khr_depth_images": """f[0] = read_imagef(d, s, (float2)(0.5f)) + read_imagef(d, s, (int2)(0))
        + read_imagef(da, s, (float4)(0)); write_imagef(w, (int2)(0), 0.5f); z[1] = get_image_width(d);""",
    "cl_ext_image_unorm_int_2_101010": """z[0] = CLK_UNORM_INT_2_101010_EXT == 0x10E5
        && get_image_channel_data_type(i) == CLK_UNORM_INT_2_101010_EXT;""",
    "cl_ext_image_raw10_raw12": """z[0] = CLK_UNSIGNED_INT_RAW10_EXT == 0x10E3
        && CLK_UNSIGNED_INT_RAW12_EXT == 0x10E4
        && get_image_channel_data_type(i) == CLK_UNSIGNED_INT_RAW10_EXT;""",
    "cl_ext_image_unsigned_10x6_12x4_14x2": """z[0] = CLK_UNORM_INT10X6_EXT == CLK_UNORM_10X6_EXT
        && CLK_UNORM_INT12X4_EXT == CLK_UNORM_12X4_EXT && CLK_UNORM_INT14X2_EXT == CLK_UNORM_14X2_EXT;
        z[1] = CLK_UNSIGNED_INT10X6_EXT + CLK_UNSIGNED_INT12X4_EXT + CLK_UNSIGNED_INT14X2_EXT;""",
    "cl_khr_mipmap_image": """f[0] = read_imagef(i, s, (float2)(0.5f), 2.0f).x
        + read_imagef(d, s, (float2)(0), 2.0f);
        p[0] = read_imageui(i, s, (float2)(0.5f), (float2)(1), (float2)(2)).x;
        z[0] = get_image_num_mip_levels(i);""",
    "cl_khr_mipmap_image_writes": """write_imagei(v, (int2)(0), 1, (int4)(2));
        write_imagei(o, (int4)(0), 1, (int4)(2)); write_imagef(w, (int2)(0), 1, 0.5f);""",
    "cl_ext_float_atomics": """atomic_fetch_add((volatile global atomic_float *)f, 1.0f);
        atomic_fetch_max((volatile local atomic_float *)l, 1.0f);
        atomic_fetch_add_explicit((volatile global atomic_double *)b, 1.0, memory_order_relaxed);
        atomic_fetch_add((volatile global atomic_half *)h, (half)1.0f);""",
}  # fmt: skip

# Nothing in OpenCL C belongs to them but a macro.
WITHOUT_FUNCTIONS = {
    "cl_ext_buffer_device_address", "cl_ext_cxx_for_opencl", "cl_ext_image_from_buffer",
    "cl_ext_image_requirements_info", "cl_ext_immutable_memory_objects",
    "cl_intel_device_attribute_query", "cl_intel_devicelib_assert", "cl_intel_global_variable_access",
    "cl_intel_spirv_subgroups", "cl_intel_unified_shared_memory", "cl_khr_byte_addressable_store",
    "cl_khr_command_buffer", "cl_khr_command_buffer_multi_device",
    "cl_khr_command_buffer_mutable_dispatch", "cl_khr_create_command_queue", "cl_khr_device_uuid",
    "cl_khr_extended_versioning", "cl_khr_external_memory", "cl_khr_external_memory_opaque_fd",
    "cl_khr_external_semaphore", "cl_khr_external_semaphore_opaque_fd", "cl_khr_il_program",
    "cl_khr_image2d_from_buffer", "cl_khr_initialize_memory", "cl_khr_priority_hints",
    "cl_khr_semaphore", "cl_khr_spirv_linkonce_odr", "cl_khr_spirv_no_integer_wrap_decoration",
    "cl_khr_spirv_queries", "cl_khr_srgb_image_writes", "cl_khr_suggested_local_work_size",
    "cl_khr_terminate_context", "cl_khr_throttle_hints", "cl_khr_unified_svm",
}  # fmt: skip

# Atomic objects are of OpenCL C 2.0.
SINCE = {"cl_ext_float_atomics": (2, 0)}


def compiled(body: str, version: str, before: str = "") -> clang.FrontendResult:
    source = f"{before}kernel void k({_PARAMETERS}) {{ {body} }}"
    return opencl_c.compile(source.encode(), parse(f"-cl-std={version}"), language=clang.device_language())


@pytest.mark.parametrize("version", few(sorted(VERSIONS, key=lambda v: v != "CL3.0"), 2))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_extensions(name, version):
    if parse(f"-cl-std={version}").standard < SINCE.get(name, (1, 0)):
        pytest.skip("of a later version")
    result = compiled(FUNCTIONS[name], version)
    assert result.spirv is not None and result.log == "", result.log


def test_every_extension_is_here():
    language = clang.device_language()
    assert set(language.extensions) <= {*FUNCTIONS, *WITHOUT_FUNCTIONS}
    assert {*FUNCTIONS, *WITHOUT_FUNCTIONS} <= {*language.extensions, *language.features}


@pytest.mark.parametrize("version", VERSIONS)
def test_sub_groups_with_the_pragma_of_their_extension(version):
    """Programs for older versions ask for the extension."""
    pragma = "#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n"
    result = compiled(_SUB_GROUPS, version, pragma)
    assert result.spirv is not None and "error" not in result.log, result.log


@pytest.mark.parametrize("version", [v for v in VERSIONS if parse(f"-cl-std={v}").standard >= (2, 0)])
def test_functions_of_sub_groups_that_name_scopes(version):
    body = """sub_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group);
        p[0] = get_enqueued_num_sub_groups();
        atomic_work_item_fence(CLK_LOCAL_MEM_FENCE, memory_order_acq_rel, memory_scope_sub_group);"""
    result = compiled(body, version)
    assert result.spirv is not None and result.log == "", result.log


@pytest.mark.parametrize("version", VERSIONS)
def test_a_program_with_its_own_shuffle(version):
    """Names of declarations that programs get where they miss one are theirs to use."""
    before = "float own(float x) { return x; }\n#define intel_sub_group_shuffle(x, lane) own(x)\n"
    result = compiled("f[0] = intel_sub_group_shuffle(f[1], 1u);", version, before)
    assert result.spirv is not None and result.log == "", result.log


def test_a_call_that_no_declaration_fits():
    result = compiled("f[0] = intel_sub_group_block_read3(p);", "CL3.0")
    assert result.spirv is None and "intel_sub_group_block_read3" in result.log
    result = compiled("p[0] = intel_sub_group_block_read(i);", "CL3.0")
    assert result.spirv is None and "no matching function" in result.log
