"""SYCL kernels from DPC++: python tests/peers/sycl.py [--packages FOLDER].

PyPI has no DPC++, but SYCL's library (intel-sycl-rt) has its whole compiler, for source that comes at run
time. sycl_host.cpp has it compile each kernel of sycl_kernels.cpp to SPIR-V, runs it and checks the results.
Exits with 1 if one is wrong.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from peers import ROOT, WORK, environment, need

sys.path.insert(0, str(ROOT))

from cl_driver.frontend.find_clang import find

HERE = Path(__file__).resolve().parent


def fetch() -> Path:
    """A virtual environment with SYCL's library and headers."""
    folder = WORK / "sycl"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", "intel-sycl-rt"], check=True)
        (folder / "done").touch()
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", type=Path, help="a virtual environment that has intel-sycl-rt")
    folder = parser.parse_args().packages or fetch()
    need("g++")
    library = folder / "lib"
    program = WORK / "sycl_host"
    WORK.mkdir(parents=True, exist_ok=True)
    command = [find("").path, "--driver-mode=g++", "-std=c++17", "-w", f"-I{folder / 'include'}"]
    command += [HERE / "sycl_host.cpp", "-o", program, f"-L{library}", "-lsycl"]
    subprocess.run(command, check=True)
    variables = environment()
    # SYCL leaves out all devices that are not on a list of its own.
    variables |= {"ONEAPI_DEVICE_SELECTOR": "opencl:cpu", "SYCL_DEVICE_ALLOWLIST": ""}
    variables["LD_LIBRARY_PATH"] = f"{library}:{variables.get('LD_LIBRARY_PATH', '')}"
    return subprocess.run([program, HERE / "sycl_kernels.cpp"], env=variables, check=False).returncode != 0


if __name__ == "__main__":
    sys.exit(main())
