"""What modules of other compilers than clang contain: hints and intrinsics of DPC++."""

from __future__ import annotations

import ctypes
import struct

import pytest

from cl_driver.api.generated import enums as cl
from tests.pure.spirv.assembler import PREAMBLE, TYPES, assemble

# kernel void k(global int *p), with the body between.
HEAD = """
OpEntryPoint Kernel %k "k"
DECORATIONS
"""
KERNEL = """
%k = OpFunction %void None %fn_gi32
%p = OpFunctionParameter %gi32
%entry = OpLabel
%second = OpInBoundsPtrAccessChain %gi32 %p %c1
"""
END = "OpReturn\nOpFunctionEnd\n"


def module(body: str, preamble: str = "", decorations: str = "", declarations: str = "", functions: str = ""):
    lines = PREAMBLE.replace("OpCapability Float16\n", "").strip().splitlines()
    place = next(i for i, line in enumerate(lines) if "ExtInstImport" in line)
    head = "\n".join([*lines[:place], preamble, *lines[place:]])
    types = TYPES + declarations + functions
    return assemble(head + HEAD.replace("DECORATIONS", decorations) + types + KERNEL + body + END)


@pytest.fixture(scope="module")
def context(opencl):
    made = opencl.context()
    yield made
    opencl.ok("clReleaseContext", made)


@pytest.fixture
def run(opencl, context):
    """run(module, numbers): what kernel k makes of them in place, with one work-item."""

    def do(data: bytes, numbers: list[int]) -> list[int]:
        program = opencl.make("clCreateProgramWithIL", context, data, len(data))
        opencl.build(program)
        kernel = opencl.make("clCreateKernel", program, b"k")
        queue = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
        array = (ctypes.c_uint32 * len(numbers))(*numbers)
        size = ctypes.sizeof(array)
        buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, size, array)
        opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
        opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [1], None, 0, None, None)
        opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, size, array, 0, None, None)
        for handle, release in (
            (buffer, "clReleaseMemObject"),
            (queue, "clReleaseCommandQueue"),
            (kernel, "clReleaseKernel"),
            (program, "clReleaseProgram"),
        ):
            opencl.ok(release, handle)
        return list(array)

    return do


def test_alias_scopes(run):
    """SPV_INTEL_memory_access_aliasing: declarations, memory operands and decorations."""
    data = module(
        """
%a = OpLoad %i32 %p Aligned|AliasScopeINTELMask 4 %list
%b = OpLoad %i32 %second Aligned|NoAliasINTELMask 4 %list
%s = OpIAdd %i32 %a %b
OpStore %second %s Aligned|AliasScopeINTELMask|NoAliasINTELMask 4 %list %list
""",
        'OpCapability MemoryAccessAliasingINTEL\nOpExtension "SPV_INTEL_memory_access_aliasing"',
        "OpDecorateId %s AliasScopeINTEL %list",
        "%domain = OpAliasDomainDeclINTEL\n%scope = OpAliasScopeDeclINTEL %domain\n"
        "%list = OpAliasScopeListDeclINTEL %scope\n",
    )
    assert run(data, [30, 12]) == [30, 42]


def test_contraction_of_single_operations(run):
    """SPV_INTEL_fp_fast_math_mode: AllowContractFastINTEL, so x·x - 1 may lose its first rounding."""
    data = module(
        """
%fp = OpBitcast %gf32 %p
%x = OpLoad %f32 %fp
%square = OpFMul %f32 %x %x
%r = OpFAdd %f32 %square %minus
OpStore %fp %r
""",
        'OpCapability FPFastMathModeINTEL\nOpExtension "SPV_INTEL_fp_fast_math_mode"',
        "OpDecorate %square FPFastMathMode AllowContractFastINTEL|AllowReassocINTEL\n"
        "OpDecorate %r FPFastMathMode AllowContractFastINTEL|AllowReassocINTEL",
        "%minus = OpConstant %f32 -1.0\n",
    )
    bits = struct.unpack("<I", struct.pack("<f", 1.5))[0]
    assert struct.unpack("<f", struct.pack("<I", run(data, [bits])[0]))[0] == 1.25


