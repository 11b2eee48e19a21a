"""Error codes and answers of programs: creation, build, compile, link, binaries (API specification, 5.8)."""

import ctypes
import threading

import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.opencl import Notify

SOURCE = "kernel void k(global int *a, int b) { a[get_global_id(0)] = b; }\nkernel void second(void) {}\n"
BROKEN = "kernel void k(global int *a) { a[0] = undeclared_name; }\n"
HALVES = (
    "int twice(int);\nkernel void k(global int *a) { a[0] = twice(a[0]); }\n",
    "int twice(int x) { return 2 * x; }\n",
)


@pytest.fixture(scope="module")
def context(opencl):
    made = opencl.context()
    yield made
    opencl.ok("clReleaseContext", made)


@pytest.fixture
def program(opencl, context):
    made = opencl.program(context, SOURCE)
    yield made
    opencl.ok("clReleaseProgram", made)


@pytest.fixture(scope="module")
def built(opencl, context):
    made = opencl.program(context, SOURCE)
    opencl.build(made, "-cl-kernel-arg-info")
    yield made
    opencl.ok("clReleaseProgram", made)


def build_info(opencl, program, name, device=None):
    query = opencl.text if name in ("OPTIONS", "LOG") else opencl.integer
    name = "CL_PROGRAM_BINARY_TYPE" if name == "TYPE" else f"CL_PROGRAM_BUILD_{name}"
    return query("clGetProgramBuildInfo", program, device or opencl.device(), getattr(cl, name))


def binary_of(opencl, program):
    [size] = opencl.words("clGetProgramInfo", program, cl.CL_PROGRAM_BINARY_SIZES)
    data = ctypes.create_string_buffer(size)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(data))
    opencl.ok("clGetProgramInfo", program, cl.CL_PROGRAM_BINARIES, 8, pointers, None)
    return data.raw


def load(opencl, context, binary):
    """(program or 0, status, binary status)."""
    status = ctypes.c_int32(1)
    made = opencl.call(
        "clCreateProgramWithBinary", context, 1, [opencl.device()], [len(binary)], [binary], status
    )
    return *made, status.value


def compile_ok(opencl, program, options=None):
    status = opencl.call("clCompileProgram", program, 0, None, options, 0, None, None, None, None)
    assert status == cl.CL_SUCCESS, opencl.build_log(program)


def test_create_with_source_errors(opencl, context, program):
    name = "clCreateProgramWithSource"
    assert opencl.fails(name, program, 1, [b""], None) == cl.CL_INVALID_CONTEXT
    assert opencl.fails(name, context, 0, [b""], None) == cl.CL_INVALID_VALUE
    assert opencl.fails(name, context, 1, None, None) == cl.CL_INVALID_VALUE
    assert opencl.fails(name, context, 2, [b"a", None], None) == cl.CL_INVALID_VALUE


def test_source_is_what_was_given(opencl, context):
    made = opencl.make(
        "clCreateProgramWithSource", context, 3, [b"one ", b"two, too long", b"three"], [0, 4, 0]
    )
    assert opencl.text("clGetProgramInfo", made, cl.CL_PROGRAM_SOURCE) == "one two,three"
    assert opencl.info("clGetProgramInfo", made, cl.CL_PROGRAM_IL) == b""
    opencl.ok("clReleaseProgram", made)


