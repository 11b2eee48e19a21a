"""JUnit XML, an HTML page and a summary of conformance results."""

from __future__ import annotations

import html
import re
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import quoteattr

from .results import BAD, OUTCOMES, by_suite

COLOURS = {"pass": "#cfc", "fail": "#fcc", "crash": "#f99", "timeout": "#fc9", "skip": "#eee"}
STYLE = "body{font-family:sans-serif}td,th{padding:2px 8px;text-align:left}" + "".join(
    f".{outcome}{{background:{colour}}}" for outcome, colour in COLOURS.items()
)


def summary(rows) -> str:
    """A line per suite and one for all."""
    lines = [f"{'suite':40}" + "".join(f"{o:>9}" for o in OUTCOMES) + f"{'seconds':>10}"]
    for suite, group in [*by_suite(rows).items(), ("all", rows)]:
        counts = Counter(r.outcome for r in group)
        numbers = "".join(f"{counts[o]:9}" for o in OUTCOMES)
        lines.append(f"{suite:40}{numbers}{sum(r.seconds for r in group):10.1f}")
    return "\n".join(lines)


def junit(rows) -> str:
    """The results in JUnit's XML form: crashes and timeouts are its errors."""
    parts = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for suite, group in by_suite(rows).items():
        counts = Counter(r.outcome for r in group)
        parts.append(
            f'<testsuite name={quoteattr(suite)} tests="{len(group)}" failures="{counts["fail"]}" '
            f'errors="{counts["crash"] + counts["timeout"]}" skipped="{counts["skip"]}" '
            f'time="{sum(r.seconds for r in group):.2f}">'
        )
        for row in group:
            kind = {"pass": "", "skip": "skipped", "fail": "failure"}.get(row.outcome, "error")
            told = re.sub(r"[^\x20-\x7e]", " ", f"{row.outcome}: {row.reason} ({row.log})")
            body = f"<{kind} message={quoteattr(told)}/>" if kind else ""
            parts.append(
                f"<testcase classname={quoteattr(suite)} name={quoteattr(row.test)} "
                f'time="{row.seconds}">{body}</testcase>'
            )
        parts.append("</testsuite>")
    return "\n".join([*parts, "</testsuites>", ""])


def tests_table(rows) -> str:
    """A row per sub-test, with a link to its log."""
    return (
        "<table>"
        + "".join(
            f"<tr class={row.outcome}><td>{html.escape(row.suite)}</td>"
            f"<td><a href={quoteattr(row.log)}>{html.escape(row.test)}</a></td><td>{row.outcome}</td>"
            f"<td>{row.seconds:.1f} s</td><td>{html.escape(row.reason)}</td></tr>\n"
            for row in rows
        )
        + "</table>"
    )


def page(about: dict, rows) -> str:
    """Suites by outcome, what failed with links to the logs, and behind folds what was skipped and passed."""
    head = "".join(f"<th>{o}</th>" for o in OUTCOMES)
    suites = []
    for suite, group in [*by_suite(rows).items(), ("all", rows)]:
        counts = Counter(r.outcome for r in group)
        cells = "".join(f'<td class="{o if counts[o] else ""}">{counts[o] or ""}</td>' for o in OUTCOMES)
        bad = next((r for r in group if r.outcome in BAD), None)
        name = f"<a href={quoteattr('#' + suite)}>{html.escape(suite)}</a>" if bad else html.escape(suite)
        suites.append(f"<tr><td>{name}</td>{cells}<td>{sum(r.seconds for r in group):.1f} s</td></tr>\n")
    failures = "".join(
        f"<h3 id={quoteattr(suite)}>{html.escape(suite)}</h3>{tests_table(group)}"
        for suite, group in by_suite(r for r in rows if r.outcome in BAD).items()
    )
    folds = "".join(
        f"<details><summary>{title}</summary>{tests_table(r for r in rows if r.outcome == outcome)}</details>"
        for title, outcome in (("Skipped", "skip"), ("Passed", "pass"))
    )
    told = "".join(f"<li>{html.escape(str(k))}: {html.escape(str(v))}</li>" for k, v in about.items())
    return (
        f"<!doctype html><meta charset=utf-8><title>OpenCL conformance</title><style>{STYLE}</style>"
        f"<h1>OpenCL conformance</h1>"
        f"<table><tr><th>suite</th>{head}<th>time</th></tr>\n{''.join(suites)}</table>"
        f"<h2 id=all>Failures, crashes, timeouts</h2>{failures or '<p>None.</p>'}"
        f"{folds}<details><summary>The run</summary><ul>{told}</ul></details>"
        f"<p>A log begins with the command that runs its sub-test alone.</p>"
    )


def write(out: Path, about: dict, rows) -> None:
    """junit.xml and index.html in the folder `out`."""
    (out / "junit.xml").write_text(junit(rows))
    (out / "index.html").write_text(page(about, rows))
