"""Says in plain words what keeps the driver from working, or that nothing does; and what it compiles with."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .. import native, registration, settings
from ..device.platform import ICD_SUFFIX

_SMALLEST_DISK = 16 << 20  # bytes that a few programs' code may take


def check_settings() -> Iterator[str]:
    """Environment variables that say nothing."""
    yield from settings.malformed()


def check_shim() -> Iterator[str]:
    """The library itself, loaded in a process of its own."""
    library = native.library()
    if not library.exists():
        yield f"The driver is not built: there is no {library}. Run make setup, or pip install."
        return
    code = (
        "import ctypes, sys; n = ctypes.c_uint(); "
        "s = ctypes.CDLL(sys.argv[1]).clIcdGetPlatformIDsKHR(0, None, ctypes.byref(n)); "
        "sys.exit(0 if s == 0 and n.value == 1 else f'clIcdGetPlatformIDsKHR answers {s}')"
    )
    if reason := _fails([sys.executable, "-I", "-c", code, str(library)]):
        yield f"{library} cannot be loaded: {reason}"


def check_python() -> Iterator[str]:
    """The Python that the build recorded, else that of the installed package, and what it must import."""
    try:
        recorded = native.configuration()
    except OSError as error:
        file = native.directory() / "cl_driver.conf"
        yield f"{file} cannot be read: {error.strerror}. Build the driver again."
        return
    python = recorded.get("python", [sys.executable])[0]
    if "python" in recorded:
        yield from _check_recorded(python, recorded)
    start = "import sys; sys.path[:0] = sys.argv[1:]; import "
    paths = recorded.get("path", [])
    needed = [("_cffi_backend, cl_driver.runtime", ["-I", "-S"])]
    if _uses_llvmlite():
        needed.append(("llvmlite.binding", ["-I"]))
    for modules, flags in needed:
        if os.access(python, os.X_OK) and (reason := _fails([python, *flags, "-c", start + modules, *paths])):
            yield f"{python} cannot import {modules}: {reason}"


def _uses_llvmlite() -> bool:
    """Whether the code of kernels is made by llvmlite's LLVM, or would be if that could be had."""
    from ..jit import emit
    from ..jit.errors import CompileError
    from ..jit.llvm_library import Library

    try:
        return not isinstance(emit.llvm(), Library)
    except CompileError:
        return True


def _check_recorded(python: str, recorded: dict[str, list[str]]) -> Iterator[str]:
    if not os.access(python, os.X_OK):
        yield f"The Python that the driver was built with is gone: {python}. Build the driver again."
        return
    libpython = recorded.get("libpython", [""])[0]
    if not libpython:
        yield (
            f"{python} has no shared libpython: the driver works, but it starts a process for what it could "
            "do in the program's own. Debian: apt install libpython3.11; "
            "pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared."
        )
    elif not os.path.exists(libpython):
        yield f"The shared libpython is gone: {libpython}. Debian: apt install libpython3.11."
    elif not (native.directory() / f"_cl_driver_embed-{recorded['version'][0]}.so").exists():
        yield (
            "The driver was built without Python's headers: it works, but it starts a process for what it "
            "could do in the program's own. Debian: apt install libpython3.11-dev, then build again."
        )
    for folder in recorded.get("stdlib", []):
        if not os.path.isdir(folder):
            yield f"A folder of Python's standard library is gone: {folder}. Build the driver again."


def check_clang() -> Iterator[str]:
    """The compiler of OpenCL C."""
    from ..frontend import find_clang

    try:
        find_clang.find(settings.text("CL_DRIVER_CLANG"))
    except find_clang.ClangError as error:
        yield f"{error} Programs that bring SPIR-V or binaries work without."


def check_llvm() -> Iterator[str]:
    """What makes the code of kernels."""
    from ..jit import emit
    from ..jit.errors import CompileError

    try:
        emit.choice()
    except CompileError as error:
        yield f"{str(error).strip()}. Only programs that are in the compile cache work without."


def tools() -> Iterator[str]:
    """Which clang and which LLVM are in use, and why."""
    from ..frontend import find_clang
    from ..jit import emit
    from ..jit.errors import CompileError

    setting = settings.text("CL_DRIVER_CLANG")
    with suppress(find_clang.ClangError):
        yield f"clang: {find_clang.explain(find_clang.find(setting), setting)}"
    with suppress(CompileError):
        yield f"LLVM: {emit.choice()}"


