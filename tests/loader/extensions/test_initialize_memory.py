"""Local and private memory that is zeros when kernels begin: cl_khr_initialize_memory 1.0.0."""

import ctypes
import itertools
import subprocess

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.command_buffers.recorder import Recorder
from tests.pure.passes.support import CLANG

INITIALIZE = cl.CL_CONTEXT_MEMORY_INITIALIZE_KHR
LOCAL, PRIVATE = 1, 2
ITEMS = 1000

# What each work-item finds in an array that it has written to before.
FUNCTION = """
__attribute__((noinline)) uint soil(uint n) {
    uint a[50], seen = 0;
    for (uint i = 0; i < 50; i++) { seen |= a[(i + n) % 50]; a[(i * n) % 50] = i + 1; }
    return seen + a[n % 50] / 1000;
}
"""
KERNEL = """
uint soil(uint n);
kernel void k(global uint *out) {
    uint seen = 0;
    for (uint i = 0; i < 5; i++) seen |= soil(i + get_global_id(0));
    out[get_global_id(0)] = seen;
}
"""


def context(opencl, *properties) -> int:
    """A context with properties."""
    return opencl.make("clCreateContext", [*properties, 0], 1, [opencl.device()], None, None)


@pytest.fixture
def zeroed(opencl, monkeypatch):
    """A session whose context wants zeros."""
    made = context(opencl, INITIALIZE, LOCAL | PRIVATE)
    monkeypatch.setattr(opencl, "context", lambda *_: made)
    session = Recorder(opencl)
    monkeypatch.undo()
    yield session
    session.close()


@pytest.mark.parametrize("kinds", range(4))
@pytest.mark.parametrize("width", [0, 1, 8])
@pytest.mark.parametrize("group_code", ["off", "now"])
def test_kernels_find_zeros(run_client, kinds, width, group_code):
    settings = {"CL_DRIVER_WIDTH": str(width), "CL_DRIVER_GROUP_CODE": group_code}
    if kinds or group_code == "off":  # lockstep keeps local memory in registers, where nothing is left
        run_client("extensions/zeroes", kinds, env=settings)


def found(session, kernel) -> np.ndarray:
    """What 40 launches see; they also use what the ones before have left."""
    out = session.buffer(4 * ITEMS)
    seen = np.zeros(ITEMS, np.uint32)
    for _ in range(40):
        session.launch(kernel, ITEMS, out)
        seen |= session.read(out, np.uint32, ITEMS)
    return seen


def what_is_left(n: int) -> int:
    """What soil() answers where its array is zeros in the beginning."""
    a, seen = [0] * 50, 0
    for i in range(50):
        seen |= a[(i + n) % 50]
        a[(i * n) % 50] = i + 1
    return seen


EXPECTED = np.array([np.bitwise_or.reduce([what_is_left(i + g) for i in range(5)]) for g in range(ITEMS)])


def test_private_memory_of_functions(zeroed):
    kernel = zeroed.kernel(FUNCTION + KERNEL)
    assert np.array_equal(found(zeroed, kernel), EXPECTED)


def test_linked_programs(zeroed):
    """Of objects, and of an object with a library."""
    parts = [
        zeroed.made("clReleaseProgram", zeroed.cl.program(zeroed.context, s)) for s in (FUNCTION, KERNEL)
    ]
    for part in parts:
        zeroed.cl.ok("clCompileProgram", part, 0, None, "-cl-std=CL3.0", 0, None, None, None, None)
    link = "clLinkProgram", zeroed.context, 0, None
    library = zeroed.made(
        "clReleaseProgram", zeroed.cl.make(*link, "-create-library", 1, parts[:1], None, None)
    )
    for inputs in (parts, [library, parts[1]]):
        program = zeroed.made("clReleaseProgram", zeroed.cl.make(*link, "", 2, inputs, None, None))
        assert np.array_equal(found(zeroed, zeroed.kernel(program)), EXPECTED)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_modules(zeroed, level):
    """SPIR-V has variables, and says nothing of what is in them."""
    done = subprocess.run(
        [*CLANG, level], input=(FUNCTION + KERNEL).encode(), capture_output=True, check=True
    )
    il = done.stdout
    program = zeroed.cl.make("clCreateProgramWithIL", zeroed.context, il, len(il))
    zeroed.made("clReleaseProgram", program)
    zeroed.cl.build(program)
    if level == "-O0":  # of the other clang has made values, which are nothing
        assert np.array_equal(found(zeroed, zeroed.kernel(program)), EXPECTED)
    else:
        found(zeroed, zeroed.kernel(program))


