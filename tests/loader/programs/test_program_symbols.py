"""Variables and functions that hosts ask a program for by name: cl_intel_global_variable_access,
clGetDeviceGlobalVariablePointerINTEL, clGetDeviceFunctionPointerINTEL, and other names that SYCL's runtime
looks for."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.core.session import CL3, Session
from tests.loader.errors.test_program import binary_of, load
from tests.pure.spirv.assembler import CAPABILITIES, SCALARS, assemble

READ, WRITE = 0x418E, 0x418F  # command types
NO_WAIT = (0, None, None)
NAMES = {
    "read": ("clEnqueueReadGlobalVariableINTEL", "pppuzzpupp"),
    "write": ("clEnqueueWriteGlobalVariableINTEL", "pppuzzpupp"),
    "variable": ("clGetDeviceGlobalVariablePointerINTEL", "ppppp"),
    "function": ("clGetDeviceFunctionPointerINTEL", "pppp"),
}
SOURCE = """
global int counter = 5;
global int table[5000] = {1, 2, 3};
static global int hidden = 3;
global int unused = 77;
kernel void k(global int *out) {
    int i = get_global_id(0);
    out[i] = table[i] + counter + hidden;
    table[i] = -i;
}
"""
ITEMS = 5000


class Symbols:
    """The functions, on a session's queue and device."""

    def __init__(self, session):
        self.session, self.queue, self.device = session, session.queue, session.device
        self.calls = {key: session.cl.checked(*value) for key, value in NAMES.items()}

    def read(self, program, name, count, offset=0, queue=None, wait=NO_WAIT, blocking=True) -> np.ndarray:
        found = np.zeros(count, np.int32)
        arguments = (program, name, blocking, found.nbytes, offset, found.ctypes.data, *wait)
        assert self.calls["read"](queue or self.queue, *arguments) == cl.CL_SUCCESS
        return found

    def write(self, program, name, values, offset=0, queue=None, wait=NO_WAIT, blocking=True) -> np.ndarray:
        given = np.array(values, np.int32)
        arguments = (program, name, blocking, given.nbytes, offset, given.ctypes.data, *wait)
        assert self.calls["write"](queue or self.queue, *arguments) == cl.CL_SUCCESS
        return given

    def pointer(self, program, name) -> tuple[int, int]:
        size, pointer = ctypes.c_size_t(), ctypes.c_void_p()
        status = self.calls["variable"](
            self.device, program, name, ctypes.addressof(size), ctypes.addressof(pointer)
        )
        assert status == cl.CL_SUCCESS
        return pointer.value, size.value

    def function(self, program, name) -> tuple[int, int]:
        pointer = ctypes.c_uint64(99)
        status = self.calls["function"](self.device, program, name, ctypes.addressof(pointer))
        return pointer.value, status


@pytest.fixture
def session(opencl):
    made = Session(opencl)
    yield made
    made.close()


@pytest.fixture
def symbols(session):
    return Symbols(session)


def il_program(session, spirv: bytes) -> int:
    made = session.cl.make("clCreateProgramWithIL", session.context, spirv, len(spirv))
    session.made("clReleaseProgram", made)
    session.cl.build(made)
    return made


def results(session, program) -> np.ndarray:
    out = session.buffer(np.zeros(ITEMS, np.int32))
    session.launch(session.kernel(program), ITEMS, out)
    return session.read(out, np.int32, ITEMS)


def test_variables_of_opencl_c(session, symbols):
    """Before the first kernel is made, and between launches."""
    program = session.program(SOURCE, CL3)
    assert symbols.read(program, b"counter", 1).tolist() == [5]
    assert symbols.read(program, b"unused", 1).tolist() == [77]
    symbols.write(program, b"counter", [100])
    symbols.write(program, b"table", range(10, 20), offset=40)
    want = np.zeros(ITEMS, np.int32)
    want[:3], want[10:20] = (1, 2, 3), np.arange(10, 20)
    assert results(session, program).tolist() == (want + 103).tolist()
    symbols.write(program, b"table", [7], offset=4)
    got = symbols.read(program, b"table", ITEMS)
    assert got[1] == 7 and (got[2:] == -np.arange(2, ITEMS)).all()
    assert symbols.read(program, b"table", 3, offset=4 * 4997).tolist() == [-4997, -4998, -4999]


