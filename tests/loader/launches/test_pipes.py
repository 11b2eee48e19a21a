"""Pipe objects (5.4): what is refused, queries, kernels that write and read them one after the other and at
the same time."""

import ctypes
import faulthandler
import threading
import time

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.device import limits
from tests.loader.command_buffers.recorder import Recorder
from tests.loader.core.session import Buffer, Session
from tests.pure.spirv.assembler import assemble
from tests.runtime.program.test_pipes import STORAGE

NO_ACCESS = cl.CL_MEM_HOST_NO_ACCESS
SOURCE = """
kernel void put(global const int *in, write_only pipe int p) {
    int i = get_global_id(0);
    while (write_pipe(p, in + i))
        ;
}
kernel void get(read_only pipe int p, global int *out) {
    int value;
    while (read_pipe(p, &value))
        ;
    out[get_global_id(0)] = value;
}
kernel void once(read_only pipe int p, global int *out, global int *status) {
    int i = get_global_id(0);
    status[i] = read_pipe(p, out + i);
}
kernel void count(write_only pipe int p, global int *out) {
    out[0] = get_pipe_num_packets(p);
    out[1] = get_pipe_max_packets(p);
}
"""


@pytest.fixture
def session(opencl):
    made = Session(opencl)
    yield made
    made.close()


def pipe(session, packet_size: int, max_packets: int) -> Buffer:
    made = session.cl.make("clCreatePipe", session.context, NO_ACCESS, packet_size, max_packets, None)
    return Buffer(session.made("clReleaseMemObject", made))


def test_creation_is_refused(session):
    opencl, context = session.cl, session.context
    buffer = session.buffer(64)

    def fails(*arguments) -> int:
        return opencl.fails("clCreatePipe", *arguments)

    assert fails(buffer, 0, 4, 16, None) == cl.CL_INVALID_CONTEXT
    for flag in (
        cl.CL_MEM_READ_ONLY, cl.CL_MEM_WRITE_ONLY, cl.CL_MEM_USE_HOST_PTR, cl.CL_MEM_COPY_HOST_PTR,
        cl.CL_MEM_HOST_READ_ONLY, cl.CL_MEM_HOST_WRITE_ONLY, 1 << 40,
    ):  # fmt: skip
        assert fails(context, flag | NO_ACCESS, 4, 16, None) == cl.CL_INVALID_VALUE
    assert fails(context, 0, 4, 16, [0, 0]) == cl.CL_INVALID_VALUE
    most = opencl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_PIPE_MAX_PACKET_SIZE)
    assert most == limits.PIPE_MAX_PACKET_SIZE
    for sizes in ((0, 16), (most + 1, 16), (4, 0), (0xFFFFFFFF, 1)):
        assert fails(context, 0, *sizes, None) == cl.CL_INVALID_PIPE_SIZE
    for sizes in ((most, 0xFFFFFFFF), (1, 0xFFFFFFFF)):
        assert fails(context, 0, *sizes, None) == cl.CL_MEM_OBJECT_ALLOCATION_FAILURE


def test_queries(session):
    opencl = session.cl
    for flags in (0, cl.CL_MEM_READ_WRITE, NO_ACCESS, cl.CL_MEM_READ_WRITE | NO_ACCESS):
        made = opencl.make("clCreatePipe", session.context, flags, 12, 33, None)
        assert opencl.integer("clGetPipeInfo", made, cl.CL_PIPE_PACKET_SIZE) == 12
        assert opencl.integer("clGetPipeInfo", made, cl.CL_PIPE_MAX_PACKETS) == 33
        assert opencl.info("clGetPipeInfo", made, cl.CL_PIPE_PROPERTIES) == b""
        for name, value in (
            ("TYPE", cl.CL_MEM_OBJECT_PIPE), ("FLAGS", flags), ("HOST_PTR", 0), ("MAP_COUNT", 0),
            ("OFFSET", 0), ("REFERENCE_COUNT", 1), ("CONTEXT", session.context), ("ASSOCIATED_MEMOBJECT", 0),
            ("USES_SVM_POINTER", 0),
        ):  # fmt: skip
            assert opencl.integer("clGetMemObjectInfo", made, getattr(cl, f"CL_MEM_{name}")) == value
        assert opencl.integer("clGetMemObjectInfo", made, cl.CL_MEM_SIZE) >= 12 * 33
        assert opencl.fails("clGetPipeInfo", made, cl.CL_MEM_TYPE, 0, None, None) == cl.CL_INVALID_VALUE
        small = (ctypes.c_char * 2)()
        assert (
            opencl.fails("clGetPipeInfo", made, cl.CL_PIPE_PACKET_SIZE, 2, small, None) == cl.CL_INVALID_VALUE
        )
        opencl.ok("clReleaseMemObject", made)
    buffer = session.buffer(64)
    for handle in (buffer, session.context, made):
        got = opencl.fails("clGetPipeInfo", handle, cl.CL_PIPE_PACKET_SIZE, 0, None, None)
        assert got == cl.CL_INVALID_MEM_OBJECT


