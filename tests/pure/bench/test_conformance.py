"""The conformance runner, over a CTS build whose programs are shell scripts."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from conformance import cts, expectations
from tests.marks import needs_kernel

ROOT = Path(__file__).resolve().parents[3]
# The last argument names the sub-test. $PIDS is a file for the processes that are to be gone afterwards.
PROGRAM = r"""#!/bin/sh
if [ "$1" = --list ]; then
  printf '\tgood\n\tbad\n\tabsent\n\tdies\n\thangs\n\tleaves\n\tgarbage\n\tsilent\n\tlate\n'; exit
fi
for test; do :; done
answer() { printf '{"results": {\n\t\t"%s": "%s"\n}}\n' $test $1 > "$CL_CONFORMANCE_RESULTS_FILENAME"; }
case $test in
  good) echo "options: $*"; touch "$TMPDIR/made"; answer pass ;;
  bad) echo 'ERROR: sum of 3 is wrong'; echo 'FAILED test.'; answer fail; exit 1 ;;
  absent) echo 'Device does not support images. Skipping.'; echo 'absent test not supported'; answer skip ;;
  dies) kill -SEGV $$ ;;
  hangs)
    setsid sh -c 'sleep 60 & echo $! >> "$PIDS"; wait' &
    echo $$ >> "$PIDS"; trap '' TERM INT; sleep 60 ;;
  leaves) (setsid sleep 60 & echo $! >> "$PIDS"); answer pass ;;
  garbage) printf '\000\377\033<&\001 mismatch \200'; answer fail; exit 3 ;;
  silent) ;;
  late) answer pass; kill -ABRT $$ ;;
esac
"""
EXPECTED = {
    "good": "pass",
    "bad": "fail",
    "absent": "skip",
    "dies": "crash",
    "hangs": "timeout",
    "leaves": "pass",
    "garbage": "fail",
    "silent": "fail",
    "late": "crash",
}
ROWS = "# comment\nBasic,basic/test_basic good b* -x all\nAbsent,absent/test_absent\n"
SET = """
list = "list.csv"
limit = 2
[suite.basic]
tests = ["*"]
pool = true
"""


@pytest.fixture
def build(tmp_path, monkeypatch):
    source, build = tmp_path / "source", tmp_path / "build"
    program = build / "test_conformance" / "basic" / "test_basic"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (source / "test_conformance").mkdir(parents=True)
    (source / "test_conformance" / "list.csv").write_text(ROWS)
    (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\n")
    (tmp_path / "small.toml").write_text(SET)
    monkeypatch.setattr(cts, "asked_device", lambda variables: {"platform": "none", "device": "a script"})
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    return build


def run(build, out, *more):
    """The runner's exit status."""
    return cts.main(
        [str(build), "--set", str(build.parent / "small.toml"), "--out", str(out), *map(str, more)]
    )


def rows(out):
    return {row["test"]: row for row in json.loads((out / "results.json").read_text())["results"]}


def outcomes(out):
    return {name: row["outcome"] for name, row in rows(out).items()}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def ran(build, tmp_path):
    """The folder of a run of all sub-tests."""
    assert run(build, tmp_path / "out", "--jobs", 4) == 1
    return tmp_path / "out"


def test_what_is_expected_does_not_fail_the_run(build, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(expectations, "TABLE", {"wrong in the CTS": {"a sum": ["basic/bad", "basic/good"]}})
    assert run(build, tmp_path / "out", "--tests", "bad,good,absent") == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("unexpected")]
    assert said == [
        "unexpected: skip of basic/absent (not in tests/conformance.toml)",
        "unexpected: pass of basic/good (wrong in the CTS: a sum)",
    ]
    # The table is of this driver alone.
    assert run(build, tmp_path / "other", "--tests", "bad,good", "--vendors", tmp_path) == 1
    assert "unexpected" not in capsys.readouterr().out


