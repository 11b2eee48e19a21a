"""What OpenCL 3.1 adds to 3.0: the version, its language, names without KHR, local arguments of no bytes."""

import ctypes
import struct

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.spirv.enums import Capability

from .session import Local, Session

CL31 = "-cl-std=CL3.1"
VERSION = 3 << 22 | 1 << 12

# Names of the core, which the headers of Debian 12 have with KHR or not at all.
CL_DEVICE_MAX_WORK_GROUP_SIZES = 0x1005
CL_DEVICE_UUID, CL_DRIVER_UUID, CL_DEVICE_LUID_VALID, CL_DEVICE_LUID, CL_DEVICE_NODE_MASK = range(
    0x106A, 0x106F
)
CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES = 0x1073
CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_8BIT = 0x1074
CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED = 0x1075
CL_DEVICE_SPIRV_EXTENDED_INSTRUCTION_SETS, CL_DEVICE_SPIRV_EXTENSIONS, CL_DEVICE_SPIRV_CAPABILITIES = range(
    0x12B9, 0x12BC
)


def device_info(session, param_name: int) -> bytes:
    return session.cl.info("clGetDeviceInfo", session.device, param_name)


def names_and_versions(data: bytes) -> list[tuple[str, int]]:
    """cl_name_version[]"""
    rows = struct.iter_unpack("<I64s", data)
    return [(name.rstrip(b"\0").decode(), version) for version, name in rows]


def test_version(session):
    opencl, device, platform = session.cl, session.device, session.cl.platform()
    texts = [
        opencl.text("clGetPlatformInfo", platform, cl.CL_PLATFORM_VERSION),
        opencl.text("clGetDeviceInfo", device, cl.CL_DEVICE_VERSION),
    ]
    assert all(text.startswith("OpenCL 3.1 cl_driver") for text in texts)
    assert opencl.integer("clGetPlatformInfo", platform, cl.CL_PLATFORM_NUMERIC_VERSION) == VERSION
    assert opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_NUMERIC_VERSION) == VERSION


def test_versions_of_the_language(session):
    """Each that is listed builds, under its name, and knows which it is."""
    found = names_and_versions(device_info(session, cl.CL_DEVICE_OPENCL_C_ALL_VERSIONS))
    assert {name for name, _ in found} == {"OpenCL C"}
    versions = [(version >> 22, version >> 12 & 1023) for _, version in found]
    assert versions == [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (3, 1)]
    # "must support at least OpenCL C 1.2"; newer ones "if and only if all optional OpenCL C features are
    # supported", which differ from CPU to CPU.
    text = session.cl.text("clGetDeviceInfo", session.device, cl.CL_DEVICE_OPENCL_C_VERSION)
    assert text.startswith("OpenCL C 1.2 ")
    for major, minor in versions:
        macro = "" if (major, minor) == (1, 0) else "__OPENCL_C_VERSION__"
        check = f"#if {macro} != {major}{minor}0\n#error\n#endif\n" if macro else ""
        session.program(check + "kernel void k(void) {}", f"-cl-std=CL{major}.{minor}")


def test_the_language_without_an_option(session):
    """ "If the -cl-std build option is not specified, the highest OpenCL C 1.x language version [...]" """
    wrong = "__OPENCL_C_VERSION__ != CL_VERSION_1_2 || defined(CL_VERSION_3_1)"
    session.program(f"#if {wrong}\n#error\n#endif\nkernel void k(void) {{}}", None)


LANGUAGE = """
    #if __OPENCL_C_VERSION__ != CL_VERSION_3_1 || CL_VERSION_3_1 != 310 || CL_VERSION_3_0 != 300
    #error version
    #endif
    #if !defined(__opencl_c_int64) || __OPENCL_VERSION__ <= 200
    #error macros
    #endif
    kernel void k(global uint *out) {
        uint i = get_global_id(0);
        out[i] = bit_reverse(i) | bitfield_insert(i, 3u, 4u, 2u) | dot_4x8packed_uu_uint(i, 0x01010101u)
            | sub_group_shuffle(i, 0u) | sub_group_shuffle_up(i, 0u) | sub_group_rotate(i, 0)
            | sub_group_reduce_max((uchar)i);
    }"""


