"""Large modules: no stage takes time that grows much faster than their size (tests/bench/spirv.py)."""

import pytest

from tests.bench.spirv import SHAPES, measure, module

pytestmark = pytest.mark.clock


@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_with_the_size(shape):
    small, large = (module(shape, size) for size in (1000, 8000))
    measure(small[0])  # loads what the first module needs
    times = []
    for data, count in (small, large):
        times.append(min(sum(measure(data).values()) for _ in range(2)) / count)
    assert times[1] < 3 * times[0] + 5e-5, f"{times[0] * 1e6:.0f} and {times[1] * 1e6:.0f} µs an instruction"


def test_calls_nest_deeply():
    measure(module("chain", 40_000)[0])  # 1,700 calls deep
