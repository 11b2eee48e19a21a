"""Image built-ins, compiled for any format and for known ones, against numpy (image_reference.py)."""

from __future__ import annotations

import functools
import os
import struct

import image_reference as reference
import numpy as np
import pytest
from image_reference import CLAMP, CLAMP_TO_EDGE, LINEAR, MIRRORED_REPEAT, NEAREST, NORMALIZED, REPEAT, Image
from kernel_harness import Program, compile_c

from cl_driver.codegen.options import CodegenOptions
from cl_driver.jit.target import host_target

OPTIONS = CodegenOptions(features=frozenset(host_target(os.environ.get("CL_DRIVER_TEST_CPU", "")).features))
POINTS = 96

# Type in OpenCL C: (dimensions, whether it is an array, sizes, float and int coordinates).
IMAGES = {
    "image1d_t": (1, False, (13, 1, 1, 1), "x", "x"),
    "image1d_array_t": (1, True, (13, 1, 1, 3), "xy", "xy"),
    "image2d_t": (2, False, (13, 7, 1, 1), "xy", "xy"),
    "image2d_array_t": (2, True, (13, 7, 1, 3), "xyzw", "xyzw"),
    "image3d_t": (3, False, (13, 7, 5, 1), "xyzw", "xyzw"),
}
ANY_LOD = 0xFFFF << 48


def source(image: str, floats: str, ints: str) -> str:
    """Kernels that read and write points."""
    reads = "".join(
        f"""
kernel void sample_{kind}(read_only {image} i, sampler_t s, global {T}4 *out, global float4 *at) {{
    size_t k = get_global_id(0);
    out[k] = read_image{kind}(i, s, at[k].{floats});
}}
kernel void fetch_{kind}(read_only {image} i, sampler_t s, global {T}4 *out, global int4 *at) {{
    size_t k = get_global_id(0);
    out[k] = read_image{kind}(i, s, at[k].{ints});
}}
kernel void plain_{kind}(read_only {image} i, global {T}4 *out, global int4 *at) {{
    size_t k = get_global_id(0);
    out[k] = read_image{kind}(i, at[k].{ints});
}}
kernel void write_{kind}(write_only {image} i, global {T}4 *colours, global int4 *at) {{
    size_t k = get_global_id(0);
    write_image{kind}(i, at[k].{ints}, colours[k]);
}}
kernel void change_{kind}(read_write {image} i, global {T}4 *colours, global int4 *at) {{
    size_t k = get_global_id(0);
    {T}4 old = read_image{kind}(i, at[k].{ints});
    write_image{kind}(i, at[k].{ints}, colours[k]);
    colours[k] = old;
}}
"""
        for kind, T in (("f", "float"), ("i", "int"), ("ui", "uint"))
    )
    return reads


@functools.cache
def compiled(text: str) -> bytes:
    return compile_c(text)


@functools.cache
def general(image: str) -> Program:
    _, _, _, floats, ints = IMAGES[image]
    return Program(compiled(source(image, floats, ints)), OPTIONS)


def program(image: str, *values) -> Program:
    """With known arguments: the first, and perhaps the second."""
    _, _, _, floats, ints = IMAGES[image]
    known = tuple(enumerate(values))
    return Program(compiled(source(image, floats, ints)), OPTIONS, values=known)


def kind_of(type_: str) -> str:
    return {"S": "i", "U": "ui"}[type_[0]] if reference.is_integer(type_) else "f"


NUMBERS = {"f": np.float32, "i": np.int32, "ui": np.uint32}


def points(rng, sizes, dims, arrayed, inside: bool) -> np.ndarray:
    """Integer coordinates; not inside: up to 3 beyond in all directions."""
    at = np.zeros((POINTS, 4), np.int32)
    beyond = 0 if inside else 3
    for k in range(dims):
        at[:, k] = rng.integers(-beyond, sizes[k] + beyond, POINTS)
    if arrayed:
        at[:, dims] = rng.integers(-beyond, sizes[3] + beyond, POINTS)
    return at


