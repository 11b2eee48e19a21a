"""Assertions of kernels (cl_intel_devicelib_assert): what hosts die of, and what is told before."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys

import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.frontend import opencl_c
from cl_driver.frontend import options as compiler_options
from tests.conftest import EMULATOR, PATIENCE, ROOT
from tests.loader.opencl import OpenCL

_TYPE = "const generic char *, const generic char *, int, const generic char *"
_IDS = "ulong, ulong, ulong, ulong, ulong, ulong"
IMPORT = f"extern void __devicelib_assert_fail({_TYPE}, {_IDS});"
# What lies in global memory, as literals of SYCL do, can be pointed to by a generic pointer.
ASSERT = """
global char file[] = "f.cpp", function[] = "void f(int)";
#define assert(e) do { if (!(e)) { static global char text[] = #e; __devicelib_assert_fail(text, file, 42, \\
    function, get_global_id(0), get_global_id(1), get_global_id(2), get_local_id(0), get_local_id(1), \\
    get_local_id(2)); END } } while (0)
"""
KERNEL = """
kernel void k(global int *a, int most) {
    int i = get_global_id(0);
    if (i == 13) printf("before\\n");
    if (i % 4 == 1)
        for (int n = 0; n < i; n++) { assert(n < most); a[i] += n; }
    a[i] += i;
}
"""
SOURCE = IMPORT + ASSERT + KERNEL
# The items 13, 17, 21... fail, so the first lane of a sub-group of any size that does has number 13.
MOST = 12
MESSAGE = "f.cpp:42: void f(int): global id: [13,0,0], local id: [13,0,0] Assertion `n < most` failed.\n"
CL3 = "-cl-std=CL3.0"
OWN = f'void __devicelib_assert_fail({_TYPE}, {_IDS}) {{ printf("own\\n"); }}'.replace(
    _TYPE, "const generic char *e, const generic char *f, int l, const generic char *n"
).replace(_IDS, "ulong a, ulong b, ulong c, ulong x, ulong y, ulong z")


def reloaded(opencl, context, program):
    """A program of the binary of another."""
    [size] = opencl.words("clGetProgramInfo", program, cl.CL_PROGRAM_BINARY_SIZES)
    data = ctypes.create_string_buffer(size)
    places = (ctypes.c_void_p * 1)(ctypes.addressof(data))
    opencl.ok("clGetProgramInfo", program, cl.CL_PROGRAM_BINARIES, 8, places, None)
    device, sizes = [opencl.device()], (ctypes.c_int64 * 1)(size)
    return opencl.make("clCreateProgramWithBinary", context, 1, device, sizes, places, None)


def compiled(opencl, context, source, options):
    program = opencl.program(context, source)
    status = opencl.call("clCompileProgram", program, 0, None, options, 0, None, None, None, None)
    assert status == cl.CL_SUCCESS, opencl.build_log(program)
    return program


def of_il(opencl, context, source, options):
    """A program of SPIR-V that another program of SPIR-V gave back."""
    data = opencl_c.compile(source.encode(), compiler_options.parse(options)).spirv
    for _ in range(2):
        program = opencl.make("clCreateProgramWithIL", context, bytes(data), len(data))
        data = opencl.info("clGetProgramInfo", program, cl.CL_PROGRAM_IL)
    return program


def made(opencl, context, how, sources, options):
    """An executable."""
    if how in ("build", "il", "binary"):
        if how == "il":
            program = of_il(opencl, context, sources[0], options)
        else:
            program = opencl.program(context, sources[0])
        opencl.build(program, options)
        if how == "binary":
            program = reloaded(opencl, context, program)
            opencl.build(program)
        return program
    parts = [compiled(opencl, context, source, options) for source in sources]
    if how.endswith("library"):
        arguments = context, 0, None, "-create-library", len(parts), parts, None, None
        parts = [opencl.make("clLinkProgram", *arguments)]
    if how.startswith("binary"):
        parts = [reloaded(opencl, context, part) for part in parts]
    return opencl.make("clLinkProgram", context, 0, None, None, len(parts), parts, None, None)


def host(library, how, sources, options, most, items):
    """What the child does."""
    opencl = OpenCL(library)
    context = opencl.context()
    program = made(opencl, context, how, sources, options)
    kernel = opencl.make("clCreateKernel", program, b"k")
    queue = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
    numbers = (ctypes.c_int32 * items)()
    size = ctypes.sizeof(numbers)
    buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, size, numbers)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    opencl.ok("clSetKernelArg", kernel, 1, 4, ctypes.c_int32(most))
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [items], [64], 0, None, None)
    opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, size, numbers, 0, None, None)
    print(sum(numbers))


@pytest.fixture
def run(environment, ocl_icd):
    """run(sources, ...): the child's exit status, stdout and stderr."""

    def do(*sources, how="build", options=CL3, most=MOST, items=64, end="", **settings):
        given = [str(ocl_icd), how, sources, f"{options} -DEND={end}", most, items]
        script = (
            f"import json, sys\nsys.path[:0] = [{str(ROOT)!r}]\n"
            "from tests.loader.programs.test_assertions import host\nhost(*json.loads(sys.argv[1]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, json.dumps(given)],
            env=environment | settings,
            capture_output=True,
            text=True,
            timeout=120 * PATIENCE,
        )
        return done.returncode, done.stdout, EMULATOR.sub("", done.stderr)

    return do


