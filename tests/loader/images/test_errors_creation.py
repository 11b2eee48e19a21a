"""Error codes of the creation of images and of queries (5.3.1, 5.3.2 and 5.3.9): each one fires."""

import ctypes

import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images.image import RGBA8
from tests.loader.images.model import Format, descriptor

HOST_POINTER = (cl.CL_MEM_USE_HOST_PTR, cl.CL_MEM_ALLOC_HOST_PTR, cl.CL_MEM_COPY_HOST_PTR)


def words(order: int, type_: int):
    return (ctypes.c_uint32 * 2)(order, type_)


SMALL = descriptor("2D", 8, 8)


def test_context_properties_and_flags(opencl, context, fails, resources):
    assert fails(SMALL, handle=resources.buffer()) == cl.CL_INVALID_CONTEXT
    name = "clCreateImageWithProperties"
    arguments = (0, RGBA8.c, SMALL, None)
    assert opencl.fails(name, context, [0x1234, 1, 0], *arguments) == cl.CL_INVALID_PROPERTY
    image = opencl.make(name, context, [0], *arguments)
    assert opencl.words("clGetMemObjectInfo", image, cl.CL_MEM_PROPERTIES) == [0]
    opencl.ok("clReleaseMemObject", image)
    assert fails(SMALL, flags=1 << 30) == cl.CL_INVALID_VALUE
    assert fails(SMALL, flags=cl.CL_MEM_KERNEL_READ_AND_WRITE) == cl.CL_INVALID_VALUE
    assert fails(SMALL, flags=cl.CL_MEM_READ_ONLY | cl.CL_MEM_WRITE_ONLY) == cl.CL_INVALID_VALUE
    both = cl.CL_MEM_USE_HOST_PTR | cl.CL_MEM_COPY_HOST_PTR
    assert fails(SMALL, flags=both, pointer=resources.memory.ctypes.data) == cl.CL_INVALID_VALUE


def test_formats_that_are_not_valid(fails):
    assert fails(SMALL, format_=None) == cl.CL_INVALID_IMAGE_FORMAT_DESCRIPTOR
    u8 = cl.CL_UNORM_INT8
    for order, type_ in (
        (0x10AF, u8),
        (0x10C4, u8),
        (cl.CL_R, 0x10CF),
        (cl.CL_RGBA, cl.CL_UNORM_SHORT_565),
        (cl.CL_R, cl.CL_UNORM_SHORT_555),
        (cl.CL_BGRA, cl.CL_UNORM_INT_101010),
        (cl.CL_RGB, cl.CL_UNORM_INT_101010_2),
        (cl.CL_RGBA, 0x10E5),  # CL_UNORM_INT_2_101010_EXT
        (cl.CL_RGB, 0x10E5),
        (cl.CL_A, 0x10E1),  # CL_UNORM_INT10X6_EXT
        (cl.CL_BGRA, 0x10E7),  # CL_UNSIGNED_INT12X4_EXT
        (cl.CL_R, 0x10E2),
        (cl.CL_R, 0x10EB),
        (cl.CL_RGB, u8),  # 24 bits: no power of two
        (cl.CL_RGB, cl.CL_FLOAT),
        (cl.CL_sRGB, u8),
        (cl.CL_RGBA, cl.CL_UNORM_INT24),
        (cl.CL_DEPTH_STENCIL, u8),
    ):
        assert fails(SMALL, words(order, type_)) == cl.CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, (order, type_)


def test_formats_that_are_not_supported(fails, resources):
    for order, type_ in (
        (cl.CL_DEPTH_STENCIL, cl.CL_UNORM_INT24),
        (cl.CL_DEPTH_STENCIL, cl.CL_FLOAT),
        (cl.CL_DEPTH, cl.CL_UNORM_INT8),
        (cl.CL_sBGRA, cl.CL_FLOAT),
        (cl.CL_sRGBA, cl.CL_UNORM_INT16),
        (cl.CL_INTENSITY, cl.CL_SIGNED_INT8),
        (0x10BA, cl.CL_UNORM_INT8),  # CL_Rx
        (0x10BC, cl.CL_UNORM_INT8),  # CL_RGBx
        (0x10C0, cl.CL_UNORM_INT8),  # CL_sRGBx
    ):
        assert fails(SMALL, words(order, type_)) == cl.CL_IMAGE_FORMAT_NOT_SUPPORTED, (order, type_)
    depth = words(cl.CL_DEPTH, cl.CL_FLOAT)
    buffer = resources.buffer()
    for desc in (
        descriptor("1D", 8),
        descriptor("3D", 8, 8, 2),
        descriptor("1D array", 8, layers=2),
        descriptor("1D buffer", 8, memory=buffer),
    ):
        assert fails(desc, depth) == cl.CL_IMAGE_FORMAT_NOT_SUPPORTED


