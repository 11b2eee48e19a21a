"""What this driver skips and fails, and why, by tests/conformance.toml."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Iterable
from pathlib import Path

from .results import Result

TABLE = tomllib.loads((Path(__file__).parent.parent / "tests" / "conformance.toml").read_text())
SOMETIMES = "now and then wrong in the CTS"
# By kind; the sub-tests of all other kinds are skipped.
OUTCOMES = {"wrong in the CTS": ("skip", "fail"), SOMETIMES: ("pass", "fail")}


def entry_of(key: str) -> tuple[str, str]:
    """(kind, reason) of the first pattern that the key of a sub-test matches; empty ones if none does."""
    for kind, reasons in TABLE.items():
        for reason, patterns in reasons.items():
            if any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns):
                return kind, reason
    return "", ""


def is_expected(row: Result) -> bool:
    """Whether the outcome is that of the table, or a pass of what is not in it."""
    kind, _ = entry_of(row.key)
    return row.outcome in (OUTCOMES.get(kind, ("skip",)) if kind else ("pass",))


def unexpected(rows: Iterable[Result]) -> list[str]:
    """A line for each sub-test whose outcome is not expected."""
    lines = []
    for row in rows:
        if not is_expected(row):
            kind, reason = entry_of(row.key)
            known = f"{kind}: {reason}" if kind else "not in tests/conformance.toml"
            lines.append(f"unexpected: {row.outcome} of {row.key} ({known})")
    return lines
