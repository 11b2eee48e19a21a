"""Races of GPUVerify's test-suite in the check mode: python tests/peers/check_gpuverify.py FOLDER

FOLDER is a clone of github.com/mc-imperial/gpuverify. Of testsuite/OpenCL the kernels are taken, in the order
of the SHA-256 of their paths there, that have one kernel, no images, none of GPUVerify's own functions, no
flags that change its rules, that compile, and of which it does not tell of null pointers or bounds of arrays:
the first --count that it calls wrong and the first --count that it calls right. Each runs with the groups
that its file names, or with up to four where these have many work-items, and with several sets of arguments.
GPUVerify proves for all arguments, so a race may need others than these; both checkers have the same ones.

Prints a table: found, missed, false alarms, times, beside Debian's oclgrind. Exits with 1 where oclgrind
finds a race that is missed here, or where there is a false alarm.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

import check_runs
import numpy as np
from check_runs import Argument, Outcome

MOST_GROUPS = 4
MOST_ITEMS = 8192  # of a launch that has all of its groups
BUFFER_BYTES = 1 << 21
LOCAL_BYTES = 8192
_OWN_WORDS = re.compile(
    r"\b__(?!kernel|global|local|constant|private|attribute|read_only|write_only|restrict|const\b|OPENCL)\w+\s*\("
)
_NO_RACE = re.compile(r"array|null", re.IGNORECASE)
# Flags that say how it is launched, or how it is proven.
_PLAIN_FLAGS = re.compile(
    r"(//)?--(local_size|num_groups|global_size|blockDim|gridDim|no-inline|equality-abstraction|no-infer|"
    r"infer-info|k-induction-depth|clang-opt|check-array-bounds)(=\S*)?$"
)
_SCALARS = {
    "char": 1,
    "uchar": 1,
    "bool": 1,
    "short": 2,
    "ushort": 2,
    "half": 2,
    "int": 4,
    "uint": 4,
    "float": 4,
}
_LONG = {"long", "ulong", "double", "size_t", "ptrdiff_t", "uintptr_t", "intptr_t"}
# Contents of buffers, as 32-bit integers, and the value of scalars.
SETS = (("zeros", 1), ("count", 64), ("small", 5), ("count", 0))
# What GPUVerify calls right, and is a race by the rules of OpenCL: why.
RACES_AFTER_ALL = {
    "inter_group_and_barrier_flag_tests/pass/read_then_write": "the barrier's flags are not the same in all "
    "work-items, and those of the one that reads after it have no fence",
}


class Case(NamedTuple):
    """A kernel of the suite."""

    name: str
    path: Path
    is_wrong: bool
    sizes: tuple[list[int], list[int]]
    arguments: list[Argument]
    kernel: str
    options: str


def _numbers(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"\d+", text)]


def sizes(flags: str) -> tuple[list[int], list[int]] | None:
    """Global and local sizes by the flags of a file, in few groups."""
    local = re.search(r"--(?:local_size|blockDim)=(\S+)", flags)
    if not local:
        return None
    group = _numbers(local[1])
    found = re.search(r"--(?:num_groups|gridDim)=(\S+)", flags)
    total = re.search(r"--global_size=(\S+)", flags)
    if found:
        groups = _numbers(found[1])
    elif total:
        groups = [-(-number // size) for number, size in zip(_numbers(total[1]), group, strict=False)]
    else:
        return None
    if len(groups) != len(group):
        return None
    room = MOST_GROUPS
    is_small = math.prod(groups) * math.prod(group) <= MOST_ITEMS
    for i, count in enumerate(groups if not is_small else ()):
        groups[i] = max(1, min(count, room if i == len(groups) - 1 else max(2, room // 2)))
        room = max(1, room // groups[i])
    return [count * size for count, size in zip(groups, group, strict=True)], group


def case(root: Path, path: Path, host: Path) -> Case | None:
    text = path.read_text(errors="replace")
    lines = text.splitlines()
    is_wrong = lines[0].strip() == "//xfail:NOT_ALL_VERIFIED"
    if not (is_wrong or lines[0].strip().lower() == "//pass") or _OWN_WORDS.search(re.sub(r"//.*", "", text)):
        return None
    if not all(_PLAIN_FLAGS.match(flag) for flag in lines[1].split()):
        return None
    found = sizes(lines[1])
    if not found or np.prod(found[1]) > 4096 or "image" in text:
        return None
    told = " ".join(line[2:] for line in lines[2:12] if line.startswith("//"))
    if _NO_RACE.search(told) or "null_pointers" in str(path):
        return None
    options = (
        " ".join(re.findall(r"--clang-opt=(-D\S+)|(?<=\s)(-D\S+)", lines[1])[0]) if "-D" in lines[1] else ""
    )
    kernels = check_runs.signatures(host, path, options)
    if isinstance(kernels, str) or len(kernels) != 1:
        return None
    kernel, arguments = next(iter(kernels.items()))
    name = str(path.parent.relative_to(root))
    return Case(name, path, is_wrong, found, arguments, kernel, options)


def content(kind: str, size: int) -> bytes:
    count = size // 4
    if kind == "zeros":
        return bytes(size)
    if kind == "count":
        return (np.arange(count, dtype=np.int32) % 64).tobytes()
    return np.random.default_rng(1).integers(0, 8, count, np.int32).tobytes()


def value(type_name: str, number: int) -> bytes:
    """The bytes of a scalar or vector."""
    found = re.fullmatch(r"(unsigned )?([a-z_]+?)(2|3|4|8|16)?", type_name)
    scalar, width = (found[2], int(found[3] or 1)) if found else ("int", 1)
    width = 4 if width == 3 else width
    if scalar == "float":
        one = np.float32(number).tobytes()
    elif scalar == "double":
        one = np.float64(number).tobytes()
    else:
        one = number.to_bytes(8 if scalar in _LONG else _SCALARS.get(scalar, 4), "little")
    return one * width


def arguments_of(found: Case, kind: str, number: int) -> list[str]:
    lines = []
    for i, argument in enumerate(found.arguments):
        if argument.space == "local":
            lines.append(f"local {LOCAL_BYTES}")
        elif argument.space == "private":
            data = value(argument.type, number)
            lines.append(f"value {len(data)} {check_runs.file_of(f'value{i}', data)}")
        else:
            file = check_runs.file_of(f"buffer-{kind}", content(kind, BUFFER_BYTES))
            lines.append(f"buffer 1 {BUFFER_BYTES} {file}")
    return lines


def check(host: Path, checker: str, found: Case) -> tuple[set[str], list[Outcome]]:
    """The kinds of what is found with any of the sets of arguments."""
    outcomes = []
    for kind, number in SETS:
        given = arguments_of(found, kind, number)
        job = check_runs.job(found.path, found.options, found.kernel, found.sizes, given)
        outcomes.append(check_runs.run(host, checker, job))
        if not found.arguments:
            break
    return set().union(*(outcome.kinds() for outcome in outcomes)), outcomes


def choose(folder: Path, host: Path, count: int, pattern: str) -> list[Case]:
    root = folder.resolve() / "testsuite" / "OpenCL"
    paths = sorted(
        root.rglob("kernel.cl"),
        key=lambda path: hashlib.sha256(str(path.relative_to(root)).encode()).digest(),
    )
    chosen: dict[bool, list[Case]] = {True: [], False: []}
    for path in paths:
        if min(map(len, chosen.values())) >= count:
            break
        found = case(root, path, host) if re.search(pattern, str(path)) else None
        if found and len(chosen[found.is_wrong]) < count:
            chosen[found.is_wrong].append(found)
    return chosen[True] + chosen[False]


_DEFECTS = {"race", "divergence", "wait"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--filter", default="")
    parser.add_argument("--checkers", default="oclgrind,ours")
    arguments = parser.parse_args()
    host = check_runs.prepare()
    checkers = arguments.checkers.split(",")
    totals = {checker: {"found": 0, "missed": 0, "false alarm": 0, "silent": 0} for checker in checkers}
    seconds = dict.fromkeys(checkers, 0.0)
    is_bad = False
    for found in choose(arguments.folder, host, arguments.count, arguments.filter):
        is_race = found.is_wrong or found.name in RACES_AFTER_ALL
        words, results = [], {}
        for checker in checkers:
            kinds, outcomes = check(host, checker, found)
            results[checker] = bool(kinds & _DEFECTS)
            seconds[checker] += sum(outcome.milliseconds for outcome in outcomes) / 1000
            what = (
                ("found" if is_race else "false alarm")
                if results[checker]
                else "missed"
                if is_race
                else "silent"
            )
            totals[checker][what] += 1
            lines = sorted({line for o in outcomes for kind in _DEFECTS for line in o.lines(kind)})
            codes = sorted({outcome.status for outcome in outcomes} - {0})
            words.append(
                f"{checker}: {what:11} {','.join(sorted(kinds)) or '-'} {lines or ''} {codes or ''}".ljust(46)
            )
        if results.get("ours") is not None:
            is_bad |= results["ours"] and not is_race
            is_bad |= is_race and not results["ours"] and results.get("oclgrind", False)
        print(f"{'wrong' if found.is_wrong else 'right'} {found.name:52} {' | '.join(words)}", flush=True)
    for checker in checkers:
        counts = ", ".join(f"{number} {what}" for what, number in totals[checker].items())
        print(f"{checker}: {counts}; launches took {seconds[checker]:.2f} s")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
