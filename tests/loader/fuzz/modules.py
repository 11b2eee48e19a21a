"""Mutated modules through clCreateProgramWithIL and clBuildProgram of the driver of this tree.

    python -m tests.loader.fuzz.modules --count 20000 [--first 0]

A defect is a build of more than 5 s (of an idle machine), an error that no specification names, an internal
error or a death of a compiler process, or a refusal without a log. Each is printed with its seed; `python -m
tests.pure.spirv.mutations --only SEED` repeats it in one process.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import sys
import time
from collections import Counter

from cl_driver.api.generated import enums as cl
from tests.conftest import ROOT
from tests.pure.spirv.corpus import modules
from tests.pure.spirv.mutations import case

SECONDS = 5
INTERNAL = re.compile(
    r"internal error|compiler process|died|killed|Traceback|LLVM|timed? ?out", re.IGNORECASE
)
REFUSED_AT_CREATION = (cl.CL_INVALID_VALUE, cl.CL_INVALID_BINARY)


def try_one(opencl, context: int, data: bytes) -> tuple[str, str]:
    """(outcome, what is wrong about it or "")."""
    start = time.perf_counter()
    program, status = opencl.call("clCreateProgramWithIL", context, data, len(data))
    if status != cl.CL_SUCCESS:
        return "not created", "" if status in REFUSED_AT_CREATION else f"clCreateProgramWithIL: {status}"
    status = opencl.call("clBuildProgram", program, 0, None, None, None, None)
    seconds = time.perf_counter() - start
    log = opencl.build_log(program)
    opencl.ok("clReleaseProgram", program)
    wrong = ""
    if seconds > SECONDS * max(1, os.getloadavg()[0] / (os.cpu_count() or 1)):
        wrong = f"{seconds:.1f} s"
    elif status not in (cl.CL_SUCCESS, cl.CL_BUILD_PROGRAM_FAILURE):
        wrong = f"clBuildProgram: {status}"
    elif INTERNAL.search(log):
        wrong = log.strip()[-300:]
    elif status != cl.CL_SUCCESS and not log.strip():
        wrong = "a refusal without a log"
    return ("built" if status == cl.CL_SUCCESS else "refused"), wrong


def run(opencl, seeds) -> tuple[Counter, list[str]]:
    """Outcomes, and the defects as lines."""
    corpus, context = modules(), opencl.context()
    outcomes: Counter = Counter()
    defects = []
    for seed in seeds:
        outcome, wrong = try_one(opencl, context, case(seed, corpus))
        outcomes[outcome] += 1
        if wrong:
            defects.append(f"seed {seed}: {wrong}")
            print(defects[-1], flush=True)
    opencl.ok("clReleaseContext", context)
    return outcomes, defects


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--step", type=int, default=100, help="modules after which it says how far it is")
    args = parser.parse_args()
    os.environ["OCL_ICD_VENDORS"] = f"{ROOT / 'build' / 'vendors'}/"
    os.environ["CL_DRIVER_CACHE_SIZE"] = "0"
    from tests.loader.opencl import OpenCL

    opencl, total, failed, start = OpenCL("libOpenCL.so.1"), Counter(), 0, time.perf_counter()
    for first in range(args.first, args.first + args.count, args.step):
        last = min(first + args.step, args.first + args.count)
        outcomes, defects = run(opencl, range(first, last))
        total += outcomes
        failed += len(defects)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(
            f"{last - args.first} of {args.count} modules, {time.perf_counter() - start:.0f} s, "
            f"host {peak} MiB, {failed} defects: "
            + ", ".join(f"{what} {count}" for what, count in total.items()),
            flush=True,
        )
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
