"""What reads and writes of images give, in numpy, by chapter 7 of OpenCL's SPIR-V environment specification,
and descriptors of images in numpy arrays (struct cld_image_desc)."""

from __future__ import annotations

import struct

import numpy as np

ORDERS = dict(
    zip(
        "R A RG RA RGB RGBA BGRA ARGB INTENSITY LUMINANCE Rx RGx RGBx DEPTH DEPTH_STENCIL sRGB sRGBx sRGBA "
        "sBGRA ABGR".split(),
        range(0x10B0, 0x10C4),
        strict=True,
    )
)
TYPES = dict(
    zip(
        "SNORM_INT8 SNORM_INT16 UNORM_INT8 UNORM_INT16 UNORM_SHORT_565 UNORM_SHORT_555 UNORM_INT_101010 "
        "SIGNED_INT8 SIGNED_INT16 SIGNED_INT32 UNSIGNED_INT8 UNSIGNED_INT16 UNSIGNED_INT32 HALF_FLOAT FLOAT "
        "UNORM_INT24 UNORM_INT_101010_2".split(),
        range(0x10D0, 0x10E1),
        strict=True,
    )
)
TYPES |= {
    "UNORM_INT10X6": 0x10E1, "UNORM_INT_2_101010": 0x10E5, "UNSIGNED_INT10X6": 0x10E6,
    "UNSIGNED_INT12X4": 0x10E7, "UNSIGNED_INT14X2": 0x10E8, "UNORM_INT12X4": 0x10E9, "UNORM_INT14X2": 0x10EA,
}  # fmt: skip
# The lowest bits of 16 that are not used.
UNUSED = {f"{kind}_INT{16 - rest}X{rest}": rest for kind in ("UNORM", "UNSIGNED") for rest in (6, 4, 2)}
# Where the channels of an order, as they lie in memory, are in a colour.
PLACES = {
    "R": "r", "A": "a", "RG": "rg", "RA": "ra", "RGB": "rgb", "RGBA": "rgba", "BGRA": "bgra", "ARGB": "argb",
    "ABGR": "abgr", "INTENSITY": "r", "LUMINANCE": "r", "RGBx": "rgbx", "DEPTH": "r", "sRGBx": "rgbx",
    "sRGBA": "rgba", "sBGRA": "bgra",
}  # fmt: skip
# Fields of packed pixels from the most significant on.
PACKED = {
    "UNORM_SHORT_565": (np.uint16, (5, 6, 5)),
    "UNORM_SHORT_555": (np.uint16, (5, 5, 5)),
    "UNORM_INT_101010": (np.uint32, (10, 10, 10)),
    "UNORM_INT_101010_2": (np.uint32, (10, 10, 10, 2)),
    "UNORM_INT_2_101010": (np.uint32, (2, 10, 10, 10)),
}
NUMBERS = {
    "SNORM_INT8": np.int8, "SNORM_INT16": np.int16, "UNORM_INT8": np.uint8, "UNORM_INT16": np.uint16,
    "SIGNED_INT8": np.int8, "SIGNED_INT16": np.int16, "SIGNED_INT32": np.int32, "UNSIGNED_INT8": np.uint8,
    "UNSIGNED_INT16": np.uint16, "UNSIGNED_INT32": np.uint32, "HALF_FLOAT": np.float16, "FLOAT": np.float32,
}  # fmt: skip
NUMBERS |= dict.fromkeys(UNUSED, np.uint16)
_INTEGERS = (
    "SIGNED_INT8",
    "SIGNED_INT16",
    "SIGNED_INT32",
    "UNSIGNED_INT8",
    "UNSIGNED_INT16",
    "UNSIGNED_INT32",
    *(type_ for type_ in UNUSED if type_[:8] == "UNSIGNED"),
)
_EIGHT = ("UNORM_INT8", "SNORM_INT8", "SIGNED_INT8", "UNSIGNED_INT8")
_UPPER = tuple(type_ for type_ in UNUSED if type_[:5] == "UNORM")
_NORMALIZED = ("UNORM_INT8", "UNORM_INT16", "SNORM_INT8", "SNORM_INT16")
_SUPPORTED = {
    ("R", "RG", "RGBA", "A", "RA", "BGRA", "ARGB", "ABGR"): (*_NORMALIZED, *_INTEGERS, "HALF_FLOAT", "FLOAT"),
    ("LUMINANCE", "INTENSITY"): (*_NORMALIZED, "HALF_FLOAT", "FLOAT"),
    ("RGBx",): _EIGHT,
    ("RGB", "RGBx"): ("UNORM_SHORT_565", "UNORM_SHORT_555", "UNORM_INT_101010"),
    ("RGBA",): ("UNORM_INT_101010_2",),
    ("ABGR",): ("UNORM_INT_2_101010",),
    ("R", "RG", "RGBA"): tuple(UNUSED),
    ("sRGBA", "sBGRA", "sRGBx"): ("UNORM_INT8",),
    ("DEPTH",): ("UNORM_INT16", "FLOAT"),
}
FORMATS = [(order, type_) for orders, types in _SUPPORTED.items() for order in orders for type_ in types]

