"""The roofline plot: what each kernel does beside what the machine could do, as SVG."""

from __future__ import annotations

import math
from html import escape

from .read import Profile, Row

_WIDTH, _HEIGHT = 860, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 20, 50
_LARGEST, _SMALLEST = 18.0, 4.0  # radii: areas are shares of the time


class _Axis:
    """Powers of ten from the one below the least value to the one above the most, along pixels."""

    def __init__(self, values: list[float], start: float, end: float) -> None:
        self.first = math.floor(math.log10(min(values)))
        self.last = max(math.ceil(math.log10(max(values))), self.first + 1)
        self.start, self.end = start, end

    def at(self, value: float) -> float:
        """The pixel of a value."""
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.first, self.last + 1)]


def plotted(profile: Profile) -> list[Row]:
    """The kernels that have a place in the plot."""
    return [row for row in profile.rows if row.is_kernel and row.intensity]


def roofline_svg(profile: Profile) -> str:
    """The plot; "" where there is nothing to show."""
    rows = plotted(profile)
    if not rows or not profile.peak_operations or not profile.peak_bytes:
        return ""
    ridge = profile.peak_operations / profile.peak_bytes
    intensities = [row.intensity or 1.0 for row in rows]
    speeds = [row.operations_per_second or 1.0 for row in rows]
    x = _Axis([*intensities, ridge / 20, ridge * 5], _LEFT, _WIDTH - _RIGHT)
    lowest = min(*speeds, profile.peak_operations / 100)
    y = _Axis([lowest, *speeds, profile.peak_operations * 1.2], _HEIGHT - _BOTTOM, _TOP)
    out = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="roofline plot">']
    out += _grid(x, y)
    out += _roof(profile.peak_operations, profile.peak_bytes, x, y)
    for row, intensity, speed in sorted(
        zip(rows, intensities, speeds, strict=True), key=lambda r: -r[0].time
    ):
        radius = max(_SMALLEST, _LARGEST * math.sqrt(row.share / 100))
        roof = min(profile.peak_operations, intensity * profile.peak_bytes)
        about = (
            f"{row.name}: {speed / 1e9:.3g} GFLOP/s of {roof / 1e9:.3g}, {intensity:.3g} operations a byte"
        )
        left, top = x.at(intensity), y.at(speed)
        out.append(f'<circle class="dot" cx="{left:.1f}" cy="{top:.1f}" r="{radius:.1f}">')
        out.append(f"<title>{escape(about)}</title></circle>")
        side = "end" if left > _WIDTH * 0.75 else "start"
        beside = left + (radius + 4) * (-1 if side == "end" else 1)
        out.append(
            f'<text class="name" x="{beside:.1f}" y="{top + 4:.1f}" text-anchor="{side}">'
            f"{escape(row.name)}</text>"
        )
    return "\n".join([*out, "</svg>"])


def _grid(x: _Axis, y: _Axis) -> list[str]:
    out = []
    for tick in x.ticks():
        at = x.at(tick)
        out.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>')
        out.append(f'<text x="{at:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    for tick in y.ticks():
        at = y.at(tick)
        out.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        out.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{tick / 1e9:g}</text>')
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    out.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 10}" text-anchor="middle">'
        "operations a byte</text>"
    )
    out.append(f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle">GFLOP/s</text>')
    return out


def _roof(operations: float, bytes_: float, x: _Axis, y: _Axis) -> list[str]:
    ridge = operations / bytes_
    least, most = 10.0**x.first, 10.0**x.last
    start = max(least, 10.0**y.first / bytes_)
    points = [(start, start * bytes_), (ridge, operations), (most, operations)]
    path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in points)
    return [
        f'<polyline class="roof" points="{path}"/>',
        f'<text x="{x.at(most) - 6:.1f}" y="{y.at(operations) - 7:.1f}" text-anchor="end">'
        f"{operations / 1e9:.4g} GFLOP/s; {bytes_ / 1e9:.4g} GB/s on the slope</text>",
    ]
