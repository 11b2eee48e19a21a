"""Alignment, hints and volatility, by decorations and by memory operands: each has its effect."""

import numpy as np
import pytest

from cl_driver.spirv import reflect
from cl_driver.spirv.reading import reader
from tests.pure.spirv.assembler import assemble
from tests.runtime.kernel_harness import Program, compile_c
from tests.runtime.spirv_kernels import GROUP, ITEMS, WIDTHS, X, Y, buffer, module, text

# Alignment

OBJECTS = """
%p1 = OpConvertPtrToU %i64 %o1
%p2 = OpConvertPtrToU %i64 %o2
%p3 = OpConvertPtrToU %i64 %o3
%p12 = OpBitwiseOr %i64 %p1 %p2
%all = OpBitwiseOr %i64 %p12 %p3
%low = OpBitwiseAnd %i64 %all %mask
%used1 = OpLoad %i8 %o1
%used2 = OpLoad %i8 %between
%wide = OpUConvert %i32 %low
%r = OpIAdd %i32 %wide %x
"""
ALIGNMENT = "\n".join(f"OpDecorate %o{k} Alignment 128" for k in (1, 2, 3))
ALIGNMENT_ID = "\n".join(f"OpDecorateId %o{k} AlignmentId %align" for k in (1, 2, 3))


@pytest.mark.parametrize("decorations", [ALIGNMENT, ALIGNMENT_ID])
@pytest.mark.parametrize("storage", ["Function", "Workgroup", "CrossWorkgroup", "UniformConstant"])
@pytest.mark.parametrize("width", [1, 8])
def test_alignment(storage, decorations, width):
    """Variables lie where they say, although others of one byte come before them."""
    initial = " %null" if storage in ("CrossWorkgroup", "UniformConstant") else ""
    variables = "\n".join(
        f"%{name} = OpVariable %po {storage}{initial}" for name in ("between", "o1", "odd", "o2", "o3")
    )
    types = f"%po = OpTypePointer {storage} %i8\n%mask = OpConstant %i64 127\n%align = OpConstant %i32 128\n"
    types += "%null = OpConstant %i8 7"
    inside = storage == "Function"
    spirv = module(
        OBJECTS,
        "i32",
        "i32",
        decorations=decorations,
        types=types if inside else f"{types}\n{variables}",
        locals=variables if inside else "",
    )
    out = buffer(ITEMS, np.int32)
    Program(spirv, width=width).run("main", ITEMS, GROUP, X, Y, out)
    assert out.tolist() == X.tolist()


@pytest.mark.parametrize("barrier", ("", "barrier(CLK_LOCAL_MEM_FENCE);"))
@pytest.mark.parametrize("width", (1, 4, 8, 16))
def test_private_arrays_of_the_largest_vectors(width, barrier):
    source = f"""kernel void k(global long *out, int n) {{
        long16 a[4];
        long g = get_global_id(0);
        for (int i = 0; i < 4; i++) a[i] = (long16)(g + i);
        for (int i = 0; i < n; i++) a[(g + i) & 3].s5 += i;
        {barrier}
        out[g] = a[(g + n) & 3].s5 * 100 + a[g & 3].sf; }}"""
    program, out = Program(compile_c(source), width=width), np.zeros(40, np.int64)
    program.run("k", 40, 16, out, np.int32(3))
    g = np.arange(40)
    assert program.code("k").scratch_per_item <= 1024
    assert (out == (g + (g + 3) % 4) * 100 + g + g % 4).all()


def test_alignment_of_arguments():
    """A structure by value, and local memory."""
    source = """
    typedef struct { int a[5]; } __attribute__((aligned(64))) wide;
    kernel void k(char before, wide w, global long *out) {
      out[get_global_id(0)] = w.a[4] << before;
    }
    """
    for width in (1, 4):
        out = np.zeros(4, np.int64)
        value = np.array([1, 2, 3, 4, 5] + [0] * 11, np.int32).tobytes()
        program = Program(compile_c(source), width=width)
        assert [entry.offset for entry in program.code("k").block] == [0, 64, 128]
        program.run("k", 4, 4, np.int8(1), value, out)
        assert out.tolist() == [5 << 1] * 4
    spirv = compile_c("kernel void k(local char *p) { p[0] = 1; }")
    plain = reflect.reflect(reader.read(spirv))[0].args[0].align
    local = """
    OpCapability Kernel
    OpCapability Addresses
    OpCapability Int8
    OpMemoryModel Physical64 OpenCL
    OpEntryPoint Kernel %k "k"
    OpDecorate %p Alignment 64
    %void = OpTypeVoid
    %i8 = OpTypeInt 8 0
    %lp = OpTypePointer Workgroup %i8
    %fn = OpTypeFunction %void %lp
    %k = OpFunction %void None %fn
    %p = OpFunctionParameter %lp
    %e = OpLabel
    OpReturn
    OpFunctionEnd
    """
    assert plain < 64 == reflect.reflect(reader.read(assemble(local)))[0].args[0].align


