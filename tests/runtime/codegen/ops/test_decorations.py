"""Decorations and execution modes: each has an effect here that would be missing if it were ignored."""

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from cl_driver.spirv import reflect
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation.validate import validate
from tests.pure.spirv.assembler import constants
from tests.runtime.kernel_harness import Local, Program, compile_c
from tests.runtime.spirv_kernels import GROUP, ITEMS, X, Y, buffer, check, flags, module, same, text

# No wrap

NO_WRAP = {
    "%r = OpIAdd %i32 %x %y": "add",
    "%r = OpISub %i32 %x %y": "sub",
    "%r = OpIMul %i32 %x %y": "mul",
    "%r = OpShiftLeftLogical %i32 %x %y": "shl",
    "%r = OpSNegate %i32 %x": "sub",
}


@pytest.mark.parametrize("body", NO_WRAP)
def test_no_wrap(body):
    for decoration, flag in (("", ""), ("NoSignedWrap", "nsw"), ("NoUnsignedWrap", "nuw")):
        decorations = f"OpDecorate %r {decoration}" if decoration else ""
        found = text(module(body, "i32", "i32", decorations=decorations))
        line = next(line for line in found.splitlines() if f"= {NO_WRAP[body]} " in line and " i32 " in line)
        assert [f for f in ("nsw", "nuw") if f" {f} " in line] == ([flag] if flag else []), line


def test_no_wrap_keeps_a_comparison_simple():
    """x + 1 > x is true of all x where the sum does not wrap."""
    body = "%s = OpIAdd %i32 %x %one\n%c = OpSGreaterThan %bool %s %x\n%r = OpSelect %i32 %c %one %zero"
    types = constants(one=1, zero=0)
    x = np.full(ITEMS, 2**31 - 1, np.int32)
    for decorations, expected in (("", 0), ("OpDecorate %s NoSignedWrap", 1)):
        out = np.zeros(ITEMS, np.int32)
        spirv = module(body, "i32", "i32", types=types, decorations=decorations)
        Program(spirv, width=1).run("main", ITEMS, GROUP, x, x, out)
        assert out.tolist() == [expected] * ITEMS


# Conversions


@pytest.mark.parametrize(
    "mode, function", [("RTE", np.rint), ("RTZ", np.trunc), ("RTP", np.ceil), ("RTN", np.floor)]
)
def test_rounding_mode(mode, function):
    x = buffer(ITEMS, np.float64)
    x[:] = np.linspace(-7.5, 7.5, ITEMS).round(1)
    body, decoration = "%r = OpConvertFToS %i32 %x", f"OpDecorate %r FPRoundingMode {mode}"
    same(body, function(x), ("f64", "i32"), x=x, y=x, decorations=decoration)
    # 2^24 + 1 and the like as floats
    integers = np.array([2**24 + 1, -(2**24) - 1, 2**25 + 3, 2**25 + 1, -(2**25) - 3, 7] * 5, np.int64)[
        :ITEMS
    ]
    floats = check(
        module("%r = OpConvertSToF %f32 %x", "i64", "f32", decorations=decoration),
        integers,
        integers,
        buffer(ITEMS, np.float32),
    )
    for n, f in zip(integers.tolist(), floats.tolist(), strict=True):
        unit = 1 if abs(n) < 2**24 else 2 if abs(n) < 2**25 else 4
        assert f == function(n / unit) * unit
    narrow = check(
        module("%r = OpFConvert %f32 %x", "f64", "f32", decorations=decoration),
        x / 3,
        x,
        buffer(ITEMS, np.float32),
    )
    if mode == "RTP":
        assert (narrow.astype(np.float64) >= x / 3).all() and (narrow != x / 3).any()
    if mode == "RTN":
        assert (narrow.astype(np.float64) <= x / 3).all()
    if mode == "RTZ":
        assert (abs(narrow.astype(np.float64)) <= abs(x / 3)).all()


def test_saturated_conversion():
    x = buffer(ITEMS, np.float32)
    x[:] = np.linspace(-400, 400, ITEMS)
    x[3] = np.nan
    clamped = [0 if np.isnan(v) else int(min(max(v, -128), 127)) for v in x]
    body = "%c = OpConvertFToS %i8 %x\n%r = OpSConvert %i32 %c"
    same(body, clamped, ("f32", "i32"), x=x, y=x, decorations="OpDecorate %c SaturatedConversion")
    wide = X * 40
    body = "%c = OpSConvert %i8 %x\n%r = OpSConvert %i32 %c"
    clamped = np.clip(wide, -128, 127)
    same(body, clamped, x=wide, decorations="OpDecorate %c SaturatedConversion")
    same(body, wide.astype(np.int8), x=wide)


