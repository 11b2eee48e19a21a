"""Build logs out of what clang wrote to its standard error."""

from __future__ import annotations

import re

MAX_LOG = 1 << 20  # characters

# What clang writes on its own account and not the program's.
_NOISE = re.compile(
    r"^(clang[-\d.]*: (warning|note): .*|\d+ warnings? (and \d+ errors? )?generated\.|"
    r"PLEASE submit a bug report.*)\n",
    re.MULTILINE,
)


def clean_log(errors: str) -> str:
    """The diagnostics of the program alone."""
    log = _NOISE.sub("", errors)
    return log if len(log) <= MAX_LOG else log[:MAX_LOG] + "\n(the log was cut here)\n"


def crash_log(errors: str, status: int) -> str:
    """For a clang that died: its diagnostics, and the line that says why, without addresses and stack."""
    head = re.sub(r"^fatal error: error in backend: .*\n", "", errors, flags=re.MULTILINE)
    head = head.split("PLEASE submit a bug report", 1)[0]
    why = re.search(
        r"^(fatal error: error in backend: .*|LLVM ERROR: .*|.*Assertion .* failed.*)$", errors, re.MULTILINE
    )
    how = f"signal {-status}" if status < 0 else f"status {status}"
    return clean_log(head) + f"error: clang crashed ({how}){': ' + why[1] if why else ''}\n"
