"""The rows as a table, a page and plots."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

from .functions import FUNCTIONS, TYPES
from .measure import Row

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em; }
table { border-collapse: collapse; } td, th { padding: 0.1em 0.7em; }
td, th { text-align: left; border-bottom: 1px solid #8884; }
tr.over { color: #cf222e; font-weight: bold; } img { max-width: 100%; background: #fff; }
"""


def _number(value: float) -> str:
    return f"{value:.3g}"


def _worst(row: Row) -> str:
    """Arguments exactly, as OpenCL C reads them."""
    if not row.error:
        return ""
    return ", ".join(v.hex() if isinstance(v, float) else str(v) for v in row.worst)


def _cells(row: Row) -> list[str]:
    bound = "none" if row.bound is None else _number(row.bound)
    cycles = "" if row.cycles is None else f"{row.cycles:.2f}"
    return [row.name, row.type, _number(row.error), bound, _worst(row), cycles, str(row.count)]


HEADER = ["function", "type", "ulp", "bound", "worst arguments", "cycles per element", "tried"]


def summary(rows: list[Row]) -> list[str]:
    """What is over its bound, how many are under 1.5 ulp, and what they were compared with."""
    bounded = [row for row in rows if row.bound is not None]
    over = [
        f"{row.name} of {row.type} ({_number(row.error)} ulp, bound {_number(row.bound)})"
        for row in bounded
        if row.bound is not None and row.is_over
    ]
    small = sum(row.error <= 1.5 for row in bounded)
    references = {row.type: f"{row.reference_bits} bits for {row.type}" for row in rows}
    return [
        f"Over the bound: {', '.join(over) or 'none'}.",
        f"{small} of {len(bounded)} functions with a bound stay within 1.5 ulp.",
        f"Mantissas of the references: {', '.join(references.values())}.",
    ]


def markdown(rows: list[Row], about: str) -> str:
    """The table. about: what was measured."""
    lines = [f"{about}.", "", *summary(rows), "", f"| {' | '.join(HEADER)} |", "|---" * len(HEADER) + "|"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def html(rows: list[Row], about: str, plots: list[str]) -> str:
    """A page with the table, and the plots that lie beside it."""
    lines = ["<!DOCTYPE html>", '<html lang="en">', '<meta charset="utf-8">', "<title>Accuracy</title>"]
    lines += [f"<style>{_STYLE}</style>", f"<p>{escape(about)}.</p>"]
    lines += [f"<p>{escape(sentence)}</p>" for sentence in summary(rows)]
    lines.append("<table><tr>" + "".join(f"<th>{cell}</th>" for cell in HEADER) + "</tr>")
    for row in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row))
        lines.append(f'<tr class="{"over" if row.is_over else "within"}">{cells}</tr>')
    lines.append("</table>")
    lines += [f'<p><img src="{escape(plot)}" alt="{escape(plot)}"></p>' for plot in plots]
    return "\n".join([*lines, "</html>", ""])


_MOST = 1e6  # what is further away from 0 is drawn there
_TICKS = (-1e6, -1000, -10, -1, 0, 1, 10, 1000, 1e6)


def _place(x: float) -> float:
    """Where an argument is on the axis: linear around 0, logarithmic elsewhere."""
    return math.asinh(4 * max(-_MOST, min(x, _MOST)))


def plots(rows: list[Row], folder: Path) -> list[str]:
    """Errors over arguments, one file for each type: their names, [] without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = []
    for type_ in TYPES:
        shown = [row for row in rows if row.type == type_ and row.error and len(row.curve[0])]
        if not shown:
            continue
        columns = min(6, len(shown))
        lines = -(-len(shown) // columns)
        figure, axes = pyplot.subplots(lines, columns, figsize=(3.2 * columns, 2.2 * lines), squeeze=False)
        for axis in axes.flat[len(shown) :]:
            axis.axis("off")
        for axis, row in zip(axes.flat, shown, strict=False):
            places = [_place(x) for x in row.curve[0]]
            axis.plot(places, row.curve[1], ".", markersize=2)
            ticks = [t for t in _TICKS if min(places) <= _place(t) <= max(places)]
            axis.set_xticks([_place(t) for t in ticks], [f"{t:g}" for t in ticks])
            axis.set_ylim(0, max(1.0, 1.1 * row.curve[1].max()))
            axis.axhline(0.5, color="gray", linewidth=0.5)
            if row.bound is not None:
                axis.axhline(row.bound, color="red", linewidth=0.5)
            axis.set_title(f"{row.name}: {_number(row.error)} ulp", fontsize=8)
            axis.tick_params(labelsize=5)
        figure.tight_layout()
        names.append(f"accuracy_{type_}.png")
        figure.savefig(folder / names[-1], dpi=90)
        pyplot.close(figure)
    return names


def overview(rows: list[Row]) -> str:
    """A line for each function: errors and cycles of all types, and how it is computed."""
    found = {(row.name, row.type): row for row in rows}
    types = [name for name in TYPES if any(row.type == name for row in rows)]
    header = ["function", *(cell for t in types for cell in (f"{t}: ulp", "bound", "cycles")), "how"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for name, function in FUNCTIONS.items():
        cells = [name]
        for type_ in types:
            row = found.get((name, type_))
            shown = _cells(row) if row else [""] * len(HEADER)
            cells += [shown[2], shown[3], shown[5]]
        if any(cells[1:]):
            lines.append(f"| {' | '.join([*cells, function.how])} |")
    return "\n".join(lines) + "\n"


def put_between(file: Path, mark: str, text: str) -> None:
    """Replaces what is between <!-- mark --> and <!-- end of mark --> in a file. OSError without them."""
    before, begin, rest = file.read_text().partition(f"<!-- {mark} -->\n")
    _, end, after = rest.partition(f"<!-- end of {mark} -->\n")
    if not begin or not end:
        raise OSError(f"{file} has no marks for '{mark}'")
    file.write_text(before + begin + text + end + after)