def built(session, how: str, options: str) -> int:
    """A program of LANGUAGE, built at once or compiled and linked."""
    program = session.made("clReleaseProgram", session.cl.program(session.context, LANGUAGE))
    if how == "build":
        session.cl.build(program, options)
        return program
    compile_ = "clCompileProgram", program, 0, None, options, 0, None, None, None, None
    session.cl.ok(*compile_)
    linked = session.cl.make("clLinkProgram", session.context, 0, None, None, 1, [program], None, None)
    return session.made("clReleaseProgram", linked)


@pytest.mark.parametrize("how", ["build", "compile and link"])
@pytest.mark.parametrize("more", ["", " -cl-opt-disable", " -cl-kernel-arg-info -g"])
def test_programs_in_3_1(session, how, more):
    """Macros, and functions that were extensions'."""
    program = built(session, how, CL31 + more)
    if how == "build":
        found = session.cl.text("clGetProgramBuildInfo", program, session.device, cl.CL_PROGRAM_BUILD_OPTIONS)
        assert found == CL31 + more
    out = session.buffer(np.zeros(64, np.uint32))
    session.launch(session.kernel(program), 64, out, local=64)
    found = session.read(out, np.uint32, 64)
    reversed_ = np.array([int(f"{i:032b}"[::-1], 2) for i in range(64)], np.uint32)
    assert (found & reversed_ == reversed_).all() and (found & 0x30 == 0x30).all()


def test_options_of_the_language(session):
    """Another version is no option; a version's macro is not another's."""
    program = session.made("clReleaseProgram", session.cl.program(session.context, LANGUAGE))
    for options in ("-cl-std=CL3.2", "-cl-std=CL3.10", "-cl-std=CL3.1.1"):
        build = "clBuildProgram", program, 0, None, options, None, None
        assert session.cl.fails(*build) == cl.CL_INVALID_BUILD_OPTIONS
        compile_ = "clCompileProgram", program, 0, None, options, 0, None, None, None, None
        assert session.cl.fails(*compile_) == cl.CL_INVALID_COMPILER_OPTIONS
    build = "clBuildProgram", program, 0, None, "-cl-std=CL3.0", None, None
    assert session.cl.fails(*build) == cl.CL_BUILD_PROGRAM_FAILURE
    assert "#error version" in session.cl.build_log(program)


def test_the_log_names_the_version(session):
    source = "kernel void k(void) { auto int x = 1; }"
    for version in ("3.0", "3.1"):
        program = session.made("clReleaseProgram", session.cl.program(session.context, source))
        build = "clBuildProgram", program, 0, None, f"-cl-std=CL{version}", None, None
        assert session.cl.fails(*build) == cl.CL_BUILD_PROGRAM_FAILURE
        assert f"OpenCL C version {version} does not support the 'auto'" in session.cl.build_log(program)