def test_descriptors_that_are_not_valid(fails, resources):
    wrong = cl.CL_INVALID_IMAGE_DESCRIPTOR
    assert fails(None) == wrong
    for desc in (
        descriptor(cl.CL_MEM_OBJECT_BUFFER, 8, 8),
        descriptor(cl.CL_MEM_OBJECT_PIPE, 8, 8),
        descriptor(0, 8, 8),
        descriptor("2D", 8, 8, samples=2),
        descriptor("2D", 8, 8, levels=16),
        descriptor("2D", 0, 8),
        descriptor("2D", 8, 0),
        descriptor("3D", 8, 8, 0),
        descriptor("1D", 0),
        descriptor("1D array", 8, layers=0),
        descriptor("2D array", 8, 8, layers=0),
        descriptor("2D", 8, 8, row=32),  # without host_ptr
        descriptor("3D", 8, 8, 2, slice_=256),
        descriptor("1D buffer", 8),  # without a buffer
    ):
        assert fails(desc) == wrong, list(desc)
    pointer = resources.memory.ctypes.data
    for desc in (
        descriptor("2D", 8, 8, row=31),
        descriptor("2D", 8, 8, row=28),
        descriptor("2D", 8, 8, row=34),
        descriptor("3D", 8, 8, 2, slice_=224),
        descriptor("3D", 8, 8, 2, row=32, slice_=270),
        descriptor("2D array", 8, 8, layers=2, row=64, slice_=256),
        descriptor("1D array", 8, layers=2, row=64, slice_=32),
        descriptor("3D", 8, 8, 8, slice_=1 << 62),
    ):
        assert fails(desc, flags=cl.CL_MEM_USE_HOST_PTR, pointer=pointer) == wrong, list(desc)
    for pitch in (1 << 31, 1 << 62):
        long = descriptor("2D", 8, 8, row=pitch)
        assert fails(long, flags=cl.CL_MEM_USE_HOST_PTR, pointer=pointer) == cl.CL_INVALID_IMAGE_SIZE
        of_buffer = descriptor("2D", 8, 1, row=pitch, memory=resources.buffer())
        assert fails(of_buffer) == cl.CL_INVALID_IMAGE_SIZE
    resources.image(flags=cl.CL_MEM_USE_HOST_PTR, pointer=pointer, width=8, height=1, row=(1 << 31) - 4)


def test_mipmaps_that_are_not_possible(fails, resources):
    buffer = resources.buffer()
    for desc in (
        descriptor("1D buffer", 8, levels=2, memory=buffer),
        descriptor("2D", 8, 8, levels=2, memory=buffer),
    ):
        assert fails(desc, RGBA8) == cl.CL_INVALID_IMAGE_DESCRIPTOR
    levels, pointer = descriptor("2D", 8, 8, levels=2), resources.memory.ctypes.data
    for flag in (cl.CL_MEM_USE_HOST_PTR, cl.CL_MEM_COPY_HOST_PTR):
        assert fails(levels, flags=flag, pointer=pointer) == cl.CL_INVALID_VALUE
    assert fails(levels, pointer=pointer) == cl.CL_INVALID_HOST_PTR


def test_host_pointers(fails, resources):
    pointer = resources.memory.ctypes.data
    assert fails(SMALL, flags=cl.CL_MEM_USE_HOST_PTR) == cl.CL_INVALID_HOST_PTR
    assert fails(SMALL, flags=cl.CL_MEM_COPY_HOST_PTR) == cl.CL_INVALID_HOST_PTR
    assert fails(SMALL, pointer=pointer) == cl.CL_INVALID_HOST_PTR
    assert fails(SMALL, flags=cl.CL_MEM_ALLOC_HOST_PTR, pointer=pointer) == cl.CL_INVALID_HOST_PTR
    resources.image(flags=cl.CL_MEM_ALLOC_HOST_PTR)
    both = cl.CL_MEM_ALLOC_HOST_PTR | cl.CL_MEM_COPY_HOST_PTR
    resources.image(flags=both, pointer=pointer)


