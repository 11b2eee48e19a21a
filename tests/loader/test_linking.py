"""Programs of several sources: what is declared in one and defined in another (API specification, 5.8.3)."""

import ctypes

import pytest

from cl_driver.api.generated import enums as cl

KERNEL_CALLS_KERNEL = (
    "kernel void copy(global float *in, global float *out) {"
    " int i = (int)get_global_id(0); out[i] = in[i]; }",
    "extern kernel void copy(global float *in, global float *out);"
    "kernel void k(global float *in, global float *out) { copy(in, out); }",
)
STRUCT = "typedef struct { uchar c; uint i; } pair;"
EXTERN_STRUCT = (
    STRUCT + "pair v = { 7, 42 };",
    STRUCT + "extern pair v;"
    "kernel void k(global float *in, global float *out) { out[get_global_id(0)] = v.c * 100 + v.i; }",
)
POINTER_RESULT = (
    "global float *pick(global float *p, int i) { return p + i; }",
    "global float *pick(global float *p, int i);"
    "kernel void k(global float *in, global float *out)"
    "{ int i = (int)get_global_id(0); *pick(out, i) = *pick(in, i) + 1; }",
)
HELPER = "inline float twice(float x) { return 2 * x; }"
INLINE_IN_BOTH = (
    HELPER + "float more(float x) { return twice(x) + 1; }",
    HELPER + "float more(float x);"
    "kernel void k(global float *in, global float *out)"
    "{ int i = (int)get_global_id(0); out[i] = more(in[i]) + twice(in[i]); }",
)
CASES = {
    "kernel calls kernel": (KERNEL_CALLS_KERNEL, "-cl-std=CL1.2", lambda x: x),
    "extern structure": (EXTERN_STRUCT, "-cl-std=CL3.0", lambda x: 742.0),
    "inline functions in both": (INLINE_IN_BOTH, "-cl-std=CL1.2", lambda x: 4 * x + 1),
    "pointers as results": (POINTER_RESULT, "-cl-std=CL1.2", lambda x: x + 1),
}


@pytest.mark.parametrize("case", CASES)
def test_declared_here_defined_there(opencl, case):
    sources, options, expected = CASES[case]
    context, count = opencl.context(), 64
    parts = [opencl.program(context, source) for source in sources]
    for part in parts:
        status = opencl.call("clCompileProgram", part, 0, None, options, 0, None, None, None, None)
        assert status == cl.CL_SUCCESS, opencl.build_log(part)
    program, status = opencl.call("clLinkProgram", context, 0, None, None, len(parts), parts, None, None)
    assert status == cl.CL_SUCCESS, program and opencl.build_log(program)
    kernel = opencl.make("clCreateKernel", program, b"k")
    queue = opencl.make("clCreateCommandQueue", context, opencl.device(), 0)
    numbers = (ctypes.c_float * count)(*range(count))
    size = ctypes.sizeof(numbers)
    source = opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, size, numbers)
    target = opencl.make("clCreateBuffer", context, 0, size, None)
    for index, buffer in enumerate((source, target)):
        opencl.ok("clSetKernelArg", kernel, index, 8, ctypes.c_void_p(buffer))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [count], None, 0, None, None)
    answers = (ctypes.c_float * count)()
    opencl.ok("clEnqueueReadBuffer", queue, target, 1, 0, size, answers, 0, None, None)
    assert list(answers) == [expected(x) for x in numbers]
    for handle, release in ((source, "clReleaseMemObject"), (target, "clReleaseMemObject"),
                            (queue, "clReleaseCommandQueue"), (kernel, "clReleaseKernel"),
                            (program, "clReleaseProgram"), (context, "clReleaseContext")):
        opencl.ok(release, handle)
