"""Programs of several parts: what is declared in one and defined in another (API specification, 5.8.7)."""

from __future__ import annotations

import ctypes

import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.frontend import opencl_c
from cl_driver.frontend import options as compiler_options
from tests.pure.spirv.assembler import PREAMBLE, TYPES, assemble

K = "kernel void k(global float *in, global float *out) { int i = (int)get_global_id(0);"
PAIR = "typedef struct { uchar c; uint i; } pair;"
HELPER = "inline float twice(float x) { return 2 * x; }"
# Definitions, what uses them, -cl-std, what k makes of each x.
CASES = {
    "kernel calls kernel": (
        "kernel void copy(global float *in, global float *out) {"
        " int i = (int)get_global_id(0); out[i] = in[i]; }",
        "extern kernel void copy(global float *in, global float *out);" + K + " copy(in, out); }",
        "CL1.2",
        lambda x: x,
    ),
    "extern structure": (
        PAIR + "pair v = { 7, 42 };",
        PAIR + "extern pair v;" + K + " out[i] = v.c * 100 + v.i; }",
        "CL3.0",
        lambda x: 742.0,
    ),
    "constants": (
        "constant float table[] = { 5, 6 }; constant float *constant place = table + 1; void unused(void) {}",
        "extern constant float table[2]; extern constant float *constant place;"
        + K
        + " out[i] = table[i & 1] + *place; }",
        "CL1.2",
        lambda x: 11 + int(x) % 2,
    ),
    "a variable's address in another's initial value": (
        "global float far = 3;",
        "extern global float far; global float *global place = &far;" + K + " out[i] = *place; }",
        "CL3.0",
        lambda x: 3,
    ),
    "structures by value": (
        PAIR + "pair change(pair p, uint by) { p.c++; p.i += by; return p; }",
        PAIR
        + "pair change(pair p, uint by);"
        + K
        + " pair p = { 1, i }; pair q = change(p, 2); out[i] = p.c + q.c * 10 + q.i * 100; }",
        "CL1.2",
        lambda x: 1 + 20 + (x + 2) * 100,
    ),
    "inline functions in both": (
        HELPER + "float more(float x) { return twice(x) + 1; }",
        HELPER + "float more(float x);" + K + " out[i] = more(in[i]) + twice(in[i]); }",
        "CL1.2",
        lambda x: 4 * x + 1,
    ),
    "pointers as results": (
        "global float *pick(global float *p, int i) { return p + i; }",
        "global float *pick(global float *p, int i);" + K + " *pick(out, i) = *pick(in, i) + 1; }",
        "CL1.2",
        lambda x: x + 1,
    ),
    "pointers to a structure that one side does not know": (
        "struct hidden { char c; float value; };"
        "void set(struct hidden *h, float x) { h->value = x; h->c = 1; }"
        "float get(struct hidden *h) { return h->value + h->c; }",
        "struct hidden; void set(struct hidden *h, float x); float get(struct hidden *h);"
        + K
        + " long room[2]; struct hidden *h = (struct hidden *)room; set(h, in[i]); out[i] = get(h); }",
        "CL1.2",
        lambda x: x + 1,
    ),
    "a barrier and local memory in a function": (
        "float turned(local float *l, float x) { int i = (int)get_local_id(0); l[i] = x;"
        " barrier(CLK_LOCAL_MEM_FENCE); return l[(int)get_local_size(0) - 1 - i]; }",
        "float turned(local float *l, float x);" + K + " local float l[64]; out[i] = turned(l, in[i]); }",
        "CL1.2",
        lambda x: 63 - x,
    ),
    "each calls the other": (
        "float back(float x); float there(float x) { return back(x) * 2; }",
        "float there(float x); float back(float x) { return x + 3; }" + K + " out[i] = there(in[i]); }",
        "CL1.2",
        lambda x: 2 * (x + 3),
    ),
}
SIMPLE = "pointers as results"
HOW = ["source", "IL", "binary", "library", "binary of a library"]


def spirv(source: str, standard: str = "CL1.2") -> bytes:
    """What an application's own compiler would make."""
    result = opencl_c.compile(source.encode(), compiler_options.parse(f"-cl-std={standard}"))
    assert result.spirv, result.log
    return result.spirv


