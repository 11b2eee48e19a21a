"""Kernels that read and write images, from clCreateImage to the pixels, on every type of image."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images.image import SHAPES, Image
from tests.loader.images.model import Format, descriptor

RGBA8 = Format("CL_RGBA", "CL_UNSIGNED_INT8")
UNORM8 = Format("CL_RGBA", "CL_UNORM_INT8")
OPTIONS = "-cl-std=CL3.0"
C_TYPES = {
    "1D": ("image1d_t", "x"),
    "1D buffer": ("image1d_buffer_t", "x"),
    "1D array": ("image1d_array_t", "(int2)(x, y)"),
    "2D": ("image2d_t", "(int2)(x, y)"),
    "2D array": ("image2d_array_t", "(int4)(x, y, z, 0)"),
    "3D": ("image3d_t", "(int4)(x, y, z, 0)"),
}


@pytest.fixture(scope="module")
def launch(opencl, context, queue):
    """launch(source, global size, arguments...): arguments are handles, numpy arrays or ctypes numbers."""

    def run(source: str, size, *arguments, options=OPTIONS):
        kernel = opencl.kernel(context, source, options=options)
        buffers = []
        for k, argument in enumerate(arguments):
            if isinstance(argument, np.ndarray):
                data = (argument.nbytes, argument.ctypes.data)
                buffers.append((argument, opencl.make("clCreateBuffer", context, COPY, *data)))
                argument = buffers[-1][1]
            value = ctypes.c_uint64(argument) if isinstance(argument, int) else argument
            opencl.ok("clSetKernelArg", kernel, k, ctypes.sizeof(value), value)
        sizes = list(size)
        where = (len(sizes), None, sizes, None, 0, None, None)
        opencl.ok("clEnqueueNDRangeKernel", queue, kernel, *where)
        for array, buffer in buffers:
            where = (buffer, 1, 0, array.nbytes, array.ctypes.data, 0, None, None)
            opencl.ok("clEnqueueReadBuffer", queue, *where)
            opencl.ok("clReleaseMemObject", buffer)
        opencl.ok("clFinish", queue)
        opencl.ok("clReleaseKernel", kernel)

    return run


COPY = cl.CL_MEM_COPY_HOST_PTR
PLACE = "int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);"


@pytest.mark.parametrize("to", C_TYPES)
@pytest.mark.parametrize("from_", C_TYPES)
def test_copies(opencl, context, queue, launch, from_, to):
    """Every pixel plus one, by sampler-less reads and write_only images; y and z may be beyond the target."""
    (type_a, at_a), (type_b, at_b) = C_TYPES[from_], C_TYPES[to]
    source = f"""
kernel void k(read_only {type_a} a, write_only {type_b} b) {{
    {PLACE}
    write_imageui(b, {at_b}, read_imageui(a, {at_a}) + 1);
}}"""
    a = Image(opencl, context, queue, from_, RGBA8)
    b = Image(opencl, context, queue, to, RGBA8)
    shape = tuple(min(n, m) for n, m in zip(SHAPES[from_], SHAPES[to], strict=True))
    part = tuple(slice(n) for n in shape[:2])
    launch(source, shape[::-1], a.handle, b.handle)
    b.model[part] = np.where(a.model[part] == 255, 255, a.model[part] + 1)  # saturated
    b.check()
    a.check()
    for image in (a, b):
        image.release()


@pytest.mark.parametrize("type_", C_TYPES)
def test_read_write(opencl, context, queue, launch, type_):
    """One image, read and written by each work-item."""
    name, at = C_TYPES[type_]
    source = f"""
