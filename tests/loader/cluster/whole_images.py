"""Images that the device that is all workers writes: python -m tests.loader.cluster.whole_images SCENE.
Scenes end with an exception where something is not as it should be."""

from __future__ import annotations

import ctypes
import struct
import sys

import numpy as np

from cl_driver.api.generated import enums as cl

from .whole import RANDOM, Whole

SOURCE = """
kernel void rows(global const int *in, write_only image2d_t out, int down) {
    int x = get_global_id(0), y = get_global_id(1);
    write_imagei(out, (int2)(x, y + down), (int4)(in[y * get_global_size(0) + x], x, y, 7));
}
kernel void mirrored(global const int *in, write_only image2d_t out) {
    int x = get_global_id(0), y = get_global_id(1), w = get_image_width(out), h = get_image_height(out);
    if (x < w && y < h) write_imagei(out, (int2)(w - 1 - x, h - 1 - y), (int4)(in[y * w + x], x, y, 7));
}
kernel void sorted(global const int *where, write_only image2d_t out) {
    int x = get_global_id(0), y = get_global_id(1);
    write_imagei(out, (int2)(where[x], y), (int4)(x, y, 0, 0));
}
kernel void anywhere(global const int *where, write_only image2d_t out) {
    int x = get_global_id(0), y = get_global_id(1);
    write_imagei(out, (int2)(x, where[y]), (int4)(x, y, 0, 0));
}
kernel void in_place(read_write image2d_t image) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagei(image, at, 2 * read_imagei(image, at) + at.xyxy);
}
kernel void from_above(read_only image2d_t in, write_only image2d_t out) {
    int x = get_global_id(0), y = get_global_id(1);
    write_imagei(out, (int2)(x, y), read_imagei(in, (int2)(x, max(y - 1, 0))));
}
kernel void line(write_only image1d_t out) {
    int x = get_global_id(0);
    write_imagei(out, x, (int4)x);
}
kernel void lines(write_only image1d_array_t out) {
    int x = get_global_id(0), layer = get_global_id(1);
    write_imagei(out, (int2)(x, layer), (int4)(x, layer, 1, 2));
}
kernel void layers(write_only image2d_array_t out) {
    int x = get_global_id(0), y = get_global_id(1), layer = get_global_id(2);
    write_imagei(out, (int4)(x, y, layer, 0), (int4)(x, y, layer, 2));
}
kernel void slices(write_only image3d_t out) {
    int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    write_imagei(out, (int4)(x, y, z, 0), (int4)(x, y, z, 3));
}
"""
WIDTH, HEIGHT = 40, 52
VALUES = RANDOM.integers(-1000, 1000, (HEIGHT, WIDTH), dtype=np.int32)
X, Y = np.meshgrid(np.arange(WIDTH, dtype=np.int32), np.arange(HEIGHT, dtype=np.int32))


class Images(Whole):
    """With images of four ints for each pixel."""

    def __init__(self) -> None:
        super().__init__(SOURCE)

    def image(
        self, kind: int, sizes: tuple[int, ...], values: np.ndarray | None = None, buffer=0, pitch=0
    ) -> int:
        """sizes: width, height, depth, layers."""
        image_format = np.array([cl.CL_RGBA, cl.CL_SIGNED_INT32], np.uint32).tobytes()
        desc = struct.pack("<I4x6Q2IQ", kind, *sizes, pitch, 0, 0, 0, buffer)
        flags = 0 if buffer else cl.CL_MEM_READ_WRITE
        data = None if values is None else values.tobytes()
        flags |= cl.CL_MEM_COPY_HOST_PTR if data else 0
        return self.cl.make("clCreateImage", self.context, flags, image_format, desc, data)

    def plane(self, values: np.ndarray | None = None) -> int:
        return self.image(cl.CL_MEM_OBJECT_IMAGE2D, (WIDTH, HEIGHT, 1, 1), values)

    def pixels(self, image: int, shape: tuple[int, ...]) -> np.ndarray:
        """shape: slices, rows and columns, or fewer."""
        data = ctypes.create_string_buffer(16 * int(np.prod(shape)))
        region = [*shape[::-1], 1, 1][:3]
        self.cl.ok("clEnqueueReadImage", self.queue, image, 1, [0, 0, 0], region, 0, 0, data, 0, None, None)
        assert [self.status(event) for event in self.launched] == [cl.CL_COMPLETE] * len(self.launched)
        return np.frombuffer(data, np.int32).reshape(*shape, 4)


