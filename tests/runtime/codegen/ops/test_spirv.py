# ruff: noqa: E501  kernels as one line each
"""Instructions that clang does not emit, from SPIR-V assembly, and atomics."""

import numpy as np
import pytest

from cl_driver.codegen.llvm.errors import CodegenError
from tests.pure.spirv.assembler import CAPABILITIES, SCALARS, constants
from tests.runtime.kernel_harness import Local, Program, assemble, compile_c

HEAD = f"""{CAPABILITIES}
%std = OpExtInstImport "OpenCL.std"
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %main "main" %gid
OpDecorate %gid BuiltIn GlobalInvocationId
DECORATIONS
{SCALARS}
%int2 = OpTypeVector %i32 2
%int4 = OpTypeVector %i32 4
%float4 = OpTypeVector %f32 4
%bool4 = OpTypeVector %bool 4
%long3 = OpTypeVector %i64 3
%ptr_in = OpTypePointer Input %long3
%gp = OpTypePointer CrossWorkgroup %i32
%gf = OpTypePointer CrossWorkgroup %f32
%fn = OpTypeFunction %void %gp %gp %gp
{constants(zero=0, one=1, two=2, three=3, four=4, seven=7, eight=8, hundred=100, scope=1, relaxed=0)}
%pair = OpTypeStruct %i32 %i32
%gid = OpVariable %ptr_in Input
TYPES
%main = OpFunction %void None %fn
%out = OpFunctionParameter %gp
%a = OpFunctionParameter %gp
%b = OpFunctionParameter %gp
%entry = OpLabel
%id3 = OpLoad %long3 %gid
%id = OpCompositeExtract %i64 %id3 0
%pout = OpInBoundsPtrAccessChain %gp %out %id
%pa = OpInBoundsPtrAccessChain %gp %a %id
%pb = OpInBoundsPtrAccessChain %gp %b %id
%x = OpLoad %i32 %pa
%y = OpLoad %i32 %pb
"""
TAIL = """
OpStore %pout %r
OpReturn
OpFunctionEnd
"""


def program(body: str, types: str = "", decorations: str = "", tail: str = TAIL) -> Program:
    text = HEAD.replace("DECORATIONS", decorations).replace("TYPES", types) + body + tail
    return Program(assemble(text))


X = np.array([0, 1, -1, 5, -7, 2**31 - 1, -(2**31), 0x12345678, -2, 77, 1000, -1000], np.int32)
Y = np.array([3, -3, 2**31 - 1, -(2**31), 1, -1, -1, 0x7F, -5, 13, 0, 7], np.int32)


def run(p: Program, x=X, y=Y) -> list[int]:
    out = np.zeros(len(x), np.int32)
    p.run("main", len(x), 1, out, x, y)
    return out.tolist()


def s32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def u32(value: int) -> int:
    return value % 2**32


def field(value: int, offset: int, count: int) -> int:
    return u32(value) >> offset & ((1 << count) - 1)


