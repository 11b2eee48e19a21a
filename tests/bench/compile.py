"""How long builds take: cold, in a warm compiler process, from the cache; and each stage of a kernel.

    python tests/bench/compile.py [FILE.cl]

Times are the least of several runs, in milliseconds. The cache is one of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

SOURCE = """
kernel void scale(global float *a, float f) {
    size_t i = get_global_id(0);
    a[i] = sin(a[i]) * f;
}
"""

BUILD = """
import sys, time
sys.path.insert(0, sys.argv[1])
start = time.perf_counter()
from cl_driver.service import client
executable, log = client.build_source(open(sys.argv[2], "rb").read(), "")
end = time.perf_counter()
assert executable, log
print((end - start) * 1000)
"""


def in_a_new_process(path: Path, cache: str) -> float:
    """Import of the service and one build."""
    command = [sys.executable, "-I", "-S", "-c", BUILD, str(ROOT), str(path)]
    return float(subprocess.check_output(command, env={**os.environ, "CL_DRIVER_CACHE_DIR": cache}))


def least(function, runs: int = 5) -> float:
    """The least result of several calls."""
    return min(function() for _ in range(runs))


def timed(function, *arguments):
    """(result, milliseconds)."""
    start = time.perf_counter()
    result = function(*arguments)
    return result, (time.perf_counter() - start) * 1000


def stages(source: bytes) -> None:
    """Prints what each stage takes when everything is loaded."""
    from cl_driver.compiler import pipeline
    from cl_driver.device.target import host_target

    context = pipeline.Context(host_target(), "", {})
    for _ in range(2):  # the first round loads
        compiled, clang = timed(pipeline.compile_source, source, {}, context)
        program, prepare = timed(pipeline.prepare, compiled.spirv, context)
        kernels = {name: timed(pipeline.kernel, program, name)[1] for name in program.names}
    print(f"  clang {clang:.1f}, read and check {prepare:.1f}")
    for name, taken in kernels.items():
        print(f"  kernel {name}: {taken:.1f}")


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.cl"
        path.write_bytes(Path(sys.argv[1]).read_bytes() if len(sys.argv) > 1 else SOURCE.encode())
        cache = os.path.join(folder, "cache")
        cold = least(lambda: in_a_new_process(path, os.path.join(folder, os.urandom(4).hex())), 3)
        in_a_new_process(path, cache)
        cached = least(lambda: in_a_new_process(path, cache), 10)
        os.environ["CL_DRIVER_CACHE_DIR"] = cache
        from cl_driver.service import client

        def again(text: bytes) -> float:
            return timed(client.build_source, text, "")[1]

        source = path.read_bytes()
        again(source + b" ")
        warm = least(lambda: again(source + os.urandom(4).hex().join(("//", "\n")).encode()))
        print(f"new process, nothing cached: {cold:.1f}")
        print(f"new process, cached:         {cached:.1f}")
        print(f"warm compiler process:       {warm:.1f}")
        print(f"same process, cached:        {least(lambda: again(source)):.2f}")
        client.unload()
        stages(source)


if __name__ == "__main__":
    main()