@pytest.mark.parametrize(
    "name, width, a, b, expected",
    [
        ("usub", 32, 3, 5, 0),
        ("uadd", 32, 0xFFFFFFF0, 0x20, 0xFFFFFFFF),
        ("ssub", 8, 0x80, 1, 0x80),
        ("sadd", 16, 0x7FFF, 1, 0x7FFF),
    ],
)
def test_intrinsics_that_are_left_as_calls(run, name, width, a, b, expected):
    """Khronos' translator writes imports of llvm.usub.sat.i32 and its kin into modules of DPC++."""
    type_ = f"%i{width}"
    convert = ["OpUConvert"] if width != 32 else ["OpCopyObject"]
    data = module(
        f"""
%a = OpLoad %i32 %p
%b = OpLoad %i32 %second
%na = {convert[0]} {type_} %a
%nb = {convert[0]} {type_} %b
%r = OpFunctionCall {type_} %f %na %nb
%wide = {convert[0]} %i32 %r
OpStore %p %wide
""",
        decorations=f'OpDecorate %f LinkageAttributes "llvm.{name}.sat.i{width}" Import',
        declarations=f"%fn_sat = OpTypeFunction {type_} {type_} {type_}\n",
        functions=f"%f = OpFunction {type_} None %fn_sat\n%fa = OpFunctionParameter {type_}\n"
        f"%fb = OpFunctionParameter {type_}\nOpFunctionEnd\n",
    )
    assert run(data, [a, b])[0] == expected


def test_an_intrinsic_that_is_unknown_is_named(opencl, context):
    data = module(
        "%a = OpLoad %i32 %p\n%r = OpFunctionCall %i32 %f %a\nOpStore %p %r\n",
        decorations='OpDecorate %f LinkageAttributes "llvm.no.such.i32" Import',
        functions="%f = OpFunction %i32 None %fn_i32_i32\n%fa = OpFunctionParameter %i32\nOpFunctionEnd\n",
    )
    program = opencl.make("clCreateProgramWithIL", context, data, len(data))
    assert opencl.fails("clBuildProgram", program, 0, None, None, None, None) == cl.CL_BUILD_PROGRAM_FAILURE
    assert "undefined function 'llvm.no.such.i32'" in opencl.build_log(program)
    opencl.ok("clReleaseProgram", program)


def test_halves_of_modules_that_declare_buffers_of_them_only(run):
    """DPC++ declares Float16Buffer where it means Float16."""
    data = module(
        """
%hp = OpBitcast %gf16 %p
%x = OpLoad %f16 %hp
%e = OpExtInst %f16 %std exp2 %x
%r = OpFAdd %f16 %e %e
OpStore %hp %r
""",
        "OpCapability Float16Buffer",
        declarations="%f16 = OpTypeFloat 16\n%gf16 = OpTypePointer CrossWorkgroup %f16\n",
    )
    bits = struct.unpack("<H", struct.pack("<e", 3.0))[0]
    assert struct.unpack("<e", struct.pack("<H", run(data, [bits])[0]))[0] == 16.0


def test_builtin_variables_among_constants(run):
    """The translators from LLVM of 2015 had built-in variables in UniformConstant memory, as imports;
    PyOpenCL's tests have such a module."""
    data = module(
        """
%size3 = OpLoad %v3 %sizes
%size = OpCompositeExtract %i64 %size3 0
%narrow = OpUConvert %i32 %size
%before = OpLoad %i32 %second Aligned 4
%sum = OpIAdd %i32 %narrow %before
OpStore %second %sum Aligned 4
""",
        decorations="OpDecorate %sizes BuiltIn GlobalSize\nOpDecorate %sizes Constant\n"
        'OpDecorate %sizes LinkageAttributes "__spirv_BuiltInGlobalSize" Import',
        declarations="%v3 = OpTypeVector %i64 3\n%constant_v3 = OpTypePointer UniformConstant %v3\n"
        "%sizes = OpVariable %constant_v3 UniformConstant\n",
    )
    assert run(data, [5, 41]) == [5, 42]
