"""Rules of image instructions: a module that keeps them all, and one change for each that breaks it."""

from __future__ import annotations

import pytest

from cl_driver.compiler.pipeline import library
from cl_driver.passes.pipeline import PlanError, PlanOptions, plan
from cl_driver.spirv import link
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.types import TypeTable
from cl_driver.spirv.validation import validate

from .assembler import assemble

MODULE = """
OpCapability Addresses
OpCapability Kernel
OpCapability Float16
OpCapability Float64
OpCapability Int64
OpCapability ImageBasic
OpCapability ImageReadWrite
OpCapability ImageMipmap
OpCapability Image1D
OpCapability ImageBuffer
OpCapability Sampled1D
OpCapability SampledBuffer
OpCapability SubgroupImageBlockIOINTEL
OpExtension "SPV_INTEL_subgroups"
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k"
%void = OpTypeVoid
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%f16 = OpTypeFloat 16
%f32 = OpTypeFloat 32
%f64 = OpTypeFloat 64
%v2i32 = OpTypeVector %i32 2
%v3i32 = OpTypeVector %i32 3
%v4i32 = OpTypeVector %i32 4
%v2i64 = OpTypeVector %i64 2
%v2f32 = OpTypeVector %f32 2
%v4f32 = OpTypeVector %f32 4
%v4f64 = OpTypeVector %f64 4
%i1 = OpConstant %i32 1
%l1 = OpConstant %i64 1
%f1 = OpConstant %f32 1.5
%d1 = OpConstant %f64 1.5
%xy = OpConstantComposite %v2i32 %i1 %i1
%xyz = OpConstantComposite %v3i32 %i1 %i1 %i1
%lxy = OpConstantComposite %v2i64 %l1 %l1
%at = OpConstantComposite %v2f32 %f1 %f1
%colour = OpConstantComposite %v4f32 %f1 %f1 %f1 %f1
%colour64 = OpConstantComposite %v4f64 %d1 %d1 %d1 %d1
%image = OpTypeImage %void Dim2D 0 0 0 0 Unknown ReadOnly
%out = OpTypeImage %void Dim2D 0 1 0 0 Unknown WriteOnly
%both = OpTypeImage %void Dim3D 0 0 0 0 Unknown ReadWrite
%depth = OpTypeImage %void Dim2D 1 0 0 0 Unknown ReadOnly
%buffer = OpTypeImage %void Buffer 0 0 0 0 Unknown ReadOnly
%sampler = OpTypeSampler
%sampled = OpTypeSampledImage %image
%sampled_both = OpTypeSampledImage %both
%sampled_buffer = OpTypeSampledImage %buffer
%plain_out = OpTypeImage %void Dim2D 0 0 0 0 Unknown WriteOnly
%fn = OpTypeFunction %void %image %out %both %depth %buffer %sampler %plain_out
%k = OpFunction %void None %fn
%a = OpFunctionParameter %image
%w = OpFunctionParameter %out
%b = OpFunctionParameter %both
%d = OpFunctionParameter %depth
%t = OpFunctionParameter %buffer
%s = OpFunctionParameter %sampler
%plain = OpFunctionParameter %plain_out
%entry = OpLabel
%pair = OpSampledImage %sampled %a %s
%r0 = OpImageSampleExplicitLod %v4f32 %pair %at Lod %f1
%r1 = OpImageSampleExplicitLod %v4i32 %pair %xy Lod %f1
%r2 = OpImageSampleExplicitLod %v4f32 %pair %at Grad %at %at
%r3 = OpImageRead %v4f32 %a %xy
%r4 = OpImageRead %f32 %d %xy
%r5 = OpImageRead %v4i32 %b %xyz
%r6 = OpImageRead %v4f32 %t %i1
%r7 = OpImage %image %pair
OpImageWrite %w %xyz %colour
OpImageWrite %b %xyz %colour Lod %i1
%q0 = OpImageQuerySizeLod %v2i32 %a %i1
%q1 = OpImageQuerySizeLod %v3i32 %w %i1
%q2 = OpImageQuerySize %i64 %t
%q3 = OpImageQueryFormat %i32 %a
%q4 = OpImageQueryOrder %i32 %a
%q5 = OpImageQueryLevels %i32 %a
%block = OpSubgroupImageBlockReadINTEL %v2i32 %a %xy
OpSubgroupImageBlockWriteINTEL %plain %xy %i1
OpReturn
OpFunctionEnd
"""


def check(text: str) -> None:
    validate.validate(reader.read(assemble(text, (1, 4))), everything=True)


def test_all_that_is_allowed():
    check(MODULE)


