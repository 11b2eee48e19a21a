"""PyOpenCL's own test files, inside a Python of the version that the driver embeds.

python tests/peers/pyopencl.py [--python PYTHON] [pytest arguments]

Installs PyOpenCL (PyPI) with mako in a venv of its own below build/, takes the tests from PyOpenCL's source
archive, and runs them. With a --python of another version the driver works through its runtime process.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from peers import WORK, environment

# Asks an image for `image.depth`, a name that PyOpenCL lacks, on platforms that it does not know by name.
DESELECTED = "test/test_wrapper.py::test_get_info"


def prepare(python: str) -> tuple[Path, Path]:
    """(interpreter of the venv, folder of the tests)."""
    version = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    venv = WORK / f"pyopencl-{version}"
    interpreter = venv / "bin" / "python"
    if not (venv / "ready").exists():
        subprocess.run([python, "-m", "venv", venv], check=True)
        pip = [interpreter, "-m", "pip", "install", "-q"]
        # Later platformdirs ignore a relative XDG_CACHE_HOME, which test_xdg_cache_home sets.
        subprocess.run([*pip, "pyopencl", "mako", "pytest", "numpy", "platformdirs<4.6"], check=True)
        # The source archive's metadata needs PyOpenCL's build tools.
        subprocess.run([*pip, "scikit_build_core", "nanobind", "typing_extensions"], check=True)
        (venv / "ready").touch()
    archives = WORK / "archives"
    if not list(archives.glob("pyopencl-*.tar.gz")):
        subprocess.run(
            [
                interpreter,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--no-build-isolation",
                "--no-binary",
                "pyopencl",
                "-d",
                archives,
                "pyopencl",
            ],
            check=True,
        )
    archive = max(archives.glob("pyopencl-*.tar.gz"))
    source = archives / archive.name.removesuffix(".tar.gz")
    if not source.exists():
        shutil.unpack_archive(archive, archives)
    return interpreter, source / "test"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    arguments, rest = parser.parse_known_args()
    interpreter, tests = prepare(arguments.python)
    command = [interpreter, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider"]
    command += rest or ["--deselect", DESELECTED, tests]
    return subprocess.run(command, cwd=tests, env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
