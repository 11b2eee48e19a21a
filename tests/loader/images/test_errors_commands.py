"""Error codes of commands on images (5.3.4 to 5.3.8): each one fires."""

import ctypes

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images.model import HAS_SLICES, TYPES, Format


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
