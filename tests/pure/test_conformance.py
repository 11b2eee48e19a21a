"""The conformance runner, over a CTS build that is a shell script."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """#!/bin/sh
if [ "$1" = --list ]; then printf '\\tgood\\n\\tbad\\n\\tabsent\\n\\tdies\\n\\tsleeps\\n'; exit; fi
for test; do :; done
answer() { echo "{\\"results\\": {\\"$test\\": \\"$1\\"}}" > "$CL_CONFORMANCE_RESULTS_FILENAME"; }
case $test in
  good) answer pass ;;
  bad) answer fail; exit 1 ;;
  absent) answer skip ;;
  dies) kill -SEGV $$ ;;
  sleeps) sleep 60 ;;
esac
"""
EXPECTED = {"good": "pass", "bad": "fail", "absent": "skip", "dies": "crash", "sleeps": "timeout"}


@pytest.fixture
def build(tmp_path):
    source, build = tmp_path / "source", tmp_path / "build"
    program = build / "test_conformance" / "basic" / "test_basic"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (source / "test_conformance").mkdir(parents=True)
    rows = "# comment\nBasic,basic/test_basic\nAbsent,absent/test_absent\n"
    (source / "test_conformance" / "opencl_conformance_tests_quick.csv").write_text(rows)
    (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\n")
    return build


def run(build, out, *more):
    command = [sys.executable, "-m", "conformance.cts", build, "--timeout", "2", "--out", out, *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def outcomes(out):
    return {row["test"]: row["outcome"] for row in json.loads((out / "results.json").read_text())["results"]}


def test_every_outcome_is_told_apart(build, tmp_path):
    out = tmp_path / "out"
    assert run(build, out).returncode == 1
    assert outcomes(out) == EXPECTED
    page = (out / "index.html").read_text()
    assert all(name in page for name in EXPECTED)
    assert 'tests="5" failures="1" errors="2" skipped="1"' in (out / "junit.xml").read_text()


def test_resuming_and_comparing(build, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert run(build, first, "--tests", "good").returncode == 0
    assert outcomes(first) == {"good": "pass"}
    assert "[1/4]" in run(build, first, "--resume").stdout
    assert outcomes(first) == EXPECTED
    kept = first / "results.json"
    assert run(build, second, "--compare", kept).returncode == 0
    kept.write_text(kept.read_text().replace('"fail"', '"pass"'))
    worse = run(build, second, "--compare", kept)
    assert worse.returncode == 1
    assert "basic:bad: pass -> fail" in worse.stdout
