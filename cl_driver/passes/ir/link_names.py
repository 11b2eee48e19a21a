"""What the link name of a function says of it."""

from __future__ import annotations

import re

# Functions of the builtin library for images: builtins/cl/image/.
IMAGE_PREFIX = "__cld_image_"
_MANGLED = re.compile(r"_Z(\d+)")


def source_name(name: str) -> str:
    """The name in OpenCL C of a function by its link name (Itanium C++ ABI, 5.1.2: <source-name>).

    A name that is not mangled is returned as it is.
    """
    found = _MANGLED.match(name)
    return name[found.end() : found.end() + int(found[1])] if found else name


def is_image_library_function(name: str) -> bool:
    """Whether a link name is that of a function of the builtin library for images."""
    return name.startswith(IMAGE_PREFIX)
