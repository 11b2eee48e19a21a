"""The modules of tests/instructions on this driver and on another platform that takes SPIR-V, side by side.

    PEER_VENDORS=/path/to/vendors/ PEER_LIBRARIES=/path/to/lib python tests/peers/il.py
        [--types i32,f32] [--counts 1,4] [--modes varying] [--items 128] [--width 8] [--special]

PEER_VENDORS is the other platform's OCL_ICD_VENDORS, PEER_LIBRARIES its LD_LIBRARY_PATH. Prints each
instruction whose results differ, with what the interpreter says, and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from peers import WORK, environment

from tests.instructions import special_more, table
from tests.instructions.compare import differences

CLIENT = Path(__file__).with_name("il_client.py")


def write(folder: Path, kernels) -> None:
    """What the client needs."""
    jobs = []
    for number, kernel in enumerate(kernels):
        (folder / f"{number}.spv").write_bytes(kernel.module())
        (folder / f"{number}.in").write_bytes(kernel.input().tobytes())
        (folder / f"{number}.before").write_bytes(kernel.output().tobytes())
        jobs.append([number, kernel.items, kernel.local])
    (folder / "jobs.json").write_text(json.dumps(jobs))


def run(folder: Path, name: str, variables: dict) -> None:
    """All modules on one platform; a module that kills the client gets an error, and the next is tried."""
    first, count = 0, len(json.loads((folder / "jobs.json").read_text()))
    while first < count:
        command = [sys.executable, str(CLIENT), str(folder), name, str(first)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if not done.stdout.split():
            sys.exit(f"{name}: {done.stderr}")
        last = int(done.stdout.split()[-1])
        if done.returncode:
            (folder / f"{last}.{name}.error").write_text(f"died: {done.returncode}\n{done.stderr[-500:]}")
        first = last + 1


def result(folder: Path, number: int, name: str):
    """`out` of a module, or the error."""
    error = folder / f"{number}.{name}.error"
    if error.exists():
        return error.read_text().strip()
    return np.fromfile(folder / f"{number}.{name}", np.uint8)


def interpreter(kernel):
    """`out` as the interpreter leaves it, or None where it does not run."""
    from tests.instructions.run import interpreted

    try:
        return interpreted(kernel, kernel.module())
    except Exception as error:
        print(f"{kernel.name}: interpreter: {error}")
        return None


def compare(kernel, ours, theirs) -> int:
    """Prints what differs; how many instructions do."""
    for name, got in (("ours", ours), ("peer", theirs)):
        if isinstance(got, str):
            print(f"{kernel.name}: {name}: {got[:400]}")
            if name == "ours":
                return 1
            return 0
    found, wanted = 0, None
    for entry in kernel.results:
        a, b = (entry.of(data, kernel.items) for data in (ours, theirs))
        where = differences(a, b, entry.rule)
        if len(where):
            wanted = interpreter(kernel) if wanted is None else wanted
            item = where[0][0]
            third = "-" if wanted is None else entry.of(wanted, kernel.items)[item]
            print(
                f"{kernel.name} {entry.label}: {len(where)} differ, item {item}: ours {a[item]}, "
                f"peer {b[item]}, interpreter {third}"
            )
            found += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--types", default=",".join((*table.INTEGERS, *table.FLOATS)))
    parser.add_argument("--counts", default=",".join(map(str, table.COUNTS)))
    parser.add_argument("--modes", default="varying")
    parser.add_argument("--items", type=int, default=128)
    parser.add_argument("--width", type=int, default=1)
    parser.add_argument(
        "--special", nargs="?", const="", help="instead: the modules of special*.py (of that name)"
    )
    options = parser.parse_args()
    kernels = [kernel for kernel in special_more.kernels() if (options.special or "") in kernel.name]
    if options.special is None:
        kernels = [
            kernel
            for mode in options.modes.split(",")
            for scalar in filter(None, options.types.split(","))
            for count in map(int, options.counts.split(","))
            for kernel in table.kernels(scalar, count, options.items, mode)
        ]
    for kernel in kernels:
        if "UniformDecoration" not in kernel.capabilities:
            kernel.version = min(kernel.version, (1, 5))  # what peers take
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        folder = Path(folder)
        write(folder, kernels)
        run(folder, "ours", environment() | {"CL_DRIVER_WIDTH": str(options.width)})
        theirs = {"OCL_ICD_VENDORS": os.environ["PEER_VENDORS"]}
        run(folder, "peer", os.environ | theirs | {"LD_LIBRARY_PATH": os.environ.get("PEER_LIBRARIES", "")})
        found = sum(
            compare(kernel, *(result(folder, number, name) for name in ("ours", "peer")))
            for number, kernel in enumerate(kernels)
        )
    total = sum(len(kernel.results) for kernel in kernels)
    print(f"{len(kernels)} modules, {total} results, {found} differ")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
