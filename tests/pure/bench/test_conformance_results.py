"""Sets of sub-tests, and results that are kept, compared and set side by side."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conformance import results, sets
from conformance.results import Result

ROOT = Path(__file__).resolve().parents[3]
CORE = (
    "basic api compiler computeinfo allocations atomics buffers c11_atomics commonfns device_partition "
    "device_timer events generic_address_space geometrics integer_ops mem_host_flags multiple_device_context "
    "non_uniform_work_group printf profiling relationals select spirv_new subgroups SVM thread_dimensions "
    "vectors workgroups half contractions conversions math_brute_force"
).split()
ROWS = [
    Result("api", "a", "pass", 1.4),
    Result("api", "b", "skip", 0.1, "no images: none"),
    Result("basic", "single-20%/c", "fail", 33.0, "ERROR: 1 != 2"),
    Result("basic", "d", "timeout", 600.0, "not done after 600 s"),
]
ABOUT = {"set": "small", "platform": "cl_driver", "images": 0, "work-group functions": 1, "whole": True}


@pytest.mark.parametrize("suite", CORE)
def test_every_core_suite_has_tests_here(suite):
    """tests/core.toml: the files and tests that it names are there."""
    held = tomllib.loads((ROOT / "tests" / "core.toml").read_text())
    assert held.keys() == set(CORE) and held[suite]
    for entry in held[suite]:
        file, _, name = entry.partition("::")
        assert re.search(rf"^def {name or 'test_'}", (ROOT / "tests" / file).read_text(), re.MULTILINE), entry


@pytest.mark.parametrize("name", sets.SETS)
def test_sets_are_well_formed(name):
    held = sets.read_set(name)
    assert held.keys() <= {"list", "limit", "options", "suites", "suite"}
    for suite, own in held.get("suite", {}).items():
        assert suite in held.get("suites", CORE)
        assert own.keys() <= {"tests", "options", "arguments", "limit", "about", "pool"}


@pytest.mark.parametrize("name", ["quick", "wimpy"])
def test_sets_have_every_core_suite(name):
    assert sets.read_set(name)["suites"] == CORE


def test_patterns_are_applied_in_order():
    names = ["image1", "image2", "int"]
    assert sets.chosen(names, ["*", "-image*"]) == ["int"]
    assert sets.chosen(names, ["-image*", "image2", "int"]) == ["image2", "int"]


def test_conversions_are_named_by_the_help():
    text = """
        Possible format types are:
            uchar, float, long,
        Possible saturation values are: (empty) and _sat
        Possible rounding values are:
            (empty), _rte, _rtz,
        Examples:
    """
    names = sets.conversion_names(text)
    assert len(names) == 9
    assert names["float_uchar"] == ["float_uchar", "float_rte_uchar", "float_rtz_uchar"]
    assert names["uchar_long"][3:] == ["uchar_sat_long", "uchar_sat_rte_long", "uchar_sat_rtz_long"]
    assert sets.conversion_names("Usage:") == {"conversions": ["conversions"]}


def test_the_compact_form_is_read_back():
    text = results.to_text(ABOUT, ROWS)
    about, rows = results.from_text(text)
    assert about["platform"] == "cl_driver"
    assert [(r.key, r.outcome, r.reason) for r in rows] == [
        ("api/a", "pass", ""),
        ("api/b", "skip", "no images: none"),
        ("basic/d", "timeout", "not done after 600 s"),
        ("basic/single-20%/c", "fail", "ERROR: 1 != 2"),
    ]
    assert [r.seconds for r in rows] == [2, 0, 1000, 50]
    assert results.to_text(about, rows) == text.replace("whole: True", "whole: True")
    with pytest.raises(ValueError, match="line 2"):
        results.from_text("[api]\nokay 3 a\n")


def test_a_skip_is_worse_than_a_pass_and_better_than_a_failure():
    later = [
        Result(r.suite, r.test, {"pass": "skip", "timeout": "crash"}.get(r.outcome, "pass"), 1) for r in ROWS
    ]
    lines, worse = results.compare(ROWS, [*later, Result("new", "e", "fail", 1)])
    assert worse
    assert [line.split(":")[0] for line in lines[:-1]] == ["worse", "better", "better", "other"]
    assert lines[-1] == (
        "4 sub-tests in both: 1 worse, 2 better, 1 failing otherwise; 0 only earlier, 1 only later"
    )
    assert not results.compare(later, later[1:])[1]


def test_drivers_side_by_side():
    text = results.table({"ours": ROWS, "theirs": ROWS[:2]})
    assert "| api | 1 / 0 / 0 / 0 / 1 | 2 | 1 / 0 / 0 / 0 / 1 | 2 |" in text
    assert "| basic | 0 / 1 / 0 / 1 / 0 | 633 | - | - |" in text
    assert text.splitlines()[-1].startswith("| all | 1 / 1 / 0 / 1 / 1 | 634 |")


def test_the_last_version_is_found(tmp_path):
    for name in ("0.9.0-quick", "0.10.0-quick", "0.11-wimpy", "intel-quick"):
        (tmp_path / f"{name}.txt").write_text("")
    assert results.last_kept("quick", tmp_path).name == "0.10.0-quick.txt"
    assert results.last_kept("full", tmp_path) is None


def test_only_whole_runs_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "KEPT", tmp_path / "results")
    run = tmp_path / "results.json"
    run.write_text(results.to_json({**ABOUT, "whole": False}, ROWS))
    with pytest.raises(ValueError, match="whole"):
        results.keep(run, None)
    run.write_text(results.to_json(ABOUT, ROWS))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert results.keep(run, None).name == f"{version}-small.txt"
    assert results.keep(run, "intel").name == "intel-small.txt"


def test_kept_results_can_be_read():
    for path in results.KEPT.glob("*.txt"):
        assert results.from_text(path.read_text())[1], path


def test_the_command_line(tmp_path):
    run = tmp_path / "results.json"
    run.write_text(results.to_json(ABOUT, ROWS))
    worse = tmp_path / "worse.txt"
    worse.write_text(results.to_text(ABOUT, ROWS).replace("pass", "crash"))

    def call(*arguments):
        command = [sys.executable, "-m", "conformance.results", *map(str, arguments)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert call("compare", run, run).returncode == 0
    assert call("compare", run, worse).returncode == 1
    shown = call("table", run, f"theirs={worse}").stdout
    assert "cl_driver: passed" in shown and "theirs: passed" in shown
    assert json.loads(run.read_text())["results"][0]["test"] == "a"
