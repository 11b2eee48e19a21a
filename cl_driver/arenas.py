"""Large pages for what Python makes in compiler processes (native_shim/arenas/arenas.c): where the system has
them for who asks, memory is there sooner. spawn.LARGE_PAGES is the same for malloc()."""

from __future__ import annotations

import ctypes
import os

from . import native

LIBRARY = "_cl_driver_arenas.so"


def use() -> bool:
    """Whether this process's Python takes its memory in large pages from now on."""
    try:
        # The GIL stays held: Python must not look for memory meanwhile.
        return bool(ctypes.PyDLL(os.path.join(native.folder(), LIBRARY)).cld_use_large_pages())
    except (OSError, AttributeError):
        return False