def test_device(session):
    def ask(name: str) -> int:
        return session.cl.integer("clGetDeviceInfo", session.device, getattr(cl, f"CL_DEVICE_{name}"))

    assert ask("PIPE_SUPPORT") == cl.CL_TRUE == ask("GENERIC_ADDRESS_SPACE_SUPPORT")
    assert ask("MAX_PIPE_ARGS") >= 16
    assert ask("PIPE_MAX_ACTIVE_RESERVATIONS") >= 1
    assert ask("PIPE_MAX_PACKET_SIZE") >= 1024
    features = session.cl.info("clGetDeviceInfo", session.device, cl.CL_DEVICE_OPENCL_C_FEATURES)
    assert b"__opencl_c_pipes\0" in features


def test_the_host_has_no_access(session):
    opencl, made, where = session.cl, pipe(session, 4, 16), (0, None, None)
    memory = (ctypes.c_char * 64)()
    queue, buffer = session.queue, session.buffer(64)
    region = [0, 4]
    for name, *arguments in (
        ("clEnqueueReadBuffer", queue, made, cl.CL_TRUE, 0, 4, memory, *where),
        ("clEnqueueWriteBuffer", queue, made, cl.CL_TRUE, 0, 4, memory, *where),
        ("clEnqueueCopyBuffer", queue, made, buffer, 0, 0, 4, *where),
        ("clEnqueueCopyBuffer", queue, buffer, made, 0, 0, 4, *where),
        ("clEnqueueFillBuffer", queue, made, memory, 4, 0, 4, *where),
        ("clEnqueueUnmapMemObject", queue, made, memory, *where),
        ("clGetImageInfo", made, cl.CL_IMAGE_WIDTH, 0, None, None),
    ):
        assert opencl.fails(name, *arguments) == cl.CL_INVALID_MEM_OBJECT, name
    for name, *arguments in (
        ("clEnqueueMapBuffer", queue, made, cl.CL_TRUE, cl.CL_MAP_READ, 0, 4, *where),
        ("clCreateSubBuffer", made, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, region),
    ):
        assert opencl.fails(name, *arguments) == cl.CL_INVALID_MEM_OBJECT, name
    opencl.ok("clEnqueueMigrateMemObjects", queue, 1, [made], 0, *where)


def test_arguments(session):
    opencl = session.cl
    kernel = session.kernel(SOURCE, "put", "-cl-std=CL3.0 -cl-kernel-arg-info")
    made, buffer = pipe(session, 4, 16), session.buffer(64)
    other = Session(opencl)

    def sets(index: int, value, size: int = 8) -> int:
        return opencl.fails("clSetKernelArg", kernel, index, size, value)

    assert sets(1, ctypes.c_uint64(made), 4) == cl.CL_INVALID_ARG_SIZE
    strange = (None, ctypes.c_uint64(0), ctypes.c_uint64(buffer), ctypes.c_uint64(session.queue))
    assert [sets(1, value) for value in strange] == [cl.CL_INVALID_MEM_OBJECT] * 4
    assert sets(1, ctypes.c_uint64(pipe(other, 4, 16))) == cl.CL_INVALID_MEM_OBJECT
    assert sets(0, ctypes.c_uint64(made)) == cl.CL_INVALID_MEM_OBJECT  # not a buffer
    assert opencl.fails("clSetKernelArgSVMPointer", kernel, 1, None) == cl.CL_INVALID_ARG_VALUE
    other.close()
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    launch = ("clEnqueueNDRangeKernel", session.queue, kernel, 1, None, [16], None, 0, None, None)
    assert opencl.fails(*launch) == cl.CL_INVALID_KERNEL_ARGS
    gone = opencl.make("clCreatePipe", session.context, 0, 4, 16, None)
    opencl.ok("clSetKernelArg", kernel, 1, 8, ctypes.c_uint64(gone))
    opencl.ok("clReleaseMemObject", gone)
    assert opencl.fails(*launch) == cl.CL_INVALID_KERNEL_ARGS
    opencl.ok("clSetKernelArg", kernel, 1, 8, ctypes.c_uint64(made))
    opencl.ok(*launch)
    session.finish()

    def info(name: str) -> int:
        data = opencl.info("clGetKernelArgInfo", kernel, 1, getattr(cl, f"CL_KERNEL_ARG_{name}"))
        return int.from_bytes(data, "little")

    assert info("TYPE_QUALIFIER") == cl.CL_KERNEL_ARG_TYPE_PIPE
    assert info("ACCESS_QUALIFIER") == cl.CL_KERNEL_ARG_ACCESS_WRITE_ONLY
    assert opencl.info("clGetKernelArgInfo", kernel, 1, cl.CL_KERNEL_ARG_TYPE_NAME) == b"int\0"


