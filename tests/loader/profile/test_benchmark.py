"""The kernels of tests/bench/ under the profile and the trace, in one program: each launch is in both."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest

from tests.bench.cases import BENCHMARKS
from tests.bench.throughput import Child
from tests.loader.tracing.reader import read


def test_all_kernels(variables, tmp_path):
    places = {"CL_DRIVER_PROFILE": str(tmp_path / "profile"), "CL_DRIVER_TRACE": str(tmp_path / "trace")}
    child = Child(variables | places, tmp_path / "log")
    launches: Counter[str] = Counter()
    items: Counter[str] = Counter()
    for name, benchmark in sorted(BENCHMARKS.items()):
        answer = child.ask(f"load {name} own small", 60)
        assert answer["error"] is None and "skipped" not in answer
        for launch in benchmark.case(small=True).launches:
            launches[benchmark.entry_point] += 1
            items[benchmark.entry_point] += math.prod(launch.global_size)
    child.close()

    profile = json.loads((tmp_path / "profile").read_text())
    kernels = {kernel["name"]: kernel for kernel in profile["kernels"]}
    assert {name: kernel["launches"] for name, kernel in kernels.items()} == launches
    assert {name: kernel["work_items"] for name, kernel in kernels.items()} == items
    for kernel in kernels.values():
        assert kernel["failed"] == 0 and 0 < kernel["least_ns"] <= kernel["most_ns"] <= kernel["time_ns"]
        assert sum(code["launches"] for code in kernel["codes"].values()) == kernel["launches"]
        assert sum(code["time_ns"] for code in kernel["codes"].values()) == kernel["time_ns"]
        assert kernel["share"] == pytest.approx(100 * kernel["time_ns"] / profile["command_ns"], abs=1e-3)

    trace = read(tmp_path / "trace")
    for name, count in launches.items():
        commands = trace.named(name, "Queue")
        assert len(commands) == count and all(0 < c.begin <= c.end for c in commands), name
