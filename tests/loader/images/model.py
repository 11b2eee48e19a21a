"""What tests of images share: descriptors, a model of formats in numpy that knows nothing of the table in C,
regions of host memory with pitches."""

from __future__ import annotations

import ctypes

import numpy as np

from cl_driver.api.generated import enums as cl

TYPES = {
    "1D": cl.CL_MEM_OBJECT_IMAGE1D,
    "1D buffer": cl.CL_MEM_OBJECT_IMAGE1D_BUFFER,
    "1D array": cl.CL_MEM_OBJECT_IMAGE1D_ARRAY,
    "2D": cl.CL_MEM_OBJECT_IMAGE2D,
    "2D array": cl.CL_MEM_OBJECT_IMAGE2D_ARRAY,
    "3D": cl.CL_MEM_OBJECT_IMAGE3D,
}
DIMENSIONS = {"1D": 1, "1D buffer": 1, "1D array": 2, "2D": 2, "2D array": 3, "3D": 3}
HAS_SLICES = ("1D array", "2D array", "3D")

# Components of a pixel in the order of memory, "x" as A.
_COMPONENTS = {
    "CL_R": "R", "CL_A": "A", "CL_DEPTH": "R", "CL_LUMINANCE": "R", "CL_INTENSITY": "R", "CL_RG": "RG",
    "CL_RA": "RA", "CL_RGB": "RGB", "CL_RGBA": "RGBA", "CL_BGRA": "BGRA",
    "CL_ARGB": "ARGB", "CL_ABGR": "ABGR", "CL_sRGBA": "RGBA", "CL_sBGRA": "BGRA",
}  # fmt: skip
_EVERY = ("CL_R", "CL_RG", "CL_RGBA", "CL_A", "CL_RA", "CL_BGRA", "CL_ARGB", "CL_ABGR")
_REAL = ("CL_UNORM_INT8", "CL_UNORM_INT16", "CL_SNORM_INT8", "CL_SNORM_INT16", "CL_HALF_FLOAT", "CL_FLOAT")
_INTEGER = tuple(f"CL_{sign}_INT{bits}" for sign in ("SIGNED", "UNSIGNED") for bits in (8, 16, 32))
_PACKED = {  # bits of the components, in their order, from the most significant used one down
    "CL_UNORM_SHORT_565": (5, 6, 5),
    "CL_UNORM_SHORT_555": (5, 5, 5),
    "CL_UNORM_INT_101010": (10, 10, 10),
    "CL_UNORM_INT_101010_2": (10, 10, 10, 2),
    "CL_UNORM_INT_2_101010_EXT": (2, 10, 10, 10),
}
# What headers of 2023 lack.
_NEW = {
    "CL_UNORM_INT10X6_EXT": 0x10E1, "CL_UNORM_INT_2_101010_EXT": 0x10E5, "CL_UNSIGNED_INT10X6_EXT": 0x10E6,
    "CL_UNSIGNED_INT12X4_EXT": 0x10E7, "CL_UNSIGNED_INT14X2_EXT": 0x10E8, "CL_UNORM_INT12X4_EXT": 0x10E9,
    "CL_UNORM_INT14X2_EXT": 0x10EA,
}  # fmt: skip
# Bits of pixels that share bytes, and the group of them that begins and ends with a byte: pixels, bytes.
RAWS = {0x10E3: (10, 4, 5), 0x10E4: (12, 2, 3)}
# The upper bits of 16 are used: how many are not.
_UPPER = {
    f"CL_{kind}_INT{16 - rest}X{rest}_EXT": rest for kind in ("UNORM", "UNSIGNED") for rest in (6, 4, 2)
}
_NUMPY = {"8": (np.int8, np.uint8), "16": (np.int16, np.uint16), "32": (np.int32, np.uint32)}