def test_queries_before_and_after_a_build(opencl, context, program):
    device = opencl.device()
    assert opencl.integer("clGetProgramInfo", program, cl.CL_PROGRAM_CONTEXT) == context
    assert opencl.integer("clGetProgramInfo", program, cl.CL_PROGRAM_NUM_DEVICES) == 1
    assert opencl.words("clGetProgramInfo", program, cl.CL_PROGRAM_DEVICES) == [device]
    assert opencl.words("clGetProgramInfo", program, cl.CL_PROGRAM_BINARY_SIZES) == [0]
    assert opencl.integer("clGetProgramInfo", program, cl.CL_PROGRAM_REFERENCE_COUNT) == 1
    assert build_info(opencl, program, "STATUS") == cl.CL_BUILD_NONE & 0xFFFFFFFF
    assert build_info(opencl, program, "OPTIONS") == build_info(opencl, program, "LOG") == ""
    assert build_info(opencl, program, "TYPE") == cl.CL_PROGRAM_BINARY_TYPE_NONE
    for param_name in (
        cl.CL_PROGRAM_NUM_KERNELS,
        cl.CL_PROGRAM_KERNEL_NAMES,
        cl.CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT,
        cl.CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT,
    ):
        assert opencl.fails("clGetProgramInfo", program, param_name, 0, None, None) == (
            cl.CL_INVALID_PROGRAM_EXECUTABLE
        )
    opencl.build(program, "-DX=1")
    assert opencl.text("clGetProgramInfo", program, cl.CL_PROGRAM_KERNEL_NAMES).split(";") == ["k", "second"]
    assert opencl.integer("clGetProgramInfo", program, cl.CL_PROGRAM_NUM_KERNELS) == 2
    assert (
        opencl.integer("clGetProgramInfo", program, cl.CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT) == cl.CL_FALSE
    )
    assert build_info(opencl, program, "STATUS") == cl.CL_BUILD_SUCCESS
    assert build_info(opencl, program, "OPTIONS") == "-DX=1"
    assert build_info(opencl, program, "TYPE") == cl.CL_PROGRAM_BINARY_TYPE_EXECUTABLE
    assert build_info(opencl, program, "GLOBAL_VARIABLE_TOTAL_SIZE") == 0