# FPFastMathMode without FloatControls2 adds to what the build options say.


def test_fast_math_mode():
    add = "%r = OpFAdd %f32 %x %y"
    for mode, expected in {
        "NotNaN": {"nnan"},
        "NotInf": {"ninf"},
        "NSZ": {"nsz"},
        "AllowRecip": {"arcp"},
        "NotNaN|NSZ": {"nnan", "nsz"},
        "Fast": {"nnan", "ninf", "nsz", "arcp", "reassoc", "afn"},
    }.items():
        found = flags(module(add, "f32", "f32", decorations=f"OpDecorate %r FPFastMathMode {mode}"), "fadd")
        assert set(found) - {"contract"} == expected
    assert flags(module(add, "f32", "f32"), "fadd") == ["contract"]
    assert flags(module(add, "f32", "f32", modes="OpExecutionMode %main ContractionOff"), "fadd") == []


# Function parameters

PARAMETER = """
%f = OpFunction %void None %ff
%result = OpFunctionParameter %pr_
%by = OpFunctionParameter %pf
%c = OpFunctionParameter %i8
%fe = OpLabel
%v = OpLoad %i32 %by
%cw = OpSConvert %i32 %c
%sum = OpIAdd %i32 %v %cw
OpStore %by %hundred
OpStore %result %sum
OpReturn
OpFunctionEnd
"""


@pytest.mark.parametrize("extension", ["Zext", "Sext"])
def test_parameter_attributes(extension):
    """ByVal: what the function writes is a copy. The result comes through a pointer."""
    decorations = (
        f"OpDecorate %result FuncParamAttr Sret\nOpDecorate %result FuncParamAttr NoAlias\n"
        f"OpDecorate %by FuncParamAttr ByVal\nOpDecorate %c FuncParamAttr {extension}\n"
        "OpDecorate %a FuncParamAttr NoCapture\nOpDecorate %a FuncParamAttr NoWrite\n"
        "OpDecorate %out FuncParamAttr NoAlias"
    )
    types = (
        "%pf = OpTypePointer Function %i32\n%pr_ = OpTypePointer Function %i32\n"
        "%ff = OpTypeFunction %void %pr_ %pf %i8\n%hundred = OpConstant %i32 100"
    )
    body = (
        "OpStore %own %x\n%small = OpSConvert %i8 %y\n%nothing = OpFunctionCall %void %f %res %own %small\n"
        "%one = OpLoad %i32 %res\n%two = OpLoad %i32 %own\n%twice = OpIMul %i32 %two %hundred\n"
        "%r = OpIAdd %i32 %one %twice"
    )
    variables = "%own = OpVariable %pf Function\n%res = OpVariable %pr_ Function"
    parts = {"types": types, "locals": variables, "functions": PARAMETER}
    same(body, X + Y + 100 * X, decorations=decorations, **parts)
    without = decorations.replace("OpDecorate %by FuncParamAttr ByVal\n", "")
    same(body, X + Y + 100 * 100, decorations=without, **parts)
    args = reflect.reflect(reader.read(module(body, "i32", "i32", decorations=decorations, **parts)))[0].args
    assert args[0].type_qualifier == reflect.TYPE_CONST
    assert args[1].type_qualifier == reflect.TYPE_NONE
    assert args[2].type_qualifier == reflect.TYPE_RESTRICT


# Types


