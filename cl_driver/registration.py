"""ICD registration: the folders that loaders read, the one file that we write there, the loaders themselves.

What is known of loaders and their folders is in the README of icd/.
"""

from __future__ import annotations

import ctypes.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import native

FILE = "cl_driver.icd"
SYSTEM = Path("/etc/OpenCL/vendors")


def vendors(prefix: Path) -> Path:
    """The vendors folder of a prefix, a venv or a conda environment."""
    return prefix / "etc" / "OpenCL" / "vendors"


def content(library: Path) -> str:
    """What an .icd file must hold: one absolute path and one newline. More, and one loader or other fails."""
    return f"{library}\n"


@dataclass(frozen=True)
class Place:
    """A vendors folder; who: which loaders read it."""

    folder: Path
    who: str

    @property
    def file(self) -> Path:
        """Where our file is, or would be."""
        return self.folder / FILE


def places(environment: Mapping[str, str] = os.environ) -> list[Place]:
    """The folders that loaders may read here, each once, in the order in which they count."""
    found: dict[Path, str] = {}
    variable = environment.get("OCL_ICD_VENDORS", "")
    if variable and Path(variable).is_dir():
        found[Path(os.path.abspath(variable))] = (
            "every loader, as OCL_ICD_VENDORS names it, and no other folder"
        )
    if environment.get("OPENCL_VENDOR_PATH"):
        found.setdefault(Path(environment["OPENCL_VENDOR_PATH"]), "ocl-icd, as OPENCL_VENDOR_PATH names it")
    found.setdefault(SYSTEM, "the system's loaders")
    if environment.get("CONDA_PREFIX"):
        found.setdefault(vendors(Path(environment["CONDA_PREFIX"])), "the conda environment's loader")
    if sys.prefix != sys.base_prefix:
        folder = vendors(Path(sys.prefix))
        found.setdefault(folder, f"loaders told so: export OCL_ICD_VENDORS={folder}/")
    return [Place(folder, who) for folder, who in found.items()]


def fault(file: Path) -> str:
    """What is wrong with an .icd file, in a sentence; "" if nothing is."""
    try:
        text = file.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        return f"{file} cannot be read: {error.strerror}"
    if not text.strip():
        return f"{file} is empty"
    if "\r" in text:
        return f"{file} has Windows line ends: every loader takes the carriage return for part of the name"
    first, *rest = text.split("\n")
    if any(rest):
        return f"{file} has more than one line: the Khronos loader takes all of it for one name"
    if len(rest) > 1:
        return f"{file} ends in empty lines: the Khronos loader takes them for part of the name"
    if not os.path.isabs(first):
        return f"{file} holds no absolute path: {first}"
    if not os.path.exists(first):
        return f"{file} names a file that is not there: {first}"
    return ""


def install(folder: Path) -> Path:
    """Writes our file, as a whole or not at all; returns its name. OSError if the folder is not writable."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f".{FILE}.{os.getpid()}"  # loaders read *.icd only
    try:
        fresh.write_text(content(native.library()))
        fresh.replace(folder / FILE)
    finally:
        fresh.unlink(missing_ok=True)
    return folder / FILE


def uninstall(folder: Path) -> bool:
    """Removes our file; whether it was there."""
    try:
        (folder / FILE).unlink()
    except FileNotFoundError:
        return False
    return True


def loaders(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """The libOpenCL.so.1 that programs here may get, each file once."""
    found: dict[Path, None] = {}
    folders = [f for f in environment.get("LD_LIBRARY_PATH", "").split(":") if f]
    folders += [os.path.join(p, "lib") for p in (environment.get("CONDA_PREFIX"), sys.prefix) if p]
    for folder in folders:
        path = Path(folder) / "libOpenCL.so.1"
        if path.exists():
            found[path.resolve()] = None
    try:
        listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    except OSError:
        listed = ""
    for match in re.finditer(r"libOpenCL\.so\.1 .*=> (\S+)", listed):
        if Path(match[1]).exists():
            found[Path(match[1]).resolve()] = None
    if not found and not listed and (name := ctypes.util.find_library("OpenCL")):
        found[Path(name)] = None
    return list(found)


def pyopencl() -> Path | None:
    """Our file for the loader in PyOpenCL's wheels, if both are installed (native_shim/beside.py)."""
    packages = Path(__file__).resolve().parents[1] / "pyopencl"
    file = packages / ".libs" / FILE
    return file if file.is_file() and list(file.parent.glob("libOpenCL*.so*")) else None


_ASK = """
import ctypes, sys
loader = ctypes.CDLL(sys.argv[1])
count = ctypes.c_uint()
platforms = (ctypes.c_void_p * 64)()
status = loader.clGetPlatformIDs(64, platforms, ctypes.byref(count))
if status not in (0, -1001):
    sys.exit(f"clGetPlatformIDs answers {status}")
for platform in platforms[:count.value]:
    text = ctypes.create_string_buffer(4096)
    loader.clGetPlatformInfo(ctypes.c_void_p(platform), 0x0920, 4096, text, None)
    suffix = text.value
    loader.clGetPlatformInfo(ctypes.c_void_p(platform), 0x0902, 4096, text, None)
    print(suffix.decode(errors="replace"), text.value.decode(errors="replace"), sep="\\t")
"""


def platforms(loader: Path, environment: Mapping[str, str] = os.environ) -> list[tuple[str, str]]:
    """(ICD suffix, name) of the platforms that a loader lists, asked in a process of its own.

    RuntimeError, with a sentence, if it does not answer.
    """
    command = [sys.executable, "-I", "-c", _ASK, str(loader)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=30, check=False, env=dict(environment)
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{loader} does not answer within 30 seconds") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1]
        raise RuntimeError(f"{loader}: {reason}")
    lines = (line.partition("\t") for line in done.stdout.splitlines())
    return [(suffix, name) for suffix, _, name in lines]