# Body that defines %r: expected value for signed x and y; None where the result is undefined.
CASES = {
    "IAddCarry": ("%p = OpIAddCarry %pair %x %y\n%lo = OpCompositeExtract %i32 %p 0\n"
                  "%hi = OpCompositeExtract %i32 %p 1\n%t = OpIMul %i32 %hi %hundred\n%r = OpIAdd %i32 %lo %t",
                  lambda x, y: u32(x) + u32(y) + (u32(x) + u32(y) >> 32) * 100),
    "ISubBorrow": ("%p = OpISubBorrow %pair %x %y\n%lo = OpCompositeExtract %i32 %p 0\n"
                   "%hi = OpCompositeExtract %i32 %p 1\n%t = OpIMul %i32 %hi %hundred\n%r = OpIAdd %i32 %lo %t",
                   lambda x, y: u32(x) - u32(y) + (u32(x) < u32(y)) * 100),
    "UMulExtended": ("%p = OpUMulExtended %pair %x %y\n%lo = OpCompositeExtract %i32 %p 0\n"
                     "%hi = OpCompositeExtract %i32 %p 1\n%r = OpBitwiseXor %i32 %lo %hi",
                     lambda x, y: u32(u32(x) * u32(y)) ^ (u32(x) * u32(y) >> 32)),
    "SMulExtended": ("%p = OpSMulExtended %pair %x %y\n%lo = OpCompositeExtract %i32 %p 0\n"
                     "%hi = OpCompositeExtract %i32 %p 1\n%r = OpBitwiseXor %i32 %lo %hi",
                     lambda x, y: u32(x * y) ^ u32(x * y >> 32)),
    "SMod": ("%r = OpSMod %i32 %x %y", lambda x, y: x % y if y and (x, y) != (-(2**31), -1) else None),
    "SRem": ("%r = OpSRem %i32 %x %y",
             lambda x, y: abs(x) % abs(y) * (-1 if x < 0 else 1) if y and (x, y) != (-(2**31), -1) else None),
    "UMod": ("%r = OpUMod %i32 %x %y", lambda x, y: u32(x) % u32(y) if y else None),
    "BitFieldUExtract": ("%o = OpBitwiseAnd %i32 %y %seven\n%r = OpBitFieldUExtract %i32 %x %o %eight",
                         lambda x, y: field(x, y & 7, 8)),
    "BitFieldSExtract": ("%o = OpBitwiseAnd %i32 %y %seven\n%r = OpBitFieldSExtract %i32 %x %o %eight",
                         lambda x, y: (field(x, y & 7, 8) ^ 128) - 128),
    "BitFieldSExtractNothing": ("%r = OpBitFieldSExtract %i32 %x %three %zero", lambda x, y: 0),
    "BitFieldInsert": ("%o = OpBitwiseAnd %i32 %y %seven\n%r = OpBitFieldInsert %i32 %x %y %o %four",
                       lambda x, y: (u32(x) & ~(15 << (y & 7))) | (u32(y) & 15) << (y & 7)),
    "BitReverse": ("%r = OpBitReverse %i32 %x", lambda x, y: int(f"{u32(x):032b}"[::-1], 2)),
    "BitCount": ("%r = OpBitCount %i32 %x", lambda x, y: u32(x).bit_count()),
    "ShiftBeyond": ("%r = OpShiftLeftLogical %i32 %x %hundred", lambda x, y: u32(x) << 4),
    "SatConvertSToU": ("%c = OpSatConvertSToU %i8 %x\n%r = OpUConvert %i32 %c",
                       lambda x, y: min(max(x, 0), 255)),
    "SatConvertUToS": ("%c = OpSatConvertUToS %i8 %x\n%r = OpSConvert %i32 %c", lambda x, y: min(u32(x), 127)),
    "CopyObject": ("%c = OpCopyObject %i32 %x\n%r = OpIAdd %i32 %c %one", lambda x, y: x + 1),
    "Undef": ("%u = OpUndef %i32\n%m = OpBitwiseAnd %i32 %u %zero\n%r = OpBitwiseOr %i32 %m %x", lambda x, y: x),
    "VectorExtractDynamic": (
        "%v = OpCompositeConstruct %int4 %x %y %one %two\n%k = OpBitwiseAnd %i32 %x %three\n"
        "%r = OpVectorExtractDynamic %i32 %v %k", lambda x, y: [x, y, 1, 2][x & 3]),
    "VectorInsertDynamic": (
        "%v = OpCompositeConstruct %int4 %x %y %one %two\n%k = OpBitwiseAnd %i32 %x %three\n"
        "%w = OpVectorInsertDynamic %int4 %v %hundred %k\n%e0 = OpCompositeExtract %i32 %w 0\n"
        "%e1 = OpCompositeExtract %i32 %w 1\n%r = OpBitwiseXor %i32 %e0 %e1",
        lambda x, y: (100 if x & 3 == 0 else x) ^ (100 if x & 3 == 1 else y)),
    "VectorShuffle": (
        "%v = OpCompositeConstruct %int2 %x %y\n%w = OpCompositeConstruct %int4 %one %two %three %four\n"
        "%s = OpVectorShuffle %int4 %v %w 1 3 0xFFFFFFFF 0\n%e0 = OpCompositeExtract %i32 %s 0\n"
        "%e1 = OpCompositeExtract %i32 %s 1\n%e3 = OpCompositeExtract %i32 %s 3\n"
        "%t = OpIAdd %i32 %e0 %e1\n%r = OpBitwiseXor %i32 %t %e3", lambda x, y: u32(y + 2) ^ u32(x)),
    "CompositeInsert": (
        "%s0 = OpCompositeConstruct %nested %pairnull %v0\n%s1 = OpCompositeInsert %nested %x %s0 0 1\n"
        "%s2 = OpCompositeInsert %nested %y %s1 1 2\n%e0 = OpCompositeExtract %i32 %s2 0 1\n"
        "%e1 = OpCompositeExtract %i32 %s2 1 2\n%e2 = OpCompositeExtract %int4 %s2 1\n"
        "%e3 = OpCompositeExtract %i32 %e2 3\n%t = OpIAdd %i32 %e0 %e1\n%r = OpIAdd %i32 %t %e3",
        lambda x, y: x + y + 4),
    "AnyAll": (
        "%v = OpCompositeConstruct %int4 %x %y %one %two\n%w = OpCompositeConstruct %int4 %zero %zero %zero %zero\n"
        "%c = OpSLessThan %bool4 %v %w\n%any = OpAny %bool %c\n%d = OpSGreaterThanEqual %bool4 %v %w\n"
        "%all = OpAll %bool %d\n%e = OpLogicalEqual %bool %any %all\n%f = OpSelect %i32 %any %one %zero\n"
        "%g = OpSelect %i32 %e %hundred %zero\n%r = OpIAdd %i32 %f %g", lambda x, y: int(x < 0 or y < 0)),
    "Logic": (
        "%c = OpSLessThan %bool %x %y\n%d = OpULessThan %bool %x %y\n%e = OpLogicalNotEqual %bool %c %d\n"
        "%f = OpLogicalAnd %bool %c %d\n%g = OpLogicalOr %bool %e %f\n%h = OpLogicalNot %bool %g\n"
        "%r = OpSelect %i32 %h %one %zero",
        lambda x, y: int(not (((x < y) != (u32(x) < u32(y))) or (x < y and u32(x) < u32(y))))),
    "PtrDiff": ("%l = OpPtrDiff %i64 %pout %out\n%r = OpUConvert %i32 %l", None),
    "PtrEqual": ("%c = OpPtrEqual %bool %pout %out\n%r = OpSelect %i32 %c %one %zero", None),
    "FMod": ("%f = OpConvertSToF %f64 %x\n%g = OpConvertSToF %f64 %y\n%m = OpFMod %f64 %f %g\n"
             "%r = OpConvertFToS %i32 %m", lambda x, y: x % y if y else None),
    "FRem": ("%f = OpConvertSToF %f64 %x\n%g = OpConvertSToF %f64 %y\n%m = OpFRem %f64 %f %g\n"
             "%r = OpConvertFToS %i32 %m", lambda x, y: abs(x) % abs(y) * (-1 if x < 0 else 1) if y else None),
    "Quantize": ("%f = OpConvertSToF %f32 %x\n%q = OpQuantizeToF16 %f32 %f\n%r = OpConvertFToS %i32 %q",
                 lambda x, y: int(np.float32(np.float16(x))) if abs(x) < 60000 else None),
    "SDot": ("%r = OpSDot %i32 %x %y PackedVectorFormat4x8Bit",
             lambda x, y: sum(((field(x, k, 8) ^ 128) - 128) * ((field(y, k, 8) ^ 128) - 128)
                              for k in (0, 8, 16, 24))),
    "SUDotAccSat": ("%r = OpSUDotAccSat %i32 %x %y %big PackedVectorFormat4x8Bit",
                    lambda x, y: min(2**31 - 1, 2**31 - 2 + sum(((field(x, k, 8) ^ 128) - 128) * field(y, k, 8)
                                                                for k in (0, 8, 16, 24)))),
    "Switch": ("OpSelectionMerge %m None\nOpSwitch %y %d 3 %l3 0xFFFFFFFD %ln 13 %l3\n%l3 = OpLabel\nOpBranch %m\n"
               "%ln = OpLabel\nOpBranch %m\n%d = OpLabel\nOpBranch %m\n%m = OpLabel\n"
               "%r = OpPhi %i32 %one %l3 %two %ln %x %d",
               lambda x, y: 1 if y in (3, 13) else 2 if y == -3 else x),
    "CopyMemory": ("OpCopyMemory %pout %pb\n%l = OpLoad %i32 %pout\n%r = OpIAdd %i32 %l %one", lambda x, y: y + 1),
    "AtomicsOnPrivate": (
        "%v = OpVariable %fp Function\nOpStore %v %x\n%o = OpAtomicIIncrement %i32 %v %scope %relaxed\n"
        "%q = OpAtomicSMax %i32 %v %scope %relaxed %y\n%r = OpAtomicLoad %i32 %v %scope %relaxed",
        lambda x, y: max(s32(x + 1), y)),
}  # fmt: skip

