"""Curves of ratios as one SVG: kernels sorted, a logarithmic axis."""

from __future__ import annotations

import math
from pathlib import Path

_WIDTH, _HEIGHT, _MARGIN = 900, 420, 50
_COLOURS = ("#1b6ca8", "#d1495b", "#2e933c")


def _y(value: float, low: float, high: float) -> float:
    share = (math.log10(value) - low) / (high - low)
    return _HEIGHT - _MARGIN - share * (_HEIGHT - 2 * _MARGIN)


def curves(series: dict[str, list[float]]) -> str:
    """The picture's text; each series is sorted and fills the width."""
    values = [value for entries in series.values() for value in entries if value > 0]
    low = math.floor(math.log10(min([*values, 0.5])))
    high = math.ceil(math.log10(max([*values, 2.0])))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for power in range(low, high + 1):
        y = _y(10.0**power, low, high)
        stroke = "#444" if power == 0 else "#ddd"
        out.append(f'<path d="M{_MARGIN} {y:.1f}H{_WIDTH - _MARGIN}" stroke="{stroke}"/>')
        out.append(f'<text x="{_MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for number, (name, entries) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        entries = sorted(value for value in entries if value > 0)
        step = (_WIDTH - 2 * _MARGIN) / max(1, len(entries) - 1)
        points = " ".join(
            f"{_MARGIN + index * step:.1f},{_y(value, low, high):.1f}" for index, value in enumerate(entries)
        )
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
        x = _MARGIN + 10 + 200 * number
        out.append(f'<text x="{x}" y="{_MARGIN - 20}" fill="{colour}">{name} ({len(entries)})</text>')
    out.append(
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 12}" text-anchor="middle">'
        "the faster peer's time over ours, sorted</text></svg>\n"
    )
    return "\n".join(out)


def write(path: Path, series: dict[str, list[float]]) -> None:
    path.write_text(curves(series))
