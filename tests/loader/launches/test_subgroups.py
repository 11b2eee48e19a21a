"""Sub-groups through the loader: how launches are divided, queries, what a kernel may require."""

import ctypes
import math

import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.device import limits
from cl_driver.device.target import host_target
from tests.loader.opencl import SUB_GROUP_SIZE
from tests.pure.spirv.assembler import PREAMBLE, assemble

COMPILE_SIZE = 0x410A  # CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL
INFO = "clGetKernelSubGroupInfo"


@pytest.mark.parametrize("width", ["", "1", "8", "64"])
def test_launches_of_many_shapes(run_client, width):
    run_client("subgroups", width or host_target().sub_group_size, env={"CL_DRIVER_WIDTH": width})


def test_on_a_lesser_cpu(run_client):
    run_client("subgroups", env={"CL_DRIVER_CPU": "x86-64"})


@pytest.fixture
def build_kernel(opencl):
    """build_kernel(source): a kernel in a context that goes with it."""
    context, kernels = opencl.context(), []

    def make(source):
        kernels.append(opencl.kernel(context, source, options="-cl-std=CL3.0"))
        return kernels[-1]

    yield make
    for kernel in kernels:
        opencl.ok("clReleaseKernel", kernel)
    opencl.ok("clReleaseContext", context)


PLAIN = "kernel void k(global int *out) { out[get_global_id(0)] = sub_group_reduce_add(1); }"


