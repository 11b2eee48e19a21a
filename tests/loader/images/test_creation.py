"""Images as they are made: formats, host memory, of buffers and images, mip levels, limits, queries (5.3)."""

import ctypes
import itertools

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images.image import RGBA8, SHAPES, Image, map_image, noise
from tests.loader.images.model import (
    DIMENSIONS,
    HAS_SLICES,
    RAWS,
    TYPES,
    Format,
    described,
    descriptor,
    formats,
    pitched,
)

every_type = pytest.mark.parametrize("type_", TYPES)


@every_type
def test_supported_formats(opencl, context, type_):
    """The list is exactly the model's, whatever kernels may do with them, but for pixels that share bytes."""
    written = sorted(format_.words for format_ in formats(type_))
    read = written if type_ == "3D" else sorted([*written, *((cl.CL_R, raw) for raw in RAWS)])
    flags = (0, cl.CL_MEM_READ_ONLY, cl.CL_MEM_WRITE_ONLY, cl.CL_MEM_READ_WRITE)
    for access in (*flags, cl.CL_MEM_KERNEL_READ_AND_WRITE):
        expected = read if access == cl.CL_MEM_READ_ONLY else written
        count = ctypes.c_uint32()
        found = (ctypes.c_uint32 * 400)()
        where = (context, access, TYPES[type_])
        opencl.ok("clGetSupportedImageFormats", *where, 0, None, count)
        opencl.ok("clGetSupportedImageFormats", *where, 200, found, None)
        pairs = [(found[2 * i], found[2 * i + 1]) for i in range(count.value)]
        assert sorted(pairs) == expected
        few = (ctypes.c_uint32 * 6)()
        opencl.ok("clGetSupportedImageFormats", *where, 2, few, count)
        assert list(few) == [*found[:4], 0, 0] and count.value == len(expected)


# Table 28 and, for read-write, Table 29; besides what OpenCL 2 asks for.
REQUIRED = [
    *((order, type_) for order in ("CL_R", "CL_RG", "CL_RGBA") for type_ in (
        "CL_UNORM_INT8", "CL_UNORM_INT16", "CL_SNORM_INT8", "CL_SNORM_INT16", "CL_SIGNED_INT8",
        "CL_SIGNED_INT16", "CL_SIGNED_INT32", "CL_UNSIGNED_INT8", "CL_UNSIGNED_INT16", "CL_UNSIGNED_INT32",
        "CL_HALF_FLOAT", "CL_FLOAT",
    )),
    ("CL_DEPTH", "CL_UNORM_INT16"), ("CL_DEPTH", "CL_FLOAT"), ("CL_BGRA", "CL_UNORM_INT8"),
    ("CL_sRGBA", "CL_UNORM_INT8"),
]  # fmt: skip


def test_required_formats():
    listed = {(format_.order, format_.type) for format_ in formats("2D")}
    assert set(REQUIRED) <= listed


@pytest.mark.parametrize("type_", [name for name in TYPES if name != "1D buffer"])
@pytest.mark.parametrize("flag", ["CL_MEM_USE_HOST_PTR", "CL_MEM_COPY_HOST_PTR"])
def test_host_memory(opencl, context, queue, type_, flag):
    """Host memory with pitches: copied, or used without a copy."""
    for format_, pads in itertools.product(formats(type_)[::7], ((0, 0), (3, 0), (2, 2))):
        slices, rows, width = SHAPES[type_]
        row = (width + pads[0]) * format_.size
        slice_ = row * ((1 if type_ == "1D array" else rows) + pads[1])
        step = slice_ if type_ == "1D array" else row
        memory = noise(slice_ * slices * rows)
        shape = (slices, rows, width * format_.size)
        has_slices = type_ in HAS_SLICES
        desc = described(type_, SHAPES[type_], row=row, slice_=slice_ if has_slices else 0)
        made = opencl.make("clCreateImage", context, getattr(cl, flag), format_.c, desc, memory.ctypes.data)
        assert opencl.integer("clGetImageInfo", made, cl.CL_IMAGE_ROW_PITCH) == row
        assert opencl.integer("clGetImageInfo", made, cl.CL_IMAGE_SLICE_PITCH) == has_slices * slice_
        expected = pitched(memory, shape, step, slice_).copy()
        if flag == "CL_MEM_COPY_HOST_PTR":
            memory[...] = 0
            assert opencl.integer("clGetMemObjectInfo", made, cl.CL_MEM_HOST_PTR) == 0
        else:
            assert opencl.integer("clGetMemObjectInfo", made, cl.CL_MEM_HOST_PTR) == memory.ctypes.data
        region = list(SHAPES[type_][::-1])
        found = np.zeros(shape, np.uint8)
        where = ([0, 0, 0], region, 0, 0, found.ctypes.data)
        opencl.ok("clEnqueueReadImage", queue, made, 1, *where, 0, None, None)
        assert (found == expected).all()
        if flag == "CL_MEM_USE_HOST_PTR":
            pointer, *pitches = map_image(opencl, queue, made, cl.CL_MAP_READ, (0, 0, 0), region)
            assert pointer == memory.ctypes.data and pitches == [row, has_slices * slice_]
            opencl.ok("clEnqueueUnmapMemObject", queue, made, pointer, 0, None, None)
            opencl.ok("clFinish", queue)
        opencl.ok("clReleaseMemObject", made)


