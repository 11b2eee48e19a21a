"""Runs a Khronos CTS build that is already there, each sub-test in a process of its own.

python -m conformance.cts CTS_BUILD [--set quick|wimpy|full|FILE.toml] [--suites basic,api] [--tests PATTERNS]
    [--jobs N] [--timeout SECONDS] [--out FOLDER] [--resume] [--dry-run] [--compare [FILE]] [--keep [NAME]]
    [--vendors FOLDER] [--env NAME=VALUE]

CTS_BUILD is the CMake build folder of KhronosGroup/OpenCL-CTS. Outcomes: pass, fail, skip, crash (killed by a
signal), timeout. OUT (default build/conformance/SET) gets results.json, junit.xml, index.html, progress.log
and one log per sub-test. Exits with 1 if anything failed, crashed or timed out that tests/conformance.toml
does not name; with --compare only if anything got worse against an earlier results.json, or against the last
kept results of the set.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from . import expectations, report, results, runner, sets
from .results import BAD, Result

ROOT = Path(__file__).resolve().parent.parent
KEPT = "kept"


def revision(folder: Path) -> str:
    """The commit of a source folder, if it is a git repository's."""
    command = ["git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def asked_device(variables: dict[str, str]) -> dict:
    """The platform that the variables lead to. Exits if there is none."""
    program = Path(__file__).resolve().parent / "device.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", program],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        sys.exit(f"no device to test: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)


def read_journal(path: Path) -> tuple[dict, list[Result]]:
    """(about the run, results so far) of a run that may have been cut short in the middle of a line."""
    lines = path.read_text().splitlines() if path.exists() else []
    held = []
    for line in lines:
        try:
            held.append(json.loads(line))
        except ValueError:
            break
    return (held[0] if held else {}), [Result(**row) for row in held[1:]]


def start_journal(path: Path, about: dict, resume: bool, jobs: list) -> dict[str, Result]:
    """Opens a run's journal; the results to go on from, of an earlier run of the same driver and set."""
    earlier, rows = read_journal(path) if resume else ({}, [])
    lasting = about.keys() - {"date", "jobs"}
    changed = sorted(k for k in lasting if earlier and earlier.get(k) != about[k])
    if changed:
        sys.exit(f"{path.parent} holds a run with another {', '.join(changed)}: start anew without --resume")
    commands = {job.key: list(job.command[1:]) for job in jobs}
    done = {row.key: row for row in rows if commands.get(row.key, row.arguments) == row.arguments}
    fresh = path.with_suffix(".new")
    fresh.write_text("".join(json.dumps(x) + "\n" for x in (about, *map(asdict, done.values()))))
    fresh.replace(path)
    return done


def expected_seconds(which: str, out: Path) -> dict[str, float]:
    """{sub-test: seconds} of the last run into this folder, or else of the last kept results."""
    found: dict[str, float] = {}
    for path in (results.last_kept(which), out / "results.json"):
        if path and path.exists():
            found |= {row.key: row.seconds for row in results.load(path)[1]}
    return found


def write(out: Path, about: dict, rows: list[Result]) -> None:
    """results.json, junit.xml and index.html."""
    fresh = out / "results.json.new"
    fresh.write_text(results.to_json(about, rows))
    fresh.replace(out / "results.json")
    report.write(out, about, rows)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--set", default="quick", help=f"{', '.join(sets.SETS)} or a file")
    parser.add_argument("--suites", default="", help="of the set's suites only these")
    parser.add_argument("--tests", default="*", help="patterns of sub-tests, with commas; -pattern takes out")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--timeout", type=float, help="seconds, instead of the set's limits")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--resume", action="store_true", help="keep what OUT's last run has done")
    parser.add_argument("--dry-run", action="store_true", help="print the commands and expected seconds only")
    parser.add_argument("--compare", nargs="?", const=KEPT, help="with a file, or the last kept results")
    parser.add_argument("--keep", nargs="?", const="", metavar="NAME", help="into conformance/results")
    parser.add_argument("--vendors", type=Path, help="another driver: its folder of .icd files")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args(argv)


def plan(arguments: argparse.Namespace, variables: dict[str, str]) -> tuple[set[str], list[sets.Job]]:
    """(the keys of the whole set, the jobs asked for). Exits if there are none."""
    threads = max(1, len(os.sched_getaffinity(0)) // arguments.jobs)
    whole = sets.find_jobs(arguments.build.resolve(), sets.read_set(arguments.set), threads, variables)
    suites = [s for s in arguments.suites.split(",") if s]
    named = set(sets.chosen([job.test for job in whole], arguments.tests.split(",")))
    jobs = [job for job in whole if sets.wanted(job.suite, suites or None) and job.test in named]
    if arguments.timeout:
        jobs = [replace(job, limit=arguments.timeout) for job in jobs]
    if not jobs:
        sys.exit("no sub-tests: check CTS_BUILD, --suites and --tests")
    return {job.key for job in whole}, jobs


def main(argv: list[str] | None = None) -> int:
    arguments = parse(argv)
    which = Path(arguments.set).stem
    out = (arguments.out or ROOT / "build" / "conformance" / which).resolve()
    variables = runner.environment(arguments.vendors, arguments.env, out)
    whole, jobs = plan(arguments, variables)
    expected = expected_seconds(which, out)
    jobs.sort(key=lambda job: -expected.get(job.key, job.about))
    if arguments.dry_run:
        for job in jobs:
            print(f"{expected.get(job.key, job.about):7.1f} s  {job.key}  {' '.join(job.command[1:])}")
        total = sum(expected.get(job.key, job.about) for job in jobs)
        print(f"{len(jobs)} sub-tests, {runner.nice_time(total / arguments.jobs)} expected")
        return 0
    out.mkdir(parents=True, exist_ok=True)
    journal = out / "journal.jsonl"
    about = {
        "set": which,
        **asked_device(variables),
        "cts": revision(sets.source_of(arguments.build)),
        "driver": "" if arguments.vendors else revision(ROOT),
        "jobs": arguments.jobs,
        "date": time.strftime("%Y-%m-%d"),
    }
    done = start_journal(journal, about, arguments.resume, jobs)
    todo = [job for job in jobs if job.key not in done]
    progress = runner.Progress(todo, expected, arguments.jobs, out / "progress.log")
    progress.say(f"{about['platform']}, {about['device']}: {len(todo)} of {len(jobs)} sub-tests to {out}")
    try:
        with journal.open("a") as file:
            for result in runner.run_all(todo, out, variables, arguments.jobs):
                done[result.key] = result
                print(json.dumps(asdict(result)), file=file, flush=True)
                progress.done(result)
    except KeyboardInterrupt:
        progress.say("interrupted; --resume goes on")
    about["whole"] = done.keys() >= whole
    rows = sorted(done.values(), key=lambda row: row.key)
    write(out, about, rows)
    progress.say(report.summary(rows))
    failed = [row for row in rows if row.outcome in BAD]
    if not arguments.vendors:
        failed = [row for row in failed if not expectations.is_expected(row)]
        for line in expectations.unexpected(rows):
            progress.say(line)
    progress.say(f"{runner.nice_time(time.monotonic() - progress.start)}; {out / 'index.html'}")
    if any(job.key not in done for job in jobs):
        return 130
    if arguments.keep is not None:
        progress.say(f"kept as {results.keep(out / 'results.json', arguments.keep or None)}")
    if arguments.compare is None:
        return int(bool(failed))
    earlier = results.last_kept(which) if arguments.compare == KEPT else Path(arguments.compare)
    if earlier is None:
        sys.exit(f"no results of the set {which} are kept in {results.KEPT}")
    lines, worse = results.compare(results.load(earlier)[1], rows)
    progress.say("\n".join([f"compared with {earlier}:", *lines]))
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