def test_no_memory(fails):
    """2^43 bytes, more than CL_DEVICE_MAX_MEM_ALLOC_SIZE."""
    desc = descriptor("2D array", 16384, 16384, layers=2048)
    format_ = Format("CL_RGBA", "CL_FLOAT")
    assert fails(desc, format_) == cl.CL_MEM_OBJECT_ALLOCATION_FAILURE


def test_images_of_buffers(fails, resources, elsewhere):
    buffer = resources.buffer(4096)
    wrong = cl.CL_INVALID_IMAGE_DESCRIPTOR
    image = resources.image()
    for desc in (
        descriptor("1D buffer", 8, memory=image),
        descriptor("1D buffer", 8, memory=elsewhere["buffer"]),
        descriptor("1D buffer", 8, memory=elsewhere["context"]),
        descriptor("1D", 8, memory=image),
        descriptor("3D", 8, 8, 2, memory=image),
        descriptor("2D", 8, 8, row=64, slice_=512, memory=buffer),
    ):
        assert fails(desc) == wrong, list(desc)
    for desc in (
        descriptor("1D buffer", 1025, memory=buffer),  # 4100 bytes
        descriptor("2D", 32, 33, memory=buffer),
        descriptor("2D", 8, 33, row=128, memory=buffer),
    ):
        assert fails(desc) == cl.CL_INVALID_IMAGE_SIZE, list(desc)
    resources.image(type_="1D buffer", width=1024, memory=buffer)
    resources.image(width=32, height=32, memory=buffer)
    for row in (31, 28, 34):
        desc = descriptor("2D", 8, 8, row=row, memory=buffer)
        assert fails(desc) == cl.CL_INVALID_IMAGE_FORMAT_DESCRIPTOR
    odd = resources.buffer(1024, cl.CL_MEM_USE_HOST_PTR, resources.memory.ctypes.data + 2)
    desc = descriptor("2D", 8, 8, memory=odd)
    assert fails(desc) == cl.CL_INVALID_IMAGE_FORMAT_DESCRIPTOR
    desc = descriptor("2D", 8, 8, memory=buffer)
    for flag in HOST_POINTER:
        assert fails(desc, flags=flag, pointer=resources.memory.ctypes.data) == cl.CL_INVALID_VALUE
    assert fails(desc, pointer=resources.memory.ctypes.data) == cl.CL_INVALID_HOST_PTR


@pytest.mark.parametrize("parent, wrong", [
    (cl.CL_MEM_WRITE_ONLY, cl.CL_MEM_READ_WRITE),
    (cl.CL_MEM_WRITE_ONLY, cl.CL_MEM_READ_ONLY),
    (cl.CL_MEM_READ_ONLY, cl.CL_MEM_READ_WRITE),
    (cl.CL_MEM_READ_ONLY, cl.CL_MEM_WRITE_ONLY),
    (cl.CL_MEM_HOST_WRITE_ONLY, cl.CL_MEM_HOST_READ_ONLY),
    (cl.CL_MEM_HOST_READ_ONLY, cl.CL_MEM_HOST_WRITE_ONLY),
    (cl.CL_MEM_HOST_NO_ACCESS, cl.CL_MEM_HOST_READ_ONLY),
    (cl.CL_MEM_HOST_NO_ACCESS, cl.CL_MEM_HOST_WRITE_ONLY),
])  # fmt: skip
def test_an_image_allows_no_more_than_what_it_is_made_from(opencl, fails, resources, parent, wrong):
    srgb = Format("CL_sRGBA", "CL_UNORM_INT8")
    for memory, format_ in ((resources.buffer(flags=parent), RGBA8), (resources.image(flags=parent), srgb)):
        desc = descriptor("2D", 8, 8, memory=memory)
        assert fails(desc, format_, wrong) == cl.CL_INVALID_VALUE
        view = resources.image(format_=format_, width=8, height=8, memory=memory)
        assert opencl.integer("clGetMemObjectInfo", view, cl.CL_MEM_FLAGS) == parent  # inherited


