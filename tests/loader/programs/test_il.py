"""Programs from SPIR-V: creation, specialization constants, linking, what SPIR-V extensions promise."""

import ctypes
import struct

import pytest

from cl_driver.api.generated import enums as cl


def word_string(text):
    data = text.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


class Module:
    """Instructions as words; ids are handed out by name."""

    def __init__(self, version=0x00010000):
        self.version = version
        self.words = []
        self.ids = {}

    def __getitem__(self, name):
        return self.ids.setdefault(name, len(self.ids) + 1)

    def add(self, opcode, *operands):
        words = []
        for operand in operands:
            words += (
                [self[operand]]
                if isinstance(operand, str)
                else [operand]
                if isinstance(operand, int)
                else operand
            )
        self.words += [len(words) + 1 << 16 | opcode, *words]

    def data(self):
        words = [0x07230203, self.version, 0, len(self.ids) + 1, 0, *self.words]
        return struct.pack(f"<{len(words)}I", *words)


CAPABILITY, EXTENSION, MEMORY_MODEL, ENTRY_POINT, DECORATE = 17, 10, 14, 15, 71
TYPE_VOID, TYPE_BOOL, TYPE_INT, TYPE_POINTER, TYPE_FUNCTION, CONSTANT = 19, 20, 21, 32, 33, 43
SPEC_TRUE, SPEC_CONSTANT, FUNCTION, PARAMETER, FUNCTION_END = 48, 50, 54, 55, 56
STORE, PTR_ACCESS_CHAIN, ADD, SELECT, LABEL, RETURN, RETURN_VALUE, CALL = 62, 67, 128, 169, 248, 253, 254, 57
KERNEL, ADDRESSES, LINKAGE = 6, 4, 5
CROSS_WORKGROUP = 5
LINKAGE_ATTRIBUTES, SPEC_ID, NO_SIGNED_WRAP = 41, 1, 4469


def specialised():
    """kernel void k(global int *out) { out[0] = number; out[1] = flag ? number + 1 : 0; }"""
    m = Module()
    for capability in (KERNEL, ADDRESSES):
        m.add(CAPABILITY, capability)
    m.add(MEMORY_MODEL, 2, 2)
    m.add(ENTRY_POINT, 6, "k", word_string("k"))
    m.add(DECORATE, "number", SPEC_ID, 5)
    m.add(DECORATE, "flag", SPEC_ID, 9)
    m.add(TYPE_VOID, "void")
    m.add(TYPE_BOOL, "bool")
    m.add(TYPE_INT, "int", 32, 0)
    m.add(TYPE_POINTER, "pointer", CROSS_WORKGROUP, "int")
    m.add(TYPE_FUNCTION, "type", "void", "pointer")
    m.add(CONSTANT, "int", "zero", 0)
    m.add(CONSTANT, "int", "one", 1)
    m.add(SPEC_CONSTANT, "int", "number", 42)
    m.add(SPEC_TRUE, "bool", "flag")
    m.add(FUNCTION, "void", "k", 0, "type")
    m.add(PARAMETER, "pointer", "out")
    m.add(LABEL, "entry")
    m.add(STORE, "out", "number", 2, 4)
    m.add(PTR_ACCESS_CHAIN, "pointer", "second", "out", "one")
    m.add(ADD, "int", "more", "number", "one")
    m.add(SELECT, "int", "chosen", "flag", "more", "zero")
    m.add(STORE, "second", "chosen", 2, 4)
    m.add(RETURN)
    m.add(FUNCTION_END)
    return m.data()


