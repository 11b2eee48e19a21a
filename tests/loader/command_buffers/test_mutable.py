"""Commands that change between executions: cl_khr_command_buffer_mutable_dispatch."""

import ctypes
import struct

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.core.session import Local

from .recorder import (
    ARGUMENTS,
    EXEC_INFO,
    EXECUTABLE,
    FINALIZED,
    GLOBAL_OFFSET,
    GLOBAL_SIZE,
    INVALID_COMMAND_BUFFER,
    INVALID_MUTABLE_COMMAND,
    LOCAL_SIZE,
    MUTABLE,
    NO_ADDITIONAL_WORK_GROUPS,
    UPDATABLE_FIELDS,
    Recorder,
    config,
)

ITEMS = 64
SOURCE = """
kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }
kernel void where(global int4 *out, local int *scratch, int much) {
    scratch[get_local_id(0)] = much;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0) - get_global_offset(0)] = (int4)(get_global_offset(0), get_global_size(0),
                                                        get_local_size(0), scratch[0]);
}
kernel void draw(read_only image2d_t from, write_only image2d_t to) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imageui(to, at, read_imageui(from, at) + 1);
}
"""
QUEUE, BUFFER, PROPERTIES, KERNEL, DIMENSIONS, OFFSET, SIZE, LOCAL = range(0x12A0, 0x12A8)
TYPE = 0x12AD


@pytest.fixture
def program(session):
    return session.program(SOURCE)


def value(number: int) -> bytes:
    return struct.pack("<i", number)


def recorded(session, kernel, *arguments, items=ITEMS, flags=MUTABLE, finalize=True, **others):
    """A command-buffer with one launch, and that launch's handle."""
    buffer, handle = session.create(flags=flags), ctypes.c_void_p()
    session.record(buffer, kernel, items, *arguments, handle=handle, **others)
    if finalize:
        session.finalize(buffer)
    return buffer, handle.value


def test_arguments_and_sizes(session, program):
    kernel, out = session.kernel(program, "where"), session.buffer(16 * ITEMS)
    buffer, command = recorded(session, kernel, out, Local(4 * 8), np.int32(1), local=8)

    def check(count, *wanted):
        session.cl.ok("clEnqueueFillBuffer", session.queue, out, bytes(4), 4, 0, 16 * ITEMS, 0, None, None)
        session.enqueue(buffer)
        found = session.read(out, np.int32, 4 * ITEMS).reshape(ITEMS, 4)
        assert np.all(found[:count] == wanted) and not np.any(found[count:])

    check(ITEMS, 0, ITEMS, 8, 1)
    assert session.update(buffer, config(command, arguments=[(2, value(7))])) == 0
    check(ITEMS, 0, ITEMS, 8, 7)
    assert session.update(buffer, config(command, offset=[5], size=[32])) == 0
    check(32, 5, 32, 8, 7)
    local = config(command, arguments=[(1, None, 4 * 16)], local=[16], work_dim=1)
    assert session.update(buffer, local) == 0
    check(32, 5, 32, 16, 7)
    # Several at once, of which the last one counts.
    both = [config(command, arguments=[(2, value(number))]) for number in (8, 9)]
    assert session.update(buffer, *both) == 0
    check(32, 5, 32, 16, 9)


def test_updates_are_for_later_executions(session, program):
    """Those that were enqueued before keep what they had; the kernel object has nothing to do with it."""
    add, data = session.kernel(program, "add"), session.buffer(np.zeros(ITEMS, np.int32))
    buffer, command = recorded(session, add, data, np.int32(1))
    gate = session.cl.make("clCreateUserEvent", session.context)
    wanted = 0
    for number in range(1, 50):
        session.enqueue(buffer, after=[gate] if number == 1 else ())
        wanted += number
        assert session.update(buffer, config(command, arguments=[(1, value(number + 1))])) == 0
    session.set_arguments(add, (data, np.int32(1 << 20)))
    session.cl.ok("clSetUserEventStatus", gate, cl.CL_COMPLETE)
    assert np.all(session.read(data, np.int32, ITEMS) == wanted)
    session.cl.ok("clReleaseEvent", gate)