def test_device_queries(opencl):
    size = SUB_GROUP_SIZE
    most = opencl.integer("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_MAX_NUM_SUB_GROUPS)
    assert most == limits.MAX_WORK_GROUP_SIZE // size
    found = opencl.words("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_SUB_GROUP_SIZES_INTEL)
    assert tuple(found) == limits.SUB_GROUP_SIZES


def test_kernel_queries(opencl, build_kernel):
    size = SUB_GROUP_SIZE
    kernel, device = build_kernel(PLAIN), opencl.device()

    def ask(query, *values, results=1):
        given, out = (ctypes.c_size_t * 3)(*values), (ctypes.c_size_t * results)()
        bytes_, written = ctypes.sizeof(out), ctypes.c_size_t()
        opencl.ok(INFO, kernel, device, query, 8 * len(values), given, bytes_, out, ctypes.byref(written))
        assert written.value == bytes_
        return list(out)

    assert ask(cl.CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 7) == [size]
    assert ask(cl.CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, size, 3) == [3]
    assert ask(cl.CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, 1, size, 2) == [2]
    assert ask(cl.CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, size + 1) == [2]
    for results in (1, 2, 3):
        local = ask(cl.CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, 5, results=results)
        assert local == [5 * size, 1, 1][:results]
    assert ask(cl.CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, 1 << 40, results=3) == [0, 0, 0]
    assert ask(cl.CL_KERNEL_MAX_NUM_SUB_GROUPS) == [limits.MAX_WORK_GROUP_SIZE // size]
    assert ask(cl.CL_KERNEL_COMPILE_NUM_SUB_GROUPS) == [0]
    assert ask(COMPILE_SIZE) == [0]


def test_errors_of_kernel_queries(opencl, build_kernel):
    kernel, device = build_kernel(PLAIN), opencl.device()
    size, count = ctypes.c_size_t(4), cl.CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE
    give = (8, ctypes.byref(size))
    out = (8, ctypes.byref(ctypes.c_size_t()), None)
    assert opencl.fails(INFO, device, device, count, *give, *out) == cl.CL_INVALID_KERNEL
    assert opencl.fails(INFO, kernel, kernel, count, *give, *out) == cl.CL_INVALID_DEVICE
    assert opencl.fails(INFO, kernel, device, 0x1234, *give, *out) == cl.CL_INVALID_VALUE
    for query in (
        cl.CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
        count,
        cl.CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT,
    ):
        assert opencl.fails(INFO, kernel, device, query, 8, None, *out) == cl.CL_INVALID_VALUE
        assert opencl.fails(INFO, kernel, device, query, 4, give[1], *out) == cl.CL_INVALID_VALUE
        assert opencl.fails(INFO, kernel, device, query, 32, give[1], *out) == cl.CL_INVALID_VALUE
        short = (4, out[1], None)
        assert opencl.fails(INFO, kernel, device, query, *give, *short) == cl.CL_INVALID_VALUE
    opencl.ok(INFO, kernel, device, count, *give, 0, None, None)
    opencl.ok(INFO, kernel, None, count, *give, *out)


@pytest.mark.parametrize("size", limits.SUB_GROUP_SIZES)
def test_a_required_size(opencl, build_kernel, size):
    kernel = build_kernel(f"__attribute__((intel_reqd_sub_group_size({size}))) {PLAIN}")
    out = ctypes.c_size_t()
    for query in (COMPILE_SIZE, cl.CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE):
        given = ctypes.c_size_t(100)
        opencl.ok(INFO, kernel, None, query, 8, ctypes.byref(given), 8, ctypes.byref(out), None)
        assert out.value == size
    spilled = opencl.integer("clGetKernelWorkGroupInfo", kernel, None, cl.CL_KERNEL_SPILL_MEM_SIZE_INTEL)
    assert spilled == 0
    assert f"({size})" in opencl.text("clGetKernelInfo", kernel, cl.CL_KERNEL_ATTRIBUTES)


def test_a_size_that_no_kernel_may_require(opencl):
    context = opencl.context()
    program = opencl.program(context, f"__attribute__((intel_reqd_sub_group_size(12))) {PLAIN}")
    status = opencl.fails("clBuildProgram", program, 0, None, b"-cl-std=CL3.0", None, None)
    assert status == cl.CL_BUILD_PROGRAM_FAILURE
    assert "12" in opencl.build_log(program)
    opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)


# The last sub-group of a group goes first, and each waits for the one behind it.
WAITING = """
kernel void k(global int *out, int rounds) {
    local atomic_int turn;
    int n = get_num_sub_groups(), place = n - 1 - get_sub_group_id();
    bool first = get_sub_group_local_id() == 0;
    if (get_local_linear_id() == 0) atomic_init(&turn, 0);
    work_group_barrier(CLK_LOCAL_MEM_FENCE);
    for (int round = 0; round < rounds; round++) {
        if (first) while (atomic_load(&turn) != round * n + place) ;
        sub_group_barrier(CLK_LOCAL_MEM_FENCE);
        if (first) atomic_fetch_add(&turn, 1);
    }
    work_group_barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_linear_id()] = atomic_load(&turn) * 100 + n;
}
"""


@pytest.mark.parametrize("size", ["", *limits.SUB_GROUP_SIZES])
def test_sub_groups_that_wait_for_one_another(opencl, size):
    promise = opencl.integer(
        "clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS
    )
    assert promise == 1
    assert (
        "cl_khr_subgroups" in opencl.text("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_EXTENSIONS).split()
    )
    required = f"__attribute__((intel_reqd_sub_group_size({size}))) " if size else ""
    context, lanes = opencl.context(), size or SUB_GROUP_SIZE
    kernel = opencl.kernel(context, required + WAITING, options="-cl-std=CL3.0")
    queue = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
    buffer = opencl.make("clCreateBuffer", context, 0, 4 * 8192, None)
    rounds = ctypes.c_int(3)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    opencl.ok("clSetKernelArg", kernel, 1, 4, ctypes.byref(rounds))
    for global_size, local in (
        ([8192], [1024]),
        ([1000], [200]),
        ([70], [70]),
        ([12, 40], [6, 10]),
        ([5], [1]),
    ):
        items = math.prod(global_size)
        ndrange = ("clEnqueueNDRangeKernel", queue, kernel, len(global_size), None, global_size, local)
        opencl.ok(*ndrange, 0, None, None)
        result = (ctypes.c_int32 * items)()
        read = ("clEnqueueReadBuffer", queue, buffer, cl.CL_TRUE, 0, 4 * items, result)
        opencl.ok(*read, 0, None, None)
        count = -(-math.prod(local) // lanes)
        assert set(result) == {3 * count * 100 + count}
    opencl.ok("clReleaseKernel", kernel)
    opencl.ok("clReleaseMemObject", buffer)
    opencl.ok("clReleaseCommandQueue", queue)
    opencl.ok("clReleaseContext", context)


# SPV_INTEL_subgroups and execution modes of sub-groups, of four work-items: rows of 16 words in reverse
# order; then the first of the odd work-items writes what the other odd one has, the other writes 1.
MODULE = (
    PREAMBLE.replace(
        "%std",
        "OpCapability SubgroupDispatch\nOpCapability SubgroupShuffleINTEL\nOpCapability "
        "SubgroupBufferBlockIOINTEL\nOpCapability GroupNonUniformVote\n"
        'OpExtension "SPV_INTEL_subgroups"\n%std',
    )
    + """
OpEntryPoint Kernel %k "k" %lane %id
OpExecutionMode %k SubgroupSize 4
OpExecutionMode %k SubgroupsPerWorkgroup 2
OpDecorate %lane BuiltIn SubgroupLocalInvocationId
OpDecorate %id BuiltIn SubgroupId
%void = OpTypeVoid
%bool = OpTypeBool
%i32 = OpTypeInt 32 0
%v4 = OpTypeVector %i32 4
%g = OpTypePointer CrossWorkgroup %i32
%input = OpTypePointer Input %i32
%fn = OpTypeFunction %void %g %g
%c1 = OpConstant %i32 1
%c2 = OpConstant %i32 2
%c3 = OpConstant %i32 3
%c16 = OpConstant %i32 16
%lane = OpVariable %input Input
%id = OpVariable %input Input
%k = OpFunction %void None %fn
%out = OpFunctionParameter %g
%in = OpFunctionParameter %g
%entry = OpLabel
%which = OpLoad %i32 %id
%start = OpIMul %i32 %which %c16
%from = OpInBoundsPtrAccessChain %g %in %start
%to = OpInBoundsPtrAccessChain %g %out %start
%block = OpSubgroupBlockReadINTEL %v4 %from
%turned = OpVectorShuffle %v4 %block %block 3 2 1 0
OpSubgroupBlockWriteINTEL %to %turned
%number = OpLoad %i32 %lane
%bit = OpBitwiseAnd %i32 %number %c1
%odd = OpIEqual %bool %bit %c1
OpBranchConditional %odd %then %end
%then = OpLabel
%first = OpGroupNonUniformElect %bool %c3
%value = OpCompositeExtract %i32 %block 1
%swapped = OpSubgroupShuffleXorINTEL %i32 %value %c2
%added = OpSelect %i32 %first %swapped %c1
%place = OpInBoundsPtrAccessChain %g %to %number
OpStore %place %added Aligned 4
OpBranch %end
%end = OpLabel
OpReturn
OpFunctionEnd
"""
)


# Kernels that do not ask for their sub-groups: the first work-item waits for the last one.
WAITING_ITEMS = """
kernel void global_flag(global int *out, volatile global int *flags) {
    int l = get_local_id(0);
    volatile global int *flag = flags + get_group_id(0);
    if (l == 0) while (*flag != 7) ;
    if (l == get_local_size(0) - 1) *flag = 7;
    out[get_global_id(0)] = *flag / 7 * l;
}
kernel void local_flag(global int *out, volatile global int *flags) {
    local int flag;
    int l = get_local_id(0);
    if (l == 0) flag = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 64) while (atomic_add(&flag, 0) != 7) ;
    if (l == get_local_size(0) - 1) atomic_add(&flag, 7);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = flag / 7 * l;
}
"""


@pytest.mark.parametrize("name", ["global_flag", "local_flag"])
def test_waiting_without_a_word_of_sub_groups(opencl, name):
    device, context = opencl.device(), opencl.context()
    kernel = opencl.kernel(context, WAITING_ITEMS, name)
    zeros = (ctypes.c_int32 * 1024)()
    buffers = [opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, 4096, zeros) for _ in range(2)]
    queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
    for k, buffer in enumerate(buffers):
        opencl.ok("clSetKernelArg", kernel, k, 8, ctypes.c_uint64(buffer))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [1024], [256], 0, None, None)
    read = ("clEnqueueReadBuffer", queue, buffers[0], cl.CL_TRUE, 0, 4096, zeros)
    opencl.ok(*read, 0, None, None)
    expected = [k % 256 for k in range(1024)]
    if name == "global_flag":  # which those between may see before it is set
        expected = [k if k % 256 in (0, 255) else found for k, found in zip(expected, zeros, strict=True)]
    assert list(zeros) == expected
    for buffer in buffers:
        opencl.ok("clReleaseMemObject", buffer)
    opencl.ok("clReleaseCommandQueue", queue)
    opencl.ok("clReleaseKernel", kernel)
    opencl.ok("clReleaseContext", context)


# Each sub-group says how far it has come, and has seen at a named barrier that all others have.
NAMED = (
    PREAMBLE.replace("%std", "OpCapability SubgroupDispatch\nOpCapability NamedBarrier\n%std")
    + """
OpEntryPoint Kernel %k "k" %lane %id %count %group
OpExecutionMode %k SubgroupSize 8
OpDecorate %lane BuiltIn LocalInvocationIndex
OpDecorate %id BuiltIn SubgroupId
OpDecorate %count BuiltIn NumSubgroups
OpDecorate %group BuiltIn WorkgroupId
%void = OpTypeVoid
%bool = OpTypeBool
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%v3 = OpTypeVector %i64 3
%named = OpTypeNamedBarrier
%g = OpTypePointer CrossWorkgroup %i32
%w = OpTypePointer Workgroup %i32
%input = OpTypePointer Input %i32
%input64 = OpTypePointer Input %i64
%inputs = OpTypePointer Input %v3
%c128 = OpConstant %i64 128
%array = OpTypeArray %i32 %c128
%wa = OpTypePointer Workgroup %array
%fn = OpTypeFunction %void %g
%c1 = OpConstant %i32 1
%c2 = OpConstant %i32 2
%order = OpConstant %i32 264
%lane = OpVariable %input64 Input
%id = OpVariable %input Input
%count = OpVariable %input Input
%group = OpVariable %inputs Input
%shared = OpVariable %wa Workgroup
%k = OpFunction %void None %fn
%out = OpFunctionParameter %g
%entry = OpLabel
%n = OpLoad %i32 %count
%barrier = OpNamedBarrierInitialize %named %n
%l = OpLoad %i64 %lane
%s = OpLoad %i32 %id
%place = OpInBoundsAccessChain %w %shared %l
%mine = OpIAdd %i32 %s %c1
OpStore %place %mine Aligned 4
OpMemoryNamedBarrier %barrier %c2 %order
%behind = OpBitwiseXor %i64 %l %c127
%other = OpInBoundsAccessChain %w %shared %behind
%seen = OpLoad %i32 %other Aligned 4
%groups = OpLoad %v3 %group
%x = OpCompositeExtract %i64 %groups 0
%first = OpIMul %i64 %x %c128
%at = OpIAdd %i64 %first %l
%to = OpInBoundsPtrAccessChain %g %out %at
OpStore %to %seen Aligned 4
OpReturn
OpFunctionEnd
"""
).replace("%c128 =", "%c127 = OpConstant %i64 127\n%c128 =")


def test_named_barriers(opencl):
    device, context = opencl.device(), opencl.context()
    assert opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_MAX_NAMED_BARRIER_COUNT_KHR) >= 8
    extensions = opencl.text("clGetDeviceInfo", device, cl.CL_DEVICE_EXTENSIONS).split()
    assert "cl_khr_subgroup_named_barrier" in extensions
    data = assemble(NAMED, (1, 1))
    program = opencl.make("clCreateProgramWithIL", context, data, len(data))
    opencl.build(program)
    kernel = opencl.make("clCreateKernel", program, "k")
    buffer = opencl.make("clCreateBuffer", context, 0, 4 * 1280, None)
    queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [1280], [128], 0, None, None)
    result = (ctypes.c_int32 * 1280)()
    opencl.ok("clEnqueueReadBuffer", queue, buffer, cl.CL_TRUE, 0, 4 * 1280, result, 0, None, None)
    assert list(result) == [16 - i % 128 // 8 for i in range(1280)]
    for release, handle in (
        ("clReleaseMemObject", buffer),
        ("clReleaseCommandQueue", queue),
        ("clReleaseKernel", kernel),
        ("clReleaseProgram", program),
        ("clReleaseContext", context),
    ):
        opencl.ok(release, handle)


FUNCTIONS = """
kernel void k(global int *out) {
    local int shared[128];
    RESULT named_barrier = named_barrier_init(get_num_sub_groups());
    int l = get_local_id(0);
    shared[l] = l;
    work_group_named_barrier(named_barrier, CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = shared[127 - l];
}
"""


@pytest.mark.parametrize("options", ["", "-cl-std=CL2.0", "-cl-std=CL3.0", "-cl-std=CLC++2021"])
def test_functions_of_named_barriers(opencl, options):
    device, context = opencl.device(), opencl.context()
    source = FUNCTIONS.replace("RESULT", "local struct __namedBarrier *")
    kernel = opencl.kernel(context, source, options=options)
    buffer = opencl.make("clCreateBuffer", context, 0, 4 * 512, None)
    queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [512], [128], 0, None, None)
    result = (ctypes.c_int32 * 512)()
    opencl.ok("clEnqueueReadBuffer", queue, buffer, cl.CL_TRUE, 0, 4 * 512, result, 0, None, None)
    assert list(result) == [127 - i % 128 for i in range(512)]
    for release, handle in (
        ("clReleaseMemObject", buffer),
        ("clReleaseCommandQueue", queue),
        ("clReleaseKernel", kernel),
        ("clReleaseContext", context),
    ):
        opencl.ok(release, handle)


