"""Where clang may be, best first. The front end takes the first that serves, and the cache's entries name
those that it may have taken; so this imports nothing that the host's process has not."""

from __future__ import annotations

import os

from .. import native, trust

OLDEST = 20  # the first clang whose own SPIR-V back end compiles OpenCL C
NAMES = ("clang-22", "clang-23", "clang-24", "clang-21", "clang-20", "clang")
# Where packages put it, looked through after PATH.
FIXED_FOLDERS = ("/usr/bin", "/usr/local/bin", "/opt/llvm/bin")
# PyPI's package of the zig compiler has a clang in its one program, without the header of OpenCL C.
PACKAGE = "ziglang"
_ZIG = "zig"
# The resource folder of a clang that has none of its own.
RESOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "frontend", "resources")


def folders() -> list[str]:
    """Of PATH, then the fixed ones. Not those that depend on the working folder, which may be anybody's."""
    of_path = trust.environment().get("PATH", "").split(os.pathsep)
    return [*dict.fromkeys((*(each for each in of_path if os.path.isabs(each)), *FIXED_FOLDERS))]


def is_fixed(path: str) -> bool:
    """Whether a candidate is where packages put it, and not where only PATH leads to."""
    return os.path.dirname(path) in FIXED_FOLDERS


def is_zig(path: str) -> bool:
    """Whether a candidate is a zig compiler: a static program, into which nothing can be loaded."""
    return os.path.basename(path) == _ZIG


def command(path: str) -> list[str]:
    """How a candidate is run: the first words of its command line."""
    return [path, "clang", "-resource-dir", RESOURCES] if is_zig(path) else [path]


def _of_package() -> list[str]:
    paths = (os.path.join(folder, PACKAGE, _ZIG) for folder in native.packages())
    return [path for path in dict.fromkeys(paths) if trust.may_run(path)]


def version_in_name(path: str) -> int:
    """That of clang-22; 0 where the name has none."""
    version = os.path.basename(path).removeprefix("clang-")
    return int(version) if version.isdecimal() else 0


def candidates(setting: str = "", up_to_fixed: bool = False) -> list[str]:
    """Programs that may be a clang: the preferred version first, and for each the folders in their order;
    the one of PyPI's package last.

    setting: CL_DRIVER_CLANG; the program that it names, if there is one, is then the only one. up_to_fixed:
    no more after the first of a fixed folder. Where that one serves, one of these is in use.
    """
    if "/" in setting:
        return [setting] if trust.may_run(setting) else []
    if setting == PACKAGE:
        return _of_package()[:1]
    found: list[str] = []
    for name in (setting,) if setting else NAMES:
        for folder in folders():
            path = os.path.join(folder, name)
            if trust.may_run(path):
                found.append(path)
                if setting or (up_to_fixed and is_fixed(path)):
                    return found
    return found if setting else found + _of_package()
