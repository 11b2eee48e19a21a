"""Error codes of images and samplers (5.3 and 5.7): each one fires."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images import HAS_SLICES, TYPES, Format, descriptor

RGBA8 = Format("CL_RGBA", "CL_UNORM_INT8")
R8 = Format("CL_R", "CL_UNORM_INT8")
HOST_POINTER = (cl.CL_MEM_USE_HOST_PTR, cl.CL_MEM_ALLOC_HOST_PTR, cl.CL_MEM_COPY_HOST_PTR)


@pytest.fixture(scope="module")
def context(opencl):
    handle = opencl.context()
    yield handle
    opencl.ok("clReleaseContext", handle)


@pytest.fixture(scope="module")
def queue(opencl, context):
    handle = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
    yield handle
    opencl.ok("clReleaseCommandQueue", handle)


@pytest.fixture(scope="module")
def elsewhere(opencl):
    """Another context, with an image, a buffer, a sampler and a queue."""
    other = opencl.context()
    objects = {
        "context": other,
        "image": opencl.make("clCreateImage", other, 0, RGBA8.c, descriptor("2D", 8, 8), None),
        "buffer": opencl.make("clCreateBuffer", other, 0, 1024, None),
        "event": opencl.make("clCreateUserEvent", other),
    }
    yield objects
    for kind in ("image", "buffer"):
        opencl.ok("clReleaseMemObject", objects[kind])
    opencl.ok("clReleaseEvent", objects["event"])
    opencl.ok("clReleaseContext", other)


class Resources:
    """Memory objects that a test releases at its end."""

    def __init__(self, opencl, context):
        self.cl, self.context, self.handles = opencl, context, []
        self.memory = np.zeros(1 << 16, np.uint8)

    def image(self, type_="2D", format_=RGBA8, flags=0, pointer=None, **sizes):
        sizes = sizes or {"width": 8, "height": 8}
        arguments = (flags, format_.c, descriptor(type_, **sizes), pointer)
        self.handles.append(self.cl.make("clCreateImage", self.context, *arguments))
        return self.handles[-1]

    def buffer(self, size=4096, flags=0, pointer=None):
        self.handles.append(self.cl.make("clCreateBuffer", self.context, flags, size, pointer))
        return self.handles[-1]


@pytest.fixture
def resources(opencl, context):
    resources = Resources(opencl, context)
    yield resources
    for handle in resources.handles:
        opencl.ok("clReleaseMemObject", handle)


@pytest.fixture
def fails(opencl, context, resources):
    """Creation that must fail: its status."""

    def status(desc, format_=RGBA8, flags=0, pointer=None, handle=context):
        words = format_.c if isinstance(format_, Format) else format_
        return opencl.fails("clCreateImage", handle, flags, words, desc, pointer)

    return status


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
        (cl.CL_R, 0x10E1),
        (cl.CL_RGBA, cl.CL_UNORM_SHORT_565),
        (cl.CL_R, cl.CL_UNORM_SHORT_555),
        (cl.CL_BGRA, cl.CL_UNORM_INT_101010),
        (cl.CL_RGB, cl.CL_UNORM_INT_101010_2),
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
        (cl.CL_BGRA, cl.CL_FLOAT),
        (cl.CL_sRGBA, cl.CL_UNORM_INT16),
        (cl.CL_INTENSITY, cl.CL_SIGNED_INT8),
        (0x10BA, cl.CL_UNORM_INT8),  # CL_Rx
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
        descriptor("2D", 8, 8, row=1 << 62),
        descriptor("3D", 8, 8, 8, row=1 << 58, slice_=1 << 61),
    ):
        assert fails(desc, flags=cl.CL_MEM_USE_HOST_PTR, pointer=pointer) == wrong, list(desc)


def test_mipmaps_that_are_not_possible(fails, resources):
    depth = Format("CL_DEPTH", "CL_FLOAT")
    buffer = resources.buffer()
    for desc, format_ in (
        (descriptor("2D", 8, 8, levels=2), depth),
        (descriptor("1D buffer", 8, levels=2, memory=buffer), RGBA8),
        (descriptor("2D", 8, 8, levels=2, memory=buffer), RGBA8),
    ):
        assert fails(desc, format_) == cl.CL_INVALID_IMAGE_DESCRIPTOR
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
        descriptor("1D", 8, memory=buffer),
        descriptor("3D", 8, 8, 2, memory=buffer),
        descriptor("2D array", 8, 8, layers=2, memory=buffer),
        descriptor("1D array", 8, layers=2, memory=buffer),
        descriptor("1D buffer", 1025, memory=buffer),  # 4100 bytes
        descriptor("2D", 32, 33, memory=buffer),
        descriptor("2D", 8, 33, row=128, memory=buffer),
        descriptor("2D", 8, 8, row=64, slice_=512, memory=buffer),
    ):
        assert fails(desc) == wrong, list(desc)
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
    assert two(format_=Format("CL_BGRA", "CL_FLOAT")) == cl.CL_IMAGE_FORMAT_NOT_SUPPORTED
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


class Commands:
    """The commands on images as functions of what can be wrong; each gives the status of one call."""

    def __init__(self, opencl, queue, resources):
        self.cl, self.queue = opencl, queue
        self.memory = resources.memory.ctypes.data
        self.buffer = resources.buffer(1 << 14)
        self.color = np.zeros(4, np.float32)
        self.row, self.slice = ctypes.c_uint64(), ctypes.c_uint64()

    def _call(self, name, queue, wait, *arguments):
        return self.cl.call(
            name, self.queue if queue is None else queue, *arguments, *(wait or (0, None)), None
        )

    def read(self, image, origin, region, row=0, slice_=0, pointer=True, queue=None, wait=None):
        where = (1, origin, region, row, slice_, self.memory if pointer else None)
        return self._call("clEnqueueReadImage", queue, wait, image, *where)

    def write(self, image, origin, region, row=0, slice_=0, pointer=True, queue=None, wait=None):
        where = (1, origin, region, row, slice_, self.memory if pointer else None)
        return self._call("clEnqueueWriteImage", queue, wait, image, *where)

    def fill(self, image, origin, region, queue=None, wait=None, pointer=True):
        color = self.color.ctypes.data if pointer else None
        return self._call("clEnqueueFillImage", queue, wait, image, color, origin, region)

    def copy_from(self, image, origin, region, queue=None, wait=None, other=None, other_origin=(0, 0, 0)):
        where = (image, other or image, origin, list(other_origin), region)
        return self._call("clEnqueueCopyImage", queue, wait, *where)

    def copy_to(self, image, origin, region, queue=None, wait=None, other=None, other_origin=(0, 0, 0)):
        where = (other or image, image, list(other_origin), origin, region)
        return self._call("clEnqueueCopyImage", queue, wait, *where)

    def to_buffer(self, image, origin, region, queue=None, wait=None, buffer=None, offset=0):
        where = (image, buffer or self.buffer, origin, region, offset)
        return self._call("clEnqueueCopyImageToBuffer", queue, wait, *where)

    def from_buffer(self, image, origin, region, queue=None, wait=None, buffer=None, offset=0):
        where = (buffer or self.buffer, image, offset, origin, region)
        return self._call("clEnqueueCopyBufferToImage", queue, wait, *where)

    def map(self, image, origin, region, flags=cl.CL_MAP_READ, queue=None, wait=None, row=True, slice_=True):
        where = (1, flags, origin, region, self.row if row else None, self.slice if slice_ else None)
        pointer, status = self._call("clEnqueueMapImage", queue, wait, image, *where)
        self.pointer = pointer
        assert bool(pointer) == (not status)
        return status


COMMANDS = ("read", "write", "fill", "copy_from", "copy_to", "to_buffer", "from_buffer", "map")
# For each type an image and regions of it that are out of bounds or use what it has not.
BOUNDS = {
    "1D": ({"width": 8}, [([0, 0, 0], [9, 1, 1]), ([0, 1, 0], [1, 1, 1]), ([0, 0, 1], [1, 1, 1]),
                          ([0, 0, 0], [1, 2, 1]), ([0, 0, 0], [1, 1, 2])]),
    "1D buffer": ({"width": 8}, [([1, 0, 0], [8, 1, 1]), ([0, 1, 0], [1, 1, 1]), ([0, 0, 0], [1, 1, 2])]),
    "1D array": ({"width": 8, "layers": 3}, [([0, 1, 0], [8, 3, 1]), ([0, 0, 1], [1, 1, 1]),
                                             ([0, 0, 0], [1, 1, 2]), ([0, 3, 0], [1, 1, 1])]),
    "2D": ({"width": 8, "height": 8}, [([1, 0, 0], [8, 8, 1]), ([0, 1, 0], [8, 8, 1]), ([0, 0, 1], [1, 1, 1]),
                                       ([0, 0, 0], [1, 1, 2]), ([8, 0, 0], [1, 1, 1]),
                                       ([2, 0, 0], [2**64 - 1, 1, 1])]),
    "2D array": ({"width": 8, "height": 8, "layers": 3}, [([0, 0, 1], [8, 8, 3]), ([0, 1, 0], [8, 8, 3])]),
    "3D": ({"width": 8, "height": 8, "depth": 3}, [([0, 0, 2], [8, 8, 2]), ([0, 0, 3], [1, 1, 1])]),
}  # fmt: skip


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("command", COMMANDS)
def test_regions(opencl, queue, resources, command, type_):
    sizes, regions = BOUNDS[type_]
    if type_ == "1D buffer":
        sizes = sizes | {"memory": resources.buffer()}
    image = resources.image(type_, **sizes)
    run = getattr(Commands(opencl, queue, resources), command)
    for origin, region in regions:
        # ctypes takes the words of a list as signed.
        region = [value - 2**64 if value >= 2**63 else value for value in region]
        assert run(image, origin, region) == cl.CL_INVALID_VALUE, (origin, region)
    one = [1, 1, 1]
    for i in range(3):
        assert run(image, [0, 0, 0], [*one[:i], 0, *one[i + 1 :]]) == cl.CL_INVALID_VALUE
    assert run(image, None, one) == run(image, [0, 0, 0], None) == cl.CL_INVALID_VALUE


@pytest.mark.parametrize("command", COMMANDS)
def test_objects(opencl, queue, resources, elsewhere, command):
    commands = Commands(opencl, queue, resources)
    run, image, region = getattr(commands, command), resources.image(), ([0, 0, 0], [1, 1, 1])
    for handle in (0, image):
        assert run(image, *region, queue=handle) == cl.CL_INVALID_COMMAND_QUEUE
    for handle in (0, resources.buffer(), queue):
        assert run(handle, *region) == cl.CL_INVALID_MEM_OBJECT
    assert run(elsewhere["image"], *region) == cl.CL_INVALID_CONTEXT
    wrong = cl.CL_INVALID_EVENT_WAIT_LIST
    assert run(image, *region, wait=(1, None)) == run(image, *region, wait=(0, [image])) == wrong
    assert run(image, *region, wait=(1, [image])) == wrong
    assert run(image, *region, wait=(1, [elsewhere["event"]])) == cl.CL_INVALID_CONTEXT
    mipmapped = resources.image(width=8, height=8, levels=3)
    level = [0, 0, 3]
    assert run(mipmapped, level, [1, 1, 1]) == cl.CL_INVALID_MIP_LEVEL
    assert run(mipmapped, [0, 0, 2], [3, 1, 1]) == cl.CL_INVALID_VALUE


@pytest.mark.parametrize("command", ["read", "write"])
def test_pitches(opencl, queue, resources, command):
    run = getattr(Commands(opencl, queue, resources), command)
    region = ([0, 0, 0], [4, 3, 1])
    image = resources.image()
    wrong = cl.CL_INVALID_VALUE
    assert run(image, *region, row=15) == run(image, *region, slice_=48) == wrong
    assert run(image, *region, pointer=False) == wrong
    assert run(resources.image("1D", width=8), [0, 0, 0], [4, 1, 1], slice_=16) == wrong
    assert run(image, *region, row=17) == cl.CL_SUCCESS
    for type_, sizes, least in (
        ("3D", {"width": 8, "height": 8, "depth": 2}, 48),
        ("2D array", {"width": 8, "height": 8, "layers": 2}, 48),
        ("1D array", {"width": 8, "layers": 4}, 16),
    ):
        image = resources.image(type_, **sizes)
        assert run(image, *region, slice_=least - 1) == wrong
        assert run(image, *region, row=20, slice_=least) == wrong
        if type_ != "1D array":
            assert run(image, *region, row=1 << 63) == wrong  # the slice is larger than memory
        assert run(image, *region, slice_=least) == cl.CL_SUCCESS


def test_host_access(opencl, queue, resources):
    commands = Commands(opencl, queue, resources)
    region = ([0, 0, 0], [1, 1, 1])
    wrong = cl.CL_INVALID_OPERATION
    for flag in (cl.CL_MEM_HOST_WRITE_ONLY, cl.CL_MEM_HOST_NO_ACCESS):
        image = resources.image(flags=flag)
        assert commands.read(image, *region) == commands.map(image, *region) == wrong
    for flag in (cl.CL_MEM_HOST_READ_ONLY, cl.CL_MEM_HOST_NO_ACCESS):
        image = resources.image(flags=flag)
        assert commands.write(image, *region) == wrong
        for write in (cl.CL_MAP_WRITE, cl.CL_MAP_WRITE_INVALIDATE_REGION):
            assert commands.map(image, *region, flags=write) == wrong
        assert commands.fill(image, *region) == cl.CL_SUCCESS  # "is ignored by clEnqueueFillImage"


def test_fill_without_a_color(opencl, queue, resources):
    commands = Commands(opencl, queue, resources)
    assert commands.fill(resources.image(), [0, 0, 0], [1, 1, 1], pointer=False) == cl.CL_INVALID_VALUE


def test_copies(opencl, queue, resources):
    commands = Commands(opencl, queue, resources)
    image, other = resources.image(), resources.image(format_=Format("CL_BGRA", "CL_UNORM_INT8"))
    region = ([0, 0, 0], [4, 4, 1])
    assert commands.copy_from(image, *region, other=other) == cl.CL_IMAGE_FORMAT_MISMATCH
    signed = resources.image(format_=Format("CL_RGBA", "CL_SNORM_INT8"))
    assert commands.copy_from(image, *region, other=signed) == cl.CL_IMAGE_FORMAT_MISMATCH
    # One image: 4 x 4 pixels at (0, 0) and at...
    for x, y, overlaps in ((0, 0, 1), (3, 3, 1), (4, 0, 0), (0, 4, 0), (4, 4, 0), (3, 0, 1), (0, 3, 1)):
        status = commands.copy_from(image, *region, other_origin=(x, y, 0))
        assert status == (cl.CL_MEM_COPY_OVERLAP if overlaps else cl.CL_SUCCESS), (x, y)
    slices = resources.image("3D", width=8, height=8, depth=4)
    for z, overlaps in ((1, 1), (2, 0)):
        region = ([0, 0, 0], [8, 8, 2])
        status = commands.copy_from(slices, *region, other_origin=(0, 0, z))
        assert status == (cl.CL_MEM_COPY_OVERLAP if overlaps else cl.CL_SUCCESS)
    # Two images of one buffer, of different pitches.
    buffer = resources.buffer(4096)
    narrow = resources.image(width=8, height=8, memory=buffer)
    wide = resources.image(width=16, height=8, row=128, memory=buffer)
    assert commands.copy_from(narrow, [0, 4, 0], [2, 1, 1], other=wide, other_origin=(0, 1, 0)) == (
        cl.CL_MEM_COPY_OVERLAP
    )
    assert commands.copy_from(narrow, [0, 4, 0], [2, 1, 1], other=wide, other_origin=(2, 1, 0)) == 0


@pytest.mark.parametrize("command", ["to_buffer", "from_buffer"])
def test_copies_of_buffers(opencl, queue, resources, elsewhere, command):
    run, image = getattr(Commands(opencl, queue, resources), command), resources.image()
    region = ([0, 0, 0], [4, 4, 1])
    buffer = resources.buffer(100)
    assert run(image, *region, buffer=buffer, offset=37) == cl.CL_INVALID_VALUE
    assert run(image, *region, buffer=buffer, offset=1 << 63) == cl.CL_INVALID_VALUE
    assert run(image, *region, buffer=buffer, offset=36) == cl.CL_SUCCESS
    assert run(image, *region, buffer=image) == cl.CL_INVALID_MEM_OBJECT
    assert run(image, *region, buffer=elsewhere["buffer"]) == cl.CL_INVALID_CONTEXT
    of_buffer = resources.image("1D buffer", width=8, memory=buffer)
    assert run(of_buffer, [0, 0, 0], [4, 1, 1], buffer=buffer) == cl.CL_INVALID_MEM_OBJECT
    assert run(of_buffer, [0, 0, 0], [4, 1, 1]) == cl.CL_SUCCESS


def test_maps(opencl, queue, resources):
    commands = Commands(opencl, queue, resources)
    image = resources.image()
    region = ([0, 0, 0], [4, 4, 1])
    wrong = cl.CL_INVALID_VALUE
    assert commands.map(image, *region, flags=1 << 20) == wrong
    both = cl.CL_MAP_READ | cl.CL_MAP_WRITE_INVALIDATE_REGION
    assert commands.map(image, *region, flags=both) == wrong
    assert commands.map(image, *region, row=False) == wrong
    assert commands.map(image, *region, slice_=False) == cl.CL_SUCCESS
    opencl.ok("clEnqueueUnmapMemObject", queue, image, commands.pointer, 0, None, None)
    unmap = (queue, image, commands.pointer, 0, None, None)
    assert opencl.fails("clEnqueueUnmapMemObject", *unmap) == wrong
    for type_ in HAS_SLICES:
        slices = resources.image(type_, width=8, height=8, depth=2, layers=2)
        assert commands.map(slices, [0, 0, 0], [1, 1, 1], slice_=False) == wrong
    # Regions for writing must not overlap; columns side by side do not, though their rows alternate.
    write, origins = cl.CL_MAP_WRITE, []
    for x, y, overlaps in ((0, 0, 0), (4, 0, 0), (3, 3, 1), (0, 4, 0), (1, 1, 1), (7, 7, 0)):
        size = [min(4, 8 - x), min(4, 8 - y), 1]
        status = commands.map(image, [x, y, 0], size, flags=write)
        assert status == (cl.CL_INVALID_OPERATION if overlaps else cl.CL_SUCCESS), (x, y)
        if not overlaps:
            origins.append(commands.pointer)
    assert commands.map(image, *region) == cl.CL_SUCCESS  # for reading
    for pointer in (*origins, commands.pointer):
        opencl.ok("clEnqueueUnmapMemObject", queue, image, pointer, 0, None, None)
    assert opencl.integer("clGetMemObjectInfo", image, cl.CL_MEM_MAP_COUNT) == 0
    # An image of a buffer that is mapped for writing.
    buffer = resources.buffer(4096)
    view = resources.image(width=8, height=8, memory=buffer)
    arguments = (1, cl.CL_MAP_WRITE, 60, 8, 0, None, None)
    pointer = opencl.make("clEnqueueMapBuffer", queue, buffer, *arguments)
    for origin, size, overlaps in (
        ([7, 1, 0], [1, 1, 1], True),
        ([0, 2, 0], [1, 1, 1], True),
        ([0, 0, 0], [8, 8, 1], True),
        ([0, 1, 0], [7, 2, 1], True),
        ([1, 1, 0], [6, 2, 1], False),
        ([0, 0, 0], [8, 1, 1], False),
    ):
        status = commands.map(view, origin, size, flags=write)
        assert status == (cl.CL_INVALID_OPERATION if overlaps else cl.CL_SUCCESS), origin
        if not overlaps:
            opencl.ok("clEnqueueUnmapMemObject", queue, view, commands.pointer, 0, None, None)
    opencl.ok("clEnqueueUnmapMemObject", queue, buffer, pointer, 0, None, None)
    opencl.ok("clFinish", queue)


SAMPLER_PROPERTIES = {
    "CL_SAMPLER_NORMALIZED_COORDS": (cl.CL_TRUE, cl.CL_FALSE),
    "CL_SAMPLER_ADDRESSING_MODE": (cl.CL_ADDRESS_CLAMP, cl.CL_ADDRESS_CLAMP_TO_EDGE),
    "CL_SAMPLER_FILTER_MODE": (cl.CL_FILTER_NEAREST, cl.CL_FILTER_LINEAR),
    "CL_SAMPLER_MIP_FILTER_MODE": (cl.CL_FILTER_NEAREST, cl.CL_FILTER_LINEAR),
    "CL_SAMPLER_LOD_MIN": (0, 0x3FC00000),
    "CL_SAMPLER_LOD_MAX": (0x7F7FFFFF, 0x40A00000),
}


def test_samplers(opencl, context):
    """Every value of every property, beside the defaults; properties come back as they were given."""
    listed = "clCreateSamplerWithProperties"
    for name, (default, other) in SAMPLER_PROPERTIES.items():
        for properties in (None, [0], [getattr(cl, name), other, 0]):
            sampler = opencl.make(listed, context, properties)
            for query, (value, _) in SAMPLER_PROPERTIES.items():
                expected = other if properties and len(properties) > 1 and query == name else value
                assert opencl.integer("clGetSamplerInfo", sampler, getattr(cl, query)) == expected, query
            given = opencl.words("clGetSamplerInfo", sampler, cl.CL_SAMPLER_PROPERTIES)
            assert given == (properties or [])
            opencl.ok("clRetainSampler", sampler)
            assert opencl.integer("clGetSamplerInfo", sampler, cl.CL_SAMPLER_REFERENCE_COUNT) == 2
            assert opencl.integer("clGetSamplerInfo", sampler, cl.CL_SAMPLER_CONTEXT) == context
            assert opencl.fails("clGetSamplerInfo", sampler, 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
            opencl.ok("clReleaseSampler", sampler)
            opencl.ok("clReleaseSampler", sampler)
            assert opencl.fails("clReleaseSampler", sampler) == cl.CL_INVALID_SAMPLER
    for normalized in (cl.CL_TRUE, cl.CL_FALSE):
        for addressing in range(cl.CL_ADDRESS_NONE, cl.CL_ADDRESS_MIRRORED_REPEAT + 1):
            for filter_ in (cl.CL_FILTER_NEAREST, cl.CL_FILTER_LINEAR):
                sampler, status = opencl.call("clCreateSampler", context, normalized, addressing, filter_)
                repeats = addressing in (cl.CL_ADDRESS_REPEAT, cl.CL_ADDRESS_MIRRORED_REPEAT)
                if repeats and not normalized:
                    assert status == cl.CL_INVALID_VALUE and not sampler
                    continue
                assert not status
                for name, value in (("NORMALIZED_COORDS", normalized), ("ADDRESSING_MODE", addressing)):
                    query = getattr(cl, f"CL_SAMPLER_{name}")
                    assert opencl.integer("clGetSamplerInfo", sampler, query) == value
                assert opencl.words("clGetSamplerInfo", sampler, cl.CL_SAMPLER_PROPERTIES) == []
                opencl.ok("clReleaseSampler", sampler)


def test_sampler_errors(opencl, context, resources):
    plain, listed, buffer = "clCreateSampler", "clCreateSamplerWithProperties", resources.buffer()
    good = (cl.CL_FALSE, cl.CL_ADDRESS_CLAMP, cl.CL_FILTER_NEAREST)
    wrong = cl.CL_INVALID_VALUE
    assert opencl.fails(plain, buffer, *good) == opencl.fails(listed, buffer, None) == cl.CL_INVALID_CONTEXT
    assert opencl.fails(plain, context, 2, *good[1:]) == wrong
    for mode in (cl.CL_ADDRESS_NONE - 1, cl.CL_ADDRESS_MIRRORED_REPEAT + 1):
        assert opencl.fails(plain, context, 0, mode, good[2]) == wrong
    for mode in (cl.CL_FILTER_NEAREST - 1, cl.CL_FILTER_LINEAR + 1):
        assert opencl.fails(plain, context, *good[:2], mode) == wrong
    for properties in (
        [cl.CL_SAMPLER_FILTER_MODE, cl.CL_FILTER_LINEAR] * 2,
        [0x1234, 1],
        [cl.CL_SAMPLER_CONTEXT, 1],
        [cl.CL_SAMPLER_NORMALIZED_COORDS, 2],
        [cl.CL_SAMPLER_NORMALIZED_COORDS, 1 << 32],
        [cl.CL_SAMPLER_ADDRESSING_MODE, 1],
        [cl.CL_SAMPLER_FILTER_MODE, cl.CL_ADDRESS_CLAMP],
        [cl.CL_SAMPLER_MIP_FILTER_MODE, 1],
        [cl.CL_SAMPLER_LOD_MIN, 0x7FC00000],  # NaN
        [cl.CL_SAMPLER_LOD_MIN, 0x40A00000, cl.CL_SAMPLER_LOD_MAX, 0x3FC00000],  # 5 to 1.5
        [cl.CL_SAMPLER_NORMALIZED_COORDS, 0, cl.CL_SAMPLER_ADDRESSING_MODE, cl.CL_ADDRESS_REPEAT],
    ):
        assert opencl.fails(listed, context, [*properties, 0]) == wrong, properties
    query = ("clGetSamplerInfo", buffer, cl.CL_SAMPLER_CONTEXT, 0, None, None)
    assert opencl.fails(*query) == cl.CL_INVALID_SAMPLER
    for name in ("clRetainSampler", "clReleaseSampler"):
        assert opencl.fails(name, buffer) == cl.CL_INVALID_SAMPLER
