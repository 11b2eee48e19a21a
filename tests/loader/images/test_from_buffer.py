"""Images of every type in the memory of a buffer, and what is to be known before one is made
(cl_ext_image_from_buffer 1.0.0, cl_ext_image_requirements_info 0.5.0)."""

from __future__ import annotations

import ctypes
from collections import namedtuple

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images.image import SHAPES, noise
from tests.loader.images.model import HAS_SLICES, TYPES, Format, described, descriptor, pitched
from tests.loader.images.test_kernels import C_TYPES, PLACE

RGBA8 = Format("CL_RGBA", "CL_UNSIGNED_INT8")
R16 = Format("CL_R", "CL_HALF_FLOAT")
WIDE = Format("CL_RGBA", "CL_FLOAT")
WRONG = cl.CL_INVALID_IMAGE_DESCRIPTOR

Layout = namedtuple("Layout", "row slice size")


def layout(type_: str, format_: Format, pad_row: int, pad_slices: int) -> Layout:
    """The pitches of an image with gaps, as many bytes and rows of them, and the bytes that it takes."""
    slices, rows, width = SHAPES[type_]
    row = width * format_.size + (0 if type_ == "1D buffer" else pad_row)
    if type_ == "1D array":
        slice_ = row * (1 + pad_slices)
        return Layout(row, slice_, slice_ * rows)
    slice_ = row * (rows + (pad_slices if type_ in HAS_SLICES else 0))
    return Layout(row, slice_, slice_ * slices)


def given(type_: str, found: Layout, **more):
    """The descriptor with those pitches."""
    slice_ = found.slice if type_ in HAS_SLICES else 0
    return described(type_, SHAPES[type_], row=found.row, slice_=slice_, **more)


def pixels(memory: np.ndarray, type_: str, format_: Format, found: Layout) -> np.ndarray:
    """The bytes of the image in the memory."""
    slices, rows, width = SHAPES[type_]
    row = found.slice if type_ == "1D array" else found.row
    return pitched(memory, (slices, rows, width * format_.size), row, found.slice)


@pytest.fixture
def requirement(opencl, context):
    """requirement(name, format or None, descriptor or None, flags): the number, or the error's."""
    query = opencl.checked("clGetImageRequirementsInfoEXT", "ppbppuzpp")

    def ask(name, format_=RGBA8, desc=None, flags=0, where=None, properties=None, size=None):
        words = getattr(cl, f"CL_IMAGE_REQUIREMENTS_{name}_EXT") if isinstance(name, str) else name
        kind = ctypes.c_uint32 if isinstance(name, str) and name.startswith("MAX") else ctypes.c_size_t
        answer, count = kind(), ctypes.c_size_t()
        size = ctypes.sizeof(answer) if size is None else size
        pair = format_.c if isinstance(format_, Format) else format_
        status = query(
            where or context,
            properties,
            flags,
            pair,
            desc,
            words,
            size,
            ctypes.byref(answer),
            ctypes.byref(count),
        )
        assert status or count.value == ctypes.sizeof(answer)
        return status or answer.value

    return ask


