"""A profile as one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape

from .plot import plotted, roofline_svg
from .read import Profile, Row

_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --line: #d8dee4; --dim: #656d76;
  --bar: #a5d0ff; --dot: #0969da; --roof: #bc4c00; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --page: #0d1117; --line: #30363d;
  --dim: #8d96a0; --bar: #1f4a7d; --dot: #58a6ff; --roof: #f0883e; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 2em; }
h1 { font-size: 1.3em; } h2 { font-size: 1.1em; margin-top: 2em; }
table { border-collapse: collapse; }
th { text-align: right; color: var(--dim); font-weight: normal; vertical-align: bottom; }
td { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td, th { padding: 0.15em 0.7em; border-bottom: 1px solid var(--line); }
td.name, th.name { text-align: left; white-space: normal; overflow-wrap: anywhere; max-width: 28em; }
td.name { font-family: ui-monospace, monospace; font-size: 0.92em; }
td.share { background: linear-gradient(90deg, var(--bar) var(--part), transparent var(--part)); }
td.share { min-width: 5em; }
.note { color: var(--dim); } .scroll { overflow-x: auto; }
svg { max-width: 900px; width: 100%; height: auto; } svg text { fill: var(--dim); font-size: 12px; }
svg .name { fill: var(--text); } .grid { stroke: var(--line); } .dot { fill: var(--dot); fill-opacity: 0.75; }
.roof { fill: none; stroke: var(--roof); stroke-width: 2; }
"""

_PREFIXES = ("", "k", "M", "G", "T", "P")


def _amount(value: float | None, unit: str = "") -> str:
    """A number of three digits or so with its prefix."""
    if value is None:
        return "-"
    prefix = 0
    while abs(value) >= 999.5 and prefix + 1 < len(_PREFIXES):
        value, prefix = value / 1000, prefix + 1
    return f"{value:.3g} {_PREFIXES[prefix]}{unit}".rstrip()


def _time(ns: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns:.0f} ns"


def of_roofline(profile: Profile, row: Row) -> float | None:
    """The share, in %, of what the machine could do: of memory or of arithmetic, whichever is the larger."""
    shares = []
    if row.traffic_per_second is not None and profile.peak_bytes:
        shares.append(row.traffic_per_second / profile.peak_bytes)
    if row.operations_per_second is not None and profile.peak_operations:
        shares.append(row.operations_per_second / profile.peak_operations)
    return 100 * max(shares) if shares else None


def page_html(profile: Profile) -> str:
    """The whole page."""
    title = f"{profile.program}, process {profile.process}"
    out = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(sentence)}</p>" for sentence in _summary(profile)),
        "<h2>Kernels and transfers</h2>",
        '<div class="scroll">',
        *_rows(profile),
        "</div>",
        *_plot(profile),
        *_hardware(profile),
        *_calls("Building", profile.building, _building_note(profile)),
        *_calls(
            "Waiting",
            profile.waiting,
            "Busy: while some thread executed a command, which may be the one that waits.",
        ),
    ]
    return "\n".join([*out, "</body>", "</html>", ""])


def _summary(profile: Profile) -> list[str]:
    waited = sum(call[2] for call in profile.waiting)
    idle = sum(call[2] - (call[3] or 0) for call in profile.waiting)
    built = sum(call[2] for call in profile.building)
    sentences = [
        f"{_time(profile.wall)} in all; commands took {_time(profile.command_time)}. The host built programs "
        f"for {_time(built)} and waited for {_time(waited)}, of that {_time(idle)} while no command was "
        "executed.",
    ]
    if profile.peak_operations and profile.peak_bytes:
        sentences.append(
            f"This machine, with {profile.threads} threads: {_amount(profile.peak_operations, 'FLOP/s')} "
            f"(float) and {_amount(profile.peak_bytes, 'B/s')}."
        )
    return sentences