def test_packed_structures():
    """Without CPacked the second member lies at 4 and the structure takes 8 bytes."""
    body = """
    %zero = OpPtrDiff %i64 %field %field
    %address = OpConvertPtrToU %i64 %field
    %start = OpConvertPtrToU %i64 %second
    %distance = OpISub %i64 %address %start
    %from = OpConvertPtrToU %i64 %s
    %size = OpISub %i64 %start %from
    OpStore %field %x Aligned 1
    %back = OpLoad %i32 %field Aligned 1
    %d = OpUConvert %i32 %distance
    %n = OpUConvert %i32 %size
    %ten = OpIMul %i32 %n %c10
    %dn = OpIAdd %i32 %d %ten
    %hundred = OpIMul %i32 %back %c100
    %r = OpIAdd %i32 %dn %hundred
    """
    head = """
    %first = OpInBoundsAccessChain %ps_ %s %l0
    %second = OpInBoundsAccessChain %ps_ %s %l1
    %field = OpInBoundsAccessChain %pi %second %one
    """
    types = f"""
    {constants(one=1, two=2, c10=10, c100=100)}
    {constants("i64", l0=0, l1=1)}
    %st = OpTypeStruct %i8 %i32
    %ar = OpTypeArray %st %two
    %par = OpTypePointer Function %ar
    %ps_ = OpTypePointer Function %st
    %pi = OpTypePointer Function %i32
    """
    for decorations, size, offset in (("", 8, 4), ("OpDecorate %st CPacked", 5, 1)):
        same(head + body, 100 * X + 10 * size + offset, types=types, locals="%s = OpVariable %par Function",
             decorations=decorations)  # fmt: skip


@pytest.mark.parametrize("packed", ["", "OpDecorate %s2 CPacked"])
def test_copy_logical(packed):
    """Structures of equal members are two types all the same; here one of them may also lie otherwise."""
    types = f"""
    {constants(n=2, ten=10)}
    %inner1 = OpTypeStruct %i8 %i32
    %inner2 = OpTypeStruct %i8 %i32
    %a1 = OpTypeArray %inner1 %n
    %a2 = OpTypeArray %inner2 %n
    %s1 = OpTypeStruct %i32 %a1
    %s2 = OpTypeStruct %i32 %a2
    """
    body = """
    %small = OpUConvert %i8 %y
    %i = OpCompositeConstruct %inner1 %small %x
    %j = OpCompositeConstruct %inner1 %small %y
    %array = OpCompositeConstruct %a1 %i %j
    %whole = OpCompositeConstruct %s1 %x %array
    %copy = OpCopyLogical %s2 %whole
    %first = OpCompositeExtract %i32 %copy 0
    %second = OpCompositeExtract %i32 %copy 1 1 1
    %tens = OpIMul %i32 %second %ten
    %r = OpIAdd %i32 %first %tens
    """
    spirv = module(body, "i32", "i32", types=types, decorations=packed)
    validate(reader.read(spirv))
    same(body, X + 10 * Y, types=types, decorations=packed)


def test_promises_that_ask_for_nothing():
    """What a program promises of its memory and values: taken, and the results are right."""
    decorations = """
    OpDecorate %a Restrict
    OpDecorate %b Aliased
    OpDecorate %out Coherent
    OpDecorate %b Constant
    OpDecorate %a MaxByteOffset 4096
    OpDecorateId %b MaxByteOffsetId %max
    OpDecorate %u Uniform
    OpDecorateId %w UniformId %scope
    OpDecorate %out Alignment 4
    """
    types = constants("i64", max=4096) + constants(scope=3, five=5)
    body = "%u = OpIAdd %i32 %five %five\n%w = OpIMul %i32 %u %five\n%s = OpIAdd %i32 %x %y\n"
    body += "%r = OpIAdd %i32 %s %w"
    same(body, X + Y + 50, types=types, decorations=decorations)


# Generic pointers

GENERIC = """
%plain = OpInBoundsPtrAccessChain %pa %a %id
%ga = OpPtrCastToGeneric %pg %plain
%go = OpPtrCastToGeneric %pg %own
%lp = OpInBoundsPtrAccessChain %pw %shared %lid
%gl = OpPtrCastToGeneric %pg %lp
%third = OpUMod %i64 %id %three
%is1 = OpIEqual %bool %third %one
%is2 = OpIEqual %bool %third %two
%g1 = OpSelect %pg %is1 %go %ga
%g = OpSelect %pg %is2 %gl %g1
%back = OpGenericCastToPtr %pa %ga
%known = OpLoad %i32 %back
OpStore %go %known
OpStore %gl %known
%value = OpLoad %i32 %g
"""
TESTS = """
%t{0} = OpGenericCastToPtrExplicit %{2} %{1} {3}
%u{0} = OpConvertPtrToU %i64 %t{0}
%c{0} = OpINotEqual %bool %u{0} %zero
%s{0} = OpSelect %i32 %c{0} %bit{4} %none
%m{0} = OpGenericPtrMemSemantics %i32 %{1}
"""
CASTS = (("pa", "CrossWorkgroup", 1), ("pw", "Workgroup", 2), ("pf", "Function", 4))


