"""Mutated modules are built or refused with a log, and nothing dies. Long: python -m tests.loader.fuzz."""

from tests.loader import fuzz


def test_mutated_modules(opencl):
    outcomes, defects = fuzz.run(opencl, range(100_000, 100_040))
    assert not defects
    assert outcomes["built"] and outcomes["refused"] and outcomes["not created"]