class Linking:
    """Programs of one context; all are released at the end."""

    def __init__(self, opencl):
        self.cl, self.context, self.device = opencl, opencl.context(), opencl.device()
        self.programs: list[int] = []

    def keep(self, program: int) -> int:
        if program:
            self.programs.append(program)
        return program

    def source(self, text: str, options: str = "") -> int:
        """A compiled program."""
        return self.compiled(self.cl.program(self.context, text), options)

    def il(self, data: bytes, options: str = "") -> int:
        return self.compiled(self.cl.make("clCreateProgramWithIL", self.context, data, len(data)), options)

    def compiled(self, program: int, options: str) -> int:
        self.keep(program)
        status = self.cl.call("clCompileProgram", program, 0, None, options, 0, None, None, None, None)
        assert status == cl.CL_SUCCESS, self.cl.build_log(program)
        return program

    def reloaded(self, program: int) -> int:
        """The same program made of its binary."""
        size = self.cl.words("clGetProgramInfo", program, cl.CL_PROGRAM_BINARY_SIZES)[0]
        binary = ctypes.create_string_buffer(size)
        places = (ctypes.c_void_p * 1)(ctypes.addressof(binary))
        self.cl.ok("clGetProgramInfo", program, cl.CL_PROGRAM_BINARIES, 8, places, None)
        made = self.cl.make(
            "clCreateProgramWithBinary",
            *(self.context, 1, [self.device], (ctypes.c_int64 * 1)(size), places, None),
        )
        return self.keep(made)

    def part(self, how: str, text: str, standard: str) -> int:
        """A compiled program or library of a source."""
        options = f"-cl-std={standard}"
        if how == "IL":
            return self.il(spirv(text, standard))
        compiled = self.source(text, options)
        if how == "binary":
            return self.reloaded(compiled)
        if how.endswith("library"):
            library = self.link([compiled], "-create-library")
            return self.reloaded(library) if how.startswith("binary") else library
        return compiled

    def try_link(self, parts: list[int], options: str | None = None) -> tuple[int, int]:
        program, status = self.cl.call(
            "clLinkProgram", self.context, 0, None, options, len(parts), parts, None, None
        )
        return self.keep(program), status

    def link(self, parts: list[int], options: str | None = None) -> int:
        program, status = self.try_link(parts, options)
        assert status == cl.CL_SUCCESS, program and self.cl.build_log(program)
        return program

    def fails(self, *parts: int, options: str | None = None) -> str:
        """The log of a link that must fail."""
        program, status = self.try_link(list(parts), options)
        assert status == cl.CL_LINK_PROGRAM_FAILURE
        return self.cl.build_log(program)

    def run(self, program: int, count: int = 64, values=None) -> list[float]:
        """What k leaves in `out`, of 0, 1, 2... in `in`."""
        kernel = self.cl.make("clCreateKernel", program, b"k")
        queue = self.cl.make("clCreateCommandQueue", self.context, self.device, 0)
        numbers = (ctypes.c_float * count)(*(values or range(count)))
        size = ctypes.sizeof(numbers)
        buffers = [
            self.cl.make("clCreateBuffer", self.context, cl.CL_MEM_COPY_HOST_PTR, size, numbers)
            for _ in range(2)
        ]
        for index, buffer in enumerate(buffers):
            self.cl.ok("clSetKernelArg", kernel, index, 8, ctypes.c_void_p(buffer))
        self.cl.ok("clEnqueueNDRangeKernel", *(queue, kernel, 1, None, [count], [count], 0, None, None))
        self.cl.ok("clEnqueueReadBuffer", queue, buffers[1], 1, 0, size, numbers, 0, None, None)
        for buffer in buffers:
            self.cl.ok("clReleaseMemObject", buffer)
        self.cl.ok("clReleaseCommandQueue", queue)
        self.cl.ok("clReleaseKernel", kernel)
        return list(numbers)

    def kind(self, program: int) -> int:
        return self.cl.integer("clGetProgramBuildInfo", program, self.device, cl.CL_PROGRAM_BINARY_TYPE)

    def close(self) -> None:
        for program in self.programs:
            self.cl.ok("clReleaseProgram", program)
        self.cl.ok("clReleaseContext", self.context)


@pytest.fixture
def linking(opencl):
    made = Linking(opencl)
    yield made
    made.close()


def check(linking, case: str, ways: tuple[str, str], swap: bool = False) -> None:
    *sources, standard, expected = CASES[case]
    parts = [linking.part(how, text, standard) for how, text in zip(ways, sources, strict=True)]
    program = linking.link(parts[::-1] if swap else parts)
    assert linking.kind(program) == cl.CL_PROGRAM_BINARY_TYPE_EXECUTABLE
    assert linking.run(program) == [expected(x) for x in range(64)]


