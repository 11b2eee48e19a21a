"""From OpenCL C to SPIR-V in the ways that other people's modules are made: plain clang with its SPIR-V back
end, and clang's bitcode through Khronos' translator, as SYCL and HIP tools do."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from cl_driver.frontend import clang, find_clang
from cl_driver.frontend import options as compiler_options

TIME_LIMIT = 120  # seconds, of one compiler
WAYS = {
    "22-O0": ("clang-22", "-O0"),
    "22-O1": ("clang-22", "-O1"),
    "22-O2": ("clang-22", "-O2"),
    "15-O0": ("clang-15", "-O0"),
    "15-O2": ("clang-15", "-O2"),
}


class WayError(Exception):
    """A compiler, not the driver, gave up; the message is its own."""


@cache
def device_arguments(standard: tuple) -> tuple[str, ...]:
    parsed = compiler_options.parse(f"-cl-std=CL{standard[0]}.{standard[1]}")
    return tuple(clang.device_arguments(clang.device_language(), parsed))


def compile(source: bytes, options: str, standard: tuple, way: str, target: Path) -> None:
    """Writes the module. Raises WayError."""
    compiler, level = WAYS[way]
    parsed = compiler_options.parse(f"{options} -cl-std=CL{standard[0]}.{standard[1]}")
    words = [word for word in parsed.clang_arguments(True) if not word.startswith("-O")]
    # Plain `inline` functions have no body of their own in C99: without inlining they would be missing.
    inline = ["-fgnu89-inline"] if level == "-O0" and not parsed.cpp else []
    common = ["-x", "cl", level, "-w", *device_arguments(standard), *words, *inline, "-c"]
    if compiler == "clang-22":
        text = clang.marked_source(source, parsed, clang.device_language())
        # Without corrections this back end makes wrong code.
        corrections = clang.link_arguments(find_clang.find())
        extensions = ",".join("+" + name for name in clang.SPIRV_EXTENSIONS)
        command = ["-target", "spirv64", "-mllvm", f"-spirv-ext={extensions}", *corrections, *common]
        _run([compiler, *command, "-o", str(target), "-"], text)
        return
    if parsed.standard < (1, 2):
        source = b"#pragma OPENCL EXTENSION cl_clang_storage_class_specifiers : enable\n#line 1\n" + source
    bitcode = _run([compiler, "-target", "spir64", *common, "-emit-llvm", "-o", "-", "-"], source)
    _run(["llvm-spirv-15", "-", "-o", str(target)], bitcode)


def _run(command: list[str], data: bytes) -> bytes:
    try:
        done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired as error:
        raise WayError(f"{command[0]} took more than {TIME_LIMIT} s") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").splitlines()
        errors = [line for line in lines if "error" in line.lower() or "Assert" in line] or lines[:1]
        raise WayError(f"{command[0]}: {errors[0] if errors else done.returncode}")
    return done.stdout