def test_images_of_buffers_share_their_memory(opencl, context, queue):
    memory = noise(4096)
    buffer = opencl.make(
        "clCreateBuffer", context, cl.CL_MEM_USE_HOST_PTR | cl.CL_MEM_READ_ONLY, 4096, memory.ctypes.data
    )
    part = opencl.make("clCreateSubBuffer", buffer, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, [1024, 2048])
    # 13 pixels of 4 bytes, a pitch of 15.
    desc = descriptor("2D", 13, 20, row=60, memory=part)
    image = opencl.make("clCreateImage", context, 0, RGBA8.c, desc, None)
    found = np.zeros((20, 52), np.uint8)
    where = ([0, 0, 0], [13, 20, 1], 0, 0, found.ctypes.data)
    opencl.ok("clEnqueueReadImage", queue, image, 1, *where, 0, None, None)
    assert (found == pitched(memory[1024:], (1, 20, 52), 60, 1200)[0]).all()
    for name, value in (
        ("CL_MEM_FLAGS", cl.CL_MEM_READ_ONLY | cl.CL_MEM_USE_HOST_PTR),
        ("CL_MEM_ASSOCIATED_MEMOBJECT", part),
        ("CL_MEM_SIZE", 1200),
        ("CL_MEM_OFFSET", 0),
        ("CL_MEM_TYPE", cl.CL_MEM_OBJECT_IMAGE2D),
        ("CL_MEM_USES_SVM_POINTER", 0),
    ):
        assert opencl.integer("clGetMemObjectInfo", image, getattr(cl, name)) == value, name
    assert opencl.integer("clGetImageInfo", image, cl.CL_IMAGE_BUFFER) == part
    assert opencl.integer("clGetImageInfo", image, cl.CL_IMAGE_ROW_PITCH) == 60
    # A view of the view: the same bytes as sRGB.
    srgb = Format("CL_sRGBA", "CL_UNORM_INT8")
    view = opencl.make(
        "clCreateImage", context, 0, srgb.c, descriptor("2D", 13, 20, row=60, memory=image), None
    )
    assert opencl.integer("clGetMemObjectInfo", view, cl.CL_MEM_ASSOCIATED_MEMOBJECT) == image
    assert opencl.integer("clGetImageInfo", view, cl.CL_IMAGE_BUFFER) == part
    for handle in (buffer, part, image):
        opencl.ok("clReleaseMemObject", handle)
    color = srgb.color((0.5, 0.25, 1, 0.5))
    where = (color.ctypes.data, [1, 19, 0], [3, 1, 1])
    opencl.ok("clEnqueueFillImage", queue, view, *where, 0, None, None)
    opencl.ok("clFinish", queue)
    at = 1024 + 19 * 60 + 4
    assert memory[at : at + 12].tobytes() == srgb.pack((0.5, 0.25, 1, 0.5)) * 3
    opencl.ok("clReleaseMemObject", view)


@pytest.mark.parametrize("pair", ["sBGRA BGRA", "sRGBA RGBA", "DEPTH R"])
def test_views_with_other_orders(opencl, context, pair):
    orders = [f"CL_{name}" for name in pair.split()]
    type_ = "CL_FLOAT" if "DEPTH" in pair else "CL_UNORM_INT8"
    for order, of in (orders, orders[::-1]):
        if order == "CL_R":
            continue  # only the other way round
        parent = opencl.make("clCreateImage", context, 0, Format(of, type_).c, descriptor("2D", 8, 8), None)
        desc = descriptor("2D", 8, 8, memory=parent)
        view = opencl.make("clCreateImage", context, 0, Format(order, type_).c, desc, None)
        opencl.ok("clReleaseMemObject", parent)
        opencl.ok("clReleaseMemObject", view)


