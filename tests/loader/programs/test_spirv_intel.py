"""Programs of several modules with what Intel's SPIR-V extensions add, built and run as hosts do it."""

from __future__ import annotations

import ctypes
import platform

import pytest

from cl_driver.api.generated import enums as cl
from tests.runtime.program.clang import compile_with

ITEMS = 40
on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the assembly is x86's")


@pytest.fixture
def run(opencl):
    """run(modules, kernels, ints): builds a program of them, and runs kernels(global int *) on one buffer."""

    def do(modules, kernels, count=ITEMS):
        context, device = opencl.context(), opencl.device()
        programs = []
        for data in modules:
            programs.append(opencl.make("clCreateProgramWithIL", context, data, len(data)))
            opencl.ok("clCompileProgram", programs[-1], 0, None, None, 0, None, None, None, None)
        handles = (ctypes.c_void_p * len(programs))(*programs)
        linked = opencl.make("clLinkProgram", context, 0, None, None, len(programs), handles, None, None)
        queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
        array = (ctypes.c_int32 * count)(*range(count))
        size = ctypes.sizeof(array)
        buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, size, array)
        for name in kernels:
            kernel = opencl.make("clCreateKernel", linked, name)
            opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
            opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [ITEMS], None, 0, None, None)
            opencl.ok("clReleaseKernel", kernel)
        opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, size, array, 0, None, None)
        for release, handle in (
            ("clReleaseMemObject", buffer), ("clReleaseCommandQueue", queue), ("clReleaseProgram", linked),
            *(("clReleaseProgram", program) for program in programs), ("clReleaseContext", context),
        ):  # fmt: skip
            opencl.ok(release, handle)
        return list(array)

    return do


ASSEMBLY = """
kernel void sums(global int *p) {
    int i = get_global_id(0), r;
    __asm__("leal (%1,%2,4), %0" : "=r"(r) : "r"(p[i]), "r"(i));
    p[i] = r;
}
"""


def assembly(instruction="leal"):
    return compile_with(
        ASSEMBLY.replace("leal", instruction), ("SPV_INTEL_inline_assembly",), "-cl-std=CL3.0"
    )


@on_x86
def test_inline_assembly(run):
    assert run([assembly()], [b"sums"]) == [5 * i for i in range(ITEMS)]


@on_x86
def test_assembly_that_is_wrong(opencl, run):
    """A failure with what LLVM says, and the same compilers go on."""
    context, data = opencl.context(), assembly("nonsense")
    program = opencl.make("clCreateProgramWithIL", context, data, len(data))
    status = opencl.fails("clBuildProgram", program, 0, None, None, None, None)
    log = opencl.build_log(program)
    assert status == cl.CL_BUILD_PROGRAM_FAILURE
    assert "kernel 'sums': inline assembly: " in log and "invalid instruction mnemonic 'nonsense'" in log
    opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)
    assert run([assembly()], [b"sums"]) == [5 * i for i in range(ITEMS)]


FUNCTIONS = """
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
typedef int (*op_t)(int);
int square(int a) { return a * a; }
int negative(int a) { return -a; }
op_t choose(int n) { return n & 1 ? square : negative; }
"""
KERNELS = """
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
typedef int (*op_t)(int);
op_t choose(int n);
int square(int a);
global op_t kept[40];
kernel void keep(global int *p) { int i = get_global_id(0); kept[i] = i % 3 == 2 ? 0 : choose(i); }
kernel void apply(global int *p) {
    int i = get_global_id(0);
    if (kept[i])
        p[i] = kept[i](p[i]) + (kept[i] == square);
}
"""


def test_pointers_to_functions_of_another_module(run):
    """One kernel leaves them in a variable, another calls them; null is none."""
    modules = [compile_with(text, ("SPV_INTEL_function_pointers",), "-cl-std=CL3.0")
               for text in (FUNCTIONS, KERNELS)]  # fmt: skip
    want = [i if i % 3 == 2 else i * i + 1 if i & 1 else -i for i in range(ITEMS)]
    assert run(modules, [b"keep", b"apply"]) == want