@pytest.mark.parametrize("pointer", ["ga", "go", "gl", "g"])
def test_generic_pointers(pointer):
    """A cast gives null where the pointer is to another storage class, in every lane; semantics say which."""
    body, total = GENERIC, "%value"
    for k, (type_, storage, bit) in enumerate(CASTS):
        body += TESTS.format(k, pointer, type_, storage, bit)
        body += f"%r{k} = OpIAdd %i32 {total} %s{k}\n"
        total = f"%r{k}"
    body += f"%scaled = OpIMul %i32 %m0 %thousand\n%r = OpIAdd %i32 {total} %scaled"
    types = constants("i64", zero=0, one=1, two=2, three=3, thirteen=13)
    types += constants(thousand=1000, none=0, bit1=100, bit2=200, bit4=400)
    types += (
        "%pg = OpTypePointer Generic %i32\n%pw = OpTypePointer Workgroup %i32\n"
        "%pf = OpTypePointer Function %i32\n"
        "%array = OpTypeArray %i32 %thirteen\n%pwa = OpTypePointer Workgroup %array\n"
        "%locals = OpVariable %pwa Workgroup"
    )
    body = "%lid = OpUMod %i64 %id %thirteen\n%shared = OpInBoundsAccessChain %pw %locals %zero\n" + body
    kinds = {"ga": [0], "go": [1], "gl": [2], "g": [0, 1, 2]}[pointer]
    bits, semantics = (100, 400, 200), (0x200, 0, 0x100)
    expected = [
        int(x) + bits[k] + 1000 * semantics[k]
        for x, k in ((v, kinds[n % len(kinds)]) for n, v in enumerate(X))
    ]
    same(body, expected, types=types, locals="%own = OpVariable %pf Function")


# Execution modes


def kernel_of(modes: str, more: str = "") -> reflect.KernelReflection:
    parts = {
        "modes": modes,
        "types": constants(n8=8, n2=2, n1=1),
    }
    return reflect.reflect(reader.read(module("%r = OpIAdd %i32 %x %y", "i32", "i32", more, **parts)))[0]


def test_execution_modes():
    assert kernel_of("OpExecutionMode %main LocalSize 8 2 1").required_local_size == (8, 2, 1)
    assert kernel_of("OpExecutionModeId %main LocalSizeId %n8 %n2 %n1").required_local_size == (8, 2, 1)
    assert kernel_of("OpExecutionMode %main LocalSizeHint 8 2 1").local_size_hint == (8, 2, 1)
    assert kernel_of("OpExecutionModeId %main LocalSizeHintId %n8 %n2 %n1").local_size_hint == (8, 2, 1)
    assert kernel_of(f"OpExecutionMode %main VecTypeHint {4 << 16 | 5}").vec_type_hint == "float4"
    assert kernel_of("OpExecutionMode %main SubgroupSize 8").sub_group_size == 8
    dispatch = "OpCapability SubgroupDispatch"
    assert kernel_of("OpExecutionMode %main SubgroupsPerWorkgroup 2", dispatch).sub_groups_per_group == 2
    assert (
        kernel_of("OpExecutionModeId %main SubgroupsPerWorkgroupId %n2", dispatch).sub_groups_per_group == 2
    )


@pytest.mark.parametrize("mode", ["Initializer", "Finalizer"])
def test_modes_of_another_version_are_refused(mode):
    spirv = module("%r = OpIAdd %i32 %x %y", "i32", "i32", modes=f"OpExecutionMode %main {mode}")
    with pytest.raises(SpirvError, match=mode):
        validate(reader.read(spirv))


def test_local_argument():
    """The harness itself: a local argument is memory of the group."""
    spirv = compile_c("kernel void k(local int *p, global int *o) { int i = get_local_id(0); p[i] = i * 3;"
                      "barrier(1); o[get_global_id(0)] = p[3 - i]; }")  # fmt: skip
    out, want = np.zeros(8, np.int32), np.zeros(8, np.int32)
    Program(spirv, width=4).run("k", 8, 4, Local(16), out)
    from cl_driver.interp.run import Local as InterpretedLocal

    interpret(Program(spirv).module, "k", [InterpretedLocal(16), want], (8,), (4,))
    assert out.tolist() == want.tolist() == [9, 6, 3, 0] * 2
