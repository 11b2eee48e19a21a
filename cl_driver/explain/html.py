"""Reports as one HTML page that needs nothing else: source lines, with what was done beside them."""

from __future__ import annotations

from html import escape

from .report import Kernel, Report, Variant
from .text import (
    ESTIMATED,
    LEGEND,
    alternative_text,
    heading,
    loop_text,
    measurements,
    sentences,
    usual_first,
)

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
.advice { border-left: 4px solid var(--poor); padding: 0.2em 1em; margin: 1em 0; }
.advice.nothing { border-color: var(--good); } .advice p { margin: 0.2em 0; }
.advice p:first-child { font-weight: bold; }
.legend span { margin-right: 1.2em; }
td.heat { width: 6em; } .bar { background: var(--poor); height: 0.8em; margin-top: 0.3em; min-width: 1px; }
td.heat span { color: var(--dim); font-size: 0.8em; }
details { font-size: 0.9em; } summary { color: var(--dim); cursor: pointer; }
details pre { margin: 0.2em 0; overflow-x: auto; font-size: 0.85em; }
"""

_WIDEST = 60  # columns of assembly before what an instruction takes
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
        *_LEGEND,
        f'<p class="note">{escape(LEGEND)}</p>',
    ]
    for kernel in report.kernels:
        out.append(f"<h2>{escape(kernel.name)}</h2>")
        out += [f"<p>{escape(one)}</p>" for one in measurements(kernel)]
        out += _advice(kernel)
        usual, *others = usual_first(kernel)
        out += _variant(report, usual, kernel.heat)
        for variant in others:
            out += [f"<details><summary>other code, {escape(heading(variant))}</summary>"]
            out += [*_variant(report, variant, {}), "</details>"]
        out += _alternatives(kernel)
    return "\n".join([*out, "</body>", "</html>", ""])


_LEGEND = (
    '<p class="legend"><span class="good">as good as it gets</span><span class="fair">some overhead</span>'
    '<span class="poor">costly</span><span class="bad">one work-item at a time, or a call</span>'
    '<span class="plain">scalar code, or neither good nor bad</span></p>',
    '<p class="note">Bars: a line\'s share of the cycles that the model of costs finds, caches aside. '
    "Assembly is folded under its line, with what each instruction takes. By llvm-mca, where there is one: "
    "micro-operations (μops), cycles from one to the next of many that are "
    "independent, cycles until its result is there (latency); otherwise slots of ports, and the last.</p>",
)


def _advice(kernel: Kernel) -> list[str]:
    """What bounds the kernel, what to change, what that gains."""
    out = []
    for advice in kernel.advice:
        kind = "advice" if advice.gain > 1 else "advice nothing"
        out += [
            f'<div class="{kind}">',
            *(f"<p>{escape(s)}</p>" for s in sentences(kernel, advice)),
            "</div>",
        ]
    return out


def _alternatives(kernel: Kernel) -> list[str]:
    if not kernel.alternatives:
        return []
    levels = {True: "good", False: "plain"}
    return [
        f"<details><summary>other widths, estimates for {escape(kernel.launch)}</summary>",
        f'<p class="note">{escape(ESTIMATED)}</p>',
        "<ul>",
        *(f'<li class="{levels[a.chosen]}">{escape(alternative_text(a))}</li>' for a in kernel.alternatives),
        "</ul></details>",
    ]


def _variant(report: Report, variant: Variant, heat: dict[int, float]) -> list[str]:
    facts = [f'<li class="{fact.level}">{escape(fact.text)}</li>' for fact in variant.facts]
    loops = [f"<li>{escape(loop_text(loop))}</li>" for loop in variant.loops]
    return [
        f"<section><h3>{escape(heading(variant))}</h3>",
        "<table><thead><tr><th>line</th><th>cost</th><th>source</th><th>what was made of it</th></tr>"
        "</thead><tbody>",
        *_rows(report, variant, heat),
        "</tbody></table>",
        "<ul>",
        *facts,
        *loops,
        "</ul></section>",
    ]


def _rows(report: Report, variant: Variant, heat: dict[int, float]) -> list[str]:
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
        out.append(_row(report, variant, line, heat.get(line, 0.0)))
        before = line
    if 0 in variant.lines:
        out.append(_row(report, variant, 0, 0.0))
    return out or ["<tr><td></td><td></td><td></td><td></td></tr>"]


def _row(report: Report, variant: Variant, line: int, heat: float) -> str:
    source = report.source[line - 1] if 0 < line <= len(report.source) else ""
    notes = "".join(f'<p class="{n.level}">{escape(n.text)}</p>' for n in variant.lines.get(line, ()))
    number, kind = (str(line), ' class="said"' if notes else "") if line else ("no line", ' class="said"')
    share = f"{100 * heat:.0f} %"
    bar = f'<div class="bar" style="width: {100 * heat:.0f}%"></div><span>{share}</span>' if heat else ""
    return (
        f'<tr{kind}><td class="number">{number}</td><td class="heat">{bar}</td>'
        f'<td class="code">{escape(source)}</td><td>{notes}{_assembly(variant, line)}</td></tr>'
    )


def _assembly(variant: Variant, line: int) -> str:
    """A line's instructions, folded."""
    codes = variant.assembly.get(line)
    if not codes:
        return ""
    count, vectors = variant.instructions.get(line, (0, 0))
    which = f"{count} instruction{'' if count == 1 else 's'}" + (f", {vectors} of vectors" if vectors else "")
    width = min(_WIDEST, max(len(text) for text, _ in codes))
    text = "\n".join(f"{text:{width}}  {takes}".rstrip() for text, takes in codes)
    return f"<details><summary>{which}</summary><pre>{escape(text)}</pre></details>"
