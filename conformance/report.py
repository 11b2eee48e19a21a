"""JUnit XML, an HTML page and a summary of conformance results."""

from __future__ import annotations

import html
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

OUTCOMES = ("pass", "fail", "crash", "timeout", "skip")
COLOURS = {"pass": "#cfc", "fail": "#fcc", "crash": "#f99", "timeout": "#fc9", "skip": "#eee"}


def by_suite(rows) -> dict:
    """{suite: its results}."""
    suites: dict = {}
    for row in rows:
        suites.setdefault(row.suite, []).append(row)
    return suites


def summary(rows) -> None:
    """Prints a line per suite and one for all."""
    print(f"{'suite':40}" + "".join(f"{o:>9}" for o in OUTCOMES) + f"{'seconds':>10}")
    for suite, group in [*by_suite(rows).items(), ("all", rows)]:
        counts = Counter(r.outcome for r in group)
        print(
            f"{suite:40}"
            + "".join(f"{counts[o]:9}" for o in OUTCOMES)
            + f"{sum(r.seconds for r in group):10.1f}"
        )


def junit(rows) -> str:
    """The results in JUnit's XML form."""
    parts = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for suite, group in by_suite(rows).items():
        counts = Counter(r.outcome for r in group)
        parts.append(
            f'<testsuite name={quoteattr(suite)} tests="{len(group)}" failures="{counts["fail"]}" '
            f'errors="{counts["crash"] + counts["timeout"]}" skipped="{counts["skip"]}">'
        )
        for row in group:
            body = {"pass": "", "skip": "<skipped/>", "fail": f"<failure message={quoteattr(row.log)}/>"}.get(
                row.outcome, f"<error message={quoteattr(row.outcome + ': ' + row.log)}/>"
            )
            parts.append(
                f"<testcase classname={quoteattr(suite)} name={quoteattr(row.test)} "
                f'time="{row.seconds}">{body}</testcase>'
            )
        parts.append("</testsuite>")
    return "\n".join([*parts, "</testsuites>", ""])


def page(rows) -> str:
    """Suites by outcome, then every sub-test with a link to its log; the bad ones first."""
    head = "".join(f"<th>{o}</th>" for o in OUTCOMES)
    table = []
    for suite, group in by_suite(rows).items():
        counts = Counter(r.outcome for r in group)
        cells = "".join(
            f'<td style="background:{COLOURS[o] if counts[o] else "#fff"}">{counts[o] or ""}</td>'
            for o in OUTCOMES
        )
        table.append(
            f"<tr><td>{html.escape(suite)}</td>{cells}<td>{sum(r.seconds for r in group):.1f} s</td></tr>"
        )
    order = {o: i for i, o in enumerate(("crash", "timeout", "fail", "pass", "skip"))}
    tests = [
        f'<tr style="background:{COLOURS[r.outcome]}"><td>{html.escape(r.suite)}</td>'
        f"<td><a href={quoteattr(r.log)}>{html.escape(r.test)}</a></td><td>{escape(r.outcome)}</td>"
        f"<td>{r.seconds:.1f} s</td></tr>"
        for r in sorted(rows, key=lambda r: (order[r.outcome], r.key))
    ]
    return (
        "<!doctype html><meta charset=utf-8><title>OpenCL conformance</title>"
        "<style>body{font-family:sans-serif}td,th{padding:2px 8px;text-align:left}</style>"
        f"<h1>OpenCL conformance</h1><table><tr><th>suite</th>{head}<th>time</th></tr>"
        f"{''.join(table)}</table><h2>Sub-tests</h2><table>{''.join(tests)}</table>"
    )


def write(out: Path, rows) -> None:
    """junit.xml and index.html in the folder `out`."""
    (out / "junit.xml").write_text(junit(rows))
    (out / "index.html").write_text(page(rows))
