"""Results of conformance runs: kept, compared and set side by side.

python -m conformance.results compare EARLIER LATER      what got better or worse; exit status 1 if worse
python -m conformance.results table NAME=FILE...         drivers side by side, per suite, as Markdown
python -m conformance.results keep results.json [--as NAME]    the compact form, into results/NAME-SET.txt

A FILE is a run's results.json or the compact form. NAME is the driver's version unless given.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "conformance" / "results"
OUTCOMES = ("pass", "fail", "crash", "timeout", "skip")
BAD = ("fail", "crash", "timeout")
STEPS = [step * 10**power for power in range(5) for step in (1, 2, 5)]


@dataclass
class Result:
    """One sub-test: what happened and why, in how many seconds, its log, its command; its CPU time."""

    suite: str
    test: str
    outcome: str
    seconds: float
    reason: str = ""
    log: str = ""
    arguments: list = field(default_factory=list)
    cpu: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.suite}/{self.test}"


def by_suite(rows) -> dict[str, list[Result]]:
    """{suite: its results}, in alphabetic order."""
    suites: dict[str, list[Result]] = {}
    for row in sorted(rows, key=lambda r: (r.suite, r.test)):
        suites.setdefault(row.suite, []).append(row)
    return suites


def to_json(about: dict, rows) -> str:
    """A run as JSON: about the run, then its results, a line each."""
    lines = ",\n".join(json.dumps(asdict(row)) for row in rows)
    return f'{{"about": {json.dumps(about)},\n"results": [\n{lines}\n]}}\n'


def rounded(seconds: float) -> int:
    """The next of 0, 1, 2, 5, 10, 20, 50 ... seconds: two runs of the same driver should not differ."""
    return next((step for step in STEPS if seconds <= step), STEPS[-1]) if seconds > 0.5 else 0


def to_text(about: dict, rows) -> str:
    """The compact form: a line per sub-test with outcome, rounded seconds and reason, grouped by suite."""
    lines = [f"# {name}: {value}" for name, value in about.items() if isinstance(value, str | int)]
    for suite, group in by_suite(rows).items():
        lines.append(f"\n[{suite}]")
        lines += [
            f"{row.outcome} {rounded(row.seconds)} {row.test}{': ' * bool(row.reason)}{row.reason}"
            for row in group
        ]
    return "\n".join([*lines, ""])


def from_text(text: str) -> tuple[dict, list[Result]]:
    """What to_text wrote. Raises ValueError with the line that isn't of that form."""
    about: dict = {}
    rows, suite = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.fullmatch(r"# ([^:]+): (.*)", line):
            about[match[1]] = match[2]
        elif match := re.fullmatch(r"\[(\S+)\]", line):
            suite = match[1]
        elif match := re.fullmatch(rf"({'|'.join(OUTCOMES)}) (\d+) (\S+?)(?:: (.*))?", line):
            rows.append(Result(suite, match[3], match[1], float(match[2]), match[4] or ""))
        elif line:
            raise ValueError(f"line {number} is not of a results file: {line!r}")
    return about, rows


def load(path: Path) -> tuple[dict, list[Result]]:
    """(about the run, results) of either form."""
    text = path.read_text()
    if path.suffix != ".json":
        return from_text(text)
    held = json.loads(text)
    return held.get("about", {}), [Result(**row) for row in held["results"]]


def last_kept(which: str, folder: Path = KEPT) -> Path | None:
    """The kept results of the set `which` with the highest version, if there are any."""
    found = {}
    for path in folder.glob(f"*-{which}.txt"):
        if match := re.fullmatch(rf"(\d+(?:\.\d+)*)-{re.escape(which)}\.txt", path.name):
            found[tuple(int(part) for part in match[1].split("."))] = path
    return found[max(found)] if found else None


def rank(outcome: str) -> int:
    """Better outcomes have higher ranks. A skip is worse than a pass: a capability is gone."""
    return {"pass": 2, "skip": 1}.get(outcome, 0)


def compare(earlier: list[Result], later: list[Result]) -> tuple[list[str], bool]:
    """(lines that say what changed, whether anything got worse). Sub-tests of one run only are counted."""
    before, after = {r.key: r for r in earlier}, {r.key: r for r in later}
    changed: dict[str, list[str]] = {"worse": [], "better": [], "other": []}
    for key in sorted(before.keys() & after.keys()):
        old, new = before[key], after[key]
        if old.outcome == new.outcome:
            continue
        step = rank(new.outcome) - rank(old.outcome)
        kind = "worse" if step < 0 else "better" if step > 0 else "other"
        reason = f"  {new.reason}" if new.reason else ""
        changed[kind].append(f"{kind}: {key}: {old.outcome} -> {new.outcome}{reason}")
    lines = [line for kind in changed.values() for line in kind]
    only = (len(before.keys() - after.keys()), len(after.keys() - before.keys()))
    lines.append(
        f"{len(before.keys() & after.keys())} sub-tests in both: {len(changed['worse'])} worse, "
        f"{len(changed['better'])} better, {len(changed['other'])} failing otherwise; "
        f"{only[0]} only earlier, {only[1]} only later"
    )
    return lines, bool(changed["worse"])


def table(runs: dict[str, list[Result]]) -> str:
    """Markdown: a row per suite; per driver passed, failed, crashed, timed out, skipped and seconds."""
    columns = ("passed", "failed", "crashed", "timeouts", "skipped")
    grouped = {name: by_suite(rows) for name, rows in runs.items()}
    suites = sorted({suite for groups in grouped.values() for suite in groups})
    head = " | ".join(f"{name}: {' / '.join(columns)} | s" for name in runs)
    lines = [f"| suite | {head} |", "|---|" + "--:|--:|" * len(runs)]
    for suite in [*suites, "all"]:
        cells = []
        for name, rows in runs.items():
            group = rows if suite == "all" else grouped[name].get(suite)
            if group is None:
                cells.append("- | -")
                continue
            counts = Counter(row.outcome for row in group)
            cells.append(
                f"{' / '.join(str(counts[o]) for o in OUTCOMES)} | {sum(row.seconds for row in group):.0f}"
            )
        lines.append(f"| {suite} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def keep(path: Path, name: str | None) -> Path:
    """Writes a run's compact form into results/. Raises ValueError unless the whole set was run."""
    about, rows = load(path)
    if not about.get("whole"):
        raise ValueError("only a run of a whole set is kept, not one with --suites or --tests, or cut short")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    kept = KEPT / f"{name or version}-{about['set']}.txt"
    KEPT.mkdir(exist_ok=True)
    kept.write_text(to_text(about, rows))
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    comparing = commands.add_parser("compare")
    comparing.add_argument("earlier", type=Path)
    comparing.add_argument("later", type=Path)
    commands.add_parser("table").add_argument("files", nargs="+", metavar="NAME=FILE")
    keeping = commands.add_parser("keep")
    keeping.add_argument("file", type=Path)
    keeping.add_argument("--as", dest="name")
    arguments = parser.parse_args()
    if arguments.command == "compare":
        lines, worse = compare(load(arguments.earlier)[1], load(arguments.later)[1])
        print("\n".join(lines))
        return int(worse)
    if arguments.command == "keep":
        try:
            print(keep(arguments.file, arguments.name))
        except ValueError as error:
            sys.exit(str(error))
        return 0
    runs = {}
    for given in arguments.files:
        name, _, file = given.rpartition("=")
        about, rows = load(Path(file))
        runs[name or about.get("platform") or file] = rows
    print(table(runs), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
