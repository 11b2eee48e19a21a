"""Which compiler this is: part of every cache key, so that no entry outlives the code that made it."""

from __future__ import annotations

import os

from .. import settings
from ..version import VERSION
from . import clang_paths, llvm_paths
from .cache import digest

# Folders that compiler processes read nothing of; all other files of the package are looked at, not read. (So
# whatever is new counts, unless it is named here. "cl" and "coefficients" are builtins.spv's sources, and the
# archive is made of modules that count themselves.)
_OTHERS = frozenset((
    "__pycache__", "_native", "accuracy", "api", "cl", "cl_driver.modules", "cli", "cluster", "coefficients",
    "debugger", "door", "host_device.py", "interp", "profile", "registration.py", "trace", "tune",
))  # fmt: skip

# Folders that they use under certain settings only. These are in the cache's keys, or leave no entries there.
_ONLY_WITH = {
    "check": ("CL_DRIVER_CHECK",),
    "explain": ("CL_DRIVER_EXPLAIN",),
    "extents": ("CL_DRIVER_CLUSTER",),
    "traffic": ("CL_DRIVER_CLUSTER", "CL_DRIVER_PROFILE"),
}
_found: dict[bool, str] = {}


def compiler(whole: bool = False) -> str:
    """The driver's version, and names, sizes and times of the compiler's own files that it uses under these
    settings; whole: of all, for what goes from process to process, as binaries do. "" where these are not
    there, as in another root folder: then nothing is known of the compiler."""
    if whole not in _found:
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        native = next(filter(os.path.isdir, _native(package)), "")
        without = _OTHERS if whole else _OTHERS | _unused()
        lines = [VERSION, *_files(package, without), *_files(native, without)]
        if len(lines) == 1:
            return ""
        if not native.startswith(package):
            checkout = os.path.dirname(package)  # as symbols.py has it
            lines += _file(os.path.join(checkout, "native_shim", "src", "abi", "code_symbols.def"))
        _found[whole] = digest("\n".join(lines).encode("utf-8", "surrogateescape"))
    return _found[whole]


def _unused() -> set[str]:
    """Those of the folders above that these settings leave unused."""
    return {
        folder
        for folder, names in _ONLY_WITH.items()
        if not any(settings.text(name) not in ("", "0") for name in names)
    }


def _native(package: str) -> list[str]:
    """Where the build leaves what it makes: native.directory(), without pathlib."""
    return [os.path.join(package, "_native"), os.path.join(os.path.dirname(package), "build", "lib")]


def tools(clang: str, setting: str = "") -> list[str]:
    """The clangs and the LLVM that compiler processes may have taken: "path size time". clang, setting:
    CL_DRIVER_CLANG and CL_DRIVER_LLVM."""
    clangs = [line for path in clang_paths.candidates(clang, up_to_fixed=True) for line in _file(path)]
    libraries = llvm_paths.candidates(setting)
    is_certain = bool(libraries) and (bool(setting) or libraries[0].endswith("/" + llvm_paths.LIBRARY))
    return clangs + [line for path in libraries for line in _file(path)] + ([] if is_certain else _llvmlite())


def llvm(setting: str = "") -> str:
    """The shared library that is tried first; "" where llvmlite is to be used. setting: CL_DRIVER_LLVM."""
    return next(iter(llvm_paths.candidates(setting)), "")


def unchanged(made_with: list[str]) -> bool:
    """Whether what tools() once found is the same still. What is there no longer counts as the same: what
    it made runs without it."""
    return all(_file(line.rsplit(" ", 2)[0]) in ([line], []) for line in made_with)


def _llvmlite() -> list[str]:
    """In the folders that the build recorded."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for here in _native(package):
        try:
            with open(os.path.join(here, "cl_driver.conf"), encoding="utf-8") as file:
                folders = [line[len("path=") :].rstrip("\n") for line in file if line.startswith("path=")]
        except OSError:
            continue
        return [line for f in folders for line in _file(os.path.join(here, f, "llvmlite", "_version.py"))]
    return []


def _files(folder: str, without: frozenset[str]) -> list[str]:
    lines = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name in without or entry.name.endswith(".md"):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    lines += _files(entry.path, without)
                else:
                    lines += _file(entry.path)
    except OSError:
        pass  # a folder that is not there is the same for every process of this installation
    return lines


def _file(path: str) -> list[str]:
    try:
        status = os.stat(path)
    except OSError:
        return []
    return [f"{path} {status.st_size} {status.st_mtime_ns}"]
