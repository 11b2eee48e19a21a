"""Where LLVM's shared library may be, best first. The cache's entries name what compiler processes may have
taken; so this imports nothing that the host's process has not."""

from __future__ import annotations

import os

# The version that this driver's tests run with: of clang-22's library, and of llvmlite 0.50's.
TESTED = 22
# The library that clang-22 is linked with.
LIBRARY = "libLLVM.so.22.1"
_OLDEST = 20  # as of clang


def folders() -> list[str]:
    """Of distributions."""
    return [f"/usr/lib/{os.uname().machine}-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/llvm-22/lib"]


def candidates(setting: str = "") -> list[str]:
    """The libraries to try before llvmlite's: the one of the tested version alone if it is there, else those
    of other versions, the newest first. setting: CL_DRIVER_LLVM."""
    if setting:
        return [] if setting == "llvmlite" else [setting]
    for folder in folders():
        path = os.path.join(folder, LIBRARY)
        if os.path.exists(path):
            return [path]
    found: dict[str, tuple[tuple[int, ...], str]] = {}
    for folder in folders():
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            version = _version_in(name)
            if version and version[0] >= _OLDEST:
                path = os.path.join(folder, name)
                found.setdefault(os.path.realpath(path), (version, path))
    return [path for _, path in sorted(found.values(), reverse=True)]


def certain(setting: str = "") -> str:
    """The library that will be in use without being tried first; "" where that is not known."""
    paths = candidates(setting)
    return paths[0] if paths and os.path.basename(paths[0]) == LIBRARY else ""


def _version_in(name: str) -> tuple[int, ...]:
    """Of libLLVM.so.22.1 or libLLVM-20.so; () of other names."""
    text = name.removeprefix("libLLVM.so.")
    if text == name:
        text = name.removeprefix("libLLVM-").removesuffix(".so") if name.startswith("libLLVM-") else ""
    parts = text.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()