@pytest.mark.parametrize("type_", [name for name in TYPES if name != "1D buffer"])
def test_mip_levels(opencl, context, queue, type_):
    """Each level is an image of its own size; every command finds it by the entry behind the origin."""
    slices, rows, width = SHAPES[type_]
    format_ = Format("CL_RG", "CL_UNORM_INT16")
    dimensions = DIMENSIONS[type_]
    made = opencl.make(
        "clCreateImage", context, 0, format_.c, described(type_, SHAPES[type_], levels=6), None
    )
    assert opencl.integer("clGetImageInfo", made, cl.CL_IMAGE_NUM_MIP_LEVELS) == 6
    models = []
    for level in range(6):
        size = [max(width >> level, 1), rows, slices]
        if type_ in ("2D", "2D array", "3D"):
            size[1] = max(rows >> level, 1)
        if type_ == "3D":
            size[2] = max(slices >> level, 1)
        models.append((size, noise(size[2], size[1], size[0] * 4) ^ level))

    def origin(level):
        return [*[0] * dimensions, level, 0, 0, 0][:4]

    for level, (size, model) in enumerate(models):
        where = (origin(level), size, 0, 0, model.ctypes.data)
        opencl.ok("clEnqueueWriteImage", queue, made, 1, *where, 0, None, None)
    for level, (size, model) in enumerate(models):
        found = np.zeros_like(model)
        where = (origin(level), size, 0, 0, found.ctypes.data)
        opencl.ok("clEnqueueReadImage", queue, made, 1, *where, 0, None, None)
        assert (found == model).all(), level
        pointer, _, slice_ = map_image(opencl, queue, made, cl.CL_MAP_READ, origin(level), size)
        assert ctypes.string_at(pointer, model.size) == model.tobytes()
        opencl.ok("clEnqueueUnmapMemObject", queue, made, pointer, 0, None, None)
        assert (slice_ != 0) == (type_ in HAS_SLICES)
    # A region of level 1 over one of level 0.
    size, model = models[1]
    where = (origin(1), origin(0), size)
    opencl.ok("clEnqueueCopyImage", queue, made, made, *where, 0, None, None)
    found = np.zeros_like(model)
    where = (origin(0), size, 0, 0, found.ctypes.data)
    opencl.ok("clEnqueueReadImage", queue, made, 1, *where, 0, None, None)
    assert (found == model).all()
    beyond = (origin(6), [1, 1, 1], 0, 0, found.ctypes.data)
    status = opencl.fails("clEnqueueReadImage", queue, made, 1, *beyond, 0, None, None)
    assert status == cl.CL_INVALID_MIP_LEVEL
    # What fits level 0 does not fit level 1.
    outside = (origin(1), models[0][0], 0, 0, found.ctypes.data)
    status = opencl.fails("clEnqueueReadImage", queue, made, 1, *outside, 0, None, None)
    assert status == cl.CL_INVALID_VALUE
    opencl.ok("clReleaseMemObject", made)


def test_largest_images(opencl, context):
    """The limits that the device reports are those of clCreateImage."""

    def limit(name):
        return opencl.integer("clGetDeviceInfo", opencl.device(), getattr(cl, name))

    two = limit("CL_DEVICE_IMAGE2D_MAX_WIDTH"), limit("CL_DEVICE_IMAGE2D_MAX_HEIGHT")
    three = [limit(f"CL_DEVICE_IMAGE3D_MAX_{name}") for name in ("WIDTH", "HEIGHT", "DEPTH")]
    layers, pixels = limit("CL_DEVICE_IMAGE_MAX_ARRAY_SIZE"), limit("CL_DEVICE_IMAGE_MAX_BUFFER_SIZE")
    assert two == (16384, 16384) and three == [2048] * 3 and layers == 2048 and pixels >= 65536
    r8 = Format("CL_R", "CL_UNORM_INT8")
    buffer = opencl.make("clCreateBuffer", context, 0, pixels + 1, None)
    cases = [
        (descriptor("1D", two[0]), descriptor("1D", two[0] + 1)),
        (descriptor("2D", two[0], 1), descriptor("2D", two[0] + 1, 1)),
        (descriptor("2D", 1, two[1]), descriptor("2D", 1, two[1] + 1)),
        (descriptor("1D array", 1, layers=layers), descriptor("1D array", 1, layers=layers + 1)),
        (descriptor("2D array", 1, 1, layers=layers), descriptor("2D array", 1, 1, layers=layers + 1)),
        (descriptor("2D array", 1, two[1], layers=1), descriptor("2D array", 1, two[1] + 1, layers=1)),
        (descriptor("3D", three[0], 1, 1), descriptor("3D", three[0] + 1, 1, 1)),
        (descriptor("3D", 1, three[1], 1), descriptor("3D", 1, three[1] + 1, 1)),
        (descriptor("3D", 1, 1, three[2]), descriptor("3D", 1, 1, three[2] + 1)),
        (
            descriptor("1D buffer", pixels, memory=buffer),
            descriptor("1D buffer", pixels + 1, memory=buffer),
        ),
    ]
    for most, more in cases:
        opencl.ok("clReleaseMemObject", opencl.make("clCreateImage", context, 0, r8.c, most, None))
        assert opencl.fails("clCreateImage", context, 0, r8.c, more, None) == cl.CL_INVALID_IMAGE_SIZE
    opencl.ok("clReleaseMemObject", buffer)


