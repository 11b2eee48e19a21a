"""Real modules for fuzzing and comparisons: tests/corpus/*.cl and random kernels through clang, made anew."""

from __future__ import annotations

import concurrent.futures
import functools
import subprocess
from pathlib import Path

from tests.pure.passes.support import CLANG
from tests.pure.random.kernels import Kernel

SOURCES = Path(__file__).resolve().parents[2] / "corpus"
EXTENSIONS = "+SPV_KHR_no_integer_wrap_decoration,+SPV_KHR_expect_assume,+SPV_KHR_bit_instructions"


def compile_module(source: str, level: str, target: str) -> bytes:
    """OpenCL C to SPIR-V by clang. target: spirv64, or spirv64v1.2 and the like."""
    command = [*CLANG, level, "-target", target, "-mllvm", f"-spirv-ext={EXTENSIONS}"]
    done = subprocess.run(command, input=source.encode(), capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@functools.cache
def modules(random_kernels: int = 4, target: str = "spirv64") -> list[bytes]:
    """Each source without optimisation and with it."""
    sources = [path.read_text() for path in sorted(SOURCES.glob("*.cl"))]
    sources += [Kernel(seed).source for seed in range(random_kernels)]
    jobs = [(source, level, target) for source in sources for level in ("-O0", "-O2")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: compile_module(*job), jobs))
