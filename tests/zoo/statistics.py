"""Ratios over the faster peer, and means of them, from what was measured."""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench.platforms import OURS

KINDS = ("steady", "first", "cold")


class Ratio(NamedTuple):
    """The faster peer's time over ours: above 1 this driver is faster."""

    title: str  # source:program kernel; of cold builds source:program
    value: float
    times: dict[str, float]  # milliseconds by platform
    held_back: bool


def load(folder: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((folder / "results").rglob("*.json"))]


def ratio(title: str, times: dict[str, float], held_back: bool) -> Ratio | None:
    """None where this driver or all peers have no time."""
    peers = [time for name, time in times.items() if name != OURS and time]
    if not peers or not times.get(OURS):
        return None
    return Ratio(title, min(peers) / times[OURS], times, held_back)


def ratios(results: Iterable[dict], kind: str) -> list[Ratio]:
    """All of a kind, the slowest first. A program counts for its cold build where it was built everywhere."""
    out = []
    for result in results:
        title = f"{result['source']}:{result['program']}"
        if kind == "cold":
            times = cold(result, "ms", "first")
            if times and result["kernels"]:
                out.append(ratio(title, times, False))
            continue
        for name, kernel in result["kernels"].items():
            if kernel["verdict"] == "equal":
                out.append(ratio(f"{title} {name}", kernel.get(kind, {}), kernel["held back"]))
    return sorted((entry for entry in out if entry), key=lambda entry: entry.value)


def cold(result: dict, field: str, of_launch: str = "") -> dict[str, float]:
    """{platform: what a build and the first launches of its kernels took}, or {} where one did not build."""
    builds = result["builds"]
    if not all(field in build for build in builds.values()):
        return {}
    launches = [kernel for kernel in result["kernels"].values() if kernel["verdict"] == "equal"]
    return {
        name: build[field] + sum(kernel.get(of_launch, {}).get(name) or 0 for kernel in launches)
        for name, build in builds.items()
    }


class Estimated(NamedTuple):
    """A kernel's steady time and what the driver's model of costs says of it, in milliseconds."""

    title: str
    measured: float
    estimated: float
    items: int
    held_back: bool


def estimated(results: Iterable[dict]) -> list[Estimated]:
    """All kernels with equal results that have both."""
    out = []
    for result in results:
        for name, kernel in result["kernels"].items():
            measured = kernel.get("steady", {}).get(OURS)
            if kernel["verdict"] == "equal" and measured and "estimate" in kernel:
                title = f"{result['source']}:{result['program']} {name}"
                items = math.prod(kernel["sizes"][1])
                out.append(Estimated(title, measured, kernel["estimate"]["ms"], items, kernel["held back"]))
    return out


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's: 1 where both have the same order, 0 where one says nothing of the other."""
    if len(pairs) < 2:
        return 0.0
    a, b = (_ranks([pair[k] for pair in pairs]) for k in (0, 1))
    middle = (len(pairs) - 1) / 2
    together = sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True))
    alone = [sum((x - middle) ** 2 for x in ranks) for ranks in (a, b)]
    return together / math.sqrt(alone[0] * alone[1]) if all(alone) else 0.0


def _ranks(values: list[float]) -> list[float]:
    """The place of each among all; of equal ones that in their middle."""
    order = sorted(values)
    return [(bisect.bisect_left(order, v) + bisect.bisect_right(order, v) - 1) / 2 for v in values]


def mean(values: Iterable[float]) -> float:
    """Geometric; 0 of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else 0.0


def against(entries: list[Ratio], peer: str) -> float:
    """The mean of one peer's time over ours."""
    return mean(entry.times[peer] / entry.times[OURS] for entry in entries if entry.times.get(peer))


def sums(results: Iterable[dict], field: str, of_launch: str = "") -> dict[str, float]:
    """cold() of all programs, in sum."""
    out: dict[str, float] = {}
    for result in results:
        for name, value in cold(result, field, of_launch).items():
            out[name] = out.get(name, 0.0) + value
    return out