kernel void k(read_write {name} i) {{
    {PLACE}
    uint4 c = read_imageui(i, {at});
    write_imageui(i, {at}, c.wxyz ^ 1);
}}"""
    image = Image(opencl, context, queue, type_, RGBA8)
    launch(source, SHAPES[type_][::-1], image.handle)
    pixels = image.model.reshape(*image.model.shape[:2], -1, 4)
    image.model = (pixels[..., [3, 0, 1, 2]] ^ 1).reshape(image.model.shape)
    image.check()
    image.release()


@pytest.mark.parametrize("options", [OPTIONS, OPTIONS + " -cl-opt-disable"])
def test_many_images(opencl, context, queue, launch, options):
    """More than code is made for the formats of, of two formats."""
    formats = [RGBA8, Format("CL_R", "CL_UNSIGNED_INT16")] * 5
    images = [Image(opencl, context, queue, "2D", format_) for format_ in formats]
    parameters = ", ".join(f"read_only image2d_t i{k}" for k in range(len(images)))
    reads = " + ".join(f"{k + 1} * read_imageui(i{k}, (int2)(x, y))" for k in range(len(images)))
    source = f"""
kernel void k({parameters}, global uint4 *out) {{
    {PLACE}
    out[37 * y + x] = {reads};
}}"""
    out = np.zeros((9, 37, 4), np.uint32)
    launch(source, (37, 9), *(image.handle for image in images), out, options=options)
    wanted = np.zeros_like(out)
    for k, image in enumerate(images):
        if k % 2:
            wanted[..., 0] += (k + 1) * image.model.view(np.uint16).reshape(9, 37).astype(np.uint32)
            wanted[..., 3] += k + 1
        else:
            wanted += (k + 1) * image.model.reshape(9, 37, 4).astype(np.uint32)
    assert (out == wanted).all()
    for image in images:
        image.release()


def test_buffers_seen_as_images(opencl, context, launch):
    """A buffer's bytes as pixels of a line and of rows with a pitch."""
    data = np.arange(64 * 10, dtype=np.uint8)
    buffer = opencl.make("clCreateBuffer", context, COPY, data.nbytes, data.ctypes.data)
    line = opencl.make(
        "clCreateImage", context, 0, RGBA8.c, descriptor("1D buffer", 160, memory=buffer), None
    )
    desc = descriptor("2D", 12, 10, row=64, memory=buffer)
    rows = opencl.make("clCreateImage", context, 0, RGBA8.c, desc, None)
    out = np.zeros((10, 12, 8), np.uint32)
    source = """
kernel void k(read_only image1d_buffer_t line, read_only image2d_t rows, global uint8 *out) {
    int x = get_global_id(0), y = get_global_id(1);
    out[12 * y + x] = (uint8)(read_imageui(rows, (int2)(x, y)), read_imageui(line, 16 * y + x));
}"""
    launch(source, (12, 10), line, rows, out)
    wanted = data.reshape(10, 16, 4)[:, :12]
    assert (out == np.concatenate([wanted, wanted], -1)).all()
    for handle in (line, rows, buffer):
        opencl.ok("clReleaseMemObject", handle)


def test_samplers(opencl, context, queue, launch):
    """Of the API and of the program, beside one another and in turn: launches with another see another."""
    image = Image(opencl, context, queue, "2D", UNORM8)
    source = """
constant sampler_t edge = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
kernel void k(read_only image2d_t i, sampler_t given, global float4 *out, float step) {
    int x = get_global_id(0), y = get_global_id(1);
    float2 at = ((float2)(x, y) - 4.0f) * step;
    size_t k = y * get_global_size(0) + x;
    out[2 * k] = read_imagef(i, given, at);
    out[2 * k + 1] = read_imagef(i, edge, (int2)(x, y) - 4);
}"""
    pixels = image.model.reshape(9, 37, 4) / np.float32(255)
    y, x = np.mgrid[0:20, 0:48] - 4
    edge = pixels[np.clip(y, 0, 8), np.clip(x, 0, 36)]
    for mode in (cl.CL_ADDRESS_CLAMP, cl.CL_ADDRESS_REPEAT, cl.CL_ADDRESS_CLAMP):
        normalized = mode == cl.CL_ADDRESS_REPEAT
        arguments = (int(normalized), mode, cl.CL_FILTER_NEAREST)
        sampler = opencl.make("clCreateSampler", context, *arguments)
        out = np.zeros((20, 48, 2, 4), np.float32)
        launch(source, (48, 20), image.handle, sampler, out, ctypes.c_float(0.03125 if normalized else 1))
        assert np.abs(out[:, :, 1] - edge).max() < 1e-7
        if normalized:
            wanted = pixels[np.floor(y / 32 % 1 * 9).astype(int), np.floor(x / 32 % 1 * 37).astype(int)]
        else:
            inside = (x >= 0) & (x < 37) & (y >= 0) & (y < 9)
            wanted = np.where(inside[..., None], edge, 0)
        assert np.abs(out[:, :, 0] - wanted).max() < 1e-7
        opencl.ok("clReleaseSampler", sampler)
    image.release()


