"""The drivers that are compared: this tree's, Intel's runtime and PoCL, each as environment variables."""

from __future__ import annotations

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = "cl_driver"


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


def _vendors(folder: Path, text: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{folder.name}.icd").write_text(text)
    return f"{folder}/"
