"""Slow kernels are timed again, and the best of all rounds counts."""

from tests.zoo.repeat import merge, repeat, slow


def kernel(ours, peer, verdict="equal"):
    return {"verdict": verdict, "held back": False, "steady": {"cl_driver": ours, "intel": peer}}


def result(**kernels):
    return {"builds": {}, "kernels": kernels}


def test_slow_ones_are_those_below_the_ratio_with_equal_results():
    found = result(slow=kernel(2.0, 1.0), fast=kernel(1.0, 2.0), even=kernel(1.0, 0.95))
    found["kernels"]["wrong"] = kernel(9.0, 1.0, "differs")
    found["kernels"]["untimed"] = {"verdict": "equal", "held back": False}
    assert slow(found, 0.9) == ["slow"]
    assert slow(found, 1.0) == ["slow", "even"]


def test_the_best_of_all_rounds_counts_for_each_platform():
    found = result(one=kernel(2.0, 1.0), other=kernel(1.0, 1.0))
    assert merge(found, result(one=kernel(0.5, 1.5))) == ["one"]
    assert found == result(one=kernel(0.5, 1.0), other=kernel(1.0, 1.0))


def test_what_was_not_timed_again_stays():
    found = result(one=kernel(2.0, 1.0), other=kernel(3.0, 1.0))
    again = result(one=kernel(0.5, 1.5, "unclear"), other={"verdict": "equal"})
    assert merge(found, again) == []
    assert found == result(one=kernel(2.0, 1.0), other=kernel(3.0, 1.0))


def test_only_slow_kernels_are_measured():
    found = result(slow=kernel(2.0, 1.0), fast=kernel(1.0, 2.0))
    asked = []

    def measure(wanted):
        asked.append([name for name in found["kernels"] if wanted(name)])
        return result(slow=kernel(1.0, 1.0))

    assert repeat(found, 0.9, measure) == ["slow"]
    assert asked == [["slow"]]
    assert repeat(found, 0.9, measure) == [] and asked == [["slow"]]