TYPES = (
    "%nested = OpTypeStruct %pair %int4\n%pairnull = OpConstantNull %pair\n"
    "%v0 = OpConstantComposite %int4 %one %two %three %four\n%fp = OpTypePointer Function %i32\n"
    "%big = OpConstant %i32 2147483646\n"
)
DOT = (
    "OpCapability DotProduct\nOpCapability DotProductInput4x8BitPacked\n"
    'OpExtension "SPV_KHR_integer_dot_product"\n'
)


@pytest.mark.parametrize("name", CASES)
def test_instruction(name):
    body, expected = CASES[name]
    if "%v = OpVariable" in body:
        head, _, body = body.partition("\n")
        text = HEAD.replace("%entry = OpLabel\n", f"%entry = OpLabel\n{head}\n")
    else:
        text = HEAD
    if "Dot" in name:
        text = DOT + text
    text = text.replace("DECORATIONS", "").replace("TYPES", TYPES)
    got = run(Program(assemble(text + body + TAIL, "1.6" if "Dot" in name else "1.4")))
    for k, (x, y) in enumerate(zip(X.tolist(), Y.tolist(), strict=True)):
        want = {"PtrDiff": k, "PtrEqual": int(k == 0)}[name] if expected is None else expected(x, y)
        assert want is None or got[k] == s32(want), (x, y)


