"""Profiles as pages: what is read, what is refused, what the page and its plot show."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from cl_driver.cli import main
from cl_driver.profile.page import of_roofline, page_html
from cl_driver.profile.plot import roofline_svg
from cl_driver.profile.read import FORMAT, NotAProfileError, read

SAXPY = {
    "name": "saxpy<&>", "launches": 10, "failed": 0, "time_ns": 3_000_000, "least_ns": 200_000,
    "most_ns": 500_000, "thread_ns": 6_000_000, "share": 75.0, "work_items": 1_000_000,
    "bytes_read": 8_000_000, "bytes_written": 4_000_000, "bytes_known": 10,
    "bytes_time_ns": 3_000_000, "operations": 2_000_000,
    "operations_known": 10, "operations_time_ns": 3_000_000, "codes": {
    "first": {"launches": 4, "time_ns": 2_000_000}, "hot+group": {"launches": 6, "time_ns": 1_000_000}},
    "hardware": {"cycles": 1000, "instructions": 2500, "cache_misses": 7, "branch_misses": 3},
}  # fmt: skip
GATHER = {
    "name": "gather", "launches": 1, "failed": 2, "time_ns": 500_000, "least_ns": 500_000, "most_ns": 500_000,
    "thread_ns": 500_000, "share": 12.5, "work_items": 64, "codes": {},
}  # fmt: skip
READ = {
    "name": "read buffer", "commands": 2, "failed": 0, "time_ns": 500_000, "least_ns": 100,
    "most_ns": 499_900, "thread_ns": 500_000, "share": 12.5,
    "bytes": 1_000_000, "bytes_read": 1_000_000, "bytes_written": 1_000_000,
    "bytes_known": 2, "bytes_time_ns": 500_000,
}  # fmt: skip
PROFILE = {
    "format": FORMAT, "program": "p", "process": 7, "wall_ns": 10_000_000_000, "command_ns": 4_000_000,
    "threads": 2, "roofline": {"threads": 2, "operations_per_second": 100e9, "bytes_per_second": 8e9},
    "kernels": [SAXPY, GATHER], "transfers": [READ],
    "building": {"calls": {"clBuildProgram": {"count": 1, "time_ns": 2_000_000_000}}, "at_launches_ns": 5,
                 "background_ns": 1_500_000},
    "waiting": {"calls": {"clFinish": {"count": 3, "time_ns": 9_000, "busy_ns": 4_000}}},
}  # fmt: skip


class Cells(HTMLParser):
    """The texts of a page's cells, and whether all that is opened is closed."""

    VOID = ("meta",)

    def __init__(self, page):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["td"]:
            self.cells[-1] += data


@pytest.fixture
def profile(tmp_path):
    def made(**changes):
        file = tmp_path / "profile.json"
        file.write_text(json.dumps(PROFILE | changes))
        return read(file)

    return made


def test_rates(profile):
    saxpy, *others = profile().rows
    assert saxpy.bytes_per_second == 4e9 and saxpy.intensity == pytest.approx(1 / 6)
    assert of_roofline(profile(), saxpy) == pytest.approx(50)
    gather, copied = sorted(others)
    assert gather.bytes_per_second is None and of_roofline(profile(), gather) is None
    assert copied.bytes_per_second == 2e9 and of_roofline(profile(), copied) == pytest.approx(
        50
    )  # twice moved


def test_the_page_has_all_rows(profile):
    cells = Cells(page_html(profile())).cells
    at = cells.index("saxpy<&>")
    assert cells[at + 1 : at + 13] == [
        "10", "3 ms", "300 µs", "200 µs", "500 µs", "75.0 %", "2.00", "333 M", "4 GB/s", "667 MFLOP/s",
        "50 %", "first 4, hot+group 6",
    ]  # fmt: skip
    at = cells.index("gather")
    assert cells[at + 1] == "1 (2 failed)" and cells[at + 9 : at + 12] == ["-", "-", "-"]
    at = cells.index("clFinish")
    assert cells[at + 1 : at + 4] == ["3", "9 µs", "4 µs"]
    assert "2.50" in cells  # instructions a cycle


def test_the_page_needs_nothing_else(profile):
    page = page_html(profile())
    assert all(word not in page for word in ("http:", "https:", "src=", "href=", "<script"))


def test_the_plot(profile):
    """The roof has its ridge where both limits meet, and dots are below it by what is missing."""
    svg = ET.fromstring(roofline_svg(profile()))
    (roof,) = [
        tuple(map(float, p.split(","))) for line in svg.iter("polyline") for p in line.get("points").split()
    ][1:2]
    (dot,) = svg.iter("circle")
    assert dot.find("title").text == "saxpy<&>: 0.667 GFLOP/s of 1.33, 0.167 operations a byte"
    ticks = {
        t.text: float(t.get("x")) for t in svg.iter("text") if t.get("text-anchor") == "middle" and t.get("x")
    }
    decade = ticks["10"] - ticks["1"]
    assert (roof[0] - float(dot.get("cx"))) / decade == pytest.approx(1.875, abs=0.01)  # log10(12.5 * 6)
    assert "gather" in page_html(profile()).split("not known: ")[1]


def test_without_a_roofline(profile):
    found = profile(roofline={})
    assert roofline_svg(found) == "" and "Roofline" not in page_html(found)
    assert all(of_roofline(found, row) is None for row in found.rows)


def test_why_there_are_no_counters(profile):
    kernels = [{name: value for name, value in SAXPY.items() if name != "hardware"}]
    page = page_html(profile(kernels=kernels, no_hardware="no hardware counters: none"))
    assert "<p" in page and "no hardware counters: none." in page


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no JSON"),
        ("[]", "is no profile of this version"),
        ('{"format": "cl_driver profile 9"}', "is no profile of this version"),
        (json.dumps({"format": FORMAT}), "lacks what a profile has: 'program'"),
        (json.dumps(PROFILE | {"kernels": [{}]}), "lacks what a profile has: 'name'"),
        (json.dumps(PROFILE | {"building": []}), "lacks what a profile has"),
    ],
)
def test_what_is_no_profile(tmp_path, text, why):
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(NotAProfileError, match=why):
        read(tmp_path / "p.json")


def test_the_command(tmp_path, capsys):
    file = tmp_path / "p.json"
    file.write_text(json.dumps(PROFILE))
    assert main(["profile", str(file)]) == 0
    assert (tmp_path / "p.html").read_text() == page_html(read(file))
    assert main(["profile", str(file), "-o", str(tmp_path / "other.html")]) == 0
    assert (tmp_path / "other.html").exists()
    file.write_text("{")
    assert main(["profile", str(file)]) == 1
    assert "is no JSON" in capsys.readouterr().err
