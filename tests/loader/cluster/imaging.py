"""Images and samplers on a worker beside this machine's device: python -m tests.loader.cluster.imaging SCENE.
Both are in one context, and must do the same to the last bit. Scenes end with an exception where something is
not as it should be."""

from __future__ import annotations

import ctypes
import itertools
import random
import struct
import sys

from cl_driver.api.generated import enums as cl
from tests.loader.cluster.host import Host

_RGBA8 = (cl.CL_RGBA, cl.CL_UNSIGNED_INT8)
_chance = random.Random(7)


class ImageDesc(ctypes.Structure):
    """cl_image_desc."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
        ("array_size", ctypes.c_size_t),
        ("row_pitch", ctypes.c_size_t),
        ("slice_pitch", ctypes.c_size_t),
        ("num_mip_levels", ctypes.c_uint32),
        ("num_samples", ctypes.c_uint32),
        ("mem_object", ctypes.c_void_p),
    )


# Types of images: the name in OpenCL C, dimensions, the coordinate of a pixel, and what describes one.
_TYPES = {
    "image1d_t": ((37, 1, 1), "x", ImageDesc(cl.CL_MEM_OBJECT_IMAGE1D, 37)),
    "image1d_buffer_t": ((37, 1, 1), "x", ImageDesc(cl.CL_MEM_OBJECT_IMAGE1D_BUFFER, 37)),
    "image1d_array_t": ((13, 5, 1), "(int2)(x, y)", ImageDesc(cl.CL_MEM_OBJECT_IMAGE1D_ARRAY, 13, 0, 0, 5)),
    "image2d_t": ((11, 7, 1), "(int2)(x, y)", ImageDesc(cl.CL_MEM_OBJECT_IMAGE2D, 11, 7)),
    "image2d_array_t": ((11, 7, 3), "(int4)(x, y, z, 0)",
                        ImageDesc(cl.CL_MEM_OBJECT_IMAGE2D_ARRAY, 11, 7, 0, 3)),
    "image3d_t": ((11, 7, 3), "(int4)(x, y, z, 0)", ImageDesc(cl.CL_MEM_OBJECT_IMAGE3D, 11, 7, 3)),
}  # fmt: skip


class Images(Host):
    """A context with this machine's device and a worker."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def build(self, source: str) -> None:
        self.program = self.cl.program(self.context, source)
        self.cl.build(self.program, "-cl-std=CL3.0")

    def image(self, desc: ImageDesc, format=_RGBA8, flags: int = cl.CL_MEM_READ_WRITE, data=None) -> int:
        """format: channel order and data type."""
        given = (ctypes.c_uint32 * 2)(*format)
        flags |= cl.CL_MEM_COPY_HOST_PTR if data and not flags & cl.CL_MEM_USE_HOST_PTR else 0
        return self.cl.make("clCreateImage", self.context, flags, given, desc, data)

    def on_buffer(self, buffer: int, format, *dimensions: int, pitch: int = 0) -> int:
        """A 2D image, or a 1D image buffer, made from a memory object."""
        kind = cl.CL_MEM_OBJECT_IMAGE2D if len(dimensions) > 1 else cl.CL_MEM_OBJECT_IMAGE1D_BUFFER
        desc = ImageDesc(kind, *dimensions)
        desc.row_pitch, desc.mem_object = pitch, buffer
        return self.image(desc, format)

    def bytes_buffer(self, size: int, data: bytes | None = None) -> int:
        flags = cl.CL_MEM_READ_WRITE | (cl.CL_MEM_COPY_HOST_PTR if data else 0)
        return self.cl.make("clCreateBuffer", self.context, flags, size, data)

    def run(self, queue: int, kernel: int, size: tuple[int, ...], *arguments) -> None:
        """arguments: handles, or the bytes of values."""
        for i, argument in enumerate(arguments):
            data = argument if isinstance(argument, bytes) else struct.pack("<Q", argument)
            self.cl.ok("clSetKernelArg", kernel, i, len(data), data)
        self.cl.ok("clEnqueueNDRangeKernel", queue, kernel, len(size), None, list(size), None, 0, None, None)
        self.cl.ok("clFinish", queue)

    def pixels(self, queue: int, image: int, size: tuple[int, ...], pixel: int) -> bytes:
        """All bytes of an image's pixels, without gaps."""
        data = ctypes.create_string_buffer(size[0] * size[1] * size[2] * pixel)
        self.cl.ok("clEnqueueReadImage", queue, image, 1, [0, 0, 0], list(size), 0, 0, data, 0, None, None)
        return data.raw

    def contents(self, queue: int, buffer: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.cl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, size, data, 0, None, None)
        return data.raw

    def formats(self, flags: int, kind: int) -> list[tuple[int, int]]:
        """Those of a list that have, together, every channel order and every data type in it."""
        count = ctypes.c_uint32()
        self.cl.ok("clGetSupportedImageFormats", self.context, flags, kind, 0, None, count)
        found = (ctypes.c_uint32 * (2 * count.value))()
        self.cl.ok("clGetSupportedImageFormats", self.context, flags, kind, count.value, found, None)
        listed = zip(found[::2], found[1::2], strict=True)
        kept: list[tuple[int, int]] = []
        for order, data_type in listed:
            if order not in [o for o, _ in kept] or data_type not in [t for _, t in kept]:
                kept.append((order, data_type))
        return kept