def test_one_after_the_other(session):
    """The pipe keeps its packets from launch to launch."""
    program, made, items = session.program(SOURCE), pipe(session, 4, 1000), 600
    put, once, count = (session.kernel(program, name) for name in ("put", "once", "count"))
    counts = session.buffer(8)
    for turn in range(3):
        given = np.arange(items, dtype=np.int32) + turn * items
        out, status = session.buffer(np.full(1000, -7, np.int32)), session.buffer(np.ones(1000, np.int32))
        session.launch(put, items, session.buffer(given), made)
        session.launch(count, 1, made, counts)
        assert session.read(counts, np.int32, 2).tolist() == [items, 1000]
        session.launch(once, 1000, made, out, status)
        found, how = session.read(out, np.int32, 1000), session.read(status, np.int32, 1000)
        assert sorted(found[how == 0].tolist()) == given.tolist() and (how[how != 0] == -1).all()
        session.launch(count, 1, made, counts)
        assert session.read(counts, np.int32, 2).tolist() == [0, 1000]


def test_packets_of_another_size(session):
    """What an argument's type is the host cannot be told, so kernels of other packets find the pipe full."""
    source = (
        "kernel void k(write_only pipe int4 p, global int *out) { int4 v = 0; *out = write_pipe(p, &v); }"
    )
    out = session.buffer(np.zeros(1, np.int32))
    session.launch(session.kernel(source), 1, pipe(session, 4, 1000), out)
    assert session.read(out, np.int32, 1).tolist() == [-1]


def test_pipes_of_a_program(session):
    """Each executable of a program has its own, at addresses that suit, with what launches leave in them."""
    opencl, items = session.cl, 30
    il = assemble(STORAGE, (1, 1))
    for _ in range(2):
        program = opencl.make("clCreateProgramWithIL", session.context, il, len(il))
        session.made("clReleaseProgram", program)
        opencl.build(program, None)
        counts, status = session.buffer(np.zeros(3, np.int32)), session.buffer(np.zeros(items, np.int32))
        given, out = np.arange(items, dtype=np.int32) + 7, session.buffer(4 * items)
        session.launch(session.kernel(program, "put"), items, session.buffer(given), status)
        written = given[session.read(status, np.int32, items) == 0].tolist()
        session.launch(session.kernel(program, "both"), 1, counts)
        assert session.read(counts, np.int32, 3).tolist() == [20, 0, 20] and len(written) == 20
        session.launch(session.kernel(program, "get"), items, out, status)
        read = session.read(out, np.int32, items)[session.read(status, np.int32, items) == 0]
        assert sorted(read.tolist()) == written


def test_a_program_whose_pipe_is_too_large(session):
    il = assemble(STORAGE.replace("%storage 4 4 20", "%storage 4 4 100000000"), (1, 1))
    program = session.cl.make("clCreateProgramWithIL", session.context, il, len(il))
    session.made("clReleaseProgram", program)
    assert (
        session.cl.fails("clBuildProgram", program, 0, None, None, None, None) == cl.CL_BUILD_PROGRAM_FAILURE
    )
    log = session.cl.info("clGetProgramBuildInfo", program, session.device, cl.CL_PROGRAM_BUILD_LOG)
    assert b"is too large" in log


# Kernels that wait for one another.


@pytest.fixture(params=[None, "1"], ids=["all", "one-thread"])
def waiting(opencl, request, monkeypatch):
    """A session; on a sub-device of one compute unit, too, where the driver has one thread."""
    devices = (opencl.device(),)
    if request.param:
        found = (ctypes.c_void_p * 1024)()
        wanted = [cl.CL_DEVICE_PARTITION_EQUALLY, 1, 0]
        opencl.ok("clCreateSubDevices", devices[0], wanted, 1024, found, None)
        devices = (found[0],)
    made = Session(opencl, *devices)
    faulthandler.dump_traceback_later(100, exit=True)  # kernels that never end end with the process alone
    yield made
    faulthandler.cancel_dump_traceback_later()
    made.close()


