"""Tries whether tests notice small changes of the driver's code.

    python -m tests.mutate FILE[:LINE] ...      # files and folders below cl_driver/
    python -m tests.mutate --sample 500 --seed 1 cl_driver/passes
    python -m tests.mutate --list FILE          # the mutations, none tried

Each mutation is one change of one function (mutations.py), tried in a process of its own with tests that
reach the function (reach.py, worker.py). What no test notices is printed, as it is found and in the end: a
test is missing there, or the change makes no difference. --page writes the score and the survivors to a page,
such as tests/bench/results/mutation.md.

Exit status: 0 if each mutation was tried and noticed, 1 if some survived, 2 if nothing could be tried.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.conftest import MADE, ROOT

from . import page
from .mutations import Mutation, mutations
from .pool import Pool, Result, find_reach

# The tests that the mutations of a package are tried with. What they run must be in their own process.
TESTS = {
    "passes": (
        "tests/pure/passes", "tests/pure/codegen", "tests/pure/test_architecture.py", "tests/runtime/passes",
        "tests/runtime/codegen", "tests/runtime/images", "tests/runtime/test_explain.py",
    ),
    "spirv": ("tests/pure/spirv", "tests/pure/passes", "tests/pure/interp"),
    "interp": ("tests/pure/interp", "tests/pure/passes"),
}  # fmt: skip
TESTS["codegen"] = TESTS["passes"]
OTHER_TESTS = ("tests/pure", "tests/runtime")


def find(arguments: Iterable[str]) -> list[Mutation]:
    """The mutations of files, folders and FILE:LINEs. OSError if one is not there."""
    found = []
    for argument in arguments:
        name, _, line = argument.partition(":")
        top = (ROOT / name).resolve()
        files = sorted(top.rglob("*.py")) if top.is_dir() else [top]
        for file in files:
            path = file.relative_to(ROOT).as_posix()
            found += [m for m in mutations(path, file.read_text()) if not line or m.line == int(line)]
    return list(dict.fromkeys(found))


def sample(found: list[Mutation], size: int, seed: int) -> list[Mutation]:
    """So many, by chance but the same for the same seed; and in that order, so that those that a run of
    limited time comes to are a sample, too."""
    return random.Random(seed).sample(found, min(size, len(found)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="+", metavar="FILE[:LINE]")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    parser.add_argument("--sample", type=int, metavar="N", help="so many mutations, by chance")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the whole run's limit")
    parser.add_argument("--test-seconds", type=float, default=20.0, help="tests of one mutation take so long")
    parser.add_argument("--tests", nargs="+", metavar="FILE", help="with these tests, not the table's")
    parser.add_argument(
        "--reach", type=Path, metavar="FOLDER", help="notes of an earlier run's, below build/"
    )
    parser.add_argument("--page", type=Path, help="a page that the score is written to, between its marks")
    parser.add_argument("--list", action="store_true", help="list mutations only")
    return parser.parse_args()


def _key(tests: Iterable[str]) -> str:
    """Names a state of the package and of some tests."""
    digest = hashlib.sha256()
    for folder in ("cl_driver", *tests):
        top = ROOT / folder
        for file in sorted(top.rglob("*.py")) if top.is_dir() else [top]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _report(results: list[Result], untried: int) -> None:
    for line in page.table(results):
        print(line)
    if untried:
        print(f"{untried} mutations were not tried: time was up.")
    survivors = page.survivors(results)
    print(*(f"{what}: {mutation}" for what, mutation in survivors), sep="\n")


def main() -> int:
    """Returns the exit status."""
    start = time.monotonic()
    arguments = _arguments()
    found = find(arguments.what)
    chosen = sample(found, arguments.sample, arguments.seed) if arguments.sample else found
    if arguments.list or not chosen:
        print(*sorted(chosen, key=lambda m: (m.path, m.index)), sep="\n")
        return 0 if chosen else 2
    packages = sorted({Path(m.path).parts[1] for m in chosen})
    tests = arguments.tests or sorted({t for package in packages for t in TESTS.get(package, OTHER_TESTS)})
    folder = arguments.reach or MADE / "mutate" / _key(tests)
    reach = find_reach(folder, tests, arguments.jobs)
    print(f"{len(chosen)} of {len(found)} mutations, {len(reach.seconds)} tests", flush=True)
    folders = sorted({"/".join(Path(m.path).parts[:2]) for m in chosen})
    with Pool(arguments.jobs, folders, tests, reach, arguments.test_seconds) as pool:
        results = []
        for result in pool.run(chosen, start + arguments.seconds):
            results.append(result)
            if result.has_survived:
                print(f"[{len(results)}] {result.outcome}: {result.mutation}", flush=True)
    untried = len(chosen) - len(results)
    _report(results, untried)
    if arguments.page:
        command = " ".join(["python -m tests.mutate", *sys.argv[1:]])
        page.write(arguments.page, results, len(found), arguments.seed, command)
    return 1 if untried or any(result.has_survived for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
