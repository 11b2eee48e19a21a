"""Public OpenCL programs on this driver and its peers: python -m tests.zoo --help, and README.md"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
from pathlib import Path

from cl_driver.device.target import Target, host_target
from tests.bench import platforms
from tests.zoo import estimates, fetch, measure, repeat, report, statistics, table

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cl_driver_zoo"
_OUT = platforms.ROOT / "build" / "zoo"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.zoo", description=__doc__)
    parser.add_argument("--folder", type=Path, default=_CACHE, help="where sources are (%(default)s)")
    parser.add_argument("--table", type=Path, action="append", default=[], help="a further table of sources")
    parser.add_argument("--out", type=Path, default=_OUT, help="results (%(default)s)")
    parser.add_argument("--source", default="*", help="names of sources, a pattern")
    parser.add_argument("--program", default="*", help="names of programs, a pattern")
    parser.add_argument("--kernel", default="*", help="names of kernels, a pattern")
    parser.add_argument("--one-of", type=int, default=1, help="one program of so many, chosen by hash")
    parser.add_argument("--fetch", action="store_true", help="only bring the sources")
    parser.add_argument("--list", action="store_true", help="only list the programs that are there")
    parser.add_argument("--report", action="store_true", help="only write the page of results that are there")
    parser.add_argument(
        "--estimate", action="store_true", help="only estimate what results that are there took"
    )
    parser.add_argument("--again", action="store_true", help="also measure what has results")
    parser.add_argument(
        "--repeat",
        type=float,
        metavar="RATIO",
        help="only time kernels below it again, in results that are there",
    )
    parser.add_argument("--avx2", action="store_true", help="hold all drivers to AVX2")
    parser.add_argument("--rounds", type=int, default=3, help="of steady times; 0: none (%(default)s)")
    platforms.add_options(parser)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report:
        failed = _measure(options)
        if options.fetch or options.list:
            return failed
    report.write(options.out)
    return 0


def _measure(options: argparse.Namespace) -> int:
    missing = 0
    found = platforms.find(options, options.out)
    if options.avx2:
        found = platforms.held(found, "avx2")
    log = options.out / "found.txt"

    def tell(text: str) -> None:
        with log.open("a") as file:
            file.write(text.rstrip() + "\n\n")
        print(text.splitlines()[0], flush=True)

    target = host_target(found[platforms.OURS].get("CL_DRIVER_CPU", os.environ.get("CL_DRIVER_CPU", "")))
    zoo = measure.Zoo(found, options.out / "work", tell, options.rounds)
    tables = [table.HERE / "sources.toml", *options.table]
    for source in [source for path in tables for source in table.read(path)]:
        if not fnmatch.fnmatch(source.name, options.source):
            continue
        try:
            folder = fetch.fetch(source, options.folder)
        except fetch.Missing as why:
            print(f"{source.name}: {why}", file=sys.stderr)
            missing += 1
            continue
        if options.fetch:
            continue
        for program in table.programs(source, folder):
            if (
                not fnmatch.fnmatch(program.name, options.program)
                or table.hashed(program.title) % options.one_of
            ):
                continue
            if options.list:
                print(program.title, program.options)
                continue
            path = options.out / "results" / source.name / (program.name.replace("/", "__") + ".json")
            if options.estimate:
                _estimate(program, path, target)
                continue
            if options.repeat is not None:
                _repeat(zoo, program, path, options.repeat)
                continue
            if path.exists() and not options.again:
                continue
            result = zoo.program(program, lambda name: fnmatch.fnmatch(name, options.kernel))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"source": source.name, "program": program.name, **result}, indent=1))
            _estimate(program, path, target)
            _say(program, result)
    return 1 if missing else 0


def _repeat(zoo: measure.Zoo, program: table.Program, path: Path, below: float) -> None:
    """Writes further rounds of a program's slow kernels into its results."""
    if not path.exists():
        return
    result = json.loads(path.read_text())
    before = _ratios(result)
    for name in repeat.repeat(result, below, lambda wanted: zoo.program(program, wanted)):
        print(f"{program.title} {name}: {before[name]:.2f}, now {_ratios(result)[name]:.2f}", flush=True)
    path.write_text(json.dumps(result, indent=1))


def _ratios(result: dict) -> dict[str, float]:
    found = {
        name: statistics.ratio(name, kernel.get("steady", {}), False)
        for name, kernel in result["kernels"].items()
    }
    return {name: ratio.value for name, ratio in found.items() if ratio}


def _estimate(program: table.Program, path: Path, target: Target) -> None:
    """Writes the estimates of a program into its results."""
    if path.exists():
        result = json.loads(path.read_text())
        estimates.add(program, result, target)
        path.write_text(json.dumps(result, indent=1))


def _say(program: table.Program, result: dict) -> None:
    kernels = result["kernels"].values()
    verdicts = [kernel["verdict"] for kernel in kernels]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in sorted(set(verdicts)))
    built = [f"{name} {build['ms']:.0f}" for name, build in result["builds"].items() if "ms" in build]
    print(
        f"{program.title}: built in ms: {', '.join(built) or 'nowhere'}; {counts or 'no kernel'}", flush=True
    )


if __name__ == "__main__":
    sys.exit(main())
