"""The zoo's comparison of outputs, its statistics, its page and its plot."""

import math

import numpy as np
import pytest

from tests.zoo import compare, plot, report, statistics, table


def _changes(tmp_path, name, array, start=0):
    path = tmp_path / f"{name}.npy"
    np.save(path, array)
    return {"0": [str(path), start]}


def test_arrays_are_equal_up_to_rounding():
    one = np.linspace(1, 2, 100, dtype=np.float32)
    assert compare.close(one, one * np.float32(1 + 1e-5)) == ""
    assert "100 of 100 differ, first [0]" in compare.close(one, one * np.float32(1.01))
    with_nan = np.where(one > 1.5, np.float32(np.nan), one)
    assert compare.close(with_nan, with_nan * np.float32(1 + 1e-5)) == ""
    assert compare.close(one, with_nan)
    tiny = one.copy()
    tiny[3] = 0
    near = tiny.copy()
    near[3] = 1e-6
    assert compare.close(tiny, near) == ""
    integers = np.arange(10, dtype=np.int32)
    assert "1 of 10 differ, first [9]" in compare.close(integers, np.append(integers[:-1], np.int32(8)))


def test_the_verdict_blames_ours_only_where_the_peers_agree(tmp_path):
    good = _changes(tmp_path, "a", np.ones(100, np.float32))
    same = _changes(tmp_path, "b", np.ones(100, np.float32))
    bad = _changes(tmp_path, "c", np.zeros(100, np.float32))
    elsewhere = _changes(tmp_path, "d", np.ones(100, np.float32), 50)
    assert compare.verdict(good, {"p": good, "q": same}) == ("equal", "")
    assert compare.verdict(bad, {"p": good, "q": same})[0] == "differs"
    assert compare.verdict(elsewhere, {"p": good, "q": same})[0] == "differs"
    assert compare.verdict(good, {"p": bad, "q": same})[0] == "unclear"
    assert compare.verdict(good, {"p": "SIGSEGV", "q": same}) == ("unclear", "p: SIGSEGV")
    assert compare.verdict("SIGSEGV", {"p": good, "q": same}) == ("fails", "SIGSEGV")
    assert compare.verdict({}, {"p": {}, "q": {}}) == ("nothing", "")
    assert compare.verdict(good, {"p": {}, "q": {}})[0] == "differs"


def _result(ours, **peers):
    kernel = {
        "verdict": "equal",
        "held back": False,
        "steady": {"cl_driver": ours, **peers},
        "first": {"cl_driver": 2 * ours, **peers},
    }
    return {
        "source": "s",
        "program": f"{ours}.cl",
        "builds": {name: {"ms": 10.0, "cpu": 8.0, "memory": 1.0} for name in ("cl_driver", *peers)},
        "kernels": {"k": kernel, "hidden": {**kernel, "held back": True}, "bad": {"verdict": "unclear"}},
    }


def test_ratios_are_over_the_faster_peer():
    results = [_result(2.0, intel=4.0, pocl=8.0), _result(4.0, intel=8.0, pocl=2.0)]
    steady = [entry for entry in statistics.ratios(results, "steady") if not entry.held_back]
    assert [(entry.title, entry.value) for entry in steady] == [("s:4.0.cl k", 0.5), ("s:2.0.cl k", 2.0)]
    assert statistics.mean(entry.value for entry in steady) == pytest.approx(1.0)
    assert statistics.against(steady, "pocl") == pytest.approx(math.sqrt(4 * 0.5))
    assert statistics.sums(results, "cpu") == {"cl_driver": 16.0, "intel": 16.0, "pocl": 16.0}
    assert [entry.value for entry in statistics.ratios(results, "cold")] == [14 / 26, 1.0]
    del results[0]["builds"]["intel"]["ms"]
    assert len(statistics.ratios(results, "cold")) == 1


def test_the_page_hides_what_is_held_back_and_gives_reasons():
    results = [_result(4.0, intel=8.0, pocl=2.0)]
    text = report.page(results, table.patterns("# comment\ns:* k => because\n"))
    assert "`s:4.0.cl k` | 0.50 | 4.000 | 8.000 | 2.000 | because" in text
    assert "hidden" not in text
    results[0]["kernels"]["k"].update(verdict="differs", detail="argument 0")
    assert "- `s:4.0.cl k` differs: argument 0" in report.page(results, [])
    with pytest.raises(ValueError):
        table.patterns("no separator")


def test_rank_correlation():
    assert statistics.rank_correlation([(1, 10), (2, 30), (3, 90)]) == pytest.approx(1)
    assert statistics.rank_correlation([(1, 9), (2, 5), (3, 1)]) == pytest.approx(-1)
    assert statistics.rank_correlation([(1, 1), (2, 3), (3, 2), (4, 4)]) == pytest.approx(0.8)
    # Equal values share their places.
    assert statistics.rank_correlation([(1, 1), (1, 2), (3, 3)]) == pytest.approx(math.sqrt(3) / 2)
    assert statistics.rank_correlation([(1, 1)]) == statistics.rank_correlation([(1, 1), (1, 2)]) == 0


def test_the_page_says_how_good_the_estimates_are():
    results = [_result(float(k), intel=8.0) for k in range(1, 6)]
    assert "Rank correlation" not in report.page(results, [])
    for k, result in enumerate(results):
        for name in ("k", "hidden"):
            kernel = result["kernels"][name]
            result["kernels"][name] = {
                **kernel,
                "sizes": [1, [1 << (4 * k)], [1]],
                "estimate": {"ms": k + 0.5},
            }
    text = report.page(results, [])
    assert "| kernels | 5 | 1.000 | 1.000 |" in text and "| a tenth held back | 5 | 1.000 | 1.000 |" in text
    assert "| `s:1.0.cl k` | 0.500 | 1.000 |" in text and "hidden" not in text
    results[0]["kernels"]["k"]["estimate"] = {"ms": 9.0}  # the first of all is now the last
    assert "| kernels | 5 | 0.000 | 1.000 |" in report.page(results, [])


def test_the_plot_has_a_curve_for_each_series():
    picture = plot.curves({"one": [2.0, 0.5, 1.0], "none": [], "two": [3.0]})
    assert picture.count("<polyline") == 3 and "one (3)" in picture
    first = picture.split('points="')[1].split('"')[0].split()
    heights = [float(point.split(",")[1]) for point in first]
    assert heights == sorted(heights, reverse=True)