def test_query_errors(opencl, context, program):
    device = opencl.device()
    info, build = "clGetProgramInfo", "clGetProgramBuildInfo"
    assert opencl.fails(info, context, cl.CL_PROGRAM_SOURCE, 0, None, None) == cl.CL_INVALID_PROGRAM
    assert opencl.fails(info, program, 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
    assert opencl.fails(info, program, cl.CL_PROGRAM_BINARIES, 7, [0], None) == cl.CL_INVALID_VALUE
    assert (
        opencl.fails(build, context, device, cl.CL_PROGRAM_BUILD_LOG, 0, None, None) == cl.CL_INVALID_PROGRAM
    )
    assert (
        opencl.fails(build, program, context, cl.CL_PROGRAM_BUILD_LOG, 0, None, None) == cl.CL_INVALID_DEVICE
    )
    assert opencl.fails(build, program, device, 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
    assert opencl.fails("clRetainProgram", context) == cl.CL_INVALID_PROGRAM
    assert opencl.fails("clReleaseProgram", context) == cl.CL_INVALID_PROGRAM


def test_a_broken_program_fails_with_a_log(opencl, context):
    made = opencl.program(context, BROKEN)
    assert opencl.fails("clBuildProgram", made, 0, None, None, None, None) == cl.CL_BUILD_PROGRAM_FAILURE
    assert build_info(opencl, made, "STATUS") == cl.CL_BUILD_ERROR & 0xFFFFFFFF
    assert "undeclared_name" in build_info(opencl, made, "LOG")
    assert opencl.fails("clCreateKernel", made, b"k") == cl.CL_INVALID_PROGRAM_EXECUTABLE
    assert opencl.fails("clCompileProgram", made, 0, None, None, 0, None, None, None, None) == (
        cl.CL_COMPILE_PROGRAM_FAILURE
    )
    assert "undeclared_name" in build_info(opencl, made, "LOG")
    opencl.ok("clReleaseProgram", made)


def test_what_is_undefined_is_told_with_its_line(opencl, context):
    text = "int twice(int);\n\nint more(int x) {\n  return 1 + twice(x);\n}\n"
    source = f"{text}kernel void k(global int *a) {{ a[0] = more(a[0]); }}\n"
    for options in (None, "-g", "-cl-opt-disable"):
        broken = opencl.program(context, source)
        assert opencl.fails("clBuildProgram", broken, 0, None, options, None, None)
        (line,) = build_info(opencl, broken, "LOG").splitlines()
        assert line.startswith("link: undefined function 'twice', which '")
        assert line.endswith("' uses at program.cl:4")
        opencl.ok("clReleaseProgram", broken)


@pytest.mark.parametrize(
    "source, options, is_told",
    [
        ("kernel void k(global atomic_int *a) { atomic_fetch_add(a, 1); }", None, True),
        ("global int g = 3; kernel void k(global int *a) { *a = g; }", "-cl-mad-enable", True),
        ("global int g = 3; kernel void k(global int *a) { *a = g; }", "-cl-std=CL1.2", False),
        ("kernel void k(global int *a) { *a = undeclared; }", None, False),
    ],
)
def test_programs_of_later_versions_are_told_which_option_they_need(
    opencl, context, source, options, is_told
):
    broken = opencl.program(context, source)
    assert opencl.fails("clBuildProgram", broken, 0, None, options, None, None)
    log = build_info(opencl, broken, "LOG")
    assert log.startswith("program.cl:1:") and ("-cl-std=CL3.0" in log) == is_told
    if is_told:
        opencl.build(broken, "-cl-std=CL3.0")
    opencl.ok("clReleaseProgram", broken)


def test_integers_that_are_too_wide_fail_with_a_log(opencl, context):
    made = opencl.program(
        context, "kernel void k(global ulong *a) { unsigned _BitInt(2000) b = *a; *a = b; }"
    )
    assert opencl.fails("clBuildProgram", made, 0, None, None, None, None) == cl.CL_BUILD_PROGRAM_FAILURE
    assert "_BitInt of bit sizes" in (log := build_info(opencl, made, "LOG")), log
    opencl.ok("clReleaseProgram", made)


@pytest.mark.parametrize(
    "options", ["-cl-no-such-option", "-D", "-I", "-cl-std=CL9.9", "surplus", "-x", '"open']
)
def test_options_that_are_not_valid(opencl, program, options):
    assert (
        opencl.fails("clBuildProgram", program, 0, None, options, None, None) == cl.CL_INVALID_BUILD_OPTIONS
    )
    assert opencl.fails("clCompileProgram", program, 0, None, options, 0, None, None, None, None) == (
        cl.CL_INVALID_COMPILER_OPTIONS
    )
    # Such a call changes nothing.
    assert build_info(opencl, program, "STATUS") == cl.CL_BUILD_NONE & 0xFFFFFFFF


def test_every_standard_option_builds(opencl, program):
    opencl.build(
        program,
        "-D A -DB=2 -D C='3' -I /tmp -cl-single-precision-constant -cl-denorms-are-zero "
        "-cl-fp32-correctly-rounded-divide-sqrt -cl-opt-disable -cl-strict-aliasing "
        "-cl-uniform-work-group-size -cl-no-subgroup-ifp -cl-mad-enable -cl-no-signed-zeros "
        "-cl-unsafe-math-optimizations -cl-finite-math-only -cl-fast-relaxed-math -w -Werror "
        "-cl-std=CL3.0 -cl-kernel-arg-info -g",
    )


def test_build_errors(opencl, context, program, built):
    device, data = opencl.device(), ctypes.c_int()
    sub_devices = opencl.sub_devices(device, cl.CL_DEVICE_PARTITION_EQUALLY, 1)

    def fails(handle=program, count=0, devices=None, user_data=None):
        return opencl.fails("clBuildProgram", handle, count, devices, None, None, user_data)

    assert fails(handle=context) == cl.CL_INVALID_PROGRAM
    assert fails(count=1) == cl.CL_INVALID_VALUE
    assert fails(devices=[device]) == cl.CL_INVALID_VALUE
    assert fails(user_data=data) == cl.CL_INVALID_VALUE
    assert fails(count=1, devices=[context]) == cl.CL_INVALID_DEVICE
    assert fails(count=1, devices=sub_devices[:1]) == cl.CL_INVALID_DEVICE
    # "CL_INVALID_OPERATION if there are kernel objects attached to program."
    kernel = opencl.make("clCreateKernel", built, b"k")
    assert fails(handle=built) == cl.CL_INVALID_OPERATION
    assert opencl.fails("clCompileProgram", built, 0, None, None, 0, None, None, None, None) == (
        cl.CL_INVALID_OPERATION
    )
    opencl.ok("clReleaseKernel", kernel)
    opencl.build(built, "-cl-kernel-arg-info")
    for part in sub_devices:
        opencl.ok("clReleaseDevice", part)


def test_a_build_in_the_background(opencl, context):
    made, done, seen = opencl.program(context, SOURCE + "// in the background\n"), threading.Event(), []

    def finished(handle, data):
        seen.append((handle, data, build_info(opencl, handle, "STATUS")))
        done.set()

    notify = Notify(finished)
    opencl.ok("clBuildProgram", made, 0, None, None, notify, 7)
    assert done.wait(60)
    assert seen == [(made, 7, cl.CL_BUILD_SUCCESS)]
    opencl.ok("clReleaseKernel", opencl.make("clCreateKernel", made, b"k"))
    opencl.ok("clReleaseProgram", made)


def test_one_build_at_a_time(opencl, context):
    text = SOURCE + "".join(
        f"kernel void more{i}(global float *a) {{ a[0] = sin(a[{i}]); }}\n" for i in range(20)
    )
    made, done = opencl.program(context, text + f"// {id(object())}\n"), threading.Event()
    notify = Notify(lambda handle, data: done.set())
    opencl.ok("clBuildProgram", made, 0, None, None, notify, None)
    status = build_info(opencl, made, "STATUS")
    second = opencl.call("clBuildProgram", made, 0, None, None, None, None)
    assert done.wait(60)
    if status == cl.CL_BUILD_IN_PROGRESS & 0xFFFFFFFF and second != cl.CL_SUCCESS:
        assert second == cl.CL_INVALID_OPERATION
    assert build_info(opencl, made, "STATUS") == cl.CL_BUILD_SUCCESS
    opencl.ok("clReleaseProgram", made)


def test_compile_and_link(opencl, context):
    parts = [opencl.program(context, half) for half in HALVES]
    for part in parts:
        compile_ok(opencl, part, "-DX")
        assert build_info(opencl, part, "TYPE") == cl.CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT
        assert build_info(opencl, part, "OPTIONS") == "-DX"
    assert opencl.fails("clCreateKernel", parts[0], b"k") == cl.CL_INVALID_PROGRAM_EXECUTABLE
    # A compiled object goes through its binary as well.
    loaded, status, one = load(opencl, context, binary_of(opencl, parts[1]))
    assert (status, one) == (cl.CL_SUCCESS, cl.CL_SUCCESS)
    assert build_info(opencl, loaded, "TYPE") == cl.CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT
    for second in (parts[1], loaded):
        linked = opencl.make(
            "clLinkProgram", context, 0, None, "-cl-mad-enable", 2, [parts[0], second], None, None
        )
        assert build_info(opencl, linked, "TYPE") == cl.CL_PROGRAM_BINARY_TYPE_EXECUTABLE
        opencl.ok("clReleaseKernel", opencl.make("clCreateKernel", linked, b"k"))
        # What clLinkProgram made cannot be built again.
        assert opencl.fails("clBuildProgram", linked, 0, None, None, None, None) == cl.CL_INVALID_OPERATION
        opencl.ok("clReleaseProgram", linked)
    # "the program binary must be an executable binary (not a compiled binary or library)."
    assert opencl.fails("clBuildProgram", loaded, 0, None, None, None, None) == cl.CL_INVALID_BINARY
    for made in (*parts, loaded):
        opencl.ok("clReleaseProgram", made)


def test_libraries(opencl, context):
    main, library = (opencl.program(context, half) for half in HALVES)
    compile_ok(opencl, main)
    compile_ok(opencl, library)
    options = "-create-library -enable-link-options"
    made = opencl.make("clLinkProgram", context, 0, None, options, 1, [library], None, None)
    assert build_info(opencl, made, "TYPE") == cl.CL_PROGRAM_BINARY_TYPE_LIBRARY
    assert build_info(opencl, made, "OPTIONS") == options
    again, status, _ = load(opencl, context, binary_of(opencl, made))
    assert status == cl.CL_SUCCESS and build_info(opencl, again, "TYPE") == cl.CL_PROGRAM_BINARY_TYPE_LIBRARY
    linked = opencl.make("clLinkProgram", context, 0, None, None, 2, [main, again], None, None)
    opencl.ok("clReleaseKernel", opencl.make("clCreateKernel", linked, b"k"))
    for handle in (main, library, made, again, linked):
        opencl.ok("clReleaseProgram", handle)


def test_a_link_that_fails_gives_a_program_with_a_log(opencl, context):
    half = opencl.program(context, HALVES[0])
    compile_ok(opencl, half)
    made, status = opencl.call("clLinkProgram", context, 0, None, None, 1, [half], None, None)
    assert status == cl.CL_LINK_PROGRAM_FAILURE and made
    assert build_info(opencl, made, "STATUS") == cl.CL_BUILD_ERROR & 0xFFFFFFFF
    assert "twice" in build_info(opencl, made, "LOG")
    for handle in (half, made):
        opencl.ok("clReleaseProgram", handle)


def test_link_errors(opencl, context, program):
    compiled = opencl.program(context, HALVES[1])
    compile_ok(opencl, compiled)
    data, device = ctypes.c_int(), opencl.device()

    def fails(
        handle=context, count=0, devices=None, options=None, inputs=(compiled,), user_data=None, number=None
    ):
        number = len(inputs or ()) if number is None else number
        inputs = list(inputs) if inputs else None
        return opencl.fails("clLinkProgram", handle, count, devices, options, number, inputs, None, user_data)

    assert fails(handle=program) == cl.CL_INVALID_CONTEXT
    assert fails(count=1) == cl.CL_INVALID_VALUE
    assert fails(devices=[device]) == cl.CL_INVALID_VALUE
    assert fails(inputs=None) == cl.CL_INVALID_VALUE
    assert fails(number=0) == cl.CL_INVALID_VALUE
    assert fails(inputs=None, number=1) == cl.CL_INVALID_VALUE
    assert fails(inputs=[context]) == cl.CL_INVALID_PROGRAM
    assert fails(user_data=data) == cl.CL_INVALID_VALUE
    assert fails(count=1, devices=[context]) == cl.CL_INVALID_DEVICE
    assert fails(options="-cl-no-such-option") == cl.CL_INVALID_LINKER_OPTIONS
    assert fails(options="-enable-link-options") == cl.CL_INVALID_LINKER_OPTIONS
    assert fails(inputs=[program]) == cl.CL_INVALID_OPERATION  # it is not compiled
    assert fails(inputs=[compiled, program]) == cl.CL_INVALID_OPERATION
    other = opencl.context()
    assert fails(handle=other) == cl.CL_INVALID_CONTEXT  # its programs are another's
    opencl.ok("clReleaseContext", other)
    opencl.ok("clReleaseProgram", compiled)


def test_headers_from_programs(opencl, context):
    main = opencl.program(
        context,
        '#include "dir/first.h"\n#include <second.h>\nkernel void k(global int *a) { *a = ONE + TWO; }\n',
    )
    first, second, ignored = (
        opencl.program(context, f"#define {t}\n") for t in ("ONE 1", "TWO 2", "ONE 9 9")
    )
    names = [b"dir/first.h", b"second.h", b"dir/first.h"]
    headers = [first, second, ignored]
    opencl.ok("clCompileProgram", main, 0, None, None, 3, headers, names, None, None)
    linked = opencl.make("clLinkProgram", context, 0, None, None, 1, [main], None, None)

    def fails(number, headers, names):
        return opencl.fails("clCompileProgram", main, 0, None, None, number, headers, names, None, None)

    assert fails(0, headers, None) == cl.CL_INVALID_VALUE
    assert fails(0, None, names) == cl.CL_INVALID_VALUE
    assert fails(1, headers, None) == cl.CL_INVALID_VALUE
    assert fails(1, None, names) == cl.CL_INVALID_VALUE
    assert fails(1, [context], names) == cl.CL_INVALID_PROGRAM
    other = opencl.context()
    stranger = opencl.program(other, "#define ONE 1\n")
    assert fails(2, [second, stranger], names[1::-1]) == cl.CL_INVALID_CONTEXT
    opencl.ok("clReleaseProgram", stranger)
    opencl.ok("clReleaseContext", other)
    assert fails(0, None, None) == cl.CL_COMPILE_PROGRAM_FAILURE  # the headers are gone
    for handle in (main, first, second, ignored, linked):
        opencl.ok("clReleaseProgram", handle)


def test_compile_errors(opencl, context, program):
    def fails(handle=program, count=0, devices=None, user_data=None):
        return opencl.fails("clCompileProgram", handle, count, devices, None, 0, None, None, None, user_data)

    assert fails(handle=context) == cl.CL_INVALID_PROGRAM
    assert fails(count=1) == cl.CL_INVALID_VALUE
    assert fails(devices=[opencl.device()]) == cl.CL_INVALID_VALUE
    assert fails(user_data=ctypes.c_int()) == cl.CL_INVALID_VALUE
    assert fails(count=1, devices=[context]) == cl.CL_INVALID_DEVICE


def test_binaries_can_be_loaded(opencl, context, built):
    binary = binary_of(opencl, built)
    made, status, one = load(opencl, context, binary)
    assert (status, one) == (cl.CL_SUCCESS, cl.CL_SUCCESS)
    assert build_info(opencl, made, "TYPE") == cl.CL_PROGRAM_BINARY_TYPE_EXECUTABLE
    assert build_info(opencl, made, "STATUS") == cl.CL_BUILD_NONE & 0xFFFFFFFF
    # "a null string or the appropriate program source code is returned".
    assert opencl.text("clGetProgramInfo", made, cl.CL_PROGRAM_SOURCE) == ""
    assert binary_of(opencl, made) == binary
    # Not built, but an executable all the same: programs in the wild take it for one.
    opencl.ok("clReleaseKernel", opencl.make("clCreateKernel", made, b"k"))
    opencl.build(made)
    # "the program will be built as if options were the same as when the program binary was originally built."
    assert build_info(opencl, made, "OPTIONS") == "-cl-kernel-arg-info"
    opencl.ok("clReleaseKernel", opencl.make("clCreateKernel", made, b"second"))
    # There is no source to compile.
    assert opencl.fails("clCompileProgram", made, 0, None, None, 0, None, None, None, None) == (
        cl.CL_INVALID_OPERATION
    )
    opencl.ok("clReleaseProgram", made)


def test_create_with_binary_errors(opencl, context, built):
    binary, device = binary_of(opencl, built), opencl.device()
    status, whole = ctypes.c_int32(1), (len(binary),)

    def fails(handle=context, count=1, devices=(device,), lengths=whole, data=(binary,)):
        lists = [list(part) if part else None for part in (devices, lengths, data)]
        return opencl.fails("clCreateProgramWithBinary", handle, count, *lists, status)

    assert fails(handle=built) == cl.CL_INVALID_CONTEXT
    assert fails(count=0) == cl.CL_INVALID_VALUE
    assert fails(devices=None) == cl.CL_INVALID_VALUE
    assert fails(lengths=None) == cl.CL_INVALID_VALUE
    assert fails(data=None) == cl.CL_INVALID_VALUE
    assert fails(devices=[context]) == cl.CL_INVALID_DEVICE
    assert fails(lengths=[0]) == cl.CL_INVALID_VALUE and status.value == cl.CL_INVALID_VALUE
    for damaged in (binary[:-1], b"\0" * 100, binary[:40] + bytes([binary[40] ^ 1]) + binary[41:], b"x"):
        assert fails(lengths=[len(damaged)], data=[damaged]) == cl.CL_INVALID_BINARY
        assert status.value == cl.CL_INVALID_BINARY


def test_built_in_kernels(opencl, context, program):
    device, name = opencl.device(), "clCreateProgramWithBuiltInKernels"
    assert opencl.fails(name, program, 1, [device], b"any") == cl.CL_INVALID_CONTEXT
    assert opencl.fails(name, context, 0, [device], b"any") == cl.CL_INVALID_VALUE
    assert opencl.fails(name, context, 1, None, b"any") == cl.CL_INVALID_VALUE
    assert opencl.fails(name, context, 1, [context], b"any") == cl.CL_INVALID_DEVICE
    assert opencl.fails(name, context, 1, [device], None) == cl.CL_INVALID_VALUE
    assert opencl.fails(name, context, 1, [device], b"any;other") == cl.CL_INVALID_VALUE


def test_release_callbacks_need_destructors(opencl, context, program):
    notify = Notify(lambda handle, data: None)
    assert opencl.fails("clSetProgramReleaseCallback", context, notify, None) == cl.CL_INVALID_PROGRAM
    assert opencl.fails("clSetProgramReleaseCallback", program, None, None) == cl.CL_INVALID_VALUE
    assert opencl.fails("clSetProgramReleaseCallback", program, notify, None) == cl.CL_INVALID_OPERATION


def test_unloading_the_compiler(opencl, context, program):
    opencl.ok("clUnloadPlatformCompiler", opencl.platform())
    opencl.ok("clUnloadCompiler")
    assert opencl.fails("clUnloadPlatformCompiler", context) == cl.CL_INVALID_PLATFORM
    opencl.build(program)


def test_specialization_constants_need_il(opencl, context, program):
    name, value = "clSetProgramSpecializationConstant", ctypes.c_int(1)
    assert opencl.fails(name, context, 0, 4, value) == cl.CL_INVALID_PROGRAM
    assert opencl.fails(name, program, 0, 4, value) == cl.CL_INVALID_PROGRAM


def test_sub_devices_build_for_themselves(opencl):
    parts = opencl.sub_devices(opencl.device(), cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    if len(parts) < 2:
        pytest.skip("one compute unit cannot be divided")
    context = opencl.context(*parts)
    made = opencl.program(context, SOURCE)
    opencl.ok("clBuildProgram", made, 1, [parts[1]], "-DONLY=1", None, None)
    assert build_info(opencl, made, "STATUS", parts[0]) == cl.CL_BUILD_NONE & 0xFFFFFFFF
    assert build_info(opencl, made, "STATUS", parts[1]) == cl.CL_BUILD_SUCCESS
    sizes = opencl.words("clGetProgramInfo", made, cl.CL_PROGRAM_BINARY_SIZES)
    assert sizes[0] == 0 and sizes[1] > 0 and len(sizes) == len(parts)
    opencl.ok("clReleaseProgram", made)
    opencl.ok("clReleaseContext", context)
    for part in parts:
        opencl.ok("clReleaseDevice", part)


RECURSION = """
int f(int n, global int *o);
int h(int n, global int *o) { return n <= 0 ? o[2] : f(n - 2, o) * 3 + o[n & 7]; }
int g(int n, global int *o) { return n <= 0 ? o[1] : h(n - 1, o) * o[n & 3]; }
int f(int n, global int *o) { return n <= 0 ? o[3] : g(n - 1, o) + o[n & 3]; }
kernel void fine(global int *o) { o[0] = 1; }
kernel void k(global int *o) { o[0] = f(o[1], o); }
"""


@pytest.mark.parametrize("options", ["", "-cl-opt-disable"])
def test_recursion_fails_the_build_and_the_log_names_it(opencl, options):
    context = opencl.context()
    program = opencl.program(context, RECURSION)
    assert opencl.call("clBuildProgram", program, 0, None, options, None, None) == cl.CL_BUILD_PROGRAM_FAILURE
    log = opencl.build_log(program)
    assert "recursion in kernel 'k': '" in log and "' calls '" in log
    opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)


LOCAL = """
kernel void f(global int *o, int n) { local int much[COUNT]; much[get_local_id(0)] = n;
    barrier(CLK_LOCAL_MEM_FENCE); o[n] = much[n & 7]; }
kernel void k(global int *o) { local int little[4]; little[get_local_id(0) & 3] = o[1];
    barrier(CLK_LOCAL_MEM_FENCE); f(o, little[o[2] & 3]); }
"""


@pytest.mark.parametrize("options", ["", "-cl-opt-disable"])
def test_more_local_memory_than_there_is_fails_the_build(opencl, options):
    """Those of kernels that a kernel calls are its own, too."""
    context, device = opencl.context(), opencl.device()
    size = opencl.integer("clGetDeviceInfo", device, cl.CL_DEVICE_LOCAL_MEM_SIZE)
    for count in (size // 4 - 4, size // 4, 1 << 28):
        program = opencl.program(context, LOCAL.replace("COUNT", str(count)))
        status = opencl.call("clBuildProgram", program, 0, None, options, None, None)
        if 4 * count + 16 <= size:
            assert status == cl.CL_SUCCESS, opencl.build_log(program)
        else:
            log = opencl.build_log(program)
            assert status == cl.CL_BUILD_PROGRAM_FAILURE, count
            assert "kernel '" in log and f"of which the device has {size}" in log
            assert f"much' of {4 * count} bytes in '" in log
        opencl.ok("clReleaseProgram", program)
    opencl.ok("clReleaseContext", context)
