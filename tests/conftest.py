"""Fixtures of all levels. See README.md for the levels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.marks import IS_EMULATED

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

# What the tests make goes here: compiled clients, loaders, the compile cache of the tests.
MADE = ROOT / "build" / "test"

# How many times as long programs may take: for emulators and machines that others keep busy.
PATIENCE = float(os.environ.get("CL_DRIVER_TEST_PATIENCE") or 1)

# What an emulator says itself where a program ends of a signal.
EMULATOR = re.compile(r"^qemu: uncaught target signal .*\n", re.MULTILINE)
if IS_EMULATED:
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")  # which needs ptrace


def pytest_collection_modifyitems(items) -> None:
    """Marks the tests of core.toml with the suites that they stand in for, and those that download."""
    entries = tomllib.loads((ROOT / "tests" / "core.toml").read_text())
    suites: dict[str, list[str]] = {}
    for suite, tests in entries.items():
        for test in tests:
            suites.setdefault(test, []).append(suite)
    for item in items:
        file = item.path.relative_to(ROOT / "tests").as_posix()
        name = f"{file}::{getattr(item, 'originalname', item.name)}"
        for suite in {*suites.get(file, ()), *suites.get(name, ())}:
            item.add_marker(pytest.mark.core(suite=suite))
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if "khronos" in item.fixturenames or "khronos" in parameters:
            item.add_marker(pytest.mark.network)


def pytest_collection_finish() -> None:
    """Hosts under test keep bytecode in their own ways. By now this Python's workers have been started."""
    os.environ.pop("PYTHONPYCACHEPREFIX", None)


@pytest.fixture(scope="session")
def made() -> Path:
    """The folder for what tests make and may use again."""
    MADE.mkdir(parents=True, exist_ok=True)
    return MADE


@pytest.fixture(scope="session")
def environment(made) -> dict[str, str]:
    """Variables for programs under test: this tree's driver only, and a cache of the tests' own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OCL_ICD_", "OPENCL_", "CL_DRIVER_"))}
    kept["OCL_ICD_VENDORS"] = f"{ROOT / 'build' / 'vendors'}/"
    kept["CL_DRIVER_CACHE_DIR"] = str(made / "cache")
    if mode := os.environ.get("CL_DRIVER_RUNTIME"):  # make test runs the loader's tests in both modes
        kept["CL_DRIVER_RUNTIME"] = mode
    if cpu := os.environ.get("CL_DRIVER_TEST_CPU"):  # a lesser one, for a whole run
        kept["CL_DRIVER_CPU"] = cpu
    if width := os.environ.get("CL_DRIVER_TEST_WIDTH"):
        kept["CL_DRIVER_WIDTH"] = width
    if setting := os.environ.get("CL_DRIVER_TEST_VALUE_CODE"):  # "now", for a whole run
        kept["CL_DRIVER_VALUE_CODE"] = setting
    if when := os.environ.get("CL_DRIVER_TEST_COMPILE_KERNELS"):  # "create", for a whole run
        kept["CL_DRIVER_COMPILE_KERNELS"] = when
    return kept


def compile_c(source: Path, target: Path, *options: str) -> Path:
    """Compiles a C program, unless it is there and newer than it, the C files among the options, and what
    these may include."""
    sources = [source, *(Path(option) for option in options if option.endswith(".c"))]
    for option in options:
        if option.startswith("-I"):
            sources += (path for kind in ("*.h", "*.def") for path in Path(option[2:]).rglob(kind))
    if not target.exists() or target.stat().st_mtime_ns < max(s.stat().st_mtime_ns for s in sources):
        fresh = target.with_suffix(f".{os.getpid()}")
        command = [
            "cc",
            "-std=gnu11",
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            str(source),
            "-o",
            str(fresh),
            *options,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
        fresh.replace(target)
    return target
