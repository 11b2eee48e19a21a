"""clFFT (Debian's libclfft) against numpy: 1-D and 2-D, single and double precision, both directions.

python tests/peers/clfft.py: prints the relative error of each transform and exits with 1 if one is beyond
rounding: 4 ε · log2(n), the usual bound of an FFT's relative error in the L2 norm.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from peers import environment, need

HERE = Path(__file__).resolve().parent
SHAPES = [(16,), (1000,), (4096,), (65536,), (2187,), (64, 64), (256, 120), (30, 1024)]


def transform(program: Path, data, direction: str):
    """The transform of a complex array by the client on this driver."""
    precision = "double" if data.dtype == np.complex128 else "single"
    lengths = [str(n) for n in reversed(data.shape)]
    done = subprocess.run(
        [program, precision, direction, *lengths],
        input=data.tobytes(),
        env=environment(),
        capture_output=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{precision} {direction} {data.shape}: {done.stderr.decode().strip() or done.returncode}")
    return np.frombuffer(done.stdout, data.dtype).reshape(data.shape)


def main() -> int:
    need("libclfft-dev", "ocl-icd-opencl-dev")
    random = np.random.default_rng(1)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / "clfft_client"
        subprocess.run(
            ["gcc", "-O1", "-Wall", HERE / "clfft_client.c", "-o", program, "-lclFFT", "-lOpenCL"], check=True
        )
        for dtype in (np.complex64, np.complex128):
            for shape in SHAPES:
                data = (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
                for direction, reference in (("forward", np.fft.fftn), ("backward", np.fft.ifftn)):
                    expected = reference(data.astype(np.complex128))
                    error = np.linalg.norm(transform(program, data, direction) - expected)
                    error /= np.linalg.norm(expected)
                    bound = 4 * np.finfo(dtype).eps * np.log2(data.size)
                    failed += not error <= bound
                    verdict = "ok" if error <= bound else "FAILED"
                    print(
                        f"{np.dtype(dtype).name:11}{direction:9}{shape!s:14}{error:10.2e} <= {bound:.2e} "
                        f"{verdict}"
                    )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