@needs_kernel
def test_outcomes_reasons_logs_and_reports(ran, build, tmp_path):
    assert outcomes(ran) == EXPECTED
    # Nothing is left of what hung, nor of what a sub-test that passed had started in a session of its own.
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 3 and not any(map(alive, pids))
    found = rows(ran)
    reasons = {name: row["reason"] for name, row in found.items()}
    assert reasons["absent"] == "Device does not support images. Skipping."
    assert reasons["bad"] == "ERROR: sum of 3 is wrong"
    assert (reasons["dies"], reasons["late"]) == ("SIGSEGV", "SIGABRT")
    assert reasons["hangs"] == "not done after 2 s" and 2 <= found["hangs"]["seconds"] < 10
    assert reasons["garbage"] == "<& mismatch" and reasons["silent"] == "no results, exit status 0"
    # A log says how to run its sub-test by hand, and how it ended.
    log = (ran / found["bad"]["log"]).read_text()
    again = log.splitlines()[0].removeprefix("# ").replace(" env ", f" env PIDS=/dev/null TMPDIR={tmp_path} ")
    done = subprocess.run(
        ["sh", "-c", again],
        capture_output=True,
        text=True,
        env={"CL_CONFORMANCE_RESULTS_FILENAME": "/dev/null", "PATH": os.environ["PATH"]},
        check=False,
    )
    assert done.returncode == 1 and "sum of 3 is wrong" in done.stdout
    assert "# fail after" in log
    assert "left 1 processes behind" in (ran / found["leaves"]["log"]).read_text()
    # The row's own option, then the pool's: with 4 jobs one thread each, unless there are 8 CPUs.
    threads = max(1, len(os.sched_getaffinity(0)) // 4)
    assert f"options: -x -t {threads} good" in (ran / found["good"]["log"]).read_text()
    assert not list(ran.glob("logs/*/*.tmp"))
    suite = ElementTree.parse(ran / "junit.xml").getroot()[0]
    assert [suite.get(k) for k in ("tests", "failures", "errors", "skipped")] == ["9", "3", "3", "1"]
    page = (ran / "index.html").read_text()
    assert all(f'"logs/basic/{name}.log"' in page for name in EXPECTED)
    assert page.index("&lt;&amp; mismatch") < page.index("Skipped") < page.index("Passed")
    assert "[9/9]" in (ran / "progress.log").read_text()


@pytest.mark.long
def test_the_longest_are_first_when_times_are_known(ran, build, capsys):
    assert run(build, ran, "--dry-run") == 0
    listed = capsys.readouterr().out.splitlines()
    assert "basic/hangs" in listed[0] and listed[-1].startswith("9 sub-tests")


def test_resuming(build, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(build, out, "--tests", "good,absent") == 0
    assert outcomes(out) == {"good": "pass", "absent": "skip"}
    with (out / "journal.jsonl").open("a") as journal:
        journal.write('{"suite": "basic", "test": "bad", "outc')  # cut short by a power failure
    assert run(build, out, "--resume", "--tests", "*,-hangs,-leaves") == 1
    printed = capsys.readouterr().out
    assert "5 of 7 sub-tests" in printed and "[5/5]" in printed
    assert outcomes(out) == {k: v for k, v in EXPECTED.items() if k not in ("hangs", "leaves")}
    # What ran with other arguments, or on another driver, says nothing.
    (build.parent / "small.toml").write_text(SET.replace("pool", "options = ['-y']\npool"))
    assert run(build, out, "--resume", "--tests", "good") == 1  # what else is there has failed
    assert "1 of 1 sub-tests" in capsys.readouterr().out
    cts.asked_device = lambda variables: {"platform": "other", "device": "a script"}
    with pytest.raises(SystemExit, match="another platform"):
        run(build, out, "--resume", "--tests", "good")


def test_comparing(build, tmp_path, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    few = ("--tests", "good,bad,absent")
    assert run(build, first, *few) == 1
    kept = first / "results.json"
    assert run(build, second, *few, "--compare", kept) == 0  # as bad as before
    kept.write_text(kept.read_text().replace('"fail"', '"pass"').replace('"skip"', '"crash"'))
    assert run(build, second, *few, "--compare", kept) == 1
    printed = capsys.readouterr().out
    assert "worse: basic/bad: pass -> fail  ERROR: sum of 3 is wrong" in printed
    assert "better: basic/absent: crash -> skip" in printed


def test_nothing_to_run_is_an_error(build, tmp_path):
    with pytest.raises(SystemExit, match="no sub-tests"):
        run(build, tmp_path / "out", "--tests", "none")


def guard(life, limit, most, *command, **more):
    start = [sys.executable, "-I", "-S", ROOT / "conformance" / "guard.py", life, limit, most, *command]
    return subprocess.Popen(list(map(str, start)), stdout=subprocess.PIPE, pass_fds=(life,), **more)


def test_what_prints_without_end_is_stopped(tmp_path):
    life, mine = os.pipe()
    with (tmp_path / "log").open("wb") as log:
        process = guard(life, 20, 100_000, "yes", stderr=log)
        answer = json.loads(process.communicate()[0])
    os.close(life)
    os.close(mine)
    assert answer["why"] == "output" and answer["status"] is None and answer["seconds"] < 10


def test_sub_tests_end_with_the_runner(build, tmp_path):
    """Killed with a signal that it cannot handle, it leaves no sub-test behind."""
    script = f"""
import tests.pure.bench.test_conformance as t
t.cts.asked_device = lambda variables: {{"platform": "none", "device": "a script"}}
t.run(t.Path({str(build)!r}), {str(tmp_path / "out")!r}, "--tests", "hangs", "--timeout", 60)
"""
    runner = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.DEVNULL)
    pids, end = tmp_path / "pids", time.monotonic() + 20
    while (not pids.exists() or len(pids.read_text().split()) < 2) and time.monotonic() < end:
        time.sleep(0.05)
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 2 and all(map(alive, started))
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    while any(map(alive, started)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, started))
