"""The table and the plot of throughput.py's results."""

from __future__ import annotations

import math
from pathlib import Path

from tests.bench.cases import BENCHMARKS
from tests.bench.platforms import OURS


def best(results: dict, name: str, platform: str) -> float | None:
    """The best time of a benchmark in ms, by the clock that was chosen; None if it failed."""
    result = results["timed"][name].get(platform, {})
    return None if result.get("error") else result.get(results["clock"])


def ours(results: dict) -> list[str]:
    return [platform for platform in results["platforms"] if platform.startswith(OURS)]


def peers(results: dict) -> list[str]:
    return [platform for platform in results["platforms"] if not platform.startswith(OURS)]


def ratio(results: dict, name: str, column: str, against: list[str]) -> float | None:
    """How many times as fast as the fastest of the others; None if there is nothing to compare."""
    mine = best(results, name, column)
    others = [time for platform in against if (time := best(results, name, platform)) is not None]
    return min(others) / mine if mine and others else None


def _cell(results: dict, name: str, platform: str) -> str:
    result = results["timed"][name].get(platform, {})
    if result.get("error"):
        return "wrong" if "best" in result or "build" in result else "failed"
    return "-" if "skipped" in result else f"{result[results['clock']]:.3f}"


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def line(name: str, results: dict) -> str:
    """The result of one benchmark while the others run."""
    cells = [f"{platform} {_cell(results, name, platform)}" for platform in results["platforms"]]
    return f"{name:18}{'   '.join(cells)}"


def _rate(name: str, results: dict, column: str) -> str:
    """What the benchmark counts, per second, on a platform."""
    time = best(results, name, column)
    if time is None:
        return "-"
    counts = results["counts"][name]
    if counts["flops"] > 8 * counts["bytes"]:
        return f"{counts['flops'] / time / 1e6:.1f} Gop/s"
    return f"{counts['bytes'] / time / 1e6:.1f} GB/s"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def geometric_mean(values: list[float]) -> float | None:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _kernels(results: dict) -> list[str]:
    columns, others = ours(results), peers(results)
    header = ["kernel", "what", *(f"{p} ms" for p in results["platforms"])]
    header += [f"{column} against the faster peer" for column in columns if others]
    header += [f"{columns[0]} does", "hand-written ms (README.md)"] if columns else []
    lines = [_row(*header), _row(*("---" for _ in header))]
    for name in results["timed"]:
        cells = [name, BENCHMARKS[name].summary]
        cells += [_cell(results, name, platform) for platform in results["platforms"]]
        cells += [_factor(ratio(results, name, column, others)) for column in columns if others]
        if columns:
            hand = BENCHMARKS[name].hand
            cells += [_rate(name, results, columns[0]), f"{hand:.2f}" if hand else ""]
        lines.append(_row(*cells))
    return lines


def _summary(results: dict) -> list[str]:
    lines = []
    names, others = list(results["timed"]), peers(results)
    for column in ours(results):
        done = sum(best(results, name, column) is not None for name in names)
        skipped = sum("skipped" in results["timed"][name][column] for name in names)
        lines.append(f"- {column}: {done} right, {skipped} skipped, {len(names) - done - skipped} failed")
        for peer in others:
            ratios = [r for name in names if (r := ratio(results, name, column, [peer]))]
            mean = _factor(geometric_mean(ratios))
            lines.append(f"    - geometric mean against {peer}: {mean} over {len(ratios)} kernels")
        both = {name: r for name in names if (r := ratio(results, name, column, others))}
        if both:
            slowest = sorted(both, key=both.get)
            faster = sum(r > 1 for r in both.values())
            below = sum(r < 0.9 for r in both.values())
            lines.append(f"    - against the faster peer: {_factor(geometric_mean(list(both.values())))}")
            lines.append(f"    - worst: {', '.join(f'{name} {both[name]:.2f}' for name in slowest[:5])}")
            lines.append(
                f"    - faster than every peer: {faster} of {len(both)} ({100 * faster / len(both):.0f} %); "
                f"below 0.9 of the faster: {below}"
            )
    return lines