def test_division_never_traps():
    source = """
    #define K(T) kernel void d_##T(global T *o, global const T *a, global const T *b) { size_t i = get_global_id(0); \\
      o[4*i] = a[i] / b[i]; o[4*i+1] = a[i] % b[i]; \\
      T##4 v = (T##4)(a[i]) / (T##4)(b[i], 1, b[i], 2); o[4*i+2] = v.y; o[4*i+3] = v.w; }
    K(char) K(uchar) K(short) K(int) K(uint) K(long) K(ulong)
    """
    p = Program(compile_c(source))
    for name, t in (
        ("char", np.int8),
        ("uchar", np.uint8),
        ("short", np.int16),
        ("int", np.int32),
        ("uint", np.uint32),
        ("long", np.int64),
        ("ulong", np.uint64),
    ):
        info = np.iinfo(t)
        a = np.array([info.min, info.max, 0, 1, info.min], t)
        b = np.array([0 if info.min == 0 else -1, 0, 0, 0, 0], t)
        out = np.zeros((5, 4), t)
        p.run(f"d_{name}", 5, 1, out, a, b)
        assert np.array_equal(out[:, 2], a)
        assert out[:, 3].tolist() == [
            int(int(v) / 2) if abs(int(v)) < 2**50 else out[k, 3] for k, v in enumerate(a)
        ]


