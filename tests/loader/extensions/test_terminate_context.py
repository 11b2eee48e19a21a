"""Contexts that end whatever their commands do: cl_khr_terminate_context 1.0.0."""

import ctypes
import struct
import time

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.command_buffers.recorder import Recorder
from tests.loader.core.session import Local, Session
from tests.loader.images.model import Format, descriptor

from .test_initialize_memory import binary_of, load

TERMINATE = cl.CL_CONTEXT_TERMINATE_KHR
TERMINATED = cl.CL_CONTEXT_TERMINATED_KHR
RGBA8 = Format("CL_RGBA", "CL_UNORM_INT8")
KERNELS = ("waits diverges nested jumps meets locks nothing calls many plain paints").split()
NO_WAIT = (0, None, None)


@pytest.mark.sanitize
@pytest.mark.parametrize("settings", [(1, 0, "off"), (4, 1, "now"), (2, 8, "background")], ids=str)
@pytest.mark.parametrize(
    "what", [*KERNELS, "waiting hosts", "command buffers", "semaphores", "pipes", "racing threads"]
)
def test_everything_ends(run_client, what, settings):
    threads, width, group_code = settings
    env = {
        "CL_DRIVER_THREADS": str(threads),
        "CL_DRIVER_WIDTH": str(width),
        "CL_DRIVER_GROUP_CODE": group_code,
        "CL_DRIVER_VALUE_CODE": group_code,
    }
    run_client("threads/terminate", what, "", env=env, timeout=300)


@pytest.mark.parametrize("what", KERNELS)
def test_unoptimised_kernels_end(run_client, what):
    run_client("threads/terminate", what, "-cl-opt-disable", timeout=300)


def context(opencl, *properties) -> int:
    """A context with properties."""
    return opencl.make("clCreateContext", [*properties, 0], 1, [opencl.device()], None, None)


@pytest.fixture
def terminate(opencl):
    return opencl.checked("clTerminateContextKHR", "p")


@pytest.fixture
def ending(opencl, monkeypatch):
    """A session whose context may be terminated."""
    made = context(opencl, TERMINATE, 1)
    monkeypatch.setattr(opencl, "context", lambda *_: made)
    session = Recorder(opencl)
    monkeypatch.undo()
    yield session
    session.close()


def test_queries(opencl, session):
    answer = opencl.info("clGetDeviceInfo", session.device, cl.CL_DEVICE_TERMINATE_CAPABILITY_KHR)
    assert answer == struct.pack("<Q", 1)
    for value in (0, 1):
        made = context(opencl, TERMINATE, value)
        assert opencl.words("clGetContextInfo", made, cl.CL_CONTEXT_PROPERTIES) == [TERMINATE, value, 0]
        opencl.ok("clReleaseContext", made)


def test_errors(opencl, session, terminate):
    assert terminate(None) == terminate(session.queue) == cl.CL_INVALID_CONTEXT
    assert terminate(session.context) == cl.CL_INVALID_OPERATION
    made = context(opencl, TERMINATE, 0)
    assert terminate(made) == cl.CL_INVALID_OPERATION
    opencl.ok("clReleaseContext", made)
    made = context(opencl, TERMINATE, 1)
    assert terminate(made) == 0 and terminate(made) == TERMINATED
    opencl.ok("clReleaseContext", made)
    for wrong in ([TERMINATE, 2], [TERMINATE, 1, TERMINATE, 1]):
        where = ([*wrong, 0], 1, [opencl.device()], None, None)
        assert opencl.fails("clCreateContext", *where) == cl.CL_INVALID_PROPERTY


def test_programs_are_as_ever(ending):
    """What looks whether it is to end computes the same, whatever code runs once it has run for a while."""
    source = """kernel void k(global int *out, local int *l) { int i = get_local_id(0), s = 0;
        for (int k = 0; k < 100; k++) { l[i] = s + k * i; barrier(CLK_LOCAL_MEM_FENCE);
            s ^= l[(i + 1) % 64]; barrier(CLK_LOCAL_MEM_FENCE); } out[get_global_id(0)] = s; }"""
    kernel, out = ending.kernel(source), ending.buffer(4 * 6400)
    plain = Session(ending.cl)
    other, there = plain.kernel(source), plain.buffer(4 * 6400)
    for _ in range(50):
        ending.launch(kernel, 6400, out, Local(256), local=64)
        ending.finish()
    plain.launch(other, 6400, there, Local(256), local=64)
    assert np.array_equal(ending.read(out, np.int32, 6400), plain.read(there, np.int32, 6400))
    plain.close()


