"""Instructions and modes of SPIR-V extensions: results at every width, flags in the LLVM IR."""

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.compiler import pipeline
from cl_driver.device import target
from cl_driver.jit import bundle
from tests.runtime.kernel_harness import Program, compile_c
from tests.runtime.spirv_kernels import GROUP, ITEMS, WIDTHS, buffer, check, flags, module

# SPV_INTEL_bfloat16_conversion

BFLOAT16 = 'OpCapability BFloat16ConversionINTEL\nOpExtension "SPV_INTEL_bfloat16_conversion"'
FLOATS = np.array(
    [0x00000000, 0x80000000, 0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF,
     0x7F7F7FFF, 0xFF7F8000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345, 0x00000001,
     0x00008000, 0x00008001, 0x00018000, 0x007FFFFF, 0x00800000, 0x80407FFF, 0x40490FDB, 0xC2F6E979,
     0x3EAAAAAB, 0x7F7F8000], np.uint32,
)  # fmt: skip


@pytest.mark.parametrize("count", [1, 3, 16])
def test_bfloat16(count):
    f, u = ("f32", "i16") if count == 1 else ("vf", "vi")
    types = "" if count == 1 else f"%vf = OpTypeVector %f32 {count}\n%vi = OpTypeVector %i16 {count}"
    place = {1: 1, 3: 4, 16: 16}[count]  # a vector of three takes the place of four
    x = buffer((ITEMS, place), np.float32)
    x[:, :count] = np.stack([np.roll(FLOATS, k) for k in range(count)], 1).view(np.float32)
    widths = WIDTHS if count < 16 else (1, 4)
    spirv = module(f"%r = OpConvertFToBF16INTEL %{u} %x", f, u, BFLOAT16, types=types)
    got = check(spirv, x, x, buffer((ITEMS, place), np.uint16), widths)
    expected = [0, 0x8000, 0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x3F80, 0x7F80, 0x7F7F, 0xFF80, 0x7F80, 0xFF80]
    assert got[:12, 0].tolist() == expected
    assert (got[12:15, 0] & 0x7FFF > 0x7F80).all()  # NaN
    assert got[15:21, 0].tolist() == [0, 0, 1, 2, 0x80, 0x80]
    spirv = module(f"%r = OpConvertBF16ToFINTEL %{f} %x", u, f, BFLOAT16, types=types)
    back = check(spirv, got, got, buffer((ITEMS, place), np.float32), widths)
    assert back.view(np.uint32).tolist() == (got.astype(np.uint32) << 16).tolist()


# SPV_KHR_shader_clock

CLOCK = 'OpCapability ShaderClockKHR\nOpExtension "SPV_KHR_shader_clock"'


@pytest.mark.parametrize("scope", [1, 2, 3])
@pytest.mark.parametrize("width", WIDTHS)
def test_clock(scope, width):
    """Readings never go back and soon advance (a counter's tick may take longer than a reading), also in a
    branch that only some take; in 64 bits and in two halves."""
    body = """
%t = OpReadClockKHR %i64 %scope
%odd = OpBitwiseAnd %i64 %x %one
%c = OpIEqual %bool %odd %one
OpBranchConditional %c %then %join
%then = OpLabel
%h = OpReadClockKHR %i32v2 %scope
%u = OpBitcast %i64 %h
OpBranch %join
%join = OpLabel
%v = OpPhi %i64 %zero %entry %u %then
%w = OpSelect %i64 %c %v %t
%d = OpISub %i64 %w %t
%small = OpULessThan %bool %d %large
OpBranch %wait
%wait = OpLabel
%n = OpPhi %i64 %zero %join %m %wait
%m = OpIAdd %i64 %n %one
%e = OpReadClockKHR %i64 %scope
%f = OpISub %i64 %e %w
%same = OpIEqual %bool %f %zero
%few = OpULessThan %bool %m %readings
%again = OpLogicalAnd %bool %same %few
OpBranchConditional %again %wait %end
%end = OpLabel
%greater = OpULessThan %bool %zero %f
%soon = OpULessThan %bool %f %large
%both = OpLogicalAnd %bool %greater %soon
%all = OpLogicalAnd %bool %both %small
%r = OpSelect %i64 %all %one %zero
"""
    types = (
        f"%i32v2 = OpTypeVector %i32 2\n%scope = OpConstant %i32 {scope}\n%zero = OpConstant %i64 0\n"
        "%one = OpConstant %i64 1\n%large = OpConstant %i64 0x10000000000\n"
        "%readings = OpConstant %i64 100000"
    )
    x, out = np.arange(ITEMS), np.zeros(ITEMS, np.int64)
    Program(module(body, "i64", "i64", CLOCK, types=types), width=width).run("main", ITEMS, GROUP, x, x, out)
    assert out.tolist() == [1] * ITEMS