def _noise(size: int) -> bytes:
    return _chance.randbytes(size)


def types() -> None:
    """Images of all types: read, written, both at once, and what kernels ask of them."""
    host = Images()
    sources = []
    for name, (_, at, _) in _TYPES.items():
        of = name.removesuffix("_t")
        asks = ["get_image_width(b)"]
        asks += ["get_image_height(b)"] if "2d" in of or "3d" in of else []
        asks += ["get_image_depth(b)"] if "3d" in of else []
        asks += ["(int)get_image_array_size(b)"] if "array" in of else []
        sources.append(f"""
            kernel void copy_{of}(read_only {name} a, write_only {name} b, global int *asked) {{
                int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
                write_imageui(b, {at}, read_imageui(a, {at}));
                asked[0] = {" * 100 + ".join(asks)};
                asked[1] = get_image_channel_order(b);
                asked[2] = get_image_channel_data_type(b);
            }}
            kernel void change_{of}(read_write {name} a) {{
                int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
                write_imageui(a, {at}, read_imageui(a, {at}).wzyx + 1u & 255u);
            }}
        """)
    host.build("#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable\n" + "".join(sources))
    for name, (size, _, desc) in _TYPES.items():
        of, total = name.removesuffix("_t"), 4 * size[0] * size[1] * size[2]
        data = _noise(total)
        if "buffer" in name:
            a, b = (host.on_buffer(host.bytes_buffer(total + 12), _RGBA8, size[0]) for _ in range(2))
        else:
            a, b = (host.image(desc) for _ in range(2))
        asked = []
        host.cl.ok("clEnqueueWriteImage", host.queue, a, 1, [0, 0, 0], list(size), 0, 0, data, 0, None, None)
        for queue in host.queues:
            answers = host.bytes_buffer(12)
            host.run(queue, host.kernel(f"copy_{of}"), size, a, b, answers)
            asked.append(host.contents(queue, answers, 12))
            assert host.pixels(queue, b, size, 4) == data, name
            host.run(queue, host.kernel(f"change_{of}"), size, a)  # seen by what the other device does next
            data = bytes((data[i ^ 3] + 1) & 255 for i in range(total))
            assert host.pixels(queue, a, size, 4) == data, name
        assert asked[0] == asked[1] != bytes(12), name


_READ = """
kernel void r(read_only {type} a, global {vector} *out) {{
    int x = get_global_id(0), y = get_global_id(1);
    out[y * get_image_width(a) + x] = read_image{suffix}(a, (int2)(x, y));
}}
kernel void w(write_only {type} a, global const {vector} *in) {{
    int x = get_global_id(0), y = get_global_id(1);
    write_image{suffix}(a, (int2)(x, y), in[y * get_image_width(a) + x]);
}}
"""
_SIGNED = (cl.CL_SIGNED_INT8, cl.CL_SIGNED_INT16, cl.CL_SIGNED_INT32)
_UNSIGNED = (cl.CL_UNSIGNED_INT8, cl.CL_UNSIGNED_INT16, cl.CL_UNSIGNED_INT32, 0x10E3, 0x10E4, 0x10E6, 0x10E7,
             0x10E8)  # fmt: skip


def _kind(format: tuple[int, int]) -> int:
    """Which program is for a format."""
    if format[0] == cl.CL_DEPTH:
        return 3
    return 1 if format[1] in _SIGNED else 2 if format[1] in _UNSIGNED else 0