FAILED = (-signal.SIGABRT, "before\n", MESSAGE)
SUM = 2016 + sum(i * (i - 1) // 2 for i in range(1, 64, 4))


@pytest.mark.parametrize("end", ["", "__builtin_unreachable();"])
@pytest.mark.parametrize("width", [1, 4, 8, 16])
def test_the_first_lane_that_fails(run, width, end):
    """Lanes leave the loop one by one; behind an assertion nothing follows, to some compilers."""
    assert run(SOURCE, end=end, CL_DRIVER_WIDTH=str(width)) == FAILED
    assert run(SOURCE, end=end, most=64, CL_DRIVER_WIDTH=str(width)) == (0, f"before\n{SUM}\n", "")


@pytest.mark.parametrize("options", [CL3 + " -cl-opt-disable", CL3 + " -g", "-cl-std=CLC++2021"])
def test_options(run, options):
    source = SOURCE
    if "++" in options:
        source = source.replace("extern void", 'extern "C" void').replace("generic", "__generic")
    assert run(source, options=options) == FAILED


@pytest.mark.parametrize("how", ["il", "binary", "link", "library", "binary link", "binary library"])
def test_ways_to_make_programs(run, how):
    assert run(SOURCE, how=how) == FAILED


def test_with_barriers_and_functions(run):
    function = "void check(int n, int most) { assert(n < most); }"
    kernel = """
kernel void k(global int *a, int most) {
    local int all[64];
    int i = get_local_id(0);
    all[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    printf(i == 12 ? "before\\n" : "");
    check(all[i ^ 1], most);
    a[get_global_id(0)] = all[63 - i];
}"""
    told = MESSAGE.replace("13", "12")  # which has the 13 of its neighbour
    assert run(IMPORT + ASSERT + function + kernel) == (-signal.SIGABRT, "before\n", told)


def test_one_message_of_many_threads(run):
    """All work-groups fail."""
    status, printed, told = run(
        SOURCE.replace("if (i % 4 == 1)", "").replace("i == 13", "0"), most=0, items=65536
    )
    assert (status, printed) == (-signal.SIGABRT, "")
    assert told.endswith("Assertion `n < most` failed.\n")
    assert told.count("\n") == told.count("Assertion") == 1


def test_null_strings(run):
    nothing = "(const generic char *)0"
    source = f"""{IMPORT} kernel void k(global int *a, int most) {{
        if (get_global_id(0) == 5) __devicelib_assert_fail({nothing}, {nothing}, -1, {nothing},
            1, 2, 18446744073709551615UL, 4, 5, 6); }}"""
    place = "(null):-1: (null): global id: [1,2,18446744073709551615], local id: [4,5,6]"
    assert run(source) == (-signal.SIGABRT, "", f"{place} Assertion `(null)` failed.\n")


def test_a_definition_of_the_program_wins(run):
    found = [run(OWN + ASSERT + KERNEL, items=64, most=60)]
    found += [run(SOURCE, OWN, how=how, most=60) for how in ("link", "library")]
    for status, text, errors in found:
        *printed, total = text.splitlines()  # by two work-items, 13 and 61, which have no order
        assert (status, sorted(printed), total, errors) == (0, ["before", "own"], str(SUM), "")


@pytest.mark.parametrize(
    "wrong",
    [
        (_IDS, "uint, ulong, ulong, ulong, ulong, ulong"),
        (", int,", ", long,"),
        ("generic char *, int", "global char *, int"),
        ("extern void", "extern int"),
        (_IDS, _IDS + ", ulong"),
    ],
)
def test_other_types_are_undefined(opencl, wrong):
    before, after = wrong
    source = SOURCE.replace(before, after, 1)
    if ", ulong" in after and len(after) > len(_IDS):
        source = source.replace("get_local_id(2))", "get_local_id(2), 0)")
    context = opencl.context()
    program = opencl.program(context, source)
    options = f"{CL3} -DEND="
    status = opencl.fails("clBuildProgram", program, 0, None, options, None, None)
    assert status == cl.CL_BUILD_PROGRAM_FAILURE
    assert "undefined function '__devicelib_assert_fail'" in opencl.build_log(program)
    opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)


def test_the_names_are_told(opencl):
    names = opencl.text("clGetDeviceInfo", opencl.device(), cl.CL_DEVICE_EXTENSIONS).split()
    assert {"cl_intel_devicelib_assert", "cl_intel_global_variable_access"} <= set(names)
