"""Kernels on this driver, Intel's runtime and PoCL in one run: a table and a plot in build/bench/.

python -m tests.bench.throughput [--intel LIBDIR] [--pocl] [--filter REGEX] [--width 1,8,16] [--rounds N]

For each benchmark one process per platform is started and checks the result against numpy; then the platforms
take turns, and the best time of all rounds counts. A process that crashes, hangs or computes something else
fails that benchmark for that platform alone. After all that, each platform builds and first launches all
kernels in one process with an empty cache, and once more in a new process with what the first left there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import select
import statistics
import subprocess
import sys
import tempfile
from math import inf
from pathlib import Path

import numpy as np

from cl_driver.accuracy.report import put_between
from tests.bench import platforms, report
from tests.bench.cases import BENCHMARKS
from tests.bench.model import Case

ROOT = platforms.ROOT
CLOCKS = {"wall": "best", "cpu": "cpu"}
LOAD_TIMEOUT = 120.0  # seconds; a build and a first launch


class Child:
    """A process of child.py on one platform. After a crash or hang every answer is that error."""

    def __init__(self, additions: dict[str, str], log: Path):
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("OCL_ICD_", "OPENCL_", "CL_DRIVER_"))
        }
        environment = {**kept, "OPENBLAS_NUM_THREADS": "1", **additions}
        self.log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.bench.child"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self.error: str | None = None

    def ask(self, line: str, timeout: float) -> dict:
        """The answer to a line. {"error": ...} if there is none within `timeout` seconds."""
        if self.error:
            return {"error": self.error}
        try:
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            return self._died()
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            self.process.kill()
            self.process.wait()
            self.error = f"no answer in {timeout:.0f} s"
            return {"error": self.error}
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer.endswith(b"\n") else self._died()

    def _died(self) -> dict:
        status = self.process.wait()
        tail = self.log.read_text(errors="replace").strip().splitlines()[-1:]
        self.error = f"died: {status} {' '.join(tail)}".strip()
        return {"error": self.error}

    def close(self) -> None:
        """Ends the process."""
        with contextlib.suppress(BrokenPipeError):  # of a line that it did not take
            self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def with_widths(found: dict, widths: list[str]) -> dict:
    """The platforms, with this driver once for each width that was asked for ("" is the default)."""
    ours = found.pop(platforms.OURS, None)
    if ours is None:
        return found
    columns = {
        f"{platforms.OURS} W={width}" if width else platforms.OURS: ours
        | ({"CL_DRIVER_WIDTH": width} if width else {})
        for width in widths
    }
    return columns | found


def with_cache(additions: dict[str, str], folder: Path) -> dict[str, str]:
    """The environment with the compile caches of the drivers that have one in a folder."""
    return additions | {"CL_DRIVER_CACHE_DIR": str(folder / "ours"), "POCL_CACHE_DIR": str(folder / "pocl")}


def build_all(found: dict, names: list[str], work: Path, rounds: int) -> dict:
    """{platform: {"cold": {benchmark: answer of load}, "warm": ...}}, the best time of each of all rounds."""
    results: dict = {platform: {"cold": {}, "warm": {}} for platform in found}
    for number in range(rounds):
        for platform, additions in found.items():
            environment = with_cache(additions, work / f"cache-{number}-{platform}".replace(" ", "-"))
            for kind in ("cold", "warm"):
                child = Child(environment, work / "log")
                for name in names:
                    answer = child.ask(f"load {name}", LOAD_TIMEOUT)
                    if child.error:
                        child.close()
                        child = Child(environment, work / "log")
                    before = results[platform][kind].get(name, answer)
                    results[platform][kind][name] = {
                        key: min(value, before[key]) if isinstance(value, float) and key in before else value
                        for key, value in answer.items()
                    }
                child.close()
    return results


def time_one(name: str, case: Case, found: dict, work: Path, rounds: int, seconds: float) -> dict:
    """{platform: {"best", "median", "cpu", "build", "first": ms, "runs", "error", or "skipped"}}.

    cpu: the least time of all threads together in a run, which other load on the machine changes little.
    """
    path = work / "expected.npz"
    children = {
        platform: Child(with_cache(additions, work / "cache"), work / f"{platform}.log".replace(" ", "-"))
        for platform, additions in found.items()
    }
    np.savez(path, **case.expected())
    results = {
        platform: child.ask(f"load {name} {path}", LOAD_TIMEOUT) for platform, child in children.items()
    }
    going = [p for p, result in results.items() if not result.get("error") and "skipped" not in result]
    times: dict[str, list[float]] = {platform: [] for platform in going}
    for _ in range(rounds):
        for platform in going:
            answer = children[platform].ask(f"time {seconds / rounds}", seconds + LOAD_TIMEOUT)
            times[platform] += answer.get("times", [])
            results[platform]["cpu"] = min(answer.get("cpu", inf), results[platform].get("cpu", inf))
            results[platform]["error"] = results[platform].get("error") or answer.get("error")
    for platform in going:
        answer = children[platform].ask("check", LOAD_TIMEOUT)
        results[platform]["error"] = results[platform].get("error") or answer.get("error")
        if times[platform]:
            results[platform] |= {
                "best": min(times[platform]),
                "median": statistics.median(times[platform]),
                "runs": len(times[platform]),
            }
    for child in children.values():
        child.close()
    path.unlink()
    return results


def write(results: dict, folder: Path) -> None:
    """Figures and table."""
    (folder / "throughput.json").write_text(json.dumps(results, indent=1))
    (folder / "throughput.md").write_text(report.markdown(results))


def matches(wanted: str, *names: str) -> bool:
    """Whether a regular expression is found in one of the names. SystemExit if it is none."""
    try:
        return any(re.search(wanted, name) for name in names)
    except re.error as error:
        sys.exit(f"--filter: {wanted!r} is no regular expression: {error}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    platforms.add_options(parser)
    parser.add_argument("--filter", default="", help="regular expression of names or topics of benchmarks")
    parser.add_argument("--platforms", default="", help="only these, of cl_driver,intel,pocl")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each platform")
    parser.add_argument("--seconds", type=float, default=0.6, help="time for each kernel and platform")
    parser.add_argument("--avx2", action="store_true", help="what can be held to AVX2, and held to it")
    parser.add_argument("--width", default="", help="values of CL_DRIVER_WIDTH, a column each: 1,8,16")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: of all threads, on a busy machine"
    )
    parser.add_argument("--no-build", action="store_true", help="leave out the times of building all kernels")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench", help="folder of the report")
    parser.add_argument(
        "--readme", type=Path, metavar="FILE", help="put the table between its marks there, too"
    )
    arguments = parser.parse_args()
    names = [name for name, b in BENCHMARKS.items() if matches(arguments.filter, name, b.topic)]
    if not names:
        topics = ", ".join(sorted({b.topic for b in BENCHMARKS.values()}))
        sys.exit(f"--filter: no benchmark is called like {arguments.filter!r}, nor is a topic ({topics})")
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        found = platforms.find(arguments, work)
        if arguments.platforms:
            found = {name: found[name] for name in arguments.platforms.split(",")}
        if arguments.avx2:
            can = {name: found[name] for name in found if name in platforms.LEVELS["avx2"]}
            found = platforms.held(can, "avx2")
        found = with_widths(found, arguments.width.split(","))
        results = {
            "platforms": list(found),
            "clock": CLOCKS[arguments.clock],
            "built": {},
            "counts": {},
            "timed": {},
        }
        for name in names:
            case = BENCHMARKS[name].case()
            results["counts"][name] = {"bytes": case.bytes, "flops": case.flops}
            results["timed"][name] = time_one(name, case, found, work, arguments.rounds, arguments.seconds)
            print(report.line(name, results), file=sys.stderr, flush=True)
            write(results, arguments.output)  # what is there, should the rest be interrupted
        if not arguments.no_build:
            results["built"] = build_all(found, names, work, min(arguments.rounds, 2))
            write(results, arguments.output)
    report.plot(results, arguments.output / "throughput.png")
    text = (arguments.output / "throughput.md").read_text()
    if arguments.readme:
        put_between(arguments.readme, "throughput", text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