def formats() -> None:
    """What both devices read from pixels of all channel orders and data types, and what they write."""
    host, size = Images(), (16, 5, 1)
    vectors = (("float4", "f", "image2d_t"), ("int4", "i", "image2d_t"), ("uint4", "ui", "image2d_t"),
               ("float", "f", "image2d_depth_t"))  # fmt: skip
    kernels = []
    for vector, suffix, kind in vectors:
        host.build(_READ.format(type=kind, vector=vector, suffix=suffix))
        kernels.append((host.kernel("r"), host.kernel("w")))
    desc = ImageDesc(cl.CL_MEM_OBJECT_IMAGE2D, 16, 5)
    read = host.formats(cl.CL_MEM_READ_ONLY, cl.CL_MEM_OBJECT_IMAGE2D)
    written = host.formats(cl.CL_MEM_WRITE_ONLY, cl.CL_MEM_OBJECT_IMAGE2D)
    assert len(read) > len({order for order, _ in read}) and set(written) < set(read)
    for format in read:
        image = host.image(desc, format, cl.CL_MEM_READ_ONLY, _noise(16 * 5 * 16))
        found = []
        for queue in host.queues:
            out = host.bytes_buffer(16 * 16 * 5, bytes(16 * 16 * 5))
            host.run(queue, kernels[_kind(format)][0], size, image, out)
            found.append(host.contents(queue, out, 16 * 16 * 5))
        assert found[0] == found[1] != bytes(16 * 16 * 5), format
    values = struct.pack("<320f", *(_chance.uniform(-0.5, 1.5) for _ in range(320)))
    for format in written:
        found = []
        given = host.bytes_buffer(len(values), values if _kind(format) in (0, 3) else _noise(len(values)))
        for queue in host.queues:
            image = host.image(desc, format, cl.CL_MEM_WRITE_ONLY)
            pixel = host.cl.integer("clGetImageInfo", image, cl.CL_IMAGE_ELEMENT_SIZE)
            host.run(queue, kernels[_kind(format)][1], size, image, given)
            found.append(host.pixels(queue, image, size, pixel))
        assert found[0] == found[1] != bytes(len(found[0])), format


_SAMPLE = """
kernel void s2(read_only image2d_t a, sampler_t s, global float4 *out, float2 scale) {
    int i = get_global_id(0);
    out[i] = read_imagef(a, s, (float2)(i * 0.37f - 9.0f, 11.0f - i * 0.23f) * scale);
}
kernel void s1(read_only image1d_t a, sampler_t s, global float4 *out, float2 scale) {
    out[get_global_id(0)] = read_imagef(a, s, (get_global_id(0) * 0.37f - 9.0f) * scale.x);
}
kernel void s3(read_only image3d_t a, sampler_t s, global float4 *out, float2 scale) {
    int i = get_global_id(0);
    out[i] = read_imagef(a, s, (float4)(i * 0.37f - 9.0f, 11.0f - i * 0.23f, i * 0.05f, 0.0f) * scale.xyyy);
}
kernel void sa(read_only image2d_array_t a, sampler_t s, global float4 *out, float2 scale) {
    int i = get_global_id(0);
    out[i] = read_imagef(a, s, (float4)((i * 0.37f - 9.0f) * scale.x, (11.0f - i * 0.23f) * scale.y,
                                        i * 0.05f - 1.0f, 0.0f));
}
"""


def sampling() -> None:
    """Each addressing mode with each filter, of coordinates of both kinds, in and around images."""
    host, count = Images(), 100
    host.build(_SAMPLE)
    images = {
        "s1": host.image(ImageDesc(cl.CL_MEM_OBJECT_IMAGE1D, 12), (cl.CL_RGBA, cl.CL_UNORM_INT8),
                         data=_noise(48)),
        "s2": host.image(ImageDesc(cl.CL_MEM_OBJECT_IMAGE2D, 12, 9), (cl.CL_BGRA, cl.CL_UNORM_INT8),
                         data=_noise(432)),
        "s3": host.image(ImageDesc(cl.CL_MEM_OBJECT_IMAGE3D, 12, 9, 4), (cl.CL_R, cl.CL_SNORM_INT16),
                         data=_noise(864)),
        "sa": host.image(ImageDesc(cl.CL_MEM_OBJECT_IMAGE2D_ARRAY, 12, 9, 0, 4), (cl.CL_A, cl.CL_UNORM_INT16),
                         data=_noise(864)),
    }  # fmt: skip
    for normalized, addressing, filtering in itertools.product(
        (0, 1), range(cl.CL_ADDRESS_NONE, cl.CL_ADDRESS_MIRRORED_REPEAT + 1),
        (cl.CL_FILTER_NEAREST, cl.CL_FILTER_LINEAR),
    ):  # fmt: skip
        if addressing >= cl.CL_ADDRESS_REPEAT and not normalized:
            continue
        sampler = host.cl.make("clCreateSampler", host.context, normalized, addressing, filtering)
        scale = struct.pack("<2f", *((1 / 12, 1 / 9) if normalized else (1, 1)))
        # Outside of the image CL_ADDRESS_NONE is not defined.
        scale = struct.pack("<2f", 0, 0) if addressing == cl.CL_ADDRESS_NONE else scale
        for name, image in images.items():
            found = []
            for queue in host.queues:
                out = host.bytes_buffer(16 * count, bytes(16 * count))
                host.run(queue, host.kernel(name), (count,), image, sampler, out, scale)
                found.append(host.contents(queue, out, 16 * count))
            assert found[0] == found[1], (normalized, addressing, filtering, name)
            assert found[0] != bytes(16 * count)
        host.cl.ok("clReleaseSampler", sampler)