def test_buffers_images_and_pointers(session, program):
    add, draw = session.kernel(program, "add"), session.kernel(program, "draw")
    one, two = (session.buffer(np.zeros(ITEMS, np.int32)) for _ in range(2))
    buffer, command = recorded(session, add, one, np.int32(3))
    assert session.update(buffer, config(command, arguments=[(0, two)])) == 0
    session.enqueue(buffer)
    assert not np.any(session.read(one, np.int32, ITEMS)) and np.all(session.read(two, np.int32, ITEMS) == 3)
    shared = np.zeros(ITEMS, np.int32)  # system pointers are SVM
    assert session.update(buffer, config(command, svm=[(0, shared.ctypes.data)])) == 0
    session.enqueue(buffer)
    session.finish()
    assert np.all(shared == 3)

    def image(start: int, kind: int):
        format_ = struct.pack("<II", kind, cl.CL_UNSIGNED_INT8)
        desc = struct.pack("<Q7QIIQ", cl.CL_MEM_OBJECT_IMAGE2D, 8, 8, *[0] * 8)
        pixels = np.full((8, 8, 4), start, np.uint8)
        flags = cl.CL_MEM_READ_WRITE | cl.CL_MEM_COPY_HOST_PTR
        made = session.cl.make("clCreateImage", session.context, flags, format_, desc, pixels.ctypes.data)
        return session.made("clReleaseMemObject", made)

    first, other, out = image(5, cl.CL_RGBA), image(8, cl.CL_BGRA), image(0, cl.CL_RGBA)
    for index, entry in enumerate((first, out)):
        session.cl.ok("clSetKernelArg", draw, index, 8, entry.to_bytes(8, "little"))
    buffer, handle = session.create(flags=MUTABLE), ctypes.c_void_p()
    where = (draw, 2, None, [8, 8], None)
    session.command("clCommandNDRangeKernelKHR", buffer, *where, handle=handle)
    session.finalize(buffer)
    for start, entry in ((5, first), (8, other), (5, first)):
        assert session.update(buffer, config(handle.value, arguments=[(0, entry.to_bytes(8, "little"))])) == 0
        session.enqueue(buffer)
        found = np.zeros((8, 8, 4), np.uint8)
        session.cl.ok(
            "clEnqueueReadImage",
            session.queue,
            out,
            1,
            [0] * 3,
            [8, 8, 1],
            0,
            0,
            found.ctypes.data,
            0,
            None,
            None,
        )
        assert np.all(found == start + 1)


def test_what_an_argument_was_may_be_released(opencl):
    session = Recorder(opencl)
    add = session.kernel(SOURCE, "add")
    data = session.buffer(np.zeros(ITEMS, np.int32))
    gone = opencl.make("clCreateBuffer", session.context, cl.CL_MEM_READ_WRITE, 4 * ITEMS, None)
    opencl.ok("clSetKernelArg", add, 0, 8, gone.to_bytes(8, "little"))
    opencl.ok("clSetKernelArg", add, 1, 4, value(6))
    buffer, handle = session.create(flags=MUTABLE), ctypes.c_void_p()
    session.command("clCommandNDRangeKernelKHR", buffer, add, 1, None, [ITEMS], None, handle=handle)
    session.finalize(buffer)
    session.enqueue(buffer)
    session.finish()
    assert session.update(buffer, config(handle.value, arguments=[(0, data)])) == 0
    opencl.ok("clReleaseMemObject", gone)
    session.enqueue(buffer)
    assert np.all(session.read(data, np.int32, ITEMS) == 6)
    session.close()


def test_arguments_that_come_later(session, program):
    add, data = session.kernel(program, "add"), session.buffer(np.zeros(ITEMS, np.int32))
    other = session.kernel(program, "add")
    handles = [ctypes.c_void_p() for _ in range(2)]
    buffer, fields = session.create(flags=MUTABLE), [UPDATABLE_FIELDS, ARGUMENTS, 0]
    session.set_arguments(other, (data,))
    for kernel, handle in zip((add, other), handles, strict=True):
        where = (kernel, 1, None, [ITEMS], None)
        session.command("clCommandNDRangeKernelKHR", buffer, *where, handle=handle, properties=fields)
    session.finalize(buffer)
    assert session.state(buffer) == FINALIZED
    enqueue = ("clEnqueueCommandBufferKHR", 0, None, buffer, 0, None, None)
    assert session.status(*enqueue) == cl.CL_INVALID_OPERATION
    assert session.update(buffer, config(handles[0].value, arguments=[(0, data), (1, value(3))])) == 0
    assert session.state(buffer) == FINALIZED
    assert session.status(*enqueue) == cl.CL_INVALID_OPERATION
    assert session.update(buffer, config(handles[1].value, arguments=[(1, value(4))])) == 0
    assert session.state(buffer) == EXECUTABLE
    session.enqueue(buffer)
    assert np.all(session.read(data, np.int32, ITEMS) == 7)


