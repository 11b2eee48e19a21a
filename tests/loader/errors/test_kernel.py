"""Error codes and answers of kernel objects (API specification, 5.9.1, 5.9.3 and 5.9.4)."""

import ctypes

import pytest

from cl_driver.api.generated import enums as cl

SOURCE = """
typedef struct { int x; float4 y; } pair;
kernel __attribute__((reqd_work_group_size(8, 4, 2))) __attribute__((vec_type_hint(float4)))
void k(global const float *restrict in, volatile global uint *out, constant float4 *table, local int *scratch,
       unsigned char small, pair both)
{
    local int fixed[16];
    fixed[get_local_id(0)] = in[0] + table[0].x;
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[0] = fixed[1];
    out[0] = small + both.x + scratch[0];
}
kernel void plain(global int *a) { a[get_global_id(0)] = 1; }
"""


@pytest.fixture(scope="module")
def context(opencl):
    made = opencl.context()
    yield made
    opencl.ok("clReleaseContext", made)


@pytest.fixture(scope="module")
def program(opencl, context):
    made = opencl.program(context, SOURCE)
    opencl.build(made, "-cl-kernel-arg-info")
    yield made
    opencl.ok("clReleaseProgram", made)


@pytest.fixture
def kernel(opencl, program):
    made = opencl.make("clCreateKernel", program, b"k")
    yield made
    opencl.ok("clReleaseKernel", made)


def test_creation_errors(opencl, context, program):
    assert opencl.fails("clCreateKernel", context, b"k") == cl.CL_INVALID_PROGRAM
    assert opencl.fails("clCreateKernel", program, None) == cl.CL_INVALID_VALUE
    assert opencl.fails("clCreateKernel", program, b"absent") == cl.CL_INVALID_KERNEL_NAME
    assert opencl.fails("clCreateKernel", program, b"") == cl.CL_INVALID_KERNEL_NAME
    unbuilt = opencl.program(context, SOURCE)
    assert opencl.fails("clCreateKernel", unbuilt, b"k") == cl.CL_INVALID_PROGRAM_EXECUTABLE
    count = ctypes.c_uint32()
    assert (
        opencl.fails("clCreateKernelsInProgram", unbuilt, 0, None, count) == cl.CL_INVALID_PROGRAM_EXECUTABLE
    )
    opencl.ok("clReleaseProgram", unbuilt)


def test_all_kernels_of_a_program(opencl, context, program):
    count, found = ctypes.c_uint32(), (ctypes.c_void_p * 2)()
    opencl.ok("clCreateKernelsInProgram", program, 0, None, count)
    assert count.value == 2
    opencl.ok("clCreateKernelsInProgram", program, 2, found, None)
    names = {opencl.text("clGetKernelInfo", kernel, cl.CL_KERNEL_FUNCTION_NAME) for kernel in found}
    assert names == {"k", "plain"}
    for kernel in found:
        opencl.ok("clReleaseKernel", kernel)
    assert opencl.fails("clCreateKernelsInProgram", program, 1, found, None) == cl.CL_INVALID_VALUE
    assert opencl.fails("clCreateKernelsInProgram", context, 2, found, None) == cl.CL_INVALID_PROGRAM