def test_depths(opencl, context, queue, launch):
    """Depth images come to depth arguments, and to those of others as images of one channel."""
    image = Image(opencl, context, queue, "2D", Format("CL_DEPTH", "CL_UNORM_INT16"))
    target = Image(opencl, context, queue, "2D", Format("CL_DEPTH", "CL_UNORM_INT16"))
    source = """
kernel void k(read_only image2d_depth_t a, read_only image2d_t same, write_only image2d_depth_t b) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(b, at, (read_imagef(a, at) + read_imagef(same, at).x) / 2);
}"""
    launch(source, (37, 9), image.handle, image.handle, target.handle)
    target.model = image.model
    target.check()
    for each in (image, target):
        each.release()


@pytest.mark.parametrize("order", ["CL_sRGBA", "CL_sBGRA"])
def test_srgb_writes(opencl, context, queue, launch, order):
    """What is read is linear; written back it is the same bytes."""
    format_ = Format(order, "CL_UNORM_INT8")
    a, b = (Image(opencl, context, queue, "2D", format_) for _ in range(2))
    assert (a.model == b.model).all()
    source = """
kernel void zero(write_only image2d_t b) { write_imagef(b, (int2)(get_global_id(0), get_global_id(1)), 0); }
kernel void k(read_only image2d_t a, write_only image2d_t b) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 c = read_imagef(a, at);
    write_imagef(b, at, c);
}"""
    launch(source.split("kernel void k")[0].replace("zero", "k"), (37, 9), b.handle)
    assert not b.read().reshape(-1, 4)[:, :3].any()
    launch("kernel void k" + source.split("kernel void k")[1], (37, 9), a.handle, b.handle)
    found, wanted = (m.reshape(-1, 4) for m in (b.read(), a.model))
    assert (found == wanted).all()
    for each in (a, b):
        each.release()


def test_mip_levels(opencl, context, queue, launch):
    """A kernel writes a level, another reads it."""
    desc = descriptor("2D", 16, 8, levels=4)
    image = opencl.make("clCreateImage", context, 0, UNORM8.c, desc, None)
    writer = """
#pragma OPENCL EXTENSION cl_khr_mipmap_image_writes : enable
kernel void k(write_only image2d_t i, int lod) {
    int x = get_global_id(0), y = get_global_id(1);
    write_imagef(i, (int2)(x, y), lod, (float4)(x, y, lod, 255) / 255);
}"""
    reader = """
#pragma OPENCL EXTENSION cl_khr_mipmap_image : enable
kernel void k(read_only image2d_t i, global float4 *out, float lod) {
    const sampler_t s = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    float x = get_global_id(0) + 0.5f, y = get_global_id(1) + 0.5f;
    float2 size = (float2)(get_global_size(0), get_global_size(1));
    out[get_global_id(1) * get_global_size(0) + get_global_id(0)] =
        rint(read_imagef(i, s, (float2)(x, y) / size, lod) * 255);
}"""
    for lod in range(4):
        launch(writer, (16 >> lod, 8 >> lod), image, ctypes.c_int32(lod))
    for lod in range(4):
        width, height = 16 >> lod, 8 >> lod
        out = np.zeros((height, width, 4), np.float32)
        launch(reader, (width, height), image, out, ctypes.c_float(lod))
        y, x = np.mgrid[0:height, 0:width]
        assert (out == np.stack([x, y, np.full_like(x, lod), np.full_like(x, 255)], -1)).all()
    opencl.ok("clReleaseMemObject", image)