@pytest.mark.parametrize("pads", [(0, 0), (16, 0), (32, 2)], ids=str)
@pytest.mark.parametrize("format_", [RGBA8, R16, WIDE], ids=repr)
@pytest.mark.parametrize("type_", TYPES)
def test_memory_is_shared(opencl, context, queue, requirement, type_, format_, pads):
    found = layout(type_, format_, *pads)
    memory, offset = noise(256 + found.size), 256
    buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_USE_HOST_PTR, memory.size, memory.ctypes.data)
    region = [offset, found.size]
    part = opencl.make("clCreateSubBuffer", buffer, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, region)
    desc = given(type_, found, memory=part)
    image = opencl.make("clCreateImage", context, 0, format_.c, desc, None)
    here = pixels(memory[offset:], type_, format_, found)
    for name, value in (
        ("CL_IMAGE_ROW_PITCH", found.row),
        ("CL_IMAGE_SLICE_PITCH", found.slice if type_ in HAS_SLICES else 0),
        ("CL_IMAGE_BUFFER", part),
    ):
        assert opencl.integer("clGetImageInfo", image, getattr(cl, name)) == value, name
    for name, value in (("CL_MEM_ASSOCIATED_MEMOBJECT", part), ("CL_MEM_SIZE", found.size)):
        assert opencl.integer("clGetMemObjectInfo", image, getattr(cl, name)) == value, name
    assert requirement("SIZE", format_, desc) == found.size
    region = list(SHAPES[type_][::-1])
    read = np.zeros(here.shape, np.uint8)
    opencl.ok("clEnqueueReadImage", queue, image, 1, [0, 0, 0], region, 0, 0, read.ctypes.data, 0, None, None)
    assert np.array_equal(read, here)
    before, color = memory.copy(), format_.color((1, 2, 3, 4))
    where = (color.ctypes.data, [0, 0, 0], region)
    opencl.ok("clEnqueueFillImage", queue, image, *where, 0, None, None)
    opencl.ok("clFinish", queue)
    pixel = np.frombuffer(format_.pack((1, 2, 3, 4)), np.uint8)
    pixels(before[offset:], type_, format_, found)[...] = np.tile(pixel, here.shape[2] // pixel.size)
    assert np.array_equal(memory, before), "the gaps stay"
    for handle in (image, part, buffer):
        opencl.ok("clReleaseMemObject", handle)


@pytest.mark.parametrize("type_", TYPES)
def test_kernels(opencl, context, queue, type_):
    """They read and write pixels of an image where the buffer has them."""
    c_type, at = C_TYPES[type_]
    found = layout(type_, RGBA8, 8, 1)
    memory = noise(found.size)
    expected = memory.copy()
    here = pixels(expected, type_, RGBA8, found)
    here[...] = np.where(here == 255, 255, here + 1)  # saturated
    buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, memory.size, memory.ctypes.data)
    desc = given(type_, found, memory=buffer)
    image = opencl.make("clCreateImage", context, 0, RGBA8.c, desc, None)
    source = f"""kernel void k(read_write {c_type} a) {{
        {PLACE} write_imageui(a, {at}, read_imageui(a, {at}) + 1); }}"""
    kernel = opencl.kernel(context, source, options="-cl-std=CL3.0")
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(image))
    sizes = list(SHAPES[type_][::-1])
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 3, None, sizes, None, 0, None, None)
    read = np.zeros_like(memory)
    opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, read.size, read.ctypes.data, 0, None, None)
    assert np.array_equal(read, expected)
    opencl.ok("clReleaseKernel", kernel)
    for handle in (image, buffer):
        opencl.ok("clReleaseMemObject", handle)


