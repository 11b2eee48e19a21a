"""The benchmark's parent process: what it makes of crashes and hangs, and of figures."""

from __future__ import annotations

import os
import signal

import pytest

from tests.bench import builtins, platforms, report, throughput
from tests.bench.throughput import Child, with_widths


@pytest.fixture
def child(tmp_path):
    made = Child({}, tmp_path / "log")
    yield made
    made.close()


def test_a_child_that_dies_answers_with_its_end(child):
    assert "died: 1 KeyError" in child.ask("load no_such_benchmark", 60)["error"]
    assert "died: 1 KeyError" in child.ask("time 1", 60)["error"]


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_child_that_is_killed_answers_with_the_signal(child, is_gone):
    """Whether it is gone before the line is written, or takes it and dies."""
    os.kill(child.process.pid, signal.SIGKILL)
    if is_gone:
        child.process.wait()
    assert "died: -9" in child.ask("load copy", 60)["error"]


def test_a_child_that_hangs_is_given_up(child):
    os.kill(child.process.pid, signal.SIGSTOP)
    assert child.ask("load copy", 0.2)["error"] == "no answer in 0 s"
    assert child.process.poll() == -signal.SIGKILL


def test_each_width_is_a_column():
    found = with_widths({"cl_driver": {"A": "b"}, "pocl": {}}, ["", "16"])
    assert found == {
        "cl_driver": {"A": "b"},
        "cl_driver W=16": {"A": "b", "CL_DRIVER_WIDTH": "16"},
        "pocl": {},
    }


def _timed(ours, intel, pocl):
    times = {"cl_driver": ours, "intel": intel, "pocl": pocl}
    return {name: {"best": t} if t else {"error": "died: -11"} for name, t in times.items()}


RESULTS = {
    "platforms": ["cl_driver", "intel", "pocl"],
    "clock": "best",
    "built": {},
    "counts": {
        name: {"bytes": 8_000_000, "flops": 1} for name in ("copy", "triad", "md5", "gcd", "image_box_rgba8")
    },
    "timed": {
        "copy": _timed(1.0, 4.0, 2.0),
        "triad": _timed(2.0, 1.0, 8.0),
        "md5": _timed(None, 1.0, 1.0),
        "gcd": _timed(1.0, None, 8.0),
        "image_box_rgba8": {
            "cl_driver": {"skipped": "no images"},
            "intel": {"best": 1.0},
            "pocl": {"best": 2.0},
        },
    },
}


def test_ratios_are_to_the_faster_peer_that_is_right():
    def ratio(name):
        return report.ratio(RESULTS, name, "cl_driver", ["intel", "pocl"])

    assert [ratio(name) for name in RESULTS["timed"]] == [2.0, 0.5, None, 8.0, None]


def test_the_table_tells_means_worst_and_failures():
    text = report.markdown(RESULTS)
    for sentence in (
        "- cl_driver: 3 right, 1 skipped, 1 failed",
        "geometric mean against intel: 1.41 over 2 kernels",
        "geometric mean against pocl: 4.00 over 3 kernels",
        "against the faster peer: 2.00\n",
        "worst: triad 0.50, copy 2.00, gcd 8.00",
        "faster than every peer: 2 of 3 (67 %); below 0.9 of the faster: 1",
        "- md5, cl_driver: died: -11",
        "- gcd, intel: died: -11",
    ):
        assert sentence in text


def test_functions_are_summed_up_by_type():
    timed = {
        "exp:float": {"cl_driver": {"best": 1.0}, "intel": {"best": 4.0}},
        "log:float": {"cl_driver": {"best": 2.0}, "intel": {"best": 1.0}},
        "pow:float": {"cl_driver": {"best": 4.0}, "intel": {"best": 3.0}},
        "exp:double": {"cl_driver": {"error": "out: 1 of 4 wrong"}, "intel": {"best": 1.0}},
    }
    text = builtins.markdown({"platforms": ["cl_driver", "intel"], "clock": "best", "timed": timed})
    assert "float, 3 listed functions: geometric mean 1.14" in text
    assert "below 0.6: log 0.50\n    - 0.6 to 1: pow 0.75\n" in text
    assert "| exp | 0.954 | 3.815 | 4.00 | failed | 0.954 | - |" in text
    assert "exp:double, cl_driver: out: 1 of 4 wrong" in text and "double, " not in text.split("Failed")[0]


def test_a_level_of_instructions_is_a_column_of_those_that_can_be_held_to_it():
    found = platforms.at_levels({"cl_driver": {"A": "b"}, "intel": {}, "pocl": {}, "other": {}}, ["", "avx2"])
    assert list(found) == [
        "cl_driver", "intel", "pocl", "other", "cl_driver avx2", "intel avx2", "pocl avx2",
    ]  # fmt: skip
    assert found["cl_driver avx2"] == {"A": "b", "CL_DRIVER_CPU": "x86-64-v3"}
    assert found["intel avx2"] == {"CL_CONFIG_CPU_TARGET_ARCH": "core-avx2"}


def test_each_level_of_instructions_has_a_table():
    answers = {"cl_driver": 1.0, "intel": 4.0, "cl_driver avx2": 4.0, "intel avx2": 2.0}
    timed = {"exp:float": {platform: {"best": time} for platform, time in answers.items()}}
    text = builtins.markdown({"platforms": list(answers), "clock": "best", "timed": timed})
    native, held = text.split("Held to avx2:")
    assert "| exp | 0.954 | 3.815 | 4.00 |" in native and "| exp | 3.815 | 1.907 | 0.50 |" in held
    assert "geometric mean 4.00" in native and "below 0.6: exp 0.50" in held


@pytest.mark.parametrize("wanted, why", [("no_such_kernel", "no benchmark is called"), ("(", "no regular")])
def test_a_filter_without_a_benchmark_is_told_of(monkeypatch, wanted, why):
    monkeypatch.setattr("sys.argv", ["throughput", "--filter", wanted])
    with pytest.raises(SystemExit) as ended:
        throughput.main()
    assert why in ended.value.code and "\n" not in ended.value.code
