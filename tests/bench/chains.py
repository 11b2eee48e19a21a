"""What it would gain to keep the data of a chain of kernels in the caches: python -m tests.bench.chains.

A command-buffer of element-wise kernels, each of which reads what the one before has written, on buffers
that no cache holds: as it is recorded, each kernel over all of the data; cut into pieces, all kernels over
one piece before the next piece, as a compiler could do it that proves where a kernel's data comes from; and
as one kernel.
"""

from __future__ import annotations

import argparse
import ctypes.util
import os
import time

import numpy as np

from tests.conftest import ROOT

os.environ.setdefault("OCL_ICD_VENDORS", f"{ROOT / 'build' / 'vendors'}/")

from tests.loader.command_buffers.recorder import Recorder
from tests.loader.core.session import Buffer
from tests.loader.opencl import OpenCL

STEP = "x * 0.75f + {}.5f"
WAYS = ("in place", "to and fro")


def source(steps: int) -> str:
    """Kernels k0, k1, ..., and `fused`, which does what they do one after the other."""
    head = "(global const float *in, global float *out) { size_t i = get_global_id(0); float x = in[i]; "
    singles = [f"kernel void k{k}{head} out[i] = {STEP.format(k)}; }}" for k in range(steps)]
    whole = " ".join(f"x = {STEP.format(k)};" for k in range(steps))
    return "\n".join([*singles, f"kernel void fused{head} {whole} out[i] = x; }}"])


class Chain:
    """Chains of so many kernels, on so many floats; way: of WAYS, one buffer or two that take turns."""

    def __init__(self, session: Recorder, steps: int, count: int, way: str):
        self.session, self.steps, self.count = session, steps, count
        program = session.program(source(steps))
        self.kernels = [session.kernel(program, f"k{k}") for k in range(steps)]
        self.fused = session.kernel(program, "fused")
        self.start = np.linspace(-1, 1, count, dtype=np.float32)
        first = session.buffer(self.start)
        second = first if way == WAYS[0] else session.buffer(4 * count)
        self.buffers = [first, second]

    def last(self) -> Buffer:
        return self.buffers[self.steps % 2]

    def recorded(self, piece: int) -> int:
        """A command-buffer of launches over so many elements each."""
        made = self.session.create()
        for begin in range(0, self.count, piece):
            size = min(piece, self.count - begin)
            for k, kernel in enumerate(self.kernels):
                arguments = self.buffers[k % 2], self.buffers[(k + 1) % 2]
                self.session.record(made, kernel, size, *arguments, offset=begin)
        self.session.finalize(made)
        return made

    def as_one(self) -> int:
        made = self.session.create()
        self.session.record(made, self.fused, self.count, self.buffers[0], self.last())
        self.session.finalize(made)
        return made

    def check(self, made: int) -> None:
        """One run from the start gives what numpy does."""
        self.session.write(self.buffers[0], self.start)
        self.run(made)
        x = self.start.astype(np.float64)
        for k in range(self.steps):
            x = x * 0.75 + (k + 0.5)
        got = self.session.read(self.last(), np.float32, self.count)
        np.testing.assert_allclose(got, x, rtol=1e-5)

    def run(self, made: int) -> None:
        self.session.enqueue(made)
        self.session.finish()


def measure(chain: Chain, forms: dict[str, int], rounds: int, clock) -> dict[str, float]:
    """The least seconds of each form; they take turns."""
    for made in forms.values():
        for _ in range(3):  # hot code comes in the background
            chain.check(made)
    best = dict.fromkeys(forms, float("inf"))
    for _ in range(rounds):
        for name, made in forms.items():
            before = clock()
            chain.run(made)
            best[name] = min(best[name], clock() - before)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="*", default=[4, 8], help="kernels in a chain")
    parser.add_argument("--mib", type=int, default=32, help="size of a buffer")
    parser.add_argument("--pieces", type=int, nargs="*", default=[128, 512, 1024, 2048], help="in KiB")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: of all threads")
    arguments = parser.parse_args()
    clock = time.perf_counter if arguments.clock == "wall" else time.process_time
    session = Recorder(OpenCL(ctypes.util.find_library("OpenCL")))
    count = arguments.mib << 18
    print(
        f"{'ms, and times as fast as recorded':34}"
        + "".join(f"{n} kernels".rjust(18) for n in arguments.steps)
    )
    for way in WAYS:
        rows: dict[str, list[str]] = {}
        for steps in arguments.steps:
            chain = Chain(session, steps, count, way)
            forms = {"recorded": chain.recorded(count)}
            forms |= {f"pieces of {size} KiB": chain.recorded(size << 8) for size in arguments.pieces}
            forms["one kernel"] = chain.as_one()
            best = measure(chain, forms, arguments.rounds, clock)
            for name, seconds in best.items():
                ratio = best["recorded"] / seconds
                rows.setdefault(name, []).append(f"{1000 * seconds:9.2f}{ratio:8.2f}x")
        for name, cells in rows.items():
            print(f"{way}, {name}".ljust(34) + "".join(cells))
    session.close()


if __name__ == "__main__":
    main()