_COLUMNS = (
    "count",
    "total",
    "mean",
    "least",
    "most",
    "share",
    "threads",
    "items/s",
    "bytes/s",
    "FLOP/s",
    "roofline",
)


def _rows(profile: Profile) -> list[str]:
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    out = [
        f'<table><thead><tr><th class="name">name</th>{head}<th class="name">code</th></tr></thead><tbody>'
    ]
    for row in profile.rows:
        per_second = row.items * 1e9 / row.time if row.items and row.time else None
        share = of_roofline(profile, row)
        cells = [
            str(row.commands) + (f" ({row.failed} failed)" if row.failed else ""),
            _time(row.time),
            _time(row.time / row.commands) if row.commands else "-",
            _time(row.least),
            _time(row.most),
        ]
        behind = [
            f"{row.thread_time / row.time:.2f}" if row.time else "-",
            _amount(per_second) if row.is_kernel else "",
            _amount(row.bytes_per_second, "B/s"),
            _amount(row.operations_per_second, "FLOP/s") if row.is_kernel else "",
            "-" if share is None else f"{share:.3g} %",
        ]
        codes = ", ".join(f"{code} {count}" for code, count in row.codes.items())
        out.append(
            f'<tr><td class="name">{escape(row.name)}</td>'
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + f'<td class="share" style="--part:{row.share:.1f}%">{row.share:.1f} %</td>'
            + "".join(f"<td>{cell}</td>" for cell in behind)
            + f'<td class="name">{escape(codes)}</td></tr>'
        )
    return [*out, "</tbody></table>"]


def _plot(profile: Profile) -> list[str]:
    svg = roofline_svg(profile)
    missing = [row.name for row in profile.rows if row.is_kernel and row not in plotted(profile)]
    if not svg:
        return []
    note = "The area of a dot is its share of the time. Above the slope, data came from caches."
    if missing:
        note += " Not in the plot, for their bytes or operations are not known: " + ", ".join(missing) + "."
    return ["<h2>Roofline</h2>", svg, f'<p class="note">{escape(note)}</p>']


def _hardware(profile: Profile) -> list[str]:
    rows = [row for row in profile.rows if row.hardware]
    if not rows:
        return [f'<p class="note">{escape(profile.no_hardware)}.</p>'] if profile.no_hardware else []
    names = list(rows[0].hardware)
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    out = [
        "<h2>Hardware counters</h2>",
        f'<table><thead><tr><th class="name">kernel</th>{head}<th>instructions a cycle</th></tr></thead>',
        "<tbody>",
    ]
    for row in rows:
        cells = "".join(f"<td>{_amount(row.hardware.get(name))}</td>" for name in names)
        cycles = row.hardware.get("cycles")
        rate = f"{row.hardware.get('instructions', 0) / cycles:.2f}" if cycles else "-"
        out.append(f'<tr><td class="name">{escape(row.name)}</td>{cells}<td>{rate}</td></tr>')
    return [*out, "</tbody></table>"]


def _building_note(profile: Profile) -> str:
    return (
        f"Beside that, launches waited {_time(profile.at_launches)} for code, and "
        f"{_time(profile.in_background)} went into code that was made in the background."
    )


def _calls(title: str, calls: list[tuple[str, int, int, int | None]], note: str) -> list[str]:
    if not calls:
        return []
    has_busy = any(call[3] is not None for call in calls)
    out = [
        f"<h2>{title}</h2>",
        '<table><thead><tr><th class="name">call</th><th>count</th><th>time</th>'
        f"{'<th>busy</th>' if has_busy else ''}</tr></thead><tbody>",
    ]
    for name, count, time, busy in calls:
        more = f"<td>{_time(busy or 0)}</td>" if has_busy else ""
        out.append(
            f'<tr><td class="name">{escape(name)}</td><td>{count}</td><td>{_time(time)}</td>{more}</tr>'
        )
    return [*out, "</tbody></table>", f'<p class="note">{escape(note)}</p>']
