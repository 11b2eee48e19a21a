"""Makes the Debian package out of a wheel (make dist): the package `cl_driver` goes to dist-packages, and an
.icd to /etc/OpenCL/vendors, where the loaders of the system look.

As dh_python3 has it, modules are compiled when the package is installed, and what was compiled goes with it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import wheel_file

NAME = "cl-driver"
REVISION = 1
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PACKAGES = Path("usr/lib/python3/dist-packages")
ICD = Path("etc/OpenCL/vendors/cl_driver.icd")

_CONTROL = """\
Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: cl_driver developers <cl_driver@localhost>
Installed-Size: {size}
Depends: python3 (>= 3.11), python3-cffi-backend, clang-22 | clang (>= 1:20), libc6 (>= 2.28)
Recommends: ocl-icd-libopencl1 | libopencl1
Enhances: libopencl1
Provides: opencl-icd
Section: libs
Priority: optional
Description: OpenCL driver for CPUs
 An OpenCL 3.1 driver for CPUs, written in Python and C. Programs find it through
 the system's ICD loader and run on it unchanged.
"""

_COMMAND = """\
#!/usr/bin/python3
import sys

from cl_driver.cli import main

sys.exit(main())
"""

# What dh_python3 puts into packages.
_SCRIPTS = {
    "postinst": f"""\
#!/bin/sh
set -e
if command -v py3compile >/dev/null 2>&1; then
    py3compile -p {NAME}
fi
""",
    "prerm": f"""\
#!/bin/sh
set -e
if command -v py3clean >/dev/null 2>&1; then
    py3clean -p {NAME}
else
    dpkg -L {NAME} | sed -n 's,/[^/]*\\.py$,/__pycache__,p' | sort -u | xargs -r rm -rf
fi
""",
}


def _write(path: Path, text: str | bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)


def _unpack(wheel: Path, root: Path) -> None:
    """The package, without what pip has to know of it."""
    for member, data in wheel_file.unpack(wheel):
        if member.filename.startswith("cl_driver/"):
            mode = 0o755 if member.external_attr >> 16 & 0o100 and ".so" not in member.filename else 0o644
            _write(root / PACKAGES / member.filename, data, mode)


def _documents(root: Path, licence: str, changes: str) -> None:
    folder = root / "usr" / "share" / "doc" / NAME
    _write(folder / "copyright", licence)
    _write(folder / "changelog.gz", gzip.compress(changes.encode(), 9, mtime=0))


def make(wheel: Path, out: Path, source: Path, epoch: int) -> Path:
    """The package. source: the tree that the wheel was made of; epoch: the time of all files."""
    _, version, _, _, platform = wheel.stem.split("-")
    architecture = next(name for machine, name in ARCHITECTURES.items() if platform.endswith(machine))
    version = f"{version}-{REVISION}"
    root = out / f"{NAME}_{version}_{architecture}"
    shutil.rmtree(root, ignore_errors=True)
    _unpack(wheel, root)
    _write(root / ICD, f"/{PACKAGES}/cl_driver/_native/libcl_driver.so\n")
    _write(root / "usr" / "bin" / NAME, _COMMAND, 0o755)
    _documents(root, (source / "LICENSE").read_text(), (source / "CHANGELOG.md").read_text())
    files = sorted(path for path in root.rglob("*") if path.is_file())
    sums = (f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files)
    size = sum((path.stat().st_size + 1023) // 1024 for path in files)
    control = _CONTROL.format(name=NAME, version=version, architecture=architecture, size=size)
    control_files = {
        "control": control,
        "conffiles": f"/{ICD}\n",
        "md5sums": "".join(sums),
    }
    for name, text in control_files.items():
        _write(root / "DEBIAN" / name, text)
    for name, text in _SCRIPTS.items():
        _write(root / "DEBIAN" / name, text, 0o755)
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)
    package = out / f"{root.name}.deb"
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", "-Zxz", str(root), str(package)],
        env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    shutil.rmtree(root)
    return package