ATOMICS = """
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
void count_local(volatile local int *p) {
  int old = atomic_or(p, 0), seen;
  while ((seen = atomic_cmpxchg(p, old, old + 1)) != old) old = seen;
}
void count_global(volatile global int *p) {
  int old = atomic_or(p, 0), seen;
  while ((seen = atomic_cmpxchg(p, old, old + 1)) != old) old = seen;
}
kernel void old(volatile global int *g, global int *out, volatile local int *l) {
  int i = get_global_id(0);
  if (get_local_id(0) == 0) for (int k = 0; k < 12; k++) l[k] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&g[0], i); atomic_sub(&g[1], i); atomic_inc(&g[2]); atomic_dec(&g[3]); atomic_min(&g[4], -i);
  atomic_max(&g[5], i); atomic_and(&g[6], ~(1 << (i & 31))); atomic_or(&g[7], 1 << (i & 31));
  atomic_xor(&g[8], i); count_global(&g[9]); out[i] = atomic_xchg(&g[10], i);
  atomic_max((volatile global uint *)&g[11], (uint)-i);
  atomic_add(&l[0], 1); atomic_sub(&l[1], 2); atomic_min(&l[2], -i); atomic_umax_free(l);
  atomic_or(&l[4], 1 << get_local_id(0)); atomic_xor(&l[5], 3); count_local(&l[6]);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0) for (int k = 0; k < 7; k++) atomic_add(&g[12 + k], l[k]);
}
kernel void c11(volatile global atomic_int *g, volatile global atomic_float *f, volatile global atomic_long *w,
                volatile global atomic_flag *flag, global int *won) {
  int i = get_global_id(0);
  atomic_fetch_add(&g[0], i);
  atomic_fetch_max_explicit(&g[1], i, memory_order_relaxed, memory_scope_device);
  atomic_fetch_sub_explicit(&w[0], 5, memory_order_acq_rel);
  int expected = atomic_load(&g[2]);
  while (!atomic_compare_exchange_weak(&g[2], &expected, expected + 2)) ;
  atomic_store_explicit(&f[0], 2.5f, memory_order_release, memory_scope_device);
  float was = atomic_exchange(&f[1], (float)i);
  float now = atomic_load(&f[2]);
  while (!atomic_compare_exchange_strong(&f[2], &now, now + 1.0f)) ;
  won[i] = !atomic_flag_test_and_set(flag) + (was < 0) * 10;
  atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_device);
}
"""


def test_atomics():
    n, local = 64, 16
    source = ATOMICS.replace("atomic_umax_free(l)", "atomic_max((volatile local uint *)&l[3], (uint)i)")
    p = Program(compile_c(source))
    g = np.zeros(20, np.int32)
    g[3], g[6], g[10] = 100, -1, -1
    out = np.zeros(n, np.int32)
    p.run("old", n, local, g, out, Local(64))
    total = sum(range(n))
    xor = 0
    for i in range(n):
        xor ^= i
    assert g[:12].tolist() == [total, -total, n, 100 - n, -(n - 1), n - 1, 0, -1, xor, n, n - 1, -1]
    assert out.tolist() == list(range(-1, n - 1))
    groups = n // local
    assert g[12] == 16 * groups and g[13] == -32 * groups
    assert g[14] == sum(-(16 * k + 15) for k in range(groups))
    assert g[15] == sum(16 * k + 15 for k in range(groups))
    assert g[16] == 0xFFFF * groups and g[17] == 0 and g[18] == 16 * groups

    g = np.array([0, -5, 0, 0], np.int32)
    f = np.array([0, -1, 0], np.float32)
    w, flag, won = np.array([1 << 40]), np.zeros(1, np.int32), np.zeros(n, np.int32)
    p.run("c11", n, local, g, f, w, flag, won)
    assert (
        g.tolist() == [total, n - 1, 2 * n, 0] and f.tolist() == [2.5, n - 1, n] and w[0] == (1 << 40) - 5 * n
    )
    assert sorted(won.tolist()) == [0] * (n - 1) + [11] and flag[0] == 1


LONGS = "%ptr_long = OpTypePointer Input %i64\n"
ADDRESS = "%at = OpAccessChain %ptr_long %gid %zero\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("%p = OpCopyObject %ptr_long %at\n", id="copied"),
        pytest.param(
            "%zeros = OpAccessChain %ptr_long %gid %one\n%c = OpSLessThan %bool %x %y\n"
            "%p = OpSelect %ptr_long %c %at %zeros\n",
            id="chosen",
        ),
        pytest.param("%n = OpConvertPtrToU %i64 %at\n%p = OpConvertUToPtr %ptr_long %n\n", id="a number"),
    ],
)
def test_address_of_a_built_in_variable(body):
    """Where it is more than what a load is from, the variable is in memory; vectors have no such memory."""
    p = program(ADDRESS + body + "%v = OpLoad %i64 %p\n%r = OpUConvert %i32 %v\n", LONGS)
    if p.width > 1 and "Copy" not in body:
        with pytest.raises(CodegenError, match="address of"):
            p.code("main")
        return
    expected = [k if "Select" not in body or x < y else 0 for k, (x, y) in enumerate(zip(X, Y, strict=True))]
    assert run(p) == expected
