"""piglit's OpenCL C programs and what their comments say of how to run them."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import NamedTuple

from peers import need

FOLDERS = (Path("/usr/lib/x86_64-linux-gnu/piglit"), Path("/usr/lib/aarch64-linux-gnu/piglit"))
SCALARS = {
    "char": "b",
    "uchar": "B",
    "short": "h",
    "ushort": "H",
    "int": "i",
    "uint": "I",
    "long": "q",
    "ulong": "Q",
    "half": "e",
    "float": "f",
    "double": "d",
}


class Run(NamedTuple):
    """One launch: arguments by index, each ("value" or "buffer", type name, bytes), and its sizes."""

    name: str
    arguments: dict[int, tuple[str, str, bytes]]
    global_size: list[int]
    local_size: list[int] | None
    offset: list[int] | None


class Program(NamedTuple):
    """runs: {kernel: launches that its comment describes}; left_out: why it is no program to run, or ""."""

    path: Path
    source: bytes
    options: str
    standard: int  # as in clc_version_min: 10 to 30
    runs: dict[str, list[Run]]
    left_out: str


def folder() -> Path:
    """Where the package is; installs it."""
    need("piglit")
    return next(path for path in FOLDERS if path.exists())


def programs() -> list[Program]:
    """All .cl files, in the order of their paths."""
    root = folder()
    return [read(path, root) for path in sorted(root.rglob("*.cl"))]


def read(path: Path, root: Path) -> Program:
    source = path.read_bytes()
    comment = re.search(r"/\*!(.*?)!\*/", source.decode("utf-8", "replace"), re.DOTALL)
    sections = _sections(comment[1] if comment else "")
    config = sections[0] if sections else {}
    options = config.get("build_options", [""])[0]
    # Relative include folders are those of piglit's working folder.
    options = re.sub(r"-I\s*(\S+)", lambda found: f"-I {root / found[1]}", options)
    left_out = ""
    if config.get("expect_build_fail", [""])[0] == "true":
        left_out = "must not build"
    elif path.stem.endswith("-should-skip"):
        left_out = "of the test program itself: its work-groups are too large"
    elif config.get("need_image_support", [""])[0] == "true":
        left_out = "images"
    runs: dict[str, list[Run]] = {}
    for section in sections[1:]:
        if run := _run({**config, **section}):
            runs.setdefault(run[0], []).append(run[1])
    standard = int(config.get("clc_version_min", ["10"])[0])
    return Program(path, source, options, standard, runs, left_out)


def _sections(text: str) -> list[dict[str, list[str]]]:
    """[config] first, then each [test]: {key: values}."""
    out: list[dict[str, list[str]]] = []
    for line in re.sub(r"\\\s*\n", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        if line.startswith("["):
            out.append({})
        elif out and ":" in line:
            key, value = line.split(":", 1)
            out[-1].setdefault(key.strip(), []).append(value.strip())
    return out


def _sizes(section, key: str) -> list[int] | None:
    if key not in section:
        return None
    dimensions = int(section.get("dimensions", ["1"])[0])
    return [int(word) for word in section[key][0].split()[:dimensions]]


def _run(section) -> tuple[str, Run] | None:
    """The kernel's name and the launch; None if this reader does not understand it."""
    arguments: dict[int, tuple[str, str, bytes]] = {}
    try:
        for key in ("arg_out", "arg_in"):  # what goes in is what such a buffer starts with
            for text in section.get(key, ()):
                index, argument = _argument(text, key == "arg_in")
                arguments[index] = argument
        kernel, size = section["kernel_name"][0], _sizes(section, "global_size") or [1]
    except (KeyError, ValueError, struct.error, OverflowError):
        return None
    local = _sizes(section, "local_size") or [1] * len(size)  # piglit's default
    name = section.get("name", [""])[0]
    return kernel, Run(name, arguments, size, local, _sizes(section, "global_offset"))


def _argument(text: str, given: bool) -> tuple[int, tuple[str, str, bytes]]:
    index, rest = text.split(None, 1)
    rest = rest.split(" tolerance")[0]
    found = re.match(r"buffer\s+([a-z]+?)(\d*)\s*\[(\d+)\]\s*(.*)", rest)
    if found:
        scalar, width, count, words = found[1], int(found[2] or 1), int(found[3]), found[4].split()
        stored = 4 if width == 3 else width
        if not given or words[:1] in ([], ["NULL"], ["random"]):
            data = bytes(struct.calcsize(SCALARS[scalar]) * stored * count)
        else:
            repeat = words[0] == "repeat"
            values = words[1:] if repeat else words
            values = (values * (width * count // len(values) + 1))[: width * count]
            data = b"".join(pack(scalar, values[i : i + width], stored) for i in range(0, len(values), width))
        return int(index), ("buffer", scalar, data)
    found = re.match(r"([a-z]+?)(\d*)\s+(.*)", rest)
    if not found or found[1] not in SCALARS:
        raise ValueError(text)
    width = int(found[2] or 1)
    data = pack(found[1], found[3].split()[:width], 4 if width == 3 else width)
    return int(index), ("value", found[1], data)


def pack(scalar: str, words: list[str], count: int) -> bytes:
    """count values of a type from their text; those that are missing are 0."""
    code = SCALARS[scalar]
    out = b""
    for word in words + ["0"] * (count - len(words)):
        if code in "efd":
            value = float.fromhex(word) if "0x" in word.lower() and "p" in word.lower() else None
            if value is None:
                # A hexadecimal integer is the bits of the value.
                size = struct.calcsize(code)
                bits = int(word, 0).to_bytes(size, "little") if word.lower().startswith("0x") else None
                out += bits if bits is not None else struct.pack("<" + code, float(word))
                continue
            try:
                out += struct.pack("<" + code, value)
            except OverflowError:  # piglit marks the ends of buffers of halves with such a number
                out += struct.pack("<" + code, float("inf"))
        else:
            size = struct.calcsize(code)
            out += (int(word, 0) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return out