@pytest.mark.parametrize("ways", [("source", "source"), ("IL", "source"), ("source", "IL"), ("IL", "IL")])
@pytest.mark.parametrize("case", CASES)
def test_declared_here_defined_there(linking, case, ways):
    check(linking, case, ways, swap=ways[0] == "IL")


@pytest.mark.parametrize("options", ["", "-cl-opt-disable"])
@pytest.mark.parametrize("word", ["inline", "__inline", "extern inline", "static inline"])
def test_inline_functions_of_headers(linking, word, options):
    """Two programs have one each, which do not clash; an external one, to C99, is for both."""
    helper = HELPER.replace("inline", word)
    define = helper + "float more(float x) { return twice(x) + 1; }"
    here = "float twice(float x);" if word == "extern inline" else helper
    use = here + "float more(float x);" + K + " out[i] = more(in[i]) + twice(in[i]); }"
    program = linking.link([linking.source(text, options) for text in (define, use)])
    assert linking.run(program) == [4 * x + 1 for x in range(64)]


@pytest.mark.parametrize("first", HOW)
@pytest.mark.parametrize("second", HOW)
def test_any_mix_of_inputs(linking, first, second):
    check(linking, SIMPLE, (first, second))


def test_modules_of_different_versions_of_spirv(linking):
    """1.0 and 1.6: the version is the second word of a module."""
    for versions in ((0, 6), (6, 0)):
        parts = []
        for text, minor in zip(CASES["each calls the other"][:2], versions, strict=True):
            data = bytearray(spirv(text))
            data[4:8] = bytes([0, minor, 1, 0])
            parts.append(linking.il(bytes(data)))
        assert linking.run(linking.link(parts)) == [2 * (x + 3) for x in range(64)]


# What Khronos' translator makes of a kernel: the entry point calls a function that has the kernel's name.
TRANSLATED = (
    PREAMBLE
    + """
OpEntryPoint Kernel %entry "copy"
OpDecorate %copy LinkageAttributes "copy" Export
"""
    + TYPES
    + """
%fn = OpTypeFunction %void %gf32 %gf32
%ids = OpTypeVector %i64 3
%pids = OpTypePointer Input %ids
%id = OpVariable %pids Input
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %id Constant
%copy = OpFunction %void None %fn
%in = OpFunctionParameter %gf32
%out = OpFunctionParameter %gf32
%l = OpLabel
%all = OpLoad %ids %id
%i = OpCompositeExtract %i64 %all 0
%from = OpInBoundsPtrAccessChain %gf32 %in %i
%to = OpInBoundsPtrAccessChain %gf32 %out %i
%v = OpLoad %f32 %from
OpStore %to %v
OpReturn
OpFunctionEnd
%entry = OpFunction %void None %fn
%in2 = OpFunctionParameter %gf32
%out2 = OpFunctionParameter %gf32
%l2 = OpLabel
%r = OpFunctionCall %void %copy %in2 %out2
OpReturn
OpFunctionEnd
"""
)


def decorations_first(text: str) -> bytes:
    lines = text.splitlines()
    late = [line for line in lines if line.startswith("OpDecorate")]
    rest = [line for line in lines if not line.startswith("OpDecorate")]
    place = next(i for i, line in enumerate(rest) if "OpTypeVoid" in line)
    return assemble("\n".join([*rest[:place], *late, *rest[place:]]))


@pytest.mark.parametrize("exported", [True, False])
def test_kernels_that_call_kernels_of_other_compilers(linking, exported):
    """Each names the function in a kernel differently; without an export it is the entry point itself."""
    text = TRANSLATED
    if not exported:
        text = text.replace('OpDecorate %copy LinkageAttributes "copy" Export', "")
    there = linking.il(decorations_first(text))
    here = linking.source(CASES["kernel calls kernel"][1])
    assert linking.run(linking.link([here, there])) == list(range(64))
    own = linking.source(CASES["kernel calls kernel"][0])
    imported = (
        text.replace('Kernel %entry "copy"', 'Kernel %entry "k"')
        .replace("Export", "Import")
        .replace(text[text.index("%l = OpLabel") : text.index("%entry = OpFunction")], "OpFunctionEnd\n")
    )
    if exported:
        assert linking.run(linking.link([linking.il(decorations_first(imported)), own])) == list(range(64))


