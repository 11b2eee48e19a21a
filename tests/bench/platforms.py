"""The drivers that are compared: this tree's, Intel's runtime and PoCL, each as environment variables."""

from __future__ import annotations

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = "cl_driver"
# What holds a driver to the instructions of CPUs before this one.
LEVELS = {
    "avx2": {
        OURS: {"CL_DRIVER_CPU": "x86-64-v3"},
        "intel": {"CL_CONFIG_CPU_TARGET_ARCH": "core-avx2"},
        "pocl": {"POCL_LLVM_CPU_NAME": "haswell", "POCL_KERNELLIB_NAME": "avx2"},
    },
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """--intel and --pocl."""
    parser.add_argument(
        "--intel",
        type=Path,
        metavar="LIBDIR",
        help="lib folder of a Python environment with intel-opencl-rt and intel-cmplr-lib-rt",
    )
    parser.add_argument("--pocl", action="store_true", help="Debian's pocl-opencl-icd")


def find(arguments: argparse.Namespace, work: Path) -> dict[str, dict[str, str]]:
    """{name: environment additions} of the platforms that were asked for. Their .icd files go to `work`."""
    found = {OURS: {"OCL_ICD_VENDORS": f"{ROOT / 'build' / 'vendors'}/"}}
    if arguments.intel:
        library = next(Path(arguments.intel).resolve().glob("libintelocl.so.*"))
        found["intel"] = {
            "OCL_ICD_VENDORS": _vendors(work / "intel", f"{library}\n"),
            "LD_LIBRARY_PATH": str(library.parent),
        }
    if arguments.pocl:
        text = Path("/etc/OpenCL/vendors/pocl.icd").read_text()
        found["pocl"] = {"OCL_ICD_VENDORS": _vendors(work / "pocl", text)}
    return found


def at_levels(found: dict[str, dict[str, str]], levels: list[str]) -> dict[str, dict[str, str]]:
    """The platforms once for each level ("" is all that this CPU has), if they can be held to it."""
    columns = {}
    for level in levels:
        for platform, additions in found.items():
            if not level:
                columns[platform] = additions
            elif setting := LEVELS[level].get(platform.split()[0]):
                columns[f"{platform} {level}"] = additions | setting
    return columns


def held(found: dict[str, dict[str, str]], level: str) -> dict[str, dict[str, str]]:
    """The platforms, held to a level where they can be."""
    return {name: additions | LEVELS[level].get(name, {}) for name, additions in found.items()}


def _vendors(folder: Path, text: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{folder.name}.icd").write_text(text)
    return f"{folder}/"