@every_type
def test_queries(opencl, context, queue, type_):
    image = Image(opencl, context, queue, type_, RGBA8, flags=cl.CL_MEM_READ_ONLY)
    slices, rows, width = image.shape
    layers = {"1D array": rows, "2D array": slices}.get(type_, 0)
    height = rows if type_ in ("2D", "2D array", "3D") else 0
    size = image.model.size
    expected = {
        "CL_IMAGE_ELEMENT_SIZE": 4,
        "CL_IMAGE_ROW_PITCH": width * 4,
        "CL_IMAGE_SLICE_PITCH": width * 4 * max(height, 1) if type_ in HAS_SLICES else 0,
        "CL_IMAGE_WIDTH": width,
        "CL_IMAGE_HEIGHT": height,
        "CL_IMAGE_DEPTH": slices if type_ == "3D" else 0,
        "CL_IMAGE_ARRAY_SIZE": layers,
        "CL_IMAGE_BUFFER": image.buffer,
        "CL_IMAGE_NUM_MIP_LEVELS": 0,
        "CL_IMAGE_NUM_SAMPLES": 0,
    }
    for name, value in expected.items():
        data = opencl.info("clGetImageInfo", image.handle, getattr(cl, name))
        assert int.from_bytes(data, "little") == value, name
        assert len(data) == (4 if "NUM" in name else 8), name
    found = opencl.info("clGetImageInfo", image.handle, cl.CL_IMAGE_FORMAT)
    assert found == bytes(RGBA8.c)
    flags = cl.CL_MEM_READ_ONLY | cl.CL_MEM_COPY_HOST_PTR
    for name, value in (
        ("CL_MEM_TYPE", TYPES[type_]),
        ("CL_MEM_FLAGS", flags),
        ("CL_MEM_SIZE", size),
        ("CL_MEM_HOST_PTR", 0),
        ("CL_MEM_CONTEXT", context),
        ("CL_MEM_REFERENCE_COUNT", 1),
        ("CL_MEM_ASSOCIATED_MEMOBJECT", image.buffer),
    ):
        assert opencl.integer("clGetMemObjectInfo", image.handle, getattr(cl, name)) == value, name
    assert opencl.info("clGetMemObjectInfo", image.handle, cl.CL_MEM_PROPERTIES) == b""
    image.release()


def test_images_of_version_1(opencl, context, queue):
    """clCreateImage2D and clCreateImage3D, with their pitches."""
    memory = noise(4000)
    use = cl.CL_MEM_USE_HOST_PTR
    two = opencl.make("clCreateImage2D", context, use, RGBA8.c, 10, 5, 48, memory.ctypes.data)
    three = opencl.make("clCreateImage3D", context, use, RGBA8.c, 10, 5, 3, 48, 480, memory.ctypes.data)
    assert opencl.integer("clGetImageInfo", two, cl.CL_IMAGE_ROW_PITCH) == 48
    assert opencl.integer("clGetImageInfo", three, cl.CL_IMAGE_SLICE_PITCH) == 480
    assert opencl.integer("clGetMemObjectInfo", three, cl.CL_MEM_TYPE) == cl.CL_MEM_OBJECT_IMAGE3D
    for image, depth in ((two, 1), (three, 3)):
        found = np.zeros((depth, 5, 40), np.uint8)
        where = ([0, 0, 0], [10, 5, depth], 0, 0, found.ctypes.data)
        opencl.ok("clEnqueueReadImage", queue, image, 1, *where, 0, None, None)
        assert (found == pitched(memory, found.shape, 48, 480)).all()
        opencl.ok("clReleaseMemObject", image)
