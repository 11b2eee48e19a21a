"""Compiles the builtin library to one SPIR-V module; run when the package is built.

python -m cl_driver.builtins.build OUTPUT [--clang CLANG] [--update]
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from . import PLACES
from .reader import LibraryReader

SOURCES = pathlib.Path(__file__).parent / "cl"
CLANGS = ("clang-22", "clang-21", "clang-20", "clang")

# -disable-lsr: loop strength reduction would turn counted loops into pointer arithmetic. Thresholds: selects
# stay selects instead of becoming branches. Vectors are the code generator's business.
OPTIONS = (
    "-target", "spirv64", "-x", "cl", "-cl-std=CL3.0", "-O2",
    "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-mllvm", "-disable-lsr",
    "-mllvm", "-spirv-ext=+SPV_EXT_shader_atomic_float_min_max",
    "-mllvm", "-phi-node-folding-threshold=100", "-mllvm", "-two-entry-phi-node-folding-threshold=1000",
)  # fmt: skip


def find_clang() -> str:
    """The clang to use: $CL_DRIVER_CLANG, or the newest of the names that Debian and others install.
    FileNotFoundError if there is none."""
    for name in (os.environ.get("CL_DRIVER_CLANG"), *CLANGS):
        if name and (path := shutil.which(name)):
            return path
    raise FileNotFoundError(f"no clang (looked for {', '.join(CLANGS)}) to compile the builtin library with")


def sources() -> list[pathlib.Path]:
    """Every file that the module depends on."""
    return sorted(path for path in SOURCES.rglob("*") if path.suffix in (".cl", ".h", ".inc"))


def build(output: pathlib.Path, clang: str | None = None) -> pathlib.Path:
    """Compile cl/library.cl to `output` (SPIR-V 1.4, 64-bit addresses). Raises CalledProcessError.

    The output appears whole or not at all, so that builds may run side by side.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        part = pathlib.Path(folder) / output.name
        subprocess.run(
            [clang or find_clang(), *OPTIONS, "-c", str(SOURCES / "library.cl"), "-o", str(part)],
            check=True,
            stdin=subprocess.DEVNULL,
        )
        part.replace(output)
    return output


def update(output: pathlib.Path) -> pathlib.Path:
    """Compile if a source is newer than `output`, or nothing is there."""
    newest = max(path.stat().st_mtime_ns for path in (*sources(), pathlib.Path(__file__)))
    if not output.exists() or output.stat().st_mtime_ns < newest:
        build(output)
    places = output.with_suffix(PLACES)
    data = LibraryReader(output.read_bytes()).written_down()
    if not places.exists() or places.read_bytes() != data:
        part = places.with_suffix(f"{PLACES}.{os.getpid()}")
        part.write_bytes(data)
        part.replace(places)
    return output


def main() -> int:
    """Command line of the package's build. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--clang")
    parser.add_argument("--update", action="store_true", help="what is newer than its sources stays")
    arguments = parser.parse_args()
    try:
        if arguments.update:
            update(arguments.output)
        else:
            build(arguments.output, arguments.clang)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