class Format:
    """One format: names of its order and type, size of a pixel in bytes."""

    def __init__(self, order: str, type_: str):
        self.order, self.type = order, type_
        self.components = _COMPONENTS[order]
        if type_ in _PACKED:
            self.size = 2 if "SHORT" in type_ else 4
        else:
            self.size = self.dtype.itemsize * len(self.components)

    def __repr__(self) -> str:
        return f"{self.order} {self.type}"

    @property
    def words(self) -> tuple[int, int]:
        return getattr(cl, self.order), _NEW.get(self.type) or getattr(cl, self.type)

    @property
    def c(self):
        return (ctypes.c_uint32 * 2)(*self.words)

    @property
    def is_integer(self) -> bool:
        return self.type in _INTEGER or (self.type in _UPPER and "UNSIGNED" in self.type)

    @property
    def dtype(self) -> np.dtype:
        if self.type in ("CL_FLOAT", "CL_HALF_FLOAT"):
            return np.dtype(np.float32 if self.type == "CL_FLOAT" else np.float16)
        bits = "16" if self.type in _UPPER else self.type.rpartition("INT")[2]
        return np.dtype(_NUMPY[bits]["UN" in self.type])

    def color(self, values) -> np.ndarray:
        """Four components as clEnqueueFillImage takes them."""
        if not self.is_integer:
            return np.array(values, np.float32)
        return np.array(values, np.uint32 if "UNSIGNED" in self.type else np.int32)

    def pack(self, values) -> bytes:
        """The pixel of such a color."""
        color = dict(zip("RGBA", self.color(values), strict=True))
        if self.type in _PACKED:
            word = 0
            for name, bits in zip(self.components, _PACKED[self.type], strict=True):
                word = word << bits | int(_normalized(color[name], 0, 2**bits - 1))
            return word.to_bytes(self.size, "little")
        return b"".join(self._component(name, color[name]) for name in self.components)

    def _component(self, name: str, value) -> bytes:
        dtype, unused = self.dtype, _UPPER.get(self.type, 0)
        if unused:
            most = 0xFFFF >> unused
            value = np.clip(int(value), 0, most) if self.is_integer else _normalized(value, 0, most)
            value = np.uint16(int(value) << unused)
        elif self.order.startswith("CL_s") and name != "A":
            value = np.uint8(int(_srgb(float(value)) * 255 + 0.5))
        elif dtype.kind == "f":
            with np.errstate(over="ignore"):
                value = dtype.type(value)
        elif self.is_integer:
            value = dtype.type(np.clip(int(value), np.iinfo(dtype).min, np.iinfo(dtype).max))
        else:
            value = dtype.type(_normalized(value, -1 if dtype.kind == "i" else 0, np.iinfo(dtype).max))
        return value.tobytes()


def _normalized(value: np.float32, least: int, most: int) -> np.float32:
    return np.float32(0) if np.isnan(value) else np.rint(np.clip(value, least, 1) * np.float32(most))


def _srgb(value: float) -> float:
    if not value > 0:
        return 0.0
    return 1.0 if value >= 1 else 12.92 * value if value < 0.0031308 else 1.055 * value ** (5 / 12) - 0.055


def formats(type_: str) -> list[Format]:
    """All that images of that type have."""
    pairs = [(order, data) for order in _EVERY for data in (*_REAL, *_INTEGER)]
    pairs += [(order, data) for order in ("CL_R", "CL_RG", "CL_RGBA") for data in _UPPER]
    pairs += [(order, data) for order in ("CL_LUMINANCE", "CL_INTENSITY") for data in _REAL]
    pairs += [("CL_RGB", data) for data in list(_PACKED)[:3]]
    pairs += [(order, "CL_UNORM_INT8") for order in ("CL_sRGBA", "CL_sBGRA")]
    pairs += [("CL_RGBA", "CL_UNORM_INT_101010_2"), ("CL_ABGR", "CL_UNORM_INT_2_101010_EXT")]
    if type_ in ("2D", "2D array"):
        pairs += [("CL_DEPTH", "CL_UNORM_INT16"), ("CL_DEPTH", "CL_FLOAT")]
    return [Format(*pair) for pair in pairs]


def descriptor(type_, width=0, height=0, depth=0, layers=0, row=0, slice_=0, levels=0, samples=0, memory=0):
    """A cl_image_desc; type_: a name of TYPES or a number."""
    kind = TYPES.get(type_, type_)
    counts = levels | samples << 32
    return (ctypes.c_uint64 * 9)(kind, width, height, depth, layers, row, slice_, counts, memory)


def described(type_: str, shape: tuple[int, int, int], **more):
    """The same for a shape (slices, rows, pixels), where layers of an array are its last dimension."""
    slices, rows, width = shape
    if type_ == "1D array":
        return descriptor(type_, width, layers=rows, **more)
    if type_ == "2D array":
        return descriptor(type_, width, rows, layers=slices, **more)
    return descriptor(type_, width, rows, slices, **more)


def pitched(memory: np.ndarray, shape: tuple[int, int, int], row: int, slice_: int) -> np.ndarray:
    """The bytes (slices, rows, bytes of a row) in memory at those pitches."""
    assert memory.dtype == np.uint8
    end = (shape[0] - 1) * slice_ + (shape[1] - 1) * row + shape[2]
    assert end <= memory.size
    return np.lib.stride_tricks.as_strided(memory, shape, (slice_, row, 1))