_CHANGE = """
kernel void change(read_write image2d_t a) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imageui(a, at, read_imageui(a, at) + (uint4)(1, 2, 3, 4) & 255u);
}
kernel void change_pixels(read_write image1d_buffer_t a) {
    write_imageui(a, get_global_id(0), read_imageui(a, get_global_id(0)) ^ 0x55u);
}
kernel void change_bytes(global uchar *a) { a[get_global_id(0)] += 16; }
kernel void change_3d(read_write image3d_t a) {
    int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);
    write_imageui(a, at, read_imageui(a, at) + 1u & 255u);
}
kernel void brighten(read_only image2d_t a, write_only image2d_t b) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(b, at, read_imagef(a, at) * 0.5f);
}
"""


def shared() -> None:
    """Images that share the contents of a buffer, of a part of one, or of another image; with pitches."""
    host = Images()
    host.build(_CHANGE)
    change, pixels, as_bytes = (host.kernel(name) for name in ("change", "change_pixels", "change_bytes"))
    data = _noise(8192)
    buffer, expected = host.bytes_buffer(8192, data), bytearray(data)
    part = host.cl.make("clCreateSubBuffer", buffer, 0, cl.CL_BUFFER_CREATE_TYPE_REGION, [4096, 2048])
    view = host.on_buffer(part, _RGBA8, 10, 9, pitch=64)
    line = host.on_buffer(buffer, _RGBA8, 2000)
    for _ in range(3):
        for queue in host.queues:
            host.run(queue, change, (10, 9), view)
            for y, x, channel in itertools.product(range(9), range(10), range(4)):
                at = 4096 + 64 * y + 4 * x + channel
                expected[at] = (expected[at] + 1 + channel) & 255
            host.run(queue, pixels, (2000,), line)
            expected[:8000] = bytes(value ^ 0x55 for value in expected[:8000])
            host.run(queue, as_bytes, (2048,), part)
            expected[4096:6144] = bytes((value + 16) & 255 for value in expected[4096:6144])
        assert host.contents(host.queues[0], buffer, 8192) == expected
    # The host's own memory, with gaps that nobody touches.
    memory = ctypes.create_string_buffer(_noise(3 * 640), 3 * 640)
    expected = bytearray(memory.raw)
    desc = ImageDesc(cl.CL_MEM_OBJECT_IMAGE3D, 10, 9, 3)
    desc.row_pitch, desc.slice_pitch = 64, 640
    image = host.image(desc, _RGBA8, cl.CL_MEM_READ_WRITE | cl.CL_MEM_USE_HOST_PTR, memory)
    for queue in host.queues:
        host.run(queue, host.kernel("change_3d"), (10, 9, 3), image)
        for z, y, x in itertools.product(range(3), range(9), range(40)):
            expected[640 * z + 64 * y + x] = (expected[640 * z + 64 * y + x] + 1) & 255
    mapped, status = host.cl.call(
        "clEnqueueMapImage", host.queue, image, 1, cl.CL_MAP_READ, [0, 0, 0], [10, 9, 3],
        ctypes.c_size_t(), ctypes.c_size_t(), 0, None, None,
    )  # fmt: skip
    assert not status and mapped == ctypes.addressof(memory) and memory.raw == expected
    host.cl.ok("clEnqueueUnmapMemObject", host.queue, image, mapped, 0, None, None)
    # One image as another channel order has it.
    colours = host.image(ImageDesc(cl.CL_MEM_OBJECT_IMAGE2D, 16, 16), (cl.CL_RGBA, cl.CL_UNORM_INT8),
                         data=_noise(1024))  # fmt: skip
    as_srgb = host.on_buffer(colours, (cl.CL_sRGBA, cl.CL_UNORM_INT8), 16, 16)
    found = []
    for queue in host.queues:
        other = host.image(ImageDesc(cl.CL_MEM_OBJECT_IMAGE2D, 16, 16), (cl.CL_RGBA, cl.CL_UNORM_INT8))
        host.run(queue, host.kernel("brighten"), (16, 16), as_srgb, other)
        found.append(host.pixels(queue, other, (16, 16, 1), 4))
    assert found[0] == found[1] != host.pixels(host.queue, colours, (16, 16, 1), 4)