def test_what_is_refused(opencl, ending, terminate):
    """All that makes objects or enqueues commands, and whatever has a context as an argument."""
    where, queue, device = ending.context, ending.queue, ending.device
    data = np.zeros(64, np.uint8)
    pointer = data.ctypes.data
    program = ending.program("kernel void k(global int *p) { *p = 1; }")
    kernel = ending.kernel(program)
    buffer, user = ending.buffer(64), ending.made("clReleaseEvent", opencl.make("clCreateUserEvent", where))
    image = opencl.make("clCreateImage", where, 0, RGBA8.c, descriptor("2D", 4, 4), None)
    ending.made("clReleaseMemObject", image)
    ending.set_arguments(kernel, [buffer])
    part = ending.made("clReleaseProgram", opencl.program(where, "int f(void) { return 1; }"))
    opencl.ok("clCompileProgram", part, 0, None, "", 0, None, None, None, None)
    recorded = ending.create()
    ending.record(recorded, kernel, 1, buffer)
    ending.finalize(recorded)
    assert terminate(where) == 0
    origin, region, done = [0, 0, 0], [1, 1, 1], ctypes.c_int32()
    makers = [
        ("clCreateBuffer", where, 0, 64, None),
        ("clCreateBufferWithProperties", where, None, 0, 64, None),
        ("clCreateSubBuffer", buffer, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, [0, 16]),
        ("clCreateImage", where, 0, RGBA8.c, descriptor("2D", 4, 4), None),
        ("clCreateImageWithProperties", where, None, 0, RGBA8.c, descriptor("2D", 4, 4), None),
        ("clCreatePipe", where, 0, 4, 4, None),
        ("clCreateSampler", where, 0, cl.CL_ADDRESS_NONE, cl.CL_FILTER_NEAREST),
        ("clCreateSamplerWithProperties", where, None),
        ("clCreateUserEvent", where),
        ("clCreateCommandQueue", where, device, 0),
        ("clCreateCommandQueueWithProperties", where, device, None),
        ("clCreateProgramWithSource", where, 1, [b"kernel void k() {}"], None),
        ("clCreateProgramWithIL", where, pointer, 64),
        ("clCreateProgramWithBinary", where, 1, [device], [64], [pointer], done),
        ("clCreateProgramWithBuiltInKernels", where, 1, [device], "k"),
        ("clLinkProgram", where, 0, None, "", 1, [part], None, None),
        ("clCreateKernel", program, b"k"),
        ("clCloneKernel", kernel),
        ("clEnqueueMapBuffer", queue, buffer, 1, cl.CL_MAP_READ, 0, 64, *NO_WAIT),
        ("clEnqueueMapImage", queue, image, 1, cl.CL_MAP_READ, origin, region, data, None, *NO_WAIT),
    ]
    for name, *arguments in makers:
        arguments = [pointer if a is data else a for a in arguments]
        assert opencl.fails(name, *arguments) == TERMINATED, name
    others = [
        ("clCreateKernelsInProgram", program, 0, None, None),
        ("clSetDefaultDeviceCommandQueue", where, device, queue),
        ("clSetContextDestructorCallback", where, ctypes.CFUNCTYPE(None)(lambda: None), None),
        ("clEnqueueNDRangeKernel", queue, kernel, 1, None, [1], None, *NO_WAIT),
        ("clEnqueueTask", queue, kernel, *NO_WAIT),
        ("clEnqueueReadBuffer", queue, buffer, 1, 0, 64, pointer, *NO_WAIT),
        ("clEnqueueWriteBuffer", queue, buffer, 1, 0, 64, pointer, *NO_WAIT),
        ("clEnqueueFillBuffer", queue, buffer, pointer, 1, 0, 64, *NO_WAIT),
        ("clEnqueueCopyBuffer", queue, buffer, buffer, 0, 32, 16, *NO_WAIT),
        ("clEnqueueReadImage", queue, image, 1, origin, region, 0, 0, pointer, *NO_WAIT),
        ("clEnqueueFillImage", queue, image, pointer, origin, region, *NO_WAIT),
        ("clEnqueueMigrateMemObjects", queue, 1, [buffer], 0, *NO_WAIT),
        ("clEnqueueMarkerWithWaitList", queue, *NO_WAIT),
        ("clEnqueueBarrierWithWaitList", queue, 1, [user], None),
        ("clEnqueueSVMMemcpy", queue, 1, pointer, pointer + 32, 16, *NO_WAIT),
    ]
    for name, *arguments in others:
        assert opencl.call(name, *arguments) == TERMINATED, name
    assert opencl.call("clSVMAlloc", where, 0, 64, 0)[0] == 0
    usm = opencl.checked("clHostMemAllocINTEL", "ppzup", ctypes.c_void_p)
    assert not usm(where, None, 64, 0, done) and done.value == TERMINATED
    svm = opencl.checked("clSVMAllocWithPropertiesKHR", "ppuzp", ctypes.c_void_p)
    assert not svm(where, None, 0, 64, done) and done.value == TERMINATED
    semaphore = opencl.checked("clCreateSemaphoreWithPropertiesKHR", "ppp", ctypes.c_void_p)
    assert not semaphore(where, [0x203D, 1, 0], done) and done.value == TERMINATED
    assert ending.make("clCreateCommandBufferKHR", 1, [queue], None) == (0, TERMINATED)
    assert ending.status("clEnqueueCommandBufferKHR", 0, None, recorded, 0, None, None) == TERMINATED