# SPV_KHR_integer_dot_product: DotProductInputAll


DOT = 'OpCapability DotProduct\nOpCapability DotProductInputAll\nOpExtension "SPV_KHR_integer_dot_product"'


@pytest.mark.parametrize("name", ["SDot", "UDot", "SUDot", "SDotAccSat", "UDotAccSat", "SUDotAccSat"])
@pytest.mark.parametrize(
    "source, count, result", [(8, 2, 8), (16, 3, 32), (16, 8, 64), (32, 4, 32), (64, 2, 64)]
)
def test_dot_of_all_inputs(name, source, count, result):
    saturate = name.endswith("AccSat")
    operands = "%x %y %acc" if saturate else "%x %y"
    types = f"%v = OpTypeVector %i{source} {count}\n%acc = OpConstant %i{result} 100"
    spirv = module(f"%r = Op{name} %i{result} {operands}", "v", f"i{result}", DOT, types=types)
    signed = [name[0] == "S", name.startswith("SD")]
    random = np.random.default_rng(source)
    place = 4 if count == 3 else count
    limit = 1 << min(source, 28) - 1
    x, y = (random.integers(-limit, limit, (ITEMS, place)).astype(f"i{source // 8}") for _ in range(2))
    numbers = [
        (v if s else v.view(f"u{source // 8}"))[:, :count].astype(object)
        for v, s in zip((x, y), signed, strict=True)
    ]
    total = (numbers[0] * numbers[1]).sum(1)
    if saturate:
        low, high = (-1 << result - 1, (1 << result - 1) - 1) if signed[0] else (0, (1 << result) - 1)
        total = np.array([min(max(t + 100, low), high) for t in total], object)
    for width in (1, 8):
        out = np.zeros(ITEMS, f"u{result // 8}")
        Program(spirv, width=width).run("main", ITEMS, GROUP, x, y, out)
        assert out.tolist() == [t % (1 << result) for t in total], width


# SPV_KHR_float_controls

CONTROLS = (
    "\n".join(
        f"OpCapability {name}" for name in ("DenormPreserve", "RoundingModeRTE", "SignedZeroInfNanPreserve")
    )
    + '\nOpExtension "SPV_KHR_float_controls"'
)
FAST = CodegenOptions(fast_relaxed_math=True)


def test_signed_zero_inf_nan_preserve():
    """The mode holds for its width alone, and against options and decorations."""
    body = "%r = OpFAdd %{0} %x %y"
    mode = "OpExecutionMode %main SignedZeroInfNanPreserve 32"
    for type_, mentioned in (("f32", False), ("f64", True)):
        spirv = module(body.format(type_), type_, type_, CONTROLS, modes=mode)
        assert ("nnan" in flags(spirv, "fadd", CodegenOptions(finite_math_only=True))) is mentioned
        assert ("nsz" in flags(spirv, "fadd", CodegenOptions(no_signed_zeros=True))) is mentioned
        assert ("reassoc" in flags(spirv, "fadd", FAST)) or mentioned
        spirv = module(
            body.format(type_),
            type_,
            type_,
            CONTROLS,
            modes=mode,
            decorations="OpDecorate %r FPFastMathMode NotNaN|NotInf|NSZ",
        )
        assert ({"nnan", "ninf", "nsz"} <= set(flags(spirv, "fadd"))) is mentioned
    x = np.array([-0.0, 0.0, np.inf, np.nan] * 6 + [1.0, 2.0], np.float32)
    spirv = module("%r = OpFAdd %f32 %x %y", "f32", "f32", CONTROLS, modes=mode)
    for options in (None, FAST):
        out = np.zeros(ITEMS, np.float32)
        Program(spirv, options, width=8).run("main", ITEMS, GROUP, x, -x, out)
        assert np.isnan(out[2:4]).all() and np.array_equal(np.signbit(out[:2]), [False, False])


