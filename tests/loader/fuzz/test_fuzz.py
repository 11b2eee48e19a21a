"""What is mutated is built or refused with a log, and nothing dies. Long: python -m
tests.loader.fuzz.modules, fuzz_sources, fuzz_binaries."""

import os

import pytest

from tests.loader.fuzz import children, modules

pytestmark = pytest.mark.long


def test_mutated_modules(opencl):
    outcomes, defects = modules.run(opencl, range(100_000, 100_040))
    assert not defects
    assert outcomes["built"] and outcomes["refused"] and outcomes["not created"]


def test_mutated_sources():
    outcomes, defects = children.run("tests.loader.fuzz.sources", 50_000, 20, 2, [])
    assert not defects and outcomes.total() == 20
    assert outcomes["refused"] and outcomes["launched"]


def test_mutated_binaries():
    outcomes, defects = children.run("tests.loader.fuzz.binaries", 50_000, 30, 2, [])
    assert not defects and outcomes.total() == 30
    assert outcomes["damaged, not created"] and outcomes["changed, loaded"]


def test_a_case_that_ends_or_stops_its_process_is_a_defect(monkeypatch):
    """The others are run all the same, and what is wrong is told with its seed."""
    monkeypatch.setattr(children, "PATIENCE", 15)
    said = []
    outcomes, defects = children.run(__name__, 0, 30, 2, [], said.append)
    assert sorted(seed for seed, _ in defects) == [3, 4, 25] and "a hang" in dict(defects)[4]
    assert outcomes == {"fine": 28, "ended the process": 2}
    assert said[-1].startswith("30 of 30, ") and "3 defects" in said[-1]


def child(first: int, last: int, args) -> None:
    """Cases of which one dies, one hangs and one is wrong."""
    for seed in range(first, last):
        children.begin(seed)
        if seed == 3:
            os.abort()
        if seed == 4:
            os.read(os.pipe()[0], 1)
        if seed == 25:
            children.defect("a status that no specification names")
        children.end("fine")


if __name__ == "__main__":
    children.main(__name__, "", child)