def test_views(fails, resources):
    image = resources.image()
    srgb = Format("CL_sRGBA", "CL_UNORM_INT8")
    wrong = cl.CL_INVALID_IMAGE_FORMAT_DESCRIPTOR
    same = descriptor("2D", 8, 8, memory=image)
    for format_ in (
        RGBA8,
        Format("CL_sBGRA", "CL_UNORM_INT8"),
        Format("CL_BGRA", "CL_UNORM_INT8"),
        Format("CL_R", "CL_FLOAT"),
        Format("CL_RGBA", "CL_UNSIGNED_INT8"),
    ):
        assert fails(same, format_) == wrong, format_
    for desc in (
        descriptor("2D", 7, 8, memory=image),
        descriptor("2D", 8, 7, memory=image),
        descriptor("2D", 8, 8, row=64, memory=image),
        descriptor("2D", 8, 8, slice_=256, memory=image),
        descriptor("2D", 8, 8, levels=2, memory=image),
    ):
        assert fails(desc, srgb) == wrong, list(desc)
    depth = Format("CL_DEPTH", "CL_FLOAT")
    assert (
        fails(descriptor("2D", 8, 8, memory=resources.image(format_=depth)), Format("CL_R", "CL_FLOAT"))
        == wrong
    )
    layers = resources.image("2D array", width=8, height=8, layers=1)
    assert fails(descriptor("2D", 8, 8, memory=layers), srgb) == cl.CL_INVALID_IMAGE_DESCRIPTOR
    resources.image(format_=srgb, width=8, height=8, row=32, memory=image)


def test_images_of_version_1(opencl, context, resources):
    pointer = resources.memory.ctypes.data
    use = cl.CL_MEM_USE_HOST_PTR

    def two(width=8, height=8, row=0, flags=0, pointer=None, format_=RGBA8, handle=context):
        return opencl.fails("clCreateImage2D", handle, flags, format_.c, width, height, row, pointer)

    def three(width=8, height=8, depth=2, row=0, slice_=0, flags=0, pointer=None):
        sizes = (width, height, depth, row, slice_)
        return opencl.fails("clCreateImage3D", context, flags, RGBA8.c, *sizes, pointer)

    size = cl.CL_INVALID_IMAGE_SIZE
    assert two(0) == two(8, 0) == two(16385) == two(8, 16385) == two(row=32) == size
    assert two(row=28, flags=use, pointer=pointer) == two(row=34, flags=use, pointer=pointer) == size
    assert three(0) == three(8, 0) == three(depth=0) == three(depth=1) == three(2049) == size
    assert three(height=2049) == three(depth=2049) == three(row=32) == three(slice_=256) == size
    assert three(row=28, flags=use, pointer=pointer) == size
    assert three(row=32, slice_=255, flags=use, pointer=pointer) == size
    assert two(handle=resources.buffer()) == cl.CL_INVALID_CONTEXT
    assert two(flags=1 << 30) == cl.CL_INVALID_VALUE
    assert two(flags=use) == three(pointer=pointer) == cl.CL_INVALID_HOST_PTR
    assert two(format_=Format("CL_sBGRA", "CL_FLOAT")) == cl.CL_IMAGE_FORMAT_NOT_SUPPORTED
    assert opencl.fails("clCreateImage2D", context, 0, None, 8, 8, 0, None) == (
        cl.CL_INVALID_IMAGE_FORMAT_DESCRIPTOR
    )


def test_queries_of_formats_and_images(opencl, context, resources):
    name, kind, count = "clGetSupportedImageFormats", cl.CL_MEM_OBJECT_IMAGE2D, ctypes.c_uint32()
    buffer = resources.buffer()
    assert opencl.fails(name, buffer, 0, kind, 0, None, count) == cl.CL_INVALID_CONTEXT
    assert opencl.fails(name, context, 1 << 30, kind, 0, None, count) == cl.CL_INVALID_VALUE
    assert opencl.fails(name, context, 0, cl.CL_MEM_OBJECT_BUFFER, 0, None, count) == cl.CL_INVALID_VALUE
    assert opencl.fails(name, context, 0, kind, 0, [0], count) == cl.CL_INVALID_VALUE
    query = ("clGetImageInfo", cl.CL_IMAGE_FORMAT, 0, None, None)
    assert opencl.fails(query[0], buffer, *query[1:]) == cl.CL_INVALID_MEM_OBJECT
    assert opencl.fails(query[0], 0, *query[1:]) == cl.CL_INVALID_MEM_OBJECT
    assert opencl.fails(query[0], resources.image(), 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
