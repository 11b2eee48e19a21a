"""Registers the driver with the OpenCL loaders: writes cl_driver.icd.

Without an option: the virtual environment or conda environment that this command runs in, else the system.
If the package is writable, its modules are prepared for this Python, so that programs begin sooner.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .. import module_archive, native, registration
from ..device.platform import ICD_SUFFIX


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where to."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--system", action="store_true", help="/etc/OpenCL/vendors, for every user")
    group.add_argument("--venv", action="store_true", help="the Python or conda environment of this command")
    group.add_argument("--prefix", type=Path, help="PREFIX/etc/OpenCL/vendors")


def folder(options: argparse.Namespace) -> Path:
    """The vendors folder that the options mean; OSError if they mean an environment and there is none."""
    if options.prefix:
        return registration.vendors(options.prefix.absolute())
    conda = os.environ.get("CONDA_PREFIX")
    if not options.system:
        if sys.prefix != sys.base_prefix:
            return registration.vendors(Path(sys.prefix))
        if conda and Path(sys.prefix) == Path(conda):
            return registration.vendors(Path(conda))
        if options.venv:
            raise OSError(f"{sys.executable} belongs to no virtual or conda environment")
    return registration.SYSTEM


def _sees_us(loader: Path) -> bool:
    """Whether a loader lists this driver."""
    try:
        return any(suffix == ICD_SUFFIX for suffix, _ in registration.platforms(loader))
    except RuntimeError:
        return False


def _missing_lines(folder: Path) -> list[str]:
    """What is still to be done after our file was written to a folder, so that the loaders here see the
    driver: nothing, or a line for the shell, and what serves without it."""
    if all(map(_sees_us, registration.loaders())):
        return []
    return [f"export OCL_ICD_VENDORS={folder}/", "or, for one program: cl-driver run -- PROGRAM"]


def run(options: argparse.Namespace) -> int:
    """The subcommand."""
    if not native.library().exists():
        print(
            f"There is no {native.library()}: build it first (make setup, or pip install).", file=sys.stderr
        )
        return 1
    target = folder(options)
    written = registration.install(target)
    print(f"wrote {written}")
    for line in _missing_lines(target):
        print(line)
    archive = os.path.join(native.folder(), module_archive.NAME)
    try:
        if module_archive.update(archive, native.packages()):
            print(f"wrote {archive}")
    except OSError as error:
        print(f"The driver works, but its compilers start more slowly than they could: {error}")
    return 0