def half(defines, linkage_type, extension=None, decoration=None):
    """One of two modules: `k` calls `helper` (an import), or helper(x) = x + x is defined."""
    m = Module()
    for capability in (KERNEL, ADDRESSES, LINKAGE):
        m.add(CAPABILITY, capability)
    if extension:
        m.add(EXTENSION, word_string(extension))
    m.add(MEMORY_MODEL, 2, 2)
    if not defines:
        m.add(ENTRY_POINT, 6, "k", word_string("k"))
    m.add(DECORATE, "helper", LINKAGE_ATTRIBUTES, word_string("helper"), linkage_type)
    if decoration:
        m.add(DECORATE, "sum", decoration)
    m.add(TYPE_VOID, "void")
    m.add(TYPE_INT, "int", 32, 0)
    m.add(TYPE_POINTER, "pointer", CROSS_WORKGROUP, "int")
    m.add(TYPE_FUNCTION, "type", "void", "pointer")
    m.add(TYPE_FUNCTION, "helper_type", "int", "int")
    m.add(CONSTANT, "int", "twenty", 20)
    m.add(FUNCTION, "int", "helper", 0, "helper_type")
    m.add(PARAMETER, "int", "x")
    if defines:
        m.add(LABEL, "helper_entry")
        m.add(ADD, "int", "sum", "x", "x")
        m.add(RETURN_VALUE, "sum")
    m.add(FUNCTION_END)
    if not defines:
        m.add(FUNCTION, "void", "k", 0, "type")
        m.add(PARAMETER, "pointer", "out")
        m.add(LABEL, "entry")
        m.add(CALL, "int", "result", "helper", "twenty")
        m.add(STORE, "out", "result", 2, 4)
        m.add(RETURN)
        m.add(FUNCTION_END)
    return m.data()


EXPORT, IMPORT, LINK_ONCE_ODR = 0, 1, 2


@pytest.fixture(scope="module")
def context(opencl):
    made = opencl.context()
    yield made
    opencl.ok("clReleaseContext", made)


@pytest.fixture
def program(opencl, context):
    data = specialised()
    made = opencl.make("clCreateProgramWithIL", context, data, len(data))
    yield made
    opencl.ok("clReleaseProgram", made)


def run(opencl, context, program):
    """The first two ints that kernel k writes."""
    kernel = opencl.make("clCreateKernel", program, b"k")
    queue = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
    buffer = opencl.make("clCreateBuffer", context, 0, 8, None)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [1], None, 0, None, None)
    result = (ctypes.c_int32 * 2)()
    opencl.ok("clEnqueueReadBuffer", queue, buffer, cl.CL_TRUE, 0, 8, result, 0, None, None)
    opencl.ok("clReleaseMemObject", buffer)
    opencl.ok("clReleaseCommandQueue", queue)
    opencl.ok("clReleaseKernel", kernel)
    return list(result)


def test_creation_errors(opencl, context, program):
    name, data = "clCreateProgramWithIL", specialised()
    assert opencl.fails(name, program, data, len(data)) == cl.CL_INVALID_CONTEXT
    assert opencl.fails(name, context, None, len(data)) == cl.CL_INVALID_VALUE
    assert opencl.fails(name, context, data, 0) == cl.CL_INVALID_VALUE
    assert opencl.fails(name, context, data, len(data) - 4) == cl.CL_INVALID_VALUE
    assert opencl.fails(name, context, b"no SPIR-V at all", 16) == cl.CL_INVALID_VALUE


def test_the_il_is_kept(opencl, program):
    assert opencl.info("clGetProgramInfo", program, cl.CL_PROGRAM_IL) == specialised()
    assert opencl.text("clGetProgramInfo", program, cl.CL_PROGRAM_SOURCE) == ""


def test_specialization(opencl, context, program):
    name = "clSetProgramSpecializationConstant"
    opencl.build(program)
    assert run(opencl, context, program) == [42, 43]
    opencl.ok(name, program, 5, 4, ctypes.c_int32(7))
    opencl.ok(name, program, 5, 4, ctypes.c_int32(8))  # the last one counts
    opencl.build(program)
    assert run(opencl, context, program) == [8, 9]
    opencl.ok(name, program, 9, 1, ctypes.c_uint8(0))
    opencl.build(program)
    assert run(opencl, context, program) == [8, 0]

    assert opencl.fails(name, program, 6, 4, ctypes.c_int32(7)) == cl.CL_INVALID_SPEC_ID
    assert opencl.fails(name, program, 5, 8, ctypes.c_int64(7)) == cl.CL_INVALID_VALUE
    assert opencl.fails(name, program, 9, 4, ctypes.c_int32(1)) == cl.CL_INVALID_VALUE
    assert opencl.fails(name, program, 5, 4, None) == cl.CL_INVALID_VALUE


