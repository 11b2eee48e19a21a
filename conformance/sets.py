"""Which sub-tests of a CTS build are run, and how: the CTS's own csv lists and the sets of this folder.

A set is a TOML file:

    list = "opencl_conformance_tests_full.csv"     the rows to start from, in the CTS's test_conformance
    suites = ["basic", ...]                        narrows them to these suites; absent: all
    limit = 600                                    seconds a sub-test may take
    options = ["-w"]                               given to every program

    [suite.basic]                                  a suite is named by the folder of its program
    tests = ["*", "-image*"]                       patterns, in order; a minus takes out; absent: the row's
    options = []                                   instead of the set's
    arguments = [["single", "20%"], ...]           instead of the rows' own: each is a round of all sub-tests
    limit, about = 1200, 40                        seconds; `about` is a guess, until there are measured times
    pool = true                                    the program has threads of its own: as many as fit
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SETS = tuple(sorted(path.stem for path in HERE.glob("*.toml")))


@dataclass(frozen=True)
class Job:
    """One process: a sub-test, or a few that are run together, with its program and time limit in seconds."""

    suite: str
    test: str
    command: tuple
    limit: float
    about: float

    @property
    def key(self) -> str:
        return f"{self.suite}/{self.test}"


@dataclass
class Row:
    """A row of the CTS's list that the build has: the suite's name, its program and the row's arguments."""

    suite: str
    program: Path
    arguments: list


def source_of(build: Path) -> Path:
    """The CTS's source folder, as CMake noted it."""
    cache = (build / "CMakeCache.txt").read_text()
    return Path(re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.MULTILINE)[1])


def read_set(name: str) -> dict:
    """The set of this name, or in this file."""
    path = Path(name) if name.endswith(".toml") else HERE / f"{name}.toml"
    return tomllib.loads(path.read_text())


def read_list(build: Path, name: str) -> list[Row]:
    """The rows of a csv list for CPUs, of programs that the build has."""
    rows = []
    for line in (source_of(build) / "test_conformance" / name).read_text().splitlines():
        fields = [text.strip() for text in line.split(",")]
        if line.startswith("#") or len(fields) < 2:
            continue
        if fields[0].startswith("CL_DEVICE_TYPE") and fields.pop(0) != "CL_DEVICE_TYPE_CPU":
            continue
        program, *arguments = fields[1].split()
        path = build / "test_conformance" / program
        if path.exists():
            rows.append(Row(Path(program).parent.as_posix(), path, arguments))
    return rows


def conversion_names(text: str) -> dict[str, list[str]]:
    """test_conversions runs hundreds of conversions that --list doesn't name: its help says how to.

    {"destination_source": names of all rounding modes and saturations}: a process for each is neither too
    long nor too short. The help's grammar: destination, "_sat" (integers only), rounding mode, "_" source.
    """
    types = re.search(r"Possible format types are:\s*(.*?),?\s*\n", text)
    rounding = re.search(r"Possible rounding values are:\s*\(empty\),(.*?),?\s*\n", text)
    if not types or not rounding:
        return {"conversions": ["conversions"]}
    formats = [t.strip() for t in types[1].split(",") if t.strip()]
    modes = ["", *(m.strip() for m in rounding[1].split(",") if m.strip())]
    return {
        f"{to}_{of}": [
            f"{to}{sat}{mode}_{of}"
            for sat in ("", *(["_sat"] if to not in ("half", "float", "double") else []))
            for mode in modes
        ]
        for to in formats
        for of in formats
    }


def listed(program: Path, environment: dict) -> dict[str, list[str]]:
    """{sub-test: what stands for it on the command line}, by the program's --list."""

    def ask(option: str) -> str:
        done = subprocess.run(
            [program, option],
            env=environment,
            capture_output=True,
            timeout=120,
            cwd=program.parent,
            check=False,
        )
        return done.stdout.decode(errors="replace")

    names = [line.strip() for line in ask("--list").splitlines() if re.fullmatch(r"\s+[\w.+-]+", line)]
    if names == ["conversions"]:
        return conversion_names(ask("--help"))
    return {name: [name] for name in names}


def chosen(names: list[str], patterns: list[str]) -> list[str]:
    """The names that the patterns select: each adds what it matches, or with a minus takes it out."""
    kept: dict[str, None] = {}
    for pattern in patterns:
        for name in fnmatch.filter(names, pattern.removeprefix("-")):
            if pattern.startswith("-"):
                kept.pop(name, None)
            else:
                kept[name] = None
    return list(kept)


def wanted(suite: str, suites: list[str] | None) -> bool:
    """Whether a suite is asked for: by name, or by the first part of it."""
    return suites is None or suite in suites or suite.split("/")[0] in suites


def find_jobs(build: Path, plan: dict, threads: int, environment: dict) -> list[Job]:
    """The set's processes, in the order of the list. `threads`: how many a program may have of its own."""
    jobs: dict[str, Job] = {}
    rounds: set[str] = set()
    for row in read_list(build, plan["list"]):
        if not wanted(row.suite, plan.get("suites")):
            continue
        own = plan.get("suite", {}).get(row.suite, {})
        if "arguments" in own and row.suite in rounds:
            continue  # the set's rounds are instead of all rows of the program
        rounds.add(row.suite)
        names = listed(row.program, environment)
        common = own.get("options", plan.get("options", []))
        pool = ["-t", str(threads)] if own.get("pool") else []
        for arguments in own.get("arguments", [[a for a in row.arguments if a != "all"]]):
            patterns = [a for a in arguments if chosen(list(names), [a])]
            options = [a for a in arguments if a not in patterns]
            label = "-".join(a for a in options if not a.startswith("-"))
            options += [a for a in common if a not in options] + pool
            for name in chosen(list(names), own.get("tests", patterns or ["*"])):
                job = Job(
                    row.suite,
                    f"{label}/{name}" if label else name,
                    (str(row.program), *options, *names[name]),
                    own.get("limit", plan["limit"]),
                    own.get("about", 2),
                )
                jobs.setdefault(job.key, job)
    return list(jobs.values())