def test_what_is_not(opencl, ending, terminate):
    """Queries, retain, release, destructor callbacks of memory objects, statuses of user events."""
    where, buffer = ending.context, ending.buffer(64)
    user = ending.made("clReleaseEvent", opencl.make("clCreateUserEvent", where))
    shared = opencl.library.clSVMAlloc
    shared.restype, shared.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_void_p, *[ctypes.c_uint64] * 2, ctypes.c_uint32],
    )
    memory = shared(where, 0, 64, 0)
    assert memory and terminate(where) == 0
    count = ctypes.c_uint32()
    opencl.ok("clGetSupportedImageFormats", where, 0, cl.CL_MEM_OBJECT_IMAGE2D, 0, None, count)
    alignment = ctypes.c_size_t()
    requirement = opencl.checked("clGetImageRequirementsInfoEXT", "ppbppuzpp")
    wanted = (cl.CL_IMAGE_REQUIREMENTS_ROW_PITCH_ALIGNMENT_EXT, 8, ctypes.byref(alignment), None)
    assert requirement(where, None, 0, RGBA8.c, None, *wanted) == 0 and alignment.value == 4
    assert count.value and opencl.integer("clGetContextInfo", where, cl.CL_CONTEXT_NUM_DEVICES) == 1
    for kind, handle in (
        ("Context", where),
        ("MemObject", buffer),
        ("Event", user),
        ("CommandQueue", ending.queue),
    ):
        opencl.ok(f"clRetain{kind}", handle)
        opencl.ok(f"clRelease{kind}", handle)
    assert opencl.integer("clGetMemObjectInfo", buffer, cl.CL_MEM_SIZE) == 64
    called = []
    notify = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: called.append(1))
    opencl.ok("clSetMemObjectDestructorCallback", buffer, notify, None)
    opencl.ok("clSetUserEventStatus", user, cl.CL_COMPLETE)
    opencl.ok("clWaitForEvents", 1, [user])
    opencl.ok("clFlush", ending.queue)
    opencl.ok("clFinish", ending.queue)
    free = opencl.library.clSVMFree
    free.restype, free.argtypes = None, [ctypes.c_void_p] * 2
    free(where, memory)
    ending.releases.remove(("clReleaseMemObject", buffer))
    opencl.ok("clReleaseMemObject", buffer)
    assert called == [1]


def test_binaries(session, ending):
    """A binary that does not look is refused where kernels are to end."""
    source = "kernel void k(global int *p) { while (*p != 3) ++*p; }"
    plain = binary_of(session.cl, session.program(source))
    own = binary_of(session.cl, ending.program(source))
    assert load(session.cl, ending.context, plain) == (0, cl.CL_INVALID_BINARY, cl.CL_INVALID_BINARY)
    for where in (session, ending):
        program, status, _ = load(session.cl, where.context, own)
        assert status == 0
        where.made("clReleaseProgram", program)
        where.cl.build(program, None)
        data = where.buffer(np.zeros(1, np.int32))
        where.launch(where.kernel(program), 1, data)
        assert where.read(data, np.int32, 1) == [3]


def test_kernels_that_enqueue_themselves_end(opencl, ending, terminate):
    """Whoever enqueues after the end is not executed, so that its parents are complete."""
    text = """void again(volatile global int *p) {
        p[0] = 1;
        enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{ again(p); });
    }
    kernel void begins(volatile global int *p) { again(p); }"""
    on_device = (
        cl.CL_QUEUE_ON_DEVICE | cl.CL_QUEUE_ON_DEVICE_DEFAULT | cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
    )
    properties = [cl.CL_QUEUE_PROPERTIES, on_device, 0]
    queue = opencl.make("clCreateCommandQueueWithProperties", ending.context, ending.device, properties)
    ending.made("clReleaseCommandQueue", queue)
    kernel, words = ending.kernel(text, "begins"), np.zeros(1024, np.int32)
    flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_USE_HOST_PTR
    buffer = opencl.make("clCreateBuffer", ending.context, flags, words.nbytes, words.ctypes.data)
    ending.made("clReleaseMemObject", buffer)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    event = ending.event()
    opencl.ok("clEnqueueNDRangeKernel", ending.queue, kernel, 1, None, [1], None, 0, None, event)
    opencl.ok("clFlush", ending.queue)
    until = time.monotonic() + 60
    while not words[0] and time.monotonic() < until:
        time.sleep(0.01)
    assert words[0] and terminate(ending.context) == 0
    assert opencl.call("clWaitForEvents", 1, [event.value]) == cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    status = opencl.integer("clGetEventInfo", event.value, cl.CL_EVENT_COMMAND_EXECUTION_STATUS)
    assert ctypes.c_int32(status).value == TERMINATED
    ending.made("clReleaseEvent", event.value)
