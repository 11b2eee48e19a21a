"""Filters and resampling of images: each kernel on RGBA8, R32F and RGBA16F."""

from __future__ import annotations

import numpy as np

from tests.bench.cases.grids import sum_of_neighbours
from tests.bench.model import BENCHMARKS, Benchmark, Case, Image, Launch

FORMATS = {"rgba8": (np.uint8, 4), "r32f": (np.float32, 1), "rgba16f": (np.float16, 4)}
SMALL = {"width": 64, "height": 32}
BINOMIAL = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]) / 256


def _register(kernel: str, make, hand: float | None = None, **small):
    """make(texels, zeros, **sizes) -> (launch arguments after the images, expected colours), for each format.

    texels, zeros: (*shape) -> texels of random colours, or of none.
    """
    for name, (dtype, channels) in FORMATS.items():

        def case(rng, dtype=dtype, channels=channels, **sizes):
            return _case(rng, make, dtype, channels, sizes)

        case.__doc__ = f"{make.__doc__} ({name.upper()})"
        full = f"{kernel}_{name}"
        BENCHMARKS[full] = Benchmark(
            full, "images", case, small, hand if name == "rgba8" else None, kernel=kernel
        )


def _case(rng, make, dtype, channels: int, sizes: dict) -> Case:
    is_byte = dtype is np.uint8
    top = 255 if is_byte else 1

    def texels(*shape):
        shape = (*shape, channels)
        return rng.integers(0, 256, shape, np.uint8) if is_byte else rng.random(shape).astype(dtype)

    source, to_shape, arguments, expected = make(texels, **sizes)
    output = np.zeros((*to_shape, channels), dtype)

    def want():
        colours = expected(source.astype(np.float64) / top)
        return {"to": np.clip(colours, 0, 1) * 255 if is_byte else colours}

    return Case(
        {"to": Image(output), "from": Image(source)},
        [Launch(["to", "from", *arguments], tuple(reversed(to_shape)))],
        want,
        bytes=source.nbytes + output.nbytes,
        # Coordinates of a thousand have errors of 1e-4 in single precision; halves are rounded to 2.5e-4,
        # bytes to a half, and where the result is in the middle of two they go either way.
        atol=0.6 if is_byte else 6e-4 if dtype is np.float16 else 3e-4,
    )


def _box(texels, width=1024, height=1024):
    """5 x 5 box on an image, 1,024 x 1,024"""
    return (
        texels(height, width),
        (height, width),
        [],
        lambda c: sum_of_neighbours(c, np.full((5, 5), 0.04)),
    )


def _gauss(texels, width=1024, height=1024):
    """5 x 5 Gaussian blur of an image, 1,024 x 1,024"""
    return texels(height, width), (height, width), [], lambda c: sum_of_neighbours(c, BINOMIAL)


def _sobel(texels, width=1024, height=1024):
    """Sobel's gradient of an image, 1,024 x 1,024"""
    smooth, step = np.array([0, 1, 2, 1, 0]), np.array([0, -1, 0, 1, 0])

    def expected(c):
        across, down = (sum_of_neighbours(c, np.outer(*w)) for w in ((smooth, step), (step, smooth)))
        return 0.25 * np.sqrt(across**2 + down**2)

    return texels(height, width), (height, width), [], expected


def _rotate(texels, width=1024, height=1024):
    """Bilinear rotation of an image by 30 degrees, 1,024 x 1,024"""
    cosine, sine = np.float32(0.75**0.5), np.float32(0.5)

    def expected(c):
        y, x = np.mgrid[:height, :width]
        x, y = x + 0.5 - width / 2, y + 0.5 - height / 2
        u = float(cosine) * x - float(sine) * y + width / 2
        v = float(sine) * x + float(cosine) * y + height / 2
        bordered = np.pad(c, [(1, 1), (1, 1), (0, 0)])
        return _interpolated(bordered, [v + 1, u + 1], [height + 2, width + 2])

    return texels(height, width), (height, width), [cosine, sine], expected


def _bicubic(texels, width=1024, height=1024):
    """Bicubic resize of an image to 1.5 of each side, from 1,024 x 1,024"""
    scale = np.float32(2 / 3)

    def along(c, axis):
        size = c.shape[axis]
        place = (np.arange(size * 3 // 2) + 0.5) * float(scale) - 0.5
        first = np.floor(place).astype(int)
        t = (place - first).reshape([-1 if k == axis else 1 for k in range(c.ndim)])
        u = 1 - t
        weights = (
            -0.5 * t * u * u,
            1 + t * t * (1.5 * t - 2.5),
            1 + u * u * (1.5 * u - 2.5),
            -0.5 * u * t * t,
        )
        return sum(w * c.take(np.clip(first + k - 1, 0, size - 1), axis) for k, w in enumerate(weights))

    to_shape = height * 3 // 2, width * 3 // 2
    return texels(height, width), to_shape, [scale], lambda c: along(along(c, 0), 1)


def _volume(texels, size=96):
    """Trilinear resampling of a 3-D image, 96 to 128 of each side"""
    to = size * 4 // 3

    def expected(c):
        places = [(k + 0.5) * size / to for k in np.mgrid[:to, :to, :to]]
        return _interpolated(c, places, [size] * 3)

    return texels(size, size, size), (to, to, to), [], expected


def _interpolated(c: np.ndarray, places: list[np.ndarray], sizes: list[int]) -> np.ndarray:
    """Linear in every direction between the centres of pixels, clamped to the edge."""
    floors = [np.floor(place - 0.5).astype(int) for place in places]
    shares = [place - 0.5 - floor for place, floor in zip(places, floors, strict=True)]
    total = 0.0
    for corner in np.ndindex(*[2] * len(places)):
        index = tuple(
            np.clip(floor + k, 0, size - 1) for floor, k, size in zip(floors, corner, sizes, strict=True)
        )
        share = np.prod([s if k else 1 - s for s, k in zip(shares, corner, strict=True)], axis=0)
        total = total + share[..., None] * c[index]
    return total


_register("image_box", _box, hand=0.77, **SMALL)
_register("image_gauss", _gauss, **SMALL)
_register("image_sobel", _sobel, **SMALL)
_register("image_rotate", _rotate, **SMALL)
_register("image_bicubic", _bicubic, **SMALL)
_register("image_volume", _volume, size=12)