def test_kernel_queries(opencl, context, program, kernel):
    assert opencl.text("clGetKernelInfo", kernel, cl.CL_KERNEL_FUNCTION_NAME) == "k"
    assert opencl.integer("clGetKernelInfo", kernel, cl.CL_KERNEL_NUM_ARGS) == 6
    assert opencl.integer("clGetKernelInfo", kernel, cl.CL_KERNEL_REFERENCE_COUNT) == 1
    assert opencl.integer("clGetKernelInfo", kernel, cl.CL_KERNEL_CONTEXT) == context
    assert opencl.integer("clGetKernelInfo", kernel, cl.CL_KERNEL_PROGRAM) == program
    attributes = opencl.text("clGetKernelInfo", kernel, cl.CL_KERNEL_ATTRIBUTES)
    assert "reqd_work_group_size(8,4,2)" in attributes.replace(", ", ",")
    assert opencl.fails("clGetKernelInfo", kernel, 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
    assert (
        opencl.fails("clGetKernelInfo", context, cl.CL_KERNEL_NUM_ARGS, 0, None, None) == cl.CL_INVALID_KERNEL
    )
    assert opencl.fails("clRetainKernel", context) == cl.CL_INVALID_KERNEL
    assert opencl.fails("clReleaseKernel", context) == cl.CL_INVALID_KERNEL


def test_a_kernel_keeps_its_program(opencl, context):
    kernel = opencl.kernel(context, "kernel void k(global int *a) { *a = 1; }")
    program = opencl.integer("clGetKernelInfo", kernel, cl.CL_KERNEL_PROGRAM)
    assert opencl.integer("clGetProgramInfo", program, cl.CL_PROGRAM_NUM_KERNELS) == 1
    opencl.ok("clReleaseKernel", kernel)
    assert (
        opencl.fails("clGetProgramInfo", program, cl.CL_PROGRAM_SOURCE, 0, None, None)
        == cl.CL_INVALID_PROGRAM
    )


def test_work_group_queries(opencl, context, kernel):
    device, name = opencl.device(), "clGetKernelWorkGroupInfo"
    # "If the list of devices associated with kernel is a single device, device can be a NULL value."
    for named in (device, None):
        most = opencl.integer(name, kernel, named, cl.CL_KERNEL_WORK_GROUP_SIZE)
        assert 64 <= most <= opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_MAX_WORK_GROUP_SIZE)
        assert opencl.words(name, kernel, named, cl.CL_KERNEL_COMPILE_WORK_GROUP_SIZE) == [8, 4, 2]
        assert opencl.integer(name, kernel, named, cl.CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE) % 4 == 0
    before = opencl.integer(name, kernel, device, cl.CL_KERNEL_LOCAL_MEM_SIZE)
    assert before >= 64
    opencl.ok("clSetKernelArg", kernel, 3, 1000, None)
    assert opencl.integer(name, kernel, device, cl.CL_KERNEL_LOCAL_MEM_SIZE) == before + 1000
    opencl.integer(name, kernel, device, cl.CL_KERNEL_PRIVATE_MEM_SIZE)

    assert (
        opencl.fails(name, context, device, cl.CL_KERNEL_WORK_GROUP_SIZE, 0, None, None)
        == cl.CL_INVALID_KERNEL
    )
    assert (
        opencl.fails(name, kernel, context, cl.CL_KERNEL_WORK_GROUP_SIZE, 0, None, None)
        == cl.CL_INVALID_DEVICE
    )
    assert opencl.fails(name, kernel, device, 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
    # "device is not a custom device and kernel is not a built-in kernel."
    assert (
        opencl.fails(name, kernel, device, cl.CL_KERNEL_GLOBAL_WORK_SIZE, 0, None, None)
        == cl.CL_INVALID_VALUE
    )


def test_one_of_several_devices_must_be_named(opencl):
    parts = opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    if len(parts) < 2:
        pytest.skip("one compute unit cannot be divided")
    context = opencl.context(*parts)
    kernel = opencl.kernel(context, "kernel void k(global int *a) { *a = 1; }")
    name, query = "clGetKernelWorkGroupInfo", cl.CL_KERNEL_WORK_GROUP_SIZE
    assert opencl.fails(name, kernel, None, query, 0, None, None) == cl.CL_INVALID_DEVICE
    assert opencl.fails(name, kernel, opencl.device(), query, 0, None, None) == cl.CL_INVALID_DEVICE
    assert opencl.integer(name, kernel, parts[1], query) > 0
    opencl.ok("clReleaseKernel", kernel)
    opencl.ok("clReleaseContext", context)
    for part in parts:
        opencl.ok("clReleaseDevice", part)


def arg(opencl, kernel, index, name):
    query = opencl.text if "NAME" in name else opencl.integer
    return query("clGetKernelArgInfo", kernel, index, getattr(cl, f"CL_KERNEL_ARG_{name}"))


def test_argument_queries(opencl, kernel):
    kinds = (cl.CL_KERNEL_ARG_ADDRESS_GLOBAL, cl.CL_KERNEL_ARG_ADDRESS_CONSTANT)
    const, restrict = cl.CL_KERNEL_ARG_TYPE_CONST, cl.CL_KERNEL_ARG_TYPE_RESTRICT
    expected = [
        ("in", "float*", kinds[0], const | restrict),
        ("out", "uint*", kinds[0], cl.CL_KERNEL_ARG_TYPE_VOLATILE),
        ("table", "float4*", kinds[1], const),
        ("scratch", "int*", cl.CL_KERNEL_ARG_ADDRESS_LOCAL, 0),
        ("small", "uchar", cl.CL_KERNEL_ARG_ADDRESS_PRIVATE, 0),
        ("both", "pair", cl.CL_KERNEL_ARG_ADDRESS_PRIVATE, 0),
    ]
    for index, (name, type_name, address, qualifier) in enumerate(expected):
        assert arg(opencl, kernel, index, "NAME") == name
        assert arg(opencl, kernel, index, "TYPE_NAME") == type_name
        assert arg(opencl, kernel, index, "ADDRESS_QUALIFIER") == address
        assert arg(opencl, kernel, index, "TYPE_QUALIFIER") == qualifier
        assert arg(opencl, kernel, index, "ACCESS_QUALIFIER") == cl.CL_KERNEL_ARG_ACCESS_NONE


def test_argument_query_errors(opencl, context, kernel):
    name, query = "clGetKernelArgInfo", cl.CL_KERNEL_ARG_NAME
    assert opencl.fails(name, context, 0, query, 0, None, None) == cl.CL_INVALID_KERNEL
    assert opencl.fails(name, kernel, 6, query, 0, None, None) == cl.CL_INVALID_ARG_INDEX
    assert opencl.fails(name, kernel, 0, 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
    without = opencl.kernel(context, "kernel void k(global int *a) { *a = 1; }")
    assert opencl.fails(name, without, 0, query, 0, None, None) == cl.CL_KERNEL_ARG_INFO_NOT_AVAILABLE
    opencl.ok("clReleaseKernel", without)


def test_clones(opencl, context, kernel):
    opencl.ok("clSetKernelArg", kernel, 3, 256, None)
    clone = opencl.make("clCloneKernel", kernel)
    name, device = "clGetKernelWorkGroupInfo", opencl.device()

    def local_size(handle):
        return opencl.integer(name, handle, device, cl.CL_KERNEL_LOCAL_MEM_SIZE)

    assert local_size(clone) == local_size(kernel)
    opencl.ok("clSetKernelArg", clone, 3, 512, None)
    assert local_size(clone) == local_size(kernel) + 256
    assert opencl.integer("clGetKernelInfo", clone, cl.CL_KERNEL_REFERENCE_COUNT) == 1
    opencl.ok("clReleaseKernel", clone)
    assert opencl.fails("clCloneKernel", context) == cl.CL_INVALID_KERNEL


@pytest.fixture
def halves(opencl):
    """(context, two sub-devices, their queues)."""
    parts = opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_EQUALLY, 1)[:2]
    if len(parts) < 2:
        pytest.skip("one compute unit cannot be divided")
    context = opencl.context(*parts)
    queues = [opencl.make("clCreateCommandQueueWithProperties", context, part, None) for part in parts]
    yield context, parts, queues
    for release, handles in (
        ("clReleaseCommandQueue", queues),
        ("clReleaseContext", [context]),
        ("clReleaseDevice", parts),
    ):
        for handle in handles:
            opencl.ok(release, handle)


def run_on(opencl, context, queue, kernel):
    """The int that the kernel writes, or the status of the enqueue."""
    buffer = opencl.make("clCreateBuffer", context, 0, 4, None)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    status = opencl.call("clEnqueueNDRangeKernel", queue, kernel, 1, None, [1], None, 0, None, None)
    result = ctypes.c_int32()
    if not status:
        opencl.ok("clEnqueueReadBuffer", queue, buffer, cl.CL_TRUE, 0, 4, result, 0, None, None)
    opencl.ok("clReleaseMemObject", buffer)
    return status or result.value


def test_each_device_runs_what_was_built_for_it(opencl, halves):
    context, parts, queues = halves
    program = opencl.program(context, "kernel void k(global TYPE *a) { *a = VALUE; }")
    opencl.ok("clBuildProgram", program, 1, [parts[1]], "-DTYPE=int -DVALUE=5", None, None)
    kernel = opencl.make("clCreateKernel", program, b"k")
    assert run_on(opencl, context, queues[1], kernel) == 5
    assert run_on(opencl, context, queues[0], kernel) == cl.CL_INVALID_PROGRAM_EXECUTABLE
    opencl.ok("clReleaseKernel", kernel)
    opencl.ok("clBuildProgram", program, 1, [parts[0]], "-DTYPE=int -DVALUE=7", None, None)
    kernel = opencl.make("clCreateKernel", program, b"k")
    clone = opencl.make("clCloneKernel", kernel)
    for handle in (kernel, clone):
        assert [run_on(opencl, context, queue, handle) for queue in queues] == [7, 5]
        opencl.ok("clReleaseKernel", handle)
    opencl.ok("clReleaseProgram", program)


def test_each_device_links_what_was_compiled_for_it(opencl, halves):
    context, parts, queues = halves
    program = opencl.program(context, "kernel void k(global int *a) { *a = VALUE; }")
    for value, part in enumerate(parts, 3):
        options = f"-DVALUE={value}"
        opencl.ok("clCompileProgram", program, 1, [part], options, 0, None, None, None, None)
    linked = opencl.make("clLinkProgram", context, 0, None, None, 1, [program], None, None)
    kernel = opencl.make("clCreateKernel", linked, b"k")
    assert [run_on(opencl, context, queue, kernel) for queue in queues] == [3, 4]
    for release, handle in (
        ("clReleaseKernel", kernel),
        ("clReleaseProgram", linked),
        ("clReleaseProgram", program),
    ):
        opencl.ok(release, handle)


def test_definitions_that_differ_between_devices(opencl, halves):
    context, parts, _ = halves
    source = "kernel void k(TYPE a, global int *b) { *b = a; }\nkernel void same(global int *b) { *b = 1; }"
    program = opencl.program(context, source)
    for part, type_name in zip(parts, ("int", "long"), strict=True):
        opencl.ok("clBuildProgram", program, 1, [part], f"-DTYPE={type_name}", None, None)
    assert opencl.fails("clCreateKernel", program, b"k") == cl.CL_INVALID_KERNEL_DEFINITION
    found, count = (ctypes.c_void_p * 2)(), ctypes.c_uint32()
    opencl.ok("clCreateKernelsInProgram", program, 2, found, count)
    assert count.value == 1
    assert opencl.text("clGetKernelInfo", found[0], cl.CL_KERNEL_FUNCTION_NAME) == "same"
    opencl.ok("clReleaseKernel", found[0])
    opencl.ok("clReleaseProgram", program)


def test_suggested_local_size(opencl, context):
    device = opencl.device()
    queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
    other_context = opencl.context()
    kernel = opencl.kernel(context, "kernel void k(global int *a) { a[get_global_id(0)] = 1; }")
    stranger = opencl.kernel(other_context, "kernel void k(void) {}")
    word = ctypes.c_void_p
    name = "clGetKernelSuggestedLocalWorkSizeKHR"
    suggest = opencl.extension(name, ctypes.c_int32, word, word, ctypes.c_uint32, word, word, word)
    found = (ctypes.c_size_t * 3)()
    most = (1 << 64) - 1

    def call(queue=queue, kernel=kernel, dimensions=1, offset=None, size=(1024,), result=found):
        sizes = (ctypes.c_size_t * 3)(*size) if size else None
        offsets = (ctypes.c_size_t * 3)(*offset) if offset else None
        return suggest(queue, kernel, dimensions, offsets, sizes, result)

    assert call() == cl.CL_INVALID_KERNEL_ARGS
    buffer = opencl.make("clCreateBuffer", context, 0, 4096, None)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    assert call() == cl.CL_SUCCESS
    assert found[0] >= 1 and 1024 % found[0] == 0
    assert call(queue=context) == cl.CL_INVALID_COMMAND_QUEUE
    assert call(kernel=context) == cl.CL_INVALID_KERNEL
    assert call(kernel=stranger) == cl.CL_INVALID_CONTEXT
    assert call(dimensions=0) == call(dimensions=4) == cl.CL_INVALID_WORK_DIMENSION
    assert call(size=None) == call(size=(0,)) == cl.CL_INVALID_GLOBAL_WORK_SIZE
    assert call(offset=(most,)) == cl.CL_INVALID_GLOBAL_OFFSET
    assert call(result=None) == cl.CL_INVALID_VALUE
    for release, handle in (
        ("clReleaseMemObject", buffer),
        ("clReleaseKernel", kernel),
        ("clReleaseKernel", stranger),
        ("clReleaseCommandQueue", queue),
        ("clReleaseContext", other_context),
    ):
        opencl.ok(release, handle)
