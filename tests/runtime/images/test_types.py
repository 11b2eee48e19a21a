"""Every type of image: reads without a sampler, writes, queries; depths, literal samplers; against numpy."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.runtime.images import reference as reference
from tests.runtime.images.programs import (
    NUMBERS,
    OPTIONS,
    POINTS,
    colours_to_write,
    compare,
    points,
    prepared,
)
from tests.runtime.images.reference import CLAMP_TO_EDGE, LINEAR, NEAREST, NORMALIZED, Image
from tests.runtime.kernel_harness import Program, assemble

# Type in OpenCL C: (dimensions, whether it is an array, sizes, coordinates).
TYPES = {
    "image1d_t": (1, False, (13, 1, 1, 1), "x"),
    "image1d_buffer_t": (1, False, (21, 1, 1, 1), "x"),
    "image1d_array_t": (1, True, (13, 1, 1, 3), "xy"),
    "image2d_t": (2, False, (13, 7, 1, 1), "xy"),
    "image2d_array_t": (2, True, (13, 7, 1, 3), "xyzw"),
    "image2d_depth_t": (2, False, (13, 7, 1, 1), "xy"),
    "image2d_array_depth_t": (2, True, (13, 7, 1, 3), "xyzw"),
    "image3d_t": (3, False, (13, 7, 5, 1), "xyzw"),
}
FORMATS = {"f": ("BGRA", "UNORM_INT8"), "i": ("RG", "SIGNED_INT16"), "ui": ("RGBA", "UNSIGNED_INT32")}


def kernels(name: str) -> str:
    is_depth = "depth" in name
    coordinates = TYPES[name][3]
    text = ""
    for kind, number in (("f", "float"), ("i", "int"), ("ui", "uint")):
        if is_depth and kind != "f":
            continue
        colour, part = ("float", "x") if is_depth else (f"{number}4", "xyzw")
        text += f"""