def test_options_are_the_programs_own(zeroed):
    program = zeroed.program(FUNCTION + KERNEL, "-cl-std=CL3.0 -DX=5")
    where = "clGetProgramBuildInfo", program, zeroed.device
    assert zeroed.cl.text(*where, cl.CL_PROGRAM_BUILD_OPTIONS) == "-cl-std=CL3.0 -DX=5"
    for word in ("-cld-zero-local", "-cld-zero-private"):
        other = zeroed.made("clReleaseProgram", zeroed.cl.program(zeroed.context, KERNEL))
        status = zeroed.cl.call("clBuildProgram", other, 0, None, word, None, None)
        assert status == cl.CL_INVALID_BUILD_OPTIONS


def binary_of(opencl, program) -> bytes:
    (size,) = opencl.words("clGetProgramInfo", program, cl.CL_PROGRAM_BINARY_SIZES)
    data = ctypes.create_string_buffer(size)
    opencl.ok("clGetProgramInfo", program, cl.CL_PROGRAM_BINARIES, 8, [ctypes.addressof(data)], None)
    return data.raw


def load(opencl, where, binary) -> tuple[int, int, int]:
    """Of a binary in a context: the program, the status of the call and of the binary."""
    data, status = ctypes.create_string_buffer(binary, len(binary)), ctypes.c_int32(1)
    made, error = opencl.call(
        "clCreateProgramWithBinary",
        where,
        1,
        [opencl.device()],
        [len(binary)],
        [ctypes.addressof(data)],
        status,
    )
    return made, error, status.value


def test_binaries(session, zeroed):
    """Those of a context that did not ask for zeros are refused by one that does, not the other way round."""
    own, plain = zeroed.program(FUNCTION + KERNEL), session.program(FUNCTION + KERNEL)
    for where in (session, zeroed):
        program, status, of_binary = load(session.cl, where.context, binary_of(session.cl, own))
        assert (status, of_binary) == (0, 0)
        where.made("clReleaseProgram", program)
        where.cl.build(program, None)
        assert np.array_equal(found(where, where.kernel(program)), EXPECTED)
        text = where.cl.text("clGetProgramBuildInfo", program, where.device, cl.CL_PROGRAM_BUILD_OPTIONS)
        assert text == "-cl-std=CL3.0"
    wanted = (0, cl.CL_INVALID_BINARY, cl.CL_INVALID_BINARY)
    assert load(session.cl, zeroed.context, binary_of(session.cl, plain)) == wanted


def test_a_context_has_programs_of_its_own(session, zeroed):
    """The cache tells them apart: the same source, in turns."""
    for where, _ in itertools.product((zeroed, session), range(2)):
        got = found(where, where.kernel(FUNCTION + KERNEL))
        assert where is session or np.array_equal(got, EXPECTED)


def test_queries_and_errors(opencl):
    for value in (0, LOCAL, PRIVATE, LOCAL | PRIVATE):
        made = context(opencl, INITIALIZE, value)
        assert opencl.words("clGetContextInfo", made, cl.CL_CONTEXT_PROPERTIES) == [INITIALIZE, value, 0]
        opencl.ok("clReleaseContext", made)
    for wrong in ([INITIALIZE, 4], [INITIALIZE, LOCAL | 8], [INITIALIZE, LOCAL, INITIALIZE, LOCAL]):
        where = ([*wrong, 0], 1, [opencl.device()], None, None)
        assert opencl.fails("clCreateContext", *where) == cl.CL_INVALID_PROPERTY