def test_a_variable_s_address(session, symbols):
    """The host may use it as a pointer, and as one of unified shared memory."""
    program = session.program(SOURCE, CL3)
    address, size = symbols.pointer(program, b"table")
    assert size == 4 * ITEMS
    assert symbols.pointer(program, b"counter")[1] == 4
    view = np.ctypeslib.as_array((ctypes.c_int32 * ITEMS).from_address(address))
    assert view[:4].tolist() == [1, 2, 3, 0]
    view[:] = 1
    assert results(session, program).tolist() == [9] * ITEMS
    copy = session.cl.checked("clEnqueueMemcpyINTEL", "pupp" + "zupp")
    given = np.full(ITEMS, 20, np.int32)
    assert copy(symbols.queue, 1, address, given.ctypes.data, given.nbytes, *NO_WAIT) == cl.CL_SUCCESS
    assert results(session, program).tolist() == [28] * ITEMS
    pointer = ctypes.c_void_p()
    call = symbols.calls["variable"]
    assert call(symbols.device, program, b"counter", None, ctypes.addressof(pointer)) == cl.CL_SUCCESS
    assert ctypes.c_int32.from_address(pointer.value).value == 5


def test_commands_wait_and_outlive_the_program(opencl, session, symbols):
    """They have events, and their variable lives as long: also when the program is built again."""
    gate = opencl.make("clCreateUserEvent", session.context)
    program = opencl.program(session.context, SOURCE)
    opencl.build(program, CL3)
    first, second = ctypes.c_void_p(), ctypes.c_void_p()
    given = symbols.write(program, b"table", [4] * ITEMS, wait=(1, [gate], first), blocking=False)
    got = symbols.read(program, b"table", ITEMS, wait=(1, [first.value], second), blocking=False)
    query = ("clGetEventInfo", cl.CL_EVENT_COMMAND_TYPE)
    assert [opencl.integer(query[0], event.value, query[1]) for event in (first, second)] == [WRITE, READ]
    opencl.build(program, CL3)
    assert symbols.read(program, b"counter", 1, queue=session.new_queue()).tolist() == [5]
    opencl.ok("clReleaseProgram", program)
    assert not got.any()
    opencl.ok("clSetUserEventStatus", gate, cl.CL_COMPLETE)
    opencl.ok("clWaitForEvents", 1, [second.value])
    assert (got == given).all()
    for event in (gate, first.value, second.value):
        opencl.ok("clReleaseEvent", event)


def test_a_failed_wait_list(opencl, session, symbols):
    program = session.program(SOURCE, CL3)
    gate = opencl.make("clCreateUserEvent", session.context)
    opencl.ok("clSetUserEventStatus", gate, -5)
    found = ctypes.c_int32(9)
    for key in ("read", "write"):
        status = symbols.calls[key](symbols.queue, program, b"counter", 1, 4, 0, ctypes.addressof(found), 1,
                                    [gate], None)  # fmt: skip
        assert status == cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    assert found.value == 9 and symbols.read(program, b"counter", 1).tolist() == [5]
    opencl.ok("clReleaseEvent", gate)


def test_binaries_and_sub_devices(opencl, session, symbols):
    device = opencl.device()
    binary_session = Session(opencl)
    binary = binary_of(opencl, session.program(SOURCE, CL3))
    program, *statuses = load(opencl, binary_session.context, binary)
    assert statuses == [cl.CL_SUCCESS] * 2
    opencl.build(program)
    assert symbols.read(program, b"counter", 1, queue=binary_session.queue).tolist() == [5]
    assert symbols.pointer(program, b"table")[1] == 4 * ITEMS
    opencl.ok("clReleaseProgram", program)
    binary_session.close()
    parts = opencl.sub_devices(device, cl.CL_DEVICE_PARTITION_BY_COUNTS, 1, 0)
    parted = Session(opencl, device, *parts)
    program = parted.program(SOURCE, CL3)
    assert symbols.read(program, b"counter", 1, queue=parted.new_queue(parts[0])).tolist() == [5]
    parted.close()
    for part in parts:
        opencl.ok("clReleaseDevice", part)


