"""Arguments for kernels of which nothing is known but their signatures: seeded, the same on every platform.

Integers in buffers are small, so that what they index is there; scalar integers are the problem size.
"""

from __future__ import annotations

import os
import re
import subprocess
import zlib
from typing import NamedTuple

import numpy as np

from cl_driver.api.generated import enums as cl

BUFFER_BYTES = 1 << 23
LOCAL_BYTES = 4096
IMAGE_SIDE = 512
PERIOD = 65521  # elements after which contents repeat: a prime, so that rows of a matrix differ

SCALARS = {
    "bool": np.uint8,
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "size_t": np.uint64,
    "ptrdiff_t": np.int64,
    "half": np.float16,
    "float": np.float32,
    "double": np.float64,
}
_SPELLED = {"unsigned": "uint", "signed": "int", "cl_mem_fence_flags": "uint"}


class Argument(NamedTuple):
    """What clGetKernelArgInfo says of one, and its element's type ("" of a structure)."""

    address: str  # global, constant, local or private
    type: str
    scalar: str = ""
    width: int = 1


class Sizes(NamedTuple):
    """One way to launch a kernel: the problem size, and the sizes in each dimension."""

    number: int
    global_size: list[int]
    local_size: list[int]


def preprocessed(text: str, options: str) -> str:
    """The program without what its conditions leave out; as it is where the C compiler does not take it."""
    words = re.sub(r"(?:^|\s)-([DI])\s+", r" -\1", options).split()
    words = [word for word in words if word.startswith(("-D", "-I"))]
    command = [
        os.environ.get("CC", "cc"),
        "-E",
        "-P",
        "-w",
        "-x",
        "c",
        "-D__OPENCL_VERSION__=120",
        *words,
        "-",
    ]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return text
    return done.stdout if done.returncode == 0 else text


def canonical(name: str, text: str, options: str = "") -> tuple[str, int]:
    """(scalar type or "", vector width) of a type's name, through the program's typedefs and macros."""
    for _ in range(8):
        words = [
            word
            for word in re.findall(r"\w+", name.split("*")[0])
            if word not in ("const", "volatile", "restrict", "__restrict", "struct", "__global", "__constant")
        ]
        if words and words[0] in ("unsigned", "signed"):
            prefix = "u" if words[0] == "unsigned" else ""
            words = [prefix + words[1]] if len(words) > 1 else [_SPELLED[words[0]]]
        if not words:
            return "", 1
        name = words[0] if words[0] != "long" else "long"
        found = re.fullmatch(r"([a-z_]+?)(2|3|4|8|16)?", name)
        if found and found[1] in SCALARS:
            return found[1], int(found[2] or 1)
        other = re.search(rf"\btypedef\s+([\w\s]+?)\s+{re.escape(name)}\s*;", text) or re.search(
            rf"(?:^|\s)-D\s*{re.escape(name)}=(\w+)", options
        )
        if not other:
            return "", 1
        name = other[1]
    return "", 1


def contents(scalar: str, seed: str, size: int = BUFFER_BYTES) -> np.ndarray:
    """size bytes of a buffer as an array: floats in (0, 1), small integers; of structures, small integers."""
    kind = np.dtype(SCALARS.get(scalar, np.int32))
    random = np.random.default_rng(zlib.crc32(seed.encode()))
    if kind.kind == "f":
        block = random.uniform(0.001, 0.999, PERIOD).astype(kind)
    else:
        block = random.integers(0, 256 if kind.itemsize == 1 and scalar != "bool" else 32, PERIOD)
        block = (block % 2 if scalar == "bool" else block).astype(kind)
    return np.resize(block, size // kind.itemsize)


def scalar_value(scalar: str, width: int, number: int) -> bytes:
    """A value by its type: half of one, or the problem size as far as the type can hold it."""
    kind = np.dtype(SCALARS[scalar])
    value = 0.5 if kind.kind == "f" else min(number, int(np.iinfo(kind).max))
    if scalar == "bool":
        value = 1
    return np.full(4 if width == 3 else width, value, kind).tobytes()


def structure(size: int, number: int) -> bytes:
    """A structure by value: the problem size in each word."""
    return (number.to_bytes(4, "little") * (size // 4 + 1))[:size]


def body(text: str, kernel: str) -> str:
    """From the kernel's name to the next kernel; all of the text if it is not found (made by a macro)."""
    found = re.search(rf"\b{re.escape(kernel)}\s*\(", text)
    if not found:
        return text
    rest = text[found.end() :]
    following = re.search(r"\b(__)?kernel\b", rest)
    return rest[: following.start()] if following else rest


def image_sides(kind: str) -> list[int]:
    """Of an image argument of a type; none for types of which there are none."""
    sides = {"image1d_t": [IMAGE_SIDE], "image2d_t": [IMAGE_SIDE] * 2, "image3d_t": [64] * 3}
    return sides.get(kind, [])


def channel(text: str, kernel: str) -> tuple[int, str]:
    """(channel data type, scalar type) of the images of a kernel: that of the functions that it calls."""
    used = body(text, kernel)
    if re.search(r"\b(read|write)_imageui\b", used):
        return cl.CL_UNSIGNED_INT32, "uint"
    if re.search(r"\b(read|write)_imagei\b", used):
        return cl.CL_SIGNED_INT32, "int"
    return cl.CL_FLOAT, "float"


def dimensions(text: str, kernel: str) -> int:
    """How many dimensions the kernel asks for."""
    asked = r"\bget_(?:global|local|group|num)_\w+\s*\(\s*([0-2])\s*\)"
    found = re.findall(asked, body(text, kernel)) or re.findall(asked, text)
    return max((int(number) for number in found), default=0) + 1


def local_size(text: str, count: int, given: dict[int, list[int]], required: list[int]) -> list[int]:
    """The program's own, else a usual one."""
    if any(required):
        return required[: max(count, max(i + 1 for i in range(3) if required[i] > 1 or not i))]
    if count in given:
        return given[count]
    named = re.search(r"#\s*define\s+\w*(?:BLOCK|TILE|WORK_?GROUP|LOCAL|WG|THREADS)\w*\s+\(?(\d+)\)?\s", text)
    side = int(named[1]) if named else 0
    if count == 1:
        return [side if 8 <= side <= 1024 else 64]
    if count == 2:
        return [side, side] if 4 <= side <= 32 else [16, 16]
    return [4, 4, 4]


_LADDER = {
    1: ((1 << 16, 1 << 16), (1024, 1 << 16), (1024, 1024), (64, 4096), (1, 4096)),
    2: ((512, 512), (64, 64), (16, 64), (1, 64)),
    3: ((64, 64), (16, 32), (1, 16)),
}


def ladder(local: list[int], loops: bool) -> list[Sizes]:
    """Launches to try, the one with most work first; a kernel with loops may do the square of the number."""
    steps = _LADDER[len(local)]
    return [
        Sizes(number, [-(-side // size) * size for size in local], local)
        for number, side in steps[1 if loops and len(local) == 1 else 0 :]
    ]
