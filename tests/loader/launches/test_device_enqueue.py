"""Kernels that enqueue kernels: queues on the device, what blocks may do, events, errors, how many there may
be."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.device import limits
from tests.loader.command_buffers.recorder import Recorder
from tests.loader.core.session import CL3, Session
from tests.pure.spirv.assembler import assemble

ON_DEVICE = cl.CL_QUEUE_ON_DEVICE | cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
DEFAULT = ON_DEVICE | cl.CL_QUEUE_ON_DEVICE_DEFAULT


@pytest.fixture
def session(opencl):
    made = Session(opencl)
    yield made
    made.close()


def device_queue(session, properties=DEFAULT, *more) -> int:
    wanted = [cl.CL_QUEUE_PROPERTIES, properties, *more, 0]
    made = session.cl.make("clCreateCommandQueueWithProperties", session.context, session.device, wanted)
    return session.made("clReleaseCommandQueue", made)


class Queue(int):
    """A queue on the device, as an argument."""

    def as_argument(self) -> np.uint64:
        return np.uint64(self)


def run(session, body, count=16, items=1, local=None, options=CL3, more="", arguments=()) -> np.ndarray:
    """What a kernel leaves in `out`, of zeros."""
    source = f"""{more}
    kernel void k(global int *out, int n) {{ queue_t q = get_default_queue(); {body} }}"""
    out = session.buffer(np.zeros(count, np.int32))
    session.launch(session.kernel(source, options=options), items, out, np.int32(count), local=local)
    return session.read(out, np.int32, count)


def test_queries(session):
    def ask(name, kind="integer"):
        return getattr(session.cl, kind)("clGetDeviceInfo", session.device, getattr(cl, name))

    both = cl.CL_DEVICE_QUEUE_SUPPORTED | cl.CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT
    assert ask("CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES") == both
    assert ask("CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE") == limits.DEVICE_QUEUE_PREFERRED_SIZE
    assert ask("CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE") == limits.DEVICE_QUEUE_MAX_SIZE
    assert ask("CL_DEVICE_MAX_ON_DEVICE_QUEUES") >= 1
    assert ask("CL_DEVICE_MAX_ON_DEVICE_EVENTS") >= 1024
    wanted = cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl.CL_QUEUE_PROFILING_ENABLE
    assert ask("CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES") == wanted


def test_queues(session):
    opencl = session.cl

    def ask(queue, name):
        return opencl.integer("clGetCommandQueueInfo", queue, getattr(cl, name))

    assert ask(session.queue, "CL_QUEUE_DEVICE_DEFAULT") == 0
    first, sized = device_queue(session), device_queue(session, ON_DEVICE, cl.CL_QUEUE_SIZE, 1 << 20)
    assert ask(first, "CL_QUEUE_SIZE") == limits.DEVICE_QUEUE_PREFERRED_SIZE
    assert ask(sized, "CL_QUEUE_SIZE") == 1 << 20
    assert ask(session.queue, "CL_QUEUE_DEVICE_DEFAULT") == first
    assert ask(sized, "CL_QUEUE_DEVICE_DEFAULT") == first
    # There is but one default queue.
    assert device_queue(session) == first
    assert ask(first, "CL_QUEUE_REFERENCE_COUNT") == 2
    opencl.ok("clSetDefaultDeviceCommandQueue", session.context, session.device, sized)
    assert ask(first, "CL_QUEUE_DEVICE_DEFAULT") == sized


def test_the_default_queue_goes_when_it_is_released(session):
    queue = session.cl.make(
        "clCreateCommandQueueWithProperties",
        session.context,
        session.device,
        [cl.CL_QUEUE_PROPERTIES, DEFAULT, 0],
    )
    session.cl.ok("clReleaseCommandQueue", queue)
    assert session.cl.integer("clGetCommandQueueInfo", session.queue, cl.CL_QUEUE_DEVICE_DEFAULT) == 0


def test_what_is_refused(session):
    opencl, queue = session.cl, device_queue(session)

    def fails(*wanted) -> int:
        return opencl.fails(
            "clCreateCommandQueueWithProperties", session.context, session.device, [*wanted, 0]
        )

    properties, size = cl.CL_QUEUE_PROPERTIES, cl.CL_QUEUE_SIZE
    assert fails(properties, cl.CL_QUEUE_ON_DEVICE) == cl.CL_INVALID_VALUE
    assert fails(properties, cl.CL_QUEUE_ON_DEVICE_DEFAULT) == cl.CL_INVALID_VALUE
    assert fails(size, 1 << 20) == cl.CL_INVALID_VALUE
    most = limits.DEVICE_QUEUE_MAX_SIZE
    assert fails(properties, ON_DEVICE, size, most + 1) == cl.CL_INVALID_QUEUE_PROPERTIES

    default = ("clSetDefaultDeviceCommandQueue", session.context, session.device)
    assert opencl.call(*default, session.queue) == cl.CL_INVALID_COMMAND_QUEUE
    assert opencl.call(*default, None) == cl.CL_INVALID_COMMAND_QUEUE
    # Hosts enqueue nothing in queues on the device.
    assert opencl.call("clFinish", queue) == cl.CL_INVALID_COMMAND_QUEUE
    assert opencl.call("clFlush", queue) == cl.CL_INVALID_COMMAND_QUEUE
    marker = ("clEnqueueMarkerWithWaitList", queue, 0, None, None)
    assert opencl.call(*marker) == cl.CL_INVALID_COMMAND_QUEUE
    assert (
        opencl.call("clGetCommandQueueInfo", session.queue, cl.CL_QUEUE_SIZE, 4, ctypes.c_uint(), None)
        == cl.CL_INVALID_COMMAND_QUEUE
    )

    kernel = session.kernel("kernel void k(queue_t q) { enqueue_kernel(q, 0, ndrange_1D(1), ^{}); }")
    for value, status in (
        (session.queue, cl.CL_INVALID_DEVICE_QUEUE), (0, cl.CL_INVALID_DEVICE_QUEUE), (queue, 0),
    ):  # fmt: skip
        assert opencl.call("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(value)) == status
    assert opencl.call("clSetKernelArg", kernel, 0, 4, ctypes.c_uint64(queue)) == cl.CL_INVALID_ARG_SIZE


def test_blocks_are_no_kernels_of_the_program(session):
    program = session.program(
        "kernel void k(global int *p) { "
        "enqueue_kernel(get_default_queue(), 0, ndrange_1D(1), ^{ p[0] = 1; }); }"
    )
    opencl = session.cl
    assert opencl.integer("clGetProgramInfo", program, cl.CL_PROGRAM_NUM_KERNELS) == 1
    assert opencl.text("clGetProgramInfo", program, cl.CL_PROGRAM_KERNEL_NAMES) == "k"
    for name in (b"block 0 __k_block_invoke_kernel", b"__k_block_invoke_kernel"):
        assert opencl.fails("clCreateKernel", program, name) == cl.CL_INVALID_KERNEL_NAME
    count = ctypes.c_uint()
    opencl.ok("clCreateKernelsInProgram", program, 0, None, ctypes.byref(count))
    assert count.value == 1


BODIES = {
    "captures": "int a = 3, b = n; enqueue_kernel(q, 1, ndrange_1D(n), ^{ out[get_global_id(0)] = a * b; });",
    "large": "long16 v = (long16)(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16) * 3, w = v, x = v;"
    " enqueue_kernel(q, 1, ndrange_1D(1), ^{ long16 s = v + w - x;"
    " for (int i = 0; i < 16; i++) out[i] = (int)((private long *)&s)[i]; });",
    "nothing": "enqueue_kernel(q, 1, ndrange_1D(n), ^{ counts[get_global_id(0)] = 48; });"
    " enqueue_kernel(q, 1, ndrange_1D(1), ^{}); for (int i = 0; i < n; i++) out[i] = 48;",
    "twice": "void (^b)(void) = ^{ atomic_add(out + get_global_id(0), 24); };"
    " enqueue_kernel(q, 1, ndrange_1D(n), b); enqueue_kernel(q, 0, ndrange_1D(n), b);",
    "called": "int (^b)(int) = ^(int x) { return x * n; }; for (int i = 0; i < n; i++) out[i] = b(3);",
    "nested": "enqueue_kernel(q, 1, ndrange_1D(n / 4), ^{ int i = get_global_id(0);"
    " enqueue_kernel(get_default_queue(), 1, ndrange_1D(4), ^{"
    " out[4 * i + get_global_id(0)] = 48; }); });",
    "chain": "from(out, n);",
    "ranges": "size_t size[2] = {4, 4}, group[2] = {2, 1}, offset[2] = {0, 0};"
    " enqueue_kernel(q, 0, ndrange_2D(offset, size, group), ^{"
    " out[get_global_id(0) + 4 * get_global_id(1)] = 24 * get_local_size(0); });",
    "offset": "enqueue_kernel(q, 0, ndrange_1D(4, n - 4, 4), ^{ out[get_global_id(0)] = 48; });"
    " for (int i = 0; i < 4; i++) out[i] = 48;",
    "three": "size_t size[3] = {2, 2, 4}; enqueue_kernel(q, 0, ndrange_3D(size), ^{"
    " out[get_global_linear_id()] = 48; });",
    "local": "enqueue_kernel(q, 1, ndrange_1D(n, 4), ^(local void *a, local void *b) {"
    " local int *x = a; local int *y = b; int i = get_local_id(0); x[i] = i; y[3 - i] = 45;"
    " barrier(CLK_LOCAL_MEM_FENCE); out[get_global_id(0)] = y[i] + x[3 - i] + i; }, 16, 16);",
    "events": "clk_event_t first, second; clk_event_t user = create_user_event();"
    " enqueue_kernel(q, 0, ndrange_1D(n), 1, &user, &first, ^{ out[get_global_id(0)] = 40; });"
    " enqueue_kernel(q, 0, ndrange_1D(n), 1, &first, &second, ^{ out[get_global_id(0)] += 5; });"
    " clk_event_t both[2] = {first, second}, marker; enqueue_marker(q, 2, both, &marker);"
    " enqueue_kernel(q, 0, ndrange_1D(n), 1, &marker, 0, ^{ out[get_global_id(0)] += 3; });"
    " if (is_valid_event(first) && out[0] == 0) set_user_event_status(user, CL_COMPLETE);"
    " release_event(user); release_event(first); retain_event(second); release_event(second);"
    " release_event(second); release_event(marker);",
    "wide": "for (int i = 0; i < n; i++) out[i] = -1; enqueue_kernel(q, 1, ndrange_1D(100000), ^{"
    " if (get_global_id(0) < n) out[get_global_id(0)] = 48; });",
    "printf": 'enqueue_kernel(q, 1, ndrange_1D(n), ^{ if (get_global_id(0) == 99) printf("never");'
    " out[get_global_id(0)] = 48; });",
    "sub_groups": "enqueue_kernel(q, 1, ndrange_1D(n, n), ^{"
    " out[get_global_id(0)] = 48 + (sub_group_broadcast(get_sub_group_local_id(), 0) != 0); });",
}
MORE = """
global int counts[16];
void from(global int *out, int n) {
    out[n - 1] = 48;
    if (n > 1)
        enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(1), ^{
            from(out, n - 1);
        });
}
"""


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("options", [CL3, "-cl-std=CL3.0 -cl-opt-disable", "-cl-std=CL2.0 -g"])
def test_what_blocks_may_do(session, name, options):
    device_queue(session)
    wanted = np.full(16, 48, np.int32)
    if name == "large":
        wanted = np.arange(1, 17, dtype=np.int32) * 3
    assert run(session, BODIES[name], options=options, more=MORE).tolist() == wanted.tolist()


def test_every_work_item_enqueues(session):
    device_queue(session)
    found = run(
        session,
        "int i = get_global_id(0);"
        " if (i % 3) enqueue_kernel(q, 0, ndrange_1D(1), ^{ atomic_add(out + i, i); });",
        count=300,
        items=300,
    )
    assert found.tolist() == [i if i % 3 else 0 for i in range(300)]


def test_work_items_that_ask_for_no_id_enqueue_each(session):
    device_queue(session)
    found = run(session, "enqueue_kernel(q, 0, ndrange_1D(1), ^{ atomic_inc(out); });", items=(64, 3, 2))
    assert found[0] == 64 * 3 * 2


def test_sizes_of_blocks(session):
    device_queue(session)
    found = run(
        session,
        "void (^b)(void) = ^{ out[9] = get_sub_group_local_id(); };"
        " out[0] = get_kernel_work_group_size(b);"
        " out[1] = get_kernel_preferred_work_group_size_multiple(b);"
        " out[2] = get_kernel_max_sub_group_size_for_ndrange(ndrange_1D(64, 64), b);"
        " out[3] = get_kernel_sub_group_count_for_ndrange(ndrange_1D(64, 64), b);"
        " out[4] = get_kernel_max_sub_group_size_for_ndrange(ndrange_1D(2, 2), b);",
    )
    assert found[0] == session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_MAX_WORK_GROUP_SIZE)
    assert found[1] >= 1 and found[2] * found[3] == 64 and found[4] == 2


@pytest.mark.parametrize("is_told", [False, True])
def test_errors(session, is_told):
    device_queue(session)
    body = (
        "clk_event_t bad = CLK_NULL_EVENT, made = CLK_NULL_EVENT;"
        " out[0] = enqueue_kernel(q, 0, ndrange_1D(16, 1 << 20), ^{ out[15] = 1; });"
        " out[1] = enqueue_kernel(q, 0, ndrange_1D(16), 1, &bad, &made, ^{ out[15] = 1; });"
        " out[2] = enqueue_kernel(q, 0, ndrange_1D(16), 0, &bad, &made, ^{ out[15] = 1; });"
        " out[3] = enqueue_kernel(q, 0, ndrange_1D(16), 1, 0, &made, ^{ out[15] = 1; });"
        " out[4] = enqueue_kernel(q, 0, ndrange_1D(16, 16), ^(local void *p) { out[15] = 1; }, 1u << 30);"
        " out[5] = enqueue_marker(q, 0, 0, &made);"
        " out[6] = is_valid_event(bad) | is_valid_event(made);"
        " out[7] = enqueue_kernel(q, 0, ndrange_1D(0), ^{ out[15] = 1; });"
    )
    found = run(session, body, options=CL3 + " -g" * is_told)
    told = [-160, -57, -57, -57, -5, -57]
    assert found.tolist() == [*(told if is_told else [-101] * 6), *[0] * 10]


def test_without_a_default_queue(session):
    assert run(session, "out[0] = enqueue_kernel(q, 0, ndrange_1D(1), ^{ out[1] = 1; });",
               options=CL3 + " -g").tolist()[:2] == [-102, 0]  # fmt: skip


def test_a_full_queue(session):
    """What does not fit is not enqueued, and room comes again."""
    queue = device_queue(session, ON_DEVICE, cl.CL_QUEUE_SIZE, 16 << 10)
    kernel = session.kernel(
        "kernel void k(queue_t q, global int *out) { for (int i = 0; i < 1000; i++) {"
        " int r = enqueue_kernel(q, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(1), ^{ out[0]++; });"
        " if (r == 0) out[1]++; else out[2] = r; } }",
        options=CL3 + " -g",
    )
    before = np.zeros(3, np.int32)
    for _ in range(3):
        out = session.buffer(np.zeros(3, np.int32))
        session.launch(kernel, 1, np.uint64(queue), out)
        ran, took, status = session.read(out, np.int32, 3)
        assert 0 < ran == took < 1000 and status == -161
        assert before[1] in (0, took)
        before = np.array([ran, took, status])


def test_events_of_the_host_wait_for_children(session):
    """What a kernel has enqueued is done when its event is, and is timed apart."""
    device_queue(session)
    profiled = session.new_queue(properties=cl.CL_QUEUE_PROFILING_ENABLE)
    kernel = session.kernel(
        "kernel void k(global int *out) { enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_WAIT_KERNEL,"
        " ndrange_1D(1), ^{ for (int i = 0; i < 300000; i++) ((volatile global int *)out)[1] += i & 1;"
        " out[0] = 1; }); }"
    )
    out, event = session.buffer(np.zeros(2, np.int32)), session.event()
    session.launch(kernel, 1, out, queue=profiled, event=ctypes.byref(event))
    session.cl.ok("clWaitForEvents", 1, ctypes.byref(event))
    assert session.read(out, np.int32, 1)[0] == 1

    def time(name):
        return session.cl.integer("clGetEventProfilingInfo", event.value, getattr(cl, name))

    start, end = time("CL_PROFILING_COMMAND_START"), time("CL_PROFILING_COMMAND_END")
    complete = time("CL_PROFILING_COMMAND_COMPLETE")
    assert start <= end < complete and complete - end > end - start
    session.cl.ok("clReleaseEvent", event.value)


def test_times_of_children(session):
    device_queue(session)
    found = run(
        session,
        "clk_event_t e; global ulong *t = (global ulong *)out;"
        " enqueue_kernel(q, 0, ndrange_1D(1), 0, 0, &e, ^{ out[15]++; });"
        " capture_event_profiling_info(e, CLK_PROFILING_COMMAND_EXEC_TIME, t);"
        " enqueue_kernel(q, 0, ndrange_1D(1), 1, &e, 0, ^{ out[14] = t[0] > 0 && t[1] >= t[0];"
        " capture_event_profiling_info(e, CLK_PROFILING_COMMAND_EXEC_TIME, t + 2); release_event(e); });",
    ).view(np.uint64)
    assert found[0] > 0 and found[1] >= found[0] and found[2:4].tolist() == found[:2].tolist()
    assert found[7] == 1 << 32 | 1


def test_a_user_event_that_fails(session):
    """What waits for it is not executed; the kernel itself has not failed."""
    device_queue(session)
    found = run(
        session,
        "clk_event_t user = create_user_event();"
        " enqueue_kernel(q, 0, ndrange_1D(1), 1, &user, 0, ^{ out[0] = 1; });"
        " set_user_event_status(user, -1); set_user_event_status(user, CL_COMPLETE); release_event(user);"
        " out[1] = 2;",
    )
    assert found[:2].tolist() == [0, 2]


def test_many(session):
    """A kernel may enqueue itself without end, or a thousand others a thousand times."""
    device_queue(session)
    source = """
    void again(global int *out, int n) {
        out[0]++;
        if (n > 1)
            enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(1), ^{
                again(out, n - 1);
            });
    }
    kernel void k(global int *out) { again(out, 200000); }
    kernel void other(global int *out) {
        for (int i = 0; i < 1000; i++)
            enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{
                atomic_inc(out + 1);
            });
    }"""
    program, out = session.program(source), session.buffer(np.zeros(2, np.int32))
    session.launch(session.kernel(program), 1, out)
    other = session.kernel(program, "other")
    for _ in range(100):
        session.launch(other, 1, out)
        session.finish()
    assert session.read(out, np.int32, 2).tolist() == [200000, 100000]


def test_two_modules_with_blocks_of_one_name(session):
    device_queue(session)
    text = """
    static void f(global int *out) {
        enqueue_kernel(get_default_queue(), 0, ndrange_1D(1), ^{ out[AT] = AT + 7; });
    }
    kernel void NAME(global int *out) { f(out); MORE }"""
    sources = (
        "#define NAME a\n#define AT 0\n#define MORE\n" + text,
        "#define NAME k\n#define AT 1\nvoid a(global int *);\n#define MORE a(out);\n" + text,
    )
    opencl = session.cl
    programs = [session.made("clReleaseProgram", opencl.program(session.context, s)) for s in sources]
    for program in programs:
        opencl.ok("clCompileProgram", program, 0, None, CL3.encode(), 0, None, None, None, None)
    handles = (ctypes.c_void_p * 2)(*programs)
    linked = opencl.make("clLinkProgram", session.context, 0, None, b"", 2, handles, None, None)
    kernel = session.kernel(session.made("clReleaseProgram", linked))
    out = session.buffer(np.zeros(2, np.int32))
    session.launch(kernel, 1, out)
    assert session.read(out, np.int32, 2).tolist() == [7, 8]


MODULE = """
OpCapability Addresses
OpCapability Kernel
OpCapability GenericPointer
OpCapability Int64
OpCapability Int8
OpCapability DeviceEnqueue
OpCapability SubgroupDispatch
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k" %id
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %id Constant
%void = OpTypeVoid
%i8 = OpTypeInt 8 0
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%v3 = OpTypeVector %i64 3
%queue = OpTypeQueue
%event = OpTypeDeviceEvent
%three = OpConstant %i32 3
%one = OpConstant %i32 1
%zero = OpConstant %i32 0
%eight = OpConstant %i32 8
%four = OpConstant %i64 4
%none = OpConstant %i64 0
%two = OpConstant %i32 2
%huge = OpConstant %i32 1000000
%l3 = OpConstant %i64 4
%l4 = OpConstant %i64 5
%l5 = OpConstant %i64 6
%sizes = OpTypeArray %i64 %three
%range = OpTypeStruct %i32 %sizes %sizes %sizes
%pin = OpTypePointer Input %v3
%pg = OpTypePointer Generic %i8
%pp = OpTypePointer Function %i64
%pgp = OpTypePointer Generic %i64
%pl = OpTypePointer Workgroup %i32
%pw = OpTypePointer CrossWorkgroup %i32
%pge = OpTypePointer Generic %event
%null = OpConstantNull %pge
%id = OpVariable %pin Input
%block = OpTypeFunction %void %pg %pl
%fn = OpTypeFunction %void %pw
%f = OpFunction %void None %block
%f1 = OpFunctionParameter %pg
%f2 = OpFunctionParameter %pl
%fb = OpLabel
%f3 = OpBitcast %pgp %f1
%f4 = OpLoad %i64 %f3 Aligned 8
%f5 = OpConvertUToPtr %pw %f4
%f6 = OpLoad %v3 %id Aligned 32
%f7 = OpCompositeExtract %i64 %f6 0
%f8 = OpPtrAccessChain %pw %f5 %f7
OpStore %f2 %eight Aligned 4
%f9 = OpLoad %i32 %f2 Aligned 4
OpStore %f8 %f9 Aligned 4
OpReturn
OpFunctionEnd
%k = OpFunction %void None %fn
%out = OpFunctionParameter %pw
%entry = OpLabel
%var = OpVariable %pp Function
%address = OpConvertPtrToU %i64 %out
OpStore %var %address Aligned 8
%g = OpPtrCastToGeneric %pgp %var
%captured = OpBitcast %pg %g
%q = OpGetDefaultQueue %queue
%nd = OpBuildNDRange %range %four %none %none
%s3 = OpGetKernelLocalSizeForSubgroupCount %i32 %two %f %captured %eight %eight
%s4 = OpGetKernelLocalSizeForSubgroupCount %i32 %huge %f %captured %eight %eight
%s5 = OpGetKernelMaxNumSubgroups %i32 %f %captured %eight %eight
%p3 = OpPtrAccessChain %pw %out %l3
%p4 = OpPtrAccessChain %pw %out %l4
%p5 = OpPtrAccessChain %pw %out %l5
OpStore %p3 %s3 Aligned 4
OpStore %p4 %s4 Aligned 4
OpStore %p5 %s5 Aligned 4
%done = OpEnqueueKernel %i32 %q %one %nd %zero %null %null %f %captured %eight %eight %eight
OpReturn
OpFunctionEnd
"""


def test_spirv(session):
    device_queue(session)
    il = assemble(MODULE, (1, 1))
    program = session.made(
        "clReleaseProgram", session.cl.make("clCreateProgramWithIL", session.context, il, len(il))
    )
    session.cl.build(program, None)
    out = session.buffer(np.full(7, -1, np.int32))
    session.launch(session.kernel(program), 1, out)
    *written, of_two, of_many, most = session.read(out, np.int32, 7).tolist()
    largest = session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_MAX_WORK_GROUP_SIZE)
    assert written == [8, 8, 8, 8] and of_many == 0
    assert of_two % 2 == 0 and most * (of_two // 2) == largest


@pytest.mark.sanitize
@pytest.mark.parametrize("threads", [None, "1", "6"])  # of the driver; one helps nobody
def test_threads(run_client, threads):
    run_client("threads/children", 50, env={"CL_DRIVER_THREADS": threads})


@pytest.mark.parametrize("threads", [None, "1", "6"])
def test_allocations_that_fail(run_client, threads):
    run_client("threads/child_memory", 100, env={"CL_DRIVER_THREADS": threads})


def test_of_a_binary(session):
    """Blocks are in a program's binary."""
    device_queue(session)
    opencl = session.cl
    program = session.program(
        "kernel void k(global int *p) { enqueue_kernel(get_default_queue(), 0, ndrange_1D(4), ^{"
        " p[get_global_id(0)] = 5; }); }"
    )
    size = ctypes.c_uint64(opencl.integer("clGetProgramInfo", program, cl.CL_PROGRAM_BINARY_SIZES))
    binary = ctypes.create_string_buffer(size.value)
    where = ctypes.c_void_p(ctypes.addressof(binary))
    opencl.ok("clGetProgramInfo", program, cl.CL_PROGRAM_BINARIES, 8, where, None)
    other, status = opencl.call(
        "clCreateProgramWithBinary", session.context, 1, [session.device], size, where, None
    )
    assert status == 0
    session.cl.build(session.made("clReleaseProgram", other), None)
    out = session.buffer(np.zeros(5, np.int32))
    session.launch(session.kernel(other), 1, out)
    assert session.read(out, np.int32, 5).tolist() == [5, 5, 5, 5, 0]


