"""Image built-ins, compiled for any format and for known ones, against numpy (reference.py)."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.marks import more
from tests.runtime.images import reference as reference
from tests.runtime.images.programs import (
    NUMBERS,
    POINTS,
    colours_to_write,
    compare,
    kind_of,
    points,
    prepared,
)
from tests.runtime.images.reference import (
    CLAMP,
    CLAMP_TO_EDGE,
    LINEAR,
    MIRRORED_REPEAT,
    NEAREST,
    NORMALIZED,
    REPEAT,
    Image,
)
from tests.runtime.kernel_harness import Program

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


def program(image: str, *values) -> Program:
    """Code for any format, or with known arguments: the first, and perhaps the second."""
    _, _, _, floats, ints = IMAGES[image]
    return prepared(source(image, floats, ints), *enumerate(values))


def both(image: str, order: str, type_: str, *more):
    """The code for any format and that for this one."""
    return program(image), program(image, reference.format_words(order, type_), *more)


@pytest.mark.parametrize("order,type_", [more(*f) if k % 2 else f for k, f in enumerate(reference.FORMATS)])
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
    program(name).run(f"plain_{kind}", POINTS, 32, image.descriptor(), out, at)
    compare(out, reference.sample(image, 0, 2, False, at), order, type_)


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
            check_sampler(program(name), name, image, sampler, rng)


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


QUERIES = """
constant sampler_t scope = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_LINEAR;
kernel void queries(read_only image2d_array_t a, read_only image3d_t v, write_only image1d_t l,
                    global int *out) {
    out[0] = get_image_width(a);
    out[1] = get_image_height(a);
    out[2] = get_image_array_size(a);
    out[3] = get_image_channel_order(a);
    out[4] = get_image_channel_data_type(a);
    int4 size = get_image_dim(v);
    out[5] = size.x;
    out[6] = size.y;
    out[7] = size.z;
    out[8] = get_image_width(l);
    out[9] = get_image_channel_data_type(l) == CLK_SIGNED_INT16;
    out[10] = get_image_dim(a).y;
}
kernel void constant_samplers(read_only image2d_t i, global float4 *out, global float4 *at) {
    const sampler_t own = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
    size_t k = get_global_id(0);
    out[k] = read_imagef(i, scope, at[k].xy) + 2 * read_imagef(i, own, at[k].xy * 9);
}
kernel void depths(read_only image2d_depth_t i, sampler_t s, write_only image2d_depth_t o,
                   global float4 *at) {
    size_t k = get_global_id(0);
    int2 here = (int2)(k % 13, k / 13);
    write_imagef(o, here, read_imagef(i, s, at[k].xy) + 4 * read_imagef(i, here));
}
kernel void halves(read_only image2d_t i, sampler_t s, write_only image2d_t o) {
    int2 c = (int2)(get_global_id(0) % 13, get_global_id(0) / 13);
    half4 h = read_imageh(i, s, c);
    write_imageh(o, c, h * (half)2);
}
"""


@pytest.mark.parametrize("known", (False, True))
def test_queries_and_samplers_of_the_program(known):
    rng = np.random.default_rng(5)
    array = Image("BGRA", "UNORM_INT8", (13, 7, 1, 3), rng)
    volume, line = Image("R", "FLOAT", (5, 6, 7, 1), rng), Image("RG", "SIGNED_INT16", (9, 1, 1, 1), rng)
    formats = [reference.format_words(i.order, i.type) for i in (array, volume, line)]
    values = tuple(enumerate(formats)) if known else ()
    out = np.zeros(11, np.int32)
    p = prepared(QUERIES, *values)
    p.run("queries", 1, 1, array.descriptor(), volume.descriptor(), line.descriptor(), out)
    assert out.tolist() == [13, 7, 3, 0x10B6, 0x10D2, 5, 6, 7, 9, 1, 7]
    flat = Image("RGBA", "UNORM_INT8", (13, 7, 1, 1), rng)
    values = ((0, reference.format_words(flat.order, flat.type)),) if known else ()
    at = rng.uniform(-2, 2, (POINTS, 4)).astype(np.float32)
    found = np.zeros((POINTS, 4), np.float32)
    p = prepared(QUERIES, *values)
    p.run("constant_samplers", POINTS, 32, flat.descriptor(), found, at)
    wanted = reference.sample(flat, NORMALIZED | REPEAT | LINEAR, 2, False, at)
    wanted = wanted + 2 * reference.sample(flat, CLAMP | NEAREST, 2, False, at * np.float32(9))
    assert np.abs(found - wanted).max() < 1e-4


@pytest.mark.parametrize("known", (False, True))
def test_depths_and_halves(known):
    rng = np.random.default_rng(6)
    depth, target = (Image("DEPTH", "FLOAT", (13, 7, 1, 1), rng) for _ in range(2))
    word = CLAMP_TO_EDGE | LINEAR
    format_ = reference.format_words("DEPTH", "FLOAT")
    values = ((0, format_), (1, struct.pack("<Q", word)), (2, format_)) if known else ()
    at = rng.uniform(-2, 15, (91, 4)).astype(np.float32)
    p = prepared(QUERIES, *values)
    p.run("depths", 91, 7, depth.descriptor(), np.uint64(word), target.descriptor(), at)
    wanted = reference.sample(depth, word, 2, False, at)[:, 0] + 4 * depth.colours[..., 0].reshape(-1)
    assert np.abs(target.pixels()[..., 0].reshape(-1) - wanted).max() < 1e-5
    flat, doubled = (Image("RGBA", "HALF_FLOAT", (13, 7, 1, 1), rng) for _ in range(2))
    format_ = reference.format_words("RGBA", "HALF_FLOAT")
    values = ((0, format_), (1, struct.pack("<Q", NEAREST)), (2, format_)) if known else ()
    p = prepared(QUERIES, *values)
    p.run("halves", 91, 7, flat.descriptor(), np.uint64(NEAREST), doubled.descriptor())
    assert (doubled.pixels() == 2 * flat.colours).all()


# Without a word of the extension, and with pasted names.
MIPMAPS = """
#define FUNCTION(what, kind) what##_image##kind
kernel void lod(read_only image2d_t i, sampler_t s, global float4 *out, global float4 *at) {
    size_t k = get_global_id(0);
    out[k] = FUNCTION(read, f)(i, s, at[k].xy, at[k].w);
}
kernel void gradients(read_only image2d_t i, sampler_t s, global float4 *out, global float4 *at) {
    size_t k = get_global_id(0);
    float step = exp2(at[k].w) / 16;
    out[k] = read_imagef(i, s, at[k].xy, (float2)(step, 0), (float2)(0, step / 2));
}
kernel void write(write_only image2d_t i, global float4 *colours) {
    int k = get_global_id(0);
    FUNCTION(write, f)(i, (int2)(k % 4, k / 4), 2, colours[k]);
}
kernel void levels(read_only image2d_t i, global int *out) { out[0] = get_image_num_mip_levels(i); }
"""


@pytest.mark.parametrize("known", (False, True))
def test_mipmaps(known):
    rng = np.random.default_rng(7)
    image = Image("RGBA", "UNORM_INT8", (16, 8, 1, 1), rng, levels=5)
    format_ = reference.format_words("RGBA", "UNORM_INT8")
    at = rng.uniform(0, 1, (POINTS, 4)).astype(np.float32)
    at[:, 3] = np.round(rng.uniform(-1, 5, POINTS), 2) + 0.003  # the level of detail, none near a half
    lowest, highest = 0.5, 3.25
    for filter_ in (NEAREST, LINEAR):
        for mixes in (0, 0x40):
            word = NORMALIZED | CLAMP_TO_EDGE | filter_ | mixes
            bits = word | int(lowest * 2048) << 32 | int(highest * 2048) << 48
            values = ((0, format_), (1, struct.pack("<Q", bits))) if known else ()
            p = prepared(MIPMAPS, *values)
            lod = np.clip(np.clip(at[:, 3], lowest, highest), 0, 4)
            first = np.floor(lod) if mixes else np.ceil(lod + 0.5) - 1
            share = (lod - first)[:, None] if mixes else 0
            each = np.stack([reference.sample(image, word, 2, False, at, level) for level in range(5)])
            first = first.astype(int)
            points_ = np.arange(POINTS)
            wanted = each[first, points_] * (1 - share) + each[np.minimum(first + 1, 4), points_] * share
            for kernel in ("lod", "gradients"):
                out = np.zeros((POINTS, 4), np.float32)
                p.run(kernel, POINTS, 32, image.descriptor(), np.uint64(bits), out, at)
                assert np.abs(out - wanted).max() < 1e-4, kernel
    colours = rng.uniform(0, 1, (8, 4)).astype(np.float32)
    p = prepared(MIPMAPS, *([(0, format_)] if known else []))
    before = [image.pixels(level) for level in range(5)]
    p.run("write", 8, 8, image.descriptor(), colours)
    written = reference.encode("RGBA", "UNORM_INT8", colours).reshape(2, 4, 4)
    for level in range(5):
        assert (
            np.abs(image.pixels(level)[0, 0] - (written if level == 2 else before[level][0, 0])).max() < 1e-9
        )
    out = np.zeros(1, np.int32)
    p.run("levels", 1, 1, image.descriptor(), out)
    assert out[0] == 5


def test_table_of_srgb():
    """Every number of the table that reads of sRGB look up."""
    image = Image("sRGBA", "UNORM_INT8", (256, 1, 1, 1), np.random.default_rng(8), gap=0)
    image.memory.reshape(256, 4)[:] = np.arange(256)[:, None]
    out = np.zeros((256, 4), np.float32)
    at = np.zeros((256, 4), np.int32)
    at[:, 0] = np.arange(256)
    program("image1d_t").run("plain_f", 256, 32, image.descriptor(), out, at)
    wanted = reference.decode("sRGBA", "UNORM_INT8", image.memory)
    assert (out[:, :3] == wanted[:, :3].astype(np.float32)).all()