@pytest.mark.parametrize(
    "old, new, rule",
    [
        ("%sampled %a %s", "%sampled %s %a", "OpSampledImage: an image of type"),
        ("%sampled %a %s", "%sampled %a %a", "a sampler of type"),
        ("%sampled %a %s", "%sampled %d %s", "OpSampledImage: .* of"),
        ("%sampled %a %s", "%sampled_both %b %s", "images that are read only"),
        ("%sampled %a %s", "%sampled_buffer %t %s", "not for image buffers"),
        (
            "%r0 = OpImageSampleExplicitLod %v4f32 %pair",
            "%r0 = OpImageSampleExplicitLod %v4f32 %a",
            "sampled",
        ),
        ("%v4f32 %pair %at Lod %f1", "%v4f32 %pair %f1 Lod %f1", "a coordinate of type"),
        ("%v4f32 %pair %at Lod %f1", "%v4f32 %pair %lxy Lod %f1", "a coordinate of type"),
        ("%v4f32 %pair %at Lod %f1", "%v4f32 %pair %a Lod %f1", "a coordinate of type"),
        ("%v4f32 %pair %at Lod %f1", "%v2f32 %pair %at Lod %f1", "a texel of type"),
        ("%v4f32 %pair %at Lod %f1", "%v4f64 %pair %at Lod %f1", "a texel of type"),
        ("%v4f32 %pair %at Lod %f1", "%f32 %pair %at Lod %f1", "a texel of type"),
        ("%v4f32 %pair %at Lod %f1", "%v4f32 %pair %at Lod %d1", "a level of detail of type"),
        ("%v4f32 %pair %at Lod %f1", "%v4f32 %pair %at Lod %at", "a level of detail of type"),
        ("%v4f32 %pair %at Lod %f1", "%v4f32 %pair %at ConstOffset|Lod %f1 %xy", "image operands 0xa"),
        ("%v4f32 %pair %at Lod %f1", "%v4f32 %pair %at Lod|Grad %f1 %at %at", "both a level of detail"),
        ("%v4f32 %pair %at Lod %f1", "%v4f32 %pair %at Lod", "0 image operands"),
        ("%v4f32 %pair %at Lod %f1", "%v4f32 %pair %at None", "neither a level of detail nor"),
        ("Grad %at %at", "Grad %at %f1", "a gradient of type"),
        ("Grad %at %at", "Grad %at %xy", "a gradient of type"),
        ("%r3 = OpImageRead %v4f32 %a %xy", "%r3 = OpImageRead %v4f32 %w %xyz", "write only"),
        ("%r3 = OpImageRead %v4f32 %a %xy", "%r3 = OpImageRead %v4f32 %a %at", "a coordinate of type"),
        ("%r3 = OpImageRead %v4f32 %a %xy", "%r3 = OpImageRead %v4f32 %a %i1", "a coordinate of type"),
        ("%r3 = OpImageRead %v4f32 %a %xy", "%r3 = OpImageRead %f32 %a %xy", "a texel of type"),
        (
            "%r3 = OpImageRead %v4f32 %a %xy",
            "%r3 = OpImageRead %v4f32 %a %xy ConstOffset %xy",
            "operands 0x8",
        ),
        ("%r3 = OpImageRead %v4f32 %a %xy", "%r3 = OpImageRead %v4f32 %s %xy", "an image of type"),
        ("OpImage %image %pair", "OpImage %depth %pair", "OpImage: the result has type"),
        ("OpImage %image %pair", "OpImage %image %a", "not an OpSampledImage"),
        ("OpImageWrite %w", "OpImageWrite %a", "read only"),
        ("OpImageWrite %w %xyz", "OpImageWrite %w %xy", "a coordinate of type"),
        ("OpImageWrite %w %xyz %colour", "OpImageWrite %w %xyz %colour64", "a texel of type"),
        ("OpImageWrite %w %xyz %colour", "OpImageWrite %w %xyz %colour Grad %at %at", "image operands 0x4"),
        ("%v2i32 %a %i1", "%i32 %a %i1", "a size of type"),
        ("%v2i32 %a %i1", "%v2f32 %a %i1", "a size of type"),
        ("%v2i32 %a %i1", "%v2i32 %a %l1", "a level of detail of type"),
        ("%v2i32 %a %i1", "%v2i32 %s %i1", "an image of type"),
        ("OpImageQueryFormat %i32", "OpImageQueryFormat %i64", "OpImageQueryFormat: the result"),
        ("OpImageQueryOrder %i32 %a", "OpImageQueryOrder %i32 %s", "an image of type"),
        ("OpImageQueryLevels %i32", "OpImageQueryLevels %f32", "OpImageQueryLevels: the result"),
        ("ReadINTEL %v2i32 %a %xy", "ReadINTEL %v2i32 %b %xy", "images of two dimensions"),
        ("ReadINTEL %v2i32 %a %xy", "ReadINTEL %v2i32 %plain %xy", "the image is write only"),
        ("ReadINTEL %v2i32 %a %xy", "ReadINTEL %v2i32 %a %xyz", "a coordinate of type"),
        ("ReadINTEL %v2i32 %a %xy", "ReadINTEL %v2i32 %a %at", "a coordinate of type"),
        ("ReadINTEL %v2i32 %a %xy", "ReadINTEL %v3i32 %a %xy", "a block of"),
        ("ReadINTEL %v2i32 %a %xy", "ReadINTEL %v2f32 %a %xy", "a block of"),
        ("WriteINTEL %plain", "WriteINTEL %a", "the image is read only"),
        ("WriteINTEL %plain", "WriteINTEL %w", "images of two dimensions"),
        ("WriteINTEL %plain %xy %i1", "WriteINTEL %plain %xy %f1", "a block of"),
        ("WriteINTEL %plain %xy %i1", "WriteINTEL %s %xy %i1", "an image of type"),
    ],
)
def test_each_rule(old, new, rule):
    assert MODULE.count(old) == 1
    with pytest.raises(SpirvError, match=rule):
        check(MODULE.replace(old, new))