def test_queries_without_khr(session):
    """Those of OpenCL 3.1, by their numbers."""
    sizes = session.cl.words("clGetDeviceInfo", session.device, CL_DEVICE_MAX_WORK_GROUP_SIZES)
    assert len(sizes) == 3 and min(sizes) >= 1
    uuids = device_info(session, CL_DEVICE_UUID), device_info(session, CL_DRIVER_UUID)
    assert [len(uuid) for uuid in uuids] == [16, 16] and uuids[0] != uuids[1]
    assert device_info(session, CL_DEVICE_LUID_VALID) == b"\0" * 4
    assert [len(device_info(session, q)) for q in (CL_DEVICE_LUID, CL_DEVICE_NODE_MASK)] == [8, 4]
    packed = 1 << 0  # "All implementations that support OpenCL C 3.1 must support"
    found = session.cl.integer("clGetDeviceInfo", session.device, CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES)
    assert found & packed
    for query in (
        CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_8BIT,
        CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED,
    ):
        assert set(struct.unpack("<6I", device_info(session, query))) <= {0, 1}
    for query, name in (
        (CL_DEVICE_SPIRV_EXTENDED_INSTRUCTION_SETS, "OpenCL.std"),
        (CL_DEVICE_SPIRV_EXTENSIONS, "SPV_KHR_bit_instructions"),
        (CL_DEVICE_SPIRV_EXTENSIONS, "SPV_KHR_integer_dot_product"),
        (CL_DEVICE_SPIRV_EXTENSIONS, "SPV_KHR_subgroup_rotate"),
    ):
        pointers = session.cl.words("clGetDeviceInfo", session.device, query)
        assert name in [ctypes.string_at(pointer).decode() for pointer in pointers]
    data = device_info(session, CL_DEVICE_SPIRV_CAPABILITIES)
    needed = (
        Capability.GroupNonUniformShuffle,
        Capability.GroupNonUniformShuffleRelative,
        Capability.GroupNonUniformRotateKHR,
        Capability.DotProductInput4x8BitPacked,
        Capability.BitInstructions,
    )
    assert {int(name) for name in needed} <= {number for (number,) in struct.iter_unpack("<I", data)}


def test_what_is_mandatory(session):
    """Sub-groups, SPIR-V up to 1.4, and the names of extensions that have become core."""
    assert session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_MAX_NUM_SUB_GROUPS) >= 1
    languages = session.cl.text("clGetDeviceInfo", session.device, cl.CL_DEVICE_IL_VERSION).split()
    assert {f"SPIR-V_1.{minor}" for minor in range(5)} <= set(languages)
    features = dict(names_and_versions(device_info(session, cl.CL_DEVICE_OPENCL_C_FEATURES)))
    assert {
        "__opencl_c_int64",
        "__opencl_c_subgroups",
        "__opencl_c_integer_dot_product_input_4x8bit",
        "__opencl_c_integer_dot_product_input_4x8bit_packed",
    } <= set(features)


def suggestion(session, name: str):
    word = ctypes.c_void_p
    return session.cl.extension(name, ctypes.c_int32, word, word, ctypes.c_uint32, word, word, word)


def test_suggested_local_size(session):
    """clGetKernelSuggestedLocalWorkSize, of the core, and of the extension: the same function."""
    kernel = session.kernel("kernel void k(int x) {}")
    session.set_arguments(kernel, [np.int32(1)])
    size, found = (ctypes.c_size_t * 3)(96, 10, 4), {}
    for name in ("clGetKernelSuggestedLocalWorkSize", "clGetKernelSuggestedLocalWorkSizeKHR"):
        suggest, result = suggestion(session, name), (ctypes.c_size_t * 3)()
        assert suggest(session.queue, kernel, 3, None, size, result) == cl.CL_SUCCESS
        assert all(n and total % n == 0 for n, total in zip(result, size, strict=True))
        found[name] = list(result)
        assert suggest(None, kernel, 3, None, size, result) == cl.CL_INVALID_COMMAND_QUEUE
        assert suggest(session.queue, kernel, 3, None, size, None) == cl.CL_INVALID_VALUE
    assert len({tuple(sizes) for sizes in found.values()}) == 1
    on_device = session.new_queue(
        session.device, cl.CL_QUEUE_ON_DEVICE | cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
    )
    assert suggest(on_device, kernel, 3, None, size, result) == cl.CL_INVALID_COMMAND_QUEUE