def run_together(session, first: str, room: int, items: int, how: str) -> None:
    """The kernel that is enqueued first cannot end before the other has begun."""
    opencl, program = session.cl, session.program(SOURCE)
    made, given = pipe(session, 4, room), np.random.default_rng(items).integers(0, 1 << 30, items, np.int32)
    out = session.buffer(4 * items)
    kernels = {"put": session.kernel(program, "put"), "get": session.kernel(program, "get")}
    session.set_arguments(kernels["put"], (session.buffer(given), made))
    session.set_arguments(kernels["get"], (made, out))
    unordered = cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE if how == "unordered" else 0
    queues = [session.new_queue(properties=unordered) for _ in range(1 if unordered else 2)] * 2
    order = ("put", "get") if first == "put" else ("get", "put")
    events = []
    for name, queue in zip(order, queues, strict=False):
        event = session.event()
        if how == "late" and events:
            time.sleep(0.05)
        where = (1, None, [items], None, 0, None, event)
        opencl.ok("clEnqueueNDRangeKernel", queue, kernels[name], *where)
        opencl.ok("clFlush", queue)
        events.append(event)
    for event in events:
        opencl.ok("clWaitForEvents", 1, [event.value])
        opencl.ok("clReleaseEvent", event.value)
    assert sorted(session.read(out, np.int32, items).tolist()) == sorted(given.tolist())


@pytest.mark.parametrize("first", ["put", "get"])
@pytest.mark.parametrize("room", [1, 7, 64, 100000])
@pytest.mark.parametrize("how", ["queues", "late", "unordered"])
def test_at_the_same_time(waiting, first, room, how):
    """A producer and a consumer, whichever is first; the pipe may be much smaller than what goes through."""
    for items in (1, 40, 5000):
        run_together(waiting, first, room, items, how)


def test_what_comes_before_the_other(waiting):
    """The producer waits for other commands, which need a thread, too, while consumers have them all."""
    opencl, program, items = waiting.cl, waiting.program(SOURCE), 4096
    slow = waiting.kernel("kernel void k(global int *p) { p[get_global_id(0)] += 1; }")
    made, given = pipe(waiting, 4, 50), waiting.buffer(np.zeros(2 * items, np.int32))
    queues = [waiting.new_queue() for _ in range(3)]
    outs = [waiting.buffer(4 * items) for _ in range(2)]
    for queue, out in zip(queues, outs, strict=False):
        waiting.launch(waiting.kernel(program, "get"), items, made, out, queue=queue)
        opencl.ok("clFlush", queue)
    time.sleep(0.02)
    for _ in range(5):
        waiting.launch(slow, 2 * items, given, queue=queues[2])
    waiting.launch(waiting.kernel(program, "put"), 2 * items, given, made, queue=queues[2])
    opencl.ok("clFlush", queues[2])
    for queue in queues:
        waiting.finish(queue)
    found = [waiting.read(out, np.int32, items) for out in outs]
    assert (np.concatenate(found) == 5).all()


