"""What the link name of a function says of it."""

from __future__ import annotations

# Functions of the builtin library for images: builtins/cl/image/.
IMAGE_PREFIX = "__cld_image_"


def source_name(name: str) -> str:
    """The name in OpenCL C of a function by its link name (Itanium C++ ABI, 5.1.2: <source-name>).

    A name that is not mangled is returned as it is.
    """
    rest = name.removeprefix("_Z")
    digits = len(rest) - len(rest.lstrip("0123456789"))
    return rest[digits : digits + int(rest[:digits])] if digits and rest is not name else name


def is_image_library_function(name: str) -> bool:
    """Whether a link name is that of a function of the builtin library for images."""
    return name.startswith(IMAGE_PREFIX)