@pytest.mark.parametrize("type_", ["2D", "2D array"])
def test_mip_levels_of_depth_images(opencl, context, queue, launch, type_):
    """A kernel writes two levels, another reads between them; and the host reads what it wrote."""
    is_array = type_ == "2D array"
    name, layers = ("image2d_array_depth_t", 2) if is_array else ("image2d_depth_t", 1)
    desc = descriptor(type_, 16, 8, layers=layers, levels=3)
    image = opencl.make("clCreateImage", context, 0, Format("CL_DEPTH", "CL_FLOAT").c, desc, None)
    place = "(int4)(x, y, 1, 0)" if is_array else "(int2)(x, y)"
    at = "(float4)(at, 1.0f, 0.0f)" if is_array else "at"
    writer = f"""
#pragma OPENCL EXTENSION cl_khr_mipmap_image_writes : enable
kernel void k(write_only {name} i, int lod) {{
    int x = get_global_id(0), y = get_global_id(1);
    write_imagef(i, {place}, lod, (x + 100 * y + 10000 * lod) / 65536.0f);
}}"""
    reader = f"""
#pragma OPENCL EXTENSION cl_khr_mipmap_image : enable
kernel void k(read_only {name} i, global float *out, float lod) {{
    const sampler_t s = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    float x = get_global_id(0) + 0.5f, y = get_global_id(1) + 0.5f;
    float2 at = (float2)(x, y) / (float2)(get_global_size(0), get_global_size(1));
    out[get_global_id(1) * get_global_size(0) + get_global_id(0)] = read_imagef(i, s, {at}, lod) * 65536.0f;
}}"""
    for lod in range(3):
        launch(writer, (16 >> lod, 8 >> lod), image, ctypes.c_int32(lod))
    for lod in range(3):
        width, height = 16 >> lod, 8 >> lod
        y, x = np.mgrid[0:height, 0:width]
        wanted = (x + 100 * y + 10000 * lod).astype(np.float32)
        out = np.zeros((height, width), np.float32)
        launch(reader, (width, height), image, out, ctypes.c_float(lod))
        assert (out == wanted).all()
        found = np.zeros((height, width), np.float32)
        origin = [0, 0, 1, lod] if is_array else [0, 0, lod, 0]
        where = (origin, [width, height, 1], 0, 0, found.ctypes.data)
        opencl.ok("clEnqueueReadImage", queue, image, 1, *where, 0, None, None)
        assert (found * 65536 == wanted).all()
    opencl.ok("clReleaseMemObject", image)


def test_many_arguments(opencl, context, queue, launch):
    """More images than kernels get code for their formats of, with formats of all sizes."""
    formats = [
        Format(order, type_)
        for order in ("CL_R", "CL_RG", "CL_RGBA")
        for type_ in ("CL_UNSIGNED_INT8", "CL_UNSIGNED_INT16", "CL_UNSIGNED_INT32", "CL_UNSIGNED_INT8")
    ]
    images = [Image(opencl, context, queue, "2D", format_) for format_ in formats]
    arguments = ", ".join(f"read_only image2d_t i{k}" for k in range(12))
    reads = "".join(f"sum += read_imageui(i{k}, at).x * {k + 1};" for k in range(12))
    source = f"""
kernel void k({arguments}, global uint *out) {{
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    uint sum = 0;
    {reads}
    out[at.y * 37 + at.x] = sum;
}}"""
    out = np.zeros((9, 37), np.uint32)
    launch(source, (37, 9), *(image.handle for image in images), out)
    first = [i.model.view(i.format.dtype).reshape(9, 37, -1)[..., 0].astype(np.uint32) for i in images]
    wanted = sum(values * np.uint32(k + 1) for k, values in enumerate(first))
    assert (out == wanted).all()
    for image in images:
        image.release()
