"""Build logs out of what clang wrote to its standard error."""

from __future__ import annotations

import os
import re

from . import prelude

MAX_LOG = 1 << 20  # characters

# What clang writes on its own account and not the program's.
_NOISE = re.compile(
    r"^(clang[-\d.]*: (warning|note): .*|\d+ warnings? (and \d+ errors? )?generated\.|"
    r"PLEASE submit a bug report.*)\n",
    re.MULTILINE,
)


# Lines that clang begins a diagnostic with; what follows quotes the file.
_PLACE = re.compile(
    r"^(?P<file>[^\n]+?):\d+:(?:\d+:)? (?:fatal error|error|warning|note|remark): (?P<text>.*)$"
)
_FROM = re.compile(r"^In file included from .*[:,]$")
_CLANGS_OWN = re.compile(r"^<[^/]*>$|/clang/[^/]+/include/[^/]+$")


def without_quotes(errors: str, source: str, folders: list[str], base: str | None) -> str:
    """What clang says, without what it quotes of files that are no part of the program: to include
    "/etc/shadow" is no way to read it.

    source: the program's name; folders: where else its files are, absolute or seen from base, the working
    folder, which counts too unless it is the root.
    """
    base = os.path.abspath(base or ".")
    known = [os.path.normpath(os.path.join(base, folder)) for folder in (base, *folders)]
    known = [folder.rstrip("/") + "/" for folder in known if folder.strip("/")]

    def is_known(name: str) -> bool:
        path = os.path.normpath(os.path.join(base, name))
        return name == source or bool(_CLANGS_OWN.search(name)) or path.startswith(tuple(known))

    out, shown = [], True
    for line in errors.split("\n"):
        place = _PLACE.match(line)
        if place:
            shown = is_known(place["file"])
            if not shown:
                line = line[: place.start("text")] + re.sub(r"'[^']*'", "'...'", place["text"])
        elif _FROM.match(line) or _NOISE.match(line + "\n") or line.startswith("fatal error: "):
            shown = True
        elif not shown and line:
            continue
        out.append(line)
    return "\n".join(out)


def clean_log(errors: str) -> str:
    """The diagnostics of the program alone."""
    log = _NOISE.sub("", prelude.clean(errors))
    return log if len(log) <= MAX_LOG else log[:MAX_LOG] + "\n(the log was cut here)\n"


# Of clang's own; it names the version that it was given.
_VERSION = re.compile(r"(: error: OpenCL C version )3\.0(?= does not support the ')")


def with_version(log: str, standard: tuple[int, int]) -> str:
    """clang's messages with the version of OpenCL C that the program is in, which clang may not know."""
    return _VERSION.sub(rf"\g<1>{standard[0]}.{standard[1]}", log)


def crash_log(errors: str, status: int) -> str:
    """For a clang that died: its diagnostics, and the line that says why, without addresses and stack."""
    head = re.sub(r"^fatal error: error in backend: .*\n", "", errors, flags=re.MULTILINE)
    head = head.split("PLEASE submit a bug report", 1)[0]
    why = re.search(
        r"^(fatal error: error in backend: .*|LLVM ERROR: .*|.*Assertion .* failed.*)$", errors, re.MULTILINE
    )
    how = f"signal {-status}" if status < 0 else f"status {status}"
    return clean_log(head) + f"error: clang crashed ({how}){': ' + why[1] if why else ''}\n"
