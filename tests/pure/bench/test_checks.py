"""The checks of tests/bench/ can fail: for no work, half of it, NaN, and errors of a thousandth."""

from __future__ import annotations

import numpy as np
import pytest

from tests.bench.cases import BENCHMARKS
from tests.bench.model import KERNELS, check

EXPECTED: dict = {}


@pytest.fixture(params=sorted(BENCHMARKS))
def prepared(request):
    """(case, expected, outcome of a kernel that is right as far as its type can be)"""
    if request.param not in EXPECTED:
        case = BENCHMARKS[request.param].case(small=True)
        expected = case.expected()
        right = {name: _of_type(want, case.initial(name).dtype) for name, want in expected.items()}
        EXPECTED[request.param] = case, expected, right
    return EXPECTED[request.param]


def _of_type(want: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return (np.rint(want) if dtype.kind in "iu" else want).astype(dtype)


def _off(values: np.ndarray) -> np.ndarray:
    """Off by a thousandth, away from zero; by a whole step where that is less for the type."""
    if values.dtype.kind in "iu":
        step = np.maximum(values.astype(np.int64) // 1000, 1).astype(values.dtype)
        return np.where(values == np.iinfo(values.dtype).max, values - step, values + step)
    # Half precision has a spacing of about that: the next value but one.
    factor = 1e-3 if values.dtype.itemsize > 2 else 2e-3
    return (values * (1 + factor)).astype(values.dtype)


def test_the_right_outcome_passes(prepared):
    case, expected, right = prepared
    assert check(case, expected, right) is None


def test_untouched_memory_fails(prepared):
    case, expected, _ = prepared
    assert check(case, expected, {name: case.initial(name) for name in expected})


def test_errors_of_a_thousandth_fail(prepared):
    case, expected, right = prepared
    for name in expected:
        assert check(case, expected, right | {name: _off(right[name])}), name


def test_one_wrong_element_fails(prepared):
    """Unless the benchmark allows outliers: then five times as many as it allows."""
    case, expected, right = prepared
    for name in expected:
        flat = right[name].reshape(-1)
        count = max(1, int(5 * case.outliers * flat.size))
        largest = np.argsort(np.abs(flat.astype(np.float64)), kind="stable")[-count:]
        wrong = flat.copy()
        wrong[largest] = _off(flat[largest])
        assert check(case, expected, right | {name: wrong}), name


def test_half_of_the_work_fails(prepared):
    case, expected, right = prepared
    for name in expected:
        flat = right[name].reshape(-1).copy()
        half = flat.size // 2
        flat[half:] = case.initial(name).reshape(-1)[half:]
        assert check(case, expected, right | {name: flat}), name


def test_nan_fails(prepared):
    case, expected, right = prepared
    for name in expected:
        if right[name].dtype.kind == "f":
            assert check(case, expected, right | {name: np.full_like(right[name], np.nan)}), name


def test_every_kernel_is_a_benchmark():
    assert {path.stem for path in KERNELS.glob("*/*.cl")} == {b.entry_point for b in BENCHMARKS.values()}
    assert len(BENCHMARKS) >= 25


def test_cases_are_always_the_same():
    for benchmark in BENCHMARKS.values():
        one, two = (benchmark.case(small=True) for _ in range(2))
        assert all(np.array_equal(one.initial(name), two.initial(name)) for name in one.memory)
