"""Kernels and the data plane agree on what an image is."""

from __future__ import annotations

import re
from pathlib import Path

from cl_driver.passes.lower import images

ROOT = Path(__file__).resolve().parents[3]
SIZES = {"int": 4, "uint": 4, "int32_t": 4, "uint32_t": 4, "ulong": 8, "uint64_t": 8}


def fields(path: str, name: str) -> list[tuple[str, int, int]]:
    """(field, offset, size) of a structure's members."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.S)
    body = re.search(rf"struct {name} \{{(.*?)\}};", text, re.S)[1]
    found, offset = [], 0
    for declaration in filter(str.strip, body.split(";")):
        names = re.search(r"[\w*, \n]+$", declaration.strip().split(" ", 1)[1])[0]
        size = 8 if "*" in declaration else SIZES[declaration.split()[0]]
        for field in (n.split("*")[-1].split()[-1] for n in names.split(",")):
            found.append((field, offset, size))
            offset += size
    return found


def test_structures_are_the_same():
    for name in ("cld_image_level", "cld_image_desc"):
        kernels = fields("cl_driver/builtins/cl/image/image.h", name)
        assert kernels == fields("native_shim/src/abi/image_abi.h", name)


def test_the_pass_knows_the_places():
    places = {
        field: offset for field, offset, _ in fields("native_shim/src/abi/image_abi.h", "cld_image_desc")
    }
    for field in places.keys() - {"element_size", "level"}:
        assert getattr(images, field.upper()) == places[field]
    assert places["element_size"] == images.ELEMENT_SIZE == images.CHANNEL_ORDER + 8