def programs() -> Iterator[str]:
    """Programs that get settings of their own."""
    from .. import quirks

    turned_off = "" if settings.flag("CL_DRIVER_QUIRKS") else " (CL_DRIVER_QUIRKS turns it off)"
    for quirk in quirks.read():
        values = " ".join(f"{name}={value!r}" for name, value in quirk.settings.items())
        files = ", ".join((*quirk.programs, *quirk.libraries))
        who = f"{quirk.name} ({files}) gets {values}{turned_off}" if files else f"{quirk.name} wants {values}"
        yield f"{who}: it {quirk.why}"


def check_registration() -> Iterator[str]:
    """The .icd files."""
    registered = False
    for place in registration.places():
        if not place.file.is_file():
            continue
        if wrong := registration.fault(place.file):
            yield f"{wrong}. Run cl-driver install."
            continue
        registered = True
        target = Path(place.file.read_text().strip())
        if target.resolve() != native.library().resolve():
            yield f"{place.file} names another copy of the driver: {target}"
    files = os.environ.get("OCL_ICD_FILENAMES", "").split(":")
    if not registered and str(native.library()) not in files:
        folders = ", ".join(str(place.folder) for place in registration.places())
        but = " PyOpenCL, which has a loader of its own, sees it." if registration.pyopencl() else ""
        yield (
            f"The driver is registered nowhere (looked in {folders}).{but} Run cl-driver install, "
            "or programs by cl-driver run -- PROGRAM."
        )


def check_loaders() -> Iterator[str]:
    """The ICD loaders, and whether each of them lists the driver."""
    loaders = registration.loaders()
    if not loaders:
        yield "There is no OpenCL loader, libOpenCL.so.1. Debian: apt install ocl-icd-libopencl1."
    variable = os.environ.get("OCL_ICD_VENDORS", "")
    if variable and not os.path.exists(variable):
        yield f"OCL_ICD_VENDORS names a folder that is not there: {variable}"
    elif variable and not os.path.isdir(variable):
        yield f"OCL_ICD_VENDORS names a file, where the Khronos loader wants a folder: {variable}"
    for loader in loaders:
        try:
            listed = registration.platforms(loader)
        except RuntimeError as error:
            yield str(error)
            continue
        if all(suffix != ICD_SUFFIX for suffix, _ in listed):
            registered = [p.folder for p in registration.places() if p.file.is_file()]
            line = f"export OCL_ICD_VENDORS={registered[0]}/" if registered else "cl-driver install"
            folders = ", ".join(map(str, registered)) or "none"
            yield (
                f"{loader} does not list this driver (folders where it is registered: {folders}). "
                f"What is missing: {line}, or cl-driver run -- PROGRAM."
            )


def check_cache() -> Iterator[str]:
    """The folder of the compile cache. Without one every process compiles for itself."""
    from ..jit.cache import Cache, default_folder

    folder = default_folder(settings.text("CL_DRIVER_CACHE_DIR"))
    if settings.integer("CL_DRIVER_CACHE_SIZE") == 0:
        return
    consequence = "Nothing compiled is kept for later runs."
    if not folder:
        yield f"There is no place for the compile cache: set HOME or CL_DRIVER_CACHE_DIR. {consequence}"
        return
    trouble = Cache(folder, 1).trouble()
    if trouble:
        yield f"The compile cache {folder} cannot be used: {trouble}. {consequence}"
        return
    existing = Path(folder)
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            list(existing.iterdir())
    except OSError as error:
        yield f"The compile cache {folder} cannot be used: {error.strerror} ({existing}). {consequence}"
        return
    if shutil.disk_usage(existing).free < _SMALLEST_DISK:
        yield f"The disk of the compile cache {folder} is full. {consequence}"


CHECKS = (
    check_settings,
    check_shim,
    check_python,
    check_clang,
    check_llvm,
    check_registration,
    check_loaders,
    check_cache,
)


def _fails(command: list[str]) -> str:
    """What a command that fails says last; "" if it does not fail."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"it ends with status {done.returncode}"])[-1]


def run(options: argparse.Namespace) -> int:
    """The subcommand. Exit status 1 if anything is wrong."""
    del options
    for sentence in (*tools(), *programs()):
        print(f"{sentence}.")
    count = 0
    for check in CHECKS:
        for sentence in check():
            print(f"- {sentence}")
            count += 1
    print("Nothing is wrong." if not count else f"{count} to mend." if count > 1 else "One thing to mend.")
    return 1 if count else 0
