"""Writing: what is read from what was written is the same module; writing it again gives the same bytes."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from cl_driver.frontend import clang, opencl_c
from cl_driver.frontend.options import parse
from cl_driver.spirv import link, reflect, writer
from cl_driver.spirv.reading import reader
from cl_driver.spirv.reading.dis import disassemble
from cl_driver.spirv.types import TypeTable
from cl_driver.spirv.validation import validate

from .assembler import PREAMBLE, TYPES, assemble
from .test_fuzz import CORPUS
from .test_link import CALLER, definition

DECLARED = """OpCapability DenormPreserve
OpCapability FloatControls2
OpExtension "SPV_KHR_linkonce_odr"
OpExtension "SPV_KHR_float_controls"
OpExtension "SPV_KHR_float_controls2"
%std"""
RECURSIVE = assemble(
    PREAMBLE.replace("%std", DECLARED)
    + """
OpEntryPoint Kernel %k "k"
OpExecutionMode %k DenormPreserve 32
OpExecutionMode %k DenormPreserve 64
OpExecutionModeId %k FPFastMathDefault %f32 %c7
%file = OpString "a.cl"
OpSource OpenCL_C 102000
OpName %list "list"
OpDecorate %packed CPacked
OpDecorate %p FuncParamAttr NoWrite
OpDecorate %p FuncParamAttr NoAlias
OpDecorate %p Alignment 16
OpTypeForwardPointer %node CrossWorkgroup
"""
    + TYPES
    + """
%list = OpTypeStruct %i32 %node
%node = OpTypePointer CrossWorkgroup %list
%packed = OpTypeStruct %i8 %i64
%gp = OpTypePointer CrossWorkgroup %packed
%c64 = OpConstant %i64 -5
%c8 = OpConstant %i8 -1
%init = OpConstantComposite %packed %c8 %c64
%first = OpVariable %node CrossWorkgroup
%data = OpVariable %gp CrossWorkgroup %init
%sampler = OpTypeSampler
%lit = OpConstantSampler %sampler Clamp 0 Nearest
%image = OpTypeImage %void Dim2D 0 0 0 0 Unknown ReadOnly
%fn = OpTypeFunction %void %gi32 %image
%k = OpFunction %void None %fn
%p = OpFunctionParameter %gi32
%img = OpFunctionParameter %image
%l = OpLabel
OpLine %file 3 4
%v = OpLoad %i32 %p Volatile|Aligned 4
%w = OpUConvert %i64 %v
OpNoLine
OpSwitch %w %out 4294967296 %out
%out = OpLabel
OpReturn
OpFunctionEnd
"""
)

SOURCES = {
    "arithmetic": """kernel void k(global float4 *p, local int *l, double d) {
        p[get_global_id(0)] += (float)sin(d) * l[3]; }""",
    "struct": """typedef struct { char c; float3 v; } S;
        kernel void k(S s, global S *o, constant int *t) { o[get_local_id(0)] = s; o[1].c = t[2]; }""",
    "loop": """kernel void k(global int *p, int n) {
        for (int i = 0; i < n; i++) { if (p[i] == 3) break; barrier(CLK_LOCAL_MEM_FENCE); p[i] = n; } }""",
    "globals": """constant int table[4] = {1, 2, 3, 4}; constant int *constant q = &table[2];
        kernel void k(global int *p) { local float l[8]; *p = table[*p] + *q; }""",
    "switch": """kernel void k(global long *p) {
        switch (*p) { case 1: *p = 9; break; case 1L << 40: *p = 7; break; default: *p = 0; } }""",
}


def check(data: bytes) -> bytes:
    before = reader.read(data)
    written = writer.write(before)
    after = reader.read(written)
    validate.validate(after, everything=True)
    assert writer.write(after) == written
    # Declarations come first, as the specification wants them.
    assert [f.name for f in after.functions] == [
        f.name for f in sorted(before.functions, key=lambda f: bool(f.blocks))
    ]
    ops = [[[i.op for i in b.instructions] for b in f.blocks] for f in after.functions]
    names = {f.name: f for f in before.functions}
    assert ops == [[[i.op for i in b.instructions] for b in names[f.name].blocks] for f in after.functions]
    shown = [
        [r.name, r.attributes, [(a.kind, a.size, a.align, a.type_qualifier) for a in r.args]]
        for r in reflect.reflect(before)
    ]
    assert shown == [
        [r.name, r.attributes, [(a.kind, a.size, a.align, a.type_qualifier) for a in r.args]]
        for r in reflect.reflect(after)
    ]
    assert [e.modes for e in after.entry_points] == [e.modes for e in before.entry_points]
    return written


@pytest.mark.parametrize("data", [CORPUS, RECURSIVE, definition()], ids=["corpus", "recursive", "library"])
def test_hand_written(data):
    check(data)


@pytest.mark.parametrize("optimised", ["", "-cl-opt-disable"])
@pytest.mark.parametrize("name", SOURCES)
def test_compiled(name, optimised):
    result = opencl_c.compile(SOURCES[name].encode(), parse(optimised), language=clang.Language())
    assert result.spirv is not None, result.log
    written = check(result.spirv)
    assert "OpEntryPoint Kernel" in disassemble(written)
    # Where Khronos' validator accepts what clang wrote, it accepts what we wrote.
    if shutil.which("spirv-val") and not complaint(result.spirv):
        assert not complaint(written)


def complaint(data: bytes) -> bytes:
    done = subprocess.run(["spirv-val", "--target-env", "spv1.4", "-"], input=data, capture_output=True)
    return done.stdout + done.stderr


def test_linked_modules():
    table = TypeTable()
    module = link.link([reader.read(data, types=table) for data in (assemble(CALLER), definition())])
    after = reader.read(writer.write(module))
    validate.validate(after, everything=True)
    assert sorted(f.name for f in after.functions) == ["f", "k"]
