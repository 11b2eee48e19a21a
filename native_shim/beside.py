"""What a wheel has for PyOpenCL: an .icd where the ICD loader in PyOpenCL's wheels looks, which then sees the
driver without a variable.

That loader (ocl-icd with a patch) reads pyopencl/.libs/*.icd and opens the library by the name that a file
has, which it looks for in pyopencl/.libs, too. A wheel does not know where it will be. So a library lies
there that has nothing but the need of the driver's, by a path relative to its own place.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools.command.build_py import build_py

import build

FOLDER = "pyopencl/.libs"
LIBRARY = "libcl_driver_pyopencl.so"
ICD = "cl_driver.icd"


def make(native: Path, work: Path) -> Path:
    """The files, in a folder. native: where the driver's library was built; work: for objects."""
    builder = build.Builder(native, work)
    builder.out = work / "pyopencl"
    shutil.rmtree(builder.out, ignore_errors=True)
    nothing = builder.compile(build.SHIM / "pyopencl" / "driver.c")
    need = f"-L{native}", "-Wl,--no-as-needed", "-lcl_driver"
    builder.link(LIBRARY, [nothing], *need, "-Wl,-rpath,$ORIGIN/../../cl_driver/_native")
    (builder.out / ICD).write_text(LIBRARY)  # this loader takes a line's end for a part of the name
    return builder.out


def put_into_wheels(files: Path) -> None:
    """Has setuptools put them beside the package."""
    run = build_py.run

    def run_and_copy(self) -> None:
        run(self)
        shutil.copytree(files, Path(self.build_lib) / FOLDER, dirs_exist_ok=True)

    build_py.run = run_and_copy