def test_none_may_come_later_without_the_flags(session, program):
    add = session.kernel(program, "add")
    for flags, fields in ((0, ARGUMENTS), (MUTABLE, GLOBAL_SIZE), (MUTABLE, None)):
        buffer = session.create(flags=flags)
        properties = None if fields is None else [UPDATABLE_FIELDS, fields, 0]
        where = (add, 1, None, [ITEMS], None, 0, None, None, None)
        found = session.status("clCommandNDRangeKernelKHR", buffer, None, properties, *where)
        assert found == cl.CL_INVALID_KERNEL_ARGS


def test_updates_that_fail_change_nothing(session, program):
    add, data = session.kernel(program, "add"), session.buffer(np.zeros(ITEMS, np.int32))
    buffer, command = recorded(session, add, data, np.int32(1), local=8)
    good = config(command, arguments=[(1, value(5))])
    for status, wrong in (
        (cl.CL_INVALID_ARG_INDEX, config(command, arguments=[(2, value(1))])),
        (cl.CL_INVALID_ARG_SIZE, config(command, arguments=[(1, bytes(8))])),
        (cl.CL_INVALID_ARG_VALUE, config(command, arguments=[(1, None, 4)])),
        (cl.CL_INVALID_MEM_OBJECT, config(command, arguments=[(0, session.queue.to_bytes(8, "little"))])),
        (cl.CL_INVALID_ARG_INDEX, config(command, svm=[(9, None)])),
        (cl.CL_INVALID_ARG_VALUE, config(command, svm=[(1, None)])),
        (cl.CL_INVALID_VALUE, config(command, exec_infos=[(0x7777, bytes(4))])),
        (cl.CL_INVALID_OPERATION, config(command, work_dim=2)),
        (cl.CL_INVALID_OPERATION, config(command, size=[ITEMS - 1])),  # no longer uniform
        (cl.CL_INVALID_WORK_GROUP_SIZE, config(command, local=[0])),
        (cl.CL_INVALID_WORK_ITEM_SIZE, config(command, local=[1 << 20], size=[1 << 20])),
        (cl.CL_INVALID_GLOBAL_OFFSET, config(command, offset=[(1 << 64) - 1])),
        (INVALID_MUTABLE_COMMAND, config(None)),
        (INVALID_MUTABLE_COMMAND, config(buffer)),
        (INVALID_MUTABLE_COMMAND, config(recorded(session, add, data, np.int32(1))[1])),
    ):
        assert session.update(buffer, good, wrong) == status
        assert session.update(buffer, wrong, good) == status
    session.enqueue(buffer)
    assert np.all(session.read(data, np.int32, ITEMS) == 1)


@pytest.mark.parametrize("field", ["num_args", "num_svm_args", "num_exec_infos"])
def test_lists_without_entries(session, program, field):
    add, data = session.kernel(program, "add"), session.buffer(np.zeros(ITEMS, np.int32))
    buffer, command = recorded(session, add, data, np.int32(1))
    wrong = config(command)
    setattr(wrong, field, 1)
    assert session.update(buffer, wrong) == cl.CL_INVALID_VALUE
    full = config(
        command,
        arguments=[(1, value(5))],
        svm=[(0, 8)],
        exec_infos=[(cl.CL_KERNEL_EXEC_INFO_SVM_PTRS, bytes(8))],
    )
    setattr(full, field, 0)
    assert session.update(buffer, full) == cl.CL_INVALID_VALUE


def test_fields_that_may_not_be_updated(session, program):
    add, data = session.kernel(program, "add"), session.buffer(np.zeros(ITEMS, np.int32))
    pointers = (cl.CL_KERNEL_EXEC_INFO_SVM_PTRS, bytes(8))
    changes = {
        GLOBAL_OFFSET: {"offset": [1]},
        GLOBAL_SIZE: {"size": [ITEMS]},
        LOCAL_SIZE: {"local": [8]},
        ARGUMENTS: {"arguments": [(1, value(1))]},
        EXEC_INFO: {"exec_infos": [pointers]},
    }
    for field, change in changes.items():
        for fields in (31 & ~field, field):
            properties = [UPDATABLE_FIELDS, fields, 0]
            buffer, command = recorded(session, add, data, np.int32(1), local=8, properties=properties)
            wanted = 0 if fields == field else cl.CL_INVALID_OPERATION
            assert session.update(buffer, config(command, **change)) == wanted
    properties = [UPDATABLE_FIELDS, 31 & ~ARGUMENTS, 0]
    buffer, command = recorded(session, add, data, np.int32(1), properties=properties)
    assert session.update(buffer, config(command, svm=[(0, 8)])) == cl.CL_INVALID_OPERATION


