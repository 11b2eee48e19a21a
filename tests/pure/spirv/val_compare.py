"""Compares our verdicts with those of spirv-val (Debian's spirv-tools) on mutated modules.

    python -m tests.pure.spirv.val_compare --count 20000 [--first 0] [--save FOLDER] [--version 1.6]

counts the messages of either side where the other one accepts the module, with a seed for each. Modules are
of SPIR-V 1.2, the last for which spirv-val knows OpenCL's rules, or of another version: universal rules.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate

from .corpus import modules
from .mutations import case

ENVIRONMENT = "opencl2.2"  # with SPIR-V 1.2


def theirs(data: bytes, environment: str = ENVIRONMENT) -> str:
    """What spirv-val says of a module; "" if it accepts it."""
    command = ("spirv-val", "--target-env", environment, "-")
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    if done.returncode == 0:
        return ""
    text = (done.stdout + done.stderr).decode("latin-1").strip()
    return text.splitlines()[0] if text else f"ended with {done.returncode}"


def ours(data: bytes) -> str:
    """What our reader and validator say of it."""
    try:
        validate.validate(reader.read(data), everything=True)
    except SpirvError as error:
        return str(error)
    return ""


def general(message: str) -> str:
    """A message without the names and numbers that differ from module to module."""
    message = re.sub(r"'[^']*'", "'...'", message)
    return re.sub(r"\d+(\[%[^\]]*\])?", "N", message)[:150]


def corpus(version: str = "1.2", environment: str = ENVIRONMENT) -> list[bytes]:
    """The modules that both sides accept."""
    made = modules(target=f"spirv64v{version}")
    return [data for data in made if not theirs(data, environment) and not ours(data)]


def compare(seeds, base: list[bytes], environment: str = ENVIRONMENT) -> tuple[dict, dict, int]:
    """(laxer, stricter, same): {message of the side that refuses: seeds}, and how many verdicts agree."""
    laxer, stricter, same = defaultdict(list), defaultdict(list), 0
    with ThreadPoolExecutor(2) as pool:
        cases = ((seed, case(seed, base)) for seed in seeds)
        for seed, data, their in pool.map(lambda c: (*c, theirs(c[1], environment)), cases):
            our = ours(data)
            if bool(our) == bool(their):
                same += 1
            else:
                (laxer if their else stricter)[general(their or our)].append(seed)
    return laxer, stricter, same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--save", type=Path, help="a folder for one module of each difference")
    parser.add_argument("--version", default="1.2", help="of SPIR-V")
    args = parser.parse_args()
    environment = ENVIRONMENT if args.version == "1.2" else f"spv{args.version}"
    base = corpus(args.version, environment)
    print(f"{len(base)} modules in the corpus", flush=True)
    laxer, stricter, same = compare(range(args.first, args.first + args.count), base, environment)
    for title, found in (("we accept, spirv-val refuses", laxer), ("we refuse, spirv-val accepts", stricter)):
        print(f"\n{title}: {sum(map(len, found.values()))}")
        for message, seeds in sorted(found.items(), key=lambda item: -len(item[1])):
            print(f"{len(seeds):5}  {message}   (seed {seeds[0]})")
            if args.save:
                args.save.mkdir(parents=True, exist_ok=True)
                (args.save / f"{seeds[0]}.spv").write_bytes(case(seeds[0], base))
    print(f"\n{same} verdicts agree")
    return bool(stricter)


if __name__ == "__main__":
    sys.exit(main())
