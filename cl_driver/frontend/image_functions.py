"""Reads and writes of mipmapped images, which the SPIR-V back end of clang 20 to 22 gets wrong.

It forgets levels of detail and gradients of read_image, and takes the level of write_image for the colour.
Programs that speak of mipmaps get functions of other names in their place, which passes/images.py knows. For
the same reason CLK_SNORM_INT8... are added to what get_image_channel_data_type returns in a macro: the back
end gives SPIR-V's number, which counts from 0.
"""

from __future__ import annotations

from functools import cache

# Image type: its coordinates as int and float vectors, and the gradients'.
_COORDINATES = {
    "image1d_t": ("", ""),
    "image1d_array_t": ("2", ""),
    "image2d_t": ("2", "2"),
    "image2d_array_t": ("4", "2"),
    "image3d_t": ("4", "4"),
}
_DEPTH = {"image2d_depth_t": ("2", "2"), "image2d_array_depth_t": ("4", "2")}
_KINDS = {"f": "float", "i": "int", "ui": "uint"}

_EXTENSIONS = ("cl_khr_mipmap_image", "cl_khr_mipmap_image_writes")

_DATA_TYPE = b"""\
#define get_image_channel_data_type(image) (get_image_channel_data_type(image) + 0x10D0)
"""


def needed(texts: list[bytes]) -> bytes:
    """What a program of these texts, its source and headers, needs in front."""
    before = b""
    if any(b"get_image_channel_data_type" in text or b"include" in text for text in texts):
        before += _DATA_TYPE
    if any(b"mipmap" in text for text in texts):
        before += _levels()
    return before


@cache
def _levels() -> bytes:
    """Read and write functions with three to five arguments are told apart by how many they are."""
    lines = [
        # clang knows the extension from OpenCL C 2.0 on.
        *(f"#ifndef {name}\n#define {name} 1\n#endif" for name in _EXTENSIONS),
        "#define __cld_lod __attribute__((overloadable, pure))",
        "#define __cld_pick(a, b, c, d, e, name, ...) name",
    ]
    for kind in _KINDS:
        lines += _read(kind, _COORDINATES, f"{_KINDS[kind]}4")
    lines += ["#ifdef cl_khr_depth_images", *_read("f", _DEPTH, "float"), "#endif"]
    for kind in _KINDS:
        names = f"__cld_read_image_gradient_{kind}, __cld_read_image_lod_{kind}"
        name = f"read_image{kind}"
        lines.append(f"#define {name}(...) __cld_pick(__VA_ARGS__, {names}, {name}, {name}, 0)(__VA_ARGS__)")
    for kind in _KINDS:
        lines += _write(kind, _COORDINATES, f"{_KINDS[kind]}4")
    lines += ["#ifdef cl_khr_depth_images", *_write("f", _DEPTH, "float"), "#endif"]
    for kind in _KINDS:
        name = f"write_image{kind}"
        picked = f"0, __cld_write_image_lod_{kind}, {name}, {name}, 0"
        lines.append(f"#define {name}(...) __cld_pick(__VA_ARGS__, {picked})(__VA_ARGS__)")
    return "\n".join([*lines, ""]).encode()


def _read(kind: str, images: dict, result: str) -> list[str]:
    return [
        f"{result} __cld_lod __cld_read_image_{form}_{kind}(read_only {image}, sampler_t, float{at}, {rest});"
        for image, (at, gradient) in images.items()
        for form, rest in (("lod", "float"), ("gradient", f"float{gradient}, float{gradient}"))
    ]


def _write(kind: str, images: dict, colour: str) -> list[str]:
    return [
        f"void __attribute__((overloadable)) __cld_write_image_lod_{kind}"
        f"(write_only {image}, int{at}, int, {colour});"
        for image, (at, _) in images.items()
    ]
