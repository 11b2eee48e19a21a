"""The page of a run: means, what is slower than the faster peer and why, what builds and what is equal."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

from tests.bench.platforms import OURS
from tests.zoo import plot, statistics, table
from tests.zoo.statistics import KINDS, Ratio

_WORDS = {
    "steady": "Steady time (kernels)",
    "first": "First launch (kernels)",
    "cold": "Cold build and first launches (programs)",
}


def page(results: list[dict], why: list[tuple[str, str]]) -> str:
    peers = sorted({name for result in results for name in result["builds"]} - {OURS})
    all_ratios = {kind: statistics.ratios(results, kind) for kind in KINDS}
    lines = ["# The zoo", "", "![Speed-up over the faster peer](zoo.svg)", "", *_counts(results, peers)]
    lines += ["", "The faster peer's time over ours, geometric means; above 1 this driver is faster.", ""]
    heads = [
        "",
        "count",
        "over the faster",
        *(f"over {peer}" for peer in peers),
        "below 1",
        "a tenth held back",
    ]
    lines += [_row(heads), _row(["---", *["--:"] * (len(heads) - 1)])]
    for kind, entries in all_ratios.items():
        shown = [entry for entry in entries if not entry.held_back]
        rest = [entry for entry in entries if entry.held_back]
        lines.append(
            _row(
                [
                    _WORDS[kind],
                    str(len(shown)),
                    f"{statistics.mean(entry.value for entry in shown):.2f}",
                    *(f"{statistics.against(shown, peer):.2f}" for peer in peers),
                    str(sum(entry.value < 1 for entry in shown)),
                    f"{statistics.mean(entry.value for entry in rest):.2f} ({len(rest)})" if rest else "",
                ]
            )
        )
    lines += ["", *_build_sums(results)]
    lines += ["", *_estimates(results)]
    for kind, entries in all_ratios.items():
        lines += ["", f"## {_WORDS[kind]}: below 1", "", *_slow(entries, peers, why)]
    lines += ["", "## What only this driver gets wrong", "", *_wrong(results)]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _counts(results: list[dict], peers: list[str]) -> list[str]:
    built = Counter(name for result in results for name, build in result["builds"].items() if "ms" in build)
    verdicts = Counter(kernel["verdict"] for result in results for kernel in result["kernels"].values())
    sources = {result["source"] for result in results}
    return [
        f"{len(results)} programs of {len(sources)} sources; built by "
        + ", ".join(f"{name}: {built[name]}" for name in [OURS, *peers])
        + f". {sum(verdicts.values())} kernels: "
        + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        + "."
    ]


def _build_sums(results: list[dict]) -> list[str]:
    words = {
        ("ms", "first"): "wall time, s",
        ("cpu", "first cpu"): "CPU time of all processes, s",
        ("memory", ""): "memory of all processes, mean MiB",
    }
    rows: list[list[str]] = []
    for (field, of_launch), word in words.items():
        sums = statistics.sums(results, field, of_launch)
        count = sum(all(field in build for build in result["builds"].values()) for result in results)
        scale = 1000 if field != "memory" else max(1, count)
        rows.append([word, *(f"{sums[name] / scale:.1f}" for name in sums)])
        names = list(sums)
    return [
        _row(["Cold builds and first launches, in sum", *names]),
        _row(["---", *["--:"] * len(names)]),
        *map(_row, rows),
    ]


def _estimates(results: list[dict]) -> list[str]:
    """How well the model of costs puts the kernels in order."""
    found = statistics.estimated(results)
    if not found:
        return []
    rows = [
        _row(["Rank correlation of estimated and steady time", "count", "per launch", "per work-item"]),
        _row(["---", "--:", "--:", "--:"]),
    ]
    for word, is_held_back in (("kernels", False), ("a tenth held back", True)):
        some = [each for each in found if each.held_back == is_held_back]
        of_launch = statistics.rank_correlation([(each.measured, each.estimated) for each in some])
        of_item = statistics.rank_correlation(
            [(each.measured / each.items, each.estimated / each.items) for each in some]
        )
        rows.append(_row([word, str(len(some)), f"{of_launch:.3f}", f"{of_item:.3f}"]))
    off = sorted(
        (each for each in found if not each.held_back),
        key=lambda each: abs(math.log(each.estimated / each.measured)),
        reverse=True,
    )
    rows += ["", "The estimates that are furthest off, in ms:", ""]
    rows += [_row(["", "estimated", "measured"]), _row(["---", "--:", "--:"])]
    rows += [_row([f"`{each.title}`", f"{each.estimated:.3f}", f"{each.measured:.3f}"]) for each in off[:10]]
    return rows


def _slow(entries: list[Ratio], peers: list[str], why: list[tuple[str, str]]) -> list[str]:
    below = [entry for entry in entries if entry.value < 1 and not entry.held_back]
    if not below:
        return ["None."]
    names = [OURS, *peers]
    out = [
        _row(["", "ratio", *(f"{name}, ms" for name in names), "reason"]),
        _row(["---"] * (3 + len(names))),
    ]
    for entry in below:
        times = [f"{entry.times[name]:.3f}" if entry.times.get(name) else "" for name in names]
        out.append(_row([f"`{entry.title}`", f"{entry.value:.2f}", *times, table.matching(why, entry.title)]))
    return out


def _wrong(results: list[dict]) -> list[str]:
    out = []
    for result in results:
        title = f"{result['source']}:{result['program']}"
        others = [name for name, build in result["builds"].items() if name != OURS and "ms" in build]
        if others and "ms" not in result["builds"].get(OURS, {}):
            out.append(f"- `{title}` is not built; by {', '.join(others)} it is.")
        for name, kernel in result["kernels"].items():
            if kernel["verdict"] in ("differs", "fails") and not table.held_back(title, name):
                out.append(
                    f"- `{title} {name}` {kernel['verdict']}: {kernel['detail'].splitlines()[0][:200]}"
                )
    return out or ["Nothing."]


def write(folder: Path) -> None:
    """The page and the plot of the results in a folder; prints the table of means."""
    results = statistics.load(folder)
    text = page(results, table.patterns((table.HERE / "reasons.txt").read_text()))
    (folder / "zoo.md").write_text(text)
    series = {
        _WORDS[kind]: [entry.value for entry in statistics.ratios(results, kind) if not entry.held_back]
        for kind in KINDS
    }
    plot.write(folder / "zoo.svg", series)
    print(text.partition("\nThe estimates that")[0].partition("\n## ")[0].rstrip())
    print(f"{folder / 'zoo.md'}")
