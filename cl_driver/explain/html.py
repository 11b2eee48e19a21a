"""Reports as one HTML page that needs nothing else: source lines, with what was done beside them."""

from __future__ import annotations

from html import escape

from .report import Kernel, Report, Variant
from .text import ESTIMATED, LEGEND, alternative_text, heading, loop_text

_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --line: #d8dee4; --dim: #656d76;
  --good: #1a7f37; --fair: #9a6700; --poor: #bc4c00; --bad: #cf222e; --plain: #656d76; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --page: #0d1117; --line: #30363d;
  --dim: #8d96a0; --good: #3fb950; --fair: #d29922; --poor: #f0883e; --bad: #ff7b72; --plain: #8d96a0; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 2em; }
h1 { font-size: 1.3em; } h2 { font-size: 1.1em; margin-top: 2em; }
ul { padding-left: 1.3em; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; color: var(--dim); font-weight: normal; }
td, th { vertical-align: top; padding: 0 0.7em; }
tr.said td { border-top: 1px solid var(--line); }
td.code { font-family: ui-monospace, monospace; white-space: pre-wrap; width: 50%; tab-size: 4; }
td.number { color: var(--dim); text-align: right; font-family: ui-monospace, monospace; }
td.count { color: var(--dim); text-align: right; white-space: nowrap; }
td p { margin: 0; padding-left: 0.5em; border-left: 3px solid; font-size: 0.9em; }
.good { color: var(--good); } .fair { color: var(--fair); } .poor { color: var(--poor); }
.bad { color: var(--bad); } .plain { color: var(--plain); } .note { color: var(--dim); }
"""

_AROUND = 3  # lines of the source without a remark that are shown beside those that have one


def report_html(report: Report) -> str:
    """The whole page."""
    name = escape(report.file or "a program without debug information")
    out = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{name}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        f"<h1>{name}</h1>",
        *(f"<p>{escape(sentence)}</p>" for sentence in report.about),
        f'<p class="note">{escape(LEGEND)}</p>',
    ]
    for kernel in report.kernels:
        out += _alternatives(kernel)
        for variant in kernel.variants:
            out += _variant(report, kernel.name, variant)
    return "\n".join([*out, "</body>", "</html>", ""])


def _alternatives(kernel: Kernel) -> list[str]:
    if not kernel.alternatives:
        return []
    levels = {True: "good", False: "plain"}
    return [
        f"<section><h2>{escape(kernel.name)}, estimates for {escape(kernel.launch)}</h2>",
        f'<p class="note">{escape(ESTIMATED)}</p>',
        "<ul>",
        *(f'<li class="{levels[a.chosen]}">{escape(alternative_text(a))}</li>' for a in kernel.alternatives),
        "</ul></section>",
    ]


def _variant(report: Report, name: str, variant: Variant) -> list[str]:
    facts = [f'<li class="{fact.level}">{escape(fact.text)}</li>' for fact in variant.facts]
    loops = [f"<li>{escape(loop_text(loop))}</li>" for loop in variant.loops]
    return [
        f"<section><h2>{escape(name)}, {escape(heading(variant))}</h2>",
        "<ul>",
        *facts,
        *loops,
        "</ul>",
        "<table><thead><tr><th>line</th><th>source</th><th>what was made of it</th><th>instructions</th></tr>"
        "</thead><tbody>",
        *_rows(report, variant),
        "</tbody></table></section>",
    ]


def _rows(report: Report, variant: Variant) -> list[str]:
    """The lines that something is said of, and those around them."""
    said = sorted(line for line in {*variant.lines, *variant.instructions} if line)
    shown: dict[int, None] = {}
    for line in said:
        for near in range(line - _AROUND, line + _AROUND + 1):
            if line == near or 0 < near <= len(report.source):
                shown[near] = None
    out, before = [], 0
    for line in sorted(shown):
        if before and line > before + 1:
            out.append('<tr><td class="number">&#8942;</td><td></td><td></td><td></td></tr>')
        out.append(_row(report, variant, line))
        before = line
    if 0 in variant.lines:
        out.append(_row(report, variant, 0))
    return out or ["<tr><td></td><td></td><td></td><td></td></tr>"]


def _row(report: Report, variant: Variant, line: int) -> str:
    source = report.source[line - 1] if 0 < line <= len(report.source) else ""
    notes = "".join(f'<p class="{n.level}">{escape(n.text)}</p>' for n in variant.lines.get(line, ()))
    count, vectors = variant.instructions.get(line, (0, 0))
    counts = f"{count}, {vectors} of vectors" if vectors else str(count or "")
    number, kind = (str(line), ' class="said"' if notes else "") if line else ("no line", ' class="said"')
    return (
        f'<tr{kind}><td class="number">{number}</td><td class="code">{escape(source)}</td>'
        f'<td>{notes}</td><td class="count">{counts}</td></tr>'
    )
