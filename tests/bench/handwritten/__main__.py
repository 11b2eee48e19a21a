"""Hand-written kernels beside this driver's in one process, on the same buffers, in turns: a table.

python -m tests.bench.handwritten [NAMES...] [--rounds N] [--seconds S]

The C is compiled for this CPU by the clang that the driver uses, with all of its optimisations. Both results
are compared with numpy's, before and after the time is taken. Ends with 1 if one of them is wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
os.environ.setdefault("OCL_ICD_VENDORS", f"{ROOT / 'build' / 'vendors'}/")

from cl_driver.api.generated import enums as cl  # noqa: E402
from cl_driver.frontend import find_clang  # noqa: E402
from tests.bench.cases import BENCHMARKS  # noqa: E402
from tests.bench.child import Device, Loaded, milliseconds  # noqa: E402
from tests.bench.model import Local  # noqa: E402

NAMES = "triad black_scholes mandelbrot matmul_tiled nbody reduce_tree stencil5 sha256 blur_bytes".split()
FLAGS = ["-std=c11", "-O3", "-march=native", "-mprefer-vector-width=512", "-fPIC", "-shared", "-pthread"]
FLAGS += ["-Wall", "-Wextra", "-Werror", "-Wno-psabi"]


def library() -> ctypes.CDLL:
    """The C, compiled."""
    path = ROOT / "build" / "bench" / "handwritten.so"
    path.parent.mkdir(parents=True, exist_ok=True)
    sources = sorted(HERE.glob("*.c"))
    subprocess.run([find_clang.find("").path, *FLAGS, "-o", path, *sources], check=True)
    return ctypes.CDLL(str(path))


def runner(function, loaded: Loaded):
    """A function that calls hand-written code for the launch of a loaded benchmark, on its buffers."""
    launch, device = loaded.case.launches[0], loaded.device
    values = []
    for argument in launch.arguments:
        if isinstance(argument, Local):
            values.append(ctypes.c_uint64(argument.size))
        elif isinstance(argument, str):
            flags, size = cl.CL_MAP_READ | cl.CL_MAP_WRITE, loaded.case.memory[argument].nbytes
            buffer = loaded.memory[argument]
            queue = device.queue
            address = device.make("clEnqueueMapBuffer", queue, buffer, 1, flags, 0, size, 0, None, None)
            # This driver's buffers stay where they are.
            device.ok("clEnqueueUnmapMemObject", queue, buffer, address, 0, None, None)
            values.append(ctypes.c_uint64(address))
        else:
            values.append(ctypes.create_string_buffer(argument.tobytes()))
    addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    sizes = (ctypes.c_size_t * 3)(*launch.global_size)
    function.restype = None

    def run():
        function(addresses, sizes)

    run.values = values  # what the addresses are of
    return run


def take_time(run, seconds: float) -> float:
    """The best time of a run in ms."""
    time.sleep(0.02)  # the threads of what ran before fall asleep
    run()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        times.append(milliseconds(run)[1])
    return min(times)


def compare(name: str, device: Device, by_hand: ctypes.CDLL, rounds: int, seconds: float) -> tuple:
    """(ms of the driver, ms of hand-written code, what is wrong or "")"""
    benchmark = BENCHMARKS[name]
    case = benchmark.case()
    expected, loaded = case.expected(), Loaded(device, benchmark, case)
    runs = [loaded.runner(), runner(getattr(by_hand, name), loaded)]
    best = [float("inf")] * 2
    wrong = []

    def check():
        for who, run in zip(("driver", "hand"), runs, strict=True):
            loaded.write()
            run()
            if error := loaded.compare(expected):
                wrong.append(f"{who}: {error}")

    check()
    for _ in range(rounds):
        best = [min(before, take_time(run, seconds)) for before, run in zip(best, runs, strict=True)]
    check()
    loaded.release()
    return *best, "; ".join(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, help=f"of {' '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each")
    parser.add_argument("--seconds", type=float, default=0.1, help="time for each turn")
    arguments = parser.parse_args()
    device, by_hand = Device(), library()
    print("| kernel | cl_driver ms | hand-written ms | speed of hand-written |\n| --- | --- | --- | --- |")
    failed = False
    for name in arguments.names:
        ours, hand, wrong = compare(name, device, by_hand, arguments.rounds, arguments.seconds)
        print(f"| {name} | {ours:.3f} | {hand:.3f} | {hand / ours:.2f} | {wrong}", flush=True)
        failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
