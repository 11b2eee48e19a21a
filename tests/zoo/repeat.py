"""Kernels that were slow, timed again: more rounds of what may have been disturbed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.zoo import statistics

Result = dict[str, Any]


def slow(result: Result, below: float) -> list[str]:
    """The kernels of a program whose steady time is below that ratio of the faster peer's; those held
    back too, so that they are treated as the others are."""
    out = []
    for name, kernel in result["kernels"].items():
        if kernel["verdict"] == "equal":
            found = statistics.ratio(name, kernel.get("steady", {}), kernel["held back"])
            if found is not None and found.value < below:
                out.append(name)
    return out


def merge(result: Result, again: Result) -> list[str]:
    """Adds the rounds of another run: a platform's time is the best of all. Returns the kernels that have new
    rounds; nothing else of the result changes."""
    out = []
    for name, kernel in again["kernels"].items():
        steady, known = kernel.get("steady", {}), result["kernels"][name].get("steady", {})
        if kernel["verdict"] == "equal" and steady.keys() == known.keys():
            result["kernels"][name]["steady"] = {
                platform: min(steady[platform], known[platform]) for platform in known
            }
            out.append(name)
    return out


def repeat(result: Result, below: float, measure: Callable[[Callable[[str], bool]], Result]) -> list[str]:
    """Measures the kernels that are below that ratio again, all platforms of each in turns; see merge()."""
    names = slow(result, below)
    return merge(result, measure(lambda name: name in names)) if names else []