def planes() -> None:
    """Rows of an image, as they are, from below, and in place."""
    whole = Images()
    source, size = whole.array(VALUES), (WIDTH, HEIGHT)
    expected = np.stack([VALUES, X, Y, np.full_like(X, 7)], 2)
    image = whole.plane()
    whole.run("rows", size, source, image, np.int32(0), local=(8, 4))
    assert (whole.pixels(image, (HEIGHT, WIDTH)) == expected).all()
    for _ in range(3):
        whole.run("in_place", size, image, local=(8, 4))
        expected = 2 * expected + np.stack([X, Y, X, Y], 2)
    assert (whole.pixels(image, (HEIGHT, WIDTH)) == expected).all()
    mirrored = np.stack([VALUES, X, Y, np.full_like(X, 7)], 2)[::-1, ::-1]
    whole.run("mirrored", (48, 56), source, image, local=(8, 4))
    assert (whole.pixels(image, (HEIGHT, WIDTH)) == mirrored).all()
    other = whole.plane()
    for _ in range(2):  # a row comes from the other worker
        whole.run("from_above", size, image, other, local=(8, 4))
        image, other = other, image
        mirrored = np.concatenate([mirrored[:1], mirrored[:-1]])
    assert (whole.pixels(image, (HEIGHT, WIDTH)) == mirrored).all()


def outside() -> None:
    """What lies outside is left alone, and so is what is not written."""
    whole = Images()
    source = whole.array(VALUES)
    new = np.stack([VALUES, X, Y, np.full_like(X, 7)], 2)
    for down in (5, -5, 49, 60):
        expected = RANDOM.integers(0, 9, (HEIGHT, WIDTH, 4), dtype=np.int32)
        image = whole.plane(expected)
        whole.run("rows", (WIDTH, HEIGHT), source, image, np.int32(down), local=(8, 4))
        expected[max(down, 0) : max(HEIGHT + down, 0)] = new[max(-down, 0) : max(HEIGHT - down, 0)]
        assert (whole.pixels(image, (HEIGHT, WIDTH)) == expected).all()


def data() -> None:
    """Columns are where data say, which is no matter; and rows, which one worker writes."""
    whole = Images()
    columns, rows = (RANDOM.permutation(n).astype(np.int32) for n in (WIDTH, HEIGHT))
    image = whole.plane()
    whole.run("sorted", (WIDTH, HEIGHT), whole.array(columns), image, local=(8, 4))
    found = whole.pixels(image, (HEIGHT, WIDTH))
    assert (found[:, columns, 0] == X).all() and (found[..., 1] == Y).all()
    whole.run("anywhere", (WIDTH, HEIGHT), whole.array(rows), image, local=(8, 4))
    found = whole.pixels(image, (HEIGHT, WIDTH))
    assert (found[rows, :, 1] == Y).all() and (found[..., 0] == X).all()


def kinds() -> None:
    """Images of one dimension, of three, and in layers."""
    whole = Images()
    line = whole.image(cl.CL_MEM_OBJECT_IMAGE1D, (1000, 1, 1, 1))
    whole.run("line", (1000,), line, local=(8,))
    assert (whole.pixels(line, (1000,)) == np.arange(1000)[:, None]).all()
    lines = whole.image(cl.CL_MEM_OBJECT_IMAGE1D_ARRAY, (WIDTH, 1, 1, 12))
    whole.run("lines", (WIDTH, 12), lines, local=(8, 1))
    layer, x = np.indices((12, WIDTH))
    ones = np.ones_like(x)
    assert (whole.pixels(lines, (12, WIDTH)) == np.stack([x, layer, ones, 2 * ones], 2)).all()
    z, y, x = np.indices((9, 20, 16))
    for name, kind, last, sizes in (
        ("layers", cl.CL_MEM_OBJECT_IMAGE2D_ARRAY, 2, (16, 20, 1, 9)),
        ("slices", cl.CL_MEM_OBJECT_IMAGE3D, 3, (16, 20, 9, 1)),
    ):
        image = whole.image(kind, sizes)
        whole.run(name, (16, 20, 9), image, local=(16, 4, 1))
        assert (whole.pixels(image, z.shape) == np.stack([x, y, z, np.full_like(x, last)], 3)).all()


def views() -> None:
    """Of a buffer, whose pitch is more than a row: the rest of it stays."""
    whole = Images()
    every = RANDOM.integers(0, 99, (HEIGHT, WIDTH + 8, 4), dtype=np.int32)
    buffer = whole.array(every)
    sizes = (WIDTH, HEIGHT, 1, 1)
    image = whole.image(cl.CL_MEM_OBJECT_IMAGE2D, sizes, buffer=buffer, pitch=16 * (WIDTH + 8))
    whole.run("rows", (WIDTH, HEIGHT), whole.array(VALUES), image, np.int32(0), local=(8, 4))
    whole.run("in_place", (WIDTH, HEIGHT), image, local=(8, 4))
    new = np.stack([VALUES, X, Y, np.full_like(X, 7)], 2)
    every[:, :WIDTH] = 2 * new + np.stack([X, Y, X, Y], 2)
    assert (whole.values(buffer, every) == every).all()


def main() -> None:
    globals()[sys.argv[1]]()


if __name__ == "__main__":
    main()