NONE, CLAMP_TO_EDGE, CLAMP, REPEAT, MIRRORED_REPEAT = range(0, 10, 2)
NEAREST, LINEAR, NORMALIZED = 0x10, 0x20, 1


def is_integer(type_: str) -> bool:
    return type_ in _INTEGERS


def element_size(order: str, type_: str) -> int:
    if type_ in PACKED:
        return PACKED[type_][0]().itemsize
    return NUMBERS[type_]().itemsize * len(PLACES[order])


def format_words(order: str, type_: str) -> bytes:
    """What is known of an image in PlanOptions.argument_values."""
    return struct.pack("<3I", ORDERS[order], TYPES[type_], element_size(order, type_))


class Image:
    """Random pixels: `bytes` [layers or 1, depth, height, row pitch]; `colours` [..., width, 4] in double.

    sizes: width, height, depth, layers. levels: further images, of mipmaps; their bytes follow.
    """

    def __init__(self, order: str, type_: str, sizes, rng, levels: int = 1, gap: int = 16):
        self.order, self.type = order, type_
        self.element = element_size(order, type_)
        self.levels, pitches, parts, offset = [], [], [], 0
        width, height, depth, layers = sizes
        for _ in range(levels):
            pitch = width * self.element + gap
            shape = (layers, depth, height)
            data = rng.integers(0, 256, (*shape, pitch), dtype=np.uint8)
            if type_ in ("HALF_FLOAT", "FLOAT"):
                numbers = rng.normal(size=(*shape, pitch // NUMBERS[type_]().itemsize))
                data = np.ascontiguousarray(numbers.astype(NUMBERS[type_])).view(np.uint8)
            pixels = data[..., : width * self.element]
            self.levels.append(decode(order, type_, np.ascontiguousarray(pixels)))
            parts.append(data.reshape(-1))
            pitches.append((offset, pitch, pitch * height, width, height, depth, 0))
            offset += data.size
            width, height, depth = (max(n // 2, 1) for n in (width, height, depth))
        self.memory = np.concatenate(parts)
        self.sizes = tuple(sizes)
        self.table = np.frombuffer(b"".join(struct.pack("<3Q4i", *row) for row in pitches), np.uint8).copy()
        self.pitches = pitches

    @property
    def colours(self):
        return self.levels[0]

    def pixels(self, level: int = 0) -> np.ndarray:
        """The colours that memory holds now."""
        offset, pitch, _, width, height, depth, _ = self.pitches[level]
        layers = self.sizes[3]
        data = self.memory[offset : offset + layers * depth * height * pitch]
        data = data.reshape(layers, depth, height, pitch)[..., : width * self.element]
        return decode(self.order, self.type, np.ascontiguousarray(data))

    def descriptor(self) -> np.ndarray:
        _, row, slice_, width, height, depth, _ = self.pitches[0]
        fields = (self.memory.ctypes.data, row, slice_, width, height, depth, self.sizes[3])
        numbers = ORDERS[self.order], TYPES[self.type], self.element, len(self.levels)
        data = struct.pack("<3Q4i4IQ", *fields, *numbers, self.table.ctypes.data)
        return np.frombuffer(data, np.uint8).copy()


def decode(order: str, type_: str, data: np.ndarray) -> np.ndarray:
    """Bytes [..., width * size of a pixel] to colours [..., width, 4]: double, or int64 for integers."""
    if type_ in PACKED:
        number, widths = PACKED[type_]
        words = data.view(number).astype(np.int64)
        at, channels = sum(widths), []
        for bits in widths:
            at -= bits
            channels.append((words >> at & (1 << bits) - 1) / ((1 << bits) - 1))
        channels = np.stack(channels, -1)
    else:
        numbers = data.view(NUMBERS[type_])
        numbers = numbers.reshape(*numbers.shape[:-1], -1, len(PLACES[order]))
        channels = numbers.astype(np.int64 if is_integer(type_) else np.float64)
        if type_ in UNUSED:
            channels = numbers.astype(np.int64) >> UNUSED[type_]
        if type_ in (*_NORMALIZED, *_UPPER):
            channels = np.maximum(channels / _most(type_), -1)
    colours = np.zeros((*channels.shape[:-1], 4), channels.dtype)
    colours[..., 3] = 1
    for k, place in enumerate(PLACES[order]):
        if place != "x":
            colours[..., "rgba".index(place)] = channels[..., k]
    if order == "A":
        colours[..., :3] = 0
    if order in ("INTENSITY", "LUMINANCE"):
        colours[..., 1:3] = colours[..., :1]
    if order == "INTENSITY":
        colours[..., 3] = colours[..., 0]
    if order.startswith("s"):
        r = colours[..., :3]
        colours[..., :3] = np.where(r <= 0.04045, r / 12.92, ((r + 0.055) / 1.055) ** 2.4)
    return colours


def _most(type_: str) -> int:
    """The largest number of a channel."""
    return int(np.iinfo(NUMBERS[type_]).max) >> UNUSED.get(type_, 0)


def encode(order: str, type_: str, colours: np.ndarray) -> np.ndarray:
    """What the colours [..., 4] are when they are read back."""
    c = np.array(colours, np.int64 if is_integer(type_) else np.float64)
    if order.startswith("s"):
        y = np.clip(c[..., :3], 0, 1)
        c[..., :3] = np.where(y < 0.0031308, 12.92 * y, 1.055 * y ** (1 / 2.4) - 0.055)
    channels = np.stack([c[..., 3 if p in "ax" else "rgb".index(p)] for p in PLACES[order]], -1)
    if type_ in PACKED:
        number, widths = PACKED[type_]
        words = np.zeros(channels.shape[:-1], np.int64)
        for k, bits in enumerate(widths):
            high = (1 << bits) - 1
            words = words << bits | np.rint(np.clip(channels[..., k], 0, 1) * high).astype(np.int64)
        data = words.astype(number)[..., None]
    else:
        number = NUMBERS[type_]
        if type_ in (*_NORMALIZED, *_UPPER):
            high = _most(type_)
            channels = np.rint(np.clip(channels, -1 if type_[0] == "S" else 0, 1).astype(np.float32) * high)
        if np.issubdtype(number, np.integer):
            channels = np.clip(channels, np.iinfo(number).min, _most(type_))
        if type_ in UNUSED:
            channels = channels.astype(np.int64) << UNUSED[type_]
        data = channels.astype(number)
    data = np.ascontiguousarray(data).view(np.uint8)
    return decode(order, type_, data)[..., 0, :]


def border(order: str) -> np.ndarray:
    opaque = order in ("R", "RG", "RGB", "LUMINANCE", "DEPTH", "sRGB")
    return np.array([0, 0, 0, 1 if opaque else 0])


def _axis(s, n: int, sampler: int, linear: bool):
    """(first pixel, second pixel, share of the second), before clamping to the border. float32 as kernels."""
    s, mode, f = s.astype(np.float32), sampler & 14, np.float32
    if mode == REPEAT:
        u = (s - np.floor(s)) * f(n)
    elif mode == MIRRORED_REPEAT:
        u = np.abs(s - f(2) * np.rint(f(0.5) * s)) * f(n)
    else:
        u = s * f(n) if sampler & NORMALIZED else s
    u = u.astype(np.float64)
    low = u - 0.5 if linear else u
    first = np.floor(low).astype(np.int64)
    share, second = low - first, first + 1
    if mode == REPEAT:
        if linear:
            first, second = (
                np.where(first < 0, first + n, first),
                np.where(second > n - 1, second - n, second),
            )
        else:
            first = np.where(first > n - 1, first - n, first)
    elif mode == MIRRORED_REPEAT:
        first, second = np.clip(first, 0, n - 1), np.clip(second, 0, n - 1)
    elif mode == CLAMP_TO_EDGE:
        first, second = np.clip(first, 0, n - 1), np.clip(second, 0, n - 1)
    return first, second, share


def sample(
    image: Image, sampler: int, dims: int, arrayed: bool, at: np.ndarray, level: int = 0
) -> np.ndarray:
    """Colours at coordinates [points, 4]."""
    colours = image.levels[level]
    layers, depth, height, width = colours.shape[:4]
    sizes = (width, height, depth)
    layer = np.zeros(len(at), np.int64)
    if arrayed:
        layer = np.clip(np.rint(at[:, dims]), 0, layers - 1).astype(np.int64)
    linear = bool(sampler & LINEAR)
    axes = [_axis(at[:, k], sizes[k], sampler, linear) for k in range(dims)]
    result = 0
    for corner in range(1 << dims if linear else 1):
        weight, places, inside = 1.0, [np.zeros(len(at), np.int64)] * 3, np.ones(len(at), bool)
        for k, (first, second, share) in enumerate(axes):
            chosen = second if corner >> k & 1 else first
            if linear:
                weight = weight * (share if corner >> k & 1 else 1 - share)
            inside &= (chosen >= 0) & (chosen < sizes[k])
            places[k] = np.clip(chosen, 0, sizes[k] - 1)
        x, y, z = places
        texel = np.where(inside[:, None], colours[layer, z, y, x], border(image.order))
        result = result + texel * (weight[:, None] if linear else 1)
    return result