def test_kernels_of_il_have_neither_argument_names_nor_attributes(opencl, program):
    opencl.build(program, "-cl-kernel-arg-info")
    kernel = opencl.make("clCreateKernel", program, b"k")
    assert opencl.text("clGetKernelInfo", kernel, cl.CL_KERNEL_ATTRIBUTES) == ""
    assert opencl.fails("clGetKernelArgInfo", kernel, 0, cl.CL_KERNEL_ARG_NAME, 0, None, None) == (
        cl.CL_KERNEL_ARG_INFO_NOT_AVAILABLE
    )
    opencl.ok("clReleaseKernel", kernel)


def linked(opencl, context, *modules):
    """(program, status) of compiling and linking modules."""
    programs = [opencl.make("clCreateProgramWithIL", context, data, len(data)) for data in modules]
    for made in programs:
        status = opencl.call("clCompileProgram", made, 0, None, None, 0, None, None, None, None)
        assert status == cl.CL_SUCCESS, opencl.build_log(made)
    result = opencl.call("clLinkProgram", context, 0, None, None, len(programs), programs, None, None)
    for made in programs:
        opencl.ok("clReleaseProgram", made)
    return result


@pytest.mark.parametrize(
    "linkage, extension, decoration",
    [
        (EXPORT, None, None),
        (LINK_ONCE_ODR, "SPV_KHR_linkonce_odr", None),
        (EXPORT, "SPV_KHR_no_integer_wrap_decoration", NO_SIGNED_WRAP),
    ],
)
def test_linking(opencl, context, linkage, extension, decoration):
    parts = half(False, IMPORT), half(True, linkage, extension, decoration)
    made, status = linked(opencl, context, *parts)
    assert status == cl.CL_SUCCESS, opencl.build_log(made)
    assert run(opencl, context, made)[0] == 40
    opencl.ok("clReleaseProgram", made)


def test_a_definition_that_is_missing_or_twice_there(opencl, context):
    caller, definition = half(False, IMPORT), half(True, EXPORT)
    for modules in ([caller], [caller, definition, definition]):
        made, status = linked(opencl, context, *modules)
        assert status == cl.CL_LINK_PROGRAM_FAILURE and "helper" in opencl.build_log(made)
        opencl.ok("clReleaseProgram", made)


def test_one_definition_of_several_equal_ones(opencl, context):
    shared = half(True, LINK_ONCE_ODR, "SPV_KHR_linkonce_odr")
    made, status = linked(opencl, context, half(False, IMPORT), shared, shared)
    assert status == cl.CL_SUCCESS, opencl.build_log(made)
    assert run(opencl, context, made)[0] == 40
    opencl.ok("clReleaseProgram", made)


def test_a_module_that_is_not_valid_fails_to_build_with_a_log(opencl, context):
    m = Module()
    for capability in (KERNEL, ADDRESSES):
        m.add(CAPABILITY, capability)
    m.add(MEMORY_MODEL, 2, 2)
    m.add(ENTRY_POINT, 6, "nothing", word_string("k"))  # of a function that is not there
    data = m.data()
    made = opencl.make("clCreateProgramWithIL", context, data, len(data))
    assert opencl.fails("clBuildProgram", made, 0, None, None, None, None) == cl.CL_BUILD_PROGRAM_FAILURE
    assert opencl.build_log(made)
    opencl.ok("clReleaseProgram", made)