def compare(found, wanted, order: str, type_: str) -> None:
    if reference.is_integer(type_) or type_ in ("HALF_FLOAT", "FLOAT"):
        assert (found.astype(np.float64) == wanted).all()
    else:
        limit = 1.5 * np.spacing(np.abs(wanted).astype(np.float32))
        if order.startswith("s"):
            limit = limit + 1e-7
        assert (np.abs(found - wanted) <= limit).all()


def both(image: str, order: str, type_: str, *more):
    """The code for any format and that for this one."""
    return general(image), program(image, reference.format_words(order, type_), *more)


@pytest.mark.parametrize("order,type_", reference.FORMATS)
def test_formats(order, type_):
    """Every format is read by a sampler and without one, and written; what is around stays as it was."""
    rng = np.random.default_rng(1)
    name = "image2d_t"
    sizes = IMAGES[name][2]
    kind = kind_of(type_)
    number = NUMBERS[kind]
    sampler = CLAMP | NEAREST
    for p in both(name, order, type_, struct.pack("<Q", sampler)):
        image = Image(order, type_, sizes, rng)
        at = points(rng, sizes, 2, False, inside=False)
        out = np.zeros((POINTS, 4), number)
        p.run(f"fetch_{kind}", POINTS, 32, image.descriptor(), np.uint64(sampler), out, at)
        compare(out, reference.sample(image, sampler, 2, False, at), order, type_)
    for p in both(name, order, type_):
        image = Image(order, type_, sizes, rng)
        check_writes(p, image, kind, rng)
    image = Image(order, type_, sizes, rng)
    at = points(rng, sizes, 2, False, inside=True)
    out = np.zeros((POINTS, 4), number)
    general(name).run(f"plain_{kind}", POINTS, 32, image.descriptor(), out, at)
    compare(out, reference.sample(image, 0, 2, False, at), order, type_)


def colours_to_write(rng, count: int, type_: str, kind: str) -> np.ndarray:
    if kind == "f":
        return rng.uniform(-1.4, 1.4, (count, 4)).astype(np.float32)
    high = 1 << int(rng.integers(4, 31))
    return rng.integers(-high if kind == "i" else 0, high, (count, 4)).astype(NUMBERS[kind])


def check_writes(p: Program, image: Image, kind: str, rng) -> None:
    """Every second pixel, and some outside, which are dropped."""
    width, height, _, _ = image.sizes
    inside = [(x, y, 0, 0) for y in range(height) for x in range(width) if (x + y) % 2]
    outside = [(-1, 0, 0, 0), (width, 1, 0, 0), (0, -1, 0, 0), (0, height, 0, 0)]
    at = np.array((inside + outside)[: len(inside) + 4], np.int32)
    at = np.concatenate([at, np.repeat(at[-1:], -len(at) % 32, 0)])
    colours = colours_to_write(rng, len(at), image.type, kind)
    before = image.memory.copy()
    p.run(f"write_{kind}", len(at), 32, image.descriptor(), colours, at)
    wanted = image.colours.copy()
    for (x, y, _, _), colour in zip(inside, colours, strict=False):
        wanted[0, 0, y, x] = reference.encode(image.order, image.type, colour)
    found = image.pixels()
    if image.order.startswith("s"):  # a level more or less, near the middle
        assert (np.abs(found - wanted) < 0.01).all()
    elif image.type.startswith("UNORM") or image.type.startswith("SNORM"):
        assert (np.abs(found - wanted) < 1e-9).all()
    else:
        assert (found == wanted).all()
    touched = np.zeros(image.memory.size, bool)
    for x, y, _, _ in inside:
        start = y * image.pitches[0][1] + x * image.element
        touched[start : start + image.element] = True
    assert (image.memory[~touched] == before[~touched]).all()