HOST_ACCESS = f"""{CAPABILITIES}
OpCapability GlobalVariableHostAccessINTEL
OpExtension "SPV_INTEL_global_variable_host_access"
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k"
OpDecorate %none HostAccessINTEL NoneINTEL "no access"
OpDecorate %reads HostAccessINTEL ReadINTEL "only read"
OpDecorate %writes HostAccessINTEL WriteINTEL "only written"
OpDecorate %both HostAccessINTEL ReadWriteINTEL "both"
OpDecorate %fixed HostAccessINTEL ReadWriteINTEL "fixed"
OpDecorate %reads LinkageAttributes "exported" Export
OpDecorate %plain LinkageAttributes "both" Export
OpDecorate %other LinkageAttributes "other" Export
{SCALARS}
%c1 = OpConstant %i32 1
%c2 = OpConstant %i32 2
%c3 = OpConstant %i32 3
%c4 = OpConstant %i32 4
%pg = OpTypePointer CrossWorkgroup %i32
%pc = OpTypePointer UniformConstant %i32
%fn = OpTypeFunction %void %pg
%none = OpVariable %pg CrossWorkgroup %c1
%reads = OpVariable %pg CrossWorkgroup %c1
%writes = OpVariable %pg CrossWorkgroup %c2
%both = OpVariable %pg CrossWorkgroup %c3
%plain = OpVariable %pg CrossWorkgroup %c1
%other = OpVariable %pg CrossWorkgroup %c2
%fixed = OpVariable %pc UniformConstant %c4
%k = OpFunction %void None %fn
%p = OpFunctionParameter %pg
%entry = OpLabel
%x = OpLoad %i32 %writes
%y = OpLoad %i32 %fixed
%r = OpIAdd %i32 %x %y
OpStore %p %r
OpReturn
OpFunctionEnd
"""


def test_names_and_access_of_spirv(session, symbols):
    program = il_program(session, assemble(HOST_ACCESS))
    for name, value in ((b"only read", 1), (b"exported", 1), (b"both", 3), (b"other", 2), (b"fixed", 4)):
        assert symbols.read(program, name, 1).tolist() == [value], name
    for name in (b"only written", b"both", b"other"):
        symbols.write(program, name, [40])
    assert symbols.read(program, b"both", 1).tolist() == [40]
    word = ctypes.c_int32(8)
    refused = [("read", b"only written"), ("read", b"no access"), ("write", b"no access"),
               ("write", b"only read"), ("write", b"exported"), ("write", b"fixed")]  # fmt: skip
    for key, name in refused:
        status = symbols.calls[key](symbols.queue, program, name, 1, 4, 0, ctypes.addressof(word), *NO_WAIT)
        assert status == cl.CL_INVALID_OPERATION, (key, name)
    assert word.value == 8
    out = session.buffer(np.zeros(1, np.int32))
    session.launch(session.kernel(program), 1, out)
    assert session.read(out, np.int32, 1).tolist() == [44]