def test_calls_that_fail(session, program):
    add, data = session.kernel(program, "add"), session.buffer(np.zeros(ITEMS, np.int32))
    buffer, command = recorded(session, add, data, np.int32(1))
    entry = config(command)
    pointers, types = [ctypes.addressof(entry)], (ctypes.c_uint32 * 1)()
    name = "clUpdateMutableCommandsKHR"
    for wrong in (
        (buffer, 1, None, pointers),
        (buffer, 1, types, None),
        (buffer, 0, types, None),
        (buffer, 0, None, pointers),
        (buffer, 1, (ctypes.c_uint32 * 1)(1), pointers),
        (buffer, 1, types, [0]),
    ):
        assert session.status(name, *wrong) == cl.CL_INVALID_VALUE
    assert session.status(name, buffer, 0, None, None) == 0
    assert session.status(name, session.queue, 1, types, pointers) == INVALID_COMMAND_BUFFER
    fixed, handle = recorded(session, add, data, np.int32(1), flags=0)
    assert session.update(fixed, config(handle)) == cl.CL_INVALID_OPERATION
    early, handle = recorded(session, add, data, np.int32(1), finalize=False)
    assert session.update(early, config(handle)) == cl.CL_INVALID_OPERATION


def test_an_assertion_that_is_kept(session, program):
    add, data = session.kernel(program, "add"), session.buffer(np.zeros(ITEMS, np.int32))
    buffer, handle = session.create(flags=MUTABLE, asserts=NO_ADDITIONAL_WORK_GROUPS), ctypes.c_void_p()
    session.record(buffer, add, ITEMS, data, np.int32(1), local=8, handle=handle)
    session.finalize(buffer)
    assert session.update(buffer, config(handle.value, size=[ITEMS // 2])) == 0
    session.enqueue(buffer)
    found = session.read(data, np.int32, ITEMS)
    assert np.all(found[: ITEMS // 2] == 1) and not np.any(found[ITEMS // 2 :])


def test_queries(session, program):
    name, add = "clGetMutableCommandInfoKHR", session.kernel(program, "add")
    data = session.buffer(np.zeros(ITEMS, np.int32))
    fields = [UPDATABLE_FIELDS, GLOBAL_OFFSET | GLOBAL_SIZE | LOCAL_SIZE, 0]
    buffer, handle = session.create(flags=MUTABLE), ctypes.c_void_p()
    session.set_arguments(add, (data, np.int32(1)))
    where = (add, 2, [1, 2], [8, 4], [4, 2])
    session.command("clCommandNDRangeKernelKHR", buffer, *where, handle=handle, properties=fields)
    command = handle.value

    def words(query: int) -> list[int]:
        found = session.answer(name, command, query)
        return list(struct.unpack(f"<{len(found) // 8}Q", found))

    for _ in range(2):  # before it is finalized, and afterwards
        assert words(QUEUE) == [session.queue] and words(BUFFER) == [buffer]
        assert words(PROPERTIES) == fields and words(KERNEL) == [add]
        assert struct.unpack("<I", session.answer(name, command, DIMENSIONS)) == (2,)
        assert struct.unpack("<I", session.answer(name, command, TYPE)) == (cl.CL_COMMAND_NDRANGE_KERNEL,)
        assert (words(OFFSET), words(SIZE), words(LOCAL)) == ([1, 2], [8, 4], [4, 2])
        if session.state(buffer) == 0:
            session.finalize(buffer)
    assert session.update(buffer, config(command, offset=[0, 1], size=[16, 2], local=[8, 1])) == 0
    assert (words(OFFSET), words(SIZE), words(LOCAL)) == ([0, 1], [16, 2], [8, 1])
    room = ctypes.create_string_buffer(64)
    assert session.status(name, command, 0x12FF, 64, room, None) == cl.CL_INVALID_VALUE
    assert session.status(name, command, SIZE, 15, room, None) == cl.CL_INVALID_VALUE
    assert session.status(name, buffer, SIZE, 64, room, None) == INVALID_MUTABLE_COMMAND
    plain, other = recorded(session, add, data, np.int32(1))
    assert session.answer(name, other, PROPERTIES) == b"" and session.answer(name, other, OFFSET) == bytes(8)
    assert session.answer(name, other, LOCAL) == bytes(8)
    session.release(plain)
    assert session.status(name, other, SIZE, 64, room, None) == INVALID_MUTABLE_COMMAND