kernel void read_{kind}(read_only {name} i, global {number}4 *out, global int4 *at) {{
    size_t k = get_global_id(0);
    out[k].{part} = read_image{kind}(i, at[k].{coordinates});
}}
kernel void both_{kind}(read_write {name} i, global {number}4 *out, global int4 *at) {{
    size_t k = get_global_id(0);
    {colour} old = read_image{kind}(i, at[k].{coordinates});
    write_image{kind}(i, at[k].{coordinates}, out[k].{part});
    out[k].{part} = old;
}}
kernel void write_{kind}(write_only {name} i, global {number}4 *colours, global int4 *at) {{
    size_t k = get_global_id(0);
    write_image{kind}(i, at[k].{coordinates}, colours[k].{part});
}}
"""
    return text


CASES = [(name, kind) for name in TYPES for kind in FORMATS if kind == "f" or "depth" not in name]


@pytest.mark.parametrize("known", (False, True))
@pytest.mark.parametrize("name, kind", CASES)
def test_reads_and_writes(name, kind, known):
    """Without samplers: reads of write_only's and read_write's pixels, writes that miss are dropped."""
    dims, arrayed, sizes, _ = TYPES[name]
    order, type_ = ("DEPTH", "FLOAT") if "depth" in name else FORMATS[kind]
    rng = np.random.default_rng(1)
    p = prepared(kernels(name), *([(0, reference.format_words(order, type_))] if known else []))
    count = 1 if "depth" in name else 4

    image = Image(order, type_, sizes, rng)
    at = points(rng, sizes, dims, arrayed, inside=True)
    out = np.zeros((POINTS, 4), NUMBERS[kind])
    p.run(f"read_{kind}", POINTS, 32, image.descriptor(), out, at)
    compare(out[:, :count], reference.sample(image, 0, dims, arrayed, at)[:, :count], order, type_)

    every = np.argwhere(np.ones(sizes[::-1]))
    rng.shuffle(every)
    every = every[: len(every) // 4 * 4]
    at = np.zeros((len(every), 4), np.int32)
    at[:, :3] = every[:, [3, 2, 1]]
    if arrayed:
        at[:, dims] = every[:, 0]
    colours = colours_to_write(rng, len(at), type_, kind)
    wanted = reference.encode(order, type_, colours)
    out = colours.copy()
    p.run(f"both_{kind}", len(at), 4, image.descriptor(), out, at)
    compare(out[:, :count], image.colours[tuple(every.T)][:, :count], order, type_)
    assert np.abs(image.pixels()[tuple(every.T)] - wanted).max() < 1e-9

    image = Image(order, type_, sizes, rng)
    before = image.memory.copy()
    missing = rng.random(len(at)) < 0.5
    axis = rng.integers(0, dims + arrayed, len(at))
    beyond = np.array([*sizes[:dims], *([sizes[3]] if arrayed else [])])[axis]
    at[missing, axis[missing]] = np.where(rng.random(len(at)) < 0.5, -1, beyond)[missing]
    p.run(f"write_{kind}", len(at), 4, image.descriptor(), colours, at)
    expected = image.colours.copy()
    hit = tuple(every[~missing].T)
    expected[hit] = wanted[~missing]
    assert np.abs(image.pixels() - expected).max() < 1e-9
    assert (image.memory != before).sum() <= (~missing).sum() * image.element


QUERIES = {
    "image1d_t": "w",
    "image1d_buffer_t": "w",
    "image1d_array_t": "wa",
    "image2d_t": "whD",
    "image2d_array_t": "whaD",
    "image2d_depth_t": "whD",
    "image2d_array_depth_t": "whaD",
    "image3d_t": "whdD",
}
FUNCTIONS = {
    "w": "get_image_width(i)",
    "h": "get_image_height(i)",
    "d": "get_image_depth(i)",
    "a": "(int)get_image_array_size(i)",
    "D": "get_image_dim(i).y",
}


@pytest.mark.parametrize("access", ("read_only", "write_only", "read_write"))
@pytest.mark.parametrize("name", TYPES)
def test_queries(name, access):
    _, _, sizes, _ = TYPES[name]
    lines = [FUNCTIONS[letter] for letter in QUERIES[name]]
    lines += ["get_image_channel_order(i)", "get_image_channel_data_type(i)"]
    body = "".join(f"out[{k}] = {line};" for k, line in enumerate(lines))
    text = f"kernel void queries({access} {name} i, global int *out) {{ {body} }}"
    order, type_ = ("DEPTH", "UNORM_INT16") if "depth" in name else ("ARGB", "SNORM_INT8")
    image = Image(order, type_, sizes, np.random.default_rng(2))
    answers = dict(zip("whda", sizes, strict=True)) | {"D": sizes[1]}
    expected = [answers[letter] for letter in QUERIES[name]]
    expected += [reference.ORDERS[order], reference.TYPES[type_]]
    for known in ((), ((0, reference.format_words(order, type_)),)):
        out = np.zeros(len(lines), np.int32)
        prepared(text, *known).run("queries", 1, 1, image.descriptor(), out)
        assert out.tolist() == expected


DEPTHS = """
kernel void sampled(read_only image2d_array_depth_t i, sampler_t s, global float *out, global float4 *at) {
    size_t k = get_global_id(0);
    out[k] = read_imagef(i, s, at[k]);
}
kernel void whole(read_only image2d_array_depth_t i, sampler_t s, global float *out, global float4 *at) {
    size_t k = get_global_id(0);
    out[k] = read_imagef(i, s, convert_int4_rtz(at[k]));
}
"""


@pytest.mark.parametrize("known", (False, True))
@pytest.mark.parametrize("type_", ("UNORM_INT16", "FLOAT"))
def test_arrays_of_depths(type_, known):
    rng = np.random.default_rng(3)
    image = Image("DEPTH", type_, (13, 7, 1, 3), rng)
    for word in (CLAMP_TO_EDGE | NEAREST, reference.CLAMP | NEAREST, CLAMP_TO_EDGE | LINEAR):
        values = [(0, reference.format_words("DEPTH", type_)), (1, struct.pack("<Q", word))]
        p = prepared(DEPTHS, *(values if known else ()))
        at = rng.uniform(-3, 17, (POINTS, 4)).astype(np.float32)
        at[:, :2] = np.where(np.abs(at[:, :2] - np.rint(at[:, :2])) < 0.01, 0.5, at[:, :2])
        for kernel in ("sampled", "whole")[: 1 if word & LINEAR else 2]:
            where = np.trunc(at) if kernel == "whole" else at
            out = np.zeros(POINTS, np.float32)
            p.run(kernel, POINTS, 32, image.descriptor(), np.uint64(word), out, at)
            wanted = reference.sample(image, word, 2, True, where)[:, 0]
            assert np.abs(out - wanted).max() < 2e-5, kernel


def literal_samplers() -> tuple[list[int], str]:
    """Samplers' words, and a module whose kernel `s` reads with each: colour [sampler, work-item]."""
    modes = ["ClampToEdge", "Clamp", "Repeat", "RepeatMirrored"]
    words, constants, reads = [], "", ""
    for number, mode in enumerate(modes, 1):
        for normalized in (0, 1) if mode in ("ClampToEdge", "Clamp") else (1,):
            for filter_, bit in (("Nearest", NEAREST), ("Linear", LINEAR)):
                k = len(words)
                words.append(number << 1 | normalized | bit)
                constants += f"%s{k} = OpConstantSampler %sampler {mode} {normalized} {filter_}\n"
                constants += f"%n{k} = OpConstant %i64 {POINTS * k}\n"
                reads += f"""
%both{k} = OpSampledImage %sampled %image %s{k}
%colour{k} = OpImageSampleExplicitLod %v4f32 %both{k} %xy Lod %f0
%index{k} = OpIAdd %i64 %x %n{k}
%place{k} = OpInBoundsPtrAccessChain %pv4f32 %out %index{k}
OpStore %place{k} %colour{k} Aligned 16
"""
    text = f"""
OpCapability Addresses
OpCapability Kernel
OpCapability Int64
OpCapability ImageBasic
OpCapability LiteralSampler
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "s" %gid
OpDecorate %gid BuiltIn GlobalInvocationId
%void = OpTypeVoid
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%f32 = OpTypeFloat 32
%v3i64 = OpTypeVector %i64 3
%v4f32 = OpTypeVector %f32 4
%v2f32 = OpTypeVector %f32 2
%f0 = OpConstant %f32 0
%pv4f32 = OpTypePointer CrossWorkgroup %v4f32
%pgid = OpTypePointer Input %v3i64
%type = OpTypeImage %void 2D 0 0 0 0 Unknown ReadOnly
%sampler = OpTypeSampler
%sampled = OpTypeSampledImage %type
%fn = OpTypeFunction %void %type %pv4f32 %pv4f32
{constants}
%gid = OpVariable %pgid Input
%k = OpFunction %void None %fn
%image = OpFunctionParameter %type
%out = OpFunctionParameter %pv4f32
%at = OpFunctionParameter %pv4f32
%entry = OpLabel
%ids = OpLoad %v3i64 %gid
%x = OpCompositeExtract %i64 %ids 0
%from = OpInBoundsPtrAccessChain %pv4f32 %at %x
%point = OpLoad %v4f32 %from Aligned 16
%xy = OpVectorShuffle %v2f32 %point %point 0 1
{reads}
OpReturn
OpFunctionEnd
"""
    return words, text


@pytest.mark.parametrize("known", (False, True))
def test_literal_samplers(known):
    """OpConstantSampler, with every addressing mode and filter."""
    words, text = literal_samplers()
    rng = np.random.default_rng(4)
    image = Image("RGBA", "UNORM_INT8", (13, 7, 1, 1), rng)
    values = ((0, reference.format_words("RGBA", "UNORM_INT8")),) if known else ()
    p = Program(assemble(text), OPTIONS, argument_values=values)
    at = np.zeros((POINTS, 4), np.float32)
    at[:, :2] = rng.integers(-160, 192, (POINTS, 2)) / 64 + 1 / 128
    out = np.zeros((len(words), POINTS, 4), np.float32)
    p.run("s", POINTS, 32, image.descriptor(), out, at)
    for word, found in zip(words, out, strict=True):
        wanted = reference.sample(image, word, 2, False, at)
        assert np.abs(found - wanted).max() < 2e-5, (word & 14, word & NORMALIZED, word & LINEAR)