def test_suggested_local_size_of_a_device_without_the_program(opencl):
    if opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_COMPUTE_UNITS) < 2:
        pytest.skip("one compute unit cannot be divided")
    parts = opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    session = Session(opencl, *parts)
    program = session.made("clReleaseProgram", opencl.program(session.context, "kernel void k(int x) {}"))
    opencl.ok("clBuildProgram", program, 1, [parts[0]], None, None, None)
    kernel = session.kernel(program, "k")
    session.set_arguments(kernel, [np.int32(1)])
    suggest = suggestion(session, "clGetKernelSuggestedLocalWorkSizeKHR")
    size, result = (ctypes.c_size_t * 1)(64), (ctypes.c_size_t * 1)()
    assert suggest(session.queue, kernel, 1, None, size, result) == cl.CL_SUCCESS
    queue = session.new_queue(parts[1])
    assert suggest(queue, kernel, 1, None, size, result) == cl.CL_INVALID_PROGRAM_EXECUTABLE
    session.close()
    for part in parts:
        opencl.ok("clReleaseDevice", part)


LOCAL = """kernel void k(global int *out, local int *none, int use, local int *some, local float4 *last) {
        int i = get_local_id(0);
        some[i] = i;
        barrier(CLK_LOCAL_MEM_FENCE);
        int x = some[get_local_size(0) - 1 - i];
        if (use) {
            none[i] = x;
            last[i] = x;
            barrier(CLK_LOCAL_MEM_FENCE);
            x += none[i ^ 1] + last[i].y;
        }
        out[get_global_id(0)] = x;
    }"""
ITEMS, GROUP = 256, 64


