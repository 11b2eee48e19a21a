"""Accesses to pixels that OpenCL C leaves undefined, and their right twins: the whole report of each."""

from __future__ import annotations

import pytest

from tests.loader.check.pixels import WIDTH

HEAD = """#pragma OPENCL EXTENSION cl_khr_mipmap_image : enable
#pragma OPENCL EXTENSION cl_khr_mipmap_image_writes : enable
constant sampler_t none = CLK_ADDRESS_NONE | CLK_FILTER_NEAREST | CLK_NORMALIZED_COORDS_FALSE;
constant sampler_t smooth = CLK_ADDRESS_NONE | CLK_FILTER_LINEAR | CLK_NORMALIZED_COORDS_FALSE;
constant sampler_t edge = CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR | CLK_NORMALIZED_COORDS_TRUE;
constant sampler_t wraps = CLK_ADDRESS_REPEAT | CLK_FILTER_NEAREST | CLK_NORMALIZED_COORDS_TRUE;
constant sampler_t wrong = CLK_ADDRESS_REPEAT | CLK_FILTER_NEAREST | CLK_NORMALIZED_COORDS_FALSE;
kernel void k(read_only image2d_t from, read_only image2d_t whole, write_only image2d_t to,
              write_only image2d_t levels, sampler_t s, global float4 *out) {
  int i = get_global_id(0);
"""
LINE = HEAD.count("\n") + 1
SIZE = "an image of 16 x 4 pixels"

# name: (the kernel's body, the first line of what is told, the first work-item, how many times).
WRONG = {
    "right of it": (
        "  out[i] = read_imagef(from, none, (int2)(i + 2, 0));",
        f"read at (16, 0), outside of {SIZE}, with CLK_ADDRESS_NONE, argument 'from'",
        14,
        2,
    ),
    "below it, at a number": (
        "  out[i] = read_imagef(from, none, (float2)(i + 0.5f, i * 0.5f));",
        f"read at (8.5, 4), outside of {SIZE}, with CLK_ADDRESS_NONE, argument 'from'",
        8,
        8,
    ),
    "a sampler of the host": (
        "  out[i] = read_imagef(from, s, (float2)(i / 8.0f, 0.5f));",
        f"read at (1, 0.5), outside of {SIZE}, with CLK_ADDRESS_NONE, normalized coordinates, "
        "argument 'from'",
        8,
        8,
    ),
    "half a pixel left of it": (
        "  out[i] = read_imagef(from, smooth, (float2)(i + 0.25f, 1.5f));",
        f"read at (0.25, 1.5), outside of {SIZE}, with CLK_ADDRESS_NONE, linear filtering, argument 'from'",
        0,
        1,
    ),
    "no number": (
        "  out[i] = read_imagef(from, wraps, (float2)(i < 3 ? NAN : 0.25f, 0.5f));",
        f"read at (nan, 0.5), which is no place in {SIZE}, argument 'from'",
        0,
        3,
    ),
    "integers that are normalized": (
        "  out[i] = read_imagef(from, wraps, (int2)(0, 0));",
        "read with a sampler of normalized coordinates, but integer ones, argument 'from'",
        0,
        16,
    ),
    "repeats without being normalized": (
        "  out[i] = read_imagef(from, wrong, (float2)(1.5f, 1.5f));",
        "read with a sampler of a repeating address mode, but coordinates that are not normalized, "
        "argument 'from'",
        0,
        16,
    ),
    "linear filtering of integers": (
        "  out[i] = convert_float4(read_imageui(whole, edge, (float2)(0.5f, 0.5f)));",
        "read with a sampler of linear filtering, of an image of integers, argument 'whole'",
        0,
        16,
    ),
    "integers as numbers": (
        "  out[i] = read_imagef(whole, (int2)(i, 1));",
        "read of numbers of floating point, of an image of integers, argument 'whole'",
        0,
        16,
    ),
    "numbers as integers": (
        "  write_imagei(to, (int2)(i, 1), (int4)(1));",
        "write of integers, of an image of normalized or floating-point numbers, argument 'to'",
        0,
        16,
    ),
    "no such level": (
        "  if (i < 8) write_imagef(levels, (int2)(i, 1), 1 + i / 4, (float4)(1));",
        "write of level 2 of an image of 2, argument 'levels'",
        4,
        4,
    ),
    "outside of a level": (
        "  write_imagef(levels, (int2)(i, 1), 1, (float4)(1));",
        "write at (8, 1), outside of an image of 8 x 2 pixels, argument 'levels'",
        8,
        8,
    ),
}

RIGHT = {
    "inside": (
        "  out[i] = read_imagef(from, none, (int2)(i, 3));\n"
        "  out[i] += read_imagef(from, none, (float2)(i + 0.99f, 3.9f));"
    ),
    "normalized": "  out[i] = read_imagef(from, s, (float2)(i / 16.0f, 0.999f));",
    "the middles of pixels": "  out[i] = read_imagef(from, smooth, (float2)(i + 0.5f, 3.5f));",
    "outside where that has a meaning": (
        "  out[i] = read_imagef(from, edge, (float2)(-2, 7)) + read_imagef(from, wraps, (float2)(9.5f));"
    ),
    "integers": "  out[i] = convert_float4(read_imageui(whole, none, (int2)(i, 1)));",
    "levels": "  write_imagef(levels, (int2)(i / 2, 1), 1, (float4)(1));",
}


@pytest.fixture(scope="module")
def found(reports):
    kernels = [("wrong " + name, f"{HEAD}{body}\n}}\n", WIDTH) for name, (body, *_) in WRONG.items()]
    kernels += [("right " + name, f"{HEAD}{body}\n}}\n", WIDTH) for name, body in RIGHT.items()]
    return reports(kernels, "pixels")


@pytest.mark.parametrize("name", WRONG)
def test_report(found, name):
    body, sentence, item, times = WRONG[name]
    first, where, source, mark, by, *count = found["wrong " + name].splitlines()
    assert first == f"cl_driver check: kernel 'k': {sentence}"
    assert where.startswith(f"  at program.cl:{LINE}:")
    assert source == "    " + body
    assert source[len(mark) - 1 :].startswith(("read_image", "write_image"))
    assert by == f"  by work-item ({item}, 0, 0), group (0, 0, 0), local id ({item}, 0, 0)"
    assert count == ([f"  {times} times in this launch"] if times > 1 else [])


@pytest.mark.parametrize("name", RIGHT)
def test_no_report(found, name):
    assert found["right " + name] == ""