SAMPLERS = [
    (mode | normalized | filter_)
    for mode in (CLAMP_TO_EDGE, CLAMP, REPEAT, MIRRORED_REPEAT)
    for normalized in (0, NORMALIZED)
    for filter_ in (NEAREST, LINEAR)
    if normalized or mode in (CLAMP_TO_EDGE, CLAMP)
]


def float_points(rng, sizes, dims, arrayed, sampler) -> np.ndarray:
    """Coordinates in and around an image, no nearer than 1/64 to where another pixel begins."""
    at = np.zeros((POINTS, 4), np.float32)
    for k in range(dims):
        whole = rng.integers(-2 * sizes[k], 3 * sizes[k], POINTS)
        at[:, k] = whole + rng.choice([0.125, 0.25, 0.40625, 0.59375, 0.8125, 0.9375], POINTS)
        if sampler & NORMALIZED:
            at[:, k] /= sizes[k]
    if arrayed:
        at[:, dims] = rng.uniform(-2, sizes[3] + 2, POINTS)
    return at


def check_sampler(p: Program, name: str, image: Image, sampler: int, rng) -> None:
    dims, arrayed, sizes = IMAGES[name][:3]
    at = float_points(rng, sizes, dims, arrayed, sampler)
    out = np.zeros((POINTS, 4), np.float32)
    p.run("sample_f", POINTS, 32, image.descriptor(), np.uint64(sampler | ANY_LOD), out, at)
    wanted = reference.sample(image, sampler, dims, arrayed, at)
    if sampler & LINEAR:
        assert np.abs(out - wanted).max() < 2e-5 * max(1.0, np.abs(wanted).max())
    else:
        compare(out, wanted, image.order, image.type)


@pytest.mark.parametrize("name", IMAGES)
def test_samplers_of_any_kind(name):
    rng = np.random.default_rng(2)
    image_rgba = Image("RGBA", "UNORM_INT8", IMAGES[name][2], rng)
    image_r = Image("R", "FLOAT", IMAGES[name][2], rng)
    for sampler in SAMPLERS:
        for image in (image_rgba, image_r):
            check_sampler(general(name), name, image, sampler, rng)


@pytest.mark.parametrize("name", IMAGES)
def test_known_samplers(name):
    rng = np.random.default_rng(3)
    formats = [("RGBA", "UNORM_INT8"), ("R", "FLOAT"), ("BGRA", "UNORM_INT8"), ("RG", "HALF_FLOAT")]
    # All of them with two dimensions, some with each of the others.
    chosen = SAMPLERS if name == "image2d_t" else SAMPLERS[list(IMAGES).index(name) :: 4]
    for k, sampler in enumerate(chosen):
        order, type_ = formats[k % len(formats)]
        image = Image(order, type_, IMAGES[name][2], rng)
        p = program(name, reference.format_words(order, type_), struct.pack("<Q", sampler | ANY_LOD))
        check_sampler(p, name, image, sampler, rng)


@pytest.mark.parametrize("name", IMAGES)
def test_reads_and_writes_of_one_image(name):
    dims, arrayed, sizes = IMAGES[name][:3]
    rng = np.random.default_rng(4)
    for kind, type_ in (("f", "FLOAT"), ("i", "SIGNED_INT16"), ("ui", "UNSIGNED_INT32")):
        for p in both(name, "RGBA", type_):
            image = Image("RGBA", type_, sizes, rng)
            every = np.argwhere(np.ones((sizes[3], sizes[2], sizes[1], sizes[0])))
            rng.shuffle(every)
            every = every[: len(every) // 8 * 8]
            at = np.zeros((len(every), 4), np.int32)
            at[:, :3] = every[:, [3, 2, 1]]
            if arrayed:
                at[:, dims] = every[:, 0]
            colours = colours_to_write(rng, len(at), type_, kind)
            given = colours.copy()
            p.run(f"change_{kind}", len(at), 8, image.descriptor(), colours, at)
            assert (colours == image.colours[tuple(every.T)]).all()
            assert (image.pixels()[tuple(every.T)] == reference.encode("RGBA", type_, given)).all()
