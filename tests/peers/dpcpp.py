"""The SPIR-V modules in dpnp, made by DPC++: python tests/peers/dpcpp.py [--count N] [--seed N] [--objects]

Fetches dpnp's package from PyPI, takes the modules out of its libraries (some 17,000, one per kernel) and
compiles a random choice up to LLVM IR, with --objects to object code. Exits with 1 if one fails.
"""

from __future__ import annotations

import argparse
import random
import re
import struct
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

from peers import ROOT, WORK

sys.path.insert(0, str(ROOT))

from cl_driver.compiler import pipeline
from cl_driver.compiler.source import Context
from cl_driver.device.target import host_target
from cl_driver.spirv.enums import Op
from cl_driver.spirv.tables import ROWS

MAGIC = b"\x03\x02\x23\x07"
HEADER = 20  # bytes


def modules(library: bytes):
    """Every SPIR-V module in a library's data."""
    at = -1
    while (at := library.find(MAGIC, at + 1)) >= 0:
        if library[at + 4] or library[at + 6] != 1 or library[at + 7]:
            continue  # no version
        place = end = at + HEADER
        while place + 4 <= len(library):
            opcode, count = struct.unpack_from("<HH", library, place)
            if not count or opcode not in ROWS:
                break
            place += 4 * count
            if opcode == Op.FunctionEnd:
                end = place
        if end > at + HEADER:
            yield library[at:end]


def fetch() -> list[Path]:
    """The modules as files, extracted once."""
    folder = WORK / "dpcpp"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), "dpnp"]
        subprocess.run(command, check=True)
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                found = {
                    m: None
                    for name in archive.namelist()
                    if ".so" in name
                    for m in modules(archive.read(name))
                }
            for number, module in enumerate(found):
                (folder / f"{number:05}.spv").write_bytes(module)
        (folder / "done").touch()
    return sorted(folder.glob("*.spv"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--width", type=int, default=1)
    parser.add_argument("--objects", action="store_true")
    arguments = parser.parse_args()
    files = fetch()
    random.Random(arguments.seed).shuffle(files)
    files = files[: arguments.count]
    context = Context(host_target("", arguments.width), "", {})
    failures: Counter = Counter()
    for file in files:
        try:
            program = pipeline.prepare(file.read_bytes(), context)
            for name in program.names:
                if arguments.objects:
                    pipeline.kernel(program, name)
                else:
                    pipeline.entry(program, name)
        except Exception as error:
            why = re.sub(r"kernel '?\S+:", "", str(error)).strip()[:100]
            failures[re.sub(r"\d+", "N", why)] += 1
            print(f"{file.name}: {type(error).__name__}: {str(error).strip()[:300]}")
    for why, count in failures.most_common():
        print(count, why)
    print(f"{len(files) - failures.total()} of {len(files)} modules compiled")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