def test_what_is_missing_is_named(linking):
    user = linking.source("float f(float x); extern constant float c;" + K + " out[i] = f(in[i]) + c; }")
    log = linking.fails(user)
    assert "undefined function 'f'" in log and "undefined variable 'c'" in log
    caller = linking.source(CASES["kernel calls kernel"][1])
    assert "undefined function 'copy'" in linking.fails(caller)
    library = linking.link([user], "-create-library")  # it may still lack something
    assert "undefined function 'f'" in linking.fails(library)


def test_what_is_there_twice_is_named(linking):
    text = "float f(float x) { return x; } constant float c = 1;"
    user = "float f(float x); extern constant float c;" + K + " out[i] = f(in[i]) + c; }"
    parts = linking.source(user), linking.source(text), linking.il(spirv(text))
    for log in (linking.fails(*parts), linking.fails(*parts, options="-create-library")):
        assert "function 'f' is defined more than once" in log
        assert "variable 'c' is defined more than once" in log
    same = linking.source(K + "}"), linking.il(spirv(K + "}"))
    assert "kernel 'k' is defined more than once" in linking.fails(*same)


def test_what_does_not_fit_is_named(linking):
    user = linking.source("float f(float x); extern constant float c;" + K + " out[i] = f(in[i]) + c; }")
    other = linking.source("float f(int x) { return x; } constant int c = 1;", "")
    assert "undefined function" in linking.fails(
        user, linking.source("constant float c = 1; void g(void) {}")
    )
    log = linking.fails(user, other)
    assert "'f' has different types" in log and "'c' has different types" in log
    swapped = linking.source("constant float f = 1; float c(float x) { return x; }")
    log = linking.fails(user, swapped)
    assert "'f' is a function in one module and a variable in another" in log


def test_addressing_models_must_be_one(linking):
    module = PREAMBLE + TYPES
    wide, narrow = assemble(module), assemble(module.replace("Physical64", "Physical32"))
    assert "Physical32 and Physical64" in linking.fails(linking.il(wide), linking.il(narrow))
    # "Physical32 (for OpenCL devices reporting 32 for CL_DEVICE_ADDRESS_BITS)"
    assert "addresses of 64 bits" in linking.fails(linking.il(narrow))


def test_libraries(linking):
    """A library is a program that only links; libraries may be made of libraries."""
    f = linking.source("float g(float x); float f(float x) { return g(x) + 1; }")
    library = linking.link([f], "-create-library")
    assert linking.kind(library) == cl.CL_PROGRAM_BINARY_TYPE_LIBRARY
    assert linking.cl.fails("clCreateKernel", library, b"k") == cl.CL_INVALID_PROGRAM_EXECUTABLE
    both = linking.link([library, linking.source("float g(float x) { return 3 * x; }")], "-create-library")
    user = linking.source("float f(float x);" + K + " out[i] = f(in[i]); }")
    executable = linking.link([user, linking.reloaded(both)])
    assert linking.run(executable) == [3 * x + 1 for x in range(64)]
    # Executables are no inputs, and no input may be uncompiled.
    assert linking.try_link([executable, user])[1] == cl.CL_INVALID_OPERATION
    fresh = linking.keep(linking.cl.program(linking.context, K + "}"))
    assert linking.try_link([fresh])[1] == cl.CL_INVALID_OPERATION
    # "This option must be specified with the create-library option."
    assert linking.try_link([user], "-enable-link-options")[1] == cl.CL_INVALID_LINKER_OPTIONS
    assert linking.try_link([user], "-D A")[1] == cl.CL_INVALID_LINKER_OPTIONS


@pytest.mark.parametrize("reload", [False, True])
@pytest.mark.parametrize(
    "how, applied",
    [(None, True), ("-create-library", False), ("-create-library -enable-link-options", True)],
)
def test_link_options_change_libraries_only_if_they_allow_it(linking, how, applied, reload):
    """x == x is what a program that promises -cl-finite-math-only never asks of a NaN."""
    part = linking.source("float f(float x) { return x == x ? 1 : 0; }")
    if how:
        part = linking.link([part], how)
    if reload:
        part = linking.reloaded(part)
    user = linking.source("float f(float x);" + K + " out[i] = f(in[i]); }")
    nan = [float("nan")] * 4
    assert linking.run(linking.link([user, part]), 4, nan) == [0] * 4
    program = linking.link([user, part], "-cl-finite-math-only")
    assert linking.run(program, 4, nan) == [int(applied)] * 4


def test_compile_options_hold_for_what_was_compiled_with_them(linking):
    user = "float f(float x);" + K + " out[i] = f(in[i]); }"
    exact = linking.source("float f(float x) { return x == x ? 1 : 0; }")
    program = linking.link([exact, linking.source(user, "-cl-finite-math-only")])
    assert linking.run(program, 4, [float("nan")] * 4) == [0] * 4


