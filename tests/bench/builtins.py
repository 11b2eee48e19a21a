"""Time per element of built-in functions on this driver, Intel's runtime and PoCL in one run, in turns.

python -m tests.bench.builtins [--intel LIBDIR] [--pocl] [--filter REGEX] [--rounds N] [--seconds S] [--keep]
    [--levels ,avx2]

One call per work-item over 2^20 floats or doubles (functions.py); the least time of all runs counts. Results
are compared with numpy. A table and all figures go to build/bench/builtins.md and .json; --keep adds to what
is there, so that the list can be measured in pieces. --levels ,avx2: a second table has all held to AVX2.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from cl_driver.accuracy.report import put_between
from tests.bench import functions, platforms, report
from tests.bench.throughput import CLOCKS, LOAD_TIMEOUT, Child, with_cache, with_widths

POOR = 0.6  # of the other's speed: the report lists what is below


def time_one(name: str, children: dict[str, Child], rounds: int, seconds: float, checked: bool) -> dict:
    """{platform: {"best", "cpu": ms, or "error"}}"""
    results = {}
    for platform, child in children.items():
        answer = child.ask(f"load {name} {'own' if checked else '-'}", LOAD_TIMEOUT)
        results[platform] = {"error": answer["error"]} if answer.get("error") else {}
    for _ in range(rounds):
        for platform, child in children.items():
            result = results[platform]
            if result.get("error"):
                continue
            answer = child.ask(f"time {seconds / rounds}", LOAD_TIMEOUT)
            if answer.get("error"):
                result["error"] = answer["error"]
                continue
            for key, value in (("best", min(answer["times"])), ("cpu", answer["cpu"])):
                result[key] = min(value, result.get(key, value))
    return results


def _cell(results: dict, name: str, platform: str) -> str:
    time = report.best(results, name, platform) if name in results["timed"] else None
    if time is None:
        return "failed" if results["timed"].get(name, {}).get(platform, {}).get("error") else "-"
    return f"{time * 1e6 / functions.COUNT:.3f}"


def ratios(results: dict, type_: str, names: list[str], column: str, peer: str) -> dict[str, float]:
    """{function: the peer's time divided by ours} of the measured ones of a type."""
    found = {
        function: report.ratio(results, f"{function}:{type_}", column, [peer])
        for function in names
        if f"{function}:{type_}" in results["timed"]
    }
    return {function: ratio for function, ratio in found.items() if ratio}


def _summary(results: dict, groups: dict[str, list[str]]) -> list[str]:
    lines = []
    for column in report.ours(results):
        for peer in report.peers(results):
            for label, names in groups.items():
                for type_ in functions.TYPES:
                    found = ratios(results, type_, names, column, peer)
                    if not found:
                        continue
                    mean = report.geometric_mean(list(found.values()))
                    what = f"{type_}, {len(found)} {label}"
                    slow = sorted((f for f in found if found[f] < 1), key=found.get)
                    poor = [f"{f} {found[f]:.2f}" for f in slow if found[f] < POOR]
                    rest = [f"{f} {found[f]:.2f}" for f in slow if found[f] >= POOR]
                    lines += [
                        f"- {column} against {peer}, {what}: geometric mean {mean:.2f}",
                        f"    - below {POOR}: {', '.join(poor) or 'none'}",
                        f"    - {POOR} to 1: {', '.join(rest) or 'none'}",
                    ]
    return lines


def markdown(results: dict) -> str:
    """The tables and what they say, one for each level of instructions."""
    text = f"Nanoseconds per element over {functions.COUNT} elements; ratios above 1: we are faster.\n"
    for level in ("", *platforms.LEVELS):
        at_level = _of_level(results, level)
        if at_level["platforms"]:
            text += f"\nHeld to {level}:\n" if level else ""
            text += f"\n{_table(at_level)}"
    return text


def _of_level(results: dict, level: str) -> dict:
    """The figures of the platforms that were held to a level ("": to none), under their plain names."""
    levels = tuple(f" {name}" for name in platforms.LEVELS)
    suffix = f" {level}" if level else ""
    found = [p for p in results["platforms"] if p.endswith(suffix or levels) == bool(level)]
    plain = {p: p.removesuffix(suffix) for p in found}
    timed = {}
    for name, answers in results["timed"].items():
        if kept := {plain[p]: answer for p, answer in answers.items() if p in plain}:
            timed[name] = kept
    return results | {"platforms": list(plain.values()), "timed": timed}


def _table(results: dict) -> str:
    lines = []
    columns, others = report.ours(results), report.peers(results)
    header = ["function"]
    for type_ in functions.TYPES:
        header += [f"{type_}: {platform}" for platform in results["platforms"]]
        header += [f"{column} / {peer}" for column in columns for peer in others]
    lines += [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    measured = dict.fromkeys(name.split(":")[0] for name in functions.all_names() if name in results["timed"])
    for function in measured:
        cells = [function]
        for type_ in functions.TYPES:
            cells += [_cell(results, f"{function}:{type_}", platform) for platform in results["platforms"]]
            for column in columns:
                for peer in others:
                    ratio = ratios(results, type_, [function], column, peer).get(function)
                    cells.append(f"{ratio:.2f}" if ratio else "-")
        lines.append(f"| {' | '.join(cells)} |")
    groups = {
        "listed functions": functions.LISTED,
        "others": functions.OTHERS,
        "native_ and half_ forms": functions.NATIVE + functions.HALF,
    }
    failures = [
        f"- {name}, {platform}: {result['error']}"
        for name, answers in results["timed"].items()
        for platform, result in answers.items()
        if result.get("error")
    ]
    lines += ["", *_summary(results, groups), *(["", "Failed:", "", *failures] if failures else [])]
    return "\n".join(lines) + "\n"


def earlier(path: Path, found: list[str], clock: str) -> dict:
    """The figures of earlier runs of the same platforms and clock: {name: {platform: ...}}"""
    try:
        before = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return before["timed"] if (before["platforms"], before["clock"]) == (found, clock) else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    platforms.add_options(parser)
    parser.add_argument("--filter", default="", help="regular expression of what is measured: exp:float")
    parser.add_argument("--listed", action="store_true", help="only the functions that the issue lists")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each platform")
    parser.add_argument("--seconds", type=float, default=0.2, help="time for each function and platform")
    parser.add_argument("--width", default="", help="values of CL_DRIVER_WIDTH, a column each: ,16")
    parser.add_argument(
        "--levels", default="", help="what all are held to, a table each: ,avx2 (nothing: what the CPU has)"
    )
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: of all threads")
    parser.add_argument("--keep", action="store_true", help="add to the figures of earlier runs")
    parser.add_argument("--no-check", action="store_true", help="don't compare results with numpy")
    parser.add_argument(
        "--readme", type=Path, metavar="FILE", help="put the table between its marks there, too"
    )
    parser.add_argument("--output", type=Path, default=platforms.ROOT / "build" / "bench")
    arguments = parser.parse_args()
    names = [name for name in functions.all_names() if re.fullmatch(arguments.filter or ".*", name)]
    if arguments.listed:
        names = [name for name in names if name.split(":")[0] in functions.LISTED]
    arguments.output.mkdir(parents=True, exist_ok=True)
    figures = arguments.output / "builtins.json"
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        found = with_widths(platforms.find(arguments, work), arguments.width.split(","))
        found = platforms.at_levels(found, arguments.levels.split(","))
        cache = arguments.output / "cache"  # pieces of a run share what they built
        children = {
            platform: Child(with_cache(additions, cache), work / f"{platform}.log".replace(" ", "-"))
            for platform, additions in found.items()
        }
        clock = CLOCKS[arguments.clock]
        timed = earlier(figures, list(found), clock) if arguments.keep else {}
        results = {"platforms": list(found), "clock": clock, "timed": timed}
        for name in names:
            timed[name] = time_one(
                name, children, arguments.rounds, arguments.seconds, not arguments.no_check
            )
            cells = [f"{platform} {_cell(results, name, platform)}" for platform in found]
            print(f"{name:20}{'   '.join(cells)}", file=sys.stderr, flush=True)
            for platform, child in children.items():
                if child.error:
                    children[platform] = Child(with_cache(found[platform], cache), child.log)
        for child in children.values():
            child.close()
    figures.write_text(json.dumps(results, indent=1))
    text = markdown(results)
    figures.with_suffix(".md").write_text(text)
    if arguments.readme:
        put_between(arguments.readme, "throughput", text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