FUNCTIONS = f"""{CAPABILITIES}
OpCapability FunctionPointersINTEL
OpCapability IndirectReferencesINTEL
OpExtension "SPV_INTEL_function_pointers"
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k" %gid
OpDecorate %gid BuiltIn GlobalInvocationId
OpDecorate %twice LinkageAttributes "twice" Export
OpDecorate %square LinkageAttributes "square" Export
OpDecorate %local LinkageAttributes "local" Export
OpDecorate %twice ReferencedIndirectlyINTEL
OpDecorate %square ReferencedIndirectlyINTEL
{SCALARS}
%i64v3 = OpTypeVector %i64 3
%pin = OpTypePointer Input %i64v3
%pg = OpTypePointer CrossWorkgroup %i32
%pa = OpTypePointer CrossWorkgroup %i64
%f = OpTypeFunction %i32 %i32
%pf = OpTypePointer CodeSectionINTEL %f
%fn = OpTypeFunction %void %pg %pa
%two = OpConstant %i32 2
%gid = OpVariable %pin Input
%twice = OpFunction %i32 None %f
%a = OpFunctionParameter %i32
%l1 = OpLabel
%r1 = OpIMul %i32 %a %two
OpReturnValue %r1
OpFunctionEnd
%square = OpFunction %i32 None %f
%b = OpFunctionParameter %i32
%l2 = OpLabel
%r2 = OpIMul %i32 %b %b
OpReturnValue %r2
OpFunctionEnd
%local = OpFunction %i32 None %f
%c = OpFunctionParameter %i32
%l3 = OpLabel
OpReturnValue %c
OpFunctionEnd
%k = OpFunction %void None %fn
%p = OpFunctionParameter %pg
%q = OpFunctionParameter %pa
%entry = OpLabel
%id3 = OpLoad %i64v3 %gid
%id = OpCompositeExtract %i64 %id3 0
%place = OpInBoundsPtrAccessChain %pg %p %id
%which = OpInBoundsPtrAccessChain %pa %q %id
%x = OpLoad %i32 %place
%number = OpLoad %i64 %which
%target = OpConvertUToPtr %pf %number
%r = OpFunctionPointerCallINTEL %i32 %target %x
OpStore %place %r
OpReturn
OpFunctionEnd
"""


def test_a_function_s_address(session, symbols):
    """A buffer of them, which a kernel calls."""
    program = il_program(session, assemble(FUNCTIONS))
    twice, square = (symbols.function(program, name) for name in (b"twice", b"square"))
    assert twice[1] == square[1] == cl.CL_SUCCESS and twice[0] != square[0] and twice[0] and square[0]
    numbers = np.arange(40, dtype=np.int32)
    is_odd = numbers % 2 == 1
    data = session.buffer(numbers)
    addresses = session.buffer(np.where(is_odd, square[0], twice[0]).astype(np.uint64))
    session.launch(session.kernel(program), 40, data, addresses)
    assert session.read(data, np.int32, 40).tolist() == np.where(is_odd, numbers**2, numbers * 2).tolist()
    for name in (b"local", b"k", b"nothing", b""):
        assert symbols.function(program, name) == (99, cl.CL_INVALID_ARG_VALUE), name


def test_enqueue_errors(opencl, session, symbols):
    program, unbuilt = session.program(SOURCE, CL3), opencl.program(session.context, SOURCE)
    broken = opencl.program(session.context, "kernel void k() { no }")
    assert opencl.call("clBuildProgram", broken, 0, None, None, None, None) == cl.CL_BUILD_PROGRAM_FAILURE
    other = Session(opencl)
    strange = opencl.make("clCreateUserEvent", other.context)
    memory = (ctypes.c_int32 * 8)()
    valid = {"queue": symbols.queue, "program": program, "name": b"counter", "blocking": 1,
             "size": 4, "offset": 0, "ptr": ctypes.addressof(memory),
             "count": 0, "list": None, "event": None}  # fmt: skip
    cases = (
        (cl.CL_INVALID_COMMAND_QUEUE, {"queue": None}, {"queue": program}, {"queue": session.context}),
        (cl.CL_INVALID_CONTEXT, {"queue": other.queue}, {"count": 1, "list": [strange]}),
        (cl.CL_INVALID_PROGRAM, {"program": None}, {"program": symbols.queue}),
        (cl.CL_INVALID_PROGRAM_EXECUTABLE, {"program": unbuilt}, {"program": broken}),
        (cl.CL_INVALID_ARG_VALUE, {"name": b"nothing"}, {"name": b"hidden"}, {"name": b"k"}, {"name": b""}),
        (cl.CL_INVALID_VALUE, {"name": None}, {"ptr": None}, {"size": 5}, {"offset": 1}, {"size": 1 << 63},
         {"offset": (1 << 64) - 4}, {"size": (1 << 64) - 1, "offset": 1}, {"size": 0, "offset": 5}),
        (cl.CL_INVALID_EVENT_WAIT_LIST, {"count": 1}, {"list": [strange]}, {"count": 1, "list": [program]}),
    )  # fmt: skip
    for key in ("read", "write"):
        for status, *changes in cases:
            for change in changes:
                assert symbols.calls[key](*(valid | change).values()) == status, (key, status, change)
        assert symbols.calls[key](*(valid | {"size": 0, "offset": 4}).values()) == cl.CL_SUCCESS
    for release, handle in (("Event", strange), ("Program", unbuilt), ("Program", broken)):
        opencl.ok(f"clRelease{release}", handle)
    other.close()