@pytest.mark.parametrize("options", [CL31, CL31 + " -cl-opt-disable", None])
def test_local_arguments_of_no_bytes(session, options):
    """ "arg_size may be zero, indicating that no local memory is required for the kernel argument." """
    kernel = session.kernel(LOCAL, options=options)
    backwards = np.tile(np.arange(GROUP)[::-1], ITEMS // GROUP)
    out = session.buffer(np.zeros(ITEMS, np.int32))
    empty = out, Local(0), np.int32(0), Local(4 * GROUP), Local(0)
    full = out, Local(4 * GROUP), np.int32(1), Local(4 * GROUP), Local(16 * GROUP)
    pairs = np.tile((np.arange(GROUP)[::-1]).reshape(-1, 2)[:, ::-1].ravel(), ITEMS // GROUP)
    for arguments, expected in ((empty, backwards), (full, 2 * backwards + pairs), (empty, backwards)):
        session.launch(kernel, ITEMS, *arguments, local=GROUP)
        assert (session.read(out, np.int32, ITEMS) == expected).all()


def test_a_kernel_whose_only_local_memory_has_no_bytes(session):
    source = "kernel void k(local int *l, global int *out) { if (*out) *l = 1; *out = 7; }"
    kernel = session.kernel(source)
    out = session.buffer(np.zeros(1, np.int32))
    session.launch(kernel, 1, Local(0), out)
    assert session.read(out, np.int32, 1) == [7]


def local_memory(session, kernel: int) -> int:
    return session.cl.integer("clGetKernelWorkGroupInfo", kernel, session.device, cl.CL_KERNEL_LOCAL_MEM_SIZE)


def test_local_memory_of_a_kernel(session):
    """CL_KERNEL_LOCAL_MEM_SIZE, and kernels that are cloned; an argument of no bytes has been set."""
    kernel = session.kernel("kernel void k(local int *a, local int *b, global int *out) { *out = 5; }")
    out = session.buffer(np.zeros(1, np.int32))
    before = local_memory(session, kernel)
    session.set_arguments(kernel, [Local(0)])
    assert local_memory(session, kernel) == before
    where = session.queue, kernel, 1, None, [1], None, 0, None, None
    assert session.cl.fails("clEnqueueNDRangeKernel", *where) == cl.CL_INVALID_KERNEL_ARGS
    session.set_arguments(kernel, [Local(100), Local(0), out])
    assert local_memory(session, kernel) == before + 100
    clone = session.made("clReleaseKernel", session.cl.make("clCloneKernel", kernel))
    session.set_arguments(kernel, [Local(0)])
    assert (local_memory(session, kernel), local_memory(session, clone)) == (before, before + 100)
    for each in (kernel, clone):
        session.write(out, np.zeros(1, np.int32))
        session.cl.ok("clEnqueueNDRangeKernel", session.queue, each, 1, None, [1], None, 0, None, None)
        assert session.read(out, np.int32, 1) == [5]


def test_errors_of_arguments_of_no_bytes(session):
    """Local arguments have no value; others have their size."""
    more = "global int *g, int n, constant int *c, sampler_t s, read_only image2d_t i"
    kernel, value = session.kernel(f"kernel void k(local int *l, {more}) {{}}"), ctypes.c_uint64(1)
    assert session.cl.fails("clSetKernelArg", kernel, 0, 0, value) == cl.CL_INVALID_ARG_VALUE
    assert session.cl.fails("clSetKernelArg", kernel, 0, 4, value) == cl.CL_INVALID_ARG_VALUE
    for index in range(1, 6):
        assert session.cl.fails("clSetKernelArg", kernel, index, 0, None) == cl.CL_INVALID_ARG_SIZE
    assert session.cl.fails("clSetKernelArg", kernel, 6, 0, None) == cl.CL_INVALID_ARG_INDEX


SCOPES = ("sub_group", "work_group", "device", "all_svm_devices")
# Each work-item publishes its number, non-atomically; who counts last adds up what all have published.
LAST_ADDS = """
    kernel void k(global int *scratch, global atomic_int *counter, global int *sum) {
        int i = get_global_id(0), total = get_global_size(0);
        scratch[i] = i;
        %s
        int count = total;
        %s
        if (count == total) {
            int all = 0;
            for (int n = 0; n < total; n++)
                all += scratch[n];
            *sum = all;
        }
    }"""
BY_OPERATIONS = (
    "atomic_fetch_add_explicit(counter, 1, memory_order_release, memory_scope_%s);",
    "atomic_compare_exchange_strong_explicit(counter, &count, 0, memory_order_acquire, memory_order_relaxed, "
    "memory_scope_%s);",
)
BY_FENCES = (
    "atomic_fetch_add_explicit(counter, 1, memory_order_relaxed, memory_scope_%s); "
    "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_release, memory_scope_%s);",
    "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acquire, memory_scope_%s); "
    "atomic_compare_exchange_strong_explicit(counter, &count, 0, memory_order_relaxed, memory_order_relaxed, "
    "memory_scope_%s);",
)


@pytest.mark.parametrize("way", [BY_OPERATIONS, BY_FENCES], ids=["operations", "fences"])
@pytest.mark.parametrize("producer", SCOPES)
def test_scopes_that_differ_are_inclusive(session, way, producer):
    """ "For OpenCL 3.1 and newer, the memory scope of A and B may be different." """
    for consumer in SCOPES:
        texts = [text.replace("%s", scope) for text, scope in zip(way, (producer, consumer), strict=True)]
        kernel = session.kernel(LAST_ADDS % tuple(texts), options=CL31)
        wide = {producer, consumer} <= {"device", "all_svm_devices"}
        total, local = (1 << 14, None) if wide else (64, 64)
        if "sub_group" in (producer, consumer):
            total = local = sub_group_size(session, kernel)
        scratch, counter, result = (session.buffer(np.zeros(n, np.int32)) for n in (total, 1, 1))
        session.launch(kernel, total, scratch, counter, result, local=local)
        assert session.read(result, np.int32, 1) == [total * (total - 1) // 2], consumer


def sub_group_size(session, kernel: int) -> int:
    """Work-items of a group that is one sub-group."""
    one = ctypes.c_size_t(1)
    query = cl.CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT
    return session.cl.words("clGetKernelSubGroupInfo", kernel, session.device, query, 8, one)[0]