CALL = """
OpCapability Addresses
OpCapability Kernel
OpCapability Linkage
OpCapability ImageBasic
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k"
OpDecorate %called LinkageAttributes "NAME" Import
%void = OpTypeVoid
%i32 = OpTypeInt 32 0
%f32 = OpTypeFloat 32
%v2i32 = OpTypeVector %i32 2
%v4f32 = OpTypeVector %f32 4
%one = OpConstant %i32 1
%xy = OpConstantComposite %v2i32 %one %one
%image = OpTypeImage %void Dim2D 0 0 0 0 Unknown ReadOnly
%sampler = OpTypeSampler
%fn = OpTypeFunction %void %image %sampler
%type = OpTypeFunction RESULT TYPES
%called = OpFunction RESULT None %type
PARAMETERS
OpFunctionEnd
%k = OpFunction %void None %fn
%a = OpFunctionParameter %image
%s = OpFunctionParameter %sampler
%entry = OpLabel
%r = OpFunctionCall RESULT %called VALUES
OpReturn
OpFunctionEnd
"""
READ = "_Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_i"
WRITE = "_Z12write_imagef14ocl_image2d_woDv2_iDv4_f"
ORDER = "_Z23get_image_channel_order14ocl_image2d_ro"
TYPES = {"a": "%image", "s": "%sampler", "xy": "%v2i32", "one": "%i32"}


@pytest.mark.parametrize(
    "name, result, values, rule",
    [
        (READ, "v4f32", "a s xy", None),
        (READ, "v4f32", "a xy", None),
        (READ, "v4f32", "", "0 arguments"),
        (READ, "v4f32", "a", "1 arguments"),
        (READ, "v4f32", "a s xy xy", "4 arguments"),
        (READ, "v4f32", "one xy", "an image of type"),
        (READ, "v4f32", "a xy s", "a sampler of type"),
        (READ, "v4f32", "a s s", "a coordinate of type"),
        (READ, "i32", "a s xy", "a texel of type"),
        (WRITE, "void", "a", "1 arguments"),
        (WRITE, "void", "a xy xy", "read only"),
        (ORDER, "i32", "a", None),
        (ORDER, "i32", "s", "an image of type"),
        (ORDER, "i32", "", "an image of type"),
        (ORDER, "v4f32", "a", "the result has type"),
    ],
)
def test_functions_that_clang_leaves_as_calls(name, result, values, rule):
    """Anybody may declare them, with any type."""
    values = values.split()
    text = CALL.replace("NAME", name).replace("RESULT", f"%{result}")
    text = text.replace("TYPES", " ".join(TYPES[value] for value in values))
    text = text.replace("VALUES", " ".join(f"%{value}" for value in values))
    parameters = (f"%p{k} = OpFunctionParameter {TYPES[value]}" for k, value in enumerate(values))
    data = assemble(text.replace("PARAMETERS", "\n".join(parameters)), (1, 4))
    module = link.link([reader.read(data, None, TypeTable(library().types))], lambda _: True)
    validate.validate(module)

    def made():
        plan(module, module.entry_points[0], PlanOptions(width=8, verify=True), library())

    if rule is None:
        made()
        return
    with pytest.raises(PlanError, match=rule) as error:
        made()
    assert name in str(error.value)