def test_address_errors(opencl, session, symbols):
    program, unbuilt = session.program(SOURCE, CL3), opencl.program(session.context, SOURCE)
    parts = opencl.sub_devices(symbols.device, cl.CL_DEVICE_PARTITION_BY_COUNTS, 1, 0)
    apart = Session(opencl, *parts)
    elsewhere = apart.program(SOURCE, CL3)
    answer = ctypes.c_uint64(99)
    where, device = ctypes.addressof(answer), symbols.device
    cases = (
        (cl.CL_INVALID_DEVICE, (None, program, b"counter", where), (program, program, b"counter", where),
         (device, elsewhere, b"counter", where)),
        (cl.CL_INVALID_PROGRAM, (device, None, b"counter", where), (device, device, b"counter", where)),
        (cl.CL_INVALID_PROGRAM_EXECUTABLE, (device, unbuilt, b"counter", where)),
        (cl.CL_INVALID_ARG_VALUE, (device, program, None, where), (device, program, b"counter", None),
         (device, program, b"hidden", where), (device, program, b"", where)),
    )  # fmt: skip
    for status, *calls in cases:
        for at, owner, name, pointer in calls:
            assert symbols.calls["variable"](at, owner, name, None, pointer) == status, (status, name)
            assert symbols.calls["function"](at, owner, name, pointer) == status, (status, name)
    assert answer.value == 99
    opencl.ok("clReleaseProgram", unbuilt)
    apart.close()
    for part in parts:
        opencl.ok("clReleaseDevice", part)


def test_other_names(opencl, session):
    """Functions of the core, as extensions called them first."""
    kernel = session.kernel(SOURCE)
    found = []
    for name in ("clGetKernelSuggestedLocalWorkSizeINTEL", "clGetKernelSuggestedLocalWorkSizeKHR"):
        local = (ctypes.c_size_t * 1)()
        call = opencl.checked(name, "ppuppp")
        out = session.buffer(64)
        session.set_arguments(kernel, [out])
        assert call(session.queue, kernel, 1, None, [ITEMS], ctypes.addressof(local)) == cl.CL_SUCCESS
        found.append(local[0])
        assert call(session.queue, kernel, 0, None, [1], ctypes.addressof(local)) == (
            cl.CL_INVALID_WORK_DIMENSION
        )
    assert found[0] == found[1] > 0
    create = opencl.checked("clCreateBufferWithPropertiesINTEL", "ppbzpp", ctypes.c_void_p)
    status = ctypes.c_int32(1)
    buffer = create(session.context, None, cl.CL_MEM_READ_WRITE, 16, None, ctypes.addressof(status))
    assert buffer and status.value == cl.CL_SUCCESS
    opencl.ok("clReleaseMemObject", buffer)
    unknown = (ctypes.c_uint64 * 3)(0x7FFF, 1, 0)
    assert not create(session.context, ctypes.addressof(unknown), 1, 16, None, ctypes.addressof(status))
    assert status.value == cl.CL_INVALID_PROPERTY
