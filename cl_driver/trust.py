"""Whether this process may believe its environment.

That of a set-user-ID program, or of one with file capabilities, comes from somebody with fewer rights, who
must not choose which clang runs with them, where code comes from, or what is written where. The kernel says
so, once for a process (AT_SECURE): what a process does with its user ids later does not change who wrote its
environment. C asks (native_shim/src/base/settings.c) and tells the Python that it embeds, joins or starts,
which tells the processes that it starts: to the kernel these look like any other.
"""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping

_AT_SECURE = 23
_PAIR = struct.Struct("@LL")

# What a process that is not trusted has instead, and starts others with: fixed folders for tools, no HOME,
# and so no cache on disk, and no settings.
FIXED = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}

# Bytes of a file that a program includes: whoever wrote the program may name any file.
MOST_INCLUDED = 64 << 20

_known: list[bool] = []


def hand(trusted: bool) -> None:
    """Takes the answer from whoever started this Python, before anything else of the driver is imported.

    trusted: what is_trusted() is to say from now on.
    """
    _known[:] = [bool(trusted)]


def is_trusted() -> bool:
    """The answer that was handed on; the kernel's in a process that a user started, say `cl-driver`."""
    if not _known:
        hand(_ask_kernel())
    return _known[0]


def _ask_kernel(path: str = "/proc/self/auxv") -> bool:
    """Who cannot ask is not trusted: the file of a process with more rights than its user is not readable."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return False
    whole = len(data) // _PAIR.size * _PAIR.size
    return dict(_PAIR.iter_unpack(data[:whole])).get(_AT_SECURE) == 0


def environment() -> Mapping[str, str]:
    """The variables that this process may believe: what the driver reads in place of os.environ."""
    return os.environ if is_trusted() else FIXED


def may_run(path: str) -> bool:
    """Whether a file is a program that this process may run, by its effective ids: os.access asks for the
    real ones, which are those of the user of a set-user-ID program."""
    return os.path.isfile(path) and os.access(path, os.X_OK, effective_ids=_HAS_EFFECTIVE)


_HAS_EFFECTIVE = os.access in os.supports_effective_ids