def test_in_a_command_buffer(opencl):
    """Kernels of graphs enqueue others each time that they are executed."""
    session = Recorder(opencl)
    name = cl.CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR
    answer = opencl.integer("clGetDeviceInfo", session.device, name)
    assert answer & cl.CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR
    device_queue(session)
    kernel = session.kernel(
        "kernel void k(global int *p) { int x = p[0]; enqueue_kernel(get_default_queue(),"
        " CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(4), ^{ p[1 + get_global_id(0)] += x + 1; }); p[0]++; }"
    )
    out, buffer = session.buffer(np.zeros(5, np.int32)), session.create()
    session.set_arguments(kernel, [out])
    for _ in range(2):
        session.done(
            "clCommandNDRangeKernelKHR", buffer, 0, None, kernel, 1, None, [1], None, 0, None, None, None
        )
    session.done("clFinalizeCommandBufferKHR", buffer)
    count = 40  # by then it is known that they take a short time
    for _ in range(count):
        session.done("clEnqueueCommandBufferKHR", 0, None, buffer, 0, None, None)
        session.finish()
    executions = 2 * count
    assert session.read(out, np.int32, 5).tolist() == [executions, *4 * [sum(range(executions + 1))]]
    session.close()


@pytest.mark.parametrize("priority", [cl.CL_QUEUE_PRIORITY_HIGH_KHR, cl.CL_QUEUE_PRIORITY_LOW_KHR])
def test_kernels_of_another_priority(session, priority):
    """What they enqueue is for the threads of the queue on the device; that they end is for theirs."""
    device_queue(session)
    wanted = [cl.CL_QUEUE_PRIORITY_KHR, priority, 0]
    queue = session.cl.make("clCreateCommandQueueWithProperties", session.context, session.device, wanted)
    session.made("clReleaseCommandQueue", queue)
    kernel = session.kernel(
        """void again(global int *p, int n) {
            atomic_inc(p);
            queue_t q = get_default_queue();
            if (n) enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(2), ^{ again(p, n - 1); });
        }
        kernel void k(global int *p) { again(p, 5); }"""
    )
    out = session.buffer(np.zeros(1, np.int32))
    session.set_arguments(kernel, [out])
    for _ in range(20):
        session.cl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [3], None, 0, None, None)
    session.cl.ok("clFinish", queue)
    assert session.read(out, np.int32, 1)[0] == 20 * 3 * (1 + 2 + 4 + 8 + 16 + 32)