def test_the_host_comes_back(waiting):
    """A host that waits for one command of a queue does not begin another that waits for what the host will
    enqueue only then."""
    opencl, program, items = waiting.cl, waiting.program(SOURCE), 100
    queue = waiting.new_queue(properties=cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    made, out, given = (
        pipe(waiting, 4, items), waiting.buffer(4 * items), waiting.buffer(np.arange(items, dtype=np.int32))
    )  # fmt: skip
    gate = opencl.make("clCreateUserEvent", waiting.context)
    get, put, event = waiting.kernel(program, "get"), waiting.kernel(program, "put"), waiting.event()
    for _ in range(4):  # they are known to be short, so that nothing begins before somebody waits
        waiting.launch(put, items, given, made)
        waiting.launch(get, items, made, out)
        waiting.finish()
    waiting.launch(get, items, made, out, queue=queue)
    opencl.ok("clEnqueueMarkerWithWaitList", queue, 1, [gate], event)
    opener = threading.Timer(0.05, lambda: opencl.ok("clSetUserEventStatus", gate, cl.CL_COMPLETE))
    opener.start()
    opencl.ok("clWaitForEvents", 1, [event.value])
    opener.join()
    waiting.launch(put, items, given, made, queue=queue)
    waiting.finish(queue)
    assert sorted(waiting.read(out, np.int32, items).tolist()) == list(range(items))
    opencl.ok("clReleaseEvent", event.value)
    opencl.ok("clReleaseEvent", gate)


def test_command_buffers(opencl):
    """Commands without a sync point between them run at once, in whatever order they were recorded."""
    made = Recorder(opencl)
    faulthandler.dump_traceback_later(100, exit=True)
    program, items = made.program(SOURCE), 6
    ring, out = pipe(made, 4, 3), made.buffer(4 * items)
    given = made.buffer(np.arange(items, dtype=np.int32))
    queue = made.new_queue(properties=cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    buffer = made.create(queue)
    made.record(buffer, made.kernel(program, "get"), items, ring, out)
    made.record(buffer, made.kernel(program, "put"), items, given, ring)
    made.finalize(buffer)
    for _ in range(50):  # short ones would be one thread's
        made.enqueue(buffer)
        made.finish(queue)
        assert sorted(made.read(out, np.int32, items).tolist()) == list(range(items))
    faulthandler.cancel_dump_traceback_later()
    made.close()


CHAIN = """
kernel void first(write_only pipe int p, int n) {
    for (int k = 0; k < n; k++)
        while (write_pipe(p, &k))
            ;
}
kernel void stage(read_only pipe int p, write_only pipe int q, int n) {
    for (int k = 0; k < n; k++) {
        int v;
        while (read_pipe(p, &v))
            ;
        v = v * 3 + 1;
        while (write_pipe(q, &v))
            ;
    }
}
kernel void last(read_only pipe int p, global int *out, int n) {
    for (int k = 0; k < n; k++)
        while (read_pipe(p, out + k))
            ;
}
"""


def test_a_chain_of_kernels(waiting):
    """Each of one work-item and on a queue of its own, the last first: packets stay in order."""
    program, stages, n = waiting.program(CHAIN), 4, 3000
    pipes = [pipe(waiting, 4, 5) for _ in range(stages + 1)]
    out = waiting.buffer(4 * n)
    launches = [("last", (pipes[-1], out))]
    launches += [("stage", (pipes[k], pipes[k + 1])) for k in reversed(range(stages))]
    launches += [("first", (pipes[0],))]
    queues = []
    for name, arguments in launches:
        queues.append(waiting.new_queue())
        waiting.launch(waiting.kernel(program, name), 1, *arguments, np.int32(n), queue=queues[-1])
        waiting.cl.ok("clFlush", queues[-1])
    for queue in queues:
        waiting.finish(queue)
    want = np.arange(n)
    for _ in range(stages):
        want = want * 3 + 1
    assert (waiting.read(out, np.int32, n) == want).all()


STRUCTURES = """
typedef struct { long a; int b[3]; char c; } T;
kernel void put(write_only pipe T p, int n) {
    long i = get_global_id(0);
    for (int k = 0; k < n; k++) {
        T t = {i * n + k, {i, k, i + k}, k};
        reserve_id_t r = reserve_write_pipe(p, 1);
        while (!is_valid_reserve_id(r))
            r = reserve_write_pipe(p, 1);
        write_pipe(p, r, 0, &t);
        commit_write_pipe(p, r);
    }
}
kernel void get(read_only pipe T p, int n, global int *seen, global int *wrong) {
    for (int k = 0; k < n; k++) {
        T t;
        while (read_pipe(p, &t))
            ;
        atomic_inc(seen + t.a);
        long i = t.a / n;
        int at = t.a % n;
        if (t.b[0] != i || t.b[1] != at || t.b[2] != i + at || t.c != (char)at)
            atomic_inc(wrong);
    }
}
"""


@pytest.mark.parametrize("room", [1, 3, 20, 333])
def test_structures_of_many_to_many(waiting, room):
    """Packets are whole, and each comes once, with many writers and readers at the same time."""
    program, items, n = waiting.program(STRUCTURES), 64, 50
    made, seen, wrong = (
        pipe(waiting, 24, room),
        waiting.buffer(np.zeros(items * n, np.int32)),
        waiting.buffer(np.zeros(1, np.int32)),
    )
    queues = [waiting.new_queue(), waiting.new_queue()]
    waiting.launch(waiting.kernel(program, "get"), items, made, np.int32(n), seen, wrong, queue=queues[0])
    waiting.launch(waiting.kernel(program, "put"), items, made, np.int32(n), queue=queues[1])
    for queue in queues:
        waiting.cl.ok("clFlush", queue)
    for queue in queues:
        waiting.finish(queue)
    assert (waiting.read(seen, np.int32, items * n) == 1).all()
    assert waiting.read(wrong, np.int32, 1)[0] == 0


@pytest.mark.sanitize
def test_threads(run_client):
    run_client("threads/pipes", 100)