def between() -> None:
    """Fills, copies, writes of parts and maps between launches; images come and go."""
    host, size = Images(), (40, 30, 1)
    host.build(_CHANGE)
    here, there = host.queues
    change, results = host.kernel("change"), []
    noise = _noise(4800)
    for queue in (here, there):
        for _ in range(3):
            a, b = (host.image(ImageDesc(cl.CL_MEM_OBJECT_IMAGE2D, 40, 30)) for _ in range(2))
            buffer = host.bytes_buffer(4800, noise)
            host.cl.ok("clEnqueueFillImage", queue, a, struct.pack("<4I", 1, 2, 3, 4), [0, 0, 0],
                       list(size), 0, None, None)  # fmt: skip
            host.run(queue, change, size[:2], a)
            host.cl.ok(
                "clEnqueueCopyBufferToImage", queue, buffer, b, 0, [0, 0, 0], list(size), 0, None, None
            )
            host.run(queue, change, size[:2], b)
            host.cl.ok("clEnqueueCopyImage", queue, a, b, [1, 2, 0], [10, 10, 0], [20, 10, 1], 0, None, None)
            host.run(queue, change, size[:2], b)
            host.cl.ok("clEnqueueWriteImage", queue, b, 0, [3, 3, 0], [5, 5, 1], 0, 0, noise, 0, None, None)
            host.run(queue, change, size[:2], b)
            host.cl.ok(
                "clEnqueueCopyImageToBuffer", queue, b, buffer, [0, 0, 0], list(size), 0, 0, None, None
            )
            assert host.contents(queue, buffer, 4800) == host.pixels(queue, b, size, 4)
            mapped, status = host.cl.call(
                "clEnqueueMapImage", queue, b, 1, cl.CL_MAP_WRITE, [7, 0, 0], [2, 1, 1], ctypes.c_size_t(),
                None, 0, None, None,
            )  # fmt: skip
            assert not status
            ctypes.memmove(mapped, b"\7" * 8, 8)
            host.cl.ok("clEnqueueUnmapMemObject", queue, b, mapped, 0, None, None)
            host.run(queue, change, size[:2], b)
            results.append(host.pixels(queue, b, size, 4))
            for handle in (a, b, buffer):
                host.cl.ok("clReleaseMemObject", handle)
    assert results == [results[0]] * 6


def refusals() -> None:
    """Mipmaps, which workers do not have."""
    host = Images()
    host.build(_CHANGE)
    desc = ImageDesc(cl.CL_MEM_OBJECT_IMAGE2D, 16, 16)
    desc.num_mip_levels = 3
    levels, other = host.image(desc), host.image(ImageDesc(cl.CL_MEM_OBJECT_IMAGE2D, 16, 16))
    kernel = host.kernel("brighten")
    for i, image in enumerate((levels, other)):
        host.cl.ok("clSetKernelArg", kernel, i, 8, struct.pack("<Q", image))
    launch = [kernel, 2, None, [16, 16], None, 0, None, None]
    assert host.cl.call("clEnqueueNDRangeKernel", host.queues[1], *launch) == cl.CL_INVALID_IMAGE_SIZE
    host.cl.ok("clEnqueueNDRangeKernel", host.queues[0], *launch)
    elsewhere = Host(1)
    given = (ctypes.c_uint32 * 2)(*_RGBA8)
    made = ("clCreateImage", elsewhere.context, cl.CL_MEM_READ_WRITE, given, desc, None)
    assert host.cl.fails(*made) == cl.CL_INVALID_IMAGE_DESCRIPTOR
    for properties in (
        [cl.CL_SAMPLER_MIP_FILTER_MODE, cl.CL_FILTER_LINEAR, 0],
        [cl.CL_SAMPLER_LOD_MIN, 0, 0],
    ):
        made = ("clCreateSamplerWithProperties", elsewhere.context, properties)
        assert host.cl.fails(*made) == cl.CL_INVALID_VALUE
        host.cl.make("clCreateSamplerWithProperties", host.context, properties)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