@pytest.mark.parametrize("type_, dtype", [("f32", np.float32), ("f64", np.float64)])
def test_denorm_preserve_and_rounding_to_nearest(type_, dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = (np.arange(1, ITEMS + 1) * tiny).astype(dtype)
    y = np.full(ITEMS, 0.5, dtype)
    width = 32 if type_ == "f32" else 64
    modes = f"OpExecutionMode %main DenormPreserve {width}\nOpExecutionMode %main RoundingModeRTE {width}"
    spirv = module(f"%r = OpFMul %{type_} %x %y", type_, type_, CONTROLS, modes=modes)
    want = check(spirv, x, y, np.zeros(ITEMS, dtype))
    assert want.tolist() == [tiny * round(k / 2) for k in range(1, ITEMS + 1)]


STD = '\n%std = OpExtInstImport "OpenCL.std"'


def test_modes_of_half():
    """Arithmetic on half is done in float, and no less exact for it."""
    half, types = "\nOpCapability Float16", "%f16 = OpTypeFloat 16\n%mode = OpConstant %i32 1"
    add = "%r = OpFAdd %f16 %x %y"
    mode = "OpExecutionMode %main SignedZeroInfNanPreserve 16"
    plain = module(add, "f16", "f16", CONTROLS + half, types=types)
    assert "nnan" in flags(plain, "fadd", CodegenOptions(finite_math_only=True))
    preserved = module(add, "f16", "f16", CONTROLS + half, modes=mode, types=types)
    assert "nnan" not in flags(preserved, "fadd", CodegenOptions(finite_math_only=True))
    default = "OpExecutionModeId %main FPFastMathDefault %f16 %mode"
    spirv = module(add, "f16", "f16", CONTROLS2 + half, modes=default, types=types)
    assert set(flags(spirv, "fadd", FAST)) <= {"nnan"}


FLUSH = 'OpCapability DenormFlushToZero\nOpExtension "SPV_KHR_float_controls"'
OPERATIONS = {
    "%r = OpFAdd %T %x %y": np.add,
    "%r = OpFMul %T %x %y": np.multiply,
    "%r = OpFDiv %T %x %y": np.divide,
    "%r = OpExtInst %T %std fmax %x %y": np.fmax,
    "%c = OpFOrdLessThan %bool %x %y\n%r = OpSelect %T %c %x %y": lambda a, b: None,
}


@pytest.mark.parametrize("body", OPERATIONS)
@pytest.mark.parametrize("type_, dtype", [("f16", np.float16), ("f32", np.float32), ("f64", np.float64)])
def test_denorm_flush_to_zero(type_, dtype, body):
    """Subnormal operands count as zeros, subnormal results become zeros; numbers that only move stay."""
    info = np.finfo(dtype)
    small = [info.tiny, -info.tiny, info.smallest_subnormal * 3, -info.smallest_subnormal, 0.75, -0.5, 2.0]
    x, y = np.zeros(ITEMS, dtype), np.zeros(ITEMS, dtype)
    x[:] = [small[k % 7] for k in range(ITEMS)]
    y[:] = [small[k // 4 % 7] for k in range(ITEMS)]

    def flush(v):
        return np.where(abs(v) < info.tiny, np.copysign(dtype(0), v), v)

    with np.errstate(all="ignore"):
        want = OPERATIONS[body](flush(x), flush(y))
    want = np.where(flush(x) < flush(y), x, y) if want is None else flush(want)
    width = info.bits
    capabilities = FLUSH + ("\nOpCapability Float16" if width == 16 else "") + STD
    types = "%f16 = OpTypeFloat 16" if width == 16 else ""
    mode = f"OpExecutionMode %main DenormFlushToZero {width}"
    spirv = module(body.replace("%T", f"%{type_}"), type_, type_, capabilities, modes=mode, types=types)
    for lanes in (1, 8):
        out = np.zeros(ITEMS, dtype)
        Program(spirv, width=lanes).run("main", ITEMS, GROUP, x, y, out)
        np.testing.assert_array_equal(out, want, f"width {lanes}")
        assert np.array_equal(np.signbit(out), np.signbit(want)) or "fmax" in body


# SPV_KHR_float_controls2

CONTROLS2 = 'OpCapability FloatControls2\nOpExtension "SPV_KHR_float_controls2"'


def test_fast_math_default():
    """Per type; a decoration stands instead of it."""
    types = "%mode = OpConstant %i32 0x10004\n%mode64 = OpConstant %i32 0x70001"
    modes = (
        "OpExecutionModeId %main FPFastMathDefault %f32 %mode\n"
        "OpExecutionModeId %main FPFastMathDefault %f64 %mode64"
    )
    decorated = "OpDecorate %r FPFastMathMode "

    def of(body, type_, decorations="", options=None):
        spirv = module(body, type_, type_, CONTROLS2, modes=modes, decorations=decorations, types=types)
        return flags(spirv, "fmul" if "FMul" in body else "fadd", options)

    add = "%r = OpFAdd %f32 %x %y"
    assert of(add, "f32") == ["contract", "nsz"]
    assert of("%r = OpFMul %f64 %x %y", "f64") == ["contract", "nnan", "reassoc"]
    assert of(add, "f32", options=FAST) == ["contract", "nsz"]
    assert of(add, "f32", decorated + "None") == []
    assert of(add, "f32", decorated + "AllowRecip|NotInf") == ["arcp", "ninf"]
    assert of(add, "f32", decorated + "AllowContract|AllowReassoc|AllowTransform") == ["contract", "reassoc"]
    spirv = module(add, "f32", "f32", CONTROLS2, decorations=decorated + "NotNaN")
    assert flags(spirv, "fadd", FAST) == ["nnan"]


def test_contraction():
    """a * b + c is one rounding with AllowContract where the CPU has such an instruction, two without."""
    types = f"%mode = OpConstant %i32 {{}}\n%c = OpConstant %f32 {1 + 2**-11}"
    modes = "OpExecutionModeId %main FPFastMathDefault %f32 %mode"
    body = "%p = OpFMul %f32 %x %y\n%r = OpFSub %f32 %p %c"
    x = np.full(ITEMS, 1 + 2**-12, np.float32)
    for mode, expected in ((0, 0.0), (0x10000, 2.0**-24)):
        spirv = module(body, "f32", "f32", CONTROLS2, modes=modes, types=types.format(mode))
        for width in (1, 8):
            out = np.zeros(ITEMS, np.float32)
            program = Program(spirv, width=width)
            program.run("main", ITEMS, GROUP, x, x, out)
            assert out.tolist() == [expected * program.options.has_fma] * ITEMS, (mode, width)


# SPV_INTEL_optnone, SPV_EXT_optnone


LOOP = """
ATTRIBUTE int twice(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += 2; return sum; }
kernel void k(global int *out) { out[get_global_id(0)] = twice(out[get_global_id(0)]); }
"""


def test_optnone():
    """No lanes are made of work-items, variables stay in memory and LLVM's passes stay away."""
    context = pipeline.Context(target.host_target(width=8), "", {})
    found = {}
    for attribute in ("__attribute__((optnone, noinline))", ""):
        spirv = compile_c(LOOP.replace("ATTRIBUTE", attribute))
        program = pipeline.prepare(bundle.pack([(spirv, {})]), context)
        lanes = program.lanes("k")
        code = pipeline.lower(program, "k", lanes)
        found[attribute] = lanes.width, pipeline.llvm_passes(context, code), code.text.count("alloca") > 0
        out = np.arange(ITEMS, dtype=np.int32)
        Program(spirv).run("k", ITEMS, GROUP, out)
        assert out.tolist() == [2 * i for i in range(ITEMS)]
    assert list(found.values()) == [(1, "O0", True), (8, "short", False)]


# SPV_KHR_non_semantic_info


def test_non_semantic_sets_change_nothing():
    capabilities = (
        'OpExtension "SPV_KHR_non_semantic_info"\n%set = OpExtInstImport "NonSemantic.Whatever.7"\n'
    )
    body = "%n = OpExtInst %void %set 5 %x %y\n%r = OpIAdd %i32 %x %y\n%m = OpExtInst %void %set 77 %r"
    x = np.arange(ITEMS, dtype=np.int32)
    spirv = module(body, "i32", "i32", capabilities)
    assert check(spirv, x, x, np.zeros(ITEMS, np.int32), (1, 8)).tolist() == (2 * x).tolist()


# UniformDecoration


def test_uniform_values():
    """A promise that changes no result."""
    decorations = "OpDecorate %r Uniform\nOpDecorateId %s UniformId %scope"
    body = "%s = OpIMul %i32 %x %y\n%r = OpIAdd %i32 %s %x"
    a, b = np.full(ITEMS, 7, np.int32), np.full(ITEMS, 5, np.int32)
    parts = {"decorations": decorations, "types": "%scope = OpConstant %i32 3"}
    spirv = module(body, "i32", "i32", "OpCapability UniformDecoration", **parts)
    assert check(spirv, a, b, np.zeros(ITEMS, np.int32), (1, 8)).tolist() == [42] * ITEMS
