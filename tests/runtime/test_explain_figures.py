"""What cl-driver explain shows beside estimates: launches of a profile, llvm-mca's figures."""

from __future__ import annotations

import json
import platform
import shutil

import pytest

from cl_driver.cli import main
from cl_driver.compiler.source import Context
from cl_driver.device.target import host_target
from cl_driver.explain import mca
from cl_driver.explain.alternatives import Asked
from cl_driver.explain.assembly import Code
from cl_driver.explain.html import report_html
from cl_driver.explain.measured import Measured
from cl_driver.explain.program import explain_source
from cl_driver.explain.text import report_text

SOURCE = """kernel void k(global float *a) {
    size_t i = get_global_id(0); float x = a[i];
    for (int j = 0; j < 64; j++)
        x = x * x * 0.5f + 0.25f;
    a[i] = x;
}
kernel void other(global float *a) { a[get_global_id(0)] += 1.0f; }
"""


def profile_with(*kernels: dict) -> str:
    calls = {"calls": {}}
    whole = {
        "format": "cl_driver profile 1", "program": "host", "process": 1, "wall_ns": 1, "command_ns": 1,
        "threads": 2, "kernels": list(kernels), "transfers": [], "waiting": calls,
        "building": {**calls, "at_launches_ns": 0, "background_ns": 0},
    }  # fmt: skip
    return json.dumps(whole)


def of_kernel(name: str, launches: int, items: int, time: int) -> dict:
    return {
        "name": name, "launches": launches, "failed": 0, "time_ns": time, "least_ns": time // launches,
        "most_ns": time, "thread_ns": time, "share": 100, "work_items": items, "bytes_known": launches,
        "bytes_read": 4 * items, "bytes_written": 4 * items, "bytes_time_ns": time,
    }  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "k.cl"
    path.write_text(SOURCE)
    return path


def test_launches_of_a_profile(file, tmp_path, capsys):
    profile = tmp_path / "profile.json"
    profile.write_text(profile_with(of_kernel("k", 4, 4096 * 4, 4 * 50_000)))
    page = tmp_path / "k.html"
    assert main(["explain", str(file), "--profile", str(profile), "--html", str(page)]) == 0
    text = capsys.readouterr().out
    (line,) = [line for line in text.split("\n") if "measured in" in line]
    assert "measured in host: 4 launches of 4096 work-items in the mean, 50 µs each, 50 µs at least" in line
    assert "0.655 GB/s; 12.2 ns a work-item, estimated " in line and "times the estimate" in line
    assert "estimates for 4096 work-items" in text  # not for the million of launches that nobody knows
    assert "the profile has no launch of other" in text
    assert line.strip() in page.read_text()


def test_an_estimate_is_compared_with_what_was_measured():
    def shown(ns: int) -> str:
        measured = {"k": Measured("host", 1, 1 << 20, ns << 20, ns << 20)}
        context = Context(host_target(), "", {})
        return report_text(explain_source(SOURCE.encode(), {}, context, "k", asked=Asked(measured=measured)))

    def factor(text: str) -> float:
        return float(text.split(" times the estimate")[0].rpartition(" ")[2])

    assert factor(shown(40)) == pytest.approx(10 * factor(shown(4)), rel=0.02)


def test_what_is_no_profile(file, tmp_path, capsys):
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    assert main(["explain", str(file), "--profile", str(wrong)]) == 1
    assert "no profile of this version" in capsys.readouterr().err


needs_mca = pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("llvm-mca-22"), reason="no llvm-mca"
)


@needs_mca
def test_figures_of_llvm_mca():
    analyser = mca.find(host_target("x86-64-v3"), "")
    assert analyser is not None and analyser.cpu == "x86-64-v3"
    add, divide, unknown, call = (
        Code(text, "", None)
        for text in ("vaddps\t%ymm0, %ymm1, %ymm0", "vdivps\t%ymm0, %ymm1, %ymm0", "bogus\t%rax", "callq\tf")
    )
    figures = analyser.figures([add, unknown, divide, call])
    assert figures.keys() == {add.text, divide.text}
    assert figures[divide.text].latency > figures[add.text].latency > 0
    assert figures[divide.text].throughput > figures[add.text].throughput > 0
    one, four, *others = analyser.loops([[add], [add] * 4, [add, unknown], [add, call]])
    assert others == [None, None]
    # Each waits for the one before, so the chain takes four times as long, and more than it needs to.
    assert four.cycles == pytest.approx(4 * one.cycles, rel=0.05) and four.cycles > 1.5 * four.least


@needs_mca
def test_both_reports_have_them():
    target = host_target("x86-64-v3")
    asked = Asked(analyser=mca.find(target, ""))
    report = explain_source(SOURCE.encode(), {}, Context(target, "", {}), "k", asked=asked)
    loops = [loop for loop in report.kernels[0].variants[0].loops if loop.simulated is not None]
    assert loops and "by llvm-mca" in report_text(report)
    page = report_html(report)
    assert "\N{GREEK SMALL LETTER MU}op, " in page and "latency" in page


def test_without_llvm_mca(file, capsys, monkeypatch):
    monkeypatch.setattr(mca.shutil, "which", lambda *_, **__: None)
    assert main(["explain", str(file), "--kernel", "k"]) == 0
    text = capsys.readouterr().out
    assert "no llvm-mca: what instructions take is by a table of the report's own" in text
    assert "by llvm-mca" not in text


def test_an_llvm_mca_that_fails(tmp_path):
    """As one of another architecture, or too old for its options."""
    fails = tmp_path / "llvm-mca"
    fails.write_text("#!/bin/sh\nexit 1\n")
    fails.chmod(0o755)
    analyser = mca.Analyser(str(fails), host_target())
    code = Code("vaddps\t%ymm0, %ymm1, %ymm0", "", None)
    assert analyser.figures([code]) == {} and analyser.loops([[code], [code]]) == [None, None]
