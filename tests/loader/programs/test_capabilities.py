"""Whatever device/capabilities.py claims, a kernel that uses it runs and computes what it should."""

import ctypes
import struct
from pathlib import Path

import pytest

from cl_driver.api import device_info, device_info_extensions
from cl_driver.api.generated import enums as cl
from cl_driver.device import capabilities
from cl_driver.device.cpu import host_cpu
from cl_driver.spirv.enums import Capability
from cl_driver.spirv.tables import enumerant
from cl_driver.spirv.types import MAX_PARAMETERS
from conformance import features
from tests.loader.opencl import SUB_GROUP_SIZE
from tests.pure.spirv.assembler import PREAMBLE, TYPES, assemble


def _bits(form: str, *values: float) -> int:
    """The 64 bits of a double or two floats."""
    return struct.unpack("<q", struct.pack(f"<{form}", *values))[0]


# Capability: (options, body of a kernel of 8 work-items in groups of 4, expected out[0..7]). `out` is a
# buffer of 8 longs, zeros, `i` the global id. What stands before "//kernel" is at program scope.
CL3 = "-cl-std=CL3.0"
RUNS = {
    "byte_addressable_store": ("", "((global uchar *)out)[8 * i + 1] = i;", [i << 8 for i in range(8)]),
    "int32_atomics": (
        "",
        "local int sum; if (get_local_id(0) == 0) sum = 0;"
        "barrier(CLK_LOCAL_MEM_FENCE); atomic_add(&sum, 2);"
        "atomic_max((global int *)out, 5 * i); barrier(CLK_LOCAL_MEM_FENCE); if (i == 7) out[1] = sum;",
        [35, 8, 0, 0, 0, 0, 0, 0],
    ),
    "int64_atomics": (
        "",
        "atom_add(out, 1L << 33); atom_min(out + 1, (long)-i);",
        [8 << 33, -7, 0, 0, 0, 0, 0, 0],
    ),
    "int64": (CL3, "out[i] = ((long)i << 40) * 3;", [(i << 40) * 3 for i in range(8)]),
    "fp64": ("", "out[i] = (long)(sqrt(4.0 * i * i) * 1e10);", [2 * i * 10**10 for i in range(8)]),
    "fp16": (
        "",
        "half h = i + 1000.5h; half2 v = (half2)(h, sqrt((half)i)) * 3.0h; v.y = fma(v.y, v.y, 0.25h);"
        "out[i] = convert_int(v.x) * 1000 + convert_int_rtp(v.y * 4.0h);",
        [3002001, 3004037, 3008073, 3010109, 3014145, 3016182, 3020217, 3022253],
    ),
    "atomic_orders_and_scopes": (
        CL3,
        "global atomic_int *a = (global atomic_int *)out;"
        "atomic_fetch_add_explicit(a, 1, memory_order_seq_cst, memory_scope_all_svm_devices);"
        "atomic_fetch_add_explicit(a + 2, 2, memory_order_acq_rel, memory_scope_device);"
        "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_all_devices);",
        [8, 16, 0, 0, 0, 0, 0, 0],
    ),
    "fp32_atomics": (
        CL3,
        "local atomic_float sum; if (get_local_id(0) == 0) atomic_init(&sum, 0.5f);"
        "barrier(CLK_LOCAL_MEM_FENCE); atomic_fetch_add(&sum, (float)i);"
        "volatile global atomic_float *f = (volatile global atomic_float *)out;"
        "atomic_fetch_max_explicit(f, (float)i, memory_order_relaxed); atomic_fetch_min(f + 1, -i * 0.5f);"
        "atomic_fetch_sub_explicit(f + 2, 0.25f, memory_order_relaxed, memory_scope_device);"
        "barrier(CLK_LOCAL_MEM_FENCE); out[i] += i < 2 ? 0 : (long)(atomic_load(&sum) * 2.0f);",
        [_bits("ff", 7, -3.5), _bits("ff", -2, 0), 13, 13, 45, 45, 45, 45],
    ),
    "fp64_atomics": (
        CL3,
        "local atomic_double sum; if (get_local_id(0) == 0) atomic_init(&sum, 0.5);"
        "barrier(CLK_LOCAL_MEM_FENCE); atomic_fetch_sub(&sum, (double)i); atomic_fetch_min(&sum, 1.0);"
        "volatile global atomic_double *f = (volatile global atomic_double *)out;"
        "atomic_fetch_max(f, 1.0 / (1 + i)); atomic_fetch_add_explicit(f + 1, 0.125, memory_order_acq_rel);"
        "barrier(CLK_LOCAL_MEM_FENCE); if (i > 1) out[i] = (long)(atomic_load(&sum) * 2.0);",
        [_bits("d", 1), _bits("d", 1), -11, -11, -43, -43, -43, -43],
    ),
    "fp16_atomics": (
        CL3,
        "local atomic_half sum; local atomic_int n; if (get_local_id(0) == 0) {"
        "atomic_init(&sum, (half)0.5f); atomic_init(&n, 1); }"
        "barrier(CLK_LOCAL_MEM_FENCE); atomic_fetch_add(&sum, (half)i); atomic_fetch_add(&n, 1);"
        "volatile global atomic_half *h = (volatile global atomic_half *)out;"
        "atomic_fetch_max(h, (half)i);"
        "atomic_fetch_min_explicit(h + 1, (half)(-i * 0.5f), memory_order_relaxed);"
        "atomic_fetch_sub(h + 2, (half)0.25f); atomic_store(h + 3, (half)3.0f);"
        "half was = atomic_exchange(h + 4, (half)1.0f); barrier(CLK_LOCAL_MEM_FENCE);"
        "if (i > 1) out[i] = (long)((float)atomic_load(&sum) * 2.0f) * 10 + atomic_load(&n) + (was > 1);",
        [_bits("4e", 7, -3.5, -2, 3), _bits("4e", 1, 0, 0, 0), 135, 135, 455, 455, 455, 455],
    ),
    "generic_address_space": (
        CL3,
        "int get(int *p) { return *p; } //kernel\n"
        "local int shared[4]; int own = 3; shared[get_local_id(0)] = i; out[i] = 100 * get(&own) +"
        "get(shared + get_local_id(0)) + 1000 * (to_local(&shared[0]) != 0);",
        [1300 + i for i in range(8)],
    ),
    "program_scope_global_variables": (
        CL3,
        "global int table[4] = {1, 2, 3, 4}; global int *pointer = table + 2; //kernel\n"
        "out[i] = table[i & 3] * 10 + *pointer;",
        [10 * (i % 4 + 1) + 3 for i in range(8)],
    ),
    "work_group_collective_functions": (
        CL3,
        "int sum = work_group_reduce_add(i), scan = work_group_scan_exclusive_add(1);"
        "out[i] = 1000 * sum + 100 * scan + 10 * work_group_any(i == 5) + work_group_broadcast(i, 1) % 10;",
        [6000 + 100 * i + 1 for i in range(4)] + [22000 + 100 * (i - 4) + 15 for i in range(4, 8)],
    ),
    "extended_bit_ops": (
        "",
        "out[i] = bit_reverse((uint)i) + bitfield_insert(0u, (uint)i, 4, 3)"
        "+ bitfield_extract_signed(i, 0, 3);",
        [int(f"{i:032b}"[::-1], 2) % (1 << 32) + (i << 4) + (i - 8 if i & 4 else i) for i in range(8)],
    ),
    "integer_dot_product": (
        "",
        "char4 a = (char4)(i, -1, 2, -3); uchar4 b = (uchar4)(1, 2, 3, i); uint p = 0x01020304;"
        "out[i] = dot(a, a) * 1000 + dot(b, b) + dot_4x8packed_uu_uint(p, (uint)i) * 100000;",
        [(i * i + 14) * 1000 + 14 + i * i + 4 * i * 100000 for i in range(8)],
    ),
    "kernel_clock": (
        CL3,
        "ulong a = clock_read_device(); uint2 b = clock_read_hilo_device();"
        "ulong c = clock_read_work_group(); uint2 d = clock_read_hilo_work_group();"
        "ulong e = clock_read_sub_group();"
        "uint2 f = clock_read_hilo_sub_group(); ulong g;"
        "do g = clock_read_device(); while (g == a);"  # it may be a coarse one
        "out[i] = a <= as_ulong(b) && as_ulong(b) <= c && c <= as_ulong(d) && as_ulong(d) <= e"
        "&& e <= as_ulong(f) && as_ulong(f) <= g && a < g;",
        [1] * 8,
    ),
    "bfloat16_conversions": (
        "",
        "ushort4 b = intel_convert_bfloat164_as_ushort4((float4)(i, 1.00390625f, 1.01171875f, -0.0f));"
        "out[i] = (b.y << 16 | b.z) * (b.w == 0x8000)"
        "+ ((long)intel_convert_as_bfloat16_float(intel_convert_bfloat16_as_ushort(i + 256.0f)) << 32);",
        [(0x3F80 << 16 | 0x3F82) + ((256 + (i // 4 * 4 + (0, 0, 2, 4)[i % 4])) << 32) for i in range(8)],
    ),
    # Sub-groups are consecutive work-items, of a size that the kernel asks for; groups here have 4.
    "subgroups": (
        CL3,
        "__attribute__((intel_reqd_sub_group_size(4))) //kernel\n"
        "local int next[4]; next[get_local_id(0)] = i; sub_group_barrier(CLK_LOCAL_MEM_FENCE);"
        "out[i] = sub_group_reduce_add(i) + 100 * next[(get_local_id(0) + 1) % 4]"
        "+ 1000 * sub_group_broadcast(i, 2) + 10000 * sub_group_any(i == 5)"
        "+ 100000 * get_sub_group_local_id() + 1000000 * get_sub_group_size();",
        [
            (22 if i > 3 else 6)
            + 100 * (i // 4 * 4 + (i + 1) % 4)
            + 1000 * (i // 4 * 4 + 2)
            + 10000 * (i > 3)
            + 100000 * (i % 4)
            + 4000000
            for i in range(8)
        ],
    ),
    "subgroup_extended_types": (
        "",
        "uchar c = 200 + i; short2 s = sub_group_broadcast((short2)(i, -i), 1);"
        "out[i] = sub_group_reduce_max(c) + 1000 * sub_group_scan_inclusive_add((long)1) + 10000 * s.x"
        "+ 100000 * -s.y;",
        [203 + 4 * (i > 3) + 1000 * (i % 4 + 1) + 110000 * (i // 4 * 4 + 1) for i in range(8)],
    ),
    "subgroup_non_uniform_vote": (
        "",
        "if (i % 4 > 1) out[i] = sub_group_elect() + 2 * sub_group_non_uniform_all(i > 1)"
        "+ 4 * sub_group_non_uniform_any(i == 6) + 8 * sub_group_non_uniform_all_equal(i / 4);",
        [0, 0, 11, 10, 0, 0, 15, 14],
    ),
    "subgroup_ballot": (
        "",
        "if (i % 4) { uint4 b = sub_group_ballot(i & 1); out[i] = b.x + 16 * sub_group_inverse_ballot(b)"
        "+ 32 * sub_group_ballot_bit_count(b) + 128 * sub_group_ballot_exclusive_scan(b)"
        "+ 512 * sub_group_ballot_find_msb(b) + 2048 * sub_group_ballot_find_lsb(b)"
        "+ 8192 * sub_group_broadcast_first(i) + 65536 * get_sub_group_lt_mask().x; }",
        [
            (i % 4 > 0)
            * (
                0xA
                + 16 * (i & 1)
                + 64
                + 128 * (i % 4 // 2)
                + 512 * 3
                + 2048
                + 8192 * (i // 4 * 4 + 1)
                + 65536 * ((1 << i % 4) - 1)
            )
            for i in range(8)
        ],
    ),
    "subgroup_non_uniform_arithmetic": (
        "",
        "if (i % 4 != 1) out[i] = sub_group_non_uniform_reduce_mul(i + 1)"
        "+ 1000 * sub_group_non_uniform_scan_exclusive_add(i)"
        "+ 100000 * sub_group_non_uniform_scan_inclusive_logical_xor(1);",
        [100012, 0, 12, 102012, 100280, 0, 4280, 110280],
    ),
    "subgroup_shuffle": (
        "",
        "out[i] = sub_group_shuffle(i, 3 - i % 4) + 10 * sub_group_shuffle_xor((double)i, 2);",
        [i // 4 * 4 + 3 - i % 4 + 10 * (i ^ 2) for i in range(8)],
    ),
    "subgroup_shuffle_relative": (
        "",
        "long up = sub_group_shuffle_up((long)i, 1), down = sub_group_shuffle_down((uchar)i, 1);"
        "out[i] = (i % 4 ? up : 0) + 10 * (i % 4 < 3 ? down : 0);",
        [(i % 4 > 0) * (i - 1) + 10 * (i % 4 < 3) * (i + 1) for i in range(8)],
    ),
    "subgroup_clustered_reduce": (
        "",
        "out[i] = sub_group_clustered_reduce_add(i, 2) + 100 * sub_group_clustered_reduce_max(-i, 4);",
        [4 * (i // 2) + 1 - 100 * (i // 4 * 4) for i in range(8)],
    ),
    "subgroup_rotate": (
        "",
        "out[i] = sub_group_clustered_rotate(i, 1, 4) + 10 * sub_group_clustered_rotate((float)i, 1, 2);",
        [i // 4 * 4 + (i + 1) % 4 + 10 * (i ^ 1) for i in range(8)],
    ),
    "required_subgroup_size": (
        "",
        "__attribute__((intel_reqd_sub_group_size(8))) //kernel\n out[i] = get_max_sub_group_size();",
        [8] * 8,
    ),
    "work_group_uniform_arithmetic": (
        "",
        "out[i] = work_group_reduce_mul(i + 1) + 10000L * work_group_scan_inclusive_or(1u << i)"
        "+ 10000000L * work_group_scan_exclusive_logical_and(i % 4 < 2);",
        [
            (24 if i < 4 else 1680) + 10000 * ((2 << i) - (1 if i < 4 else 16)) + 10**7 * (i % 4 < 3)
            for i in range(8)
        ],
    ),
    "intel_subgroups": (
        CL3,
        "int k = get_sub_group_local_id(); out[i] = intel_sub_group_shuffle_xor(i, 1u) * 10"
        " + intel_sub_group_reduce_add((char)(k + 1));",
        [20, 10, 40, 30, 60, 50, 80, 70],
    ),
    "split_barrier": (
        "",
        "local int from[4]; int k = get_local_id(0); from[k] = i;"
        "intel_work_group_barrier_arrive(CLK_LOCAL_MEM_FENCE); int own = 100 * i;"
        "intel_work_group_barrier_wait(CLK_LOCAL_MEM_FENCE); out[i] = own + from[3 - k];",
        [3, 102, 201, 300, 407, 506, 605, 704],
    ),
    "cxx_for_opencl": (
        "-cl-std=CLC++",
        "struct Twice { template <typename T> static T of(T x) { return x + x; } };\n//kernel\n"
        "auto f = [](long x) { return Twice::of(x) + __OPENCL_CPP_VERSION__; }; out[i] = f(i);",
        [100 + 2 * i for i in range(8)],
    ),
    "expect_assume": (
        "",
        "__builtin_assume(i < 100); out[i] = __builtin_expect(i > 3, 1) ? 2 : 1;",
        [1, 1, 1, 1, 2, 2, 2, 2],
    ),
}
CLAIMED = [row.name for row in capabilities.present(host_cpu())]


def test_every_claim_is_tested():
    assert not [name for name in CLAIMED if name not in RUNS and name not in features.TABLE["tests"]]


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("name", [name for name in CLAIMED if name in RUNS])
def test_it_runs(opencl, name, newest):
    options, text, expected = RUNS[name]
    if SUB_GROUP_SIZE < 4 and "subgroup" in name and name != "required_subgroup_size":
        pytest.skip("what is expected is of sub-groups of four")
    if newest and name != "cxx_for_opencl":
        options = CL3  # extensions are for every version
    before, _, body = text.rpartition("//kernel\n")
    source = f"{before}\nkernel void k(global long *out) {{ int i = get_global_id(0); {body} }}\n"
    context, device = opencl.context(), opencl.device()
    kernel = opencl.kernel(context, source, options=options)
    queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
    zeros = (ctypes.c_int64 * 8)()
    flags = cl.CL_MEM_COPY_HOST_PTR
    buffer = opencl.make("clCreateBuffer", context, flags, ctypes.sizeof(zeros), zeros)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [8], [4], 0, None, None)
    result = (ctypes.c_int64 * 8)()
    opencl.ok(
        "clEnqueueReadBuffer", queue, buffer, cl.CL_TRUE, 0, ctypes.sizeof(result), result, 0, None, None
    )
    assert list(result) == expected
    for release, handle in (
        ("clReleaseMemObject", buffer),
        ("clReleaseCommandQueue", queue),
        ("clReleaseKernel", kernel),
        ("clReleaseContext", context),
    ):
        opencl.ok(release, handle)


@pytest.mark.parametrize("name, expected", [
    ("CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT", 0x70007),
    ("CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT", 0x70007),
    ("CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT", 0x70007),
    ("CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR", 0x7),
])  # fmt: skip
def test_queries_of_extensions(opencl, name, expected):
    """Load and store, addition, minimum and maximum, in global and local memory; all scopes of the clock."""
    value, size = ctypes.c_uint64(), ctypes.c_size_t()
    query = getattr(device_info_extensions, name)
    opencl.ok("clGetDeviceInfo", opencl.device(), query, 8, ctypes.byref(value), ctypes.byref(size))
    assert (value.value, size.value) == (expected, 8)


def test_attributes_of_the_device(opencl):
    """cl_intel_device_attribute_query, and the version of C++ for OpenCL."""

    def ask(name: str, type_=ctypes.c_uint32) -> int:
        value, size = type_(), ctypes.c_size_t()
        query = getattr(cl, name)
        given = (ctypes.sizeof(value), ctypes.byref(value), ctypes.byref(size))
        opencl.ok("clGetDeviceInfo", opencl.device(), query, *given)
        assert size.value == ctypes.sizeof(value)
        return value.value

    units = opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_COMPUTE_UNITS)
    parts = ("NUM_SLICES", "NUM_SUB_SLICES_PER_SLICE", "NUM_EUS_PER_SUB_SLICE", "NUM_THREADS_PER_EU")
    assert [ask(f"CL_DEVICE_{part}_INTEL") for part in parts] == [1, 1, units, 1]
    field = "CPU implementer" if host_cpu().architecture == "aarch64" else "vendor_id"
    is_told = field in Path("/proc/cpuinfo").read_text()  # emulators may leave that of another CPU
    assert ask("CL_DEVICE_ID_INTEL") == host_cpu().identity
    assert (host_cpu().identity != 0) == is_told
    assert ask("CL_DEVICE_IP_VERSION_INTEL") >> 22 == host_cpu().version[0]
    assert ask("CL_DEVICE_FEATURE_CAPABILITIES_INTEL", ctypes.c_uint64) == 0
    assert ask("CL_DEVICE_CXX_FOR_OPENCL_NUMERIC_VERSION_EXT") == 1 << 22


def test_extensions_and_features_are_macros(opencl):
    """Every extension and, for OpenCL C 3.0, every feature is a macro; an absent one is not."""
    names = opencl.text("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_EXTENSIONS).split()
    names.remove("cl_ext_cxx_for_opencl")  # a language; it has no macro
    features = capabilities.features(host_cpu())
    checks = "".join(
        f"#ifndef {name}\n#error {name} is not defined\n#endif\n" for name in (*names, *features)
    )
    absent = "".join(
        f"#ifdef {name}\n#error {name} is defined\n#endif\n"
        for name in ("cl_khr_fp16", "__opencl_c_images", "__opencl_c_pipes", "__opencl_c_device_enqueue")
        if name not in (*names, *features)
    )
    context = opencl.context()
    opencl.ok("clReleaseKernel", opencl.kernel(context, f"{checks}{absent}kernel void k() {{}}", options=CL3))
    opencl.ok("clReleaseContext", context)


def test_modules_may_declare_what_the_device_reports_and_nothing_else(opencl):
    """CL_DEVICE_SPIRV_CAPABILITIES_KHR and _EXTENSIONS_KHR, each name once, and what builds."""
    device, context = opencl.device(), opencl.context()
    data = opencl.info("clGetDeviceInfo", device, device_info.CL_DEVICE_SPIRV_CAPABILITIES_KHR)
    numbers = struct.unpack(f"<{len(data) // 4}I", data)
    assert len(set(numbers)) == len(numbers)
    extensions = capabilities.spirv_extensions(host_cpu())
    accepted = set()
    for capability in Capability:
        needed = set(enumerant("Capability", capability).extensions) & set(extensions)
        lines = "".join(f'OpExtension "{name}"\n' for name in needed)
        head = f"OpCapability {capability.name}\n" + PREAMBLE.replace("%std =", f"{lines}%std =")
        head = head.replace("OpCapability Float16\n", "")
        kernel = "%k = OpFunction %void None %fn_void\n%l = OpLabel\nOpReturn\nOpFunctionEnd"
        data = assemble(f'{head}OpEntryPoint Kernel %k "k"\n{TYPES}{kernel}', (1, 6))
        program = opencl.make("clCreateProgramWithIL", context, data, len(data))
        if opencl.call("clBuildProgram", program, 0, None, None, None, None) == cl.CL_SUCCESS:
            accepted.add(int(capability))
        else:
            assert f"{capability.name} is not supported" in opencl.build_log(program)
        opencl.ok("clReleaseProgram", program)
    assert accepted == set(numbers)
    opencl.ok("clReleaseContext", context)


def run_with_arguments(opencl, context, source, integer, count):
    """What a kernel k(global T *out, T a0, ... of that count, 0, 1, ...) of one work-item leaves in *out."""
    kernel, size = opencl.kernel(context, source), ctypes.sizeof(integer)
    queue = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
    buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_READ_WRITE, size, None)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    for n in range(count):
        opencl.ok("clSetKernelArg", kernel, n + 1, size, integer(n))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [1], None, 0, None, None)
    result = integer()
    arguments = queue, buffer, cl.CL_TRUE, 0, size, ctypes.byref(result), 0, None, None
    opencl.ok("clEnqueueReadBuffer", *arguments)
    return result.value


def test_the_largest_parameters(opencl):
    """CL_DEVICE_MAX_PARAMETER_SIZE bytes of arguments: more than 255 of them."""
    context = opencl.context()
    most = opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_PARAMETER_SIZE)
    count = most // 8 - 1
    names = [f"a{n}" for n in range(count)]
    source = f"kernel void k(global long *out, long {', long '.join(names)}) {{ *out = {'+'.join(names)}; }}"
    assert run_with_arguments(opencl, context, source, ctypes.c_int64, count) == count * (count - 1) // 2


def parameters_of_ints(count):
    return f"int {', int '.join(f'a{n}' for n in range(count))}"


@pytest.mark.parametrize("count", [10_000, pytest.param(MAX_PARAMETERS - 1, marks=pytest.mark.long)])
def test_kernels_of_many_parameters(opencl, count):
    """Far more than CL_DEVICE_MAX_PARAMETER_SIZE promises: they work all the same."""
    last = count - 1
    body = f"*out = a0 + a5000 * 3 + a{last};"
    source = f"kernel void k(global int *out, {parameters_of_ints(count)}) {{ {body} }}"
    result = run_with_arguments(opencl, opencl.context(), source, ctypes.c_int32, count)
    assert result == 5000 * 3 + last


@pytest.mark.long
def test_kernels_of_too_many_parameters(opencl):
    source = f"kernel void k(global int *out, {parameters_of_ints(MAX_PARAMETERS)}) {{ *out = a0; }}"
    program = opencl.program(opencl.context(), source)
    status = opencl.call("clBuildProgram", program, 0, None, None, None, None)
    assert status == cl.CL_BUILD_PROGRAM_FAILURE
    assert f"more than {MAX_PARAMETERS} parameters" in opencl.build_log(program)