@pytest.mark.parametrize("width", WIDTHS)
def test_aligned_operand(width):
    """Vectors at addresses that only suit their components."""
    types = (
        "%v = OpTypeVector %i32 4\n%pv = OpTypePointer CrossWorkgroup %v\n%four = OpConstant %i64 4\n"
        "%one = OpConstant %i64 1"
    )
    body = """
    %four_id = OpIMul %i64 %id %four
    %place = OpIAdd %i64 %four_id %one
    %from = OpInBoundsPtrAccessChain %pa %a %place
    %vfrom = OpBitcast %pv %from
    %to = OpInBoundsPtrAccessChain %pa %b %place
    %vto = OpBitcast %pv %to
    %vector = OpLoad %v %vfrom Aligned 4
    OpStore %vto %vector Aligned 4
    OpCopyMemory %vto %vfrom Aligned 4
    %r = OpCompositeExtract %i32 %vector 3
    """
    data = np.arange(4 * ITEMS + 4, dtype=np.int32)
    target, out = buffer(len(data), np.int32), buffer(ITEMS, np.int32)
    aligned = buffer(len(data), np.int32)
    aligned[:] = data
    spirv = module(body, "i32", "i32", types=types)
    Program(spirv, width=width).run("main", ITEMS, GROUP, aligned, target, out)
    assert out.tolist() == data[4::4][:ITEMS].tolist() and target[1:-3].tolist() == data[1:-3].tolist()


def test_two_sets_of_memory_operands():
    """An alignment of the target alone says nothing of the source."""
    types = "%v = OpTypeVector %i32 4\n%pv = OpTypePointer CrossWorkgroup %v"
    body = "%to = OpBitcast %pv %rx\n%from = OpBitcast %pv %ax\nOpCopyMemory %to %from{}\n%r = OpNot %i32 %x"
    for operands, alignment in (("", 16), (" Aligned 64", 64), (" Aligned 64 None", 1),
                                (" None Aligned 8", 1), (" Aligned 64 Aligned 8", 8)):  # fmt: skip
        found = text(module(body.format(operands), "i32", "i32", types=types))
        line = next(line for line in found.splitlines() if "llvm.memcpy" in line)
        assert line.count(f"align {alignment} ") == 2, operands


@pytest.mark.parametrize("width", [1, 8])
def test_nontemporal(width):
    body = "%n = OpLoad %i32 %rx Nontemporal\nOpStore %bx %n Nontemporal\n%r = OpIAdd %i32 %n %n"
    lines = [line for line in text(module(body, "i32", "i32"), width).splitlines() if "!nontemporal" in line]
    full = [line for line in lines if "masked" not in line]
    assert not [line for line in full if " load " in line], lines  # a hint on loads gains nothing
    assert len([line for line in full if " store " in line]) == 1, lines


# Volatile

TWICE = "%l1 = OpLoad %i32 %{0}{1}\n%l2 = OpLoad %i32 %{0}{1}\n%r = OpIAdd %i32 %l1 %l2"


@pytest.mark.parametrize("width", [1, 8])
def test_volatile_operand_and_decoration(width):
    """Every access is made; those of variables that are not volatile are not."""
    variable = {"types": "%pf = OpTypePointer Function %i32", "locals": "%v = OpVariable %pf Function"}
    stored = "OpStore %v %x{0}\n" + TWICE

    def count(spirv):
        return sum(text(spirv, width).count(f"{access} volatile") for access in ("load", "store"))

    assert count(module(stored.replace("{0}\n", "\n", 1).format("v", ""), "i32", "i32", **variable)) == 0
    times = width * (2 if width > 1 else 1)  # each lane by itself, in full vectors and in the rest
    body = stored.replace("%x{0}", "%x Volatile", 1).format("v", " Volatile")
    assert count(module(body, "i32", "i32", **variable)) == 3 * times
    decorated = module(
        stored.replace("{0}\n", "\n", 1).format("v", ""),
        "i32",
        "i32",
        decorations="OpDecorate %v Volatile",
        **variable,
    )
    assert count(decorated) == 3 * times
    argument = module(TWICE.format("ax", ""), "i32", "i32", decorations="OpDecorate %a Volatile")
    assert count(argument) == 3 * times  # with that of the template
    plain = np.zeros(ITEMS, np.int32)
    Program(decorated, width=width).run("main", ITEMS, GROUP, X, Y, plain)
    assert plain.tolist() == (2 * X).tolist()


def test_volatile_of_a_parameter_and_a_module_variable():
    """Seen in the function that has the parameter, and for all that is made of a variable's address."""
    function = """
    %f = OpFunction %i32 None %ff
    %p = OpFunctionParameter %pg
    %fe = OpLabel
    %fl = OpLoad %i32 %p
    OpReturnValue %fl
    OpFunctionEnd
    """
    types = "%pg = OpTypePointer CrossWorkgroup %i32\n%ff = OpTypeFunction %i32 %pg"
    call = "%r = OpFunctionCall %i32 %f %ax"
    plain = module(call, "i32", "i32", types=types, functions=function)
    assert "volatile" not in text(plain)
    volatile = module(
        call, "i32", "i32", types=types, functions=function, decorations="OpDecorate %p Volatile"
    )
    assert text(volatile).count("load volatile") == 1
    types = (
        "%n = OpConstant %i32 4\n%array = OpTypeArray %i32 %n\n%pv = OpTypePointer CrossWorkgroup %array\n"
        "%null = OpConstantNull %array\n%one = OpConstant %i64 1\n%v = OpVariable %pv CrossWorkgroup %null"
    )
    body = "%part = OpInBoundsAccessChain %pa %v %one\nOpStore %part %x\n%r = OpLoad %i32 %part"
    spirv = module(body, "i32", "i32", types=types, decorations="OpDecorate %v Volatile")
    assert text(spirv).count("volatile") == 2