def test_a_declaration_of_another_type(opencl):
    context = opencl.context()
    source = "long named_barrier_init(long); " + FUNCTIONS.replace("RESULT", "long")
    source = source.replace("work_group_named_barrier(named_barrier, CLK_LOCAL_MEM_FENCE)", "")
    program = opencl.program(context, source)
    status = opencl.fails("clBuildProgram", program, 0, None, b"-cl-std=CL3.0", None, None)
    assert status == cl.CL_BUILD_PROGRAM_FAILURE
    assert "named_barrier_init" in opencl.build_log(program)
    opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)


def test_a_module_with_blocks_shuffles_and_required_sub_groups(opencl):
    context, device = opencl.context(), opencl.device()
    data = assemble(MODULE)
    program = opencl.make("clCreateProgramWithIL", context, data, len(data))
    opencl.build(program)
    kernel = opencl.make("clCreateKernel", program, "k")
    out = ctypes.c_size_t()
    opencl.ok(INFO, kernel, None, cl.CL_KERNEL_COMPILE_NUM_SUB_GROUPS, 0, None, 8, ctypes.byref(out), None)
    assert out.value == 2
    given = (ctypes.c_uint32 * 32)(*range(100, 132))
    flags = cl.CL_MEM_COPY_HOST_PTR
    buffers = [opencl.make("clCreateBuffer", context, flags, 128, given) for _ in range(2)]
    for index, buffer in enumerate(buffers):
        opencl.ok("clSetKernelArg", kernel, index, 8, ctypes.c_uint64(buffer))
    queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
    launch = ("clEnqueueNDRangeKernel", queue, kernel, 1, None, [8])
    # "CL_INVALID_WORK_GROUP_SIZE if local_work_size is specified and is not consistent with the required
    # number of sub-groups for kernel in the program source."
    assert opencl.fails(*launch, [4], 0, None, None) == cl.CL_INVALID_WORK_GROUP_SIZE
    for local in ([8], None):
        opencl.ok(*launch, local, 0, None, None)
        result = (ctypes.c_uint32 * 32)()
        opencl.ok("clEnqueueReadBuffer", queue, buffers[0], cl.CL_TRUE, 0, 128, result, 0, None, None)
        want = [100 + 16 * s + 4 * (3 - k) + lane for s in range(2) for k in range(4) for lane in range(4)]
        for s in range(2):
            want[16 * s + 1], want[16 * s + 3] = 100 + 16 * s + 4 + 3, 1
        assert list(result) == want
    for release, handle in [("clReleaseMemObject", b) for b in buffers] + [
        ("clReleaseKernel", kernel),
        ("clReleaseProgram", program),
        ("clReleaseCommandQueue", queue),
        ("clReleaseContext", context),
    ]:
        opencl.ok(release, handle)


@pytest.mark.parametrize(
    ("right", "wrong", "rule"),
    [
        ("ShuffleXorINTEL %i32 %value %c2", "ShuffleXorINTEL %i32 %value %block", "lane number"),
        ("BlockReadINTEL %v4 %from", "BlockReadINTEL %v4 %start", "pointer"),
        ("Elect %bool %c3", "Elect %bool %c1", "scope"),
    ],
)
def test_modules_that_break_a_rule(opencl, right, wrong, rule):
    context = opencl.context()
    assert right in MODULE
    data = assemble(MODULE.replace(right, wrong))
    program = opencl.make("clCreateProgramWithIL", context, data, len(data))
    assert opencl.fails("clBuildProgram", program, 0, None, None, None, None) == cl.CL_BUILD_PROGRAM_FAILURE
    assert rule in opencl.build_log(program).lower()
    opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)
