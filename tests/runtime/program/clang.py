"""Modules as clang writes them of what the driver's own front end does not offer."""

from __future__ import annotations

import functools
import subprocess

from cl_driver.frontend.find_clang import find


@functools.lru_cache(maxsize=32)
def compile_with(source: str, extensions: tuple[str, ...], *options: str) -> bytes:
    """OpenCL C, or C++ for OpenCL by an option, with these SPIR-V extensions."""
    wanted = ",".join(f"+{name}" for name in extensions)
    command = [find("").path, "-target", "spirv64", "-x", "cl", "-O2", "-Xclang", "-fno-rtti", *options]
    command += ["-mllvm", f"-spirv-ext={wanted}", "-c", "-o", "-", "-"]
    done = subprocess.run(command, input=source.encode(), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