@pytest.mark.parametrize("type_", TYPES)
def test_what_does_not_fit(fails, resources, type_):
    found = layout(type_, RGBA8, 16, 1)
    small = given(type_, found, memory=resources.buffer(found.size - 1))
    assert fails(small, RGBA8) == cl.CL_INVALID_IMAGE_SIZE
    buffer, pitches = resources.buffer(2 * found.size), cl.CL_INVALID_IMAGE_FORMAT_DESCRIPTOR
    if type_ != "1D buffer":
        for row in (found.row + 2, SHAPES[type_][2] * 4 - 4):
            assert fails(described(type_, SHAPES[type_], row=row, memory=buffer), RGBA8) == pitches
    for slice_ in (found.slice + 4, found.row // 2):
        desc = described(type_, SHAPES[type_], row=found.row, slice_=slice_, memory=buffer)
        assert fails(desc, RGBA8) == (pitches if type_ in HAS_SLICES else WRONG)
    if type_ in HAS_SLICES:
        huge = found.row << 50
        desc = described(type_, SHAPES[type_], row=found.row, slice_=huge, memory=buffer)
        assert fails(desc, RGBA8) == cl.CL_INVALID_IMAGE_SIZE
    odd = resources.buffer(2 * found.size, cl.CL_MEM_USE_HOST_PTR, resources.memory.ctypes.data + 2)
    assert fails(described(type_, SHAPES[type_], memory=odd), RGBA8) == pitches


@pytest.mark.parametrize("type_", TYPES)
def test_alignments(requirement, type_):
    """Those of a pixel, whatever its type; of the largest where the format is open."""
    desc = described(type_, SHAPES[type_])
    for name in ("BASE_ADDRESS_ALIGNMENT", "ROW_PITCH_ALIGNMENT", "SLICE_PITCH_ALIGNMENT"):
        for format_ in (RGBA8, R16, WIDE):
            for flags in (0, cl.CL_MEM_READ_ONLY, cl.CL_MEM_KERNEL_READ_AND_WRITE):
                assert requirement(name, format_, desc, flags) == requirement(name, format_) == format_.size
        assert requirement(name, None, desc) == requirement(name, None) == 16


def test_sizes(requirement):
    for type_, shape in SHAPES.items():
        assert requirement("SIZE", R16, described(type_, shape)) == 2 * np.prod(shape)
    assert requirement("SIZE", R16, descriptor("2D", 5, 3, row=64)) == 192
    assert requirement("SIZE", R16, descriptor("3D", 5, 3, 2, row=64, slice_=256)) == 512
    for wrong in (
        descriptor("2D", 5, 3, row=8),
        descriptor("2D", 5, 3, row=63),
        descriptor("3D", 5, 3, 2, row=64, slice_=200),
        descriptor("2D", 5, 0),
        descriptor("3D", 5, 3, 4000),
        descriptor("2D", 8, 8, levels=2),
        descriptor("2D", 8, 8, row=1 << 31),
    ):
        assert requirement("SIZE", R16, wrong) == WRONG, list(wrong)
    assert requirement("SIZE", None, descriptor("2D", 5, 3)) == cl.CL_INVALID_VALUE
    assert requirement("SIZE", R16, None) == cl.CL_INVALID_VALUE


def test_maxima(requirement, resources):
    flat, deep, line, layers = 16384, 2048, 1 << 27, 2048
    for name, most in (
        (
            "WIDTH",
            {"1D": flat, "1D buffer": line, "1D array": flat, "2D": flat, "2D array": flat, "3D": deep},
        ),
        ("HEIGHT", {"2D": flat, "2D array": flat, "3D": deep}),
        ("DEPTH", {"3D": deep}),
        ("ARRAY_SIZE", {"1D array": layers, "2D array": layers}),
    ):
        name = f"MAX_{name}"
        for format_ in (RGBA8, None):
            assert requirement(name, format_) == requirement(name, format_, descriptor(0)) == deep
            for type_ in TYPES:
                expected = most.get(type_, WRONG)
                assert requirement(name, format_, descriptor(type_)) == expected, (name, type_)
    # Pitches and buffers have room for so many.
    assert requirement("MAX_WIDTH", RGBA8, descriptor("2D", row=4000)) == 1000
    assert requirement("MAX_WIDTH", None, descriptor("2D", row=4000)) == 250
    assert requirement("MAX_HEIGHT", RGBA8, descriptor("3D", 10, row=64, slice_=1000)) == 15
    buffer = resources.buffer(4096)
    assert requirement("MAX_WIDTH", RGBA8, descriptor("1D buffer", memory=buffer)) == 1024
    assert requirement("MAX_WIDTH", RGBA8, descriptor("2D", memory=buffer)) == 1024
    assert requirement("MAX_HEIGHT", RGBA8, descriptor("2D", 16, memory=buffer)) == 64
    assert requirement("MAX_DEPTH", RGBA8, descriptor("3D", 16, 8, memory=buffer)) == 8
    assert requirement("MAX_ARRAY_SIZE", RGBA8, descriptor("1D array", 16, memory=buffer)) == 64
    assert requirement("MAX_ARRAY_SIZE", RGBA8, descriptor("2D array", 16, 2, row=128, memory=buffer)) == 16


def test_errors(requirement, resources, elsewhere):
    name, desc = "ROW_PITCH_ALIGNMENT", descriptor("2D", 8, 8)
    assert requirement(name, where=resources.buffer()) == cl.CL_INVALID_CONTEXT
    properties = (ctypes.c_uint64 * 3)(0x1234, 1, 0)
    assert requirement(name, properties=properties) == cl.CL_INVALID_PROPERTY
    for flags in (1 << 40, cl.CL_MEM_READ_ONLY | cl.CL_MEM_WRITE_ONLY):
        assert requirement(name, flags=flags) == cl.CL_INVALID_VALUE
    for order, type_ in ((cl.CL_R, cl.CL_UNORM_SHORT_555), (cl.CL_R, 0), (cl.CL_sRGBA, cl.CL_FLOAT)):
        pair = (ctypes.c_uint32 * 2)(order, type_)
        assert requirement(name, pair, desc) == cl.CL_INVALID_IMAGE_FORMAT_DESCRIPTOR
    for wrong in (
        descriptor(cl.CL_MEM_OBJECT_BUFFER, 8),
        descriptor(0, 8, 8),
        descriptor("2D", 8),
        descriptor("2D", 16385, 8),
        descriptor("2D", 8, 8, samples=1),
        descriptor("2D", 8, 8, levels=16),
        descriptor("1D buffer", 8, memory=elsewhere["buffer"]),
        descriptor("1D buffer", 8, memory=elsewhere["context"]),
    ):
        assert requirement(name, RGBA8, wrong) == WRONG, list(wrong)
    assert requirement("MAX_WIDTH", RGBA8, descriptor(cl.CL_MEM_OBJECT_BUFFER)) == WRONG
    assert requirement(cl.CL_IMAGE_FORMAT, RGBA8, desc) == cl.CL_INVALID_VALUE
    assert requirement(name, RGBA8, desc, size=7) == cl.CL_INVALID_VALUE
    assert requirement("MAX_HEIGHT", RGBA8, desc, size=3) == cl.CL_INVALID_VALUE