def build_totals(results: dict, names: list[str], platform: str, kind: str) -> tuple[float, float, float]:
    """(build, first launches, first launches without the kernels' own time) of benchmarks, in ms."""
    answers = [(results["built"][platform][kind][name], best(results, name, platform)) for name in names]
    build = sum(answer["build"] for answer, _ in answers)
    first = sum(answer["first"] for answer, _ in answers)
    return build, first, sum(max(0.0, answer["first"] - (own or 0.0)) for answer, own in answers)


def _builds(results: dict) -> list[str]:
    if not results["built"]:
        return []
    built_by_all = [
        name
        for name in results["timed"]
        if all(
            "build" in results["built"][p][kind][name]
            for p in results["platforms"]
            for kind in ("cold", "warm")
        )
    ]
    title = f"Building and first launching {len(built_by_all)} kernels in one process, ms in all:"
    head = ["platform", "cold build", "cold first launches", "(beyond the kernels' time)", "cold sum"]
    head += ["warm build", "warm first launches", "(beyond)", "warm sum", "setup"]
    totals = {}
    lines = ["", title, "", _row(*head), _row(*("---" for _ in head))]
    for platform in results["platforms"]:
        cells = [platform]
        for kind in ("cold", "warm"):
            build, first, beyond = build_totals(results, built_by_all, platform, kind)
            totals[platform, kind] = build + first
            cells += [f"{build:.0f}", f"{first:.0f}", f"{beyond:.0f}", f"{build + first:.0f}"]
        setups = [results["built"][platform]["cold"][name]["setup"] for name in built_by_all]
        lines.append(_row(*cells, f"{min(setups, default=0):.0f}"))
    lines.append("")
    for column in ours(results):
        for peer in peers(results):
            cold, warm = (totals[column, kind] / totals[peer, "cold"] for kind in ("cold", "warm"))
            lines.append(
                f"- {column}: cold {cold:.2f} of {peer}'s cold sum, warm {warm:.2f} of it and "
                f"{totals[column, 'warm'] / totals[peer, 'warm']:.2f} of {peer}'s warm sum"
            )
    return lines


def _failures(results: dict) -> list[str]:
    failed = [
        f"- {name}, {platform}: {result['error']}"
        for name, answers in results["timed"].items()
        for platform, result in answers.items()
        if result.get("error")
    ]
    return ["", "Failed:", "", *failed] if failed else []


def markdown(results: dict) -> str:
    """The whole report."""
    what = "CPU times of all threads" if results["clock"] == "cpu" else "times"
    lines = [f"Best {what} in ms; ratios are the other's time divided by ours: above 1, we are faster.", ""]
    lines += [*_kernels(results), "", *_summary(results), *_builds(results), *_failures(results)]
    return "\n".join(lines) + "\n"


def plot(results: dict, path: Path) -> None:
    """Ratios of the first of our columns to each peer, as a PNG, if matplotlib is installed."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns, others = ours(results), peers(results)
    if not columns or not others:
        return
    figure, axes = pyplot.subplots(
        1, len(columns), figsize=(7 * len(columns), 0.3 * len(results["timed"]) + 2)
    )
    for axis, column in zip([axes] if len(columns) == 1 else axes, columns, strict=True):
        rows = {name: ratio(results, name, column, others) for name in results["timed"]}
        names = sorted((name for name, value in rows.items() if value), key=rows.get)
        for place, peer in enumerate(others):
            values = [ratio(results, name, column, [peer]) or math.nan for name in names]
            offset = (place - (len(others) - 1) / 2) * 0.8 / len(others)
            axis.barh(
                [y + offset for y in range(len(names))],
                [v - 1 for v in values],
                0.8 / len(others),
                1,
                label=peer,
            )
        axis.set_yticks(range(len(names)), names)
        axis.set_xscale("log", base=2)
        axis.axvline(1, color="black", linewidth=1)
        axis.grid(axis="x", alpha=0.3)
        axis.set_title(f"{column}: times as fast as")
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