def test_argument_information_survives_a_link(linking):
    parts = [linking.source(text, "-cl-kernel-arg-info") for text in CASES[SIMPLE][:2]]
    for program in (linking.link(parts), linking.link([linking.link(parts, "-create-library")])):
        kernel = linking.cl.make("clCreateKernel", program, b"k")
        assert linking.cl.text("clGetKernelArgInfo", kernel, 0, cl.CL_KERNEL_ARG_NAME) == "in"
        assert linking.cl.text("clGetKernelArgInfo", kernel, 1, cl.CL_KERNEL_ARG_TYPE_NAME) == "float*"
        linking.cl.ok("clReleaseKernel", kernel)


def test_specialised_parts(linking):
    """Each module of a link has constants of its own; compiled modules keep their defaults."""
    module = (
        PREAMBLE
        + 'OpDecorate %f LinkageAttributes "NAME" Export\nOpDecorate %s SpecId 1\n'
        + TYPES
        + "%s = OpSpecConstant %f32 VALUE\n%fn = OpTypeFunction %f32\n"
        + "%f = OpFunction %f32 None %fn\n%l = OpLabel\nOpReturnValue %s\nOpFunctionEnd\n"
    )
    f, g = (
        linking.il(assemble(module.replace("NAME", name).replace("VALUE", value)))
        for name, value in (("f", "2.5"), ("g", "4.0"))
    )
    user = linking.source("float f(void); float g(void);" + K + " out[i] = f() + 10 * g(); }")
    assert linking.run(linking.link([f, user, g]), 2) == [42.5] * 2


LARGE = "".join(
    f"uint f{n}(uint x) {{ {''.join(f'x = x * {i} + (x >> {i % 31});' for i in range(40))} return x; }}\n"
    for n in range(200)
)


def test_what_no_kernel_reaches_is_there_for_others(opencl):
    """Compiled when the object is linked with another, becomes a library, or its binary is asked for."""
    context, device = opencl.context(), opencl.device()
    library = opencl.program(context, LARGE + "kernel void k(global int *a) { a[0] = 5; }")
    user = opencl.program(context, "uint f7(uint); kernel void u(global uint *a) { a[0] = f7(3); }")
    for part in (library, user):
        opencl.ok("clCompileProgram", part, 0, None, None, 0, None, None, None, None)
    x = 3
    for i in range(40):
        x = (x * i + (x >> i % 31)) & 0xFFFFFFFF
    alone = opencl.make("clLinkProgram", context, 0, None, None, 1, [library], None, None)
    both = opencl.make("clLinkProgram", context, 0, None, None, 2, [user, library], None, None)
    made = opencl.make("clLinkProgram", context, 0, None, b"-create-library", 1, [library], None, None)
    of_library = opencl.make("clLinkProgram", context, 0, None, None, 2, [user, made], None, None)
    [size] = opencl.words("clGetProgramInfo", library, cl.CL_PROGRAM_BINARY_SIZES)
    data = ctypes.create_string_buffer(size)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(data))
    opencl.ok("clGetProgramInfo", library, cl.CL_PROGRAM_BINARIES, 8, pointers, None)
    status = ctypes.c_int32(1)
    loaded = opencl.make("clCreateProgramWithBinary", context, 1, [device], [size], [data.raw], status)
    of_binary = opencl.make("clLinkProgram", context, 0, None, None, 2, [user, loaded], None, None)
    queue = opencl.make("clCreateCommandQueueWithProperties", context, device, None)
    buffer = opencl.make("clCreateBuffer", context, 0, 64, None)
    for program, name, expected in (
        (alone, "k", 5),
        (both, "u", x),
        (of_library, "u", x),
        (of_binary, "u", x),
    ):
        kernel = opencl.make("clCreateKernel", program, name.encode())
        opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
        opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [1], None, 0, None, None)
        result = ctypes.c_uint32()
        opencl.ok("clEnqueueReadBuffer", queue, buffer, cl.CL_TRUE, 0, 4, result, 0, None, None)
        assert result.value == expected, name
        opencl.ok("clReleaseKernel", kernel)
    for program in (library, user, alone, both, made, of_library, loaded, of_binary):
        opencl.ok("clReleaseProgram", program)
    for kind, handle in (("MemObject", buffer), ("CommandQueue", queue), ("Context", context)):
        opencl.ok(f"clRelease{kind}", handle)
