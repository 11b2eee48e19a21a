"""The kernels of tests/bench/ with checks: right results, and no report of what is right."""

from __future__ import annotations

import pytest

from tests.bench.cases import BENCHMARKS
from tests.bench.throughput import Child


@pytest.fixture(scope="module")
def child(variables, tmp_path_factory):
    log = tmp_path_factory.mktemp("check") / "log"
    started = Child(variables | {"CL_DRIVER_CHECK": "1"}, log)
    yield started
    started.close()
    assert "left over at exit" in log.read_text()  # reports do come here


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_no_report(child, name):
    before = child.log.stat().st_size
    answer = child.ask(f"load {name} own small", 60)
    assert answer["error"] is None and "skipped" not in answer
    assert child.ask("check", 60)["error"] is None
    assert child.log.read_bytes()[before:] == b""
